"""Integers in foreign text are read within bounds, and nothing raises."""

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlingua.wire.integers import ANY_LIMIT, read_integer
from support.sources import SOURCE, parsed


@pytest.mark.parametrize(
    ("value", "number"),
    [("0", 0), ("007", 7), ("9223372036854775807", 2**63 - 1), (5, 5), (2**70, 2**70)],
)
def test_digits_and_integers_are_read(value, number):
    """Text in digits, and a JSON integer."""
    assert read_integer(value) == number


@pytest.mark.parametrize(
    "value",
    [
        *("", "-", "-1", "+1", " 1", "1 ", "1_000", "1.0", "1e3", "0x10", "²", "٤٠٠", "4\n"),
        *("9" * 20, "9" * 5000, None, True, 1.0, -1, [], {}, b"1"),
    ],
)
def test_anything_else_is_none(value):
    """Other scripts, signs, spaces, fractions, and more digits than 64 bits have."""
    assert read_integer(value) is None


def test_bounds_are_kept():
    """A value outside of them is none."""
    assert read_integer("599", least=400, most=599) == 599
    assert read_integer("600", least=400, most=599) is None
    assert read_integer(399, least=400, most=599) is None
    assert read_integer("-12", least=-20) == -12
    assert read_integer("123", digits=2) is None
    assert read_integer("-123", least=-999, digits=2) is None


def test_the_widest_text_is_read_whatever_python_allows():
    """`ANY_LIMIT` digits are read with the lowest limit that Python has."""
    limit = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(sys.int_info.str_digits_check_threshold)
    try:
        assert read_integer("1" * ANY_LIMIT, digits=ANY_LIMIT) is not None
        assert read_integer("1" * (ANY_LIMIT + 1), digits=ANY_LIMIT) is None
    finally:
        sys.set_int_max_str_digits(limit)


@given(st.text() | st.integers() | st.from_regex(r"-?\d*", fullmatch=True))
def test_nothing_raises(value):
    """Whatever the value is."""
    number = read_integer(value)
    assert number is None or (type(number) is int and number >= 0)


def test_no_other_module_looks_for_digits():
    """Text that looks like a number is read by `read_integer`, wherever it comes from."""
    others = {"wire/personal_data.py", "providers/catalog/profiles.py", "transport/media.py"}
    looking = parsed(r"\.is(?:decimal|digit|numeric)\(")

    # Digits of a card number, of a version, of an address.
    assert {path.relative_to(SOURCE).as_posix() for path, _ in looking} <= others
