"""Finds JSON in the text of a model."""

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
# The group is not possessive: before CPython 3.11.5 a possessive group keeps the position of its
# last failed attempt. A plain repeat stores each round, so the number of rounds is limited.
_skip_in_string = re.compile(r'[^"\\]*+(?:\\.[^"\\]*+){0,1000}', re.DOTALL).match

_MAX_UNCLOSED = 16  # unclosed brackets that are skipped; each costs a scan of the remaining text


class _Candidate(msgspec.Struct, frozen=True):
    """A piece of text that may be the JSON value."""

    value: Json
    length: int
    error: DecodeError | None = None
    """Set if the value is cut off, so that nothing after it can be trusted."""


def find_json(text: str, *, is_object: bool = False) -> Json:
    """
    The JSON value in a text: the whole text, a code fence, or a value in brackets.

    With `is_object` it is the first object, or if there is none, the longest value. Raises
    `DecodeError` if there is no value. A value that is cut off is an error, and nothing inside it
    is used. Neither is a value inside an array, or inside brackets that are not JSON: a part is
    never taken for the whole.
    """
    try:
        return loads(text)
    except DecodeError as error:
        cause = error
    best = _Candidate(msgspec.UNSET, -1)
    for candidate in (*_in_fences(text), *_in_brackets(text)):
        if candidate.error is not None and (is_object or candidate.length > best.length):
            raise candidate.error from cause
        if isinstance(candidate.value, dict) and is_object:
            return candidate.value
        if candidate.error is None and candidate.length > best.length:
            best = candidate
    if best.value is msgspec.UNSET:
        raise DecodeError("the text contains no JSON") from cause
    return best.value


def _in_fences(text: str) -> Iterator[_Candidate]:
    """The first code fence that is JSON."""
    for fence in _fences(text):
        try:
            yield _Candidate(loads(fence[1]), len(text))  # no value outside can be longer
        except DecodeError:
            continue
        return


def _in_brackets(text: str) -> Iterator[_Candidate]:
    """The values in outermost brackets, up to one that is cut off."""
    unclosed = position = 0
    while (bracket := _find_start(text, position)) is not None:
        start = bracket.start()
        end = _end_of(text, start)
        if end is None:
            error = _error_at(text, start)
            if error is not None:
                yield _Candidate(None, len(text) - start, error)
                return
            unclosed += 1
            if unclosed > _MAX_UNCLOSED:
                return
            position = start + 1
            continue
        position = end
        with suppress(DecodeError):
            yield _Candidate(loads(text[start:end]), end - start)


def _end_of(text: str, start: int) -> int | None:
    """The position after the bracket that closes the one at `start`."""
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
    """The error of an unclosed bracket; None if it is punctuation and not the start of JSON."""
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
