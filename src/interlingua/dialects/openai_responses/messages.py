"""
Messages <-> `instructions` and `input`.

`input` is a flat list of items: tool calls, results and reasoning are items beside the messages,
not parts of them. All items of the model between two messages of others are one canonical
message; the first part of each of its message items has the item's own fields in `extra`.
A leading system message is `instructions`; a later one stays in place.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import assert_never

from msgspec.structs import replace

from interlingua.dialects.openai_responses.content import (
    decode_content,
    decode_made_image,
    decode_thinking,
    encode_answer_text,
    encode_made_image,
    encode_part,
    encode_thinking,
    is_native,
)
from interlingua.dialects.openai_responses.facts import (
    IMAGE_CALL,
    INPUT_TEXT,
    ITEM,
    LIST,
    MADE,
    NAME,
    OUTPUT_TEXT,
    PREFIXES,
    RESULTS,
    TOOL_CALLS,
    TOOL_TYPES,
    extra_for,
)
from interlingua.dialects.openai_responses.hosted_uses import OwnCalls, hosted_use
from interlingua.dialects.openai_responses.tool_calls import (
    decode_result,
    decode_tool_call,
    encode_result,
    encode_tool_call,
)
from interlingua.spec.content import (
    MEDIA_TYPES,
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
)
from interlingua.spec.contracts import NewId
from interlingua.spec.errors import DecodeError
from interlingua.spec.messages import Message, Role
from interlingua.spec.request import Request
from interlingua.spec.warnings import WarningList
from interlingua.wire.fields import Fields, extra_of, shorten, wrong_type

_INLINE = "~inline"
"""Our own key in `extra`: the leading system message was an item, not `instructions`."""
_TEXTS = frozenset((Text, Refusal))
_CONTENT = _TEXTS.union(MEDIA_TYPES)
# Items by which the application changes the request in the middle of a conversation; recorded ones
# of the first type have the role `developer`.
DEVELOPER_ITEMS = ("additional_tools", "configuration_update", "compaction_trigger")


def encode_messages(request: Request, body: dict[str, Json], warnings: WarningList) -> None:
    """`instructions` and `input`."""
    messages = request.messages
    first = 0
    if messages and is_instructions(messages[0]):
        body["instructions"] = messages[0].text
        first = 1
        if messages[0].name is not None:
            warnings.add("name_dropped", "messages[0].name")
    encoder = ItemEncoder(warnings)
    for warnings.message in range(first, len(messages)):
        message = messages[warnings.message]
        if message.extra:
            _encode_marked(message, encoder)
        else:
            encoder.plain_message(message.role, message.content)
        if message.name is not None:
            warnings.add("name_dropped", f"{warnings.message_path()}.name")
    for item, content in encoder.messages:
        # With an id or a status it is an `ResponseOutputMessageParam`, whose content is a list.
        if "id" not in item and "status" not in item:
            kind = OUTPUT_TEXT if item["role"] == "assistant" else INPUT_TEXT
            item["content"] = shorten(content, kind)
    body["input"] = encoder.items


def is_instructions(message: Message) -> bool:
    """Whether a string can hold it: one text, without fields of this API."""
    if message.role != "system" or NAME in message.extra or len(message.content) != 1:
        return False
    part = message.content[0]
    return type(part) is Text and NAME not in part.extra


def _encode_marked(message: Message, encoder: ItemEncoder) -> None:
    """A message that may have fields of this API."""
    extra = extra_of(message, NAME)
    if not extra:
        encoder.plain_message(message.role, message.content)
    elif extra.get(ITEM):
        encoder.items += [part.data for part in message.content if isinstance(part, Opaque)]
    else:
        fields = {name: extra[name] for name in extra if name not in (ITEM, _INLINE)}
        encoder.message(message.role, message.content, fields or None)


def item_id(response_id: str, kind: str, index: int) -> str:
    """A deterministic id for an item of a response that has no id of its own."""
    return f"{PREFIXES[kind]}_{response_id.removeprefix('resp_')}_{index}"


def message_item(role: str, fields: Mapping[str, Json], content: Json) -> dict[str, Json]:
    """A message item; some servers require the type of the model's own, though it is optional."""
    # 54 recorded messages of the assistant were accepted without a type.
    item: dict[str, Json] = {"type": "message"} if role == "assistant" else {}
    if fields:
        item |= fields
        item.pop(LIST, None)
    item["role"] = role
    item["content"] = content
    return item


class ItemEncoder:
    """
    Encodes parts as items, in their order.

    With a `response_id` they are items of a response: they get an id and a status if they
    have none, and the thinking of other models is included.
    """

    def __init__(
        self,
        warnings: WarningList,
        *,
        response_id: str | None = None,
        first: int = 0,
    ) -> None:
        self.items: list[Json] = []
        # The message items whose content is a list, with that list.
        self.messages: list[tuple[dict[str, Json], list[dict[str, Json]]]] = []
        self._first = first  # the number of items of the response before these
        self._warnings = warnings
        self._response_id = response_id
        self._is_response = response_id is not None
        self._custom: set[str] = set()  # the ids of tool calls of free-text tools so far

    def plain_message(self, role: Role, parts: tuple[Part, ...]) -> None:
        """A message without fields of this API; a single text is encoded as a string."""
        if len(parts) != 1 or type(part := parts[0]) is not Text or part.extra:
            self.message(role, parts)
        elif role == "assistant":
            self.items.append({"type": "message", "role": role, "content": part.text})
        else:
            self.items.append({"role": "user" if role == "tool" else role, "content": part.text})

    def message(
        self, role: Role, parts: tuple[Part, ...], fields: Mapping[str, Json] | None = None
    ) -> None:
        """One canonical message; `fields` are other fields of its message item."""
        content: list[dict[str, Json]] | None = None  # of the message item that is open
        is_whole = False  # whether that item may have several parts
        is_model = role == "assistant"
        text_kind = OUTPUT_TEXT if is_model else INPUT_TEXT
        is_input = not is_model and role != "tool"  # where an opaque part is content, not an item
        for self._warnings.part, part in enumerate(parts):
            kind = type(part)
            is_item = kind not in _CONTENT or (is_model and kind is Image and self._is_made(part))
            if is_item and not (is_input and kind is Opaque):
                content = None
                item = self.item(part)
                if item is not None:
                    self.items.append(item)
                continue
            mark = extra_of(part, NAME).get(ITEM) if is_model and part.extra else None
            if mark is not None or content is None:
                is_whole = not is_model or self._is_response or _is_whole(mark)
            if not is_whole and isinstance(part, (Text, Refusal)):
                self._foreign_text(part, fields if mark is None else mark)
                fields = None
                continue
            block = self._content(part, text_kind)
            if block is None:
                continue
            if content is None or mark is not None:
                content = self._open(role, fields if mark is None else mark)
                fields = None
            content.append(block)
        if not parts and is_input:
            self._open(role, fields)

    def item(self, part: Part) -> Json:
        """The item for a part that is not message content; None, and a warning, if none fits."""
        match part:
            case ToolCall():
                return self._tool_call(part)
            case ToolResult():
                is_custom = part.tool_call_id in self._custom
                return encode_result(part, "custom" if is_custom else "function", self._warnings)
            case Thinking():
                if is_native(part) or (self._is_response and not part.redacted):
                    return encode_thinking(part, self._new_id("reasoning", part))
                reason = f"{self._warnings.target} accepts only its own thinking"
                self._warnings.add_here("foreign_thinking_dropped", reason=reason)
            case Image():
                item = encode_made_image(part, self._new_id(IMAGE_CALL, part))
                if item is None:
                    media = "an image without bytes in an assistant message"
                    self._warnings.media_dropped(part.kind, media)
                return item
            case Opaque():
                if part.dialect == NAME:
                    data: Json = part.data
                    return data
                self._warnings.add_here("foreign_block_dropped", owner=part.dialect)
            case Text() | Refusal() | Audio() | Document():
                pass  # content of a message, or no part of an assistant message at all
            case _:
                assert_never(part)
        return None

    def _tool_call(self, call: ToolCall) -> Json:
        if call.type == "custom" and not self._is_response:
            self._custom.add(call.id)
        return encode_tool_call(call, self._new_id(TOOL_CALLS[call.type], call))

    def _is_made(self, part: Part) -> bool:
        """Whether an image has an item: this API's model made it, or it is part of a response."""
        return self._is_response or MADE in extra_of(part, NAME)

    def _open(self, role: Role, fields: Mapping[str, Json] | None) -> list[dict[str, Json]]:
        """The content list of a new message item."""
        content: list[dict[str, Json]] = []
        if fields is None and self._is_response:
            fields = {"id": self._new_id("message"), "status": "completed"}
        item = message_item("user" if role == "tool" else role, fields or {}, content)
        self.messages.append((item, content))
        self.items.append(item)
        return content

    def _foreign_text(self, part: Text | Refusal, fields: Mapping[str, Json] | None) -> None:
        """
        The text of another model, as an item with one text.

        The API accepts an item with several parts, or with a refusal, only with its own id.
        """
        if isinstance(part, Refusal):
            self._warnings.add_here("refusal_as_text")
        needs_list = fields and ("id" in fields or "status" in fields)
        content: Json = [{"type": OUTPUT_TEXT, "text": part.text}] if needs_list else part.text
        self.items.append(message_item("assistant", fields or {}, content))

    def _content(self, part: Part, text_kind: str) -> dict[str, Json] | None:
        """The content part, of a response or of a request."""
        if self._is_response and isinstance(part, Text):
            return encode_answer_text(part)
        return encode_part(part, text_kind, self._warnings)

    def _new_id(self, kind: str, part: Part | None = None) -> str | None:
        """An id for an item of a response, unless the part came from this API."""
        if self._response_id is None or (part is not None and NAME in part.extra):
            return None
        return item_id(self._response_id, kind, self._first + len(self.items))


def _is_whole(mark: Json) -> bool:
    """Whether the item had a list of parts, and still has the fields that go with it."""
    return isinstance(mark, Mapping) and any(name in mark for name in ("id", "status", LIST))


def decode_messages(fields: Fields) -> tuple[Message, ...]:
    """The messages that `instructions` and `input` hold."""
    messages: list[Message] = []
    instructions = fields.left.get("instructions")
    if isinstance(instructions, str):
        fields.take("instructions")
        messages.append(Message.system(instructions))
    elif instructions is not None and not isinstance(instructions, list):
        raise wrong_type("instructions", "text", instructions)
    items = fields.take("input")
    if isinstance(items, str):
        return (*messages, Message.user(items))
    if items is not None and not isinstance(items, list):
        raise wrong_type("input", "text or an array of items", items)
    turn: list[Part] = []  # the model's parts since the last message of others
    for i, item in enumerate(items or ()):
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
    """The message for an item; None if the item was added to the model's turn."""
    if isinstance(item, str):  # not a valid item, but it must survive the round trip
        return _opaque("user", item)
    if not isinstance(item, dict):
        raise wrong_type(path, "an item", item)
    kind = item.get("type")
    if is_turn(item):
        marked = bool(turn) and isinstance(turn[-1], (Text, Refusal))
        turn += decode_turn(item, path, marked=marked)
        return None
    if kind in RESULTS.values() and not _is_hosted(item):
        if "call_id" not in item and "name" in item:
            # Codex 0.169 tells the model its goal so: the result of no call.
            return _opaque("developer", item)
        return Message(role="tool", content=(decode_result(item, path),))
    if kind in (None, "message"):
        return _decode_message(item, path, leading=leading and not turn)
    role = _role_of(kind, item)
    if role != "assistant":
        return _opaque(role, item)
    turn.append(_whole_part(item))
    return None


def _decode_message(item: dict[str, Json], path: str, *, leading: bool) -> Message:
    fields = Fields(item, path)
    # `tool` is no role here: results are items of their own.
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
    return Message(role=role, content=(hosted_use(item),), extra=extra)


def _role_of(kind: Json, item: dict[str, Json]) -> Role:
    """The role of the message for an item that has no canonical form."""
    if not isinstance(kind, str):
        return "user"
    if kind in DEVELOPER_ITEMS:
        return "developer"
    if kind.endswith(("_output", "_response")) and item.get("execution") != "server":
        return "tool"
    return "assistant"


def is_turn(item: Mapping[str, Json]) -> bool:
    """Whether it is an item of the model that has a canonical form."""
    kind = item.get("type", "message")
    if kind == "message":
        return item.get("role") == "assistant"
    is_segment = isinstance(kind, str) and kind in PREFIXES and kind != IMAGE_CALL
    return is_segment and not _is_hosted(item)


def _is_hosted(item: Mapping[str, Json]) -> bool:
    """Whether it is the tool call or the result of a search that the provider made itself."""
    is_search = item.get("type") in (TOOL_CALLS["search"], RESULTS["search"])
    is_ours = item.get("execution") == "client" and isinstance(item.get("call_id"), str)
    return is_search and not is_ours


def _whole_part(item: Json) -> Part:
    """The part of an item without segments: an image, or the item verbatim."""
    image = None
    if isinstance(item, dict) and item.get("type") == IMAGE_CALL:
        image = decode_made_image(item)
    return image or hosted_use(item)


def decode_turn(
    item: dict[str, Json], path: str, *, marked: bool, new_id: NewId | None = None
) -> list[Part]:
    """
    The parts of an item of the model.

    With `marked`, the first text has `ITEM` in `extra` even if the item has no other fields.
    `new_id` is given for items of a response.
    """
    fields = Fields(item, path)
    unread = fields.left
    kind = unread.pop("type", None)
    if kind == "reasoning":
        return [decode_thinking(fields)]
    if kind in TOOL_TYPES:
        return [decode_tool_call(fields, TOOL_TYPES[kind], new_id)]
    unread.pop("role", None)
    parts = list(decode_content(unread.pop("content", None), fields.at("content"), OUTPUT_TEXT))
    if not parts or not _TEXTS.issuperset(map(type, parts)):
        return [Opaque(dialect=NAME, data=item)]
    for part in parts:
        if part.extra and ITEM in part.extra[NAME]:
            return [Opaque(dialect=NAME, data=item)]
    if new_id is None and "id" not in unread and "status" not in unread:
        is_plain = len(parts) == 1 and isinstance(parts[0], Text) and not parts[0].extra
        if not is_plain:
            unread[LIST] = True
    if marked or unread:
        extra = {NAME: {**parts[0].extra.get(NAME, {}), ITEM: unread}}
        parts[0] = replace(parts[0], extra=extra)
    return parts


def read_item(item: Json, new_id: NewId, own_calls: OwnCalls | None = None) -> list[Part]:
    """The parts of an item of a response; an item that does not fit its type stays verbatim."""
    own = None if own_calls is None else own_calls.read(item)
    if own is not None:
        return [own]
    try:
        if isinstance(item, dict) and is_turn(item):
            return decode_turn(item, "", marked=True, new_id=new_id)
    except DecodeError:
        pass
    return [_whole_part(item)]
