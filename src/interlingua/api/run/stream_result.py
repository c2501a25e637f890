"""What `stream` returns."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from interlingua.api.run.closed import ClosedByAsyncWith
from interlingua.api.run.results import GenerateResult
from interlingua.spec.events import StreamEvent
from interlingua.spec.response import Response

if TYPE_CHECKING:
    from interlingua.api.run.stream_run import StreamRun


class StreamResult(ClosedByAsyncWith):
    """
    The events of one run, which can be read once.

    `text_stream` has only the text. At the end, `response()` is the last answer and `result()`
    has all steps.
    """

    def __init__(self, run: StreamRun) -> None:
        self._run = run
        self._events = run.stream()

    def __aiter__(self) -> AsyncIterator[StreamEvent]:
        return self._events  # not self: saves a function call per event

    async def __anext__(self) -> StreamEvent:
        return await anext(self._events)

    async def aclose(self) -> None:
        """
        Stop the run and close the connection.

        If another task is reading, the run is cancelled: that task gets a last `Finish`.
        """
        from interlingua.runtime.fold import close_reading

        await close_reading(self._events, self._run.stop)

    @property
    def text_stream(self) -> AsyncIterator[str]:
        """Only the text, as it arrives."""
        return self._texts()

    @property
    def partial_response(self) -> Response | None:
        """The answer so far; None before it has begun."""
        return self._run.partial()

    def response(self) -> Response:
        """Return the last answer, or raise the error of a run that failed; only after the end."""
        return self._run.response()

    def result(self) -> GenerateResult[None]:
        """Return all steps and the whole conversation; only after the end."""
        self.response()
        return self._run.result()

    async def _texts(self) -> AsyncIterator[str]:
        async for event in self:
            if event.type == "text_delta":
                yield event.delta
