"""JSON text."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlingua.conformance.strategies import json_objects, json_values
from interlingua.spec.errors import DecodeError
from interlingua.wire import json_text
from interlingua.wire.json_text import dump_text, dumps, loads, loads_object

odd_text = st.text(st.sampled_from('a\ud83d\\"\n\0é\u2028'))
odd_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**40), 10**40)
    | st.floats(allow_nan=False, allow_infinity=False)
    | odd_text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(odd_text, inner, max_size=3),
    max_leaves=8,
)


@given(json_values | odd_values)
def test_what_is_written_can_be_read(value):
    """Any JSON value comes back the same, huge integers and lone surrogates too."""
    assert loads(dumps(value)) == value
    assert loads(dump_text(value)) == value


@given(json_values | odd_values)
def test_agrees_with_the_standard_library(value):
    """Our text is read by `json`, and the text of `json` by us."""
    assert json.loads(dumps(value)) == value
    assert loads(json.dumps(value)) == value


@given(st.binary() | st.text() | st.text('[]{}",:0123456789.eE-+ntfu\\ ', max_size=12))
def test_any_text_is_a_value_or_a_decode_error(text):
    """What is no JSON is a `DecodeError` and nothing else."""
    try:
        value = loads(text)
    except DecodeError as error:
        assert error.message
    else:
        assert loads(dumps(value)) == value


@given(json_objects)
def test_arguments_are_objects(value):
    """The text of an object is that object."""
    assert loads_object(dump_text(value)) == value


@given(st.text() | json_values.map(dump_text))
def test_arguments_never_raise(text):
    """Any text is an object or None."""
    assert isinstance(loads_object(text), (dict, type(None)))


@pytest.mark.parametrize(
    "text",
    [
        "NaN", "Infinity", "-Infinity", '{"a": NaN}', "[1e999]", "-1e999", "", " ", "{", '{"a"}',
        "[1,]", "01", "+1", ".5", "'a'", "nul", "{} {}", '"a\nb"', '"\\x"', '"\\u12"', "// c\n1",
        "9" * 5000, "[" * 100_000, '{"a":' * 100_000, b"\xff", b'"\xc3"', b'{"a":"\xed\xa0"}',
    ],
)  # fmt: skip
def test_not_json(text):
    """Constants JSON has not, numbers out of range, cut and deep texts are refused."""
    with pytest.raises(DecodeError, match=r"Not JSON|nested too deeply"):
        loads(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("null", None),
        ("0", 0),
        ("-0.0", 0.0),
        ("1E2", 100.0),
        ('""', ""),
        (' {"a" : [ ] } \r\n', {"a": []}),
        ('{"a":1,"a":2}', {"a": 2}),
        (r'"\ud83d"', "\ud83d"),
        (r'"\ud83d\ude00"', "😀"),
        (r'{"\udc00":"\/"}', {"\udc00": "/"}),
        (str(2**70), 2**70),
        ("\u2028".join('""'), "\u2028"),
        ('"é"'.encode(), "é"),
    ],
)
def test_json(text, value):
    """Texts that are JSON, and their values; of a key said twice the last counts."""
    assert loads(text) == value


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"b": 1, "a": [True, None, 0.5]}, b'{"b":1,"a":[true,null,0.5]}'),
        ("é/😀", '"é/😀"'.encode()),
        ("\ud83d", b'"\\ud83d"'),
        (["\ud83d", "é"], b'["\\ud83d","\\u00e9"]'),
        ((1, 2), b"[1,2]"),
        ({}, b"{}"),
        ("", b'""'),
    ],
)
def test_dumps(value, text):
    """Compact UTF-8, keys in their order; escapes only where UTF-8 cannot."""
    assert dumps(value) == text


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_no_number_is_null(number):
    """NaN and the infinities are written as null, beside a lone surrogate too."""
    assert dumps([number]) == b"[null]"
    assert dumps(["\ud83d", {"a": (number,)}]) == b'["\\ud83d",{"a":[null]}]'


@pytest.mark.parametrize("beside", [[], ["\ud83d"]])
def test_what_cannot_be_written(beside):
    """An object of the application's or data without end is a `DecodeError`."""
    endless: list = []
    endless.append(endless)

    with pytest.raises(DecodeError, match="Not a JSON value"):
        dumps([*beside, object()])
    with pytest.raises(DecodeError, match="nested too deeply"):
        dumps([*beside, endless])


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", {}),
        (" \n", {}),
        ("null", {}),
        ("{}", {}),
        ('{"a": 0}', {"a": 0}),
        ('{"a": "\\ud83d"}', {"a": "\ud83d"}),
        ("[]", {}),
        ("[0]", None),
        ('"{}"', None),
        ("0", None),
        ("false", None),
        ('{"a": 1', None),
        ('{"a": NaN}', None),
    ],
)
def test_loads_object(text, value):
    """Nothing is no arguments; what is no object is None, never `{}`."""
    assert loads_object(text) == value


NUMBERS = [0.5] * 400_000
CALLS = [{"id": f"c{number}", "arguments": {"a": [1, "x"]}} for number in range(60_000)]


@pytest.mark.parametrize(
    "value",
    [
        {"data": [{"embedding": NUMBERS}, {"embedding": NUMBERS}]},
        [NUMBERS, {"b": NUMBERS}],
        {"a": {"b": {"c": CALLS[:8_000]}}, "d": "x" * 2_000_000},
        {"choices": [{"message": {"tool_calls": CALLS}}]},
    ],
    ids=["vectors", "lists", "nested", "calls"],
)
def test_a_large_text_is_read_in_pieces(value, monkeypatch):
    """No call of the parser gets more than a piece, unless it is one string."""
    sizes = []

    def watched(text):
        if not text.startswith(b'"'):
            sizes.append(len(text))
        return decode(text)

    decode = json_text._decode
    monkeypatch.setattr(json_text, "_decode", watched)

    assert loads(json.dumps(value, indent=1)) == value
    assert loads(json.dumps(value).encode()) == value
    assert max(sizes, default=0) <= 300_000


@pytest.mark.parametrize("end", ["", "]", ",]", ",,1]", "}", "],", "]]", ",NaN]", ",1e999]", ",x]"])
def test_a_large_text_is_checked_as_a_small_one(end):
    """What is refused, and what is read, does not depend on the size."""
    large = "[" + "1, " * 1_000_000 + "1" + end
    small = "[1, 1" + end

    assert is_json(large) == is_json(small) == (end == "]")
    assert is_json(f'{{"a": {large}, "b": 1}}') == is_json(f'{{"a": {small}, "b": 1}}')


def is_json(text):
    try:
        loads(text)
    except DecodeError:
        return False
    return True
