"""Forms, each in both directions."""

import pathlib

import msgspec
import pytest

from interlingua.api.types.reading import decode
from interlingua.api.types.records import Field, RecordType
from interlingua.api.types.schema import Definitions
from interlingua.api.types.shapes import (
    Array,
    Choice,
    Constrained,
    Dictionary,
    FixedArray,
    Record,
    Scalar,
    Shape,
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
        decode(shape.decode, value)
    return [str(problem) for problem in caught.value.problems]


def test_anything_accepts_every_value():
    """The value is not changed."""
    assert schema(Shape()) == {}
    assert decode(Shape().decode, {"a": [1]}) == {"a": [1]}


def test_a_float_without_a_fraction_is_an_integer():
    """3.0 is an integer in JSON Schema; 3.5, "3" and true are not."""
    assert decode(INTEGER.decode, 3.0) == 3
    assert type(decode(INTEGER.decode, 3.0)) is int
    for value in (3.5, "3", True, None):
        assert problems(INTEGER, value)


def test_the_keys_of_a_dictionary_are_integers_in_digits():
    """A model wrote them: any other text is a problem, also one of thousands of digits."""
    shape = Dictionary(INTEGER, TEXT, dict)

    assert decode(shape.decode, {"-7": "a", str(2**70): "b"}) == {-7: "a", 2**70: "b"}
    for key in ("9" * 5_000, "²", "1_0", "--1", ""):
        assert len(problems(shape, {key: "a"})) == 1


def test_a_choice_distinguishes_true_from_one():
    """As JSON does."""
    choice = Choice([(1, "one"), ("b", "bee")])

    assert schema(choice) == {"enum": [1, "b"]}
    assert decode(choice.decode, 1.0) == "one"
    assert problems(choice, True) == ["expected 1 | 'b', got a boolean"]
    assert problems(choice, ["b"]) == ["expected 1 | 'b', got an array"]


def test_arrays_report_each_item():
    """All problems are reported, with their paths."""
    array = Array(INTEGER, set, unique=True)

    assert schema(array) == {"type": "array", "items": {"type": "integer"}, "uniqueItems": True}
    assert decode(array.decode, [1, 2, 1]) == {1, 2}
    assert problems(array, [1, "x", None]) == [
        "[1]: expected integer, got 'x'",
        "[2]: expected integer, got null",
    ]


def test_a_failed_constructor_is_a_problem():
    """A set cannot hold items that are not hashable."""
    (problem,) = problems(Array(Shape(), set, unique=True), [[]])

    assert "unhashable type: 'list'" in problem


def test_fixed_arrays_have_one_length():
    """Each position has its own type."""
    pair = FixedArray((INTEGER, TEXT))

    assert schema(pair)["prefixItems"] == [{"type": "integer"}, {"type": "string"}]
    assert decode(pair.decode, [1, "a"]) == (1, "a")
    assert problems(pair, [1]) == ["expected array of 2, got 1"]
    assert problems(pair, ["a", 1]) == [
        "[0]: expected integer, got 'a'",
        "[1]: expected string, got a number",
    ]


def test_integer_keys_are_strings_in_json():
    """They are decoded to integers."""
    by_number = Dictionary(INTEGER, TEXT, dict)

    assert schema(by_number)["propertyNames"] == {"pattern": "^-?[0-9]+$"}
    assert decode(by_number.decode, {"-3": "a"}) == {-3: "a"}
    assert problems(by_number, {"x": "a"}) == ["x: expected integer, got 'x'"]


def record(rest=None, **facts):
    made = Record(RecordType(name="Point", **facts))
    made.fields = (
        (Field(name="x", key="X", type=int, default=msgspec.NODEFAULT), INTEGER),
        (Field(name="y", key="y", type=int, default=2, description="Up."), INTEGER),
    )
    made.rest = rest
    return made


def test_records_read_by_key_and_build_by_name():
    """The JSON name and the Python name may differ; a default is not filled in here."""
    assert decode(record().decode, {"X": 1, "z": 0}) == {"x": 1}
    assert schema(record()) == {
        "type": "object",
        "properties": {
            "X": {"type": "integer"},
            "y": {"type": "integer", "description": "Up.", "default": 2},
        },
        "required": ["X"],
    }


def test_records_report_missing_and_unknown_keys():
    """Every such key is named."""
    assert problems(record(closed=True), {"y": "a", "z": 1}) == [
        "X: is missing",
        "y: expected integer, got 'a'",
        "z: is not known",
    ]


def test_rest_takes_the_other_keys():
    """As `**kwargs` does."""
    open_ = record(rest=TEXT)

    assert decode(open_.decode, {"X": 1, "z": "a"}) == {"x": 1, "z": "a"}
    assert schema(open_)["additionalProperties"] == {"type": "string"}


def test_a_tag_is_required():
    """It identifies the member of a union."""
    tagged = record(tag=("kind", "point"))

    assert schema(tagged)["properties"]["kind"] == {"type": "string", "enum": ["point"]}
    assert schema(tagged)["required"] == ["kind", "X"]
    assert decode(tagged.decode, {"kind": "point", "X": 1}) == {"x": 1}
    assert problems(tagged, {"X": 1}) == ["kind: expected 'point'"]


def test_limits_are_enforced():
    """A value outside a limit is a problem; a limit for another type is ignored."""
    limited = Constrained(INTEGER, {"description": "few"}, (msgspec.Meta(ge=1), msgspec.Meta(le=3)))

    assert schema(limited) == {
        "type": "integer",
        "minimum": 1,
        "maximum": 3,
        "description": "few",
    }
    assert decode(limited.decode, 3) == 3
    assert problems(limited, 0) == ["expected int >= 1"]
    assert decode(Constrained(TEXT, {}, (msgspec.Meta(ge=1),)).decode, "a") == "a"


def test_defaults_without_a_json_form_are_omitted():
    """A function or a lone surrogate has no JSON form; a path has one."""
    assert default_to_json(print) is msgspec.UNSET
    assert default_to_json("\ud800") is msgspec.UNSET
    assert default_to_json(pathlib.PurePosixPath("a/b")) == "a/b"
    assert default_to_json((1, {2: "a"})) == [1, {"2": "a"}]
