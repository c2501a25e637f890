"""JSON with the mistakes that models make."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlingua.wire.lenient_json import MAX_DEPTH, decode_lenient
from support.patterns import LINEAR, growth

values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(values, st.booleans(), st.sampled_from([None, 2]))
def test_json_is_read_as_it_is(value, is_ascii, indent):
    """Without a mistake there is none to report."""
    text = json.dumps(value, ensure_ascii=is_ascii, indent=indent)
    assert decode_lenient(f" {text} ") == (value, len(text) + 1, ())


@pytest.mark.parametrize(
    ("text", "value", "mistakes"),
    [
        ('{"a": 1,}', {"a": 1}, ("a trailing comma",)),
        ("[1, 2,\n]", [1, 2], ("a trailing comma",)),
        ("{'a': 'b'}", {"a": "b"}, ("single quotes",)),
        ("""{'a': 'say "b"', 'c': 'it\\'s'}""", {"a": 'say "b"', "c": "it's"}, ("single quotes",)),
        ('{"a": "b\nc\td"}', {"a": "b\nc\td"}, ("line breaks in a string",)),
        (
            "{a: 1, b-c: 2, $d: {e: []}}",
            {"a": 1, "b-c": 2, "$d": {"e": []}},
            ("keys without quotes",),
        ),
        ("{'a': True, 'b': None}", {"a": True, "b": None}, ("single quotes", "words of Python")),
        ('{"a": "\\u00e9\\ud83d\\ude00"}', {"a": "é😀"}, ()),
    ],
)
def test_a_mistake_with_one_reading_is_read(text, value, mistakes):
    """The value, and what was wrong."""
    assert decode_lenient(text) == (value, len(text), mistakes)


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("{'a': 'it's'}", 10),
        ('{"a": "say "hi""}', 12),
        ('{"a": 1 "b": 2}', 8),
        ('{"a": 1', 7),
        ('{"a": "b', 6),
        ("{,}", 1),
        ("[1,,2]", 3),
        ("{a b}", 3),
        ('{"a": b}', 6),
        ('{"a": NaN}', 6),
        ('{"a": 01}', 7),
        ('{"a": "\\x"}', 7),
        ("[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1), MAX_DEPTH),
        ("", 0),
    ],
)
def test_what_has_no_single_reading_is_an_error_with_its_position(text, position):
    """It is not guessed."""
    with pytest.raises(json.JSONDecodeError) as caught:
        decode_lenient(text)
    assert caught.value.pos == position


@given(st.text(st.sampled_from("{}[]\"':,\\ab1\n "), max_size=40))
def test_any_text_is_read_or_refused(text):
    """With no other error, and never beyond the end."""
    try:
        assert decode_lenient(text).end <= len(text)
    except json.JSONDecodeError as error:
        assert error.pos <= len(text)


@pytest.mark.parametrize("unit", ["{'a': ['b', 1,], c: \"d\ne\"}, ", '"\\n', "'a' "])
def test_reading_is_linear(unit):
    """Twice the text takes twice the time."""

    def read(text):
        with pytest.raises(json.JSONDecodeError):
            decode_lenient(text)

    assert growth(read, lambda size: "[" + unit * (size // len(unit))) < LINEAR
