"""One run of a high-level function: its loop, its tools, its client, its end."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol

from msgspec.structs import replace

from interlingua.api.run.default_client import get_default_client
from interlingua.api.run.loop import ToolLoop
from interlingua.api.run.options import (
    TimeoutConfig,
    check_options,
    policy_of,
    request_fields,
    timeouts_of,
)
from interlingua.api.run.prompt import make_messages, make_request
from interlingua.api.run.results import GenerateResult, StepResult
from interlingua.api.run.usage import fill_usage
from interlingua.api.tools.check import ReadyCall, decide, prepare
from interlingua.api.tools.runner import ToolRunner
from interlingua.api.tools.tool import check_tools
from interlingua.client.client import Client
from interlingua.providers.cancel import AbortSignal, CancelScope
from interlingua.spec.content import ToolCall, ToolResult
from interlingua.spec.errors import (
    AbortError,
    ConfigurationError,
    ContextLengthError,
    SDKError,
    StreamError,
)
from interlingua.spec.events import ErrorEvent, Finish, StepFinish, StreamEvent, StreamStart
from interlingua.spec.messages import Message
from interlingua.spec.request import Request
from interlingua.spec.response import FinishReason, Response, Usage
from interlingua.streams.accumulate import StreamAccumulator


class Goal(Protocol):
    """What a run has to end with, besides an answer."""

    def ask(self, request: Request, *, is_last: bool) -> Request:
        """The request as it asks for that; `is_last` if no tool will be run any more."""

    def review(self, response: Response) -> tuple[Message, ...]:
        """What to say to a last answer that will not do; nothing if it does, or to give up."""


class Run:
    """
    What `generate` and `stream` do, step by step.

    It has one request id and one scope, whatever it does: `client.cancel(id)` ends it in a call
    of the model, in a wait between two attempts and in a tool.
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
        given = options.get("tools")
        tools = None if given is None else tuple(given)
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
        self._tools = by_name
        self._approvals: Mapping[str, bool] | None = options.get("approvals")
        self._repair = options.get("repair_tool_call")
        self._runner = ToolRunner.of(options) if by_name or _TOOL_OPTIONS & options.keys() else None
        self._goal = goal
        self._sent: Request | None = None
        self._scope = scope
        self._signal: AbortSignal | None = options.get("abort_signal")
        timeout = options.get("timeout")
        self._timeouts = _NO_TIMEOUT if timeout is None else timeouts_of(timeout)
        self._policy = policy_of(options)
        self._truncates = options.get("on_overflow") == "truncate"
        self._accumulator: StreamAccumulator | None = None
        self._error: Exception | None = None
        self._response: Response | None = None

    # What has come.

    def result(self, output: Any = None) -> GenerateResult[Any]:
        """What came of it."""
        loop = self.loop
        return GenerateResult(
            steps=tuple(loop.steps),
            messages=loop.messages,
            pending_approvals=loop.pending_approvals,
            output=output,
        )

    def partial(self) -> Response | None:
        """The answer of a stream as far as it has come; None before it has begun."""
        if isinstance(self._error, SDKError):
            return self._error.partial
        if self._accumulator is not None and self._accumulator.has_begun:
            return self._accumulator.partial()
        return self.loop.last_response

    def response(self) -> Response:
        """The last answer of a stream that is over; its error if it failed."""
        if self._error is not None:
            raise self._error
        if self._response is None:
            raise ConfigurationError("The stream has not ended. Read it to its end first.")
        return self._response

    # Doing it.

    async def generate(self) -> GenerateResult[Any]:
        """All steps, each answer whole."""
        scope, step, calls = self._open_scope(), 0, self.client.calls
        try:
            if self.loop.messages[-1].role == "assistant":
                await self._resume(scope)
            while (request := self.loop.request) is not None:
                attempts = calls.open(self._start_step(request, scope), self._policy, step)
                try:
                    response = await scope.wait(attempts.answer(scope))
                except ContextLengthError:
                    if not self._shorten():
                        raise
                    continue
                await self._finish_step(response, scope)
                step += 1
        except SDKError as error:
            self._account(error)
            raise
        finally:
            if scope.clocks or scope.unlink is not None:
                scope.close()
            calls.scopes.remove(self._request_id, scope)
        return self.result()

    async def stream(  # noqa: C901, PLR0912 -- in one piece: a generator more would cost every delta
        self,
    ) -> AsyncGenerator[StreamEvent, None]:
        """All steps, each answer as it comes: one start, one end, `StepFinish` between."""
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
                        if type(event) is Finish:  # kept back: the run may go on
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
                done = await self._finish_step(_answer(finish, scope), scope)
                last = self._end_step(finish, step, done)
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
        """Whether its caller has given up, as its signal says."""
        return self._signal is not None and self._signal.aborted

    def given_up(self) -> AbortError:
        """What to raise to a reader who gave up when all had come, but was not read yet."""
        reason = None if self._signal is None else self._signal.reason
        error = AbortError(reason or "the caller gave up")
        self._account(error)
        return error

    @contextmanager
    def accounting(self) -> Iterator[None]:
        """Within it, an error is told what had come before it, and what that cost."""
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

    # The steps.

    def _open_scope(self) -> CancelScope:
        """The scope of the run, in which `client.cancel` finds it by its id."""
        scope = self._scope or CancelScope()
        if self._signal is not None:
            scope.link(self._signal)
        if self._timeouts.total is not None:
            scope.limit_total(self._timeouts.total)
        self.client.calls.scopes.add(self._request_id, scope)
        return scope

    def _start_step(self, request: Request, scope: CancelScope) -> Request:
        """The request of a step as it is sent; its clock starts."""
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
        return self.client.calls.stream(request, scope, self._policy, step, self._accumulator)

    def _shorten(self) -> bool:
        """Whether the history was made shorter after it did not fit; that is done once a step."""
        return self._truncates and self.loop.shorten()

    async def _finish_step(self, response: Response, scope: CancelScope) -> StepResult:
        if scope.clocks:
            scope.end_step()
        calls = self.loop.feed(response)
        self._accumulator = None  # the loop has the answer now
        results: tuple[ToolResult, ...] = ()
        if calls:
            ready = await self._ready(calls, scope)
            waits = [item.waits for item in ready]
            if any(waits):
                self.loop.pause([item.call for item in ready], waits)
            else:
                results = await self._run_tools(ready, scope)
        step = self.loop.finish_step(results)
        if self._goal is not None and self.loop.request is None and not self.loop.pending_approvals:
            reply = self._goal.review(step.response)
            if reply:
                self.loop.ask_again(reply)
        return step

    def _end_step(self, finish: Finish | None, step: int, done: StepResult) -> StreamEvent:
        """The event that ends a step: the last one, or one between two steps."""
        if self.loop.request is not None or finish is None:
            return StepFinish(step=step, response=done.response)
        self._response = done.response
        return replace(finish, response=done.response)

    def _fail(
        self, error: SDKError, finish: Finish | None, scope: CancelScope
    ) -> list[StreamEvent]:
        """The events that end a stream which failed: as those of one call do."""
        self._error = error
        self._account(error)
        partial = error.partial
        usage = Usage() if partial is None else partial.usage
        if finish is not None and finish.finish_reason.reason in ("cancelled", "error"):
            # the call itself has told the rest
            return [replace(finish, usage=usage, response=partial)]
        events: list[StreamEvent] = []
        if not scope.is_cancelled:
            events.append(ErrorEvent(error=error, response=partial))
        reason = FinishReason(reason="cancelled" if scope.is_cancelled else "error")
        return [*events, Finish(finish_reason=reason, usage=usage, response=partial)]

    async def _resume(self, scope: CancelScope) -> None:
        """Run what was waiting for approval, of a conversation that goes on."""
        calls = self.loop.open_calls()
        known = [self._tools.get(call.name) for call in calls]
        asks = any(tool is not None and tool.needs_approval for tool in known)
        if not calls or not (asks or self._approvals is not None):
            return
        ready = decide(await self._ready(calls, scope), self._approvals or {})
        if self._approvals is not None:
            self.loop.resume(await self._run_tools(ready, scope))

    async def _ready(
        self, calls: tuple[ToolCall, ...], scope: CancelScope
    ) -> tuple[ReadyCall, ...]:
        return await scope.wait(prepare(calls, self._tools, self._repair))

    async def _run_tools(
        self, ready: tuple[ReadyCall, ...], scope: CancelScope
    ) -> tuple[ToolResult, ...]:
        runner = self._runner or ToolRunner()
        return await scope.wait(runner.run(ready, self.loop.messages, scope.signal))


_NO_TIMEOUT = TimeoutConfig()
_TOOL_OPTIONS = frozenset(("tool_timeout", "max_concurrent_tools", "tool_observer"))


def _answer(finish: Finish | None, scope: CancelScope) -> Response:
    """The response of a step; an error if it did not come to its own end."""
    if finish is None or finish.response is None:
        raise StreamError("the stream ended without its last event")
    if finish.finish_reason.reason == "cancelled":
        raise scope.error(finish.response)
    if scope.is_cancelled and scope.cause != "timeout":  # what has come is not wanted any more
        raise scope.error(finish.response)
    return finish.response
