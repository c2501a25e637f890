"""What a history contains: its parts by type, and the triggers of the rules of repair."""

from __future__ import annotations

import re
from typing import Literal, TypeAlias

import msgspec

from interlingua.spec.content import (
    MEDIA_TYPES,
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
from interlingua.wire.seal_marks import SHORTEST, has_seal

Condition: TypeAlias = Literal[
    "adjacent_roles",  # two consecutive messages may have one role for the target
    "blank_text",  # a text is empty or blank, or a failed result has no content
    "calls_not_last",  # something follows a call in its message
    "empty_message",  # a message has no parts
    "has_metadata",  # a message with more than plain text says which model made it, how it ended
    "invalid_unicode",  # some text may not be valid Unicode
    "model_first",  # the model's message is the first, and the target does not accept that
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
Messages: TypeAlias = tuple[Message, ...]
_dated = re.compile(r"[-@](\d{4}-?\d{2}-?\d{2}|latest)$").sub
Trigger: TypeAlias = type | Condition
"""A kind of part, in a message or in a result, or a condition."""

PROMPTS = ("system", "developer")
"""The roles of instructions."""
UNCHANGED: frozenset[Trigger] = frozenset({Text})
"""What no rule is about: a history with nothing else is right for every target."""
_SPEAKERS = {"system": "s", "developer": "s", "user": "u", "tool": "u", "assistant": "a"}
"""A letter for each role; a target may treat the roles that share a letter as one."""
HOLDERS = ("user", "tool")
"""The roles whose messages may hold results."""
_TALKING = ("user", "assistant")
_PAIRED = (ToolCall, ToolResult)
_UNSOUND_PAIRS: set[Trigger] = {"unpaired_calls", "split_results", "calls_not_last"}
_encode = msgspec.json.Encoder().encode


class HistoryScan:
    """
    The parts of a history, sorted by type: parts of messages, then parts inside results.

    One pass over the messages sorts them. What is asked about a history later looks only at the
    parts that it is about, and most histories have few kinds of parts.
    """

    __slots__ = (
        "_is_plain",
        "_triggers",
        "calls",
        "holds_media",
        "messages",
        "others",
        "parts",
        "results",
        "texts",
    )

    def __init__(self, messages: Messages) -> None:
        self.messages: Messages = messages
        self.parts: list[Part] = []
        self.texts: list[str] = []
        """Of the `Text` parts."""
        self.calls: list[ToolCall] = []
        self.results: list[ToolResult] = []
        self.others: list[Part] = []
        self.holds_media: bool = False
        """Whether any part is media."""
        self._triggers: frozenset[Trigger] | None = None
        self._is_plain = self._sort_plain()
        if not self._is_plain:
            self._sort_parts()

    def _sort_plain(self) -> bool:
        """Sort the parts of a plain conversation; False, and nothing is done, for any other."""
        parts: list[Part] = []
        texts: list[str] = []
        before = None
        for message in self.messages:
            content, role = message.content, message.role
            if len(content) != 1 or type(part := content[0]) is not Text:
                return False
            if message.metadata and part.extra:  # a signature of another model, maybe
                return False
            text = part.text
            if not text.isascii() or not text or text.isspace() or role == before:
                return False
            if role not in _TALKING and (role != "system" or before is not None):
                return False
            parts.append(part)
            texts.append(text)
            before = role
        if before not in _TALKING:
            return False
        self.parts, self.texts = parts, texts
        return True

    def _sort_parts(self) -> None:
        parts, texts = self.parts, self.texts
        for message in self.messages:
            parts += message.content
        for part in parts:
            if type(part) is Text:
                texts.append(part.text)
            elif type(part) is ToolCall:
                self.calls.append(part)
            elif type(part) is ToolResult:
                self.results.append(part)
                if type(part.content) is tuple:
                    parts += part.content  # the loop reaches them too
            else:
                self.others.append(part)
                if isinstance(part, MEDIA_TYPES):
                    self.holds_media = True

    def is_plain(
        self,
        system: bool | None = True,
        prefill: bool | None = True,
        *,
        user_first: bool = False,
    ) -> bool:
        """
        Whether user and model speak by turns, in plain texts, after at most one system prompt.

        Such a history needs no repair. Most histories are like this: it is the fast path. `system`
        and `prefill` are False for a target without a system prompt, or that does not continue a
        text; `user_first` is True for one to which the user must speak first.
        """
        if not self._is_plain:
            return False
        if system is False and self.messages[0].role == "system":
            return False
        if user_first and begins_with_model(self.messages):
            return False
        return prefill is not False or self.messages[-1].role == "user"

    @property
    def rough_size(self) -> int:
        """The bytes or characters of texts and media; the rest of a request is small."""
        size = sum(map(len, self.texts))
        for result in self.results:
            if isinstance(result.content, (str, bytes)):
                size += len(result.content)
        for part in self.others:
            values = (getattr(part, name, None) for name in ("text", "data"))
            size += sum(len(value) for value in values if isinstance(value, (str, bytes)))
        return size

    @property
    def triggers(self) -> frozenset[Trigger]:
        """The kinds of parts, and the conditions that rules of repair are about."""
        if self._triggers is None:
            self._triggers = frozenset(self._find_triggers())
        return self._triggers

    def _find_triggers(self) -> set[Trigger]:
        triggers = _message_triggers(self.messages)
        triggers |= {type(part) for part in self.others}
        if self.texts:
            triggers.add(Text)
        may_be_sealed = [part for part in self.parts if part.extra]
        may_be_sealed += [p for p in self.others if type(p) is Thinking and not p.extra]
        may_be_sealed += [call for call in self.calls if len(call.id) > SHORTEST]
        may_be_sealed += [one for one in self.results if len(one.tool_call_id) > SHORTEST]
        if any(map(has_seal, may_be_sealed)):
            triggers.add("sealed")
        values = self._values(triggers)
        texts = self.texts + [part.text for part in self.others if type(part) is Refusal]
        triggers.update(_text_triggers(texts, values))
        if self.calls or self.results:
            triggers |= _pair_triggers(self.messages)
            if Opaque in triggers:  # it may be a call or a result
                triggers.add("unpaired_calls")
        return triggers

    def _values(self, triggers: set[Trigger]) -> list[object]:
        """The text and JSON in other parts than texts. Their own triggers are added."""
        values: list[object] = [part.text for part in self.others if type(part) is Document]
        if self.results:
            triggers.add(ToolResult)
            values += [part.content for part in self.results if type(part.content) is not tuple]
            if any(part.is_error and not part.content for part in self.results):
                triggers.add("blank_text")
        if self.calls:
            triggers.add(ToolCall)
            triggers |= _call_triggers(self.calls, values)
        return values


def scan_history(messages: Messages, scan: HistoryScan | None) -> HistoryScan:
    """The scan of a history: the given one, if it is of this very history, else a new one."""
    return scan if scan is not None and scan.messages is messages else HistoryScan(messages)


def triggers_of(messages: Messages, target: HistoryRules, scan: HistoryScan) -> frozenset[Trigger]:
    """The triggers of a history, with the triggers that depend on the target."""
    if target.system and target.prefill and not target.user_first:
        return scan.triggers
    triggers = set(scan.triggers)
    if target.user_first and begins_with_model(messages):
        triggers.add("model_first")
    if not target.system and messages and messages[0].role in PROMPTS:
        triggers.add("late_system")
    if not target.prefill and messages and messages[-1].role == "assistant":
        triggers.add("model_last")
    return frozenset(triggers)


def begins_with_model(messages: Messages) -> bool:
    """Whether the first message after the system prompts is from the assistant."""
    for message in messages:
        if message.role not in PROMPTS:
            return message.role == "assistant"
    return False


def _message_triggers(messages: Messages) -> set[Trigger]:
    """The triggers of the messages themselves."""
    triggers: set[Trigger] = set()
    if () in [message.content for message in messages]:
        triggers.add("empty_message")
    # Who made a plain text, and how it ended, does not matter to any rule.
    if any(
        type(part) is not Text or part.extra
        for message in [message for message in messages if message.metadata]
        for part in message.content
    ):
        triggers.add("has_metadata")
    speakers = "".join([_SPEAKERS[message.role] for message in messages])
    if not speakers.strip("s"):
        triggers.add("no_turn")
    if "us" in speakers or "as" in speakers:
        triggers.add("late_system")
    if "ss" in speakers or "uu" in speakers or "aa" in speakers:
        triggers.add("adjacent_roles")
    return triggers


def _call_triggers(calls: list[ToolCall], values: list[object]) -> set[Trigger]:
    """The triggers of tool calls; the text and JSON of the tool calls are added to `values`."""
    triggers: set[Trigger] = set()
    ids = {call.id for call in calls}
    if len(ids) < len(calls) or "" in ids:
        triggers.add("repeated_id")
    values += [call.arguments for call in calls]
    raw = [call.raw_arguments for call in calls if call.raw_arguments is not None]
    if raw:
        values += raw
        triggers.add("raw_arguments")
    if [call for call in calls if call.type != "function" or call.namespace is not None]:
        triggers.add("special_call")
    return triggers


def _text_triggers(texts: list[str], values: list[object]) -> list[Trigger]:
    triggers: list[Trigger] = []
    if not all(texts) or any(map(str.isspace, texts)):
        triggers.append("blank_text")
    if not all(map(str.isascii, texts)):
        values = [*values, *(text for text in texts if not text.isascii())]
    if values and _may_be_broken(values):
        triggers.append("invalid_unicode")
    return triggers


def _may_be_broken(values: list[object]) -> bool:
    """Whether anything cannot be written as JSON, for any reason."""
    # A false alarm costs one pass of a rule that changes nothing.
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
        if waiting or message.role != "assistant":
            if not _answers(message, waiting):
                return _UNSOUND_PAIRS
            if waiting:
                triggers.add("split_results")
            continue
        for part in content:
            if type(part) is ToolCall:
                waiting.append(part.id)
            elif type(part) is ToolResult:
                return _UNSOUND_PAIRS
            elif waiting:
                triggers.add("calls_not_last")
        waiting.reverse()
    return _UNSOUND_PAIRS if waiting else triggers


def _answers(message: Message, waiting: list[str]) -> bool:
    """Whether its results answer the next waiting tool calls, which leave `waiting`."""
    if waiting and (message.role not in HOLDERS or not message.content):
        return False
    for part in message.content:
        if type(part) is ToolResult and waiting:
            if waiting.pop() != part.tool_call_id:
                return False
        elif waiting or type(part) in _PAIRED:
            return False
    return True


def is_own(message: Message, target: HistoryRules) -> bool:
    """Whether the model that will read the message has made it, by the metadata of the message."""
    if message.role != "assistant" or not message.metadata:
        return False
    provider, model = message.metadata.get("provider"), message.metadata.get("model")
    if provider and target.provider and provider != target.provider:
        return False
    return isinstance(model, str) and bool(target.model) and is_same_model(model, target.model)


def is_same_model(left: str, right: str) -> bool:
    """Whether two names are equal apart from a date and the host's name."""
    # Seen in recordings: a request for `claude-haiku-4-5` is answered by
    # `claude-haiku-4-5-20251001`, one for `gpt-4o` by `gpt-4o-2024-08-06`. Gateways put the vendor
    # before the name: `anthropic/claude-…`.
    names = [_dated("", name.lower()).rpartition("/")[2] for name in (left, right)]
    return names[0] == names[1]
