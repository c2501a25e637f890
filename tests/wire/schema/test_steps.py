"""The steps of narrowing."""

import pytest
from hypothesis import given

from interlingua.wire.schema.read import Reader
from interlingua.wire.schema.rules import GEMINI_JSON_SCHEMA, GEMINI_OPENAPI, OPENAI_STRICT
from interlingua.wire.schema.steps import (
    Draft,
    ImpossibleError,
    Log,
    add_null,
    close_object,
    free_circles,
    join_texts,
    rewrite_tuples,
    rewrite_unions,
    rewrite_values,
    say_types,
    sort_keywords,
    split_types,
)
from schemas import soup


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


@pytest.mark.parametrize(("first", "joined"), [("A.", "A. B"), ("", "B"), (None, "B"), (5, "B")])
def test_texts(first, joined):
    """What is no text does not stay before the second."""
    assert join_texts(first, "B") == joined


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
        ({"prefixItems": [{}, {}]}, GEMINI_OPENAPI, {}),
        (
            {"prefixItems": [{}, {}], "items": {"type": "null"}},
            GEMINI_OPENAPI,
            {"items": {"anyOf": [{}, {"type": "null"}]}},
        ),
    ],
)
def test_tuples(node, rules, out):
    """A tuple is said as such, or as a list of any of its items."""
    assert after(rewrite_tuples, node, rules) == out


def test_unions():
    """`oneOf` becomes `anyOf` in its place, unless the target knows it."""
    node = {"oneOf": [1], "title": "T"}

    assert list(after(rewrite_unions, node, OPENAI_STRICT)) == ["anyOf", "title"]
    assert after(rewrite_unions, node, GEMINI_JSON_SCHEMA) == node


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


@pytest.mark.parametrize(
    ("node", "out"),
    [
        ({"type": ["null"]}, {"type": "null"}),
        ({"type": ["string", "null"]}, {"type": "string", "nullable": True}),
        ({"type": ["string", "integer"], "enum": ["a"]}, {"type": "string", "enum": ["a"]}),
        ({"type": ["string", "integer"], "anyOf": [{}]}, {"anyOf": [{}]}),
        ({"anyOf": [{"type": "null"}]}, {"anyOf": [{"type": "null"}]}),
        ({"anyOf": [{}, {"type": "null"}]}, {"anyOf": [{}], "nullable": True}),
    ],
)
def test_split_types(node, out):
    """One type is left, and null is `nullable`."""
    assert after(split_types, node, Reader(node)) == out


def test_keywords():
    """Known ones stay, silent ones and extensions go, the rest are hints."""
    made = draft(
        {"type": "string", "title": "T", "x-a": 1, "minLength": 2, "$defs": {}}, "schema.a"
    )
    sort_keywords(made, OPENAI_STRICT)

    assert made.out == {"type": "string"}
    assert made.hints == {"minLength": 2}


def test_types_are_said():
    """Values imply their types, each once; a strict schema without any is refused."""
    node = {"enum": ["a", 1, "b"]}

    assert after(say_types, node, OPENAI_STRICT, Reader(node))["type"] == ["string", "integer"]
    with pytest.raises(ImpossibleError, match="does not say its type"):
        after(say_types, {}, OPENAI_STRICT, Reader({}))


def test_closing():
    """All properties are required, those that were optional as null, in their order."""
    properties = {"a": {"type": "string"}, "b": {"type": "string"}, "c": {"type": "null"}}
    node = {"type": "object", "properties": properties, "required": ["b"]}

    assert after(close_object, node, OPENAI_STRICT, "c".__eq__, properties) == {
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
    free_circles(made, Reader(node), node["properties"])

    assert made.out["required"] == ["b"]
    assert made.hints == {"required": ["a", "c"]}
