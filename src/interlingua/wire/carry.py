"""What travels beside the language: bodies with no canonical form, ids, losses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from interlingua.spec.content import Json
from interlingua.spec.contracts import NewId
from interlingua.spec.errors import DecodeError
from interlingua.spec.response import FinishReason, Response, Warning

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


def counting_ids() -> NewId:
    """Ids that are the same each time: `1`, `2`, … An adapter passes ULIDs instead."""
    count = 0

    def new_id() -> str:
        nonlocal count
        count += 1
        return str(count)

    return new_id


class Losses:
    """Collects what could not be said."""

    __slots__ = ("warnings",)

    def __init__(self) -> None:
        self.warnings: list[Warning] = []

    def add(self, code: str, message: str, path: str | None = None) -> None:
        """One more."""
        self.warnings.append(Warning(code=code, message=message, path=path))

    def dropped(self, what: str, dialect: str, path: str | None = None) -> None:
        """Something this dialect has no words for was left out."""
        code = f"{what.replace(' ', '_')}_dropped"
        self.add(code, f"{what} cannot be said in {dialect}; it was left out", path)


def whole_object(body: Json) -> dict[str, Any]:
    """The body, which must be an object."""
    if not isinstance(body, dict):
        raise DecodeError(f"expected a JSON object as body, got {type(body).__name__}")
    return body
