"""Runs a coroutine middleware around a stream, in its own task."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Sequence
from typing import Any

from msgspec.structs import replace

from interlingua.client.middleware.shown import is_replaced, mark_replaced, without_raw
from interlingua.runtime.fold import close_stream
from interlingua.spec.content import Part, ToolCall
from interlingua.spec.defaults import MANY_PARTS
from interlingua.spec.errors import ConfigurationError, StreamError
from interlingua.spec.events import Finish, StreamEvent, ToolCallEnd
from interlingua.spec.request import Request
from interlingua.spec.response import Response
from interlingua.streams.accumulate import StreamAccumulator, events_from_response
from interlingua.streams.grammar import is_content


def check_returned(response: Any, layer: object) -> Response:
    """What a layer returned; `ConfigurationError` if it is not a response."""
    if isinstance(response, Response):
        return response
    raise ConfigurationError(
        f"The middleware {layer!r} returned {type(response).__name__}, not a Response. Return what "
        "`await call_next(request)` gives, or another Response."
    )


class Handover:
    """
    Passes events from the layer's task to the reader, one at a time.

    The task waits while the reader handles an event, as a generator would. Nothing is passed on
    before the first content event, so that the layer may call `next` again until then. The end of
    a tool call is passed on when the layer has returned: it shows the call as it will run. With
    `hold`, nothing is passed on before that.
    """

    def __init__(
        self, call_next: Callable[[Request], AsyncIterator[StreamEvent]], *, hold: bool
    ) -> None:
        self._call_next = call_next
        self._hold = hold
        self._withheld: list[StreamEvent] = []
        self._call_ends: list[ToolCallEnd] = []
        self._shown = StreamAccumulator()
        self._has_shown = False
        self._finish: Finish | None = None
        self._task: asyncio.Task[Response] | None = None
        self._layer: object = None
        self._loop = asyncio.get_running_loop()
        self._slot: asyncio.Future[StreamEvent | None] = self._loop.create_future()
        self._taken: asyncio.Future[None] = self._loop.create_future()

    # In the layer's task.

    async def next(self, request: Request) -> Response:
        """The response of the next layer, at the end of its stream."""
        if self._has_shown:
            raise ConfigurationError(
                "A middleware called `next` again after a part of the answer was delivered. "
                "Set `hold = True` to withhold events until it returns."
            )
        self._withheld.clear()
        self._call_ends.clear()
        self._finish = None
        events = self._call_next(request)
        try:
            async for event in events:
                if type(event) is Finish:
                    self._finish = event
                else:
                    await self._pass(event)
        finally:
            await close_stream(events)
        if self._finish is None or self._finish.response is None:
            raise StreamError("The stream ended without a finish event.")
        return self._finish.response

    async def _pass(self, event: StreamEvent) -> None:
        if not self._has_shown:
            self._withheld.append(event)
            if self._hold or not is_content(event):
                return
            self._has_shown = True
            events, self._withheld = self._withheld, []
        else:
            events = [event]
        for each in events:
            if type(each) is ToolCallEnd:
                self._call_ends.append(each)
                continue
            self._shown.feed(each)
            self._taken = self._loop.create_future()
            self._slot.set_result(each)
            await self._taken

    # In the reader's task.

    def start(self, work: Coroutine[Any, Any, Response], layer: object) -> None:
        """Start the task of the layer."""
        self._layer = layer
        self._task = self._loop.create_task(work)
        self._task.add_done_callback(self._stop)

    async def events(self) -> AsyncGenerator[StreamEvent, None]:
        """The events that the layer passes on until it returns."""
        while (event := await self._slot) is not None:
            self._slot = self._loop.create_future()
            yield event
            if not self._taken.done():  # the layer may have cancelled itself, by a timeout
                self._taken.set_result(None)

    @property
    def is_large(self) -> bool:
        """Whether `end` is too much for one step of the event loop."""
        return self._shown.is_large or len(self._withheld) > MANY_PARTS

    def end(self) -> list[StreamEvent]:
        """
        The remaining events, of the response that the layer returned; raises its error.

        A response that differs from the events that were delivered is marked.
        """
        if self._task is None:
            return []
        response, finish = check_returned(self._task.result(), self._layer), self._finish
        is_same = finish is not None and response is finish.response
        if not self._has_shown:
            if is_same and finish is not None:
                return [*self._withheld, finish]
            *events, last = events_from_response(response)
            return [*events, replace(last, response=response)]
        ends = self._call_ends if is_same else self._decided(response.message.tool_calls)
        for end in ends:
            self._shown.feed(end)
        events = [*self._withheld, *ends, *self._shown.end_segments()]
        if is_same and finish is not None:
            return [*events, finish]
        if finish is not None and finish.response is not None:
            response = without_raw(response, finish.response)
        if not self._is_shown(response.message.content, ends):
            response = mark_replaced(response)
        last = Finish(finish_reason=response.finish_reason, usage=response.usage, response=response)
        return [*events, last]

    def _is_shown(self, content: Sequence[Part], ends: Sequence[ToolCallEnd]) -> bool:
        """Whether the events have shown this content; a decoder may order its response anew."""
        if content == self._shown.content():
            return True
        response = None if self._finish is None else self._finish.response
        if response is None or is_replaced(response):
            return False
        calls = {_key(end.tool_call): end.tool_call for end in ends}
        return content == tuple(
            calls.get(_key(part), part) if isinstance(part, ToolCall) else part
            for part in response.message.content
        )

    def _decided(self, calls: Sequence[ToolCall]) -> list[ToolCallEnd]:
        """The ends of the calls that were delivered, with the calls that the layer returned."""
        ends = list(self._call_ends)
        places = {_key(end.tool_call): at for at, end in enumerate(ends)}
        for call in calls:
            at = places.pop(_key(call), None)
            if at is not None:
                ends[at] = replace(ends[at], tool_call=call)
        return ends

    async def close(self) -> None:
        """Cancel the layer's task if the reader left before its end."""
        task = self._task
        if task is None:
            return
        if not task.done():
            task.cancel()
            await asyncio.wait({task})
        if not task.cancelled():
            task.exception()  # marks it as retrieved: it was raised to the reader, or nobody reads

    def _stop(self, _: object) -> None:
        if not self._slot.done():
            self._slot.set_result(None)


def _key(call: ToolCall) -> tuple[str, str]:
    return call.id, call.name
