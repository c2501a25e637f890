"""Batches: many requests that a provider answers later, at a lower price."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, TypeAlias

from interlingua.spec.content import Extra, Json, Record, UncheckedJson
from interlingua.spec.contracts import Content, WireCall
from interlingua.spec.errors import SDKError
from interlingua.spec.operations import OperationInput, OperationResult
from interlingua.spec.request import Request
from interlingua.spec.response import Response, Usage

BATCH_TIER = "batch"
"""The tier of service of all answers of batches."""
BatchState: TypeAlias = Literal[
    "queued",
    "in_progress",
    "finalizing",
    "completed",
    "failed",
    "expired",
    "cancelling",
    "cancelled",
]
ENDED: frozenset[BatchState] = frozenset(("completed", "failed", "expired", "cancelled"))


class BatchCounts(Record, frozen=True, kw_only=True):
    """How many requests of a batch are in each state; None if the provider does not say."""

    total: int | None = None
    """The number of all requests."""
    succeeded: int | None = None
    """The number of requests that were answered."""
    failed: int | None = None
    """The number of requests that have an error."""
    cancelled: int | None = None
    """The number of requests that were cancelled."""
    expired: int | None = None
    """The number of requests that were not answered in time."""

    @property
    def ended(self) -> int:
        """How many requests have a result."""
        counts = (self.succeeded, self.failed, self.cancelled, self.expired)
        return sum(count or 0 for count in counts)


class BatchFault(Record, frozen=True, kw_only=True):
    """A reason why a provider refused a whole batch."""

    message: str = ""
    """What the provider says."""
    code: str | None = None
    """The provider's code of the error."""
    line: int | None = None
    """The line of the uploaded file, from 1."""


class Batch(OperationResult, frozen=True, kw_only=True):
    """
    A batch at a provider, as it was when the provider was asked.

    `batch.reference` is all that another process needs to go on.
    """

    id: str = ""
    """The provider's id of the batch."""
    state: BatchState = "queued"
    """Its state, with the same meaning for every provider."""
    raw_state: str = ""
    """The state in the provider's own words."""
    name: str = ""
    """The name that it was submitted with, where the provider keeps one."""
    counts: BatchCounts = BatchCounts()
    """How many requests are in each state."""
    endpoint: str = ""
    """The API that answers each request, where the provider names it."""
    created_at: float | None = None
    """Seconds since 1970."""
    expires_at: float | None = None
    """Seconds since 1970; requests without an answer expire then."""
    ended_at: float | None = None
    """Seconds since 1970."""
    input_file: str | None = None
    """The file with the requests, if they were uploaded."""
    outputs: tuple[str, ...] = ()
    """Where the results are, once there are any, in the provider's words."""
    total_usage: Usage | None = None
    """What all requests have used so far, if the provider says it."""
    faults: tuple[BatchFault, ...] = ()
    """Why the whole batch failed."""
    extra: Extra = {}
    """Other fields, by dialect, as in parts."""

    def __repr__(self) -> str:
        return f"Batch({self.reference!r}, state={self.state!r}, counts={self.counts!r})"

    @property
    def reference(self) -> str:
        """The provider and the id in one string, such as `openai:batch_68f1…`."""
        return f"{self.provider}:{self.id}"

    @property
    def is_ended(self) -> bool:
        """Whether the state is final."""
        return self.state in ENDED


class BatchResult(Record, frozen=True, kw_only=True):
    """The result of one request of a batch: a response, or the error of this request."""

    id: str
    """The id of the request."""
    response: Response | None = None
    """The answer, if there is one."""
    error: SDKError | None = None
    """Why there is no answer."""
    raw: UncheckedJson = None
    """The result as it was received, for debugging."""

    def unwrap(self) -> Response:
        """Return the response; raise the error if the request failed."""
        if self.response is None:
            raise self.error or AssertionError("The result has neither a response nor an error.")
        return self.response


class BatchReply(Record, frozen=True, kw_only=True):
    """The provider's reply to one request of a batch, before it is decoded as an answer."""

    id: str = ""
    status: int = 200
    """The HTTP status that a call would have had."""
    body: Json = None
    """The body that a call would have had: an answer or an error."""
    error: SDKError | None = None
    """Set if the request has no reply at all, because it was cancelled or has expired."""
    provider_request_id: str | None = None
    raw: UncheckedJson = None


class BatchInput(OperationInput, frozen=True, kw_only=True):
    """
    The value of `submit_batch`: the requests of a batch.

    The adapter encodes the requests into `content` before the operation makes its calls.
    """

    requests: Any = None
    """The requests, not yet encoded."""
    name: str = ""
    """The name of the batch; empty for none."""
    format: str = ""
    """The name of the `ItemFormat` in which they were encoded."""
    content: Content = b""
    headers: Mapping[str, str] = {}
    """The headers that the requests need."""


class BatchQuery(OperationInput, frozen=True, kw_only=True):
    """The value of the operations on one batch, and of `list_batches`."""

    id: str = ""
    output: str = ""
    """The one of `Batch.outputs` to read."""
    requests: Mapping[str, Request] = {}
    """The requests by their ids, where the caller still has them."""
    limit: int | None = None
    """How many batches a page of a list has; None for the provider's default."""
    after: str | None = None
    """The last batch of the page before, as a server receives it."""
    owner: str = ""
    """The dialect in which a server received it; lists have only the batches of one dialect."""
    batch: Batch | None = None
    """The batch to delete, with its files."""


class BatchSubmission(OperationInput, frozen=True, kw_only=True):
    """A batch that a server receives: its calls, or the file that contains them."""

    owner: str = ""
    """The dialect in which it was received."""
    id_prefix: str = ""
    calls: tuple[tuple[str, WireCall], ...] = ()
    file_id: str | None = None
    endpoint: str = ""
    read: Callable[[bytes], tuple[tuple[str, WireCall], ...]] | None = None
    """Decodes the file."""
    write: Callable[[Iterable[BatchReply]], bytes] | None = None
    """Encodes the results as a file; None if the results are no files."""
    splits_errors: bool = False
    """Failed requests are in a file of their own."""
    max_items: int | None = None
    """The most requests that the vendor accepts in a batch."""
    single_model: bool = False
    """All requests must have the same model."""
    keeps_order: bool = False
    """Results are in the order of the requests."""
    extra: Extra = {}
    """Other fields, by dialect, as in parts."""


class ServedBatch(Record, frozen=True, kw_only=True):
    """A batch as a server holds it."""

    batch: Batch = Batch()
    replies: tuple[BatchReply, ...] = ()
    """Once the batch has ended, one for each request, in any order."""
    output_file: str | None = None
    error_file: str | None = None
