"""
Finding providers: by name or alias, and the maker of a model by its name.

The rows are in `row_tables`; another package adds rows with an entry point.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import TYPE_CHECKING

from interlingua.providers.provider import Provider
from interlingua.providers.row_tables import clouds, hosts, makers, servers
from interlingua.spec.errors import ConfigurationError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

ROWS: tuple[Provider, ...] = (
    *makers.ROWS,
    *hosts.ROWS,
    *clouds.ROWS,
    *hosts.GATEWAYS,
    *servers.ROWS,
)

OTHERS: Mapping[str, tuple[str, ...]] = {
    "replicate": (),  # predictions of its own form; no compatible endpoint is documented
    "sagemaker": (),
    "watsonx": ("granite-",),
}
"""Well-known providers without a row, with the families of their models."""

OPEN_FAMILIES = ("gpt-oss", "llama", "qwen", "minimax-", "muse-", "nemotron-")
OPEN_MODELS = "a host of open models"
"""The maker of the open families: a provider without families of its own serves them."""

_WORD_END = re.compile("[/:.@]")
_LONGEST_NAME = 100
"""Characters of a name that are compared with known names, or shown."""

_BUILTIN = {row.name: row for row in ROWS}


def find_provider(name: str) -> Provider:
    """The provider of that name or alias; `ConfigurationError` has the names that are near."""
    row = _BUILTIN.get(name) or providers().get(row_name(name) or name)
    if row is None:
        raise ConfigurationError(f"There is no provider {name[:_LONGEST_NAME]!r}. {_suggest(name)}")
    return row


def _suggest(name: str) -> str:
    """What to write instead of an unknown name."""
    near = near_names(name, _names())
    if near:
        return f"Did you mean {' or '.join(map(repr, near))}?"
    return (
        "The provider table in the documentation has all names; for another server of Chat "
        "Completions, use 'openai_compatible' with base_url."
    )


def near_names(name: str, names: Iterable[str], count: int = 3) -> list[str]:
    """The names that are spelled like this one, the nearest first."""
    from difflib import get_close_matches  # imported only for error messages

    return get_close_matches(name.lower()[:_LONGEST_NAME], list(names), n=count, cutoff=0.75)


def row_name(name: str) -> str | None:
    """The name of the row with this name or alias, in any case; None if there is none."""
    return _names().get(name.lower())


@cache
def _names() -> dict[str, str]:
    rows = providers().values()
    aliases = {alias: row.name for row in rows for alias in row.aliases}
    return aliases | {row.name.lower(): row.name for row in rows}


def maker_of(model: str) -> str | None:
    """
    The provider that a model's name points to, by a word or a family in it; None if unclear.

        maker_of("us.anthropic.claude-opus-5"), maker_of("gpt-7"), maker_of("llama3")
        # anthropic, openai, OPEN_MODELS
    """
    name = model.lower()
    for word in _WORD_END.split(name)[:-1]:
        if word in OTHERS or row_name(word):
            return row_name(word) or word
    makers = _makers()
    families = "|".join(map(re.escape, sorted(makers, key=len, reverse=True)))
    # A family alone is also a name: `grok` is as much of xAI as `grok-4`.
    match = re.search(f"(?:^|{_WORD_END.pattern})({families})", f"{name}-")
    return None if match is None else makers[match[1]]


def maker_of_family(word: str) -> str | None:
    """The maker with a family of exactly this name: `xai` for `grok`."""
    makers, name = _makers(), word.lower()
    maker = makers.get(name) or makers.get(f"{name}-")
    return None if maker == OPEN_MODELS else maker


def find_own_id(row: Provider, model: str) -> str | None:
    """
    The id of a model as the provider writes it, if the name has a form that only its ids have.

        find_own_id(find_provider("bedrock"), "us.anthropic.claude-opus-4-1-20250805-v1:0")
        # anthropic.claude-opus-4-1-20250805
    """
    match = re.fullmatch(row.own_ids, model) if row.own_ids else None
    if match is None:
        return None
    return match["id"] if "id" in match.re.groupindex else model


@cache
def _makers() -> dict[str, str]:
    """Each family with its maker."""
    rows = {row.name: row.families for row in providers().values()}
    table = {**rows, **OTHERS, OPEN_MODELS: OPEN_FAMILIES}
    return {family: maker for maker, families in table.items() for family in families}


@cache
def providers() -> dict[str, Provider]:
    """All providers by name: the built-in ones, then those of other packages."""
    from interlingua.runtime.installed import PROVIDERS, entry_points_of

    return with_installed(entry_points_of(PROVIDERS))


def with_installed(points: Iterable[EntryPoint]) -> dict[str, Provider]:
    """The built-in providers, which cannot be replaced, then those of these entry points."""
    from interlingua.runtime.installed import use_entry_points

    rows = dict(_BUILTIN)

    def add(point: EntryPoint) -> None:
        for row in rows_of(point.load(), point.name):
            rows.setdefault(row.name, row)

    use_entry_points(points, add)
    return rows


def rows_of(loaded: object, name: str) -> tuple[Provider, ...]:
    """The providers of an entry point, which is a row, rows, or a function that returns them."""
    value = loaded() if callable(loaded) else loaded
    rows = value if isinstance(value, (list, tuple)) else (value,)
    for row in rows:
        if not isinstance(row, Provider):
            raise ConfigurationError(
                f"Entry point {name!r} of interlingua.providers gave a {type(row).__name__}. "
                "It must give Provider rows."
            )
    return tuple(rows)
