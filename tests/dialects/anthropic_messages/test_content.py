"""Parts <-> content blocks."""

import pytest

from interlingua.dialects.anthropic_messages.content import decode_part, encode_part, read_part
from interlingua.dialects.anthropic_messages.tools import hosted_use
from interlingua.spec.content import (
    Audio,
    Document,
    Image,
    Opaque,
    Refusal,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from interlingua.spec.errors import DecodeError
from interlingua.spec.warnings import WarningList

NAME = "anthropic_messages"

PAIRS = [
    ({"type": "text", "text": " hi\n"}, Text(text=" hi\n")),
    (
        {"type": "text", "text": "hi", "cache_control": {"type": "ephemeral"}},
        Text(text="hi", extra={NAME: {"cache_control": {"type": "ephemeral"}}}),
    ),
    (
        {
            "type": "image",
            "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw=="},
        },
        Image(data=b"\x89PNG", media_type="image/png"),
    ),
    (
        {"type": "image", "source": {"type": "url", "url": "https://example.com/a"}},
        Image(url="https://example.com/a"),
    ),
    ({"type": "image", "source": {"type": "file", "file_id": "f"}}, Image(file_id="f")),
    (
        {
            "type": "document",
            "source": {"type": "text", "media_type": "text/plain", "data": "x"},
            "title": "t",
        },
        Document(text="x", media_type="text/plain", file_name="t"),
    ),
    (
        {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {"a": None}},
        ToolCall(id="toolu_1", name="f", arguments={"a": None}),
    ),
    (
        {"type": "tool_result", "tool_use_id": "t", "content": "no", "is_error": True},
        ToolResult(tool_call_id="t", content="no", is_error=True),
    ),
    (
        {"type": "tool_result", "tool_use_id": "t", "content": [{"type": "text", "text": "x"}]},
        ToolResult(tool_call_id="t", content=(Text(text="x"),)),
    ),
    (
        {"type": "thinking", "thinking": "", "signature": "S"},
        Thinking(text="", signature="S", extra={NAME: {}}),
    ),
    (
        {"type": "redacted_thinking", "data": "D"},
        Thinking(redacted=True, data="D", extra={NAME: {}}),
    ),
    (
        {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}},
        hosted_use({"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}),
    ),
]


@pytest.mark.parametrize(("block", "part"), PAIRS)
def test_block_and_part(block, part):
    """Each block decodes to its part, and the part encodes to the block."""
    losses = WarningList()

    assert decode_part(block) == part
    assert encode_part(part, losses) == block
    assert losses.warnings == []


@pytest.mark.parametrize(
    "block",
    [
        {
            "type": "image",
            "source": {"type": "base64", "media_type": "image/png", "data": "not base64!"},
        },
        {
            "type": "image",
            "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw"},
        },
        {
            "type": "document",
            "source": {"type": "content", "content": [{"type": "text", "text": "x"}]},
        },
        {"type": "document", "source": {"type": "url", "url": "u", "new": 1}},
        {"type": ["odd"]},
        {"no": "type"},
    ],
)
def test_what_cannot_be_rebuilt_is_kept_whole(block):
    """A block that its part could not give back exactly stays opaque."""
    assert decode_part(block) == Opaque(dialect=NAME, data=block)


@pytest.mark.parametrize(
    ("block", "path"),
    [
        ({"type": "text", "text": 5}, "m.text"),
        ({"type": "tool_use", "id": "a", "name": None, "input": {}}, "m.name"),
        ({"type": "tool_result", "tool_use_id": "t", "content": 7}, "m.content"),
        ({"type": "tool_result", "tool_use_id": "t", "content": [3]}, "m.content[0]"),
        ("text", "m"),
    ],
)
def test_wrong_types_name_their_path(block, path):
    """In a request, a field of the wrong type is an error that says where."""
    with pytest.raises(DecodeError) as caught:
        decode_part(block, "m")

    assert caught.value.path == path
    assert path in str(caught.value)


def test_answers_are_read_leniently():
    """In an answer, a block of the wrong shape is kept."""
    assert read_part({"type": "text", "text": 5}) == Opaque(
        dialect=NAME, data={"type": "text", "text": 5}
    )


@pytest.mark.parametrize(
    ("part", "code", "block"),
    [
        (Audio(data=b"x"), "audio_dropped", None),
        (Opaque(dialect="openai_chat", data={}), "foreign_block_dropped", None),
        (
            Thinking(text="t", extra={"openai_responses": {}}),
            "foreign_thinking_dropped",
            None,
        ),
        (Refusal(text="no"), "refusal_as_text", {"type": "text", "text": "no"}),
        (Image(), "image_dropped", None),
    ],
)
def test_what_cannot_be_said_is_warned_of(part, code, block):
    """A foreign part is left out or said otherwise, with a warning."""
    losses = WarningList()
    losses.part = 1

    assert encode_part(part, losses) == block
    assert [(warning.code, warning.path) for warning in losses.warnings] == [
        (code, "messages[0].content[1]")
    ]
