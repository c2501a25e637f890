"""Clocks that ran out and bodies that are too large -> our errors."""

from __future__ import annotations

from urllib.parse import urlsplit

from interlingua.spec.contracts import HttpRequest, Timeouts
from interlingua.spec.errors import DecodeError, RequestTimeoutError, TimeoutPhase

MAX_BODY = 128 * 1024 * 1024
"""The largest body that is read whole, unpacked; a stream has no end to measure."""

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


def too_large(request: HttpRequest, limit: int) -> DecodeError:
    """The error for a body over the limit."""
    return DecodeError(
        f"the reply of {host_of(request)} is larger than {limit} bytes; "
        "give the transport a larger max_body if that is right"
    )
