"""
The answer of a model on a terminal, as Markdown that is rendered while it arrives.

Finished blocks are printed once. Only the block that is still arriving is drawn again, and of it
only the lines that changed, so nothing flickers and the scrollback is whole. The cost is linear in
the length of the answer: a block ends at a list item or after some lines of code, and the longer
it is, the more of it must arrive before it is drawn again. In a pause all of it is drawn.
"""

from __future__ import annotations

import re
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

from interlingua.cli.output import (
    can_redraw,
    is_terminal,
    printable,
    terminal_size,
    terminal_width,
    write_dim,
)
from interlingua.cli.tables import wrap

_IDLE = 4  # times the duration of a drawing, before the next one
_PAUSE = 0.1  # seconds without a new piece
_GROWTH = 64  # a block is drawn again when so small a fraction of it is new
_CODE_LINES = 30  # of a code block that are drawn together
_BLOCK, _ITEM, _CODE = "block", "item", "code"  # a list item that another follows; a part of code
_match_fence = re.compile(r" {0,3}(?P<marks>`{3,}|~{3,})(?P<info>[^`]*)$").match
# An item of a list; its marker may still be alone.
_match_item = re.compile(r" ?(?:[-*+]|\d{1,9}[.)])(?: |$)").match
_may_become_item = re.compile(r" ?(?:[-*+]|\d{1,9}[.)]?)?$").match
_match_heading = re.compile(r" {0,3}#{1,6}(?: |$)").match


class Renderer(Protocol):
    """Makes lines of Markdown."""

    def lines(self, text: str, width: int) -> list[str]:
        """The lines of a text."""


class WaitingLine:
    """
    Says on stderr what is waited for, until something arrives; only on a terminal.

    The cursor stays at the start of the line: what others write takes its place.
    """

    def __init__(self, *, is_wanted: bool) -> None:
        self._is_wanted = is_wanted and can_redraw(sys.stdout) and can_redraw(sys.stderr)
        self._is_shown = False

    def show(self, text: str) -> None:
        """Write the text, as far as it fits into a line."""
        if self._is_wanted and not self._is_shown:
            line = wrap(printable(text), terminal_width(sys.stderr) - 1)[0]
            self._is_shown = True  # first: Ctrl-C may come while it is written
            write_dim(sys.stderr, f"{line}\r")

    def erase(self) -> None:
        """Erase it, if it is there."""
        if self._is_shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
            self._is_shown = False  # last, for the same reason


class PlainAnswer:
    """Writes an answer as it is; on a terminal without control characters."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write
        self._is_line_open = False

    def add(self, piece: str) -> None:
        """Write a piece."""
        if piece:
            self._write(printable(piece) if is_terminal(sys.stdout) else piece)
            self._is_line_open = not piece.endswith("\n")

    def end(self) -> None:
        """End the line, so that something else can be written."""
        if self._is_line_open:
            self._write("\n")
            self._is_line_open = False


class MarkdownAnswer:
    """Draws an answer on the terminal, block by block."""

    def __init__(
        self,
        write: Callable[[str], None],
        renderer: Renderer,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._write = write
        self._renderer = renderer
        self._clock = clock
        self._lines: list[str] = []  # of the block that is arriving
        self._size = 0  # the characters in them
        self._rest: list[str] = []  # the line that is arriving, in pieces
        self._rest_size = 0
        self._fence = ""  # the line that opened the code block
        self._last = ""  # what the block before was: one of the words below
        self._shown: list[str] = []
        self._drawn_size = 0
        self._next_drawing = 0.0
        self._width = 0
        self._lock = threading.Lock()  # pauses are noticed in a thread of their own
        self._pause: threading.Timer | None = None
        self._has_grown = False  # since the timer was set

    def add(self, piece: str) -> None:
        """Add a piece of the answer, and draw it if it is time."""
        with self._lock:
            self._add(piece)
            self._has_grown = True
            if self._pause is None and self._is_behind():
                self._await_pause()

    def end(self) -> None:
        """Finish the block that is arriving, so that something else can be written."""
        with self._lock:
            if self._pause is not None:
                self._pause.cancel()
                self._pause = None
            self._end()

    def _await_pause(self) -> None:
        self._has_grown = False
        self._pause = threading.Timer(_PAUSE, self._draw_in_pause)
        self._pause.daemon = True
        self._pause.start()

    def _draw_in_pause(self) -> None:
        """Called by the timer: draw what the last pieces have left."""
        with self._lock:
            if threading.current_thread() is not self._pause:
                return  # it has ended meanwhile
            self._pause = None
            if not self._is_behind():
                return
            if self._has_grown:
                self._await_pause()
                return
            with suppress(OSError, ValueError):  # the next piece or the end raises it
                self._draw()

    def _is_behind(self) -> bool:
        """Whether something has arrived that is not drawn."""
        return self._size + self._rest_size != self._drawn_size

    def _add(self, piece: str) -> None:
        *ends, rest = piece.split("\n")
        for end in ends:
            line = "".join((*self._rest, end)).rstrip("\r")
            self._rest, self._rest_size = [], 0
            self._add_line(line)
        self._rest.append(rest)
        self._rest_size += len(rest)
        size = self._size + self._rest_size
        grown = size - self._drawn_size
        if grown > size // _GROWTH and self._clock() >= self._next_drawing:
            self._draw()

    def _end(self) -> None:
        if self._rest_size:
            line = "".join(self._rest)
            self._rest, self._rest_size = [], 0
            self._add_line(line)
        self._finish(_BLOCK)
        self._fence = self._last = ""

    def _add_line(self, line: str) -> None:
        if self._fence:
            self._push(line)
            if _closes(line, self._fence):
                self._finish(_BLOCK)
                self._fence = ""
            elif len(self._lines) > _CODE_LINES:
                self._finish(_CODE)
                self._push(self._fence)
            return
        if not self._lines and not line.strip():
            return
        is_fence = _match_fence(line) is not None
        is_heading = _match_heading(line) is not None
        if self._ends_block(line, starts_block=is_fence or is_heading):
            is_tight = _match_item(self._lines[0]) and self._lines[-1].strip()
            self._finish(_ITEM if is_tight else _BLOCK)
        self._push(line)
        if is_fence:
            self._fence = line
        elif is_heading:
            self._finish(_BLOCK)

    def _ends_block(self, line: str, *, starts_block: bool) -> bool:
        """Whether the lines so far are a block that this line is not part of."""
        if not self._lines or not line.strip():
            return False
        is_after_blank = not self._lines[-1].strip()
        if _match_item(line):
            return is_after_blank or _match_item(self._lines[0]) is not None
        return starts_block or (is_after_blank and not line.startswith((" ", "\t")))

    def _push(self, line: str) -> None:
        self._lines.append(line)
        self._size += len(line) + 1

    def _finish(self, kind: str) -> None:
        """Draw the block for the last time."""
        if self._lines:
            self._draw(is_last=True)
            self._last = kind
        self._lines, self._size, self._shown = [], 0, []
        self._drawn_size, self._next_drawing = 0, 0.0

    def _draw(self, *, is_last: bool = False) -> None:
        began = self._clock()
        columns, height = terminal_size(sys.stdout)
        text = "\n".join([*self._lines, *filter(None, ["".join(self._rest)])])
        if not is_last and _may_become_item(text):
            return
        lines = self._renderer.lines(text, columns)
        if lines and not self._shown and self._needs_gap(text):
            self._write("\n")
        if columns != self._width:
            self._width = columns
            self._erase(height)
        self._show(lines, height)
        ended = self._clock()
        self._drawn_size = self._size + self._rest_size
        self._next_drawing = ended + _IDLE * (ended - began)

    def _erase(self, height: int) -> None:
        """Erase lines for another width: terminals break or cut them, and they overlap new ones."""
        up = min(len(self._shown), height - 1)
        if up:
            self._shown = []
            self._write(f"\r\x1b[{up}A\x1b[J")

    def _needs_gap(self, text: str) -> bool:
        """Whether an empty line is between the block before and this one."""
        return self._last == _BLOCK or (self._last == _ITEM and not _match_item(text))

    def _show(self, lines: list[str], height: int) -> None:
        """Replace the lines on the screen; lines that have left the screen stay as they are."""
        shown = self._shown
        first = max(0, len(shown) - (height - 1))
        while first < min(len(lines), len(shown)) and lines[first] == shown[first]:
            first += 1
        if first == len(lines) == len(shown):
            return
        up = len(shown) - first
        # After Ctrl-C the terminal has written ^C where the cursor was.
        text = f"\r\x1b[{up}A" if up > 0 else "\r"
        text += "".join(f"{line}\x1b[K\n" for line in lines[first:])
        try:
            self._write(text + ("\x1b[J" if len(lines) < len(shown) else ""))
        finally:  # what Ctrl-C interrupts has been handed over
            self._shown = shown[:first] + lines[first:]


def _closes(line: str, opening: str) -> bool:
    """Whether a line ends the code block that another line has opened."""
    fence, opened = _match_fence(line), _match_fence(opening)
    return bool(
        fence
        and opened
        and not fence["info"].strip()
        and fence["marks"].startswith(opened["marks"])
    )
