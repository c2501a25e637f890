"""What the `mcp` package raises -> our errors, with nothing secret in them."""

from __future__ import annotations

from collections.abc import Sequence

from interlingua.spec.errors import (
    ConfigurationError,
    DecodeError,
    InvalidToolCallError,
    NetworkError,
    RequestTimeoutError,
    SDKError,
)
from interlingua.wire.classify import Fault, make_error, redact

METHOD_UNKNOWN = -32601
_CLOSED = -32000
_TIMED_OUT = -32001
_BAD_REQUEST = -32600
_FORGOTTEN = "Session terminated"  # what the `mcp` package makes of a 404
_INTERNAL = -32603
_REFUSED = "Server returned an error response"  # and of any other status from 400 up
_BAD_CALL = frozenset((METHOD_UNKNOWN, -32602))
_LONGEST = 2_000


def scrub(text: str, secrets: Sequence[str]) -> str:
    """The text without these secrets, nor anything else that looks like a key."""
    for secret in secrets:
        text = text.replace(secret, "[redacted]")
    return redact(text)


def code_of(error: BaseException) -> int | None:
    """The JSON-RPC code of an error that a server or the protocol gave."""
    code = getattr(error, "code", None)
    return code if isinstance(code, int) else None


def is_closed(error: BaseException) -> bool:
    """Whether the connection is gone, and not only this call."""
    return code_of(_first(error)) == _CLOSED


def is_forgotten(error: BaseException) -> bool:
    """Whether the server has forgotten the session, so that a new one has to be begun."""
    cause = _first(error)
    return code_of(cause) == _BAD_REQUEST and str(cause) == _FORGOTTEN


def connect_failure(
    error: BaseException, name: str, *, status: int | None = None, secrets: Sequence[str] = ()
) -> SDKError:
    """Why no session came about; `status` is that of the last HTTP response, if any."""
    cause = _first(error)
    if isinstance(cause, SDKError):
        return cause
    if status is not None and status >= 400:
        said = Fault(f"the MCP server {name} refuses the session: {_say(cause, secrets)}")
        return make_error(status, {}, said)
    if type(cause) in {FileNotFoundError, PermissionError, NotADirectoryError, OSError, ValueError}:
        said_why = scrub(getattr(cause, "strerror", None) or str(cause), secrets)
        return ConfigurationError(f"the MCP server {name} cannot be started: {said_why}")
    if isinstance(cause, ValueError):
        return DecodeError(f"the MCP server {name} cannot be read: {_say(cause, secrets)}")
    if code_of(cause) == _CLOSED:
        return NetworkError(f"the MCP server {name} ended before there was a session")
    return NetworkError(f"no session with the MCP server {name}: {_say(cause, secrets)}")


def call_failure(
    error: BaseException,
    name: str,
    *,
    timeout: float | None = None,
    statuses: Sequence[int] = (),
    secrets: Sequence[str] = (),
) -> SDKError:
    """
    Why a call gave no result. The model may read it.

    `statuses` are those of the HTTP responses that were refusals meanwhile, of any call.
    """
    cause = _first(error)
    if isinstance(cause, SDKError):
        return cause
    if code_of(cause) == _INTERNAL and str(cause) == _REFUSED and len(set(statuses)) == 1:
        said_so = Fault(f"the MCP server {name} refuses the call with HTTP {statuses[0]}")
        return make_error(statuses[0], {}, said_so)
    code = code_of(cause)
    if isinstance(cause, TimeoutError) or code == _TIMED_OUT:
        within = "" if timeout is None else f" within {timeout:g} s"
        return RequestTimeoutError(
            f"the MCP server {name} did not answer{within}", phase="request", retryable=False
        )
    said = _say(cause, secrets)
    if code == _CLOSED:
        return NetworkError(f"the MCP server {name} is gone: {said}")
    if code in _BAD_CALL:
        return InvalidToolCallError(f"the MCP server {name} refuses the call: {said}")
    if code is not None:
        return SDKError(f"the MCP server {name} failed: {said}")
    if isinstance(cause, (RuntimeError, ValueError)):  # a result that is not what was declared
        return DecodeError(f"the MCP server {name} gave a bad result: {said}")
    return NetworkError(f"the MCP server {name} is gone: {said}")


def _first(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _say(error: BaseException, secrets: Sequence[str]) -> str:
    return scrub(str(error) or type(error).__name__, secrets)[:_LONGEST]
