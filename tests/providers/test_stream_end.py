"""A Chat stream that ends after its finish reason, without usage and without `[DONE]`."""

import asyncio
import json

import pytest

from interlingua import HttpAdapter, Request
from interlingua.errors import StreamError
from interlingua.transport import CannedReply, CannedTransport

TEXT = {"id": "x", "model": "m", "choices": [{"index": 0, "delta": {"content": "Yes."}}]}
END = {"id": "x", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}


def read(provider, *chunks, **settings):
    """The response of an adapter to a stream of these chunks."""
    data = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks).encode()
    reply = CannedReply(headers={"content-type": "text/event-stream"}, body=data)

    async def run():
        adapter = HttpAdapter(provider, "k", transport=CannedTransport([reply]), **settings)
        events = [event async for event in adapter.stream(Request(model="m", messages="Hi"))]
        return events[-1].response or events[-1]

    return asyncio.run(run())


def test_an_unknown_host_may_leave_out_the_end():
    """A finish reason is enough, with a warning; its usage is an estimate."""
    finish = read("openai_compatible", TEXT, END, base_url="http://host.test/v1")

    codes = [warning.code for warning in finish.warnings]
    assert finish.finish_reason.reason == "stop"
    assert "stream_end_missing" in codes
    assert finish.usage.estimated


def test_a_stream_without_a_finish_reason_is_an_error():
    """Nobody knows whether the answer is whole."""
    with pytest.raises(StreamError):
        read("openai_compatible", TEXT, base_url="http://host.test/v1")


@pytest.mark.parametrize("provider", ["openai", "groq", "deepseek", "openrouter"])
def test_a_known_host_ends_its_streams(provider):
    """Its row says how a stream ends: without that, the usage was cut off."""
    settings = {"dialect": "openai_chat"} if provider == "openai" else {}
    with pytest.raises(StreamError):
        read(provider, TEXT, END, **settings)


def test_an_end_that_is_there_is_not_missed():
    """No warning after the usage, or after `[DONE]`."""
    usage = {"prompt_tokens": 3, "completion_tokens": 1, "total_tokens": 4}
    chunks = (TEXT, END, {"id": "x", "choices": [], "usage": usage})
    finish = read("openai_compatible", *chunks, base_url="http://host.test/v1")

    assert "stream_end_missing" not in [warning.code for warning in finish.warnings]
