"""Answers on a terminal: rendered while they arrive, the same however they are cut."""

import threading
import time

import pyte
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlingua.cli import answer_screen
from interlingua.cli.answer_screen import MarkdownAnswer
from interlingua.cli.markdown import MarkdownRenderer
from support.patterns import LINEAR, growth

COLUMNS, LINES = 60, 12
ANSWER = """# Tides

Caused **mostly by the Moon**, and a *little* by the `Sun`.
See [the tables](https://example.com/tables) <b>now</b>, ![a map](https://example.com/map.png)

1. The Moon pulls the near side of the ocean, which is why it is high there.
2. It pulls the far side less:
   - so there are two bulges
   - one is far away
10. The Earth turns.

- one

- two
  with more

```python
def height(t):

    return t  # ```
```
| place | tide |
|---|---:|
| Brest | 7.2 m |

> The sea is
> never still.

---
* * *
Roses are red,
violets are blue
# The end
2 * 3 * 4 and **never closed
"""
BLOCKS = st.sampled_from(
    ["word ", "**b** ", "`c` ", "\n", "\n\n", "- x\n", "1. y\n", "```py\n", "```\n", "# h\n",
     "  z\n", "| a | b |\n|---|---|\n| c | d |\n", "> q\n", "*", "1", "<i>", "\t", "\x1b[2J",
     "日本 ", "---\n"]
)  # fmt: skip


class Screen:
    """A terminal with all that was ever on it."""

    def __init__(self):
        self._screen = pyte.HistoryScreen(COLUMNS, LINES, history=100_000, ratio=1)
        self._screen.set_mode(pyte.modes.LNM)  # as terminals with `onlcr` do
        self._stream = pyte.Stream(self._screen)
        self._lock = threading.Lock()
        self.written = 0

    def write(self, text):
        """Draw a text."""
        self.written += len(text)
        with self._lock:
            self._stream.feed(text)

    def resize(self, columns):
        """Change the width; lines that are too long are cut."""
        self._screen.resize(LINES, columns)

    @property
    def lines(self):
        """All lines, from the top of the scrollback."""
        columns = range(self._screen.columns)
        with self._lock:
            above = ["".join(row[column].data for column in columns) for row in
                     self._screen.history.top]  # fmt: skip
            return [line.rstrip() for line in (*above, *self._screen.display)]

    @property
    def text(self):
        """The lines without the empty ones at the end."""
        return "\n".join(self.lines).rstrip()


@pytest.fixture(autouse=True)
def terminal(monkeypatch):
    """The size of the terminal."""
    monkeypatch.setenv("COLUMNS", str(COLUMNS))
    monkeypatch.setenv("LINES", str(LINES))


class Clock:
    """Time that goes on a little with each look, or stands still."""

    def __init__(self, step):
        self._now, self._step = 0.0, step

    def __call__(self):
        self._now += self._step
        return self._now


def shown(pieces, step=1.0, renderer=None):
    """The screen after these pieces; a step of 0 draws as often as possible."""
    screen = Screen()
    answer = MarkdownAnswer(screen.write, renderer or MarkdownRenderer(), Clock(step))
    for piece in pieces:
        answer.add(piece)
    answer.end()
    return screen


def test_an_answer():
    """Headings, lists, code, tables and quotes are drawn, and nothing is left out."""
    text = shown([ANSWER]).text

    assert text.startswith("Tides\n\nCaused mostly by the Moon, and a little by the Sun.\n")
    assert "See the tables (https://example.com/tables)" in text
    assert "<b>now</b>" in text
    assert "a map (https://example.com/map.png)" in " ".join(text.split())
    assert "\n 10 The Earth turns.\n\n • one\n\n • two" in text
    assert "  def height(t):\n\n      return t  # ```\n\nplace" in text
    assert "Roses are red,\nviolets are blue\n\nThe end\n\n2 * 3 * 4 and **never closed" in text


@pytest.mark.parametrize("step", [0.0, 0.01])
@pytest.mark.parametrize("size", [1, 2, 7, 50])
def test_pieces_do_not_show(size, step):
    """However an answer is cut, the terminal and its scrollback are the same at the end."""
    pieces = [ANSWER[at : at + size] for at in range(0, len(ANSWER), size)]

    assert shown(pieces, step).text == shown([ANSWER]).text


@given(st.lists(BLOCKS, max_size=30))
def test_any_markdown(pieces):
    """What arrives in pieces is drawn as what arrives at once; control characters do nothing."""
    text = "".join(pieces)
    expected = shown([text]).text

    assert shown(pieces, 0.0).text == expected
    for word in ("word", "日本", "<i>"):
        assert expected.count(word) >= text.count(word) - text.count(f"{word}\n---")


def test_scrolled_lines_are_not_drawn_again():
    """A paragraph that is longer than the screen is whole in the scrollback, once."""
    words = [f"word{number} " for number in range(400)]
    text = shown(words, 0.0).text

    assert text.split() == "".join(words).split()


@pytest.mark.parametrize(
    "line", ["- an item of a list\n", "x = 1  # code\n", "word ", "A paragraph.\n\n", "| a | b |\n"]
)
def test_the_cost_is_linear(line):
    """Four times the answer is about four times the work: rendered text and written text."""

    class Counting(MarkdownRenderer):
        total = 0

        def lines(self, text, width):  # noqa: ARG002
            self.total += len(text)
            return [text[-40:].strip()]

    def work(count):
        renderer = Counting()
        start = ["```py\n"] if line.startswith("x") else ["| a | b |\n|---|---|\n"]
        start = start if line[0] in "x|" else []
        screen = shown([*start, *[line] * count], 0.0, renderer)
        return renderer.total, screen.written

    small, large = work(500), work(2000)
    assert large[0] <= 5.5 * small[0]
    assert large[1] <= 5.5 * small[1]


def test_a_long_line_in_small_pieces():
    """A line of twice the length takes twice the time."""

    class Last(MarkdownRenderer):
        def lines(self, text, width):
            return [text[-width:]]

    def write(words):
        answer = MarkdownAnswer(lambda _text: None, Last(), Clock(0.0))
        for _ in range(words):
            answer.add("word")
        answer.end()

    assert growth(write, lambda size: 4 * size) < LINEAR


def test_a_long_code_block_is_continued():
    """It has no gaps, and every line of it once."""
    code = "".join(f"line_{number} = {number}\n" for number in range(3 * answer_screen._CODE_LINES))
    text = shown([f"```python\n{code}```\nAfter."]).text

    expected = "".join(f"  {line}\n" for line in code.splitlines())
    assert text == f"{expected}\nAfter."


def test_the_end_lets_others_write():
    """After `end` the cursor is on an empty line, and the answer may go on."""
    screen = Screen()
    answer = MarkdownAnswer(screen.write, MarkdownRenderer())
    answer.add("Let me **look")
    answer.end()
    screen.write("note\n")
    answer.add("Found.")
    answer.end()

    assert screen.text == "Let me **look\nnote\nFound."


def test_what_the_terminal_echoes_does_not_shift_the_block():
    """After Ctrl-C the terminal has written ^C; the block is drawn from the left all the same."""
    screen = Screen()
    answer = MarkdownAnswer(screen.write, MarkdownRenderer(), Clock(1000.0))
    answer.add("one **two")
    screen.write("^C")
    answer.add("** three")
    answer.end()

    assert screen.text == "one two three\n^C"


def test_a_pause_shows_all():
    """The last words of a long block are drawn when no more come, though they are few."""
    screen = Screen()
    answer = MarkdownAnswer(screen.write, MarkdownRenderer())
    answer.add("word " * 200)
    answer.add("**last**")

    wait_until(lambda: screen.text.endswith("last"))
    answer.add(" of all")
    answer.end()
    assert screen.text.split() == ["word"] * 200 + ["last", "of", "all"]
    wait_until(lambda: not any(isinstance(each, threading.Timer) for each in threading.enumerate()))


def test_a_terminal_that_has_gone():
    """What cannot be drawn in a pause is an error of the next piece, not of a thread."""
    failed = threading.Event()

    def write(_text):
        if threading.current_thread() is not threading.main_thread():
            failed.set()
        raise BrokenPipeError

    answer = MarkdownAnswer(write, MarkdownRenderer(), Clock(0.0))
    answer._next_drawing = 1.0
    answer.add("word")
    assert failed.wait(30)

    answer.add(" and more")
    with pytest.raises(BrokenPipeError):
        answer.end()


def test_ctrl_c_while_it_is_drawn():
    """What was written before the interrupt came is not written again below it."""
    screen = Screen()
    answer = MarkdownAnswer(screen.write, MarkdownRenderer(), Clock(0.0))
    answer.add("one\n")

    def write(text):
        screen.write(text)
        raise KeyboardInterrupt

    answer._write = write
    with pytest.raises(KeyboardInterrupt):
        answer.add("two\nthree\n")
    answer._write = screen.write
    answer.end()

    assert screen.text == "one\ntwo\nthree"


@pytest.mark.parametrize("columns", [20, 100])
@pytest.mark.parametrize("count", [30, 400])
def test_a_terminal_that_is_resized(monkeypatch, columns, count):
    """The block that is arriving is drawn for the new width; no word of it is lost."""
    screen = Screen()
    answer = MarkdownAnswer(screen.write, MarkdownRenderer(), Clock(0.0))
    words = [f"word{number}" for number in range(count)]
    answer.add("Before.\n\n")
    answer.add(" ".join(words[:-5]))
    monkeypatch.setenv("COLUMNS", str(columns))
    screen.resize(columns)
    for word in words[-5:]:
        answer.add(f" {word}")
    answer.end()

    shown = screen.text.split()
    assert shown[0] == "Before."
    assert shown[-count:] == words
    if count < 100:  # all of it was on the screen, and is there once
        assert shown[1:] == words
        assert screen.text.startswith("Before.\n\nword0 word1")


def wait_until(condition):
    """Wait until something is true."""
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end, "it never came to be so"
        time.sleep(0.005)
