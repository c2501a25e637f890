"""The schema of an object: sent with an object at its root, read by what the caller gave."""

import copy
from dataclasses import dataclass
from typing import Annotated, Literal, Optional, TypedDict

import msgspec
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlingua.api.objects.schema import ObjectSchema, object_schema
from interlingua.api.types.schema import Validator
from interlingua.prepare.schema.restore import drop_added_nulls
from interlingua.spec.errors import ConfigurationError


@dataclass
class Person:
    name: str
    age: int
    email: str = ""


class Pet(TypedDict):
    name: str


class Point(msgspec.Struct):
    x: int
    y: int = 0


class Account(pydantic.BaseModel):
    name: str
    balance: Annotated[int, pydantic.Field(ge=0)]

    @pydantic.field_validator("name")
    @classmethod
    def is_lower(cls, value):
        if value != value.lower():
            raise ValueError("not in lower case")
        return value


TREE = {
    "type": ["object", "null"],
    "properties": {"n": {"type": "integer"}, "more": {"type": "array", "items": {"$ref": "#"}}},
    "required": ["n"],
    "additionalProperties": False,
}
ROOTS = [
    {},
    {"type": "integer"},
    {"type": "array", "items": {"$ref": "#/$defs/n"}, "$defs": {"n": {"type": "integer"}}},
    {"$ref": "#/definitions/n", "definitions": {"n": {"enum": [1, "a", None]}}},
    {"anyOf": [{"type": "integer"}, {"type": "array", "items": {"$ref": "#/anyOf/0"}}]},
    {"type": "array", "items": {"$ref": "#"}, "$id": "https://example.com/lists"},
    {"const": {"$ref": "#"}},
    {
        "type": ["object", "integer"],
        "properties": {"default": {"$ref": "#/$defs/n"}, "n": {"$ref": "#/properties/default"}},
        "$defs": {"n": {"type": "integer"}},
    },
    TREE,
]
keys = st.sampled_from(["n", "more", "default", "$ref", "value"])
values = st.recursive(
    st.sampled_from([None, 0, 1, 2.5, "a", "#"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=6,
)


@pytest.mark.parametrize("root", ROOTS)
@given(value=values)
def test_wrapping_keeps_the_meaning(root, value):
    """What is sent allows a wrapped value just where the schema allows the value."""
    schema = ObjectSchema(root)
    wrapped = Validator(schema.wire_schema)

    assert schema.is_wrapped
    assert bool(wrapped({"value": value})) == bool(Validator(root)(value))
    assert wrapped(value) or value.keys() == {"value"}


@pytest.mark.parametrize("root", ROOTS)
@given(value=values)
def test_what_is_read_was_sent(root, value):
    """A value that fits comes back as it is, though it may look like a wrapping itself."""
    schema = ObjectSchema(root)
    if Validator(root)(value):
        return

    assert schema.read({"value": value}).value == drop_added_nulls(value, root)
    assert schema.read({"value": value}).problems == ()


def test_the_schema_given_is_left_alone():
    """It is the caller's."""
    for root in ROOTS:
        before = copy.deepcopy(root)
        ObjectSchema(root).read({"value": 1})
        assert root == before


def test_objects_are_not_wrapped():
    """Neither if they say that they are one, nor if only their properties do."""
    closed = {"type": "object", "properties": {"a": {}}}

    assert ObjectSchema(closed).wire_schema == closed
    assert ObjectSchema({"properties": {"a": {}}}).wire_schema == closed
    assert not ObjectSchema(Person).is_wrapped


ADA = {"name": "ada", "age": 36}


@pytest.mark.parametrize(
    ("type_", "said", "output"),
    [
        (Person, ADA, Person("ada", 36)),
        (Pet, {"name": "Rex"}, {"name": "Rex"}),
        (Point, {"x": 1}, Point(1)),
        (Account, {"name": "ada", "balance": 3}, Account(name="ada", balance=3)),
        (list[Person], {"value": [ADA]}, [Person("ada", 36)]),
        (int, {"value": 7}, 7),
        (Person | None, {"value": None}, None),
        (Point | str, {"value": {"x": 2, "y": 3}}, Point(2, 3)),
        (dict[str, int], {"value": 5}, {"value": 5}),
        ({"type": "array"}, {"value": [1]}, [1]),
    ],
)
def test_every_kind_of_type(type_, said, output):
    """The output is of the caller's type."""
    reading = ObjectSchema(type_).read(said)

    assert reading.problems == ()
    assert reading.output == output
    assert type(reading.output) is type(output)


def test_a_model_may_forget_the_wrapping():
    """What it means is plain."""
    assert ObjectSchema(list[int]).read([1, 2]).output == [1, 2]
    assert ObjectSchema(Point | str).read({"x": 2}).output == Point(2)


def test_nulls_for_what_is_optional_are_nothing():
    """A strict target makes what is optional nullable; the caller did not."""
    reading = ObjectSchema(Person).read({"name": "ada", "age": 36, "email": None})

    assert reading.value == ADA
    assert reading.output.email == ""


def test_what_a_schema_finds():
    """Each problem has its path."""
    reading = ObjectSchema(list[Person]).read({"value": [ADA, {"name": "x", "age": "old"}]})

    assert reading.output is None
    assert len(reading.problems) == 1
    assert reading.problems[0].startswith("[1].age: ")


@dataclass
class Guest:
    person: Person | None = None


def test_what_is_wrong_inside_a_union():
    """It is said with its place, for the caller and for the model that is asked again."""
    said = {"person": {"name": "A", "age": "old"}}
    by_type = ObjectSchema(Guest).read(said).problems
    by_schema = ObjectSchema(ObjectSchema(Guest).json_schema).read(said).problems

    assert by_type == by_schema == ('person.age: "old" is not of type "integer"',)


def test_what_only_a_type_finds():
    """A validator of pydantic says no to what the schema allows."""
    reading = ObjectSchema(Account).read({"name": "Ada", "balance": 1})

    assert reading.output is None
    assert "lower case" in reading.problems[0]


@pytest.mark.parametrize(
    ("schema", "name"),
    [
        (Person, "Person"),
        (list[Person], "list"),
        ({"title": "A list, of people!"}, "A_list_of_people"),
        ({"title": "?"}, "answer"),
        ({"title": "x" * 99}, "x" * 64),
        (int | None, "answer"),
        (Optional[int], "answer"),  # noqa: UP045 -- the other way to write a union
    ],
)
def test_name(schema, name):
    """It is what every target takes for a name."""
    assert ObjectSchema(schema).name == name


def test_what_is_no_schema():
    """It is told before anything is sent."""
    deep = {}
    for _ in range(2000):
        deep = {"items": deep}
    for schema in ({"type": "nothing"}, {"$ref": "https://example.com/x"}, deep, object()):
        with pytest.raises(ConfigurationError):
            ObjectSchema(schema)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Person,
        lambda: list[Person],
        lambda: Pet,
        lambda: Literal["a", "b"],
        lambda: {"type": "object", "properties": {"a": {"enum": [1, None]}}},
    ],
    ids=["class", "list", "dict type", "literal", "schema"],
)
def test_an_equal_schema_is_compiled_once(make):
    """The same type, or a schema of equal content, is not read again."""
    assert object_schema(make()) is object_schema(make())


def test_changed_schemas_are_read_anew():
    """What the caller changes in a schema, or in what was sent, reaches no other call."""
    given = {"type": "object", "properties": {"a": {"type": "integer"}}}
    first = object_schema(given)
    first.wire_schema["properties"]["a"]["type"] = "string"
    given["properties"]["b"] = {"type": "string"}

    assert first.wire_schema == {"type": "object", "properties": {"a": {"type": "integer"}}}
    assert first.read({"a": "x"}).problems
    assert object_schema(given) is not first
    assert object_schema(given).wire_schema == given


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (int | str, str | int),
        (Literal[1, 2], Literal[2, 1]),
        ({"const": 1}, {"const": True}),
        ({"enum": [1, 2]}, {"enum": [2, 1]}),
    ],
    ids=["union", "literal", "bool", "order"],
)
def test_schemas_that_only_look_equal_are_kept_apart(one, other):
    """Equal in Python, but not to a model."""
    schemas = [object_schema(given).wire_schema for given in (one, other)]
    assert schemas == [ObjectSchema(given).wire_schema for given in (one, other)]
    assert repr(schemas[0]) != repr(schemas[1])


def test_what_cannot_be_remembered_is_read_each_time():
    """Types that cannot be hashed, and very large schemas."""
    unhashable = Annotated[int, ["a note"]]
    large = {"type": "object", "properties": {"a": {"enum": ["x" * 70_000]}}}
    for schema in (unhashable, large):
        assert object_schema(schema) is not object_schema(schema)
        assert object_schema(schema).wire_schema == ObjectSchema(schema).wire_schema
