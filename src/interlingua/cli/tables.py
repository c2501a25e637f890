"""
Tables and paragraphs for a terminal of a given width.

No text is cut off. Columns that may wrap share the width that the others leave; a first cell that
is too long stands on a line of its own; then the columns that matter least are left out; and where
even that does not fit, each row is a list of `title: value`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

_GAP = "  "
_replace_blanks = re.compile(r"[ \t\r\n\f\v]+").sub
# Control characters but line ends and tabs, halves of characters, bidi overrides and isolates.
_replace_controls = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\u202a-\u202e\u2066-\u2069]"
).sub
_NARROWEST = 16  # columns of the terminal for a cell that wraps
_MOST_DECIMALS = 6
_LINKERS = "\u094d\u09cd\u0acd\u0b4d\u0c4d\u0d4d\u1039\u17d2"
"""The signs that join the letters before and behind them in scripts of India and beyond."""
BOLD, DIM, GREEN, RED, YELLOW = "1", "2", "32", "31", "33"


class Column(NamedTuple):
    """A column of a table: the key of its values, its title, and how a terminal shows it."""

    key: str
    title: str
    right: bool = False
    wraps: bool = False
    """Whether its cells may have several lines."""
    is_money: bool = False
    """Whether its numbers have as many decimals as they need, at least two, and are aligned."""
    form: Callable[[Any], str] | None = None
    """How a value is written, if not as in lines with tabs."""
    short: Callable[[Any], str] | None = None
    """How it is written where the table is else too wide."""
    colors: Mapping[str, str] = {}
    """The colour of a cell by its text."""
    rank: int = 0
    """Where the table is too wide, columns are left out: the highest rank first, never rank 0."""


class Drawing(NamedTuple):
    """The lines of a table, whether short forms were used, and the titles that were left out."""

    lines: list[str]
    is_short: bool
    left_out: tuple[str, ...] = ()


def draw(
    columns: Sequence[Column],
    rows: Sequence[Mapping[str, object]],
    width: int,
    paint: Callable[[str, str], str],
) -> Drawing:
    """Draw a table; `paint` takes a text and a code such as `BOLD`."""
    cells = _cells(columns, rows, is_short=False)
    is_short = _width(columns, cells) > width and any(column.short for column in columns)
    if is_short:
        cells = _cells(columns, rows, is_short=True)
    widths = _fit(columns, cells, width)
    if widths is None:
        return _draw_less(columns, rows, width, paint)
    titles = [column.title for column in columns]
    head = _row(columns, titles, widths, lambda text, _code: paint(text, BOLD))
    rule = paint("─" * (sum(widths) + len(_GAP) * (len(widths) - 1)), DIM)
    body = (line for row in cells for line in _row(columns, row, widths, paint))
    return Drawing([*head, rule, *body], is_short)


def _draw_less(
    columns: Sequence[Column],
    rows: Sequence[Mapping[str, object]],
    width: int,
    paint: Callable[[str, str], str],
) -> Drawing:
    """Draw a table without the column that matters least, or as lists where all of them matter."""
    least = max(columns, key=lambda column: column.rank)
    if not least.rank:
        whole = _cells(columns, rows, is_short=False)
        return Drawing(list(_records(columns, whole, width, paint)), is_short=False)
    rest = [column for column in columns if column is not least]
    drawing = draw(rest, rows, width, paint)
    return drawing._replace(left_out=(*drawing.left_out, least.title))


def room_beside(columns: Sequence[Column], rows: Sequence[Mapping[str, object]], width: int) -> int:
    """How much of the width these columns leave for another one."""
    cells = _cells(columns, rows, is_short=False)
    return width - _width(columns, cells) - len(_GAP)


def plain_cell(value: object) -> str:
    """A value as text on one line."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.6g}"
    text = ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)
    return printable(one_line(text))


def one_line(text: str) -> str:
    """
    The text on one line, with one space for line ends, tabs and several spaces.

    Other spaces, such as no-break spaces, stay: they are part of the words.
    """
    return _replace_blanks(" ", text).strip(" ")


def printable(text: str) -> str:
    """The text with U+FFFD for what could command a terminal, or show it in another order."""
    return _replace_controls("\ufffd", text)


def escape_controls(text: str) -> str:
    """JSON text with escapes for the same."""
    return _replace_controls(lambda match: f"\\u{ord(match[0]):04x}", text)


def cell_width(text: str) -> int:
    """How many columns of a terminal a text takes."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def wrap(text: str, width: int) -> list[str]:
    """The lines of a text on one line; they break at spaces, and in words that are too long."""
    lines = [""]
    room = width
    for word in text.split(" "):
        size = cell_width(word)
        if lines[-1] and size + 1 <= room:
            lines[-1] += f" {word}"
            room -= size + 1
            continue
        pieces = [word] if size <= width else _chop(word, width)
        lines[-1:] = [*filter(None, lines[-1:]), *pieces]
        room = width - cell_width(pieces[-1])
    return lines


def fold_lines(text: str, width: int) -> str:
    """The text with its long lines broken; what goes on is indented as far as its line."""
    return "\n".join(folded for line in text.split("\n") for folded in _fold(line, width))


def _fold(line: str, width: int) -> list[str]:
    if cell_width(line) <= width:
        return [line]
    start = line.lstrip(" ")
    indent = len(line) - len(start)
    label, colon, rest = start.partition(": ")
    # A value is indented behind its label, as in `found:    what`.
    if colon and indent and label.isalpha():
        indent += len(label) + 2 + len(rest) - len(rest.lstrip(" "))
    if indent > width // 2:
        indent = 0
    first, *others = wrap(line[indent:], width - indent)
    return [line[:indent] + first, *(" " * indent + other for other in others)]


def shorten(text: str, width: int) -> str:
    """The start of a text that fits into so many columns; `…` stands for the rest."""
    if cell_width(text) <= width:
        return text
    return f"{_chop(text, width - 1)[0]}…"


def _chop(word: str, width: int) -> list[str]:
    """Cut a word into pieces that fit; what is shown as one sign stays together."""
    pieces, size = [""], 0
    for sign, columns in signs(word):
        if size + columns > width:
            pieces.append("")
            size = 0
        pieces[-1] += sign
        size += columns
    return pieces


def signs(text: str) -> Iterator[tuple[str, int]]:
    """
    The signs of a text and their columns: what a terminal shows and a reader counts as one.

    Such are a letter with its accents, a conjunct of Indic letters, a flag, a family of emoji.
    """
    if text.isascii():
        yield from ((character, 1) for character in text)
        return
    from rich.cells import split_graphemes

    sign, size = "", 0
    for start, end, columns in split_graphemes(text)[0]:
        if sign and not _goes_on(sign, text[start]):
            yield sign, size
            sign, size = "", 0
        sign += text[start:end]
        size += columns
    if sign:
        yield sign, size


def _goes_on(sign: str, character: str) -> bool:
    """Whether a character belongs to the sign before it: half a flag, or a letter of a conjunct."""
    if "\U0001f1e6" <= character <= "\U0001f1ff":
        return len(sign) == 1 and "\U0001f1e6" <= sign <= "\U0001f1ff"
    is_same_script = ord(sign[-1]) >> 7 == ord(character) >> 7  # 128 characters are a script
    return sign[-1] in _LINKERS and is_same_script and character.isalpha()


def _cells(
    columns: Sequence[Column], rows: Sequence[Mapping[str, object]], *, is_short: bool
) -> list[list[str]]:
    forms = [_form(column, rows, is_short=is_short) for column in columns]
    return [
        [form(row.get(column.key)) for column, form in zip(columns, forms, strict=True)]
        for row in rows
    ]


def _form(
    column: Column, rows: Sequence[Mapping[str, object]], *, is_short: bool
) -> Callable[[Any], str]:
    form = (column.short if is_short else None) or column.form
    if form is not None:
        return lambda value: "" if value is None else form(value)
    if column.is_money:
        values = [row.get(column.key) for row in rows]
        amounts = [value for value in values if isinstance(value, (int, float))]
        decimals = max(map(_decimals, amounts), default=2)
        return lambda value: "" if value is None else _amount(value, decimals)
    return lambda value: (
        f"{value:,}" if type(value) is int else plain_cell(value)  # not bool
    )


def _amount(amount: float, most: int) -> str:
    """An amount with the decimals that it needs, and spaces in place of those of the others."""
    decimals = _decimals(amount)
    return f"{amount:,.{decimals}f}{' ' * (most - decimals)}"


def _decimals(amount: float) -> int:
    exact = (each for each in range(2, _MOST_DECIMALS) if round(amount, each) == amount)
    return next(exact, _MOST_DECIMALS)


def _widths(columns: Sequence[Column], cells: list[list[str]]) -> list[int]:
    return [
        max((cell_width(column.title), *(cell_width(row[index]) for row in cells)))
        for index, column in enumerate(columns)
    ]


def _width(columns: Sequence[Column], cells: list[list[str]]) -> int:
    return sum(_widths(columns, cells)) + len(_GAP) * (len(columns) - 1)


def _fit(columns: Sequence[Column], cells: list[list[str]], width: int) -> list[int] | None:
    """The width of each column; None if they do not fit beside each other."""
    widths = _widths(columns, cells)
    room = width - len(_GAP) * (len(columns) - 1)
    if sum(widths) <= room:
        return widths
    wrapping = [index for index, column in enumerate(columns) if column.wraps]
    fixed = sum(size for index, size in enumerate(widths) if index not in wrapping)
    needed = sum(min(widths[index], _NARROWEST) for index in wrapping)
    if fixed + needed > room and 0 not in wrapping:
        # The longest first cells stand on lines of their own.
        widths[0] -= fixed + needed - room
        if widths[0] < _NARROWEST:
            return None
        fixed = room - needed
    for count, index in zip(range(len(wrapping), 0, -1), wrapping, strict=True):
        widths[index] = min(widths[index], (room - fixed) // count)
        fixed += widths[index]
    return widths if fixed <= room and all(widths) else None


def _row(
    columns: Sequence[Column],
    row: Sequence[str],
    widths: Sequence[int],
    paint: Callable[[str, str], str],
) -> Iterator[str]:
    first = row[0]
    if cell_width(first) > widths[0] and not columns[0].wraps:
        yield paint(first, columns[0].colors.get(first, ""))
        row = ["", *row[1:]]
    parts = [
        wrap(cell, size) if column.wraps else [cell]
        for column, cell, size in zip(columns, row, widths, strict=True)
    ]
    for number in range(max(map(len, parts))):
        line = []
        for column, cell, part, size in zip(columns, row, parts, widths, strict=True):
            text = part[number] if number < len(part) else ""
            space = " " * (size - cell_width(text))
            painted = paint(text, column.colors.get(cell, ""))
            line.append(space + painted if column.right else painted + space)
        yield _GAP.join(line).rstrip()


def _records(
    columns: Sequence[Column],
    cells: list[list[str]],
    width: int,
    paint: Callable[[str, str], str],
) -> Iterator[str]:
    for number, row in enumerate(cells):
        if number:
            yield ""
        yield from (paint(line, BOLD) for line in wrap(row[0], width))
        for column, cell in zip(columns[1:], row[1:], strict=True):
            if cell:
                yield from _fold(f"  {column.title or 'value'}: {cell}", width)
