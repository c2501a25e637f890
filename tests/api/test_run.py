"""Runs whose turns the provider itself breaks off; the rest of a run is in test_generate.py."""

import asyncio

import pytest

from interlingua.api.generate import generate, stream
from interlingua.client.client import Client
from interlingua.providers.named import AnthropicAdapter, GeminiAdapter
from interlingua.transport.memory import CannedReply, CannedTransport
from interlingua.wire.grammar import Grammar
from interlingua.wire.jsontext import dumps, loads


def claude(words, reason):
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-haiku-4-5",
        "content": [{"type": "text", "text": words}],
        "stop_reason": reason,
        "usage": {"input_tokens": 3, "output_tokens": 2},
    }


def gemini(words, reason, token=None):
    candidate = {"content": {"role": "model", "parts": [{"text": words}]}, "finishReason": reason}
    if token is not None:
        candidate["continuationToken"] = token
    return {
        "candidates": [candidate],
        "usageMetadata": {"promptTokenCount": 3, "candidatesTokenCount": 2, "totalTokenCount": 5},
    }


def canned(adapter, name, *bodies):
    """A client whose provider gives these answers, and what it was asked."""
    headers = {"content-type": "application/json"}
    transport = CannedTransport([CannedReply(headers=headers, body=dumps(b)) for b in bodies])
    return Client({name: adapter("key", transport=transport)}), transport


def test_a_paused_turn_goes_on():
    """With what was said so far, as one conversation."""
    client, transport = canned(
        AnthropicAdapter,
        "anthropic",
        claude("Looking …", "pause_turn"),
        claude("It is 7.", "end_turn"),
    )
    result = asyncio.run(generate("anthropic:claude-haiku-4-5", "?", client=client))

    assert result.text == "It is 7."
    assert len(result.steps) == 2
    second = loads(transport.requests[1].body)
    assert [message["role"] for message in second["messages"]] == ["user", "assistant"]


@pytest.mark.parametrize("whole", [True, False])
def test_an_answer_in_two_pieces(whole):
    """Gemini's continuation is one answer, with the tokens of both."""
    client, transport = canned(
        GeminiAdapter, "gemini", gemini("one ", "CONTINUATION", "dG9r"), gemini("two", "STOP")
    )

    async def work():
        if whole:
            return await generate("gemini:gemini-4-argon", "?", client=client)
        events = stream("gemini:gemini-4-argon", "?", client=client)
        grammar = Grammar()
        said = []
        async for event in events:
            grammar.feed(event)
            if event.type == "text_delta":
                said.append(event.delta)
        grammar.finish()
        assert "".join(said) == events.response().text
        return events.result()

    result = asyncio.run(work())

    assert result.text == "one two"
    assert result.usage.output_tokens == 4
    assert loads(transport.requests[1].body)["continuationToken"] == "dG9r"
