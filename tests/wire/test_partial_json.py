from __future__ import annotations

import json
from unittest.mock import patch

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from interlingua.wire import partial_json as partial_module
from interlingua.wire.json_text import dump_text
from interlingua.wire.partial_json import PartialJSON, parse_partial
from support.patterns import LINEAR, growth

finite = st.floats(allow_nan=False, allow_infinity=False)
texts = st.text(max_size=8) | st.text(st.sampled_from('a"\\/\n\u2028é😀\ud83d\ude00'), max_size=8)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | finite | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)
PIECES = ["{", "}", "[", "]", ",", ":", '"', "\\", "\\u", "\\ud83d", "\\ude00", "a", '"a"', "1"]
PIECES += ["-", ".", "e", "0", "true", "nul", " ", "\n", "\0", "é", "\ud83d", '{"a":', "1e999"]
junk = st.lists(st.sampled_from(PIECES) | st.text(max_size=2), max_size=20).map("".join)


def is_prefix(part, whole) -> bool:
    """
    Whether `part` is what a reader of `whole` may have seen halfway.

    A string is the start of it; a list has its first items and an object its first members,
    all equal but for the last, which may be a prefix; anything else is equal.
    """
    if isinstance(whole, str):
        return isinstance(part, str) and whole.startswith(part)
    if isinstance(whole, dict):
        return (
            isinstance(part, dict)
            and list(part) == list(whole)[: len(part)]
            and are_prefixes(list(part.values()), list(whole.values()))
        )
    if isinstance(whole, list):
        return isinstance(part, list) and are_prefixes(part, whole)
    return type(part) is type(whole) and part == whole


def are_prefixes(part: list, whole: list) -> bool:
    if not part:
        return True
    last = len(part) - 1
    return part[:last] == whole[:last] and last < len(whole) and is_prefix(part[last], whole[last])


def no_match(_text, _position) -> None:
    return None


@st.composite
def written(draw):
    """A value and JSON text for it, in one of the ways JSON is written."""
    value = draw(values)
    if draw(st.booleans()):
        return value, json.dumps(value, indent=draw(st.none() | st.just(1)))
    return value, json.dumps(value, ensure_ascii=False, separators=(",", ":"))


@given(written(), st.data())
def test_a_cut_text_gives_a_prefix_of_its_value(value_and_text, data):
    """Whatever the cut, nothing is read that is not in the whole; nothing can mean None."""
    text = value_and_text[1]
    # adjacent lone surrogates are a pair once written: compare with what the text says
    value = json.loads(text)
    part = parse_partial(text[: data.draw(st.integers(0, len(text)))])
    bare_number = isinstance(value, (int, float)) and isinstance(part, (int, float))
    assert part is None or is_prefix(part, value) or bare_number


@given(values)
def test_the_whole_text_gives_the_value(value):
    """At its full length the text is simply JSON."""
    text = dump_text(value)
    assert parse_partial(text) == json.loads(text)
    assert parse_partial(f" {text}\n") == json.loads(text)


@given(junk)
@example("[" * 100_000)
@example("1" * 10_000)
@example("[1e999,")
def test_no_text_raises(text):
    """Text that was never JSON gives its readable start, or None."""
    parse_partial(text)


@given(st.lists(junk | written().map(lambda pair: pair[1]), max_size=6), st.data())
def test_feeding_equals_parsing_at_once(parts, data):
    """Fed in any fragments, the value is that of the text so far."""
    text = "".join(parts)
    partial = PartialJSON()
    start = 0
    while start < len(text):
        end = data.draw(st.integers(start + 1, len(text)))
        partial.feed(text[start:end])
        start = end
        expected = parse_partial(text[:end])
        assert partial.finish() == expected
        assert partial.value == expected


@given(junk | written().map(lambda pair: pair[1]), st.integers(0, 200))
@example('[{"a": [1, 2], "b": "x"}, [], {}, [3', 200)
def test_passing_over_runs_changes_nothing(text, end):
    """The short cut for runs of simple values reads what stepping through them reads."""
    value = parse_partial(text[:end])
    with patch.multiple(partial_module, _match_items=no_match, _match_members=no_match):
        assert parse_partial(text[:end]) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None),
        ("  ", None),
        ("nul", None),
        ("{", {}),
        ('{"a', {}),
        ('{"a"', {}),
        ('{"a":', {}),
        ('{"a": tru', {}),
        ('{"a": 1', {}),
        ('{"a": 1,', {"a": 1}),
        ('{"a": 1, "b": "x', {"a": 1, "b": "x"}),
        ('{"a": [1, 2', {"a": [1]}),
        ('{"a": [1, {"b": null', {"a": [1, {"b": None}]}),
        ("[1.", []),
        ("[-", []),
        ("12", 12),
        ("12.", None),
        ('"a\\', "a"),
        ('"a\\u00e', "a"),
        ('"a\\ud83d', "a"),
        ('"a\\ud83d\\ude0', "a"),
        ('"a\\ud83d\\ude00', "a😀"),
        ('"a\\ud83dx', "a\ud83dx"),
        ('"a\\\\ud83d', "a\\ud83d"),
        ('{"a": 1} and more', {"a": 1}),
        ("[1, oops, 2]", [1]),
        ('["a\nb"]', ["a"]),
    ],
)
def test_examples(text, value):
    """Open things are closed, half things are left out."""
    assert parse_partial(text) == value


def test_a_number_may_go_on():
    """A number at the end of the text is not final."""
    partial = PartialJSON()
    seen = []
    for fragment in ("1", "2", ".", "5"):
        partial.feed(fragment)
        seen.append(partial.value)
    assert seen == [1, 12, None, 12.5]


def test_earlier_values_stay_as_they_were():
    """Each value is the reader's own."""
    partial = PartialJSON()
    partial.feed('{"a": [1, 2')
    before = partial.value
    partial.feed(", 3]}")
    assert before == {"a": [1]}
    assert partial.value == {"a": [1, 2, 3]}


def test_a_long_text_in_many_fragments():
    """The time is linear, `value` lags by a sixteenth at most, `finish` by none."""

    def make(items):
        return json.dumps([{"name": "x" * 20, "n": n, "tags": ["a", "b"]} for n in range(items)])

    def feed(text):
        partial = PartialJSON()
        for start in range(0, len(text), 50):
            partial.feed(text[start : start + 50])
            value = partial.value
        return partial, value

    text = make(1600)
    partial, value = feed(text)
    assert len(value) >= 1600 * 14 // 16
    assert partial.finish() == json.loads(text)
    assert growth(feed, lambda size: make(size // 10)) < LINEAR


def test_many_escapes_take_linear_time():
    """A string of escapes alone is scanned without recursion."""
    assert parse_partial('"' + "\\n" * 500_000) == "\n" * 500_000
    assert growth(parse_partial, lambda size: '"' + "\\n" * size) < LINEAR


ESCAPE_COUNTS = [31, 32, 33, 999, 1000, 1001, 2001]
ITEM_COUNTS = [15, 16, 17, 18, 31, 32, 33, 34, 65]


@pytest.mark.parametrize("count", ESCAPE_COUNTS)
def test_strings_longer_than_one_match(count):
    """However many escapes a string has, and wherever it is cut, it is read whole."""
    text = json.dumps({"k": ["\n" * count, {"a\n" * count: "b\n" * count}], "z": 1})
    assert parse_partial(text) == json.loads(text)
    assert parse_partial(text[: 2 * count]) == {"k": ["\n" * (count - 4)]}
    assert parse_partial(text[:-2]) == {key: json.loads(text)[key] for key in ["k"]}


@pytest.mark.parametrize("count", ITEM_COUNTS)
@pytest.mark.parametrize(
    "item", ["1", '"a"', "[1, 2]", '{"a": 1}', '{"a": [1], "b": "c"}', "[[1]]", '{"a": {"b": 2}}']
)
def test_runs_longer_than_one_match(count, item):
    """However many items or members there are, a cut drops only what it cuts."""
    array = "[" + ", ".join([item] * count) + "]"
    members = "{" + ", ".join(f'"{n}": {item}' for n in range(count)) + "}"
    value = json.loads(item)
    for text in (array, f"[{array}, {members}, {members}]", f'{{"a": {array}, "b": {members}}}'):
        assert parse_partial(text) == json.loads(text)
        assert parse_partial(text + " ,x") == json.loads(text)
    assert parse_partial(array[:-1] + ", ") == [value] * count
    assert parse_partial(members[:-1] + ', "k') == {str(n): value for n in range(count)}
    for end in range(len(array)):
        assert is_prefix(parse_partial("[" + array[:end]), [json.loads(array)])


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('["a"', ["a"]),
        ('["a" ', ["a"]),
        ('["ab", "a', ["ab", "a"]),
        ('["ab", 12', ["ab"]),
        ('["ab", [1, 2', ["ab", [1]]),
        ('["ab", [1, 2]', ["ab", [1, 2]]),
        ('[{"a": 1, "b": 2', [{"a": 1}]),
        ('[{"a": 1}, {"b": "c"', [{"a": 1}, {"b": "c"}]),
        ('{"a": "b"', {"a": "b"}),
        ('{"a": "b", "c": [1, "d"', {"a": "b", "c": [1, "d"]}),
        ('{"a": 1, "b": 2.', {"a": 1}),
        ('{"a": 1, "b": 2e', {"a": 1}),
        ('{"a": 1, "b": {"c": 3, "d"', {"a": 1, "b": {"c": 3}}),
        ('["a\\n\\', ["a\n"]),
        ('["a\\q", 1]', ["a"]),
    ],
)
def test_the_last_try_of_a_run_leaves_nothing_behind(text, value):
    """A value that is cut where a run of values is matched is read once. (CPython < 3.11.5.)"""
    assert parse_partial(text) == value


@pytest.mark.parametrize(
    ("start", "piece"),
    [
        ('"', "\\n"),
        ('["', "\\n"),
        ("[", "1,"),
        ("[[", "1,"),
        ("", "[1,"),
        ("", '[{"a":'),
        ("[", '"a",'),
        ("[", '"\\n\\n",'),
        ("[{", '"a":[1,2],'),
        ("[", '{"a":[1,"\\n"]},'),
        ("[", " "),
        ("[", "1"),
        ("[", "1.5e"),
        ('[{"a":["', "\\u00e9"),
    ],
)
def test_hostile_repetition_takes_linear_time(start, piece):
    """Twice as much of the same takes twice the time, cut or ended in nonsense."""

    def parse(text):
        parse_partial(text)
        parse_partial(text + "\0")

    assert growth(parse, lambda size: start + piece * size) < LINEAR
