"""What travels beside the language: bodies with no canonical form, ids, losses."""

from __future__ import annotations

from collections.abc import Callable, Mapping
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


def call_ids(new_id: NewId) -> NewId:
    """Ids for calls that came without one."""
    return lambda: f"call_{new_id()}"


class Losses:
    """Collects what could not be said."""

    __slots__ = ("origin", "warnings")

    def __init__(self) -> None:
        self.warnings: list[Warning] = []
        self.origin: Callable[[str], str | None] | None = None
        """Of a path in what is said, the path in what the caller gave, if they differ."""

    def add(self, code: str, message: str, path: str | None = None) -> None:
        """One more."""
        if self.origin is not None and path is not None:
            path = self.origin(path)
        self.warnings.append(Warning(code=code, message=message, path=path))

    def dropped(
        self, what: str, dialect: str, path: str | None = None, *, code: str | None = None
    ) -> None:
        """Something this dialect has no words for was left out; `code` if `what` varies."""
        code = code or what.replace(" ", "_")
        self.add(f"{code}_dropped", f"{what} cannot be said in {dialect}; it was left out", path)

    def foreign_block(self, owner: str, dialect: str, path: str) -> None:
        """A block of another dialect was left out."""
        self.dropped(f"a block of {owner}", dialect, path, code="foreign_block")

    def foreign_thinking(self, dialect: str, path: str) -> None:
        """What another model thought was left out."""
        self.dropped("thinking of another model", dialect, path, code="foreign_thinking")

    def builtin_tool(self, owner: str, dialect: str, path: str) -> None:
        """A tool that another provider runs was left out."""
        self.dropped(f"a built-in tool of {owner}", dialect, path, code="builtin_tool")


def whole_object(body: Json) -> dict[str, Any]:
    """The body, which must be an object."""
    if not isinstance(body, dict):
        raise DecodeError(f"expected a JSON object as body, got {type(body).__name__}")
    return body
