"""Token counts: the request to count, and the number in the response."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from interlingua.spec.errors import DecodeError
from interlingua.spec.request import Request
from interlingua.wire.fields import count
from interlingua.wire.json_text import loads


def counted_request(
    request: Request, dialect: str, kept: Collection[str] | None, options: Mapping[str, Any]
) -> Request:
    """
    The request reduced to the fields that count as input.

    Of its provider options for the dialect, only the names in `kept` remain; None keeps all.
    """
    given = request.provider_options.get(dialect)
    given = given if isinstance(given, Mapping) else {}
    own = {name: value for name, value in given.items() if kept is None or name in kept}
    return Request(
        model=request.model,
        messages=request.messages,
        tools=request.tools,
        tool_choice=request.tool_choice,
        provider_options={dialect: {**own, **options}},
        request_id=request.request_id,
    )


def read_count(body: bytes, name: str) -> int:
    """The token count in the field `name`; raises `DecodeError` if there is none."""
    value = loads(body)
    tokens = count(value.get(name)) if isinstance(value, dict) else None
    if tokens is None:
        raise DecodeError(f"the provider's response has no token count in {name!r}")
    return tokens
