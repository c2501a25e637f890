"""The assistant's message: parts <-> fields."""

from __future__ import annotations

from typing import Any

from interlingua.dialects.openai_chat.calls import (
    LEGACY,
    MakeId,
    decode_calls,
    encode_call,
    encode_legacy,
)
from interlingua.dialects.openai_chat.content import MEDIA, decode_part, encode_part, read_part
from interlingua.dialects.openai_chat.marks import IN_PLACE, SENT_AS, TAGS, complete, mark_of
from interlingua.dialects.openai_chat.quirks import DEFAULT_QUIRKS, ChatQuirks
from interlingua.dialects.openai_chat.thinking import decode_thinking, encode_thinking, in_tags
from interlingua.dialects.openai_chat.wire import NAME
from interlingua.spec.content import (
    Json,
    Opaque,
    Part,
    Refusal,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from interlingua.spec.messages import Message
from interlingua.wire.carry import Losses
from interlingua.wire.jsontext import dump_text
from interlingua.wire.shape import Fields, extra_of, wrong_type


def decode_assistant(fields: Fields, make_id: MakeId, mark: str) -> tuple[Part, ...]:
    """The parts: thought, content, refusal, calls. Null content is no part."""
    parts: list[Part] = []
    thought = decode_thinking(fields)
    if thought is not None:
        parts.append(thought)
    parts += decode_content(fields)
    if fields.left.get("content", 0) is None:
        del fields.left["content"]
    refusal = fields.left.get("refusal")
    if isinstance(refusal, str) and refusal:
        del fields.left["refusal"]
        parts.append(Refusal(text=refusal))
    parts += decode_calls(fields, make_id, mark)
    return tuple(parts)


def decode_content(fields: Fields, *, user: bool = False) -> list[Part]:
    """
    The parts of `content`; what is none stays in `fields.left`.

    Media are marked where only some servers take them: anywhere but from the user.
    """
    content = fields.left.get("content")
    if isinstance(content, str):
        del fields.left["content"]
        return [Text(text=content)]
    if isinstance(content, list) and content:
        del fields.left["content"]
        parts = [_decode_item(item, i, fields, user=user) for i, item in enumerate(content)]
        is_text = all(isinstance(part, Text) and not part.extra for part in parts)
        if is_text and len(parts) > 1 and not fields.strict:
            fields.left[SENT_AS] = "list"
        return parts
    if content is None or isinstance(content, list):
        return []
    if fields.strict:
        raise wrong_type(fields.at("content"), "text or an array of parts", content)
    if not isinstance(content, dict):
        return []
    del fields.left["content"]  # structured output, already parsed
    return [Text(text=dump_text(content), extra={NAME: {SENT_AS: "json"}})]


def _decode_item(item: Json, index: int, fields: Fields, *, user: bool) -> Part:
    if not fields.strict:
        return read_part(item)
    part = decode_part(item, f"{fields.at('content')}[{index}]")
    if user or not isinstance(part, MEDIA):
        return part
    return mark_in_place(part)


def mark_in_place(part: Any) -> Part:
    """The same media, said to be where the server took it."""
    kept = {**part.extra.get(NAME, {}), IN_PLACE: True}
    replaced: Part = type(part)(
        **{name: getattr(part, name) for name in part.__struct_fields__ if name != "extra"},
        extra={**part.extra, NAME: kept},
    )
    return replaced


def encode_assistant(
    message: Message,
    losses: Losses,
    path: str,
    *,
    answer: bool = False,
    quirks: ChatQuirks = DEFAULT_QUIRKS,
) -> dict[str, Any]:
    """
    The message that says the parts.

    In an answer, a thought of any origin is shown; in a request it is sent only to who
    made it.
    """
    wire: dict[str, Any] = {"role": "assistant"}
    items: list[Json] = []
    calls: list[Json] = []
    for i, part in enumerate(message.content):
        where = f"{path}.content[{i}]"
        match part:
            case Thinking():
                _encode_thought(part, wire, items, losses, where, answer=answer)
            case ToolResult():
                pass  # has a message of its own
            case _ if not _encode_field(part, wire, calls, answer=answer):
                items += encode_item(part, losses, where, quirks, media=answer)
    if items:
        tagged = any(mark_of(part, TAGS) for part in message.content)
        wire["content"] = join_content(items, flat=quirks.flat_content or tagged)
    if calls:
        wire["tool_calls"] = calls
    if message.name is not None:
        wire["name"] = message.name
    return wire


def _encode_field(part: Part, wire: dict[str, Any], calls: list[Json], *, answer: bool) -> bool:
    """Write a part that is a field of the message; False if it belongs to the content."""
    form = mark_of(part, SENT_AS)
    match part:
        case ToolCall() if form == LEGACY:
            wire[LEGACY] = encode_legacy(part)
        case ToolCall():
            calls.append(encode_call(part, answer=answer))
        case Refusal() if form != "part":
            wire["refusal"] = wire.get("refusal", "") + part.text
        case Opaque() if part.dialect == NAME and form == "tool_call":
            calls.append(part.data)
        case Opaque() if part.dialect == NAME and form == LEGACY:
            wire[LEGACY] = part.data
        case _:
            return False
    return True


def complete_assistant(wire: dict[str, Any], message: Message) -> dict[str, Any]:
    """The message with the rest of what it came with; no content is null."""
    if "content" not in wire:
        wire["content"] = None
    if "role" in extra_of(message, NAME):
        del wire["role"]  # some server's own word
    return complete(wire, message)


def encode_item(
    part: Part, losses: Losses, path: str, quirks: ChatQuirks, *, media: bool
) -> list[Json]:
    """The content part for a part, if there is one and it may stand here."""
    if isinstance(part, MEDIA) and not media and not mark_of(part, IN_PLACE):
        losses.dropped(f"{part.kind} in a message that is not the user's", NAME, path)
        return []
    if isinstance(part, Opaque) and part.dialect == NAME:
        return [part.data]
    item = encode_part(part, losses, path, quirks)
    if isinstance(part, Text) and mark_of(part, SENT_AS) == "json":
        return [_Whole(item)]
    return [] if item is None else [item]


class _Whole:
    """Content that is no part but takes the place of all of them."""

    def __init__(self, content: Json) -> None:
        self.content = content


def join_content(items: list[Json], *, flat: bool = False) -> Json:
    """One plain text part may be written as a string; `flat` joins several."""
    if len(items) == 1 and isinstance(items[0], _Whole):
        return items[0].content
    items = [item.content if isinstance(item, _Whole) else item for item in items]
    plain = [_plain(item) for item in items]
    if all(text is not None for text in plain) and (flat or len(items) == 1):
        return "".join(text or "" for text in plain)
    return items


def _plain(item: Json) -> str | None:
    if isinstance(item, dict) and item.keys() == {"type", "text"} and item["type"] == "text":
        text = item["text"]
        return text if isinstance(text, str) else None
    return None


def _encode_thought(
    part: Thinking,
    wire: dict[str, Any],
    items: list[Json],
    losses: Losses,
    path: str,
    *,
    answer: bool,
) -> None:
    if NAME not in part.extra and not (answer and part.text):
        if not answer:
            losses.dropped("thinking of another model", NAME, path)
        return
    tagged = in_tags(part)
    if tagged is not None:
        items.append({"type": "text", "text": tagged})
    elif mark_of(part, SENT_AS) == "part":
        items.append(encode_part(part, losses, path))
    else:
        encode_thinking(part, wire)
