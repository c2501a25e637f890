"""Parts and citations <-> content blocks."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias, assert_never

from msgspec.structs import replace

from interlingua.dialects.anthropic_messages.facts import NAME, extra_for
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
from interlingua.wire.fields import Fields, extra_of, restore, text_or_none, wrong_type
from interlingua.wire.json_text import dump_text
from interlingua.wire.media import (
    decode_base64,
    decode_text,
    encode_base64,
    is_text_type,
    media_type_for,
    parse_data_url,
)
from interlingua.wire.tool_calls import input_object

Block: TypeAlias = dict[str, Json]

_CITATIONS = "citations"
_PLAIN = "text/plain"


def decode_content(content: UncheckedJson, path: str) -> tuple[Part, ...]:
    """
    Return the parts of a content; a string stands for one text block.

    Blank text gets a key in `extra`, by which a rule of history knows the model's own and returns
    it. Recorded: a text of two line ends before thinking, whose place in a message must not change.
    """
    if isinstance(content, str):
        return (Text(text=content, extra={NAME: {}} if content.isspace() else {}),)
    if not isinstance(content, list):
        raise wrong_type(path, "text or an array of blocks", content)
    return tuple(decode_part(block, f"{path}[{i}]") for i, block in enumerate(content))


def decode_part(block: UncheckedJson, path: str = "") -> Part:
    """Return the part of a block; a block of an unknown type is carried verbatim."""
    if not isinstance(block, dict):
        raise wrong_type(path, "a content block", block)
    kind = block.get("type")
    decode = _DECODERS.get(kind) if isinstance(kind, str) else None
    if decode is None:
        from interlingua.dialects.anthropic_messages.tools import hosted_use

        return replace(hosted_use(block), loaded_tools=_loaded_tools(block))
    fields = Fields(block, path)
    del fields.left["type"]
    return decode(fields) or Opaque(dialect=NAME, data=block)


def _loaded_tools(block: Block) -> tuple[str, ...]:
    """
    Return the deferred tools that a block makes available.

    A search of the API lists them; a search that the caller runs returns one reference for each.
    """
    match block:
        case {"type": "tool_reference", "tool_name": str(name)}:
            return (name,)
        case {"type": "tool_search_tool_result", "content": {"tool_references": list(references)}}:
            blocks = [each for each in references if isinstance(each, dict)]
            return tuple(name for each in blocks for name in _loaded_tools(each))
    return ()


def read_part(block: UncheckedJson) -> Part:
    """Return the part of a block of a response; a malformed block is carried verbatim."""
    try:
        return decode_part(block)
    except DecodeError:
        return Opaque(dialect=NAME, data=block)


def _decode_text(fields: Fields) -> Part:
    text, unread = fields.need("text"), fields.left
    # A key in `extra` marks blank text as the model's own, see `decode_content`.
    if not unread:
        return Text(text=text, extra={NAME: {}} if text.isspace() else {})
    citations = decode_citations(unread["citations"]) if "citations" in unread else ()
    return Text(text=text, citations=citations, extra={NAME: unread})


def _decode_thinking(fields: Fields) -> Part:
    # With `display: "omitted"` the text is empty and the signature is all that there is to return.
    text = fields.text("thinking") or ""
    return Thinking(text=text, signature=fields.text("signature"), extra={NAME: fields.left})


def _decode_redacted(fields: Fields) -> Part:
    return Thinking(redacted=True, data=fields.text("data"), extra={NAME: fields.left})


def _decode_tool_use(fields: Fields) -> Part:
    return ToolCall(
        id=fields.need("id"),
        name=fields.need("name"),
        arguments=fields.arguments("input"),
        extra=extra_for(fields.left),
    )


def _decode_tool_result(fields: Fields) -> Part:
    call_id = fields.need("tool_use_id")
    content = fields.take("content")
    if content is None:
        content = ()
    elif not isinstance(content, str):
        content = decode_content(content, fields.at("content"))
    # An explicit `false` stays unread, so that it is written again.
    is_error = fields.left.get("is_error") is True and fields.take("is_error")
    return ToolResult(
        tool_call_id=call_id, content=content, is_error=is_error, extra=extra_for(fields.left)
    )


def _decode_image(fields: Fields) -> Part | None:
    source = _decode_source(fields)
    if source is None or "text" in source:
        return None
    return Image(**source, extra=extra_for(fields.left))


def _decode_document(fields: Fields) -> Part | None:
    source = _decode_source(fields)
    if source is None:
        return None
    return Document(**source, file_name=fields.text("title"), extra=extra_for(fields.left))


def _decode_source(fields: Fields) -> dict[str, Any] | None:
    """
    Return the fields of the part that has a source; None if the part could not be written back.

    So a source with unknown fields, or with base64 in an unusual form, is carried verbatim.
    """
    match fields.object("source"):
        case {"type": "url", "url": str(url), **rest} if not rest:
            return {"url": url}
        case {"type": "file", "file_id": str(file_id), **rest} if not rest:
            return {"file_id": file_id}
        case {"type": "text", "media_type": "text/plain", "data": str(text), **rest} if not rest:
            return {"text": text, "media_type": _PLAIN}
        case {"type": "base64", "media_type": str(media_type), "data": str(text), **rest} if (
            not rest
        ):
            data = decode_base64(text)
            if data is not None and encode_base64(data) == text:
                return {"data": data, "media_type": media_type}
    return None


_DECODERS: dict[str, Callable[[Fields], Part | None]] = {
    "text": _decode_text,
    "thinking": _decode_thinking,
    "redacted_thinking": _decode_redacted,
    "tool_use": _decode_tool_use,
    "tool_result": _decode_tool_result,
    "image": _decode_image,
    "document": _decode_document,
}


def encode_part(part: Part, warnings: WarningList) -> Block | None:
    """Return the block of a part; None, with a warning, if the API has none for it."""
    match part:
        case Text():
            return _encode_text(part)
        case ToolCall():
            return _encode_tool_use(part)
        case ToolResult():
            return _encode_tool_result(part, warnings)
        case Thinking():
            return _encode_thinking(part, warnings)
        case Image() | Document():
            return _encode_media(part, warnings)
        case Refusal():
            warnings.add_here("refusal_as_text")
            return {"type": "text", "text": part.text}
        case Opaque():
            return _encode_opaque(part, warnings)
        case Audio():
            warnings.media_dropped(part.kind, "audio input")
            return None
    assert_never(part)


def _encode_text(part: Text) -> Block:
    block: Block = {"type": "text", "text": part.text}
    return restore(block, part, NAME) if part.extra else block


def _encode_tool_use(call: ToolCall) -> Block:
    # Unlike the argument text of other APIs, `input` is an object.
    block: Block = {
        "type": "tool_use",
        "id": call.id,
        "name": call.name,
        "input": input_object(call),
    }
    return restore(block, call, NAME) if call.extra else block


def _encode_tool_result(result: ToolResult, warnings: WarningList) -> Block:
    block: Block = {"type": "tool_result", "tool_use_id": result.tool_call_id}
    content = result.content
    if isinstance(content, str):
        block["content"] = content
    elif not isinstance(content, tuple):
        block["content"] = dump_text(content)  # the API takes text or blocks, not any JSON
    elif content:
        encode = partial(encode_part, warnings=warnings)
        block["content"] = encode_result_parts(content, encode, warnings)
    if result.is_error:
        block["is_error"] = True
    return restore(block, result, NAME) if result.extra else block


def _encode_thinking(part: Thinking, warnings: WarningList) -> Block | None:
    """Return the block of this API's own thinking: the API checks the signature."""
    if not is_native(part):
        reason = f"{warnings.target} accepts only its own thinking"
        warnings.add_here("foreign_thinking_dropped", reason=reason)
        return None
    if part.redacted:
        return restore({"type": "redacted_thinking", "data": part.data}, part, NAME)
    block: Block = {"type": "thinking", "thinking": part.text}
    if part.signature is not None:
        block["signature"] = part.signature
    return restore(block, part, NAME)


def show_text(part: Text) -> Block:
    """
    Return the text of any model, with its citations, as a block of a response.

    A request must not have citations: the API refuses them in messages of the user, and takes in
    messages of the assistant only its own, which are in `extra`.
    """
    block = _encode_text(part)
    if part.citations:
        block["citations"] = citations_of(part)
    return block


def show_thinking(part: Thinking) -> Block | None:
    """
    Return the thinking of any model as a block of a response.

    Clients require a signature (`ThinkingBlock`); the thinking of another model gets an empty one.
    """
    if is_native(part):
        return _encode_thinking(part, WarningList())
    if part.redacted or not part.text:
        return None
    return {"type": "thinking", "thinking": part.text, "signature": ""}


def is_native(part: Thinking) -> bool:
    """Return whether the thinking is this API's own; a signature without `extra` is proof."""
    return NAME in part.extra or (not part.extra and bool(part.signature or part.redacted))


def _encode_media(part: Image | Document, warnings: WarningList) -> Block | None:
    source = _encode_source(part, warnings)
    if source is None:
        return None
    block: Block = {"type": part.kind, "source": source}
    if isinstance(part, Document) and part.file_name is not None:
        block["title"] = part.file_name
    if isinstance(part, Image) and part.detail not in (None, "auto"):
        warnings.add_here("detail_dropped")  # `ImageBlockParam` has no such setting
    return restore(block, part, NAME)


def _encode_source(part: Image | Document, warnings: WarningList) -> Block | None:
    data, media_type = part.data, part.media_type
    if part.url is not None:
        inline = parse_data_url(part.url)
        if inline is None and isinstance(part, Document) and _is_text_url(part.url, media_type):
            warnings.media_dropped(part.kind, "text documents by URL")
            return None
        if inline is None:
            return {"type": "url", "url": part.url}
        data, media_type = inline[0], media_type or inline[1]
    if part.file_id is not None:
        return {"type": "file", "file_id": part.file_id}
    if isinstance(part, Document) and part.text is not None:
        return _encode_text_source(part.text, media_type, warnings)
    if data is None:
        warnings.media_dropped(part.kind, f"{part.kind} without a source")
        return None
    # `Base64PDFSource` has only the media type of PDF files; text files have a source of their own.
    default = "image/png" if isinstance(part, Image) else "application/pdf"
    media_type = media_type or media_type_for(data, getattr(part, "file_name", None), default)
    if isinstance(part, Image) or not is_text_type(media_type):
        return {"type": "base64", "media_type": media_type, "data": encode_base64(data)}
    text = decode_text(data)
    if text is None:
        warnings.media_dropped(part.kind, "text that is not UTF-8")
        return None
    return _encode_text_source(text, media_type, warnings)


def _is_text_url(url: str, media_type: str | None) -> bool:
    """Return whether a URL is of a text file: the API fetches only images and PDF files."""
    return is_text_type(media_type or media_type_for(b"", url.partition("?")[0]))


def _encode_text_source(text: str, media_type: str | None, warnings: WarningList) -> Block:
    """Return the source of a text document; `PlainTextSource` has only one media type."""
    if media_type not in (None, _PLAIN):
        warnings.add_here("document_as_plain_text", media_type=media_type)
    return {"type": "text", "media_type": _PLAIN, "data": text}


def _encode_opaque(part: Opaque, warnings: WarningList) -> Block | None:
    if part.dialect == NAME and isinstance(part.data, dict):
        return part.data
    warnings.add_here("foreign_block_dropped", owner=part.dialect)
    return None


# Citations.


def decode_citations(items: Json) -> tuple[Citation, ...]:
    """Return the citations of a block: the API splits a text so that each is for a whole block."""
    if not isinstance(items, list):
        return ()
    return tuple(_decode_citation(item) for item in items if isinstance(item, dict))


def citations_of(part: Text) -> list[Json]:
    """Return the API's own citations, or another dialect's citations in the form of the API."""
    own = extra_of(part, NAME).get(_CITATIONS)
    if isinstance(own, list) and decode_citations(own) == part.citations:
        return own
    return [_encode_citation(each) for each in part.citations]


def _decode_citation(item: dict[str, Json]) -> Citation:
    index = item.get("document_index")
    # Five types: of a page of the web, of a search result (`source`), and of a document by its
    # characters, pages or blocks (`document_index`, `document_title`).
    return Citation(
        url=text_or_none(item.get("url", item.get("source"))),
        file_id=text_or_none(item.get("file_id")),
        document=index if type(index) is int else None,
        title=text_or_none(item.get("title", item.get("document_title"))),
        quote=text_or_none(item.get("cited_text")),
    )


def _encode_citation(citation: Citation) -> dict[str, Json]:
    # Clients check the fields of a type, so required ones that we do not know have empty values.
    quote = citation.quote or ""
    if citation.url is not None:
        return {
            "type": "web_search_result_location",
            "url": citation.url,
            "title": citation.title,
            "cited_text": quote,
            "encrypted_index": "",
        }
    return {
        "type": "char_location",
        "document_index": citation.document or 0,
        "document_title": citation.title,
        "file_id": citation.file_id,
        "cited_text": quote,
        "start_char_index": 0,
        "end_char_index": len(quote),
    }
