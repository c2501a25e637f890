"""Tools in an item of the input: Codex sends all of its tools so with the models of 2026."""

import pytest

from interlingua import dialects
from interlingua.conformance.laws import decode_frames, fold
from interlingua.dialects import events_from_response
from interlingua.spec.content import ToolCall
from interlingua.spec.contracts import WireCall
from interlingua.spec.messages import Message
from interlingua.spec.response import FinishReason, Response

OWN = dialects.get("openai_responses")
OTHERS = [name for name in dialects.names() if name != "openai_responses"]
SCHEMA = {"type": "object", "properties": {"ms": {"type": "integer"}}}
TOOLS = [
    {
        "type": "namespace",
        "name": "functions",
        "description": "",
        "tools": [
            {"type": "custom", "name": "exec", "description": "Runs code."},
            {"type": "function", "name": "wait", "parameters": SCHEMA, "strict": False},
        ],
    },
    {"type": "function", "name": "sleep", "parameters": SCHEMA, "strict": False},
]
BODY = {
    "model": "m",
    "input": [
        {"type": "additional_tools", "id": "at_1", "role": "developer", "tools": TOOLS},
        {"type": "message", "role": "user", "content": "Do it."},
    ],
}


def asked():
    return OWN.decode_request(WireCall(path="/v1/responses", body=BODY))


def test_they_are_tools_of_the_request():
    """With their namespaces; none of them has to be searched for."""
    tools = asked().tools

    assert [(tool.namespace, tool.name, tool.type) for tool in tools] == [
        ("functions", "exec", "custom"),
        ("functions", "wait", "function"),
        (None, "sleep", "function"),
    ]
    assert [tool.deferred for tool in tools] == [None, None, None]


def test_they_go_back_as_they_came():
    """A server of the same dialect gets the item, and no tools beside it."""
    assert OWN.encode_request(asked()).body == BODY


@pytest.mark.parametrize("target", OTHERS)
def test_a_model_of_another_dialect_is_offered_them(target):
    """In its own form, as tools of the request would be."""
    sent = dialects.get(target).encode_request(asked())
    offered = dialects.get(target).decode_request(sent).tools

    assert [tool.name.rpartition("_")[2] for tool in offered] == ["exec", "wait", "sleep"]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("target", OTHERS)
def test_a_call_comes_back_in_the_form_of_its_tool(target, stream):
    """A custom tool of a namespace is called as such."""
    sent = dialects.get(target).encode_request(asked())
    name = dialects.get(target).decode_request(sent).tools[0].name
    call = ToolCall(id="c1", name=name, arguments={"input": "text(1)"})
    message = Message(role="assistant", content=(call,))
    response = Response(message=message, finish_reason=FinishReason(reason="tool_calls"))
    if stream:
        encoder = OWN.stream_encoder(asked())
        events = events_from_response(response)
        frames = [frame for event in events for frame in encoder.feed(event)]
        response = fold(decode_frames(OWN, [*frames, *encoder.finish()]))
    else:
        response = OWN.decode_response(OWN.encode_response(response, asked()))

    (back,) = response.message.tool_calls
    assert (back.type, back.name, back.raw_arguments) == ("custom", "exec", "text(1)")
    assert back.namespace == "functions"
