"""The events of a stream as a layer saw them, to notice what the next layer changes."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from functools import partial

from msgspec.structs import replace

from interlingua.client.middleware.contract import Progress
from interlingua.runtime.fold import close_stream
from interlingua.spec.content import Part, ToolCall
from interlingua.spec.errors import ConfigurationError
from interlingua.spec.events import Finish, StreamEvent
from interlingua.spec.response import Response
from interlingua.spec.warnings import make_warning
from interlingua.streams.accumulate import StreamAccumulator
from interlingua.streams.grammar import DELTAS, ENDS

REPLACED = "answer_replaced"
"""The code of the warning that a response differs from the events that were delivered."""


class Shown:
    """
    The events of a stream as the last layer saw them, to notice what the next layer changes.

    A provider may end its stream with a whole response that says more than the events. That
    response is used unless a middleware changed the events: then the events count.
    """

    __slots__ = ("_changed", "_ends", "_settled")

    def __init__(self) -> None:
        self._settled: list[tuple[Response, tuple[Part, ...] | None]] = []
        self._ends: dict[str, tuple[StreamEvent, str, StreamEvent]] = {}
        self._changed: set[int] = set()  # the indexes of the parts with another text

    async def attach(
        self,
        open_events: Callable[[], AsyncIterator[StreamEvent]],
        *,
        progress: Progress | None = None,
        find_late: Callable[[Response], Awaitable[Response]] | None = None,
    ) -> AsyncGenerator[StreamEvent, None]:
        """
        The events of an attempt (with its `progress`) or of a layer; `Finish` gets their response.

        `find_late` gives the response that has replaced the one at the end of a layer's stream.
        """
        accumulator, events = StreamAccumulator(), open_events()
        segments, is_first = accumulator.open, progress is not None
        try:
            async for event in events:
                # As `accumulator.feed` does: a function call would cost each delta.
                if type(event) in DELTAS and event.id in segments:  # type: ignore[union-attr]
                    segments[event.id].pieces.append(event.delta)  # type: ignore[union-attr]
                    yield event
                elif type(event) is Finish:
                    if progress is not None:
                        progress.answer(event.usage, event.cost)
                    if find_late is not None and event.response is not None:
                        response = await find_late(event.response)
                        event = replace(event, response=response)  # noqa: PLW2901
                    end = partial(self._end, event, accumulator, is_first=is_first)
                    yield await asyncio.to_thread(end) if accumulator.is_large else end()
                else:
                    if type(event) in ENDS:
                        event = self.revise(event, accumulator, is_first=is_first)  # noqa: PLW2901
                    accumulator.feed(event)
                    yield event
        finally:
            await close_stream(events)

    def _end(self, finish: Finish, accumulator: StreamAccumulator, *, is_first: bool) -> Finish:
        if finish.logprobs:
            finish = self._without_old_tokens(finish)
        accumulator.feed(finish)
        return replace(finish, response=self.settle(finish, accumulator, is_first=is_first))

    def revise(
        self, event: StreamEvent, accumulator: StreamAccumulator, *, is_first: bool = False
    ) -> StreamEvent:
        """The end of a segment; if a layer changed only its start or deltas, made from those."""
        segment = accumulator.open.get(event.id)  # type: ignore[union-attr]
        if segment is None:
            return event  # the accumulator refuses it
        start, text = segment.start(), "".join(segment.pieces)
        before = None if is_first else self._ends.get(segment.id)
        if before is not None and before[1] != text:
            self._changed.add(segment.index)
        if before is not None and before[2] == event and before[:2] != (start, text):
            event = segment.end()
        self._ends[segment.id] = (start, text, event)
        return event

    def _without_old_tokens(self, finish: Finish) -> Finish:
        """The end of a stream without the tokens of texts that a layer changed."""
        tokens = {
            index: tokens for index, tokens in finish.logprobs.items() if index not in self._changed
        }
        return finish if len(tokens) == len(finish.logprobs) else replace(finish, logprobs=tokens)

    def settle(
        self, finish: Finish, accumulator: StreamAccumulator, *, is_first: bool = False
    ) -> Response:
        """The response of a finished stream."""
        response, content = accumulator.response(), accumulator.content()
        expected = content if is_first else self._find(finish.response)[1]
        if expected is not None and expected != content:
            response = replace(
                response,
                message=replace(response.message, content=content, extra={}),
                finish_reason=finish.finish_reason,
                usage=finish.usage,
                raw=None,
            )
        is_replaced = expected is None and bool(self._settled)
        self._settled.append((response, None if is_replaced else content))
        return response

    def add_replaced(self, response: Response) -> Response:
        """The response, which counts from now on although other events were delivered."""
        response = mark_replaced(response)
        self._settled.append((response, None))
        return response

    def find_replaced(self, response: Response | None) -> Response | None:
        """The response that replaced another at the last layer, if this one is based on it."""
        known, content = self._find(response)
        return known if content is None else None

    def _find(self, response: Response | None) -> tuple[Response | None, tuple[Part, ...] | None]:
        """The settled response that is this one, else the last; and the content of its events."""
        for entry in reversed(self._settled):
            if entry[0] is response:
                return entry
        return self._settled[-1] if self._settled else (None, None)


def refuse_hidden_calls(response: Response, content: Sequence[Part]) -> None:
    """Raise `ConfigurationError` for a tool call that the events have not shown as it would run."""
    shown: dict[tuple[str, str], deque[object]] = {}
    for part in content:
        if isinstance(part, ToolCall):
            shown.setdefault((part.id, part.name), deque()).append(part.arguments)
    for call in response.message.tool_calls:
        known = shown.get((call.id, call.name))
        if known is None or call.arguments not in known:
            raise ConfigurationError(
                f"A middleware returned a call of {call.name!r} that the events of the stream have "
                "not shown. Set `hold = True` on the middleware to withhold events until it "
                "returns."
            )
        known.rotate(-1)  # a server may use one id for thousands of calls, in the same order


def mark_replaced(response: Response) -> Response:
    """The response with the warning that it differs from the events that were delivered."""
    warning = make_warning(REPLACED)
    if warning in response.warnings:
        return response
    return replace(response, warnings=(*response.warnings, warning))


def is_replaced(response: Response) -> bool:
    """Whether the response is marked as one that differs from the events."""
    return any(warning.code == REPLACED for warning in response.warnings)


def without_raw(response: Response, answer: Response) -> Response:
    """The response; without the raw body if a layer changed the message and left the body."""
    is_same = response.message is answer.message or response.message == answer.message
    if response.raw is None or is_same or response.raw is not answer.raw:
        return response
    return replace(response, raw=None)
