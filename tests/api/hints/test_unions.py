"""Unions."""

from __future__ import annotations

import dataclasses
import datetime as dt
from typing import Literal

import pytest

from interlingua.api.hints import MismatchError, convert, schema_of


@dataclasses.dataclass
class Cat:
    lives: int


@dataclasses.dataclass
class Dog:
    name: str


@dataclasses.dataclass
class Plus:
    op: Literal["+"]
    left: Plus | Minus | int
    right: Plus | Minus | int


@dataclasses.dataclass
class Minus:
    op: Literal["-"]
    left: Plus | Minus | int
    right: Plus | Minus | int


def problems(value, type_):
    with pytest.raises(MismatchError) as caught:
        convert(value, type_)
    return [str(problem) for problem in caught.value.problems]


def test_the_first_member_that_fits_is_taken():
    """In the order they are written."""
    assert convert({"name": "a"}, Cat | Dog) == Dog("a")
    assert convert("2024-05-06", dt.date | str) == dt.date(2024, 5, 6)
    assert convert("2024-05-06", str | dt.date) == "2024-05-06"
    assert convert("soon", dt.date | str) == "soon"


def test_numbers_keep_their_type():
    """An int stays one beside float, and a float beside int."""
    assert type(convert(3, float | int)) is int
    assert type(convert(3.0, int | float)) is float
    assert type(convert(3.0, int | None)) is int


def test_the_closest_member_says_what_is_wrong():
    """Problems inside a member say more than that none fits."""
    assert problems({"lives": "nine"}, Cat | str) == ["lives: expected integer, got 'nine'"]
    assert problems([], Cat | str | None) == ["expected Cat or string or null, got an array"]


def test_equal_members_are_said_once():
    """Two types that are the same in JSON."""
    assert schema_of(list[int] | tuple[int, ...]) == {
        "anyOf": [{"type": "array", "items": {"type": "integer"}}]
    }


def test_members_that_lead_back_are_read_once():
    """A deep value that fits nothing costs its size, not two to its depth."""
    value: object = "wrong"
    for _ in range(60):
        value = {"op": "?", "left": value, "right": 1}

    assert any(".left" in problem for problem in problems(value, Plus | Minus))
