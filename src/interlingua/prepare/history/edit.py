"""Editing a history: the repair policy, and the record of edits."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from operator import is_
from typing import Any, Literal, TypeAlias, TypeVar

import msgspec

from interlingua.prepare.history.scan import HistoryScan, Messages
from interlingua.spec.content import Part, Thinking, ToolResult
from interlingua.spec.facts import HistoryRules
from interlingua.spec.messages import Message
from interlingua.spec.warnings import WarningList
from interlingua.wire.fields import extra_of


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

    __slots__ = ("_cache", "_narrowed", "_places", "history", "messages", "policy")

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
        self.messages: Messages = distinct(messages)
        """The history to edit; an object that is in it twice is two objects, with two paths."""
        self._narrowed = messages
        self._places: dict[int, tuple[object, str]] = {}  # holds the object: ids are reused
        self._cache: dict[Callable[..., Any], tuple[Messages, Any]] = {}

    def change(self, code: str, at: Message | Part, **fields: object) -> None:
        """Add a warning about a message or a part that was or is in the history."""
        self.add(code, self.place(at), **fields)

    def place(self, item: Message | Part) -> str | None:
        """The path of a message or part in the caller's history; None if it was not there."""
        entry = self._table().get(id(item))
        return None if entry is None else entry[1]

    def place_like(self, edited: Item, original: Message | Part) -> Item:
        """`edited`, registered at the path of `original`, which it replaces."""
        place = self.place(original)
        if place is not None:
            self._note(edited, place)
        return edited

    def cached(self, messages: Messages, make: Callable[..., Made], *args: object) -> Made:
        """The result of `make(messages, *args)`, computed once per state of the history."""
        entry = self._cache.get(make)
        if entry is None or entry[0] is not messages:
            entry = self._cache[make] = (messages, make(messages, *args))
        value: Made = entry[1]
        return value

    def store(self, messages: Messages, value: object) -> None:
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
            # `drop_media` ran before the rules and kept every message, so they pair up by index.
            every = zip(self.history, self._narrowed, self.messages, strict=True)
            for i, (message, narrowed, own) in enumerate(every):
                if own is not message:
                    self._note(own, f"messages[{i}]")
                    places = _places_in(narrowed.content, message.content)
                    note = self._note if own is narrowed else self._note_part
                    for part, k in zip(own.content, places, strict=True):
                        note(part, f"messages[{i}].content[{k}]")
        return self._places

    def _note(self, item: object, place: str) -> None:
        self._places.setdefault(id(item), (item, place))

    def _note_part(self, part: Part, place: str) -> None:
        self._note(part, place)
        if type(part) is ToolResult:
            for k, inner in enumerate(part.parts or ()):
                self._note(inner, f"{place}.content[{k}]")


def _places_in(narrowed: tuple[Part, ...], parts: tuple[Part, ...]) -> Iterator[int]:
    """Where each part was before some were dropped; some results have other parts inside."""
    k = 0
    for part in narrowed:
        while type(parts[k]) is not type(part) or (
            part is not parts[k] and not isinstance(part, ToolResult)
        ):
            k += 1
        yield k
        k += 1


def distinct(messages: Messages) -> Messages:
    """The history with a copy for each later place of an object; itself if there is none."""
    if not _has_repeated(messages):
        return messages
    seen: set[int] = set()
    return _distinct(messages, seen, lambda message: _distinct_message(message, seen))


def _has_repeated(messages: Messages) -> bool:
    """Whether an object is in the history twice."""
    items: list[object] = [*messages]
    for message in messages:
        items += message.content
        for part in message.content:
            if type(part) is ToolResult and type(part.content) is not str:
                items += part.parts or ()
    return len({id(item) for item in items}) < len(items)


def _distinct(
    items: tuple[Item, ...], seen: set[int], inside: Callable[[Item], Item]
) -> tuple[Item, ...]:
    own: list[Item] = []
    for item in items:
        current = inside(item)
        own.append(
            msgspec.structs.replace(item) if current is item and id(item) in seen else current
        )
        seen.add(id(item))
    return items if is_unchanged(own, items) else tuple(own)


def _distinct_message(message: Message, seen: set[int]) -> Message:
    parts = _distinct(message.content, seen, lambda part: _distinct_part(part, seen))
    is_same = parts is message.content
    return message if is_same else msgspec.structs.replace(message, content=parts)


def _distinct_part(part: Part, seen: set[int]) -> Part:
    if type(part) is not ToolResult or not part.parts:
        return part
    parts = _distinct(part.parts, seen, lambda inner: inner)
    return part if parts is part.parts else msgspec.structs.replace(part, content=parts)


Rule: TypeAlias = Callable[[Messages, HistoryRules, Edits], Messages]
"""One repair. It returns the very same tuple if there is nothing to do."""


def is_unchanged(edited: Sequence[object], original: Sequence[object]) -> bool:
    """Whether both hold the very same objects."""
    # By identity, not equality: comparing parts would read every image of a history.
    return len(edited) == len(original) and all(map(is_, edited, original))


def edit(
    messages: Messages,
    change: Callable[[Message], Message | None],
    holding: frozenset[type] | None = None,
) -> Messages:
    """
    Each message changed, or dropped where `change` returns None.

    With `holding`, only messages that hold a part of these types.
    """
    edited: list[Message | None] = []
    for message in messages:
        if holding is None or not holding.isdisjoint(map(type, message.content)):
            edited.append(change(message))
        else:
            edited.append(message)
    if is_unchanged(edited, messages):
        return messages
    return tuple(message for message in edited if message is not None)


def edit_parts(
    messages: Messages,
    change: Callable[[Part, Message], Part | None],
    edits: Edits,
    holding: frozenset[type] | None = None,
) -> Messages:
    """
    Each part changed, or dropped on None; a message left empty is dropped too.

    `holding`: as in `edit`.
    """

    def edit_message(message: Message) -> Message | None:
        edited = [change(part, message) for part in message.content]
        if is_unchanged(edited, message.content):
            return message
        parts = [part for part in edited if part is not None]
        return with_parts(message, parts, edits) if parts else None

    return edit(messages, edit_message, holding)


def with_parts(message: Message, parts: Iterable[Part], edits: Edits) -> Message:
    """The message with other parts."""
    return edits.place_like(msgspec.structs.replace(message, content=tuple(parts)), message)


def with_fields(part: Item, edits: Edits, **fields: object) -> Item:
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
    # OpenAI's reasoning items are valid only with the item that followed them;
    # `drop_trailing_thinking` quotes the error.
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


def scan_of(messages: Messages, edits: Edits) -> HistoryScan:
    """The scan of a history, made once per state of the history."""
    return edits.cached(messages, HistoryScan)
