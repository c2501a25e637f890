"""Reads and writes JSON text; the only module that knows the JSON library."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import msgspec

from interlingua.spec.content import CHECKS, UncheckedJson, parse_json
from interlingua.spec.errors import DecodeError

_decode = msgspec.json.Decoder().decode
decode_common: Callable[[str | bytes], UncheckedJson] = _decode
"""`loads` for text without lone surrogate escapes; raises one of `UNCOMMON` for any other."""
UNCOMMON = (msgspec.DecodeError, UnicodeError, RecursionError)


def _plain(value: object) -> str:
    """For msgspec, which writes no subclass of `str` by itself."""
    if isinstance(value, str):
        return str.__str__(value)
    raise ValueError(f"a {type(value).__name__} has no JSON form")


_encode = msgspec.json.Encoder(enc_hook=_plain).encode


def loads(text: str | bytes) -> UncheckedJson:
    """
    The value of a JSON text; raises `DecodeError` for anything that is not JSON.

    NaN and Infinity are not JSON and are refused. A lone surrogate escape is allowed and kept. A
    large text is read in pieces, because the parser lets no other thread run before its end.
    """
    try:
        return _decode(text) if len(text) <= _LARGE else _Pieces().read(text)
    except RecursionError as error:
        raise DecodeError("JSON is nested too deeply.") from error
    except (msgspec.DecodeError, ValueError):
        return _slow_loads(text)


def dumps(value: object) -> bytes:
    """
    Compact UTF-8 JSON text; keys keep their order.

    A lone surrogate has no UTF-8 form and is written as an escape. NaN and the infinities
    are not JSON and are written as null.
    """
    try:
        try:
            return _encode(value)
        except UnicodeEncodeError:
            import json  # lone surrogates are rare

            plain = _null_for_nan(msgspec.to_builtins(value, str_keys=True, enc_hook=_plain))
            return json.dumps(plain, separators=(",", ":")).encode()
    except RecursionError as error:
        raise DecodeError("JSON is nested too deeply.") from error
    except (TypeError, ValueError, OverflowError) as error:
        raise DecodeError(f"Not a JSON value: {error}.") from error


def dump_text(value: object) -> str:
    """`dumps`, as `str`."""
    return dumps(value).decode()


def loads_object(text: str) -> dict[str, Any] | None:
    """
    The object in the argument text of a tool call; None if the text is not a JSON object.

    Empty text, `null` and `[]` mean no arguments and give `{}`.
    """
    if not text or text.isspace():
        return {}
    try:
        value = loads(text)
    except DecodeError:
        return None
    if value is None or value == []:
        return {}
    return value if isinstance(value, dict) else None


def _slow_loads(text: str | bytes) -> UncheckedJson:
    # msgspec refuses lone surrogate escapes, but providers send them.
    try:
        return parse_json(text)
    except RecursionError as error:
        raise DecodeError("JSON is nested too deeply.") from error
    except ValueError as error:  # JSON errors, UTF-8 errors and integers that are too long
        raise DecodeError(f"Not JSON: {error}.") from error


# A large text in pieces.

_LARGE = 1024 * 1024
_PIECE = 256 * 1024
_MAX_ITEMS = 250_000  # of a list that is split; each takes time, without a pause
_MAX_DEPTH = 16  # every level is searched again for its items
_split_object = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_split_list = msgspec.json.Decoder(list[msgspec.Raw]).decode


class _Pieces:
    """Reads the items of large objects and lists one by one; other threads run between them."""

    def __init__(self) -> None:
        self._depth = 0

    def read(self, text: str | bytes) -> UncheckedJson:
        """The value of a text; raises the errors of the parser."""
        return self._read((text.encode() if isinstance(text, str) else text).strip())

    def _read(self, text: bytes) -> UncheckedJson:
        if len(text) <= _PIECE or self._depth == _MAX_DEPTH:
            return _decode(text)
        self._depth += 1
        try:
            if text.startswith(b"{"):
                return {key: self._read(bytes(raw)) for key, raw in _split_object(text).items()}
            if text.startswith(b"["):
                return self._read_list(text)
            return _decode(text)
        finally:
            self._depth -= 1

    def _read_list(self, text: bytes) -> UncheckedJson:
        if all(text.find(sign, 1) < 0 for sign in (b'"', b"{", b"[")):
            return _read_numbers(text)
        if text.count(b",") > _MAX_ITEMS and _count_items(text) > _MAX_ITEMS:
            import json

            return json.loads(text, object_hook=_same, **CHECKS)
        return [self._read(bytes(raw)) for raw in _split_list(text)]


def _count_items(text: bytes) -> int:
    """How many items a list of other values than numbers may have; slower than to count commas."""
    return text.count(b"},") + text.count(b"],") + text.count(b'",')


def _read_numbers(text: bytes) -> list[UncheckedJson]:
    """The items of a list without texts, objects and lists: any comma is between two items."""
    numbers: list[UncheckedJson] = []
    start, end = 1, len(text) - 1
    if not text.endswith(b"]") or text[:end].rstrip().endswith(b","):
        raise ValueError("Not a list.")  # the caller finds out what is wrong
    while start < end:
        comma = text.find(b",", start + _PIECE)
        stop = end if comma < 0 else comma
        numbers += _decode(b"[%b]" % text[start:stop])
        start = stop + 1
    return numbers


def _same(value: dict[str, UncheckedJson]) -> dict[str, UncheckedJson]:
    """A function in Python: while it is called, the interpreter can switch to another thread."""
    return value


def _null_for_nan(value: object) -> object:
    if isinstance(value, dict):
        return {key: _null_for_nan(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_null_for_nan(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
