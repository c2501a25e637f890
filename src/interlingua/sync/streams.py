"""`stream`, blocking."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Self, Unpack

from msgspec.structs import replace

from interlingua.api.run import generate as run
from interlingua.api.run.closed import NOT_ENDED
from interlingua.api.run.options import GenerateOptions, Prompt
from interlingua.api.run.results import GenerateResult
from interlingua.api.run.stream_run import StreamRun
from interlingua.spec.errors import ConfigurationError, SDKError
from interlingua.spec.events import Finish, StreamEvent
from interlingua.spec.response import FinishReason, Response
from interlingua.streams.accumulate import StreamAccumulator
from interlingua.streams.grammar import DELTAS
from interlingua.sync.blocking import documented_by
from interlingua.sync.blocking_iterator import BlockingIterator, ClosedByWith


@documented_by(run.stream)
def stream(
    model: str | None, prompt: Prompt = None, **options: Unpack[GenerateOptions]
) -> StreamResult:
    return StreamResult(StreamRun(model, prompt, options))


class StreamResult(ClosedByWith):
    """
    The events of one run, which can be read once.

    `text_stream` has only the text. At the end, `response()` is the last answer and `result()`
    has all steps.
    """

    def __init__(self, run: StreamRun) -> None:
        self._run = run
        self._events = BlockingIterator(
            run.stream(), lambda event: type(event) in DELTAS and run.is_cancelled
        )
        self._progress = Progress()
        self._end: Iterator[StreamEvent] | None = None

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> StreamEvent:
        if self._run.is_aborted and self._end is None and not self._progress.is_over:
            error = self._events.discard() or self._run.abort_error()
            self._end = self._progress.abort(error)
        if self._end is not None:
            return next(self._end)
        try:
            event = next(self._events)
        except SDKError as error:
            self._progress.fail(error)
            raise
        self._progress.feed(event)
        return event

    def close(self) -> None:
        """Stop the run and close the connection."""
        self._events.close()

    @property
    def text_stream(self) -> Iterator[str]:
        """Only the text, as it arrives."""
        return (event.delta for event in self if event.type == "text_delta")

    @property
    def partial_response(self) -> Response | None:
        """The answer as far as it was read; None before it has begun."""
        partial = self._progress.partial()
        return None if partial is None else self._run.label(partial)

    def response(self) -> Response:
        """Return the last answer, or raise the error of a run that failed; only after the end."""
        return self._progress.response()

    def result(self) -> GenerateResult[None]:
        """Return all steps and the whole conversation; only after the end."""
        self.response()
        return self._run.result()


class Progress:
    """What the reader of a blocking stream has read; the loop's thread may be ahead of it."""

    def __init__(self) -> None:
        self._accumulator = StreamAccumulator()
        self._last: Response | None = None
        self._error: Exception | None = None

    def feed(self, event: StreamEvent) -> None:
        """Add an event that was read."""
        self._accumulator.feed(event)
        if type(event) is Finish:
            self._last = event.response

    def fail(self, error: Exception) -> None:
        """The stream raised this error."""
        self._error = error

    @property
    def is_over(self) -> bool:
        """Whether the last event or an error was read."""
        return self._last is not None or self._error is not None

    def abort(self, error: SDKError) -> Iterator[StreamEvent]:
        """The closing events for a reader that aborted; then the error is raised."""
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
        """The last answer; raises the stream's error if it failed."""
        if self._error is not None:
            raise self._error
        if self._last is None:
            raise ConfigurationError(NOT_ENDED)
        return self._last
