"""Functions as records."""

from __future__ import annotations

import dataclasses
import datetime as dt
import functools
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import pydantic
import pytest

from interlingua.api.types.reading import read_function
from interlingua.spec.errors import ConfigurationError, MismatchError

if TYPE_CHECKING:
    from decimal import Decimal as OnlyForTheChecker


@dataclasses.dataclass
class City:
    name: str


@dataclasses.dataclass
class Place:
    city: City


def book(
    day: dt.date,
    seats: Annotated[int, msgspec.Meta(ge=1)] = 1,
    *,
    note: Annotated[str, "For the kitchen."] = None,  # noqa: RUF013 -- it is written so
    signal: OnlyForTheChecker,
    **wishes: str,
) -> OnlyForTheChecker:
    """
    Book a table.

    Args:
        day: Which day.
        note: Not this one.
        wishes: Anything else.
    """


def test_a_signature_is_a_closed_object():
    """It has types, defaults and descriptions; parameters that are left out are not read."""
    read = read_function(book, leave_out=frozenset({"signal", "absent"}))

    assert (read.name, read.description) == ("book", "Book a table.")
    assert read.schema == {
        "type": "object",
        "properties": {
            "day": {"type": "string", "format": "date", "description": "Which day."},
            "seats": {"type": "integer", "minimum": 1, "default": 1},
            "note": {
                "anyOf": [{"type": "string"}, {"type": "null"}],
                "description": "For the kitchen.",
                "default": None,
            },
        },
        "required": ["day"],
        "additionalProperties": {"type": "string"},
    }


def test_arguments_are_converted_to_the_hints():
    """Only given arguments are passed on; defaults are left to the function."""
    read = read_function(book, leave_out=frozenset({"signal"}))

    assert read.read({"day": "2024-05-06", "pet": "dog"}) == {
        "day": dt.date(2024, 5, 6),
        "pet": "dog",
    }
    with pytest.raises(MismatchError, match=r"day: is missing; seats: expected int >= 1"):
        read.read({"seats": 0})


def test_unknown_arguments_are_rejected():
    """The function would fail on them."""

    def plain(a, b: int = 2): ...

    read = read_function(plain)
    assert read.schema["additionalProperties"] is False
    assert read.schema["properties"]["a"] == {}
    with pytest.raises(MismatchError, match="c: is not known"):
        read.read({"a": 1, "c": 1})


def test_deep_nesting_is_a_mismatch():
    """Arguments beyond the recursion limit are rejected without a crash."""

    class Node(msgspec.Struct):
        next: Node | None = None

    def plain(node: Node, other=None): ...

    value = None
    for _ in range(5000):
        value = {"next": value}

    with pytest.raises(MismatchError, match="deeply"):
        read_function(plain, names={"Node": Node}).read({"node": value})


def test_arguments_bound_by_partial_are_not_in_the_schema():
    """The model does not see a key that is bound to a function."""

    def fetch(url: str, key: str, depth: int = 1):
        """Fetch it."""

    read = read_function(functools.partial(fetch, key="sk-secret"))

    assert read.name == "fetch"
    assert read.description == "Fetch it."
    assert "sk-secret" not in str(read.schema)
    assert set(read.schema["properties"]) == {"url", "depth"}


def test_callable_objects_and_methods_can_be_read():
    """An unbound method takes self; a bound method and a callable object do not."""

    class Counter:
        def add(self, n: int): ...

        def __call__(self, n: dt.date): ...

    assert read_function(Counter.add).takes_self
    assert not read_function(Counter().add).takes_self
    assert read_function(Counter.add).schema == read_function(Counter().add).schema
    assert read_function(Counter()).schema["properties"]["n"]["format"] == "date"


def test_the_docstring_of_a_callable_object():
    """It is that of `__call__`, or else of the class; a cached function has its own."""

    class Search:
        """Holds an index."""

        def __call__(self, words: str):
            """
            Search the web.

            Args:
                words: What to look for.
            """

    class Bare:
        """Only this."""

        def __call__(self, words: str): ...

    @functools.cache
    def cached(words: str):
        """Mine."""

    read = read_function(Search())

    assert read.description == "Search the web."
    assert read.schema["properties"]["words"]["description"] == "What to look for."
    assert read_function(Bare()).description == "Only this."
    assert read_function(cached).description == "Mine."


def test_wrapped_functions_are_read_through():
    """A decorator that uses `functools.wraps` changes nothing."""

    @functools.wraps(book)
    def wrapper(*args: Any, **kwargs: Any):
        return book(*args, **kwargs)

    leave_out = frozenset({"signal"})
    assert read_function(wrapper, leave_out=leave_out).schema == (
        read_function(book, leave_out=leave_out).schema
    )


def test_hints_may_use_local_names():
    """The caller passes the names of the scope that defines the function."""

    class Local(msgspec.Struct):
        a: int

    def take(x: Local): ...

    with pytest.raises(ConfigurationError, match=r"take.*Local"):
        read_function(take)
    assert read_function(take, names={"Local": Local}).read({"x": {"a": 1}}) == {"x": Local(1)}


def test_local_types_may_refer_to_each_other():
    """Local names are used for local classes, and not for other classes."""

    @dataclasses.dataclass
    class Inner:
        a: int

    @dataclasses.dataclass
    class Outer:
        inner: Inner
        more: list[Inner] = dataclasses.field(default_factory=list)

    def take(x: Outer, y: list[Outer] | None = None): ...

    read = read_function(take, names=dict(locals()))

    assert read.read({"x": {"inner": {"a": 1}}}) == {"x": Outer(Inner(1))}
    with pytest.raises(MismatchError, match=r"x.inner.a"):
        read.read({"x": {"inner": {"a": "no"}}})

    def elsewhere(x: Place): ...

    named = {"City": str, "Place": Place}
    assert read_function(elsewhere, names=named).read({"x": {"city": {"name": "Oslo"}}}) == {
        "x": Place(City("Oslo"))
    }


def many(*values: int): ...
def placed(a: int, /): ...
def pictured(picture: bytes): ...
def fielded(a: int = pydantic.Field(3)): ...


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (many, "'values' of many is variadic"),
        (placed, "'a' of placed is positional-only"),
        (pictured, "parameter 'picture' of pictured: bytes"),
        (fielded, "'a' of fielded has a pydantic Field"),
        (dict, "no readable signature"),
    ],
    ids=lambda given: getattr(given, "__name__", None),
)
def test_unsupported_parameters_are_rejected(function, words):
    """The message names the parameter and the function."""
    with pytest.raises(ConfigurationError, match=words):
        read_function(function)
