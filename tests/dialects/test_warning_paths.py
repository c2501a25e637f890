"""A warning of an encoder names the message, the part, and the part of a result it is about."""

import pytest

from interlingua import dialects
from interlingua.spec.content import Document, Refusal, Text, Thinking, ToolCall, ToolResult
from interlingua.spec.messages import Message
from interlingua.spec.request import Request

CALL = ToolCall(id="c", name="look", arguments={})
REWORDED = {
    "anthropic_messages": Refusal(text="no"),
    "bedrock_converse": Refusal(text="no"),
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


@pytest.mark.parametrize("name", ["anthropic_messages", "bedrock_converse", "openai_responses"])
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


@pytest.mark.parametrize("name", dialects.names())
def test_one_object_in_several_places_has_the_path_of_each(name):
    """A caller may use a part, a message or a result twice."""
    foreign = Thinking(text="Hm.", signature="s", extra={"another": {"id": "r"}})
    answer = Message.assistant([foreign, Text(text="b")])
    messages = (
        Message.user("a"),
        answer,
        Message.user("c"),
        answer,
        Message.user("d"),
        Message.assistant([Text(text="e"), foreign, Text(text="f")]),
        Message.user("g"),
    )
    request = Request(messages=messages)
    call = dialects.get(name).encode_request(request)

    found = [w.path for w in call.warnings if w.code == "foreign_thinking_dropped"]
    assert found == ["messages[1].content[0]", "messages[3].content[0]", "messages[5].content[1]"]
    assert request.messages[1] is request.messages[3] is answer


@pytest.mark.parametrize("name", dialects.names())
def test_one_part_in_several_results_has_the_path_of_each(name):
    """Also where the results are moved into one message."""
    part = Document(text="page", extra={"another": {"id": "r"}})
    hidden = Thinking(text="Hm.", signature="s", extra={"another": {"id": "r"}})
    result = ToolResult(tool_call_id="c", content=(Text(text="so"), part))
    turns = (
        Message.user("?"),
        Message.assistant([hidden, CALL]),
        Message(role="tool", content=result),
    )
    messages = (*turns, Message.assistant([hidden, Text(text="!")]), *turns, Message.user("?"))
    call = dialects.get(name).encode_request(Request(messages=messages))
    found = [w.path for w in call.warnings if w.code == "foreign_thinking_dropped"]

    assert found == [f"messages[{i}].content[0]" for i in (1, 3, 5)]
    inner = [w.path for w in call.warnings if (w.path or "").endswith("content[0].content[1]")]
    assert inner in ([], ["messages[2].content[0].content[1]", "messages[6].content[0].content[1]"])
