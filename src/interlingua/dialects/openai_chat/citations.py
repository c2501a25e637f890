"""
Citations of the text <-> the `annotations` of a message.

Perplexity lists the addresses of all sources in `citations` of the body instead; the text refers to
them by number.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from interlingua.spec.content import Citation, Json, Part, Text
from interlingua.wire.fields import count, text_or_none

ANNOTATIONS = "annotations"
_LINKS = "citations"
_KIND = "url_citation"


def read_citations(message: Mapping[str, Json], body: Mapping[str, Json]) -> tuple[Citation, ...]:
    """The citations of a message, from its fields and those of the whole body."""
    items = message.get(ANNOTATIONS)
    if isinstance(items, list):
        found = [item.get(_KIND) for item in items if isinstance(item, dict)]
        return tuple(_decode(each) for each in found if isinstance(each, dict))
    links = body.get(_LINKS)
    if not isinstance(links, list):
        return ()
    return tuple(Citation(url=link) for link in links if isinstance(link, str))


def with_citations(parts: tuple[Part, ...], citations: tuple[Citation, ...]) -> tuple[Part, ...]:
    """The parts, with the citations on the text."""
    place = cited_text(parts)
    if not citations or place is None:
        return parts
    text = replace(parts[place], citations=citations)
    return (*parts[:place], text, *parts[place + 1 :])


def cited_text(parts: Sequence[Part]) -> int | None:
    """The place of the text that the annotations of a message are about: the last one."""
    places = [i for i, part in enumerate(parts) if isinstance(part, Text)]
    return places[-1] if places else None


def write_annotations(texts: Sequence[Text]) -> list[Json]:
    """The annotations of a message whose content is these texts."""
    items: list[Json] = []
    before = 0
    for text in texts:
        items += [
            _encode(each, before, len(text.text)) for each in text.citations if each.url is not None
        ]
        before += len(text.text)
    return items


def _decode(item: dict[str, Json]) -> Citation:
    return Citation(
        url=text_or_none(item.get("url")),
        title=text_or_none(item.get("title")),
        quote=text_or_none(item.get("content")),
        start=count(item.get("start_index")),
        end=count(item.get("end_index")),
    )


def _encode(citation: Citation, before: int, length: int) -> dict[str, Json]:
    inner: dict[str, Json] = {
        "url": citation.url,
        "title": citation.title or citation.url,
        "start_index": before + (citation.start or 0),
        "end_index": before + (length if citation.end is None else citation.end),
    }
    return {"type": _KIND, _KIND: inner}
