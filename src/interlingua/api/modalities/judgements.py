"""`rerank` and `moderate`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias, Unpack

from msgspec.structs import replace

from interlingua.api.modalities.chunks import Splitter, join_results, split, work_on_chunks
from interlingua.api.modalities.perform import MediaCall, MediaOptions
from interlingua.providers.operations import limits_of
from interlingua.spec.check import describe, refuse
from interlingua.spec.content import PART_TYPES, Part, Text
from interlingua.spec.errors import ConfigurationError, DecodeError
from interlingua.spec.modalities.judgements import (
    ModeratedContent,
    ModerateInput,
    ModerationResult,
    RankedDocument,
    RerankInput,
    RerankResult,
)
from interlingua.spec.operations import InputLimits

Moderated: TypeAlias = str | Part | Sequence[str | Part]
"""A text, several texts, or parts that are judged together."""
_CONCURRENCY = 4


async def rerank(
    model: str,
    query: str,
    documents: Iterable[str],
    *,
    top_n: int | None = None,
    **options: Unpack[MediaOptions],
) -> RerankResult:
    """
    Sort documents by their relevance to a query, as a model judges it.

        result = await rerank("cohere:rerank-v3.5", "Who wrote Emma?", documents, top_n=3)
        for document in result.documents:
            print(document.score, document.text)
    """
    call = MediaCall(model, options)
    given = _to_documents(documents)
    text: object = query  # a caller without a type checker may pass anything
    if not isinstance(text, str) or not text:
        raise ConfigurationError(
            f"`query` must be a text that is not empty, not {describe(query)}."
        )
    if top_n is not None and (type(top_n) is not int or top_n < 1):
        refuse("top_n", "an integer of 1 or more", top_n)
    value = RerankInput(query=query, documents=given, top_n=top_n, **call.fields())
    result: RerankResult = await call.run(call.perform("rerank", value))
    return replace(result, documents=tuple(_with_text(each, given) for each in result.documents))


def _to_documents(documents: object) -> tuple[str, ...]:
    if isinstance(documents, (str, bytes)) or not isinstance(documents, Iterable):
        raise ConfigurationError(f"`documents` must be a list of texts, not {describe(documents)}.")
    texts = tuple(documents)
    if not texts:
        raise ConfigurationError("`documents` is empty: there is nothing to rank.")
    for index, text in enumerate(texts):
        if not isinstance(text, str) or not text:
            refuse(("documents", index), "a text that is not empty", text)
    return texts


def _with_text(document: RankedDocument, given: tuple[str, ...]) -> RankedDocument:
    if not 0 <= document.index < len(given):
        raise DecodeError(f"The provider ranked a document {document.index}, which was not given.")
    return replace(document, text=given[document.index])


async def moderate(
    model: str, content: Moderated, **options: Unpack[MediaOptions]
) -> ModerationResult:
    """
    Judge whether a text is harmful, and in which categories.

        result = await moderate("openai:omni-moderation-latest", "I will find you.")
        if result.flagged:
            print(result.results[0].reasons)

    Several texts are judged one by one, in as many calls as are needed; a list with an image is
    judged as one input.
    """
    call = MediaCall(model, options)
    inputs = _to_inputs(content)
    value = ModerateInput(**call.fields())
    return await call.run(_moderate(call, call.client.address(value), inputs))


async def _moderate(
    call: MediaCall, value: ModerateInput, inputs: tuple[ModeratedContent, ...]
) -> ModerationResult:
    async def judge(chunk: list[ModeratedContent]) -> ModerationResult:
        result: ModerationResult = await call.perform(
            "moderate", replace(value, inputs=tuple(chunk))
        )
        if len(result.results) != len(chunk):
            count = len(result.results)
            raise DecodeError(f"The provider returned {count} results for {len(chunk)} inputs.")
        return result

    limits: InputLimits = limits_of(call.client.adapter(value.provider or ""), "moderate", value)
    chunks = split(inputs, Splitter(limits, len, len))
    results = await work_on_chunks(chunks, judge, _CONCURRENCY)
    judgements = (each for result in results for each in result.results)
    return join_results(results, results=tuple(judgements))


def _to_inputs(content: object) -> tuple[ModeratedContent, ...]:
    if isinstance(content, (str, *PART_TYPES)):
        content = (content,)
    items = tuple(content) if isinstance(content, Iterable) else ()
    if items and all(isinstance(item, str) and item for item in items):
        return items
    is_parts = all(
        isinstance(item, PART_TYPES) or (item and isinstance(item, str)) for item in items
    )
    if not items or not is_parts:
        raise ConfigurationError(
            f"`content` must be a text, a list of texts, or parts, not {describe(content)}."
        )
    return (tuple(Text(text=item) if isinstance(item, str) else item for item in items),)
