"""Values against schemas."""

import jsonschema_rs
import pytest
from hypothesis import given

from interlingua.api.types.schema import Validator, replace_surrogates
from interlingua.conformance.strategies import json_values
from interlingua.spec.errors import ConfigurationError

SCHEMA = {
    "type": "object",
    "properties": {"people": {"type": "array", "items": {"required": ["name"]}}},
    "additionalProperties": False,
}


def test_all_problems_have_paths():
    """Each as `path: message`."""
    problems = Validator(SCHEMA)({"people": [{"name": 1}, {}], "x": 1})

    assert problems == [
        'people[1]: "name" is a required property',
        "Additional properties are not allowed ('x' was unexpected)",
    ]


@given(json_values)
def test_any_value_can_be_validated(value):
    """The result is always a list of problems."""
    assert isinstance(Validator(SCHEMA)(value), list)
    assert Validator({})(value) == []


def test_lone_surrogates_can_be_validated():
    """UTF-8 cannot encode them, but models send them."""
    validate = Validator({"properties": {"a": {"maxLength": 3}, "c": {"items": {"maxLength": 1}}}})

    assert validate({"a": "x\ud800", "b": ["\udfff"]}) == []
    assert len(validate({"a": "xxx\ud800"})) == 1
    assert len(validate({"c": ("xxx\ud800",)})) == 1


def test_deep_nesting_is_a_problem():
    """It does not crash."""
    value = {}
    for _ in range(5000):
        value = {"people": value}

    assert "cannot be validated" in Validator(SCHEMA)(value)[0]


CAT = {
    "type": "object",
    "properties": {"kind": {"const": "cat"}, "lives": {"type": "integer"}},
    "required": ["kind", "lives"],
}
DOG = {
    "type": "object",
    "properties": {
        "kind": {"enum": ["dog"]},
        "owner": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/person"}]},
        "size": {"enum": ["big", "small"]},
    },
    "required": ["kind"],
}
PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer", "minimum": 0}},
    "required": ["name"],
}


@pytest.mark.parametrize("word", ["anyOf", "oneOf"])
@pytest.mark.parametrize(
    ("value", "problems"),
    [
        ({"kind": "cat", "lives": "9"}, ['pet.lives: "9" is not of type "integer"']),
        ({"kind": "cat"}, ['pet: "lives" is a required property']),
        (
            {"kind": "dog", "size": "huge", "owner": {"age": -1}},
            [
                "pet.owner.age: -1 is less than the minimum of 0",
                'pet.owner: "name" is a required property',
                'pet.size: "huge" is not one of "big" or "small"',
            ],
        ),
        ({"kind": "dog", "owner": 3}, ['pet.owner: 3 is not of types "null", "object"']),
        ({"kind": "cow", "lives": 9}, ['pet.kind: "cow" is not one of "cat", "dog"']),
        ({"lives": 9}, ['pet: "kind" is a required property']),
        ("cat", ['pet: "cat" is not of types "null", "object"']),
    ],
    ids=["tag", "missing", "inner", "inner type", "no such tag", "no tag", "no such type"],
)
def test_problems_inside_unions(word, value, problems):
    """The problems are those of the intended member, with their paths."""
    schema = {
        "properties": {"pet": {word: [{"type": "null"}, CAT, DOG]}},
        "$defs": {"person": PERSON},
    }

    assert sorted(Validator(schema)({"pet": value})) == sorted(problems)


def test_a_one_of_with_several_matches():
    """The only problem is that more than one member matches."""
    (problem,) = Validator({"oneOf": [{"type": "object"}, CAT]})({"kind": "cat", "lives": 9})

    assert "more than one" in problem


@given(json_values)
def test_any_value_can_be_validated_by_a_union(value):
    """There are problems if and only if no member matches."""
    members = [PERSON, CAT, DOG, {"type": "array", "items": {"$ref": "#"}}]
    defs = {"$defs": {"person": PERSON}}
    fits = jsonschema_rs.is_valid({"anyOf": members, **defs}, value)

    assert bool(Validator({"anyOf": members, **defs})(value)) != fits


def test_long_values_are_shortened():
    """A message to the model keeps only the two ends."""
    (problem,) = Validator({"type": "integer"})("x" * 10_000)

    assert len(problem) < 400
    assert problem.endswith('is not of type "integer"')


@pytest.mark.parametrize(
    "schema",
    [{"type": "odd"}, {"pattern": "("}, {"$ref": "#/$defs/none"}, {"const": object()}],
    ids=["type", "pattern", "ref", "no json"],
)
def test_an_invalid_schema_is_rejected(schema):
    """With a `ConfigurationError`."""
    with pytest.raises(ConfigurationError, match="JSON Schema is invalid"):
        Validator(schema)


def test_nothing_is_fetched():
    """An external reference is an error."""
    with pytest.raises(ConfigurationError, match="is not part of the schema"):
        Validator({"$ref": "http://127.0.0.1:1/schema"})


def test_older_drafts_are_supported():
    """`items` of draft 7 may be a list."""
    schema = {"$schema": "http://json-schema.org/draft-07/schema#", "items": [{"type": "string"}]}

    assert Validator(schema)([1]) == ['[0]: 1 is not of type "string"']


def test_replace_surrogates():
    """Pairs are joined and lone surrogates replaced, also in keys; the rest is unchanged."""
    value = {"a\ud800": ["\ud83d\ude00", "\udc00x", "ä", 1, None, {"b": True}]}

    assert replace_surrogates(value) == {
        "a\ufffd": ["\N{GRINNING FACE}", "\ufffdx", "ä", 1, None, {"b": True}]
    }
