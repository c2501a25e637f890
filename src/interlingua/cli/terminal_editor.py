"""
Edits a line on a terminal sign by sign: readline does it character by character.

A family of emoji, a flag or a letter with its accents is one sign: one key moves over it or erases
it. Terminals do not agree how wide a sign is, and nothing here relies on that: the cursor comes to
its place by printing what is before it.
"""

from __future__ import annotations

import codecs
import os
import re
import select
import signal
import sys
import termios
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import NamedTuple

from interlingua.cli.output import printable, terminal_size
from interlingua.cli.tables import cell_width, signs

_PASTE, _PASTED = "\x1b[200~", "\x1b[201~"
"""What a terminal sends before and after a pasted text."""
# One key: a sequence of a special key, Alt with a key, plain text, or a control character.
_match_key = re.compile(
    r"\x1b(?:\[[0-9;?]*[@-~]|O[@-~]|[^\[O])|[^\x00-\x1f\x7f]+|[^\x1b]", re.DOTALL
).match
_LEFT, _RIGHT, _WORD_LEFT, _WORD_RIGHT = "left", "right", "word left", "word right"
_HOME, _END, _FIRST, _LAST = "home", "end", "first", "last"
_NAMES = {
    "\x02": _LEFT, "\x1b[D": _LEFT, "\x1bOD": _LEFT, "\x06": _RIGHT, "\x1b[C": _RIGHT,
    "\x1bOC": _RIGHT, "\x01": _HOME, "\x1b[H": _HOME, "\x1bOH": _HOME, "\x1b[1~": _HOME,
    "\x1b[7~": _HOME, "\x05": _END, "\x1b[F": _END, "\x1bOF": _END, "\x1b[4~": _END,
    "\x1b[8~": _END, "\x1bb": _WORD_LEFT, "\x1b[1;5D": _WORD_LEFT, "\x1b[1;3D": _WORD_LEFT,
    "\x1bf": _WORD_RIGHT, "\x1b[1;5C": _WORD_RIGHT, "\x1b[1;3C": _WORD_RIGHT, "\x1b<": _FIRST,
    "\x1b>": _LAST,
}  # fmt: skip
"""The keys that move the cursor, and where to."""
_ERASING = {"\x7f": _LEFT, "\x08": _LEFT, "\x1b[3~": _RIGHT, "\x04": _RIGHT}
_CUTTING = {"\x0b": _END, "\x15": _HOME, "\x17": _WORD_LEFT, "\x1b\x7f": _WORD_LEFT,
            "\x1bd": _WORD_RIGHT}  # fmt: skip
"""The keys that erase up to a place; what they erase, Ctrl-Y puts back."""
_UP, _DOWN = ("\x10", "\x1b[A", "\x1bOA"), ("\x0e", "\x1b[B", "\x1bOB")
_ENTER, _NEW_LINE = ("\r", "\n"), ("\x1b\r", "\x1b\n")
_INTERRUPT, _TAB, _CLEAR, _SEARCH, _YANK, _SUSPEND, _CANCEL = "\x03\t\x0c\x12\x19\x1a\x07"
_NO_WRAP, _WRAP = "\x1b[?7l", "\x1b[?7h"
_MARKS, _NO_MARKS = "\x1b[?2004h", "\x1b[?2004l"
_find_word = re.compile(r"\w+").finditer


class Line:
    """A text and the place of the cursor, which is never within a sign."""

    def __init__(self, text: str = "") -> None:
        self.text = text
        self.at = len(text)

    def place(self, name: str) -> int:
        """The place that a key names, seen from the cursor."""
        text, at = self.text, self.at
        start, end = self._ends()
        if name == _WORD_LEFT:
            return max((word.start() for word in _find_word(text, 0, at)), default=0)
        if name == _WORD_RIGHT:
            return next((word.end() for word in _find_word(text, at)), len(text))
        if name in (_LEFT, _RIGHT):
            step = 1 if name == _RIGHT else -1
            if at == (end if step > 0 else start):  # beside it is the end of a line, or nothing
                return min(max(0, at + step), len(text))
            stops = _stops(text[start:end])
            return start + stops[bisect_left(stops, at - start) + step]
        return {_HOME: start, _END: end, _FIRST: 0, _LAST: len(text)}[name]

    def _ends(self) -> tuple[int, int]:
        """Where the line of the cursor begins and ends."""
        end = self.text.find("\n", self.at)
        return self.text.rfind("\n", 0, self.at) + 1, len(self.text) if end < 0 else end

    def go(self, name: str) -> None:
        """Move the cursor."""
        self._settle(self.place(name))

    def go_line(self, step: int) -> bool:
        """Move the cursor to the line before or behind; whether there is one."""
        start, end = self._ends()
        column, edge = self.at - start, start - 1 if step < 0 else end + 1
        if not 0 <= edge <= len(self.text):
            return False
        self.at = edge
        start, end = self._ends()
        self._settle(min(start + column, end))
        return True

    def insert(self, text: str) -> None:
        """Put a text at the cursor."""
        self.text = f"{self.text[: self.at]}{text}{self.text[self.at :]}"
        self._settle(self.at + len(text))

    def erase(self, name: str) -> str:
        """Remove what is between the cursor and a place; returns it."""
        start, end = sorted((self.at, self.place(name)))
        removed = self.text[start:end]
        self.text = self.text[:start] + self.text[end:]
        self._settle(start)
        return removed

    def _settle(self, at: int) -> None:
        """Put the cursor at a place, or behind the sign that it is in."""
        self.at = at
        start, end = self._ends()
        if start < at < end:
            stops = _stops(self.text[start:end])
            self.at = start + stops[bisect_left(stops, at - start)]


@lru_cache(1000)
def _stops(line: str) -> list[int]:
    """Where signs begin in a line, and its end."""
    stops = [0]
    for sign, _ in signs(line):
        stops.append(stops[-1] + len(sign))
    return stops


class Layout(NamedTuple):
    """The rows of a text on a screen, the row of the cursor, and what is before it there."""

    rows: list[str]
    row: int
    before: str


def lay_out(text: str, at: int, start: int, width: int) -> Layout:
    """Lay out a text on rows of a width; the first one begins behind a prompt at `start`."""
    rows: list[str] = []
    row, before, passed = 0, "", 0
    for line in text.split("\n"):
        pieces = _rows(line, 0 if rows else start, width)
        if passed <= at <= passed + len(line):
            number = bisect_right([offset for offset, _ in pieces], at - passed) - 1
            row, before = len(rows) + number, _shown(text[passed + pieces[number][0] : at])
        rows += [piece for _, piece in pieces]
        passed += len(line) + 1
    return Layout(rows, row, before)


@lru_cache(1000)
def _rows(line: str, start: int, width: int) -> list[tuple[int, str]]:
    """The rows of a line, and where each begins; behind a full row there is an empty one."""
    rows, size, offset = [(0, "")], start, 0
    for sign, columns in signs(line):
        room = 4 if sign == "\t" else columns
        if size + room > width and size:
            rows.append((offset, ""))
            size = 0
        rows[-1] = rows[-1][0], rows[-1][1] + _shown(sign)
        size += room
        offset += len(sign)
    return rows if size < width else [*rows, (offset, "")]


def _shown(text: str) -> str:
    return printable(text.replace("\t", " " * 4))


class TerminalEditor:
    """Reads lines from a terminal, with the usual keys of line editors, and with a history."""

    def __init__(self, complete: Callable[[str], Sequence[str]]) -> None:
        """`complete` takes the line up to the cursor, and returns what it may become."""
        self.history: list[str] = []
        self._complete = complete
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._typed = ""  # what was read, but not used yet
        self._line = Line()
        self._prompt = ""
        self._style = "{}"
        self._row = 0  # the row of the cursor, counted from the prompt
        self._removed = ""
        self._entry = 0  # the place in the history
        self._draft = ""

    def read(self, prompt: str, style: str = "{}") -> str:
        """The next line; `style` has the codes around the prompt. `EOFError` at Ctrl-D."""
        self._line, self._prompt, self._style, self._row = Line(), prompt, style, 0
        self._entry, self._draft = len(self.history), ""
        while not self._edit():
            self._write("\n")
            os.kill(0, signal.SIGTSTP)  # Ctrl-Z: to the background, until a shell continues it
            self._row = 0
        self._write("\n")
        text = self._line.text
        if text and self.history[-1:] != [text]:
            self.history.append(text)
        return text

    def _edit(self) -> bool:
        """Handle keys until Enter; false at Ctrl-Z."""
        with self._raw_mode():
            self._draw()
            try:
                for key in self._keys():
                    if key in _ENTER or key == _SUSPEND:
                        return key != _SUSPEND
                    self._handle(key)
                    if not self._has_more():
                        self._draw()
            finally:
                self._line.go(_LAST)
                self._draw(whole=True)
        raise EOFError

    def _handle(self, key: str) -> None:
        line = self._line
        if key == _INTERRUPT:
            raise KeyboardInterrupt
        if key == "\x04" and not line.text:
            raise EOFError
        if key in _NAMES:
            line.go(_NAMES[key])
        elif key in _ERASING:
            line.erase(_ERASING[key])
        elif key in _CUTTING:
            self._removed = line.erase(_CUTTING[key])
        elif key in _UP or key in _DOWN:
            step = 1 if key in _DOWN else -1
            if not line.go_line(step):
                self._recall(self._entry + step)
        elif (text := self._text_of(key)) is not None:
            line.insert(text)
        else:
            self._command(key)

    def _text_of(self, key: str) -> str | None:
        """The text that a key inserts; None if it inserts none."""
        if key.startswith(_PASTE):
            return re.sub("\r\n?", "\n", key.removeprefix(_PASTE).removesuffix(_PASTED))
        if key in _NEW_LINE or key == _YANK:
            return self._removed if key == _YANK else "\n"
        return None if key[0] < " " or key[0] == "\x7f" else key

    def _command(self, key: str) -> None:
        if key == _TAB:
            self._offer(list(self._complete(self._line.text[: self._line.at])))
        elif key == _CLEAR:
            self._write("\x1b[H\x1b[2J")
            self._row = 0
        elif key == _SEARCH:
            self._search()

    def _offer(self, found: list[str]) -> None:
        """Complete what is before the cursor as far as all that was found agrees; else list it."""
        line, before = self._line, self._line.text[: self._line.at]
        common = os.path.commonprefix(found)  # noqa: RUF071 -- characters are compared
        if len(common) > len(before):
            line.text, line.at = line.text[line.at :], 0
            line.insert(common)
        elif len(found) > 1:
            width, height = terminal_size(sys.stdout)
            names = [each.removeprefix(before[: before.rfind(" ") + 1]) for each in found]
            shown = [printable(each)[: width - 1] for each in names[: height - 3]]
            more = [f"and {len(names) - len(shown):,} more"] * (len(names) > len(shown))
            self._draw(whole=True)
            self._write("".join(f"\n{each}" for each in [*shown, *more]) + "\n")
            self._row = 0

    def _recall(self, entry: int) -> None:
        """Put another prompt of the history in the line; what was typed comes back behind them."""
        if not 0 <= entry <= len(self.history):
            return
        if self._entry == len(self.history):
            self._draft = self._line.text
        self._entry = entry
        self._line = Line(self.history[entry] if entry < len(self.history) else self._draft)

    def _search(self) -> None:
        """Find the last prompt with a text in it, as it is typed; Ctrl-R again goes further."""
        before, words, entry = self._line, "", len(self.history)
        prompt, self._prompt = self._prompt, ""
        for key in self._keys():
            is_again = key == _SEARCH
            if key in _ERASING:
                words, entry = words[:-1], len(self.history)
            elif not is_again and key.isprintable():
                words += key
            elif not is_again:
                self._prompt = prompt
                if key in (_INTERRUPT, _CANCEL):
                    self._line = before
                else:
                    self._typed = key + self._typed
                return
            last = entry if is_again else entry + 1
            found = [i for i, each in enumerate(self.history[:last]) if words and words in each]
            entry = found[-1] if found else entry
            self._line = Line(self.history[entry]) if found else self._line
            self._prompt = f"search {words}: " if found or not words else f"no {words}: "
            self._draw()

    # The terminal.

    def _keys(self) -> Iterator[str]:
        """The keys that are pressed; several letters at once are one, and so is a pasted text."""
        while True:
            if self._typed.startswith(_PASTE):
                yield self._read_paste()
            elif match := _match_key(self._typed):
                self._typed = self._typed[match.end() :]
                yield match[0]
            else:
                self._typed += self._receive()

    def _read_paste(self) -> str:
        pieces = [self._typed]
        end = _PASTED
        while end not in (pieces[-2][-len(end) :] if len(pieces) > 1 else "") + pieces[-1]:
            pieces.append(self._receive())
        text, end, self._typed = "".join(pieces).partition(end)
        return text + end

    def _has_more(self) -> bool:
        return bool(self._typed or select.select([sys.stdin], [], [], 0)[0])

    def _receive(self) -> str:
        try:
            data = os.read(sys.stdin.fileno(), 65_536)
        except OSError:  # the terminal was closed
            data = b""
        if not data:
            raise EOFError
        return self._decoder.decode(data)

    def _draw(self, *, whole: bool = False) -> None:
        """Draw the prompt and the line; not more rows than the screen has, unless `whole`."""
        width, height = terminal_size(sys.stdout)
        prompt = printable(self._prompt)
        rows, row, before = lay_out(self._line.text, self._line.at, cell_width(prompt), width)
        top = 0
        if len(rows) > height and not whole:
            top = min(max(0, row - height // 2), len(rows) - height)
            rows = rows[top : top + height]
        row -= top
        styled = self._style.format(prompt) if not top else ""
        up = len(rows) - 1 - row
        self._write(
            (f"\x1b[{self._row}A" if self._row else "")
            + f"\r\x1b[J{_NO_WRAP}{styled}"
            + "\n".join(rows)
            + (f"\x1b[{up}A" if up else "")
            + ("" if before == rows[row] and not up else f"\r{'' if row else styled}{before}")
            + _WRAP
        )
        self._row = row

    def _write(self, text: str) -> None:
        sys.stdout.write(text)
        sys.stdout.flush()

    @contextmanager
    def _raw_mode(self) -> Iterator[None]:
        """Get each key at once, and pasted texts with marks."""
        file = sys.stdin.fileno()
        usual = termios.tcgetattr(file)
        mode = termios.tcgetattr(file)
        mode[0] &= ~(termios.ICRNL | termios.IXON | termios.INLCR)
        mode[3] &= ~(termios.ICANON | termios.ECHO | termios.ISIG | termios.IEXTEN)
        mode[6][termios.VMIN], mode[6][termios.VTIME] = 1, 0
        termios.tcsetattr(file, termios.TCSADRAIN, mode)
        try:
            self._write(_MARKS)
            yield
        finally:
            self._write(_NO_MARKS)
            termios.tcsetattr(file, termios.TCSADRAIN, usual)
