"""Parses incomplete JSON text."""

from __future__ import annotations

import re
from collections.abc import Callable

from interlingua.spec.content import UncheckedJson
from interlingua.spec.errors import DecodeError
from interlingua.wire.json_text import loads

_skip_white_space = re.compile(r"[ \t\r\n]*+").match
# CPython before 3.11.5 restores the wrong position after a possessive group fails, so the groups
# here are not possessive. A greedy repeat stores each iteration, so the repeats are bounded:
# the rest of a longer text is read by the next match, or step by step.
#
# The content of a string. The first half of a surrogate pair is not read at the end of the text:
# alone it is a different character from the one that the pair will be.
skip_string_text = re.compile(
    r"""
    (?: [^"\\\x00-\x1f]++
      | \\ ["\\/bfnrt]
      | \\u (?![dD][89abAB]) [0-9a-fA-F]{4}
      | \\u [dD][89abAB] [0-9a-fA-F]{2} (?! (?: \\ (?: u [0-9a-fA-F]{0,3} )? )? \Z )
    ){0,1000}
    """,
    re.VERBOSE,
).match
_match_literal = re.compile(r"true|false|null").match
_NUMBER = r"-?+(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?+[0-9]++)?"
# The group matches if the text ends after the number: more digits may follow.
_match_number = re.compile(rf"{_NUMBER}(?:(?=[ \t\r\n,\]}}])|(\Z))").match

# Runs of simple values, and of members with simple values, are skipped in one match, which is ten
# times as fast as scanning them step by step. A value that no comma or closing bracket follows
# may be incomplete, and is not matched.
_W = r"[ \t\r\n]*+"
_PLAIN = r'[^"\\\x00-\x1f]*+'
_STRING = rf'"{_PLAIN}(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{{4}}){_PLAIN}){{0,32}}"'
_SCALAR = rf"(?:{_STRING}|true|false|null|{_NUMBER})"
_FLAT = rf"(?:{_SCALAR}|\[{_W}(?:{_SCALAR}{_W}(?:,{_W}{_SCALAR}{_W}){{0,16}})?\])"
_MEMBER = rf"{_STRING}{_W}:{_W}{_FLAT}{_W}"
_SIMPLE = rf"(?:{_FLAT}|\{{{_W}(?:{_MEMBER}(?:,{_W}{_MEMBER}){{0,16}})?\}})"
_KEY = rf"{_STRING}{_W}:{_W}"
_match_items = re.compile(rf"(?:{_SIMPLE}(){_W},{_W}){{0,32}}(?:{_SIMPLE}(){_W}(?=\]))?").match
_match_members = re.compile(
    rf"(?:{_KEY}{_SIMPLE}(){_W},{_W}){{0,32}}(?:{_KEY}{_SIMPLE}(){_W}(?=\}}))?"
).match

_EXACT_BELOW = 2048  # characters; parsing this little again costs microseconds
_GROWTH = 16  # parse a longer text again after it grew by a sixteenth


def parse_partial(text: str) -> UncheckedJson:
    """
    The value of the longest prefix of a JSON text that can be parsed; never raises.

    Open strings, arrays and objects are closed. A key without a value and an incomplete
    number, literal or escape are dropped. Returns None if nothing can be parsed. If the whole
    text is a number, it is returned although more digits may follow.
    """
    scanner = _Scanner()
    scanner.scan(text)
    return scanner.value(text)


class PartialJSON:
    """
    `parse_partial` for a text that grows.

        partial.feed(fragment)
        show(partial.value)

    Reading `value` after each fragment takes nearly linear time in total: a long text is
    parsed again only after it grew by a sixteenth, so `value` may be behind by that much.
    """

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._length = 0
        self._read_length = 0
        self._value: UncheckedJson = None
        self._scanner = _Scanner()

    def feed(self, fragment: str) -> None:
        """Add the next piece of the text."""
        self._pieces.append(fragment)
        self._length += len(fragment)

    @property
    def value(self) -> UncheckedJson:
        """The value parsed so far; exact for short text and after `finish`."""
        growth = self._length - self._read_length
        if growth and (self._length <= _EXACT_BELOW or growth * _GROWTH >= self._length):
            self._read()
        return self._value

    @property
    def text(self) -> str:
        """The text that was fed so far."""
        if len(self._pieces) != 1:
            self._pieces = ["".join(self._pieces)]
        return self._pieces[0]

    def finish(self) -> UncheckedJson:
        """The exact value of all the text fed so far. More text may be fed afterwards."""
        if self._length > self._read_length:
            self._read()
        return self._value

    def _read(self) -> None:
        text = self.text
        self._read_length = self._length
        self._scanner.scan(text)
        self._value = self._scanner.value(text)


class _Scanner:
    """
    Finds the prefix of a text that can be parsed, and the brackets that close it.

    Given a longer text, it continues where it stopped. No bracket opens or closes between the
    end of the readable prefix and the end of the scanned text, so one list of closing brackets
    is right for both.
    """

    def __init__(self) -> None:
        self._position = 0  # every token before it is complete
        self._whole = 0  # the end of the last complete value or opened container
        self._readable = 0  # `_whole`, or the end of an incomplete string or number
        self._quote = ""
        self._closers: list[str] = []
        self._step: Callable[[_Scanner, str], bool] = _Scanner._scan_value

    def scan(self, text: str) -> None:
        """Scan as far as the text can be parsed."""
        self._readable = self._whole
        self._quote = ""
        while self._skip(text) and self._step(self, text):
            pass

    def value(self, text: str) -> UncheckedJson:
        """The value of the readable prefix of the text just scanned."""
        if not self._readable:
            return None
        closing = self._quote + "".join(reversed(self._closers))
        try:
            return loads(text[: self._readable] + closing)
        except DecodeError:  # nested too deeply, or a number out of range
            return None

    def _skip(self, text: str) -> bool:
        self._position = _end_of(_skip_white_space, text, self._position)
        return self._position < len(text)

    def _scan_item(self, text: str) -> bool:
        return self._skip_run(_match_items(text, self._position)) or self._scan_value(text)

    def _scan_value(self, text: str) -> bool:
        character = text[self._position]
        if character == '"':
            return self._scan_string_value(text)
        if character == "{":
            return self._open("}", _Scanner._scan_first_key)
        if character == "[":
            return self._open("]", _Scanner._scan_first_item)
        if (literal := _match_literal(text, self._position)) is not None:
            return self._end_value(literal.end())
        return self._scan_number(text)

    def _scan_string_value(self, text: str) -> bool:
        end = _end_of_string(text, self._position)
        if text.startswith('"', end):
            return self._end_value(end + 1)
        self._quote = '"'
        self._readable = end
        return False

    def _scan_number(self, text: str) -> bool:
        number = _match_number(text, self._position)
        if number is None:
            return False
        if number[1] is None:
            return self._end_value(number.end())
        if not self._closers:
            self._readable = number.end()
        return False

    def _open(self, closer: str, step: Callable[[_Scanner, str], bool]) -> bool:
        self._closers.append(closer)
        self._end_value(self._position + 1)
        self._step = step
        return True

    def _end_value(self, end: int) -> bool:
        self._position = self._whole = self._readable = end
        self._step = _Scanner._scan_after_value
        return True

    def _scan_first_item(self, text: str) -> bool:
        return self._close(text) or self._scan_item(text)

    def _scan_first_key(self, text: str) -> bool:
        return self._close(text) or self._scan_key(text)

    def _scan_key(self, text: str) -> bool:
        if self._skip_run(_match_members(text, self._position)):
            return True
        if text[self._position] != '"':
            return False
        end = _end_of_string(text, self._position)
        if not text.startswith('"', end):
            return False
        self._position = end + 1
        self._step = _Scanner._scan_colon
        return True

    def _scan_colon(self, text: str) -> bool:
        if text[self._position] != ":":
            return False
        self._position += 1
        self._step = _Scanner._scan_value
        return True

    def _scan_after_value(self, text: str) -> bool:
        if text[self._position] != "," or not self._closers:
            return self._close(text)
        self._position += 1
        in_object = self._closers[-1] == "}"
        self._step = _Scanner._scan_key if in_object else _Scanner._scan_item
        return True

    def _skip_run(self, run: re.Match[str] | None) -> bool:
        """Skips a run of simple values; False if there was none."""
        if run is None or run.end() == self._position:
            return False
        if run[2] is not None:
            return self._end_value(run.end(2))
        self._position = run.end()  # after a comma, which another item or key must follow
        self._whole = self._readable = run.end(1)
        self._step = _Scanner._scan_key if self._closers[-1] == "}" else _Scanner._scan_item
        return True

    def _close(self, text: str) -> bool:
        if not self._closers or text[self._position] != self._closers[-1]:
            return False
        self._closers.pop()
        return self._end_value(self._position + 1)


def _end_of_string(text: str, quote: int) -> int:
    """Where the readable content of the string that opens at `quote` ends."""
    position = quote + 1
    while True:
        end = _end_of(skip_string_text, text, position)
        if end == position or text.startswith('"', end):
            return end
        position = end


def _end_of(match: Callable[[str, int], re.Match[str] | None], text: str, start: int) -> int:
    result = match(text, start)
    return result.end() if result else start
