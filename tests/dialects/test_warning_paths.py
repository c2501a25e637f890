"""A warning of an encoder names the message, the part, and the part of a result it is about."""

import pytest

from interlingua import dialects
from interlingua.spec.content import Document, Refusal, Text, ToolCall, ToolResult
from interlingua.spec.messages import Message
from interlingua.spec.request import Request

CALL = ToolCall(id="c", name="look", arguments={})
REWORDED = {
    "anthropic_messages": Refusal(text="no"),
    "gemini_generate": Refusal(text="no"),
    "openai_chat": Document(text="page"),
    "openai_responses": Refusal(text="no"),
}
"""For each dialect, a part that it sends in another form, which only its encoder notices."""


def paths(name, *messages):
    call = dialects.get(name).encode_request(Request(messages=messages))
    return [warning.path for warning in call.warnings]


@pytest.mark.parametrize(("name", "part"), REWORDED.items())
def test_parts_are_named_by_message_and_position(name, part):
    """Wherever they stand, and however many there are."""
    messages = (
        Message.system("Be brief."),
        Message.user([Text(text="a"), part]),
        Message.assistant("b"),
        Message.user([Text(text="c"), Text(text="d"), part, part]),
    )

    assert paths(name, *messages) == [
        "messages[1].content[1]",
        "messages[3].content[2]",
        "messages[3].content[3]",
    ]


@pytest.mark.parametrize("name", ["anthropic_messages", "openai_responses"])
def test_parts_of_results_are_named_too(name):
    """And the cursor leaves the result with it."""
    part = REWORDED[name]
    result = ToolResult(tool_call_id="c", content=(Text(text="so"), part))
    messages = (
        Message.user("Look."),
        Message.assistant([CALL]),
        Message(role="tool", content=(result,)),
        Message.assistant("b"),
        Message.user([Text(text="c"), part]),
    )

    assert paths(name, *messages) == [
        "messages[2].content[0].content[1]",
        "messages[4].content[1]",
    ]
