"""Messages as plain dicts are read as the decoder of the chat API reads them."""

import base64
import json

import pytest
from msgspec.structs import replace

from interlingua.dialects.openai_chat.messages import decode_messages
from interlingua.spec.content import ToolResult
from interlingua.spec.errors import ConfigurationError
from interlingua.spec.plain_dicts import to_messages
from support import corpus

PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n").decode()
CALLS = [
    {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}},
    {"id": "c2", "type": "function", "function": {"name": "f", "arguments": ""}},
    {"id": "c3", "type": "function", "function": {"name": "f", "arguments": '{"a": '}},
    {"id": "c4", "type": "custom", "custom": {"name": "g", "input": "free text"}},
]
MESSAGES = [
    {"role": "system", "content": "Be brief."},
    {"role": "developer", "content": [{"type": "text", "text": "In English."}]},
    {"role": "user", "content": "Hi", "name": "ada"},
    {
        "role": "user",
        "content": [
            {"type": "text", "text": "What is this?"},
            {"type": "image_url", "image_url": {"url": "https://a.example/b.png"}},
            {"type": "image_url", "image_url": {"url": "https://a.example/b", "detail": "low"}},
            {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}},
            {"type": "image_url", "image_url": {"url": "data:,x"}},
            {"type": "image_url", "image_url": {"url": "/etc/hostname"}},
            {"type": "input_audio", "input_audio": {"data": PNG, "format": "mp3"}},
            {"type": "input_audio", "input_audio": {"data": PNG, "format": "wav"}},
            {"type": "file", "file": {"file_id": "file-1"}},
            {
                "type": "file",
                "file": {"file_data": f"data:application/pdf;base64,{PNG}", "filename": "a.pdf"},
            },
        ],
    },
    {"role": "assistant", "content": "Hello"},
    {"role": "assistant", "content": None, "refusal": "No."},
    {"role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]},
    {"role": "assistant", "content": "Hm", "reasoning_content": "thinking"},
    {"role": "assistant", "content": None, "tool_calls": CALLS},
    {"role": "tool", "tool_call_id": "c1", "content": "rain"},
    {"role": "tool", "tool_call_id": "c2", "content": [{"type": "text", "text": "sun"}]},
]


def bare(value):
    """The value without what belongs to the dialect."""
    content = tuple(_bare_part(part) for part in value.content)
    return replace(value, content=content, extra={}, metadata={})


def _bare_part(part):
    if isinstance(part, ToolResult) and part.parts:
        part = replace(part, content=tuple(_bare_part(inner) for inner in part.parts))
    return replace(part, extra={})


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: json.dumps(message)[:40])
def test_dicts_are_read_as_the_decoder_reads_them(message):
    """One form, one meaning."""
    (decoded,) = decode_messages([message])
    (read,) = to_messages([message])

    assert bare(read) == bare(decoded)


@pytest.mark.skipif(not corpus.is_here(), reason="no recordings")
def test_recorded_messages_are_read_as_the_decoder_reads_them_or_refused():
    """Each recorded message is read as the decoder reads it, or refused by name."""
    read = refused = 0
    for record in corpus.records("openai_chat"):
        messages = (record["request_body"] or {}).get("messages")
        for message in messages if isinstance(messages, list) else ():
            try:
                (found,) = to_messages([message])
            except ConfigurationError as error:
                assert "messages[0]" in str(error)
                refused += 1
                continue
            (decoded,) = decode_messages([message])
            if message.get("content") not in ("", []):  # the decoder keeps an empty text
                assert bare(found) == bare(decoded)
            read += 1
    assert read > 30 * refused
