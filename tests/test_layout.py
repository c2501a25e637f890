"""The shape of the project: sizes, names, purity."""

import ast
import re
import subprocess
import sys
from pathlib import Path
from types import FunctionType

import pytest

import interlingua
from interlingua import dialects, transport

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "interlingua"
FILES = sorted(SOURCE.rglob("*.py"))
FUNCTION_LINES = 60
FILE_LINES = 700


def test_files_are_not_too_long():
    """A file is as long as its subject, and no longer than one can keep in mind."""
    lengths = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in FILES}

    assert {str(path): size for path, size in lengths.items() if size > FILE_LINES} == {}
    assert len(lengths) > 100


def test_functions_can_be_seen_whole():
    """Every function is shorter than 60 lines."""
    long = [
        f"{path}:{node.lineno} {node.name}"
        for path in FILES
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        and node.end_lineno - node.lineno >= FUNCTION_LINES
    ]

    assert long == []


def test_public_names_are_listed():
    """`__all__` is what is imported, each name once. (The linter keeps it sorted.)"""
    names = interlingua.__all__

    assert len(names) == len(set(names))
    assert all(hasattr(interlingua, name) for name in names)
    tree = ast.parse((SOURCE / "__init__.py").read_text(encoding="utf-8"))
    types = next(node for node in tree.body if isinstance(node, ast.If))
    later = _imported(types.body) - {"history", "sync"}  # modules
    assert set(names) == _imported(tree.body) - {"Any", "TYPE_CHECKING"} | later
    # what a type checker sees and what is loaded on use are the same
    assert later == {name for names in interlingua._ON_USE.values() for name in names}


def _imported(nodes):
    return {a.name for n in nodes if isinstance(n, ast.ImportFrom) for a in n.names}


def test_public_classes_and_functions_have_a_sentence():
    """What users see is documented."""
    for public in interlingua.__all__:
        value = getattr(interlingua, public)
        if isinstance(value, (type, FunctionType)):
            assert (value.__doc__ or "").strip(), public


def test_import_is_light():
    """Importing the package loads no event loop, no sockets and no TLS."""
    heavy = "asyncio ssl socket aiohttp logging threading random"
    code = f"import sys, interlingua; print([m for m in '{heavy}'.split() if m in sys.modules])"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout

    assert loaded.strip() == "[]"


def test_what_is_loaded_on_use():
    """Names and the blocking half come when they are asked for; nothing else does."""
    assert interlingua.sync.generate.__module__ == "interlingua.sync.generate"
    assert {"generate", "Client"} <= {*dir(interlingua)}
    with pytest.raises(AttributeError, match="no attribute 'genrate'"):
        interlingua.genrate  # noqa: B018 -- it is what raises


def test_typed():
    """The package tells type checkers that it is typed."""
    assert (SOURCE / "py.typed").exists()


def test_transports_are_found_in_one_place():
    """Each that is named is there, and a name that is not is an error."""
    names = transport.__all__

    assert {getattr(transport, name).__name__ for name in names} == {*names}
    with pytest.raises(AttributeError, match="no attribute 'Telegraph'"):
        transport.Telegraph  # noqa: B018


def test_no_dialect_is_named_outside_its_folder():
    """What is true of a dialect is in its facts: nothing else asks which dialect it is."""
    names = re.compile("|".join(dialects.names()))
    naming = {
        place
        for path in FILES
        if not (place := path.relative_to(SOURCE).as_posix()).startswith("dialects/")
        and names.search(path.read_text(encoding="utf-8"))
    }

    assert naming == {"providers/rows.py"}  # a row names the dialect that its provider speaks
