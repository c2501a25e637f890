"""Arguments that come piece by piece."""

import pytest

from interlingua.dialects.gemini_generate.partial import PartialArguments


def put_together(*pieces):
    arguments = PartialArguments()
    for piece in pieces:
        arguments.feed(piece)
    return arguments.finish()


def test_text_is_joined_by_path():
    """Pieces of one place are one text, whatever comes between."""
    assert put_together(
        {"jsonPath": "$.city", "stringValue": "Os", "willContinue": True},
        {"jsonPath": "$.days", "numberValue": 3},
        {"jsonPath": "$.city", "stringValue": "lo"},
        {"jsonPath": "$.exact", "boolValue": False},
        {"jsonPath": "$.zone", "nullValue": "NULL_VALUE"},
    ) == {"city": "Oslo", "days": 3, "exact": False, "zone": None}


def test_paths_lead_into_objects_and_arrays():
    """Members, indexes and quoted names are followed and made."""
    assert put_together(
        {"jsonPath": "$.a.b[0].c", "stringValue": "x"},
        {"jsonPath": "$.a.b[1].c", "stringValue": "y"},
        {"jsonPath": "$.a.b[0].d", "numberValue": 1.5},
        {"jsonPath": "$['two words']", "stringValue": "z"},
        {"jsonPath": '$["q"][0]', "stringValue": "w"},
    ) == {"a": {"b": [{"c": "x", "d": 1.5}, {"c": "y"}]}, "two words": "z", "q": ["w"]}


def test_a_far_index_fills_no_memory():
    """An index past the end is the next one."""
    assert put_together({"jsonPath": "$.a[999999999]", "stringValue": "x"}) == {"a": ["x"]}


@pytest.mark.parametrize(
    "piece",
    [None, 5, {}, {"jsonPath": 5}, {"jsonPath": "$"}, {"jsonPath": "$.a"}, {"jsonPath": ""}],
)
def test_what_is_no_piece_says_nothing(piece):
    """Odd pieces are passed over."""
    assert put_together(piece) == {}


def test_a_path_through_a_value_is_lost():
    """A place under a text cannot be; the text stays."""
    assert put_together(
        {"jsonPath": "$.a", "stringValue": "x"}, {"jsonPath": "$.a.b.c", "stringValue": "y"}
    ) == {"a": "x"}
