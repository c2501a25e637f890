"""`interlingua check` scores dialects, adapters and running servers."""

import json
from xml.etree import ElementTree as ET

import pytest

from interlingua import dialects
from interlingua.catalog import get_model_info
from interlingua.conformance.endpoint import CHECKS
from interlingua.simulator import Simulator, serve_in_thread, text, use_tools, within_limits

KEY = "sk-planted-key-of-a-test"


@pytest.fixture
def url():
    app = Simulator(within_limits(use_tools), key=KEY, models=["m"], strict=True)
    with serve_in_thread(app) as server:
        yield server.url


def test_all_dialects(bare):
    """Without arguments every dialect is checked on cases that it writes itself."""
    done = bare.run("check", "--json")
    reports = json.loads(done.stdout)

    assert done.returncode == 0, done.stdout
    assert [report["dialect"] for report in reports] == list(dialects.names())
    assert {report["percent"] for report in reports} == {100}


def test_a_running_server(bare, url, tmp_path):
    """The simulator scores 100 %, as text, as JSON and as JUnit."""
    junit = tmp_path / "out.xml"
    arguments = ["--endpoint", url, "--dialect", "openai_chat", "-m", "m", "--key-env", "THE_KEY"]
    done = bare.run("check", *arguments, "--junit", str(junit), THE_KEY=KEY)

    assert done.returncode == 0, done.stdout + done.stderr
    assert "(openai_chat): 100 %" in done.stdout
    assert KEY not in done.stdout + done.stderr
    suite = ET.parse(junit).getroot()[0]  # noqa: S314 -- our own
    assert (suite.get("tests"), suite.get("failures")) == (str(len(CHECKS)), "0")


def test_findings_end_with_exit_code_1(bare):
    """What was found is printed, and CI sees it."""
    with serve_in_thread(Simulator(text(""))) as server:
        arguments = ["--endpoint", server.url, "--dialect", "openai_chat", "-m", "m"]
        done = bare.run("check", *arguments, "--only", "text", "--json")

    assert done.returncode == 1
    (report,) = json.loads(done.stdout)
    assert report["violations"][0]["required"] == "answer with text"


def test_an_adapter(bare, url):
    """The adapter of a provider, with its variables."""
    env = {"ANTHROPIC_API_KEY": KEY, "ANTHROPIC_BASE_URL": url}
    done = bare.run("check", "--adapter", "anthropic", "-m", "m", **env)

    assert done.returncode == 0, done.stdout + done.stderr
    assert "anthropic (anthropic_messages): 100 %" in done.stdout


def test_what_a_model_lacks_is_not_applicable(bare):
    """The catalog knows a model without tools; the score is that of what it has."""
    model = "gpt-5-chat"
    assert get_model_info(model).supports_tools is False
    with serve_in_thread(Simulator(use_tools, key=KEY, models=[model])) as server:
        env = {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": server.url}
        done = bare.run("check", "--adapter", "openai", "-m", model, **env)

    assert done.returncode == 0, done.stdout + done.stderr
    assert ": 100 %" in done.stdout
    words = " ".join(done.stdout.split())
    assert "tool call 0 passed 0 failed 1 n/a (gpt-5-chat does not support tools;" in words


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        (["nothing"], "no dialect 'nothing'"),
        (["--endpoint", "http://127.0.0.1:1"], "needs --dialect and --model"),
        (["--adapter", "openai"], "--adapter needs --model."),
        (["openai_chat", "--adapter", "openai"], "one of them"),
        (["--only", "x"], "No law 'x'"),
        (["--cases", "."], "name it"),
        (
            ["--endpoint", "http://127.0.0.1:1", "--dialect", "openai_chat", "-m", "m",
             "--key-env", "NOT_SET"],
            "NOT_SET is not set",
        ),
        (
            ["--endpoint", "http://127.0.0.1:1", "--dialect", "openai_chat", "-m", "m",
             "--only", "x"],
            "No check 'x'",
        ),
    ],
)  # fmt: skip
def test_wrong_arguments_are_one_line(bare, arguments, found):
    """The exit code is that of wrong usage."""
    done = bare.run("check", *arguments)

    assert done.returncode == 2
    assert found in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_no_server_is_one_line(bare):
    """The exit code is that of the network."""
    done = bare.run(
        "check", "--endpoint", "http://127.0.0.1:1", "--dialect", "openai_chat", "-m", "m"
    )

    assert done.returncode == 6
    assert len(done.stderr.splitlines()) == 1
