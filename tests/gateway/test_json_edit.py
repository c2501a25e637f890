"""Values are set in JSON with comments, and everything else stays as it was written."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlingua.gateway.json_edit import Item, read_json, set_json
from interlingua.spec.errors import ConfigurationError

COMMENTED = """\
// the settings of one user
{
  "theme": "dark", // as at night
  /* tools */
  "env": {
    "A": "1" // the first
  },
  "list": [1, 2,],
}
"""


def test_comments_and_order_stay():
    """Each line that was there is there afterwards, but for a comma."""
    written = set_json(COMMENTED, ("env", "B"), "2")
    written = set_json(written, ("model",), "m")

    assert read_json(written) == {**read_json(COMMENTED), "env": {"A": "1", "B": "2"}, "model": "m"}
    kept = [line.replace(",", "") for line in written.splitlines()]
    assert [line for line in kept if line in COMMENTED.replace(",", "")] == [
        line.replace(",", "") for line in COMMENTED.splitlines()
    ]
    assert '"A": "1", // the first\n    "B": "2"\n' in written


def test_a_value_is_replaced():
    """In its place, with what follows it."""
    assert set_json(COMMENTED, ("theme",), "light") == COMMENTED.replace("dark", "light")


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("", '{\n  "a": {\n    "b": 1\n  }\n}\n'),
        ("{}", '{\n  "a": {\n    "b": 1\n  }\n}'),
        ('{"c": 2}', '{"c": 2, "a": {"b": 1}}'),
        ('{"c": 2,}', '{"c": 2, "a": {"b": 1}}'),
        ('{"a": {}}', '{"a": {\n  "b": 1\n}}'),
        ('{\n\t"c": 2\n}', '{\n\t"c": 2,\n\t"a": {\n\t\t"b": 1\n\t}\n}'),
        ("{ // none yet\n}", '{ // none yet\n  "a": {\n    "b": 1\n  }\n}'),
        ('\ufeff{"a": {"b": 0}}', '\ufeff{"a": {"b": 1}}'),
        ('{"a": 0, "a": {"b": 0}}', '{"a": 0, "a": {"b": 1}}'),
    ],
)
def test_forms(text, written):
    """Indents, tabs, one line, trailing commas, a byte order mark, a name twice."""
    got = set_json(text, ("a", "b"), 1)

    assert got.rstrip() == written.rstrip()
    assert set_json(got, ("a", "b"), 1) == got


def test_an_item_of_a_list():
    """It is found by a field, or added."""
    text = '{"l": [{"k": "x", "v": 1}]}'
    added = set_json(text, ("l", Item("k", "y")), {"k": "y"})

    assert read_json(added)["l"] == [{"k": "x", "v": 1}, {"k": "y"}]
    assert read_json(set_json(added, ("l", Item("k", "x")), {"k": "x"}))["l"][0] == {"k": "x"}
    assert read_json(set_json("", ("l", Item("k", "x")), {"k": "x"})) == {"l": [{"k": "x"}]}


@pytest.mark.parametrize(
    "text",
    ["{", '{"a"}', '{"a": }', "{} {}", '{"a": 1 "b": 2}', "/* {}", '{"a": "x', "nothing", "{,}"],
)
def test_what_is_not_json(text):
    """Is told with its line, and nothing is written."""
    with pytest.raises(ConfigurationError, match="Line 1 is not valid JSON"):
        set_json(text, ("b",), 1)


@pytest.mark.parametrize("text", ["[]", "1", '{"a": 1}', '{"a": [1]}'])
def test_what_is_no_object(text):
    """A value of the user is not replaced by an object."""
    with pytest.raises(ConfigurationError, match="neither an object nor a list"):
        set_json(text, ("a", "b"), 1)


NAMES = st.text(max_size=4)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)


@given(
    st.dictionaries(NAMES, VALUES, max_size=4),
    NAMES,
    NAMES,
    VALUES,
    st.sampled_from([None, 2, "\t"]),
)
def test_only_this_value_changes(whole, outer, inner, value, indent):
    """Whatever the object is, and however it is written."""
    text = json.dumps(whole, indent=indent)
    if not isinstance(whole.get(outer, {}), dict):
        return
    expected = {**whole, outer: {**whole.get(outer, {}), inner: value}}
    written = set_json(text, (outer, inner), value)

    assert json.loads(written) == expected
    assert list(json.loads(written)) == list(expected)
