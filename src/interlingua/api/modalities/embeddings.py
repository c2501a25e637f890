"""`embed`, `embed_many`, `similarity` and `rank`."""

from __future__ import annotations

import math
from collections.abc import (
    AsyncIterable,
    AsyncIterator,
    Callable,
    Collection,
    Iterable,
    Mapping,
    Sequence,
)
from operator import mul
from typing import Any, TypeAlias, Unpack

import msgspec
from msgspec.structs import replace

from interlingua.api.modalities.chunks import (
    Splitter,
    check_concurrency,
    join_results,
    split,
    work_on_chunks,
)
from interlingua.api.modalities.perform import MediaCall, MediaOptions
from interlingua.providers.operations import limits_of
from interlingua.providers.usage import estimate_content
from interlingua.runtime.callbacks import settle
from interlingua.spec.check import check_literal, describe, refuse
from interlingua.spec.content import PART_TYPES, Part, Text
from interlingua.spec.errors import ConfigurationError, DecodeError
from interlingua.spec.modalities.embeddings import (
    EmbedContent,
    EmbedInput,
    EmbedResult,
    TaskType,
    VectorEncoding,
    content_size,
)
from interlingua.spec.modalities.judgements import RankedDocument
from interlingua.spec.response import Usage

Embeddable: TypeAlias = str | Part | Sequence[str | Part | int]
"""A text, a part, several parts that get one vector together, or the ids of tokens."""
CONCURRENCY = 4
_MEDIA_TOKENS = 1000
"""Of one image or file, to split calls; what it really has is unknown."""


class EmbedProgress(msgspec.Struct, frozen=True, kw_only=True):
    """How far `embed_many` is; given to `on_progress` after each call."""

    done: int
    """How many inputs have a vector."""
    total: int | None
    """The number of all inputs; None if they have no length."""
    usage: Usage
    """The tokens so far."""


ProgressCallback: TypeAlias = Callable[[EmbedProgress], Any]


async def embed(
    model: str,
    content: Embeddable,
    *,
    task: TaskType | None = None,
    dimensions: int | None = None,
    encoding: VectorEncoding | None = None,
    user: str | None = None,
    **options: Unpack[MediaOptions],
) -> EmbedResult:
    """
    Return the vector of one text, or of parts together.

        result = await embed("openai:text-embedding-3-small", "A red bicycle")
        result.embedding  # array('f', [0.012, …])

    `task` says what the vector is for. Providers that distinguish queries from documents need it
    for good search results.
    """
    call = MediaCall(model, options)
    value = EmbedInput(
        inputs=(_to_content(content, "content"),),
        **_settings(task, dimensions, encoding, user),
        **call.fields(),
    )
    result: EmbedResult = await call.run(call.perform("embed", value))
    return _checked(result, value)


async def embed_many(
    model: str,
    contents: Iterable[Embeddable] | AsyncIterable[Embeddable] | Mapping[str, Embeddable],
    *,
    task: TaskType | None = None,
    dimensions: int | None = None,
    encoding: VectorEncoding | None = None,
    user: str | None = None,
    concurrency: int = CONCURRENCY,
    on_progress: ProgressCallback | None = None,
    **options: Unpack[MediaOptions],
) -> EmbedResult:
    """
    Return the vectors of many texts, in their order.

        result = await embed_many("gemini:gemini-embedding-001", texts, task="document")
        for text, vector in zip(texts, result.embeddings):
            ...

    Of a dict, the values are embedded: `result.by_key` has their vectors by its keys.

    The texts are sent in as few calls as the limits of the provider allow, at most `concurrency` at
    the same time. Each call is retried alone; the first one that still fails ends all. `usage` and
    `cost` are those of all calls.
    """
    check_concurrency(concurrency)
    call = MediaCall(model, options)
    value = EmbedInput(**_settings(task, dimensions, encoding, user), **call.fields())
    work = _EmbedMany(call, call.client.address(value), contents, on_progress)
    return await call.run(work.run(concurrency))


class _EmbedMany:
    """One run of `embed_many`."""

    def __init__(
        self,
        call: MediaCall,
        value: EmbedInput,
        contents: Iterable[object] | AsyncIterable[object],
        on_progress: ProgressCallback | None,
    ) -> None:
        self._call = call
        self._value = value
        self._on_progress = on_progress
        self._keys: tuple[str, ...] = ()
        if isinstance(contents, Mapping):
            self._keys, contents = _read_keys(contents), [*contents.values()]
        self._total, self._contents = _read_contents(contents)
        self._done = 0
        self._usage = Usage()

    async def run(self, concurrency: int) -> EmbedResult:
        value = self._value
        limits = limits_of(self._call.client.adapter(value.provider or ""), "embed", value)
        splitter = Splitter(limits, _byte_size, _estimate)
        chunks = split(self._contents, splitter)
        results = await work_on_chunks(chunks, self._embed, concurrency)
        if not results:
            raise _no_contents()
        vectors = (vector for result in results for vector in result.embeddings)
        return join_results(results, embeddings=tuple(vectors), keys=self._keys)

    async def _embed(self, chunk: list[EmbedContent]) -> EmbedResult:
        value = replace(self._value, inputs=tuple(chunk))
        result = _checked(await self._call.perform("embed", value), value)
        self._done += len(chunk)
        self._usage += result.usage
        if self._on_progress is not None:
            progress = EmbedProgress(done=self._done, total=self._total, usage=self._usage)
            await settle(self._on_progress(progress))
        return result


def _read_keys(contents: Mapping[Any, object]) -> tuple[str, ...]:
    for key in contents:
        if not isinstance(key, str):
            refuse("A key of `contents`", "a string", key)
    return tuple(contents)


def _read_contents(
    contents: object,
) -> tuple[int | None, Iterable[EmbedContent] | AsyncIterable[EmbedContent]]:
    """How many there are, if that is known; and the contents. A collection is checked at once."""
    if isinstance(contents, (str, bytes, *PART_TYPES)) or not isinstance(
        contents, (Iterable, AsyncIterable)
    ):
        raise ConfigurationError(
            f"`contents` must be a list, or another iterable, not {describe(contents)}. "
            "For one text, use `embed`."
        )
    if isinstance(contents, AsyncIterable):
        return None, _read_async(contents)
    if not isinstance(contents, Collection):
        return None, (_to_content(each, f"contents[{i}]") for i, each in enumerate(contents))
    checked = [_to_content(each, f"contents[{i}]") for i, each in enumerate(contents)]
    if not checked:
        raise _no_contents()
    return len(checked), checked


async def _read_async(contents: AsyncIterable[object]) -> AsyncIterator[EmbedContent]:
    index = 0
    async for each in contents:
        yield _to_content(each, f"contents[{index}]")
        index += 1


def _no_contents() -> ConfigurationError:
    return ConfigurationError("`contents` is empty: there is nothing to embed.")


def _to_content(given: object, place: str) -> EmbedContent:
    if isinstance(given, str):
        if not given:
            raise ConfigurationError(f"{place} is an empty text, which has no embedding.")
        return given
    if isinstance(given, PART_TYPES):
        return (given,)
    items = tuple(given) if isinstance(given, Sequence) and not isinstance(given, bytes) else ()
    if items and all(type(item) is int for item in items):
        return items
    if items and any(isinstance(item, PART_TYPES) for item in items):
        parts = tuple(Text(text=item) if isinstance(item, str) else item for item in items)
        if all(isinstance(part, PART_TYPES) for part in parts):
            return parts
    advice = " For several texts, use `embed_many`." if items else ""
    raise ConfigurationError(
        f"{place} must be a text, a part, a list of parts or of the ids of tokens, "
        f"not {describe(given)}.{advice}"
    )


def _settings(
    task: object, dimensions: object, encoding: object, user: str | None
) -> dict[str, Any]:
    for name, given, kind in (("task", task, TaskType), ("encoding", encoding, VectorEncoding)):
        if given is not None:
            check_literal(name, given, kind)
    if dimensions is not None and (type(dimensions) is not int or dimensions < 1):
        refuse("dimensions", "an integer of 1 or more", dimensions)
    return {"task": task, "dimensions": dimensions, "encoding": encoding, "user": user}


def _checked(result: EmbedResult, value: EmbedInput) -> EmbedResult:
    given, count = len(value.inputs), len(result.embeddings)
    if given != count:
        raise DecodeError(
            f"The provider returned {count} embeddings for {given} inputs.",
            provider=result.provider,
            model=value.model,
        )
    for index, vector in enumerate(result.embeddings):
        if not len(vector):
            raise DecodeError(
                f"The provider returned an empty vector for input {index}.",
                provider=result.provider,
                model=value.model,
            )
    return result


def _byte_size(content: EmbedContent) -> int:
    if isinstance(content, str):
        return len(content) if content.isascii() else len(content.encode("utf-8", "replace"))
    return content_size(content)


def _estimate(content: EmbedContent) -> int:
    tokens = estimate_content(content, "")
    return _MEDIA_TOKENS * len(content) if tokens is None else tokens


# Comparing vectors.


def similarity(a: Sequence[float], b: Sequence[float]) -> float:
    """
    Return the cosine of the angle between two vectors: 1 for the same direction, 0 for a right one.

    Raises `ConfigurationError` if they have different numbers of dimensions.
    """
    if len(a) != len(b):
        raise ConfigurationError(
            f"The vectors have {len(a)} and {len(b)} dimensions. Compare only vectors of the same "
            "model and the same `dimensions`."
        )
    lengths = math.sqrt(dot_product(a, a) * dot_product(b, b))
    return max(-1.0, min(1.0, dot_product(a, b) / lengths)) if lengths else 0.0


def rank(
    query: Sequence[float], vectors: Iterable[Sequence[float]], *, top_n: int | None = None
) -> tuple[RankedDocument, ...]:
    """
    Sort vectors by their similarity to a query, the most similar first.

        for match in rank(query.embedding, documents.embeddings, top_n=3):
            print(match.score, texts[match.index])
    """
    ranked = [
        RankedDocument(index=index, score=similarity(query, vector))
        for index, vector in enumerate(vectors)
    ]
    ranked.sort(key=lambda match: -match.score)
    return tuple(ranked[:top_n])


def dot_product(a: Sequence[float], b: Sequence[float]) -> float:
    """The sum of the products of numbers in the same places."""
    return float(sum(map(mul, a, b)))
