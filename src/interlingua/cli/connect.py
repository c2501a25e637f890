"""`interlingua connect`: tells a program to use the gateway."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from interlingua.cli.output import Output, is_terminal, printable, with_output
from interlingua.runtime.files import data_folder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from interlingua.gateway.connect import Link, Probe, Program
    from interlingua.gateway.connected_files import Change, ConnectedFiles

_URL = "http://127.0.0.1:4000"
_NAMES = ("claude", "codex", "gemini", "opencode", "qwen", "pi", "llm", "aider", "openai", "vercel")


@click.command("connect")
@click.argument("program", type=click.Choice(_NAMES))
@click.option("-m", "--model", help="The model, as the gateway names it.")
@click.option("--url", default=_URL, show_default=True, help="The address of the gateway.")
@click.option("--key", help="The key of the gateway; else INTERLINGUA_GATEWAY_KEY, or it is asked.")
@click.option("--print", "only_print", is_flag=True, help="Show the changes and write nothing.")
@click.option("-y", "--yes", is_flag=True, help="Write without asking.")
@click.option("--undo", is_flag=True, help="Put back the files as they were before.")
@with_output
def command(
    out: Output,
    *,
    program: str,
    model: str | None,
    url: str,
    key: str | None,
    only_print: bool,
    yes: bool,
    undo: bool,
) -> None:
    r"""
    Tell PROGRAM to use the gateway, and try it with one small request.

    The files of the program are changed, after the changes were shown; what else is in them stays.
    Programs that read only variables get lines to copy.

    \b
    interlingua connect claude --model gemini:gemini-2.5-pro
    interlingua connect claude --undo
    """
    from interlingua.gateway.connect import PROGRAMS, find_link, probe
    from interlingua.gateway.connected_files import ConnectedFiles

    files = ConnectedFiles(data_folder() / "connect.json")
    chosen = PROGRAMS[program]
    if undo:
        _undo(out, files, program, yes=yes)
        return
    url = url.rstrip("/").removesuffix("/v1")
    link = asyncio.run(find_link(chosen, url, key or _key(), model))
    answer = asyncio.run(probe(chosen, link))
    if chosen.edits is None:
        _print(out, chosen, link, answer)
        return
    changes = _plan(chosen, link)
    needed = [change for change in changes if change.is_needed]
    _tell_answer(out, answer)
    if not out.json:
        _show(out, needed, link.key)
    is_written = not only_print and _may_write(needed, yes=yes)
    if is_written:
        files.write(program, changes)
    if out.json:
        out.data(
            {
                "program": program,
                "url": link.url,
                "model": link.model,
                **answer._asdict(),
                "files": [str(change.path) for change in needed],
                "written": is_written,
            }
        )
    elif is_written or not needed:
        done = "is connected" if needed else "was connected before; nothing has changed"
        out.note(f"{chosen.title} {done}. Start it with `{chosen.start}`.")
        out.note(f"`interlingua connect {program} --undo` puts everything back.")


def _key() -> str:
    """The key of the gateway, from the environment or the keyboard."""
    from interlingua.gateway.connect import KEY_VARIABLE

    key = os.environ.get(KEY_VARIABLE, "")
    if not key:
        if not is_terminal(sys.stdin):
            raise click.UsageError(
                f"The key of the gateway is missing. Set {KEY_VARIABLE}, or use --key."
            )
        key = click.prompt("Key of the gateway", hide_input=True, err=True)
    key = key.strip()
    if not key or not key.isascii() or not key.isprintable() or " " in key:
        raise click.UsageError("That is not a key. Nothing was written.")
    return key


def _plan(program: Program, link: Link) -> list[Change]:
    from interlingua.gateway.connect import Places
    from interlingua.gateway.connected_files import plan

    if program.edits is None:
        return []
    return plan(program.edits(link, Places(Path.home(), os.environ)))


def _print(out: Output, program: Program, link: Link, answer: Probe) -> None:
    """What a program without files is told."""
    text = "" if program.text is None else program.text(link)
    if out.json:
        out.data({"url": link.url, "model": link.model, **answer._asdict(), "text": text})
        return
    _tell_answer(out, answer)
    out.line(text)


def _tell_answer(out: Output, answer: Probe) -> None:
    from interlingua.spec.warning_table import WARNINGS

    if out.json:
        return
    out.note(f"{answer.provider}:{answer.model} answers.")
    if not answer.warnings:
        out.note("Nothing was lost on the way.")
    for code in answer.warnings:
        row = WARNINGS.get(code)
        out.note(f"Lost or changed on the way: {code}{'' if row is None else f' ({row.cause})'}")


def _show(out: Output, changes: Sequence[Change], key: str = "") -> None:
    """The differences, with the key cut short."""
    from difflib import unified_diff

    from interlingua.gateway.connect import mask

    for change in changes:
        before, after = mask(change.before or "", key), mask(change.after or "", key)
        names = (
            os.devnull if change.before is None else str(change.path),
            os.devnull if change.after is None else str(change.path),
        )
        lines = unified_diff(before.splitlines(), after.splitlines(), *names, lineterm="", n=1)
        for line in lines:
            out.line(printable(line))


def _may_write(changes: Sequence[Change], *, yes: bool) -> bool:
    """Whether the files are changed: the user is asked, unless the answer was given."""
    if not changes or yes:
        return bool(changes)
    if not is_terminal(sys.stdin):
        raise click.UsageError("Nothing was written: add --yes to write it.")
    return click.confirm("Write this?", err=True)


def _undo(out: Output, files: ConnectedFiles, program: str, *, yes: bool) -> None:
    changes, is_same = files.undo(program)
    if not changes:
        raise click.UsageError(f"Nothing was written for {program}.")
    if not is_same and not out.json:
        out.note("The files have changed since. These changes of them would be lost:")
        _show(out, changes)
    if not is_same and not _may_write(changes, yes=yes):
        return
    files.restore(program, changes)
    if out.json:
        out.data({"program": program, "files": [str(change.path) for change in changes]})
        return
    for change in changes:
        what = "was removed" if change.after is None else "is as it was before"
        out.note(f"{change.path} {what}.")
