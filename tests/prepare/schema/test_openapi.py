"""Gemini's OpenAPI schemas, read as JSON Schema."""

import copy

import jsonschema_rs
import pytest
from google.genai import types
from hypothesis import given
from hypothesis import strategies as st

from interlingua.prepare.schema.narrow import narrow
from interlingua.prepare.schema.openapi import from_openapi
from interlingua.prepare.schema.read import find_unreadable
from support import corpus
from support.facts import GEMINI_JSON_SCHEMA
from support.schemas import example, grafted, schemas, soup


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


@pytest.mark.filterwarnings("ignore:Pydantic serializer")  # of numbers in their enums
@given(schemas(), st.data())
def test_what_googles_own_client_writes_is_read(schema, data):
    """JSON Schema that the vendor turned into OpenAPI still takes the same values, read back."""
    narrowed = narrow(schema, GEMINI_JSON_SCHEMA).schema
    theirs = types.Schema.from_json_schema(
        json_schema=types.JSONSchema.model_validate(narrowed)
    ).model_dump(mode="json", exclude_none=True, by_alias=True, warnings=False)
    value, _ = example(data.draw, schema, schema)

    assert jsonschema_rs.Draft202012Validator(from_openapi(theirs)).is_valid(value)


@pytest.mark.skipif(not corpus.is_here(), reason="the corpus is not here")
def test_recorded_schemas_are_read():
    """Every schema of a recorded request in the OpenAPI form is JSON Schema afterwards."""
    found = [
        schema
        for record in corpus.records("gemini_generate")
        for schema in openapi_schemas(record["request_body"] or {})
    ]

    assert len(found) > 300
    for schema in found:
        jsonschema_rs.meta.validate(from_openapi(schema))
        assert find_unreadable(from_openapi(schema), "schema") is None


def openapi_schemas(body):
    for tool in body.get("tools") or []:
        named = tool.get("functionDeclarations") or tool.get("function_declarations") or []
        yield from (function["parameters"] for function in named if function.get("parameters"))
    config = body.get("generationConfig") or body.get("generation_config") or {}
    yield from (config[key] for key in ("responseSchema", "response_schema") if config.get(key))


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ({"type": "STRING"}, {"type": "string"}),
        ({"type": "TYPE_UNSPECIFIED"}, {}),
        ({"type": "OTHER"}, {"type": "OTHER"}),
        (
            {"type": 6, "properties": {"a": {"type": 1}}},
            {"type": "object", "properties": {"a": {"type": "string"}}},
        ),
        ({"type": 99}, {"type": 99}),
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
