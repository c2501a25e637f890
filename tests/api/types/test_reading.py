"""Types as schemas, and values back."""

from __future__ import annotations

import collections
import copy
import dataclasses
import datetime as dt
import decimal
import enum
import json
import pathlib
import uuid
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Annotated, Any, Generic, Literal, NamedTuple, NewType, TypedDict, TypeVar

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typing_extensions import Doc, TypeAliasType

from interlingua.api.types.reading import convert, schema_of
from interlingua.api.types.schema import Validator
from interlingua.conformance.strategies import json_values
from interlingua.spec.errors import ConfigurationError, MismatchError
from support.run_profile import examples

T = TypeVar("T")


class Colour(enum.Enum):
    """Of the paint."""

    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


@dataclasses.dataclass
class Node:
    """
    A node.

    Args:
        label: What it is called.
    """

    label: str
    children: list[Node] = dataclasses.field(default_factory=list)
    colour: Colour = Colour.RED


class Options(TypedDict, total=False):
    deep: bool


class Pair(msgspec.Struct, Generic[T]):
    first: T
    second: T | None = None


class Point(NamedTuple):
    x: int
    y: int = 0


@dataclasses.dataclass
class Wrapped(Generic[T]):
    value: T


def wrapped(pair):
    type_, values = pair
    return Wrapped[type_], values.map(Wrapped)


texts = st.text(max_size=5)
integers = st.integers(-(2**53), 2**53)
finite = st.floats(allow_nan=False, allow_infinity=False)
PLAIN = [
    (int, integers),
    (bool, st.booleans()),
    (str, texts),
    (float, finite),
    (type(None), st.none()),
    (Annotated[int, msgspec.Meta(ge=0, lt=10)], st.sampled_from([0, 9])),
    (Annotated[str, msgspec.Meta(min_length=1, max_length=2)], st.text(min_size=1, max_size=2)),
    (Colour, st.sampled_from(Colour)),
    (Level, st.sampled_from(Level)),
    (Literal["a", 2] | None, st.sampled_from(["a", 2, None])),
    (Options, st.sampled_from([{}, {"deep": True}])),
    (Node, st.builds(Node, texts, st.lists(st.builds(Node, texts), max_size=2))),
    (Pair[int], st.builds(Pair, integers, st.none() | integers)),
]
plain = st.sampled_from(PLAIN)
written = st.sampled_from(
    [
        (dt.datetime, st.datetimes()),
        (dt.date, st.dates()),
        (dt.time, st.times()),
        (dt.timedelta, st.timedeltas(dt.timedelta(0), dt.timedelta(365))),
        (decimal.Decimal, st.decimals(allow_nan=False, allow_infinity=False)),
        (uuid.UUID, st.uuids()),
        (frozenset[int], st.frozensets(integers, max_size=3)),
    ]
)


def grown(leaves):
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            inner.map(lambda pair: (list[pair[0]], st.lists(pair[1], max_size=3))),
            inner.map(lambda pair: (tuple[pair[0], ...], st.lists(pair[1], max_size=2).map(tuple))),
            inner.map(lambda pair: (tuple[pair[0], int], st.tuples(pair[1], integers))),
            inner.map(
                lambda pair: (dict[str, pair[0]], st.dictionaries(texts, pair[1], max_size=3))
            ),
            inner.map(lambda pair: (pair[0] | None, st.none() | pair[1])),
            inner.map(wrapped),
        ),
        max_leaves=4,
    )


@st.composite
def typed(draw, leaves):
    type_, values = draw(grown(leaves))
    return type_, draw(values)


@given(typed(plain | written))
def test_values_round_trip(pair):
    """A value as JSON matches the schema of its type, and converts back to the value."""
    type_, value = pair
    said = json.loads(msgspec.json.encode(value))

    assert Validator(schema_of(type_))(said) == []
    assert convert(said, type_) == value


def near(draw, said):
    """The JSON with one place changed a little, as models do it, or entirely."""
    inner = isinstance(said, (list, dict)) and said and draw(st.integers(0, 3))
    if inner and isinstance(said, dict):
        key = draw(st.sampled_from(sorted(said)))
        return {**said, key: near(draw, said[key])}
    if inner:
        at = draw(st.integers(0, len(said) - 1))
        return [*said[:at], near(draw, said[at]), *said[at + 1 :]]
    return draw(st.sampled_from(slips(said)) | json_values)


def slips(said):
    match said:
        case bool():
            return [int(said), str(said), None]
        case int():
            return [float(said), said == 1, str(said), said + 0.5, -said, said + 1]
        case float():
            return [str(said), None, -said]
        case str():
            return ["", said + "x", [said], None]
        case list():
            return [said[1:], [*said, *said[:1]], [*said, 1], {}, None]
        case dict():
            return [dict(list(said.items())[1:]), {**said, "other": 1}, [], None]
        case _:
            return [0, "", [], {}, False]


@pytest.mark.parametrize("leaf", PLAIN, ids=[str(type_) for type_, _ in PLAIN])
@settings(max_examples=examples(50))  # of each leaf
@given(data=st.data())
def test_schema_and_conversion_agree(leaf, data):
    """A value that the schema rejects is a mismatch; one that it accepts is converted."""
    type_, value = data.draw(typed(st.just(leaf)))
    said = near(data.draw, json.loads(msgspec.json.encode(value)))
    before = copy.deepcopy(said)

    try:
        convert(said, type_)
        fits = True
    except MismatchError as error:
        fits = False
        assert error.problems

    assert said == before
    assert fits == (Validator(schema_of(type_))(said) == [])


@given(typed(plain | written), json_values)
def test_conversion_raises_only_mismatch_errors(pair, said):
    """Any JSON for any type gives a value or a `MismatchError`."""
    try:
        convert(said, pair[0])
    except MismatchError as error:
        assert error.message


def test_a_record():
    """It has types, defaults and descriptions; a recursive type is a definition."""
    node = {
        "type": "object",
        "description": "A node.",
        "properties": {
            "label": {"type": "string", "description": "What it is called."},
            "children": {"type": "array", "items": {"$ref": "#/$defs/Node"}, "default": []},
            "colour": {
                "type": "string",
                "description": "Of the paint.",
                "enum": ["red", "blue"],
                "default": "red",
            },
        },
        "required": ["label"],
    }

    assert schema_of(Node) == {**node, "$defs": {"Node": node}}
    assert convert({"label": "a", "children": [{"label": "b", "colour": "blue"}]}, Node) == Node(
        "a", [Node("b", colour=Colour.BLUE)]
    )


NUMBERS = {"type": "array", "items": {"type": "integer"}}
SAID = [
    (Any, {}),
    (None, {"type": "null"}),
    (list, {"type": "array", "items": {}}),
    (tuple, {"type": "array", "items": {}}),
    (tuple[()], {"type": "array", "minItems": 0, "maxItems": 0, "items": {}}),
    (dict, {"type": "object", "additionalProperties": True}),
    (Sequence[int], NUMBERS),
    (collections.deque[int], NUMBERS),
    (AbstractSet[int], NUMBERS | {"uniqueItems": True}),
    (Mapping[str, int], {"type": "object", "additionalProperties": {"type": "integer"}}),
    (
        dict[Literal["a"], int],
        {
            "type": "object",
            "additionalProperties": {"type": "integer"},
            "propertyNames": {"type": "string", "enum": ["a"]},
        },
    ),
    (int | None, {"anyOf": [{"type": "integer"}, {"type": "null"}]}),
    (Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}),
    (Literal[Level.LOW, 5], {"type": "integer", "enum": [1, 5]}),
    (dt.datetime, {"type": "string", "format": "date-time"}),
    (pathlib.Path, {"type": "string"}),
    (NewType("UserId", int), {"type": "integer"}),
    (T, {}),
    (int | msgspec.UnsetType, {"type": "integer"}),
    (Annotated[str, "Words."], {"type": "string", "description": "Words."}),
    (Annotated[str, Doc("Words.")], {"type": "string", "description": "Words."}),
    (Annotated[str, {"not": "hashable"}], {"type": "string"}),
    (
        Annotated[list[int], msgspec.Meta(min_length=1, description="Some.")],
        NUMBERS | {"minItems": 1, "description": "Some."},
    ),
]


@pytest.mark.parametrize(("type_", "schema"), SAID, ids=[str(type_) for type_, _ in SAID])
def test_types_and_their_schemas(type_, schema):
    """Each kind of type has a JSON Schema."""
    assert schema_of(type_) == schema


READ = [
    ("2024-05-06T07:08:09Z", dt.datetime, dt.datetime(2024, 5, 6, 7, 8, 9, tzinfo=dt.UTC)),
    ("07:30", dt.time, dt.time(7, 30)),
    (1.5, decimal.Decimal, decimal.Decimal("1.5")),
    ("a/b", pathlib.Path, pathlib.Path("a/b")),
    ({"x": 1}, Point, Point(1, 0)),
    ([1, 1], frozenset[int], frozenset({1})),
    (2, Level, Level.HIGH),
    (1, Literal[Level.LOW], Level.LOW),
    ({"3": 1}, dict[int, int], {3: 1}),
    ({"first": 1}, Pair[int], Pair(1)),
]


@pytest.mark.parametrize(("said", "type_", "value"), READ, ids=[str(row[1]) for row in READ])
def test_json_and_its_values(said, type_, value):
    """Each kind of value is decoded from JSON."""
    assert convert(said, type_) == value
    assert type(convert(said, type_)) is type(value)


class Tree:
    """What `type Tree = list[Tree] | int` makes, from Python 3.12 on."""

    __name__ = "Tree"

    @property
    def __value__(self):
        return list[self] | int


def test_a_named_alias_may_be_recursive():
    """A recursive alias is a definition; any other is inlined."""
    tree = Tree()

    assert schema_of(tree)["$defs"]["Tree"]["anyOf"][0]["items"] == {"$ref": "#/$defs/Tree"}
    assert convert([1, [2]], tree) == [1, [2]]
    assert schema_of(TypeAliasType("Names", list[int])) == NUMBERS


REFUSED = [
    (bytes, "base64"),
    (list[bytes], "items"),
    (dict[str, complex], "values"),
    (dict[tuple[int, ...], int], "keys"),
    (Callable[[], int], "Callable"),
    (enum.Enum("Odd", {"A": (1, 2)}), "Odd"),
    (enum.Flag("Bits", "A B"), "Bits"),
    (Literal[b"a"], "Literal"),
    ("Node", "Node"),
    (type, "type"),
]


@pytest.mark.parametrize(("type_", "word"), REFUSED, ids=[str(type_) for type_, _ in REFUSED])
def test_a_type_without_a_schema_is_named(type_, word):
    """It is a `ConfigurationError` that names the type."""
    with pytest.raises(ConfigurationError, match=word):
        schema_of(type_)


def test_the_field_of_a_type_without_a_schema_is_named():
    """The message has the path to it."""
    bad = dataclasses.make_dataclass("Bad", [("picture", list[bytes])])

    with pytest.raises(ConfigurationError, match="field 'picture' of Bad, its items: bytes"):
        schema_of(bad)


def test_all_problems_are_listed():
    """Each problem has its path."""
    with pytest.raises(MismatchError) as caught:
        convert([{"children": [{"label": 1}], "colour": "green"}], list[Node])

    assert [str(problem) for problem in caught.value.problems] == [
        "[0].label: is missing",
        "[0].children[0].label: expected string, got a number",
        "[0].colour: expected 'red' | 'blue', got 'green'",
    ]


def test_a_constructor_may_reject_a_value():
    """Its message is the problem."""

    @dataclasses.dataclass
    class Even:
        number: int

        def __post_init__(self):
            if self.number % 2:
                raise ValueError("it is odd")

    with pytest.raises(MismatchError, match=r"\[1\]: it is odd"):
        convert([{"number": 2}, {"number": 3}], list[Even])


def test_deep_nesting_is_a_mismatch():
    """JSON beyond the recursion limit is rejected without a crash."""
    value: Any = {"label": "a"}
    for _ in range(5000):
        value = {"label": "a", "children": [value]}

    with pytest.raises(MismatchError, match="deeply"):
        convert(value, Node)
