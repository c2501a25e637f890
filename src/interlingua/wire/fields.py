"""A reader for JSON objects: takes each field once, checks its type, keeps the unread fields."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeGuard, TypeVar

from interlingua.spec.content import Json, UncheckedJson
from interlingua.spec.errors import DecodeError, InvalidRequestError
from interlingua.spec.response import FinishReason, Response

T = TypeVar("T")

_LARGEST = sys.float_info.max
_NAMES = {dict: "object", list: "array", str: "string", bool: "boolean", type(None): "null"}


class Fields:
    """
    The fields of one JSON object.

    Each getter removes its field from `left` and returns it, or returns None if the field is
    absent or null. A value of the wrong type raises `DecodeError` if `strict`; otherwise it
    stays in `left`. At the end `left` holds every field that was not read, nulls included,
    so that the dialect can carry it verbatim.
    """

    __slots__ = ("left", "path", "strict")

    def __init__(self, value: UncheckedJson, path: str = "", *, strict: bool = True) -> None:
        if not isinstance(value, dict):
            raise wrong_type(path, "an object", value)
        self.left: dict[str, Any] = dict(value)
        self.path: str = path
        self.strict: bool = strict

    def at(self, key: str) -> str:
        """Return the JSON path of a field."""
        return f"{self.path}.{key}" if self.path else key

    def text(self, key: str) -> str | None:
        """Read a string."""
        # This and `object` do not go through `_typed`: they are the most frequent reads.
        value = self.left.get(key)
        if isinstance(value, str):
            del self.left[key]
            return value
        if self.strict and value is not None:
            raise wrong_type(self.at(key), "a string", value)
        return None

    def number(self, key: str) -> float | None:
        """Read a number that fits into a float, integer or not."""
        value = self.left.get(key)
        if is_number(value):
            del self.left[key]
            return value
        if self.strict and value is not None:
            raise wrong_type(self.at(key), "a number", value)
        return None

    def integer(self, key: str) -> int | None:
        """Read an integer."""
        return self._typed(key, int, "an integer")

    def flag(self, key: str) -> bool | None:
        """Read a boolean."""
        return self._typed(key, bool, "true or false")

    def array(self, key: str) -> list[Any] | None:
        """Read an array."""
        return self._typed(key, list, "an array")

    def items(self, key: str) -> list[Any]:
        """Read the items of an array; an empty array stays unread, so that it is written again."""
        return [] if self.left.get(key) == [] else self.array(key) or []

    def object(self, key: str) -> dict[str, Any] | None:
        """Read an object."""
        value = self.left.get(key)
        if isinstance(value, dict):
            del self.left[key]
            return value
        if self.strict and value is not None:
            raise wrong_type(self.at(key), "an object", value)
        return None

    def arguments(self, key: str) -> dict[str, Any]:
        """Read the arguments of a tool call, an object; some clients send `[]` for an empty one."""
        if self.left.get(key) == []:
            del self.left[key]
        return self.object(key) or {}

    def fields(self, key: str) -> Fields | None:
        """Return a `Fields` reader of an object."""
        value = self.object(key)
        return None if value is None else Fields(value, self.at(key), strict=self.strict)

    def texts(self, key: str) -> tuple[str, ...] | None:
        """Read an array of strings."""
        value = self.left.get(key)
        if isinstance(value, list) and all(isinstance(item, str) for item in value):
            del self.left[key]
            return tuple(value)
        if self.strict and value is not None:
            raise wrong_type(self.at(key), "an array of strings", value)
        return None

    def take(self, key: str) -> Any:
        """Read a field of any type."""
        return self.left.pop(key, None)

    def need(self, key: str) -> str:
        """Read a required string; `DecodeError` if it is missing, also when not `strict`."""
        value = self.left.get(key)
        if not isinstance(value, str):
            raise wrong_type(self.at(key), "a string", value)
        del self.left[key]
        return value

    def _typed(self, key: str, kind: type[T], expected: str) -> T | None:
        value = self.left.get(key)
        # In Python a bool is an int, but JSON's true is not a number.
        if isinstance(value, kind) and (kind is bool or not isinstance(value, bool)):
            del self.left[key]
            return value
        if self.strict and value is not None:
            raise wrong_type(self.at(key), expected, value)
        return None


def wrong_type(path: str, expected: str, value: object) -> DecodeError:
    """The error for a value of the wrong type; names the JSON path and both types."""
    actual = _NAMES.get(type(value), "number")
    return DecodeError(f"{path or 'body'}: expected {expected}, got {actual}.", path=path)


def take_text(unread: dict[str, Any], key: str) -> str | None:
    """Remove a string and return it; a value of another type is left, and None returned."""
    value = unread.get(key)
    if not isinstance(value, str):
        return None
    del unread[key]
    return value


def take_object(unread: dict[str, Any], key: str) -> dict[str, Any] | None:
    """Remove an object and return it; a value of another type is left, and None returned."""
    value = unread.get(key)
    if not isinstance(value, dict):
        return None
    del unread[key]
    return value


def text_or_none(value: Json) -> str | None:
    """The value if it is text."""
    return value if isinstance(value, str) else None


def text_of(value: Json) -> str:
    """The value if it is a string, else an empty string."""
    return value if isinstance(value, str) else ""


def shorten(blocks: list[dict[str, Json]], text_type: str = "text") -> Json:
    """The content as a string if it is one text block without other fields, else the blocks."""
    if len(blocks) == 1:
        block = blocks[0]
        if len(block) == 2 and block.get("type") == text_type and "text" in block:
            return block["text"]
    return blocks


@contextmanager
def request_errors() -> Iterator[None]:
    """Turns a `DecodeError` into a 400 `InvalidRequestError`: the sender's request is invalid."""
    try:
        yield
    except DecodeError as error:
        raise InvalidRequestError(
            error.message, status_code=400, error_code="invalid_request"
        ) from error
    except RecursionError as error:
        raise InvalidRequestError(
            "The request is nested too deeply.", status_code=400, error_code="invalid_request"
        ) from error


def count(value: object) -> int | None:
    """A token count: at least 0, or None if `value` is not a finite number."""
    if type(value) is int:
        return max(0, value)
    if value is None or isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return max(0, int(value))


def is_number(value: object) -> TypeGuard[float]:
    """Whether it is a JSON number that fits into a float."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    return -_LARGEST <= value <= _LARGEST


def known_int(value: object) -> int:
    """A token count; 0 if it is absent."""
    return count(value) or 0


_EMPTY: Mapping[str, Any] = {}


def extra_of(holder: Any, dialect: str) -> Mapping[str, Any]:
    """Return the fields that `dialect` stored in `holder.extra`; `holder` is a part, message, …"""
    if not holder.extra:  # fast path: most have no extra
        return _EMPTY
    extra = holder.extra.get(dialect)
    return extra if extra and isinstance(extra, (dict, Mapping)) else _EMPTY


def restore(block: dict[str, Any], holder: Any, dialect: str) -> dict[str, Any]:
    """Add the fields that `dialect` stored on `holder` to `block`; returns `block`."""
    if holder.extra:
        for key, value in extra_of(holder, dialect).items():
            block.setdefault(key, value)
    return block


def merge(body: Mapping[str, Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """
    A copy of `body` updated with `options`: objects are merged, other values replace.

    A null in `options` adds a missing field but never replaces a value: it stands for a
    field that was sent as null, not for a removal.
    """
    merged = dict(body)
    for key, value in options.items():
        present = merged.get(key)
        if value is None and key in merged:
            continue
        if isinstance(present, Mapping) and isinstance(value, Mapping):
            merged[key] = merge(present, value)
        else:
            merged[key] = value
    return merged


class Merged:
    """
    What `merge` gives for many objects, one after another, in time that is linear in their size.

    `merge` copies what there is already, so that a stream of small updates would take quadratic
    time. Here each object is copied once, when it is first updated.
    """

    __slots__ = ("_copies", "value")

    def __init__(self) -> None:
        self.value: dict[str, Any] = {}
        """All objects so far as one."""
        self._copies: dict[int, dict[str, Any]] = {}  # by id; kept, so that no id is used again

    def add(self, options: Mapping[str, Any]) -> None:
        """Update the value with an object, which stays as it is."""
        self._update(self.value, options)

    def _update(self, merged: dict[str, Any], options: Mapping[str, Any]) -> None:
        for key, value in options.items():
            present = merged.get(key)
            if value is None and key in merged:
                continue
            if isinstance(present, Mapping) and isinstance(value, Mapping):
                copy = self._copies.get(id(present))
                if copy is None:
                    copy = merged[key] = dict(present)
                    self._copies[id(copy)] = copy
                self._update(copy, value)
            else:
                merged[key] = value


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
        raise DecodeError(f"Expected a JSON object as the body, got {type(body).__name__}.")
    return body
