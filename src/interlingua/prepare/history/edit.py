"""Editing a history: the repair policy, the record of edits, and the triggers of rules."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import chain, pairwise
from operator import attrgetter, is_
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
from interlingua.spec.messages import Message
from interlingua.spec.warnings import WarningList
from interlingua.wire.fields import extra_of
from interlingua.wire.seal import has_seal


class RepairPolicy(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, repr_omit_defaults=True
):
    """What to do where a repair can be made in more than one way."""

    unanswered: Literal["error", "drop"] = "error"
    """A call without a result gets an error result, or is dropped."""
    foreign_thinking: Literal["drop", "text"] = "drop"
    """Thinking that the target does not accept is dropped, or sent as text."""
    unsigned_calls: Literal["sentinel", "text"] = "sentinel"
    """A call that needs a signature gets the documented placeholder, or is sent as text."""


DEFAULT_POLICY = RepairPolicy()

Messages: TypeAlias = tuple[Message, ...]
Spot: TypeAlias = tuple[int, int]
"""The place of a part: the index of its message, and its index there."""
_read_path = re.compile(r"messages\[(\d+)\](?:\.content\[(\d+)\])?(.*)").fullmatch
Item = TypeVar("Item", bound=Message | Part)
Made = TypeVar("Made")


class Edits(WarningList):
    """
    The changes made to a history, with paths into the history as the caller gave it.

    Paths are looked up by object, so an edited part must be registered with `place_like`. The
    table is made at the first change: a history that needs none costs nothing.
    """

    __slots__ = ("_cache", "_narrowed", "_places", "history", "policy")

    def __init__(
        self,
        messages: Messages,
        history: Messages | None = None,
        target: str = "the target",
        policy: RepairPolicy = DEFAULT_POLICY,
    ) -> None:
        super().__init__(target)
        self.policy: RepairPolicy = policy
        self.history: Messages = messages if history is None else history
        """The caller's history. In `messages`, parts of it may have been dropped since."""
        self._narrowed = messages
        self._places: dict[int, tuple[object, str]] = {}  # holds the object: ids are reused
        self._cache: dict[Callable[..., Any], tuple[Messages, Any]] = {}

    def change(self, code: str, at: Message | Part, **fields: Any) -> None:
        """Add a warning about a message or a part that was or is in the history."""
        self.add(code, self.place(at), **fields)

    def place(self, item: Message | Part) -> str | None:
        """Its path in the caller's history; None if it was not there."""
        entry = self._table().get(id(item))
        return None if entry is None else entry[1]

    def place_like(self, edited: Item, original: Message | Part) -> Item:
        """`edited`, registered at the path of `original`, which it replaces."""
        place = self.place(original)
        if place is not None:
            self._note(edited, place)
        return edited

    def cached(self, messages: Messages, make: Callable[..., Made], *args: Any) -> Made:
        """The result of `make(messages, *args)`, computed once per state of the history."""
        entry = self._cache.get(make)
        if entry is None or entry[0] is not messages:
            entry = self._cache[make] = (messages, make(messages, *args))
        value: Made = entry[1]
        return value

    def store(self, messages: Messages, value: Any) -> None:
        """Store an object that was made from a history, for `cached` with its type as `make`."""
        self._cache[type(value)] = (messages, value)

    def original_path(self, path: str, messages: Messages) -> str | None:
        """The path in the caller's history, of a path in the edited one."""
        match = _read_path(path)
        if match is None:
            return path
        i, k, rest = int(match[1]), match[2], match[3]
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

    def _note(self, item: object, place: str) -> None:
        self._places.setdefault(id(item), (item, place))

    def _note_part(self, part: Part, place: str) -> None:
        self._note(part, place)
        if type(part) is ToolResult:
            for k, inner in enumerate(part.parts or ()):
                self._note(inner, f"{place}.content[{k}]")

    def _note_parts(self, narrowed: tuple[Part, ...], parts: tuple[Part, ...], path: str) -> None:
        """Some parts were dropped; some results have other parts inside."""
        k = 0
        for part in narrowed:
            while type(parts[k]) is not type(part) or (
                part is not parts[k] and not isinstance(part, ToolResult)
            ):
                k += 1
            self._note(part, f"{path}[{k}]")
            k += 1


Rule: TypeAlias = Callable[[Messages, HistoryRules, Edits], Messages]
"""One repair. It returns the very same tuple if there is nothing to do."""


def is_unchanged(edited: Sequence[object], original: Sequence[object]) -> bool:
    """Whether they are the very same objects."""
    return len(edited) == len(original) and all(map(is_, edited, original))


def edit(messages: Messages, change: Callable[[Message], Message | None]) -> Messages:
    """Each message changed, or dropped where `change` returns None."""
    edited = [change(message) for message in messages]
    if is_unchanged(edited, messages):
        return messages
    return tuple(message for message in edited if message is not None)


def edit_parts(
    messages: Messages, change: Callable[[Part, Message], Part | None], edits: Edits
) -> Messages:
    """Each part changed, or dropped on None; a message left empty is dropped too."""

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


def with_fields(part: Item, edits: Edits, **fields: Any) -> Item:
    """The part with other fields."""
    return edits.place_like(msgspec.structs.replace(part, **fields), part)


def cut(
    messages: Messages, spots: Collection[Spot], target: HistoryRules, edits: Edits
) -> Messages:
    """The history without these parts; a message left empty is dropped too."""
    if not spots:
        return messages
    dropped: dict[int, set[int]] = {}
    for i, k in spots:
        dropped.setdefault(i, set()).add(k)
    edited = (
        without(message, dropped[i], target, edits) if i in dropped else message
        for i, message in enumerate(messages)
    )
    return tuple(message for message in edited if message is not None)


def swap(messages: Messages, parts: Mapping[Spot, Part], edits: Edits) -> Messages:
    """The history with other parts in these places."""
    changed = {i for i, _ in parts}
    return tuple(
        with_parts(
            message, [parts.get((i, k), part) for k, part in enumerate(message.content)], edits
        )
        if i in changed
        else message
        for i, message in enumerate(messages)
    )


def without(
    message: Message, dropped: Collection[int], target: HistoryRules, edits: Edits
) -> Message | None:
    """
    The message without some of its parts; None if nothing remains.

    Where thinking is paired with the part that it stood before, it is dropped with that part.
    """
    parts = message.content
    leaders = _leaders(parts, dropped, target) if target.paired_thinking else set()
    for k in sorted(leaders):
        edits.change("unpaired_thinking_dropped", parts[k])
    rest = [part for k, part in enumerate(parts) if k not in dropped and k not in leaders]
    if leaders:
        rest = [unbind(part, target, edits) for part in rest]
    return with_parts(message, rest, edits) if rest else None


def _leaders(parts: tuple[Part, ...], dropped: Collection[int], target: HistoryRules) -> set[int]:
    """The thinking that stands right before a dropped part."""
    leaders: set[int] = set()
    for k in dropped:
        before = k - 1
        while before >= 0 and before not in dropped and before not in leaders:
            part = parts[before]
            if type(part) is not Thinking or target.dialect not in part.extra:
                break
            leaders.add(before)
            before -= 1
    return leaders


def unbind(part: Part, target: HistoryRules, edits: Edits) -> Part:
    """
    The part without the fields that tie it to dropped thinking.

    The fields may also stand one level deeper, in the fields of the item that the part belongs to.
    """
    fields = extra_of(part, target.dialect)
    if type(part) is Thinking or not fields:
        return part
    free = {key: value for key, value in fields.items() if key not in target.bound}
    for key, value in free.items():
        if isinstance(value, dict) and not value.keys().isdisjoint(target.bound):
            free[key] = {name: value[name] for name in value if name not in target.bound}
    if free == fields:
        return part
    extra = {**part.extra, target.dialect: free}
    if not free:
        del extra[target.dialect]
    return with_fields(part, edits, extra=extra)


Condition: TypeAlias = Literal[
    "adjacent_roles",  # two consecutive messages may have one role for the target
    "blank_text",  # a text is empty or blank, or a failed result has no content
    "calls_not_last",  # something follows a call in its message
    "empty_message",  # a message has no parts
    "has_metadata",  # a message with more than plain text says which model made it, how it ended
    "invalid_unicode",  # some text may not be valid Unicode
    "model_last",  # the model's message is the last, and the target does not continue it
    "late_system",  # a system prompt comes after the conversation has begun
    "no_turn",  # there are only system prompts, or no messages at all
    "raw_arguments",  # a call has its arguments as text
    "sealed",  # a part has sealed state of another provider
    "special_call",  # a call is of another type than `function`, or has a namespace
    "repeated_id",  # two calls have the same id, or a call has none
    "split_results",  # the results of a turn are in several messages
    "unpaired_calls",  # calls are not followed by their results, in order and first in a message
]
Trigger: TypeAlias = type | Condition
"""A kind of part, in a message or in a result, or a condition."""

PROMPTS = ("system", "developer")
"""The roles of instructions."""
_PROMPTS = frozenset(PROMPTS)
_TALKING = ("user", "assistant")
_PAIRED = (ToolCall, ToolResult)
_UNSOUND_PAIRS: set[Trigger] = {"unpaired_calls", "split_results", "calls_not_last"}
_encode = msgspec.json.Encoder().encode
_content_of = attrgetter("content")
_extra_of = attrgetter("extra")
_metadata_of = attrgetter("metadata")
_role_of = attrgetter("role")


class HistoryScan:
    """The triggers of a history, and its tool calls."""

    __slots__ = ("calls", "triggers")

    def __init__(self, messages: Messages) -> None:
        self.calls: list[ToolCall] = []
        """In messages and inside results."""
        parts: list[Part] = []
        self.triggers: set[Trigger] = _message_triggers(messages, parts)
        self._scan_parts(parts)
        if not self.triggers.isdisjoint(_PAIRED):
            self.triggers |= _pair_triggers(messages)
            if Opaque in self.triggers:  # it may be a call or a result
                self.triggers.add("unpaired_calls")

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
                    self.triggers.add("blank_text")
                if type(content) is tuple:
                    parts += content  # the loop reaches them too
                else:
                    values.append(content)
            elif type(part) is Document:
                values.append(part.text)
        self.triggers.update(map(type, parts))
        if (Thinking in self.triggers or any(map(_extra_of, parts))) and any(map(has_seal, parts)):
            self.triggers.add("sealed")
        if self.calls:
            self.triggers |= _call_triggers(self.calls, values)
        self.triggers.update(_text_triggers(texts, values))


def is_plain_conversation(
    messages: Messages, system: bool | None = True, prefill: bool | None = True
) -> bool:
    """
    Whether user and model speak by turns, in single plain texts, after at most one system prompt.

    Such a history needs no repair. Most histories are like this: it is the fast path. `system` and
    `prefill` are False for a target without a system prompt, or that does not continue a text.
    """
    before = None
    for message in messages:
        content, role = message.content, message.role
        if len(content) != 1 or type(content[0]) is not Text:
            return False
        if message.metadata and content[0].extra:  # a signature of another model, maybe
            return False
        text = content[0].text
        if not text.isascii() or not text or text.isspace() or role == before:
            return False
        if role not in _TALKING and (role != "system" or before is not None or system is False):
            return False
        before = role
    return before in _TALKING and (before == "user" or prefill is not False)


def scan_of(messages: Messages, edits: Edits) -> HistoryScan:
    """The scan of a history, made once per state of the history."""
    return edits.cached(messages, HistoryScan)


def _message_triggers(messages: Messages, parts: list[Part]) -> set[Trigger]:
    """The triggers of the messages themselves. Their parts are added to `parts`."""
    triggers: set[Trigger] = set()
    parts += chain.from_iterable(map(_content_of, messages))
    if not all(map(_content_of, messages)):
        triggers.add("empty_message")
    # Who made a plain text, and how it ended, does not matter to any rule.
    if any(map(_metadata_of, messages)) and any(
        type(part) is not Text or part.extra
        for message in messages
        if message.metadata
        for part in message.content
    ):
        triggers.add("has_metadata")
    roles = tuple(map(_role_of, messages))
    if {*roles} <= _PROMPTS:
        triggers.add("no_turn")
    for before, role in set(pairwise(roles)):
        instructed, instructs = before in _PROMPTS, role in _PROMPTS
        if instructs and not instructed:
            triggers.add("late_system")
        # A target may treat all roles but the model's as one.
        if role == before or ("assistant" not in (role, before) and instructs == instructed):
            triggers.add("adjacent_roles")
    return triggers


def _call_triggers(calls: list[ToolCall], values: list[Any]) -> set[Trigger]:
    """The triggers of the calls themselves. Their text and JSON are added to `values`."""
    triggers: set[Trigger] = set()
    ids = {call.id for call in calls}
    if len(ids) < len(calls) or "" in ids:
        triggers.add("repeated_id")
    for call in calls:
        values.append(call.arguments)
        if call.type != "function" or call.namespace is not None:
            triggers.add("special_call")
        if call.raw_arguments is not None:
            values.append(call.raw_arguments)
            triggers.add("raw_arguments")
    return triggers


def _text_triggers(texts: list[str], values: list[Any]) -> list[Trigger]:
    triggers: list[Trigger] = []
    if not all(texts) or any(map(str.isspace, texts)):
        triggers.append("blank_text")
    if (values or not all(map(str.isascii, texts))) and _may_be_broken(texts, values):
        triggers.append("invalid_unicode")
    return triggers


def _may_be_broken(texts: list[str], values: list[Any]) -> bool:
    """Whether anything cannot be written as JSON, for any reason."""
    if not all(map(str.isascii, texts)):
        values = [*values, *(text for text in texts if not text.isascii())]
    try:
        _encode(values)
    except (TypeError, ValueError, RecursionError, msgspec.MsgspecError):
        return True
    return False


def _pair_triggers(messages: Messages) -> set[Trigger]:
    triggers: set[Trigger] = set()
    waiting: list[str] = []  # the ids of calls without a result, the next one last
    for message in messages:
        content = message.content
        if not waiting and len(content) == 1 and type(content[0]) is Text:
            continue  # the usual message
        if message.role != "assistant":
            if not _answers(message, waiting):
                return _UNSOUND_PAIRS
            if waiting:
                triggers.add("split_results")
            continue
        if waiting or ToolResult in map(type, content):
            return _UNSOUND_PAIRS
        for part in content:
            if type(part) is ToolCall:
                waiting.append(part.id)
            elif waiting:
                triggers.add("calls_not_last")
        waiting.reverse()
    return _UNSOUND_PAIRS if waiting else triggers


def _answers(message: Message, waiting: list[str]) -> bool:
    """Whether its results answer the next waiting calls, which are removed from `waiting`."""
    if waiting and (message.role in PROMPTS or not message.content):
        return False
    for part in message.content:
        if type(part) is ToolResult and waiting:
            if waiting.pop() != part.tool_call_id:
                return False
        elif waiting or type(part) in _PAIRED:
            return False
    return True
