"""What the batches of all dialects share: replies line by line, requests without a reply."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import TypeAlias

from interlingua.spec.content import Json
from interlingua.spec.contracts import WireCall
from interlingua.spec.errors import (
    AbortError,
    DecodeError,
    InvalidRequestError,
    ProviderTimeoutError,
    SDKError,
)
from interlingua.spec.media.batch import BatchQuery, BatchReply, ServedBatch
from interlingua.spec.operations import OperationReply
from interlingua.wire.classify import was_refused
from interlingua.wire.jsonl import JSONLDecoder

ReadReply: TypeAlias = Callable[[Json, int], BatchReply]
"""Reads a reply, from its JSON and its place in the file or list, from 0."""
MEGABYTE = 1024 * 1024


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


def page_of(
    batches: Sequence[ServedBatch], value: BatchQuery, default: int
) -> tuple[list[ServedBatch], bool]:
    """One page of a list that a server sends, and whether more follow."""
    ids = [served.batch.id for served in batches]
    if value.after is not None and value.after not in ids:
        raise InvalidRequestError(f"No such batch: {value.after}", status_code=400)
    start = 0 if value.after is None else ids.index(value.after) + 1
    end = start + (value.limit or default)
    return list(batches[start:end]), end < len(ids)
