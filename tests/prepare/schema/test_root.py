"""The root of a tool's schema."""

import copy

import jsonschema_rs
import pytest
from hypothesis import given

from interlingua.prepare.schema.narrow import object_root
from support.schemas import UNIVERSE, grafted, schemas, small_schemas, soup

STRING = {"type": "string"}
A = {"type": "object", "properties": {"a": STRING}, "required": ["a"]}
B = {"type": "object", "properties": {"b": STRING}, "required": ["b"]}


@given(soup | grafted())
def test_any_root_is_total_pure_and_idempotent(schema):
    """Any JSON has a root; it is not changed, and the second time is the last."""
    before = copy.deepcopy(schema)

    once = object_root(schema)

    assert schema == before
    assert object_root(once.schema).schema is once.schema
    assert (once.schema is schema) is (once.changes == ())
    assert set(once.losses) <= set(once.changes)


@given(schemas(hinted=True))
def test_an_object_is_left_alone(schema):
    """What is an object in so many words is returned as the very object."""
    assert object_root(schema).schema is schema


@given(small_schemas())
def test_without_loss_the_same_objects_are_valid(schema):
    """A root that is rewritten without a loss accepts the same arguments."""
    whole = {"allOf": [schema], "$defs": schema["$defs"]}
    made = object_root(whole)
    try:
        before, after = map(jsonschema_rs.Draft202012Validator, (whole, made.schema))
    except jsonschema_rs.ValidationError:
        return
    if not made.losses:
        assert all(before.is_valid(value) is after.is_valid(value) for value in UNIVERSE)


@pytest.mark.parametrize(
    ("schema", "made"),
    [
        ({}, {"type": "object"}),
        ({"properties": {}}, {"type": "object", "properties": {}}),
        ({"type": ["object", "null"], "properties": {}}, {"type": "object", "properties": {}}),
        ({"$ref": "#/$defs/a", "$defs": {"a": A}}, {**A, "$defs": {"a": A}}),
        (
            {"allOf": [A, B]},
            {**A, "properties": {"a": STRING, "b": STRING}, "required": ["a", "b"]},
        ),
    ],
)
def test_roots_rewritten_without_loss(schema, made):
    """To say that arguments are an object takes nothing away."""
    assert object_root(schema).schema == made
    assert object_root(schema).losses == ()


@pytest.mark.parametrize(
    "schema",
    [
        STRING,
        {"type": "array", "items": A},
        {"$ref": "#/$defs/none"},
        {"$ref": "#"},
        {"allOf": [STRING, A]},
        {"anyOf": []},
        {"properties": {"a": 5}},
        True,
        None,
    ],
)
def test_roots_left_for_the_target_to_refuse(schema):
    """What cannot be an object, or cannot be read, is sent as it is."""
    assert object_root(schema).schema is schema


def test_a_union_as_root():
    """The properties of all branches are described, what all require is required."""
    made = object_root(
        {
            "anyOf": [
                {"type": "object", "properties": {"k": {"const": "a"}, "n": STRING}},
                {"$ref": "#/$defs/b"},
                {"type": "null"},
            ],
            "description": "Either.",
            "$defs": {"b": {"type": "object", "properties": {"k": {"const": "b"}, "n": STRING}}},
        }
    )

    assert made.schema["type"] == "object"
    assert made.schema["properties"] == {
        "k": {"anyOf": [{"const": "a"}, {"const": "b"}]},
        "n": STRING,
    }
    assert "required" not in made.schema
    assert made.schema["description"].startswith('Either. (anyOf: [{"type":"object",')
    assert made.losses == ("schema: anyOf moved to the description",)


@pytest.mark.parametrize(
    ("schema", "made"),
    [
        (
            {**A, "anyOf": [{"required": ["c", "b"]}, {"required": ["b"]}]},
            {**A, "required": ["a", "b"]},
        ),
        (
            {"oneOf": [{**A, "additionalProperties": False}, {**A, "additionalProperties": False}]},
            {**A, "additionalProperties": False},
        ),
        (
            {**A, "additionalProperties": False, "anyOf": [B]},
            {**A, "additionalProperties": False, "required": ["a", "b"]},
        ),
        ({**A, "anyOf": [True, B]}, A),
        ({**A, "anyOf": [STRING]}, A),
    ],
)
def test_unions_beside_an_object(schema, made):
    """Only what holds for every branch is said of the whole; a closed object stays closed."""
    assert {key: value for key, value in object_root(schema).schema.items() if key in made} == made
    assert {*object_root(schema).schema} - {*made} == {"description"}
