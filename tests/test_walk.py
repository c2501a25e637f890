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
walks = {name: make() for name, make in walk.WALKS.items()}
print(json.dumps({
    name: {
        "calls": each.times.total(), "functions": len(each.stations), "files": len(each.files),
        "depth": each.depth, "resolved": each.times["Routing.address"],
        "ids": each.times["new_ulid"], "scopes": each.times["Scopes.add"],
    }
    for name, each in walks.items()
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
    walk = figures["generate"]
    assert walk["calls"] <= 106
    assert walk["functions"] <= 92
    assert walk["files"] <= 33  # a module is loaded on its first use
    assert walk["depth"] <= 12


def test_a_text_delta_is_a_shorter_one(figures):
    """It passes once for every piece of an answer."""
    assert figures["a text delta"]["calls"] <= 10


def test_a_call_is_resolved_once_and_has_one_id(figures):
    """Nobody makes an id that another throws away."""
    walk = figures["generate"]
    assert (walk["resolved"], walk["ids"]) == (1, 1)


@pytest.mark.parametrize(
    ("name", "calls", "depth"),
    [
        ("embed", 101, 13),
        ("batch.submit", 284, 16),
        ("Session.send", 180, 13),
        ("a streamed tool round", 682, 14),
    ],
)
def test_other_calls_go_the_same_way(figures, name, calls, depth):
    """Operations, sessions and runs with tools are no longer walks than they must be."""
    assert figures[name]["calls"] <= calls
    assert figures[name]["depth"] <= depth


@pytest.mark.parametrize("name", ["generate", "embed", "batch.submit", "Session.send"])
def test_a_call_has_one_scope(figures, name):
    """One id is registered once."""
    assert figures[name]["scopes"] == 1


def test_it_is_printed():
    """With the stations."""
    done = subprocess.run([sys.executable, WALK], capture_output=True, check=True, text=True)

    assert done.stdout.startswith("generate: ")
    assert "providers/adapter/generation.py:Generation.answer" in done.stdout


def test_one_walk_is_printed_alone():
    """Those that are named, in their order; another name is refused with a list of the names."""
    done = subprocess.run(
        [sys.executable, WALK, "embed", "a text delta"], capture_output=True, check=True, text=True
    )
    titles = [line.partition(":")[0] for line in done.stdout.splitlines() if " calls, " in line]
    assert titles == ["embed", "a text delta"]

    refused = subprocess.run(
        [sys.executable, WALK, "stroll"], capture_output=True, check=False, text=True
    )
    assert refused.returncode == 2
    assert "'stroll'" in refused.stderr
    assert "a streamed tool round" in refused.stderr
