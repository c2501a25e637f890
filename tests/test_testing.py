"""The pytest fixture for users."""

import subprocess
import sys

import pytest

from interlingua.spec.errors import ConfigurationError
from interlingua.testing import open_cassette
from interlingua.transport.cassette import RecordingTransport, ReplayTransport
from servers import Server, answering, reply

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
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments, str(folder)],
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": "", **variables},
        cwd=folder,
    )
    return done.returncode, done.stdout + done.stderr


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
        assert "record it first" in said
        assert server.requests == []

        assert run(folder, "--cassettes=record")[0] == 0
        assert len(server.requests) == 2
    files = sorted(path.name for path in (folder / "cassettes" / "test_mine").iterdir())
    assert files == ["test_call_a_b.json", "test_call_c.json"]

    assert run(folder)[0] == 0
    assert run(folder, "--cassettes=auto")[0] == 0


def test_the_variable_chooses_too(folder):
    """For CI and shells; an option goes before it."""
    with Server(answering(reply(b"hello"))) as server:
        (folder / "test_mine.py").write_text(TEST.replace("{url}", server.url))
        assert run(folder, INTERLINGUA_CASSETTES="auto")[0] == 0
        assert run(folder, "--cassettes=replay", INTERLINGUA_CASSETTES="record")[0] == 0
        assert len(server.requests) == 2


def test_modes(tmp_path):
    """Auto replays what is there and records what is not; no other mode is guessed."""
    path = tmp_path / "t.json"

    assert isinstance(open_cassette(path, "auto"), RecordingTransport)
    assert isinstance(open_cassette(path, "record"), RecordingTransport)
    path.write_text('{"format": "interlingua cassette 1", "exchanges": []}')
    assert isinstance(open_cassette(path, "auto"), ReplayTransport)
    assert isinstance(open_cassette(path), ReplayTransport)
    with pytest.raises(ConfigurationError, match="no cassette mode 'once'"):
        open_cassette(path, "once")
