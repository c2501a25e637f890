"""The events of one step of a stream: what they add up to, and how they end."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from msgspec.structs import replace

from interlingua.spec.errors import ConfigurationError, SDKError, StreamError
from interlingua.spec.events import ErrorEvent, Finish, StepFinish, StreamEvent, StreamStart
from interlingua.spec.messages import Message
from interlingua.spec.request import Request
from interlingua.spec.response import FinishReason, Response, Usage
from interlingua.streams.accumulate import StreamAccumulator
from interlingua.tokens.estimate import estimate_request


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


# What a reader has seen of a run's events.


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
        """The last answer; `ConfigurationError` before the end, its own error if it failed."""
        if self._error is not None:
            raise self._error
        if self._last is None:
            raise ConfigurationError("The stream has not ended. Read it to its end first.")
        return self._last


# The tokens of an answer that broke off.


def fill_usage(partial: Response, request: Request) -> Response:
    """
    The answer with tokens for what had come of it.

    Many providers tell them only at the end, and bill what was broken off all the same. What
    they have not told is estimated, and says so; nothing is, if nothing had come.
    """
    usage, message = partial.usage, partial.message
    if partial.finish_reason.reason not in ("cancelled", "error") or not message.content:
        return partial
    came = _estimate(request, message, partial) - _estimate(
        request, replace(message, content=()), partial
    )
    known = replace(
        usage,
        input_tokens=usage.input_tokens or estimate_request(request, partial.provider),
        output_tokens=max(usage.output_tokens, came),
    )
    return partial if known == usage else replace(partial, usage=replace(known, estimated=True))


def _estimate(request: Request, message: Message, partial: Response) -> int:
    return estimate_request(Request(model=request.model, messages=(message,)), partial.provider)
