"""The options of an adapter: defaults under the request, which is under its provider options."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from interlingua.prepare.options import AUTO_CACHE, TOOLS
from interlingua.spec.content import Json
from interlingua.spec.contracts import NEUTRAL_PROFILE, Dialect, Profile
from interlingua.spec.messages import Message
from interlingua.spec.request import Request

_PROMPTS = ("system", "developer")


def under_request(
    options: Mapping[str, Any], request: Request, profile: Profile, dialect: Dialect
) -> dict[str, Any]:
    """
    The default options without the fields of the body that the request itself sets.

    Only the encoder knows which they are: they differ between the body of this request and that
    of an empty one. A field that the encoder writes by itself, such as a default, is in both.
    """
    no_cache = {dialect.NAME: {AUTO_CACHE: False}}  # cache keys differ for other reasons
    prompts = any(message.role in _PROMPTS for message in request.messages)
    system = (Message.system("a"),) if prompts else ()
    own = replace(request, messages=(*system, Message.user("a")), provider_options=no_cache)
    limit = None
    if request.max_tokens is not None:  # it may equal the default of the encoder
        limit = 2 if request.max_tokens == 1 else 1
    empty = Request(
        model=f"{request.model}-",
        messages=(Message.user("b"),),
        max_tokens=limit,
        provider_options=no_cache,
    )
    left, has_losses = _compare(options, own, empty, profile, dialect)
    if has_losses:  # a setting that the profile drops is the request's all the same
        neutral = replace(NEUTRAL_PROFILE, dialect=profile.dialect, quirks=profile.quirks)
        left, _ = _compare(left, own, empty, neutral, dialect)
    return left


def _compare(
    options: Mapping[str, Any], own: Request, empty: Request, profile: Profile, dialect: Dialect
) -> tuple[dict[str, Any], bool]:
    """The options that `own` does not set, and whether something of it was lost."""
    wire = dialect.encode_request(own, profile, stream=False)
    plain = dialect.encode_request(empty, profile, stream=False)
    return _without(options, _difference(wire.body, plain.body)), bool(wire.warnings)


def _difference(body: Json, empty: Json) -> dict[str, Any]:
    """The fields of a body that the empty one has not, or with another value."""
    fields: dict[str, Any] = {}
    if not isinstance(body, Mapping) or not isinstance(empty, Mapping):
        return fields
    for key, value in body.items():
        other = empty.get(key)
        if isinstance(value, Mapping) and isinstance(other, Mapping):
            if inner := _difference(value, other):
                fields[key] = inner
        elif key not in empty or value != other:
            fields[key] = value
    return fields


def _without(options: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    left: dict[str, Any] = {}
    for key, value in options.items():
        if key not in own or key == TOOLS:  # the encoder adds these to those of the request
            left[key] = value
        elif isinstance(value, Mapping) and isinstance(own[key], Mapping):
            left[key] = _without(value, own[key])
    return left
