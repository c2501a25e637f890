"""Tables and paragraphs fit on the terminal, and nothing of them is lost."""

import io
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlingua.cli.output import Output, use_plain_symbols
from interlingua.cli.tables import (
    Column,
    cell_width,
    draw,
    fold_lines,
    room_beside,
    shorten,
    wrap,
)

FAMILY = "👨\u200d👩\u200d👧\u200d👦"
ACCENTED = "e\u0301"
SYLLABLE = "नि"
SIGNS = (
    *("a", "日", FAMILY, ACCENTED, SYLLABLE, "👍🏽", "1\ufe0f\u20e3", "ع", "🇩🇪", "❤\ufe0f", "क्ष"),
    *("👩🏽\u200d💻", "🏳\ufe0f\u200d🌈", "✈\ufe0e"),
)
"""What a terminal shows as one sign, of one to seven characters."""
WORDS = st.lists(st.text("abc日é/", min_size=1, max_size=12), max_size=6).map(" ".join)
COLUMNS = (
    Column("name", "name"),
    Column("count", "count", right=True),
    Column("cost", "$", right=True, is_money=True),
    Column("about", "about", wraps=True),
    Column("more", "", wraps=True),
)
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "name": st.text("abc:-", min_size=1, max_size=30),
            "count": st.integers(0, 10**7),
            "cost": st.none() | st.floats(0, 100).map(lambda value: round(value, 6)),
            "about": WORDS,
            "more": WORDS,
        }
    ),
    min_size=1,
    max_size=5,
)


def no_paint(text, _code):
    """Without colours."""
    return text


def letters(text):
    """What of a text must not be lost: all but the spaces, in any order."""
    return sorted(text.replace(" ", ""))


@given(ROWS, st.integers(20, 200))
def test_a_table_fits(rows, width):
    """Lines are not wider than the terminal, but for a name that is; every text is in them."""
    lines = draw(COLUMNS, rows, width, no_paint).lines
    longest = max(len(row["name"]) for row in rows)

    assert max(map(cell_width, lines)) <= max(width, longest)
    printed = "\n".join(lines).replace("\n", " ").replace(" ", "")
    for row in rows:
        assert row["name"] in "\n".join(lines) or longest > width
        for character in set(row["about"] + row["more"]) - {" "}:
            expected = sum(each[key].count(character) for each in rows for key in ("about", "more"))
            assert printed.count(character) >= expected


@given(WORDS, st.integers(2, 40))
def test_wrapped_lines(text, width):
    """They are as wide as allowed at most, and together they are the text."""
    lines = wrap(text, width)

    assert max(map(cell_width, lines)) <= width
    assert letters("".join(lines)) == letters(text)
    assert " ".join(lines).split() == text.split() or any(
        cell_width(word) > width for word in text.split()
    )


@given(st.lists(st.sampled_from(SIGNS), min_size=1, max_size=30), st.integers(2, 20))
def test_signs_of_several_characters(signs, width):
    """No line is too wide, and none begins within a sign: emoji, accents, Indic vowels."""
    text = "".join(signs)
    lines = wrap(text, width)

    assert "".join(lines) == text
    assert max(map(cell_width, lines)) <= width
    starts = {sum(map(len, signs[:count])) for count in range(len(signs) + 1)}
    assert all(len("".join(lines[:count])) in starts for count in range(len(lines)))


@given(st.lists(st.text("ab", min_size=1, max_size=5) | st.sampled_from(SIGNS), min_size=1))
def test_columns_stand_below_each_other(names):
    """Also where cells have emoji, flags and accents: the second column begins in one place."""
    rows = [{"name": name, "count": number} for number, name in enumerate(names)]
    head, _, *lines = draw(COLUMNS[:2], rows, 80, no_paint).lines

    assert {cell_width(line) for line in (head, *lines)} == {cell_width(head)}
    assert all(line.startswith(name) for line, name in zip(lines, names, strict=True))


@given(st.lists(st.sampled_from(SIGNS), max_size=30), st.integers(2, 20))
def test_shortened(signs, width):
    """A text that is too long ends with a mark, after a whole sign; others stay as they are."""
    text = "".join(signs)
    short = shorten(text, width)

    assert cell_width(short) <= width
    if cell_width(text) <= width:
        assert short == text
    else:
        kept = short.removesuffix("…")
        assert short.endswith("…")
        assert any("".join(signs[:count]) == kept for count in range(len(signs)))


@given(st.lists(WORDS, max_size=4).map("\n  ".join), st.integers(20, 60))
def test_folded_lines(text, width):
    """Long lines are broken and indented; short ones are left as they are."""
    folded = fold_lines(text, width)

    assert max(map(cell_width, folded.split("\n"))) <= width
    assert letters(folded.replace("\n", "")) == letters(text.replace("\n", ""))
    if all(cell_width(line) <= width for line in text.split("\n")):
        assert folded == text


def test_a_value_goes_on_behind_its_label():
    """A finding of a report stays in its column."""
    folded = fold_lines("  found:    one two three four five six", 30)

    assert folded == "  found:    one two three four\n            five six"


def test_columns_are_left_out_by_rank():
    """A table that is too wide loses its least columns, and is a list only when none is left."""
    columns = (
        Column("name", "name"),
        Column("day", "day", rank=1),
        Column("size", "size", rank=2),
        Column("cost", "cost"),
    )
    rows = [{"name": "n" * 10, "day": "d" * 10, "size": "s" * 10, "cost": "c" * 10}]
    drawn = {width: draw(columns, rows, width, no_paint) for width in (46, 45, 34, 33, 20, 15)}

    left_out = {width: each.left_out for width, each in drawn.items()}
    assert left_out == {
        46: (), 45: ("size",), 34: ("size",), 33: ("day", "size"), 20: ("day", "size"),
        15: ("day", "size"),
    }  # fmt: skip
    assert drawn[33].lines[0].split() == ["name", "cost"]
    assert all(len(line) <= width for width in (46, 45, 34, 33) for line in drawn[width].lines)


def test_short_forms_and_money():
    """The short form is used where the long one does not fit; decimals are aligned."""
    columns = (
        Column("name", "name"),
        Column("cost", "$", right=True, is_money=True),
        Column("can", "can", form=", ".join, short=lambda words: "".join(w[0] for w in words)),
    )
    rows = [
        {"name": "a", "cost": 1.0, "can": ["tools", "vision"]},
        {"name": "b", "cost": 0.125, "can": ["tools"]},
    ]
    wide, narrow = (draw(columns, rows, width, no_paint) for width in (60, 16))

    assert wide.lines[2:] == ["a     1.00   tools, vision", "b     0.125  tools"]
    assert (wide.is_short, narrow.is_short) == (False, True)
    assert narrow.lines[2:] == ["a     1.00   tv", "b     0.125  t"]
    assert room_beside(columns[:2], rows, 20) == 20 - len("name  1.000  ")


def test_a_name_that_is_too_long_has_its_own_line():
    """It is whole, so that it can be copied, and the rest of the row is below it."""
    rows = [{"name": "a" * 50, "n": 1}, {"name": "short-name-of-18ch", "n": 22}]
    lines = draw((Column("name", "name"), Column("n", "n", right=True)), rows, 40, no_paint).lines

    assert lines[2] == "a" * 50
    assert lines[3].split() == ["1"]
    assert lines[4].split() == ["short-name-of-18ch", "22"]


def test_a_very_narrow_terminal():
    """Each row is a list of titles and values."""
    columns = (Column("name", "name"), Column("state", "state"), Column("path", "path"))
    row = {"name": "model", "state": "not downloaded", "path": "/a/long/path/of/a/file"}

    assert draw(columns, [row], 24, no_paint).lines == [
        "model",
        "  state: not downloaded",
        "  path: /a/long/path/of/",
        "        a/file",
    ]


class Terminal(io.TextIOWrapper):
    """A terminal with an encoding."""

    def __init__(self, encoding="utf-8"):
        super().__init__(io.BytesIO(), encoding=encoding, write_through=True)

    def isatty(self):
        return True


@pytest.mark.parametrize(("variables", "is_painted"), [({}, True), ({"NO_COLOR": "1"}, False)])
def test_colors_of_tables_and_notices(monkeypatch, variables, is_painted):
    """Titles are bold and warnings coloured, unless `NO_COLOR` is set."""
    for name, value in {"TERM": "xterm", "NO_COLOR": "", "COLUMNS": "80", **variables}.items():
        monkeypatch.setenv(name, value)
    screen, errors = Terminal(), Terminal()
    monkeypatch.setattr(sys, "stdout", screen)
    monkeypatch.setattr(sys, "stderr", errors)
    Output().table((Column("a", "title"),), [{"a": "\x1b[31mred"}])
    Output().warn("careful")

    drawn = screen.buffer.getvalue().decode()
    assert ("\x1b[1mtitle\x1b[0m" in drawn) is is_painted
    assert "\ufffd[31mred" in drawn
    notice = errors.buffer.getvalue().decode()
    assert notice == ("\x1b[33mwarning\x1b[0m: careful\n" if is_painted else "warning: careful\n")


def test_an_encoding_without_the_symbols(monkeypatch):
    """Symbols have ASCII forms, other characters are question marks, and JSON is escaped."""
    screen = Terminal("ascii")
    use_plain_symbols(screen)
    monkeypatch.setattr(sys, "stdout", screen)
    Output().line("a → b… █ 日")
    Output().data({"a": "日"})

    assert screen.buffer.getvalue() == b'a -> b... # ?\n{\n  "a": "\\u65e5"\n}\n'
