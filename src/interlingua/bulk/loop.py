"""
`bulk.run`: a job from its input to its output.

A run has three passes over the input, each with one row in memory at a time. The first makes the
index: it checks every row before anything is sent. The second sends what the ledger does not have.
The third writes the rows with their answers, in the order of the input.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, Unpack
from uuid import uuid4

import msgspec
from msgspec.structs import replace

from interlingua.api.run.clients import find_client
from interlingua.bulk.answers import Answer, refused, result_columns
from interlingua.bulk.job import Job
from interlingua.bulk.ledger.contract import Entry, Ledger
from interlingua.bulk.ledger.open import open_ledger
from interlingua.bulk.live import Executor, LiveExecutor
from interlingua.bulk.options import BulkOptions, Progress, RunSettings, read_options
from interlingua.bulk.parts import PartWriter
from interlingua.bulk.place import Place
from interlingua.bulk.reading import Input, Row, Source, open_source
from interlingua.bulk.report import Report, Survey
from interlingua.bulk.rows import Changes, IndexedRow, RowIndex
from interlingua.bulk.template import RowProblem, check_columns
from interlingua.bulk.worker import Worker, WorkerConfig, recorded
from interlingua.bulk.writing import Columns, OutputFile
from interlingua.client.client import Client
from interlingua.spec.content import Record
from interlingua.spec.errors import ConfigurationError, StoreError

if TYPE_CHECKING:
    from interlingua.bulk.engines.executor import Engine

_LOOK = 64
"""How many rows are looked up in the ledger at once while they are sent."""
_WRITE = 500
"""How many rows are written at once."""
_SALT = "salt"
MEMORY = "run"
"""The setting of the index in which the last run is remembered."""


class Memory(Record, frozen=True, kw_only=True):
    """How the rows and answers of a job are found again."""

    rows: str | None = None
    """The file or folder of the input; None if it was given by a program."""
    id_column: str | None = None
    samples: int = 1
    limit: int | None = None
    prefix: str = ""
    has_vectors: bool = False
    ledger: str | None = None
    attempts: int = 3


async def run(
    rows: Input,
    output: str | os.PathLike[str],
    *,
    model: str,
    prompt: str,
    **options: Unpack[BulkOptions],
) -> Report:
    """
    Ask a model about each row of a table; each row is paid for once.

        report = await run(
            "books.csv", "genres.jsonl", model="openai:gpt-5.2", prompt="Genre of {title}?"
        )

    `rows` is a JSONL, CSV or Parquet file, a folder, `-` for stdin, or an iterable of dicts.
    `output` is a JSONL, CSV or Parquet file, with the columns of the input and of the results.
    `prompt` names columns in braces. The same call goes on after a crash: answers are in a ledger
    beside the output, and are never paid for again.
    """
    return await BulkRun(rows, output, model=model, prompt=prompt, **options).run()


class BulkRun:
    """One run of a job; `bulk.run` makes one."""

    def __init__(
        self,
        rows: Input,
        output: str | os.PathLike[str],
        *,
        model: str,
        prompt: str,
        **options: Unpack[BulkOptions],
    ) -> None:
        self._job, self._settings = read_options(model, prompt, options)
        self._given = rows
        self._place = Place(output)
        self._place.check_input(rows)
        self._client = options.get("client")
        self._on_progress: Callable[[Progress], object] | None = options.get("on_progress")
        self._executor: Executor | None = None
        self._engine: Engine | None = None
        self._tally = Tally()
        self._embeds = False
        self._is_fresh = False  # the ledger had no answers when this run began

    def ask_for_vectors(self, options: Mapping[str, Any]) -> None:
        """Ask for the vectors of the prompts instead of answers; with options of `embed`."""
        if self._settings.has_engine:
            raise ConfigurationError(
                "`bulk.embed` has no engines: leave `executor` out.", setting="executor"
            )
        self._embeds = True
        self._job = replace(self._job, options={**self._job.options, **options, "embed": True})

    def stop(self, reason: str) -> None:
        """Take no more rows; those under way are answered and recorded."""
        self._tally.stopped = self._tally.stopped or reason
        if self._executor is not None:
            self._executor.stop(reason)

    async def run(self, confirm: Callable[[Plan], bool] | None = None) -> Report:
        """
        Do all of it, and return the report.

        `confirm` is called after all rows were checked, and before the first is sent; if it
        returns False, nothing is sent.
        """
        begun = time.monotonic()
        if self._settings.has_engine:
            from interlingua.bulk.engines.executor import find_engine

            settings = self._settings  # in a thread: engines are imported for seconds
            self._engine = await asyncio.to_thread(find_engine, settings.executor, settings.ledger)
        with self._place:
            index = RowIndex(self._place.index)
            try:
                report = await self._run(index, confirm)
            finally:
                index.close()
        return replace(report, seconds=round(time.monotonic() - begun, 3))

    async def _run(self, index: RowIndex, confirm: Callable[[Plan], bool] | None) -> Report:
        settings = self._settings
        source = open_source(
            self._given,
            spool=self._place.spool,
            id_column=settings.id_column,
            samples=settings.samples,
            limit=settings.limit,
        )
        job = self._with_salt(index)
        self._remember(index)
        ledger = open_ledger(
            settings.ledger or str(self._place.ledger),
            lease=settings.lease,
            volatile=settings.volatile,
        )
        client = find_client(self._client)
        worker = Worker(self._config(job), client=client, ledger=ledger)
        try:
            ready = await worker.ready()
            columns = Columns(settings.prefix, has_vectors=self._embeds, types=source.types)
            plan = Planner(job, source, index, columns, ready.digest)
            changes = await asyncio.to_thread(plan.fill)
            self._check_parts(changes)
            before = await ledger.totals()
            self._tally.cost = before.cost
            self._is_fresh = not (before.done or before.failed)
            survey = await survey_index(index, None if self._is_fresh else ledger)
            self._tally.begin(survey)
            whole = Plan(job, client, source, settings, changes, survey)
            if confirm is None or confirm(whole):
                await self._send(worker, source, index, ledger, columns)
            else:
                self._tally.stopped = "not confirmed"
            report = await self._write(source, index, ledger, columns)
            cost = (await ledger.totals()).cost
        finally:
            await worker.close()
        return replace(report, changed=changes.changed, cost=cost, stopped=self._tally.stopped)

    def _with_salt(self, index: RowIndex) -> Job:
        """The job; one whose equal rows are sent again has a salt of its own, which stays."""
        if self._settings.dedupe and self._settings.samples == 1:
            return self._job
        salt = index.load(_SALT)
        if salt is None:
            salt = uuid4().hex.encode()
            index.save(_SALT, salt)
        return replace(self._job, salt=salt.decode())

    def _remember(self, index: RowIndex) -> None:
        """Keep what is needed to read the job again, without this call."""
        given, settings = self._given, self._settings
        path: Path | None = None
        if isinstance(given, (str, Path)) and given != "-":
            path = Path(given).absolute()
        elif given == "-" or iter(given) is given:  # it can be read only once, and was kept
            path = self._place.spool
        memory = Memory(
            rows=None if path is None else str(path),
            id_column=settings.id_column,
            samples=settings.samples,
            limit=settings.limit,
            prefix=settings.prefix,
            has_vectors=self._embeds,
            ledger=settings.ledger,
            attempts=settings.attempts,
        )
        index.save(MEMORY, msgspec.json.encode(memory))

    def _config(self, job: Job) -> WorkerConfig:
        settings = self._settings
        names = ("concurrency", "attempts", "lease", "max_usd", "volatile")
        return WorkerConfig(
            job=job,
            ledger=settings.ledger or str(self._place.ledger),
            requests_per_minute=settings.requests_per_minute,
            tokens_per_minute=settings.tokens_per_minute,
            **{name: getattr(settings, name) for name in names},
        )

    def _check_parts(self, changes: Changes) -> None:
        change = ""
        if changes.changed_in_parts:
            change = f"{changes.changed_in_parts:,} rows that are there would get other answers"
        elif changes.removed_from_parts:
            change = (
                f"{changes.removed_from_parts:,} rows that are there are no longer in the input"
            )
        if change:
            raise ConfigurationError(
                f"The output has parts, and {change}. Choose another output, or remove the parts "
                f"and the folder {self._place.folder.name}."
            )

    # Sending.

    async def _send(
        self,
        worker: Worker,
        source: Source,
        index: RowIndex,
        ledger: Ledger,
        columns: Columns,
    ) -> None:
        size = self._settings.part_rows
        parts = None if size is None else PartWriter(self._place, index, columns, size)

        def finish(row: Row, request: bytes | None, answer: Answer) -> None:
            self._tally.finish(answer)
            if parts is not None and answer.status != "pending":
                parts.add(row.number, row.data, result_columns(row.key, request, answer))
            if self._on_progress is not None:
                self._on_progress(self.progress())

        if self._settings.executor != "batch":
            await self._check_batches(index, ledger)
        self._executor = executor = self._make_executor(worker, finish)
        if self._tally.stopped is not None:  # before this began
            executor.stop(self._tally.stopped)
        try:
            await executor.run(self._pending(source, index, ledger, parts))
        finally:
            self._tally.stopped = executor.stopped
            if parts is not None:
                parts.flush()

    async def _check_batches(self, index: RowIndex, ledger: Ledger) -> None:
        """Raise if rows are in a batch at the provider: calls would pay for them again."""
        for reference, hashes in (await ledger.batches()).items():
            if index.has_any(hashes):
                raise ConfigurationError(
                    f"Rows of this job are in a batch that was not read yet: {reference}. Run it "
                    "with the executor 'batch' once more; to end the batch before, cancel it.",
                    setting="executor",
                )

    def _make_executor(
        self, worker: Worker, finish: Callable[[Row, bytes | None, Answer], None]
    ) -> Executor:
        if self._embeds:
            from interlingua.bulk.vectors import VectorExecutor

            return VectorExecutor(worker, finish)
        if self._engine is not None:
            from interlingua.bulk.engines.executor import EngineExecutor

            client = None if self._client is None else find_client(self._client)
            return EngineExecutor(self._engine, worker, finish, client=client)
        if self._settings.executor == "batch":
            from interlingua.bulk.batches import BatchExecutor

            return BatchExecutor(worker, finish, leftovers=self._settings.leftovers)
        return LiveExecutor(worker, finish)

    async def _pending(
        self, source: Source, index: RowIndex, ledger: Ledger, parts: PartWriter | None
    ) -> AsyncIterator[list[Row]]:
        """The rows that have to be sent. Those with an answer go to the parts, if there are any."""
        async for chunk in joined(source, index, None if self._is_fresh else ledger, _LOOK):
            rows: list[Row] = []
            for row, indexed, entry in chunk:
                if indexed.hash is None:
                    answer = refused(row.key, indexed.problem or "")
                elif entry is not None and entry.is_settled(self._settings.attempts):
                    answer = recorded(entry, row.key)
                elif self._settings.only_failed and (entry is None or not entry.attempts):
                    continue
                else:
                    rows.append(row)
                    continue
                if parts is not None and indexed.part is None:
                    parts.add(row.number, row.data, result_columns(row.key, indexed.hash, answer))
            yield rows

    def progress(self) -> Progress:
        """Return how far this run is."""
        pace = getattr(self._executor, "pace", None)
        active = getattr(self._executor, "active", 0) if pace is None else pace.active
        return self._tally.progress(active=active, places=0 if pace is None else pace.places)

    # Writing.

    async def _write(
        self, source: Source, index: RowIndex, ledger: Ledger, columns: Columns
    ) -> Report:
        """Write the output, unless a row is pending, and return the report."""
        is_one_file = self._settings.part_rows is None
        survey = Survey()
        if is_one_file and self._tally.stopped is None:
            with suppress(_Incomplete):
                survey = await export_rows(
                    source, index, ledger, columns, self._place.output, allow_pending=False
                )
        if not survey.rows:
            survey = await survey_rows(source, index, ledger)
        is_whole = survey.rows > 0 and not survey.pending
        return survey.report(output=str(self._place.output), is_written=is_whole)


class Tally:
    """What a run has done so far."""

    def __init__(self) -> None:
        self.stopped: str | None = None
        self.rows: int = 0
        self.done: int = 0
        self.failed: int = 0
        self.cost: float = 0.0
        self._before = 0
        self._ended = 0
        self._errors: Counter[str] = Counter()
        self._begun = time.monotonic()

    def begin(self, survey: Survey) -> None:
        """Count what the ledger has before the first row is sent."""
        self.rows, self.done = survey.rows, survey.done
        self._before = survey.done
        self._begun = time.monotonic()

    def finish(self, answer: Answer) -> None:
        """Count a row."""
        if answer.status == "pending":
            return
        self._ended += 1
        if answer.status == "done":
            self.done += 1
        else:
            self.failed += 1
            self._errors[answer.error_class or "other"] += 1
        self.cost += answer.cost or 0.0

    def progress(self, *, active: int, places: int) -> Progress:
        """Return how far the run is."""
        seconds = time.monotonic() - self._begun
        rate = self._ended / seconds if seconds > 0 else 0.0
        ended = self.done + self.failed
        waiting = max(0, self.rows - ended)
        return Progress(
            rows=self.rows,
            done=self.done,
            failed=self.failed,
            cost=self.cost,
            expected=self.cost / ended * self.rows if ended else None,
            rate=rate,
            left=waiting / rate if rate else None,
            active=active,
            places=places,
            errors=dict(self._errors),
        )


class Plan(NamedTuple):
    """What a run would do, before it does it."""

    job: Job
    client: Client
    source: Source
    settings: RunSettings
    changes: Changes
    survey: Survey


class Planner:
    """The first pass: reads and checks every row, and makes the index."""

    def __init__(
        self, job: Job, source: Source, index: RowIndex, columns: Columns, digest: bytes
    ) -> None:
        self._job = job
        self._source = source
        self._index = index
        self._columns = columns
        self._digest = digest
        self._problem: str | None = None

    def fill(self) -> Changes:
        """Make the index; raises before anything is sent if the input does not fit the job."""
        if self._source.columns is not None:
            check_columns(self._job.columns, self._source.columns)
        changes = self._index.fill(self._rows())
        if not changes.rows:
            raise ConfigurationError("The input has no rows.")
        if not self._columns.kinds and self._problem is not None:
            raise ConfigurationError(f"No row of the input can be read. {self._problem}")
        check_columns(self._job.columns, self._columns.kinds)
        self._columns.check()
        return changes

    def _rows(self) -> Iterator[tuple[int, str, bytes | None, str | None]]:
        ask, add, digest = self._job.ask, self._columns.add, self._digest
        for number, key, data, problem in self._source:
            add(data)
            if problem:
                self._problem = self._problem or f"The first is {key}: {problem}"
                yield number, key, None, problem
                continue
            try:
                yield number, key, ask(data, key, digest).hash, None
            except RowProblem as error:
                yield number, key, None, str(error)


# Rows with their answers.


class _Incomplete(Exception):  # noqa: N818 -- it ends the writing of a file
    """A row is pending."""


Joined: TypeAlias = tuple[Row, IndexedRow, Entry | None]


async def joined(
    source: Source, index: RowIndex, ledger: Ledger | None, size: int
) -> AsyncIterator[list[Joined]]:
    """
    The rows of the input, each with its place in the index and its entry in the ledger.

    None stands for a ledger that is empty.
    """
    rows = iter(source)
    start = 0
    while chunk := list(islice(rows, size)):
        indexed = index.slice(start, size)
        if [each.key for each in chunk] != [each.key for each in indexed]:
            if not indexed and not start:
                raise StoreError("The job has not begun: its run has failed before. Run it again.")
            raise StoreError("The input has changed since the job began. Run it again.")
        entries = await look(ledger, indexed)
        yield list(zip(chunk, indexed, entries, strict=True))
        start += size


async def look(ledger: Ledger | None, rows: list[IndexedRow]) -> list[Entry | None]:
    """The entries of rows; None for those without a request."""
    if ledger is None:
        return [None] * len(rows)
    hashes = [row.hash for row in rows if row.hash is not None]
    found = await ledger.look(hashes) if hashes else []
    if len(found) == len(rows):
        return found
    each = iter(found)
    return [None if row.hash is None else next(each) for row in rows]


def answer_in(row: IndexedRow, entry: Entry | None) -> Answer:
    """What became of a row."""
    if row.hash is None:
        return refused(row.key, row.problem or "")
    if entry is None or entry.answer is None or entry.state in ("claimed", "released"):
        attempts = 0 if entry is None else entry.attempts
        return Answer(status="pending", key=row.key, attempts=attempts)
    return recorded(entry, row.key)


async def survey_index(index: RowIndex, ledger: Ledger | None) -> Survey:
    """Count the rows of a job, without reading its input."""
    survey = Survey()
    for chunk in index.chunks():
        for row, entry in zip(chunk, await look(ledger, chunk), strict=True):
            survey.add(row.key, {}, answer_in(row, entry))
    return survey


async def survey_rows(source: Source, index: RowIndex, ledger: Ledger) -> Survey:
    """Count the rows of a job, with samples of them."""
    survey = Survey()
    async for chunk in joined(source, index, ledger, _WRITE):
        for row, indexed, entry in chunk:
            survey.add(row.key, row.data, answer_in(indexed, entry))
    return survey


async def export_rows(
    source: Source,
    index: RowIndex,
    ledger: Ledger,
    columns: Columns,
    output: Path,
    *,
    allow_pending: bool = True,
) -> Survey:
    """Write all rows with their answers, in the order of the input."""
    survey = Survey()
    with OutputFile(output, columns) as file:
        async for chunk in joined(source, index, ledger, _WRITE):
            rows = []
            for row, indexed, entry in chunk:
                answer = answer_in(indexed, entry)
                survey.add(row.key, row.data, answer)
                result = result_columns(row.key, indexed.hash, answer)
                rows.append(columns.join(row.data, result))
            if survey.pending and not allow_pending:
                raise _Incomplete
            file.write(rows)
        if file.count != len(index):
            raise StoreError(f"The output has {file.count} rows, and the input {len(index)}.")
    return survey
