"""Reads and writes JSON text; the only module that knows the JSON library."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

import msgspec

from interlingua.spec.content import UncheckedJson, parse_json
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

    NaN and Infinity are not JSON and are refused. A lone surrogate escape is allowed and kept.
    """
    try:
        return _decode(text)
    except RecursionError as error:
        raise DecodeError("JSON is nested too deeply.") from error
    except (msgspec.DecodeError, UnicodeError):
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


def _null_for_nan(value: object) -> object:
    if isinstance(value, dict):
        return {key: _null_for_nan(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_null_for_nan(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
