"""
The smoke test (`scripts/smoke`) on simulated providers, and that each of its checks can fail.

The checks are the same programs for each provider; only the model's id differs, and comes from the
catalog. The model is simulated, the HTTP is real: client and key come from the environment.
"""

import asyncio
import importlib.util
import io
import re
import sys
from pathlib import Path

import pytest

from interlingua import Client
from interlingua.providers.catalog.models import find_model
from interlingua.simulator import Simulator, error, latency, serve_in_thread, text

ROOT = Path(__file__).resolve().parents[1]
_SPEC = importlib.util.spec_from_file_location("smoke", ROOT / "scripts" / "smoke.py")
smoke = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(smoke)

KEY = "sk-of-the-smoke-test"


@pytest.fixture
def no_keys(monkeypatch):
    """An environment without providers."""
    monkeypatch.setattr(smoke.os, "environ", {})


def environment(server, *providers):
    """The variables of a user whose providers are at this server."""
    variables = {}
    for name in providers or smoke.SIMULATED:
        key, address, path = smoke.SIMULATED[name]
        variables |= {key: KEY, address: server.url + path}
    return variables


def try_check(name, provider, app):
    """The outcome of one check."""

    async def main(environ):
        async with Client.from_env(environ) as client:
            model = smoke.choose_model(provider, is_cheap=False)
            return await smoke.run_check(smoke.CHECKS[name], smoke.Target(client, provider, model))

    with serve_in_thread(app) as server:
        return asyncio.run(main(environment(server)))


def models():
    return [smoke.choose_model(name, is_cheap=False) for name in smoke.SIMULATED]


@pytest.mark.parametrize("provider", smoke.SIMULATED)
@pytest.mark.parametrize("name", smoke.CHECKS)
def test_every_check_passes(name, provider):
    """In every dialect."""
    app = Simulator(smoke.answer, key=KEY, models=models())
    outcome = try_check(name, provider, app)

    assert outcome.mark == "pass", outcome.note
    assert app.script.received
    assert all(exchange.over.wait(10) for exchange in app.script.received)


BROKEN = {
    "answer": (text(""), "the text is empty"),
    "stream": (text(""), "there was no piece of text"),
    "tools": (text("Sunny in San Francisco and New York."), "the model called no tool"),
    "image": (text("It is blue."), "it is red, not 'It is blue.'"),
    "object": (text('{"name": "Bob", "age": 30}'), "it is {'name': 'Bob', 'age': 30}"),
    "history": (text("Five."), "it is 4, not 'Five.'"),
    "cancel": (text(""), "there was no piece of text"),
    "unknown model": (text("Here I am."), "an unknown model answered"),
    "bad key": (text("Come in."), "a wrong key was accepted"),
}


@pytest.mark.parametrize("provider", smoke.SIMULATED)
@pytest.mark.parametrize("name", smoke.CHECKS)
def test_every_check_can_fail(name, provider):
    """A provider that does it wrong is found, with a reason."""
    turn, reason = BROKEN[name]

    assert try_check(name, provider, Simulator(turn)) == ("FAIL", reason)


def test_an_error_fails_one_check():
    """What the library raises is the reason."""
    outcome = try_check("answer", "openai", Simulator(error(400, "No such thing.")))

    assert outcome.mark == "FAIL"
    assert re.match(r"InvalidRequestError: openai:.*No such thing", outcome.note)


def test_a_check_ends(monkeypatch):
    """A provider that never answers does not stop the others."""
    monkeypatch.setattr(smoke, "SECONDS", 0.2)
    outcome = try_check("answer", "openai", Simulator(latency(first=60) + text("Hi.")))

    assert outcome.mark == "FAIL"
    assert "TimeoutError" in outcome.note


def test_simulated(capsys):
    """Nothing is asked, and the table has a row for each provider and a column for each check."""
    assert asyncio.run(smoke.main(["--simulate"])) == 0

    header, *rows = capsys.readouterr().out.strip().splitlines()[:5]
    assert header.split("  ")[-1] == "bad key"
    assert [row.split(":")[0] for row in rows] == ["openai", "anthropic", "gemini", "openrouter"]
    assert [row.count("pass") for row in rows] == [len(smoke.CHECKS)] * 4


@pytest.mark.usefixtures("no_keys")
def test_without_keys(capsys):
    """It says that nothing was tried, and which variable each provider needs."""
    assert asyncio.run(smoke.main([])) == 2

    printed = capsys.readouterr().out
    assert "No provider was tried: no key is set" in printed
    assert re.search(r"^  anthropic +set ANTHROPIC_API_KEY$", printed, re.MULTILINE)
    assert re.search(
        r"^  cloudflare +set CLOUDFLARE_API_KEY and CLOUDFLARE_ACC", printed, re.MULTILINE
    )


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(
    ("stdin", "words"),
    [(io.StringIO("y\n"), "Pass --yes"), (Terminal("\n"), "Spend up to $"), (Terminal("n\n"), "?")],
)
def test_it_asks_before_it_spends(monkeypatch, capsys, stdin, words):
    """With the cost; without a clear yes from a terminal, nothing is sent."""
    app = Simulator(smoke.answer, key=KEY)
    monkeypatch.setattr(sys, "stdin", stdin)
    with serve_in_thread(app) as server:
        monkeypatch.setattr(smoke.os, "environ", environment(server, "openai"))
        assert asyncio.run(smoke.main([])) == 2

    printed = capsys.readouterr().out
    assert re.search(r"^  openai:\S+ +\$\d+\.\d\d$", printed, re.MULTILINE)
    assert words in printed
    assert "Nothing was sent." in printed
    assert app.script.received == ()


@pytest.mark.parametrize("arguments", [["--yes"], []])
def test_real_keys(monkeypatch, capsys, arguments):
    """What has a key is tried, after a yes; the rest is named; no key is shown."""
    app = Simulator(smoke.answer, key=KEY, models=[*models(), "gpt-mine"])
    monkeypatch.setattr(sys, "stdin", Terminal("y\n"))
    with serve_in_thread(app) as server:
        monkeypatch.setattr(smoke.os, "environ", environment(server, "openai", "gemini"))
        model = ["--model", "openai:gpt-mine"]
        assert asyncio.run(smoke.main([*arguments, *model, "--check", "stream"])) == 0

    printed = capsys.readouterr().out
    assert re.search(r"^  gemini:\S+ +\$\d+\.\d\d$", printed, re.MULTILINE)
    assert re.search(r"^  openai:gpt-mine +unknown$", printed, re.MULTILINE)
    assert re.search(r"^openai:gpt-mine +pass", printed, re.MULTILINE)
    assert re.search(r"^  anthropic +set ANTHROPIC_API_KEY$", printed, re.MULTILINE)
    assert "All checks passed." in printed
    assert KEY not in printed


def test_a_failure_is_the_exit_code(monkeypatch, capsys):
    """And the reason is below the table."""
    with serve_in_thread(Simulator("Blue.", key=KEY)) as server:
        monkeypatch.setattr(smoke.os, "environ", environment(server, "openai"))
        checks = ["--check", "answer", "--check", "image"]
        assert asyncio.run(smoke.main(["--yes", "--provider", "openai", *checks])) == 1

    printed = capsys.readouterr().out
    assert re.search(r"^FAIL openai:\S+ image: it is red, not 'Blue.'$", printed, re.MULTILINE)
    assert printed.endswith("1 failed\n")


def test_a_provider_that_must_be_named(monkeypatch, capsys):
    """The key of a whole cloud is used only for the provider that the caller names."""
    cloud = {"AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": KEY, "AWS_REGION": "eu-north-1"}
    monkeypatch.setattr(smoke.os, "environ", cloud)
    monkeypatch.setattr(sys, "stdin", Terminal("n\n"))
    model = ["--model", "bedrock_invoke:claude"]
    asyncio.run(smoke.main(model))
    assert "This will call" not in capsys.readouterr().out
    asyncio.run(smoke.main([*model, "--provider", "bedrock_invoke"]))
    assert re.search(r"^  bedrock_invoke:claude +unknown", capsys.readouterr().out, re.MULTILINE)


@pytest.mark.parametrize(
    "arguments", [["--model", "gpt-5.2"], ["--provider", "nowhere"], ["--check", "nothing"]]
)
def test_wrong_options(arguments, capsys):
    """One line says what is wrong."""
    with pytest.raises(SystemExit, match="2"):
        asyncio.run(smoke.main(arguments))
    assert arguments[1] in capsys.readouterr().err


def test_cheap_models_are_cheaper():
    """Of the known providers, never more expensive than the latest."""
    for provider in smoke.SIMULATED:
        latest, cheap = (smoke.choose_model(provider, is_cheap=each) for each in (False, True))
        prices = [smoke._price(find_model(name, provider)) for name in (cheap, latest)]
        assert prices[0] <= prices[1], provider
