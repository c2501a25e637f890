"""The line editor of `chat`: signs of several characters, rows, keys that come byte by byte."""

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wcwidth import iter_graphemes

from interlingua.cli.tables import cell_width, signs
from interlingua.cli.terminal_editor import Line, lay_out
from interlingua.simulator import Script, text
from support.cli import MODEL, Program, Terminal, simulated

FAMILY = "👨\u200d👩\u200d👧\u200d👦"
SIGNS = (
    *(
        "a",
        " ",
        "日",
        "\u00e9",
        "e\u0301",
        "👍🏽",
        "👩🏽\u200d💻",
        "❤\ufe0f",
        "1\ufe0f\u20e3",
        FAMILY,
    ),
    *("🇩🇪", "🇯🇵", "🏳\ufe0f\u200d🌈", "क्ष", "नि", "ক্ষি", "நி", "ع", "مَ", "한", "\u1112\u1161\u11ab"),
    *("🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f", "✈\ufe0e", "ก็"),
)
"""What a reader counts as one: letters, emoji, flags, syllables."""
TEXTS = st.lists(st.sampled_from((*SIGNS, "\n")), max_size=12)
KEYS = st.lists(
    st.sampled_from(("left", "right", "home", "end", "word left", "word right", "erase", "delete"))
    | st.sampled_from(SIGNS).map(lambda sign: f"+{sign}"),
    max_size=30,
)


@given(st.lists(st.sampled_from(SIGNS), max_size=20))
def test_signs_are_graphemes(found):
    """They are those of Unicode, as another package finds them."""
    whole = "".join(found)

    assert [sign for sign, _ in signs(whole)] == [*iter_graphemes(whole)] == found


@given(TEXTS, KEYS)
def test_keys_move_and_erase_signs(first, keys):
    """A model with a list of signs does the same; no sign is ever taken apart."""
    line, model, at = Line("".join(first)), list(first), len(first)
    for key in keys:
        if key == "erase":
            line.erase("left")
            del model[max(0, at - 1) : at]
            at = max(0, at - 1)
        elif key == "delete":
            line.erase("right")
            del model[at : at + 1]
        elif key.startswith("+"):
            line.insert(key[1:])
            model.insert(at, key[1:])
            at += 1
        else:
            line.go(key)
            if key in ("left", "right"):
                at = min(max(0, at + (1 if key == "right" else -1)), len(model))
            else:  # where words begin is the matter of the editor; it is no place within a sign
                at = len([*iter_graphemes(line.text[: line.at])])

        assert line.text == "".join(model)
        assert line.at == len("".join(model[:at]))


@given(TEXTS, st.integers(0, 12), st.integers(2, 20), st.integers(0, 2))
def test_rows(parts, count, width, start):
    """No row is too wide, nothing is lost, and the cursor is behind what is before it."""
    whole, before = "".join(parts), "".join(parts[:count])
    layout = lay_out(whole, len(before), start, width)

    assert "".join(layout.rows) == whole.replace("\n", "")
    assert all(cell_width(row) <= width for row in layout.rows)
    assert layout.rows[layout.row].startswith(layout.before)
    assert "".join([*layout.rows[: layout.row], layout.before]) == before.replace("\n", "")
    assert cell_width(layout.before) < width


def test_lines_of_a_text():
    """Arrow keys go from line to line, in the same column where there is one."""
    line = Line("one two\nx\nlonger")
    assert line.go_line(-1)
    assert line.text[: line.at] == "one two\nx"
    assert line.go_line(-1)
    assert line.at == 1
    assert not line.go_line(-1)
    assert line.erase("end") == "ne two"
    assert line.go_line(1)
    assert line.go_line(1)
    assert not line.go_line(1)


class Chat:
    """A chat on a terminal whose answers are short, and the prompts that arrived."""

    def __init__(self, tmp_path, **variables):
        self._script = Script(lambda _: text("Done."))
        self._server = simulated(self._script)
        self._program = Program(tmp_path, self._server.__enter__().url)
        self._options = {"columns": 20, **variables}

    def send(self, *keys):
        """Type keys, each when the one before is handled; returns the prompts and the terminal."""
        terminal = Terminal(self._program, "chat", "-n", "--plain", "-m", MODEL, **self._options)
        terminal.expect("> ")
        for each in keys:
            terminal.type(each) if isinstance(each, str) else each(terminal)
        terminal.expect("Done.")
        terminal.expect("> ")
        terminal.type("\x04")
        assert terminal.close() == 0
        return [request.messages[-1].text for request in self._script.requests], terminal

    def close(self):
        """Stop the server."""
        self._server.__exit__(None, None, None)


@pytest.fixture
def chat(tmp_path):
    """Chats of one test."""
    opened = []

    def start(**variables):
        opened.append(Chat(tmp_path, **variables))
        return opened[-1]

    yield start
    for each in opened:
        each.close()


def test_bytes_that_come_one_by_one(chat):
    """A character or a key is one, however it arrives."""

    def one_by_one(terminal):
        for byte in f"日{FAMILY}é\x1b[D\x1b[3~\x7f!\r".encode():
            os.write(terminal.fd, bytes([byte]))

    assert chat().send(one_by_one)[0] == ["日!"]


def test_the_cursor_is_where_the_next_letter_comes(chat):
    """The screen shows what is sent, in rows of its width, with the cursor in its place."""

    def look(terminal):
        terminal.expect("語")
        terminal.type("\x1b[D\x1b[D")
        terminal._read_until(lambda: cursor(terminal) == (4, 0))
        assert cursor(terminal) == (4, 0)

    prompts, terminal = chat().send("日本語", look, "X", "\r")
    assert prompts == ["日X本語"]
    assert "> 日X本語" in terminal.text


def cursor(terminal):
    """Its column, and its row from the row of the prompt."""
    screen = terminal._screen
    prompt = next(n for n, row in enumerate(screen.display) if row.startswith("> "))
    return screen.cursor.x, screen.cursor.y - prompt


def test_a_prompt_that_is_longer_than_the_screen(chat):
    """What fits is shown while it is edited; the whole of it when it is sent."""
    lines = "\r".join(map(str, range(40)))
    prompts, terminal = chat(lines=10).send(f"\x1b[200~{lines}\x1b[201~", "\x1b<x", "\r")

    assert prompts == ["x" + lines.replace("\r", "\n")]
    assert "\n".join(["> x0", *map(str, range(1, 40))]) in terminal.text


@pytest.mark.parametrize(
    ("keys", "prompt"),
    [
        ("one two\x17three\x01\x19", "twoone three"),
        ("one two\x01\x0b\x19\x19", "one twoone two"),
        ("one two\x1bb\x15x", "xtwo"),
        ("one\x1b\rtwo", "one\ntwo"),
        ("one\x1b[Zx\x1b[5~y", "onexy"),  # keys without a meaning
        ("one\x1atwo", "onetwo"),  # no shell is there that could continue it
    ],
)
def test_keys(chat, keys, prompt):
    """The keys that people know from other line editors."""
    assert chat().send(keys, "\r")[0] == [prompt]


def test_several_completions_are_listed(chat):
    """Tab completes what all have in common, and lists what is left; nothing is lost."""

    def complete(terminal):
        terminal.type("/m\t")
        terminal.expect("/multi")
        terminal.type("\x7f\x7f")

    assert chat().send(complete, "Hi\r")[0] == ["Hi"]


def test_the_history_keeps_what_was_typed(chat):
    """Arrow-up and arrow-down; the text that was begun comes back."""

    def second(terminal):
        terminal.expect("Done.")
        terminal.expect("> ")
        terminal.type("new\x1b[A\x1b[A\x1b[B\x1b[Ber\r")

    assert chat().send("first\r", second)[0] == ["first", "newer"]


def test_readline_for_those_who_have_set_its_keys(tmp_path, chat):
    """A file with keys of readline, or a terminal that cannot redraw."""
    keys = tmp_path / "keys"
    keys.write_text('"\\C-t": "of readline"\n')
    for variables in ({"INPUTRC": str(keys)}, {"INPUTRC": str(keys), "TERM": "dumb"}):
        assert chat(columns=80, **variables).send("\x14", "\r")[0] == ["of readline"]
