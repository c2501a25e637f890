"""Messages <-> `messages`."""

from __future__ import annotations

from typing import assert_never

from msgspec.structs import replace

from interlingua.dialects.openai_chat.content import (
    decode_content,
    decode_images,
    decode_thinking,
    encode_image,
    encode_item,
    encode_parsed,
    encode_text,
    encode_thinking,
    join_content,
)
from interlingua.dialects.openai_chat.facts import (
    DEFAULT_QUIRKS,
    IMAGES,
    IN_PLACE,
    LEGACY,
    MADE,
    NAME,
    SENT,
    SENT_AS,
    TAGS,
    THINKING_FIELDS,
    ChatQuirks,
    absent,
    append_items,
    complete,
    extra_for,
    mark_of,
)
from interlingua.dialects.openai_chat.tool_calls import (
    LEGACY_RESULT,
    MakeId,
    decode_result,
    decode_tool_calls,
    encode_result,
    encode_tool_call,
)
from interlingua.prepare.media import media_note
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
from interlingua.spec.messages import ROLES, Message
from interlingua.spec.warnings import WarningList
from interlingua.wire.fields import Fields, extra_of, text_of, wrong_type
from interlingua.wire.json_text import dump_text

_TOOL_CALL_FIELDS = frozenset(("tool_calls", LEGACY))
_PLAIN_ROLES = ("user", "assistant", "system")  # the others may have another name on the wire
_NO_CONTENT = frozenset(("role", "name", "content"))


class _Ids:
    """Ids for tool calls without an id; results without an id refer to them in order."""

    def __init__(self) -> None:
        self._count = 0
        self._unanswered: list[str] = []

    def for_tool_call(self) -> str:
        self._count += 1
        self._unanswered.append(f"call_{self._count}")
        return self._unanswered[-1]

    def for_result(self) -> str:
        return self._unanswered.pop(0) if self._unanswered else ""


def decode_messages(items: list[Json]) -> tuple[Message, ...]:
    """One message for each item."""
    ids = _Ids()
    return tuple(_decode_message(item, f"messages[{i}]", ids) for i, item in enumerate(items))


def _decode_message(item: Json, path: str, ids: _Ids) -> Message:
    if isinstance(item, str):  # not a valid message, but it must not be lost
        return Message(role="user", content=(Opaque(dialect=NAME, data=item),))
    fields = Fields(item, path)
    role = fields.text("role")
    if role in ("tool", LEGACY_RESULT):
        result = decode_result(fields, ids.for_result, legacy=role == LEGACY_RESULT)
        return Message(role="tool", content=(result,))
    if role not in ROLES:
        raise wrong_type(f"{path}.role", "system, developer, user, assistant or tool", role)
    name = fields.text("name")
    missing = absent(fields.left, "content")
    if role == "assistant":
        content = decode_assistant(fields, ids.for_tool_call, SENT)
    else:
        content = decode_content(fields, user=role == "user")
    extra = extra_for(fields.left, missing)
    return Message(role=role, content=content, name=name, extra=extra)  # type: ignore[arg-type]


def decode_assistant(fields: Fields, make_id: MakeId, mark: str) -> tuple[Part, ...]:
    """The parts: thinking, content, refusal, images, tool calls. Null content is no part."""
    unread = fields.left
    parts: list[Part] = []
    thinking = None if THINKING_FIELDS.isdisjoint(unread) else decode_thinking(fields)
    if thinking is not None:
        parts.append(thinking)
    parts += decode_content(fields)
    if unread.get("content", 0) is None:
        del unread["content"]
    refusal = unread.get("refusal")
    if isinstance(refusal, str) and refusal:
        del unread["refusal"]
        parts.append(Refusal(text=refusal))
    if IMAGES in unread:
        parts += decode_images(fields)
    if not _TOOL_CALL_FIELDS.isdisjoint(unread):
        parts += decode_tool_calls(fields, make_id, mark)
    return tuple(parts)


def encode_messages(
    messages: tuple[Message, ...], quirks: ChatQuirks, warnings: WarningList
) -> list[Json]:
    """
    The wire messages.

    Each result is a message of its own, before the other parts of its message. Media in
    results follow in a user message, after all the results of a turn.
    """
    writer = _Writer(quirks, warnings)
    for warnings.message, message in enumerate(messages):
        writer.feed(message)
    return writer.whole()


def encode_assistant(
    message: Message,
    warnings: WarningList,
    *,
    answer: bool = False,
    quirks: ChatQuirks = DEFAULT_QUIRKS,
) -> dict[str, Json]:
    """
    An assistant message; `content` is null if there is none.

    In a response (`answer`), thinking of any origin is shown; in a request it is sent only to
    the server that produced it.
    """
    # the role is in `extra` if a server used a word of its own for it
    has_role = message.extra and "role" in extra_of(message, NAME)
    wire: dict[str, Json] = {} if has_role else {"role": "assistant"}
    content = message.content
    if len(content) == 1 and type(content[0]) is Text and not content[0].extra:
        wire["content"] = content[0].text
    else:
        _encode_parts(content, wire, warnings, quirks, answer=answer)
    if message.name is not None:
        wire["name"] = message.name
    return complete(wire, message) if message.extra else wire


def _encode_parts(
    parts: tuple[Part, ...],
    wire: dict[str, Json],
    warnings: WarningList,
    quirks: ChatQuirks,
    *,
    answer: bool,
) -> None:
    """Write the fields and the content of an assistant message."""
    items: list[Json] = []
    marked: list[Part] = []
    for warnings.part, part in enumerate(parts):
        if part.extra:
            marked.append(part)
        if type(part) is Text:
            items.append(encode_text(part))
        elif type(part) is ToolCall and not part.extra:
            append_items(wire, "tool_calls", encode_tool_call(part, answer=answer))
        elif type(part) is Thinking:
            if NAME in part.extra or (answer and part.text):
                items += encode_thinking(part, wire)
            elif not answer:
                reason = f"{warnings.target} accepts only its own thinking"
                warnings.add_here("foreign_thinking_dropped", reason=reason)
        elif not _encode_field(part, wire, answer=answer):
            items += encode_item(part, warnings, quirks, media=answer)
    # Null beside `tool_calls`, as OpenAI itself sends it; in recordings Groq, OpenRouter, DeepSeek,
    # llama.cpp and others accepted it.
    wire["content"] = _join_items(items, marked, flat=quirks.flat_content) if items else None


def _join_items(items: list[Json], marked: list[Part], *, flat: bool) -> Json:
    """`content`: marks say whether the server sent thinking in the text, or an object."""
    for part in marked:
        flat = flat or bool(mark_of(part, TAGS))
        parsed = encode_parsed(part) if len(items) == 1 else None
        if parsed is not None:
            return parsed
    return join_content(items, flat=flat)


def _encode_field(part: Part, wire: dict[str, Json], *, answer: bool) -> bool:
    """Write a part that is a field of the message; False if it belongs to the content."""
    form = mark_of(part, SENT_AS)
    match part:
        case ToolCall() if form == LEGACY:
            wire[LEGACY] = encode_tool_call(part, answer=False).get(part.type)
        case ToolCall():
            append_items(wire, "tool_calls", encode_tool_call(part, answer=answer))
        case Opaque() if part.dialect == NAME and form == "tool_call":
            append_items(wire, "tool_calls", part.data)
        case Refusal() if form != "part":
            wire["refusal"] = text_of(wire.get("refusal")) + part.text
        case Image() if mark_of(part, MADE):
            append_items(wire, IMAGES, encode_image(part))
        case ToolResult():
            pass  # has a message of its own
        case Text() | Thinking() | Refusal() | Image() | Audio() | Document() | Opaque():
            return False
        case _:
            assert_never(part)
    return True


class _Writer:
    def __init__(self, quirks: ChatQuirks, warnings: WarningList) -> None:
        self._wire: list[Json] = []
        self._quirks = quirks
        self._warnings = warnings
        self._moved: list[Json] = []  # media moved out of results

    def feed(self, message: Message) -> None:
        content, role = message.content, message.role
        only = content[0] if len(content) == 1 else None
        is_bare = not message.extra and message.name is None and role in _PLAIN_ROLES
        if is_bare and type(only) is Text and not only.extra:  # the usual message
            if self._moved:
                self._flush()
            self._wire.append({"role": role, "content": only.text})
            return
        is_model = role == "assistant"
        if is_model:
            self._assistant(message)
        others = len(content)
        for part in content:
            if type(part) is ToolResult:
                others -= self._results(message)
                break
        # A user message without parts is kept: OpenAI accepts `content: ""`.
        if not is_model and (others or (not content and role != "tool")):
            self._other(message)

    def whole(self) -> list[Json]:
        """All messages."""
        if self._moved:
            self._flush()
        return self._wire

    def _flush(self) -> None:
        """Write the media that were moved out of results."""
        self._wire.append({"role": "user", "content": self._moved})
        self._moved = []

    def _results(self, message: Message) -> int:
        """Write the results of a message; how many there are."""
        count = 0
        for self._warnings.part, result in enumerate(message.content):
            if type(result) is not ToolResult:
                continue
            count += 1
            content = result.content
            if result.is_error or type(content) is not str:
                content = self._result_content(result)
            wire = encode_result(result, content)
            self._wire.append(complete(wire, message) if message.extra else wire)
        return count

    def _assistant(self, message: Message) -> None:
        if self._moved:
            self._flush()
        if not self._quirks.message_images:
            for part in message.content:
                if part.extra and mark_of(part, MADE):
                    message = self._move_images(message)
                    break
        wire = encode_assistant(message, self._warnings, quirks=self._quirks)
        is_empty = wire.get("content") is None and wire.keys() <= _NO_CONTENT
        if not is_empty or not message.content or NAME in message.extra:
            self._wire.append(wire)
        elif not all(isinstance(part, ToolResult) for part in message.content):
            self._warn_of_message("emptied_message_dropped")

    def _move_images(self, message: Message) -> Message:
        """The message without the images that a model made; a user message follows with them."""
        for self._warnings.part, part in enumerate(message.content):
            if mark_of(part, MADE) and isinstance(part, Image):
                self._warnings.add_here("media_moved", media="image in a message of the model")
                self._moved.append(encode_image(part))
        content = tuple(part for part in message.content if not mark_of(part, MADE))
        return replace(message, content=content)

    def _other(self, message: Message) -> None:
        if self._moved:
            self._flush()
        content = message.content
        first = content[0] if len(content) == 1 else None
        if type(first) is Opaque and first.dialect == NAME and isinstance(first.data, str):
            self._wire.append(first.data)  # the invalid message that `_decode_message` kept
            return
        wire: dict[str, Json] = {"role": self._role(message)}
        if message.name is not None:
            wire["name"] = message.name
        if type(first) is Text and not first.extra:
            wire["content"] = first.text
        else:
            items = self._items(message)
            if content and not items and NAME not in message.extra:
                self._warn_of_message("emptied_message_dropped")
                return
            if items or "content" not in extra_of(message, NAME):
                wire["content"] = join_content(items, flat=self._quirks.flat_content)
        self._wire.append(complete(wire, message) if message.extra else wire)

    def _items(self, message: Message) -> list[Json]:
        """The content parts of a message that is not the assistant's, without results."""
        items: list[Json] = []
        media = message.role in ("user", "tool")
        for self._warnings.part, part in enumerate(message.content):
            if type(part) is not ToolResult:
                items += encode_item(part, self._warnings, self._quirks, media=media)
        return items

    def _role(self, message: Message) -> str:
        if message.role == "tool":  # text beside results: a tool message needs a `tool_call_id`
            self._warn_of_message("tool_text_as_user")
            return "user"
        if message.role == "developer" and not self._quirks.developer_role:
            self._warn_of_message("developer_as_system")
            return "system"
        return message.role

    def _warn_of_message(self, code: str) -> None:
        self._warnings.add(code, self._warnings.message_path())

    def _result_content(self, result: ToolResult) -> Json:
        content = result.content
        if result.parts is not None:
            items = self._result_items(result, result.parts)
        else:
            items = [_text(content if isinstance(content, str) else dump_text(content))]
        if result.is_error:  # the API has no flag for errors, so the text says it
            self._warnings.add_here("tool_error_as_text")
            first = items[0] if items else None
            text = first.get("text") if isinstance(first, dict) else None
            if isinstance(first, dict) and isinstance(text, str):
                marked = text if text[:5].lower() == "error" else f"Error: {text}"
                items[0] = {**first, "text": marked}
            else:
                items.insert(0, _text("Error"))
        return join_content(items, flat=self._quirks.flat_content)

    def _result_items(self, result: ToolResult, parts: tuple[Part, ...]) -> list[Json]:
        items: list[Json] = []
        moved: list[Json] = []
        warnings, quirks = self._warnings, self._quirks
        for warnings.inner, part in enumerate(parts):
            encoded = encode_item(part, warnings, quirks, media=True)
            if not isinstance(part, MEDIA_TYPES) or mark_of(part, IN_PLACE):
                items += encoded
            elif not encoded:
                items.append(_text(media_note(part).text))
            elif quirks.tool_result_media:
                items += encoded
            else:
                moved += encoded
                warnings.add_here("tool_media_moved", part=part.kind)
        warnings.inner = None
        if moved:
            self._moved += [_text(f"Output of tool call {result.tool_call_id}:"), *moved]
            items = items or [_text("The output is in the next user message.")]
        return items


def _text(text: str) -> dict[str, Json]:
    return {"type": "text", "text": text}
