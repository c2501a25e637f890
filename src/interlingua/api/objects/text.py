"""JSON in the midst of what a model says."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import suppress

import msgspec

from interlingua.spec.content import Json
from interlingua.spec.errors import DecodeError
from interlingua.wire.json_text import loads

_fences = re.compile(r"^[ \t]*```[^\n`]*\n(.*?)^[ \t]*```", re.MULTILINE | re.DOTALL).finditer
_find_start = re.compile(r"[{\[]").search
_find_bracket_or_quote = re.compile(r'["{}\[\]]').search
# No group is possessive: before CPython 3.11.5 those keep the position of a failed last try. A
# plain repeat remembers each round, so their number is limited.
_skip_in_string = re.compile(r'[^"\\]*+(?:\\.[^"\\]*+){0,1000}', re.DOTALL).match

_MOST_LOOSE = 16  # brackets without an end that are looked past; each costs a look at all the rest


class _Found(msgspec.Struct, frozen=True):
    """Something in brackets."""

    value: Json
    length: int
    error: DecodeError | None = None
    """It has no end, and nothing after it can be trusted."""


def find_json(text: str, *, is_object: bool = False) -> Json:
    """
    The JSON value that a text is, or holds: in a code fence, or in brackets of its own.

    With `is_object` that is the first object, unless there is none; else the longest value.
    `DecodeError` if there is none. What is cut off counts as none, whatever is inside it, and
    so does what is inside an array, or inside brackets that are no JSON: a part is never taken
    for the whole.
    """
    try:
        return loads(text)
    except DecodeError as error:
        whole = error
    best = _Found(msgspec.UNSET, -1)
    for found in (*_in_fences(text), *_in_brackets(text)):
        if found.error is not None and (is_object or found.length > best.length):
            raise found.error from whole
        if isinstance(found.value, dict) and is_object:
            return found.value
        if found.error is None and found.length > best.length:
            best = found
    if best.value is msgspec.UNSET:
        raise DecodeError("there is no JSON in it") from whole
    return best.value


def _in_fences(text: str) -> Iterator[_Found]:
    """The first that is JSON."""
    for fence in _fences(text):
        try:
            yield _Found(loads(fence[1]), len(text))  # nothing outside counts for more
        except DecodeError:
            continue
        return


def _in_brackets(text: str) -> Iterator[_Found]:
    """What stands in the outermost brackets, if it is JSON, up to one that is cut off."""
    loose = position = 0
    while (opened := _find_start(text, position)) is not None:
        start = opened.start()
        end = _end_of(text, start)
        if end is None:
            error = _error_at(text, start)
            if error is not None:
                yield _Found(None, len(text) - start, error)
                return
            loose += 1
            if loose > _MOST_LOOSE:
                return
            position = start + 1
            continue
        position = end
        with suppress(DecodeError):
            yield _Found(loads(text[start:end]), end - start)


def _end_of(text: str, start: int) -> int | None:
    """Where the bracket that begins at `start` is closed."""
    depth = 0
    position = start
    while (mark := _find_bracket_or_quote(text, position)) is not None:
        position = mark.end()
        if mark[0] == '"':
            position = _end_of_string(text, position)
            continue
        depth += 1 if mark[0] in "{[" else -1
        if depth == 0:
            return position
    return None


def _end_of_string(text: str, position: int) -> int:
    """The position after the closing quote of a string whose text starts at `position`."""
    while (match := _skip_in_string(text, position)) is not None:
        if match.end() == position or text.startswith('"', match.end()):
            return match.end() + 1
        position = match.end()
    return len(text)


def _error_at(text: str, start: int) -> DecodeError | None:
    """What is wrong with a bracket without an end; nothing if it is a mere word, and no JSON."""
    try:
        _decode(text, start)
    except RecursionError:
        return DecodeError("JSON is nested too deeply")
    except json.JSONDecodeError as error:
        is_cut = error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated")
        is_begun = bool(text[start + 1 : error.pos].strip())
        if text[start] == "{" or is_cut or is_begun:
            return DecodeError(f"not JSON: {error}")
    return None


_decode = json.JSONDecoder().raw_decode
