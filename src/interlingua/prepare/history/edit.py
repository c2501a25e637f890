"""Editing a history: the repair policy, the record of edits, and the triggers of rules."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from operator import is_
from typing import Any, Literal, TypeAlias, TypeVar

import msgspec

from interlingua.spec.content import (
    Document,
    Opaque,
    Part,
    Refusal,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from interlingua.spec.facts import HistoryRules
from interlingua.spec.messages import Message, Role
from interlingua.spec.warnings import WarningList
from interlingua.wire.fields import extra_of


class RepairPolicy(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, repr_omit_defaults=True
):
    """What to do where a repair can be made in more than one way."""

    unanswered: Literal["error", "drop"] = "error"
    """A call without a result gets one that says so, or is left out."""
    foreign_thinking: Literal["drop", "text"] = "drop"
    """A thought the target cannot take back is left out, or said as text."""
    unsigned_calls: Literal["sentinel", "text"] = "sentinel"
    """A call that should be signed gets a signature that is not checked, or is told as text."""


DEFAULT_POLICY = RepairPolicy()


Messages: TypeAlias = tuple[Message, ...]
Spot: TypeAlias = tuple[int, int]
"""A part by its place: the message's index, and the part's in it."""
_read_path = re.compile(r"messages\[(\d+)\](?:\.content\[(\d+)\])?(.*)").fullmatch
Found = TypeVar("Found", bound=Message | Part)
Finding = TypeVar("Finding")


class Edits(WarningList):
    """
    The changes made to a history, with paths into the history as the caller gave it.

    Paths are looked up by object, so an edited part must be registered with `place_like`. The
    table is made at the first change: a history that needs none costs nothing.
    """

    __slots__ = ("_memory", "_narrowed", "_places", "history", "policy")

    def __init__(
        self,
        messages: Messages,
        history: Messages | None = None,
        target: str = "the target",
        policy: RepairPolicy = DEFAULT_POLICY,
    ) -> None:
        super().__init__(target)
        self.policy = policy
        self.history: Messages = messages if history is None else history
        """As it came; `messages` may have been narrowed since, part by part."""
        self._narrowed = messages
        self._places: dict[int, tuple[object, str]] = {}  # the object keeps its id from reuse
        self._memory: dict[Callable[..., Any], tuple[Messages, Any]] = {}

    def change(self, code: str, at: Message | Part, **fields: Any) -> None:
        """Add a warning about a message or a part that was or is there."""
        self.add(code, self.place(at), **fields)

    def place(self, found: Message | Part) -> str | None:
        """Its path in the history as the caller gave it; None for what was not there."""
        known = self._table().get(id(found))
        return None if known is None else known[1]

    def place_like(self, edited: Found, original: Message | Part) -> Found:
        """`edited`, registered at the path of `original`, which it replaces."""
        place = self.place(original)
        if place is not None:
            self._places.setdefault(id(edited), (edited, place))
        return edited

    def cached(self, messages: Messages, find: Callable[..., Finding], *about: Any) -> Finding:
        """The result of `find(messages, *about)`, computed once per state of the history."""
        known = self._memory.get(find)
        if known is None or known[0] is not messages:
            known = self._memory[find] = (messages, find(messages, *about))
        found: Finding = known[1]
        return found

    def store(self, messages: Messages, found: Any) -> None:
        """Store what is known of a history already, for `cached` with its type as `find`."""
        self._memory[type(found)] = (messages, found)

    def original_path(self, path: str, messages: Messages) -> str | None:
        """The path in the history as the caller gave it, of a path in the edited one."""
        found = _read_path(path)
        if found is None:
            return path
        i, k, rest = int(found[1]), found[2], found[3]
        place = self.place(messages[i] if k is None else messages[i].content[int(k)])
        return None if place is None else place + rest

    def _table(self) -> dict[int, tuple[object, str]]:
        if not self._places:
            for i, message in enumerate(self.history):
                self._note(message, f"messages[{i}]")
                for k, part in enumerate(message.content):
                    self._note_part(part, f"messages[{i}].content[{k}]")
            for i, (message, narrowed) in enumerate(zip(self.history, self._narrowed, strict=True)):
                if narrowed is not message:
                    self._note(narrowed, f"messages[{i}]")
                    self._note_parts(narrowed.content, message.content, f"messages[{i}].content")
        return self._places

    def _note(self, found: object, place: str) -> None:
        self._places.setdefault(id(found), (found, place))

    def _note_part(self, part: Part, place: str) -> None:
        self._note(part, place)
        if type(part) is ToolResult:
            for k, inner in enumerate(part.parts or ()):
                self._note(inner, f"{place}.content[{k}]")

    def _note_parts(self, narrowed: tuple[Part, ...], parts: tuple[Part, ...], path: str) -> None:
        """Some parts are left out, others are results with fewer parts of their own."""
        k = 0
        for part in narrowed:
            while type(parts[k]) is not type(part) or (
                part is not parts[k] and not isinstance(part, ToolResult)
            ):
                k += 1
            self._note(part, f"{path}[{k}]")
            k += 1


Rule: TypeAlias = Callable[[Messages, HistoryRules, Edits], Messages]
"""One repair. It returns the very tuple it was given if there is nothing to do."""


def is_unchanged(edited: Sequence[object], original: Sequence[object]) -> bool:
    """Whether they are the very same objects."""
    return len(edited) == len(original) and all(map(is_, edited, original))


def edit(messages: Messages, change: Callable[[Message], Message | None]) -> Messages:
    """Each message changed, or left out where that gives None."""
    edited = [change(message) for message in messages]
    if is_unchanged(edited, messages):
        return messages
    return tuple(message for message in edited if message is not None)


def edit_parts(
    messages: Messages, change: Callable[[Part, Message], Part | None], edits: Edits
) -> Messages:
    """Each part changed, or left out where that gives None; a message left empty goes too."""

    def edit_message(message: Message) -> Message | None:
        edited = [change(part, message) for part in message.content]
        if is_unchanged(edited, message.content):
            return message
        parts = [part for part in edited if part is not None]
        return with_parts(message, parts, edits) if parts else None

    return edit(messages, edit_message)


def with_parts(message: Message, parts: Iterable[Part], edits: Edits) -> Message:
    """The message with other parts."""
    return edits.place_like(msgspec.structs.replace(message, content=tuple(parts)), message)


def with_fields(part: Found, edits: Edits, **fields: Any) -> Found:
    """The part with other fields."""
    return edits.place_like(msgspec.structs.replace(part, **fields), part)


def cut(
    messages: Messages, gone: dict[int, set[int]], target: HistoryRules, edits: Edits
) -> Messages:
    """The history without these parts, by message; a message left empty goes too."""
    if not gone:
        return messages
    kept = (
        without(message, gone[i], target, edits) if i in gone else message
        for i, message in enumerate(messages)
    )
    return tuple(message for message in kept if message is not None)


def without(
    message: Message, gone: Collection[int], target: HistoryRules, edits: Edits
) -> Message | None:
    """
    The message without some of its parts; None if nothing is left.

    Where thoughts are paired with what they stood before, they go with it.
    """
    parts = message.content
    leaders = _leaders(parts, gone, target) if target.paired_thinking else set()
    for k in sorted(leaders):
        edits.change("unpaired_thinking_dropped", parts[k])
    kept = [part for k, part in enumerate(parts) if k not in gone and k not in leaders]
    if leaders:
        kept = [unbind(part, target, edits) for part in kept]
    return with_parts(message, kept, edits) if kept else None


def _leaders(parts: tuple[Part, ...], gone: Collection[int], target: HistoryRules) -> set[int]:
    """The thoughts that stand right before what goes."""
    found: set[int] = set()
    for k in gone:
        before = k - 1
        while before >= 0 and before not in gone and before not in found:
            part = parts[before]
            if type(part) is not Thinking or target.dialect not in part.extra:
                break
            found.add(before)
            before -= 1
    return found


def unbind(part: Part, target: HistoryRules, edits: Edits) -> Part:
    """
    The part without what ties it to a thought that is gone.

    The fields may also stand one level down, in the fields of the item a part belongs to.
    """
    kept = extra_of(part, target.dialect)
    if type(part) is Thinking or not kept:
        return part
    free = {key: value for key, value in kept.items() if key not in target.bound}
    for key, value in free.items():
        if isinstance(value, dict) and not value.keys().isdisjoint(target.bound):
            free[key] = {name: value[name] for name in value if name not in target.bound}
    if free == kept:
        return part
    extra = {**part.extra, target.dialect: free}
    if not free:
        del extra[target.dialect]
    return with_fields(part, edits, extra=extra)


Trigger: TypeAlias = type | str
"""A kind of part, in a message or a result; or one of these conditions."""
UNPAIRED_CALLS = "unpaired_calls"
"""Calls are not answered at once, in their order, by results that stand first in messages."""
SPLIT_RESULTS = "split_results"
"""The results of a turn are in several messages."""
CALLS_NOT_LAST = "calls_not_last"
"""Something stands after a call in its message."""
REPEATED_ID = "repeated_id"
"""Two calls have the same id, or one has none."""
RAW_ARGUMENTS = "raw_arguments"
"""A call has its arguments as text."""
BLANK_TEXT = "blank_text"
"""A text is empty or blank, or a failed result has no content."""
INVALID_UNICODE = "invalid_unicode"
"""Some text may not be valid Unicode."""
EMPTY_MESSAGE = "empty_message"
"""A message has no parts."""
HAS_METADATA = "has_metadata"
"""A message has metadata: which model made it, how it ended."""
LATE_SYSTEM = "late_system"
"""A system prompt comes after the conversation has begun."""
NO_TURN = "no_turn"
"""There are only system prompts, or no messages at all."""
ADJACENT_ROLES = "adjacent_roles"
"""Two messages that follow each other may be of one role."""

_INSTRUCTING = ("system", "developer")
_TALKING = ("user", "assistant")
_PAIRED = (ToolCall, ToolResult)
_UNSOUND_PAIRS: set[Trigger] = {UNPAIRED_CALLS, SPLIT_RESULTS, CALLS_NOT_LAST}
_encode = msgspec.json.Encoder().encode


class HistoryScan:
    """The triggers of a history, and its tool calls."""

    __slots__ = ("calls", "triggers")

    def __init__(self, messages: Messages) -> None:
        self.calls: list[ToolCall] = []
        """Wherever they stand, inside results too."""
        parts: list[Part] = []
        self.triggers: set[Trigger] = _message_triggers(messages, parts)
        self._scan_parts(parts)
        if not self.triggers.isdisjoint(_PAIRED):
            self.triggers |= _pair_triggers(messages)
            if Opaque in self.triggers:  # it may be a call or a result
                self.triggers.add(UNPAIRED_CALLS)

    def _scan_parts(self, parts: list[Part]) -> None:
        texts: list[str] = []
        values: list[Any] = []  # other text, and JSON
        for part in parts:
            if type(part) is Text or type(part) is Refusal:
                texts.append(part.text)
            elif type(part) is ToolCall:
                self.calls.append(part)
            elif type(part) is ToolResult:
                content = part.content
                if not content and part.is_error:
                    self.triggers.add(BLANK_TEXT)
                if type(content) is tuple:
                    parts += content  # this loop comes to them too
                else:
                    values.append(content)
            elif type(part) is Document:
                values.append(part.text)
        self.triggers.update(map(type, parts))
        if self.calls:
            self.triggers |= _call_triggers(self.calls, values)
        self.triggers.update(_text_triggers(texts, values))


def is_plain_conversation(messages: Messages) -> bool:
    """
    Whether a history is single texts of the user and the model by turns, after one prompt at most.

    Such a history needs no repair, and most histories are so: this is the fast path.
    """
    before: Role | None = None
    for message in messages:
        content, role = message.content, message.role
        if len(content) != 1 or type(content[0]) is not Text or message.metadata:
            return False
        text = content[0].text
        if not text.isascii() or not text or text.isspace() or role == before:
            return False
        if role not in _TALKING and (role != "system" or before is not None):
            return False
        before = role
    return before in _TALKING


def scan_of(messages: Messages, edits: Edits) -> HistoryScan:
    """The scan of a history, made once for as long as the history does not change."""
    return edits.cached(messages, HistoryScan)


def _message_triggers(messages: Messages, parts: list[Part]) -> set[Trigger]:
    """The triggers of the messages themselves. Their parts are added to `parts`."""
    triggers: set[Trigger] = set()
    has_begun = False
    before: Role | None = None
    instructed: bool | None = None
    for message in messages:
        parts += message.content
        if not message.content:
            triggers.add(EMPTY_MESSAGE)
        if message.metadata:
            triggers.add(HAS_METADATA)
        role = message.role
        instructs = role in _INSTRUCTING
        if not instructs:
            has_begun = True
        elif has_begun:
            triggers.add(LATE_SYSTEM)
        # who is not the model may be one role to the target
        if role == before or ("assistant" not in (role, before) and instructs == instructed):
            triggers.add(ADJACENT_ROLES)
        before, instructed = role, instructs
    if not has_begun:
        triggers.add(NO_TURN)
    return triggers


def _call_triggers(calls: list[ToolCall], values: list[Any]) -> set[Trigger]:
    """The triggers of the calls themselves. Their text and JSON are added to `values`."""
    triggers: set[Trigger] = set()
    ids = {call.id for call in calls}
    if len(ids) < len(calls) or "" in ids:
        triggers.add(REPEATED_ID)
    for call in calls:
        values.append(call.arguments)
        if call.raw_arguments is not None:
            values.append(call.raw_arguments)
            triggers.add(RAW_ARGUMENTS)
    return triggers


def _text_triggers(texts: list[str], values: list[Any]) -> list[Trigger]:
    triggers: list[Trigger] = []
    if not all(texts) or any(map(str.isspace, texts)):
        triggers.append(BLANK_TEXT)
    if (values or not all(map(str.isascii, texts))) and _may_be_broken(texts, values):
        triggers.append(INVALID_UNICODE)
    return triggers


def _may_be_broken(texts: list[str], values: list[Any]) -> bool:
    """Whether anything cannot be written as JSON, for whatever reason."""
    if not all(map(str.isascii, texts)):
        values = [*values, *(text for text in texts if not text.isascii())]
    try:
        _encode(values)
    except (TypeError, ValueError, RecursionError, msgspec.MsgspecError):
        return True
    return False


def _pair_triggers(messages: Messages) -> set[Trigger]:
    triggers: set[Trigger] = set()
    waiting: list[str] = []  # the ids of the calls without a result, the next at the end
    for message in messages:
        content = message.content
        if not waiting and len(content) == 1 and type(content[0]) is Text:
            continue  # as with most
        if message.role != "assistant":
            if not _answers(message, waiting):
                return _UNSOUND_PAIRS
            if waiting:
                triggers.add(SPLIT_RESULTS)
            continue
        if waiting or ToolResult in map(type, content):
            return _UNSOUND_PAIRS
        for part in content:
            if type(part) is ToolCall:
                waiting.append(part.id)
            elif waiting:
                triggers.add(CALLS_NOT_LAST)
        waiting.reverse()
    return _UNSOUND_PAIRS if waiting else triggers


def _answers(message: Message, waiting: list[str]) -> bool:
    """Whether it answers calls that wait, some at least: those are removed from `waiting`."""
    if waiting and (message.role in _INSTRUCTING or not message.content):
        return False
    for part in message.content:
        if type(part) is ToolResult and waiting:
            if waiting.pop() != part.tool_call_id:
                return False
        elif waiting or type(part) in _PAIRED:
            return False
    return True
