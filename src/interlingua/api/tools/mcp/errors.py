"""Converts exceptions of the `mcp` package to our errors, with secrets redacted."""

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
from interlingua.wire.classify import Fault, make_error
from interlingua.wire.secrets import Redactor

# JSON-RPC error codes; the last two are those of the `mcp` package.
METHOD_NOT_FOUND = -32601
_INVALID_REQUEST = -32600
_INVALID_PARAMS = -32602
_INTERNAL_ERROR = -32603
_CONNECTION_CLOSED = -32000
_TIMED_OUT = -32001
# The messages of the `mcp` package for an HTTP 404 and for any other status of 400 and above.
_SESSION_TERMINATED = "Session terminated"
_HTTP_ERROR = "Server returned an error response"
_START_FAILURES = (FileNotFoundError, PermissionError, NotADirectoryError, OSError, ValueError)
_MAX_MESSAGE = 2_000
_NO_SECRETS = Redactor()


def code_of(error: BaseException) -> int | None:
    """The JSON-RPC code of an error from the server or the protocol."""
    code = getattr(error, "code", None)
    return code if isinstance(code, int) else None


def is_closed(error: BaseException) -> bool:
    """Whether the connection is closed, so that later calls will fail too."""
    return code_of(_first(error)) == _CONNECTION_CLOSED


def is_session_expired(error: BaseException) -> bool:
    """Whether the server no longer knows the session. MCP then requires a new session."""
    cause = _first(error)
    return code_of(cause) == _INVALID_REQUEST and str(cause) == _SESSION_TERMINATED


def connect_failure(
    error: BaseException, name: str, *, status: int | None = None, redactor: Redactor = _NO_SECRETS
) -> SDKError:
    """
    The error for a session that could not be opened.

    `status` is the status of the last HTTP response, if there was one.
    """
    cause = _first(error)
    if isinstance(cause, SDKError):
        return cause
    reason = _reason(cause, redactor)
    if status is not None and status >= 400:
        message = f"the MCP server {name} rejected the session (HTTP {status}): {reason}"
        return make_error(status, {}, Fault(message))
    # By exact type: subclasses such as ConnectionError and UnicodeDecodeError have other causes.
    if type(cause) in _START_FAILURES:
        reason = redactor.redact_message(getattr(cause, "strerror", None) or str(cause))
        return ConfigurationError(f"the MCP server {name} could not be started: {reason}")
    if isinstance(cause, ValueError):
        return DecodeError(f"the MCP server {name} sent an invalid message: {reason}")
    if code_of(cause) == _CONNECTION_CLOSED:
        return NetworkError(f"the MCP server {name} ended before the session was open")
    return NetworkError(f"no session with the MCP server {name}: {reason}")


def call_failure(
    error: BaseException,
    name: str,
    *,
    timeout: float | None = None,
    statuses: Sequence[int] = (),
    redactor: Redactor = _NO_SECRETS,
) -> SDKError:
    """
    The error for a call without a result. The model may see its message.

    `statuses` are the HTTP error statuses that any call received during this one.
    """
    cause = _first(error)
    if isinstance(cause, SDKError):
        return cause
    code = code_of(cause)
    # The `mcp` package does not say which call a status belongs to.
    if code == _INTERNAL_ERROR and str(cause) == _HTTP_ERROR and len(set(statuses)) == 1:
        message = f"the MCP server {name} rejected the call (HTTP {statuses[0]})"
        return make_error(statuses[0], {}, Fault(message))
    if isinstance(cause, TimeoutError) or code == _TIMED_OUT:
        limit = "" if timeout is None else f" within {timeout:g} s"
        # Not retryable: the tool may have run.
        return RequestTimeoutError(
            f"the MCP server {name} did not answer{limit}", phase="request", retryable=False
        )
    reason = _reason(cause, redactor)
    if code in (METHOD_NOT_FOUND, _INVALID_PARAMS):
        return InvalidToolCallError(f"the MCP server {name} rejected the call: {reason}")
    if code is not None and code != _CONNECTION_CLOSED:
        return SDKError(f"the MCP server {name} failed: {reason}")
    # The `mcp` package raises these for a result that does not match the tool's output schema.
    if isinstance(cause, (RuntimeError, ValueError)):
        return DecodeError(f"the MCP server {name} returned an invalid result: {reason}")
    return NetworkError(f"the connection to the MCP server {name} is closed: {reason}")


def _first(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _reason(error: BaseException, redactor: Redactor) -> str:
    return redactor.redact_message(str(error) or type(error).__name__)[:_MAX_MESSAGE]
