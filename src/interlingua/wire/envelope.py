"""Bodies that are not an answer, carried whole."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from interlingua.spec.content import Json
from interlingua.spec.errors import DecodeError
from interlingua.spec.response import FinishReason, Response

_BODY = "body"


def carry_body(dialect: str, body: Json) -> Response:
    """
    A 200 body that is no answer (a token count, a deletion, an error): kept whole.

    Its finish reason is `error` if it carries one.
    """
    failed = isinstance(body, dict) and bool(body.get("error"))
    return Response(
        finish_reason=FinishReason(reason="error" if failed else "other"),
        raw=body,
        extra={dialect: {_BODY: body}},
    )


def carried_body(response: Response, dialect: str) -> Json:
    """The body kept by `carry_body`, or None."""
    kept = response.extra.get(dialect)
    return kept.get(_BODY) if isinstance(kept, Mapping) else None


def whole_object(body: Json) -> dict[str, Any]:
    """The body, which must be an object."""
    if not isinstance(body, dict):
        raise DecodeError(f"expected a JSON object as body, got {type(body).__name__}")
    return body
