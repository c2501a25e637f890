"""Schemas that plainly need no narrowing."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interlingua.prepare.schema.narrow import Narrower, is_settled
from support.facts import ANTHROPIC, GEMINI_JSON_SCHEMA, OPENAI_STRICT
from support.run_profile import examples
from support.schemas import count_calls, grafted, schemas, small_schemas, soup

ALL = [OPENAI_STRICT, ANTHROPIC, GEMINI_JSON_SCHEMA]
STRING = {"type": "string"}
PLAIN = {
    "type": "object",
    "properties": {
        "a": {"type": "string", "enum": ["x"], "description": "A."},
        "b": {"type": "array", "items": {"type": "number", "minimum": 1}},
        "c": {"type": "object", "properties": {}, "required": [], "additionalProperties": False},
    },
    "required": ["a", "b", "c"],
    "additionalProperties": False,
}


_words = st.fixed_dictionaries(
    {},
    optional={
        "description": st.just("D"),
        "default": st.none(),
        "minimum": st.just(1),
        "enum": st.sampled_from([["x"], ["x", None], []]),
        "uniqueItems": st.booleans(),
        "propertyOrdering": st.just(["a"]),
    },
)
_values = st.builds(
    lambda kind, words: {"type": kind, **words},
    st.sampled_from(["string", "number", "boolean", "null", ["string"]]),
    _words,
)


def objects(inner):
    return st.builds(
        lambda properties, required, beside: {
            "type": "object",
            "properties": properties,
            **({"required": list(properties)} if required is None else {"required": required}),
            **beside,
        },
        st.dictionaries(st.sampled_from(["a", "b"]), inner, max_size=2),
        st.none() | st.lists(st.sampled_from(["a", "b", "c"]), max_size=3),
        st.sampled_from([{"additionalProperties": others} for others in (False, True, {})] + [{}]),
    )


plain = objects(
    st.recursive(
        _values,
        lambda inner: (
            objects(inner)
            | st.builds(
                lambda items, words: {"type": "array", "items": items, **words}, inner, _words
            )
        ),
        max_leaves=4,
    )
)
"""Schemas of which many are settled, and the others nearly are."""


@given(soup | grafted() | schemas() | small_schemas())
def test_the_look_is_total(schema):
    """Any JSON can be looked at; whatever is found settled is."""
    check(schema)


@settings(max_examples=examples(300))
@given(plain)
def test_what_is_settled_is_not_changed(schema):
    """The long way would have returned the same object, with nothing to say about it."""
    check(schema)


def check(schema):
    for rules in ALL:
        if is_settled(schema, rules):
            walker = Narrower(schema, rules)

            assert walker.narrow_root() is schema
            assert walker.log.changes == []


@pytest.mark.parametrize("rules", ALL[1:], ids=lambda rules: rules.name)
def test_plain_schemas_are_settled(rules):
    """Objects, lists, plain values and their words need no walk; bounds only where accepted."""
    unbounded = {**PLAIN, "properties": {**PLAIN["properties"], "b": {"type": "boolean"}}}

    assert is_settled(PLAIN, OPENAI_STRICT)
    assert is_settled(unbounded, rules)
    assert is_settled(PLAIN, rules) is (rules is GEMINI_JSON_SCHEMA)


@pytest.mark.parametrize(
    "part",
    [
        {},
        True,
        {"type": "null"},
        {"type": ["string"]},
        {"type": "array"},
        {"type": "string", "format": "uri"},
        {"type": "string", "pattern": "(?=a)"},
        {"type": "string", "items": STRING},
        {"type": "string", "properties": {}},
        {"type": "integer", "enum": [1]},
        {"type": "string", "enum": ["x", None]},
        {"type": "object"},
        {"type": "object", "properties": {}, "additionalProperties": STRING},
        {"type": "object", "properties": {}, "required": ["x"]},
        {"type": "object", "properties": {}, "required": [[]]},
        {"type": "object", "properties": [], "required": []},
        {"$ref": "#"},
        {"anyOf": [STRING]},
        {"type": "string", "newer": 1},
    ],
)
def test_all_else_is_walked(part):
    """Whatever needs a second look is not settled, for any target."""
    whole = {**PLAIN, "properties": {"p": part}, "required": ["p"]}

    assert not any(is_settled(whole, rules) for rules in ALL)


@pytest.mark.parametrize("schema", [STRING, {"type": "array", "items": PLAIN}, None, []])
def test_only_objects_are_settled(schema):
    """Whether another root will do depends on what it is for."""
    assert not is_settled(schema, GEMINI_JSON_SCHEMA)


def test_the_look_is_short():
    """Parts that are shared many times over are left to the walk, which sees each once."""
    node = STRING
    for _ in range(40):
        node = {"type": "object", "properties": {"a": node, "b": node}}

    assert not is_settled(node, GEMINI_JSON_SCHEMA)
    assert count_calls(is_settled, node, GEMINI_JSON_SCHEMA) < 100_000
