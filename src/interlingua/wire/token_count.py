"""Token counts: what of a request counts, and the number in a reply."""

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
    The request without the settings that do not count.

    Of its options for the dialect those in `kept` stay, or all if that is None.
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
    """The number of that name; `DecodeError` if there is none."""
    value = loads(body)
    found = count(value.get(name)) if isinstance(value, dict) else None
    if found is None:
        raise DecodeError("the provider's answer holds no token count")
    return found
