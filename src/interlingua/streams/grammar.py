"""The grammar of event streams: the allowed order of events, and a reordering for encoders."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from msgspec.structs import replace

from interlingua.spec.contracts import Frame, StreamEncoder
from interlingua.spec.errors import StreamError
from interlingua.spec.events import (
    ErrorEvent,
    Finish,
    ProviderEvent,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    StepFinish,
    StepStart,
    StreamEvent,
    StreamRestart,
    StreamStart,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
    ToolResultEvent,
)


class Action(Enum):
    """What an event does to the stream."""

    OPEN = "open"
    RESTART = "restart"
    START = "start"
    DELTA = "delta"
    END = "end"
    WHOLE = "whole"
    RESULT = "result"
    STEP = "step"
    ERROR = "error"
    CLOSE = "close"


class Rule(NamedTuple):
    """The action of an event, and the kind of segment it belongs to."""

    action: Action
    segment: str | None = None


RULES: dict[type, Rule] = {
    StreamStart: Rule(Action.OPEN),
    StreamRestart: Rule(Action.RESTART),
    TextStart: Rule(Action.START, "text"),
    TextDelta: Rule(Action.DELTA, "text"),
    TextEnd: Rule(Action.END, "text"),
    ReasoningStart: Rule(Action.START, "reasoning"),
    ReasoningDelta: Rule(Action.DELTA, "reasoning"),
    ReasoningEnd: Rule(Action.END, "reasoning"),
    ToolCallStart: Rule(Action.START, "tool_call"),
    ToolCallDelta: Rule(Action.DELTA, "tool_call"),
    ToolCallEnd: Rule(Action.END, "tool_call"),
    ProviderEvent: Rule(Action.WHOLE),
    ToolResultEvent: Rule(Action.RESULT),
    StepStart: Rule(Action.STEP),
    StepFinish: Rule(Action.STEP),
    ErrorEvent: Rule(Action.ERROR),
    Finish: Rule(Action.CLOSE),
}


DELTAS = frozenset(kind for kind, rule in RULES.items() if rule.action is Action.DELTA)
"""The events that only add to an open segment."""
ENDS = frozenset(kind for kind, rule in RULES.items() if rule.action is Action.END)
"""The events that end a segment."""


SEGMENT_EVENTS = frozenset(kind for kind, rule in RULES.items() if rule.segment is not None)
"""The events of text, reasoning and tool calls, which have an id and an index."""


def renumber_finish(finish: Finish, parts_before: int) -> Finish:
    """Return the end of a later step of a run, with the indexes that its parts have in the run."""
    return replace(
        finish,
        citations={index + parts_before: each for index, each in finish.citations.items()},
        logprobs={index + parts_before: each for index, each in finish.logprobs.items()},
    )


def is_content(event: StreamEvent) -> bool:
    """Whether the event shows a part of the answer; after it a call cannot be retried unseen."""
    if isinstance(event, (TextDelta, ReasoningDelta)):
        return bool(event.delta)
    is_part = isinstance(event, ProviderEvent) and event.part is not None
    return is_part or isinstance(event, ToolCallStart)


class Grammar:
    """
    Checks a stream event by event and refuses an event that is out of order.

    `StreamStart` comes first and exactly one `Finish` last. Starts have an increasing `index`,
    also over the steps of a run. A delta or end belongs to an open segment with the same id, kind
    and index. No segment is open at `ToolResultEvent`, `StepStart`, `StepFinish`,
    `StreamRestart`, `ErrorEvent` and `Finish`. Encoders
    refuse `StreamRestart` (`restarts=False`): no wire format can take back what was sent.
    """

    __slots__ = ("_last_index", "_open", "_restarts", "_seen", "finished", "started")

    def __init__(self, *, restarts: bool = True) -> None:
        self._restarts = restarts
        self._open: dict[str, tuple[str | None, int]] = {}
        self._seen: set[str] = set()
        self._last_index = -1
        self.started: bool = False
        self.finished: bool = False

    def feed(self, event: StreamEvent) -> None:
        """Accept the event, or raise `StreamError`."""
        rule = RULES[type(event)]
        if rule.action is Action.DELTA:  # first, because most events are deltas
            if self._open.get(event.id) != (rule.segment, event.index):  # type: ignore[union-attr]
                raise self._refuse(event, "no open segment has this id, kind and index")
            return
        if self.finished:
            raise self._refuse(event, "the stream has finished")
        if self.started is (rule.action is Action.OPEN):
            raise self._refuse(event, "stream_start must come first, and only once")
        if rule.action is Action.RESTART and not self._restarts:
            raise self._refuse(event, "this format cannot take back what was sent")
        self._apply(event, rule)

    def finish(self) -> None:
        """End of input: raises `StreamError` if there was no `Finish`."""
        if not self.finished:
            raise StreamError("The stream ended without a finish event.")

    def _apply(self, event: StreamEvent, rule: Rule) -> None:
        action = rule.action
        if action is Action.OPEN:
            self.started = True
        elif isinstance(event, (TextStart, ReasoningStart, ToolCallStart)):
            if event.id in self._seen:
                raise self._refuse(event, "this segment id was already used")
            self._advance(event, event.index)
            self._seen.add(event.id)
            self._open[event.id] = (rule.segment, event.index)
        elif isinstance(event, (TextEnd, ReasoningEnd, ToolCallEnd)):
            if self._open.get(event.id) != (rule.segment, event.index):
                raise self._refuse(event, "no open segment has this id, kind and index")
            del self._open[event.id]
        elif isinstance(event, ProviderEvent):
            if event.part is not None:
                self._advance(event, event.index)
        elif self._open:
            raise self._refuse(event, f"segments are still open: {', '.join(self._open)}")
        elif action is Action.RESTART:
            self._last_index = -1
            self._seen.clear()
        else:
            self.finished = action is Action.CLOSE

    def _advance(self, event: StreamEvent, index: int | None) -> None:
        if index is None or index <= self._last_index:
            raise self._refuse(event, f"index {index} is not greater than {self._last_index}")
        self._last_index = index

    def _refuse(self, event: StreamEvent, why: str) -> StreamError:
        segment = getattr(event, "id", None)
        name = f"{event.type} {segment!r}" if segment else event.type
        return StreamError(f"{name} out of order: {why}")


class Sequencer:
    """
    Reorders events so that segments do not overlap, for wire formats without overlapping parts.

    Takes events that obey the grammar. Segments come out one after another, in the order in
    which they started: the events of a later segment wait until the earlier one has ended.
    Provider events without a part are not delayed.
    """

    __slots__ = ("_current", "_waiting")

    def __init__(self) -> None:
        self._current: str | None = None
        # The key is the segment id, or the index of a part that came in one provider event.
        self._waiting: dict[str | int, list[StreamEvent]] = {}

    def feed(self, event: StreamEvent) -> list[StreamEvent]:
        """The events that can be sent now."""
        action = RULES[type(event)].action
        if action is Action.DELTA or action is Action.END:
            if event.id != self._current:  # type: ignore[union-attr]
                self._waiting[event.id].append(event)  # type: ignore[union-attr]
                return []
            return [event] if action is Action.DELTA else [event, *self._release()]
        if action is Action.START:
            return self._begin(event, event.id)  # type: ignore[union-attr]
        if isinstance(event, ProviderEvent) and self._current is not None:
            if event.part is None or event.index is None:
                return [event]
            self._waiting[event.index] = [event]
            return []
        return [event]

    def _begin(self, event: StreamEvent, id: str) -> list[StreamEvent]:  # noqa: A002 -- as in events
        if self._current is None:
            self._current = id
            return [event]
        self._waiting[id] = [event]
        return []

    def _release(self) -> list[StreamEvent]:
        """The events that waited for the ended segment, up to a segment that is still open."""
        self._current = None
        events: list[StreamEvent] = []
        while self._waiting and self._current is None:
            first = next(iter(self._waiting))
            waiting = self._waiting.pop(first)
            events += waiting
            if isinstance(first, str) and RULES[type(waiting[-1])].action is not Action.END:
                self._current = first
        return events


class SequentialEncoder:
    """
    The base of stream encoders for wire formats without overlapping parts.

    Checks the grammar and passes the events to `_encode` in the order of a `Sequencer`. Nothing
    is encoded after an `ErrorEvent`, and a stream with one needs no `Finish`.
    """

    def __init__(self) -> None:
        self._grammar = Grammar(restarts=False)
        self._sequencer = Sequencer()
        self._failed = False

    def feed(self, event: StreamEvent) -> list[Frame]:
        """The frames for this event."""
        self._grammar.feed(event)
        if self._failed:
            return []
        self._failed = type(event) is ErrorEvent
        return [frame for ready in self._sequencer.feed(event) for frame in self._encode(ready)]

    def finish(self) -> list[Frame]:
        """No frames: `Finish` is encoded when it comes. Raises `StreamError` if it is missing."""
        if not self._failed:
            self._grammar.finish()
        return []

    def _encode(self, event: StreamEvent) -> list[Frame]:
        raise NotImplementedError


class RewritingEncoder:
    """The base of encoders that give another encoder other events than they are given."""

    def __init__(self, encoder: StreamEncoder) -> None:
        self._encoder = encoder

    def feed(self, event: StreamEvent) -> list[Frame]:
        """The frames for this event."""
        return [frame for each in self._events(event) for frame in self._encoder.feed(each)]

    def finish(self) -> list[Frame]:
        """The frames at the end."""
        return self._encoder.finish()

    def _events(self, event: StreamEvent) -> list[StreamEvent]:
        raise NotImplementedError
