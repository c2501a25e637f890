"""JSON in the midst of what a model says."""

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlingua.api.objects.schema import find_json, read_json
from interlingua.spec.errors import DecodeError

values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**50), 2**50) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=8,
)
objects = st.dictionaries(st.text(max_size=4) | st.just("```\n{"), values, max_size=3)
words = ["Here", " is it: ", "[1]", "[see x]", "{x}", "`x`", "\n", '"', "'", "é", "]"]
prose = st.lists(st.sampled_from(words), max_size=8).map("".join)
plain = st.text(st.sampled_from("Here is it: `x`\n\"'é"), max_size=20)
indents = st.sampled_from([None, 2])


@given(value=values, indent=indents)
def test_bare(value, indent):
    """A text that is JSON is just that."""
    assert find_json(f" {json.dumps(value, indent=indent)}\n") == value


@given(value=values, before=prose, after=prose, indent=indents, word=st.sampled_from(["", "json"]))
def test_in_a_fence(value, before, after, indent, word):
    """A code fence is taken off, and what is said around it."""
    text = f"{before}\n```{word}\n{json.dumps(value, indent=indent)}\n```\n{after}"

    assert find_json(text) == value


@given(value=objects, before=prose, after=prose | st.just("} {"), indent=indents)
def test_among_words(value, before, after, indent):
    """The first object, up to where it ends."""
    text = f"So {before}{json.dumps(value, indent=indent)} ok {after}"

    assert find_json(text, is_object=True) == value


@given(value=st.lists(values) | objects, before=plain, after=plain, indent=indents)
def test_any_value_among_words(value, before, after, indent):
    """Also an array."""
    assert find_json(f"So {before}{json.dumps(value, indent=indent)} ok {after}") == value


@given(value=objects, before=prose, data=st.data())
def test_cut_off(value, before, data):
    """A part is never taken for the whole."""
    whole = json.dumps(value)
    text = f"So {before}{whole[: data.draw(st.integers(1, len(whole) - 1))]}"

    with pytest.raises(DecodeError):
        find_json(text, is_object=True)


@given(value=st.lists(objects, min_size=1), before=plain, is_object=st.booleans(), data=st.data())
def test_an_array_that_is_cut_off(value, before, is_object, data):
    """None of its items is taken for it."""
    whole = json.dumps(value)
    text = f"So {before}{whole[: data.draw(st.integers(1, len(whole) - 1))]}"

    with pytest.raises(DecodeError):
        find_json(text, is_object=is_object)


@given(st.text(st.sampled_from('{}[]":,`1a\\\n '), max_size=40))
def test_any_text_is_read_or_refused(text):
    """Whatever it is."""
    with contextlib.suppress(DecodeError):
        json.dumps(find_json(text), allow_nan=False)


@pytest.mark.parametrize(
    "text", ["", "No.", "{'a': 1}", "see {x} and {y}", 'So {"a": NaN}', "So " + '{"a":' * 100_000]
)
def test_no_json(text):
    """It says so."""
    with pytest.raises(DecodeError):
        find_json(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('Here: [{"a": 1}, {"a": 2}]', [{"a": 1}, {"a": 2}]),
        ('I think {x}: {"a": 1}', {"a": 1}),
        ('See [1]: {"a": 1}, {"b": 2}', {"a": 1}),
        ('Sad :[ but {"a": 1}', {"a": 1}),
    ],
)
def test_where_an_object_is_wanted(text, value):
    """Brackets that are words do not hide it; an array is not opened to find one."""
    assert find_json(text, is_object=True) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("Here: [1, 2]", [1, 2]),
        ("As in [1]: [1, 2]", [1, 2]),
        ('[{"a": 1}] done', [{"a": 1}]),
        ('So {"value": [1, 2]}', {"value": [1, 2]}),
    ],
)
def test_where_any_value_is_wanted(text, value):
    """The longest one: the others are references or examples."""
    assert find_json(text) == value


@pytest.mark.parametrize(
    "text",
    ['see [1]: {"value": [1, 2', '{x: {"a": 1}}', "[{'a': 1}, {\"b\": 1}]", 'Not [1, but {"a": 1}'],
)
def test_parts(text):
    """What is inside of something broken is none, also if it could be read."""
    for is_object in (True, False):
        with pytest.raises(DecodeError):
            find_json(text, is_object=is_object)


@pytest.mark.parametrize(
    "piece", ["[", "{", "[ x", "{x}", '["', '"\\"', "[1,", '{"a":', "]", "```\n", "[x] {"]
)
def test_hostile_repetition(piece):
    """However often, it is read in one go: it would take minutes otherwise."""
    with contextlib.suppress(DecodeError):
        find_json("So " + piece * 100_000)


def test_a_fence_with_something_else():
    """The next one counts."""
    assert find_json("```sh\nls {}\n```\n```\n[1]\n```") == [1]


def test_a_fence_counts_before_a_brace():
    """Braces in the words before it do not hide it."""
    assert find_json('Using {your schema}:\n```json\n{"a": 1}\n```') == {"a": 1}


@pytest.mark.parametrize("count", [999, 1000, 1001, 2001])
def test_a_string_with_many_escapes(count):
    """A bracket or quote in it does not end the value."""
    value = {"a": '"}' * count, "b": "\n}" * count}

    assert find_json(f"So {json.dumps(value)} ok") == value
    with pytest.raises(DecodeError):
        find_json("So " + json.dumps(value)[:-6] + "\\")


@pytest.mark.parametrize(
    ("text", "value", "mistakes"),
    [
        ("{'a': 1}", {"a": 1}, ("single quotes",)),
        ('Here: {"a": 1,} ok', {"a": 1}, ("a trailing comma",)),
        (
            "```json\n{a: 'b}',\n}\n```",
            {"a": "b}"},
            ("keys without quotes", "single quotes", "a trailing comma"),
        ),
        ('See [1]: {"a": "b\nc"}', {"a": "b\nc"}, ("line breaks in a string",)),
        ("I think {x}: {'a': 1}", {"a": 1}, ("single quotes",)),
        ('{"a": 1}', {"a": 1}, ()),
    ],
)
def test_mistakes_with_one_reading(text, value, mistakes):
    """Wherever the object is; what is JSON has none."""
    assert read_json(text, is_object=True) == (value, mistakes)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("{'a': 'it's'}", "line 1 column 11"),
        ('So:\n{"a": 1 "b": 2}', "line 2 column 9"),
        ("```json\n[{'a': 1}, {'a': \n```", "line 3 column 1"),
        ('{"a": [1, 2', "line 1 column 12"),
    ],
)
def test_where_the_reading_is_not_clear(text, place):
    """The error has the position, and nothing inside is taken for the whole."""
    with pytest.raises(DecodeError, match=place):
        read_json(text, is_object=True)
