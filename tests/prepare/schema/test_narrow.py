"""Narrowing schemas."""

import copy
import json

import hypothesis
import jsonschema_rs
import pytest
from anthropic import transform_schema
from google.genai import types as google
from hypothesis import given
from hypothesis import strategies as st
from openai.lib._pydantic import _ensure_strict_json_schema

from interlingua.conformance.strategies import json_values
from interlingua.prepare.schema.keywords import VOCABULARY
from interlingua.prepare.schema.narrow import narrow
from interlingua.prepare.schema.openapi import from_openapi
from interlingua.prepare.schema.read import find_unreadable
from interlingua.prepare.schema.restore import drop_added_nulls
from support import corpus
from support.facts import ANTHROPIC, GEMINI_JSON_SCHEMA, OPENAI_STRICT
from support.schemas import (
    UNIVERSE,
    count_calls,
    example,
    grafted,
    inner_schemas,
    schemas,
    small_schemas,
    soup,
)

ALL = [OPENAI_STRICT, ANTHROPIC, GEMINI_JSON_SCHEMA]
rules_drawn = st.sampled_from(ALL)
anything = soup | json_values | grafted()


def is_valid(value, schema):
    return jsonschema_rs.Draft202012Validator(schema).is_valid(value)


def validator(schema):
    """None for a schema that points nowhere."""
    try:
        return jsonschema_rs.Draft202012Validator(schema).is_valid
    except jsonschema_rs.ValidationError:
        return None


def check(schema, rules):
    """Assert what the target demands of a schema."""
    for path, node in inner_schemas(schema):
        if not isinstance(node, dict):
            assert not rules.strict, path
            continue
        assert set(node) & VOCABULARY <= rules.keywords, path
        if "$ref" in node:
            assert all(key.startswith("$") for key in node), path
        if rules.strict:
            check_strict(path, node, rules)


def check_strict(path, node, rules):
    kinds = node.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    said = {"type", "anyOf", "$ref"} | (set() if rules.typed_values else {"enum", "const", "allOf"})
    assert said & set(node), path
    if "object" in kinds:
        assert node["additionalProperties"] is False, path
        assert set(node.get("required", [])) <= set(node.get("properties", {})), path
    if rules.all_required and "object" in kinds:
        assert sorted(node["required"]) == sorted(node["properties"]), path
    if rules.typed_items and "array" in kinds:
        assert "items" in node, path
    if path == "schema" and rules.object_root:
        assert kinds == ["object"]
        assert "anyOf" not in node
        assert "$ref" not in node


@given(anything, rules_drawn)
def test_narrowing_is_total_pure_and_idempotent(schema, rules):
    """Any JSON is narrowed without an error, unchanged itself, and the second time is the last."""
    before = copy.deepcopy(schema)

    once = narrow(schema, rules)
    twice = narrow(once.schema, rules)

    assert schema == before
    assert twice.schema is once.schema
    assert twice.changes == ()
    assert twice.strict_possible is once.strict_possible
    assert (once.schema is schema) is (once.changes == ())
    assert set(once.losses) <= set(once.changes)
    unreadable = find_unreadable(schema, "schema") is not None
    assert unreadable or (once.reason is None) is once.strict_possible
    assert not unreadable or once.schema is schema


@given(anything, rules_drawn)
def test_narrowed_schemas_keep_the_rules(schema, rules):
    """What is said to be possible is what the target accepts; what is not is left as it was."""
    narrowed = narrow(schema, rules)

    if not narrowed.strict_possible:
        assert narrowed.schema is schema
    elif narrowed.reason is None and isinstance(narrowed.schema, dict):
        check(narrowed.schema, rules)


@given(schemas())
def test_plausible_schemas_can_be_strict(schema):
    """Objects, arrays, unions, references and circles need no exception and lose nothing."""
    for rules in (OPENAI_STRICT, ANTHROPIC):
        narrowed = narrow(schema, rules)

        assert narrowed.strict_possible, narrowed.reason
        assert rules is ANTHROPIC or narrowed.losses == ()


@given(schemas(), st.data())
def test_strict_schemas_accept_what_the_original_does(schema, data):
    """A value of the original has a strict answer, which is read back as a valid value."""
    original, strict = example(data.draw, schema, schema)
    narrowed = narrow(schema, OPENAI_STRICT).schema

    assert is_valid(original, schema)
    assert is_valid(strict, narrowed)
    assert is_valid(drop_added_nulls(strict, schema), schema)


@given(schemas(unions=False), st.data())
def test_strict_answers_come_back_as_they_were_meant(schema, data):
    """Where no union leaves a choice, the value read back is the very value."""
    original, strict = example(data.draw, schema, schema)

    assert drop_added_nulls(strict, schema) == original


@given(schemas(), st.data())
def test_strict_answers_are_valid_for_the_original(schema, data):
    """Whatever a strict schema allows is valid for the original without its added nulls."""
    narrowed = narrow(schema, OPENAI_STRICT).schema
    answer, _ = example(data.draw, narrowed, narrowed)

    assert is_valid(answer, narrowed)
    assert is_valid(drop_added_nulls(answer, schema), schema)


@given(schemas(), st.data())
def test_narrowing_for_gemini_and_anthropic_only_widens(schema, data):
    """A value of the original is one of the narrowed schema, too."""
    value, _ = example(data.draw, schema, schema)

    assert is_valid(value, narrow(schema, GEMINI_JSON_SCHEMA).schema)
    assert is_valid(value, narrow(schema, ANTHROPIC).schema)


def any_of_any(schema):
    """As Gemini reads it: `oneOf` is interpreted as `anyOf`."""
    schema = copy.deepcopy(schema)
    for _, node in list(inner_schemas(schema)):
        if isinstance(node, dict) and "oneOf" in node:
            node["allOf"] = [{"anyOf": node.pop("oneOf")}]
    return schema


@given(small_schemas())
def test_narrowing_for_gemini_widens_any_schema(schema):
    """No keyword, wherever it stands, is narrowed to something that forbids more."""
    is_original = validator(schema)
    if is_original is not None:
        is_narrowed = validator(any_of_any(narrow(schema, GEMINI_JSON_SCHEMA).schema))
        assert all(is_narrowed(value) for value in UNIVERSE if is_original(value))


@hypothesis.example({"type": "object", "properties": {"a": {"type": "string", "const": None}}})
@given(small_schemas(exact=True) | small_schemas())
def test_schemas_without_losses_allow_no_more(schema):
    """If no loss is named, what the narrowed schema allows is valid for the original."""
    for rules in ALL if validator(schema) else ():
        narrowed = narrow(schema, rules)
        is_original, is_narrowed = validator(schema), validator(narrowed.schema)
        for value in UNIVERSE if narrowed.strict_possible and not narrowed.losses else ():
            back = drop_added_nulls(value, schema) if rules.all_required else value
            assert not is_narrowed(value) or is_original(back)


@given(schemas(hinted=True))
def test_the_vendors_have_nothing_left_to_do(schema):
    """OpenAI's own transform changes nothing more, and Google's types take the schema."""
    strict = narrow(schema, OPENAI_STRICT).schema
    theirs = copy.deepcopy(strict)

    assert _ensure_strict_json_schema(theirs, path=(), root=theirs) == strict
    google.JSONSchema.model_validate(narrow(schema, GEMINI_JSON_SCHEMA).schema)


@given(schemas(hinted=True))
def test_anthropics_own_transform_finds_no_keyword_to_move(schema):
    """What is narrowed for Anthropic has no keyword its SDK would put into a description."""
    narrowed = copy.deepcopy(narrow(schema, ANTHROPIC).schema)
    for _, node in inner_schemas(narrowed):
        node.pop("default", None)  # the API takes it, the SDK does not
        if isinstance(node.get("type"), list):  # the API takes these, the SDK does not
            node["type"] = node["type"][0]
    for (_, ours), (_, theirs) in zip(
        inner_schemas(narrowed), inner_schemas(transform_schema(narrowed)), strict=True
    ):
        assert ours.get("description") == theirs.get("description")


@pytest.mark.skipif(not corpus.is_here(), reason="the corpus is not here")
@pytest.mark.parametrize("rules", ALL, ids=lambda rules: rules.name)
def test_recorded_schemas(rules):
    """Every schema in the recorded requests is narrowed to the rules, twice as once."""
    for schema in recorded_schemas():
        narrowed = narrow(schema, rules)
        if narrowed.strict_possible and narrowed.reason is None:
            check(narrowed.schema, rules)
        assert narrow(narrowed.schema, rules).schema is narrowed.schema


def recorded_schemas():
    names = {"parameters", "input_schema", "responseJsonSchema", "parameters_json_schema", "schema"}
    pending = [record["request_body"] for name in corpus.FILES for record in corpus.records(name)]
    while pending:
        value = pending.pop()
        if isinstance(value, dict):
            yield from (value[key] for key in names & value.keys() if isinstance(value[key], dict))
        if isinstance(value, (dict, list)):
            pending.extend(value.values() if isinstance(value, dict) else value)


def nest(levels, keyword):
    schema = {"type": "string"}
    for _ in range(levels):
        match keyword:
            case "items":
                schema = {"type": "array", "items": schema}
            case "anyOf":
                schema = {"anyOf": [schema, {"type": "null"}]}
            case _:
                schema = {"type": "object", keyword: {"a": schema}}
    return schema


@pytest.mark.parametrize("rules", ALL, ids=lambda rules: rules.name)
@pytest.mark.parametrize("keyword", ["items", "anyOf", "properties", "$defs"])
def test_deep_schemas(keyword, rules):
    """Ten thousand levels are left as they are; what is just not too deep is narrowed."""
    deep = nest(10_000, keyword)
    wrapped = {
        "type": "object",
        "properties": {"a": nest(95 if keyword == "items" else 47, keyword)},
    }

    assert narrow(deep, rules).schema is deep
    assert narrow(deep, rules).reason == "schema: nested deeper than 100 levels"
    assert narrow(deep, rules).strict_possible is not rules.strict
    assert narrow(wrapped, rules).reason is None or keyword == "$defs"
    assert drop_added_nulls({"a": 1}, deep) == {"a": 1}
    assert from_openapi(deep) is deep


@pytest.mark.parametrize("rules", ALL, ids=lambda rules: rules.name)
def test_chains_and_circles_of_references(rules):
    """References that lead to references, ten thousand of them or round and round, are read."""
    links = {f"d{at}": {"anyOf": [{"$ref": f"#/$defs/d{at + 1}"}]} for at in range(10_000)}
    chain = {
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/d0"}},
        "$defs": {**links, "d10000": {"type": "string"}},
    }
    circle = {
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/x"}},
        "$defs": {"x": {"$ref": "#/$defs/y"}, "y": {"allOf": [{"$ref": "#/$defs/x"}]}},
    }

    assert narrow(chain, rules).strict_possible
    narrow(circle, rules)
    narrow({"$ref": "#"}, rules)
    assert drop_added_nulls({"a": "x"}, chain) == {"a": "x"}
    assert drop_added_nulls({"a": {"b": None}}, circle) == {"a": {"b": None}}


def doubled(levels):
    """A schema that doubles with each level when it is written out."""
    definitions = {
        f"d{at}": {
            "type": "object",
            "properties": {name: {"$ref": f"#/$defs/d{at + 1}"} for name in ("a", "b")},
        }
        for at in range(levels)
    }
    return {
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/d0"}},
        "$defs": {**definitions, f"d{levels}": {"type": "string"}},
    }


def shared(levels):
    """One object in many places of the schema."""
    node = {"type": "string", "format": "x"}
    for _ in range(levels):
        node = {"type": "object", "properties": {"a": node, "b": node}}
    return node


def wide(size):
    """Many references to one place, which have to be moved or are broken."""
    names = {f"p{at}": {"$ref": f"#/{('x', 'properties/q')[at % 2]}"} for at in range(size)}
    return {"type": "object", "properties": {**names, "q": {"type": "null"}}}


@pytest.mark.parametrize("rules", ALL, ids=lambda rules: rules.name)
@pytest.mark.parametrize("make", [doubled, shared, wide])
def test_time_is_linear(make, rules):
    """Twice the schema costs twice the work, however often its parts are referred to."""
    once = count_calls(narrow, make(24), rules)
    twice = count_calls(narrow, make(48), rules)

    assert twice < 2.2 * once
    assert make is shared or len(json.dumps(narrow(make(48), rules).schema)) < 30_000
