"""
The outer edge of a stream: the one place that adds events up, and ends them properly.

Everything inside of it (adapter, attempts, middleware) yields events, and only raises when it
fails. Here the last event gets its response, and a stream that failed or was cancelled gets the
events that close it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable

from msgspec.structs import replace

from interlingua.providers.cancel import CancelScope, Scopes
from interlingua.spec.errors import SDKError, StreamError
from interlingua.spec.events import ErrorEvent, Finish, StreamEvent, StreamStart
from interlingua.spec.request import Request
from interlingua.spec.response import FinishReason, Reason, Response
from interlingua.streams.accumulate import StreamAccumulator
from interlingua.streams.grammar import DELTAS


async def fold_stream(  # noqa: C901, PLR0912 -- in one piece, as every text delta passes here
    open_events: Callable[[CancelScope], AsyncIterator[StreamEvent]],
    request: Request,
    scopes: Scopes,
    scope: CancelScope | None = None,
    *,
    accumulator: StreamAccumulator | None = None,
    finish: Callable[[Finish, StreamAccumulator], Response] | None = None,
) -> AsyncGenerator[StreamEvent, None]:
    """
    The events to their end, however it comes.

    Without a scope it makes one, and is found by the request's id among the `scopes`.
    `accumulator` is for callers who look at what has come so far; `finish` may make the response
    of a stream that ended by itself. A cancelled stream ends with `Finish(reason=cancelled)`;
    then the error of the scope is raised, unless somebody asked for the cancellation by its id.
    """
    fold = _Fold(request, scope or CancelScope(), accumulator or StreamAccumulator(), finish)
    own = scope is None  # else it is a run's, which has more to do in it
    if own:
        scopes.add(fold.request_id, fold.scope)
    scope, segments = fold.scope, fold.accumulator.open
    events = open_events(scope)
    try:
        # This is `scope.wait` written in place, and the common case of `accumulator.feed`:
        # function calls would cost more than all the rest.
        while not scope.is_cancelled:
            task = scope.task = asyncio.current_task()
            before = 0 if task is None else task.cancelling()
            try:
                event = await anext(events)
            except asyncio.CancelledError:
                if scope.woke(task, before):
                    break
                raise
            finally:
                scope.task = None
            if scope.cause is not None:
                break
            if type(event) in DELTAS and event.id in segments:  # type: ignore[union-attr]
                segments[event.id].pieces.append(event.delta)  # type: ignore[union-attr]
            else:
                event = fold.take(event)
            yield event
    except StopAsyncIteration:
        fold.stop(StreamError("the stream ended without its last event"))
    except SDKError as error:
        fold.fail(error)
    finally:
        if own:
            scopes.remove(fold.request_id, scope)
        await close_stream(events)
    for event in fold.end():
        yield event
    if fold.error is not None:
        raise fold.error


async def close_stream(events: AsyncIterator[StreamEvent]) -> None:
    """Close an iterator that may be a generator, so that what it holds is released now."""
    close = getattr(events, "aclose", None)
    if close is not None:
        await close()


class _Fold:
    """What the events of one stream add up to, and how it ends."""

    __slots__ = (
        "_finish",
        "_is_finished",
        "_request",
        "accumulator",
        "error",
        "request_id",
        "scope",
    )

    def __init__(
        self,
        request: Request,
        scope: CancelScope,
        accumulator: StreamAccumulator,
        finish: Callable[[Finish, StreamAccumulator], Response] | None,
    ) -> None:
        self._request = request
        self._finish = finish
        self._is_finished = False
        self.request_id: str = request.request_id or ""
        self.scope: CancelScope = scope
        self.accumulator: StreamAccumulator = accumulator
        self.error: SDKError | None = None
        """What to raise after the last event."""

    def take(self, event: StreamEvent) -> StreamEvent:
        """The event as the reader gets it: the last one has the whole response."""
        accumulator = self.accumulator
        accumulator.feed(event)
        if type(event) is not Finish:
            return event
        self._is_finished = True
        finish = self._finish
        response = accumulator.response() if finish is None else finish(event, accumulator)
        return replace(event, response=response)

    def stop(self, error: SDKError) -> None:
        """There are no more events, which is an error unless the last one has come."""
        if not self._is_finished:
            self.error = error

    def fail(self, error: SDKError) -> None:
        """The stream raised this."""
        self.error = error

    def end(self) -> list[StreamEvent]:
        """
        The last events of a stream that broke off, which its error keeps.

        Of one that had not begun there are none, unless it was cancelled by its id.
        """
        scope, accumulator = self.scope, self.accumulator
        if self._is_finished:
            return []
        if scope.is_cancelled:
            self.error = None if scope.is_quiet else scope.error()
        events: list[StreamEvent] = []
        if not accumulator.has_begun:
            if self.error is not None:
                return events
            events.append(self._start())
        events += accumulator.end_segments()
        partial = self._partial("cancelled" if scope.is_cancelled else "error")
        if self.error is not None:
            self.error.add_facts(partial=partial)
            if not scope.is_cancelled:
                events.append(ErrorEvent(error=self.error, response=partial))
        finish = Finish(finish_reason=partial.finish_reason, usage=partial.usage, response=partial)
        return [*events, finish]

    def _start(self) -> StreamStart:
        request = self._request
        start = StreamStart(
            provider=request.provider or "", request_id=request.request_id, model=request.model
        )
        self.accumulator.feed(start)
        return start

    def _partial(self, reason: Reason) -> Response:
        partial, request = self.accumulator.partial(), self._request
        return replace(
            partial,
            model=partial.model or request.model,
            provider=partial.provider or request.provider or "",
            request_id=partial.request_id or request.request_id,
            finish_reason=FinishReason(reason=reason),
        )
