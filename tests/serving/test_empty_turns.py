"""Histories as clients send them: an empty turn of the model stays before what follows it."""

import pytest
from msgspec.structs import replace

from interlingua import Tool, dialects
from interlingua.providers.catalog.profiles import profile_for
from interlingua.spec.content import Text, ToolCall, ToolResult
from interlingua.spec.contracts import WireCall

ARGUMENTS = {"type": "function", "function": {"name": "f", "arguments": "{}"}}
SENT = {
    "gemini_generate": (
        "/v1beta/models/m:generateContent",
        {
            "contents": [
                {"role": "user", "parts": [{"text": "Hi"}]},
                {"role": "model", "parts": [{"functionCall": {"name": "f", "id": "c1"}}]},
                {"role": "model", "parts": [{"text": ""}]},  # as google-genai keeps a stream
                {
                    "role": "user",
                    "parts": [{"functionResponse": {"name": "f", "id": "c1", "response": {}}}],
                },
            ]
        },
    ),
    "openai_chat": (
        "/v1/chat/completions",
        {
            "model": "m",
            "messages": [
                {"role": "user", "content": "Hi"},
                {"role": "assistant", "tool_calls": [{"id": "c1", **ARGUMENTS}]},
                {"role": "assistant", "content": ""},
                {"role": "tool", "tool_call_id": "c1", "content": "x"},
            ],
        },
    ),
    "openai_responses": (
        "/v1/responses",
        {
            "model": "m",
            "input": [
                {"role": "user", "content": "Hi"},
                {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"},
                {"role": "assistant", "content": ""},
                {"type": "function_call_output", "call_id": "c1", "output": "x"},
            ],
        },
    ),
    "anthropic_messages": (
        "/v1/messages",
        {
            "model": "m",
            "max_tokens": 9,
            "messages": [
                {"role": "user", "content": "Hi"},
                {
                    "role": "assistant",
                    "content": [{"type": "tool_use", "id": "c1", "name": "f", "input": {}}],
                },
                {"role": "assistant", "content": ""},
                {
                    "role": "user",
                    "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "x"}],
                },
            ],
        },
    ),
}
MODELS = {
    "openai_chat": "gpt-5.2",
    "openai_responses": "gpt-5.2",
    "anthropic_messages": "claude-haiku-4-5",
    "gemini_generate": "gemini-2.5-flash",
    "bedrock_converse": "amazon.nova-pro-v1:0",
}


@pytest.mark.parametrize("upstream", MODELS)
@pytest.mark.parametrize("client", SENT)
def test_an_empty_turn_does_not_move_behind_the_result(client, upstream):
    """The result is the last that the model is given, after its call."""
    path, body = SENT[client]
    request = dialects.get(client).decode_request(WireCall(path=path, body=body))
    model = MODELS[upstream]
    tools = (Tool(name="f"),)  # Converse takes no calls of tools that are not declared
    request = replace(request, model=model, tools=tools, provider_options={})
    call = dialects.get(upstream).encode_request(request, profile_for(upstream, model))
    given = dialects.get(upstream).decode_request(call)
    parts = [part for message in given.messages for part in message.content]
    kinds = [type(part) for part in parts if not (isinstance(part, Text) and not part.text)]

    assert kinds == [Text, ToolCall, ToolResult]
    assert isinstance(parts[-1], ToolResult)
