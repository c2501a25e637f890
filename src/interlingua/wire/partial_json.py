"""What can be read of a JSON text that is not all there."""

from __future__ import annotations

import re
from collections.abc import Callable

from interlingua.spec.content import Json
from interlingua.spec.errors import DecodeError
from interlingua.wire.json_text import loads

_skip_blank = re.compile(r"[ \t\r\n]*+").match
# In CPython before 3.11.5 a possessive group keeps the position of a failed last try, so the
# groups here repeat plainly. A plain repeat remembers each round, so their number is limited:
# what is longer is read by the next match, or step by step.
#
# What may stand in a string. Half of a surrogate pair at the end of the text is no part of it:
# it would be another character than the pair.
_skip_string_text = re.compile(
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
# The group tells that the text ends here, so that the number may go on.
_match_number = re.compile(rf"{_NUMBER}(?:(?=[ \t\r\n,\]}}])|(\Z))").match

# Runs of simple values, and of members that hold them, are passed over in one match: stepping
# through them costs ten times as much. What ends in no comma or closer may be cut, and is left.
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
_GROWTH = 16  # parse longer text again when it grew by a sixteenth


def parse_partial(text: str) -> Json:
    """
    The value of the longest readable prefix of a JSON text; never raises.

    Open strings, arrays and objects are closed; a key without its value, a half number,
    literal or escape is left out. None if nothing can be read. A number that is the whole
    text is taken as it stands, though more digits may follow.
    """
    scanner = _Scanner()
    scanner.scan(text)
    return scanner.value(text)


class PartialJSON:
    """
    `parse_partial` of a text that grows.

        partial.feed(fragment)
        show(partial.value)

    Reading `value` after each fragment stays close to linear in the text: a long text is
    read again only when it grew by a sixteenth, so `value` may lag behind by that much.
    """

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._length = 0
        self._read_length = 0
        self._value: Json = None
        self._scanner = _Scanner()

    def feed(self, fragment: str) -> None:
        """Add the next piece of the text."""
        self._pieces.append(fragment)
        self._length += len(fragment)

    @property
    def value(self) -> Json:
        """What can be read so far; exact for short text and after `finish`."""
        growth = self._length - self._read_length
        if growth and (self._length <= _EXACT_BELOW or growth * _GROWTH >= self._length):
            self._read()
        return self._value

    def finish(self) -> Json:
        """What can be read of all the text fed, exactly. More may be fed after it."""
        if self._length > self._read_length:
            self._read()
        return self._value

    def _read(self) -> None:
        text = "".join(self._pieces)
        self._pieces = [text]
        self._read_length = self._length
        self._scanner.scan(text)
        self._value = self._scanner.value(text)


class _Scanner:
    """
    Finds how much of a text can be read, and what closes it.

    Scans on from where it stopped when given a longer text. Nothing opens or closes between
    the readable part and the end of what is scanned, so the closers are those of both.
    """

    def __init__(self) -> None:
        self._position = 0  # every token before it is whole
        self._whole = 0  # the end of the last whole value or opened container
        self._readable = 0  # `_whole`, or the end of a string or number that may go on
        self._quote = ""
        self._closers: list[str] = []
        self._step: Callable[[_Scanner, str], bool] = _Scanner._scan_value

    def scan(self, text: str) -> None:
        """Go on as far as the text can be read."""
        self._readable = self._whole
        self._quote = ""
        while self._skip(text) and self._step(self, text):
            pass

    def value(self, text: str) -> Json:
        """What is readable of the text just scanned."""
        if not self._readable:
            return None
        closing = self._quote + "".join(reversed(self._closers))
        try:
            return loads(text[: self._readable] + closing)
        except DecodeError:  # too deep, or a number out of range
            return None

    def _skip(self, text: str) -> bool:
        self._position = _end_of(_skip_blank, text, self._position)
        return self._position < len(text)

    def _scan_item(self, text: str) -> bool:
        return self._pass(_match_items(text, self._position)) or self._scan_value(text)

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
        if self._pass(_match_members(text, self._position)):
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

    def _pass(self, run: re.Match[str] | None) -> bool:
        """Whether a run of simple values came next; if so, it is passed."""
        if run is None or run.end() == self._position:
            return False
        if run[2] is not None:
            return self._end_value(run.end(2))
        self._position = run.end()  # after a comma, where another item or key must come
        self._whole = self._readable = run.end(1)
        self._step = _Scanner._scan_key if self._closers[-1] == "}" else _Scanner._scan_item
        return True

    def _close(self, text: str) -> bool:
        if not self._closers or text[self._position] != self._closers[-1]:
            return False
        self._closers.pop()
        return self._end_value(self._position + 1)


def _end_of_string(text: str, quote: int) -> int:
    """Where the closing quote is, or must come, of the string that opens at `quote`."""
    position = quote + 1
    while True:
        end = _end_of(_skip_string_text, text, position)
        if end == position or text.startswith('"', end):
            return end
        position = end


def _end_of(match: Callable[[str, int], re.Match[str] | None], text: str, start: int) -> int:
    found = match(text, start)
    return found.end() if found else start
