"""What a reader has seen of a run's events."""

from __future__ import annotations

from interlingua.spec.errors import StreamError
from interlingua.spec.events import Finish, StreamEvent
from interlingua.spec.response import Response
from interlingua.wire.accumulate import StreamAccumulator


class Progress:
    """Keeps the events that were read, and folds them only when somebody looks."""

    def __init__(self) -> None:
        self._accumulator = StreamAccumulator()
        self._unread: list[StreamEvent] = []
        self._last: Response | None = None
        self._began = False

    def feed(self, event: StreamEvent) -> None:
        """One more was read."""
        self._unread.append(event)
        if type(event) is Finish:
            self._last = event.response

    def partial(self) -> Response | None:
        """The answer as far as it has come; None before it has begun."""
        self._began = self._began or bool(self._unread)
        for event in self._unread:
            self._accumulator.feed(event)
        self._unread.clear()
        return self._accumulator.partial() if self._began else None

    def response(self) -> Response:
        """The last answer, when it is over; `StreamError` before."""
        if self._last is None:
            raise StreamError("the stream is not over; read it to its end first")
        return self._last
