"""The pytest fixtures for users."""

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlingua.spec.errors import ConfigurationError
from interlingua.testing import file_name, open_cassette
from interlingua.transport.cassette import RecordingTransport, ReplayTransport
from support import preloaded
from support.servers import Server, answering, reply

CONFTEST = 'pytest_plugins = ["interlingua.testing"]\n'
TEST = """
import asyncio
import pytest
from interlingua.spec.contracts import HttpRequest

@pytest.mark.parametrize("word", ["a/b", "c"])
def test_call(cassette, word):
    async def main():
        async with cassette.send(HttpRequest(url="{url}", body=word.encode())) as got:
            assert await got.read() == b"hello"
        await cassette.close()
    asyncio.run(main())
"""


def run(folder, *arguments, **variables):
    command = ["-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments, folder]
    env = {"PATH": "", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", **variables}
    with preloaded.start(command, env=env, cwd=folder) as process:
        out, err = process.communicate()
    return process.returncode, out + err


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "conftest.py").write_text(CONFTEST)
    return tmp_path


def test_record_then_replay(folder):
    """Without a recording the test fails and says so; recorded once, it needs no network."""
    with Server(answering(reply(b"hello"))) as server:
        (folder / "test_mine.py").write_text(TEST.replace("{url}", server.url))
        status, said = run(folder)
        assert status == 1
        assert "Record it first" in said
        assert server.requests == []

        assert run(folder, "--cassettes=record")[0] == 0
        assert len(server.requests) == 2
    files = sorted(path.name for path in (folder / "cassettes" / "test_mine").iterdir())
    assert files == [file_name("test_call[a/b]"), "test_call[c].json"]

    assert run(folder)[0] == 0
    assert run(folder, "--cassettes=auto")[0] == 0


def test_the_variable_chooses_too(folder):
    """For CI and shells; an option goes before it."""
    with Server(answering(reply(b"hello"))) as server:
        (folder / "test_mine.py").write_text(TEST.replace("{url}", server.url))
        assert run(folder, INTERLINGUA_CASSETTES="auto")[0] == 0
        assert run(folder, "--cassettes=replay", INTERLINGUA_CASSETTES="record")[0] == 0
        assert len(server.requests) == 2


ALIKE = """
import asyncio
import pytest
from interlingua.spec.contracts import HttpRequest

def ask(cassette, word):
    async def main():
        async with cassette.send(HttpRequest(url="{url}", body=word.encode())) as got:
            await got.read()
    asyncio.run(main())

class TestA:
    def test_x(self, cassette):
        ask(cassette, "A")

class TestB:
    def test_x(self, cassette):
        ask(cassette, "B")

@pytest.mark.parametrize("word", ["a/b", "a?b", "a_b"])
def test_x(cassette, word):
    ask(cassette, word)

def test_x_a_b(cassette):
    ask(cassette, "other")
"""


def test_tests_of_like_names_have_files_of_their_own(folder):
    """None overwrites another's, so that all replay what they recorded."""
    with Server(answering(reply(b"hello"))) as server:
        (folder / "test_mine.py").write_text(ALIKE.replace("{url}", server.url))
        assert run(folder, "--cassettes=record")[0] == 0
    files = {path.name for path in (folder / "cassettes" / "test_mine").iterdir()}

    assert len(files) == 6
    assert {"TestA.test_x.json", "TestB.test_x.json", "test_x[a_b].json"} < files
    assert run(folder)[0] == 0


SCRIPTED = """
import os, subprocess, sys
import pytest
from interlingua import sync
from interlingua.simulator import Script, ScriptError

PROGRAM = (
    "from interlingua import sync;"
    "print(*(sync.generate(model, 'Hi.').text for model in "
    "('openai:gpt-5.2', 'anthropic:claude-haiku-4-5', 'gemini:gemini-2.5-flash')))"
)

def greet():
    return sync.generate("anthropic:claude-haiku-4-5", "Hi.").text

def test_scripted(scripted_client):
    client = scripted_client("Hello.")
    assert greet() == "Hello."
    assert client.requests[0].messages[0].text == "Hi."
    with pytest.raises(ScriptError):
        greet()

def test_dialect(scripted_client):
    client = scripted_client("Hello.", default_provider="gemini")
    assert sync.generate("m", "Hi.").text == "Hello."
    assert client.script.received[0].dialect == "gemini_generate"

def test_http(simulator):
    script = Script("One.", "Two.", "Three.")
    server = simulator(script)
    assert greet() == "One."
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True)
    assert done.stdout == "Two. Three. Three.\\n", done.stderr
    assert len(script.requests) == 4 and server.url == os.environ["ANTHROPIC_BASE_URL"]

def test_nothing_is_left():
    assert "ANTHROPIC_BASE_URL" not in os.environ
    with pytest.raises(Exception, match="not configured"):
        greet()
"""


def test_scripted_models(folder):
    """A script is the default client of one test, or a server that the environment names."""
    (folder / "test_mine.py").write_text(SCRIPTED)
    path = str(Path(__file__).resolve().parents[1] / "src")
    status, printed = run(folder, PYTHONPATH=path)

    assert status == 0, printed
    assert "4 passed" in printed


@given(st.text(min_size=1), st.text(min_size=1))
def test_file_names(one, other):
    """Two tests have two, each one that any file system takes."""
    assert (file_name(one) == file_name(other)) is (one == other)
    assert len(file_name(one * 200)) < 200
    assert not set(file_name(one)) & set('/\\:*?"<>| \n\0')


def test_modes(tmp_path):
    """Auto replays what is there and records what is not; no other mode is guessed."""
    path = tmp_path / "t.json"

    assert isinstance(open_cassette(path, "auto"), RecordingTransport)
    assert isinstance(open_cassette(path, "record"), RecordingTransport)
    path.write_text('{"format": "interlingua cassette 1", "exchanges": []}')
    assert isinstance(open_cassette(path, "auto"), ReplayTransport)
    assert isinstance(open_cassette(path), ReplayTransport)
    with pytest.raises(ConfigurationError, match="Unknown cassette mode 'once'"):
        open_cassette(path, "once")


@pytest.mark.parametrize(
    ("module", "package"),
    [
        ("interlingua.testing", "pytest"),
        ("interlingua.conformance.plugin", "pytest"),
        ("interlingua.conformance.strategies", "hypothesis"),
    ],
)
def test_a_missing_package_is_named(module, package):
    """The error of the import says what to install."""
    code = f"import sys; sys.modules['{package}'] = None; import {module}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        f"ModuleNotFoundError: `{module}` needs {package}. Install it with `pip install {package}`."
    )
