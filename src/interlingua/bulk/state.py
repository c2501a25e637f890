"""What is known about a job from its folder: its state, its rows, and its output again."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
from msgspec.structs import replace

from interlingua.bulk.ledger.contract import Ledger
from interlingua.bulk.ledger.open import open_ledger
from interlingua.bulk.loop import (
    MEMORY,
    Memory,
    answer_in,
    export_rows,
    joined,
    survey_index,
    survey_rows,
)
from interlingua.bulk.place import Place
from interlingua.bulk.reading import Source, open_source
from interlingua.bulk.report import Report, Sample
from interlingua.bulk.rows import RowIndex
from interlingua.bulk.writing import Columns, check_format
from interlingua.spec.errors import ConfigurationError

_CHUNK = 500


class _State:
    """A job that is looked at."""

    def __init__(self, place: Place, index: RowIndex, ledger: Ledger, memory: Memory) -> None:
        self.place = place
        self.index = index
        self.ledger = ledger
        self.memory = memory

    def source(self) -> Source:
        """The rows of the input; raises if a program gave them, and they are not in a file."""
        memory = self.memory
        if memory.rows is None:
            raise ConfigurationError(
                "The rows of this job were given by a program. Run it again to write them."
            )
        return open_source(
            memory.rows,
            spool=self.place.spool,
            id_column=memory.id_column,
            samples=memory.samples,
            limit=memory.limit,
        )


@asynccontextmanager
async def _opened(output: str | os.PathLike[str]) -> AsyncIterator[_State]:
    place = Place(output)
    place.check_exists()
    index = RowIndex(place.index)
    try:
        memory = msgspec.json.decode(index.load(MEMORY) or b"{}", type=Memory)
        ledger = open_ledger(memory.ledger or str(place.ledger), volatile=True)
        try:
            yield _State(place, index, ledger, memory)
        finally:
            await ledger.close()
    finally:
        index.close()


async def status(output: str | os.PathLike[str]) -> Report:
    """
    Report how far a job is, also while it runs, by its output.

        report = await status("genres.jsonl")
        print(report.done, report.pending, report.cost)

    `output` names the job.
    """
    async with _opened(output) as state:
        if state.memory.rows is None:
            survey = await survey_index(state.index, state.ledger)
        else:
            survey = await survey_rows(state.source(), state.index, state.ledger)
        totals = await state.ledger.totals()
        report = survey.report(output=str(state.place.output), cost=totals.cost)
        return replace(report, is_written=state.place.output.exists())


async def export(output: str | os.PathLike[str], target: str | os.PathLike[str]) -> int:
    """
    Write the rows of a job with their answers to another file; returns how many there are.

        await export("genres.jsonl", "genres.csv")

    `output` names the job. `target` is a JSONL, CSV or Parquet file. Rows without an answer are
    there too, as `pending`.
    """
    path = Path(target)
    check_format(path)
    async with _opened(output) as state:
        source = state.source()
        columns = _columns(state.memory, source)
        await asyncio.to_thread(_read_columns, source, columns)
        survey = await export_rows(source, state.index, state.ledger, columns, path)
    return survey.rows


def _columns(memory: Memory, source: Source) -> Columns:
    return Columns(memory.prefix, has_vectors=memory.has_vectors, types=source.types)


def _read_columns(source: Source, columns: Columns) -> None:
    for row in source:
        columns.add(row.data)


def read_rows(
    output: str | os.PathLike[str], *, failed: bool = False, limit: int | None = None
) -> AsyncIterator[Sample]:
    """
    Yield the rows of a job with what became of them, in the order of the input.

        async for row in read_rows("genres.jsonl", failed=True):
            print(row.key, row.answer.error)

    `output` names the job. `failed`: only those that have failed. `limit`: at most so many.
    """
    return _read_rows(output, failed=failed, limit=limit)


async def _read_rows(
    output: str | os.PathLike[str], *, failed: bool, limit: int | None
) -> AsyncIterator[Sample]:
    count = 0
    async with _opened(output) as state:
        async for chunk in joined(state.source(), state.index, state.ledger, _CHUNK):
            for row, indexed, entry in chunk:
                answer = answer_in(indexed, entry)
                if failed and answer.status != "failed":
                    continue
                if limit is not None and count >= limit:
                    return
                count += 1
                yield Sample(key=row.key, row=row.data, answer=answer)
