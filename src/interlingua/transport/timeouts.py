"""Errors for timeouts and for bodies that are too large, shared by the transports."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from urllib.parse import urlsplit

from interlingua.spec.contracts import HttpRequest, Timeouts
from interlingua.spec.errors import DecodeError, RequestTimeoutError, TimeoutPhase

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
        return "no host"
    if not parts.hostname or port is None:
        return parts.hostname or "no host"
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{host}:{port}"


def timeout_error(
    phase: TimeoutPhase, request: HttpRequest, timeouts: Timeouts
) -> RequestTimeoutError:
    """The error for a timeout. Only a connect timeout is retryable by default."""
    seconds = getattr(timeouts, phase) or 0
    text = _MESSAGES[phase].format(host=host_of(request), seconds=seconds)
    # After the request was sent the provider may have worked on it, and a retry may cost twice.
    return RequestTimeoutError(text, phase=phase, retryable=phase == "connect")


def next_deadline(
    timeouts: Timeouts, phase: TimeoutPhase, began: float, waiting_since: float
) -> tuple[float | None, TimeoutPhase]:
    """
    The time at which the exchange has lasted too long, and the timeout that says so.

    `phase` is `first_byte` until the headers arrive, then `request` for a whole body and
    `stream_read` for a stream.
    """
    since, seconds, reason = began, timeouts.request, phase
    if phase == "stream_read":
        since, seconds = waiting_since, timeouts.stream_read
    elif phase == "first_byte":
        first = timeouts.first_byte
        if first is None or (seconds is not None and seconds <= first):
            reason = "request"
        else:
            seconds = first
    end = None if seconds is None else since + seconds
    total = None if timeouts.total is None else began + timeouts.total
    if total is not None and (end is None or total < end):
        return total, "total"
    return end, reason


def too_large(request: HttpRequest | None, limit: int) -> DecodeError:
    """The error for a body over the limit."""
    source = "" if request is None else f" from {host_of(request)}"
    return DecodeError(
        f"the response{source} is larger than {limit} bytes; "
        "to allow it, pass limits=Limits(body=…) to the adapter or the transport"
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
