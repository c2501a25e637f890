"""Messages <-> `system` and `messages`."""

from interlingua.dialects.anthropic_messages import decode_request, encode_request
from interlingua.dialects.anthropic_messages.request import encode_messages
from interlingua.spec.content import Opaque, ToolResult
from interlingua.spec.contracts import WireCall
from interlingua.spec.messages import Message
from interlingua.spec.request import Request
from interlingua.spec.warnings import WarningList

NAME = "anthropic_messages"


def decode(path="/v1/messages", headers=None, **body):
    body = {"messages": [{"role": "user", "content": "Hi."}], **body}
    return decode_request(WireCall(path=path, body=body, headers=headers or {}))


def encode(**fields):
    return encode_request(Request(**{"model": "m", "max_tokens": 9, "messages": "Hi.", **fields}))


def test_leading_system_is_hoisted_and_later_ones_stay():
    """Instructions at the head are the `system` field; mid-conversation ones keep their place."""
    body = encode(
        messages=[
            Message.system("Be brief."),
            Message.user("Hi."),
            Message.system("Be long."),
            Message.user("Again."),
        ]
    ).body

    assert body["system"] == "Be brief."
    assert [message["role"] for message in body["messages"]] == ["user", "system", "user"]


def test_a_first_inline_system_message_is_not_hoisted():
    """A system message that came inside `messages` goes back there, even as the first.

    Field bug 30.
    """
    wire = [{"role": "system", "content": "Now."}, {"role": "user", "content": "Hi."}]
    request = decode(messages=wire)

    assert encode_request(request).body["messages"] == wire
    assert "system" not in encode_request(request).body


def test_developer_becomes_system_with_a_warning():
    """There is no developer role here."""
    call = encode(messages=[Message.developer("Be brief."), Message.user("Hi.")])

    assert call.body["system"] == "Be brief."
    assert [(w.code, w.path) for w in call.warnings] == [("developer_as_system", "messages[0]")]


def test_tool_results_are_a_tool_message():
    """A user message of results only is a tool message; with more in it, it stays the user's."""
    result = {"type": "tool_result", "tool_use_id": "t", "content": "4 C"}
    request = decode(
        messages=[
            {"role": "user", "content": [result]},
            {"role": "user", "content": [result, {"type": "text", "text": "And?"}]},
        ]
    )

    assert [message.role for message in request.messages] == ["tool", "user"]
    assert request.messages[0].content == (ToolResult(tool_call_id="t", content="4 C"),)


def test_a_message_that_is_no_object_is_carried():
    """A bare string among the messages is kept, for the provider to refuse."""
    request = decode(messages=["Invalid content"])

    assert request.messages[0].content == (Opaque(dialect=NAME, data="Invalid content"),)
    assert encode_request(request).body["messages"] == ["Invalid content"]


def test_a_message_with_nothing_left_is_not_sent():
    """What was all of it could not be said."""
    losses = WarningList()
    body = {}

    block = Opaque(dialect="elsewhere", data={})
    encode_messages(Request(messages=(Message.user([block]), Message.user("hi"))), body, losses)

    assert body == {"messages": [{"role": "user", "content": "hi"}]}
    assert [(warning.code, warning.path) for warning in losses.warnings] == [
        ("foreign_block_dropped", "messages[0].content[0]"),
        ("emptied_message_dropped", "messages[0]"),
    ]
