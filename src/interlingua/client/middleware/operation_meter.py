"""What an operation uses: an estimate before it is performed, and what its result shows."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil
from typing import Any

from msgspec.structs import replace

from interlingua.client.middleware.contract import Call
from interlingua.prepare.images import ANYTHING, AUTO, THOUSAND, in_pixels, parse_pixels
from interlingua.spec.content import Text
from interlingua.spec.modalities.images import ImageInput
from interlingua.spec.operations import OperationInput, OperationResult
from interlingua.spec.request import Request
from interlingua.spec.response import Cost, Usage
from interlingua.tokens.estimate import estimate_request, estimate_tokens
from interlingua.tokens.rates import IMAGE_TOKENS, MOST_IMAGE_TOKENS


def request_of(operation: Call, value: Any) -> Request:
    """A request that names what an operation is for, so that keys can be read from it."""
    request = value
    if not isinstance(request, Request):
        request = Request(
            model=_read(value, "model") or "",
            user=_read(value, "user"),
            session_id=_read(value, "session_id"),
            context=_read(value, "context"),
        )
    return replace(request, provider=operation.provider, request_id=operation.request_id)


_TEXTS = ("input", "inputs", "texts", "prompt", "query", "documents")
"""The fields of values of operations that may have texts."""


def estimate_operation(operation: Call, value: Any) -> int:
    """An estimate of the input tokens of an operation, as far as its value shows texts."""
    if isinstance(value, Request):
        return estimate_request(value, operation.provider)
    texts = (_read(value, name) for name in _TEXTS)
    return sum(_count(each, operation.provider) for each in texts)


def possible_usages(operation: Call, value: Any) -> tuple[Usage, ...]:
    """What an operation uses at most, in each unit in which it may be paid for."""
    expected = value.expected_usage if isinstance(value, OperationInput) else None
    if expected is not None:
        return (expected,)
    tokens = Usage(input_tokens=estimate_operation(operation, value), estimated=True)
    if not isinstance(value, ImageInput):
        return (tokens,)
    count = value.count or 1
    size = parse_pixels(in_pixels(value, ANYTHING).size)
    area = THOUSAND**2 if size is None else size.width * size.height
    most = IMAGE_TOKENS["high"] if value.quality in (None, AUTO) else MOST_IMAGE_TOKENS
    drawn = ceil(count * IMAGE_TOKENS.get(value.quality or "", most) * area / THOUSAND**2)
    made = replace(tokens, output_tokens=drawn, output_image_tokens=drawn)
    sized = None if size is None else str(size)
    by_image = Usage(images=count, media_size=sized, media_quality=value.quality, estimated=True)
    return by_image, made


def result_usage(result: Any) -> Usage | None:
    """The usage that the result of an operation shows; None if it shows none."""
    usage = getattr(result, "usage", None)
    return usage if isinstance(usage, Usage) else None


def metered(result: Any) -> tuple[Usage | None, Cost | None]:
    """The usage and the cost that a result shows; of a job that still runs, none."""
    if isinstance(result, OperationResult) and result.is_final:
        return result.usage, result.cost
    return None, None


def _read(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)


def _count(texts: Any, family: str) -> int:
    if isinstance(texts, str):
        return estimate_tokens(texts, family)
    if isinstance(texts, Text):
        return estimate_tokens(texts.text, family)
    if not isinstance(texts, (list, tuple)):
        return 0
    if texts and type(texts[0]) is int:  # the ids of tokens
        return len(texts)
    return sum(_count(text, family) for text in texts)
