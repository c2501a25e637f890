"""What a server says about an answer itself: when it was made, and the server's own id of it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from interlingua.runtime.ulid import new_ulid
from interlingua.serving.application import serve_of
from interlingua.spec.content import Extra
from interlingua.spec.events import ErrorEvent, Finish, StreamEvent, StreamRestart, StreamStart
from interlingua.spec.response import Response

_STAMPED = frozenset((StreamStart, StreamRestart, Finish, ErrorEvent))


class AnswerStamp:
    """
    The time and the id of one answer, the same in all events of a stream.

    An answer that another server of the client's dialect gave keeps its id.
    """

    def __init__(self, dialect: str, clock: Callable[[], float] = time.time) -> None:
        self._dialect = dialect
        self.created_at: float = clock()
        self._id = f"{serve_of(dialect).SERVER.response_prefix}{new_ulid().lower()}"

    def stamp_response(self, response: Response) -> Response:
        """The answer with the time and the id."""
        id = self._id_of(response.id, response.extra)
        return replace(response, id=id, created_at=self.created_at)

    def stamp_event(self, event: StreamEvent) -> StreamEvent:
        """The event with the time and the id, if it has a place for them."""
        if type(event) not in _STAMPED:  # most are deltas
            return event
        match event:
            case StreamStart():
                return self._stamp_start(event)
            case StreamRestart():
                return replace(event, start=self._stamp_start(event.start))
            case Finish() | ErrorEvent() if event.response is not None:
                return replace(event, response=self.stamp_response(event.response))
        return event

    def _stamp_start(self, start: StreamStart) -> StreamStart:
        id = self._id_of(start.id, start.extra)
        return replace(start, id=id, created_at=self.created_at)

    def _id_of(self, given: str, extra: Extra) -> str:
        return given if given and self._dialect in extra else self._id


def stamp_result(result: Any, clock: Callable[[], float] = time.time) -> Any:
    """The result of an operation with the time, if it has a place for it and none yet."""
    if getattr(result, "created_at", 0.0) is None:
        return replace(result, created_at=float(int(clock())))
    return result
