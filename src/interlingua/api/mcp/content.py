"""Results of MCP tools -> tool results."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from interlingua.spec.content import Json, Part, Text, ToolResult
from interlingua.spec.errors import DecodeError
from interlingua.wire.jsontext import dumps, loads

if TYPE_CHECKING:
    from mcp_types import CallToolResult

_KEY = "mcp"
"""Under this key of `extra` a part keeps what it says beyond its content: address, annotations."""


def decode_result(result: CallToolResult, name: str) -> ToolResult:
    """
    What a tool gave, as text, JSON or parts; an error stays one.

    Structured content is JSON, and text that only repeats it is left out. `{"result": …}`, in
    which servers wrap what is no object, is taken off where the text says the same without it.
    """
    blocks = [_dump(block) for block in result.content]
    parts = tuple(_decode_block(block) for block in blocks)
    content = _join(parts, result.structured_content)
    if result.is_error and content in ((), ""):
        content = "the tool failed and gave no reason"
    return ToolResult(tool_call_id="", name=name, content=content, is_error=result.is_error)


def _join(parts: tuple[Part, ...], structured: Json) -> str | Json | tuple[Part, ...]:
    if structured is None:
        return parts[0].text if _is_plain(parts) and len(parts) == 1 else parts
    texts = [part.text for part in parts if isinstance(part, Text)]
    only = list(structured) == ["result"] if isinstance(structured, dict) else False
    if only and _repeats(texts, structured["result"]):
        structured = structured["result"]
    elif texts and not _repeats(texts, structured):
        return (*parts, Text(text=dumps(structured)))
    if _is_plain(parts):
        return structured
    others = tuple(part for part in parts if not isinstance(part, Text))
    return (Text(text=structured if isinstance(structured, str) else dumps(structured)), *others)


def _is_plain(parts: tuple[Part, ...]) -> bool:
    return all(isinstance(part, Text) and not part.extra for part in parts)


def _repeats(texts: list[str], value: Json) -> bool:
    if len(texts) == 1 and (texts[0] == value or _read(texts[0]) == value):
        return True
    return isinstance(value, list) and len(texts) == len(value) and _items(texts) == value


def _items(texts: list[str]) -> list[Json]:
    return [_read(text) for text in texts]


def _read(text: str) -> Json:
    try:
        return loads(text)
    except DecodeError:
        return text


def _dump(block: Any) -> dict[str, Any]:
    dumped: dict[str, Any] = block.model_dump(mode="json", by_alias=True, exclude_none=True)
    return dumped


def _decode_block(block: dict[str, Any]) -> Part:
    match block:
        case {"type": "text", "text": str(text)}:
            return Text(text=text, extra=_kept(block, "text"))
        case {"type": "image" | "audio", "data": str(coded)}:
            return _decode_media(block, coded, block.get("mimeType"), _kept(block, "data"))
        case {"type": "resource", "resource": {"text": str(text)} as resource}:
            # Not a document: a provider that reads no such file would read nothing at all.
            return Text(text=text, extra=_kept(block, "resource") | _kept(resource, "text"))
        case {"type": "resource", "resource": {"blob": str(coded)} as resource}:
            kept = _merge(_kept(block, "resource"), _kept(resource, "blob"))
            return _decode_media(block, coded, resource.get("mimeType"), kept)
        case {"type": "resource_link", "uri": str(uri)}:
            return Text(text=_link(block, uri), extra={_KEY: block})
        case _:
            return Text(text=dumps(block), extra={_KEY: block})
