"""Pydantic's types."""

import dataclasses
import datetime as dt
import subprocess
import sys
from typing import Annotated

import pydantic
import pytest
from pydantic import BaseModel, Field

from interlingua.api.types.reading import convert, schema_of
from interlingua.spec.errors import ConfigurationError, MismatchError


class Address(BaseModel):
    """Where someone lives."""

    street: str = Field(description="With the number.")
    since: dt.date | None = None


class Person(BaseModel, strict=True):
    name: str = Field(alias="fullName", min_length=1)
    home: Address
    born: dt.date


class Tree(BaseModel):
    children: list["Tree"] = []


@dataclasses.dataclass
class Holder:
    first: Address
    second: Address
    tree: Tree


def test_a_model_has_its_own_schema():
    """It is the result of `model_json_schema`."""
    assert schema_of(Address) == Address.model_json_schema()
    assert schema_of(Person) == Person.model_json_schema()


def test_models_inside_other_types():
    """Their definitions move to the root, and references still resolve."""
    schema = schema_of(Holder)

    assert schema["properties"]["first"]["properties"]["street"]["description"]
    assert schema["properties"]["tree"] == {"$ref": "#/$defs/Tree"}
    assert schema["$defs"]["Tree"]["properties"]["children"]["items"] == {"$ref": "#/$defs/Tree"}
    held = convert(
        {"first": {"street": "a"}, "second": {"street": "b"}, "tree": {"children": [{}]}}, Holder
    )
    assert held == Holder(Address(street="a"), Address(street="b"), Tree(children=[Tree()]))


def test_strict_models_read_dates_from_json():
    """They accept a string for a date only in JSON."""
    value = {"fullName": "A", "home": {"street": "s"}, "born": "2001-02-03"}

    assert convert(value, Person).born == dt.date(2001, 2, 3)


def test_problems_have_paths():
    """Each problem has the path to its field."""
    with pytest.raises(MismatchError) as caught:
        convert([{"fullName": "", "home": {"street": 1}, "born": "2001-02-03"}], list[Person])

    assert [problem.path for problem in caught.value.problems] == [
        "[0].fullName",
        "[0].home.street",
    ]


def test_fields_in_annotated():
    """The description is used; pydantic checks the limits."""
    described = Annotated[list[int], Field(description="Some.")]
    limited = Annotated[int, Field(gt=0, description="Few."), "words"]

    assert schema_of(described) == {
        "type": "array",
        "items": {"type": "integer"},
        "description": "Some.",
    }
    assert schema_of(limited)["exclusiveMinimum"] == 0
    with pytest.raises(MismatchError, match="greater than 0"):
        convert(0, limited)


def test_positive_int():
    """Pydantic's own types are supported."""
    assert schema_of(pydantic.PositiveInt) == {"type": "integer", "exclusiveMinimum": 0}


def test_a_model_without_a_schema_is_a_configuration_error():
    """One of its fields has no JSON Schema."""

    class Odd(BaseModel, arbitrary_types_allowed=True):
        thing: subprocess.Popen

    with pytest.raises(ConfigurationError, match="pydantic cannot make a JSON Schema of"):
        schema_of(Odd)


def test_pydantic_is_not_imported():
    """Reading types that are not pydantic's does not load it."""
    code = (
        "import sys, dataclasses, typing\n"
        "from interlingua.api.types.reading import convert, schema_of\n"
        "A = dataclasses.make_dataclass('A', [('x', typing.Annotated[int, 'words'])])\n"
        "schema_of(A), convert({'x': 1}, A)\n"
        "print('pydantic' in sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert ran.stdout.strip() == "False"
