"""`ask` and `explain`, as a process against the simulator."""

import json
import re
import signal
import stat

import pytest

from interlingua import Client, Request
from interlingua.cli.ask import code_block
from interlingua.simulator import (
    SIMULATED,
    Script,
    error,
    latency,
    pieces,
    text,
    thinking,
    tool_call,
    tool_loop,
)
from support.cli import COUNT, COUNTING, KEY, MODEL, Program, simulated

FIRST_USE = "Calls are kept in "
PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010806000000"
    "1f15c4890000000d49444154789c6360000002000001e221bc330000000049454e44ae426082"
)


def test_the_answer_is_on_stdout(program):
    """Only the answer is on stdout; that calls are kept is said once, on stderr."""
    first = program.run("ask", "-m", MODEL, "Hello", "there")
    second = program.run("ask", "-m", MODEL, "again")

    assert (first.returncode, first.stdout) == (0, f"{SIMULATED} You said: Hello there\n")
    assert first.stderr.startswith(FIRST_USE)
    assert (second.returncode, second.stderr) == (0, "")


def test_stdin_comes_before_the_prompt(program):
    """What is piped in and what is written are one prompt."""
    done = program.run("ask", "-m", MODEL, "Explain.", stdin="line one\nline two\n")

    assert done.stdout.endswith("You said: line one\nline two\n\nExplain.\n")


def test_without_a_prompt(program):
    """There is nothing to ask: one line, and the exit code of wrong usage."""
    done = program.run("ask", "-m", MODEL)

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "error: There is no prompt. Write one, or pipe it in. See `interlingua ask --help`.\n"
    )


def test_continue(program):
    """`-c` goes on with the last conversation, also with another provider's model."""
    program.run("ask", "-m", MODEL, "My name is Ada.")
    done = program.run("ask", "-c", "-m", "anthropic:claude-haiku-4-5", "Who am I?", "--json")
    shown = json.loads(done.stdout)

    assert shown["model"].startswith("anthropic:")
    again = program.run("ask", "--cid", shown["conversation"], "--json", "And now?")
    assert json.loads(again.stdout)["conversation"] == shown["conversation"]
    tokens = json.loads(again.stdout)["usage"]["input_tokens"]
    assert tokens > shown["usage"]["input_tokens"]


def test_continue_without_a_conversation(program):
    """Nothing was asked before: that is said."""
    done = program.run("ask", "-c", "more")

    assert done.returncode == 2
    assert "There is no conversation to continue." in done.stderr


def test_reasoning_is_on_stderr(tmp_path):
    """Reasoning does not mix with the answer; `-R` hides it."""
    with simulated(thinking("Hm, let me see.") + text("42")) as server:
        program = Program(tmp_path, server.url)
        shown = program.run("ask", "-n", "-m", "anthropic:claude-haiku-4-5", "x")
        hidden = program.run("ask", "-n", "-R", "-m", "anthropic:claude-haiku-4-5", "x")

    assert (shown.stdout, shown.stderr) == ("42\n", "Hm, let me see.\n")
    assert (hidden.stdout, hidden.stderr) == ("42\n", "")


OPENAI, CLAUDE = "openai:gpt-5.2", "anthropic:claude-sonnet-5"


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        (["-m", CLAUDE, "-o", "reasoning_effort", "low"], True),
        (["-m", CLAUDE, "-o", "reasoning_effort", "low", "-R"], False),
        (["-m", CLAUDE], False),
        (["-m", OPENAI, "-o", "reasoning_effort", "low"], False),
        (["-m", OPENAI, "--show-reasoning"], True),
        (["-m", OPENAI, "--show-reasoning", "--no-stream"], True),
    ],
)
def test_reasoning_is_shown_where_it_is_asked_for(tmp_path, arguments, shown):
    """An effort asks for it, except at OpenAI; `--show-reasoning` always does."""
    with simulated(thinking("Hm, let me see.") + text("42")) as server:
        done = Program(tmp_path, server.url).run("ask", "-n", *arguments, "x")

    assert (done.stdout, done.stderr) == ("42\n", "Hm, let me see.\n" if shown else "")


@pytest.mark.parametrize("flag", [[], ["--no-stream"]])
def test_usage(program, flag):
    """`-u` prints model, tokens, cost and time on stderr."""
    done = program.run("ask", "-n", "-u", "-m", MODEL, "Hi", *flag)

    assert done.stdout == f"{SIMULATED} You said: Hi\n"
    name, tokens, cost, seconds = done.stderr.strip().split(" · ")
    assert name == MODEL
    assert tokens.endswith("out")
    assert cost.startswith("$")
    assert seconds.endswith(" s")


def test_extract(tmp_path):
    """`-x` prints the first code block and nothing else."""
    answer = "Sure:\n\n```python\nprint(1)\n```\nAnd\n```\nno\n```\n"
    with simulated(text(answer)) as server:
        done = Program(tmp_path, server.url).run("ask", "-n", "-x", "-m", MODEL, "code")

    assert done.stdout == "print(1)\n"
    assert code_block("no code") == "no code"
    assert code_block("````\n```\n````") == "```"
    assert code_block("a\n```py\nx = 1\n\n```\nb\n```\ny\n```") == "x = 1"
    assert code_block("~~~\n```\n~~~") == "```"
    assert code_block("```\nno end\n") == "```\nno end"
    assert code_block("a\n```py\nx = 1\n```\nb\n```\ny\n```", is_last=True) == "y"
    assert code_block("```\nx\n```\n```\nno end\n", is_last=True) == "x"
    assert code_block("no code", is_last=True) == "no code"


def test_a_warning_advises_nothing_that_only_a_program_can_do(program):
    """A model without a price is reported, without the argument of the library."""
    done = program.run("ask", "-n", "-m", "openai:gpt-unknown", "Hi")

    assert done.returncode == 0
    assert "there is no price for openai:gpt-unknown." in done.stderr
    assert "prices" not in done.stderr


def test_parts_of_an_answer(tmp_path):
    """The last code block of an answer, and later the answer of the log or its code blocks."""
    answer = "One:\n```\na\n```\nTwo:\n```\nb\n```"
    with simulated(text(answer)) as server:
        program = Program(tmp_path, server.url)
        last = program.run("ask", "--xl", "-m", MODEL, "code").stdout

    assert last == "b\n"
    assert program.run("log", "show", "-r").stdout == f"{answer}\n"
    assert program.run("log", "show", "-x").stdout == "a\n"
    assert program.run("log", "show", "1", "--xl").stdout == "b\n"
    assert program.run("log", "list", "-m", "GPT").stdout.count("\n") == 2
    none = program.run("log", "list", "--cid", "none")
    assert (none.returncode, none.stdout) == (1, "")
    assert none.stderr == "No call in the log is such a one.\n"


def test_schema(tmp_path):
    """The short form becomes a JSON Schema, and the object is printed."""
    script = Script(text('{"name": "Rex", "age": 3}'))
    with simulated(script) as server:
        program = Program(tmp_path, server.url)
        done = program.run("ask", "-n", "-m", MODEL, "--schema", "name, age int", "a dog")
        bad = program.run("ask", "-n", "-m", MODEL, "--schema", "name, age months", "a dog")

    assert json.loads(done.stdout) == {"name": "Rex", "age": 3}
    sent = script.received[0].request.response_format.json_schema
    assert sent["properties"]["age"]["type"] == "integer"
    assert bad.returncode == 2
    assert "'age months' is not a field" in bad.stderr
    assert len(script.received) == 1


def test_tools_need_approval(tmp_path):
    """Without a terminal to ask, no tool runs; `--yes` approves them."""
    (tmp_path / "my_tools.py").write_text(
        "import pathlib\n\n"
        "def touch(name: str) -> str:\n"
        '    """Make a file."""\n'
        "    pathlib.Path(name).touch()\n"
        "    return 'made'\n"
    )
    answer = tool_loop(tool_call("touch", name="made.txt"), text("Done."))
    arguments = ("ask", "-n", "-m", MODEL, "-T", "my_tools.py", "Make it.")
    with simulated(answer) as server:
        program = Program(tmp_path, server.url)
        asked = program.start(*arguments, has_own_session=True)  # it has no terminal
        out, err = asked.communicate()
        assert (asked.returncode, out) == (1, "")
        assert "--yes approves all tools" in err
        assert not (tmp_path / "made.txt").exists()
        done = program.run(*arguments, "--yes")

    assert done.stdout == "Done.\n"
    assert "→ touch(name='made.txt')" in done.stderr
    assert (tmp_path / "made.txt").exists()


def test_attachments(tmp_path):
    """A file that the user names is sent; a file that is not there is one line."""
    (tmp_path / "pixel.png").write_bytes(PIXEL)
    script = Script(text("A pixel."))
    with simulated(script) as server:
        program = Program(tmp_path, server.url)
        done = program.run("ask", "-n", "-m", MODEL, "-a", "pixel.png", "What is it?")
        missing = program.run("ask", "-n", "-m", MODEL, "-a", "none.png", "What is it?")

    assert done.stdout == "A pixel.\n"
    image = script.received[0].request.messages[-1].content[0]
    assert (image.kind, image.data) == ("image", PIXEL)
    assert missing.returncode == 2
    assert "there is no file none.png" in missing.stderr


def test_fragments_and_templates(program):
    """Fragments come before the prompt; a template has places for the prompt and for values."""
    (program.home / "notes.txt").write_text("the notes\n")
    (program.home / "templates").mkdir()
    (program.home / "templates" / "say.yaml").write_text(
        f"model: {MODEL}\nprompt: Say $input in $language.\n"
    )
    fragment = program.run("ask", "-n", "-m", MODEL, "-f", "notes.txt", "Sum up.")
    filled = program.run("ask", "-n", "-t", "say", "-p", "language", "French", "hello")
    unfilled = program.run("ask", "-n", "-t", "say", "hello")

    assert fragment.stdout.endswith("You said: the notes\n\nSum up.\n")
    assert filled.stdout.endswith("You said: Say hello in French.\n")
    assert unfilled.returncode == 2
    assert "-p language VALUE" in unfilled.stderr


@pytest.mark.parametrize(
    ("answer", "code"),
    [(error(401), 3), (error(404), 4), (error(400), 4), (error(500), 7)],
)
def test_errors_are_one_line(tmp_path, answer, code):
    """
    The exit code says the class of the error; the key is not shown, and the call is logged.

    A model that the provider does not have is a slip of the user, and no call.
    """
    with simulated(answer) as server:
        program = Program(tmp_path, server.url)
        done = program.run("ask", "-m", MODEL, "-o", "max_retries", "0", "Hi")

    assert (done.returncode, done.stdout) == (code, "")
    lines = [line for line in done.stderr.splitlines() if not line.startswith(FIRST_USE)]
    assert len(lines) == 1
    assert lines[0].startswith("error: ")
    assert KEY not in done.stderr
    is_slip = "404" in done.stderr
    assert ("failed" in program.run("log").stdout) != is_slip


def test_unknown_options_and_models(program):
    """A wrong option, an unknown provider and a missing key are refused before anything is sent."""
    option = program.run("ask", "-n", "-m", MODEL, "-o", "temprature", "1", "Hi")
    provider = program.run("ask", "-n", "-m", "nobody:model", "Hi")
    key = program.run("ask", "-n", "-m", "mistral:mistral-small", "Hi")

    assert (option.returncode, provider.returncode) == (2, 2)
    assert "temperature" in option.stderr
    assert key.returncode in (2, 3)
    assert "MISTRAL_API_KEY" in key.stderr
    assert all(len(each.stderr.splitlines()) == 1 for each in (option, provider, key))


@pytest.mark.parametrize(
    ("model", "advice"),
    [
        (
            "mycorp:secret-model",
            "write openai:mycorp:secret-model or anthropic:mycorp:secret-model.",
        ),
        ("openai/gpt-4o", "Write openai:gpt-4o (or openrouter:openai/gpt-4o)."),
        ("phi4:latest", "Write ollama:phi4:latest."),
        ("flash", "and set GEMINI_API_KEY or GOOGLE_API_KEY."),
        ("o4-mini-high", "Write openai:o4-mini with -o reasoning_effort high."),
        ("watsonx:granite", "Provider 'watsonx' is not configured."),
        ("bedrock_invoke:anthropic.claude-x", "or AWS_PROFILE."),
        ("vertex:gemini-9", "or set GOOGLE_APPLICATION_CREDENTIALS."),
        ("openai:text-embedding-3-small", "Use `interlingua embed`"),
    ],
)
def test_a_refusal_advises_in_options_not_in_python(program, model, advice):
    """What was wrong and what to write, in one line, in words that a shell takes."""
    places = {"AWS_REGION": "r", "GOOGLE_CLOUD_PROJECT": "p", "GOOGLE_CLOUD_LOCATION": "l"}
    done = program.run("ask", "-n", "-m", model, "Hi", **places)

    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert advice in line
    assert not re.search(r"\w=|\w\(\.|Adapter\(|Client", line)


@pytest.mark.parametrize(
    "arguments",
    [
        ("embed", "-m", "mycorp:m", "Hi"),
        ("image", "-m", "mycorp:m", "-o", "a.png", "Hi"),
        ("speak", "-m", "mycorp:m", "-o", "a.mp3", "Hi"),
        ("compare", "-m", "mycorp:m", "-m", "o4-mini-high", "Hi"),
        ("explain", "-m", "mycorp:m", "Hi"),
        ("chat", "-m", "mycorp:m"),
    ],
)
def test_every_command_refuses_a_provider_that_there_is_not(program, arguments):
    """Nothing is sent to a provider that has a key when another was named."""
    done = program.run(*arguments, stdin="Hi\n")

    assert done.returncode in (1, 2)
    assert "Unknown provider 'mycorp'." in done.stderr + done.stdout
    assert 'reasoning_effort="' not in done.stdout


def test_a_key_in_quotes_works_and_is_told(program):
    """Some readers of env files keep the quotes; the warning is on stderr, without the key."""
    done = program.run("ask", "-n", "-m", MODEL, "Hi", OPENAI_API_KEY=f"'{KEY}'")

    assert done.returncode == 0
    assert done.stderr.startswith("warning: OPENAI_API_KEY has quotes around its value")
    assert KEY not in done.stderr


def test_interrupt(tmp_path):
    """Ctrl-C ends with 130; what had arrived was printed, is in the log, and can be continued."""
    with simulated(COUNTING, text("Yes.")) as server:
        program = Program(tmp_path, server.url)
        running = program.start("ask", "-m", MODEL, "Count.")
        first = running.stdout.read(4)
        running.send_signal(signal.SIGINT)
        rest, err = running.communicate()
        assert running.returncode == 130
        assert COUNT.startswith(first + rest.rstrip("\n"))
        assert err.splitlines()[-1] == "interrupted"
        logged = json.loads(program.run("log", "show", "--json").stdout)
        assert logged["answer"].startswith("one ")
        assert program.run("ask", "-c", "Go on.").stdout == "Yes.\n"


def test_a_closed_pipe(tmp_path):
    """When the reader leaves, the program ends silently."""
    long = text("word " * 2000) + pieces(50) + latency(between=0.005)
    with simulated(long) as server:
        program = Program(tmp_path, server.url)
        with program.start("ask", "-n", "-m", MODEL, "Write.") as running:
            running.stdout.read(10)
            running.stdout.close()
            err = running.stderr.read()
            assert (running.wait(), err) == (141, "")


def test_files_are_private(program):
    """The log and the folder of conversations can be read by their owner only."""
    program.run("ask", "-m", MODEL, "Hi")

    assert stat.S_IMODE((program.home / "log.db").stat().st_mode) == 0o600
    assert stat.S_IMODE((program.home / "sessions").stat().st_mode) == 0o700


def test_no_log(program):
    """`--no-log` and the variable leave nothing behind."""
    program.run("ask", "-n", "-m", MODEL, "Hi")
    program.run("ask", "-m", MODEL, "Hi", INTERLINGUA_NO_LOG="1")

    assert list(program.home.iterdir()) == []


def test_explain(bare):
    """It prints the request for a model without a key, and `ask --explain` prints the same."""
    arguments = (
        "-m",
        "anthropic:claude-haiku-4-5",
        "-s",
        "Be brief.",
        "-o",
        "max_tokens",
        "9",
        "Hi",
    )
    shown = bare.run("explain", "--json", *arguments)
    body = json.loads(shown.stdout)["body"]
    expected = (
        Client.from_env({})
        .with_access("anthropic:claude-haiku-4-5", api_key="k")
        .explain(
            Request(
                model="anthropic:claude-haiku-4-5",
                messages=[
                    {"role": "system", "content": "Be brief."},
                    {"role": "user", "content": "Hi"},
                ],
                max_tokens=9,
            ),
            stream=True,
        )
    )

    assert body == expected.body
    assert "warning: No API key for anthropic: set ANTHROPIC_API_KEY." in (
        bare.run("explain", *arguments).stdout.splitlines()
    )
    text_form = bare.run("explain", *arguments)
    assert text_form.stdout == bare.run("ask", "--explain", *arguments).stdout
    assert text_form.stdout.startswith("POST https://api.anthropic.com/v1/messages\n")
    assert list(bare.home.iterdir()) == []


@pytest.mark.parametrize(
    ("attached", "end"),
    [
        ((), "at most"),
        (
            ("-a", "https://example.com/cat.png"),
            "no upper bound is known: budgets and rate limits reserve twice as many)",
        ),
    ],
)
def test_explain_says_what_is_reserved(bare, attached, end):
    """Where no bound holds, it is a figure that was chosen."""
    shown = bare.run("explain", "-m", "openai:gpt-5.2", *attached, "What is this?").stdout

    (line,) = (line for line in shown.splitlines() if line.startswith("input: "))
    assert f", {end}" in line


def test_the_local_model_answers_without_keys(bare):
    """With no key and no model named, the model on this machine answers, and stderr says so."""
    pytest.importorskip("xllamacpp")
    done = bare.run("ask", "-n", "-o", "max_tokens", "5", "Say hello.")

    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
    assert "local:smollm2" in done.stderr
    assert "cut off" in done.stderr


def test_the_local_model_that_nobody_named_has_settings(bare):
    """It wanders off and repeats itself; what is named is as it was named."""
    asked = [
        (("Hi.",), {"max_tokens": 400, "temperature": 0.2}),
        (("-o", "max_tokens", "900", "Hi."), {"max_tokens": 900, "temperature": 0.2}),
        (("-m", "local:smollm2", "Hi."), {"max_tokens": None, "temperature": None}),
    ]
    for arguments, settings in asked:
        explanation = bare.run("ask", "--explain", "--json", *arguments)
        body = json.loads(explanation.stdout)["body"]
        assert {name: body.get(name) for name in settings} == settings
