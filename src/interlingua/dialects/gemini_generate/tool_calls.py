"""The ids of tool calls, and arguments that a stream delivers in pieces."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable
from itertools import islice, zip_longest

from interlingua.spec.content import Json, UncheckedJson
from interlingua.spec.contracts import NewId
from interlingua.wire.tool_calls import call_ids, counting_ids


class Links:
    """
    Gives ids to tool calls that have none, and finds the one that a result without an id answers.

    It needs the tool calls and results of a conversation in order; `turn()` starts each content.
    Ids are optional on the wire; without them the API matches results by name and place.
    """

    def __init__(self, make: Callable[[], str]) -> None:
        self._make = make
        self._turn = 0
        self._names: dict[str, str] = {}
        self._open: dict[str, int] = {}  # the tool calls without an answer, with their turns
        self._called: dict[str, int] = {}  # the last turn that called each function
        # for each function: the turns that called it, with the ids of the calls
        self._waiting: dict[str, list[tuple[int, deque[str]]]] = {}

    def turn(self) -> None:
        """Starts the next content."""
        self._turn += 1

    def call(self, name: str, wire_id: str | None) -> str:
        """The id of a tool call."""
        call_id = wire_id or self._new()
        self._names[call_id] = name
        self._open.pop(call_id, None)  # a later turn may use an id again
        self._open[call_id] = self._called[name] = self._turn
        turns = self._waiting.setdefault(name, [])
        if not turns or turns[-1][0] != self._turn:
            turns.append((self._turn, deque()))
        turns[-1][1].append(call_id)
        return call_id

    def answer(self, name: str | None, wire_id: str | None) -> str:
        """
        The id of the tool call that a result answers: the latest turn's first unanswered one.

        A name that no tool call of that turn has belongs to the only one that still waits.
        """
        name = name or ""
        call_id = wire_id or self._next_waiting(name) or self._only_open(name) or self._new()
        self._open.pop(call_id, None)
        return call_id

    def waits_for(self, name: Json) -> bool:
        """Whether a tool call of this function has no answer yet."""
        return isinstance(name, str) and self._next_waiting(name) is not None

    def name_of(self, call_id: str) -> str | None:
        """The function that a tool call named."""
        return self._names.get(call_id)

    def _next_waiting(self, name: str) -> str | None:
        turns = self._waiting.get(name, [])
        while turns:
            calls = turns[-1][1]
            while calls and calls[0] not in self._open:
                calls.popleft()
            if calls:
                return calls[0]
            turns.pop()
        return None

    def _only_open(self, name: str) -> str | None:
        calls = [*islice(reversed(self._open.items()), 2)]
        turns = [turn for _, turn in calls]
        if not calls or turns == turns[:1] * 2 or self._called.get(name) == turns[0]:
            return None
        return calls[0][0]

    def _new(self) -> str:
        call_id = self._make()
        if call_id in self._names:  # the caller's source may repeat itself
            call_id = f"{call_id}_{len(self._names)}"
        while call_id in self._names:
            call_id += "_"
        return call_id


def request_links() -> Links:
    """Numbered ids: equal requests get equal ids, and a longer history keeps its prefix."""
    number = counting_ids()
    return Links(lambda: f"call_unnamed_{number()}")


def response_links(new_id: NewId | None) -> Links:
    """Ids from the caller's source, so that they differ from the ids of earlier answers."""
    return Links(call_ids(new_id or counting_ids()))


# The path of a piece is a simple RFC 9535 path: `$.a.b[0]`, `$['a b']`.
_find_steps = re.compile(r"""\.?([^.\[\]]+)|\[(\d{1,9})\]|\[(?:'([^']*)'|"([^"]*)")\]""").finditer


class PartialArguments:
    """
    Joins the pieces of a tool call's arguments: `FunctionCall.partial_args`, at Vertex AI only.

    The pieces of a string are joined once, at the end, so the work is linear.
    """

    def __init__(self) -> None:
        self._values: dict[str, Json] = {}  # by path; a deque holds the pieces of a string

    def feed(self, piece: UncheckedJson) -> None:
        """Adds one item of `partialArgs`; items without a path or a value are ignored."""
        path = piece.get("jsonPath") if isinstance(piece, dict) else None
        if not isinstance(path, str):
            return
        text = piece.get("stringValue")
        if isinstance(text, str):
            pieces = self._values.get(path)
            if isinstance(pieces, deque):
                pieces.append(text)
            else:
                self._values[path] = deque((text,))
        elif "numberValue" in piece or "boolValue" in piece:
            self._values[path] = piece.get("numberValue", piece.get("boolValue"))
        elif "nullValue" in piece:
            self._values[path] = None

    def finish(self) -> dict[str, Json]:
        """The complete arguments."""
        arguments: dict[str, Json] = {}
        for path, value in self._values.items():
            steps = [
                int(match[2]) if match[2] else match[match.lastindex or 0]
                for match in _find_steps(path.removeprefix("$"))
            ]
            if steps:
                _put(arguments, steps, "".join(value) if isinstance(value, deque) else value)
        return arguments


def _put(arguments: dict[str, Json], steps: list[str | int], value: Json) -> None:
    """Stores a value at a path; an index past the end appends."""
    holder: UncheckedJson = arguments
    for step, following in zip_longest(steps, steps[1:]):
        default = value if following is None else [] if isinstance(following, int) else {}
        if isinstance(holder, list):
            key: str | int = step if isinstance(step, int) and step < len(holder) else len(holder)
            if key == len(holder):
                holder.append(default)
        elif isinstance(holder, dict):
            key = str(step)
            holder.setdefault(key, default)
        else:
            return  # the path runs through a plain value: this value is lost
        if following is None:
            holder[key] = value
        holder = holder[key]
