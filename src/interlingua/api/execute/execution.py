"""`execute`: a run with callbacks, whose errors are returned in the result."""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Iterable, Mapping
from typing import Any, Unpack

import msgspec

from interlingua.api.execute.callbacks import Callbacks, Notifier
from interlingua.api.run.generate import StreamResult
from interlingua.api.run.loop import GenerateResult
from interlingua.api.run.options import Resumable, TimeoutConfig, check_options, timeouts_of
from interlingua.api.run.run import Run
from interlingua.api.tools.runner import ToolErrorText
from interlingua.client.client import Client
from interlingua.providers.cancel import AbortSignal, CancelScope
from interlingua.spec.content import ToolCall
from interlingua.spec.errors import (
    AbortError,
    ConfigurationError,
    RequestTimeoutError,
    SDKError,
)
from interlingua.spec.messages import Message
from interlingua.spec.plain_dicts import AnyMessage
from interlingua.spec.request import AnyTool, ToolChoice, list_tools
from interlingua.spec.response import Reason, Response, Usage

MAX_TOOL_ROUNDS = 20
"""The default of `max_tool_rounds`."""


class ExecuteSettings(Callbacks, total=False):
    """The settings of the request, of the run, and the callbacks."""

    system: str | None
    tools: Iterable[AnyTool] | None
    tool_choice: ToolChoice | str | None
    """As in `generate`; ignored if there are no tools."""
    temperature: float | None
    max_tokens: int | None
    thinking_budget: int | None
    include_thinking: bool | None
    reasoning_effort: str | None
    provider: str | None
    provider_options: Mapping[str, Any]
    max_tool_rounds: int
    tool_timeout: float | None
    tool_error: ToolErrorText | None
    deps: Any
    resume: GenerateResult[Any] | SDKError | Resumable | None
    """The result or the error of an earlier run to go on with, instead of messages."""
    approvals: Mapping[str, bool] | None
    """Decisions about `result.pending_approvals`, by call id."""
    max_retries: int
    timeout: float | TimeoutConfig | None
    abort_signal: AbortSignal | None
    api_key: str | None
    """The API key for this execution; see `generate`."""
    base_url: str | None
    headers: Mapping[str, str] | None


class ExecuteOptions(ExecuteSettings, total=False):
    """The options of `execute`."""

    client: Client | None
    """The client to use. Defaults to the module-level client."""


_OWN_OPTIONS = frozenset((*Callbacks.__annotations__, "abort_signal"))


class Execution:
    """
    A running execution: await it for its result, which also reports errors.

    It may be awaited more than once or not at all. Cancelling a task that awaits it cancels it.
    """

    def __init__(
        self, model: str, messages: Iterable[AnyMessage] | str | None, options: ExecuteOptions
    ) -> None:
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            raise ConfigurationError(
                "execute needs a running event loop. Use interlingua.sync.execute in blocking code."
            ) from None
        # Timeouts include the time of callbacks.
        self._scope = CancelScope(pauses=False)
        self._task = loop.create_task(self._work(model, messages, options))
        _running.add(self._task)  # a task without a reference may be garbage collected
        self._task.add_done_callback(_running.discard)

    def __await__(self) -> Generator[Any, None, ExecuteResult]:
        return self._task.__await__()

    @property
    def is_done(self) -> bool:
        """Whether the execution has ended."""
        return self._task.done()

    def cancel(self) -> None:
        """
        Cancel the execution, from any thread: closes the connection and cancels tools.

        The result has what had arrived, and an error with the code `cancelled`.
        """
        self._scope.cancel("The execution was cancelled.")

    async def _work(
        self, model: str, messages: Iterable[AnyMessage] | str | None, options: ExecuteOptions
    ) -> ExecuteResult:
        scope, loop = self._scope, asyncio.get_running_loop()
        notifier = Notifier(options, lambda: scope.cancel("A callback failed."))
        # This also ends a callback that hangs.
        scope.signal.add_callback(lambda: loop.call_soon_threadsafe(notifier.stop))
        record = _Record()
        failure: Exception | None = None
        try:
            try:
                self._limit(options)
                await self._run(model, messages, options, notifier, record)
            except Exception as error:  # noqa: BLE001 -- errors are returned in the result
                failure = error
            await notifier.settle()
        finally:
            scope.close()
            notifier.stop()
        if failure is None and scope.cause == "timeout":
            failure = scope.error()
        if notifier.error is not None:
            return record.result(ExecuteError.of(notifier.error, CALLBACK_FAILED), failure)
        return record.result(None if failure is None else ExecuteError.of(failure), failure)

    def _limit(self, options: ExecuteOptions) -> None:
        """Link the scope to the caller's signal and total timeout."""
        signal, timeout = options.get("abort_signal"), options.get("timeout")
        check_options({"abort_signal": signal, "timeout": timeout})
        if signal is not None:
            self._scope.link(signal)
        total = timeouts_of(timeout).total
        if total is not None:
            self._scope.limit_total(total)

    async def _run(
        self,
        model: str,
        messages: Iterable[AnyMessage] | str | None,
        options: ExecuteOptions,
        notifier: Notifier,
        record: _Record,
    ) -> None:
        fields = _fields(options)
        check_options(fields, ExecuteOptions.__annotations__)
        settings = {
            "max_tool_rounds": MAX_TOOL_ROUNDS,
            **fields,
            "messages": messages,
            "tool_observer": notifier,
        }
        record.run = run = Run(model, None, settings, scope=self._scope)
        async with StreamResult(run) as events:
            async for event in events:
                notifier.notify(event)
                if not notifier.is_settled:
                    await notifier.settle()
                if notifier.error is not None:
                    record.partial = events.partial_response
                    return


_running: set[asyncio.Task[ExecuteResult]] = set()


def execute(
    model: str,
    messages: Iterable[AnyMessage] | str | None = None,
    **options: Unpack[ExecuteOptions],
) -> Execution:
    """
    Ask a model, run the tools it calls, and call callbacks as the answer arrives.

        execution = execute("openai:gpt-5.2", "Weather in Oslo?", on_chunk=show, tools=[look])
        result = await execution  # execution.cancel() ends it early
        print(result.text if result.error is None else result.error.message)

    It begins at once. Errors are not raised: they are in `result.error`, and the result has what
    arrived before. Messages may be `Message` objects, strings or plain dicts.
    """
    return Execution(model, messages, options)


class _Record:
    """The state of an execution, to make its result from."""

    def __init__(self) -> None:
        self.run: Run | None = None
        self.partial: Response | None = None
        """The partial answer of a run that was stopped by a callback."""

    def result(self, error: ExecuteError | None, failure: Exception | None) -> ExecuteResult:
        """The result so far, with an error if there is one."""
        if self.run is None:
            return ExecuteResult(error=error)
        loop = self.run.loop
        partial = failure.partial if isinstance(failure, SDKError) else self.partial
        answers = loop.answers(partial)
        thoughts = "".join(answer.reasoning or "" for answer in answers)
        usage = loop.total_usage(partial)
        return ExecuteResult(
            text="".join(answer.text for answer in answers),
            reasoning=thoughts or None,
            usage=ExecuteUsage() if usage is None else ExecuteUsage.of(usage),
            error=error,
            finish_reason=answers[-1].finish_reason.reason if answers else None,
            messages=loop.messages,
            pending_approvals=loop.pending_approvals,
        )


def _fields(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options that are passed on to the run."""
    fields = {name: value for name, value in options.items() if name not in _OWN_OPTIONS}
    per_step = timeouts_of(fields.pop("timeout", None)).per_step
    fields["timeout"] = TimeoutConfig(per_step=per_step)
    fields["tools"] = list_tools(fields.get("tools"))
    if not fields["tools"]:  # providers reject a tool choice without tools
        fields.pop("tool_choice", None)
    return fields


CALLBACK_FAILED = "callback_failed"
_UNEXPECTED = "unexpected"
_DEBUG_FIELDS = (
    "retryable", "provider", "request_id", "provider_request_id", "retry_after", "phase", "raw",
)  # fmt: skip


class ExecuteUsage(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """
    Token counts without overlap: the other four add up to `total_tokens`.

    In JSON the names are in camel case (`promptTokens`).
    """

    prompt_tokens: int = 0
    """Input tokens except those read from a cache."""
    completion_tokens: int = 0
    """Output tokens except reasoning."""
    total_tokens: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0

    @classmethod
    def of(cls, usage: Usage) -> ExecuteUsage:
        """Convert from `Usage`."""
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
        """As JSON, with names in camel or snake case."""
        return msgspec.to_builtins(self) if camel else msgspec.structs.asdict(self)


class ExecuteError(msgspec.Struct, frozen=True, kw_only=True):
    """Why an execution failed."""

    message: str
    code: str
    """The provider's code, or `cancelled`, `timeout`, `callback_failed` and others of ours."""
    status_code: int | None = None
    debug: Mapping[str, Any] = {}
    """The type and class of the error and other known fields; contains no API keys."""
    exception: Exception | None = None
    """The exception itself; not part of the JSON."""

    @classmethod
    def of(cls, error: Exception, code: str | None = None) -> ExecuteError:
        """Convert from an exception; `code` overrides its own code."""
        debug: dict[str, Any] = {"type": type(error).__name__}
        if isinstance(error, SDKError):
            debug["error_class"] = str(error.error_class)
        fields = {name: getattr(error, name, None) for name in _DEBUG_FIELDS}
        debug |= {name: value for name, value in fields.items() if value not in (None, "")}
        return cls(
            message=str(error) or type(error).__name__,
            code=code or _code(error),
            status_code=getattr(error, "status_code", None),
            debug=debug,
            exception=error,
        )

    def to_dict(self, *, camel: bool = True) -> dict[str, Any]:
        """As JSON, with names in camel or snake case."""
        fields: dict[str, Any] = {"message": self.message, "code": self.code}
        if self.status_code is not None:
            fields["statusCode" if camel else "status_code"] = self.status_code
        return {**fields, "debug": msgspec.to_builtins(dict(self.debug), enc_hook=repr)}


class ExecuteResult(msgspec.Struct, frozen=True, kw_only=True):
    """
    The result of an execution, also of one that failed or was cancelled.

    `text` and `reasoning` are everything that `on_chunk` and `on_reasoning` received.
    """

    text: str = ""
    reasoning: str | None = None
    usage: ExecuteUsage = ExecuteUsage()
    error: ExecuteError | None = None
    """None on success. Errors are not raised."""
    finish_reason: Reason | None = None
    """Why the last answer ended."""
    messages: tuple[Message, ...] = ()
    """The whole conversation with answers and tool results, to continue with."""
    pending_approvals: tuple[ToolCall, ...] = ()
    """Calls that need approval: continue with `messages` and `approvals={call.id: True}`."""

    def to_dict(self, *, camel: bool = True) -> dict[str, Any]:
        """As JSON, without the conversation and without empty fields."""
        fields: dict[str, Any] = {"text": self.text, "usage": self.usage.to_dict(camel=camel)}
        if self.reasoning is not None:
            fields["reasoning"] = self.reasoning
        if self.error is not None:
            fields["error"] = self.error.to_dict(camel=camel)
        if self.pending_approvals:
            fields["pendingApprovals" if camel else "pending_approvals"] = [
                {"id": call.id, "name": call.name, "args": call.arguments}
                for call in self.pending_approvals
            ]
        return fields


def _code(error: Exception) -> str:
    match error:
        case SDKError(error_code=str(code)) if code:
            return code
        case AbortError():
            return "cancelled"
        case RequestTimeoutError():
            return "timeout"
        case SDKError():
            return str(error.error_class)
        case _:
            return _UNEXPECTED
