"""
The errors of this library.

    SDKError
    ├── ProviderError                  the provider answered with an error
    │   ├── AuthenticationError        401: key missing, wrong or expired
    │   ├── AccessDeniedError          403: the key has no permission for this
    │   ├── NotFoundError              404: no such model or endpoint
    │   ├── InvalidRequestError        400, 409, 422: the request itself is wrong
    │   ├── RateLimitError             429: too many requests or tokens
    │   ├── ServerError                5xx, 499: the provider failed or is overloaded
    │   ├── ContentFilterError         blocked by a safety filter
    │   ├── ContextLengthError         more tokens than the model's context window
    │   ├── QuotaExceededError         402: billing or quota used up
    │   ├── CircuitOpenError           not sent: the provider has failed too often
    │   └── ProviderTimeoutError       408: the provider timed out (also a RequestTimeoutError)
    ├── RequestTimeoutError            a timeout of ours (also a TimeoutError)
    ├── AbortError                     the caller cancelled
    ├── NetworkError                   no usable connection (also a ConnectionError)
    ├── StreamError                    a stream ended early or was malformed
    ├── DecodeError                    bytes or JSON that cannot be read
    │   └── MismatchError              a JSON value does not fit its type
    ├── InvalidToolCallError           tool arguments do not match the declaration
    ├── NoObjectGeneratedError         structured output failed
    ├── BudgetExceededError            a budget of the caller's is used up
    ├── RunLimitError                  a run reached a limit of the caller's
    ├── StoreError                     the store of limits, caches or sessions failed
    └── ConfigurationError             set up or called wrongly
        └── UnsupportedError           the target cannot express this
            └── UnsupportedToolChoiceError
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, TypeAlias, TypedDict, Unpack

import msgspec

if TYPE_CHECKING:
    from datetime import datetime

    from interlingua.spec.messages import Message
    from interlingua.spec.response import Attempt, Cost, RateLimitInfo, Response, Usage


TimeoutPhase: TypeAlias = Literal[
    "connect", "first_byte", "request", "stream_read", "stream_content", "total"
]
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


class Problem(msgspec.Struct, frozen=True):
    """One thing that is wrong with a JSON value."""

    path: str
    """Where in the value."""
    message: str
    """What is wrong there."""
    is_right_type: bool = False
    """The value has the right JSON type but is invalid: too small, say, or not a real date."""

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


class ErrorFacts(TypedDict, total=False):
    """What an error may know besides its message: the keywords of errors and of `add_facts`."""

    provider: str | None
    model: str | None
    status_code: int | None
    error_code: str | None
    request_id: str | None
    provider_request_id: str | None
    retry_after: float | None
    advice: str | None
    raw: Any
    attempts: tuple[Attempt, ...] | None
    partial: Response | None
    messages: tuple[Message, ...] | None
    steps: tuple[Any, ...] | None
    total_usage: Usage | None
    total_cost: Cost | None
    job: str | None
    # Facts of one class each. Another class raises a TypeError for them.
    phase: TimeoutPhase | None
    path: str | None
    setting: str | None
    text: str | None
    response: Response | None
    problems: tuple[Any, ...] | None
    rate_limit: RateLimitInfo | None
    used: float | None
    limit: float | None
    scope: str | None
    renews_at: datetime | None


class SDKError(Exception):
    """
    The base of every error of this library.

    Fields that are not known are None. `str(error)` begins with the provider and the model
    where they are known, and says how many attempts were made; `message` is the text alone.
    """

    error_class: ClassVar[ErrorClass] = ErrorClass.OTHER
    default_retryable: ClassVar[bool] = False

    message: str
    """What happened and what to do about it."""
    retryable: bool
    """Whether the same call may succeed if it is repeated."""
    provider: str | None = None
    """The adapter that was called."""
    model: str | None = None
    """The model that was asked for."""
    status_code: int | None = None
    """The HTTP status, if there was one."""
    error_code: str | None = None
    """The provider's own code or type of the error; `not_configured` if there is no key for it."""
    request_id: str | None = None
    """The id of our request."""
    provider_request_id: str | None = None
    """The provider's own id of the request, for its support."""
    retry_after: float | None = None
    """Seconds to wait before a retry, as the provider asked."""
    advice: str | None = None
    """Why it was not retried, where that needs saying; `str(error)` ends with it."""
    has_alternative: bool = False
    """Whether another key or endpoint of the provider is left for a retry (see `Balance`)."""
    raw: Any = None
    """The body of the error as it came, keys redacted."""
    attempts: tuple[Attempt, ...] | None = None
    """The attempts that were made, the failed one included."""
    partial: Response | None = None
    """What had arrived before the call failed."""
    messages: tuple[Message, ...] | None = None
    """The conversation of the run so far."""
    steps: tuple[Any, ...] | None = None
    """The finished steps (`StepResult`) of the run."""
    total_usage: Usage | None = None
    """The tokens of all steps of the run, the failed one included."""
    total_cost: Cost | None = None
    """What the run has cost, failed attempts included; None if the price of a part is unknown."""
    job: str | None = None
    """The job that failed or was waited for, as `provider:id`; with it the program can go on."""
    __cause__: BaseException | None

    def __init__(
        self,
        message: str,
        *,
        retryable: bool | None = None,
        cause: BaseException | None = None,
        **facts: Unpack[ErrorFacts],
    ) -> None:
        super().__init__(message)
        self.message = message
        self.retryable = self.default_retryable if retryable is None else retryable
        if cause is not None:
            self.__cause__ = cause
        self.add_facts(**facts)

    def add_facts(self, **facts: Unpack[ErrorFacts]) -> Self:
        """Set the given fields that are still None. A field that is set is never overwritten."""
        for name, value in facts.items():
            if not hasattr(type(self), name):
                raise TypeError(f"{type(self).__name__} has no field {name!r}")
            if value is not None and name not in vars(self):
                setattr(self, name, value)
        return self

    def prefix(self, place: str) -> Self:
        """Begin the message with the place of the error, such as the request of a batch."""
        self.message = f"{place}: {self.message}"
        return self

    def rename(self, known: str, place: str) -> Self:
        """Give the place of the error as the caller knows it, such as the name of an argument."""
        self.message = self.message.replace(known, place, 1)
        return self

    def add_cause(self, cause: BaseException | None) -> None:
        """Set the exception that led to this one, if none is set."""
        if self.__cause__ is None and cause is not None:
            self.__cause__ = cause

    def drop_partial(self) -> None:
        """Forget the partial response, because a middleware has not let it through."""
        vars(self).pop("partial", None)

    def forbid_retry(self) -> None:
        """Say that the call cannot be repeated, for instance as its body can be read only once."""
        self.retryable = False

    def offer_retry(self, after: float) -> None:
        """Say that a retry goes to another key or endpoint, which need not wait as long."""
        self.has_alternative = True
        if self.error_class is ErrorClass.AUTH or isinstance(self, QuotaExceededError):
            self.retryable = True
        if self.retry_after is not None:
            self.retry_after = after

    def add_outcome(self, attempts: tuple[Attempt, ...], advice: str | None = None) -> None:
        """Say what was tried besides: all attempts of the call, and what became of them."""
        self.attempts = attempts or None
        self.advice = "; ".join(filter(None, (self.advice, advice))) or None

    @property
    def cause(self) -> BaseException | None:
        """The exception that led to this one; the same as `__cause__`."""
        return self.__cause__

    def __str__(self) -> str:
        names = (name for name in (self.provider, self.model) if name)
        label = ":".join(names)
        notes = [] if self.advice is None else [self.advice]
        if self.attempts is not None and len(self.attempts) > 1:
            notes.insert(0, f"{len(self.attempts)} attempts")
        if self.job is not None:
            notes.append(f"job {self.job}")
        text = f"{self.message} ({'; '.join(notes)})" if notes else self.message
        return text if not label or text.startswith(label) else f"{label}: {text}"


class ProviderError(SDKError):
    """
    The provider answered with an error.

    Cause: the provider refused or failed, and no narrower class fits.

    Cure: read `status_code`, `error_code` and `raw`; `provider_request_id` is for the provider's
    support.
    """

    rate_limit: RateLimitInfo | None = None
    """The rate limits in the headers of the reply, if there were any."""


class AuthenticationError(ProviderError):
    """
    The key is missing, wrong or expired.

    Cause: the key is not set, was revoked, or belongs to another service or project.

    Cure: set the variable of the provider, or pass `api_key=`; `interlingua doctor` shows which
    keys are found.
    """

    error_class = ErrorClass.AUTH


class AccessDeniedError(ProviderError):
    """
    The key is valid but has no permission for this.

    Cause: the account has no access to the model, the region or the feature.

    Cure: ask for access at the provider, or use another model.
    """

    error_class = ErrorClass.AUTH


class NotFoundError(ProviderError):
    """
    No such model or endpoint.

    Cause: the name of the model is wrong or retired, or `base_url` has a wrong path.

    Cure: compare with `interlingua models --live`; the address of a compatible server ends in its
    version.
    """

    error_class = ErrorClass.INVALID_REQUEST


class InvalidRequestError(ProviderError):
    """
    The request is wrong; sending it again cannot help.

    Cause: a value that the provider does not accept, often in `provider_options`, or a broken
    history.

    Cure: `client.explain(request)` shows what is sent; `raw` has the words of the provider.
    """

    error_class = ErrorClass.INVALID_REQUEST


class RateLimitError(ProviderError):
    """
    Too many requests or tokens for now.

    Cause: the limit of requests or tokens per minute of the key or model, or of a `RateLimit`.

    Cure: wait `retry_after` seconds; raise `max_retries`, add `RateLimit`, or use several keys with
    `Balance`.
    """

    error_class = ErrorClass.RATE_LIMIT
    default_retryable = True


class ServerError(ProviderError):
    """
    The provider failed or is overloaded.

    Cause: an outage or overload at the provider, or a proxy before it.

    Cure: retry later, or add `Fallback` to another model; a circuit breaker saves the waiting.
    """

    error_class = ErrorClass.SERVER_ERROR
    default_retryable = True


class ContentFilterError(ProviderError):
    """
    A safety filter blocked the prompt or the answer.

    Cause: the prompt or the answer touches what the provider does not allow.

    Cure: change the prompt; the provider's settings of safety may be loosened by
    `provider_options`.
    """

    error_class = ErrorClass.INVALID_REQUEST


class ContextLengthError(ProviderError):
    """
    The input does not fit the model's context window.

    Cause: the messages, tools and files have more tokens than the model accepts.

    Cure: send less, use `on_overflow="truncate"` or a function that summarizes, or a model with
    more context.
    """

    error_class = ErrorClass.CONTEXT_OVERFLOW


class QuotaExceededError(ProviderError):
    """
    Billing or quota is used up; waiting does not help.

    Cause: the credit of the account, or a monthly limit, is used up.

    Cure: add credit or raise the limit at the provider; `Fallback` goes to another one meanwhile.
    """

    error_class = ErrorClass.RATE_LIMIT


class CircuitOpenError(ProviderError):
    """
    The call was not sent because the provider has failed too often; see `retry_after`.

    Cause: a `CircuitBreaker` has counted too many failures of this provider or model.

    Cure: wait `retry_after` seconds, or add `Fallback`; the cause is the failures before it.
    """

    error_class = ErrorClass.SERVER_ERROR
    default_retryable = True


class RequestTimeoutError(SDKError, TimeoutError):
    """
    A request or stream took too long.

    Cause: `timeout=`, or a limit of `Timeouts`, was reached; `phase` says which.

    Cure: allow more time, ask for a shorter answer, or stream: then only pauses are limited.
    """

    error_class = ErrorClass.NETWORK
    default_retryable = True

    phase: TimeoutPhase | None = None
    """
    Which clock ran out. Only `connect` shows that nothing was sent, so only it is retried by
    default. None where a provider reports a timeout of its own.
    """


class ProviderTimeoutError(ProviderError, RequestTimeoutError):
    """
    The provider reported a timeout of its own.

    Cause: the answer took the provider too long, often with much thinking or output.

    Cure: retry, ask for less, or stream the answer.
    """

    error_class = ErrorClass.NETWORK
    default_retryable = True


class AbortError(SDKError):
    """
    The caller cancelled.

    Cause: an `AbortSignal`, `client.cancel` or the end of a task; `partial` has what had arrived.

    Cure: none is needed; `resume=` goes on with a run.
    """

    error_class = ErrorClass.CANCELLED


class NetworkError(SDKError, ConnectionError):
    """
    No usable connection.

    Cause: no such host, no route, a refused or broken connection, a proxy, or a certificate.

    Cure: check `base_url`, the proxy variables and the certificates; `interlingua doctor --online`
    tries it.
    """

    error_class = ErrorClass.NETWORK
    default_retryable = True

    phase: TimeoutPhase | None = None
    """`connect` if there was never a connection, so that nothing was sent; else None."""


class StreamError(SDKError):
    """
    A stream ended before its terminal event, or was malformed.

    Cause: the connection broke in the middle, or the server sends something else than its dialect.

    Cure: retry; `partial` has what had arrived. If it repeats, check the server with `interlingua
    check --endpoint`.
    """

    error_class = ErrorClass.SERVER_ERROR
    default_retryable = True


class DecodeError(SDKError):
    """
    Bytes that are not JSON, or JSON of the wrong shape.

    Cause: a server that does not follow its dialect, a proxy's error page, or a damaged document.

    Cure: look at `raw` and `path`; choose the dialect of the server with `dialect=`.
    """

    error_class = ErrorClass.SERVER_ERROR

    path: str | None = None
    """Where in the JSON, e.g. `messages[2].role`."""


class MismatchError(DecodeError):
    """
    A JSON value does not fit its type.

    Cause: a JSON value that is not of the Python type asked for.

    Cure: `problems` lists what differs; widen the type, or describe the fields for the model.
    """

    problems: tuple[Problem, ...] = ()
    """Everything that is wrong with it."""


class InvalidToolCallError(SDKError):
    """
    The arguments of a tool call do not match what the tool declares.

    Cause: the model wrote arguments that are no JSON, or do not match the schema.

    Cure: the error is sent to the model, which may correct itself; simplify the schema, or pass
    `repair_tool_call=`.
    """


class NoObjectGeneratedError(SDKError):
    """
    Structured output could not be read or does not fit the schema.

    Cause: the model wrote no JSON, was cut off, or broke the schema; `problems` says what.

    Cure: raise `max_tokens` or `max_validation_retries`, simplify the schema, or use a model that
    enforces it.
    """

    text: str = ""
    """The text that should have been the object, as the model wrote it."""
    response: Response | None = None
    """The whole answer."""
    problems: tuple[str, ...] = ()
    """What is wrong with it, each as `path: what`."""


class BudgetExceededError(SDKError):
    """
    A budget that the caller set is used up; the call was not sent.

    Cause: what is spent and reserved leaves too little for the call.

    Cure: wait until `renews_at`, raise the `Budget`, or lower `max_tokens`, which is what is
    reserved.
    """

    error_class = ErrorClass.RATE_LIMIT

    used: float | None = None
    """The dollars that are spent or reserved."""
    limit: float | None = None
    """The dollars of the budget."""
    scope: str | None = None
    """What the budget is for, such as `user=alice`."""
    renews_at: datetime | None = None
    """When the period ends, or when there may be enough again; None if that is never or unknown."""


class RunLimitError(SDKError):
    """
    A run reached a limit that the caller set, such as a number of steps or a cost.

    Cause: a limit of `RunLimits`: requests, tokens, dollars or tool calls.

    Cure: raise the limit, and go on with `resume=` and the error.
    """


class StoreError(SDKError):
    """
    The store that holds limits, caches or sessions cannot be reached, or is damaged.

    Cause: a disk that is full, a file of a newer version, or a Redis that does not answer.

    Cure: repair the store; `on_store_failure=` decides what happens to calls meanwhile.
    """


class ConfigurationError(SDKError):
    """
    The library was set up or called wrongly.

    Cause: an unknown option or model, a value of the wrong type, a missing key or extra.

    Cure: the message names the place and what to write instead.
    """

    error_class = ErrorClass.INVALID_REQUEST

    setting: str | None = None
    """The name of the setting that is wrong, if it is one."""


class UnsupportedError(ConfigurationError):
    """
    The target cannot express this, and the loss policy forbids dropping it.

    Cause: the model or its dialect lacks what the request asks for.

    Cure: use another model, leave it out, or accept the loss with `on_loss="warn"`.
    """


class UnsupportedToolChoiceError(UnsupportedError):
    """
    The target does not support this tool choice.

    Cause: the target cannot be forced to call a tool, for instance while it thinks.

    Cure: use `tool_choice="auto"`, switch thinking off, or accept the loss with `on_loss="warn"`.
    """
