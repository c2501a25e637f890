"""What the reader of a blocking stream has seen; the loop's thread may be ahead of it."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from interlingua.spec.errors import ConfigurationError, SDKError
from interlingua.spec.events import Finish, StreamEvent
from interlingua.spec.response import FinishReason, Response
from interlingua.streams.accumulate import StreamAccumulator


class Progress:
    """Adds up the events that were read."""

    def __init__(self) -> None:
        self._accumulator = StreamAccumulator()
        self._last: Response | None = None
        self._error: Exception | None = None

    def feed(self, event: StreamEvent) -> None:
        """One more was read."""
        self._accumulator.feed(event)
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
        if self._accumulator.has_begun:
            yield from self._accumulator.end_segments()
            reason = FinishReason(reason="cancelled")
            response = replace(error.partial or self._accumulator.partial(), finish_reason=reason)
            yield Finish(finish_reason=reason, usage=response.usage, response=response)
        self.fail(error)
        raise error

    def partial(self) -> Response | None:
        """The answer as far as it was read; None before it has begun."""
        return self._accumulator.partial() if self._accumulator.has_begun else None

    def response(self) -> Response:
        """The last answer; `ConfigurationError` before the end, its own error if it failed."""
        if self._error is not None:
            raise self._error
        if self._last is None:
            raise ConfigurationError("The stream has not ended. Read it to its end first.")
        return self._last
