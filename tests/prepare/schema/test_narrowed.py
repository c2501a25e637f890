"""The memory of narrowed schemas: what it returns is what narrowing would return."""

import copy
import math
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlingua.prepare.schema.narrow import Narrowed, encode_parameters, narrow, remembered
from interlingua.spec.warnings import WarningList
from support.facts import ANTHROPIC, GEMINI_JSON_SCHEMA, OPENAI_STRICT
from support.schemas import grafted, soup

MODULE = sys.modules["interlingua.prepare.schema.narrow"]
ALL = st.sampled_from([OPENAI_STRICT, ANTHROPIC, GEMINI_JSON_SCHEMA])
OPTIONAL = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "integer"}}}


@pytest.fixture(autouse=True)
def cache(monkeypatch):
    """An empty one for each test."""
    fresh = MODULE._Cache()
    monkeypatch.setattr(MODULE, "_cache", fresh)
    return fresh


class Counter:
    """Narrows, and counts how often."""

    def __init__(self):
        self.count = 0

    def __call__(self, schema, rules):
        self.count += 1
        return narrow(schema, rules)


@given(soup | grafted(), ALL)
def test_remembering_shows_nowhere(schema, rules):
    """The first and every later result equal that of narrowing, down to types and identity."""
    expected = narrow(schema, rules)

    for _ in range(3):
        made = remembered(copy.deepcopy(schema), rules, narrow)
        assert repr(made) == repr(expected)  # repr: 1 is not true, and NaN equals nothing
    assert (remembered(schema, rules, narrow).schema is schema) == (expected.schema is schema)


def test_equal_content_is_narrowed_once():
    """An equal schema is not narrowed again, whether it is the same object or not."""
    make = Counter()

    for _ in range(3):
        remembered(copy.deepcopy(OPTIONAL), OPENAI_STRICT, make)
    assert make.count == 1
    remembered(OPTIONAL, ANTHROPIC, make)
    assert make.count == 2


def test_changed_results_change_nothing():
    """What a caller does to a returned schema is not seen by the next one."""
    clean = copy.deepcopy(narrow(OPTIONAL, OPENAI_STRICT).schema)

    for _ in range(4):
        schema, _strict = encode_parameters(OPTIONAL, OPENAI_STRICT, WarningList(), "", strict=True)
        assert schema == clean
        schema["properties"]["a"]["description"] = "changed"
        schema["required"].clear()


def test_changed_schemas_are_narrowed_anew():
    """A schema that its owner has changed since is another schema."""
    schema = copy.deepcopy(OPTIONAL)
    remembered(schema, OPENAI_STRICT, narrow)
    schema["properties"]["c"] = {"type": "boolean"}

    assert remembered(schema, OPENAI_STRICT, narrow) == narrow(schema, OPENAI_STRICT)


@pytest.mark.parametrize(
    ("one", "other"),
    [([1], (1,)), (None, math.nan), (1, True), (1, 1.0), ("1", 1)],
    ids=["tuple", "nan", "bool", "float", "text"],
)
def test_similar_values_are_not_mixed_up(one, other):
    """Values that have one JSON text, or are equal in Python, are still different schemas."""
    make = Counter()
    for value in (one, other):
        schema = {"type": "object", "properties": {"a": {"default": value}}}
        made = remembered(schema, GEMINI_JSON_SCHEMA, make)
        assert repr(made) == repr(narrow(schema, GEMINI_JSON_SCHEMA))
    assert make.count == 2


@pytest.mark.parametrize("strange", [object(), Counter], ids=["object", "class"])
def test_what_has_no_content_key_is_narrowed_each_time(strange):
    """A value that is no JSON is not remembered."""
    make = Counter()
    schema = {"type": "object", "properties": {"a": {"default": strange}}}
    for _ in range(2):
        remembered(schema, OPENAI_STRICT, make)
    assert make.count == 2


def test_memory_is_bounded(cache, monkeypatch):
    """However many schemas come, at most two generations are kept, and recent ones stay."""
    monkeypatch.setattr(MODULE, "_MAX_BYTES", 20_000)
    make = Counter()
    for number in range(500):
        remembered({**OPTIONAL, "title": f"t{number}"}, OPENAI_STRICT, make)
        remembered(OPTIONAL, OPENAI_STRICT, make)  # used all the time
        assert cache._bytes <= 20_000
        assert len(cache._younger) + len(cache._older) < 60
    assert make.count == 501

    huge = {**OPTIONAL, "title": "t" * 20_000}
    before = dict(cache._younger)
    assert remembered(huge, OPENAI_STRICT, narrow) == narrow(huge, OPENAI_STRICT)
    assert cache._younger == before


def test_an_unchanged_schema_is_returned_itself():
    """As by `narrow`: the caller's own object, not a copy."""
    closed = narrow(OPTIONAL, OPENAI_STRICT).schema
    for schema in (closed, copy.deepcopy(closed)):
        assert remembered(schema, OPENAI_STRICT, narrow) == Narrowed(schema=schema)
        assert remembered(schema, OPENAI_STRICT, narrow).schema is schema
