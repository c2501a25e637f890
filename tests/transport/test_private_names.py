"""No private name of a library is used: the next version of the library may not have it."""

import ast

import pytest

from support.sources import SOURCE

ROOM = SOURCE / "transport"

BY_NAME = ("getattr", "setattr", "hasattr", "delattr", "attrgetter", "methodcaller")
"""Functions that are given the name of an attribute."""


def defined_names(tree):
    """The names that a module gives to its classes: methods, attributes, slots."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield name
            case ast.Attribute(value=ast.Name(id="self" | "cls"), attr=name, ctx=ast.Store()):
                yield name
            case ast.ClassDef(body=body):
                for line in body:
                    yield from class_names(line)


def class_names(line):
    """The attributes that a line of the body of a class defines."""
    match line:
        case ast.Assign(targets=[ast.Name(id="__slots__")], value=value):
            yield from (each.value for each in ast.walk(value) if isinstance(each, ast.Constant))
        case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
            yield name


def used_names(node, own, ours):
    """The names that a node takes from something that is not ours."""
    match node:
        case ast.Attribute(value=ast.Name(id="self" | "cls"), attr=name):
            return {name} - ours
        case ast.Attribute(attr=name):
            return {name} - own
        case ast.Call(func=ast.Name(id=function) | ast.Attribute(attr=function), args=given):
            values = {each.value for each in given if isinstance(each, ast.Constant)}
            return {each for each in values if isinstance(each, str) and function in BY_NAME}
        case ast.Import(names=names):
            return {part for each in names for part in each.name.split(".")}
        case ast.ImportFrom(module=str(module), names=names) if not module.startswith(
            "interlingua."
        ):
            return {*module.split("."), *(each.name for each in names)}
    return set()


def foreign_names(tree, ours):
    """
    The private names that a module uses and does not define.

    `ours` are the names that any module of the room defines: on `self` they may come from a base
    class in another module.
    """
    own = set(defined_names(tree))
    used = {name for node in ast.walk(tree) for name in used_names(node, own, ours)}
    return {name for name in used if name.startswith("_") and not name.startswith("__")}


def test_the_transports_use_only_public_names():
    """Attributes, imports, and strings that name an attribute."""
    trees = {
        path.relative_to(ROOM).as_posix(): ast.parse(path.read_text("utf-8"))
        for path in ROOM.rglob("*.py")
    }
    ours = {name for tree in trees.values() for name in defined_names(tree)}
    found = {name: foreign_names(tree, ours) for name, tree in trees.items()}

    assert {name: used for name, used in found.items() if used} == {}


@pytest.mark.parametrize(
    "line",
    [
        "transport._pool._network_backend = Backend()",
        "if connection._h11_state.trailing_data: pass",
        "del pool._h11_state",
        "getattr(source, '_h11_state', None)",
        "hasattr(source, '_h11_state')",
        "operator.attrgetter('_h11_state')(source)",
        "class Own(Pool):\n    def size(self):\n        return len(self._h11_state)",
        "class Own(Pool):\n    def size(self):\n        return super()._h11_state()",
        "from httpcore2._async import http11",
        "from httpcore2 import _exceptions",
        "import httpcore2._async.http11",
    ],
)
def test_a_private_name_is_found(line):
    """Wherever it is used."""
    assert foreign_names(ast.parse(line), set())


@pytest.mark.parametrize(
    "line",
    [
        "def _own(): pass\n_own()",
        "class Own:\n    def _step(self): pass\nown._step()",
        "class Own:\n    __slots__ = ('_entries',)\nown._entries.clear()",
        "class Own:\n    def __init__(self):\n        self._entries = {}\nown._entries.clear()",
        "class Own:\n    _entries: dict\nown._entries.clear()",
        "class Own(Base):\n    def size(self):\n        return self._of_another_module",
        "own.__dict__",
        "getattr(own, 'name')",
        "from interlingua.transport.media import _read",
        "log('_word')",
    ],
)
def test_a_name_of_our_own_is_not_found(line):
    """What this module defines, and on `self` what another module of the room defines."""
    assert not foreign_names(ast.parse(line), {"_of_another_module", "_entries"})
