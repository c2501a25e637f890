"""The events of one step of a streamed run: its beginning, its parts, its end."""

from __future__ import annotations

from collections.abc import Sequence

from interlingua.runtime.cancel import CancelScope
from interlingua.spec.content import ToolResult
from interlingua.spec.errors import StreamError
from interlingua.spec.events import (
    Finish,
    StepStart,
    StreamEvent,
    StreamStart,
    ToolResultEvent,
)
from interlingua.spec.response import Response
from interlingua.streams.accumulate import StreamAccumulator
from interlingua.streams.grammar import is_content, renumber_finish


def opening_events(
    start: StreamStart, step: int, results: tuple[ToolResult, ...]
) -> list[StreamEvent]:
    """
    The events before the answer of a step; only the first one begins the stream.

    `results` are those of calls that an earlier run left open.
    """
    if step:
        return [StepStart(step=step)]
    earlier = [ToolResultEvent(result=result) for result in results]
    return [start, *earlier, StepStart(step=step)]


class Beginning:
    """The first events of a stream, which are withheld until there is content."""

    __slots__ = ("_withheld", "is_shown")

    def __init__(self) -> None:
        self._withheld: list[StreamEvent] = []
        self.is_shown: bool = False

    def take(self, event: StreamEvent) -> Sequence[StreamEvent]:
        """The events to deliver after this one has come."""
        if self.is_shown:
            return (event,)
        self._withheld.append(event)
        return self.release() if is_content(event) else ()

    def release(self) -> Sequence[StreamEvent]:
        """The events that were withheld; from now on none is."""
        events, self._withheld, self.is_shown = self._withheld, [], True
        return events


def count_parts(
    finish: Finish | None, before: int, accumulator: StreamAccumulator | None
) -> tuple[Finish | None, int]:
    """
    The end of a step as the run numbers its parts, and how many indexes are used after it.

    `before` is how many were used before it.
    """
    used = 0 if accumulator is None else max(accumulator.parts, default=-1) + 1
    if finish is not None and before and (finish.citations or finish.logprobs):
        finish = renumber_finish(finish, before)
    return finish, before + used


def answer_of(finish: Finish | None, scope: CancelScope) -> Response:
    """The response of a step; raises an error if the step did not finish."""
    if finish is None or finish.response is None:
        raise StreamError("The stream ended without a finish event.")
    if finish.finish_reason.reason == "cancelled":
        raise scope.error(finish.response)
    if scope.is_cancelled and scope.cause != "timeout":  # the caller does not want it any more
        raise scope.error(finish.response)
    return finish.response
