"""`interlingua chats`: the conversations of `ask` and `chat`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from interlingua.cli.conversation import find_session, open_store, rename_session
from interlingua.cli.files import check_writable, write_result
from interlingua.cli.output import (
    Column,
    Output,
    is_terminal,
    json_text,
    printable,
    shown,
    shown_json,
    terminal_width,
    with_output,
)
from interlingua.cli.tables import one_line, room_beside, shorten

if TYPE_CHECKING:
    from interlingua import Message

_COLUMNS = (
    Column("id", "id"),
    Column("time", "changed", rank=1),
    Column("model", "model", rank=2),
    Column("name", "name"),
)
_SHORT = 12  # columns that a name has at least
_ROLES = {"user": "User", "assistant": "Assistant", "system": "System", "tool": "Tool"}
_conversation = click.argument("conversation", metavar="NAME|ID")


@click.group("chats")
def command() -> None:
    r"""
    List, name, export and remove the conversations of `ask` and `chat`.

    `interlingua chat --resume NAME` goes on with one. A conversation without a name has the
    beginning of its first prompt.

    \b
    interlingua chat --name holidays
    interlingua chats export holidays -o holidays.md
    """


@command.command("list")
@click.option("-n", "--number", default=20, type=click.IntRange(min=1), help="How many (20).")
@with_output
def list_chats(out: Output, number: int) -> None:
    r"""
    List the conversations, the last changed first.

    \b
    interlingua chats list -n 5
    """
    from interlingua.sync.loop_thread import background

    rows: list[dict[str, Any]] = [
        {
            "id": info.session_id,
            "time": info.updated if out.json else _time(info.updated),
            "model": info.model,
            "turns": info.count,
            "name": info.title if out.json else printable(one_line(info.title or "")),
        }
        for info in background.run(open_store().list(number))
    ]
    if rows and not out.json:
        room = room_beside(_COLUMNS[:-1], rows, terminal_width(sys.stdout))
        for row in rows:
            row["name"] = shorten(row["name"], max(_SHORT, room))
        if is_terminal(sys.stdout):
            rows.reverse()  # the newest is next to where the user types
    out.table(_COLUMNS, rows, empty="There is no conversation; `interlingua chat` begins one.")


@command.command("rename")
@_conversation
@click.argument("name")
@with_output
def rename(out: Output, conversation: str, name: str) -> None:
    r"""
    Give a conversation another name.

    \b
    interlingua chats rename 01J9ZQ holidays
    """
    if not name.strip():
        raise click.UsageError("The name is empty.")
    store = open_store()
    session_id = find_session(store, conversation)
    rename_session(store, session_id, name)
    out.data({"id": session_id, "name": name}) if out.json else out.note(f"It is now “{name}”.")


@command.command("remove")
@_conversation
@with_output
def remove(out: Output, conversation: str) -> None:
    r"""
    Remove a conversation; the log of calls keeps its calls.

    \b
    interlingua chats remove holidays
    """
    from interlingua.sync.loop_thread import background

    store = open_store()
    session_id = find_session(store, conversation)
    background.run(store.delete(session_id))
    out.data({"id": session_id, "removed": True}) if out.json else out.note("Removed.")


@command.command("export")
@_conversation
@click.option(
    "--format", "form", type=click.Choice(["markdown", "json"]),
    help="By default JSON for --json and files named .json, else Markdown.",
)  # fmt: skip
@click.option(
    "-o", "--output", type=click.Path(dir_okay=False, path_type=Path),
    help="The file to write; stdout by default.",
)  # fmt: skip
@with_output
def export(out: Output, conversation: str, form: str | None, output: Path | None) -> None:
    r"""
    Print a conversation, or write it to a file, as Markdown or JSON.

    The JSON is that of /save in `chat`: `Session.load` and `interlingua doctor` read it.

    \b
    interlingua chats export holidays
    interlingua chats export holidays -o holidays.json
    """
    from interlingua.api.session.document import dump_session
    from interlingua.sync import Session

    store = open_store()
    session = Session.resume(find_session(store, conversation), store=store).asynchronous
    is_json = out.json or (output is not None and output.suffix == ".json")
    if form is not None:
        is_json = form == "json"
    if is_json:
        text = dump_session(session.saved()).decode() + "\n"
    else:
        text = "\n".join(_markdown(session.title or session.session_id, session.messages))
    if output is None:
        out.write(shown_json(text) if is_json else shown(text))
        return
    check_writable(output)
    write_result(output, text.encode())
    out.line(str(output))


def _markdown(title: str, messages: tuple[Message, ...]) -> Iterator[str]:
    """The lines of a conversation."""
    yield f"# {one_line(title)}\n"
    for message in messages:
        yield f"## {_ROLES.get(message.role, message.role)}\n"
        for part in message.content:
            yield f"{_part(part)}\n"


def _part(part: Any) -> str:
    """A part of a message as Markdown; what is not text is named."""
    from interlingua import Text, ToolCall, ToolResult

    if isinstance(part, Text):
        return part.text
    if isinstance(part, ToolCall | ToolResult):
        fence = "`" * 3
        text = json_text(part)
        while fence in text:
            fence += "`"
        return f"{fence}json\n{text}\n{fence}"
    return f"*[{type(part).__name__}]*"


def _time(at: float) -> str:
    return datetime.fromtimestamp(at).astimezone().strftime("%Y-%m-%d %H:%M")
