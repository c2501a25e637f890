"""Citations of a text <-> the `citations` of its block."""

from __future__ import annotations

from interlingua.dialects.anthropic_messages.facts import NAME
from interlingua.spec.content import Citation, Json, Text
from interlingua.wire.fields import extra_of, text_or_none

_CITATIONS = "citations"


def decode_citations(items: Json) -> tuple[Citation, ...]:
    """The citations of a block; each of them is for the whole text."""
    if not isinstance(items, list):
        return ()
    return tuple(_decode(item) for item in items if isinstance(item, dict))


def citations_of(part: Text) -> list[Json]:
    """The citations as the API has them: its own, or those of another dialect in its form."""
    own = extra_of(part, NAME).get(_CITATIONS)
    if isinstance(own, list) and decode_citations(own) == part.citations:
        return own
    return [_encode(each) for each in part.citations]


def _decode(item: dict[str, Json]) -> Citation:
    index = item.get("document_index")
    return Citation(
        url=text_or_none(item.get("url", item.get("source"))),
        file_id=text_or_none(item.get("file_id")),
        document=index if type(index) is int else None,
        title=text_or_none(item.get("title", item.get("document_title"))),
        quote=text_or_none(item.get("cited_text")),
    )


def _encode(citation: Citation) -> dict[str, Json]:
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
