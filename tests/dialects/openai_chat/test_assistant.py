"""The assistant's message."""

from interlingua.dialects.openai_chat.assistant import (
    complete_assistant,
    decode_assistant,
    encode_assistant,
    join_content,
)
from interlingua.spec.content import Image, Opaque, Refusal, Text, Thinking, ToolCall
from interlingua.spec.messages import Message
from interlingua.wire.carry import Losses, counting_ids
from interlingua.wire.shape import Fields

NAME = "openai_chat"


def read(wire):
    fields = Fields(wire, strict=False)
    return decode_assistant(fields, counting_ids(), "received"), fields.left


def write(*parts, extra=None):
    message = Message(role="assistant", content=parts, extra=extra or {})
    return complete_assistant(encode_assistant(message, Losses(), "m", answer=True), message)


def test_order_of_parts():
    """Thought, content, refusal, calls, whatever the order of the fields."""
    parts, left = read(
        {
            "tool_calls": [{"id": "c", "function": {"name": "f", "arguments": "{}"}}],
            "refusal": "no",
            "content": "a",
            "reasoning": "hm",
        }
    )

    assert [part.kind for part in parts] == ["thinking", "text", "refusal", "tool_call"]
    assert left == {}


def test_empty_and_null_content():
    """Null is no text; empty text is text."""
    assert read({"content": None}) == ((), {})
    assert read({"content": ""}) == ((Text(text=""),), {})
    assert read({"content": []}) == ((), {"content": []})


def test_content_that_is_an_object():
    """Structured output that came parsed is text, and goes back as an object."""
    (part,), _ = read({"content": {"a": 1}})

    assert part.text == '{"a":1}'
    assert write(part)["content"] == {"a": 1}


def test_field_bug_92_content_as_a_list():
    """An answer may be a list, with thoughts among its parts."""
    wire = [
        {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]},
        {"type": "text", "text": "a"},
    ]
    parts, left = read({"content": wire})

    assert [part.kind for part in parts] == ["thinking", "text"]
    assert write(*parts, extra={NAME: left})["content"] == wire


def test_thoughts_of_others_are_shown_in_answers():
    """A server that relays another model's thought says it in the usual field."""
    assert write(Thinking(text="hm", signature="S"), Text(text="a")) == {
        "role": "assistant",
        "reasoning_content": "hm",
        "content": "a",
    }
    assert write(Thinking(redacted=True, data="x")) == {"role": "assistant", "content": None}


def test_refusals_are_one_field():
    """Several are joined."""
    assert write(Refusal(text="a"), Refusal(text="b"))["refusal"] == "ab"


def test_odd_calls_keep_their_place():
    """A call we could not read stays among the others."""
    odd = {"id": "x", "type": "mcp"}
    wire = [odd, {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}]
    parts, _ = read({"content": None, "tool_calls": wire})

    assert isinstance(parts[0], Opaque)
    assert isinstance(parts[1], ToolCall)
    assert write(*parts)["tool_calls"] == wire


def test_wrong_types_stay_where_they_are():
    """In an answer nothing is refused."""
    wire = {"content": 5, "refusal": 5, "tool_calls": 5, "function_call": 5, "reasoning": 5}

    assert read(wire) == ((), wire)


def test_join_content():
    """One plain text is a string; anything else is a list."""
    text = {"type": "text", "text": "a"}

    assert join_content([text]) == "a"
    assert join_content([{**text, "x": 1}]) == [{**text, "x": 1}]
    assert join_content([text, text]) == [text, text]
    assert join_content([text, text], flat=True) == "aa"


def test_images_in_answers_are_content():
    """A model may draw."""
    assert write(Image(url="u"))["content"] == [{"type": "image_url", "image_url": {"url": "u"}}]
