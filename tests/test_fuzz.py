"""`scripts/fuzz` runs, covers every decoder, and can fail."""

import importlib.machinery
import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

from interlingua import dialects

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


def test_an_unknown_target_is_refused_with_the_known_ones():
    """The error lists the known ones."""
    status, said = run("nothing")

    assert status == 2
    assert "openai_chat.stream" in said


def test_every_target_holds(fuzz):
    """One round each, with every decoder of every dialect."""
    found = fuzz.targets()
    for name in dialects.names():
        assert {f"{name}.{use}" for use in ("request", "response", "stream", "error")} <= set(found)
    for target, recorded in found.values():
        fuzz.try_target(target, recorded, 1)


def test_a_defect_is_found(fuzz, capsys):
    """With its smallest input, and how to repeat it."""

    def target(data):
        if b"{" in data:
            raise ValueError("defect")

    assert fuzz.run({"broken": (target, [])}, 60, 3) == 1
    said = capsys.readouterr().out
    assert "--seed 3 broken" in said
    assert "input: b'{'" in said
