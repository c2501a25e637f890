"""The checker: what a value must be is read from its annotation."""

from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any, Literal, Protocol, TypedDict

import msgspec
import pytest

from interlingua.spec.check import (
    Amount,
    Count,
    Duration,
    Positive,
    Rule,
    Seconds,
    check_fields,
    check_value,
    fits,
    row_for,
    rows_of,
    rows_of_options,
)
from interlingua.spec.errors import ConfigurationError

NAN = float("nan")


class Odd(Protocol):
    """A protocol that a value cannot be asked about."""

    def odd(self):
        """Anything."""


EVEN = Annotated[int, Rule(lambda value: value % 2 == 0, "an even number")]
SHORT = Annotated[str | bytes, Rule(lambda value: len(value) < 3, "short")]
CASES = {
    "string": (str, ["", "a"], [b"a", 5, None], "a string"),
    "optional": (str | None, ["a", None], [5], "a string"),
    "flag": (bool, [True], [1, "yes"], "True or False"),
    "integer": (int, [-5, 0], [1.5, True, "5"], "an integer"),
    "number": (float, [1, 1.5], [True, NAN, float("inf"), "1"], "a number"),
    "count": (Count, [0, 7], [-1, True, 1.0], "an integer of 0 or more"),
    "positive": (Positive, [1], [0], "an integer of 1 or more"),
    "amount": (Amount, [0, 0.5], [-0.1, NAN], "a number of 0 or more"),
    "seconds": (Seconds, [0, 1.5], [-1, NAN], "a number of seconds from 0"),
    "duration": (Duration, [0.1], [0, True], "a number greater than 0"),
    "choice": (Literal["a", "b"], ["a"], ["c", 1], "'a' or 'b'"),
    "one choice": (Literal["a"], ["a"], ["b"], "'a'"),
    "function": (Callable[[int], str], [len, str], ["len"], "a function"),
    "choice or function": (
        Literal["a", "b"] | Callable[[], None], ["a", print], ["c", 5], "'a', 'b' or a function",
    ),
    "texts": (Iterable[str], [["a"], iter("a"), ()], ["ab", {"a": 1}, [5]], "a list of strings"),
    "tuple of texts": (tuple[str, ...], [("a",)], [["a"], (5,)], "a list of strings"),
    "list of texts": (list[str], [["a"]], [("a",), [5]], "a list of strings"),
    "mapping": (Mapping[str, Any], [{}, {"a": 1}], [[], "a"], "a mapping"),
    "texts by name": (Mapping[str, str], [{"a": "b"}], [{"a": 1}, {1: ""}], "a mapping of strings"),
    "flags by name": (
        Mapping[str, bool], [{"a": True}], [{"a": 1}], "a mapping of strings to True or False",
    ),
    "mappings by name": (
        Mapping[str, Mapping[str, Any]], [{"a": {}}], [{"a": 1}], "a mapping of mappings",
    ),
    "class": (ConfigurationError, [ConfigurationError("a")], [5], "a ConfigurationError"),
    "own rule": (EVEN | None, [2, None], [3, "2"], "an even number"),
    "own rule of several": (SHORT, ["ab", b"ab"], ["abcd", b"abcd"], "short"),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_value_fits_its_annotation_or_the_error_says_what_is_expected(name):
    """The row decides, and its words are in the error."""
    annotation, right, wrong, expected = CASES[name]
    row = row_for("x", annotation)

    assert row.expected == expected
    for value in right:
        assert fits(row, value)
        check_value(row, value)
    for value in wrong:
        assert not fits(row, value)
        with pytest.raises(ConfigurationError, match=r"^a\.x must be") as caught:
            check_value(row, value, "a")
        assert f"must be {expected}, not " in caught.value.message


@pytest.mark.parametrize("annotation", [Any, object, Odd, str | Any, Mapping[str, Any] | Odd])
def test_an_annotation_that_allows_anything_has_no_row(annotation):
    """Nor has one about which a value cannot be asked."""
    assert row_for("x", annotation) is None


class Inner(msgspec.Struct):
    """A record of numbers."""

    size: Count = 0
    name: str | None = None


class Options(TypedDict, total=False):
    """Options of a function."""

    size: Count
    anything: Any
    unread: "NotImported"  # noqa: F821 -- as if only type checkers imported it


def test_the_fields_of_a_record_are_checked_one_by_one():
    """The error has the path of the first wrong field."""
    check_fields(Inner(size=1, name="a"), "limits")

    assert [row.name for row in rows_of(Inner)] == ["size", "name"]
    with pytest.raises(ConfigurationError, match=r"^limits\.size must be an integer of 0 or more"):
        check_fields(Inner(size=-1), "limits")
    with pytest.raises(ConfigurationError, match=r"^limits\.name must be a string, not 5\.$"):
        check_fields(Inner(name=5), "limits")


def test_the_rows_of_options_are_read_from_a_typed_dict():
    """A key that may be anything, or whose type is not imported, has none."""
    rows = rows_of_options(Options)

    assert [*rows] == ["size", "anything", "unread"]
    assert rows["size"].expected == "an integer of 0 or more"
    assert rows["anything"] is rows["unread"] is None
