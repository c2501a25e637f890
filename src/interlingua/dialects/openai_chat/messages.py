"""Messages <-> `messages`."""

from __future__ import annotations

from typing import Any

from interlingua.dialects.openai_chat.calls import (
    LEGACY_RESULT,
    MakeId,
    decode_calls,
    decode_result,
    encode_call,
    encode_legacy,
    encode_result,
)
from interlingua.dialects.openai_chat.content import (
    MEDIA,
    decode_content,
    encode_item,
    encode_text,
    join_content,
    parsed_again,
)
from interlingua.dialects.openai_chat.facts import LEGACY, NAME, THOUGHTS
from interlingua.dialects.openai_chat.marks import (
    IN_PLACE,
    SENT,
    SENT_AS,
    TAGS,
    complete,
    extra_for,
    given,
    mark_of,
    note_absent,
)
from interlingua.dialects.openai_chat.quirks import DEFAULT_QUIRKS, ChatQuirks
from interlingua.dialects.openai_chat.thinking import decode_thinking, encode_thinking
from interlingua.prepare.plain import plain_result, plain_text, plain_turn
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
from interlingua.spec.messages import ROLES, Message
from interlingua.spec.warnings import Losses
from interlingua.wire.fields import Fields, extra_of, wrong_type
from interlingua.wire.json_text import dump_text

_CALLS = frozenset(("tool_calls", LEGACY))
_PLAIN = ("system", "user", "assistant")  # the roles that every server knows


class _Ids:
    """Ids for calls that have none, by place; results without one answer them in order."""

    def __init__(self) -> None:
        self._count = 0
        self._unanswered: list[str] = []

    def for_call(self) -> str:
        self._count += 1
        self._unanswered.append(f"call_{self._count}")
        return self._unanswered[-1]

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
    if role in ("tool", LEGACY_RESULT):
        legacy = role == LEGACY_RESULT
        result = decode_result(fields, decode_content, ids.for_result, legacy=legacy)
        return Message(role="tool", content=(result,))
    if role not in ROLES:
        raise wrong_type(f"{path}.role", "system, developer, user, assistant or tool", role)
    name = fields.text("name")
    missing = note_absent(fields.left, "content")
    if role == "assistant":
        content = decode_assistant(fields, ids.for_call, SENT)
    else:
        content = decode_content(fields, user=role == "user")
    extra = extra_for(fields.left, missing)
    return Message(role=role, content=content, name=name, extra=extra)  # type: ignore[arg-type]


def decode_assistant(fields: Fields, make_id: MakeId, mark: str) -> tuple[Part, ...]:
    """The parts: thought, content, refusal, calls. Null content is no part."""
    left = fields.left
    parts: list[Part] = []
    thought = None if THOUGHTS.isdisjoint(left) else decode_thinking(fields)
    if thought is not None:
        parts.append(thought)
    parts += decode_content(fields)
    if left.get("content", 0) is None:
        del left["content"]
    refusal = left.get("refusal")
    if isinstance(refusal, str) and refusal:
        del left["refusal"]
        parts.append(Refusal(text=refusal))
    return tuple(parts if _CALLS.isdisjoint(left) else parts + decode_calls(fields, make_id, mark))


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
        if not writer.plain(message):
            writer.feed(message, f"messages[{i}]")
    writer.flush()
    return writer.wire


def encode_assistant(
    message: Message,
    losses: Losses,
    path: str,
    *,
    answer: bool = False,
    quirks: ChatQuirks = DEFAULT_QUIRKS,
) -> dict[str, Any]:
    """
    The message that says the parts; no content is null.

    In an answer, a thought of any origin is shown; in a request it is sent only to who
    made it.
    """
    # some server's own word for the role is put back
    wire: dict[str, Any] = {} if "role" in extra_of(message, NAME) else {"role": "assistant"}
    items: list[Json] = []
    marked: list[Part] = []
    for i, part in enumerate(message.content):
        if part.extra:
            marked.append(part)
        if isinstance(part, Thinking):
            if NAME in part.extra or (answer and part.text):
                items += encode_thinking(part, wire)
            elif not answer:
                losses.foreign_thinking(NAME, f"{path}.content[{i}]")
        elif isinstance(part, Text):
            items.append(encode_text(part))
        elif not _encode_field(part, wire, answer=answer):
            items += encode_item(part, losses, f"{path}.content[{i}]", quirks, media=answer)
    tagged = any(mark_of(part, TAGS) for part in marked)
    wire["content"] = join_content(items, flat=quirks.flat_content or tagged) if items else None
    parsed = [found for part in marked if (found := parsed_again(part)) is not None]
    if len(items) == 1 and parsed:
        wire["content"] = parsed[0]
    if message.name is not None:
        wire["name"] = message.name
    return complete(wire, message)


def _encode_field(part: Part, wire: dict[str, Any], *, answer: bool) -> bool:
    """Write a part that is a field of the message; False if it belongs to the content."""
    form = mark_of(part, SENT_AS)
    match part:
        case ToolCall() if form == LEGACY:
            wire[LEGACY] = encode_legacy(part)
        case ToolCall():
            wire.setdefault("tool_calls", []).append(encode_call(part, answer=answer))
        case Opaque() if part.dialect == NAME and form == "tool_call":
            wire.setdefault("tool_calls", []).append(part.data)
        case Refusal() if form != "part":
            wire["refusal"] = wire.get("refusal", "") + part.text
        case ToolResult():
            pass  # has a message of its own
        case _:
            return False
    return True


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
        count = 0
        for i, part in enumerate(message.content):
            if isinstance(part, ToolResult):
                count += 1
                content = self._result_content(part, f"{path}.content[{i}]")
                self.wire.append(complete(encode_result(part, content), message))
        is_said = count == len(message.content) and (count or message.role == "tool")
        if message.role != "assistant" and not is_said:
            self._other(message, path)

    def plain(self, message: Message) -> bool:
        """Write what most messages are, the short way; False if it is not that."""
        text = plain_text(message) if message.role in _PLAIN else None
        if text is not None:
            self.flush()
            self.wire.append({"role": message.role, "content": text})
            return True
        turn = plain_turn(message)
        if turn:
            self.flush()
            self.wire.append(self._turn(turn))
            return True
        result = plain_result(message)
        if result is None:
            return False
        wire = {"role": "tool", "tool_call_id": result.tool_call_id, "content": result.content}
        self.wire.append(wire)
        return True

    def _turn(self, turn: tuple[Text | ToolCall, ...]) -> dict[str, Any]:
        texts = [part.text for part in turn if type(part) is Text]
        content: Json = "".join(texts) if texts else None
        if len(texts) > 1 and not self._quirks.flat_content:
            content = [_text(text) for text in texts]
        calls = [encode_call(part, answer=False) for part in turn if isinstance(part, ToolCall)]
        if not calls:
            return {"role": "assistant", "content": content}
        return {"role": "assistant", "tool_calls": calls, "content": content}

    def flush(self) -> None:
        """Write what was moved out of results."""
        if self._moved:
            self.wire.append({"role": "user", "content": self._moved})
            self._moved = []

    def _assistant(self, message: Message, path: str) -> None:
        wire = encode_assistant(message, self._losses, path, quirks=self._quirks)
        is_empty = wire.get("content") is None and wire.keys() <= {"role", "name", "content"}
        if not is_empty or not message.content or NAME in message.extra:
            self.wire.append(wire)
        elif not all(isinstance(part, ToolResult) for part in message.content):
            self._losses.dropped("message with nothing left in it", NAME, path)

    def _other(self, message: Message, path: str) -> None:
        self.flush()
        match message.content:
            case (Opaque(dialect=dialect, data=str(data)),) if dialect == NAME:
                self.wire.append(data)  # a message that was no object to begin with
                return
        wire = {"role": self._role(message, path), **given(name=message.name)}
        items: list[Json] = []
        media = message.role in ("user", "tool")
        for i, part in enumerate(message.content):
            if not isinstance(part, ToolResult):
                where = f"{path}.content[{i}]"
                items += encode_item(part, self._losses, where, self._quirks, media=media)
        if message.content and not items and NAME not in message.extra:
            self._losses.dropped("message with nothing left in it", NAME, path)
            return
        if items or "content" not in extra_of(message, NAME):
            wire["content"] = join_content(items, flat=self._quirks.flat_content)
        self.wire.append(complete(wire, message))

    def _role(self, message: Message, path: str) -> str:
        if message.role == "tool":
            self._losses.add("tool_text_as_user", "a tool message holds only results here", path)
            return "user"
        if message.role == "developer" and not self._quirks.developer_role:
            self._losses.add("developer_as_system", "the server has no developer role", path)
            return "system"
        return message.role

    def _result_content(self, result: ToolResult, path: str) -> Json:
        if isinstance(result.content, str) and not result.is_error:
            return result.content
        if result.parts is not None:
            items = self._result_items(result, result.parts, path)
        elif isinstance(result.content, str):
            items = [_text(result.content)]
        else:
            items = [_text(dump_text(result.content))]
        if result.is_error:
            self._losses.add(
                "tool_error_as_text", f"{NAME} has no error flag; the text says it", path
            )
            match items:
                case [{"text": str(text)} as first, *_]:
                    items[0] = {**first, "text": f"Error: {text}"}
                case _:
                    items.insert(0, _text("Error"))
        return join_content(items, flat=self._quirks.flat_content)

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
                why = f"{NAME} tool messages hold only text; the {part.kind} follows them"
                self._losses.add("tool_media_moved", why, where)
        if moved:
            self._moved += [_text(f"Output of tool call {result.tool_call_id}:"), *moved]
            items = items or [_text("The output is in the next user message.")]
        return items


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}
