"""What handlers return."""

import dataclasses
import datetime as dt
import decimal
import enum
import pathlib

import msgspec
import pydantic
import pytest
from hypothesis import given

from interlingua.api.tools.runner import to_result_content
from interlingua.conformance.strategies import json_values
from interlingua.spec.content import Audio, Document, Image, Text, ToolCall, ToolResult
from interlingua.spec.errors import ConfigurationError

PNG = b"\x89PNG\r\n\x1a\n...."


@given(json_values)
def test_json_stays_as_it_is(value):
    """Equal, in every part."""
    assert to_result_content(value) == value


@dataclasses.dataclass
class Place:
    city: str
    since: dt.date


class Point(msgspec.Struct):
    x: int


class Model(pydantic.BaseModel):
    at: dt.date


class Unit(enum.Enum):
    C = "celsius"


class Array:
    """Like numpy's."""

    def tolist(self):
        return [1, 2]


DAY = dt.date(2024, 5, 6)
SAID = [
    (Place("Oslo", DAY), {"city": "Oslo", "since": "2024-05-06"}),
    (Point(1), {"x": 1}),
    (Model(at=DAY), {"at": "2024-05-06"}),
    ([Model(at=DAY), Unit.C], [{"at": "2024-05-06"}, "celsius"]),
    (
        {1: decimal.Decimal("1.5"), DAY: pathlib.PurePosixPath("a/b")},
        {"1": "1.5", "2024-05-06": "a/b"},
    ),
    ((), []),
    ((1, (2,)), [1, [2]]),
    ({3}, [3]),
    (Array(), [1, 2]),
    (None, None),
]


@pytest.mark.parametrize(
    ("value", "content"),
    SAID,
    ids=["class", "struct", "model", "list", "dict", "empty", "tuple", "set", "array", "none"],
)
def test_typed_values_become_json(value, content):
    """Every value with a JSON form becomes plain JSON."""
    said = to_result_content(value)

    assert msgspec.json.decode(msgspec.json.encode(said)) == content
    assert type(said) is type(content)


def test_parts_stay_parts():
    """One, several, and with text or JSON beside them."""
    image = Image(url="https://example.com/a.png")

    assert to_result_content(image) == (image,)
    assert to_result_content([image, "words", {"a": 1}]) == (
        image,
        Text(text="words"),
        Text(text='{"a":1}'),
    )


def test_bytes_become_the_part_of_their_media_type():
    """An image, audio, a document, or text."""
    assert to_result_content(PNG) == (Image(data=PNG, media_type="image/png"),)
    assert to_result_content(b"fLaC") == (Audio(data=b"fLaC", media_type="audio/flac"),)
    assert to_result_content(b"%PDF-1") == (Document(data=b"%PDF-1", media_type="application/pdf"),)
    assert to_result_content(b"words") == "words"
    assert to_result_content(["a", PNG, b"b"])[1:] == (
        Image(data=PNG, media_type="image/png"),
        Text(text="b"),
    )


def test_a_tool_result_is_returned_unchanged():
    """A handler may return a whole `ToolResult`."""
    result = ToolResult(tool_call_id="x", content="no", is_error=True)

    assert to_result_content(result) is result


def cycle():
    made = []
    made.append(made)
    return made


@pytest.mark.parametrize(
    "value",
    [b"\xff\xfe\x00", object(), {"a": print}, cycle(), {(1, 2): 3}],
    ids=["bytes", "object", "function", "cycle", "key"],
)
def test_a_value_without_a_json_form_is_an_error(value):
    """The message names the type, or says what to return."""
    with pytest.raises(ConfigurationError, match="The tool returned"):
        to_result_content(value)


def test_a_tool_call_is_data():
    """Parts that a result cannot contain are converted to JSON."""
    assert to_result_content(ToolCall(id="1", name="f"))["name"] == "f"


@pytest.mark.parametrize("kind", [bytearray, memoryview])
def test_every_kind_of_bytes(kind):
    """It is what bytes are: text, an image, or an error."""
    assert to_result_content(kind(b"abc")) == "abc"
    assert to_result_content([kind(PNG), 1]) == to_result_content([PNG, 1])
    with pytest.raises(ConfigurationError, match="unknown media type"):
        to_result_content(kind(b"\xff\xfe"))
