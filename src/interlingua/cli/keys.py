"""`interlingua keys`: keys for this command line."""

from __future__ import annotations

import os
import re
import sys

import click

from interlingua.cli.clients import remove_key, store_key, stored_names
from interlingua.cli.output import Column, Output, is_terminal, with_output

_COLUMNS = (
    Column("variable", "variable"),
    Column("place", "stored in"),
    Column("used", "used", wraps=True),
)


@click.group("keys")
def command() -> None:
    r"""
    Set, list and remove API keys for this command line.

    A key is stored in the keyring of the system if the package `keyring` is installed, else in a
    file that only you can read. It is never printed. A variable of the environment comes first,
    and programs that use the library do not see the stored keys. A key of a server of yours may
    have any name in capitals: `--key NAME` of `ask` and `chat` uses it.

    \b
    interlingua keys set anthropic
    interlingua keys list
    """


@command.command("set")
@click.argument("provider")
@with_output
def set_key(out: Output, provider: str) -> None:
    r"""
    Store the key of PROVIDER; it is asked for, or read from stdin.

    \b
    interlingua keys set anthropic
    """
    variable = _variable(provider)
    if is_terminal(sys.stdin):
        key = click.prompt(f"Key for {provider}", hide_input=True, err=True)
    else:
        key = _read_line()
    key = key.strip()
    if not key or not key.isprintable() or not key.isascii() or " " in key:
        raise click.UsageError("That is not a key. Nothing was stored.")
    place = store_key(variable, key)
    if out.json:
        out.data({"variable": variable, "stored": place})
    else:
        out.note(f"Stored in the {place} as {variable}.")


@command.command("list")
@with_output
def list_keys(out: Output) -> None:
    r"""
    List the variables that have a stored key, without the keys.

    \b
    interlingua keys list
    """
    rows = [
        {
            "variable": name,
            "place": place,
            "used": "no: the environment has it" if os.environ.get(name) else "yes",
        }
        for name, place in stored_names().items()
    ]
    out.table(_COLUMNS, rows, empty="No key is stored; `interlingua keys set NAME` stores one.")


@command.command("remove")
@click.argument("provider")
@with_output
def remove(out: Output, provider: str) -> None:
    r"""
    Remove the stored key of PROVIDER.

    \b
    interlingua keys remove anthropic
    """
    variable = _variable(provider)
    if not remove_key(variable):
        raise click.UsageError(f"No key is stored for {variable}.")
    if out.json:
        out.data({"variable": variable, "removed": True})
    else:
        out.note(f"Removed {variable}.")


def _read_line() -> str:
    try:
        return sys.stdin.readline()
    except UnicodeDecodeError:
        return ""


def _variable(provider: str) -> str:
    """The variable that a provider's key stands for; it may be named itself."""
    from interlingua.providers.rows import find_provider, providers

    for row in providers().values():
        if provider in row.key_env:
            return provider
    if re.fullmatch("[A-Z][A-Z0-9_]+", provider):  # for --key, or `api_key_env` of a file
        return provider
    row = find_provider(provider)
    if not row.key_env:
        raise click.UsageError(f"{row.name} has no key.")
    return row.key_env[0]
