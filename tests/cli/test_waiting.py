"""While the model thinks, a terminal shows what is waited for, and nothing of it stays."""

import pytest

from interlingua.simulator import (
    Script,
    latency,
    pieces,
    stall,
    text,
    thinking,
    tool_call,
    tool_loop,
)
from support.cli import MODEL, Program, Terminal, simulated, wait_for

WAITING = f"Waiting for {MODEL} …"  # a shorter text over it would leave its end
SILENT = latency(first=3600)


@pytest.fixture
def silent(tmp_path):
    """The program with a model that does not answer."""
    with simulated(SILENT) as server:
        yield Program(tmp_path, server.url)


@pytest.mark.parametrize("flags", [(), ("--plain",), ("--no-stream",), ("-x",), ("--usage",)])
def test_it_is_erased_by_the_answer(program, flags):
    """The screen has only the answer at the end, in each way of printing it."""
    terminal = Terminal(program, "ask", "-n", "-m", MODEL, *flags, "Hi")
    terminal.expect(WAITING)

    assert terminal.close() == 0
    assert "You said: Hi" in terminal.text
    assert "…" not in terminal.text


def test_it_is_erased_by_the_first_piece(tmp_path):
    """As soon as something is shown, while more is still to come."""
    answer = thinking("Let me see.\n") + text("one two three") + pieces(4) + stall(at=2000)
    with simulated(answer) as server:
        terminal = Terminal(
            Program(tmp_path, server.url), "ask", "-n", "-m", MODEL, "--show-reasoning", "Count."
        )
        terminal.expect(WAITING)
        terminal.expect_match("Let me see")

        assert "…" not in terminal.text
        terminal.interrupt("interrupted")
        terminal.close()


def test_ctrl_c_erases_it(silent):
    """Nothing is left but the word that says what happened."""
    terminal = Terminal(silent, "ask", "-n", "-m", MODEL, "Hi")
    terminal.expect(WAITING)
    terminal.interrupt("interrupted")

    assert terminal.close() == 130
    assert terminal.text.split() == ["interrupted"]


def test_an_error_erases_it(tmp_path):
    """The message is alone on its line."""
    with simulated() as server:
        program = Program(tmp_path, server.url)
        program.env["OPENAI_API_KEY"] = "sk-wrong"
        terminal = Terminal(program, "ask", "-n", "-m", MODEL, "Hi")
        terminal.expect(WAITING)

        assert terminal.close() == 3
        assert terminal.text.startswith("error: ")
        assert "…" not in terminal.text


def test_each_step_is_waited_for(tmp_path):
    """After the results of tools the next answer is waited for; the lines of the tools stay."""
    (tmp_path / "my_tools.py").write_text("def add(a: int, b: int) -> int:\n    return a + b\n")
    answer = tool_loop(tool_call("add", a=1, b=2), text("It is 3."))
    with simulated(answer) as server:
        program = Program(tmp_path, server.url)
        flags = ("-n", "-m", MODEL, "-y", "-T", "my_tools.py")
        terminal = Terminal(program, "ask", *flags, "Add.")
        for _ in range(2):
            terminal.expect(WAITING)

        assert terminal.close() == 0
        assert terminal.text.splitlines() == ["→ add(a=1, b=2)", "← 3", "It is 3."]


def test_a_conversation(program):
    """In `chat` each turn is waited for."""
    terminal = Terminal(program, "chat", "-n", "-m", MODEL, "--plain")
    for prompt in ("one", "two"):
        terminal.expect("> ")
        terminal.type(f"{prompt}\r")
        terminal.expect(WAITING)
        terminal.expect(f"You said: {prompt}")
    terminal.expect("> ")
    terminal.type("/quit\r")

    assert terminal.close() == 0
    assert "…" not in terminal.text


@pytest.mark.parametrize("columns", [20, 24, 30])
def test_a_narrow_terminal(program, columns):
    """The line is never wider than the terminal: one that was wrapped could not be erased."""
    terminal = Terminal(program, "ask", "-n", "-m", MODEL, "--plain", "Hi", columns=columns)
    terminal.expect("Waiting")

    assert terminal.close() == 0
    assert " for" not in terminal.text


@pytest.mark.parametrize(
    ("flags", "variables"), [(("--json",), {}), ((), {"TERM": "dumb"})], ids=["json", "dumb"]
)
def test_not_wanted(program, flags, variables):
    """Not with `--json`, and not on a terminal that cannot erase."""
    terminal = Terminal(program, "ask", "-n", "-m", MODEL, *flags, "Hi", **variables)

    assert terminal.close() == 0
    assert "You said: Hi" in terminal.text
    assert "Waiting" not in terminal.printed


def test_not_elsewhere(tmp_path):
    """Where stdout or stderr is no terminal, nothing is printed."""
    script = Script(SILENT)
    with simulated(script) as server:
        process = Program(tmp_path, server.url).start("ask", "-n", "-m", MODEL, "Hi")
        wait_for(lambda: script.received, process)
        process.terminate()
        out, err = process.communicate()

    assert (out, err) == ("", "")


@pytest.mark.parametrize("variables", [{"NO_COLOR": "1"}, {}], ids=["plain", "dim"])
def test_colors(program, variables):
    """The line is dimmed, unless `NO_COLOR` is set."""
    terminal = Terminal(program, "ask", "-n", "-m", MODEL, "--plain", "Hi", **variables)

    assert terminal.close() == 0
    assert (f"\x1b[2m{WAITING}" in terminal.printed) is not bool(variables)
    assert WAITING in terminal.printed
