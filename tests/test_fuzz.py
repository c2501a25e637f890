"""`scripts/fuzz` runs, covers every decoder, and can fail."""

import importlib.machinery
import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

from interlingua import dialects
from interlingua.spec.errors import DecodeError
from interlingua.spec.operations import OperationResult
from interlingua.transport.http1.connection import Connection
from support.run_profile import examples

FUZZ = Path(__file__).parents[1] / "scripts" / "fuzz"


@pytest.fixture(scope="module")
def fuzz():
    """The script as a module."""
    loader = importlib.machinery.SourceFileLoader("fuzz", str(FUZZ))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("fuzz", loader))
    loader.exec_module(module)
    return module


def run(*arguments):
    """The exit status of the script, and what it printed."""
    done = subprocess.run(
        [sys.executable, str(FUZZ), *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    return done.returncode, done.stdout + done.stderr


def test_the_fuzzer_runs_for_a_limited_time():
    """And says how many examples each target had."""
    status, said = run("--seconds", "1", "--seed", "7", "json", "openai_chat.stream")

    assert status == 0, said
    assert re.search(r"json [1-9]\d*", said)
    assert "openai_chat.stream" in said


def test_the_fuzzer_runs_for_a_number_of_inputs():
    """Of each target, however long they take."""
    status, said = run("--cases", "450", "--seed", "7", "json", "connection")

    assert status == 0, said
    assert said.endswith("json 450, connection 450\n")


def test_an_unknown_target_is_refused_with_the_known_ones():
    """The error lists the known ones."""
    status, said = run("nothing")

    assert status == 2
    assert "openai_chat.stream" in said


@pytest.fixture(scope="module")
def found(fuzz):
    """Its targets, by name."""
    return fuzz.targets(fuzz.FIXTURES)


def test_every_decoder_is_a_target(fuzz, found):
    """Of each dialect, each operation, each endpoint of the server side, and each document."""
    for name in dialects.names():
        uses = ("request", "response", "stream", "error")
        assert {f"{name}.{use}" for use in uses} <= set(found)
        operations = dialects.get(name).OPERATIONS
        assert {
            key for key in operations if not any(_is_of(f"{name}.{key}", t) for t in found)
        } == set()
    missing = [each for each in fuzz.endpoints() if not fuzz.is_covered(each, found)]
    assert missing == []
    results = {kind.__name__ for kind in fuzz.subclasses(OperationResult)}
    documents = {"Message", "Request", "Response", "messages", "event", "session", "cassette"}
    assert {f"document.{name}" for name in documents | results} <= set(found)
    assert {"connection", "gateway"} <= set(found)


def _is_of(operation, target):
    """Whether a target is a reply of an operation; one with several replies has a number."""
    return target == operation or target.rpartition(".")[0] == operation


def test_every_target_accepts_its_seeds(fuzz, found):
    """So damage is done to what would be read, and not to what is refused at once."""
    for name, target in found.items():
        fuzz.prove(name, target)


def test_a_seed_that_is_refused_is_reported(fuzz):
    """With the name of its target."""

    def refuse(_data):
        raise DecodeError("no")

    with pytest.raises(AssertionError, match="deaf refuses its seed"):
        fuzz.prove("deaf", fuzz.Target(refuse, [b"x"]))
    with pytest.raises(AssertionError, match="bare has no seed"):
        fuzz.prove("bare", fuzz.Target(len, []))


def test_every_target_holds(fuzz, found):
    """A few examples each."""
    for name, target in found.items():
        try:
            fuzz.try_target(target, 1, examples(80))
        except Exception as error:
            error.add_note(name)
            raise


class Hoarding(Connection):
    """Keeps what nobody asked for, and takes it for the next reply."""

    kept = b""

    def send(self, *args, **options):
        super().send(*args, **options)
        kept, self.kept = self.kept, b""
        if kept:
            self.data_received(kept)

    def data_received(self, data):
        if self._reply is None:
            self.kept += data
        else:
            super().data_received(data)


class Waiting(Connection):
    """Does not notice that the server has closed."""

    def eof_received(self):
        pass


@pytest.mark.parametrize(
    ("defect", "text"), [(Hoarding, "another reply"), (Waiting, "neither complete nor failed")]
)
def test_a_defect_of_the_connection_is_found(fuzz, found, monkeypatch, defect, text):
    """A reply to another request, and one that never ends."""
    monkeypatch.setattr("fuzzing.connection.Connection", defect)
    with pytest.raises(AssertionError, match=text):
        fuzz.try_target(found["connection"], 1, 2000)


def test_a_defect_is_found(fuzz, capsys):
    """With its smallest input, and how to repeat it."""

    def use(data):
        if b"{" in data:
            raise ValueError("defect")

    assert fuzz.run({"broken": fuzz.Target(use, [b'{"a": 1}'])}, 60, 3) == 1
    said = capsys.readouterr().out
    assert "--seed 3 'broken'" in said
    assert "input: b'{'" in said
