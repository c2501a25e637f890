"""`ask -e`: a proposed command is shown first, and runs only after a yes."""

import pytest

from interlingua.simulator import Script, text
from support.cli import MODEL, Program, Terminal, simulated

WRITE = "printf done > made.txt; exit 3"
CTRL_C = "\x03"


def propose(tmp_path, command, *keys, words=("-e",)):
    """Ask for a command in a terminal, press keys when it is shown; the terminal and exit code."""
    script = Script(lambda _: text(command))
    with simulated(script) as server:
        program = Program(tmp_path, server.url)
        terminal = Terminal(program, *words, "-n", "-m", MODEL, "Do it", SHELL="/bin/sh")
        for wanted, key in keys:
            terminal.expect(wanted)
            if key == CTRL_C:
                terminal.interrupt("interrupted")
            else:
                terminal.type(key)
        code = terminal.close()
    terminal.requests = script.requests
    return terminal, code


@pytest.mark.parametrize("answer", [WRITE, f"```sh\n{WRITE}\n```", f"`{WRITE}`"])
def test_it_runs_after_yes(tmp_path, answer):
    """What was shown; its exit code is that of the program."""
    terminal, code = propose(tmp_path, answer, ("[N]o", "y\r"))

    assert code == 3
    assert (tmp_path / "made.txt").read_text() == "done"
    shown = terminal.text.splitlines()
    assert shown[:2] == [WRITE, "Run this? [y]es, [e]dit, [N]o: y"]
    (request,) = terminal.requests
    assert "shell sh on" in request.messages[0].text


@pytest.mark.parametrize("key", ["\r", "n\r", "x\r", CTRL_C, "\x04"])
def test_it_does_not_run_otherwise(tmp_path, key):
    """Enter, no, anything else, Ctrl-C and Ctrl-D are no yes."""
    _, code = propose(tmp_path, WRITE, ("[N]o", key))

    assert code in (1, 130)
    assert not (tmp_path / "made.txt").exists()


def test_it_can_be_edited(tmp_path):
    """On its line; the changed command is shown again before it runs."""
    keys = [("[N]o", "e\r"), ("$ ", "\x15printf two > made.txt\r"), ("[N]o", "y\r")]
    terminal, code = propose(tmp_path, WRITE, *keys)

    assert code == 0
    assert (tmp_path / "made.txt").read_text() == "two"
    assert "\nprintf two > made.txt\nRun this?" in terminal.text


def test_what_cannot_be_shown_does_not_run(tmp_path):
    """A command that hides a part of itself from the terminal is refused."""
    terminal, code = propose(tmp_path, f"{WRITE} #\x1b[2K\x1b[1Gls")

    assert code == 2
    assert not (tmp_path / "made.txt").exists()
    assert "cannot be shown" in terminal.text


def test_never_without_a_terminal(tmp_path):
    """Nobody could say yes: nothing is sent."""
    script = Script(lambda _: text(WRITE))
    with simulated(script) as server:
        program = Program(tmp_path, server.url)
        done = program.run("ask", "-e", "-m", MODEL, "Do it", stdin="y\n")
        shown = program.run("ask", "-e", "--explain", "-m", MODEL, "-s", "Be brief.", "Do it")

    assert done.returncode == 2
    assert "needs a terminal" in done.stderr
    assert not script.requests
    assert not (tmp_path / "made.txt").exists()
    assert "Write only the command" in shown.stdout
    assert "Be brief." in shown.stdout
