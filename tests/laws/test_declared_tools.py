"""
Tools that only the client's dialect has: custom, in a namespace, deferred.

They reach a model of each other dialect in its own form; its calls come back in the shape that the
client declared, whole and streamed, wherever the stream is cut.
"""

import functools
import json

import pytest
from anthropic.types import Message as AnthropicMessage
from anthropic.types import RawMessageStreamEvent
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.responses import Response as OpenAIResponse
from openai.types.responses import ResponseStreamEvent
from pydantic import TypeAdapter

from interlingua import dialects
from interlingua.conformance.laws import cut_frames, decode_frames, fold
from interlingua.dialects import events_from_response
from interlingua.spec.content import ToolCall
from interlingua.spec.contracts import WireCall
from interlingua.spec.events import ToolCallDelta
from interlingua.spec.messages import Message
from interlingua.spec.response import FinishReason, Response
from interlingua.wire.sse import encode_sse
from support.deferred_tools import SCHEMA, deferred_request
from support.run_profile import FULL

PATCH = '*** Begin Patch\n+"é" \\ 😀\n*** End Patch'
FUNCTION = {"name": "look", "parameters": {"type": "object"}}
CUSTOM = {"name": "apply_patch", "description": "Edits files."}
BODIES = {
    "openai_responses": {
        "model": "m",
        "input": "Fix it.",
        "tools": [
            {"type": "function", **FUNCTION},
            {"type": "custom", **CUSTOM},
            {
                "type": "namespace",
                "name": "mail",
                "description": "Mail.",
                "tools": [
                    {"type": "function", "name": "send", "parameters": SCHEMA},
                    {"type": "custom", "name": "draft"},
                ],
            },
            {"type": "tool_search", "execution": "client", "parameters": SCHEMA},
        ],
    },
    "openai_chat": {
        "model": "m",
        "messages": [{"role": "user", "content": "Fix it."}],
        "tools": [
            {"type": "function", "function": FUNCTION},
            {"type": "custom", "custom": CUSTOM},
        ],
    },
    "anthropic_messages": deferred_request("Fix it.", "look"),
}
EXPECTED = {
    "openai_responses": [
        {"type": "function_call", "name": "look", "arguments": '{"to":"ada"}'},
        {"type": "custom_tool_call", "name": "apply_patch", "input": PATCH},
        {
            "type": "function_call",
            "name": "send",
            "namespace": "mail",
            "arguments": '{"to":"ada"}',
        },
        {"type": "custom_tool_call", "name": "draft", "namespace": "mail", "input": PATCH},
        {"type": "tool_search_call", "execution": "client", "arguments": {"to": "ada"}},
    ],
    "openai_chat": [
        {"type": "function", "function": {"name": "look", "arguments": '{"to":"ada"}'}},
        {"type": "custom", "custom": {"name": "apply_patch", "input": PATCH}},
    ],
    "anthropic_messages": [
        {"type": "tool_use", "name": "look", "input": {"to": "ada"}},
        {"type": "tool_use", "name": "send", "input": {"to": "ada"}},
    ],
}
PAIRS = [(client, name) for client in BODIES for name in dialects.names() if name != client]
WHOLE = {
    "openai_responses": OpenAIResponse,
    "openai_chat": ChatCompletion,
    "anthropic_messages": AnthropicMessage,
}
EVENT = {
    "openai_responses": TypeAdapter(ResponseStreamEvent),
    "openai_chat": TypeAdapter(ChatCompletionChunk),
    "anthropic_messages": TypeAdapter(RawMessageStreamEvent),
}
UNTOLD = ("id", "call_id", "status", "caller")


@functools.cache
def request_of(client):
    return dialects.get(client).decode_request(WireCall(body=BODIES[client]))


@functools.cache
def answer(client, upstream):
    """What a model of this dialect says: one call of each tool that it was sent."""
    spoken = dialects.get(upstream)
    sent = spoken.decode_request(spoken.encode_request(request_of(client))).tools
    declared = [tool for tool in request_of(client).tools if tool.name != "lost"]
    assert len(sent) == len(declared)
    calls = []
    for number, (tool, meant) in enumerate(zip(sent, declared, strict=True)):
        call = ToolCall(id=f"c{number}", name=tool.name, arguments={"to": "ada"})
        if tool.type == "custom":
            call = ToolCall(id=f"c{number}", name=tool.name, type="custom", raw_arguments=PATCH)
        elif meant.type == "custom":
            call = ToolCall(id=f"c{number}", name=tool.name, arguments={"input": PATCH})
        calls.append(call)
    return Response(
        id="r",
        model="m",
        message=Message(role="assistant", content=tuple(calls)),
        finish_reason=FinishReason(reason="tool_calls"),
    )


def shapes(client, body):
    """The calls of a body, without ids."""
    if client == "openai_responses":
        items = body["output"]
    elif client == "openai_chat":
        items = body["choices"][0]["message"]["tool_calls"]
    else:
        items = [block for block in body["content"] if block["type"] == "tool_use"]
    return [{key: item[key] for key in item if key not in UNTOLD} for item in items]


@pytest.mark.parametrize(("client", "upstream"), PAIRS)
def test_a_whole_answer_has_the_declared_calls(client, upstream):
    """The vendor's SDK reads the body."""
    spoken = dialects.get(upstream)
    response = spoken.decode_response(spoken.encode_response(answer(client, upstream)))
    body = dialects.get(client).encode_response(response, request_of(client))

    WHOLE[client].model_validate(body)
    assert shapes(client, body) == EXPECTED[client]


def wire_bytes(client, upstream):
    """The stream that the model's API sends, with arguments in pieces of three characters."""
    encoder = dialects.get(upstream).stream_encoder(None)
    frames = []
    for event in events_from_response(answer(client, upstream)):
        pieces = [event]
        if isinstance(event, ToolCallDelta):
            starts = range(0, len(event.delta), 3)
            pieces = [
                ToolCallDelta(id=event.id, index=event.index, delta=event.delta[at : at + 3])
                for at in starts
            ]
        frames += [frame for piece in pieces for frame in encoder.feed(piece)]
    return b"".join(encode_sse(frame) for frame in [*frames, *encoder.finish()])


def passed_on(client, upstream, chunks):
    """The frames that the client gets, for a stream in these chunks."""
    encoder = dialects.get(client).stream_encoder(request_of(client))
    events = decode_frames(dialects.get(upstream), cut_frames(chunks))
    return [frame for event in events for frame in encoder.feed(event)] + encoder.finish()


def read(client, frames):
    codec = dialects.get(client)
    return shapes(client, codec.encode_response(fold(decode_frames(codec, frames))))


@pytest.mark.parametrize(("client", "upstream"), PAIRS)
def test_a_stream_cut_at_every_byte_has_the_declared_calls(client, upstream):
    """In chunks of one byte the client gets the same frames; the vendor's SDK reads each."""
    data = wire_bytes(client, upstream)
    frames = passed_on(client, upstream, [data])
    for frame in frames:
        # OpenAI's types of chunks know only functions; its client does not check them
        if frame.data != "[DONE]" and (client != "openai_chat" or '"custom"' not in frame.data):
            EVENT[client].validate_python(json.loads(frame.data))

    assert read(client, frames) == EXPECTED[client]
    assert passed_on(client, upstream, [data[i : i + 1] for i in range(len(data))]) == frames
    for cut in range(1, len(data), 1 if FULL else len(data) // 3):
        assert passed_on(client, upstream, [data[:cut], data[cut:]]) == frames


@pytest.mark.parametrize("upstream", ["anthropic_messages", "gemini_generate", "openai_chat"])
def test_custom_input_arrives_in_pieces(upstream):
    """Codex shows a patch while it is written."""
    frames = passed_on("openai_responses", upstream, [wire_bytes("openai_responses", upstream)])
    pieces = [
        data["delta"]
        for frame in frames
        if (data := json.loads(frame.data))["type"] == "response.custom_tool_call_input.delta"
    ]

    assert "".join(pieces) == PATCH * 2
    if upstream != "gemini_generate":  # whose calls arrive whole
        assert len(pieces) > 10
