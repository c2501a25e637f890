"""
One segment at a time, for wires on which parts do not overlap.

Events of a later segment wait until the earlier one has ended; then they follow in order.
Nothing waits while a single segment is open.
"""

from __future__ import annotations

from interlingua.spec.events import ProviderEvent, StreamEvent
from interlingua.wire.grammar import RULES, Action


class Sequencer:
    """
    Feed it events that obey the grammar; it gives back those that may be said now.

    Segments come out whole, in the order in which they began. Provider events that add
    no part are not waited for. Each event is held once at most.
    """

    __slots__ = ("_current", "_waiting")

    def __init__(self) -> None:
        self._current: str | None = None
        # By segment id; a part that came at once by its index.
        self._waiting: dict[str | int, list[StreamEvent]] = {}

    def feed(self, event: StreamEvent) -> list[StreamEvent]:
        """The events that may be said now."""
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

    def _begin(self, event: StreamEvent, id: str) -> list[StreamEvent]:  # noqa: A002 -- the event's word
        if self._current is None:
            self._current = id
            return [event]
        self._waiting[id] = [event]
        return []

    def _release(self) -> list[StreamEvent]:
        """What waited for the segment that has ended, up to one that is still open."""
        self._current = None
        events: list[StreamEvent] = []
        while self._waiting and self._current is None:
            first = next(iter(self._waiting))
            held = self._waiting.pop(first)
            events += held
            if isinstance(first, str) and RULES[type(held[-1])].action is not Action.END:
                self._current = first
        return events
