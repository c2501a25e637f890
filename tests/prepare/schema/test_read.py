"""Reading JSON Schema."""

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlingua.conformance.strategies import json_values
from interlingua.prepare.schema.read import (
    MAX_DEPTH,
    MISSING,
    Reader,
    is_deep,
    is_names,
    merge,
    pointer,
    type_of,
    types_of,
)
from support.schemas import UNIVERSE, grafted, inner_schemas, small_schemas, soup


@given(soup)
def test_readers_are_total(schema):
    """Every question about any JSON has an answer."""
    reader = Reader(schema)
    for _, node in inner_schemas(schema):
        reader.allows_null(node)
        reader.plain(node)
        reader.in_circle(node)
        if isinstance(node, dict):
            reader.flatten(node)
            types_of(node)


@given(small_schemas())
def test_null_is_allowed_as_a_validator_says(schema):
    """Whether null is valid is what a validator finds, but for properties without a type."""
    inner = schema["properties"]["a"]
    if "properties" not in str(inner) and "#" not in str(inner):
        valid = jsonschema_rs.Draft202012Validator(inner).is_valid(None)
        assert Reader(schema).allows_null(inner) is valid


@given(small_schemas())
def test_flattened_schemas_mean_the_same(schema):
    """A merged intersection accepts the same values."""
    reader = Reader(schema)
    properties = {name: reader.flatten(node) for name, node in dicts(schema["properties"])}
    same = {**schema, "properties": {**schema["properties"], **properties}}
    if None in properties.values():
        return
    try:
        before, after = map(jsonschema_rs.Draft202012Validator, (schema, same))
    except jsonschema_rs.ValidationError:
        return
    for value in UNIVERSE:
        assert before.is_valid(value) is after.is_valid(value)


def dicts(nodes):
    return [(name, node) for name, node in nodes.items() if isinstance(node, dict)]


@given(grafted())
def test_what_is_in_a_circle_leads_back(schema):
    """The definition that refers to itself is found, and only from inside."""
    reader = Reader(schema)
    node = schema["$defs"]["node"]["properties"].get("next")

    if node == {"$ref": "#/$defs/node"} and schema["$defs"]["node"].get("type") == "object":
        assert reader.in_circle(node)
    assert not reader.in_circle({"$ref": "#/$defs/node"})


@given(json_values)
def test_depth(value):
    """A value in a list is one level deeper."""
    levels = 0
    while not is_deep(value):
        value = [value]
        levels += 1

    assert MAX_DEPTH - 10 < levels <= MAX_DEPTH + 1


@pytest.mark.parametrize(
    ("reference", "names"),
    [
        ("#", []),
        ("", []),
        ("#/$defs/a", ["$defs", "a"]),
        ("#/a~1b/c~0d/e%20f", ["a/b", "c~d", "e f"]),
        ("#anchor", None),
        ("https://example.com#/a", None),
    ],
)
def test_pointers(reference, names):
    """Only pointers into the same document are followed."""
    assert pointer(reference) == names


def test_resolving():
    """Names of objects and numbers of lists lead on; anything else is missing."""
    reader = Reader({"a": [{"b": 1}], "c": None})

    assert reader.resolve("#/a/0/b") == 1
    assert reader.resolve("#/c") is None
    for reference in ("#/a/1", "#/a/x", "#/a/" + "9" * 5000, "#/a/²", "#/c/d", "x", None, 1):
        assert reader.resolve(reference) is MISSING


@pytest.mark.parametrize(
    ("schema", "types"),
    [
        ({}, ()),
        ({"type": "string"}, ("string",)),
        ({"type": ["string", "null"]}, ("string", "null")),
        ({"properties": {}}, ("object",)),
        ({"properties": {}, "enum": [1]}, ()),
        ({"type": []}, None),
        ({"type": "STRING"}, None),
        ({"type": [["string"]]}, None),
    ],
)
def test_types(schema, types):
    """The types a schema names or implies; None if there is no telling."""
    assert types_of(schema) == types


@given(st.sampled_from([(None, "null"), (True, "boolean"), (1, "integer"), (1.5, "number")]))
def test_types_of_values(pair):
    """A boolean is no number."""
    assert type_of(pair[0]) == pair[1]
    assert [type_of(value) for value in ("", [], {})] == ["string", "array", "object"]


@pytest.mark.parametrize(
    ("parts", "merged"),
    [
        ([{"type": "string"}, {"minLength": 1}], {"type": "string", "minLength": 1}),
        ([{"type": "string"}, {"type": "string"}], {"type": "string"}),
        ([{"type": "string"}, {"type": "integer"}], None),
        ([{"title": "A"}, {"title": "B"}], {"title": "A"}),
        ([{"required": ["a"]}, {"required": ["b", "a"]}], {"required": ["a", "b"]}),
        (
            [{"properties": {"a": {}}}, {"properties": {"b": {}}}],
            {"properties": {"a": {}, "b": {}}},
        ),
        ([{"properties": {"a": {}}}, {"properties": {"a": {"type": "null"}}}], None),
        ([{"properties": {"a": {}}}, {"additionalProperties": False}], None),
        ([{"items": {}}, {"prefixItems": [{}]}], None),
        ([{"if": {}}, {"then": {}}], None),
        ([], {}),
    ],
)
def test_merging(parts, merged):
    """Parts are one schema where their keywords do not touch or say the same."""
    assert merge(parts) == merged


def test_names():
    """A list of strings, and nothing else."""
    assert is_names([])
    assert is_names(["a"])
    assert not any(is_names(value) for value in (None, "a", ["a", 1], {"a": 1}))
