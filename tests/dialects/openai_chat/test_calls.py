"""Tool calls."""

import pytest

from interlingua.dialects.openai_chat.calls import (
    decode_calls,
    encode_call,
    encode_legacy,
    number_calls,
    unnumber_calls,
)
from interlingua.spec.content import Opaque, ToolCall
from interlingua.spec.errors import DecodeError
from interlingua.wire.carry import counting_ids
from interlingua.wire.shape import Fields

NAME = "openai_chat"


def decode(*calls, strict=True, mark="sent"):
    return decode_calls(Fields({"tool_calls": list(calls)}, strict=strict), counting_ids(), mark)


def call(arguments="{}", **more):
    return {
        "id": "c1",
        "type": "function",
        "function": {"name": "f", "arguments": arguments},
        **more,
    }


ODD = [
    call('{"a": 1}'),
    call(""),
    call("{broken"),
    call("null"),
    call({"a": 1}),
    call(None),
    call(index=3),
    call(extra_content={"google": {"thought_signature": "S"}}),
    call(type=None),
    {"id": "c1", "function": {"name": "f", "arguments": "{}"}},
    {"id": "c1", "type": "function", "function": {"name": "f"}},
    {"id": "", "type": "function", "function": {"name": "f", "arguments": "{}"}},
    {"type": "function", "function": {"name": "f", "arguments": "{}", "x": 1}},
    {"id": "c1", "type": "custom", "custom": {"name": "f", "input": "1 + 1"}},
    {**call(), "custom": {"name": "", "input": ""}},
]


@pytest.mark.parametrize("wire", ODD)
def test_every_form_comes_back(wire):
    """Whatever form a call has, it is read as a call and written back the same."""
    (part,) = decode(wire, strict=False)

    assert isinstance(part, ToolCall)
    assert part.name == "f"
    assert encode_call(part, answer=False) == wire


def test_arguments_are_read_and_kept():
    """The text is parsed, and kept to the letter."""
    (part,) = decode(call('{"a":  1}'))

    assert part == ToolCall(
        id="c1", name="f", arguments={"a": 1}, raw_arguments='{"a":  1}', extra={}
    )


def test_field_bug_10_empty_arguments():
    """Empty text is an empty object."""
    (part,) = decode(call(""))

    assert part.arguments == {}
    assert part.is_valid


def test_field_bug_11_broken_arguments():
    """Text that is no object is kept, and the call is not valid."""
    (part,) = decode(call("{broken"))

    assert (part.arguments, part.raw_arguments, part.is_valid) == ({}, "{broken", False)


def test_custom_call():
    """A custom tool takes free text."""
    (part,) = decode({"id": "c", "type": "custom", "custom": {"name": "sql", "input": "SELECT"}})

    assert (part.type, part.raw_arguments, part.arguments) == ("custom", "SELECT", {})


def test_field_bug_7_missing_id():
    """A call without an id gets one, which goes with its result; the sender sees its own form."""
    wire = {"id": "", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    (received,) = decode(wire, strict=False, mark="received")

    assert received.id == "1"
    assert encode_call(received, answer=False)["id"] == "1"
    assert encode_call(received, answer=True) == wire


def test_unknown_calls_are_kept():
    """A kind of call that is not known, or has no name, is carried."""
    wire = {"id": "c", "type": "mcp", "mcp": {"name": "f"}}

    assert decode(wire) == [Opaque(dialect=NAME, data=wire, extra={NAME: {"sent_as": "tool_call"}})]
    assert isinstance(decode({"id": "c", "type": "function"})[0], Opaque)


def test_wrong_types_name_their_path():
    """In a request a call must be an object, and its name text."""
    with pytest.raises(DecodeError, match=r"tool_calls\[1\]: expected an object"):
        decode(call(), 5)
    with pytest.raises(DecodeError, match=r"tool_calls\[0\]\.function\.name: expected a string"):
        decode(call(function={"name": 5}))


def test_legacy_call_both_ways():
    """The older form of one call has no id; it is given one."""
    wire = {"name": "f", "arguments": '{"a": 1}'}
    fields = Fields({"function_call": wire})
    (part,) = decode_calls(fields, counting_ids(), "sent")

    assert (part.id, part.arguments) == ("1", {"a": 1})
    assert fields.left == {}
    assert encode_legacy(part) == wire


def test_foreign_call():
    """Arguments that came as an object are written as text; free text stays text."""
    assert encode_call(ToolCall(id="c", name="f", arguments={"a": 1}), answer=False) == {
        "id": "c",
        "type": "function",
        "function": {"name": "f", "arguments": '{"a":1}'},
    }
    custom = ToolCall(id="c", name="f", type="custom", raw_arguments="x")
    assert encode_call(custom, answer=False)["custom"] == {"name": "f", "input": "x"}


def test_numbers_of_calls_come_and_go():
    """A whole message said as a delta has numbered calls, and loses only what it was given."""
    message = {"role": "assistant", "tool_calls": [{"id": "a"}, {"id": "b", "index": 7}]}
    delta = number_calls(message)

    assert [item["index"] for item in delta["tool_calls"]] == [0, 1]
    assert unnumber_calls(delta) == message
