"""The options of a bulk job."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from interlingua.api.run.clients import BlockingClient
from interlingua.bulk.job import Job
from interlingua.bulk.worker import ATTEMPTS, CONCURRENCY
from interlingua.client.client import Client
from interlingua.spec.content import Json, Record
from interlingua.spec.errors import ConfigurationError
from interlingua.spec.settings import ModelSettings

_EXECUTORS = ("live", "batch", "ray", "daft")
PART_ROWS = 5_000
"""How many rows a part of an output has."""


class Progress(Record, frozen=True, kw_only=True):
    """How far a job is; given to `on_progress` after each row."""

    rows: int
    """All rows of the job."""
    done: int
    """Rows with an answer."""
    failed: int
    """Rows that failed."""
    cost: float
    """Dollars that the job has spent, in all of its runs."""
    expected: float | None
    """Dollars that the whole job will have cost, by what its rows have cost so far."""
    rate: float
    """Rows in a second, in this run."""
    left: float | None
    """Seconds until the end, at this rate."""
    active: int
    """Rows that are under way."""
    places: int
    """Rows that may be under way at once now."""
    errors: Mapping[str, int]
    """Failed rows by class of error."""


class BulkOptions(ModelSettings, total=False):
    """The options of `bulk.run`: those of the job, and the settings of its requests."""

    system: str | None
    """The system prompt: a template, as the prompt is."""
    schema: Any
    """A JSON Schema or a type, to ask for objects; see `generate_object`."""
    images: Sequence[str]
    """The columns with images: a path, a URL or bytes."""
    documents: Sequence[str]
    """The columns with documents, given as images are."""
    id_column: str | None
    """The column with the ids of rows, which must be unique. Defaults to file and line."""
    limit: int | None
    """How many rows of the input are used. Defaults to all."""
    samples: int
    """How many independent answers each row gets. Defaults to 1."""
    dedupe: bool
    """Whether equal requests are sent once. Defaults to True."""
    concurrency: int
    """How many rows are under way at once at most. Defaults to 32."""
    max_usd: float | None
    """What the job may cost in all of its runs; rows beyond that stay pending."""
    requests_per_minute: float | None
    """The most requests in a minute."""
    tokens_per_minute: float | None
    """The most input tokens in a minute."""
    attempts: int
    """How often a row is tried before it counts as failed for good. Defaults to 3."""
    only_failed: bool
    """Whether only the rows that have failed are tried. Defaults to False."""
    parts: int | bool
    """Rows of each numbered file of the output; True: 5,000. Defaults to one file."""
    prefix: str
    """What the names of the columns of results begin with. Defaults to nothing."""
    ledger: str | None
    """A path, `redis://…` or `postgresql://…`. Defaults to a file beside the output."""
    volatile: bool
    """Whether a server that does not force what it keeps to its disk is accepted as the ledger."""
    lease: float
    """Seconds after which a worker that says nothing counts as dead. Defaults to 60."""
    executor: str
    """
    `live` calls, the provider's `batch` API, or an engine: `daft`, `ray` or `ray://…`.

    Defaults to `live`. Engines need the extra of their name.
    """
    leftovers: bool
    """With `batch`: whether requests that a batch did not answer are sent live."""
    max_retries: int
    """How often one call is retried. Defaults to 2."""
    max_validation_retries: int
    """How often an object that does not fit is sent back. Defaults to 0."""
    client: Client | BlockingClient | None
    """The client to use, async or blocking. Defaults to the module-level client."""
    on_progress: Callable[[Progress], object] | None
    """Called after each row."""


_BULK = frozenset(BulkOptions.__annotations__) - frozenset(ModelSettings.__annotations__)
_OF_CALLS = frozenset(("max_retries", "max_validation_retries"))


class RunSettings(Record, frozen=True, kw_only=True):
    """The options of a run, checked; those of requests are in the job."""

    limit: int | None = None
    samples: int = 1
    dedupe: bool = True
    id_column: str | None = None
    concurrency: int = CONCURRENCY
    max_usd: float | None = None
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    attempts: int = ATTEMPTS
    only_failed: bool = False
    parts: int | bool = False
    prefix: str = ""
    ledger: str | None = None
    volatile: bool = False
    lease: float = 60.0
    executor: str = "live"
    leftovers: bool = False

    @property
    def has_engine(self) -> bool:
        """Whether an engine places the rows."""
        return self.executor not in ("live", "batch")

    @property
    def part_rows(self) -> int | None:
        """How many rows a part has; None if the output is one file."""
        if self.parts is True:
            return PART_ROWS
        return int(self.parts) or None


def read_options(model: str, prompt: str, options: Mapping[str, Any]) -> tuple[Job, RunSettings]:
    """The job and the settings of a run; `ConfigurationError` for what cannot be used."""
    known = _BULK | frozenset(ModelSettings.__annotations__)
    for name in options:
        if name not in known:
            from interlingua.spec.check import advice

            raise ConfigurationError(
                f"A bulk job has no option {name!r}. {advice(name, known)}", setting=name
            )
    given = {name: value for name, value in options.items() if value is not None}
    requests = {
        name: value for name, value in given.items() if name not in _BULK or name in _OF_CALLS
    }
    settings = RunSettings(
        **{name: given[name] for name in RunSettings.__struct_fields__ if name in given}
    )
    _check(settings)
    job = Job(
        model=model,
        prompt=prompt,
        system=given.get("system"),
        schema=_schema(given.get("schema")),
        images=tuple(given.get("images", ())),
        documents=tuple(given.get("documents", ())),
        options=requests,
    )
    job.check()
    return job, settings


def _schema(schema: Any) -> Json:
    """The JSON Schema of a schema or type."""
    if schema is None or isinstance(schema, Mapping):
        return schema
    from interlingua.api.types.reading import schema_of

    found: Json = schema_of(schema)
    return found


def _check(settings: RunSettings) -> None:
    for name, least in (("limit", 1), ("samples", 1), ("concurrency", 1), ("attempts", 1)):
        value = getattr(settings, name)
        if value is not None and (type(value) is not int or value < least):
            raise ConfigurationError(f"`{name}` must be an integer of {least} or more.")
    if settings.max_usd is not None and not settings.max_usd > 0:
        raise ConfigurationError("`max_usd` must be above 0.", setting="max_usd")
    if settings.executor not in _EXECUTORS and not settings.executor.startswith("ray://"):
        raise ConfigurationError(
            "`executor` must be 'live', 'batch', 'daft', 'ray' or 'ray://HOST:PORT'.",
            setting="executor",
        )
