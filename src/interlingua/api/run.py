"""One run of a high-level function: its loop, its tools, its client, its end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from itertools import count
from typing import Any, Protocol

from msgspec.structs import replace

from interlingua.api.default import get_default_client
from interlingua.api.loop import ToolLoop
from interlingua.api.options import check_options, policy_of, request_fields, timeouts_of
from interlingua.api.prompt import make_messages, make_request
from interlingua.api.results import GenerateResult, StepResult
from interlingua.api.running import ToolRunner
from interlingua.api.stopping import Stopper
from interlingua.api.tools import check_tools
from interlingua.client.client import Client
from interlingua.client.retry import NO_RETRIES, retry, retry_stream
from interlingua.providers.ids import new_ulid
from interlingua.spec.content import ToolCall
from interlingua.spec.errors import ContextLengthError, SDKError
from interlingua.spec.events import Finish, StepFinish, StreamEvent, StreamStart
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
        approvals = options.get("approvals") or {}
        self.client: Client = options.get("client") or get_default_client()
        self.loop = ToolLoop(
            request,
            by_name,
            max_tool_rounds=options.get("max_tool_rounds", 1),
            stop_when=options.get("stop_when"),
            approvals=approvals,
        )
        self._runner = ToolRunner(
            tools=by_name,
            timeout=options.get("tool_timeout"),
            max_concurrent=options.get("max_concurrent_tools"),
            repair=options.get("repair_tool_call"),
            approvals=approvals,
            abort_signal=options.get("abort_signal"),
            observer=options.get("tool_observer"),
        )
        self._goal = goal
        self._signal = options.get("abort_signal")
        self._timeouts = timeouts_of(options.get("timeout"))
        self._policy = policy_of(options)
        self._truncates = options.get("on_overflow") == "truncate"

    def result(self, output: Any = None) -> GenerateResult[Any]:
        """What came of it."""
        loop = self.loop
        return GenerateResult(
            steps=tuple(loop.steps), messages=loop.messages, pending=loop.pending, output=output
        )

    async def generate(self) -> GenerateResult[Any]:
        """All steps, each answer whole."""
        with Stopper(self._signal, self._timeouts) as stopper:
            try:
                await self._resume(stopper)
                while (request := self.loop.request) is not None:
                    stopper.start_step()
                    response = await self._complete_fitting(request, stopper)
                    stopper.end_step()
                    await self._finish_step(response, stopper)
            except SDKError as error:
                if error.partial is None and self.loop.steps:
                    error.partial = self.loop.steps[-1].response
                raise
        return self.result()

    async def stream(self) -> AsyncIterator[StreamEvent]:
        """All steps, each answer as it comes: one start, one end, `StepFinish` between."""
        with Stopper(self._signal, self._timeouts) as stopper:
            await self._resume(stopper)
            for number in count():
                request = self.loop.request
                if request is None:
                    return
                request = replace(request, request_id=request.request_id or new_ulid())
                stopper.start_step()
                stopper.on_stop = _canceller(self.client, request.request_id or "")
                finish: Finish | None = None
                async for event in self._stream_fitting(request, stopper):
                    if type(event) is Finish and event.finish_reason.reason != "error":
                        finish = event
                    elif type(event) is not StreamStart or number == 0:
                        yield event
                stopper.on_stop = None
                stopper.end_step()
                response = finish.response if finish is not None else None
                if finish is None or response is None or stopper.is_stopped:
                    if finish is not None:
                        yield finish
                    raise stopper.error(response)
                step = await self._finish_step(response, stopper)
                if self.loop.request is None:
                    yield replace(finish, response=step.response)
                else:
                    yield StepFinish(step=number, response=step.response)

    async def _resume(self, stopper: Stopper) -> None:
        """Run what was waiting for approval, of a conversation that goes on."""
        calls = self.loop.open_calls()
        if calls:
            self.loop.resume(await self._run_tools(calls, stopper))

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
    ) -> AsyncIterator[StreamEvent]:
        """The same as it comes."""
        try:
            async for event in self._stream(request, stopper):
                yield event
            return
        except ContextLengthError as error:
            shorter = None if error.partial is not None else self._shorter()
            if shorter is None:
                raise
        shorter = replace(shorter, request_id=request.request_id)
        async for event in self._stream(shorter, stopper):
            yield event

    def _shorter(self) -> Request | None:
        return self.loop.request if self._truncates and self.loop.shorten() else None

    async def _complete(self, request: Request, stopper: Stopper) -> Response:
        request = self._asked(request)

        async def once() -> Response:
            return await self.client.complete(replace(request, request_id=None))

        policy = NO_RETRIES if self.client.retries_itself(request) else self._policy
        return await stopper.wait(retry(once, policy))

    def _stream(self, request: Request, stopper: Stopper) -> AsyncIterator[StreamEvent]:
        request = self._asked(request)

        def once() -> AsyncIterator[StreamEvent]:
            return self.client.stream(request)

        if self.client.retries_itself(request) or not self._policy.max_retries:
            return once()
        return retry_stream(
            once, self._policy, sleep=lambda seconds: stopper.wait(asyncio.sleep(seconds))
        )

    async def _finish_step(self, response: Response, stopper: Stopper) -> StepResult:
        calls = self.loop.feed(response)
        step = self.loop.finish_step(await self._run_tools(calls, stopper) if calls else ())
        if self._goal is not None and self.loop.request is None and not self.loop.pending:
            said = self._goal.review(step.response)
            if said:
                self.loop.ask_again(said)
        return step

    def _asked(self, request: Request) -> Request:
        if self._goal is None:
            return request
        return self._goal.ask(request, is_last=self.loop.is_out_of_rounds)

    async def _run_tools(self, calls: tuple[ToolCall, ...], stopper: Stopper) -> Any:
        return await stopper.wait(self._runner.run(calls, self.loop.messages))


def _canceller(client: Client, request_id: str) -> Any:
    tasks = set()

    def cancel() -> None:
        task = asyncio.ensure_future(client.cancel(request_id))
        tasks.add(task)  # a task that nobody holds may be collected before it is done
        task.add_done_callback(tasks.discard)

    return cancel
