"""`oneOf`, said as `anyOf`."""

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlingua.prepare.schema.read import Reader
from interlingua.prepare.schema.rewrite import (
    Draft,
    ImpossibleError,
    Log,
    exclude_each_other,
    rewrite_unions,
)
from support.facts import ANTHROPIC, GEMINI_JSON_SCHEMA, OPENAI_STRICT
from support.schemas import UNIVERSE

STRING = {"type": "string"}


def kind(value, *required):
    return {"type": "object", "properties": {"a": {"const": value}}, "required": list(required)}


BRANCHES = [
    STRING,
    {"type": "integer"},
    {"type": "number"},
    {"type": ["null", "string"]},
    {"type": "null"},
    {"const": "x"},
    {"const": 1},
    {"enum": ["a", 1.0]},
    {"enum": [[]]},
    {"type": "object"},
    {"type": ["object", "null"]},
    kind("x", "a"),
    kind("a", "a"),
    kind("a"),
    {"allOf": [kind("x", "a"), {"title": "T"}]},
    {"$ref": "#/$defs/x"},
    {"properties": {"a": {"const": "a"}}, "required": ["a"]},
    {},
    True,
    False,
]
ROOT = {"$defs": {"x": kind("x", "a")}}
VALUES = [*UNIVERSE, "x", "a", 1, 1.5, None, [], True]


@given(st.lists(st.sampled_from(BRANCHES), min_size=1, max_size=4))
def test_no_value_fits_two_that_exclude_each_other(branches):
    """What is found to exclude each other does, by a validator."""
    if exclude_each_other(branches, Reader(ROOT)):
        one, some = (
            jsonschema_rs.Draft202012Validator({**ROOT, key: branches})
            for key in ("oneOf", "anyOf")
        )
        assert all(one.is_valid(value) is some.is_valid(value) for value in VALUES)


@pytest.mark.parametrize(
    ("branches", "exclusive"),
    [
        ([STRING], True),
        ([STRING, {"type": "null"}], True),
        ([STRING, STRING], False),
        ([{"type": "integer"}, {"type": "number"}], False),
        ([{"const": 1}, {"const": 1.0}], False),
        ([{"const": 1}, {"const": True}], True),
        ([{"const": "x"}, STRING], False),
        ([{"const": "x"}, {"type": "integer"}], True),
        ([kind("x", "a"), kind("a", "a")], True),
        ([kind("x", "a"), kind("a", "a"), {"type": "null"}], True),
        ([kind("x", "a"), kind("a")], False),
        ([{"$ref": "#/$defs/x"}, kind("a", "a")], True),
        ([STRING, True], False),
        ([STRING, {"properties": {}}], False),
    ],
)
def test_excluding(branches, exclusive):
    """Types, constants, or a required property with another constant in each tell them apart."""
    assert exclude_each_other(branches, Reader(ROOT)) is exclusive


def rewritten(node, rules):
    draft = Draft(node, "schema", Log())
    rewrite_unions(draft, rules, Reader(node))
    return draft


def test_unions():
    """`oneOf` becomes `anyOf` in its place, unless the target knows it or there is one already."""
    node = {"oneOf": [STRING, {"type": "null"}], "title": "T"}

    assert list(rewritten(node, OPENAI_STRICT).out) == ["anyOf", "title"]
    assert rewritten(node, OPENAI_STRICT).log.losses == []
    assert rewritten({"oneOf": [STRING, STRING]}, ANTHROPIC).log.losses == [
        "schema: oneOf became anyOf"
    ]
    assert rewritten(node, GEMINI_JSON_SCHEMA).out == node
    with pytest.raises(ImpossibleError, match="one union"):
        rewritten({**node, "anyOf": [{}]}, OPENAI_STRICT)
