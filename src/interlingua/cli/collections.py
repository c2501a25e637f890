"""`interlingua collections`: the collections of vectors that `embed-many` makes."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from interlingua.cli.output import BadInput, Column, Output, is_terminal, with_output
from interlingua.runtime.files import data_folder, private_folder

if TYPE_CHECKING:
    from interlingua.api.modalities.collections import Collections

_COLUMNS = (
    Column("name", "collection", wraps=True),
    Column("entries", "entries", right=True),
    Column("dimensions", "numbers", right=True, rank=2),
    Column("model", "model", rank=1),
    Column("time", "changed", rank=3),
)
_FLAGS = {"model": "-m: ", "dimensions": "-d: ", "query": "--vector: ", "name": "", "entry": ""}
"""The options that set what an error of the library is about; arguments need no name."""

database_option = click.option(
    "--database", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
    help="The file with the collections, if not your own one.",
)  # fmt: skip
"""The option that names another file with collections."""


def collections_path() -> Path:
    """Where the collections are."""
    return data_folder() / "collections.db"


@contextmanager
def open_collections(path: Path | None, *, may_be_new: bool = False) -> Iterator[Collections]:
    """The collections, closed at the end; what is wrong with the input is said in options."""
    from interlingua.api.modalities.collections import Collections
    from interlingua.errors import ConfigurationError
    from interlingua.sync.loop_thread import background

    if not may_be_new and not (path or collections_path()).exists():
        where = "There is no collection yet" if path is None else f"--database: there is no {path}"
        raise BadInput(f"{where}; `interlingua embed-many` makes one.")
    if path is None:
        path = private_folder(data_folder()) / collections_path().name
    found = Collections(path)
    try:
        yield found
    except ConfigurationError as error:
        flag = _FLAGS.get(error.setting or "")
        if flag is None or error.error_code == "not_configured":
            raise
        raise BadInput(f"{flag}{error}") from error
    finally:
        background.run(found.close())


@click.group("collections", invoke_without_command=True)
@with_output
def command(out: Output) -> None:
    r"""
    List and delete collections of vectors; `embed-many` makes them, `similar` searches in them.

    \b
    interlingua collections
    interlingua collections delete notes
    """
    if click.get_current_context().invoked_subcommand is None:
        _list(out, None)


@command.command("list")
@database_option
@with_output
def list_collections(out: Output, database: Path | None) -> None:
    r"""
    List the collections: how many entries each has, of which model.

    \b
    interlingua collections list
    """
    _list(out, database)


def _list(out: Output, database: Path | None) -> None:
    from msgspec.structs import asdict

    from interlingua.sync.loop_thread import background

    rows = []
    if database is not None or collections_path().exists():
        with open_collections(database) as collections:
            rows = [asdict(each) for each in background.run(collections.list())]
    for row in rows:
        moment = datetime.fromtimestamp(row["updated"]).astimezone()
        row["time"] = moment.strftime("%Y-%m-%d %H:%M")
    out.table(_COLUMNS, rows, empty="There is no collection; `interlingua embed-many` makes one.")


@command.command("delete")
@click.argument("name", metavar="COLLECTION")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@database_option
@with_output
def delete(out: Output, name: str, *, yes: bool, database: Path | None) -> None:
    r"""
    Delete COLLECTION with its vectors, after you said yes.

    \b
    interlingua collections delete notes --yes
    """
    from interlingua.sync.loop_thread import background

    with open_collections(database) as collections:
        background.run(collections.check(name))
        if not yes:
            if not is_terminal(sys.stdin):
                raise click.UsageError("Nothing was deleted: add --yes to delete it.")
            click.confirm(f"Delete the collection {name}?", abort=True, err=True)
        count = background.run(collections.delete(name))
    if out.json:
        out.data({"collection": name, "entries": count})
    else:
        out.note(f"Deleted {name} with {count:,} {'entry' if count == 1 else 'entries'}.")


@command.command("path")
@with_output
def path(out: Output) -> None:
    r"""
    Print the path of the file with the collections.

    \b
    sqlite3 "$(interlingua collections path)" 'SELECT name, model FROM collections'
    """
    where = str(collections_path())
    out.data({"path": where}) if out.json else out.line(where)
