"""Reading JSON objects."""

import copy
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlingua.conformance.strategies import json_objects, json_values
from interlingua.spec.content import Text
from interlingua.spec.errors import DecodeError, InvalidRequestError
from interlingua.wire.fields import (
    Fields,
    count,
    extra_of,
    known_int,
    request_errors,
    restore,
    wrong_type,
)

TYPED = ["text", "number", "integer", "flag", "array", "object", "texts", "fields"]
VALUES = {
    "text": "",
    "number": 0.5,
    "integer": 0,
    "flag": False,
    "array": [],
    "object": {},
    "texts": ["a", ""],
}
WRONG = {
    "text": 5,
    "number": "5",
    "integer": 1.5,
    "flag": 0,
    "array": {"a": 1},
    "object": [1],
    "texts": ["a", 1],
    "fields": "x",
}


@given(json_objects, st.sampled_from(TYPED))
def test_lenient_reading_loses_nothing(value, getter):
    """What a lenient reader returns and what it leaves make up the object."""
    for key, item in value.items():
        fields = Fields(value, strict=False)
        found = getattr(fields, getter)(key)
        taken = {name: value[name] for name in value if name not in fields.left}
        assert {**fields.left, **taken} == value
        assert (found is None) is (key in fields.left)
        if getter not in {"texts", "fields"}:
            assert found in (item, None)


@given(json_objects, st.sampled_from(TYPED))
def test_strict_reading_takes_or_refuses(value, getter):
    """A strict reader takes a field, finds it null, or names it in a `DecodeError`."""
    for key, item in value.items():
        fields = Fields(value, "body")
        try:
            found = getattr(fields, getter)(key)
        except DecodeError as error:
            assert error.path == f"body.{key}"
            assert item is not None
        else:
            assert (found is None) is (item is None)


@given(json_objects)
def test_reading_does_not_change_the_object(value):
    """Fields are taken from a copy."""
    before = copy.deepcopy(value)
    fields = Fields(value, strict=False)

    for key in before:
        fields.take(key)

    assert value == before
    assert fields.left == {}


@given(json_values)
def test_counts_are_counts(value):
    """Any JSON value is a whole number from zero up, or None."""
    found = count(value)

    assert found is None or (type(found) is int and found >= 0)
    assert known_int(value) == (found or 0)


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize(("getter", "value"), VALUES.items())
def test_field_of_the_right_type(getter, value, strict):
    """A value of the right type is taken out, falsy or not."""
    fields = Fields({"a": value, "b": 1}, strict=strict)

    found = getattr(fields, getter)("a")

    assert found == (tuple(value) if getter == "texts" else value)
    assert fields.left == {"b": 1}


@pytest.mark.parametrize(("getter", "value"), WRONG.items())
def test_field_of_the_wrong_type(getter, value):
    """A value of the wrong type is an error if strict, and stays if lenient."""
    lenient = Fields({"a": value}, strict=False)

    assert getattr(lenient, getter)("a") is None
    assert lenient.left == {"a": value}
    with pytest.raises(DecodeError, match=r"^at\[0\]\.a: expected "):
        getattr(Fields({"a": value}, "at[0]"), getter)("a")


@pytest.mark.parametrize("getter", TYPED)
def test_null_and_absent(getter):
    """Null is None and stays in `left`; absent is None."""
    fields = Fields({"a": None})

    assert getattr(fields, getter)("a") is None
    assert getattr(fields, getter)("b") is None
    assert fields.left == {"a": None}


@pytest.mark.parametrize("getter", ["number", "integer"])
def test_a_boolean_is_no_number(getter):
    """True is not 1."""
    fields = Fields({"a": True}, strict=False)

    assert getattr(fields, getter)("a") is None
    assert fields.left == {"a": True}


def test_nested_paths():
    """The path of a field is told from the top, and nested readers are as strict."""
    inner = Fields({"a": {"b": {"c": 5}}}).fields("a").fields("b")

    assert inner.at("c") == "a.b.c"
    with pytest.raises(DecodeError, match=r"^a\.b\.c: expected a string, got number\.$"):
        inner.text("c")
    assert Fields({"a": {"c": 5}}, strict=False).fields("a").text("c") is None


def test_take():
    """Any field can be taken as it is."""
    fields = Fields({"a": [1]})

    assert fields.take("a") == [1]
    assert fields.take("a") is None


@pytest.mark.parametrize("strict", [True, False])
def test_need(strict):
    """A string that must be there is an error without it, whatever the mode."""
    fields = Fields({"id": "", "name": None}, "tool", strict=strict)

    assert fields.need("id") == ""
    assert fields.left == {"name": None}
    with pytest.raises(DecodeError, match=r"tool\.name: expected a string, got null\."):
        fields.need("name")
    with pytest.raises(DecodeError, match=r"tool\.id: expected a string, got null\."):
        fields.need("id")


@pytest.mark.parametrize(
    ("value", "name"),
    [([], "array"), ("", "string"), (None, "null"), (1, "number"), (0.5, "number"), (True, "bool")],
)
@pytest.mark.parametrize("strict", [True, False])
def test_what_is_no_object(value, name, strict):
    """Fields are read of objects only."""
    with pytest.raises(DecodeError, match=f"body: expected an object, got {name}"):
        Fields(value, strict=strict)


def test_wrong_type():
    """The error says where, what was wanted and what was there."""
    error = wrong_type("messages[2].role", "a string", {})

    assert error.message == "messages[2].role: expected a string, got object."
    assert error.path == "messages[2].role"


def test_request_errors():
    """What cannot be read in a request is a 400 that names the path."""
    with pytest.raises(InvalidRequestError) as caught, request_errors():
        Fields({"model": 5}).text("model")

    assert caught.value.message == "model: expected a string, got number."
    assert (caught.value.status_code, caught.value.error_code) == (400, "invalid_request")
    assert isinstance(caught.value.__cause__, DecodeError)


def test_request_nested_too_deeply():
    """A request that exhausts the stack is a 400 too."""
    with pytest.raises(InvalidRequestError, match="nested too deeply") as caught, request_errors():
        raise RecursionError
    assert caught.value.status_code == 400


def test_other_errors_pass():
    """Only reading errors are the sender's."""
    with pytest.raises(KeyError), request_errors():
        raise KeyError
    with request_errors():
        pass


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0, 0), (7, 7), (7.9, 7), (-3, 0), (10**400, 10**400), (None, None), (True, None),
        ("7", None), (math.nan, None), (math.inf, None), (-math.inf, None),
    ],
)  # fmt: skip
def test_count(value, expected):
    """Negative counts are zero; what is no number is None."""
    assert count(value) == expected


def test_extra_of():
    """Only a mapping that this dialect left is found."""
    part = Text(text="x", extra={"openai_chat": {"a": 1}, "gemini_generate": 5})

    assert extra_of(part, "openai_chat") == {"a": 1}
    assert extra_of(part, "gemini_generate") == {}
    assert extra_of(part, "anthropic_messages") == {}


def test_restore():
    """Kept fields come back beside the block's own, which win; the part is as it was."""
    part = Text(text="x", extra={"openai_chat": {"type": "old", "annotations": []}})

    block = restore({"type": "text", "text": "x"}, part, "openai_chat")

    assert block == {"type": "text", "text": "x", "annotations": []}
    assert part.extra == {"openai_chat": {"type": "old", "annotations": []}}
