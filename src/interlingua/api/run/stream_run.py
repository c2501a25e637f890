"""One run whose answers are read as streams."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

from msgspec.structs import replace

from interlingua.api.run.closed import NOT_ENDED
from interlingua.api.run.results import StepResult
from interlingua.api.run.run import Run
from interlingua.api.run.step_events import (
    Beginning,
    answer_of,
    count_parts,
    opening_events,
)
from interlingua.client.stream_attempts import StreamAttempts
from interlingua.runtime.cancel import CancelScope
from interlingua.runtime.fold import as_sdk_error
from interlingua.spec.content import ToolResult
from interlingua.spec.errors import (
    AbortError,
    ConfigurationError,
    ContextLengthError,
    SDKError,
)
from interlingua.spec.events import (
    ErrorEvent,
    Finish,
    ProviderEvent,
    StepFinish,
    StreamEvent,
    StreamStart,
    ToolResultEvent,
)
from interlingua.spec.request import Request
from interlingua.spec.response import FinishReason, Response, Usage
from interlingua.streams.accumulate import StreamAccumulator
from interlingua.streams.grammar import SEGMENT_EVENTS


class StreamRun(Run):
    """The steps of `stream`, which are one stream."""

    def partial(self) -> Response | None:
        """The answer of a stream so far; None before it has begun."""
        if isinstance(self._error, SDKError):
            return self._error.partial
        if self._cut is not None:
            return self._partial
        if self._accumulator is not None and self._accumulator.has_begun:
            return self.label(self._accumulator.partial())
        return self.loop.last_response

    def label(self, partial: Response) -> Response:
        """An answer that is not complete, whose message says who made it and that it was cut."""
        if self._attempts is None or "finish_reason" in partial.message.metadata:
            return partial
        return self._attempts.label_partial(partial)

    def response(self) -> Response:
        """The last answer of a finished stream; raises the error of one that failed."""
        if self._error is not None:
            raise self._error
        if self._response is None:
            raise ConfigurationError(NOT_ENDED)
        return self._response

    async def stream(  # noqa: C901, PLR0912, PLR0915 -- one function: another would cost each delta
        self,
    ) -> AsyncGenerator[StreamEvent, None]:
        """Run all steps as one stream: one start, `StepStart` before each step, one `Finish`."""
        scope, step, parts, is_open = self._open_scope(), 0, 0, False
        finish: Finish | None = None
        try:
            results: tuple[ToolResult, ...] = ()  # of calls that the resumed run left open
            if self._has_beginning:
                results = await self._begin(scope)
            while (request := self.loop.request) is not None:
                finish = None
                is_fixed = self._on_overflow == "raise"
                open_step = self._open_step if is_fixed else self._shorten_until_it_fits
                events = open_step(request, scope, step)
                try:
                    async for event in events:
                        if type(event) is Finish:  # withheld: the run may go on
                            finish = event
                            scope.end_step()
                            continue
                        if type(event) is StreamStart:
                            is_open = True
                            if scope.clocks:
                                scope.pause()
                            for opening in opening_events(event, step, results):
                                yield opening
                            if scope.clocks:
                                scope.resume()
                            continue
                        if step:  # no id and no index is used twice in a run
                            if type(event) in SEGMENT_EVENTS:
                                id_ = f"step{step}_{event.id}"  # type: ignore[union-attr]
                                index = event.index + parts  # type: ignore[union-attr, operator]
                                event = replace(event, id=id_, index=index)  # noqa: PLW2901
                            elif type(event) is ProviderEvent and event.index is not None:
                                event = replace(event, index=event.index + parts)  # noqa: PLW2901
                        if scope.clocks:
                            scope.pause()
                        yield event
                        if scope.clocks:
                            scope.resume()
                finally:
                    await events.aclose()
                finish, parts = count_parts(finish, parts, self._accumulator)
                async with aclosing(self._finish_step(finish, step, scope)) as ending:
                    async for event in ending:
                        scope.pause()
                        yield event
                        scope.resume()
                step += 1
        except Exception as error:
            for event in self._fail(error, finish, is_open=is_open):
                yield event
            if self._error is not None:
                raise
        finally:
            self._close_scope(scope)
            if self._uploads is not None:
                await self._uploads.close()

    def _open_step(
        self, request: Request, scope: CancelScope, step: int
    ) -> AsyncGenerator[StreamEvent, None]:
        request = self._start_step(request, scope)
        self._accumulator = StreamAccumulator()
        attempts = self._attempts = StreamAttempts(
            self.client.calls,
            request,
            self._policy,
            step,
            self._logged,
            self._uploads,
            self._call_ids,
        )
        return attempts.fold(scope, self._accumulator)

    async def _shorten_until_it_fits(
        self, request: Request, scope: CancelScope, step: int
    ) -> AsyncGenerator[StreamEvent, None]:
        """
        The events of a step, whose history is shortened until it fits.

        A provider may tell only in its stream that a request was too long. The beginning of a
        stream is withheld until its first content, so that the reader sees only one.
        """
        while True:
            beginning, error = Beginning(), None
            events = self._open_step(request, scope, step)
            try:
                async for event in events:
                    for each in beginning.take(event):
                        yield each
            except Exception as raised:  # noqa: BLE001 -- raised again after what was withheld
                error = raised
                if isinstance(raised, ContextLengthError) and not beginning.is_shown:
                    has_room = await self._make_room(raised, scope)
                    request = self.loop.request or request
                    if has_room:
                        scope.end_step()
                        continue
            finally:
                await events.aclose()
            for each in beginning.release():
                yield each
            if error is not None:
                raise error
            return

    def _end_step(
        self, finish: Finish | None, step: int, result: StepResult, scope: CancelScope
    ) -> StreamEvent:
        """The event that ends a step: `StepFinish`, or `Finish` after the last one."""
        if self.loop.request is not None or finish is None:
            return StepFinish(step=step, response=result.response)
        if self._scope is None and not scope.finish():
            raise scope.error()
        self.client.calls.scopes.remove(self._request_id, scope)
        self._response = result.response
        usage, cost = self.loop.total_usage() or finish.usage, self.loop.total_cost()
        return replace(finish, response=result.response, usage=usage, cost=cost)

    def _fail(self, error: Exception, finish: Finish | None, *, is_open: bool) -> list[StreamEvent]:
        """
        The closing events of a stream that failed, as in the stream of one call.

        There are none if nothing was delivered before, unless the run was cancelled by its id.
        """
        known = as_sdk_error(error)
        self.account(known)
        is_cancelled = self._opened is not None and self._opened.is_cancelled
        reason = FinishReason(reason="cancelled" if is_cancelled else "error")
        partial = known.partial
        events: list[StreamEvent] = []
        if self.is_cancelled and isinstance(error, AbortError):
            partial = self._cut_off(partial, reason)
            if not is_open:
                request_id, model = partial.request_id, partial.model
                events.append(StreamStart(request_id=request_id, model=model))
        else:
            self._error = error
            if not is_open:
                return []
        is_reported = finish is not None and finish.finish_reason.reason in ("cancelled", "error")
        if not is_cancelled and not is_reported:  # else the call has delivered it
            events.append(ErrorEvent(error=known, response=partial))
        usage, cost = known.total_usage or Usage(), known.total_cost
        return [*events, Finish(finish_reason=reason, usage=usage, cost=cost, response=partial)]

    def _cut_off(self, partial: Response | None, reason: FinishReason) -> Response:
        """The last answer of a run that was cancelled by its id."""
        request = self.loop.request
        if partial is None:
            model = "" if request is None else request.model
            partial = Response(request_id=self._request_id, model=model)
        self._partial = partial
        self._response = self._cut = replace(partial, finish_reason=reason)
        return self._cut

    async def _finish_step(
        self, finish: Finish | None, step: int, scope: CancelScope
    ) -> AsyncGenerator[StreamEvent, None]:
        """Run the tools of a streamed answer; an event as each one ends, then the step's end."""
        tools = await self._take_answer(answer_of(finish, scope), scope)
        if tools is None:
            result = self.loop.finish_step()
        else:
            from interlingua.api.tools.runner import ToolRunner

            self._tools = tools
            runner = self._runner or ToolRunner()
            async with aclosing(runner.run(tools, scope.signal)) as results:
                while (ended := await scope.wait(_next(results))) is not None:
                    yield ToolResultEvent(result=ended)
            result = self._finish_tools(tools)
        if self.loop.verdict is not None or self._goal is not None:
            await self._review(scope)
        yield self._end_step(finish, step, result, scope)


async def _next(results: AsyncGenerator[ToolResult, None]) -> ToolResult | None:
    return await anext(results, None)
