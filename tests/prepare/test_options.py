"""Provider options."""

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlingua.conformance.strategies import json_objects
from interlingua.prepare.options import foreign_options, options_for
from interlingua.spec.request import Request
from interlingua.spec.response import Warning
from interlingua.wire.fields import merge
from support.facts import NAMES

leaves = st.none() | st.integers(0, 3)
nested = st.recursive(
    leaves, lambda inner: st.dictionaries(st.sampled_from("abc"), inner, max_size=3), max_leaves=9
)
objects = st.dictionaries(st.sampled_from("abc"), nested, max_size=3)


def said(value, path=()):
    """The leaves of an object that are not null, by path."""
    if isinstance(value, dict):
        return {k: v for key, item in value.items() for k, v in said(item, (*path, key)).items()}
    return {} if value is None else {path: value}


@given(objects | json_objects)
def test_nothing_changes_nothing(body):
    """Empty options are the identity, on both sides."""
    assert merge(body, {}) == body
    assert merge({}, body) == body


@given(objects | json_objects)
def test_merging_twice_is_merging_once(body):
    """A body merged with itself is itself."""
    assert merge(body, body) == body


@given(objects, objects)
def test_inputs_are_not_changed(body, options):
    """Neither the body nor the options are touched, at any depth."""
    before = copy.deepcopy((body, options))

    merge(body, options)

    assert (body, options) == before


@given(objects, objects)
def test_options_win(body, options):
    """Whatever the options say that is not null is in the result."""
    merged = merge(body, options)

    assert said(options).items() <= said(merged).items()
    assert merged.keys() == body.keys() | options.keys()


@given(objects, objects)
def test_null_never_hides(body, options):
    """A field of the body whose option is null, at any depth, keeps its value."""

    def check(merged, left, right):
        for key, value in left.items():
            if right.get(key) is None:
                assert merged[key] == value
            elif isinstance(value, dict) and isinstance(right[key], dict):
                check(merged[key], value, right[key])

    check(merge(body, options), body, options)


@pytest.mark.parametrize(
    ("body", "options", "merged"),
    [
        ({"a": 1}, {"b": 2}, {"a": 1, "b": 2}),
        ({"a": 1}, {"a": 0}, {"a": 0}),
        ({"a": 1}, {"a": None}, {"a": 1}),
        ({}, {"a": None}, {"a": None}),
        ({"a": None}, {"a": 1}, {"a": 1}),
        ({"a": {"b": 1, "c": 2}}, {"a": {"c": None, "d": 4}}, {"a": {"b": 1, "c": 2, "d": 4}}),
        ({"a": [1, 2]}, {"a": [3]}, {"a": [3]}),
        ({"a": {"b": 1}}, {"a": []}, {"a": []}),
        ({"a": {"b": 1}}, {"a": {}}, {"a": {"b": 1}}),
    ],
)
def test_merge(body, options, merged):
    """Objects are merged, lists and scalars replaced, nulls only fill gaps."""
    assert merge(body, options) == merged


def test_order_is_kept():
    """The body's keys come first, in their order, so that equal inputs give equal bytes."""
    assert list(merge({"b": 1, "a": 2}, {"c": 3, "a": 4})) == ["b", "a", "c"]


def test_options_for():
    """Options by dialect and by provider are joined; the provider's win."""
    request = Request(
        provider="groq",
        provider_options={
            "openai_chat": {"logprobs": True, "x": {"a": 1}},
            "groq": {"logprobs": False, "x": {"b": 2}},
            "xai": {"search": 1},
        },
    )

    assert options_for(request, "openai_chat") == {"logprobs": False, "x": {"a": 1, "b": 2}}
    assert options_for(request, "gemini_generate") == {"logprobs": False, "x": {"b": 2}}


@pytest.mark.parametrize("options", [None, 5, "text", [], True])
def test_options_that_are_no_object(options):
    """What is no object is no options, and is never a crash."""
    request = Request(provider_options={"openai_chat": options})

    assert options_for(request, "openai_chat") == {}
    assert len(foreign_options(request, "gemini_generate", lambda: NAMES)) == int(bool(options))


def test_options_are_not_shared():
    """Changing what `options_for` returns does not change the request."""
    request = Request(provider_options={"openai_chat": {"a": 1}})

    options_for(request, "openai_chat")["a"] = 2

    assert request.provider_options == {"openai_chat": {"a": 1}}


def test_foreign_options():
    """Options of another dialect are named in a warning; a provider's row is not a dialect."""
    request = Request(
        provider_options={
            "openai_chat": {"seed": 1},
            "gemini_generate": {"safetySettings": [], "cachedContent": "x"},
            "anthropic_messages": {},
            "groq": {"x": 1},
        }
    )

    assert foreign_options(request, "openai_chat", lambda: NAMES) == [
        Warning(
            code="options_dropped",
            message="Options of gemini_generate do not apply to openai_chat and were dropped: "
            "cachedContent, safetySettings.",
            path="provider_options.gemini_generate",
        )
    ]
    assert foreign_options(Request(), "openai_chat", lambda: NAMES) == []


def test_a_word_to_the_encoder_is_not_foreign():
    """What no dialect sends is not lost in another."""
    options = {"auto_cache": False, "speed": "fast"}
    request = Request(provider_options={"anthropic_messages": options})

    (warning,) = foreign_options(request, "openai_chat", lambda: NAMES)

    assert warning.message.endswith(": speed.")
    quiet = Request(provider_options={"anthropic_messages": {"auto_cache": False}})
    assert foreign_options(quiet, "openai_chat", lambda: NAMES) == []
