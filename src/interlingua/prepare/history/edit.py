"""Editing a history: the same objects where nothing changes, and a record of what did."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from operator import is_
from typing import Any, TypeAlias, TypeVar

import msgspec

from interlingua.prepare.history.target import RepairPolicy
from interlingua.spec.content import Part, Thinking, ToolResult
from interlingua.spec.facts import HistoryRules
from interlingua.spec.messages import Message
from interlingua.spec.warnings import WarningList
from interlingua.wire.fields import extra_of

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

    __slots__ = ("_memory", "_narrowed", "_places", "history")

    def __init__(
        self, messages: Messages, history: Messages | None = None, target: str = "the target"
    ) -> None:
        super().__init__(target)
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


Rule: TypeAlias = Callable[[Messages, HistoryRules, RepairPolicy, Edits], Messages]
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
    messages: Messages, change: Callable[[Part, Message], Part | None], trail: Edits
) -> Messages:
    """Each part changed, or left out where that gives None; a message left empty goes too."""

    def edit_message(message: Message) -> Message | None:
        edited = [change(part, message) for part in message.content]
        if is_unchanged(edited, message.content):
            return message
        parts = [part for part in edited if part is not None]
        return with_parts(message, parts, trail) if parts else None

    return edit(messages, edit_message)


def with_parts(message: Message, parts: Iterable[Part], trail: Edits) -> Message:
    """The message with other parts."""
    return trail.place_like(msgspec.structs.replace(message, content=tuple(parts)), message)


def with_fields(part: Found, trail: Edits, **fields: Any) -> Found:
    """The part with other fields."""
    return trail.place_like(msgspec.structs.replace(part, **fields), part)


def cut(
    messages: Messages, gone: dict[int, set[int]], target: HistoryRules, trail: Edits
) -> Messages:
    """The history without these parts, by message; a message left empty goes too."""
    if not gone:
        return messages
    kept = (
        without(message, gone[i], target, trail) if i in gone else message
        for i, message in enumerate(messages)
    )
    return tuple(message for message in kept if message is not None)


def without(
    message: Message, gone: Collection[int], target: HistoryRules, trail: Edits
) -> Message | None:
    """
    The message without some of its parts; None if nothing is left.

    Where thoughts are paired with what they stood before, they go with it.
    """
    parts = message.content
    leaders = _leaders(parts, gone, target) if target.paired_thinking else set()
    for k in sorted(leaders):
        trail.change("unpaired_thinking_dropped", parts[k])
    kept = [part for k, part in enumerate(parts) if k not in gone and k not in leaders]
    if leaders:
        kept = [unbind(part, target, trail) for part in kept]
    return with_parts(message, kept, trail) if kept else None


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


def unbind(part: Part, target: HistoryRules, trail: Edits) -> Part:
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
    return with_fields(part, trail, extra=extra)
