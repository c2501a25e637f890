"""The annotations of public functions are types that can be read at run time."""

import ast
import importlib
import inspect
import pkgutil
import sys
import typing
from pathlib import Path

import pytest

import interlingua

MODULES = [
    "interlingua",
    *(
        found.name
        for found in pkgutil.iter_modules(interlingua.__path__, "interlingua.")
        if not found.name.rpartition(".")[2].startswith("_")
    ),
]


@pytest.fixture(scope="module")
def checked_names():
    """The names that modules import for type checkers only, which a first call need not load."""
    for module in map(importlib.import_module, MODULES):
        for public in getattr(module, "__all__", ()):
            getattr(module, public, None)  # loads its module
    names = {}
    for name, module in [*sys.modules.items()]:
        if name.startswith("interlingua.") and getattr(module, "TYPE_CHECKING", None) is False:
            for block in ast.walk(ast.parse(Path(module.__file__).read_text(encoding="utf-8"))):
                if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING":
                    imports = [line for line in block.body if _is_import(line)]
                    exec("\n".join(map(ast.unparse, imports)), names)  # noqa: S102 -- our source
    return names


def _is_import(line):
    return isinstance(line, ast.Import | ast.ImportFrom)


def members(value):
    """A class and its functions, or a function."""
    if inspect.isclass(value):
        yield value
        for name in dir(value):
            found = inspect.getattr_static(value, name)
            found = found.fget if isinstance(found, property) else found
            found = getattr(found, "__func__", found)
            if inspect.isfunction(found) and (name == "__init__" or not name.startswith("_")):
                yield found
    elif inspect.isfunction(value):
        yield value


@pytest.mark.parametrize("name", MODULES)
def test_annotations_are_types(name, checked_names):
    """`typing.get_type_hints` reads them, with the names that are there for type checkers only."""
    module = importlib.import_module(name)
    for public in getattr(module, "__all__", ()):
        for value in members(getattr(module, public, None)):
            if value.__module__.startswith("interlingua"):
                assert typing.get_type_hints(value, localns=checked_names) is not None
