"""`interlingua embed-many`: the vectors of many texts, in a collection."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from interlingua.cli.collections import database_option, open_collections
from interlingua.cli.configuration import read_settings
from interlingua.cli.output import FAILED, BadInput, Output, dollars, read_text, with_output
from interlingua.cli.prompts import read_stdin

if TYPE_CHECKING:
    from interlingua.api.modalities.collections import Addition, Entry
    from interlingua.bulk.reading import Row

_FORMATS = ("jsonl", "json", "csv", "tsv", "lines")
_FEW = 3  # entries that are named


@click.command("embed-many")
@click.argument("name", metavar="COLLECTION")
@click.argument("file", metavar="[FILE|FOLDER|-]", required=False)
@click.option(
    "--files", nargs=2, multiple=True, metavar="FOLDER PATTERN",
    help="Embed each text file of a folder: --files docs '**/*.md'. Repeatable.",
)  # fmt: skip
@click.option(
    "-m",
    "--model",
    help="The model, for a new collection; it is remembered. `default --embedding` sets one.",
)
@click.option("-d", "--dimensions", type=click.IntRange(min=1), help="The length of each vector.")
@click.option("--id", "id_column", metavar="COLUMN", help="The column with the ids.")
@click.option("--column", "columns", multiple=True, help="A column with text. Repeatable.")
@click.option("--format", "form", type=click.Choice(_FORMATS), help="What FILE is, or stdin.")
@click.option("--prefix", default="", help="What is put before each id.")
@click.option("--prepend", default="", help="What is put before each text.")
@click.option("--store", is_flag=True, help="Store the texts too, so that `similar` prints them.")
@click.option(
    "--batch-size", type=click.IntRange(1, 10_000), default=100, show_default=True,
    help="Entries that are embedded and stored at a time.",
)  # fmt: skip
@database_option
@with_output
def command(out: Output, name: str, file: str | None, **options: Any) -> int:
    r"""
    Embed many texts and store their vectors in COLLECTION, for `interlingua similar`.

    FILE is JSON lines, JSON, CSV, TSV or Parquet, FOLDER has such files or texts, and `-` is stdin.
    The column `id`, else the first one, has the ids; the others are the text. A text that was
    embedded before is not embedded again. The exit code is 1 if a row could not be read.

    \b
    interlingua embed-many notes notes.csv -m openai:text-embedding-3-small --store
    interlingua embed-many docs --files docs '**/*.md' -m openai:text-embedding-3-small
    """
    if (file is None) == (not options["files"]):
        raise click.UsageError("Name a file, a folder, `-` or --files; one of them.")
    with tempfile.TemporaryDirectory() as folder:
        rows = _Rows(file, Path(folder), **options)
        count = sum(1 for _ in rows)
        for problem in rows.problems[:_FEW]:
            out.warn(problem)
        if len(rows.problems) > _FEW:
            out.warn(f"{len(rows.problems) - _FEW:,} more rows cannot be read or have no text.")
        if not count:
            raise BadInput(f"{file or '--files'}: there is no text to embed")
        addition = _add(out, name, rows, count, **options)
    _report(out, name, addition)
    return FAILED if rows.problems else 0


def _add(out: Output, name: str, rows: Iterable[Entry], count: int, **options: Any) -> Addition:
    from interlingua.cli.clients import open_client
    from interlingua.sync.loop_thread import background

    with (
        open_client() as client,
        open_collections(options["database"], may_be_new=True) as collections,
        out.progress("Embedding", count) as progress,
    ):
        known = {each.name for each in background.run(collections.list())}
        default = None if name in known else read_settings().default_embedding_model
        return background.run(
            collections.add(
                name,
                rows,
                model=options["model"] or default,
                dimensions=options["dimensions"],
                stores_texts=options["store"],
                batch=options["batch_size"],
                client=client.asynchronous,
                on_progress=progress,
            )
        )


def _report(out: Output, name: str, addition: Addition) -> None:
    from interlingua.cli.conversation import show_warnings

    show_warnings(out, addition.warnings)
    if out.json:
        facts = ("embedded", "unchanged", "input_tokens", "cost")
        out.data({"collection": name, **{fact: getattr(addition, fact) for fact in facts}})
        return
    cost = "cost unknown" if addition.cost is None else dollars(addition.cost)
    out.note(
        f"{name}: {addition.embedded:,} embedded, {addition.unchanged:,} unchanged · "
        f"{addition.input_tokens:,} tokens · {cost}"
    )


class _Rows:
    """The entries of the input, which can be read several times, and what is wrong with others."""

    def __init__(self, file: str | None, scratch: Path, **options: Any) -> None:
        self._rows = _open(file, scratch, options["form"]) if file else None
        self._files = options["files"]
        self._options = options
        self.problems: list[str] = []

    def __iter__(self) -> Iterator[Entry]:
        from interlingua.api.modalities.collections import Entry
        from interlingua.api.session.session_id import storable

        self.problems = []
        pairs = self._of_files() if self._rows is None else map(self._of_row, self._rows)
        for key, text in pairs:
            if text is not None and text.strip():
                options = self._options
                yield Entry(
                    storable(f"{options['prefix']}{key}"), storable(f"{options['prepend']}{text}")
                )
            elif text is not None:
                self.problems.append(f"{key} has no text.")

    def _of_row(self, row: Row) -> tuple[str, str | None]:
        if row.problem:
            self.problems.append(f"{row.key}: {row.problem}")
            return row.key, None
        data = row.data
        first = "id" if "id" in data else next(iter(data), "")
        id_column = self._options["id_column"] or first
        columns = self._options["columns"] or [each for each in data if each != id_column]
        for column in (id_column, *columns):
            if column not in data:
                raise BadInput(f"{row.key} has no column {column!r}; it has {', '.join(data)}")
        text = " ".join(str(data[each]) for each in columns if data[each] is not None)
        return str(data[id_column]), text

    def _of_files(self) -> Iterator[tuple[str, str | None]]:
        for folder, pattern in self._files:
            place = Path(folder)
            if not place.is_dir():
                raise BadInput(f"--files: there is no folder {folder}")
            try:
                paths = sorted(path for path in place.glob(pattern) if path.is_file())
            except (ValueError, NotImplementedError) as error:
                raise BadInput(f"--files: {pattern!r} is not a pattern: {error}") from None
            for path in paths:
                name = path.relative_to(place).as_posix()
                try:
                    yield name, read_text(path, "--files")
                except BadInput as error:
                    self.problems.append(error.message)


def _open(file: str, scratch: Path, form: str | None) -> Iterable[Row]:
    """The rows of a file, a folder or stdin."""
    from interlingua.bulk.reading import open_source
    from interlingua.errors import ConfigurationError

    path = Path(file)
    form = form or ("json" if path.suffix.lower() == ".json" else None)
    given: str | Path | list[Mapping[str, Any]] = path
    if file == "-" or form is not None:
        text = read_stdin() if file == "-" else read_text(path, "FILE")
        given = _write(text, form or "jsonl", scratch, file)
    try:
        return open_source(given, spool=scratch / "rows.jsonl")
    except (ConfigurationError, OSError) as error:
        raise BadInput(str(error).replace(str(scratch / "stdin"), "stdin")) from None


def _write(text: str, form: str, scratch: Path, file: str) -> Path | list[Mapping[str, Any]]:
    """The text as rows, or as a file whose name says what it is."""
    if form == "lines":
        return [{"id": str(i), "text": line} for i, line in enumerate(text.splitlines(), 1)]
    if form == "json":
        try:
            rows = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise BadInput(f"{file} is not JSON: {error}") from None
        if not isinstance(rows, list):
            raise BadInput(f"{file} is not a JSON array; its entries are objects with an id")
        return rows
    path = scratch / f"stdin.{form}"
    path.write_text(text, encoding="utf-8")
    return path
