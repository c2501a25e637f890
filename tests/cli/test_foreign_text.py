"""Text of models and servers on a terminal: it commands nothing, and nothing of it is destroyed."""

import json

import pytest

from interlingua.cli.tables import one_line, plain_cell, printable
from interlingua.simulator import error, text
from support.cli import MODEL, Program, Terminal, plain, simulated

COMMANDS = "\x1b]0;owned\x07 \x9b2J \x1b[35mRED \x7f \x08\x08 \u202eevil\u202c \u2066x\u2069"
"""What a terminal would do: a title, a clearing, a colour, a deletion, text in another order."""
SIGNS = (
    "\x1b]",
    "\x07",
    "\x9b",
    "\x1b[35m",
    "\x7f",
    "\x08",
    "\u202e",
    "\u202c",
    "\u2066",
    "\u2069",
)
WORDS = (
    "Combien\xa0? 10\u202f000\xa0€",  # French, with no-break spaces
    "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",  # Persian, with a zero-width non-joiner
    "東京\u3000タワー",  # an ideographic space
    "👩\u200d👩\u200d👧 क्\u200dष",  # a family and a conjunct, with zero-width joiners
    "a\u00adb\u200ec\ufeffd",  # a soft hyphen, a mark of direction, a byte order mark
)
FENCED = f"Look:\n\n```sh\necho {COMMANDS} {' '.join(WORDS)}\n```\n"


@pytest.mark.parametrize("word", WORDS)
def test_nothing_of_a_word_is_replaced(word):
    """Spaces of any kind, joiners and marks of direction are text."""
    assert printable(word) == word
    assert plain_cell(f" {word} \n {word}\t") == f"{word} {word}"
    assert one_line(f" {word} \n {word}\t") == f"{word} {word}"


def test_what_commands_a_terminal_is_replaced():
    """Control characters but line ends and tabs, halves of characters, and bidi overrides."""
    controls = [chr(code) for code in (*range(9), *range(11, 32), *range(127, 160))]
    bidi = [*map(chr, (*range(0x202A, 0x202F), *range(0x2066, 0x206A)))]
    for each in (*controls, *bidi, "\ud800", "\udfff"):
        assert printable(f"a{each}b") == "a\ufffdb"
    assert printable("a\n\tb") == "a\n\tb"


def on_terminal(tmp_path, *arguments, answer=FENCED):
    """What a command prints on a terminal that is wide enough for a line."""
    with simulated(text(answer)) as server:
        terminal = Terminal(
            Program(tmp_path, server.url), *arguments, columns=250, PYTHONIOENCODING="utf-8"
        )
        assert terminal.close() == 0
    return terminal.printed


ASKS = {
    "rendered": ("ask", "-n", "-m", MODEL, "Hi"),
    "plain": ("ask", "-n", "--plain", "-m", MODEL, "Hi"),
    "whole": ("ask", "-n", "--no-stream", "-m", MODEL, "Hi"),
    "extract": ("ask", "-n", "-x", "-m", MODEL, "Hi"),
    "json": ("ask", "-n", "--json", "-m", MODEL, "Hi"),
    "compare": ("compare", "-n", "-m", MODEL, "Hi"),
    "compare json": ("compare", "-n", "--json", "-m", MODEL, "Hi"),
}


@pytest.mark.parametrize("name", ASKS)
def test_an_answer_commands_no_terminal(tmp_path, name):
    """In no form; its words are there as they are."""
    printed = on_terminal(tmp_path, *ASKS[name])

    assert [sign for sign in SIGNS if sign in printed] == []
    assert [word for word in WORDS if word not in plain(printed)] == []


def test_json_on_a_terminal_is_the_same_json(tmp_path):
    """What would command the terminal is escaped, so that nothing is lost."""
    printed = on_terminal(tmp_path, *ASKS["json"])

    assert json.loads(printed[printed.index("{") :])["text"] == FENCED


@pytest.mark.parametrize("name", ["extract", "json", "plain"])
def test_a_pipe_gets_the_answer_unchanged(tmp_path, name):
    """No terminal is there to be commanded, and a program wants every byte."""
    with simulated(text(FENCED)) as server:
        printed = Program(tmp_path, server.url).run(*ASKS[name]).stdout

    expected = {"extract": FENCED.split("\n")[3] + "\n", "plain": FENCED}.get(name)
    assert (json.loads(printed)["text"] if expected is None else printed) == (expected or FENCED)


def test_half_a_character_can_be_printed_as_json(tmp_path):
    """It has no form in UTF-8, and is escaped."""
    with simulated(text("a\ud83d b")) as server:
        done = Program(tmp_path, server.url).run("ask", "-n", "--json", "-m", MODEL, "Hi")

    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["text"] == "a\ud83d b"


def test_the_log_shows_text_as_it_is(tmp_path):
    """In a table and in full, on a terminal."""
    with simulated(text(FENCED)) as server:
        program = Program(tmp_path, server.url)
        program.run("ask", "-m", MODEL, f"{WORDS[0]} {COMMANDS}")
        for arguments in (("log",), ("log", "show"), ("log", "--json")):
            terminal = Terminal(program, *arguments, columns=300)
            assert terminal.close() == 0
            assert [sign for sign in SIGNS if sign in terminal.printed] == []
            assert WORDS[0] in terminal.printed


def test_an_error_of_a_server_commands_no_terminal(tmp_path):
    """Its message is a line."""
    with simulated(error(400, f"No. {COMMANDS} {WORDS[0]}")) as server:
        terminal = Terminal(
            Program(tmp_path, server.url), "ask", "-n", "-m", MODEL, "Hi", columns=250
        )
        assert terminal.close() != 0

    assert [sign for sign in SIGNS if sign in terminal.printed] == []
    assert WORDS[0] in terminal.printed
