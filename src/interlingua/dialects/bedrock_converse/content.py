"""
Parts and citations <-> content blocks.

A block is a union: an object with one field, whose name is the type of the block.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, assert_never

from msgspec.structs import replace

from interlingua.dialects.bedrock_converse.facts import BESIDE, MARK, NAME, POINT, extra_for
from interlingua.prepare.media import encode_result_parts
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
    UncheckedJson,
)
from interlingua.spec.errors import DecodeError
from interlingua.spec.warnings import WarningList
from interlingua.wire.fields import Fields, extra_of, text_of, text_or_none, wrong_type
from interlingua.wire.json_text import dump_text
from interlingua.wire.media import decode_base64, encode_base64, media_type_for, parse_data_url
from interlingua.wire.tool_calls import input_object

Block: TypeAlias = dict[str, Json]

_OWNER = "~bucket_owner"
_SOURCE = "~text_source"
_PIECES = "~cited_pieces"
_BLOB = "~raw_blob"
_NAMED = "~given_name"
_BARE = "~no_format"
_OWN = frozenset((BESIDE, MARK, _OWNER, _SOURCE, _PIECES, _BLOB, _NAMED, _BARE))
"""Our own keys in `extra`, which are never sent."""

# `ImageFormat`, `AudioFormat`, `VideoFormat` and `DocumentFormat`, by media type.
_FORMATS: Mapping[str, Mapping[str, str]] = {
    "image": {f"image/{name}": name for name in ("png", "jpeg", "gif", "webp")},
    "audio": {
        "audio/mpeg": "mp3",
        "audio/opus": "opus",
        "audio/wav": "wav",
        "audio/aac": "aac",
        "audio/flac": "flac",
        "audio/mp4": "mp4",
        "audio/ogg": "ogg",
        "audio/x-matroska": "mka",
        "audio/x-aac": "x-aac",
        "audio/x-m4a": "m4a",
        "audio/pcm": "pcm",
        "audio/webm": "webm",
    },
    "video": {
        "video/x-matroska": "mkv",
        "video/quicktime": "mov",
        "video/mp4": "mp4",
        "video/webm": "webm",
        "video/x-flv": "flv",
        "video/mpeg": "mpeg",
        "video/x-ms-wmv": "wmv",
        "video/3gpp": "three_gp",
    },
    "document": {
        "application/pdf": "pdf",
        "text/csv": "csv",
        "application/msword": "doc",
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document": "docx",
        "application/vnd.ms-excel": "xls",
        "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "xlsx",
        "text/html": "html",
        "text/plain": "txt",
        "text/markdown": "md",
    },
}
_OTHER_NAMES: Mapping[str, Mapping[str, str]] = {
    "audio": {"mpeg": "audio/mpeg", "mpga": "audio/mpeg", "mkv": "audio/x-matroska"},
    "video": {"mpg": "video/mpeg"},
}
_TYPES: Mapping[str, Mapping[str, str]] = {
    kind: {**{name: media for media, name in table.items()}, **_OTHER_NAMES.get(kind, {})}
    for kind, table in _FORMATS.items()
}
_TEXTS = ("txt", "md", "csv", "html")
_ALIASES = {"image/jpg": "image/jpeg", "audio/mp3": "audio/mpeg", "audio/x-wav": "audio/wav"}
_S3 = "s3://"
_RESULT = "_result"  # the end of the types of the results of tools that AWS runs
HOSTED_NAMES = {"nova_code_interpreter": "code_execution", "nova_grounding": "web_search"}
"""Our names of the tools that `SystemTool` names."""
# `DocumentBlock.name`: «Alphanumeric characters, Whitespace characters (no more than one in a row),
# Hyphens, Parentheses, Square brackets», at most 200 characters.
_bad_characters = re.compile(r"[^0-9A-Za-z\s\-()\[\]]+")
_blanks = re.compile(r"\s+")
_is_number = re.compile(r"Document [1-9][0-9]{0,5}").fullmatch
_LONGEST_NAME = 200


class ContentEncoder:
    """Encodes the parts of one request; documents without a name are numbered."""

    def __init__(self, warnings: WarningList) -> None:
        self.warnings = warnings
        self._documents = 0

    def blocks(self, parts: tuple[Part, ...]) -> list[Block]:
        """The blocks of a message, each with the cache point that follows it."""
        blocks: list[Block] = []
        for self.warnings.part, part in enumerate(parts):
            block = self.block(part)
            if block is not None:
                blocks.append(block)
            point = extra_of(part, NAME).get(MARK) if part.extra else None
            if point is not None and block is not None:
                blocks.append({POINT: point})
        return blocks

    def block(self, part: Part) -> Block | None:
        """The block of a part; None, with a warning, if the API has none for it."""
        match part:
            case Text():
                block: Block | None = _encode_text(part)
            case ToolCall():
                block = {"toolUse": _encode_call(part)}
            case ToolResult():
                block = {"toolResult": self._result(part)}
            case Thinking():
                block = _encode_thinking(part, self.warnings)
            case Image() | Audio() | Document():
                block = self._media(part)
            case Refusal():
                self.warnings.add_here("refusal_as_text")
                return {"text": part.text}
            case Opaque():
                return _encode_opaque(part, self.warnings)
            case _:
                assert_never(part)
        beside = extra_of(part, NAME).get(BESIDE) if part.extra else None
        return block if beside is None or block is None else {**block, **beside}

    def _result(self, result: ToolResult) -> Block:
        wire: Block = {"toolUseId": result.tool_call_id, "content": self._result_content(result)}
        if result.is_error:
            wire["status"] = "error"  # `ToolResultStatus`
        return _restore(wire, result)

    def _result_content(self, result: ToolResult) -> list[Json]:
        content = result.content
        if isinstance(content, str):
            return [{"text": content}] if content else []
        if isinstance(content, dict):
            return [{"json": content}]
        if not isinstance(content, tuple):  # models take an object as `json`
            return [{"text": dump_text(content)}]
        return [*encode_result_parts(content, self._inner_block, self.warnings)]

    def _inner_block(self, part: Part) -> Block | None:
        block = self.block(part)
        if block is not None and "audio" in block:  # `ToolResultContentBlock` has none
            self.warnings.media_dropped(part.kind, "audio in a tool result")
            return None
        return block

    def _media(self, part: Image | Audio | Document) -> Block | None:
        media_type = _media_type(part)
        kind = _kind_of(part, media_type)
        form = _FORMATS[kind].get(media_type or "")
        if kind == "document":
            self._documents += 1
            form = form or _default_format(part, media_type)
        if form is None:
            self.warnings.media_dropped(part.kind, media_type or f"{part.kind} of unknown type")
            return None
        source = _encode_source(part)
        if source is None:
            self.warnings.media_dropped(part.kind, f"{part.kind} by URL or file id")
            return None
        if isinstance(part, Image) and part.detail not in (None, "auto"):
            self.warnings.add_here("detail_dropped")  # `ImageBlock` has no such setting
        extra = extra_of(part, NAME)
        wire: Block = {"format": extra.get("format", form)}
        if isinstance(part, Document) and kind == "document":
            wire["name"] = self._name(part, form)
        elif isinstance(part, Document) and part.file_name is not None:
            self.warnings.add_here("file_name_dropped")  # `VideoBlock` has no name
        wire["source"] = source
        if not form or extra.get(_BARE):
            del wire["format"]
        return {kind: _restore(wire, part)}

    def _name(self, part: Document, form: str) -> str:
        kept = extra_of(part, NAME).get(_NAMED)
        if isinstance(kept, str) and part.file_name is None:
            return kept
        if part.file_name is None:
            return f"Document {self._documents}"
        name = clean_name(part.file_name, form) or f"Document {self._documents}"
        if name != part.file_name:
            self.warnings.add_here("document_renamed", name=part.file_name, sent=name)
        return name


def clean_name(name: str, form: str) -> str:
    """The name of a document without the characters that the API refuses, and without a suffix."""
    stem, dot, suffix = name[: 4 * _LONGEST_NAME].rpartition(".")
    if dot and stem and suffix.lower() == form:
        name = stem
    name = _blanks.sub(" ", _bad_characters.sub("-", name[: 4 * _LONGEST_NAME]))
    return name.strip(" -")[:_LONGEST_NAME].strip(" -") or ""


def _default_format(part: Image | Audio | Document, media_type: str | None) -> str | None:
    """The format of a document whose media type has none; empty where it can be left out."""
    if isinstance(part, Document) and part.text is not None:
        return "txt"
    if media_type is not None and media_type.startswith("text/"):
        return "txt"
    return "" if media_type is None and part.file_id is not None else None


def _media_type(part: Image | Audio | Document) -> str | None:
    named = part.media_type
    data = part.data or b""
    if part.url is not None and (inline := parse_data_url(part.url)) is not None:
        data, named = inline[0], named or inline[1]
    if named is None:
        name = part.file_id or getattr(part, "file_name", None)
        named = media_type_for(data, name)
    if named is None and isinstance(part, Document) and part.text is not None:
        named = "text/plain"
    bare = (named or "").partition(";")[0].strip().lower()
    return _ALIASES.get(bare, bare) or None


def _kind_of(part: Image | Audio | Document, media_type: str | None) -> str:
    if isinstance(part, Document):
        family = (media_type or "").partition("/")[0]
        return family if family in ("image", "audio", "video") else "document"
    return part.kind


def _encode_source(part: Image | Audio | Document) -> Block | None:
    if part.file_id is not None:
        if not part.file_id.startswith(_S3):
            return None
        owner = extra_of(part, NAME).get(_OWNER)
        place = {"uri": part.file_id} | ({} if owner is None else {"bucketOwner": owner})
        return {"s3Location": place}
    data = part.data
    if part.url is not None:
        inline = parse_data_url(part.url)
        data = None if inline is None else inline[0]
    if isinstance(part, Document) and part.text is not None:
        if extra_of(part, NAME).get(_SOURCE):
            return {"text": part.text}
        data = part.text.encode("utf-8", "replace")
    return None if data is None else {"bytes": encode_base64(data)}


def _restore(wire: Block, part: Part) -> Block:
    """Add the unknown fields that were read with the part."""
    for key, value in extra_of(part, NAME).items() if part.extra else ():
        if key not in _OWN:
            wire.setdefault(key, value)
    return wire


def _encode_text(part: Text) -> Block:
    extra = extra_of(part, NAME) if part.extra else {}
    guard = extra.get("guardContent")
    if isinstance(guard, Mapping) and _guarded(guard) == part.text:
        return {"guardContent": guard}
    if "citations" in extra:
        content = extra.get(_PIECES) or [{"text": part.text}]
        return {"citationsContent": _restore({"content": content}, part)}
    return {"text": part.text}


def _encode_call(call: ToolCall) -> Block:
    wire: Block = {"toolUseId": call.id, "name": call.name, "input": input_object(call)}
    return _restore(wire, call) if call.extra else wire


def is_native(part: Thinking) -> bool:
    """Return whether the thinking is this API's own; a signature without `extra` is proof."""
    return NAME in part.extra or (not part.extra and bool(part.signature or part.redacted))


def _encode_thinking(part: Thinking, warnings: WarningList) -> Block | None:
    """Return the block of this API's own thinking: models check the signature."""
    if not is_native(part):
        reason = f"{warnings.target} accepts only its own thinking"
        warnings.add_here("foreign_thinking_dropped", reason=reason)
        return None
    return {"reasoningContent": _reasoning(part)}


def _reasoning(part: Thinking) -> Block:
    if part.redacted:
        data = part.data or ""
        is_raw = extra_of(part, NAME).get(_BLOB)
        return {"redactedContent": data if is_raw else encode_base64(data.encode())}
    wire: Block = {"text": part.text}
    if part.signature is not None:
        wire["signature"] = part.signature
    return {"reasoningText": _restore(wire, part)}


def _encode_opaque(part: Opaque, warnings: WarningList) -> Block | None:
    if part.dialect == NAME and isinstance(part.data, dict):
        return part.data
    warnings.add_here("foreign_block_dropped", owner=part.dialect)
    return None


# What a server sends.


def show_part(part: Part, *, native: bool) -> Block | None:
    """Return the block of a part of a response of any model; None if the API has none for it."""
    if isinstance(part, Thinking) and not is_native(part):
        # `ReasoningTextBlock.signature` may be absent.
        return {"reasoningContent": {"reasoningText": {"text": part.text}}} if part.text else None
    if isinstance(part, Text) and part.citations and "citations" not in extra_of(part, NAME):
        citations = [_encode_citation(each) for each in part.citations]
        return {"citationsContent": {"content": [{"text": part.text}], "citations": citations}}
    if isinstance(part, (Audio, Document)) and not native:
        return None
    return ContentEncoder(WarningList()).block(part)


# Decoding.


def decode_blocks(content: UncheckedJson, path: str) -> tuple[Part, ...]:
    """Return the parts of a content; a cache point becomes a mark of the part before it."""
    if not isinstance(content, list):
        raise wrong_type(path, "an array of blocks", content)
    parts: list[Part] = []
    for i, block in enumerate(content):
        if isinstance(block, dict) and block.keys() == {POINT} and parts:
            last = parts[-1]
            if MARK not in extra_of(last, NAME) and not isinstance(last, Opaque):
                parts[-1] = _with_extra(last, {MARK: block[POINT]})
                continue
        parts.append(decode_part(block, f"{path}[{i}]"))
    return tuple(parts)


def _with_extra(part: Part, fields: Mapping[str, Json]) -> Part:
    return replace(part, extra={**part.extra, NAME: {**extra_of(part, NAME), **fields}})


def decode_part(block: UncheckedJson, path: str = "") -> Part:
    """Return the part of a block; a block of an unknown type is carried verbatim."""
    if not isinstance(block, dict):
        raise wrong_type(path, "a content block", block)
    kind = next((name for name in _DECODERS if name in block), None)
    if kind is None:
        return Opaque(dialect=NAME, data=block)
    part = _DECODERS[kind](block[kind], f"{path}.{kind}" if path else kind)
    if part is None:
        return _hosted_use(kind, block)
    beside = {name: value for name, value in block.items() if name != kind}
    return _with_extra(part, {BESIDE: beside}) if beside else part


def read_part(block: UncheckedJson) -> Part:
    """Return the part of a block of a response; a malformed block is carried verbatim."""
    try:
        return decode_part(block)
    except DecodeError:
        return Opaque(dialect=NAME, data=block)


def _hosted_use(kind: str, block: Block) -> Opaque:
    """A block without a canonical form; the use of a tool that AWS runs is described."""
    inner = block[kind]
    if kind not in ("toolUse", "toolResult") or not isinstance(inner, dict):
        return Opaque(dialect=NAME, data=block)
    use: dict[str, Any] = {"tool_call_id": text_or_none(inner.get("toolUseId"))}
    if kind == "toolUse":  # `ToolUseType`: `server_tool_use`
        name, use["input"] = text_of(inner.get("name")), inner.get("input")
    else:
        name = text_of(inner.get("type")).removesuffix(_RESULT)
        use["output"] = _output(inner.get("content"))
    return Opaque(dialect=NAME, data=block, tool=HOSTED_NAMES.get(name, name) or None, **use)


def _output(content: UncheckedJson) -> UncheckedJson:
    """Return what a tool returned, for readers; a result without a simpler form stays as it is."""
    match content:
        case [{"json": {"stdOut": str(out), "stdErr": str(errors)}}]:
            return out + errors
        case [{"json": {"stdOut": str(out)}}]:
            return out
        case [{"json": value}]:
            return value
    return content


def hosted_parts(part: Opaque) -> tuple[Opaque, ...]:
    """The blocks of a hosted tool call and its result that a script describes."""
    name = next((theirs for theirs, ours in HOSTED_NAMES.items() if ours == part.tool), None)
    if name is None:
        return ()
    call_id = f"tooluse_{part.tool_call_id}"
    use: Block = {
        "toolUseId": call_id,
        "name": name,
        "type": "server_tool_use",
        "input": part.input or {},
    }
    found: dict[str, Json] = {"sources": part.output}
    if part.tool == "code_execution":
        found = {"stdOut": part.output or "", "stdErr": "", "exitCode": 0, "isError": False}
    # The type of a result, and the fields in it, are unverified.
    content: list[Json] = [{"json": found}]
    result: Block = {"toolUseId": call_id, "content": content, "type": f"{name}{_RESULT}"}
    return _hosted_use("toolUse", {"toolUse": use}), _hosted_use(
        "toolResult", {"toolResult": result}
    )


def _decode_text(inner: UncheckedJson, path: str) -> Part:
    if not isinstance(inner, str):
        raise wrong_type(path, "a string", inner)
    return Text(text=inner)


def _decode_use(inner: UncheckedJson, path: str) -> Part | None:
    fields = Fields(inner, path)
    if fields.left.get("type") is not None:
        return None
    return ToolCall(
        id=fields.need("toolUseId"),
        name=fields.need("name"),
        arguments=fields.arguments("input"),
        extra=extra_for(fields.left),
    )


def _decode_result(inner: UncheckedJson, path: str) -> Part | None:
    fields = Fields(inner, path)
    if fields.left.get("type") is not None:
        return None
    call_id, items = fields.need("toolUseId"), fields.array("content")
    # An explicit `success` stays unread, so that it is written again.
    is_error = fields.left.get("status") == "error" and fields.take("status") is not None
    return ToolResult(
        tool_call_id=call_id,
        content=_decode_result_content(items or [], fields.at("content")),
        is_error=is_error,
        extra=extra_for(fields.left),
    )


def _decode_result_content(items: list[Any], path: str) -> Any:
    """A single text or JSON object is the content itself, and no item is an empty text."""
    match items:
        case []:
            return ""
        case [{"text": str(text), **rest}] if not rest and text:
            return text
        # An object that looks like a part in JSON form would be read as one.
        case [{"json": dict(value), **rest}] if not rest:
            return value
    return tuple(decode_part(item, f"{path}[{i}]") for i, item in enumerate(items))


def _decode_reasoning(inner: UncheckedJson, path: str) -> Part | None:
    match inner:
        case {"reasoningText": dict(reasoning), **rest} if not rest:
            fields = Fields(reasoning, f"{path}.reasoningText")
            text, signature = fields.text("text") or "", fields.text("signature")
            return Thinking(text=text, signature=signature, extra={NAME: fields.left})
        case {"redactedContent": str(data), **rest} if not rest:
            return decode_redacted(data)
    return None


def decode_redacted(blob: str) -> Thinking:
    """
    Return redacted thinking.

    The blob holds the text that the Messages API of Anthropic has as `data`, in base64; other
    bytes are kept in base64.
    """
    data = decode_base64(blob)
    try:
        text = None if data is None or encode_base64(data) != blob else data.decode()
    except UnicodeDecodeError:
        text = None
    if text is None:
        return Thinking(redacted=True, data=blob, extra={NAME: {_BLOB: True}})
    return Thinking(redacted=True, data=text, extra={NAME: {}})


def _decode_image(inner: UncheckedJson, path: str) -> Part | None:
    return _decode_media(Image, "image", inner, path)


def _decode_audio(inner: UncheckedJson, path: str) -> Part | None:
    return _decode_media(Audio, "audio", inner, path)


def _decode_video(inner: UncheckedJson, path: str) -> Part | None:
    return _decode_media(Document, "video", inner, path)


def _decode_document(inner: UncheckedJson, path: str) -> Part | None:
    return _decode_media(Document, "document", inner, path)


def _decode_media(
    make: type[Image | Audio | Document], kind: str, inner: UncheckedJson, path: str
) -> Part | None:
    fields = Fields(inner, path)
    form = fields.text("format")
    media_type = _TYPES[kind].get(form or "")
    source = _decode_source(fields.object("source"))
    if source is None or (form is not None and media_type is None):
        return None
    if form in _OTHER_NAMES.get(kind, ()):
        fields.left["format"] = form
    elif form is None:
        fields.left[_BARE] = True
    if kind == "document":
        name = fields.text("name")
        if name is not None and _is_number(name):
            fields.left[_NAMED] = name
        else:
            source["file_name"] = name
        if form in _TEXTS and "data" in source:
            _read_text(source)
    owner = source.pop("owner", None)
    if owner is not None:
        fields.left[_OWNER] = owner
    if source.pop("is_text", False):
        fields.left[_SOURCE] = True
    return make(**source, media_type=media_type, extra=extra_for(fields.left))


def _read_text(source: dict[str, Any]) -> None:
    """Replace the bytes of a text document by its text, if they can be written again from it."""
    try:
        text = source["data"].decode()
    except UnicodeDecodeError:
        return
    source["text"] = text
    del source["data"]


def _decode_source(source: UncheckedJson) -> dict[str, Any] | None:
    """Return the fields of the part with this source; None if it could not be written back."""
    match source:
        case {"bytes": str(text), **rest} if not rest:
            data = decode_base64(text)
            if data is not None and encode_base64(data) == text:
                return {"data": data}
        case {"s3Location": {"uri": str(uri), **place}, **rest} if not rest and uri.startswith(_S3):
            if not place:
                return {"file_id": uri}
            if place.keys() == {"bucketOwner"}:
                return {"file_id": uri, "owner": place["bucketOwner"]}
        case {"text": str(text), **rest} if not rest:
            return {"text": text, "is_text": True}
    return None


def _guarded(guard: Mapping[str, UncheckedJson]) -> str | None:
    """The text of a `guardContent`."""
    match guard:
        case {"text": {"text": str(text)}}:
            return text
    return None


def _decode_guard(inner: UncheckedJson, _: str) -> Part | None:
    """Return text that a guardrail assesses; the model reads it as any other."""
    text = _guarded(inner) if isinstance(inner, dict) else None
    return None if text is None else Text(text=text, extra={NAME: {"guardContent": inner}})


# Citations.


def _decode_cited(inner: UncheckedJson, path: str) -> Part | None:
    fields = Fields(inner, path)
    pieces = fields.array("content")
    texts: list[Any] = [piece.get("text") for piece in pieces or () if isinstance(piece, dict)]
    if not pieces or len(texts) != len(pieces) or not all(isinstance(t, str) for t in texts):
        return None
    if not isinstance(fields.left.get("citations"), list):
        return None
    if len(pieces) > 1 or len(pieces[0]) > 1:
        fields.left[_PIECES] = pieces
    citations = decode_citations(fields.left["citations"])
    return Text(text="".join(texts), citations=citations, extra={NAME: fields.left})


def decode_citations(items: Json) -> tuple[Citation, ...]:
    """Return the citations of a block, which are for its whole text."""
    if not isinstance(items, list):
        return ()
    return tuple(_decode_citation(item) for item in items if isinstance(item, dict))


def _decode_citation(item: dict[str, Json]) -> Citation:
    location = item.get("location")
    inner: Json = next(iter(location.values()), None) if isinstance(location, Mapping) else None
    place: Mapping[str, Json] = inner if isinstance(inner, Mapping) else {}
    index = place.get("documentIndex", place.get("searchResultIndex"))
    pieces: UncheckedJson = item.get("sourceContent")
    pieces = pieces if isinstance(pieces, list) else []
    quotes = [text_of(each.get("text")) for each in pieces if isinstance(each, Mapping)]
    return Citation(
        url=text_or_none(place.get("url")),
        document=index if type(index) is int else None,
        title=text_or_none(item.get("title")),
        quote="".join(quotes) or None,
    )


def encode_citations(part: Text) -> list[Json]:
    """Return the API's own citations, or another dialect's citations in the form of the API."""
    own = extra_of(part, NAME).get("citations")
    if isinstance(own, list):
        return own
    return [_encode_citation(each) for each in part.citations]


def _encode_citation(citation: Citation) -> dict[str, Json]:
    wire: dict[str, Json] = {}
    if citation.title is not None:
        wire["title"] = citation.title
    if citation.quote is not None:
        wire["sourceContent"] = [{"text": citation.quote}]
    if citation.url is not None:
        wire["location"] = {"web": {"url": citation.url}}
    elif citation.document is not None:
        wire["location"] = {"documentChar": {"documentIndex": citation.document}}
    return wire


_DECODERS: dict[str, Callable[[UncheckedJson, str], Part | None]] = {
    "text": _decode_text,
    "toolUse": _decode_use,
    "toolResult": _decode_result,
    "reasoningContent": _decode_reasoning,
    "image": _decode_image,
    "document": _decode_document,
    "video": _decode_video,
    "audio": _decode_audio,
    "guardContent": _decode_guard,
    "citationsContent": _decode_cited,
}
