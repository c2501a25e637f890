"""Parts <-> content parts of a message or of a tool's output; thinking <-> reasoning items."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypedDict, assert_never

from msgspec.structs import replace

from interlingua.dialects.openai_responses.facts import (
    IMAGE_CALL,
    INPUT_TEXT,
    MADE,
    NAME,
    OUTPUT_TEXT,
    OWN_KEYS,
    PARAGRAPH,
    SECTIONS,
    WIRE,
    extra_for,
)
from interlingua.dialects.openai_shared.logprobs import read_tokens, write_tokens
from interlingua.spec.content import (
    Audio,
    Citation,
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
from interlingua.spec.errors import DecodeError
from interlingua.spec.warnings import WarningList
from interlingua.wire.fields import Fields, count, extra_of, take_text, text_or_none, wrong_type
from interlingua.wire.media import (
    decode_base64,
    encode_base64,
    make_data_url,
    media_type_for,
    parse_data_url,
)

_LOGPROBS = "logprobs"
# The annotations with a source; `file_path` names a file that the model made.
_CITATIONS = ("url_citation", "file_citation", "container_file_citation")
_TEXT_KINDS = (INPUT_TEXT, OUTPUT_TEXT, "text")
_AUDIO_TYPES = {"mp3": "audio/mpeg", "wav": "audio/wav"}
_AUDIO_FORMATS = {media_type: form for form, media_type in _AUDIO_TYPES.items()}
# For documents without a name: all recorded files with inline data have one.
_SUFFIXES = {
    "text/plain": "txt",
    "text/markdown": "md",
    "text/csv": "csv",
    "text/html": "html",
    "application/json": "json",
}

# Content parts.


def decode_content(content: Json, path: str, text_kind: str) -> tuple[Part, ...]:
    """A string is one text part, of the type that is usual here."""
    if isinstance(content, str):
        return (Text(text=content),)
    if not isinstance(content, list):
        raise wrong_type(path, "text or an array of parts", content)
    return tuple([decode_part(block, f"{path}[{i}]", text_kind) for i, block in enumerate(content)])


def decode_part(block: Json, path: str, text_kind: str) -> Part:
    """One content part; one of an unknown type is carried verbatim."""
    if not isinstance(block, dict):
        raise wrong_type(path, "a content part", block)
    kind = block.get("type")
    if kind in _TEXT_KINDS:
        return _decode_text(block, path, text_kind)
    fields = Fields(block, path)
    fields.take("type")
    if kind == "refusal":
        return Refusal(text=fields.need("refusal"), extra=extra_for(fields.left))
    decode = _MEDIA_DECODERS.get(kind) if isinstance(kind, str) else None
    part = decode(fields) if decode else None
    if part is None:
        return Opaque(dialect=NAME, data=block)
    if _encode_media(part) != block:
        part = replace(part, extra={NAME: {**extra_of(part, NAME), WIRE: block}})
    return part


def _decode_text(block: dict[str, Json], path: str, text_kind: str) -> Text:
    unread = dict(block)
    text = take_text(unread, "text")
    if text is None:
        raise wrong_type(f"{path}.text", "a string", block.get("text"))
    if unread["type"] == text_kind:
        del unread["type"]
    annotations, tokens = unread.get("annotations"), unread.get(_LOGPROBS)
    return Text(
        text=text,
        citations=_decode_annotations(annotations) if annotations else (),
        logprobs=read_tokens(tokens) if tokens else (),
        extra=extra_for(unread),
    )


def encode_part(part: Part, text_kind: str, warnings: WarningList) -> dict[str, Json] | None:
    """The content part for a part; None, and a warning, if there is none."""
    if type(part) is Text and not part.extra:  # the usual case
        return {"type": text_kind, "text": part.text}
    match part:
        case Text():
            kind = extra_of(part, NAME).get("type", text_kind)
            return _restore({"type": kind, "text": part.text}, part)
        case Refusal() if text_kind == OUTPUT_TEXT:
            return _restore({"type": "refusal", "refusal": part.text}, part)
        case Refusal():
            warnings.add_here("refusal_as_text")  # only the model can refuse
            return {"type": text_kind, "text": part.text}
        case Image() | Document() | Audio():
            return _encode_input(part, text_kind, warnings)
        case Opaque(dialect=dialect, data=data):
            if dialect == NAME and isinstance(data, dict):
                return data
            warnings.add_here("foreign_block_dropped", owner=dialect)
        case Thinking() | ToolCall() | ToolResult():
            place = "in a message"
            warnings.add_here("misplaced_part_dropped", part=part.kind, place=place)
        case _:
            assert_never(part)
    return None


def encode_answer_text(part: Text) -> dict[str, Json]:
    """The content part for a text in a response, where each has `annotations` and `logprobs`."""
    block = encode_part(part, OUTPUT_TEXT, WarningList()) or {}
    if NAME not in part.extra:
        block["annotations"] = _annotations_of(part)
        block[_LOGPROBS] = []
    own = block.get(_LOGPROBS)
    if (part.logprobs or own) and read_tokens(own) != part.logprobs:
        block[_LOGPROBS] = write_tokens(part.logprobs, with_bytes=True)
    return block


def _restore(block: dict[str, Json], part: Part) -> dict[str, Json]:
    """The content part with the fields of `extra` that are the API's own."""
    for key, value in extra_of(part, NAME).items():
        if key not in OWN_KEYS:
            block.setdefault(key, value)
    return block


# Citations of a text <-> the `annotations` of its content part.


def _decode_annotations(items: Json) -> tuple[Citation, ...]:
    """The citations among the annotations."""
    if not isinstance(items, list):
        return ()
    return tuple(
        _decode_citation(item)
        for item in items
        if isinstance(item, dict) and item.get("type") in _CITATIONS
    )


def _annotations_of(part: Text) -> list[Json]:
    """The annotations as the API has them: its own, or the citations of another dialect."""
    own = extra_of(part, NAME).get("annotations")
    if isinstance(own, list) and _decode_annotations(own) == part.citations:
        return own
    return [_encode_citation(each, len(part.text)) for each in part.citations]


def _decode_citation(item: dict[str, Json]) -> Citation:
    return Citation(
        url=text_or_none(item.get("url")),
        file_id=text_or_none(item.get("file_id")),
        title=text_or_none(item.get("title", item.get("filename"))),
        start=count(item.get("start_index")),
        end=count(item.get("end_index")),
    )


def _encode_citation(citation: Citation, length: int) -> dict[str, Json]:
    if citation.url is not None:
        return {
            "type": "url_citation",
            "url": citation.url,
            "title": citation.title or citation.url,
            "start_index": citation.start or 0,
            "end_index": length if citation.end is None else citation.end,
        }
    return {
        "type": "file_citation",
        "file_id": citation.file_id or f"document_{citation.document or 0}",
        "filename": citation.title or "",
        "index": length if citation.end is None else citation.end,
    }


# Images, files and audio.


class _Source(TypedDict, total=False):
    """The arguments of a media part that say where its content is."""

    url: str
    data: bytes
    file_id: str
    media_type: str | None


def _decode_image(fields: Fields) -> Image | None:
    detail = fields.text("detail")
    source = _decode_source(fields, "image_url", "file_id")
    if source is None:
        return None
    return Image(**source, detail=detail, extra=extra_for(fields.left))


def _decode_document(fields: Fields) -> Document | None:
    name = fields.text("filename")
    source = _decode_source(fields, "file_data", "file_url", "file_id")
    if source is None:
        return None
    return Document(**source, file_name=name, extra=extra_for(fields.left))


def _decode_audio(fields: Fields) -> Audio | None:
    """Always with `extra`: the API accepts audio only where it was decoded from its own format."""
    match fields.object("input_audio"):
        case {"data": str(text), "format": "mp3" | "wav" as form}:
            data = decode_base64(text)
            if data is not None:
                return Audio(data=data, media_type=_AUDIO_TYPES[form], extra={NAME: fields.left})
    return None


def _decode_source(fields: Fields, *keys: str) -> _Source | None:
    """The source of a part, from the first of these fields; None if it cannot be decoded."""
    key = next((key for key in keys if fields.left.get(key) is not None), None)
    text = fields.text(key) if key else None
    if text is None:
        return None
    if key == "file_id":
        return {"file_id": text}
    inline = None if key == "file_url" else parse_data_url(text)
    if inline is not None:
        return {"data": inline[0], "media_type": inline[1]}
    if key == "file_data":  # some clients send base64 without `data:…;base64,`
        data = decode_base64(text)
        return None if data is None else {"data": data}
    return {"url": text}


_MEDIA_DECODERS: dict[str, Callable[[Fields], Image | Document | Audio | None]] = {
    "input_image": _decode_image,
    "input_file": _decode_document,
    "input_audio": _decode_audio,
}


def _encode_input(
    part: Image | Document | Audio, text_kind: str, warnings: WarningList
) -> dict[str, Json] | None:
    # See `media` in the history rules: audio is sent only back to a server that sent it.
    if isinstance(part, Audio) and NAME not in part.extra:
        warnings.media_dropped(part.kind, "audio in a message")
        return None
    if text_kind == OUTPUT_TEXT:
        warnings.media_dropped(part.kind, f"{part.kind} in an assistant message")
        return None
    wire = extra_of(part, NAME).get(WIRE)
    if isinstance(wire, dict) and _decodes_to(wire, part):
        return wire
    block = _encode_media(part)
    if block is None:
        warnings.media_dropped(part.kind, f"{part.kind} without a source")
    return block


def _decodes_to(block: Json, part: Part) -> bool:
    try:
        return decode_part(block, "", INPUT_TEXT) == part
    except DecodeError:  # `extra` may come from stored JSON
        return False


def _encode_media(part: Image | Document | Audio) -> dict[str, Json] | None:
    """The content part; None if the part has no source that the API accepts."""
    if isinstance(part, Image):
        block = _encode_image(part)
    else:
        block = _encode_document(part) if isinstance(part, Document) else _encode_audio(part)
    return block and _restore(block, part)


def _encode_image(part: Image) -> dict[str, Json] | None:
    detail = part.detail or "auto"  # required in the SDK's `ResponseInputImageParam`
    if part.url is not None:
        return {"type": "input_image", "image_url": part.url, "detail": detail}
    if part.data is not None:
        media_type = part.media_type or media_type_for(part.data) or "image/png"
        url = make_data_url(part.data, media_type)
        return {"type": "input_image", "image_url": url, "detail": detail}
    if part.file_id is not None:
        return {"type": "input_image", "file_id": part.file_id, "detail": detail}
    return None


def _encode_document(part: Document) -> dict[str, Json] | None:
    block: dict[str, Json] = {"type": "input_file"}
    name = part.file_name
    inline = parse_data_url(part.url) if part.url is not None else _inline_source(part)
    if part.file_id is not None:
        block["file_id"] = part.file_id
    elif inline is not None:
        media_type = inline[1] or "application/pdf"
        block["file_data"] = make_data_url(inline[0], media_type)
        # Recorded requests with inline data have a name, those with an address have none.
        name = f"document.{_SUFFIXES.get(media_type, 'pdf')}" if name is None else name
    elif part.url is not None:
        block["file_url"] = part.url
    else:
        return None
    if name is not None:
        block["filename"] = name
    return block


def _inline_source(part: Document) -> tuple[bytes, str | None] | None:
    if part.text is not None:
        return part.text.encode("utf-8", "replace"), part.media_type or "text/plain"
    if part.data is None:
        return None
    return part.data, part.media_type or media_type_for(part.data, part.file_name)


def _encode_audio(part: Audio) -> dict[str, Json] | None:
    form = _AUDIO_FORMATS.get(part.media_type or "")
    if part.data is None or form is None:
        return None
    audio = {"data": encode_base64(part.data), "format": form}
    return {"type": "input_audio", "input_audio": audio}


# Images that the model made <-> their items.


def decode_made_image(item: dict[str, Json]) -> Image | None:
    """The image of a finished `image_generation_call`; None if its item must stay verbatim."""
    fields = dict(item)
    base64, form = fields.pop("result", None), fields.get("output_format")
    data = decode_base64(base64) if isinstance(base64, str) and base64 else None
    if data is None or encode_base64(data) != base64:  # it could not be sent back unchanged
        return None
    del fields["type"]
    media_type = media_type_for(data) or f"image/{form if isinstance(form, str) else 'png'}"
    return Image(data=data, media_type=media_type, extra={NAME: {MADE: fields}})


def encode_made_image(part: Image, new_id: str | None = None) -> dict[str, Json] | None:
    """
    The item of an image that the model made; None if the part is no such image.

    With `new_id`, the image of another API as an item of a response.
    """
    fields = extra_of(part, NAME).get(MADE)
    if not isinstance(fields, Mapping):
        fields = None if new_id is None else {"id": new_id, "status": "completed"}
    if fields is None or part.data is None:
        return None
    return {"type": IMAGE_CALL, **fields, "result": encode_base64(part.data)}


# Thinking <-> reasoning items.


def decode_thinking(fields: Fields) -> Part:
    """The text is the summary, else the content; a list that encoding would change is kept."""
    extra = dict(fields.left)
    summary = fields.array("summary") or []
    content = fields.array("content") or []
    # OpenAI and xAI show only a summary; DeepSeek and open models have the thoughts in `content`.
    text = _join(summary) or _join(content)
    data = fields.text("encrypted_content")
    if data is not None:
        del extra["encrypted_content"]
    if not content and "summary" in extra and summary == _summary(text):
        del extra["summary"]
    return Thinking(text=text, data=data, extra={NAME: extra})


def encode_thinking(part: Thinking, new_id: str | None = None) -> dict[str, Json]:
    """The item, with the lists of `extra` if they still have its text; `new_id` if it has no id."""
    extra = dict(extra_of(part, NAME))
    text = _join(extra.get("summary")) or _join(extra.get("content"))
    if text and text != part.text:
        for name in SECTIONS:
            extra.pop(name, None)
    if not extra.get("content"):
        extra.setdefault("summary", _summary(part.text))  # required, if only as an empty list
    item: dict[str, Json] = {"type": "reasoning"}
    if new_id is not None:
        item["id"] = new_id
    if part.data is not None and is_native(part):
        item["encrypted_content"] = part.data
    return {**item, **extra}


def is_native(part: Thinking) -> bool:
    """Whether it is this API's thinking: it accepts no other."""
    return NAME in part.extra or (not part.extra and part.data is not None and not part.redacted)


def _join(parts: Json) -> str:
    items = parts if isinstance(parts, (list, tuple)) else ()
    texts = [part.get("text") for part in items if isinstance(part, dict)]
    return PARAGRAPH.join(text for text in texts if isinstance(text, str))


def _summary(text: str) -> list[Json]:
    return [{"type": SECTIONS["summary"], "text": text}] if text else []
