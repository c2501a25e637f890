"""
Reads JSON with the mistakes that models make, where only one reading is possible.

These are a comma after the last item, strings in single quotes, line breaks inside of strings, keys
without quotes, and Python's `True`, `False` and `None`. A string must be followed by what may
follow a value, so that an apostrophe inside of single quotes, or a quote that was not escaped, is
an error and not a guess. So is a text that ends too early.
"""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

from interlingua.spec.content import UncheckedJson, finite_float

MAX_DEPTH = 100
"""How deep arrays and objects may be in each other; more is refused."""

_skip_space = re.compile(r"[ \t\r\n]*").match
_match_number = re.compile(r"-?(?:0|[1-9]\d{0,400})(\.\d{1,400})?([eE][+-]?\d{1,4})?").match
_match_word = re.compile(r"[A-Za-z_$][A-Za-z0-9_$-]*").match
_match_in_double = re.compile(r'[^"\\]*').match
_match_in_single = re.compile(r"[^'\\]*").match
_match_unicode = re.compile(r"u([0-9a-fA-F]{4})").match
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}
_SAME = frozenset("\"'\\/")
_WORDS = {"true": True, "false": False, "null": None}
_PYTHON_WORDS = {"True": True, "False": False, "None": None}
_CONTROL = re.compile(r"[\x00-\x1f]").search


class LenientValue(NamedTuple):
    """A value in a text, and what was wrong with it."""

    value: UncheckedJson
    end: int
    """The position after the value."""
    mistakes: tuple[str, ...]
    """Each kind once, such as `a trailing comma`; none if it is JSON."""


def decode_lenient(text: str, start: int = 0) -> LenientValue:
    """Return the value that begins at `start`; `JSONDecodeError` has the position of an error."""
    reader = _Reader(text)
    value, end = reader.value(reader.skip(start), 0)
    return LenientValue(value, end, tuple(dict.fromkeys(reader.mistakes)))


class _Reader:
    """Reads the values of one text; each character is looked at a constant number of times."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.mistakes: list[str] = []

    def skip(self, at: int) -> int:
        """The position after white space."""
        match = _skip_space(self._text, at)
        return at if match is None else match.end()

    def value(self, at: int, depth: int) -> tuple[Any, int]:
        """The value that begins here, and the position after it."""
        mark = self._text[at : at + 1]
        if mark in ("{", "["):
            if depth == MAX_DEPTH:
                raise self._error("Nested too deeply", at)
            return self._object(at, depth) if mark == "{" else self._array(at, depth)
        if mark in ('"', "'"):
            return self._string(at)
        number = _match_number(self._text, at)
        if number is not None:
            is_float = number[1] is not None or number[2] is not None
            return (finite_float if is_float else int)(number[0]), number.end()
        return self._word(at)

    def _object(self, start: int, depth: int) -> tuple[dict[str, Any], int]:
        items: dict[str, Any] = {}
        at = self.skip(start + 1)
        while not self._text.startswith("}", at):
            key, at = self._key(at)
            at = self.skip(at)
            if not self._text.startswith(":", at):
                raise self._error("Expecting ':' delimiter", at)
            items[key], at = self.value(self.skip(at + 1), depth + 1)
            at = self._next(at, "}")
        return items, at + 1

    def _array(self, start: int, depth: int) -> tuple[list[Any], int]:
        items: list[Any] = []
        at = self.skip(start + 1)
        while not self._text.startswith("]", at):
            item, at = self.value(at, depth + 1)
            items.append(item)
            at = self._next(at, "]")
        return items, at + 1

    def _next(self, at: int, close: str) -> int:
        """The position of the next item, or of the bracket that closes."""
        at = self.skip(at)
        if self._text.startswith(close, at):
            return at
        if not self._text.startswith(",", at):
            raise self._error("Expecting ',' delimiter", at)
        at = self.skip(at + 1)
        if self._text.startswith(close, at):
            self.mistakes.append("a trailing comma")
        return at

    def _key(self, at: int) -> tuple[str, int]:
        if self._text[at : at + 1] in ('"', "'"):
            return self._string(at)
        word = _match_word(self._text, at)
        if word is None:
            raise self._error("Expecting property name", at)
        self.mistakes.append("keys without quotes")
        return word[0], word.end()

    def _word(self, at: int) -> tuple[Any, int]:
        match = _match_word(self._text, at)
        word = "" if match is None else match[0]
        if match is None or (word not in _WORDS and word not in _PYTHON_WORDS):
            raise self._error("Expecting value", at)
        if word in _PYTHON_WORDS:
            self.mistakes.append("words of Python")
            return _PYTHON_WORDS[word], match.end()
        return _WORDS[word], match.end()

    def _string(self, start: int) -> tuple[str, int]:
        quote = self._text[start]
        if quote == "'":
            self.mistakes.append("single quotes")
        match_plain = _match_in_single if quote == "'" else _match_in_double
        pieces: list[str] = []
        at = start + 1
        while True:
            match = match_plain(self._text, at)
            piece, at = ("", at) if match is None else (match[0], match.end())
            if _CONTROL(piece):
                self.mistakes.append("line breaks in a string")
            pieces.append(piece)
            if self._text.startswith(quote, at):
                return "".join(pieces), at + 1
            if not self._text.startswith("\\", at):
                raise self._error("Unterminated string starting at", start)
            piece, at = self._escape(at + 1)
            pieces.append(piece)

    def _escape(self, at: int) -> tuple[str, int]:
        mark = self._text[at : at + 1]
        if mark in _SAME and mark:
            return mark, at + 1
        if mark in _ESCAPES:
            return _ESCAPES[mark], at + 1
        unit = _match_unicode(self._text, at)
        if unit is None:
            raise self._error("Invalid \\escape", at - 1)
        # The standard reader joins two surrogates.
        more = _match_unicode(self._text, unit.end() + 1)
        is_pair = more is not None and self._text.startswith("\\", unit.end())
        end = more.end() if more is not None and is_pair and unit[1][0] in "dD" else unit.end()
        text: str = json.loads(f'"\\{self._text[at:end]}"')
        return text, end

    def _error(self, message: str, at: int) -> json.JSONDecodeError:
        return json.JSONDecodeError(message, self._text, at)
