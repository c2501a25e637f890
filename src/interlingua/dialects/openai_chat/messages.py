"""Messages <-> `messages`."""

from __future__ import annotations

from typing import Any

from interlingua.dialects.openai_chat.assistant import (
    complete_assistant,
    decode_assistant,
    decode_content,
    encode_assistant,
    encode_item,
    join_content,
)
from interlingua.dialects.openai_chat.content import MEDIA
from interlingua.dialects.openai_chat.marks import (
    IN_PLACE,
    SENT,
    SENT_AS,
    WITHOUT,
    complete,
    keep,
    mark_of,
    note_absent,
)
from interlingua.dialects.openai_chat.quirks import ChatQuirks
from interlingua.dialects.openai_chat.wire import NAME
from interlingua.spec.content import Json, Opaque, Part, Text, ToolResult
from interlingua.spec.messages import ROLES, Message
from interlingua.wire.carry import Losses
from interlingua.wire.jsontext import dump_text
from interlingua.wire.shape import Fields, extra_of, wrong_type

_LEGACY_RESULT = "function"


class _Ids:
    """Ids for calls that have none, by place; results without one answer them in order."""

    def __init__(self) -> None:
        self._count = 0
        self._unanswered: list[str] = []

    def for_call(self) -> str:
        self._count += 1
        made = f"call_{self._count}"
        self._unanswered.append(made)
        return made

    def for_result(self) -> str:
        return self._unanswered.pop(0) if self._unanswered else ""


def decode_messages(items: list[Json]) -> tuple[Message, ...]:
    """One message each."""
    ids = _Ids()
    return tuple(_decode_message(item, f"messages[{i}]", ids) for i, item in enumerate(items))


def _decode_message(item: Json, path: str, ids: _Ids) -> Message:
    if isinstance(item, str):  # no message at all, but nothing we should lose
        return Message(role="user", content=(Opaque(dialect=NAME, data=item),))
    fields = Fields(item, path)
    role = fields.text("role")
    if role in ("tool", _LEGACY_RESULT):
        return _decode_result(fields, ids, legacy=role == _LEGACY_RESULT)
    if role not in ROLES:
        raise wrong_type(f"{path}.role", "system, developer, user, assistant or tool", role)
    name = fields.text("name")
    missing = note_absent(fields.left, "content")
    if role == "assistant":
        content = decode_assistant(fields, ids.for_call, SENT)
    else:
        content = tuple(decode_content(fields, user=role == "user"))
    if missing:
        fields.left[WITHOUT] = missing
    return Message(role=role, content=content, name=name, extra=keep(fields.left))  # type: ignore[arg-type]


def _decode_result(fields: Fields, ids: _Ids, *, legacy: bool) -> Message:
    call_id = fields.text("tool_call_id")
    extra = fields.left
    if not call_id:
        if call_id is not None:
            extra["tool_call_id"] = call_id
        extra[SENT] = {"tool_call_id": extra.pop("tool_call_id")} if "tool_call_id" in extra else {}
        call_id = ids.for_result()
    if legacy:
        extra[SENT_AS] = _LEGACY_RESULT
    missing = note_absent(extra, "content")
    content: Any = tuple(decode_content(fields))
    if missing:
        extra[WITHOUT] = missing
    match content:
        case (Text(text=text, extra=kept),) if not kept:
            content = text
        case () if not isinstance(extra.get("content"), list):
            content = ""
    name = fields.text("name")
    result = ToolResult(tool_call_id=call_id, content=content, name=name, extra=keep(extra))
    return Message(role="tool", content=(result,))


def encode_messages(
    messages: tuple[Message, ...], quirks: ChatQuirks, losses: Losses
) -> list[Json]:
    """
    The messages that say ours.

    Each result is a message of its own, before whatever else the user says. Media of
    results follow in a user message, after all the results of a turn.
    """
    writer = _Writer(quirks, losses)
    for i, message in enumerate(messages):
        writer.feed(message, f"messages[{i}]")
    writer.flush()
    return writer.wire


class _Writer:
    def __init__(self, quirks: ChatQuirks, losses: Losses) -> None:
        self.wire: list[Json] = []
        self._quirks = quirks
        self._losses = losses
        self._moved: list[Json] = []

    def feed(self, message: Message, path: str) -> None:
        if message.role == "assistant":
            self.flush()
            self._assistant(message, path)
        for i, part in enumerate(message.content):
            if isinstance(part, ToolResult):
                self._result(part, message, f"{path}.content[{i}]")
        if message.role != "assistant":
            self._other(message, path)

    def flush(self) -> None:
        """Write what was moved out of results."""
        if self._moved:
            self.wire.append({"role": "user", "content": self._moved})
            self._moved = []

    def _assistant(self, message: Message, path: str) -> None:
        wire = encode_assistant(message, self._losses, path, quirks=self._quirks)
        if message.content and wire.keys() <= {"role", "name"} and NAME not in message.extra:
            if not all(isinstance(part, ToolResult) for part in message.content):
                self._losses.dropped("message with nothing left in it", NAME, path)
            return
        self.wire.append(complete_assistant(wire, message))

    def _other(self, message: Message, path: str) -> None:
        parts = [
            (part, f"{path}.content[{i}]")
            for i, part in enumerate(message.content)
            if not isinstance(part, ToolResult)
        ]
        if not parts and (message.content or message.role == "tool"):
            return  # results only
        self.flush()
        match message.content:
            case (Opaque(dialect=dialect, data=str(data)),) if dialect == NAME:
                self.wire.append(data)  # a message that was no object to begin with
                return
        role: str = message.role
        if role == "tool":
            role = "user"
            self._losses.add("tool_text_as_user", "a tool message holds only results here", path)
        elif role == "developer" and not self._quirks.developer_role:
            role = "system"
            self._losses.add("developer_as_system", "the server has no developer role", path)
        wire: dict[str, Any] = {"role": role}
        items = [
            item
            for part, where in parts
            for item in encode_item(
                part, self._losses, where, self._quirks, media=message.role in ("user", "tool")
            )
        ]
        kept = extra_of(message, NAME)
        if items or "content" not in kept:
            wire["content"] = join_content(items, flat=self._quirks.flat_content) if items else ""
        if message.name is not None:
            wire["name"] = message.name
        self.wire.append(complete(wire, message))

    def _result(self, result: ToolResult, message: Message, path: str) -> None:
        kept = extra_of(result, NAME)
        wire: dict[str, Any] = {"role": "tool", "tool_call_id": result.tool_call_id}
        if kept.get(SENT_AS) == _LEGACY_RESULT:
            wire["role"] = _LEGACY_RESULT
        content = self._result_content(result, path)
        if content or "content" not in kept:
            wire["content"] = content
        if result.name is not None:
            wire["name"] = result.name
        wire = complete(wire, result)
        if isinstance(kept.get(SENT), dict):
            del wire["tool_call_id"]
            wire.update(kept[SENT])
        self.wire.append(complete(wire, message))

    def _result_content(self, result: ToolResult, path: str) -> Json:
        parts = result.parts
        if parts is None:
            text = result.content if isinstance(result.content, str) else dump_text(result.content)
            items: list[Json] = [{"type": "text", "text": text}]
        else:
            items = self._result_items(result, parts, path)
        if result.is_error:
            self._losses.add("is_error_as_text", f"{NAME} has no error flag; it was written", path)
            items[:1] = _say_error(items[0] if items else None)
        return join_content(items, flat=self._quirks.flat_content) if items else ""

    def _result_items(self, result: ToolResult, parts: tuple[Part, ...], path: str) -> list[Json]:
        items: list[Json] = []
        moved: list[Json] = []
        for i, part in enumerate(parts):
            where = f"{path}.content[{i}]"
            stays = not isinstance(part, MEDIA) or mark_of(part, IN_PLACE)
            stays = stays or self._quirks.tool_result_media
            found = encode_item(part, self._losses, where, self._quirks, media=True)
            (items if stays else moved).extend(found)
            if found and not stays:
                self._losses.add(
                    "tool_media_moved",
                    f"{NAME} tool messages hold only text; the {part.kind} follows them",
                    where,
                )
        if moved:
            label = f"Output of tool call {result.tool_call_id}:"
            self._moved += [{"type": "text", "text": label}, *moved]
            if not items:
                items.append({"type": "text", "text": "The output is in the next user message."})
        return items


def _say_error(first: Json) -> list[Json]:
    if isinstance(first, dict) and isinstance(first.get("text"), str):
        return [{**first, "text": f"Error: {first['text']}"}]
    error = {"type": "text", "text": "Error"}
    return [error] if first is None else [error, first]
