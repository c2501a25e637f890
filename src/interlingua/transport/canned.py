"""A transport without a network that returns prepared replies, for tests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TypeAlias

import msgspec

from interlingua.spec.contracts import HttpReply, HttpRequest
from interlingua.spec.defaults import Limits
from interlingua.spec.errors import ConfigurationError, StreamError
from interlingua.transport.bodies import with_whole_body
from interlingua.transport.timeouts import Bounded, is_one_value, too_large
from interlingua.wire.ratelimit_headers import lower_names

Piece: TypeAlias = bytes | float | Exception
"""A piece of a canned body: bytes, a pause in seconds, or an error that ends the body."""


class CannedReply(msgspec.Struct, frozen=True, kw_only=True):
    """A prepared reply."""

    status: int = 200
    """The HTTP status."""
    headers: Mapping[str, str] = {}
    """The headers."""
    body: bytes | tuple[Piece, ...] = b""
    """Read the whole body, or its pieces."""
    after: float = 0.0
    """Seconds until the status and headers arrive."""


Answer: TypeAlias = CannedReply | Exception
"""The result of a request: a reply, or an exception that `send` raises."""


class CannedTransport:
    """
    Answers each request with the next prepared reply, or with the result of a function.

        transport = CannedTransport([CannedReply(body=b"{}"), NetworkError("gone")])

    `requests` lists the requests that were sent.
    """

    def __init__(self, answers: Iterable[Answer] | Callable[[HttpRequest], Answer]) -> None:
        self.requests: list[HttpRequest] = []
        self._choose = answers if callable(answers) else _in_order(iter(answers))

    def send(self, request: HttpRequest) -> AbstractAsyncContextManager[HttpReply]:
        """Open the next reply; `requests` gets a streamed body after it was read to its end."""
        if not isinstance(request.body, bytes):
            return self._send_streamed(request)
        self.requests.append(request)
        return open_reply(self._choose(request))

    async def close(self) -> None:
        """Do nothing: there is nothing to release."""

    @asynccontextmanager
    async def _send_streamed(self, request: HttpRequest) -> AsyncIterator[HttpReply]:
        async with self.send(await with_whole_body(request)) as reply:
            yield reply


@asynccontextmanager
async def open_reply(answer: Answer) -> AsyncIterator[HttpReply]:
    """Open an `async with` block that yields the canned reply, or raises the canned error."""
    if isinstance(answer, Exception):
        raise answer
    if answer.after > 0:
        await asyncio.sleep(answer.after)
    body = answer.body if isinstance(answer.body, tuple) else (answer.body,)
    reply = MemoryReply(answer.status, answer.headers, _play(body))
    try:
        yield reply
    finally:
        reply.abort()


class MemoryReply:
    """A reply whose body is an iterator of chunks."""

    def __init__(
        self,
        status: int,
        headers: Mapping[str, str],
        source: AsyncIterator[bytes],
        on_abort: Callable[[], None] | None = None,
        *,
        limit: int = Limits().body,
    ) -> None:
        self.status = status
        self.headers: dict[str, str] = lower_names(headers)
        self._source = source
        self._on_abort = on_abort
        self._limit = limit
        self._reading: asyncio.Task[object] | None = None
        self._is_closed = False

    async def read(self) -> bytes:
        """Read the whole body; `DecodeError` if it is larger than the limit."""
        chunks: list[bytes] = []
        room = self._limit
        while (chunk := await anext(self, None)) is not None:
            chunks.append(chunk)
            room -= len(chunk)
            if room < 0:
                raise too_large(None, self._limit)
        return b"".join(chunks)

    def chunks(self) -> AsyncIterator[bytes]:
        """Yield the chunks of the body, as they arrive."""
        return Bounded(self, None, self._limit) if is_one_value(self.headers) else self

    def abort(self) -> None:
        """Close the reply; a task that is reading from it gets an error."""
        self._is_closed = True
        if self._on_abort is not None:
            self._on_abort()
        reading, self._reading = self._reading, None  # so that the task is cancelled only once
        if reading is not None:
            reading.cancel()

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        chunk = b""
        while not chunk:
            if self._is_closed:
                raise StreamError("The response was closed before its end.")
            task = self._reading = asyncio.current_task()
            before = 0 if task is None else task.cancelling()
            try:
                chunk = await anext(self._source)
            except asyncio.CancelledError:
                if not self._was_woken(task, before):
                    raise
            finally:
                self._reading = None
        return chunk

    def _was_woken(self, task: asyncio.Task[object] | None, before: int) -> bool:
        """Whether `abort` has cancelled the task; if so, that cancellation is taken back."""
        return self._is_closed and task is not None and task.uncancel() <= before


async def _play(pieces: Iterable[Piece]) -> AsyncIterator[bytes]:
    for piece in pieces:
        if isinstance(piece, Exception):
            raise piece
        if isinstance(piece, bytes):
            yield piece
        else:
            await asyncio.sleep(piece)


def _in_order(answers: Iterator[Answer]) -> Callable[[HttpRequest], Answer]:
    def choose(request: HttpRequest) -> Answer:
        try:
            return next(answers)
        except StopIteration:
            raise ConfigurationError(
                f"No canned reply is left for {request!r}. Give CannedTransport one per request."
            ) from None

    return choose
