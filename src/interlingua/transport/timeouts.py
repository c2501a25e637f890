"""Timeouts, and the errors for them and for bodies that are too large."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import AsyncIterator, Mapping
from math import inf
from typing import Protocol
from urllib.parse import urlsplit

from interlingua.spec.contracts import HttpRequest
from interlingua.spec.defaults import Timeouts
from interlingua.spec.errors import DecodeError, RequestTimeoutError, TimeoutPhase

NO_HOST = "no host"
"""What messages say of a URL without a valid host."""

# Messages name the host and never the URL, because its query may contain an API key.
_MESSAGES: dict[TimeoutPhase, str] = {
    "connect": "timed out after {seconds:g} s while connecting to {host} (connect timeout)",
    "first_byte": "timed out after {seconds:g} s without a response from {host} "
    "(first_byte timeout)",
    "request": "timed out after {seconds:g} s before the response from {host} was complete "
    "(request timeout)",
    "stream_read": "timed out: the stream from {host} sent nothing for {seconds:g} s "
    "(stream_read timeout)",
    "total": "timed out after {seconds:g} s before the exchange with {host} was complete "
    "(total timeout)",
}


def host_of(request: HttpRequest) -> str:
    """The host and port of a request, for messages."""
    return address_of(request.url)


def address_of(url: str) -> str:
    """The host and port of a URL, for messages."""
    try:
        parts = urlsplit(url)
        port = parts.port or {"https": 443, "http": 80}.get(parts.scheme)
    except ValueError:
        return NO_HOST
    if not parts.hostname or port is None:
        return parts.hostname or NO_HOST
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{host}:{port}"


def timeout_error(
    phase: TimeoutPhase, request: HttpRequest, timeouts: Timeouts, *, host: str | None = None
) -> RequestTimeoutError:
    """The error for a timeout. Only a connect timeout is retryable by default."""
    seconds = getattr(timeouts, phase) or 0
    text = _MESSAGES[phase].format(host=host or host_of(request), seconds=seconds)
    # After the request was sent the provider may have worked on it, and a retry may cost twice.
    return RequestTimeoutError(text, phase=phase, retryable=phase == "connect")


def next_deadline(
    timeouts: Timeouts, phase: TimeoutPhase, began: float, waiting_since: float
) -> tuple[float | None, TimeoutPhase]:
    """
    When the next timeout of an exchange ends, and which timeout that is.

    `phase` is `first_byte` until the headers arrive, then `request` for a whole body and
    `stream_read` for a stream.
    """
    since, seconds, reason = began, timeouts.request, phase
    if phase == "stream_read":
        since, seconds = waiting_since, timeouts.stream_read
    elif phase == "first_byte":
        first = timeouts.first_byte
        if first is not None and (seconds is None or first < seconds):
            seconds = first
        elif seconds is not None:
            reason = "request"
    end = None if seconds is None else since + seconds
    total = None if timeouts.total is None else began + timeouts.total
    if total is not None and (end is None or total < end):
        return total, "total"
    return end, reason


class Watched(Protocol):
    """An object with a deadline that may move."""

    def check(self, now: float) -> float | None:
        """The time of the next deadline; None if there is none, or after one has passed."""


class Watch:
    """
    The deadlines of all exchanges of an event loop, with one timer.

    Most exchanges end long before their deadlines, so a timer for each would be set in vain. When
    the timer fires, every exchange is asked for its deadline, and it is set for the next one.
    """

    __slots__ = ("_at", "_loop", "_references", "_timer")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._references: set[weakref.ref[Watched]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._at = inf  # when the timer fires

    def reference(self, watched: Watched) -> weakref.ref[Watched]:
        """A weak reference for `add`, so that an abandoned exchange is not kept alive."""
        reference = weakref.ref(watched, self._references.discard)
        hash(reference)  # it has none after the exchange is gone, and `discard` asks for it
        return reference

    def add(self, reference: weakref.ref[Watched], deadline: float) -> None:
        """Call `check` at this time or before it, and until it returns None."""
        self._references.add(reference)
        if deadline < self._at:
            self._set(deadline)

    def remove(self, reference: weakref.ref[Watched]) -> None:
        """Call `check` no more."""
        self._references.discard(reference)

    def close(self) -> None:
        """Stop the timer."""
        self._set(inf)

    def _set(self, at: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._at = at
        self._timer = None if at == inf else self._loop.call_at(at, self._check)

    def _check(self) -> None:
        self._timer, now, earliest = None, self._loop.time(), inf
        for reference in tuple(self._references):
            watched = reference()
            deadline = None if watched is None else watched.check(now)
            if deadline is None:
                self._references.discard(reference)
            elif deadline < earliest:
                earliest = deadline
        # Many deadlines, one after another, are not checked one by one: that would be quadratic.
        self._set(max(earliest, now + len(self._references) * _PER_CHECK))


_PER_CHECK = 1e-5  # seconds between two checks, for each exchange
_MAX_CAUSES = 10


def system_error(failure: BaseException | None) -> OSError | None:
    """
    A copy of the operating system's error behind a failure of an HTTP library, if there is one.

    The library's own errors are not kept as a cause: they may hold URLs and headers with keys.
    """
    for _ in range(_MAX_CAUSES):
        if failure is None:
            return None
        error = getattr(failure, "os_error", failure)
        # `socket.gaierror` is that of a failed look-up.
        if isinstance(error, OSError) and type(error).__module__ in {"builtins", "socket"}:
            return type(error)(*error.args)
        failure = failure.__cause__ or failure.__context__
    return None


def connection_error(failure: BaseException | None) -> OSError | EOFError:
    """What ended a connection: the operating system's error, or `EOFError` if the server did."""
    return system_error(failure) or EOFError("The server closed the connection.")


def too_large(request: HttpRequest | None, limit: int) -> DecodeError:
    """The error for a body over the limit."""
    source = "" if request is None else f" from {host_of(request)}"
    return DecodeError(
        f"The response{source} is larger than {limit} bytes. "
        "To allow it, pass limits=Limits(body=…) to the adapter or the transport."
    )


def is_one_value(headers: Mapping[str, str]) -> bool:
    """Whether the body is one JSON value (and not a stream of events), even if read in chunks."""
    return "json" in headers.get("content-type", "")


class Bounded:
    """The chunks of a body; raises `DecodeError` when their total size is over the limit."""

    __slots__ = ("_chunks", "_limit", "_request", "_room")

    def __init__(
        self, chunks: AsyncIterator[bytes], request: HttpRequest | None, limit: int
    ) -> None:
        self._chunks = chunks
        self._request = request
        self._limit = self._room = limit

    def __aiter__(self) -> Bounded:
        return self

    async def __anext__(self) -> bytes:
        chunk = await anext(self._chunks)
        self._room -= len(chunk)
        if self._room < 0:
            raise too_large(self._request, self._limit)
        return chunk
