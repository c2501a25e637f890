"""Parts <-> content parts of a message or of a tool's output."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from interlingua.dialects.openai_responses.facts import (
    ARGUMENTS,
    CALLS,
    INPUT_TEXT,
    ITEM,
    NAME,
    OUTPUT_TEXT,
    PARAGRAPH,
    RESULTS,
    SECTIONS,
    extra_for,
)
from interlingua.dialects.openai_responses.items import shorten
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
    ToolType,
)
from interlingua.spec.contracts import NewId
from interlingua.spec.warnings import WarningList
from interlingua.streams.segments import ToolCallSegment
from interlingua.wire.fields import Fields, extra_of, restore, wrong_type
from interlingua.wire.json_text import dump_text, loads_object
from interlingua.wire.media import (
    decode_base64,
    encode_base64,
    make_data_url,
    media_type_for,
    parse_data_url,
)

# Images, files and audio <-> their content parts.


INLINE = ("image_url", "file_data")
"""Where inline data is written; in `extra`, the text it came as if we would write another."""

_AUDIO_TYPES = {"mp3": "audio/mpeg", "wav": "audio/wav"}
_AUDIO_FORMATS = {media_type: form for form, media_type in _AUDIO_TYPES.items()}
_SUFFIXES = {
    "text/plain": "txt",
    "text/markdown": "md",
    "text/csv": "csv",
    "text/html": "html",
    "application/json": "json",
}


def decode_image(fields: Fields) -> Part | None:
    """An image; None if it has no source."""
    detail = fields.text("detail")
    source: dict[str, Any]
    if (url := fields.text("image_url")) is not None:
        source = _decode_inline(fields, "image_url", url) or {"url": url}
    elif (file_id := fields.text("file_id")) is not None:
        source = {"file_id": file_id}
    else:
        return None
    # an empty mark says that it came without the detail that ours are given
    extra = {NAME: fields.left} if detail is None else extra_for(fields.left)
    return Image(**source, detail=detail, extra=extra)


def decode_document(fields: Fields) -> Part | None:
    """A file; None if it has no source that we can read."""
    name = fields.text("filename")
    source: dict[str, Any] | None = None
    if (data := fields.text("file_data")) is not None:
        source = _decode_inline(fields, "file_data", data)
    elif (url := fields.text("file_url")) is not None:
        source = {"url": url}
    elif (file_id := fields.text("file_id")) is not None:
        source = {"file_id": file_id}
    if source is None:
        return None
    # an empty mark says that it came without a name, which ours are given
    extra = {NAME: fields.left} if name is None else extra_for(fields.left)
    return Document(**source, file_name=name, extra=extra)


def decode_audio(fields: Fields) -> Part | None:
    """A sound, always marked as ours; None if writing it would give another text."""
    match fields.object("input_audio"):
        case {"data": str(text), "format": str(form), **rest} if not rest:
            data = decode_base64(text)
            media_type = _AUDIO_TYPES.get(form)
            if media_type is not None and data is not None and encode_base64(data) == text:
                return Audio(data=data, media_type=media_type, extra={NAME: fields.left})
    return None


def _decode_inline(fields: Fields, key: str, text: str) -> dict[str, Any] | None:
    """Inline data as bytes; its text is kept if writing the bytes would give another."""
    found = _parse_inline(key, text)
    if found is None:
        return None
    data, media_type = found
    if media_type is None or make_data_url(data, media_type) != text:
        fields.left[key] = text
    return {"data": data, "media_type": media_type}


def _parse_inline(key: str, text: str) -> tuple[bytes, str | None] | None:
    found = parse_data_url(text)
    if found is None and key == "file_data":  # some clients leave the `data:` head out
        data = decode_base64(text)
        return None if data is None else (data, None)
    return found


def encode_media(
    part: Image | Document | Audio, text_kind: str, warnings: WarningList
) -> dict[str, Any] | None:
    """The content part without what `extra` keeps; None, and a warning, if there is none."""
    block: dict[str, Any] | None = None
    if isinstance(part, Audio) and NAME not in part.extra:
        warnings.media_dropped(part.kind, "audio in a message")
    elif text_kind == OUTPUT_TEXT:
        warnings.media_dropped(part.kind, f"{part.kind} in an assistant message")
    else:
        block = _encode(part)
        if block is None:
            warnings.media_dropped(part.kind, f"{part.kind} without a source")
    return block


def _encode(part: Image | Document | Audio) -> dict[str, Any] | None:
    if isinstance(part, Image):
        return _encode_image(part)
    return _encode_document(part) if isinstance(part, Document) else _encode_audio(part)


def _encode_image(part: Image) -> dict[str, Any] | None:
    block: dict[str, Any] = {"type": "input_image"}
    if part.url is not None:
        block["image_url"] = part.url
    elif part.data is not None:
        media_type = part.media_type or media_type_for(part.data) or "image/png"
        block["image_url"] = _encode_inline(part, "image_url", part.data, media_type)
    elif part.file_id is not None:
        block["file_id"] = part.file_id
    else:
        return None
    if part.detail is not None or NAME not in part.extra:
        block["detail"] = part.detail or "auto"  # the API's types require it
    return block


def _encode_document(part: Document) -> dict[str, Any] | None:
    block: dict[str, Any] = {"type": "input_file"}
    name = part.file_name
    if part.file_id is not None:
        block["file_id"] = part.file_id
    elif part.url is not None and parse_data_url(part.url) is None:
        block["file_url"] = part.url
    else:
        source = _inline_source(part)
        if source is None:
            return None
        data, media_type = source[0], source[1] or "application/pdf"
        if name is None and NAME not in part.extra:  # the API wants a name with inline data
            name = f"document.{_SUFFIXES.get(media_type, 'pdf')}"
        block["file_data"] = _encode_inline(part, "file_data", data, media_type)
    if name is not None:
        block["filename"] = name
    return block


def _inline_source(part: Document) -> tuple[bytes, str | None] | None:
    if part.url is not None:
        return parse_data_url(part.url)
    if part.text is not None:
        return part.text.encode("utf-8", "replace"), part.media_type or "text/plain"
    if part.data is None:
        return None
    return part.data, part.media_type or media_type_for(part.data, part.file_name)


def _encode_audio(part: Audio) -> dict[str, Any] | None:
    form = _AUDIO_FORMATS.get(part.media_type or "")
    if part.data is None or form is None:
        return None
    sound = {"data": encode_base64(part.data), "format": form}
    return {"type": "input_audio", "input_audio": sound}


def _encode_inline(part: Image | Document, key: str, data: bytes, media_type: str) -> str:
    """The data URL; the text it came as, if that still says the same."""
    came = extra_of(part, NAME).get(key)
    found = _parse_inline(key, came) if isinstance(came, str) else None
    if found is not None and found[0] == data and found[1] in (media_type, None):
        return str(came)  # without a media type of its own, ours was only a guess
    return make_data_url(data, media_type)


# Thinking <-> reasoning items.


def decode_thinking(fields: Fields) -> Part:
    """The summary, else the thoughts themselves; a list we would not write so is kept."""
    kept = dict(fields.left)
    summary = fields.array("summary") or []
    content = fields.array("content") or []
    text = _join(summary) or _join(content)
    data = fields.text("encrypted_content")
    if data is not None:
        del kept["encrypted_content"]
    if not content and "summary" in kept and summary == _summary(text):
        del kept["summary"]
    return Thinking(text=text, data=data, extra={NAME: kept})


def encode_thinking(part: Thinking, made: str | None = None) -> dict[str, Any]:
    """
    The lists it came with, if they still say its text.

    `made` is the id of an item that has none of its own.
    """
    kept = dict(extra_of(part, NAME))
    said = _join(kept.get("summary")) or _join(kept.get("content"))
    if said and said != part.text:
        for name in SECTIONS:
            kept.pop(name, None)
    if not kept.get("content"):
        kept.setdefault("summary", _summary(part.text))
    item: dict[str, Any] = {"type": "reasoning"}
    if made is not None:
        item["id"] = made
    if part.data is not None and is_native(part):
        item["encrypted_content"] = part.data
    return {**item, **kept}


def is_native(part: Thinking) -> bool:
    """Whether this API made the thought: only then does it want it back."""
    return NAME in part.extra or (not part.extra and part.data is not None and not part.redacted)


def _join(parts: Any) -> str:
    texts = [part.get("text") for part in parts or () if isinstance(part, dict)]
    return PARAGRAPH.join(text for text in texts if isinstance(text, str))


def _summary(text: str) -> list[dict[str, Any]]:
    return [{"type": SECTIONS["summary"], "text": text}] if text else []


# Tool calls and results <-> their items.


DecodeContent: TypeAlias = Callable[[Json, str, str], tuple[Part, ...]]


def decode_call(fields: Fields, tool_type: ToolType, new_id: NewId | None) -> Part:
    """A call; `new_id` if it is of an answer, where it is read leniently and always marked."""
    key = ARGUMENTS[tool_type]
    if new_id is None:
        call_id, raw = fields.need("call_id"), fields.need(key)
    else:
        call_id = _call_id(fields.left) or new_id()
        given = fields.take(key)
        raw = given if isinstance(given, str) else dump_text({} if given is None else given)
        if fields.left.get("call_id", "") in (call_id, ""):
            fields.take("call_id")
    return ToolCall(
        id=call_id,
        name=fields.need("name"),
        arguments={} if tool_type == "custom" else loads_object(raw) or {},
        raw_arguments=raw,
        type=tool_type,
        extra={NAME: fields.left} if new_id else extra_for(fields.left),
    )


def open_call(
    left: dict[str, Any], tool_type: ToolType, index: int, new_id: NewId
) -> ToolCallSegment:
    """A call that begins to be streamed; `left` are the fields of its item but for its text."""
    call_id = _call_id(left) or new_id()
    left.pop("call_id", None)
    name = left.pop("name", None)
    return ToolCallSegment(
        index,
        call_id=call_id,
        name=name if isinstance(name, str) else "",
        tool_type=tool_type,
        extra={NAME: left},
    )


def _call_id(item: Mapping[str, Any]) -> str | None:
    """The id of a call, else that of its item."""
    found = (item.get(key) for key in ("call_id", "id"))
    return next((text for text in found if isinstance(text, str) and text), None)


def encode_call(call: ToolCall, made: str | None = None) -> dict[str, Any]:
    """The argument text as it came; `made` is the id of an item that has none of its own."""
    raw = call.raw_arguments
    item: dict[str, Any] = {
        "type": CALLS[call.type],
        "call_id": call.id,
        "name": call.name,
        ARGUMENTS[call.type]: dump_text(call.arguments) if raw is None else raw,
    }
    if made is not None:
        item |= {"id": made, "status": "completed"}
    return restore(item, call, NAME)


def decode_result(item: dict[str, Any], path: str, decode_content: DecodeContent) -> Part:
    """A tool's output: text, or content parts."""
    fields = Fields(item, path)
    if fields.left["type"] == RESULTS["function"]:
        fields.take("type")
    call_id = fields.need("call_id")
    content: Any = fields.take("output")
    if not isinstance(content, str):
        content = decode_content(content, fields.at("output"), INPUT_TEXT)
    name = fields.left.get("name")
    return ToolResult(
        tool_call_id=call_id,
        content=content,
        name=name if isinstance(name, str) else None,
        # an empty mark tells `[]`, which we would not write, from a result of others
        extra={NAME: fields.left} if content == () else extra_for(fields.left),
    )


def encode_result(result: ToolResult, tool_type: ToolType, warnings: WarningList) -> dict[str, Any]:
    """The output of a call to a tool of this type, unless it came as that of another."""
    item = {"call_id": result.tool_call_id, "output": _encode_output(result, warnings)}
    if result.extra:
        item = restore(item, result, NAME)
    return {"type": RESULTS[tool_type], **item}


def _encode_output(result: ToolResult, warnings: WarningList) -> Json:
    content = result.content
    if type(content) is str and not result.is_error:
        return content
    parts = result.parts
    if parts is None:
        text = content if isinstance(content, str) else dump_text(content)
        return _say_error(text, warnings) if result.is_error else text
    if not parts and NAME in result.extra:
        return []
    blocks: list[Any] = []
    for warnings.inner, part in enumerate(parts):
        block = encode_part(part, INPUT_TEXT, warnings)
        if block is None and isinstance(part, MEDIA_TYPES):
            block = {"type": INPUT_TEXT, "text": media_note(part).text}
        if block is not None:
            blocks.append(block)
    warnings.inner = None
    if result.is_error:
        blocks = _say_error_first(blocks, warnings)
    return shorten(blocks, INPUT_TEXT) if blocks else ""


def _say_error_first(blocks: list[Any], warnings: WarningList) -> list[Any]:
    text = blocks[0].get("text") if blocks else None
    if isinstance(text, str) and text:
        return [{**blocks[0], "text": _say_error(text, warnings)}, *blocks[1:]]
    return [{"type": INPUT_TEXT, "text": _say_error("", warnings)}, *blocks]


def _say_error(text: str, warnings: WarningList) -> str:
    if text[:5].lower() == "error":
        return text
    warnings.add_here("tool_error_as_text")
    return f"Error: {text}" if text else "Error"


_TEXT_KINDS = (INPUT_TEXT, OUTPUT_TEXT, "text")
_NOT_BESIDE = (ITEM, *INLINE)  # what is kept, but not put back as a field of the block


def decode_content(content: Json, path: str, text_kind: str) -> tuple[Part, ...]:
    """A string is one text part, of the kind that is usual here."""
    if isinstance(content, str):
        return (Text(text=content),)
    if not isinstance(content, list):
        raise wrong_type(path, "text or an array of parts", content)
    return tuple([decode_part(block, f"{path}[{i}]", text_kind) for i, block in enumerate(content)])


def decode_part(block: Json, path: str, text_kind: str) -> Part:
    """One content part; a kind we do not know is kept as it is."""
    if not isinstance(block, dict):
        raise wrong_type(path, "a content part", block)
    fields = Fields(block, path)
    kind = fields.take("type")
    if kind in _TEXT_KINDS:
        text = fields.need("text")
        if kind != text_kind:
            fields.left["type"] = kind
        return Text(text=text, extra=extra_for(fields.left))
    decode = _DECODE.get(kind) if isinstance(kind, str) else None
    return (decode and decode(fields)) or Opaque(dialect=NAME, data=block)


def _decode_refusal(fields: Fields) -> Part:
    return Refusal(text=fields.need("refusal"), extra=extra_for(fields.left))


_DECODE: dict[str, Callable[[Fields], Part | None]] = {
    "refusal": _decode_refusal,
    "input_image": decode_image,
    "input_file": decode_document,
    "input_audio": decode_audio,
}


def encode_part(part: Part, text_kind: str, warnings: WarningList) -> dict[str, Any] | None:
    """The content part that says a part; None, and a warning, if there is none."""
    if type(part) is Text and not part.extra:  # as with most
        return {"type": text_kind, "text": part.text}
    if type(part) is Opaque or (type(part) is Refusal and text_kind != OUTPUT_TEXT):
        return _encode_block(part, text_kind, warnings)
    kept = extra_of(part, NAME)
    block = _encode_block(part, text_kind, warnings)
    if block is not None:
        if type(part) is Text and "type" in kept:
            block["type"] = kept["type"]
        for key, value in kept.items():
            if key not in _NOT_BESIDE or value is None:
                block.setdefault(key, value)
    return block


def _encode_block(part: Part, text_kind: str, warnings: WarningList) -> dict[str, Any] | None:
    match part:
        case Text():
            return {"type": text_kind, "text": part.text}
        case Refusal():
            if text_kind == OUTPUT_TEXT:
                return {"type": "refusal", "refusal": part.text}
            warnings.add_here("refusal_as_text")  # only the model can refuse
            return {"type": text_kind, "text": part.text}
        case Image() | Document() | Audio():
            return encode_media(part, text_kind, warnings)
        case Opaque(dialect=dialect, data=data):
            if dialect == NAME and isinstance(data, dict):
                return data
            warnings.add_here("foreign_block_dropped", owner=dialect)
        case _:
            place = "in a message"
            warnings.add_here("misplaced_part_dropped", part=part.kind, place=place)
    return None
