"""The layers hold, and a first call loads only what it uses."""

import importlib.machinery
import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
LOADER = importlib.machinery.SourceFileLoader("start", str(ROOT / "scripts" / "start"))
start = importlib.util.module_from_spec(importlib.util.spec_from_loader("start", LOADER))
LOADER.exec_module(start)

DIALECTS = tuple(start.TARGETS)
NEVER = re.compile(
    r"interlingua\.(?:"
    r"dialects\.\w+\.(?:serve|serving|encoder|operations|sdk_messages|errors|tools)"
    r"|dialects\.\w+\.(?:batches|embeddings|files|images|media_calls|models|speech|video)"
    r"|client\.middleware\.(?!contract\b|layers\b).+|client\.stores\..+|client\.config"
    r"|client\.(?:custom_adapter|explain|operation_attempts|provider_config|tiers)"
    r"|prepare\.history\.(?!scan\b).+|prepare\.schema\.(?!keywords\b).+|prepare\.tool_forms"
    r"|providers\.(?:adapter\.operations|batches|credentials|media|operations|uploads|usage)"
    r"|api\.(?:execute|modalities|objects|session|tools|types)\b.*"
    r"|spec\.(?:modalities|operations|json_form|warning_table)\b.*"
    r"|wire\.(?:classify|secrets|seal|sigv4|batches|files|operations|resources|models)"
    r"|tokens\b.*|local\b.*|serving\b.*|simulator\b.*|conformance\b.*|bulk\b.*|cli\b.*"
    r")"
)
"""What a plain call never uses: the server side, operations, tools, repairs, errors, …"""
SLOW = frozenset(
    (
        *("csv", "email", "html", "importlib.metadata", "json", "pathlib", "pkgutil", "shutil"),
        *("tempfile", "uuid", "zipfile"),
    )
)
"""Modules of Python that take a millisecond or more to load, and that a plain call does not use."""


@pytest.fixture(scope="module")
def processes():
    """Fresh processes, against a simulator in this one."""
    with start.starting() as made:
        yield made


def told(modules):
    """Modules and what imported them, for the message of a failure."""
    return {module["name"]: f"imported by {module['by']}" for module in modules}


def test_import_contracts():
    """Layers, purity and the independence of the dialects, as pyproject.toml states them."""
    found = subprocess.run(
        [Path(sys.executable).with_name("lint-imports")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )

    assert found.returncode == 0, found.stdout
    assert "3 kept, 0 broken" in found.stdout


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_modules_of_a_first_call(processes, dialect):
    """They are those of the saved list; if a call needs another, `scripts/start --save` adds it."""
    saved = json.loads(start.SAVED.read_text(encoding="utf-8"))
    expected = {*saved["every"], *saved[dialect]}
    modules = processes.imports(dialect)
    kept = [module for module in modules if start.is_kept(module)]

    assert told(module for module in kept if module["name"] not in expected) == {}
    assert sorted(expected - {module["name"] for module in kept}) == []
    first = [module for module in kept if module["stage"] == "import"]
    assert {*told(first)} == {"interlingua", "interlingua.version"}


@pytest.mark.parametrize("way", ["generate", "environment", "stream", "blocking"])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_first_call_loads_nothing_that_it_does_not_use(processes, dialect, way):
    """No server side, no other dialect, no operations, however the call is made."""
    modules = processes.imports(dialect, way)
    others = re.compile(rf"interlingua\.dialects\.(?:{'|'.join({*DIALECTS} - {dialect})})\b")
    kept = [module for module in modules if start.is_kept(module)]

    assert told(module for module in kept if NEVER.fullmatch(module["name"])) == {}
    assert told(module for module in kept if others.match(module["name"])) == {}
    ours = [module for module in modules if module["by"].startswith("interlingua.")]
    foreign = [module for module in ours if not start.is_ours(module)]
    slow = [module for module in foreign if module["name"] in SLOW]
    assert told(one for one in slow if "interlingua.transport" not in one["by"]) == {}
