"""`interlingua keys`: keys for this command line."""

from __future__ import annotations

import os
import re
import sys

import click

from interlingua.cli.clients import remove_key, store_key, stored_keys, stored_names
from interlingua.cli.output import Column, Output, is_terminal, with_output

_COLUMNS = (
    Column("variable", "variable"),
    Column("place", "stored in"),
    Column("used", "used", wraps=True),
)
_ALIKE = 0.95  # how much of a known name a slip has: OPENAI_APIKEY


@click.group("keys")
def command() -> None:
    r"""
    Set, list and remove API keys for this command line.

    A key is stored in the keyring of the system if the package `keyring` is installed, else in a
    file that only you can read. Only `get` gives it out, and not to a terminal. A variable of the
    environment comes first, and programs that use the library do not see the stored keys. A key of
    a server of yours may have any name in capitals: `--key NAME` of `ask` and `chat` uses it.

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
    use = _use_of(variable)
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
        out.note(f"Stored in the {place} as {variable}, {use}.")


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


@command.command("get")
@click.argument("provider")
@with_output
def get(out: Output, provider: str) -> None:
    r"""
    Write the stored key of PROVIDER for another program; a terminal does not get it.

    \b
    export OPENAI_API_KEY="$(interlingua keys get openai)"
    """
    variable = _variable(provider)
    if is_terminal(sys.stdout):
        raise click.UsageError(
            f'A key is not shown on a terminal. Write {variable}="$(interlingua keys get …)".'
        )
    key = stored_keys().get(variable)
    if key is None:
        raise click.UsageError(f"No key is stored for {variable}.")
    out.data({"variable": variable, "key": key}) if out.json else out.line(key)


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


def _use_of(variable: str) -> str:
    """What a stored key is used for: the providers that read it, or those who name it."""
    from interlingua.providers.rows import providers

    owners = [row.name for row in providers().values() if variable in row.key_env]
    if owners:
        return f"for {', '.join(owners)}"
    return f"for `--key {variable}` and for `api_key_env: {variable}` of a file"


def _variable(provider: str) -> str:
    """The variable that a provider's key stands for; it may be named itself."""
    from difflib import get_close_matches

    from interlingua.providers.rows import find_provider, providers

    known = [name for row in providers().values() for name in row.key_env]
    if provider in known or provider in stored_names():
        return provider
    if re.fullmatch("[A-Z][A-Z0-9_]+", provider):  # for --key, or `api_key_env` of a file
        near = get_close_matches(provider, known, n=1, cutoff=_ALIKE)
        if near and not provider.startswith(near[0]):  # OPENAI_API_KEY_2 is another key
            raise click.UsageError(
                f"No provider reads {provider}. Did you mean {near[0]}? "
                f"{near[0]}_2 would be a key of its own, for --key."
            )
        return provider
    row = find_provider(provider)
    if not row.key_env:
        raise click.UsageError(f"{row.name} has no key.")
    return row.key_env[0]
