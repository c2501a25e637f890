"""Counts by the provider."""

import asyncio

import pytest

from interlingua.providers.counting import read_count
from interlingua.providers.named import AnthropicAdapter, GeminiAdapter
from interlingua.simulator import text
from interlingua.spec.content import Image
from interlingua.spec.errors import AuthenticationError, DecodeError, UnsupportedError
from interlingua.spec.messages import Message
from interlingua.spec.request import Request
from interlingua.transport.canned import CannedReply, CannedTransport
from interlingua.wire.json_text import loads
from support.simulated import run, simulated


@pytest.mark.parametrize("provider", ["openai", "anthropic", "gemini"])
def test_the_provider_counts(provider):
    """Over the wire; a longer request has more, and settings that do not count are not sent."""

    async def work(client):
        short = await client.count_tokens(peer.ask(provider, "hi", temperature=0.5, max_tokens=9))
        long = await client.count_tokens(peer.ask(provider, "hi there, how are you? " * 20))
        return short, long

    with simulated(text("hi")) as peer:
        short, long = run(peer, work)

    assert 0 < short < long


def test_chat_has_no_counter():
    """Nothing is sent, and the other way is named."""
    with simulated(text("hi")) as peer:
        with pytest.raises(UnsupportedError, match="estimate_input_tokens"):
            run(peer, lambda client: client.count_tokens(peer.ask("openai_compatible")))
        assert peer.app.script.received == ()


def test_geminis_counter_takes_a_whole_request():
    """So that instructions and tools count too."""
    from interlingua.providers.counting import counted, counting_call

    request = counted(Request(model="m", messages="hi"), "gemini_generate")
    ready = asyncio.run(GeminiAdapter("k").ready(request))
    call = counting_call(ready.http, "m")

    assert call.url.endswith("/v1beta/models/m:countTokens")
    assert loads(call.body) == {
        "generateContentRequest": {
            "model": "models/m",
            "contents": [{"role": "user", "parts": [{"text": "hi"}]}],
        }
    }


@pytest.mark.parametrize("body", [None, [], {}, {"input_tokens": "9"}, {"input_tokens": True}])
def test_an_answer_without_a_count(body):
    """It is not taken for none."""
    with pytest.raises(DecodeError):
        read_count(body)


def test_files_count_too(tmp_path):
    """They are read as for a call."""
    path = tmp_path / "a.png"
    path.write_bytes(b"\x89PNG\r\n\x1a\n")
    canned = CannedTransport([CannedReply(body=b'{"input_tokens": 9}')])
    adapter = AnthropicAdapter("k", transport=canned)
    request = Request(model="m", messages=[Message.user([Image(url=str(path))])])

    assert asyncio.run(adapter.count_tokens(request)) == 9
    assert b"iVBORw0KGgo=" in canned.requests[0].body
    assert str(path).encode() not in canned.requests[0].body


def test_errors_say_whose_they_are():
    """With our id and theirs."""
    reply = CannedReply(status=401, headers={"request-id": "req_1"}, body=b"{}")
    adapter = AnthropicAdapter("k", name="mine", transport=CannedTransport([reply]))
    with pytest.raises(AuthenticationError) as caught:
        asyncio.run(adapter.count_tokens(Request(model="m", messages="hi", request_id="r")))

    error = caught.value
    assert (error.provider, error.request_id, error.provider_request_id) == ("mine", "r", "req_1")
