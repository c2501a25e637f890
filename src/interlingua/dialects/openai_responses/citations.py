"""Citations of a text <-> the `annotations` of its content part."""

from __future__ import annotations

from interlingua.dialects.openai_responses.facts import NAME
from interlingua.spec.content import Citation, Json, Text
from interlingua.wire.fields import count, extra_of, text_or_none

_KINDS = ("url_citation", "file_citation", "container_file_citation")


def decode_annotations(items: Json) -> tuple[Citation, ...]:
    """The citations among the annotations."""
    if not isinstance(items, list):
        return ()
    return tuple(
        _decode(item) for item in items if isinstance(item, dict) and item.get("type") in _KINDS
    )


def annotations_of(part: Text) -> list[Json]:
    """The annotations as the API has them: its own, or the citations of another dialect."""
    own = extra_of(part, NAME).get("annotations")
    if isinstance(own, list) and decode_annotations(own) == part.citations:
        return own
    return [_encode(each, len(part.text)) for each in part.citations]


def _decode(item: dict[str, Json]) -> Citation:
    return Citation(
        url=text_or_none(item.get("url")),
        file_id=text_or_none(item.get("file_id")),
        title=text_or_none(item.get("title", item.get("filename"))),
        start=count(item.get("start_index")),
        end=count(item.get("end_index")),
    )


def _encode(citation: Citation, length: int) -> dict[str, Json]:
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
