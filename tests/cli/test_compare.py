"""`interlingua compare` asks several models the same."""

import json
import signal
import time

import pytest

from interlingua.simulator import Script, text
from support.cli import COUNT, COUNTING, Program, Terminal, simulated, wait_for

MODELS = ("-m", "openai:gpt-5.2", "-m", "anthropic:claude-haiku-4-5")


def test_answers_side_by_side(program):
    """Each row has the answer, the time, the tokens and the cost."""
    done = program.run("compare", *MODELS, "Hello", "there", "--json")
    rows = json.loads(done.stdout)

    assert done.returncode == 0, done.stderr
    assert [row["model"] for row in rows] == list(MODELS[1::2])
    for row in rows:
        assert row["answer"].endswith("You said: Hello there")
        assert row["input_tokens"] > 0
        assert row["cost"] > 0
        assert row["seconds"] > 0


def test_plain_text(program):
    """A section for each model; stdin is the prompt if there is none."""
    done = program.run("compare", *MODELS, stdin="Hi.")

    assert done.stdout.count("## ") == 2
    assert "## openai:gpt-5.2 (" in done.stdout


def test_one_that_fails_does_not_stop_the_others(program):
    """Its error is its answer, and the exit code is 1."""
    done = program.run("compare", *MODELS, "-m", "nobody:x", "Hi.", "--json")
    rows = json.loads(done.stdout)

    assert done.returncode == 1
    assert [row["error"] for row in rows] == [None, None, "ConfigurationError"]


def test_no_prompt_is_one_line(program):
    """The exit code is that of wrong usage."""
    done = program.run("compare", *MODELS)

    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(("columns", "is_beside"), [(80, True), (60, False), (200, True)])
def test_on_a_terminal(tmp_path, columns, is_beside):
    """Answers are beside each other where each has room, else below each other; none is cut."""
    answer = "A **bold** claim: " + "word " * 40 + "end."
    with simulated(text(answer)) as server:
        program = Program(tmp_path, server.url)
        terminal = Terminal(program, "compare", "-n", *MODELS, "Hi.", columns=columns)
        assert terminal.close() == 0
    lines = terminal.text.splitlines()

    assert any(line.count("A bold claim:") == 2 for line in lines) is is_beside
    assert terminal.text.count("word") == 80
    assert terminal.text.count(" in · ") == 2


def test_plain_on_a_terminal(tmp_path):
    """With `--plain` the marks of Markdown are shown."""
    with simulated(text("A **bold** claim.")) as server:
        program = Program(tmp_path, server.url)
        terminal = Terminal(program, "compare", "-n", "--plain", *MODELS, "Hi.")
        assert terminal.close() == 0

    assert terminal.text.count("A **bold** claim.") == 2


def test_options_are_sent_and_calls_are_logged(program):
    """The system prompt and the limit reach the models; the log has a call for each."""
    done = program.run("compare", *MODELS, "-m", "nobody:x", "-s", "Be brief.", "Hi.")
    calls = json.loads(program.run("log", "--json").stdout)

    assert done.returncode == 1
    assert [call["model"] for call in calls] == ["nobody:x", MODELS[3], MODELS[1]]
    assert {(call["command"], call["system"], call["prompt"]) for call in calls} == {
        ("compare", "Be brief.", "Hi.")
    }
    assert "nobody" in calls[0]["error"]
    program.run("compare", "-n", *MODELS, "Hi.")
    assert len(json.loads(program.run("log", "--json").stdout)) == 3


def test_limit(tmp_path):
    """`--max-tokens` is the limit of each answer."""
    script = Script(text("Yes."))
    with simulated(script) as server:
        done = Program(tmp_path, server.url).run("compare", *MODELS, "--max-tokens", "9", "Hi.")

    assert done.returncode == 0, done.stderr
    assert [each.request.max_tokens for each in script.received] == [9, 9]


def interrupt(home, pause):
    """Press Ctrl-C some seconds after all was sent; returns what was printed, and the answers."""
    script = Script(COUNTING)
    with simulated(script) as server:
        program = Program(home, server.url)
        running = program.start("compare", *MODELS, "Count.")
        assert running.stderr.readline().startswith("Calls are kept")
        wait_for(lambda: sum(each.sent_bytes > 0 for each in script.received) == 2, running)
        time.sleep(pause)
        running.send_signal(signal.SIGINT)
        out, err = running.communicate()
        calls = json.loads(program.run("log", "--json").stdout)

    assert (running.returncode, err.splitlines()) == (130, ["interrupted"])
    assert out.count("## ") == 2
    assert [call["error"] for call in calls] == ["interrupted"] * 2
    return out, [call["answer"] for call in calls]


def test_interrupt(tmp_path):
    """Ctrl-C prints what has arrived, logs it, and ends with 130."""
    for pause in (0.1, 0.5, 2, 10):  # on a slow machine, what was sent has not arrived yet
        (tmp_path / str(pause)).mkdir()
        out, answers = interrupt(tmp_path / str(pause), pause)
        if all(answers):
            break

    assert all(answers)
    assert all(COUNT.startswith(answer) and answer.strip() in out for answer in answers)
