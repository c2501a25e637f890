"""`interlingua providers`: which are configured, and what the others need."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import click

from interlingua.cli.output import Column, Output, with_output
from interlingua.cli.tables import GREEN

if TYPE_CHECKING:
    from interlingua.catalog import Provider

_COLUMNS = (
    Column("name", "provider"),
    Column("configured", "configured", colors={"yes": GREEN}),
    Column("how", "how", wraps=True),
)


@click.command("providers")
@click.argument("words", nargs=-1)
@click.option("--configured", "only_configured", is_flag=True, help="Only those that can be used.")
@with_output
def command(out: Output, words: tuple[str, ...], *, only_configured: bool) -> None:
    r"""
    List providers: whether each can be used, and which variable it needs.

    WORDS must be in the name. Keys are never printed.

    \b
    interlingua providers --configured
    interlingua providers open
    """
    from interlingua.cli.clients import environment
    from interlingua.providers.rows import providers

    environ = environment()
    rows = [
        _row(row, environ)
        for row in providers().values()
        if all(word.lower() in row.name for word in words)
    ]
    rows = [row for row in rows if row["configured"] or not only_configured]
    rows.sort(key=lambda row: not row["configured"])
    hint = "No provider is configured; `interlingua keys set NAME` stores a key."
    out.table(_COLUMNS, rows, empty=hint if only_configured else "There is no such provider.")


def _row(row: Provider, environ: Mapping[str, str]) -> dict[str, object]:
    configured, how = _state(row, environ)
    return {
        "name": row.name,
        "configured": configured,
        "how": how,
        "key_variables": list(row.key_env),
        "address_variables": list(row.base_url_env),
    }


def _state(row: Provider, environ: Mapping[str, str]) -> tuple[bool, str]:
    """Whether a provider can be used, and how it is or could be."""
    from importlib.util import find_spec

    from interlingua.providers.environment import has_address

    if row.is_embedded:
        is_there = find_spec("xllamacpp") is not None
        return is_there, "on this machine" if is_there else "pip install 'interlingua[local]'"
    variable = next((name for name in (*row.key_env, *row.token_env) if environ.get(name)), None)
    missing = [names[0] for names in row.address_env if names and not any(map(environ.get, names))]
    if row.key_required and variable is None and row.identity is None:
        missing.insert(0, " or ".join((*row.key_env, *row.token_env)[:2]))
    if missing and not (variable and has_address(row, environ)):
        return False, f"set {', '.join(missing)}"
    if row.identity is not None and variable is None:
        return False, f"uses the login of {row.identity}: name it, as in {row.name}:MODEL"
    if not row.key_required and variable is None and not has_address(row, environ):
        return False, f"a server on this machine: name it, as in {row.name}:MODEL"
    return True, variable or next(filter(environ.get, row.base_url_env), "")
