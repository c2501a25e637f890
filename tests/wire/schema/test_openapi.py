"""Gemini's OpenAPI schemas, read as JSON Schema."""

import copy

import pytest
from hypothesis import given

from interlingua.wire.schema.narrow import GEMINI_OPENAPI, narrow
from interlingua.wire.schema.openapi import from_openapi
from schemas import grafted, schemas, soup


@given(soup | grafted())
def test_reading_is_total_pure_and_idempotent(schema):
    """Any JSON is read; what is read once is JSON Schema."""
    before = copy.deepcopy(schema)

    once = from_openapi(schema)

    assert schema == before
    assert from_openapi(once) is once


@given(schemas(hinted=True))
def test_json_schema_is_left_alone(schema):
    """A schema in the standard words is returned as the very object."""
    assert from_openapi(schema) is schema


@given(schemas(hinted=True))
def test_what_is_narrowed_can_be_read_and_narrowed_again(schema):
    """Their flavour to ours and back is theirs, up to what both can say."""
    theirs = narrow(schema, GEMINI_OPENAPI).schema
    again = narrow(from_openapi(theirs), GEMINI_OPENAPI).schema

    assert narrow(from_openapi(again), GEMINI_OPENAPI).schema == again


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ({"type": "STRING"}, {"type": "string"}),
        ({"type": "TYPE_UNSPECIFIED"}, {}),
        ({"type": "OTHER"}, {"type": "OTHER"}),
        ({"type": "STRING", "nullable": True}, {"type": ["string", "null"]}),
        ({"type": "STRING", "nullable": False}, {"type": "string"}),
        ({"nullable": True}, {}),
        ({"type": "NULL", "nullable": True}, {"type": "null"}),
        (
            {"type": "STRING", "enum": ["a"], "nullable": True},
            {"type": ["string", "null"], "enum": ["a", None]},
        ),
        ({"type": "INTEGER", "enum": ["1", "2"]}, {"type": "integer", "enum": [1, 2]}),
        (
            {"anyOf": [{"type": "STRING"}], "nullable": True},
            {"anyOf": [{"type": "string"}, {"type": "null"}]},
        ),
        ({"any_of": [{"type": "STRING"}]}, {"anyOf": [{"type": "string"}]}),
        (
            {"type": "ARRAY", "items": {"type": "STRING"}, "minItems": "1"},
            {"type": "array", "items": {"type": "string"}, "minItems": 1},
        ),
        ({"example": "a"}, {"examples": ["a"]}),
        (
            {"ref": "#/defs/a", "defs": {"a": {"type": "STRING"}}},
            {"$ref": "#/$defs/a", "$defs": {"a": {"type": "string"}}},
        ),
        (
            {"ref": "#/defs/a", "nullable": True},
            {"anyOf": [{"$ref": "#/$defs/a"}, {"type": "null"}]},
        ),
        (
            {"properties": {"type": {"type": "STRING"}, "nullable": {"type": "BOOLEAN"}}},
            {"properties": {"type": {"type": "string"}, "nullable": {"type": "boolean"}}},
        ),
        ({"propertyOrdering": ["a"]}, {"propertyOrdering": ["a"]}),
        ({"default": {"type": "STRING"}}, {"default": {"type": "STRING"}}),
        ("STRING", "STRING"),
    ],
)
def test_reading(theirs, ours):
    """Each word of theirs in ours; values and names are not words."""
    assert from_openapi(theirs) == ours
