"""The schemas of tools and formats, as an encoder sends them."""

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlingua.prepare.schema.narrow import encode_parameters, encode_schema, narrow
from interlingua.spec.warnings import WarningList, is_loss
from support.facts import ANTHROPIC, GEMINI_JSON_SCHEMA, OPENAI_STRICT
from support.schemas import grafted, schemas, soup

ALL = st.sampled_from([OPENAI_STRICT, ANTHROPIC, GEMINI_JSON_SCHEMA])
OPEN = {"type": "object", "properties": {"a": {"type": "string"}}}
MAP = {"type": "object", "additionalProperties": {"type": "string"}}
MANY = {"type": "object", "properties": {f"p{at}": {"enum": [[]]} for at in range(7)}}


def encoded(function, *arguments, **options):
    losses = WarningList()
    return *function(*arguments, losses, "here", **options), losses.warnings


@given(soup | grafted(), ALL, st.sampled_from([None, True, False]))
def test_encoding_is_total_and_pure(schema, rules, strict):
    """Any JSON is sent somehow; nothing is strict that was not asked to be; a loss is named."""
    before = copy.deepcopy(schema)

    for function in (encode_schema, encode_parameters):
        sent, said, warnings = encoded(function, schema, rules, strict=strict)

        assert schema == before
        assert said is strict or (strict and said is False)
        assert all(is_loss(warning) and warning.path == "here" for warning in warnings)
        if said is not strict:
            assert [warning.code for warning in warnings][-1] == "schema_not_strict"
        if sent != schema and function is encode_schema:
            assert narrow(schema, rules).changes


@given(grafted(), st.sampled_from([OPENAI_STRICT, ANTHROPIC]), st.sampled_from([None, False]))
def test_strict_targets_are_obeyed_only_when_asked(schema, rules, strict):
    """A schema that is not strict goes out as the very object."""
    assert encoded(encode_schema, schema, rules, strict=strict) == (schema, strict, [])
    assert encode_schema(schema, rules, WarningList(), "", strict=strict)[0] is schema


@given(schemas())
def test_lossless_rewrites_are_not_warned_of(schema):
    """Optional as nullable, closed objects, merged intersections: no word about them."""
    sent, strict, warnings = encoded(encode_parameters, schema, OPENAI_STRICT, strict=True)

    assert strict is True
    assert warnings == []
    assert sent["additionalProperties"] is False


def test_what_cannot_be_strict():
    """It is sent as it is, not strict, and the warning says where and why."""
    sent, strict, (warning,) = encoded(encode_schema, MAP, OPENAI_STRICT, strict=True)

    assert sent is MAP
    assert strict is False
    assert (warning.code, warning.path) == ("schema_not_strict", "here")
    assert "schema: additionalProperties makes it a map of any names" in warning.message


def test_losses_are_listed():
    """One warning for a schema, which names the first few losses and counts the others."""
    _, strict, (warning,) = encoded(encode_schema, MANY, GEMINI_JSON_SCHEMA, strict=None)

    assert strict is None
    assert warning.code == "schema_narrowed"
    assert "schema.properties.p0: enum moved to the description" in warning.message
    assert warning.message.endswith(" and 2 more.")


@pytest.mark.parametrize("rules", [OPENAI_STRICT, ANTHROPIC, GEMINI_JSON_SCHEMA])
def test_a_tool_whose_root_is_a_union(rules):
    """The union is a loss, and the object that is left can be strict."""
    union = {"anyOf": [OPEN, {**OPEN, "required": ["a"]}]}
    sent, strict, (warning,) = encoded(encode_parameters, union, rules, strict=True)

    assert sent["type"] == "object"
    assert strict is True
    assert "anyOf moved to the description" in warning.message
