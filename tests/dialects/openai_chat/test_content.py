"""Parts and content parts."""

import pytest

from interlingua.dialects.openai_chat.content import (
    decode_part,
    encode_part,
    join_content,
    read_part,
)
from interlingua.dialects.openai_chat.messages import decode_assistant, encode_assistant
from interlingua.spec.content import Image, Opaque, Refusal, Text, Thinking, ToolCall
from interlingua.spec.errors import DecodeError
from interlingua.spec.messages import Message
from interlingua.spec.warnings import WarningList
from interlingua.wire.fields import Fields
from interlingua.wire.tool_calls import counting_ids

NAME = "openai_chat"


def encode(part):
    losses = WarningList()
    block = encode_part(part, losses)
    return block, [warning.code for warning in losses.warnings]


BOTH_WAYS = [
    ({"type": "text", "text": " a\n"}, Text(text=" a\n")),
    (
        {"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}},
        Text(text="a", extra={NAME: {"cache_control": {"type": "ephemeral"}}}),
    ),
    (
        {"type": "refusal", "refusal": "no"},
        Refusal(text="no", extra={NAME: {"~sent_as": "part"}}),
    ),
    (
        {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}], "closed": True},
        Thinking(text="hm", extra={NAME: {"~sent_as": "part", "closed": True}}),
    ),
]


@pytest.mark.parametrize(("wire", "part"), BOTH_WAYS)
def test_both_ways(wire, part):
    """Each kind of part is read and written back the same."""
    assert decode_part(wire) == part
    assert encode(part) == (wire, [])


@pytest.mark.parametrize(
    "wire",
    [
        {"type": "input_image", "image": 1},
        {"role": "user", "content": "x"},
        {"type": ["text"]},
        {"type": "thinking", "thinking": [{"type": "reference", "ids": [1]}]},
    ],
)
def test_what_has_no_part_is_kept(wire):
    """Unknown kinds, and known ones of a shape we could not rebuild, stay as they are."""
    part = decode_part(wire)

    assert part == Opaque(dialect=NAME, data=wire)
    assert encode(part) == (wire, [])


def test_thought_in_several_chunks_is_given_back():
    """The text is read; the chunks are kept."""
    chunks = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    part = decode_part({"type": "thinking", "thinking": chunks})

    assert part.text == "ab"
    assert encode(part)[0]["thinking"] == chunks


def test_wrong_types_name_their_path():
    """In a request, a text that is no text is refused."""
    with pytest.raises(DecodeError) as caught:
        decode_part({"type": "text", "text": 5}, "messages[0].content[1]")

    assert caught.value.path == "messages[0].content[1].text"


def test_answers_are_read_leniently():
    """In an answer it is kept."""
    wire = {"type": "text", "text": 5}

    assert read_part(wire) == Opaque(dialect=NAME, data=wire)


@pytest.mark.parametrize(
    ("part", "code"),
    [
        (Opaque(dialect="gemini_generate", data={}), "foreign_block_dropped"),
        (ToolCall(id="c", name="f"), "misplaced_part_dropped"),
    ],
)
def test_what_cannot_be_said_is_warned_of(part, code):
    """Left out, with a warning that says what."""
    assert encode(part) == (None, [code])


def test_join_content():
    """One plain text is a string; anything else is a list."""
    text = {"type": "text", "text": "a"}

    assert join_content([text]) == "a"
    assert join_content([{**text, "x": 1}]) == [{**text, "x": 1}]
    assert join_content([text, text]) == [text, text]
    assert join_content([text, text], flat=True) == "aa"


# In an answer.


def read(wire):
    fields = Fields(wire, strict=False)
    return decode_assistant(fields, counting_ids(), "~received"), fields.left


def write(*parts):
    return encode_assistant(Message(role="assistant", content=parts), WarningList(), answer=True)


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


def test_wrong_types_stay_where_they_are():
    """In an answer nothing is refused."""
    wire = {"content": 5, "refusal": 5, "tool_calls": 5, "function_call": 5, "reasoning": 5}

    assert read(wire) == ((), wire)


def test_images_in_answers_are_content():
    """A model may draw."""
    assert write(Image(url="u"))["content"] == [{"type": "image_url", "image_url": {"url": "u"}}]


def test_refusals_are_one_field():
    """Several are joined."""
    assert write(Refusal(text="a"), Refusal(text="b"))["refusal"] == "ab"
