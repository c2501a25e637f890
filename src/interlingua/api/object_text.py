"""JSON in the midst of what a model says."""

from __future__ import annotations

import json
import re
from typing import NoReturn

from interlingua.spec.content import Json
from interlingua.spec.errors import DecodeError
from interlingua.wire.jsontext import loads

_fences = re.compile(r"^[ \t]*```[^\n`]*\n(.*?)^[ \t]*```", re.MULTILINE | re.DOTALL).finditer


def find_json(text: str) -> Json:
    """
    The JSON value that a text is, or holds: in a code fence, or from its first brace on.

    `DecodeError` if there is none. An object that is cut off counts as none, whatever is inside
    it: a part is never taken for the whole.
    """
    try:
        return loads(text)
    except DecodeError as error:
        whole = error
    for fence in _fences(text):
        try:
            return loads(fence[1])
        except DecodeError:
            continue
    start = text.find("{")
    if start < 0:
        raise DecodeError("there is no JSON in it") from whole
    try:
        return _decoder.raw_decode(text, start)[0]
    except RecursionError as error:
        raise DecodeError("JSON is nested too deeply") from error
    except ValueError as error:
        raise DecodeError(f"not JSON: {error}") from error


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON value")


_decoder = json.JSONDecoder(parse_constant=_refuse)
