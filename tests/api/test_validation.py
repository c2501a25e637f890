"""Values against schemas."""

import pytest
from hypothesis import given

from interlingua.api.validation import Validator
from interlingua.conformance.strategies import json_values
from interlingua.spec.errors import ConfigurationError

SCHEMA = {
    "type": "object",
    "properties": {"people": {"type": "array", "items": {"required": ["name"]}}},
    "additionalProperties": False,
}


def test_all_problems_come_with_their_places():
    """Each as `path: what`."""
    problems = Validator(SCHEMA)({"people": [{"name": 1}, {}], "x": 1})

    assert problems == [
        'people[1]: "name" is a required property',
        "Additional properties are not allowed ('x' was unexpected)",
    ]


@given(json_values)
def test_any_value_can_be_checked(value):
    """Whatever a model sends, there is a list of problems."""
    assert isinstance(Validator(SCHEMA)(value), list)
    assert Validator({})(value) == []


def test_lone_surrogates_can_be_checked():
    """They are not UTF-8, but they do come."""
    validate = Validator({"properties": {"a": {"maxLength": 3}}})

    assert validate({"a": "x\ud800", "b": ["\udfff"]}) == []
    assert len(validate({"a": "xxx\ud800"})) == 1


def test_hostile_depth_is_a_problem():
    """Not a crash."""
    value = {}
    for _ in range(5000):
        value = {"people": value}

    assert "cannot be checked" in Validator(SCHEMA)(value)[0]


def test_long_values_are_not_quoted_whole():
    """A message to the model stays short, both ends kept."""
    (problem,) = Validator({"type": "integer"})("x" * 10_000)

    assert len(problem) < 400
    assert problem.endswith('is not of type "integer"')


@pytest.mark.parametrize(
    "schema",
    [{"type": "odd"}, {"pattern": "("}, {"$ref": "#/$defs/none"}, {"const": object()}],
    ids=["type", "pattern", "ref", "no json"],
)
def test_what_is_no_schema_is_refused(schema):
    """With a `ConfigurationError`."""
    with pytest.raises(ConfigurationError, match="JSON Schema cannot be used"):
        Validator(schema)


def test_nothing_is_fetched():
    """A reference to another place is refused, not followed."""
    with pytest.raises(ConfigurationError, match="is not part of the schema"):
        Validator({"$ref": "http://127.0.0.1:1/schema"})


def test_older_drafts_are_read_as_they_say():
    """`items` of draft 7 may be a list."""
    schema = {"$schema": "http://json-schema.org/draft-07/schema#", "items": [{"type": "string"}]}

    assert Validator(schema)([1]) == ['[0]: 1 is not of type "string"']
