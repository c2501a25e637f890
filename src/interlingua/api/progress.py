"""What a reader has seen of a run's events."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from interlingua.spec.errors import SDKError, StreamError
from interlingua.spec.events import Finish, StreamEvent
from interlingua.spec.response import FinishReason, Response
from interlingua.wire.accumulate import StreamAccumulator


class Progress:
    """Keeps the events that were read, and folds them only when somebody looks."""

    def __init__(self) -> None:
        self._accumulator = StreamAccumulator()
        self._unread: list[StreamEvent] = []
        self._last: Response | None = None
        self._error: Exception | None = None
        self._began = False

    def feed(self, event: StreamEvent) -> None:
        """One more was read."""
        self._unread.append(event)
        if type(event) is Finish:
            self._last = event.response

    def fail(self, error: Exception) -> None:
        """It ended with an error."""
        self._error = error

    @property
    def is_over(self) -> bool:
        """Whether its end, or an error, was read."""
        return self._last is not None or self._error is not None

    def give_up(self, error: SDKError) -> Iterator[StreamEvent]:
        """How it ends for a reader who does not want what came since: closed, then the error."""
        if self.partial() is not None:
            yield from self._accumulator.end_segments()
            reason = FinishReason(reason="cancelled")
            response = replace(error.partial or self._accumulator.partial(), finish_reason=reason)
            yield Finish(finish_reason=reason, usage=response.usage, response=response)
        self.fail(error)
        raise error

    def partial(self) -> Response | None:
        """The answer as far as it has come; None before it has begun."""
        self._began = self._began or bool(self._unread)
        for event in self._unread:
            self._accumulator.feed(event)
        self._unread.clear()
        return self._accumulator.partial() if self._began else None

    def response(self) -> Response:
        """The last answer, when it is over; `StreamError` before, its own error if it failed."""
        if self._error is not None:
            raise self._error
        if self._last is None:
            raise StreamError("the stream is not over; read it to its end first")
        return self._last
