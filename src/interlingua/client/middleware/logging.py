"""`Logging`: one structured log record per call."""

from __future__ import annotations

import logging
from asyncio import CancelledError
from collections.abc import AsyncGenerator, Callable
from time import perf_counter
from typing import Any

from interlingua.client.middleware.contract import (
    Call,
    CompleteNext,
    PerformNext,
    StreamNext,
)
from interlingua.client.middleware.operation_meter import metered
from interlingua.lazy import Remade
from interlingua.runtime.fold import close_stream
from interlingua.runtime.items import ItemsEnd, WatchedItems
from interlingua.spec.content import Part, ToolCall, ToolResult
from interlingua.spec.errors import AbortError, ErrorClass, SDKError
from interlingua.spec.events import Finish, StreamEvent
from interlingua.spec.messages import Message
from interlingua.spec.request import Request
from interlingua.spec.response import Attempt, Cost, Response, Usage
from interlingua.wire.json_text import dump_text
from interlingua.wire.secrets import redact

CALLS = "interlingua.calls"
"""The name of the default logger."""
_TOKENS = (
    "input_tokens",
    "output_tokens",
    "reasoning_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
)


class Logging(Remade):
    """
    Logs each call when it has ended: one record, with its facts as fields (`extra`).

        client = Client.from_env(middleware=[Logging()])

    A call that failed is logged at `failure_level`, any other at `level`. The records contain
    nothing of what was said, unless `content` is true: then they have the last message and the
    answer, each up to `max_content` characters, without what looks like an API key. `redact` may
    remove more: it is called with each text.
    """

    def __init__(
        self,
        logger: logging.Logger | None = None,
        *,
        level: int = logging.INFO,
        failure_level: int = logging.WARNING,
        content: bool = False,
        max_content: int = 2000,
        redact: Callable[[str], str] | None = None,
    ) -> None:
        self._logger = logger or logging.getLogger(CALLS)
        self._level = level
        self._failure_level = failure_level
        self._content = content
        self._max_content = max_content
        self._redact = redact

    async def complete(self, request: Request, call_next: CompleteNext, call: Call) -> Response:
        """Return the answer of the next layer, and log it."""
        fields, began = _about(request, call, is_stream=False), perf_counter()
        try:
            response = await call_next(request)
        except BaseException as error:
            self._log_failure(fields, began, error, call.attempts(), request)
            raise
        self._log_answer(fields, began, response, call.attempts(), request)
        return response

    async def stream(
        self, request: Request, call_next: StreamNext, call: Call
    ) -> AsyncGenerator[StreamEvent, None]:
        """Yield the events of the next layer, and log their end."""
        fields, began = _about(request, call, is_stream=True), perf_counter()
        events, is_logged = call_next(request), False
        try:
            async for event in events:
                if type(event) is Finish and event.response is not None:
                    is_logged = True
                    self._log_answer(fields, began, event.response, call.attempts(), request)
                yield event
        except BaseException as error:
            if not is_logged:
                await close_stream(events)  # the attempt is on record after that
                self._log_failure(fields, began, error, call.attempts(), request)
            raise
        finally:
            await close_stream(events)

    async def perform(self, operation: Call, value: Any, call_next: PerformNext) -> Any:
        """Return the result of the next layer, and log it."""
        fields = {
            "operation": operation.name,
            "request_id": operation.request_id,
            "session_id": getattr(value, "session_id", None),
            "provider": operation.provider,
            "model": getattr(value, "model", None),
        }
        began = perf_counter()
        try:
            result = await call_next(value)
        except BaseException as error:
            self._log_failure(fields, began, error, operation.attempts(), None)
            raise
        if not isinstance(result, AsyncGenerator):
            usage, cost = metered(result)
            self._log_result(fields, began, usage, cost, operation)
            return result

        async def end(items: ItemsEnd) -> None:
            if items.error is None:
                self._log_result(fields, began, items.usage, items.cost, operation)
            else:
                self._log_failure(fields, began, items.error, operation.attempts(), None)

        return WatchedItems(result, end)

    def _log_result(
        self,
        fields: dict[str, Any],
        began: float,
        usage: Usage | None,
        cost: Cost | None,
        operation: Call,
    ) -> None:
        if not self._logger.isEnabledFor(self._level):
            return
        attempts = operation.attempts()
        facts = {**_amounts(usage, cost), "attempts": len(attempts), "latency_ms": _since(began)}
        self._log(self._level, "ended", fields, facts)

    def _log_answer(
        self,
        fields: dict[str, Any],
        began: float,
        response: Response,
        attempts: tuple[Attempt, ...],
        request: Request,
    ) -> None:
        if not self._logger.isEnabledFor(self._level):
            return
        cost = response.cost or _sum_costs(attempts)
        facts = {
            "finish_reason": response.finish_reason.reason,
            "served_model": response.model,
            **_amounts(response.usage, cost),
            "tool_calls": [part.name for part in response.tool_calls],
            "warnings": [warning.code for warning in response.warnings],
            "attempts": len(attempts),
            "latency_ms": _since(began),
        }
        if self._content:
            facts |= {"input": self._last_of(request), "output": self._show(response.message)}
        self._log(self._level, response.finish_reason.reason, fields, facts)

    def _log_failure(
        self,
        fields: dict[str, Any],
        began: float,
        error: BaseException,
        attempts: tuple[Attempt, ...] | None,
        request: Request | None,
    ) -> None:
        is_left = isinstance(error, (CancelledError, GeneratorExit, AbortError))
        level = self._level if is_left else self._failure_level
        if not self._logger.isEnabledFor(level):
            return
        facts: dict[str, Any] = {
            "error": type(error).__name__,
            "error_class": _class_of(error),
            "latency_ms": _since(began),
        }
        if attempts is not None:
            facts["attempts"] = len(attempts)
        if isinstance(error, SDKError):
            facts |= {"status_code": error.status_code, "retryable": error.retryable}
        if self._content and request is not None:
            facts |= {"input": self._last_of(request), "message_of_error": self._cut(str(error))}
        what = "cancelled" if is_left else f"failed with {type(error).__name__}"
        self._log(level, what, fields, facts)

    def _log(self, level: int, what: str, fields: dict[str, Any], facts: dict[str, Any]) -> None:
        target = ":".join(filter(None, (fields["provider"], fields["model"])))
        name = fields.get("operation", "call")
        text = "%s of %s %s after %s ms"
        extra = {**fields, **facts}
        self._logger.log(level, text, name, target, what, facts["latency_ms"], extra=extra)

    # Content.

    def _last_of(self, request: Request) -> str:
        return self._show(request.messages[-1]) if request.messages else ""

    def _show(self, message: Message) -> str:
        return self._cut("\n".join(map(_text_of, message.content)))

    def _cut(self, text: str) -> str:
        text = redact(text)  # before it is cut: the first half of a key does not look like one
        if self._redact is not None:
            text = self._redact(text)
        return text if len(text) <= self._max_content else f"{text[: self._max_content]}…"


def _text_of(part: Part) -> str:
    """The text of a part; tool calls and results as JSON."""
    if isinstance(part, ToolCall):
        return f"{part.name}({part.raw_arguments or dump_text(part.arguments)})"
    if not isinstance(part, ToolResult):
        return getattr(part, "text", None) or f"[{part.kind}]"
    if part.parts is not None:
        return "\n".join(map(_text_of, part.parts))
    return part.content if isinstance(part.content, str) else dump_text(part.content)


def _about(request: Request, call: Call, *, is_stream: bool) -> dict[str, Any]:
    return {
        "request_id": request.request_id,
        "session_id": request.session_id,
        "step": call.step,
        "provider": request.provider,
        "model": request.model,
        "stream": is_stream,
    }


def _amounts(usage: Usage | None, cost: Cost | None) -> dict[str, Any]:
    """What a call used and cost; tokens only if the usage is known."""
    facts: dict[str, Any] = {
        "cost": None if cost is None else cost.total,
        "currency": None if cost is None else cost.currency,
        "is_cached": cost is not None and cost.source == "cache",
    }
    if usage is not None:
        facts |= {name: getattr(usage, name) for name in _TOKENS}
        facts["is_estimate"] = usage.estimated
    return facts


def _class_of(error: BaseException) -> str:
    if isinstance(error, SDKError):
        return error.error_class.value
    is_left = isinstance(error, (CancelledError, GeneratorExit))
    return (ErrorClass.CANCELLED if is_left else ErrorClass.OTHER).value


def _sum_costs(attempts: tuple[Attempt, ...]) -> Cost | None:
    """The cost of all attempts; None if that of one is unknown."""
    total: Cost | None = None
    for attempt in attempts:
        if attempt.cost is None:
            return None
        total = attempt.cost if total is None else total + attempt.cost
    return total


def _since(began: float) -> float:
    return round((perf_counter() - began) * 1000, 1)
