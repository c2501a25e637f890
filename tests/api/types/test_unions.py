"""Unions."""

from __future__ import annotations

import dataclasses
import datetime as dt
from typing import Annotated, Literal

import msgspec
import pydantic
import pytest

from interlingua.api.types import convert, schema_of
from interlingua.spec.errors import MismatchError


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
        value = {"op": "+", "left": value, "right": 1}

    assert any(".left" in problem for problem in problems(value, Plus | Minus))


class Walk(msgspec.Struct, tag="walk", tag_field="kind"):
    steps: int


class Ride(pydantic.BaseModel):
    kind: Literal["ride"]
    stops: int


@dataclasses.dataclass
class Swim:
    kind: Literal["swim"]
    metres: int
    on: Cat | Dog | None = None


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ({"kind": "walk", "steps": "x"}, ["steps: expected integer, got 'x'"]),
        ({"kind": "ride"}, ["stops: Field required"]),
        ({"kind": "swim"}, ["metres: is missing"]),
        (
            {"kind": "swim", "metres": 1, "on": {"lives": "x"}},
            ["on.lives: expected integer, got 'x'"],
        ),
        ({"kind": "fly", "steps": 1}, ["kind: expected 'walk' | 'ride' | 'swim', got 'fly'"]),
        (3, ["expected Walk or Ride or Swim, got a number"]),
    ],
)
def test_a_tag_says_which_member_was_meant(value, found):
    """What is wrong is said of that one, however it is written; a tag of none is itself wrong."""
    assert problems(value, Walk | Ride | Swim) == found


@dataclasses.dataclass
class Span:
    start: int
    end: int

    def __post_init__(self):
        if self.end < self.start:
            raise ValueError("it ends before it starts")


@pytest.mark.parametrize(
    ("value", "type_", "found"),
    [
        ({"start": 2, "end": 1}, Span | None, "it ends before it starts"),
        (0, Annotated[int, msgspec.Meta(ge=1)] | None, "expected int >= 1"),
        (
            0,
            Annotated[int, pydantic.Field(ge=1)] | None,
            "Input should be greater than or equal to 1",
        ),
        ("x", Annotated[int, pydantic.Field(ge=1)] | None, "expected integer or null, got 'x'"),
        ("x", Span | None, "expected Span or null, got 'x'"),
    ],
)
def test_a_value_of_the_right_kind(value, type_, found):
    """What its member says of it is told, and not only that no member fits."""
    assert problems(value, type_) == [found]
