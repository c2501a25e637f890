"""`interlingua models`: the models of the catalog, or the models that a provider serves now."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from interlingua.cli.output import FAILED, Column, Output, with_output

if TYPE_CHECKING:
    from interlingua.catalog import ModelInfo
    from interlingua.sync import Client

_SHOWN = ("tools", "vision", "reasoning", "structured_output", "audio", "pdf", "web_search")
_SHORT = {"structured_output": "objects", "web_search": "search"}
"""Shorter words for the column."""
_WORDS = tuple(_SHORT.get(name, name) for name in _SHOWN)
_SAMPLES: Mapping[str, Any] = {
    "temperature": 0.5, "top_p": 0.5, "top_k": 5, "max_tokens": 5000, "stop_sequences": ["x"],
    "seed": 1, "frequency_penalty": 0.1, "presence_penalty": 0.1, "logprobs": 1,
    "reasoning_effort": "low", "thinking_budget": 2000, "verbosity": "low",
}  # fmt: skip
"""The settings that some models take and others do not, each with a value to try."""
_THOUSAND, _MILLION = 1_000, 1_000_000


def _tokens(count: int) -> str:
    """A number of tokens in short: `200k`, `1M`."""
    if count >= _MILLION:
        return f"{count / _MILLION:.3g}M"
    return f"{count / _THOUSAND:.0f}k" if count >= _THOUSAND else str(count)


def _letters(capabilities: list[str]) -> str:
    """The first letter of each capability in its place, where words do not fit."""
    return "".join(word[0] if word in capabilities else "-" for word in _WORDS)


_COLUMNS = (
    Column("name", "model"),
    Column("context", "context", right=True, form=_tokens, rank=1),
    Column("input", "$ in", right=True, is_money=True),
    Column("output", "$ out", right=True, is_money=True),
    Column("capabilities", "can", form=", ".join, short=_letters, rank=2),
)
_OPTIONS = (Column("name", "model"), Column("options", "-o", wraps=True))
_SERVED = (Column("name", "model"), Column("title", "title", wraps=True))
_LEGEND = "can: " + ", ".join(f"{word[0]} {word}" for word in _WORDS)


@click.command("models")
@click.argument("words", nargs=-1)
@click.option("-p", "--provider", help="Only this provider, such as `openai`.")
@click.option(
    "-c",
    "--capability",
    multiple=True,
    help=f"Only models with it: {', '.join(_SHOWN)}. Repeatable.",
)
@click.option("--kind", default="chat", help="chat (the default), embedding, image, … or all.")
@click.option(
    "--tier",
    type=click.Choice(["small", "medium", "large"]),
    help="Only models of this size and price.",
)
@click.option(
    "--max-price",
    type=click.FloatRange(min=0),
    help="At most this many dollars per million tokens, of which three in four are input.",
)
@click.option(
    "--min-context",
    type=click.IntRange(min=0),
    help="A context window of at least this many tokens.",
)
@click.option(
    "--all",
    "everything",
    is_flag=True,
    help="Also list providers without a key, and deprecated and gated models.",
)
@click.option("--options", is_flag=True, help="List the options of -o that each model takes.")
@click.option("--live", is_flag=True, help="Ask the providers what they serve now.")
@with_output
def command(
    out: Output, words: tuple[str, ...], *, live: bool, options: bool, **filters: Any
) -> int:
    r"""
    List models with context window, prices per million tokens, and capabilities.

    Without -p and --all, those of the providers that have a key, or of all if none has one. WORDS
    must be in the name of the model. Within a provider the best models come first. The exit code is
    1 if no model fits.

    \b
    interlingua models haiku
    interlingua models -p gemini -c vision --max-price 1
    interlingua models --options gpt-5.2
    interlingua models -p openai --live
    """
    from interlingua.cli.clients import configured_providers

    rows = _served(out, filters["provider"]) if live else _listed(**filters)
    wanted = [word.lower() for word in words]
    fitting = [row for row in rows if all(word in str(row["name"]).lower() for word in wanted)]
    is_limited = not (live or filters["provider"] or filters["everything"])
    usable = configured_providers() if is_limited else set()
    found = [row for row in fitting if not usable or row["provider"] in usable]
    columns = _SERVED if live else _OPTIONS if options else _COLUMNS
    if options:
        _add_options(found)
    more = f"{len(fitting) - len(found)} of providers without a key"
    empty = "No model is known that fits; try fewer conditions."
    if fitting and not found:
        empty = f"No provider with a key has such a model; --all lists {more}."
    if out.table(columns, found, empty=empty):
        out.note(_LEGEND)
    if found and len(found) < len(fitting):
        out.note(f"--all lists {more} too.")
    return 0 if found else FAILED


def _add_options(rows: list[dict[str, object]]) -> None:
    """Say of each model which settings it takes; nothing is sent."""
    from interlingua.cli.clients import open_client

    with open_client() as client:
        for row in rows:
            model = str(row["name"])
            row["options"] = [name for name in _SAMPLES if _takes(client, model, name)]


def _takes(client: Client, model: str, name: str) -> bool:
    """Whether a model takes a setting: it is not refused, and not dropped with a warning."""
    from interlingua import Request
    from interlingua.errors import SDKError

    settings = {name: _SAMPLES[name]}
    try:
        shown = client.explain(Request(model=model, messages="Hi", on_loss="warn", **settings))
    except SDKError:
        return False
    return all(warning.code != f"{name}_dropped" for warning in shown.warnings)


def _listed(
    *,
    provider: str | None,
    capability: tuple[str, ...],
    kind: str,
    everything: bool,
    **conditions: Any,
) -> list[dict[str, object]]:
    from interlingua.catalog import list_models
    from interlingua.providers.rows import find_provider

    if provider is not None:
        provider = find_provider(provider).name
    names = {short: name for name, short in _SHORT.items()}
    models = list_models(
        provider,
        capability=[names.get(each, each) for each in capability],
        available=not everything,
        **conditions,
    )
    _check_kind(kind, {model.kind for model in list_models()})
    return [_row(model) for model in models if kind in ("all", model.kind)]


def _check_kind(kind: str, known: set[str]) -> None:
    if kind != "all" and kind not in known:
        names = ", ".join(sorted(known))
        raise click.BadParameter(f"no kind {kind!r}; there are {names}, all", param_hint="--kind")


def _row(model: ModelInfo) -> dict[str, object]:
    can = [name for name in _SHOWN if getattr(model, f"supports_{name}")]
    return {
        "name": f"{model.provider}:{model.id}",
        "provider": model.provider,
        "kind": model.kind,
        "tier": model.tier,
        "context": model.context_window,
        "max_output": model.max_output,
        "input": model.input_cost_per_million,
        "output": model.output_cost_per_million,
        "capabilities": [_SHORT.get(name, name) for name in can],
        "retires": model.retires,
    }


def _served(out: Output, provider: str | None) -> list[dict[str, object]]:
    from interlingua.cli.clients import collected_logs, open_client

    failures: list[str] = []
    with open_client() as client, collected_logs(failures), out.progress("Asking the providers"):
        models = client.list_models(provider)
    for failure in failures:
        out.warn(failure)
    return [
        {"name": f"{model.provider}:{model.id}", "title": model.name, "owner": model.owner}
        for model in models
    ]
