"""Arguments without the nulls that a strict schema added."""

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlingua.conformance.strategies import json_values
from interlingua.prepare.schema.read import Reader
from interlingua.prepare.schema.restore import AddedNulls, _Cleaner, drop_added_nulls
from support.schemas import UNIVERSE, count_calls, small_schemas, soup

STRING = {"type": "string"}
MAYBE = {"type": ["string", "null"]}


def thing(required=(), **properties):
    return {"type": "object", "properties": properties, "required": list(required)}


@given(json_values | soup, soup)
def test_dropping_is_total_and_pure(arguments, schema):
    """Any JSON goes with any JSON; nothing is changed, and nothing is left to drop."""
    before = copy.deepcopy(arguments)

    once = drop_added_nulls(arguments, schema)

    assert arguments == before
    assert drop_added_nulls(once, schema) == once


@given(small_schemas())
def test_only_nulls_of_properties_go(schema):
    """What is dropped is a null; everything else stays, in its order."""
    for value in UNIVERSE:
        kept = drop_added_nulls(value, schema)
        assert all(kept[name] == value[name] or isinstance(value[name], dict) for name in kept)
        assert all(value[name] is None for name in value.keys() - kept.keys())
        if kept == value:
            assert kept is value


@given(soup | small_schemas(), json_values | st.sampled_from(UNIVERSE))
def test_the_direct_way_is_the_careful_one(schema, value):
    """Reading only what may hold a null gives what comparing every part with its schema gives."""
    careful = _Cleaner(Reader(schema), 0).clean(value, schema)[1]

    assert AddedNulls(schema).drop(value) == careful


def test_one_reader_serves_many_values():
    """What was learned from one value is not mixed up with another."""
    schema = {"$defs": {"t": thing(b=STRING, c={"$ref": "#/$defs/t"})}, "$ref": "#/$defs/t"}
    nulls = AddedNulls(schema)
    for value, left in [
        ({"b": None}, {}),
        ({"c": {"b": None, "c": None}}, {"c": {}}),
        ([{"b": None}], [{"b": None}]),
        ({"b": "x"}, {"b": "x"}),
    ]:
        assert nulls.drop(value) == left == drop_added_nulls(value, schema)


def test_schemas_that_add_no_null_are_not_read():
    """Where every property is required or may be null, a value is not looked at at all."""
    item = thing(["a", "b"], a=STRING, b=thing(c=MAYBE))
    small, large = ({"rows": [{"a": "x", "b": {"c": None}}] * count} for count in (1, 10_000))
    schema = thing(["rows"], rows={"type": "array", "items": item})

    assert drop_added_nulls(large, schema) is large
    calls = count_calls(drop_added_nulls, small, schema)
    assert count_calls(drop_added_nulls, large, schema) == calls


def test_long_chains_of_references():
    """A thousand schemas that lead to one another are followed as far as the value goes."""
    definitions = {f"t{n}": thing(a={"$ref": f"#/$defs/t{n + 1}"}) for n in range(1000)}
    definitions["t1000"] = thing(a=STRING)
    schema = {"$defs": definitions, "$ref": "#/$defs/t0"}

    value = {"a": {"a": {"a": None}}}
    assert drop_added_nulls(value, schema) == {"a": {"a": {}}}


@pytest.mark.parametrize(
    ("schema", "given", "left"),
    [
        (thing(a=STRING), {"a": None}, {}),
        (thing(["a"], a=STRING), {"a": None}, {"a": None}),
        (thing(a=MAYBE), {"a": None}, {"a": None}),
        (thing(a={}), {"a": None}, {"a": None}),
        (thing(a={"enum": ["x"]}), {"a": None}, {}),
        (thing(a={"enum": ["x", None]}), {"a": None}, {"a": None}),
        (thing(a={"properties": {}}), {"a": None}, {}),
        (thing(a=STRING), {"b": None}, {"b": None}),
        (thing(a=thing(b=STRING)), {"a": {"b": None}}, {"a": {}}),
        (
            thing(a={"type": "array", "items": thing(b=STRING)}),
            {"a": [{"b": None}, {"b": "x"}]},
            {"a": [{}, {"b": "x"}]},
        ),
        (
            thing(a={"prefixItems": [STRING, thing(b=STRING)]}),
            {"a": ["x", {"b": None}]},
            {"a": ["x", {}]},
        ),
        (thing(a={"items": [thing(b=STRING)]}), {"a": [{"b": None}]}, {"a": [{}]}),
        (thing(a={"allOf": [thing(b=STRING)]}), {"a": {"b": None}}, {"a": {}}),
        (thing(a={"anyOf": [thing(b=STRING), {"type": "null"}]}), {"a": {"b": None}}, {"a": {}}),
        (thing(a={"anyOf": [thing(b=STRING), {"type": "null"}]}), {"a": None}, {"a": None}),
        (
            {**thing(a={"$ref": "#"}, b=STRING)},
            {"a": {"a": {"a": None, "b": None}, "b": None}, "b": "x"},
            {"a": {"a": {}}, "b": "x"},
        ),
    ],
)
def test_dropping(schema, given, left):
    """A null goes if its property is optional and may not be null."""
    assert drop_added_nulls(given, schema) == left


@pytest.mark.parametrize(
    ("value", "left"),
    [
        ({"kind": "one", "note": None}, {"kind": "one"}),
        ({"kind": "two", "note": None}, {"kind": "two", "note": None}),
        ({"kind": "three", "note": None}, {"kind": "three", "note": None}),
        ({"size": 5, "note": None}, {"size": 5}),
        ({"size": 15, "note": None}, {"size": 15, "note": None}),
    ],
)
@pytest.mark.parametrize("keyword", ["anyOf", "oneOf"])
def test_the_branch_that_fits_decides(keyword, value, left):
    """Constants and bounds tell branches apart; a value that fits none is left."""
    schema = {
        keyword: [
            thing(["kind"], kind={"const": "one"}, note=STRING),
            thing(["kind"], kind={"const": "two"}, note=MAYBE),
            thing(["size"], size={"type": "integer", "maximum": 9}, note=STRING),
            thing(["size"], size={"type": "integer", "minimum": 10}, note=MAYBE),
        ]
    }

    assert drop_added_nulls(value, schema) == left


def test_the_branch_with_all_the_properties_is_preferred():
    """A strict answer has all properties of its branch, so that branch is meant."""
    schema = {"anyOf": [thing(a=STRING, b=STRING), thing(a=MAYBE)]}

    assert drop_added_nulls({"a": None}, schema) == {"a": None}
    assert drop_added_nulls({"a": None, "b": None}, schema) == {}


def test_the_only_branch_of_its_type_is_followed_even_if_it_does_not_fit():
    """A model that breaks one rule still gets its nulls dropped."""
    schema = {"anyOf": [thing(a=STRING, n={"type": "integer"}), {"type": "null"}]}

    assert drop_added_nulls({"a": None, "n": "five"}, schema) == {"n": "five"}


def test_what_is_too_deep_is_left():
    """Ten thousand levels are returned as they came; ninety are read."""
    tree = thing(a={"$ref": "#"}, b=STRING)
    deep = {"b": None}
    for _ in range(90):
        deep = {"a": deep, "b": None}
    cleaned = drop_added_nulls(deep, tree)
    for _ in range(90):
        cleaned = cleaned["a"]
    assert cleaned == {}

    for _ in range(10_000):
        deep = {"a": deep}
    assert drop_added_nulls(deep, tree) is deep


def test_unions_of_unions_are_read_once():
    """Values that fit many branches at each level cost no more than the pairs there are."""
    branch = thing(a={"$ref": "#/$defs/any"}, b=STRING)
    schema = {"$ref": "#/$defs/any", "$defs": {"any": {"anyOf": [branch, dict(branch)] * 5}}}

    def nested(levels):
        value = {"b": None}
        for _ in range(levels):
            value = {"a": value, "b": None, "c": 1}
        return value

    once = count_calls(drop_added_nulls, nested(20), schema)
    assert count_calls(drop_added_nulls, nested(40), schema) < 2.2 * once
