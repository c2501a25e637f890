"""
Messages <-> `instructions` and `input`.

The conversation is a flat list of items here: calls, results and reasoning stand beside
the messages, not in them. What the model made between two messages of others is one
canonical message; its message items are told apart by a mark on the first part of each.
A leading system message is `instructions`; a later one stays in place.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import msgspec

from interlingua.dialects.openai_responses.content import (
    decode_call,
    decode_content,
    decode_result,
    decode_thinking,
    encode_call,
    encode_part,
    encode_result,
    encode_thinking,
    is_native,
)
from interlingua.dialects.openai_responses.facts import (
    BARE,
    CALLS,
    INPUT_TEXT,
    ITEM,
    LIST,
    NAME,
    OUTPUT_TEXT,
    PREFIXES,
    RESULTS,
    TOOL_TYPES,
    extra_for,
)
from interlingua.dialects.openai_responses.items import item_id, message_item, shorten
from interlingua.spec.content import (
    Audio,
    Document,
    Image,
    Json,
    Opaque,
    Part,
    Refusal,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    ToolType,
)
from interlingua.spec.contracts import NewId
from interlingua.spec.errors import DecodeError
from interlingua.spec.messages import Message, Role
from interlingua.spec.request import Request
from interlingua.spec.warnings import WarningList
from interlingua.wire.fields import Fields, extra_of, wrong_type

_SHORT = "~input"  # a user message that was all of `input`, as a string
_INLINE = "~inline"  # a system message that was an item, where ours would be `instructions`
_MARKS = (ITEM, _INLINE, _SHORT)  # what is no field of a message item
_WHOLE = ("id", "status", LIST)
_CONTENT = frozenset((Text, Refusal, Image, Document, Audio))
_SAID = frozenset((Text, Refusal))
_SAID_BY_DEVELOPER = ("additional_tools", "configuration_update", "compaction_trigger")


def encode_messages(request: Request, body: dict[str, Any], warnings: WarningList) -> None:
    """`instructions` and `input`."""
    messages = request.messages
    first = 0
    if messages and _is_instructions(messages[0]):
        body["instructions"] = messages[0].text
        first = 1
    calls = [part for message in messages for part in message.content if type(part) is ToolCall]
    custom = {call.id for call in calls if call.type == "custom"} if calls else ()
    encoder = ItemEncoder(warnings, custom=custom)
    for warnings.message in range(first, len(messages)):
        message = messages[warnings.message]
        _encode_message(message, encoder)
        if message.name is not None:
            warnings.add("name_dropped", f"{warnings.message_path()}.name")
    for item in encoder.messages:
        if "id" not in item and "status" not in item:  # those only the long form may have
            kind = OUTPUT_TEXT if item["role"] == "assistant" else INPUT_TEXT
            item["content"] = shorten(item["content"], kind)
    body["input"] = _shorten_input(messages[first:], encoder.items)


def _shorten_input(messages: tuple[Message, ...], items: list[Json]) -> Json:
    """A string if it was one, and nothing has been added to it."""
    if len(messages) == 1 and extra_of(messages[0], NAME).get(_SHORT):
        match messages[0].content:
            case (Text(text=text),):
                return text
    return items


def _is_instructions(message: Message) -> bool:
    """A string can say it: one text, without fields of this API's own."""
    if message.role != "system" or NAME in message.extra or len(message.content) != 1:
        return False
    part = message.content[0]
    return type(part) is Text and NAME not in part.extra


def _encode_message(message: Message, encoder: ItemEncoder) -> None:
    kept = extra_of(message, NAME) if message.extra else None
    if not kept:  # as with most
        encoder.unmarked_message(message.role, message.content)
    elif kept.get(ITEM):
        encoder.items += [part.data for part in message.content if isinstance(part, Opaque)]
    else:
        own = {name: kept[name] for name in kept if name not in _MARKS}
        encoder.message(message.role, message.content, own or None)


class ItemEncoder:
    """
    Writes parts as items, in their order.

    With a `response_id` they are items of an answer, which have ids and a status even if
    they came from elsewhere, and show another model's thinking.
    """

    def __init__(
        self,
        warnings: WarningList,
        *,
        response_id: str | None = None,
        custom: Collection[str] = (),
        first: int = 0,
    ) -> None:
        self.items: list[Json] = []
        self.messages: list[dict[str, Any]] = []  # those of the items that were made here
        self._first = first  # how many items the answer has before these
        self._warnings = warnings
        self._response_id = response_id
        self._is_answer = response_id is not None
        self._custom = custom  # the ids of calls of free-text tools

    def unmarked_message(self, role: Role, parts: tuple[Part, ...]) -> None:
        """A message without fields of this API's own; one text is written as a string."""
        if len(parts) == 1 and type(parts[0]) is Text and not parts[0].extra:
            item = message_item("user" if role == "tool" else role, {}, parts[0].text)
            self.items.append(item)
        else:
            self.message(role, parts)

    def message(
        self, role: Role, parts: tuple[Part, ...], own: Mapping[str, Any] | None = None
    ) -> None:
        """One canonical message; `own` are the fields of its message item."""
        content: list[Json] | None = None
        is_whole = False  # the item of `content` is one that the model made, maybe of many parts
        is_model = role == "assistant"
        text_kind = OUTPUT_TEXT if is_model else INPUT_TEXT
        inner = not is_model and role != "tool"  # where an opaque part is content, no item
        for self._warnings.part, part in enumerate(parts):
            kind = type(part)
            if kind not in _CONTENT and not (inner and kind is Opaque):
                content = None
                item = self.item(part)
                if item is not None:
                    self.items.append(item)
                continue
            mark = extra_of(part, NAME).get(ITEM) if is_model and part.extra else None
            if mark is not None or content is None:
                is_whole = not is_model or self._is_answer or _is_whole(mark)
            if not is_whole and kind in _SAID:
                self._foreign_text(part, own if mark is None else mark)
                own = None
                continue
            block = self._content(part, text_kind)
            if block is None:
                continue
            if content is None or mark is not None:
                content = self._open(role, own if mark is None else mark)
                own = None
            content.append(block)
        if not parts and inner:
            self._open(role, own)

    def item(self, part: Part) -> Json:
        """The item that says a part which is no content; None, and a warning, if there is none."""
        match part:
            case ToolCall():
                return encode_call(part, self._made(CALLS[part.type], part))
            case ToolResult():
                return encode_result(part, self._tool_type(part), self._warnings)
            case Thinking():
                shown = self._is_answer and not part.redacted
                if is_native(part) or shown:
                    return encode_thinking(part, self._made("reasoning", part))
                reason = f"{self._warnings.target} accepts only its own thinking"
                self._warnings.add_here("foreign_thinking_dropped", reason=reason)
            case Opaque():
                if part.dialect == NAME:
                    return part.data
                self._warnings.add_here("foreign_block_dropped", owner=part.dialect)
        return None

    def _tool_type(self, result: ToolResult) -> ToolType:
        return "custom" if result.tool_call_id in self._custom else "function"

    def _open(self, role: Role, own: Any) -> list[Json]:
        """The content of a new message item."""
        content: list[Json] = []
        if own is None and self._is_answer:
            own = {"id": self._made("message"), "status": "completed"}
        item = message_item("user" if role == "tool" else role, own or {}, content)
        self.messages.append(item)
        self.items.append(item)
        return content

    def _foreign_text(self, part: Any, own: Any) -> None:
        """
        Write what another model said, as an item of one text.

        An item of several parts, or of a refusal, must have the id that the API gave it.
        """
        if type(part) is Refusal:
            self._warnings.add_here("refusal_as_text")
        has_id = own and ("id" in own or "status" in own)  # such an item has the long form
        content = [{"type": OUTPUT_TEXT, "text": part.text}] if has_id else part.text
        self.items.append(message_item("assistant", own or {}, content))

    def _content(self, part: Part, text_kind: str) -> Json | None:
        """The content part that says a part. An answer's texts have annotations, even if none."""
        block = encode_part(part, text_kind, self._warnings)
        if block and self._is_answer and NAME not in part.extra and "text" in block:
            block["annotations"] = []
        return block

    def _made(self, kind: str, part: Part | None = None) -> str | None:
        """An id for an item of an answer, unless it has had its own say."""
        if self._response_id is None or (part is not None and NAME in part.extra):
            return None
        return item_id(self._response_id, kind, self._first + len(self.items))


def _is_whole(mark: Any) -> bool:
    """Whether the mark is of an item that came so, and still has what it came with."""
    return isinstance(mark, Mapping) and any(name in mark for name in _WHOLE)


def decode_messages(fields: Fields) -> tuple[Message, ...]:
    """The messages that `instructions` and `input` hold."""
    messages: list[Message] = []
    instructions = fields.left.get("instructions")
    if isinstance(instructions, str):
        fields.take("instructions")
        messages.append(Message.system(instructions))
    elif instructions is not None and not isinstance(instructions, list):
        raise wrong_type("instructions", "text", instructions)
    given = fields.take("input")
    if isinstance(given, str):
        short = Message(role="user", content=(Text(text=given),), extra={NAME: {_SHORT: True}})
        return (*messages, short)
    if given is not None and not isinstance(given, list):
        raise wrong_type("input", "text or an array of items", given)
    turn: list[Part] = []  # what the model made since the last message of others
    for i, item in enumerate(given or ()):
        message = _decode_item(item, f"input[{i}]", turn, leading=not messages)
        if message is not None:
            _end_turn(turn, messages)
            messages.append(message)
    _end_turn(turn, messages)
    return tuple(messages)


def _end_turn(turn: list[Part], messages: list[Message]) -> None:
    if turn:
        messages.append(Message(role="assistant", content=tuple(turn)))
        turn.clear()


def _decode_item(item: Json, path: str, turn: list[Part], *, leading: bool) -> Message | None:
    """The message an item is; None if it went on with the model's turn."""
    if isinstance(item, str):  # no item at all, but nothing we should lose
        return _opaque("user", item)
    if not isinstance(item, dict):
        raise wrong_type(path, "an item", item)
    kind = item.get("type")
    if is_turn(item):
        marked = bool(turn) and isinstance(turn[-1], (Text, Refusal))
        turn += decode_turn(item, path, marked=marked)
        return None
    if kind in RESULTS.values():
        return Message(role="tool", content=(decode_result(item, path, decode_content),))
    if kind in (None, "message"):
        return _decode_message(item, path, leading=leading and not turn)
    role = _role_of(kind, item)
    if role != "assistant":
        return _opaque(role, item)
    turn.append(Opaque(dialect=NAME, data=item))
    return None


def _decode_message(item: dict[str, Any], path: str, *, leading: bool) -> Message:
    fields = Fields(item, path)
    role = fields.text("role")
    if role is None:
        raise wrong_type(fields.at("role"), "user, assistant, system or developer", role)
    if role not in ("user", "system", "developer"):
        return _opaque("user", item)
    content = decode_content(fields.take("content"), fields.at("content"), INPUT_TEXT)
    if role == "system" and leading:
        fields.left[_INLINE] = True
    return Message(role=role, content=content, extra=extra_for(fields.left))  # type: ignore[arg-type]


def _opaque(role: Role, item: Json) -> Message:
    extra = {} if role == "tool" else {NAME: {ITEM: True}}
    return Message(role=role, content=(Opaque(dialect=NAME, data=item),), extra=extra)


def _role_of(kind: Any, item: dict[str, Any]) -> Role:
    """Who would say an item that has no canonical form."""
    if not isinstance(kind, str):
        return "user"
    if kind in _SAID_BY_DEVELOPER:
        return "developer"
    if kind.endswith(("_output", "_response")) and item.get("execution") != "server":
        return "tool"
    return "assistant"


def is_turn(item: Mapping[str, Any]) -> bool:
    """Whether it is an item of the model that has a canonical form."""
    kind = item.get("type", "message")
    if kind == "message":
        return item.get("role") == "assistant"
    return isinstance(kind, str) and kind in PREFIXES


def decode_turn(
    item: dict[str, Any], path: str, *, marked: bool, new_id: NewId | None = None
) -> list[Part]:
    """The parts of an item of the model; `marked` if the mark is due though it be empty."""
    fields = Fields(item, path)
    left = fields.left
    kind = left.pop("type", None)
    if kind == "reasoning":
        return [decode_thinking(fields)]
    if kind in TOOL_TYPES:
        return [decode_call(fields, TOOL_TYPES[kind], new_id)]
    left.pop("role", None)
    content = left.pop("content", None)
    parts = list(decode_content(content, fields.at("content"), OUTPUT_TEXT))
    is_said = parts and _SAID.issuperset(map(type, parts))
    if not is_said or any(ITEM in extra_of(part, NAME) for part in parts if part.extra):
        return [Opaque(dialect=NAME, data=item)]
    if "id" not in left and "status" not in left:
        if kind is None:
            left[BARE] = True
        is_plain = len(parts) == 1 and isinstance(parts[0], Text) and not parts[0].extra
        if new_id is None and not is_plain:
            left[LIST] = True
    if marked or left:
        extra = {NAME: {**extra_of(parts[0], NAME), ITEM: left}}
        parts[0] = msgspec.structs.replace(parts[0], extra=extra)
    return parts


def read_item(item: Json, new_id: NewId) -> list[Part]:
    """An item of an answer: what does not fit its own kind is kept as it is."""
    try:
        if isinstance(item, dict) and is_turn(item):
            return decode_turn(item, "", marked=True, new_id=new_id)
    except DecodeError:
        pass
    return [Opaque(dialect=NAME, data=item)]
