"""
What can go wrong.

    SDKError
    ├── ProviderError                  the provider said no
    │   ├── AuthenticationError        401: key missing, wrong or expired
    │   ├── AccessDeniedError          403: the key may not do this
    │   ├── NotFoundError              404: no such model or endpoint
    │   ├── InvalidRequestError        400, 409, 422: the request itself is wrong
    │   ├── RateLimitError             429: too fast
    │   ├── ServerError                5xx: their fault
    │   ├── ContentFilterError         blocked by a safety filter
    │   ├── ContextLengthError         more tokens than the model's window
    │   ├── QuotaExceededError         billing or quota used up
    │   └── ProviderTimeoutError       408, 504: they ran out of time (also a RequestTimeoutError)
    ├── RequestTimeoutError            a clock of ours ran out
    ├── AbortError                     the caller gave up
    ├── NetworkError                   no usable connection
    ├── StreamError                    a stream ended early or made no sense
    ├── DecodeError                    bytes or JSON that cannot be read
    ├── InvalidToolCallError           tool arguments are not what was declared
    ├── NoObjectGeneratedError         structured output did not come out
    └── ConfigurationError             set up or called wrongly
        └── UnsupportedError           the target cannot say this
            └── UnsupportedToolChoiceError

And a `MismatchError` is a DecodeError: what `convert` raises, next to which it stands.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

if TYPE_CHECKING:
    from interlingua.spec.response import Response, Usage


TimeoutPhase: TypeAlias = Literal["connect", "first_byte", "request", "stream_read"]
"""The clocks of a transport, as in `Timeouts`."""


class ErrorClass(StrEnum):
    """A closed list, for metrics and routing."""

    RATE_LIMIT = "rate_limit"
    AUTH = "auth"
    SERVER_ERROR = "server_error"
    NETWORK = "network"
    CONTEXT_OVERFLOW = "context_overflow"
    INVALID_REQUEST = "invalid_request"
    CANCELLED = "cancelled"
    OTHER = "other"


class SDKError(Exception):
    """Every error of this library."""

    error_class: ClassVar[ErrorClass] = ErrorClass.OTHER
    default_retryable: ClassVar[bool] = False

    def __init__(
        self,
        message: str,
        *,
        retryable: bool | None = None,
        request_id: str | None = None,
        partial: Response | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.retryable: bool = self.default_retryable if retryable is None else retryable
        self.request_id = request_id
        """The request's; where only the provider has given one, its."""
        self.partial = partial
        """What had come before it failed."""
        self.total_usage: Usage | None = None
        """The tokens of all steps until then, of a run that had begun."""


class ProviderError(SDKError):
    """The provider answered with an error."""

    def __init__(
        self,
        message: str,
        *,
        provider: str = "",
        status_code: int | None = None,
        error_code: str | None = None,
        retry_after: float | None = None,
        raw: Any = None,
        retryable: bool | None = None,
        request_id: str | None = None,
        partial: Response | None = None,
    ) -> None:
        super().__init__(message, retryable=retryable, request_id=request_id, partial=partial)
        self.provider = provider
        self.status_code = status_code
        self.error_code = error_code
        self.retry_after = retry_after
        """Seconds the provider asks to wait."""
        self.raw = raw
        """The body as it came, keys redacted."""
        self.provider_request_id: str | None = None
        """The provider's own id of the request, for its support."""


class AuthenticationError(ProviderError):
    """The key is missing, wrong or expired."""

    error_class = ErrorClass.AUTH


class AccessDeniedError(ProviderError):
    """The key is good but may not do this."""

    error_class = ErrorClass.AUTH


class NotFoundError(ProviderError):
    """No such model or endpoint."""

    error_class = ErrorClass.INVALID_REQUEST


class InvalidRequestError(ProviderError):
    """The request is wrong; sending it again cannot help."""

    error_class = ErrorClass.INVALID_REQUEST


class RateLimitError(ProviderError):
    """Too many requests or tokens for now."""

    error_class = ErrorClass.RATE_LIMIT
    default_retryable = True


class ServerError(ProviderError):
    """The provider failed or is overloaded."""

    error_class = ErrorClass.SERVER_ERROR
    default_retryable = True


class ContentFilterError(ProviderError):
    """A safety filter blocked the prompt or the answer."""

    error_class = ErrorClass.INVALID_REQUEST


class ContextLengthError(ProviderError):
    """The input does not fit the model's window."""

    error_class = ErrorClass.CONTEXT_OVERFLOW


class QuotaExceededError(ProviderError):
    """Billing or quota is used up; waiting does not help."""

    error_class = ErrorClass.RATE_LIMIT


class RequestTimeoutError(SDKError):
    """A request or stream took too long."""

    error_class = ErrorClass.NETWORK
    default_retryable = True

    def __init__(
        self,
        message: str,
        *,
        phase: TimeoutPhase | None = None,
        retryable: bool | None = None,
        request_id: str | None = None,
        partial: Response | None = None,
    ) -> None:
        super().__init__(message, retryable=retryable, request_id=request_id, partial=partial)
        self.phase: TimeoutPhase | None = phase
        """
        Which clock ran out. Only `connect` says that nothing was sent, so only it is retryable
        unasked; None where a provider reports a timeout of its own.
        """


class ProviderTimeoutError(ProviderError, RequestTimeoutError):
    """The provider reported a timeout of its own."""

    error_class = ErrorClass.NETWORK
    default_retryable = True


class AbortError(SDKError):
    """The caller cancelled."""

    error_class = ErrorClass.CANCELLED


class NetworkError(SDKError):
    """No usable connection."""

    error_class = ErrorClass.NETWORK
    default_retryable = True


class StreamError(SDKError):
    """A stream ended before its end, or made no sense."""

    error_class = ErrorClass.SERVER_ERROR
    default_retryable = True


class DecodeError(SDKError):
    """Bytes that are not JSON, or JSON of the wrong shape."""

    error_class = ErrorClass.SERVER_ERROR

    def __init__(
        self,
        message: str,
        *,
        path: str | None = None,
        retryable: bool | None = None,
        request_id: str | None = None,
        partial: Response | None = None,
    ) -> None:
        super().__init__(message, retryable=retryable, request_id=request_id, partial=partial)
        self.path = path
        """Where in the JSON, e.g. `messages[2].role`."""


class InvalidToolCallError(SDKError):
    """The arguments of a tool call are not what the tool declares."""


class NoObjectGeneratedError(SDKError):
    """Structured output could not be read or does not fit the schema."""

    def __init__(
        self,
        message: str,
        *,
        text: str = "",
        response: Response | None = None,
        problems: Sequence[str] = (),
        retryable: bool | None = None,
        request_id: str | None = None,
        partial: Response | None = None,
    ) -> None:
        super().__init__(message, retryable=retryable, request_id=request_id, partial=partial)
        self.text = text
        """What was to be the object, as the model wrote it."""
        self.response = response
        """The whole answer."""
        self.problems: tuple[str, ...] = tuple(problems)
        """What is wrong with it, each as `path: what`."""


class ConfigurationError(SDKError):
    """The library was set up or called wrongly."""

    error_class = ErrorClass.INVALID_REQUEST


class UnsupportedError(ConfigurationError):
    """The target cannot say this, and strict mode forbids leaving it out."""


class UnsupportedToolChoiceError(UnsupportedError):
    """The target does not know this way of choosing tools."""
