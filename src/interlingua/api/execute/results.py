"""What `execute` gives back: text, thoughts, tokens in its own terms, and the error if one came."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from interlingua.spec.content import ToolCall
from interlingua.spec.errors import AbortError, ProviderError, RequestTimeoutError, SDKError
from interlingua.spec.messages import Message
from interlingua.spec.response import Reason, Usage

CALLBACK_FAILED = "callback_failed"
_UNEXPECTED = "unexpected"
_TOLD = (
    "retryable",
    "provider",
    "request_id",
    "provider_request_id",
    "retry_after",
    "phase",
    "raw",
)


class ExecuteUsage(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """
    Tokens, each counted once: the four add up to `total_tokens`.

    In JSON the names are `promptTokens` and so on.
    """

    prompt_tokens: int = 0
    """What went in, without what was read from a cache."""
    completion_tokens: int = 0
    """What came out, without the reasoning."""
    total_tokens: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0

    @classmethod
    def of(cls, usage: Usage) -> ExecuteUsage:
        """The same tokens as `Usage` counts them."""
        cached = usage.cache_read_tokens or 0
        reasoning = usage.reasoning_tokens or 0
        return cls(
            prompt_tokens=max(usage.input_tokens - cached, 0),
            completion_tokens=max(usage.output_tokens - reasoning, 0),
            total_tokens=usage.total_tokens,
            cached_tokens=cached,
            reasoning_tokens=reasoning,
        )

    def to_dict(self, *, camel: bool = True) -> dict[str, int]:
        """As JSON, its names in camel or in snake case."""
        return msgspec.to_builtins(self) if camel else msgspec.structs.asdict(self)


class ExecuteError(msgspec.Struct, frozen=True, kw_only=True):
    """Why it ended before its end."""

    message: str
    code: str
    """The provider's, or else one of ours: `cancelled`, `timeout`, `callback_failed`, ..."""
    status_code: int | None = None
    debug: Mapping[str, Any] = {}
    """The error's type, class and whatever else is known of it; no keys."""
    exception: Exception | None = None
    """The error itself, for whoever wants to raise it; not part of the JSON."""

    @classmethod
    def of(cls, error: Exception, code: str | None = None) -> ExecuteError:
        """What is known of an error."""
        debug: dict[str, Any] = {"type": type(error).__name__}
        if isinstance(error, SDKError):
            debug["error_class"] = str(error.error_class)
        told = {name: getattr(error, name, None) for name in _TOLD}
        debug |= {name: value for name, value in told.items() if value not in (None, "")}
        return cls(
            message=str(error) or type(error).__name__,
            code=code or _code(error),
            status_code=getattr(error, "status_code", None),
            debug=debug,
            exception=error,
        )

    def to_dict(self, *, camel: bool = True) -> dict[str, Any]:
        """As JSON, its names in camel or in snake case."""
        found: dict[str, Any] = {"message": self.message, "code": self.code}
        if self.status_code is not None:
            found["statusCode" if camel else "status_code"] = self.status_code
        return {**found, "debug": msgspec.to_builtins(dict(self.debug), enc_hook=repr)}


class ExecuteResult(msgspec.Struct, frozen=True, kw_only=True):
    """
    What came of an execution, also of one that failed or was cancelled.

    `text` and `reasoning` are all that was told to `on_chunk` and `on_reasoning`.
    """

    text: str = ""
    reasoning: str | None = None
    usage: ExecuteUsage = ExecuteUsage()
    error: ExecuteError | None = None
    """None if it went well. Errors are not raised."""
    finish_reason: Reason | None = None
    """Why the last answer ended."""
    messages: tuple[Message, ...] = ()
    """The whole conversation, answers and tools' results included: ready to go on."""
    pending_approvals: tuple[ToolCall, ...] = ()
    """Calls that wait for approval: go on with `messages` and `approvals={call.id: True}`."""

    def to_dict(self, *, camel: bool = True) -> dict[str, Any]:
        """As JSON, without the conversation; what is not there is left out."""
        found: dict[str, Any] = {"text": self.text, "usage": self.usage.to_dict(camel=camel)}
        if self.reasoning is not None:
            found["reasoning"] = self.reasoning
        if self.error is not None:
            found["error"] = self.error.to_dict(camel=camel)
        if self.pending_approvals:
            found["pendingApprovals" if camel else "pending_approvals"] = [
                {"id": call.id, "name": call.name, "args": call.arguments}
                for call in self.pending_approvals
            ]
        return found


def _code(error: Exception) -> str:
    match error:
        case ProviderError(error_code=str(code)) if code:
            return code
        case AbortError():
            return "cancelled"
        case RequestTimeoutError():
            return "timeout"
        case SDKError():
            return str(error.error_class)
        case _:
            return _UNEXPECTED
