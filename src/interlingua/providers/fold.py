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
    own = None
    if scope is None:
        own = scope = CancelScope()
        scopes.add(request.request_id or "", own)
    fold = _Fold(request, scope, accumulator or StreamAccumulator(), finish)
    segments = fold.accumulator.open
    events = open_events(scope)
    error: SDKError | None = None
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
        if not fold.is_finished:
            error = StreamError("the stream ended without its last event")
    except SDKError as failure:
        error = failure
    finally:
        if own is not None:
            scopes.remove(request.request_id or "", own)
        await close_stream(events)
    if not fold.is_finished:
        if scope.is_cancelled:
            error = None if scope.is_quiet else scope.error()
        for event in fold.end(error):
            yield event
    if error is not None:
        raise error


async def close_stream(events: AsyncIterator[StreamEvent]) -> None:
    """Close an iterator that may be a generator, so that what it holds is released now."""
    close = getattr(events, "aclose", None)
    if close is not None:
        await close()


class _Fold:
    """What the events of one stream add up to."""

    __slots__ = ("_finish", "_request", "_scope", "accumulator", "is_finished")

    def __init__(
        self,
        request: Request,
        scope: CancelScope,
        accumulator: StreamAccumulator,
        finish: Callable[[Finish, StreamAccumulator], Response] | None,
    ) -> None:
        self._request = request
        self._scope = scope
        self._finish = finish
        self.accumulator = accumulator
        self.is_finished = False

    def take(self, event: StreamEvent) -> StreamEvent:
        """The event as the reader gets it: the last one has the whole response."""
        accumulator = self.accumulator
        accumulator.feed(event)
        if type(event) is not Finish:
            return event
        self.is_finished = True
        finish = self._finish
        response = accumulator.response() if finish is None else finish(event, accumulator)
        return replace(event, response=response)

    def end(self, error: SDKError | None) -> list[StreamEvent]:
        """
        The last events of a stream that broke off, which the error keeps.

        Of one that had not begun there are none, unless it just ends.
        """
        accumulator, request = self.accumulator, self._request
        events: list[StreamEvent] = []
        if not accumulator.has_begun:
            if error is not None:
                return events
            provider, request_id = request.provider or "", request.request_id
            start = StreamStart(provider=provider, request_id=request_id, model=request.model)
            accumulator.feed(start)
            events.append(start)
        is_cancelled = self._scope.is_cancelled
        events += accumulator.end_segments()
        partial = self._partial("cancelled" if is_cancelled else "error")
        if error is not None:
            error.add_facts(partial=partial)
            if not is_cancelled:
                events.append(ErrorEvent(error=error, response=partial))
        finish = Finish(finish_reason=partial.finish_reason, usage=partial.usage, response=partial)
        return [*events, finish]

    def _partial(self, reason: Reason) -> Response:
        partial, request = self.accumulator.partial(), self._request
        return replace(
            partial,
            model=partial.model or request.model,
            provider=partial.provider or request.provider or "",
            request_id=partial.request_id or request.request_id,
            finish_reason=FinishReason(reason=reason),
        )
