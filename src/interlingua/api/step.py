"""The events of one step of a stream: what they add up to, and how they end."""

from __future__ import annotations

from typing import cast

from msgspec.structs import replace

from interlingua.spec.errors import SDKError, StreamError
from interlingua.spec.events import ErrorEvent, Finish, StepFinish, StreamEvent, StreamStart
from interlingua.spec.response import FinishReason, Response, Usage
from interlingua.wire.accumulate import StreamAccumulator


class StepReader:
    """
    One step, as it comes.

    Its end is kept back, as the run may go on; so is its start, unless it is the first.
    """

    def __init__(self, *, is_first: bool) -> None:
        self._events: list[StreamEvent] = []  # added up only where that is needed
        self._finish: Finish | None = None
        self._is_first = is_first

    def feed(self, event: StreamEvent) -> bool:
        """Take in an event; whether it is one to pass on."""
        self._events.append(event)
        kind = type(event)
        if kind is Finish:
            self._finish = cast(Finish, event)
            return False
        return kind is not StreamStart or self._is_first

    def response(self) -> Response:
        """The whole answer; `StreamError` if the stream had no end."""
        if self._finish is None:
            raise StreamError("the stream ended before its end")
        return self._finish.response or self._added_up().response()

    def end(self, response: Response) -> Finish:
        """The event that was kept back, with the response that the run made of it."""
        if self._finish is None:
            raise StreamError("the stream ended before its end")
        return replace(self._finish, response=response)

    def pause(self, number: int, response: Response) -> StepFinish:
        """The event in its place, if the run goes on after this step."""
        return StepFinish(step=number, response=response)

    @property
    def is_broken(self) -> bool:
        """Whether it has begun, and not come to its end."""
        return bool(self._events) and self._finish is None

    @property
    def is_over(self) -> bool:
        """Whether its end has come, so that there is nothing left to wait for."""
        return self._finish is not None and not self.is_cancelled

    @property
    def is_cancelled(self) -> bool:
        """Whether it ended because somebody cancelled the call itself."""
        return self._finish is not None and self._finish.finish_reason.reason == "cancelled"

    def partial(self, *, is_stopped: bool = False) -> Response:
        """What had come."""
        if self._finish is not None and self._finish.response is not None:
            return self._finish.response
        reason = FinishReason(reason="cancelled" if is_stopped else "error")
        return replace(self._added_up().partial(), finish_reason=reason)

    def fail(self, error: SDKError, *, is_stopped: bool) -> list[StreamEvent]:
        """How the events of a run end that failed in this step: as those of one call do."""
        partial = error.partial
        usage = Usage() if partial is None else partial.usage
        finish = self._finish
        if finish is not None and finish.finish_reason.reason in ("cancelled", "error"):
            # the call itself has told the rest
            return [replace(finish, usage=usage, response=partial)]
        events = self._added_up().end_segments()
        if not is_stopped:
            events.append(ErrorEvent(error=error, response=partial))
        reason = FinishReason(reason="cancelled" if is_stopped else "error")
        return [*events, Finish(finish_reason=reason, usage=usage, response=partial)]

    def _added_up(self) -> StreamAccumulator:
        accumulator = StreamAccumulator()
        for event in self._events:
            accumulator.feed(event)
        return accumulator
