"""Parts."""

import re

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlingua.conformance.strategies import json_objects, json_values, media, texts, words
from interlingua.spec.content import (
    PART_TYPES,
    Audio,
    Document,
    Image,
    Opaque,
    Refusal,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    argument_problem,
)
from interlingua.spec.contracts import WireCall
from interlingua.spec.messages import Message
from interlingua.spec.request import Request
from interlingua.spec.response import Response
from interlingua.wire.json_text import dump_text, loads_object

ONE_OF_EACH = [
    Text(text="hi"),
    Image(url="https://example.com/cat.png"),
    Audio(data=b"RIFF"),
    Document(text="plain"),
    ToolCall(id="call_1", name="look"),
    ToolResult(tool_call_id="call_1", content="found"),
    Thinking(text="hm"),
    Refusal(text="no"),
    Opaque(dialect="openai_chat", data={"x": 1}),
]


@given(json_objects)
def test_call_whose_text_is_an_object_is_valid(arguments):
    """A call with the text of any JSON object is valid."""
    assert ToolCall(id="1", name="n", raw_arguments=dump_text(arguments)).is_valid


@given(st.text(max_size=8) | json_values.map(dump_text))
def test_validity_agrees_with_the_reader(raw):
    """A call is valid exactly when its text can be read as arguments."""
    assert ToolCall(id="1", name="n", raw_arguments=raw).is_valid is (loads_object(raw) is not None)


@pytest.mark.parametrize(
    "raw", [None, "", " \n", "null", "[]", "{}", '{"a": 1}', '{"a": "\\ud800"}']
)
def test_valid_call(raw):
    """No text, empty text, null, an empty array and objects are arguments."""
    assert ToolCall(id="1", name="n", raw_arguments=raw).is_valid


@pytest.mark.parametrize(
    "raw",
    ['{"a": 1', "[1]", '"text"', "1", "{'a': 1}", '{"a": NaN}', '{"a": 1e999}', "[" * 100_000],
)
def test_invalid_call(raw):
    """Text that is cut, no object, or no JSON makes a call invalid, and is kept."""
    call = ToolCall(id="1", name="n", raw_arguments=raw)

    assert not call.is_valid
    assert call.raw_arguments == raw


def test_custom_call_takes_any_text():
    """The input of a custom tool is free text."""
    assert ToolCall(id="1", name="n", raw_arguments="SELECT 1", type="custom").is_valid


@given(words | json_objects | st.none() | st.booleans() | st.integers())
def test_result_keeps_text_and_json(content):
    """Text and JSON values that are no lists stay as they are, falsy ones too."""
    result = ToolResult(tool_call_id="1", content=content)

    assert result.content == content
    assert result.parts is None


@given(st.lists(texts() | media(), min_size=1))
def test_result_takes_a_list_of_parts(parts):
    """A list of parts, their JSON form, and a tuple of them are the same content."""
    expected = tuple(parts)
    as_json = [msgspec.to_builtins(part) for part in parts]

    assert ToolResult(tool_call_id="1", content=parts).parts == expected
    assert ToolResult(tool_call_id="1", content=expected).parts == expected
    assert ToolResult(tool_call_id="1", content=as_json).parts == expected


@given(st.lists(json_values))
def test_result_keeps_a_list_of_json(items):
    """A list that is not all parts is a JSON value, also if it is empty."""
    assert ToolResult(tool_call_id="1", content=items).content == items


def test_tuple_of_json_is_a_list():
    """A tuple that is not of parts is the JSON array it stands for."""
    assert ToolResult(tool_call_id="1", content=(1, "a")).content == [1, "a"]


def test_result_of_one_part():
    """One part is a tuple of one."""
    assert ToolResult(tool_call_id="1", content=Text(text="x")).parts == (Text(text="x"),)


def test_result_of_text_beside_parts():
    """Strings beside a part are text parts, as in a message."""
    image = Image(url="https://example.com/cat.png")

    result = ToolResult(tool_call_id="1", content=["see", image])

    assert result.parts == (Text(text="see"), image)


@pytest.mark.parametrize(
    "items",
    [
        [{"kind": "text"}],
        [{"kind": "nothing", "text": "x"}],
        [{"kind": "text", "text": "x"}, {"text": "y"}],
        [[1], {"kind": 5}],
        [{"kind": ["text"], "text": "x"}],
    ],
)
def test_list_that_only_looks_like_parts_is_json(items):
    """A list with an item that does not read as a part is left alone."""
    result = ToolResult(tool_call_id="1", content=items)

    assert result.parts is None
    assert result.content == items


def test_result_without_content():
    """No content is the empty tuple of parts, which is not the JSON value `[]`."""
    assert ToolResult(tool_call_id="1").parts == ()
    assert ToolResult(tool_call_id="1", content=[]).parts is None
    assert ToolResult(tool_call_id="1", content=()) != ToolResult(tool_call_id="1", content=[])


def test_result_does_not_change_what_it_is_given():
    """The caller's list is as it was."""
    given_list = [{"kind": "text", "text": "x"}]

    ToolResult(tool_call_id="1", content=given_list)

    assert given_list == [{"kind": "text", "text": "x"}]


@pytest.mark.parametrize("part", ONE_OF_EACH, ids=lambda part: part.kind)
def test_parts_are_frozen(part):
    """No field of a part can be set."""
    with pytest.raises(AttributeError):
        part.extra = {"x": 1}


@pytest.mark.parametrize("part", ONE_OF_EACH, ids=lambda part: part.kind)
def test_kind_is_the_tag(part):
    """The kind a part says is the kind its JSON says."""
    assert msgspec.to_builtins(part)["kind"] == part.kind


def test_one_of_each_is_all():
    """The examples above have every kind of part."""
    assert {type(part) for part in ONE_OF_EACH} == set(PART_TYPES)


def test_defaults_are_not_shared():
    """Each part has its own empty `extra` and `arguments`."""
    one, other = ToolCall(id="1", name="n"), ToolCall(id="2", name="n")

    assert one.extra is not other.extra
    assert one.arguments is not other.arguments


def test_empty_values_are_values():
    """Empty text and empty bytes are kept and are not None."""
    assert Text(text="").text == ""
    assert Image(data=b"").data == b""
    assert Thinking(text="", signature="").signature == ""


DEEP: dict = {}
_inner = DEEP
for _ in range(100_000):
    _inner["a"] = {}
    _inner = _inner["a"]


@pytest.mark.parametrize("value", [DEEP, 10**5000], ids=["deep", "digits"])
def test_a_value_without_a_text_is_shown_by_its_type(value):
    """A value without a text is shown by its type, and what is beside it is shown."""
    call = ToolCall(id="c1", name="look", arguments={"v": value})
    assert "id='c1'" in repr(call)
    assert "arguments=<dict>" in repr(call)

    request = Request(model="m-1", messages=[Message.assistant([Text("hi"), call])])
    wire = WireCall(path="/p", body={"v": value})
    for shown, part in ((request, "m-1"), (Response(model="m-1", raw=value), "m-1"), (wire, "/p")):
        assert part in repr(shown)
        assert len(repr(shown)) < 5_000


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"a":"1",}', r"not valid JSON \(.* at character [89]\)"),
        ('{"a":"1"', r"not valid JSON \(.* at character 8\)"),
        ('{"a": NaN}', r"not valid JSON \(NaN is not a JSON value\)"),
        ("[" * 100_000, r"not valid JSON \(nested too deeply\)"),
        ("[1]", "not a JSON object"),
    ],
    ids=["comma", "cut", "nan", "deep", "array"],
)
def test_invalid_json_in_arguments_is_reported_at_its_position(text, problem):
    """Invalid JSON is reported as that, at its position."""
    assert not ToolCall(id="c", name="f", raw_arguments=text).is_valid
    assert re.fullmatch(problem, argument_problem(text))
