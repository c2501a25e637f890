"""Response bodies that do not hold a model's answer; they are carried verbatim."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from interlingua.spec.content import Json
from interlingua.spec.errors import DecodeError
from interlingua.spec.response import FinishReason, Response

_BODY = "body"


def carry_body(dialect: str, body: Json) -> Response:
    """
    A `Response` that carries a 200 body without an answer (a token count, a deletion, an error).

    The finish reason is `error` if the body has an `error` field, otherwise `other`.
    """
    failed = isinstance(body, dict) and bool(body.get("error"))
    return Response(
        finish_reason=FinishReason(reason="error" if failed else "other"),
        raw=body,
        extra={dialect: {_BODY: body}},
    )


def carried_body(response: Response, dialect: str) -> Json:
    """The body that `carry_body` stored, or None."""
    extra = response.extra.get(dialect)
    return extra.get(_BODY) if isinstance(extra, Mapping) else None


def whole_object(body: Json) -> dict[str, Any]:
    """The body, if it is a JSON object; otherwise raises `DecodeError`."""
    if not isinstance(body, dict):
        raise DecodeError(f"expected a JSON object as the body, got {type(body).__name__}")
    return body
