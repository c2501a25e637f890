"""Thinking <-> its blocks."""

import pytest

from interlingua.dialects.anthropic_messages import decode_request, encode_request
from interlingua.dialects.anthropic_messages.content import is_native, show_thinking
from interlingua.spec.content import Thinking
from interlingua.spec.contracts import WireCall
from interlingua.spec.request import Request

NAME = "anthropic_messages"


def decode(path="/v1/messages", headers=None, **body):
    body = {"messages": [{"role": "user", "content": "Hi."}], **body}
    return decode_request(WireCall(path=path, body=body, headers=headers or {}))


def encode(**fields):
    return encode_request(Request(**{"model": "m", "max_tokens": 9, "messages": "Hi.", **fields}))


def test_thinking_is_echoed_first_and_unchanged():
    """Thinking and its signature go back byte for byte, before the call (field bug 34)."""
    blocks = [
        {"type": "thinking", "thinking": "Hm…\n", "signature": "c2ln"},
        {"type": "tool_use", "id": "t", "name": "f", "input": {}},
    ]
    request = decode(messages=[{"role": "assistant", "content": blocks}])

    assert request.messages[0].content[0] == Thinking(
        text="Hm…\n", signature="c2ln", extra={NAME: {}}
    )
    assert encode_request(request).body["messages"][0]["content"] == blocks


@pytest.mark.parametrize(
    ("part", "native"),
    [
        (Thinking(text="t", extra={NAME: {}}), True),
        (Thinking(text="t", signature="s"), True),
        (Thinking(redacted=True, data="d"), True),
        (Thinking(text="t"), False),
        (Thinking(text="t", signature="s", extra={"gemini_generate": {}}), False),
    ],
)
def test_only_its_own_thinking_goes_back(part, native):
    """A thought goes back to its maker; one made by hand needs a signature."""
    assert is_native(part) is native


def test_what_an_answer_shows():
    """Our own as it came; of another only the words."""
    ours = Thinking(text="Hm.", signature="S", extra={NAME: {}})
    redacted = Thinking(redacted=True, data="x", extra={"gemini_generate": {}})

    assert show_thinking(ours) == {"type": "thinking", "thinking": "Hm.", "signature": "S"}
    assert show_thinking(redacted) is None
