"""`interlingua compare` asks several models the same."""

import json

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
