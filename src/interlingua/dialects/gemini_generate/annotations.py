"""
What a candidate says about its texts: citations and probabilities of tokens.

Citations are in `groundingMetadata` and `citationMetadata`, tokens in `logprobsResult`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec.structs import replace

from interlingua.spec.content import Citation, Json, Part, Text, TokenLogprob
from interlingua.wire.fields import count, is_number, text_or_none

GROUNDING = "groundingMetadata"
_SOURCES = "citationMetadata"
LOGPROBS = "logprobsResult"
_CHOSEN = "chosenCandidates"
_TOP = "topCandidates"
_EACH = "candidates"
_CHUNK_KINDS = ("web", "retrievedContext", "maps", "image")


# Citations. The API counts the bytes of the text in UTF-8 («measured in bytes»); ours are
# characters.


def read_citations(
    candidate: Mapping[str, Json], texts: Mapping[int, str]
) -> dict[int, tuple[Citation, ...]]:
    """The citations of each text, by its index among the parts."""
    by_text: dict[int, list[Citation]] = {}
    if not texts:
        return {}
    for place, citation in (*_supported(candidate.get(GROUNDING)), *_sources(candidate)):
        # The index of a part may count thoughts, or be left out: then it is the first text.
        index = place if place in texts else next(iter(texts))
        by_text.setdefault(index, []).append(_in_characters(citation, texts[index]))
    return {index: tuple(citations) for index, citations in by_text.items()}


def with_citations(candidate: Mapping[str, Json], parts: tuple[Part, ...]) -> tuple[Part, ...]:
    """The parts, with the citations on their texts."""
    if GROUNDING not in candidate and _SOURCES not in candidate:
        return parts
    texts = {i: part.text for i, part in enumerate(parts) if isinstance(part, Text)}
    citations = read_citations(candidate, texts)
    return tuple(
        replace(part, citations=citations[i]) if i in citations else part
        for i, part in enumerate(parts)
    )


def write_grounding(texts: Sequence[tuple[int, Text]]) -> dict[str, Json]:
    """The metadata for the citations of these texts, which are at these places."""
    sources: dict[Citation, int] = {}
    supports: list[Json] = []
    for place, text in texts:
        for citation in text.citations:
            source = replace(citation, start=None, end=None)
            number = sources.setdefault(source, len(sources))
            segment = _segment(citation, text, place)
            supports.append({"segment": segment, "groundingChunkIndices": [number]})
    return {"groundingChunks": [*map(_chunk, sources)], "groundingSupports": supports}


def _chunk(source: Citation) -> dict[str, Json]:
    if source.url is not None:
        return {"web": {"uri": source.url, "title": source.title}}
    title = source.title or source.file_id or f"document {source.document or 0}"
    return {"retrievedContext": {"title": title, "text": source.quote}}


def _supported(grounding: Json) -> Iterator[tuple[int, Citation]]:
    if not isinstance(grounding, dict):
        return
    chunks = grounding.get("groundingChunks")
    sources = [_source(chunk) for chunk in chunks] if isinstance(chunks, list) else []
    supports = grounding.get("groundingSupports")
    items = supports if isinstance(supports, list) else []
    for item in items:
        segment = item.get("segment") if isinstance(item, dict) else None
        numbers = item.get("groundingChunkIndices") if isinstance(item, dict) else None
        segment = segment if isinstance(segment, dict) else {}
        start, end = count(segment.get("startIndex")), count(segment.get("endIndex"))
        for number in numbers if isinstance(numbers, list) else ():
            if isinstance(number, int) and 0 <= number < len(sources):
                place = count(segment.get("partIndex")) or 0
                yield place, replace(sources[number], start=start, end=end)
    if not items:  # sources without a place in the text support all of it
        for source in sources:
            yield 0, source


def _source(chunk: Json) -> Citation:
    kinds = [chunk.get(kind) for kind in _CHUNK_KINDS] if isinstance(chunk, dict) else []
    inner = next((each for each in kinds if isinstance(each, dict)), {})
    return Citation(
        url=text_or_none(inner.get("uri")),
        title=text_or_none(inner.get("title")),
        quote=text_or_none(inner.get("text")),
    )


def _sources(candidate: Mapping[str, Json]) -> Iterator[tuple[int, Citation]]:
    """The sources that the text repeats, such as licensed code."""
    metadata = candidate.get(_SOURCES)
    if not isinstance(metadata, dict):
        return
    # The first name is of the Gemini API, the second of Vertex AI.
    items = metadata.get("citationSources", metadata.get("citations"))
    for item in items if isinstance(items, list) else ():
        if isinstance(item, dict):
            yield (
                0,
                Citation(
                    url=text_or_none(item.get("uri")),
                    title=text_or_none(item.get("title")),
                    start=count(item.get("startIndex")),
                    end=count(item.get("endIndex")),
                ),
            )


def _in_characters(citation: Citation, text: str) -> Citation:
    if citation.end is None or text.isascii():
        return citation
    data = text.encode("utf-8", "surrogatepass")
    start, end = (
        None if place is None else len(data[:place].decode("utf-8", "ignore"))
        for place in (citation.start, citation.end)
    )
    return replace(citation, start=start, end=end)


def _segment(citation: Citation, text: Text, place: int) -> dict[str, Json]:
    start = citation.start or 0
    end = len(text.text) if citation.end is None else citation.end
    before, inside = text.text[:start], text.text[start:end]
    first = len(before.encode("utf-8", "replace"))
    return {
        "partIndex": place,
        "startIndex": first,
        "endIndex": first + len(inside.encode("utf-8", "replace")),
        "text": inside,
    }


# Probabilities of tokens.


def read_logprobs(candidate: Mapping[str, Json]) -> tuple[TokenLogprob, ...]:
    """The tokens of the answer; none of them if one cannot be read."""
    result = candidate.get(LOGPROBS)
    if not isinstance(result, dict):
        return ()
    chosen = _read_tokens(result.get(_CHOSEN))
    top = result.get(_TOP)
    if not isinstance(top, list) or len(top) != len(chosen):  # they are matched by place
        return chosen
    inner = [each.get(_EACH) if isinstance(each, dict) else None for each in top]
    return tuple(
        replace(token, top=_read_tokens(each)) for token, each in zip(chosen, inner, strict=True)
    )


def with_logprobs(candidate: Mapping[str, Json], parts: tuple[Part, ...]) -> tuple[Part, ...]:
    """The parts, with the tokens on the last text."""
    places = [place for place, part in enumerate(parts) if isinstance(part, Text)]
    tokens = read_logprobs(candidate) if places else ()
    if not tokens:
        return parts
    last = places[-1]
    return (*parts[:last], replace(parts[last], logprobs=tokens), *parts[last + 1 :])


def set_logprobs(candidate: dict[str, Json], texts: Sequence[Text]) -> None:
    """Give a candidate the tokens of its texts; the vendor's own stay if they are the same."""
    tokens = tuple([token for text in texts for token in text.logprobs])
    if not tokens and not candidate.get(LOGPROBS):
        return
    if read_logprobs(candidate) == tokens or not texts:
        return
    if tokens:
        candidate[LOGPROBS] = _write_result(tokens)
    else:
        del candidate[LOGPROBS]


def _write_result(tokens: Sequence[TokenLogprob]) -> dict[str, Json]:
    result: dict[str, Json] = {_CHOSEN: [*map(_write, tokens)]}
    if any(token.top for token in tokens):
        result[_TOP] = [{_EACH: [*map(_write, token.top)]} for token in tokens]
    return result


def join_logprobs(known: dict[str, Json], result: Json) -> None:
    """Add what one frame of a stream has: the tokens of its own text."""
    for name, value in result.items() if isinstance(result, dict) else ():
        if isinstance(value, list):
            tokens = known.get(name)
            if not isinstance(tokens, list):
                tokens = known[name] = []
            tokens += value
        else:
            known[name] = value


def _read_tokens(items: Json) -> tuple[TokenLogprob, ...]:
    tokens = [_read(item) for item in items] if isinstance(items, list) else []
    return tuple([token for token in tokens if token]) if all(tokens) else ()


def _read(item: Json) -> TokenLogprob | None:
    match item:
        case {"token": str(token), "logProbability": logprob} if is_number(logprob):
            return TokenLogprob(token=token, logprob=logprob)
    return None


def _write(token: TokenLogprob) -> dict[str, Json]:
    return {"token": token.token, "logProbability": token.logprob}
