"""Clocks that ran out and bodies that are too large -> our errors."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from urllib.parse import urlsplit

from interlingua.spec.contracts import HttpRequest, Timeouts
from interlingua.spec.errors import DecodeError, RequestTimeoutError, TimeoutPhase

MAX_BODY = 128 * 1024 * 1024
"""The largest body that is one value, unpacked; a stream of events has no end to measure."""

# Messages name the host, never the URL: its query may hold a key.
_CLOCKS: dict[TimeoutPhase, str] = {
    "connect": "no connection to {host} within {seconds:g} s",
    "first_byte": "no reply from {host} within {seconds:g} s",
    "request": "the exchange with {host} took longer than {seconds:g} s",
    "stream_read": "the stream from {host} was silent for {seconds:g} s",
}


def host_of(request: HttpRequest) -> str:
    """The host a request goes to, for messages."""
    try:
        return urlsplit(request.url).hostname or "no host"
    except ValueError:
        return "no host"


def timeout_error(
    phase: TimeoutPhase, request: HttpRequest, timeouts: Timeouts
) -> RequestTimeoutError:
    """The error for a clock that ran out; a read that was slow is not retried unasked."""
    seconds = getattr(timeouts, phase) or 0
    text = _CLOCKS[phase].format(host=host_of(request), seconds=seconds)
    return RequestTimeoutError(text, phase=phase, retryable=phase == "connect")


def head_clock(timeouts: Timeouts) -> tuple[float | None, TimeoutPhase]:
    """The seconds in which the head of a reply must come, and whose they are."""
    first, whole = timeouts.first_byte, timeouts.request
    if first is not None and (whole is None or first < whole):
        return first, "first_byte"
    return whole, "request"


def too_large(request: HttpRequest | None, limit: int) -> DecodeError:
    """The error for a body over the limit."""
    whose = "" if request is None else f" of {host_of(request)}"
    return DecodeError(
        f"the reply{whose} is larger than {limit} bytes; "
        "give the transport a larger max_body if that is right"
    )


def is_one_value(headers: Mapping[str, str]) -> bool:
    """Whether the body is one JSON value, though it may be read as it comes."""
    return "json" in headers.get("content-type", "")


class Bounded:
    """The chunks of a body that is one value; `DecodeError` once they are over the limit."""

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
