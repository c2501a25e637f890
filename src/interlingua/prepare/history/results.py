"""Results: which tool call they answer, their place, their order, and what they hold."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from itertools import groupby
from typing import assert_never

from interlingua.prepare.history.edit import (
    Edits,
    Spot,
    edit,
    edit_parts,
    is_unchanged,
    swap,
    with_fields,
    with_parts,
)
from interlingua.prepare.history.scan import HOLDERS, Messages
from interlingua.prepare.media import media_note
from interlingua.spec.content import (
    MEDIA_TYPES,
    NO_MEDIA,
    Audio,
    Document,
    Image,
    Opaque,
    Part,
    Refusal,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from interlingua.spec.facts import HistoryRules
from interlingua.spec.messages import Message
from interlingua.spec.warning_table import MEDIA_DROPPED

_KINDS = (ToolCall, ToolResult, Opaque)
_RESULTS = frozenset((ToolResult,))
_MEDIA_HOLDERS = frozenset((*MEDIA_TYPES, ToolResult))
# the names of Anthropic's results and of Chat Completions; Responses has `call_id` in tool calls
# and in their outputs
_RESULT_IDS = ("tool_use_id", "tool_call_id")


class Pairs:
    """
    The tool calls of a history and their results, by place.

    A result answers an earlier tool call with its id: in the nearest turn that has such a tool call
    without a result, the first of them. Opaque blocks of the target's own dialect may be tool calls
    or results.
    """

    def __init__(self, messages: Messages, target: HistoryRules) -> None:
        self.calls: dict[Spot, ToolCall] = {}
        self.result_of: dict[Spot, Spot] = {}
        """The result of each call."""
        self.orphans: list[Spot] = []
        """The results without a call."""
        self.misplaced: list[Spot] = []
        """The calls in messages that are not the model's."""
        self.ends: dict[int, int] = _ends(messages, joined=target.joins_roles)
        """For each message of the model, the last message of its turn."""
        self._turns: dict[int, list[Spot]] | None = None
        self._dialect = target.dialect
        # For each id: the turns that use it, each with its calls that have no result yet.
        self._waiting: dict[str, list[tuple[int, deque[Spot]]]] = {}
        turn = 0
        for i, message in enumerate(messages):
            is_model = message.role == "assistant"
            # Anthropic: «Consecutive `user` or `assistant` turns in your request will be combined
            # into a single turn» (the SDK's `MessageCreateParamsBase.messages`).
            turn += not is_model  # consecutive messages of the model share a number
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
        elif isinstance(part, Opaque):
            if part.dialect == self._dialect:
                self._feed_opaque(part, spot, turn, is_model=is_model)
        elif not isinstance(part, (Text, Image, Audio, Document, Thinking, Refusal)):
            assert_never(part)

    def _feed_opaque(self, part: Opaque, spot: Spot, turn: int, *, is_model: bool) -> None:
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
        """The results of each turn in the order of the calls, by the last message of the turn."""
        if self._turns is None:
            self._turns = {self.ends[i]: [] for i, _ in self.calls}
            for (i, _), result in sorted(self.result_of.items()):
                self._turns.setdefault(self.ends[i], []).append(result)
        return self._turns


def end_of_results(messages: Messages, end: int, results: Iterable[Spot]) -> int:
    """The first message after a turn that holds more than results of that turn."""
    own = set(results)
    place = end + 1
    while place < len(messages):
        message = messages[place]
        if message.role not in HOLDERS or not message.content:
            break
        if not all((place, k) in own for k in range(len(message.content))):
            break
        place += 1
    return place


def holds_only_results(message: Message) -> bool:
    """Whether a message holds results and nothing else."""
    return (
        message.role in HOLDERS
        and bool(message.content)
        and all(isinstance(part, ToolResult) for part in message.content)
    )


def pairs_of(messages: Messages, target: HistoryRules, edits: Edits) -> Pairs:
    """The pairs, made once per state of the history."""
    return edits.cached(messages, Pairs, target)


def _ends(messages: Messages, *, joined: bool) -> dict[int, int]:
    ends: dict[int, int] = {}
    for i in range(len(messages) - 1, -1, -1):
        if messages[i].role == "assistant":
            ends[i] = ends.get(i + 1, i) if joined else i
    return ends


def _ids(data: object, *, is_model: bool) -> tuple[str | None, str | None]:
    """The id of the tool call that an opaque block is, and of the tool call that it answers."""
    if not isinstance(data, dict):
        return None, None
    answered = next((data[key] for key in _RESULT_IDS if key in data), None)
    if answered is None and not is_model:
        # so the role decides what the item is
        answered = data.get("call_id")
    called = (data.get("call_id") or data.get("id")) if is_model else None
    return (
        called if isinstance(called, str) else None,
        answered if isinstance(answered, str) else None,
    )


_SEE_BELOW = "The output is in the next user message."


def name_loaded_tools(messages: Messages, target: HistoryRules, edits: Edits) -> Messages:
    """References to tools in the results of searches become text that names the tools."""
    # Anthropic's `ToolReferenceBlockParam` names a deferred tool instead of describing it. Without
    # a text in its place, a search would look as if it had found nothing.

    def name(part: Part) -> Part:
        if not isinstance(part, Opaque) or part.dialect == target.dialect or not part.loaded_tools:
            return part
        edits.change("tool_reference_as_text", part, names=", ".join(part.loaded_tools))
        names = ", ".join(part.loaded_tools)
        tools = "tool" if len(part.loaded_tools) == 1 else "tools"
        return edits.place_like(Text(text=f"Now available: the {tools} {names}."), part)

    def change(part: Part, _: Message) -> Part:
        parts = part.parts if isinstance(part, ToolResult) else None
        if not parts:
            return part
        named = tuple(map(name, parts))
        return part if is_unchanged(named, parts) else with_fields(part, edits, content=named)

    return edit_parts(messages, change, edits, _RESULTS)


def drop_silent_turns(messages: Messages, target: HistoryRules, edits: Edits) -> Messages:
    """An assistant message of empty text between a call and its result is dropped."""
    # Google's SDK keeps an empty end of a stream as a message of its own. Once the result is in its
    # place, the message would come after it, as if the model had answered.
    if target.results == "anywhere":
        return messages
    kept: list[Message] = []
    is_waiting = False
    for message in messages:
        if message.role != "assistant":
            is_waiting = False
        elif is_waiting and all(map(_is_silent, message.content)):
            edits.change("empty_message_dropped", message)
            continue
        is_waiting = is_waiting or any(isinstance(part, ToolCall) for part in message.content)
        kept.append(message)
    return messages if len(kept) == len(messages) else tuple(kept)


def _is_silent(part: Part) -> bool:
    return isinstance(part, Text) and not part.text and not part.extra


def place_results(messages: Messages, target: HistoryRules, edits: Edits) -> Messages:
    """The results of a turn stand together, right after it."""
    # Anthropic: «Each `tool_use` block must have a corresponding `tool_result` block in the next
    # message» (https://github.com/anthropics/claude-code/issues/7929). Chat Completions wants tool
    # messages right after the message with `tool_calls`.
    if target.results == "anywhere":
        return messages
    pairs = pairs_of(messages, target, edits)
    moved: dict[int, list[ToolResult]] = {}  # by the index of the message they go before
    origins: set[Spot] = set()
    for end, spots in pairs.results_by_turn().items():
        place = end_of_results(messages, end, spots)
        near = place if place < len(messages) and messages[place].role in HOLDERS else -1
        for i, k in spots:
            part = messages[i].content[k]
            if not end < i < place and i != near and isinstance(part, ToolResult):
                origins.add((i, k))
                moved.setdefault(place, []).append(part)
                edits.change("result_moved", part)
    if not origins:
        return messages
    changed = {i for i, _ in origins}
    edited: list[Message] = []
    for i in range(len(messages) + 1):
        if i in moved:
            edited.append(Message(role="tool", content=tuple(moved[i])))
        if i in changed:
            parts = [part for k, part in enumerate(messages[i].content) if (i, k) not in origins]
            edited += [with_parts(messages[i], parts, edits)] if parts else []
        else:
            edited += messages[i : i + 1]
    return tuple(edited)


def order_results(messages: Messages, target: HistoryRules, edits: Edits) -> Messages:
    """
    The results of a turn stand in the order of its calls.

    Results that all came from the target's own dialect keep the order that it saw.
    """
    # Gemini finds a result without an id by its name and its place. Also, results in the order in
    # which tools happen to end would change the prefix that a provider has cached.
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
    return swap(messages, swapped, edits) if swapped else messages


def put_results_first(messages: Messages, target: HistoryRules, edits: Edits) -> Messages:
    """Results stand before the other parts of their message."""
    # Anthropic: tool results come first in the content, text after them; the reverse is a 400
    # (https://platform.claude.com/docs/en/agents-and-tools/tool-use/handle-tool-calls).
    if not target.results_first:
        return messages

    def put_first(message: Message) -> Message:
        if message.role == "assistant":
            return message
        parts = sorted(message.content, key=lambda part: not isinstance(part, ToolResult))
        if is_unchanged(parts, message.content):
            return message
        edits.change("results_put_first", message)
        return with_parts(message, parts, edits)

    return edit(messages, put_first, _RESULTS)


def gather_results(messages: Messages, target: HistoryRules, edits: Edits) -> Messages:
    """
    Consecutive messages of results become one.

    Results that all came from the target's own dialect stay in the messages that it saw.
    """
    # Anthropic wants the results of parallel tool calls in one user message:
    # https://platform.claude.com/docs/en/agents-and-tools/tool-use/handle-tool-calls
    if not target.gather_results:
        return messages
    edited: list[Message] = []
    for is_results, group in groupby(messages, holds_only_results):
        run = list(group)
        parts = [part for message in run for part in message.content]
        if not is_results or len(run) == 1 or all(target.dialect in part.extra for part in parts):
            edited += run
        else:
            edits.change("results_gathered", run[1])
            edited.append(join(run, edits))
    return messages if len(edited) == len(messages) else tuple(edited)


def join(messages: list[Message], edits: Edits) -> Message:
    """
    One message made of several: results first, unless it is the model's.

    Name, metadata and extra fields stay where all the messages agree on them.
    """
    first, *others = messages
    parts = [part for message in messages for part in message.content]
    if first.role != "assistant":
        parts.sort(key=lambda part: not isinstance(part, ToolResult))
    joined = Message(
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
    )
    return edits.place_like(joined, first)


def move_media(messages: Messages, target: HistoryRules, edits: Edits) -> Messages:
    """Media inside results move to a user message after all the results of the turn."""
    # `ChatCompletionToolMessageParam` of OpenAI's SDK takes text only; seen in recordings: images
    # of tools in the user message after the results were accepted.
    if target.result_media:
        return messages
    edited: list[Message] = []
    moved: list[Part] = []
    for message in messages:
        results = [part for part in message.content if isinstance(part, ToolResult)]
        # not between the results of one turn, which must stand together
        if moved and (not results or message.role == "assistant"):
            edited.append(Message(role="user", content=tuple(moved)))
            moved = []
        parts = [_without_media(part, moved, target, edits) for part in message.content]
        is_same = is_unchanged(parts, message.content)
        edited.append(message if is_same else with_parts(message, parts, edits))
    if moved:
        edited.append(Message(role="user", content=tuple(moved)))
    return messages if len(edited) == len(messages) else tuple(edited)


def _without_media(part: Part, moved: list[Part], target: HistoryRules, edits: Edits) -> Part:
    """The result without its media, which are added to `moved`."""
    inside = part.parts or () if isinstance(part, ToolResult) else ()
    media = [inner for inner in inside if _moves(inner, target)]
    if not (media and isinstance(part, ToolResult)):
        return part
    # the id tells the model which of several results the media belong to
    moved += [Text(text=f"Output of tool call {part.tool_call_id}:"), *media]
    edits.change("result_media_moved", part, kinds=", ".join(inner.kind for inner in media))
    rest = tuple(inner for inner in inside if not _moves(inner, target))
    return with_fields(part, edits, content=rest or (Text(text=_SEE_BELOW),))


def _moves(part: Part, target: HistoryRules) -> bool:
    """Media move, unless the target itself put them in this place."""
    # What the target sent or accepted in this place once, it accepts again.
    return isinstance(part, MEDIA_TYPES) and target.dialect not in part.extra


# Media in a form that the target does not support.

_WORDS = {"url": "by URL", "data": "as bytes", "file_id": "by file id", "text": "as text"}


def drop_unsayable_media(messages: Messages, target: HistoryRules, edits: Edits) -> Messages:
    """
    Media in a form that the target does not support are dropped, unless the target sent them.

    In a result, a note takes its place. A message left empty stays: other rules handle it.
    """
    # For example audio: Anthropic's `ContentBlockParam` has none, and OpenAI's Responses refuses it
    # as a file: «unsupported MIME type 'audio/mpeg'» (seen in recordings).
    if not target.media:
        return messages

    def drop(message: Message) -> Message:
        parts: list[Part] = []
        for part in message.content:
            if type(part) in NO_MEDIA:
                parts.append(part)
            elif media := _unsupported_media(part, target):
                edits.change(MEDIA_DROPPED[part.kind], part, part=part.kind, media=media)
            else:
                parts.append(_replace_inside(part, target, edits))
        same = is_unchanged(parts, message.content)
        return message if same else with_parts(message, parts, edits)

    return edit(messages, drop, _MEDIA_HOLDERS)


def place_media(messages: Messages, target: HistoryRules, edits: Edits) -> Messages:
    """Media in messages whose role cannot hold them are dropped, or moved to the next user."""
    # In OpenAI's SDK messages of the system and of the assistant have text only, and Gemini's
    # `systemInstruction` is «currently, text only».
    if target.misplaced_media == "keep":
        return messages
    is_moved = target.misplaced_media == "move"
    edited: list[Message] = []
    moved: list[Part] = []
    for message in messages:
        parts = message.content
        if message.role not in target.media_roles:
            media = [part for part in parts if _moves(part, target)]
            for part in media:
                code = "media_moved" if is_moved else MEDIA_DROPPED[part.kind]
                place = f"{part.kind} in a message of the role {message.role}"
                edits.change(code, part, part=part.kind, media=place)
            moved += media if is_moved else []
            if media:
                parts = tuple(part for part in parts if not _moves(part, target))
        elif moved and message.role == "user":
            parts, moved = (*moved, *parts), []
        same = parts is message.content
        edited.append(message if same else with_parts(message, parts, edits))
    if moved:
        edited.append(Message(role="user", content=tuple(moved)))
    same = is_unchanged(edited, messages)
    return messages if same else tuple(message for message in edited if message.content)


def _replace_inside(part: Part, target: HistoryRules, edits: Edits) -> Part:
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


def _unsupported_media(part: Part, target: HistoryRules) -> str:
    """The media that the target does not support, in words; empty if it supports the part."""
    forms = target.media.get(part.kind)
    if forms is None or not isinstance(part, MEDIA_TYPES) or target.dialect in part.extra:
        return ""
    source = _source(part)
    return "" if source is None or source in forms else f"{part.kind} {_WORDS[source]}"


def _source(part: Image | Audio | Document) -> str | None:
    """The field that holds the media; a data URL counts as bytes."""
    # OpenAI: «Either a URL of the image or the base64 encoded image data» (the SDK's `ImageURL`).
    if part.url is not None:
        return "data" if part.url[:5].lower() == "data:" else "url"
    return next((name for name in _WORDS if getattr(part, name, None) is not None), None)
