"""What the batches of all dialects share: requests and replies line by line, endpoints, lists."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from functools import partial
from typing import TypeAlias

from interlingua.spec.content import Json
from interlingua.spec.contracts import Profile, WireCall
from interlingua.spec.errors import (
    AbortError,
    DecodeError,
    ProviderTimeoutError,
    SDKError,
)
from interlingua.spec.modalities.batch import (
    Batch,
    BatchQuery,
    BatchReply,
    BatchSubmission,
    ServedBatch,
)
from interlingua.spec.operations import Operation, OperationReply, ServedOperation, ServedReply
from interlingua.wire.classify import was_refused
from interlingua.wire.json_text import loads
from interlingua.wire.jsonl import JSONLDecoder, decode_lines
from interlingua.wire.resources import (
    MakeHeaders,
    decode_one,
    no_headers,
    page_of,
    resource_path,
    serve,
    write_body,
)

ReadReply: TypeAlias = Callable[[Json, int], BatchReply]
"""Reads a reply, from its JSON and its place in the file or list, from 0."""
MEGABYTE = 1024 * 1024
ONE_BATCH = "(?P<batch>[^/]+)"
"""The last part of the path of a batch."""


class ReplyLines:
    """Decodes a file of replies, one in each line, as it arrives."""

    def __init__(self, read: ReadReply) -> None:
        self._lines = JSONLDecoder()
        self._read = read
        self._count = 0

    def feed(self, chunk: bytes) -> list[BatchReply]:
        """The replies that this chunk completes."""
        return self._decode(self._lines.feed(chunk))

    def finish(self) -> list[BatchReply]:
        """The reply of a last line without a line end; `StreamError` if it is cut."""
        return self._decode(self._lines.finish())

    def _decode(self, values: Sequence[Json]) -> list[BatchReply]:
        start, self._count = self._count, self._count + len(values)
        return read_replies(values, self._read, start)


class WholeReplies:
    """
    Decodes replies that are in one JSON value, or in pages that are one each.

    `find` gets the replies in the value, `follow` the call for the page after it.
    """

    def __init__(
        self,
        find: Callable[[Json], Sequence[Json]],
        read: ReadReply,
        follow: Callable[[WireCall, Json], WireCall | None] = lambda _call, _value: None,
    ) -> None:
        self._find = find
        self._read = read
        self._follow = follow
        self._chunks: list[bytes] = []
        self._value: Json = None
        self.held: int = 0

    def feed(self, chunk: bytes) -> list[BatchReply]:
        """Nothing yet: the whole body is needed."""
        self._chunks.append(chunk)
        self.held += len(chunk)
        return []

    def finish(self) -> list[BatchReply]:
        """The replies; `DecodeError` if the body is cut or is not JSON."""
        self._value = loads(b"".join(self._chunks))
        return read_replies(self._find(self._value), self._read)

    def next_page(self, call: WireCall) -> WireCall | None:
        """The call for the page after the one that was decoded."""
        return self._follow(call, self._value)


def read_replies(values: Sequence[Json], read: ReadReply, start: int = 0) -> list[BatchReply]:
    """The replies of a list; one that cannot be read has the `DecodeError` that says why."""
    replies: list[BatchReply] = []
    for index, value in enumerate(values, start):
        try:
            replies.append(read(value, index))
        except DecodeError as error:
            error.prefix(f"result {index + 1} of the batch")
            replies.append(BatchReply(error=error, raw=value))
    return replies


def create_or_clean(
    call: WireCall, delete: WireCall
) -> Generator[WireCall, OperationReply, OperationReply]:
    """The reply to the call that creates a batch; if it is refused, its file is deleted."""
    try:
        return (yield call)
    except SDKError as error:
        if was_refused(error):
            try:
                yield delete
            except SDKError:
                error.add_facts(advice=f"{delete.path}, which was uploaded for it, is still there")
        raise


def expired(message: str | None = None) -> ProviderTimeoutError:
    """The error of a request that was not answered in time."""
    text = message or "The request was not answered before the batch expired."
    return ProviderTimeoutError(text, error_code="batch_expired")


def cancelled(message: str | None = None) -> AbortError:
    """The error of a request that was not answered because its batch was cancelled."""
    return AbortError(message or "The batch was cancelled before the request was answered.")


def is_expired(reply: BatchReply) -> bool:
    """Whether a request of a batch has expired."""
    return isinstance(reply.error, ProviderTimeoutError)


def read_requests(
    data: bytes, read: Callable[[Json, int], tuple[str, WireCall]], *, first: int = 0
) -> tuple[tuple[str, WireCall], ...]:
    """The requests in an uploaded file; `read` gets the number of each line, from `first`."""
    return tuple(read(value, number) for number, value in enumerate(decode_lines(data), first))


def batch_page(
    batches: Sequence[ServedBatch], value: BatchQuery, default: int
) -> tuple[list[ServedBatch], bool]:
    """One page of a list that a server sends, and whether more follow."""
    size = value.limit or default
    return page_of(batches, lambda served: served.batch.id, value.after, size, kind="batch")


def operations_on_batch(
    path: str,
    read: Callable[[Json], Batch],
    headers: MakeHeaders = no_headers,
    *,
    cancel: str = "/cancel",
) -> tuple[Operation, ...]:
    """The operations on a batch at `path/id`; the path that cancels it ends in `cancel`."""

    def call(method: str, end: str = "") -> Callable[[BatchQuery, Profile], WireCall]:
        return lambda value, profile: WireCall(
            method=method, path=f"{resource_path(path, value.id)}{end}", headers=headers(profile)
        )

    decode = decode_one(read)
    return (
        Operation(name="retrieve_batch", encode=call("GET"), decode=decode),
        Operation(name="cancel_batch", encode=call("POST", cancel), decode=decode),
    )


def served_batch(_call: WireCall, params: Mapping[str, str]) -> BatchQuery:
    """The batch that the path of a request names."""
    return BatchQuery(id=params["batch"])


def serve_batches(
    root: str,
    write: Callable[[ServedBatch], Json],
    *,
    read_submission: Callable[[WireCall, Mapping[str, str]], BatchSubmission],
    read_list: Callable[[WireCall, Mapping[str, str]], BatchQuery],
    write_list: Callable[[list[ServedBatch], BatchQuery], ServedReply],
    is_shared: bool = False,
) -> tuple[ServedOperation, ...]:
    """The endpoints of batches under this path, a regular expression."""
    one = f"{root}/{ONE_BATCH}"
    serve_here = partial(serve, is_shared=is_shared)
    return (
        serve_here("submit_batch", "POST", root, read_submission, write_body(write)),
        serve_here("list_batches", "GET", root, read_list, write_list),
        serve_here("retrieve_batch", "GET", one, served_batch, write_body(write)),
        serve_here("cancel_batch", "POST", f"{one}/cancel", served_batch, write_body(write)),
    )
