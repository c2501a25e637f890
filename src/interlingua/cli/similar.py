"""`interlingua similar`: the entries of a collection that are most similar to something."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from interlingua.cli.collections import database_option, open_collections
from interlingua.cli.output import (
    FAILED,
    BadInput,
    Column,
    Output,
    is_terminal,
    read_text,
    with_output,
)
from interlingua.cli.prompts import read_stdin
from interlingua.cli.tables import one_line, shorten

if TYPE_CHECKING:
    from collections.abc import Sequence

    from interlingua.api.modalities.collections import Match

_COLUMNS = (
    Column("score", "score", right=True, form="{:.3f}".format),
    Column("id", "id", wraps=True),
    Column("text", "text", wraps=True, rank=1),
)
_LONGEST = 200  # columns of a text in a table; --plain and --json have the whole text


@click.command("similar")
@click.argument("name", metavar="COLLECTION")
@click.argument("entry", metavar="[ID]", required=False)
@click.option("-c", "--content", metavar="TEXT", help="Compare with this text.")
@click.option("-i", "--input", "file", metavar="FILE|-", help="Compare with the text of a file.")
@click.option("--vector", metavar="JSON", help="Compare with a vector, such as `embed` prints.")
@click.option("-n", "--number", default=10, type=click.IntRange(min=1), help="How many (10).")
@click.option("--prefix", default="", help="Only entries whose ids begin so.")
@click.option("-p", "--plain", is_flag=True, help="Print the ids with their texts, no table.")
@database_option
@with_output
def command(out: Output, name: str, entry: str | None, **options: Any) -> int:
    r"""
    List the entries of COLLECTION that are most similar to a text, a vector or the entry ID.

    The score is the cosine of the angle between the vectors: 1 for the same direction. Texts are
    printed if `embed-many --store` has stored them; on a terminal their beginnings. What is piped
    in is the text, if nothing else is named. The exit code is 1 if nothing is found.

    \b
    interlingua similar notes -c "Who repairs bicycles?"
    interlingua similar notes note-17 -n 3
    """
    found = _search(name, entry, **options)
    rows = [{"score": each.score, "id": each.id, "text": each.text} for each in found]
    if options["plain"] and not out.json:
        for each in found:
            out.line(f"{each.id} ({each.score:.3f})")
            if each.text:
                out.line(f"\n{each.text}\n")
    else:
        columns = _COLUMNS if any(each.text for each in found) else _COLUMNS[:2]
        empty = "No entry has such an id." if options["prefix"] else "The collection is empty."
        if is_terminal(sys.stdout) and not out.json:
            for row in rows:
                row["text"] = shorten(one_line(str(row["text"] or "")), _LONGEST)
        out.table(columns, rows, empty=empty)
    return 0 if found else FAILED


def _search(name: str, entry: str | None, **options: Any) -> Sequence[Match]:
    from interlingua.cli.clients import open_client
    from interlingua.sync.loop_thread import background

    limits = {"top_n": options["number"], "prefix": options["prefix"]}
    query = _query(entry, **options)
    with open_collections(options["database"]) as collections:
        if entry is not None:
            return background.run(collections.similar_to(name, entry, **limits))
        if not isinstance(query, str):
            return background.run(collections.similar(name, query, **limits))
        with open_client() as client:
            call = collections.similar(name, query, client=client.asynchronous, **limits)
            return background.run(call)


def _query(
    entry: str | None, *, content: str | None, file: str | None, vector: str | None, **_: Any
) -> str | list[float]:
    """What the entries are compared with: a text or a vector; nothing if it is an entry."""
    given = [each for each in (entry, content, file, vector) if each is not None]
    if len(given) > 1:
        raise click.UsageError("Name one of ID, -c, -i and --vector.")
    if entry is not None:
        return ""
    if vector is not None:
        return _read_vector(vector)
    if content is None and file is None and is_terminal(sys.stdin):
        raise click.UsageError("Name what to compare with: ID, -c TEXT, -i FILE or --vector.")
    if content is None:
        content = read_text(Path(file), "-i") if file not in (None, "-") else read_stdin()
    if not content.strip():
        raise BadInput("The text to compare with is empty.")
    return content


def _read_vector(text: str) -> list[float]:
    try:
        numbers = [float(number) for number in json.loads(text)]
    except (ValueError, TypeError, RecursionError, OverflowError):
        numbers = []
    if not numbers or not all(map(math.isfinite, numbers)):
        raise click.BadParameter("it is no JSON array of numbers", param_hint="--vector")
    return numbers
