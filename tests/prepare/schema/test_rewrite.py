"""The steps of narrowing."""

import pytest
from hypothesis import given

from interlingua.prepare.schema.read import Reader
from interlingua.prepare.schema.rewrite import (
    Draft,
    ImpossibleError,
    Log,
    add_null,
    add_types,
    close_object,
    relax_circles,
    rewrite_tuples,
    rewrite_values,
    sort_keywords,
)
from support.facts import ANTHROPIC, GEMINI_JSON_SCHEMA, OPENAI_STRICT
from support.schemas import soup


def draft(node, path="schema"):
    return Draft(node, path, Log())


def after(step, node, *arguments):
    made = draft(node)
    step(made, *arguments)
    return made.out


@given(soup)
def test_a_draft_leaves_the_schema_alone(schema):
    """A draft that nothing is done to finishes as the very object."""
    if isinstance(schema, dict):
        assert draft(schema).finish(schema) is schema


def test_hints():
    """Keywords go to the end of the description, in their order; annotations are no loss."""
    made = draft({"type": "string", "default": "a", "minLength": 1, "description": "It."})
    made.hint("default")
    made.hint("minLength")

    assert made.finish({}) == {"type": "string", "description": "It. (default: a; minLength: 1)"}
    assert made.log.changes == [
        "schema: default moved to the description",
        "schema: minLength moved to the description",
    ]
    assert made.log.losses == ["schema: minLength moved to the description"]


def test_drafts():
    """A keyword is renamed in its place, dropped with a note, or refused with the path."""
    made = draft({"a": 1, "b": 2, "c": 3}, "schema.items")
    made.rename("b", "x", 5)
    made.drop("c")

    assert list(made.out.items()) == [("a", 1), ("x", 5)]
    assert made.log.changes == ["schema.items: c removed"]
    with pytest.raises(ImpossibleError, match=r"^schema\.items: no$"):
        made.refuse("no")


@pytest.mark.parametrize(("text", "prefix"), [("A.", "A. "), ("", ""), (None, ""), (5, "")])
def test_hints_follow_the_description(text, prefix):
    """A description that is not text is replaced by the hints."""
    made = draft({"description": text, "minLength": 1})
    made.hint("minLength")

    assert made.finish({})["description"] == f"{prefix}(minLength: 1)"


@pytest.mark.parametrize(
    ("node", "rules", "out"),
    [
        ({"items": [{}]}, OPENAI_STRICT, {"prefixItems": [{}]}),
        (
            {"items": [{}], "additionalItems": True},
            GEMINI_JSON_SCHEMA,
            {"prefixItems": [{}], "items": True},
        ),
        (
            {"prefixItems": [{}], "items": False, "maxItems": 0},
            GEMINI_JSON_SCHEMA,
            {"prefixItems": [{}], "maxItems": 0},
        ),
        ({"prefixItems": [{}, {}]}, ANTHROPIC, {}),
        (
            {"prefixItems": [{}, {}], "items": {"type": "null"}},
            ANTHROPIC,
            {"items": {"anyOf": [{}, {"type": "null"}]}},
        ),
    ],
)
def test_tuples(node, rules, out):
    """A tuple is said as such, or as a list of any of its items."""
    assert after(rewrite_tuples, node, rules) == out


@pytest.mark.parametrize(
    ("node", "out"),
    [
        ({"const": "a"}, {"enum": ["a"]}),
        ({"const": None}, {"type": "null"}),
        ({"enum": [True]}, {}),
        ({"type": "string", "enum": ["a", None]}, {"type": "string", "enum": ["a"]}),
        ({"enum": ["a", None]}, {"anyOf": [{"enum": ["a"]}, {"type": "null"}]}),
        ({"enum": ["a", None], "anyOf": [{}]}, {"anyOf": [{}]}),
        ({"const": "a", "enum": ["a"]}, {"const": "a", "enum": ["a"]}),
    ],
)
def test_values(node, out):
    """Gemini lists strings and numbers; null is a type of its own, the rest hints."""
    assert after(rewrite_values, node, GEMINI_JSON_SCHEMA) == out


def test_keywords():
    """Known ones stay, silent ones and extensions go, other words of JSON Schema are hints."""
    made = draft(
        {"type": "string", "$id": "T", "x-a": 1, "uniqueItems": True, "newer": 5}, "schema.a"
    )
    sort_keywords(made, OPENAI_STRICT)

    assert made.out == {"type": "string", "newer": 5}
    assert made.hints == {"uniqueItems": True}


@pytest.mark.parametrize(
    ("node", "is_kept"),
    [
        ({"type": "string", "format": "uuid"}, True),
        ({"type": "string", "format": "int64"}, False),
        ({"type": "integer", "format": "int64"}, True),
        ({"type": ["number", "string"], "format": "double"}, False),
        ({"format": "double"}, False),
    ],
)
def test_formats(node, is_kept):
    """Only the formats of strings are looked at; recorded strict tools had any of a number."""
    assert ("format" in after(sort_keywords, node, OPENAI_STRICT)) is is_kept


def test_types_are_said():
    """Values imply their types, each once; a strict schema without any is refused."""
    node = {"enum": ["a", 1, "b"]}

    assert after(add_types, node, OPENAI_STRICT, Reader(node))["type"] == ["string", "integer"]
    with pytest.raises(ImpossibleError, match="has no type"):
        after(add_types, {}, OPENAI_STRICT, Reader({}))


def test_closing():
    """All properties are required, those that were optional as null, in their order."""
    properties = {"a": {"type": "string"}, "b": {"type": "string"}, "c": {"type": "null"}}
    node = {"type": "object", "properties": properties, "required": ["b"]}

    assert after(close_object, node, OPENAI_STRICT, Reader(node), properties) == {
        "type": "object",
        "properties": {**properties, "a": {"type": ["string", "null"]}},
        "required": ["a", "b", "c"],
        "additionalProperties": False,
    }


@given(soup)
def test_null_is_added_to_anything(schema):
    """No schema is too odd to be made nullable, and none is changed."""
    if isinstance(schema, dict):
        before = dict(schema)
        assert add_null(schema) is not schema
        assert schema == before


def test_circles():
    """Only what leads back is no longer required."""
    node = {
        "properties": {"a": {"$ref": "#"}, "b": {}, "c": {"anyOf": [{"$ref": "#"}]}},
        "required": ["a", "b", "c"],
    }
    made = draft(node)
    relax_circles(made, Reader(node), node["properties"])

    assert made.out["required"] == ["b"]
    assert made.hints == {"required": ["a", "c"]}
