"""Hints that are not resolved where they are written: strings, and since 3.14 all annotations."""

import sys
import types

import pytest
import typing_extensions

from interlingua import Client, Tool, tool
from interlingua.api.run.validation import call_with_context
from interlingua.api.types.reading import read_function, schema_of
from interlingua.spec.errors import ConfigurationError

STRINGS = "from __future__ import annotations\n"
UNRESOLVED = [STRINGS, ""] if sys.version_info >= (3, 14) else [STRINGS]
NEW_SYNTAX = pytest.mark.skipif(sys.version_info < (3, 12), reason="`class Box[T]` is of 3.12")

PROGRAM = """
import dataclasses, msgspec, typing
from interlingua.tools import ToolContext

def find(place: str, *, context: ToolContext) -> Hidden:
    return place

def handle(arguments: Hidden):
    return arguments

def judge(text: Hidden, context: ToolContext):
    return f"{text} {context}"

def lost(place: str, when: Hidden | None = None):
    return place

@dataclasses.dataclass
class Data:
    price: Hidden

class Keys(typing.TypedDict):
    price: list[Hidden]

class Pair(typing.NamedTuple):
    price: Hidden

class Own(msgspec.Struct):
    price: Hidden

class Adapter:
    name = "own"
    def complete(self, request: Hidden, *, strict: bool = False) -> Hidden: ...
    def stream(self, request: Hidden, *, strict: bool = False) -> Hidden: ...
"""


@pytest.fixture(params=UNRESOLVED)
def program(request, monkeypatch):
    """A module whose annotations use the name `Hidden`, which does not exist."""
    return load(request.param + PROGRAM, monkeypatch)


def load(source, monkeypatch):
    module = types.ModuleType("module_of_a_test")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    exec(compile(source, "module_of_a_test", "exec", dont_inherit=True), module.__dict__)  # noqa: S102
    return module


def test_a_hint_that_nobody_needs_is_not_resolved(program):
    """What a tool returns and what its handler takes, a validator and an adapter may be unclear."""
    schema = {"type": "object", "properties": {"place": {"type": "string"}}}
    handler = Tool(name="t", description="", parameters=schema, execute=program.handle)

    assert tool(program.find).parameters["properties"] == schema["properties"]
    assert handler.calling.takes_mapping
    assert call_with_context(program.judge, "context", "text") == "text context"
    assert Client({"own": program.Adapter()}, strict=True)


@pytest.mark.parametrize("name", ["Data", "Keys", "Pair", "Own"])
def test_a_field_that_cannot_be_resolved_is_named(program, name):
    """A name that is imported only for the type checker is an error that says what to do."""
    with pytest.raises(ConfigurationError, match=rf"{name} .*'Hidden' is not defined\. Import"):
        schema_of(getattr(program, name))


def test_a_parameter_that_cannot_be_resolved_is_named(program):
    """As for fields."""
    with pytest.raises(ConfigurationError, match=r"lost .*'Hidden' is not defined\. Import"):
        read_function(program.lost)


@NEW_SYNTAX
@pytest.mark.parametrize("start", [STRINGS, ""])
def test_type_parameters_in_brackets_are_known(start, monkeypatch):
    """They are no names of the module, so that a string does not find them there."""
    program = load(
        f"""{start}
import dataclasses, msgspec, typing

@dataclasses.dataclass
class Data[T]:
    value: T
    more: "list[Data[T]]"

class Keys[T](typing.TypedDict):
    value: T

class Own[T](msgspec.Struct):
    value: list[T]

def first[T: int](value: T) -> T:
    return value
""",
        monkeypatch,
    )

    fields = schema_of(program.Data[int])["$defs"]["Data_int"]["properties"]
    assert fields["value"] == {"type": "integer"}
    assert fields["more"]["items"] == {"$ref": "#/$defs/Data_int"}
    assert schema_of(program.Keys[str])["properties"] == {"value": {"type": "string"}}
    own = schema_of(program.Own[bool])["properties"]
    assert own == {"value": {"type": "array", "items": {"type": "boolean"}}}
    assert read_function(program.first).schema["properties"] == {"value": {"type": "integer"}}


def test_a_typed_dict_of_typing_extensions_is_a_record():
    """Some libraries ask for that one, as pydantic before 3.12."""

    class Keys(typing_extensions.TypedDict, total=False):
        name: typing_extensions.Required[str]
        age: typing_extensions.ReadOnly[int]

    assert schema_of(Keys) == {
        "type": "object",
        "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
        "required": ["name"],
    }
