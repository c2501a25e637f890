"""Results: which call they answer, where they stand, in which order, and what they hold."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Any

from interlingua.prepare.history.edit import (
    Edits,
    Messages,
    Spot,
    edit,
    is_unchanged,
    with_fields,
    with_parts,
)
from interlingua.prepare.media import media_note
from interlingua.spec.content import (
    MEDIA_TYPES,
    Audio,
    Document,
    Image,
    Opaque,
    Part,
    Text,
    ToolCall,
    ToolResult,
)
from interlingua.spec.facts import HistoryRules
from interlingua.spec.messages import Message
from interlingua.spec.warnings import MEDIA_DROPPED

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


def pairs_of(messages: Messages, target: HistoryRules, edits: Edits) -> Pairs:
    """The pairs, found once for as long as the history does not change."""
    return edits.cached(messages, Pairs, target)


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


_SEE_BELOW = "The output is in the next user message."


def place_results(messages: Messages, target: HistoryRules, edits: Edits) -> Messages:
    """The results of a turn stand together right after it."""
    if target.results == "anywhere":
        return messages
    pairs = pairs_of(messages, target, edits)
    moved: dict[int, list[ToolResult]] = {}  # by the message they come before
    gone: set[Spot] = set()
    for end, spots in pairs.results_by_turn().items():
        place = end_of_results(messages, end, spots)
        near = place if place < len(messages) and messages[place].role in HOLDERS else -1
        for spot in spots:
            i, k = spot
            part = messages[i].content[k]
            if not end < i < place and i != near and isinstance(part, ToolResult):
                gone.add(spot)
                moved.setdefault(place, []).append(part)
                edits.change("result_moved", part)
    if not gone:
        return messages
    return _move(messages, gone, moved, edits)


def _move(
    messages: Messages, gone: set[Spot], moved: dict[int, list[ToolResult]], edits: Edits
) -> Messages:
    touched = {i for i, _ in gone}
    edited: list[Message] = []
    for i in range(len(messages) + 1):
        if i in moved:
            edited.append(Message(role="tool", content=tuple(moved[i])))
        if i in touched:
            message = messages[i]
            parts = [part for k, part in enumerate(message.content) if (i, k) not in gone]
            edited += [with_parts(message, parts, edits)] if parts else []
        else:
            edited += messages[i : i + 1]
    return tuple(edited)


def order_results(messages: Messages, target: HistoryRules, edits: Edits) -> Messages:
    """
    The results of a turn stand in the order of its calls, in whichever order they came.

    Results that all came from the target's own dialect keep the order it saw.
    """
    if not target.ordered_results:
        return messages
    swapped: dict[Spot, Part] = {}
    for spots in pairs_of(messages, target, edits).results_by_turn().values():
        wanted = [(i, k) for i, k in spots if isinstance(messages[i].content[k], ToolResult)]
        places = sorted(wanted)
        parts = [messages[i].content[k] for i, k in wanted]
        if places == wanted or all(target.dialect in part.extra for part in parts):
            continue
        swapped |= dict(zip(places, parts, strict=True))
        first = next(there for here, there in zip(wanted, places, strict=True) if here != there)
        edits.change("results_reordered", messages[first[0]].content[first[1]])
    if not swapped:
        return messages
    touched = {i for i, _ in swapped}
    return tuple(
        with_parts(
            message,
            [swapped.get((i, k), part) for k, part in enumerate(message.content)],
            edits,
        )
        if i in touched
        else message
        for i, message in enumerate(messages)
    )


def put_results_first(messages: Messages, target: HistoryRules, edits: Edits) -> Messages:
    """Results stand before what else their message holds."""
    if not target.results_first:
        return messages

    def put_first(message: Message) -> Message:
        if message.role == "assistant" or len(message.content) < 2:
            return message
        results = [part for part in message.content if isinstance(part, ToolResult)]
        if all(part is result for part, result in zip(message.content, results, strict=False)):
            return message
        others = [part for part in message.content if not isinstance(part, ToolResult)]
        edits.change("results_put_first", message)
        return with_parts(message, [*results, *others], edits)

    return edit(messages, put_first)


def gather_results(messages: Messages, target: HistoryRules, edits: Edits) -> Messages:
    """
    Results that stand together are in one message.

    Those that all came from the target's own dialect stay in the messages it saw.
    """
    if not (target.gather_results and _have_neighbours(messages)):
        return messages
    edited: list[Message] = []
    run: list[Message] = []

    def close() -> None:
        parts = [part for message in run for part in message.content]
        if len(run) > 1 and not all(target.dialect in part.extra for part in parts):
            edits.change("results_gathered", run[1])
            edited.append(join(run, edits))
        else:
            edited.extend(run)
        run.clear()

    for message in messages:
        if holds_only_results(message):
            run.append(message)
        else:
            close()
            edited.append(message)
    close()
    return messages if len(edited) == len(messages) else tuple(edited)


def _have_neighbours(messages: Messages) -> bool:
    """Whether two messages in a row begin with a result."""
    was_result = False
    for message in messages:
        is_result = bool(message.content) and type(message.content[0]) is ToolResult
        if is_result and was_result:
            return True
        was_result = is_result
    return False


def join(messages: list[Message], edits: Edits) -> Message:
    """
    One message of several: results first, unless it is the model's.

    Of what is said about the messages, only what is said of all stays.
    """
    first, *others = messages
    parts = [part for message in messages for part in message.content]
    if first.role != "assistant":
        parts.sort(key=lambda part: not isinstance(part, ToolResult))
    return edits.place_like(
        Message(
            role="user" if any(message.role == "user" for message in messages) else first.role,
            content=tuple(parts),
            name=first.name if all(other.name == first.name for other in others) else None,
            id=first.id,
            metadata={
                key: value
                for key, value in first.metadata.items()
                if all(key in other.metadata and other.metadata[key] == value for other in others)
            },
            extra=first.extra if all(other.extra == first.extra for other in others) else {},
        ),
        first,
    )


def move_media(messages: Messages, target: HistoryRules, edits: Edits) -> Messages:
    """Media of results follow in a user message, after all the results of a turn."""
    if target.result_media:
        return messages
    edited: list[Message] = []
    moved: list[Part] = []
    for message in messages:
        results = [part for part in message.content if isinstance(part, ToolResult)]
        if moved and (not results or message.role == "assistant"):
            edited.append(Message(role="user", content=tuple(moved)))
            moved = []
        if any(_moves(part, target) for result in results for part in result.parts or ()):
            parts = [_without_media(part, moved, target, edits) for part in message.content]
            edited.append(with_parts(message, parts, edits))
        else:
            edited.append(message)
    if moved:
        edited.append(Message(role="user", content=tuple(moved)))
    return messages if len(edited) == len(messages) else tuple(edited)


def _moves(part: Part, target: HistoryRules) -> bool:
    """Media move; those that came in this place from the target itself may stay."""
    return isinstance(part, MEDIA_TYPES) and target.dialect not in part.extra


def _without_media(part: Part, moved: list[Part], target: HistoryRules, edits: Edits) -> Part:
    inside = part.parts or () if isinstance(part, ToolResult) else ()
    media = [inner for inner in inside if _moves(inner, target)]
    if not (media and isinstance(part, ToolResult)):
        return part
    stays = [inner for inner in inside if not _moves(inner, target)]
    moved += [Text(text=f"Output of tool call {part.tool_call_id}:"), *media]
    kinds = ", ".join(inner.kind for inner in media)
    edits.change("result_media_moved", part, kinds=kinds)
    return with_fields(part, edits, content=tuple(stays) or (Text(text=_SEE_BELOW),))


# Repairs of media: what the target has no form for is left out, before others are moved.


_SOURCES = ("url", "data", "file_id", "text")
_WORDS = {"url": "by URL", "data": "as bytes", "file_id": "by file id", "text": "as text"}


def drop_unsayable_media(messages: Messages, target: HistoryRules, edits: Edits) -> Messages:
    """
    Media in a form that the target does not take; what came from itself stays.

    Their message stays too, though it be empty then: other rules see to that.
    """
    if not target.media:
        return messages

    def drop(message: Message) -> Message:
        kept = [
            _drop_inside(part, target, edits)
            for part in message.content
            if not _is_lost(part, target, edits)
        ]
        return message if is_unchanged(kept, message.content) else with_parts(message, kept, edits)

    return edit(messages, drop)


def _drop_inside(part: Part, target: HistoryRules, edits: Edits) -> Part:
    if not isinstance(part, ToolResult) or not part.parts:
        return part
    content: list[Part] = []
    for inner in part.parts:
        media = _unsupported_media(inner, target)
        if media and isinstance(inner, MEDIA_TYPES):
            edits.change("result_media_as_text", inner, media=media)
            content.append(media_note(inner))
        else:
            content.append(inner)
    same = is_unchanged(content, part.parts)
    return part if same else with_fields(part, edits, content=tuple(content))


def _is_lost(part: Part, target: HistoryRules, edits: Edits) -> bool:
    media = _unsupported_media(part, target)
    if media:
        edits.change(MEDIA_DROPPED[part.kind], part, part=part.kind, media=media)
    return bool(media)


def _unsupported_media(part: Part, target: HistoryRules) -> str:
    """What the target does not support about a part; empty if it supports it."""
    forms = target.media.get(part.kind)
    if forms is None or not isinstance(part, MEDIA_TYPES) or target.dialect in part.extra:
        return ""
    source = _source(part)
    return "" if source is None or source in forms else f"{part.kind} {_WORDS[source]}"


def _source(part: Image | Audio | Document) -> str | None:
    """The form in which it is given; a data URL is bytes, wherever it stands."""
    found = next((name for name in _SOURCES if getattr(part, name, None) is not None), None)
    if found == "url" and part.url is not None and part.url[:5].lower() == "data:":
        return "data"
    return found
