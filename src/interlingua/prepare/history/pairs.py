"""Which result answers which call."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Any

from interlingua.prepare.history.edit import Edits, Messages, Spot
from interlingua.spec.content import Opaque, Part, ToolCall, ToolResult
from interlingua.spec.facts import HistoryRules
from interlingua.spec.messages import Message

HOLDERS = ("user", "tool")
"""The roles that results are said in."""
_KINDS = (ToolCall, ToolResult, Opaque)
_RESULT_IDS = ("tool_use_id", "tool_call_id")


class Pairs:
    """
    The calls of a history and their results, by place.

    A result answers a call before it: of those with its id, the nearest turn's first that
    has no result yet. Opaque blocks of the target's own dialect may be either side.
    """

    def __init__(self, messages: Messages, target: HistoryRules) -> None:
        self.calls: dict[Spot, ToolCall] = {}
        self.result_of: dict[Spot, Spot] = {}
        """Of each call, its result."""
        self.orphans: list[Spot] = []
        """The results that answer no call."""
        self.misplaced: list[Spot] = []
        """The calls that are not the model's."""
        self.ends: dict[int, int] = _ends(messages, joined=target.joins_roles)
        """Of each message of the model, the last message of its turn."""
        self._turns: dict[int, list[Spot]] | None = None
        self._dialect = target.dialect
        # of each id, the turns that used it and the calls of theirs that wait for a result
        self._waiting: dict[str, list[tuple[int, deque[Spot]]]] = {}
        turn = 0
        for i, message in enumerate(messages):
            is_model = message.role == "assistant"
            turn += not is_model  # so that consecutive messages of the model share a number
            for k, part in enumerate(message.content):
                if type(part) in _KINDS:
                    self._feed(part, (i, k), turn, is_model=is_model)

    def _feed(self, part: Part, spot: Spot, turn: int, *, is_model: bool) -> None:
        if isinstance(part, ToolResult):
            if not self._answer(part.tool_call_id, spot):
                self.orphans.append(spot)
        elif isinstance(part, ToolCall):
            if is_model:
                self.calls[spot] = part
                self._call(part.id, spot, turn)
            else:
                self.misplaced.append(spot)
        elif isinstance(part, Opaque) and part.dialect == self._dialect:
            called, answered = _ids(part.data, is_model=is_model)
            if answered is not None:
                self._answer(answered, spot)
            elif called is not None:
                self._call(called, spot, turn)

    def _call(self, call_id: str, spot: Spot, turn: int) -> None:
        turns = self._waiting.setdefault(call_id, [])
        if not turns or turns[-1][0] != turn:
            turns.append((turn, deque()))
        turns[-1][1].append(spot)

    def _answer(self, call_id: str, spot: Spot) -> bool:
        turns = self._waiting.get(call_id)
        if not turns:
            return False
        call = turns[-1][1].popleft()
        if not turns[-1][1]:
            turns.pop()
        self.result_of[call] = spot
        return True

    def results_by_turn(self) -> dict[int, list[Spot]]:
        """Of each turn that calls, by its last message, the results in the order of the calls."""
        if self._turns is None:
            self._turns = {self.ends[i]: [] for i, _ in self.calls}
            for (i, _), result in sorted(self.result_of.items()):
                self._turns.setdefault(self.ends[i], []).append(result)
        return self._turns


def end_of_results(messages: Messages, end: int, results: Iterable[Spot]) -> int:
    """The first message after a turn that is more than results of that turn."""
    own = set(results)
    place = end + 1
    while place < len(messages) and _holds_only(messages[place], place, own):
        place += 1
    return place


def _holds_only(message: Message, place: int, own: set[Spot]) -> bool:
    parts = message.content
    is_there = message.role in HOLDERS and bool(parts)
    return is_there and all((place, k) in own for k in range(len(parts)))


def holds_only_results(message: Message) -> bool:
    """Whether a message that may hold results holds nothing else."""
    return (
        message.role in HOLDERS
        and bool(message.content)
        and all(isinstance(part, ToolResult) for part in message.content)
    )


def pairs_of(messages: Messages, target: HistoryRules, trail: Edits) -> Pairs:
    """The pairs, found once for as long as the history does not change."""
    return trail.cached(messages, Pairs, target)


def _ends(messages: Messages, *, joined: bool) -> dict[int, int]:
    ends: dict[int, int] = {}
    for i in range(len(messages) - 1, -1, -1):
        if messages[i].role == "assistant":
            ends[i] = ends.get(i + 1, i) if joined else i
    return ends


def _ids(data: Any, *, is_model: bool) -> tuple[str | None, str | None]:
    """The id under which an opaque block calls, and the one it answers."""
    if not isinstance(data, dict):
        return None, None
    answered = next((data[key] for key in _RESULT_IDS if key in data), None)
    if answered is None and not is_model:
        answered = data.get("call_id")
    called = (data.get("call_id") or data.get("id")) if is_model else None
    return (
        called if isinstance(called, str) else None,
        answered if isinstance(answered, str) else None,
    )
