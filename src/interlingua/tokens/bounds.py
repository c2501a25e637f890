"""
How far the true number of input tokens may be from an estimate.

`scripts/token_rates.py` measures it: a bound holds for at least 97 of 100 recorded requests of its
kind that no rate was fitted to. What a provider's own tools read is in no request, and the size of
a document is often unknown, so some kinds have no upper bound.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import ceil, floor
from typing import Literal, NamedTuple, TypeAlias

from interlingua.spec.content import Audio, Document, Image, Opaque, Part, ToolResult
from interlingua.spec.request import BuiltinTool, Request
from interlingua.tokens.estimate import estimate_request
from interlingua.tokens.fitted import BOUNDS, SLACK

Kind: TypeAlias = Literal[
    "text", "tools", "schema", "images", "documents", "sound and video", "hosted tools"
]
KINDS: tuple[Kind, ...] = (
    "text", "tools", "schema", "images", "documents", "sound and video", "hosted tools",
)  # fmt: skip
"""What decides how exact an estimate is; of several that a request has, the last counts."""


_HOSTED = frozenset(
    (
        *("mcp_servers", "container", "context_management", "cachedContent", "background"),
        *("previous_response_id", "conversation", "prompt"),
        *("web_search_options", "plugins", "search_parameters", "venice_parameters"),
    )
)
"""Options of the vendors with which a provider adds input of its own, such as stored turns."""


class TokenBounds(NamedTuple):
    """An estimate of the input tokens of a request, and between what the true number is."""

    estimate: int
    lower: int
    upper: int | None
    """None if no bound holds, as with hosted tools and documents."""
    kind: Kind


def bound_tokens(request: Request, family: str = "", *, only_known: bool = False) -> TokenBounds:
    """Estimate the input tokens of a request, with bounds; see `estimate_request`."""
    kind = kind_of(request)
    return bounds_of(estimate_request(request, family, only_known=only_known), kind)


def bounds_of(estimate: int, kind: Kind) -> TokenBounds:
    """The bounds of an estimate for a request of this kind."""
    lower, upper = BOUNDS[kind]
    least = max(0, floor(lower * estimate - SLACK))
    most = None if upper is None else ceil(upper * estimate + SLACK)
    return TokenBounds(estimate, least, most, kind)


def kind_of(request: Request) -> Kind:
    """What decides how exact the estimate for a request is."""
    kinds = {_kind_of_part(part) for part in _parts(request)}
    if request.tools:
        kinds.add("tools")
    is_hosted = any(isinstance(tool, BuiltinTool) for tool in request.tools)
    if is_hosted or any(_HOSTED & options.keys() for options in _options(request)):
        kinds.add("hosted tools")
    if request.response_format is not None and request.response_format.json_schema is not None:
        kinds.add("schema")
    return max(kinds, key=KINDS.index, default="text")


def _options(request: Request) -> Iterator[Mapping[str, object]]:
    for options in request.provider_options.values():
        if isinstance(options, Mapping):
            yield options


def _parts(request: Request) -> Iterator[Part]:
    for message in request.messages:
        for part in message.content:
            yield part
            if isinstance(part, ToolResult) and isinstance(part.content, tuple):
                yield from part.content


def _kind_of_part(part: Part) -> Kind:
    if isinstance(part, Image):
        return "images"
    if isinstance(part, Document) and part.text is None:
        is_video = (part.media_type or "").startswith("video/")
        return "sound and video" if is_video else "documents"
    if isinstance(part, Audio):
        return "sound and video"
    return "hosted tools" if isinstance(part, Opaque) else "text"
