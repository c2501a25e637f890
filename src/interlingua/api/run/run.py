"""One run of a high-level function: its loop, its tools, its client, its end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from contextlib import aclosing, contextmanager
from itertools import count
from typing import Any, Protocol

from msgspec.structs import replace

from interlingua.api.run.abort import AbortSignal
from interlingua.api.run.deadline import Stopper
from interlingua.api.run.default_client import get_default_client
from interlingua.api.run.fold import StepReader, fill_usage
from interlingua.api.run.loop import ToolLoop
from interlingua.api.run.options import (
    check_options,
    policy_of,
    request_fields,
    says_retries,
    timeouts_of,
)
from interlingua.api.run.prompt import make_messages, make_request
from interlingua.api.run.results import GenerateResult, StepResult
from interlingua.api.tools.check import ReadyCall, decide, prepare
from interlingua.api.tools.runner import ToolRunner
from interlingua.api.tools.tool import check_tools
from interlingua.client.client import Client
from interlingua.client.retry_policy import RetryPolicy, close, retry, retry_stream
from interlingua.providers.ulid import new_ulid
from interlingua.spec.content import ToolCall, ToolResult
from interlingua.spec.errors import AbortError, ContextLengthError, SDKError
from interlingua.spec.events import StreamEvent
from interlingua.spec.messages import Message
from interlingua.spec.request import Request
from interlingua.spec.response import Response


class Goal(Protocol):
    """What a run has to end with, besides an answer."""

    def ask(self, request: Request, *, is_last: bool) -> Request:
        """The request as it asks for that; `is_last` if no tool will be run any more."""

    def review(self, response: Response) -> tuple[Message, ...]:
        """What to say to a last answer that will not do; nothing if it does, or to give up."""


class Run:
    """What `generate` and `stream` do, step by step."""

    def __init__(
        self,
        model: str,
        prompt: str | Message | None,
        options: Mapping[str, Any],
        goal: Goal | None = None,
    ) -> None:
        check_options(options)
        given = options.get("tools")
        tools = None if given is None else tuple(given)
        by_name = check_tools(tools or ())
        messages = make_messages(prompt, options.get("messages"), options.get("system"))
        request = make_request(model, messages, tools, request_fields(options))
        self.client: Client = options.get("client") or get_default_client()
        self.loop: ToolLoop = ToolLoop(
            request,
            by_name,
            max_tool_rounds=options.get("max_tool_rounds", 1),
            stop_when=options.get("stop_when"),
        )
        self._tools = by_name
        self._approvals: Mapping[str, bool] | None = options.get("approvals")
        self._repair = options.get("repair_tool_call")
        self._runner = ToolRunner(
            timeout=options.get("tool_timeout"),
            max_concurrent=options.get("max_concurrent_tools"),
            observer=options.get("tool_observer"),
        )
        self._goal = goal
        self._sent: Request | None = None
        self._signal: AbortSignal | None = options.get("abort_signal")
        self._timeouts = timeouts_of(options.get("timeout"))
        self._policy = policy_of(options)
        self._says_retries = says_retries(options)
        self._truncates = options.get("on_overflow") == "truncate"

    def result(self, output: Any = None) -> GenerateResult[Any]:
        """What came of it."""
        loop = self.loop
        return GenerateResult(
            steps=tuple(loop.steps),
            messages=loop.messages,
            pending_approvals=loop.pending_approvals,
            output=output,
        )

    async def generate(self) -> GenerateResult[Any]:
        """All steps, each answer whole."""
        with Stopper(self._signal, self._timeouts) as stopper, self.accounting():
            await self._resume(stopper)
            while (request := self.loop.request) is not None:
                stopper.start_step()
                response = await self._complete_fitting(request, stopper)
                stopper.end_step()
                await self._finish_step(response, stopper)
        return self.result()

    async def stream(self) -> AsyncGenerator[StreamEvent, None]:
        """All steps, each answer as it comes: one start, one end, `StepFinish` between."""
        with Stopper(self._signal, self._timeouts) as stopper:
            is_open, step = False, StepReader(is_first=True)
            try:
                await self._resume(stopper)
                for number in count():
                    step, request = StepReader(is_first=number == 0), self._start_step(stopper)
                    if request is None:
                        return
                    async with aclosing(self._stream_fitting(request, stopper)) as events:
                        async for event in events:
                            if stopper.is_stopped:
                                break
                            if step.feed(event):
                                is_open = True
                                stopper.hold()
                                yield event
                                if not stopper.release():
                                    break
                            elif step.is_over:
                                stopper.end_step()
                    _end_call(step, stopper)
                    done = await self._finish_step(step.response(), stopper)
                    is_last = self.loop.request is None
                    stopper.hold()
                    yield step.end(done.response) if is_last else step.pause(number, done.response)
                    stopper.release()
            except SDKError as error:
                closing = self._fail(error, step, stopper)
                for event in closing if is_open else ():
                    yield event
                raise

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

    def _fail(self, error: SDKError, step: StepReader, stopper: Stopper) -> list[StreamEvent]:
        """Complete an error of a stream; the events that end it, if it had any."""
        is_stopped = stopper.is_stopped
        if error.partial is None and step.is_broken:
            error.add_facts(partial=step.partial(is_stopped=is_stopped))
        self._account(error)
        return step.fail(error, is_stopped=is_stopped)

    def _start_step(self, stopper: Stopper) -> Request | None:
        """The next request of a stream, its clock started; None when it is over."""
        request = self.loop.request
        if request is None:
            return None
        request_id = request.request_id or new_ulid()
        stopper.start_step()
        stopper.on_stop = _canceller(self.client, request_id)
        return replace(request, request_id=request_id)

    async def _resume(self, stopper: Stopper) -> None:
        """Run what was waiting for approval, of a conversation that goes on."""
        calls = self.loop.open_calls()
        known = [self._tools.get(call.name) for call in calls]
        asks = any(tool is not None and tool.needs_approval for tool in known)
        if not calls or not (asks or self._approvals is not None):
            return
        ready = decide(await self._ready(calls, stopper), self._approvals or {})
        if self._approvals is not None:
            self.loop.resume(await self._run_tools(ready, stopper))

    async def _complete_fitting(self, request: Request, stopper: Stopper) -> Response:
        """The answer, to a shorter history if the whole did not fit and that is wanted."""
        try:
            return await self._complete(request, stopper)
        except ContextLengthError:
            shorter = self._shorter()
            if shorter is None:
                raise
        return await self._complete(shorter, stopper)

    async def _stream_fitting(
        self, request: Request, stopper: Stopper
    ) -> AsyncGenerator[StreamEvent, None]:
        """The same as it comes."""
        can_cancel = self.client.can_cancel(request)
        for may_shorten in (True, False):
            events = self._stream(request, stopper)
            try:
                # until it has begun, and if nobody can cancel it, the wait itself is what ends
                while (event := await stopper.wait(anext(events, None))) is not None:
                    yield event
                    if can_cancel:
                        break
                async for event in events:
                    yield event
                return
            except ContextLengthError as error:
                shorter = self._shorter() if may_shorten and error.partial is None else None
                if shorter is None:
                    raise
                request = replace(shorter, request_id=request.request_id)
            finally:
                await close(events)

    def _shorter(self) -> Request | None:
        return self.loop.request if self._truncates and self.loop.shorten() else None

    async def _complete(self, request: Request, stopper: Stopper) -> Response:
        request = self._asked(request)
        policy = self._policy_for(request)

        async def once() -> Response:
            fresh = replace(request, request_id=None)
            return await self.client.complete(fresh, retries=policy is None)

        return await stopper.wait(once() if policy is None else retry(once, policy))

    def _stream(self, request: Request, stopper: Stopper) -> AsyncIterator[StreamEvent]:
        request = self._asked(request)
        policy = self._policy_for(request)

        def once() -> AsyncIterator[StreamEvent]:
            return self.client.stream(request, retries=policy is None)

        if policy is None or not policy.max_retries:
            return once()
        return retry_stream(
            once, policy, sleep=lambda seconds: stopper.wait(asyncio.sleep(seconds))
        )

    def _policy_for(self, request: Request) -> RetryPolicy | None:
        """What to retry by; None if the adapter is set to, and the caller says nothing."""
        if self._says_retries or not self.client.retries_itself(request):
            return self._policy
        return None

    async def _finish_step(self, response: Response, stopper: Stopper) -> StepResult:
        ready = await self._ready(self.loop.feed(response), stopper)
        waits = [item.waits for item in ready]
        results: tuple[ToolResult, ...] = ()
        if any(waits):
            self.loop.pause([item.call for item in ready], waits)
        elif ready:
            results = await self._run_tools(ready, stopper)
        step = self.loop.finish_step(results)
        if self._goal is not None and self.loop.request is None and not self.loop.pending_approvals:
            said = self._goal.review(step.response)
            if said:
                self.loop.ask_again(said)
        return step

    def _asked(self, request: Request) -> Request:
        if self._goal is not None:
            request = self._goal.ask(request, is_last=self.loop.is_out_of_rounds)
        self._sent = request
        return request

    async def _ready(self, calls: tuple[ToolCall, ...], stopper: Stopper) -> tuple[ReadyCall, ...]:
        return await stopper.wait(prepare(calls, self._tools, self._repair)) if calls else ()

    async def _run_tools(
        self, ready: tuple[ReadyCall, ...], stopper: Stopper
    ) -> tuple[ToolResult, ...]:
        work = self._runner.run(ready, self.loop.messages, stopper.signal)
        return await stopper.wait(work)


def _end_call(step: StepReader, stopper: Stopper) -> None:
    """The events of a call are over: raise if that was not by itself."""
    stopper.on_stop = None
    stopper.end_step()
    if stopper.is_aborted or (stopper.is_stopped and not step.is_over):
        raise stopper.error(step.partial(is_stopped=True))
    if step.is_cancelled:  # by the client, which was closed or told to
        raise AbortError("the call was cancelled", partial=step.partial())


def _canceller(client: Client, request_id: str) -> Any:
    tasks = set()

    def cancel() -> None:
        task = asyncio.ensure_future(client.cancel(request_id))
        tasks.add(task)  # a task that nobody holds may be collected before it is done
        task.add_done_callback(tasks.discard)

    return cancel
