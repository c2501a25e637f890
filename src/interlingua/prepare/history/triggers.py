"""
Triggers: the conditions of a history that rules are about, found in one pass over its parts.

A rule need not run where none of its triggers is present. A trigger is never missing where a rule
about it has something to do; it may be present though no rule has.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec

from interlingua.prepare.history.edit import Edits, Messages
from interlingua.spec.content import Document, Opaque, Part, Refusal, Text, ToolCall, ToolResult
from interlingua.spec.messages import Message, Role

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


def scan_of(messages: Messages, trail: Edits) -> HistoryScan:
    """The scan of a history, made once for as long as the history does not change."""
    return trail.cached(messages, HistoryScan)


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
