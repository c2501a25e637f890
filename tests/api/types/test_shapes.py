"""Forms, each in both directions."""

import pathlib

import msgspec
import pytest

from interlingua.api.types.reading import decode
from interlingua.api.types.records import Field
from interlingua.api.types.shapes import (
    Anything,
    Array,
    Choice,
    Constrained,
    Definitions,
    Dictionary,
    FixedArray,
    Record,
    Scalar,
    default_to_json,
)
from interlingua.spec.errors import MismatchError

INTEGER = Scalar(int, {"type": "integer"})
TEXT = Scalar(str, {"type": "string"})


def schema(shape):
    definitions = Definitions()
    return definitions.finish(shape.schema(definitions))


def problems(shape, value):
    with pytest.raises(MismatchError) as caught:
        decode(shape, value)
    return [str(problem) for problem in caught.value.problems]


def test_anything_is_itself():
    """No condition, no change."""
    assert schema(Anything()) == {}
    assert decode(Anything(), {"a": [1]}) == {"a": [1]}


def test_whole_numbers_may_have_a_point():
    """3.0 is an integer in JSON Schema; 3.5, "3" and true are not."""
    assert decode(INTEGER, 3.0) == 3
    assert type(decode(INTEGER, 3.0)) is int
    for value in (3.5, "3", True, None):
        assert problems(INTEGER, value)


def test_a_choice_tells_true_from_one():
    """Values are told apart as in JSON."""
    choice = Choice([(1, "one"), ("b", "bee")])

    assert schema(choice) == {"enum": [1, "b"]}
    assert decode(choice, 1.0) == "one"
    assert problems(choice, True) == ["expected 1 | 'b', got a boolean"]
    assert problems(choice, ["b"]) == ["expected 1 | 'b', got an array"]


def test_arrays_report_each_item():
    """All that is wrong is said, with its place."""
    array = Array(INTEGER, set, unique=True)

    assert schema(array) == {"type": "array", "items": {"type": "integer"}, "uniqueItems": True}
    assert decode(array, [1, 2, 1]) == {1, 2}
    assert problems(array, [1, "x", None]) == [
        "[1]: expected integer, got 'x'",
        "[2]: expected integer, got null",
    ]


def test_what_cannot_be_built_is_a_problem():
    """Items that no set can hold."""
    assert problems(Array(Anything(), set, unique=True), [[]]) == ["unhashable type: 'list'"]


def test_fixed_arrays_have_one_length():
    """Each place has its own form."""
    pair = FixedArray((INTEGER, TEXT))

    assert schema(pair)["prefixItems"] == [{"type": "integer"}, {"type": "string"}]
    assert decode(pair, [1, "a"]) == (1, "a")
    assert problems(pair, [1]) == ["expected array of 2, got 1"]
    assert problems(pair, ["a", 1]) == [
        "[0]: expected integer, got 'a'",
        "[1]: expected string, got a number",
    ]


def test_keys_that_are_numbers_are_text_in_json():
    """And come back as numbers."""
    by_number = Dictionary(INTEGER, TEXT, dict)

    assert schema(by_number)["propertyNames"] == {"pattern": "^-?[0-9]+$"}
    assert decode(by_number, {"-3": "a"}) == {-3: "a"}
    assert problems(by_number, {"x": "a"}) == ["x: expected integer, got 'x'"]


def record(**facts):
    made = Record("Point")
    made.fields = (
        (Field(name="x", key="X", type=int, required=True), INTEGER),
        (Field(name="y", key="y", type=int, required=False, default=2, description="Up."), INTEGER),
    )
    for name, value in facts.items():
        setattr(made, name, value)
    return made


def test_records_read_by_key_and_build_by_name():
    """The JSON name and the Python name may differ; a default is not filled in here."""
    assert decode(record(), {"X": 1, "z": 0}) == {"x": 1}
    assert schema(record()) == {
        "type": "object",
        "properties": {
            "X": {"type": "integer"},
            "y": {"type": "integer", "description": "Up.", "default": 2},
        },
        "required": ["X"],
    }


def test_records_say_what_is_missing_and_what_is_too_much():
    """Every field is named."""
    assert problems(record(closed=True), {"y": "a", "z": 1}) == [
        "X: is missing",
        "y: expected integer, got 'a'",
        "z: is not known",
    ]


def test_a_rest_takes_the_other_keys():
    """As `**kwargs` does."""
    open_ = record(rest=TEXT)

    assert decode(open_, {"X": 1, "z": "a"}) == {"x": 1, "z": "a"}
    assert schema(open_)["additionalProperties"] == {"type": "string"}


def test_a_tag_has_to_be_there():
    """It tells the members of a union apart."""
    tagged = record(tag=("kind", "point"))

    assert schema(tagged)["properties"]["kind"] == {"type": "string", "enum": ["point"]}
    assert schema(tagged)["required"] == ["kind", "X"]
    assert decode(tagged, {"kind": "point", "X": 1}) == {"x": 1}
    assert problems(tagged, {"X": 1}) == ["kind: expected 'point'"]


def test_limits_are_kept():
    """A value outside of them is a problem; one they say nothing of is not."""
    limited = Constrained(INTEGER, {"description": "few"}, (msgspec.Meta(ge=1), msgspec.Meta(le=3)))

    assert schema(limited) == {
        "type": "integer",
        "minimum": 1,
        "maximum": 3,
        "description": "few",
    }
    assert decode(limited, 3) == 3
    assert problems(limited, 0) == ["expected int >= 1"]
    assert decode(Constrained(TEXT, {}, (msgspec.Meta(ge=1),)), "a") == "a"


def test_defaults_that_json_cannot_say_are_not_said():
    """A function or a lone surrogate has no JSON form; a path has."""
    assert default_to_json(print) is msgspec.UNSET
    assert default_to_json("\ud800") is msgspec.UNSET
    assert default_to_json(pathlib.PurePosixPath("a/b")) == "a/b"
    assert default_to_json((1, {2: "a"})) == [1, {"2": "a"}]
