"""Call ids as a target takes them."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlingua.prepare.history.calls import map_call_id, map_call_ids
from interlingua.spec.errors import ConfigurationError

ANTHROPIC = r"[A-Za-z0-9_-]{1,64}"
MISTRAL = r"[A-Za-z0-9]{9}"
patterns = st.sampled_from(
    [
        ANTHROPIC,
        MISTRAL,
        r"call_[a-zA-Z0-9]+",
        r"[\s\S]{1,40}",
        r"[a-z0-9]{9}",
        r"[A-Z0-9]{9}",
        r"[a-z]{12}",
        r"[A-Z]{12}",
        r"[0-9]{12}",
        r"[0-9a-f]{16}",
        r"call_[a-z0-9]{9}",
    ]
)
texts = st.text(st.characters(), max_size=80)


@given(texts, patterns)
def test_the_target_takes_what_is_made(call_id, pattern):
    """Whatever the id was, what comes of it matches; and stays, if it is mapped again."""
    made = map_call_id(call_id, pattern)

    assert re.fullmatch(pattern, made)
    assert map_call_id(made, pattern) == made == map_call_id(call_id, pattern)


@given(st.lists(texts, unique=True), patterns)
def test_no_two_ids_become_one(call_ids, pattern):
    """The mapping is complete and injective, and an id may come twice."""
    mapped = map_call_ids([*call_ids, *call_ids], pattern)

    assert list(mapped) == call_ids
    assert len(set(mapped.values())) == len(call_ids)
    assert all(re.fullmatch(pattern, wire_id) for wire_id in mapped.values())


def test_long_and_odd_ids_are_mapped_and_stay_apart():
    """Ids over 64 characters or with `|` map to what Anthropic takes, readable and distinct.

    Field bug 8.
    """
    stem = "call_" + "x" * 450

    assert map_call_id("call_1", ANTHROPIC) == "call_1"
    assert map_call_id("call|1", ANTHROPIC).startswith("call_1_")
    assert len({map_call_id(f"{stem}|{i}", ANTHROPIC) for i in range(1000)}) == 1000
    assert map_call_id("a|b", ANTHROPIC) != map_call_id("a_b", ANTHROPIC)


def test_a_clash_is_settled():
    """An id that is already the form of another one gets a form of its own."""
    taken = map_call_id("a|b", ANTHROPIC)

    mapped = map_call_ids(["a|b", taken], ANTHROPIC)

    assert mapped["a|b"] == taken
    assert mapped[taken] != taken


def test_short_ids_are_not_made_where_long_ones_fit():
    """Of a pattern for lower case the longest is taken, not the few letters that fit by luck."""
    made = {map_call_id(f"call|{i}", "[a-z0-9]{1,40}") for i in range(100)}

    assert {len(call_id) for call_id in made} == {40}
    assert len(made) == 100


def test_a_pattern_that_nothing_matches_is_an_error():
    """It says so, and does not try for ever."""
    with pytest.raises(ConfigurationError, match="No call id of letters and digits matches"):
        map_call_id("a", "é")
    with pytest.raises(ConfigurationError, match="Too few call ids"):
        map_call_ids((f"call {i}" for i in range(100)), "[0-9A-Za-z]")
