"""
What a history holds, seen in one look at its parts.

A rule need not run where nothing it is about is to be seen. A sign is never missing where a
rule about it has something to do; it may be there though no rule has.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec

from interlingua.prepare.history.edit import Messages, Trail
from interlingua.spec.content import Document, Opaque, Part, Refusal, Text, ToolCall, ToolResult
from interlingua.spec.messages import Message, Role

Sign: TypeAlias = type | str
"""A kind of part, in a message or a result; or one of these conditions."""
UNPAIRED = "unpaired"
"""Calls are not answered at once, in their order, by results that stand first in messages."""
SPREAD = "spread"
"""The results of a turn are in several messages."""
CALLS_AMONG = "calls among"
"""Something stands after a call in its message."""
REPEATED = "repeated"
"""Two calls have the same id, or one has none."""
WRITTEN = "written"
"""A call has its arguments as text."""
BLANK = "blank"
"""A text says nothing, or a failed result does."""
BROKEN = "broken"
"""Some text may be no Unicode."""
EMPTY = "empty"
"""A message has no parts."""
TOLD = "told"
"""Something is told about a message: whose it is, how it ended."""
LATE = "late"
"""A system prompt comes after the conversation has begun."""
UNBEGUN = "unbegun"
"""There is nothing but system prompts, if anything."""
ADJACENT = "adjacent"
"""Two messages that follow each other may be of one role."""

_INSTRUCTING = ("system", "developer")
_TALKING = ("user", "assistant")
_PAIRED = (ToolCall, ToolResult)
_UNSOUND: set[Sign] = {UNPAIRED, SPREAD, CALLS_AMONG}
_encode = msgspec.json.Encoder().encode


class Survey:
    """The signs of a history, and its calls."""

    __slots__ = ("calls", "signs")

    def __init__(self, messages: Messages) -> None:
        self.calls: list[ToolCall] = []
        """Wherever they stand, inside results too."""
        parts: list[Part] = []
        self.signs: set[Sign] = _message_signs(messages, parts)
        self._look_at(parts)
        if not self.signs.isdisjoint(_PAIRED):
            self.signs |= _pair_signs(messages)
            if Opaque in self.signs:  # it may be a call or a result
                self.signs.add(UNPAIRED)

    def _look_at(self, parts: list[Part]) -> None:
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
                    self.signs.add(BLANK)
                if type(content) is tuple:
                    parts += content  # this loop comes to them too
                else:
                    values.append(content)
            elif type(part) is Document:
                values.append(part.text)
        self.signs.update(map(type, parts))
        if self.calls:
            self.signs |= _call_signs(self.calls, values)
        self.signs.update(_text_signs(texts, values))


def is_plain_talk(messages: Messages) -> bool:
    """
    Whether a history is one text after the other, the user's and the model's by turns.

    That is seen at once, and is sound; a prompt may come first. Of any other, nothing is said.
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


def survey_of(messages: Messages, trail: Trail) -> Survey:
    """The survey, made once for as long as the history does not change."""
    return trail.remember(messages, Survey)


def _message_signs(messages: Messages, parts: list[Part]) -> set[Sign]:
    """Of the messages themselves; what they hold is added to `parts`."""
    signs: set[Sign] = set()
    has_begun = False
    before: Role | None = None
    instructed: bool | None = None
    for message in messages:
        parts += message.content
        if not message.content:
            signs.add(EMPTY)
        if message.metadata:
            signs.add(TOLD)
        role = message.role
        instructs = role in _INSTRUCTING
        if not instructs:
            has_begun = True
        elif has_begun:
            signs.add(LATE)
        # who is not the model may be one role to the target
        if role == before or ("assistant" not in (role, before) and instructs == instructed):
            signs.add(ADJACENT)
        before, instructed = role, instructs
    if not has_begun:
        signs.add(UNBEGUN)
    return signs


def _call_signs(calls: list[ToolCall], values: list[Any]) -> set[Sign]:
    """Of the calls themselves; what text and JSON they hold is added to `values`."""
    signs: set[Sign] = set()
    ids = {call.id for call in calls}
    if len(ids) < len(calls) or "" in ids:
        signs.add(REPEATED)
    for call in calls:
        values.append(call.arguments)
        if call.raw_arguments is not None:
            values.append(call.raw_arguments)
            signs.add(WRITTEN)
    return signs


def _text_signs(texts: list[str], values: list[Any]) -> list[Sign]:
    signs: list[Sign] = []
    if not all(texts) or any(map(str.isspace, texts)):
        signs.append(BLANK)
    if (values or not all(map(str.isascii, texts))) and _may_be_broken(texts, values):
        signs.append(BROKEN)
    return signs


def _may_be_broken(texts: list[str], values: list[Any]) -> bool:
    """Whether anything cannot be written, for whatever reason."""
    if not all(map(str.isascii, texts)):
        values = [*values, *(text for text in texts if not text.isascii())]
    try:
        _encode(values)
    except (TypeError, ValueError, RecursionError, msgspec.MsgspecError):
        return True
    return False


def _pair_signs(messages: Messages) -> set[Sign]:
    signs: set[Sign] = set()
    waiting: list[str] = []  # the ids of the calls without a result, the next at the end
    for message in messages:
        content = message.content
        if not waiting and len(content) == 1 and type(content[0]) is Text:
            continue  # as with most
        if message.role != "assistant":
            if not _answers(message, waiting):
                return _UNSOUND
            if waiting:
                signs.add(SPREAD)
            continue
        if waiting or ToolResult in map(type, content):
            return _UNSOUND
        for part in content:
            if type(part) is ToolCall:
                waiting.append(part.id)
            elif waiting:
                signs.add(CALLS_AMONG)
        waiting.reverse()
    return _UNSOUND if waiting else signs


def _answers(message: Message, waiting: list[str]) -> bool:
    """Whether it answers what waits, though not all of it: the answered are taken away."""
    if waiting and (message.role in _INSTRUCTING or not message.content):
        return False
    for part in message.content:
        if type(part) is ToolResult and waiting:
            if waiting.pop() != part.tool_call_id:
                return False
        elif waiting or type(part) in _PAIRED:
            return False
    return True
