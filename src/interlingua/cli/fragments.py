"""`interlingua fragments`: texts before prompts, by name or by the hash of their content."""

from __future__ import annotations

import re
from pathlib import Path

import click

from interlingua.cli.calls_log import find_fragments
from interlingua.cli.output import Column, Output, read_text, shown, with_output
from interlingua.cli.prompts import is_hash, read_fragment
from interlingua.runtime.files import config_folder, write_private

_COLUMNS = (
    Column("name", "name"),
    Column("hash", "hash"),
    Column("characters", "characters", right=True, rank=2),
    Column("calls", "calls", right=True, rank=1),
    Column("source", "from", wraps=True),
)
_LENGTH = 12  # characters of a hash in the list
_is_name = re.compile(r"\w[\w.-]*").fullmatch


@click.group("fragments")
def command() -> None:
    r"""
    List, name, show and remove texts that `-f` puts before a prompt.

    The log has each text once, by the hash of its content. `set` gives a text a name.

    \b
    interlingua fragments set style STYLE.md
    interlingua ask -f style "Is this text in style?"
    """


@command.command("list")
@click.option("-n", "--number", default=50, type=click.IntRange(min=1), help="How many (50).")
@with_output
def list_fragments(out: Output, number: int) -> None:
    r"""
    List the texts that have a name, then those of the log, the last used first.

    \b
    interlingua fragments list
    """
    rows: list[dict[str, object]] = [
        {
            "name": path.stem,
            "hash": "",
            "characters": len(read_text(path, "fragments").rstrip("\n")),
            "calls": None,
            "source": str(path),
        }
        for path in sorted(_folder().glob("*.txt"))
    ]
    for each in find_fragments(limit=number):
        row = {**each, "name": "", "characters": len(each["content"])}
        del row["content"]
        rows.append(row if out.json else {**row, "hash": each["hash"][:_LENGTH]})
    out.table(_COLUMNS, rows, empty="There is no fragment; `-f FILE` of `ask` uses one.")


@command.command("set")
@click.argument("name")
@click.argument("source", metavar="FILE|URL|-")
@with_output
def set_fragment(out: Output, name: str, source: str) -> None:
    r"""
    Keep the text of a file, of a web page or of stdin (-) as NAME.

    \b
    interlingua fragments set style STYLE.md
    """
    if not _is_name(name):
        raise click.UsageError("The name has only letters, digits, _, - and dots.")
    text = read_fragment(source)
    write_private(_path(name), text + "\n")
    if out.json:
        out.data({"name": name, "characters": len(text), "path": str(_path(name))})
    else:
        out.note(f"{name} is now a text of {len(text):,} characters; `-f {name}` uses it.")


@command.command("show")
@click.argument("name", metavar="NAME|HASH")
@with_output
def show(out: Output, name: str) -> None:
    r"""
    Print the text with this name, or with this hash or its beginning.

    \b
    interlingua fragments show style
    """
    text = find_fragment(name)
    if text is None:
        raise click.UsageError(
            f"There is no fragment {name!r}; `interlingua fragments list` lists them."
        )
    out.data({"name": name, "text": text}) if out.json else out.line(shown(text))


@command.command("remove")
@click.argument("name")
@with_output
def remove(out: Output, name: str) -> None:
    r"""
    Remove the text NAME; calls of the log keep theirs.

    \b
    interlingua fragments remove style
    """
    if not _is_name(name) or not _path(name).is_file():
        raise click.UsageError(
            f"There is no fragment {name!r}; `interlingua fragments list` lists them."
        )
    _path(name).unlink()
    out.data({"name": name, "removed": True}) if out.json else out.note(f"Removed {name}.")


def find_fragment(name: str) -> str | None:
    """The text with this name, or the one of the log with this hash or its beginning."""
    if _is_name(name) and _path(name).is_file():
        return read_text(_path(name), "-f").rstrip("\n")
    found = find_fragments("hash GLOB ?", (f"{name}*",), 2) if is_hash(name) else []
    return str(found[0]["content"]) if len(found) == 1 else None


def _folder() -> Path:
    return config_folder() / "fragments"


def _path(name: str) -> Path:
    return _folder() / f"{name}.txt"
