"""
What a choice says about its text, for readers: sources and probabilities of tokens.

Citations <-> the `annotations` of a message. Perplexity lists the addresses of all sources in
`citations` of the body instead; the text refers to them by number.
Probabilities of tokens <-> the `logprobs` of a choice: a list for each kind of text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from interlingua.dialects.openai_shared.logprobs import read_tokens, write_tokens
from interlingua.spec.content import (
    Citation,
    Json,
    Part,
    Refusal,
    Text,
    Thinking,
    TokenLogprob,
)
from interlingua.wire.fields import count, text_or_none

ANNOTATIONS = "annotations"
_LINKS = "citations"
_KIND = "url_citation"
LOGPROBS = "logprobs"
_LISTS: dict[str, type[Text | Refusal | Thinking]] = {
    "content": Text,
    "refusal": Refusal,
    "reasoning_content": Thinking,  # DeepSeek's
}

# Citations.


def read_citations(message: Mapping[str, Json], body: Mapping[str, Json]) -> tuple[Citation, ...]:
    """The citations of a message, from the fields of the message and of the whole body."""
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


# Probabilities of tokens.


def read_logprobs(
    choice: Mapping[str, Json], places: Mapping[type[Part], int]
) -> dict[int, tuple[TokenLogprob, ...]]:
    """The tokens of each part, by its place; `places` has the last part of each kind."""
    lists = choice.get(LOGPROBS)
    if not isinstance(lists, dict):
        return {}
    found = {places.get(kind): read_tokens(lists.get(name)) for name, kind in _LISTS.items()}
    return {place: tokens for place, tokens in found.items() if place is not None and tokens}


def with_logprobs(parts: tuple[Part, ...], choice: Mapping[str, Json]) -> tuple[Part, ...]:
    """The parts, with the tokens on the last one of each kind."""
    found = read_logprobs(choice, {type(part): place for place, part in enumerate(parts)})
    if not found:
        return parts
    return tuple(
        replace(part, logprobs=found[place]) if place in found else part
        for place, part in enumerate(parts)
    )


def set_logprobs(choice: dict[str, Json], parts: Sequence[Part]) -> None:
    """Give a choice the tokens of its parts; lists of the server with the same tokens stay."""
    tokens = {place: each for place, part in enumerate(parts) if (each := _tokens(part))}
    places = {type(part): place for place, part in enumerate(parts)}
    if (tokens or choice.get(LOGPROBS)) and read_logprobs(choice, places) != tokens:
        choice[LOGPROBS] = _write_lists(parts)


def _tokens(part: Part) -> tuple[TokenLogprob, ...]:
    return part.logprobs if isinstance(part, (Text, Refusal, Thinking)) else ()


def _write_lists(parts: Sequence[Part]) -> dict[str, Json] | None:
    """The lists for the tokens of the parts; None if no part has tokens."""
    tokens: dict[type[Part], list[TokenLogprob]] = {}
    for part in parts:
        if each := _tokens(part):
            tokens.setdefault(type(part), []).extend(each)
    if not tokens:
        return None
    lists: dict[str, Json] = {
        name: write_tokens(tokens[kind], with_bytes=False)
        for name, kind in _LISTS.items()
        if kind in tokens
    }
    return {"content": None, "refusal": None, **lists}
