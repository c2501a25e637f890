"""Replies that are not answers: error statuses, errors with status 200, unrelated bodies."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from email.utils import formatdate
from functools import partial
from itertools import dropwhile
from time import perf_counter
from typing import Self

from interlingua.prepare.options import options_for
from interlingua.spec.content import UncheckedJson
from interlingua.spec.contracts import Dialect, Frame, HttpReply
from interlingua.spec.errors import (
    DecodeError,
    ProviderError,
    RequestTimeoutError,
    SDKError,
    StreamError,
)
from interlingua.spec.events import Finish, StreamEvent
from interlingua.spec.request import Request
from interlingua.spec.response import Response
from interlingua.streams.accumulate import events_from_response
from interlingua.streams.reader import FrameDecoder
from interlingua.wire.fields import carried_body
from interlingua.wire.integers import read_integer
from interlingua.wire.json_text import dumps, loads
from interlingua.wire.ratelimit_headers import reports_limits

UNCLEAR = frozenset(("error", "other"))
"""Finish reasons of responses that may not be an answer; only these are checked."""

UNREADABLE = (StreamError, DecodeError)
"""The errors of a body that is not JSON, or not a stream of events."""

_MAX_KEYS = 8


async def read_error(reply: HttpReply, dialect: Dialect) -> ProviderError:
    """The error for an HTTP status; a body that cannot be read counts as empty."""
    try:
        body = await reply.read()
    except SDKError:
        body = b""
    decode = partial(dialect.decode_error, reply.status, dated(reply.headers), body)
    return await asyncio.to_thread(decode) if len(body) > STEP else decode()


def reported_error(
    body: UncheckedJson, headers: Mapping[str, str], dialect: Dialect
) -> ProviderError | None:
    """The error that a body with status 200 reports by its code, type or status; None if none."""
    if isinstance(body, list) and len(body) == 1:
        body = body[0]
    if not isinstance(body, dict) or not body.get("error"):
        return None
    return dialect.decode_error(_reported_status(body) or 200, dated(headers), dumps(body))


def check_answer(
    response: Response,
    body: UncheckedJson,
    headers: Mapping[str, str],
    request: Request,
    dialect: Dialect,
) -> None:
    """
    Raise an error if the reply is not an answer.

    An error with status 200 is raised as the typed error of its own status. Any other body
    without an answer is a `DecodeError`, because it would look like an empty success. Calls to a
    path that the caller chose are not checked.
    """
    is_error = response.finish_reason.reason == "error"
    error = reported_error(body, headers, dialect) if is_error else None
    if error is not None:
        if response.message.content:
            error.add_facts(partial=_partial(response))
        raise error
    check_body(response, request, dialect.NAME)


def check_body(response: Response, request: Request, dialect: str) -> None:
    """Raise `DecodeError` if the body of the response holds no answer."""
    body = carried_body(response, dialect)
    if body is not None and "path" not in options_for(request, dialect):
        raise DecodeError(f"The reply is not an answer of {dialect}: {_describe(body)}.")


def read_json(body: bytes, headers: Mapping[str, str]) -> UncheckedJson:
    """The JSON value of a reply; `DecodeError` says what came instead."""
    try:
        return loads(body)
    except DecodeError as error:
        raise unreadable(error, headers) from None


def unreadable(error: SDKError, headers: Mapping[str, str]) -> SDKError:
    """
    The error for a reply with status 200 that is no answer at all, such as a page of a proxy.

    The same for a whole answer and for a stream. A stream of events that is cut is another error.
    """
    content_type = headers.get("content-type", "")
    if "event-stream" in content_type:
        return error
    kind = f"the content type {content_type!r}" if content_type else "no content type"
    return DecodeError(
        f"The reply is not an answer: it has {kind} ({error.message.rstrip('.')}). Check the "
        "base_url."
    )


class WholeBody:
    """The frame decoder for a reply that is not streamed: the whole body is one frame."""

    __slots__ = ("_pieces",)

    def __init__(self) -> None:
        self._pieces: list[bytes] = []

    def feed(self, data: bytes) -> list[Frame]:
        """No frames before the end of the body."""
        self._pieces.append(data)
        return []

    def finish(self) -> list[Frame]:
        """The whole body as one frame."""
        return [Frame(data=b"".join(self._pieces).decode("utf-8", "replace"))]


class WholeDecoder:
    """Decodes the frame of `WholeBody` into the events of the whole response."""

    __slots__ = ("_decode",)

    def __init__(self, decode: Callable[[UncheckedJson], Response]) -> None:
        self._decode = decode

    def feed(self, frame: Frame) -> list[StreamEvent]:
        """All events of the response."""
        return events_from_response(self._decode(loads(frame.data)))

    def finish(self) -> list[StreamEvent]:
        """No events: `feed` returned all of them."""
        return []


def dated(headers: Mapping[str, str]) -> dict[str, str]:
    """The headers with a date, the server's or ours, from which waits and resets are counted."""
    return {"date": formatdate(usegmt=True), **headers}


def answer_headers(headers: Mapping[str, str]) -> Mapping[str, str]:
    """The headers of an answer: `dated`, if they are about limits, of which only resets need it."""
    return dated(headers) if "date" not in headers and reports_limits(headers) else headers


def _reported_status(body: dict[str, UncheckedJson]) -> int | None:
    error = body["error"]
    codes = [body.get("status"), body.get("code")]
    if isinstance(error, dict):
        codes = [error.get("code"), error.get("status"), error.get("status_code"), *codes]
    for code in codes:
        number = read_integer(code, least=400, most=599)
        if number is not None:
            return number
    return None


def _partial(response: Response) -> Response:
    # Without `raw` and `extra`, which hold the error again.
    return Response(
        id=response.id,
        model=response.model,
        message=response.message,
        finish_reason=response.finish_reason,
        usage=response.usage,
    )


def _describe(body: object) -> str:
    keys = list(body)[:_MAX_KEYS] if isinstance(body, dict) else []
    return f"an object with {', '.join(map(repr, keys))}" if keys else "an empty object"


# Streamed replies are read in short steps, so that a large one does not hold up the event loop.


LARGE = 1024 * 1024
"""Bytes from which a request of the caller is encoded in a thread."""
STEP = 32 * 1024
"""
Bytes of a reply that are read in one step of the event loop; more are read in a thread.

A server may send thousands of tool calls or items in them, and each takes some microseconds.
"""
HELD = 256
"""Parts that a decoder may hold back for its last frame; with more it is read in a thread."""
_BATCH = 256  # frames, or events, that are passed on in one step


class FrameBatches:
    """
    The frames of a reply, at most 256 at a time; between two batches other tasks run.

    `content_at` is the time of the last content event; its reader sets it. A stream that sends
    only pings for `stream_content` seconds is a `RequestTimeoutError`. `size` is the number of
    bytes so far.
    """

    __slots__ = ("_chunks", "_feed", "_rest", "_stream_content", "content_at", "size")

    def __init__(
        self, reply: HttpReply, frames: FrameDecoder, stream_content: float | None
    ) -> None:
        self._chunks = reply.chunks()
        self._feed = frames.feed
        self._rest: Iterator[list[Frame]] | None = None  # of a large chunk
        self._stream_content = stream_content
        self.content_at: float = perf_counter()
        self.size: int = 0

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> list[Frame]:
        if self._rest is not None:
            await asyncio.sleep(0)
            batch = next(self._rest, None)
            if batch is not None:
                return batch
            self._rest = None
        chunk = await anext(self._chunks)
        seconds = self._stream_content
        if seconds is not None and perf_counter() - self.content_at > seconds:
            raise _no_content(seconds)
        if len(chunk) <= STEP:
            self.size += len(chunk)
            frames = self._feed(chunk)
            if len(frames) <= _BATCH:
                return frames
            self._rest = _split(frames)
        else:
            self._rest = self._feed_slowly(chunk)
        return next(self._rest)

    def _feed_slowly(self, chunk: bytes) -> Iterator[list[Frame]]:
        for at in range(0, len(chunk), STEP):
            self.size += STEP
            yield from _split(self._feed(chunk[at : at + STEP]))


def _split(frames: list[Frame]) -> Iterator[list[Frame]]:
    for at in range(0, len(frames) or 1, _BATCH):
        yield frames[at : at + _BATCH]


def feed_rest(
    feed: Callable[[Frame], list[StreamEvent]], frames: list[Frame], first: Frame
) -> tuple[list[StreamEvent], SDKError | None]:
    """Decode `first` and the frames after it: their events, and the error of a bad frame."""
    rest = dropwhile(lambda frame: frame is not first, frames)
    return collect(event for frame in rest for event in feed(frame))


def collect(source: Iterable[StreamEvent]) -> tuple[list[StreamEvent], SDKError | None]:
    """The events up to `Finish` or to an error, and the error."""
    events: list[StreamEvent] = []
    try:
        for event in source:
            events.append(event)
            if type(event) is Finish:
                break
    except SDKError as error:
        return events, error
    return events, None


async def in_steps(
    events: list[StreamEvent], error: SDKError | None = None
) -> AsyncIterator[StreamEvent]:
    """The events, then the error, if there is one; after every 256 events other tasks run."""
    for number, event in enumerate(events, 1):
        yield event
        if number % _BATCH == 0:
            await asyncio.sleep(0)
    if error is not None:
        raise error


def _no_content(seconds: float) -> RequestTimeoutError:
    return RequestTimeoutError(
        f"Timed out: the stream sent no content for {seconds:g} s, only pings. Set a longer "
        "`Timeouts.stream_content` if the model needs it.",
        phase="stream_content",
        retryable=False,
    )
