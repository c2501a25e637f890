"""One run of a high-level function: its loop, tools, deadlines and scope."""

from __future__ import annotations

import threading
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol

from msgspec.structs import replace

from interlingua.api.run.loop import GenerateResult, StepResult, ToolLoop
from interlingua.api.run.options import (
    TimeoutConfig,
    check_options,
    make_messages,
    make_request,
    policy_of,
    request_fields,
    timeouts_of,
)
from interlingua.api.tools.check import ReadyCall, decide, prepare
from interlingua.api.tools.runner import ToolRound, ToolRunner
from interlingua.api.tools.tool import check_tools
from interlingua.client.client import Client
from interlingua.providers.cancel import ABORTED, AbortSignal, CancelScope
from interlingua.providers.origin import with_usage
from interlingua.spec.content import ToolCall, ToolResult
from interlingua.spec.errors import (
    AbortError,
    ConfigurationError,
    ContextLengthError,
    SDKError,
    StreamError,
)
from interlingua.spec.events import (
    ErrorEvent,
    Finish,
    StepFinish,
    StreamEvent,
    StreamStart,
    ToolResultEvent,
)
from interlingua.spec.messages import Message
from interlingua.spec.request import Request
from interlingua.spec.response import FinishReason, Response, Usage
from interlingua.streams.accumulate import StreamAccumulator
from interlingua.tokens.estimate import estimate_request


class Goal(Protocol):
    """What a run must produce besides an answer, such as an object of a schema."""

    def ask(self, request: Request, *, is_last: bool) -> Request:
        """The request with what the goal needs; `is_last` if no more tools will be run."""

    def review(self, response: Response) -> tuple[Message, ...]:
        """Messages that ask for a better last answer; none to accept it or to give up."""


class Run:
    """
    The steps of `generate` and `stream`.

    A run has one request id and one scope: `client.cancel(id)` ends it during a model call, a wait
    between attempts, or a tool.
    """

    def __init__(
        self,
        model: str,
        prompt: str | Message | None,
        options: Mapping[str, Any],
        goal: Goal | None = None,
        scope: CancelScope | None = None,
    ) -> None:
        check_options(options)
        tools = options.get("tools")
        tools = None if tools is None else tuple(tools)
        by_name = check_tools(tools) if tools else {}
        messages = make_messages(prompt, options.get("messages"), options.get("system"))
        request = make_request(model, messages, tools, request_fields(options))
        self.client: Client = options.get("client") or get_default_client()
        self.loop: ToolLoop = ToolLoop(
            request,
            by_name,
            max_tool_rounds=options.get("max_tool_rounds", 1),
            stop_when=options.get("stop_when"),
        )
        self._request_id = request.request_id or ""
        self._approvals: Mapping[str, bool] | None = options.get("approvals")
        self._repair = options.get("repair_tool_call")
        has_tools = by_name or not _TOOL_OPTIONS.isdisjoint(options)
        self._runner = ToolRunner.of(options) if has_tools else _NO_TOOLS
        self._tools: ToolRound | None = None  # the tools that are running
        self._goal = goal
        self._sent: Request | None = None
        self._scope = scope
        self._signal: AbortSignal | None = options.get("abort_signal")
        timeout = options.get("timeout")
        self._timeouts = _NO_TIMEOUT if timeout is None else timeouts_of(timeout)
        self._policy = policy_of(options)
        self._logged: set[str] = set()  # codes of warnings, each logged once per run
        self._truncates = options.get("on_overflow") == "truncate"
        self._accumulator: StreamAccumulator | None = None
        self._error: Exception | None = None
        self._response: Response | None = None

    def result(self, output: Any = None) -> GenerateResult[Any]:
        """The steps so far, the conversation and the output."""
        loop = self.loop
        return GenerateResult(
            steps=tuple(loop.steps),
            messages=loop.messages,
            pending_approvals=loop.pending_approvals,
            output=output,
        )

    def partial(self) -> Response | None:
        """The answer of a stream so far; None before it has begun."""
        if isinstance(self._error, SDKError):
            return self._error.partial
        if self._accumulator is not None and self._accumulator.has_begun:
            return self._accumulator.partial()
        return self.loop.last_response

    def response(self) -> Response:
        """The last answer of a finished stream; raises the error of one that failed."""
        if self._error is not None:
            raise self._error
        if self._response is None:
            raise ConfigurationError("The stream has not ended. Read it to its end first.")
        return self._response

    async def generate(self) -> GenerateResult[Any]:
        """Run all steps; each answer is read whole."""
        scope, step, calls = self._open_scope(), 0, self.client.calls
        try:
            if self.loop.messages[-1].role == "assistant":
                await self._resume(scope)
            while (request := self.loop.request) is not None:
                sent = self._start_step(request, scope)
                attempts = calls.open(sent, self._policy, step, self._logged)
                try:
                    response = await scope.wait(attempts.answer(scope))
                except ContextLengthError:
                    if not self._shorten():
                        raise
                    continue
                tools = await self._take_answer(response, scope)
                if tools is not None:
                    await scope.wait(self._run_all(tools, scope))
                self._finish_step(tools)
                step += 1
        except SDKError as error:
            self._account(error)
            raise
        finally:
            if scope.clocks or scope.unlink is not None:
                scope.close()
            calls.scopes.remove(self._request_id, scope)
        return self.result()

    async def stream(  # noqa: C901, PLR0912 -- one function: another generator would cost each delta
        self,
    ) -> AsyncGenerator[StreamEvent, None]:
        """Run all steps as one stream: one start, `StepFinish` between steps, one `Finish`."""
        scope, step = self._open_scope(), 0
        is_open = False
        finish: Finish | None = None
        try:
            if self.loop.messages[-1].role == "assistant":
                await self._resume(scope)
            while (request := self.loop.request) is not None:
                finish = None
                events = self._open_step(request, scope, step)
                try:
                    async for event in events:
                        if type(event) is Finish:  # withheld: the run may go on
                            finish = event
                            scope.end_step()
                            continue
                        if step and type(event) is StreamStart:
                            continue
                        is_open = True
                        if scope.clocks:
                            scope.pause()
                        yield event
                        if scope.clocks:
                            scope.resume()
                except ContextLengthError as error:
                    if error.partial is not None or not self._shorten():
                        raise
                    continue
                finally:
                    await events.aclose()
                tools = await self._take_answer(_answer(finish, scope), scope)
                if tools is not None:
                    async for event in self._tool_events(tools, scope):
                        yield event
                last = self._end_step(finish, step, self._finish_step(tools))
                scope.pause()
                yield last
                scope.resume()
                step += 1
        except SDKError as error:
            closing = self._fail(error, finish, scope)
            for event in closing if is_open else ():
                yield event
            raise
        except Exception as error:
            self._error = error
            raise
        finally:
            scope.close()
            self.client.calls.scopes.remove(self._request_id, scope)

    @property
    def is_aborted(self) -> bool:
        """Whether the caller's signal has fired."""
        return self._signal is not None and self._signal.aborted

    def abort_error(self) -> AbortError:
        """The error for a reader that aborted after the run ended but before reading it all."""
        reason = None if self._signal is None else self._signal.reason
        error = AbortError(reason or ABORTED)
        self._account(error)
        return error

    @contextmanager
    def accounting(self) -> Iterator[None]:
        """A context in which errors get the partial answer and the usage of the run."""
        try:
            yield
        except SDKError as error:
            self._account(error)
            raise

    def _account(self, error: SDKError) -> None:
        if error.partial is not None and self._sent is not None:
            error.partial = fill_usage(error.partial, self._sent)
        error.add_facts(partial=self.loop.last_response)
        error.add_facts(total_usage=self.loop.total_usage(error.partial))

    # Steps.

    def _open_scope(self) -> CancelScope:
        """The scope of the run, registered under its id for `client.cancel`."""
        scope = self._scope or CancelScope()
        if self._signal is not None:
            scope.link(self._signal)
        if self._timeouts.total is not None:
            scope.limit_total(self._timeouts.total)
        self.client.calls.scopes.add(self._request_id, scope)
        return scope

    def _start_step(self, request: Request, scope: CancelScope) -> Request:
        """The request to send in this step; also starts the clock of the step."""
        if self._timeouts.per_step is not None:
            scope.end_step()
            scope.limit_step(self._timeouts.per_step)
        if self._goal is not None:
            request = self._goal.ask(request, is_last=self.loop.is_out_of_rounds)
        self._sent = request
        return request

    def _open_step(
        self, request: Request, scope: CancelScope, step: int
    ) -> AsyncGenerator[StreamEvent, None]:
        request = self._start_step(request, scope)
        self._accumulator = StreamAccumulator()
        attempts = self.client.calls.open(request, self._policy, step, self._logged)
        return attempts.fold(scope, self._accumulator)

    def _shorten(self) -> bool:
        """Shorten a history that did not fit; False if that is not allowed or not possible."""
        return self._truncates and self.loop.shorten()

    async def _take_answer(self, response: Response, scope: CancelScope) -> ToolRound | None:
        """Give the answer to the loop; the calls to run, None if there are none."""
        if scope.clocks:
            scope.end_step()
        calls = self.loop.feed(response)
        self._accumulator = None  # from here on the loop has the answer
        if not calls:
            return None
        ready = await self._ready(calls, scope)
        waits = [item.waits for item in ready]
        if any(waits):
            self.loop.pause([item.call for item in ready], waits)
            return None
        return ToolRound(ready, self.loop.messages)

    def _finish_step(self, tools: ToolRound | None) -> StepResult:
        self._tools = None
        step = self.loop.finish_step(*(((), {}) if tools is None else tools.outcome()))
        if self._goal is not None and self.loop.request is None and not self.loop.pending_approvals:
            reply = self._goal.review(step.response)
            if reply:
                self.loop.ask_again(reply)
        return step

    def _end_step(self, finish: Finish | None, step: int, result: StepResult) -> StreamEvent:
        """The event that ends a step: `StepFinish`, or `Finish` after the last one."""
        if self.loop.request is not None or finish is None:
            return StepFinish(step=step, response=result.response)
        self._response = result.response
        return replace(finish, response=result.response)

    def _fail(
        self, error: SDKError, finish: Finish | None, scope: CancelScope
    ) -> list[StreamEvent]:
        """The closing events of a stream that failed, as in the stream of one call."""
        self._error = error
        self._account(error)
        partial = error.partial
        usage = Usage() if partial is None else partial.usage
        if finish is not None and finish.finish_reason.reason in ("cancelled", "error"):
            # The call has already delivered the other closing events.
            return [replace(finish, usage=usage, response=partial)]
        events: list[StreamEvent] = []
        if not scope.is_cancelled:
            events.append(ErrorEvent(error=error, response=partial))
        reason = FinishReason(reason="cancelled" if scope.is_cancelled else "error")
        return [*events, Finish(finish_reason=reason, usage=usage, response=partial)]

    async def _resume(self, scope: CancelScope) -> None:
        """Run the calls at the end of the conversation that were waiting for approval."""
        calls = self.loop.open_calls()
        tools = [self.loop.tools.get(call.name) for call in calls]
        needs_approval = any(tool is not None and tool.needs_approval for tool in tools)
        if not calls or not (needs_approval or self._approvals is not None):
            return
        ready = decide(await self._ready(calls, scope), self._approvals or {})
        if self._approvals is not None:
            round_ = ToolRound(ready, self.loop.messages)
            await scope.wait(self._run_all(round_, scope))
            self._tools = None
            self.loop.resume(round_.settled())

    async def _ready(
        self, calls: tuple[ToolCall, ...], scope: CancelScope
    ) -> tuple[ReadyCall, ...]:
        return await scope.wait(prepare(calls, self.loop.tools, self._repair))

    async def _run_all(self, tools: ToolRound, scope: CancelScope) -> None:
        self._tools = tools
        async for _ in self._runner.run(tools, scope.signal):
            pass

    async def _tool_events(
        self, tools: ToolRound, scope: CancelScope
    ) -> AsyncGenerator[StreamEvent, None]:
        """Run the tools; an event as each one ends."""
        self._tools = tools
        results = self._runner.run(tools, scope.signal)
        try:
            while (result := await scope.wait(_next(results))) is not None:
                scope.pause()
                yield ToolResultEvent(result=result)
                scope.resume()
        finally:
            await results.aclose()


async def _next(results: AsyncGenerator[ToolResult, None]) -> ToolResult | None:
    return await anext(results, None)


_NO_TIMEOUT = TimeoutConfig()
_NO_TOOLS = ToolRunner()
_TOOL_OPTIONS = frozenset(("tool_timeout", "max_concurrent_tools", "tool_observer"))


def _answer(finish: Finish | None, scope: CancelScope) -> Response:
    """The response of a step; raises an error if the step did not finish."""
    if finish is None or finish.response is None:
        raise StreamError("The stream ended without a finish event.")
    if finish.finish_reason.reason == "cancelled":
        raise scope.error(finish.response)
    if scope.is_cancelled and scope.cause != "timeout":  # the caller does not want it any more
        raise scope.error(finish.response)
    return finish.response


_default_lock = threading.Lock()
_default_client: Client | None = None


def get_default_client() -> Client:
    """The client that was set, or else one made from the environment on first use."""
    global _default_client  # noqa: PLW0603 -- one for the program is the point
    with _default_lock:
        if _default_client is None:
            _default_client = Client.from_env()
        return _default_client


def set_default_client(client: Client | None) -> None:
    """Set the client of functions without `client=`; None to use the environment again."""
    value: Any = client  # a caller without a type checker may pass anything
    if value is not None and not isinstance(value, Client):
        kind = f"{type(value).__module__}.{type(value).__qualname__}"
        raise ConfigurationError(
            f"The default client must be an interlingua.Client, not {kind}. "
            "interlingua.sync uses the same client."
        )
    global _default_client  # noqa: PLW0603 -- as above
    with _default_lock:
        _default_client = client


def fill_usage(partial: Response, request: Request) -> Response:
    """
    A partial answer with its usage; figures that the provider did not report are estimated.

    Many providers report usage only at the end of a stream, but bill a cancelled stream too.
    Nothing is estimated if nothing has arrived.
    """
    usage, message = partial.usage, partial.message
    if partial.finish_reason.reason not in ("cancelled", "error") or not message.content:
        return partial

    def estimate(message: Message) -> int:
        alone = Request(model=request.model, messages=(message,))
        return estimate_request(alone, partial.provider)

    output = estimate(message) - estimate(replace(message, content=()))
    filled = replace(
        usage,
        input_tokens=usage.input_tokens or estimate_request(request, partial.provider),
        output_tokens=max(usage.output_tokens, output),
    )
    return partial if filled == usage else with_usage(partial, replace(filled, estimated=True))
