"""The walk of a call stays short: `scripts/walk` prints it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

WALK = Path(__file__).parents[1] / "scripts" / "walk"
MEASURE = """
import importlib.machinery, importlib.util, json, sys
loader = importlib.machinery.SourceFileLoader("walk", sys.argv[1])
walk = importlib.util.module_from_spec(importlib.util.spec_from_loader("walk", loader))
sys.modules["walk"] = walk
loader.exec_module(walk)
whole, delta = walk.walk_generate(), walk.walk_delta()
print(json.dumps({
    "functions": len(whole.stations), "files": len(whole.files), "depth": whole.depth,
    "delta": len(delta.stations), "resolved": whole.times["Routing.address"],
    "ids": whole.times["new_ulid"],
}))
"""


@pytest.fixture(scope="module")
def figures():
    """Measured in a process of its own, which no other test has changed."""
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, str(WALK)], capture_output=True, check=True, text=True
    )
    return json.loads(done.stdout)


def test_a_call_is_a_short_walk(figures):
    """Few functions of ours, in few files, at no great depth."""
    assert figures["functions"] <= 90
    assert figures["files"] <= 30
    assert figures["depth"] <= 12


def test_a_text_delta_is_a_shorter_one(figures):
    """It passes once for every piece of an answer."""
    assert figures["delta"] <= 10


def test_a_call_is_resolved_once_and_has_one_id(figures):
    """Nobody makes an id that another throws away."""
    assert (figures["resolved"], figures["ids"]) == (1, 1)


def test_it_is_printed():
    """With the stations."""
    done = subprocess.run([sys.executable, WALK], capture_output=True, check=True, text=True)

    assert done.stdout.startswith("generate: ")
    assert "providers/adapter/generation.py:Generation.answer" in done.stdout
