"""Which result answers which call, on a wire where both may come without an id."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from interlingua.spec.contracts import NewId
from interlingua.wire.carry import counting_ids


class Links:
    """
    Names calls that have no id, and finds the call that a result without one answers.

    Feed it the calls and results of a conversation in their order; `turn()` starts each
    content.
    """

    __slots__ = ("_answered", "_make", "_names", "_turn", "_waiting")

    def __init__(self, make: Callable[[], str]) -> None:
        self._make = make
        self._turn = 0
        self._names: dict[str, str] = {}
        self._answered: set[str] = set()
        # of each function, the turns that called it and the ids they called it by
        self._waiting: dict[str, list[tuple[int, deque[str]]]] = {}

    def turn(self) -> None:
        """The next content begins."""
        self._turn += 1

    def call(self, name: str, given: str | None) -> str:
        """The id of a call."""
        call_id = given or self._new()
        self._names[call_id] = name
        self._answered.discard(call_id)  # an id may be used again in a later turn
        turns = self._waiting.setdefault(name, [])
        if not turns or turns[-1][0] != self._turn:
            turns.append((self._turn, deque()))
        turns[-1][1].append(call_id)
        return call_id

    def answer(self, name: str | None, given: str | None) -> str:
        """The id of the call a result answers: the nearest turn's first that still waits."""
        call_id = given or self._next_waiting(name) or self._new()
        self._answered.add(call_id)
        return call_id

    def name_of(self, call_id: str) -> str | None:
        """The function a call was for."""
        return self._names.get(call_id)

    def _next_waiting(self, name: str | None) -> str | None:
        turns = self._waiting.get(name or "", [])
        while turns:
            calls = turns[-1][1]
            while calls:
                call_id = calls.popleft()
                if call_id not in self._answered:
                    return call_id
            turns.pop()
        return None

    def _new(self) -> str:
        while (made := self._make()) in self._names:
            pass
        return made


def request_links() -> Links:
    """Ids by place: the same request gives the same ids, and a longer one the same prefix."""
    number = counting_ids()
    return Links(lambda: f"call_unnamed_{number()}")


def response_links(new_id: NewId | None) -> Links:
    """Ids from the caller's source, which are unlike those of earlier answers."""
    make = new_id or counting_ids()
    return Links(lambda: f"call_{make()}")
