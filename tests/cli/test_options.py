"""Options of the commands that have no other test, in this process."""

import functools
import json
from pathlib import Path
from xml.etree import ElementTree as ET

import click
import pytest

from interlingua.catalog import list_models
from interlingua.cli.commands import COMMANDS
from interlingua.cli.commands import program as group
from interlingua.simulator import Script, text, thinking
from support.cli import MODEL, Program, Terminal, simulated

OTHER = "anthropic:claude-haiku-4-5"
LETTERS = {"m": "model", "s": "system", "c": "goes_on", "x": "extract", "f": "fragment",
           "t": "template", "a": "attachment", "T": "tools", "u": "usage", "n": "no_log",
           "o": "option", "p": "param"}  # fmt: skip


@pytest.fixture
def script():
    """What the simulated models answer; it has what they were sent."""
    return Script(thinking("Hm.") + text("Fine."))


@pytest.fixture
def run(run_here, script):
    """Runs a command in this process; returns its exit code, stdout and stderr."""
    with simulated(script) as server:
        yield functools.partial(run_here, url=server.url)


def test_the_letters_of_ask():
    """They are those of the program `llm`, so that hands know them."""
    ask = group.get_command(click.Context(group), "ask")
    letters = {each: option.name for option in ask.params for each in option.opts}

    assert {f"-{letter}": name for letter, name in LETTERS.items()}.items() <= letters.items()


def test_system_and_settings(run, script):
    """`-s` and `-o` are in the request."""
    code, out, _ = run("ask", "-n", "-m", OTHER, "-s", "Be brief.", "-o", "max_tokens", "7", "Hi")
    (request,) = script.requests

    assert (code, out) == (0, "Fine.\n")
    assert (request.messages[0].text, request.max_tokens) == ("Be brief.", 7)


def test_an_address_as_attachment(run, script):
    """An image of the web is sent as its URL."""
    run("ask", "-n", "-m", OTHER, "-a", "https://example.com/a.png?x=1", "What?")

    assert script.requests[0].messages[-1].content[0].url == "https://example.com/a.png?x=1"


def test_several_objects(run_here):
    """`--schema-multi` asks for a list."""
    with simulated(text('{"items": [{"name": "Rex"}]}')) as server:
        arguments = ("ask", "-n", "-m", MODEL, "--schema-multi", "name", "dogs")
        code, out, err = run_here(*arguments, url=server.url)

    assert code == 0, err
    assert json.loads(out) == {"items": [{"name": "Rex"}]}


def test_options_of_chat(run, script):
    """`-s`, `-R`, `-u` and `-n`."""
    code, out, err = run("chat", "-n", "-R", "-u", "-s", "Be brief.", "-m", OTHER, stdin="Hi\n")

    assert (code, out) == (0, "Fine.\n")
    assert script.requests[0].messages[0].text == "Be brief."
    assert "Hm." not in err
    assert f"{OTHER} · " in err
    assert run("log", "--json")[1].strip() == "[]"


def test_options_of_models(run):
    """`--tier` and `--min-context` are filters of the catalog; short words are taken, too."""
    given = ("--tier", "small", "--min-context", "500000", "--all", "--json")
    rows = json.loads(run("models", *given)[1])
    expected = list_models(tier="small", min_context=500_000, kind="chat")

    assert [row["name"] for row in rows] == [f"{each.provider}:{each.id}" for each in expected]
    objects = json.loads(run("models", "-p", "openai", "-c", "objects", "--json")[1])
    assert objects
    assert all("objects" in row["capabilities"] for row in objects)


def test_options_of_log(run, tmp_path):
    """Numbers of rows and days, and the path."""
    for word in ("One", "Two", "Three"):
        run("ask", "-m", MODEL, "--show-reasoning", word)

    def prompts(*arguments):
        return [row["prompt"] for row in json.loads(run("log", *arguments, "--json")[1])]

    assert prompts("list", "-n", "2") == ["Three", "Two"]
    assert prompts("search", "fine", "-n", "1") == ["Three"]
    assert prompts("search", "%") == []
    (row,) = json.loads(run("log", "cost", "--days", "1", "--json")[1])
    assert row["calls"] == 3
    assert run("log", "path")[1] == f"{tmp_path / 'home' / 'log.db'}\n"
    shown = run("log", "show", "2")[1]
    assert shown.startswith("#2 · ")
    assert "\n\nprompt:\nTwo\n\nreasoning:\nHm.\n\nanswer:\nFine.\n" in shown


def test_options_of_translate(run, tmp_path):
    """`--kind` decides what `auto` would find out."""
    body = {"model": "m", "messages": [{"role": "user", "content": "Hi."}]}
    (tmp_path / "request.json").write_text(json.dumps(body))
    names = ("--from", "openai_chat", "--to", "openai_responses")
    code, out, _ = run("translate", "request.json", *names, "--kind", "request", "--json")

    assert (code, json.loads(out)["kind"]) == (0, "request")
    assert run("translate", "request.json", *names, "--kind", "stream")[0] == 2


def test_providers_by_word(run):
    """Words are looked for in the names; `--configured` leaves the others out."""
    rows = json.loads(run("providers", "--configured", "openai", "--json")[1])

    assert [row["name"] for row in rows] == ["openai"]


@pytest.mark.parametrize(("flags", "shown"), [((), "A bold claim."), (("--plain",), "A **bold**")])
def test_ask_on_a_terminal(tmp_path, flags, shown):
    """The answer is rendered on a terminal, unless `--plain` is given."""
    with simulated(text("A **bold** claim.")) as server:
        terminal = Terminal(Program(tmp_path, server.url), "ask", "-n", "-m", MODEL, *flags, "Hi")
        assert terminal.close() == 0

    assert terminal.text.startswith(shown)


def test_an_object_on_a_terminal(tmp_path):
    """JSON is not Markdown."""
    with simulated(text('{"name": "*x*\\n# y"}')) as server:
        program = Program(tmp_path, server.url)
        terminal = Terminal(program, "ask", "-n", "-m", MODEL, "--schema", "name", "Hi")
        assert terminal.close() == 0

    assert json.loads(terminal.text) == {"name": "*x*\n# y"}


def test_every_list_is_json(run):
    """`--json` prints JSON in every command that lists something."""
    lines = ["models haiku", "providers", "keys list", "log", "log cost", "doctor", "local list"]
    for line in (*lines, "completion bash", f"explain -m {MODEL} Hi"):
        code, out, err = run(*line.split(), "--json")
        assert code == 0, err
        assert isinstance(json.loads(out), (list, dict))
    assert set(COMMANDS) >= {"ask", "chat", "compare"}


def test_the_picture():
    """The picture of the terminal is small, valid, and shows commands that there are."""
    path = Path(__file__).resolve().parents[2] / "docs" / "assets" / "terminal.svg"
    content = "".join(ET.parse(path).getroot().itertext())  # noqa: S314 -- our own

    assert path.stat().st_size < 60_000
    for name in ("ask", "chat", "compare"):
        assert f"interlingua {name} " in content
