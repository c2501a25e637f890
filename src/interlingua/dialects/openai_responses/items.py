"""
Parts <-> items.

The conversation is a flat list of items here: calls, results and reasoning stand beside
the messages, not in them. What the model made between two messages of others is one
canonical message; its message items are told apart by a mark on the first part of each.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from interlingua.dialects.openai_responses.content import (
    INPUT_TEXT,
    OUTPUT_TEXT,
    decode_content,
    encode_part,
)
from interlingua.dialects.openai_responses.wire import ITEM, NAME, PARAGRAPH
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
from interlingua.spec.messages import Role
from interlingua.wire.carry import Losses
from interlingua.wire.jsontext import dump_text, loads_object
from interlingua.wire.shape import Fields, extra_of, restore

_CONTENT = (Text, Refusal, Image, Document, Audio)
_PREFIXES = {
    "message": "msg",
    "reasoning": "rs",
    "function_call": "fc",
    "custom_tool_call": "ctc",
}
CALLS: dict[ToolType, str] = {"function": "function_call", "custom": "custom_tool_call"}


def item_id(response_id: str, kind: str, index: int) -> str:
    """An id for an item of ours: the same wherever the item is written."""
    return f"{_PREFIXES[kind]}_{response_id.removeprefix('resp_')}_{index}"


# What the model makes.


def is_turn(item: Mapping[str, Any]) -> bool:
    """Whether it is an item of the model that has a canonical form."""
    kind = item.get("type", "message")
    if kind == "message":
        return item.get("role") == "assistant"
    return isinstance(kind, str) and kind in _PREFIXES


def read_item(item: Json, new_id: NewId) -> list[Part]:
    """An item of an answer: what does not fit its own kind is kept as it is."""
    try:
        if isinstance(item, dict) and is_turn(item):
            return decode_turn(item, "", marked=True, new_id=new_id)
    except DecodeError:
        pass
    return [Opaque(dialect=NAME, data=item)]


def decode_turn(
    item: dict[str, Any], path: str, *, marked: bool, new_id: NewId | None = None
) -> list[Part]:
    """The parts of an item of the model; `marked` if the mark is due though it be empty."""
    fields = Fields(item, path)
    match fields.take("type"):
        case "reasoning":
            return [_decode_reasoning(fields)]
        case "function_call" | "custom_tool_call" as kind:
            return [_decode_call(fields, kind, new_id)]
    fields.take("role")
    content = fields.take("content")
    parts = list(decode_content(content, fields.at("content"), OUTPUT_TEXT))
    if not parts or any(
        not isinstance(part, (Text, Refusal)) or ITEM in extra_of(part, NAME) for part in parts
    ):
        return [Opaque(dialect=NAME, data=item)]
    if marked or fields.left:
        extra = {NAME: {**extra_of(parts[0], NAME), ITEM: fields.left}}
        parts[0] = msgspec.structs.replace(parts[0], extra=extra)
    return parts


def _decode_reasoning(fields: Fields) -> Part:
    kept = dict(fields.left)
    summary = fields.array("summary") or []
    content = fields.array("content") or []
    text = join_texts(summary) or join_texts(content)
    data = fields.text("encrypted_content")
    if data is not None:
        del kept["encrypted_content"]
    if not content and "summary" in kept and summary == _summary(text):
        del kept["summary"]
    return Thinking(text=text, data=data, extra={NAME: kept})


def join_texts(parts: Any) -> str:
    """The texts of a reasoning item's summary or content."""
    texts = [part.get("text") for part in parts if isinstance(part, dict)]
    return PARAGRAPH.join(text for text in texts if isinstance(text, str))


def _summary(text: str) -> list[dict[str, Any]]:
    return [{"type": "summary_text", "text": text}] if text else []


def _decode_call(fields: Fields, kind: str, new_id: NewId | None) -> Part:
    key = "input" if kind == "custom_tool_call" else "arguments"
    if new_id is None:
        call_id, raw = fields.need("call_id"), fields.need(key)
    else:
        call_id = _some(fields.left, "call_id") or _some(fields.left, "id") or new_id()
        given = fields.take(key)
        raw = given if isinstance(given, str) else dump_text({} if given is None else given)
        if fields.left.get("call_id", "") in (call_id, ""):
            fields.take("call_id")
    name = fields.need("name")
    extra = {NAME: fields.left} if fields.left or new_id else {}
    if kind == "custom_tool_call":
        return ToolCall(id=call_id, name=name, raw_arguments=raw, type="custom", extra=extra)
    arguments = loads_object(raw) or {}
    return ToolCall(id=call_id, name=name, arguments=arguments, raw_arguments=raw, extra=extra)


def _some(holder: Mapping[str, Any], key: str) -> str | None:
    found = holder.get(key)
    return found if isinstance(found, str) and found else None


# What a caller sends back.


def decode_result(item: dict[str, Any], path: str) -> Part:
    """A tool's output."""
    fields = Fields(item, path)
    if fields.left["type"] == "function_call_output":
        fields.take("type")
    call_id = fields.need("call_id")
    output = fields.take("output")
    content: Any = output
    if not isinstance(output, str):
        content = decode_content(output, fields.at("output"), INPUT_TEXT)
    name = fields.left.get("name")
    # an empty mark tells `[]`, which we would not write, from a result of others
    extra = {NAME: fields.left} if fields.left or content == () else {}
    return ToolResult(
        tool_call_id=call_id,
        content=content,
        name=name if isinstance(name, str) else None,
        extra=extra,
    )


# Ours to theirs.


class ItemEncoder:
    """
    Writes parts as items, in their order.

    With a `response_id` they are items of an answer, which have ids and a status even if
    they came from elsewhere, and show another model's thinking.
    """

    def __init__(
        self,
        losses: Losses,
        *,
        response_id: str | None = None,
        custom: frozenset[str] = frozenset(),
        first: int = 0,
    ) -> None:
        self.items: list[Json] = []
        self.messages: list[dict[str, Any]] = []  # those of the items that were made here
        self._first = first  # how many items the answer has before these
        self._losses = losses
        self._response_id = response_id
        self._custom = custom  # the ids of calls of free-text tools

    def message(
        self, role: Role, parts: tuple[Part, ...], path: str, own: Mapping[str, Any] | None = None
    ) -> None:
        """One canonical message; `own` are the fields of its message item."""
        content: list[Json] | None = None
        text_kind = OUTPUT_TEXT if role == "assistant" else INPUT_TEXT
        inner = role not in ("assistant", "tool")  # where an opaque part is content, no item
        for i, part in enumerate(parts):
            where = f"{path}.content[{i}]"
            if isinstance(part, _CONTENT) or (inner and isinstance(part, Opaque)):
                block = encode_part(part, text_kind, self._losses, where)
                if block is None:
                    continue
                mark = extra_of(part, NAME).get(ITEM) if role == "assistant" else None
                if content is None or mark is not None:
                    content = self._open(role, own if mark is None else mark)
                    own = None
                content.append(self._complete(part, block))
            else:
                content = None
                item = self.item(part, where)
                if item is not None:
                    self.items.append(item)
        if not parts and inner:
            self._open(role, own)

    def item(self, part: Part, path: str) -> Json:
        """The item that says a part which is no content; None, and a warning, if there is none."""
        match part:
            case ToolCall():
                return encode_call(part, self._made(CALLS[part.type], part))
            case ToolResult():
                return self._result(part, path)
            case Thinking():
                shown = self._response_id is not None and not part.redacted
                if is_native(part) or shown:
                    return encode_reasoning(part, self._made("reasoning", part))
                self._losses.dropped("thinking of another model", NAME, path)
            case Opaque():
                if part.dialect == NAME:
                    return part.data
                self._losses.dropped(f"block of {part.dialect}", NAME, path)
        return None

    def _open(self, role: Role, own: Any) -> list[Json]:
        """The content of a new message item."""
        content: list[Json] = []
        if own is None and self._response_id is not None:
            own = {"id": self._made("message"), "status": "completed"}
        item = message_item("user" if role == "tool" else role, own or {}, content)
        self.messages.append(item)
        self.items.append(item)
        return content

    def _complete(self, part: Part, block: dict[str, Any]) -> Json:
        """An answer's texts have annotations, though they be none."""
        if self._response_id is not None and NAME not in part.extra and "text" in block:
            block["annotations"] = []
        return block

    def _made(self, kind: str, part: Part | None = None) -> str | None:
        """An id for an item of an answer, unless it has had its own say."""
        if self._response_id is None or (part is not None and NAME in part.extra):
            return None
        return item_id(self._response_id, kind, self._first + len(self.items))

    def _result(self, result: ToolResult, path: str) -> Json:
        free = result.tool_call_id in self._custom
        item = {
            "type": extra_of(result, NAME).get("type")
            or ("custom_tool_call_output" if free else "function_call_output"),
            "call_id": result.tool_call_id,
            "output": _encode_output(result, self._losses, path),
        }
        return restore(item, result, NAME)


def message_item(role: str, own: Mapping[str, Any], content: list[Json]) -> dict[str, Any]:
    """A message item."""
    return {"type": "message", **own, "role": role, "content": content}


def encode_call(call: ToolCall, made: str | None = None) -> dict[str, Any]:
    """The argument text as it came; `made` is the id of an item that has none of its own."""
    raw = call.raw_arguments
    raw = dump_text(call.arguments) if raw is None else raw
    key = "input" if call.type == "custom" else "arguments"
    item: dict[str, Any] = {
        "type": CALLS[call.type],
        "call_id": call.id,
        "name": call.name,
        key: raw,
    }
    if made is not None:
        item |= {"id": made, "status": "completed"}
    return restore(item, call, NAME)


def is_native(part: Thinking) -> bool:
    """Whether this API made the thought: only then does it want it back."""
    return NAME in part.extra or (not part.extra and part.data is not None and not part.redacted)


def encode_reasoning(part: Thinking, made: str | None = None) -> dict[str, Any]:
    """The lists it came with, if they still say its text."""
    kept = dict(extra_of(part, NAME))
    item: dict[str, Any] = {"type": "reasoning"}
    if made is not None:
        item["id"] = made
    said = join_texts(kept.get("summary") or ()) or join_texts(kept.get("content") or ())
    if said and said != part.text:
        kept = {key: value for key, value in kept.items() if key not in ("summary", "content")}
    if not kept.get("content"):
        kept.setdefault("summary", _summary(part.text))
    if part.data is not None and is_native(part):
        item["encrypted_content"] = part.data
    return {**item, **kept}


def _encode_output(result: ToolResult, losses: Losses, path: str) -> Json:
    parts = result.parts
    if parts is None:
        content = result.content
        text = content if isinstance(content, str) else dump_text(content)
        return _say_error(text, losses, path) if result.is_error else text
    if not parts and NAME in result.extra:
        return []
    encoded = (
        encode_part(part, INPUT_TEXT, losses, f"{path}.content[{i}]")
        for i, part in enumerate(parts)
    )
    blocks = [block for block in encoded if block is not None]
    if result.is_error:
        first = blocks[0].get("text") if blocks else None
        said = _say_error(first or "", losses, path)
        block = {**(blocks[0] if first else {"type": INPUT_TEXT}), "text": said}
        blocks = [block, *blocks[1 if first else 0 :]]
    return shorten(blocks, INPUT_TEXT) if blocks else ""


def _say_error(text: str, losses: Losses, path: str) -> str:
    if text[:5].lower() == "error":
        return text
    losses.add("tool_error_as_text", f"{NAME} has no error flag; the text says it", path)
    return f"Error: {text}" if text else "Error"


def shorten(blocks: list[Any], text_kind: str) -> Json:
    """One plain text part may be written as a string."""
    if len(blocks) == 1 and blocks[0] == {"type": text_kind, "text": blocks[0].get("text")}:
        return blocks[0]["text"]
    return blocks
