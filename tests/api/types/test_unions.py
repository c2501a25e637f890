"""Unions."""

from __future__ import annotations

import dataclasses
import datetime as dt
from typing import Annotated, Literal

import msgspec
import pydantic
import pytest

from interlingua.api.types.reading import convert, schema_of
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


def test_the_first_member_that_accepts_the_value_is_used():
    """In the order of the union."""
    assert convert({"name": "a"}, Cat | Dog) == Dog("a")
    assert convert("2024-05-06", dt.date | str) == dt.date(2024, 5, 6)
    assert convert("2024-05-06", str | dt.date) == "2024-05-06"
    assert convert("soon", dt.date | str) == "soon"


def test_numbers_keep_their_type():
    """An int stays one beside float, and a float beside int."""
    assert type(convert(3, float | int)) is int
    assert type(convert(3.0, int | float)) is float
    assert type(convert(3.0, int | None)) is int


def test_the_problems_are_those_of_the_closest_member():
    """They say more than that no member accepts the value."""
    assert problems({"lives": "nine"}, Cat | str) == ["lives: expected integer, got 'nine'"]
    assert problems([], Cat | str | None) == ["expected Cat or string or null, got an array"]


def test_equal_members_are_written_once():
    """Two types may have the same schema."""
    assert schema_of(list[int] | tuple[int, ...]) == {
        "anyOf": [{"type": "array", "items": {"type": "integer"}}]
    }


def test_recursive_members_are_decoded_once():
    """A deep invalid value takes linear, not exponential, time."""
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
def test_a_tag_selects_the_member(value, found):
    """The problems are those of that member; an unknown tag is itself the problem."""
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
def test_a_value_of_the_right_type(value, type_, found):
    """The problems are those of the member of that type."""
    assert problems(value, type_) == [found]
