"""Usage that a provider does not report."""

import asyncio
import json

import pytest

from interlingua import dialects
from interlingua.providers.adapter import HttpAdapter
from interlingua.providers.rows import ROWS, find_provider
from interlingua.spec.messages import Message
from interlingua.spec.request import Request
from interlingua.spec.response import FinishReason, Response, Usage
from interlingua.streams.accumulate import events_from_response
from interlingua.transport.canned import CannedReply, CannedTransport
from interlingua.wire.sse import encode_sse
from support.rows import address_of, answers_chats
from support.warning_codes import codes

CHAT_ROWS = [
    row.name
    for row in ROWS
    if row.dialect == "openai_chat" and not row.is_embedded and answers_chats(row)
]
WITHOUT_STREAM_OPTIONS = ("mistral", "perplexity", "cohere", "ai21", "databricks")
"""They refuse or ignore the field, and report the usage of every stream."""
VENDORS = {
    "openai": "openai_responses",
    "anthropic": "anthropic_messages",
    "gemini": "gemini_generate",
    "openai_compatible": "openai_chat",
}
ANSWER = "The weather in Oslo is cold, with some rain in the afternoon. " * 4
REQUEST = Request(model="m", messages="What is the weather like in Oslo today?")


def adapter_for(provider, transport=None, **settings):
    address = address_of(find_provider(provider))
    transport = transport or CannedTransport([])
    return HttpAdapter(provider, "k", transport=transport, base_url=address, **settings)


@pytest.mark.parametrize("provider", CHAT_ROWS)
def test_chat_rows_ask_for_usage(provider):
    """Every Chat row asks for the usage of a stream, except where it is refused (field bug 106)."""
    adapter = adapter_for(provider, dialect="openai_chat")
    body = adapter.dry_run(REQUEST, stream=True).body
    whole = adapter.dry_run(REQUEST).body

    asked = {} if provider in WITHOUT_STREAM_OPTIONS else {"include_usage": True}
    assert body.get("stream_options", {}) == asked
    assert "stream_options" not in whole


def test_the_request_for_usage_can_be_switched_off():
    """By an option of the call, or by the profile for a host that refuses the field."""
    options = {"openai_compatible": {"stream_options": {"include_usage": False}}}
    request = Request(model="m", messages="hi", provider_options=options)
    body = adapter_for("openai_compatible").dry_run(request, stream=True).body
    assert body["stream_options"] == {"include_usage": False}

    profile = {"quirks": {"stream_usage": False}}
    adapter = HttpAdapter("openai_compatible", base_url="http://localhost:1", profile=profile)
    assert "stream_options" not in adapter.dry_run(REQUEST, stream=True).body


def without_usage(value):
    """The JSON value without any usage in it."""
    if isinstance(value, dict):
        kept = {name: item for name, item in value.items() if "usage" not in name.lower()}
        return {name: without_usage(item) for name, item in kept.items()}
    return [without_usage(item) for item in value] if isinstance(value, list) else value


def body_of(dialect, *, stream, edit=without_usage):
    """A vendor's reply whose usage is edited: the content type and the bytes."""
    codec = dialects.get(dialect)
    response = Response(
        id="r",
        model="m",
        message=Message.assistant(ANSWER),
        finish_reason=FinishReason(reason="stop"),
        usage=Usage(input_tokens=1, output_tokens=1),
    )
    if not stream:
        body = edit(codec.encode_response(response))
        return "application/json", json.dumps(body).encode()
    encoder = codec.stream_encoder()
    frames = [frame for event in events_from_response(response) for frame in encoder.feed(event)]
    frames += encoder.finish()
    chunks = []
    for frame in frames:
        if frame.data != "[DONE]":
            data = json.dumps(edit(json.loads(frame.data)))
            frame = type(frame)(event=frame.event, data=data)  # noqa: PLW2901
        chunks.append(encode_sse(frame))
    return "text/event-stream", b"".join(chunks)


def answer(provider, *, stream, body=None):
    """The response of an adapter to a reply without usage."""
    content_type, data = body or body_of(VENDORS[provider], stream=stream)
    transport = CannedTransport([CannedReply(headers={"content-type": content_type}, body=data)])

    async def run():
        adapter = adapter_for(provider, transport)
        if not stream:
            return await adapter.complete(REQUEST)
        events = [event async for event in adapter.stream(REQUEST)]
        assert events[-1].usage == events[-1].response.usage
        return events[-1].response

    return asyncio.run(run())


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("provider", VENDORS)
def test_unreported_usage_is_an_estimate(provider, stream):
    """It is marked as one, with one warning; it is never 0/0."""
    response = answer(provider, stream=stream)

    assert response.text == ANSWER
    assert response.usage.estimated
    assert 5 < response.usage.input_tokens < 40
    assert 40 < response.usage.output_tokens < 90
    assert codes(response) == ["usage_estimated"]


def test_a_whole_answer_to_a_stream_is_estimated_too():
    """A server that does not stream, and reports nothing."""
    body = body_of("openai_chat", stream=False)
    response = answer("openai_compatible", stream=True, body=body)

    assert response.usage.estimated
    assert codes(response) == ["usage_estimated"]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_reported_usage_is_not_an_estimate(stream):
    """Figures of the provider stand as they are."""
    content_type, data = body_of("openai_chat", stream=stream)
    usage = b'"usage": {"prompt_tokens": 3, "completion_tokens": 0, "total_tokens": 3}, "choices"'
    data = data.replace(b'"choices"', usage)
    response = answer("openai_compatible", stream=stream, body=(content_type, data))

    assert (response.usage.input_tokens, response.usage.output_tokens) == (3, 0)
    assert (response.usage.estimated, codes(response)) == (False, [])


def zeros(value):
    """The JSON value with every count in it 0."""
    if isinstance(value, dict):
        return {name: zeros(item) for name, item in value.items()}
    return 0 if type(value) is int else value


def with_zero_usage(value):
    """The JSON value, in which every reported usage is 0."""
    if isinstance(value, dict):
        return {
            name: zeros(item) if "usage" in name.lower() else with_zero_usage(item)
            for name, item in value.items()
        }
    return [with_zero_usage(item) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("provider", VENDORS)
def test_a_reported_usage_of_zero_is_not_replaced(provider, stream):
    """A provider that reports 0 tokens bills none."""
    body = body_of(VENDORS[provider], stream=stream, edit=with_zero_usage)
    response = answer(provider, stream=stream, body=body)

    assert response.usage.total_tokens == 0
    assert (response.usage.estimated, codes(response)) == (False, [])


@pytest.mark.parametrize("usage", [b"{}", b'{"prompt_tokens": null}', b'{"cost": "unknown"}'])
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_a_usage_without_any_count_is_an_estimate(stream, usage):
    """An object without a figure reports nothing."""
    content_type, data = body_of("openai_chat", stream=stream)
    data = data.replace(b'"choices"', b'"usage": ' + usage + b', "choices"')
    response = answer("openai_compatible", stream=stream, body=(content_type, data))

    assert response.usage.estimated
    assert codes(response) == ["usage_estimated"]
