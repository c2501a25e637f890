"""
The fold of a stream: the one place that accumulates events and closes failed streams.

The code inside (adapter, attempts, middleware) yields events, and only raises when it fails. Here
`Finish` gets its response, and a failed or cancelled stream gets its closing events.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Iterable
from typing import Any

from msgspec.structs import replace

from interlingua.runtime.cancel import CancelScope, Scopes
from interlingua.spec.errors import SDKError, StreamError
from interlingua.spec.events import ErrorEvent, Finish, StreamEvent, StreamStart
from interlingua.spec.messages import Message
from interlingua.spec.request import Request
from interlingua.spec.response import FinishReason, Reason, Response, label_message
from interlingua.streams.accumulate import StreamAccumulator
from interlingua.streams.grammar import DELTAS, ENDS

_BATCH = 256  # events that are passed on in one step


def fold_stream(
    open_events: Callable[[CancelScope], AsyncIterator[StreamEvent]],
    request: Request,
    scopes: Scopes,
    scope: CancelScope | None = None,
    *,
    accumulator: StreamAccumulator | None = None,
    finish: Callable[[Finish, StreamAccumulator], Response] | None = None,
    settle: Callable[[Response], Response] | None = None,
    revise: Callable[[StreamEvent, StreamAccumulator], StreamEvent] | None = None,
) -> AsyncGenerator[StreamEvent, None]:
    """
    Return the events of a stream, always with a proper end.

    Without a `scope`, one is made and registered in `scopes` under the request's id. `accumulator`
    is for callers that read the partial response; `finish` makes the response of a completed
    stream, and `settle` that of one that failed; `revise` may change an event that ends a
    segment. A cancelled stream ends with `Finish(reason=cancelled)`; then the error of the scope
    is raised, unless the stream was cancelled by its id.
    """
    fold = _Fold(request, accumulator or StreamAccumulator(), finish)
    fold.revise, fold.settle = revise, settle
    events = _folded(fold, open_events, scopes, scope)
    return FoldedStream(events, fold) if scope is None else events  # a run closes its own


async def _folded(  # noqa: C901, PLR0912 -- one function: every delta passes here
    fold: _Fold,
    open_events: Callable[[CancelScope], AsyncIterator[StreamEvent]],
    scopes: Scopes,
    scope: CancelScope | None,
) -> AsyncGenerator[StreamEvent, None]:
    fold.scope = scope or CancelScope()
    fold.owns_scope = owns_scope = scope is None  # otherwise it belongs to a run
    if owns_scope:
        scopes.add(fold.request_id, fold.scope)
    scope, segments = fold.scope, fold.accumulator.open
    events, loop = open_events(scope), asyncio.get_running_loop()
    try:
        # `scope.wait` and most of `accumulator.feed` are inlined: function calls cost much here.
        while not scope.is_cancelled:
            task = scope.task = asyncio.current_task(loop)
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
                yield event
            else:
                for each in await fold.deliver(event):
                    yield each
    except StopAsyncIteration:
        fold.stop(StreamError("The stream ended without a finish event."))
    except Exception as error:  # noqa: BLE001 -- raised again after the closing events
        fold.error = error
    finally:
        if owns_scope:
            scopes.remove(fold.request_id, scope)
        await close_stream(events)
    async for event in in_steps(await fold.close(), fold.error):
        yield event


class FoldedStream(AsyncGenerator[StreamEvent, None]):
    """The events of a call. If it is closed while another task reads it, the call is cancelled."""

    __slots__ = ("_events", "_fold")

    def __init__(self, events: AsyncGenerator[StreamEvent, None], fold: _Fold) -> None:
        self._events = events
        self._fold = fold

    def __aiter__(self) -> AsyncGenerator[StreamEvent, None]:  # noqa: PYI058 -- as its base has it
        return self._events  # not self: saves a function call per event

    def asend(self, value: None) -> Coroutine[Any, Any, StreamEvent]:
        """The next event."""
        return self._events.asend(value)

    def athrow(self, *error: Any) -> Coroutine[Any, Any, StreamEvent]:
        """Raise an error where the stream waits."""
        return self._events.athrow(*error)

    async def aclose(self) -> None:
        """End the stream and close its connection."""
        await close_reading(self._events, self._fold.cancel)


async def close_reading(events: AsyncGenerator[Any, None], cancel: Callable[[], object]) -> None:
    """
    Close a generator; if another task is reading it now, cancel its work instead.

    Python refuses to close it then: «aclose(): asynchronous generator is already running». The
    task that reads ends it.
    """
    if getattr(events, "ag_running", False):
        cancel()
    else:
        await events.aclose()


async def in_steps(
    events: Iterable[StreamEvent], error: Exception | None = None
) -> AsyncGenerator[StreamEvent, None]:
    """The events, then the error, if there is one; after every 256 events other tasks run."""
    for number, event in enumerate(events, 1):
        yield event
        if number % _BATCH == 0:
            await asyncio.sleep(0)
    if error is not None:
        raise error


async def close_stream(events: AsyncIterator[StreamEvent]) -> None:
    """Close an iterator, if it can be closed, so that it releases its connection now."""
    close = getattr(events, "aclose", None)
    if close is not None:
        await close()


class ClosedStream:
    """A context with the events of a stream, which is closed at its end."""

    __slots__ = ("_events",)

    def __init__(self, events: AsyncIterator[StreamEvent]) -> None:
        self._events = events

    async def __aenter__(self) -> AsyncIterator[StreamEvent]:
        return self._events

    async def __aexit__(self, *_: object) -> None:
        await close_stream(self._events)


def as_sdk_error(error: Exception) -> SDKError:
    """The error; for an exception of a middleware or a custom adapter, an error of ours."""
    if isinstance(error, SDKError):
        return error
    return SDKError(f"{type(error).__name__}: {error}", cause=error)


class _Fold:
    """The state of one stream: its accumulator, its error, and whether it has finished."""

    __slots__ = (
        "_finish",
        "_request",
        "accumulator",
        "error",
        "is_finished",
        "owns_scope",
        "request_id",
        "revise",
        "scope",
        "settle",
    )

    def __init__(
        self,
        request: Request,
        accumulator: StreamAccumulator,
        finish: Callable[[Finish, StreamAccumulator], Response] | None,
    ) -> None:
        self._request = request
        self._finish = finish
        self.is_finished: bool = False
        self.request_id: str = request.request_id or ""
        self.scope: CancelScope  # set when the stream begins: it needs the event loop
        self.accumulator: StreamAccumulator = accumulator
        self.owns_scope: bool = False
        self.revise: Callable[[StreamEvent, StreamAccumulator], StreamEvent] | None = None
        self.settle: Callable[[Response], Response] | None = None
        self.error: Exception | None = None
        """The error to raise after the last event."""

    async def deliver(self, event: StreamEvent) -> tuple[StreamEvent, ...]:
        """As `take`; the end of a large stream is too much work for one step of the event loop."""
        if type(event) is Finish and self.accumulator.is_large:
            return await asyncio.to_thread(self.take, event)
        return self.take(event)

    async def close(self) -> list[StreamEvent]:
        """As `end`, for a large stream in a thread."""
        is_large = not self.is_finished and self.accumulator.is_large
        return await asyncio.to_thread(self.end) if is_large else self.end()

    def cancel(self) -> None:
        """End the call as `client.cancel` does by its id."""
        self.scope.cancel()

    def take(self, event: StreamEvent) -> tuple[StreamEvent, ...]:
        """
        Accumulate an event; returns what is delivered for it. `Finish` has the whole response.

        A middleware or an adapter may leave out the start of the stream or the end of a text, or
        send more after the end: what is delivered is in order.
        """
        accumulator, kind = self.accumulator, type(event)
        if self.is_finished or (kind is StreamStart and accumulator.has_begun):
            return ()
        if kind is Finish and self.owns_scope and not self.scope.finish():
            return ()  # cancelled at the last moment
        missing = () if kind is StreamStart or accumulator.has_begun else (self._start(),)
        if kind in ENDS and self.revise is not None:
            event = self.revise(event, accumulator)
        accumulator.feed(event)
        if type(event) is not Finish:
            return (*missing, event)
        ends = accumulator.end_segments() if accumulator.open else ()
        finish = self._finish
        if finish is None:
            response = accumulator.response()
            response = replace(response, message=self._message(response))
        else:
            response = finish(event, accumulator)
        self.is_finished = True
        return (*missing, *ends, replace(event, response=response))

    def stop(self, error: SDKError) -> None:
        """Note that the events have ended: with this error, unless `Finish` was seen."""
        if not self.is_finished:
            self.error = error

    def end(self) -> list[StreamEvent]:
        """
        The closing events of a stream that did not finish; also adds the partial to the error.

        There are none if nothing was delivered before, unless it was cancelled by its id.
        """
        scope, accumulator = self.scope, self.accumulator
        if self.is_finished:
            return []
        if scope.is_cancelled:
            self.error = None if scope.is_quiet else scope.error()
        events: list[StreamEvent] = []
        error = self.error
        if self.revise is not None and isinstance(error, SDKError):
            error.drop_partial()  # an adapter's own would show what middleware has removed
        if not accumulator.has_begun:
            if error is not None:
                return events
            events.append(self._start())
        events += accumulator.end_segments()
        partial = self._partial("cancelled" if scope.is_cancelled else "error")
        if error is not None:
            known = as_sdk_error(error)
            known.add_facts(partial=partial)
            if not scope.is_cancelled:
                events.append(ErrorEvent(error=known, response=partial))
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
        partial = replace(
            partial,
            model=partial.model or request.model,
            provider=partial.provider or request.provider or "",
            request_id=partial.request_id or request.request_id,
            finish_reason=FinishReason(reason=reason),
        )
        if self.settle is not None:
            return self.settle(partial)
        return replace(partial, message=self._message(partial))

    def _message(self, response: Response) -> Message:
        request = self._request
        return label_message(response, self.request_id, request.provider or "", request.model)
