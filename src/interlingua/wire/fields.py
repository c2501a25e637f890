"""Reading JSON objects: each field once, by type, the rest kept."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from interlingua.spec.content import Json
from interlingua.spec.errors import DecodeError, InvalidRequestError

_NAMES = {dict: "object", list: "array", str: "string", bool: "boolean", type(None): "null"}


class Fields:
    """
    The fields of one JSON object.

    Each getter takes its field out and returns it, or None if it is absent or null.
    A value of the wrong type is an error when `strict`, and is otherwise left where it
    is. `left` is all that was not taken, nulls included, so nothing is lost.
    """

    __slots__ = ("left", "path", "strict")

    def __init__(self, value: Json, path: str = "", *, strict: bool = True) -> None:
        if not isinstance(value, dict):
            raise wrong_type(path, "an object", value)
        self.left: dict[str, Any] = dict(value)
        self.path = path
        self.strict = strict

    def at(self, key: str) -> str:
        """The JSON path of a field."""
        return f"{self.path}.{key}" if self.path else key

    def text(self, key: str) -> str | None:
        """A string."""
        found = self.left.get(key)
        if isinstance(found, str):
            del self.left[key]
            return found
        if self.strict and found is not None:
            raise wrong_type(self.at(key), "a string", found)
        return None

    def number(self, key: str) -> float | None:
        """A number, whole or not."""
        found: float | None = self._typed(key, (int, float), "a number")
        return found

    def integer(self, key: str) -> int | None:
        """A whole number."""
        found: int | None = self._typed(key, int, "a whole number")
        return found

    def flag(self, key: str) -> bool | None:
        """A boolean."""
        found: bool | None = self._typed(key, bool, "true or false")
        return found

    def array(self, key: str) -> list[Any] | None:
        """An array."""
        found: list[Any] | None = self._typed(key, list, "an array")
        return found

    def object(self, key: str) -> dict[str, Any] | None:
        """An object."""
        found = self.left.get(key)
        if isinstance(found, dict):
            del self.left[key]
            return found
        if self.strict and found is not None:
            raise wrong_type(self.at(key), "an object", found)
        return None

    def fields(self, key: str) -> Fields | None:
        """An object, to be read field by field."""
        value = self.object(key)
        return None if value is None else Fields(value, self.at(key), strict=self.strict)

    def texts(self, key: str) -> tuple[str, ...] | None:
        """An array of strings."""
        found = self.left.get(key)
        if isinstance(found, list) and all(isinstance(item, str) for item in found):
            del self.left[key]
            return tuple(found)
        if self.strict and found is not None:
            raise wrong_type(self.at(key), "an array of strings", found)
        return None

    def take(self, key: str) -> Any:
        """A field of any type."""
        return self.left.pop(key, None)

    def need(self, key: str) -> str:
        """A string that must be there, whatever the mode."""
        found = self.left.get(key)
        if not isinstance(found, str):
            raise wrong_type(self.at(key), "a string", found)
        del self.left[key]
        return found

    def _typed(self, key: str, kinds: type | tuple[type, ...], wanted: str) -> Any:
        found = self.left.get(key)
        if isinstance(found, kinds) and (kinds is bool or not isinstance(found, bool)):
            del self.left[key]
            return found
        if self.strict and found is not None:
            raise wrong_type(self.at(key), wanted, found)
        return None


def wrong_type(path: str, wanted: str, value: Any) -> DecodeError:
    """The error for a value of the wrong type; says where and what was there."""
    found = _NAMES.get(type(value), "number")
    return DecodeError(f"{path or 'body'}: expected {wanted}, got {found}", path=path)


@contextmanager
def request_errors() -> Iterator[None]:
    """What cannot be read in a request is the sender's error: a 400 that names the path."""
    try:
        yield
    except DecodeError as error:
        raise InvalidRequestError(
            error.message, status_code=400, error_code="invalid_request"
        ) from error
    except RecursionError as error:
        raise InvalidRequestError(
            "the request is nested too deeply", status_code=400, error_code="invalid_request"
        ) from error


def count(value: Any) -> int | None:
    """A token count: never negative, None if it is no number."""
    if type(value) is int:
        return max(0, value)
    if value is None or isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return max(0, int(value))


def counts(usage: Mapping[str, Any], *names: str) -> list[int | None]:
    """The token counts of these names."""
    return [
        value if type(value) is int and value >= 0 else count(value)
        for value in map(usage.get, names)
    ]


def known_int(value: Any) -> int:
    """A token count, 0 if it is absent."""
    return count(value) or 0


_NOTHING: Mapping[str, Any] = {}


def extra_of(holder: Any, dialect: str) -> Mapping[str, Any]:
    """What `dialect` left on a part, message, tool or response; empty if nothing."""
    if not holder.extra:  # as with most
        return _NOTHING
    found = holder.extra.get(dialect)
    return found if found and isinstance(found, (dict, Mapping)) else _NOTHING


def restore(block: dict[str, Any], holder: Any, dialect: str) -> dict[str, Any]:
    """`block`, with the fields that `dialect` left on the holder put back beside its own."""
    if holder.extra:
        for key, value in extra_of(holder, dialect).items():
            block.setdefault(key, value)
    return block


def merge(body: Mapping[str, Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """
    `options` over `body`: objects are merged, anything else replaces.

    A null fills a gap but never hides a value: it stands for a field that was sent as
    null, not for its removal.
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
