"""The clients that `scripts/test-clients` installs are pinned, and run apart from this suite."""

import json
import re
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parent / "clients"
PYTHON = sorted(FOLDER.glob("*/requirements.txt"))
NODE = sorted(FOLDER.glob("*/package.json"))
LOCKS = sorted(FOLDER.glob("*/package-lock.json"))


def names(paths):
    return [path.parent.name for path in paths]


@pytest.mark.parametrize("pins", PYTHON, ids=names(PYTHON))
def test_packages_of_python_have_exact_versions(pins):
    """Those that others need too: a run next year installs the same."""
    lines = pins.read_text(encoding="utf-8").splitlines()

    assert [line for line in lines if not re.fullmatch(r"[\w.-]+==[\w.]+", line)] == []
    assert len(lines) > 10


@pytest.mark.parametrize("pins", NODE, ids=names(NODE))
def test_packages_of_node_have_exact_versions(pins):
    """Ranges would be resolved anew."""
    versions = json.loads(pins.read_text(encoding="utf-8"))["dependencies"].values()

    assert [each for each in versions if not re.fullmatch(r"[\d.]+", each)] == []


@pytest.mark.parametrize("lock", LOCKS, ids=names(LOCKS))
def test_locks_name_no_registry(lock):
    """Everyone installs from the registry that is configured; the hashes say what is right."""
    packages = json.loads(lock.read_text(encoding="utf-8"))["packages"]

    assert [name for name, each in packages.items() if "resolved" in each] == []
    assert all("integrity" in each for name, each in packages.items() if name)


def test_they_are_no_tests_of_this_suite():
    """Their packages are not in the environment of the suite."""
    assert [*FOLDER.rglob("test_*.py"), *FOLDER.rglob("conftest.py")] == []


def test_every_group_can_be_run():
    """Each has the program that `scripts/test-clients` calls."""
    assert [each.name for each in PYTHON + NODE if not (each.parent / "run.py").exists()] == []
