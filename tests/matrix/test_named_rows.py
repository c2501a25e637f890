"""Seven tests of an adapter, for the six named providers, with the vendors' own replies."""

import asyncio
import json

import pytest

from interlingua.api.execute.execution import execute
from interlingua.api.run.generate import generate, stream
from interlingua.api.tools.tool import tool
from interlingua.client.client import Client
from interlingua.providers.adapter import HttpAdapter
from interlingua.spec.content import Image
from interlingua.spec.errors import ErrorClass, SDKError
from interlingua.spec.messages import Message
from interlingua.transport.canned import CannedReply, CannedTransport
from support.servers import Server, streaming
from support.vendor_replies import ARGUMENTS, MODELS, NAME, PIECES, RAW, ROWS, TEXT, THOUGHT

every_row = pytest.mark.parametrize("provider", ROWS)
every_way = pytest.mark.parametrize("way", ["whole", "stream", "execute"])
PNG = b"\x89PNG\r\n\x1a\n" + bytes(24)
JSON, SSE = {"content-type": "application/json"}, {"content-type": "text/event-stream"}


@tool
def get_weather(city: str) -> str:
    """The weather in a city."""
    return f"{city}: 4 C, rain"


def is_stream(request):
    return b'"stream":true' in request.body or "streamGenerateContent" in request.url


def replying(*replies):
    """A transport that answers with these replies, as a stream if one is asked for."""
    waiting = list(replies)

    def answer(request):
        reply = waiting.pop(0) if len(waiting) > 1 else waiting[0]
        if is_stream(request):
            return CannedReply(headers=SSE, body=reply.stream)
        return CannedReply(headers=JSON, body=reply.whole)

    return CannedTransport(answer)


class Outcome:
    """What a caller sees, in any of the three ways."""

    text = reasoning = ""
    error = usage = None
    messages = ()

    def __init__(self):
        self.lifecycle = []
        self.pieces = []


def call(provider, transport, way="stream", prompt="Weather in Oslo?", **options):
    """Ask the provider through `generate`, `stream` or `execute`."""
    outcome = Outcome()
    model = f"{provider}:{MODELS[provider]}"

    async def executed(client):
        def on_chunk(chunk):
            if chunk["type"] == "text-delta":
                outcome.pieces.append(chunk["text"])

        result = await execute(
            model,
            prompt,
            client=client,
            on_chunk=on_chunk,
            on_tool_start=lambda *given: outcome.lifecycle.append(("start", *given)),
            on_tool_end=lambda *given: outcome.lifecycle.append(("end", *given)),
            **options,
        )
        outcome.text, outcome.reasoning = result.text, result.reasoning
        outcome.usage, outcome.error, outcome.messages = result.usage, result.error, result.messages

    async def streamed(client):
        result = stream(model, prompt, client=client, **options)
        outcome.events = [event async for event in result]
        outcome.pieces = [event.delta for event in outcome.events if event.type == "text_delta"]
        return result.result()

    async def work():
        adapter = HttpAdapter(provider, "planted-key", transport=transport)
        async with Client({provider: adapter}) as client:
            if way == "execute":
                return await executed(client)
            if way == "stream":
                result = await streamed(client)
            else:
                result = await generate(model, prompt, client=client, **options)
            outcome.text, outcome.reasoning = result.text, result.reasoning
            outcome.usage, outcome.messages = result.total_usage, result.messages
            outcome.result = result
        return None

    asyncio.run(work())
    return outcome


@every_way
@every_row
def test_text(provider, way):
    """It is generated, and streamed piece by piece."""
    outcome = call(provider, replying(ROWS[provider].text), way)

    assert outcome.text == TEXT
    if way != "whole":
        assert tuple(outcome.pieces) == PIECES


@every_way
@every_row
def test_tool_calls(provider, way):
    """They are run, told of, and their results go back with the call's id."""
    row = ROWS[provider]
    transport = replying(row.call, row.text)
    outcome = call(provider, transport, way, tools=[get_weather])
    first, second = (json.loads(request.body) for request in transport.requests)

    assert outcome.text == TEXT
    assert "get_weather" in json.dumps(first["tools"])
    assert "Oslo: 4 C, rain" in json.dumps(second)
    (made,) = (call for message in outcome.messages for call in message.tool_calls)
    assert (made.name, made.arguments) == (NAME, ARGUMENTS)
    if provider != "gemini":  # it sent no id
        assert json.dumps(second).count(made.id) == 2
    if way == "execute":
        assert outcome.lifecycle == [
            ("start", NAME, ARGUMENTS),
            ("end", NAME, "Oslo: 4 C, rain"),
        ]
    if way == "stream":
        kinds = [event.type for event in outcome.events]
        places = [kinds.index(f"tool_call_{part}") for part in ("start", "delta", "end")]
        assert places == sorted(places)
        raw = "".join(event.delta for event in outcome.events if event.type == "tool_call_delta")
        assert json.loads(raw) == ARGUMENTS
        assert provider == "gemini" or raw == RAW


def objects(value):
    """Every object in a JSON value."""
    if isinstance(value, dict):
        yield value
        value = list(value.values())
    for item in value if isinstance(value, list) else ():
        yield from objects(item)


@every_row
def test_images(provider):
    """Bytes and a URL reach the provider in its own form."""
    question = Message.user(["What is it?", Image(data=PNG, media_type="image/png")])
    linked = Message.user(
        ["And this?", Image(url="https://example.com/a.png", media_type="image/png")]
    )
    transport = replying(ROWS[provider].text)
    call(provider, transport, "whole", None, messages=[question, Message.assistant("A"), linked])
    body = json.loads(transport.requests[0].body)

    inline, address = "data:image/png;base64,iVBORw0KGgo", "https://example.com/a.png"
    found = list(objects(body))
    if provider == "anthropic":
        sources = [block["source"] for block in found if block.get("type") == "image"]
        data = sources[0].pop("data")
        assert sources[0] == {"type": "base64", "media_type": "image/png"}
        assert inline.endswith(data[:11])
        assert sources[1] == {"type": "url", "url": address}
    elif provider == "gemini":
        blobs = [part["inlineData"] for part in found if "inlineData" in part]
        assert [blob["mimeType"] for blob in blobs] == ["image/png"]
        assert inline.endswith(blobs[0]["data"][:11])
        assert [p["fileData"]["fileUri"] for p in found if "fileData" in p] == [address]
    else:
        kind = "input_image" if provider == "openai" else "image_url"
        urls = [part["image_url"] for part in found if part.get("type") == kind]
        urls = [url if isinstance(url, str) else url["url"] for url in urls]
        assert (urls[0][: len(inline)], urls[1]) == (inline, address)


@every_way
@every_row
def test_reasoning(provider, way):
    """It is captured apart from the text, and sent back in the provider's own form."""
    row = ROWS[provider]
    transport = replying(row.call, row.text)
    outcome = call(provider, transport, way, tools=[get_weather])
    second = transport.requests[1].body.decode()

    assert THOUGHT in outcome.reasoning
    assert THOUGHT not in outcome.text
    assert row.sent_back in second
    if provider in ("xai", "fireworks"):
        assert "reasoning_content" in second


@every_way
@every_row
def test_usage(provider, way):
    """Token counts in the fields of each provider, the same streamed as whole."""
    row = ROWS[provider]
    usage = call(provider, replying(row.text), way).usage
    tokens_in, tokens_out, reasoning, cached = row.usage

    if way == "execute":  # each token counts once there
        assert usage.prompt_tokens == tokens_in - (cached or 0)
        assert usage.completion_tokens == tokens_out - (reasoning or 0)
        assert (usage.reasoning_tokens or None) == reasoning
        assert (usage.cached_tokens or None) == cached
        return
    assert (usage.input_tokens, usage.output_tokens) == (tokens_in, tokens_out)
    assert (usage.reasoning_tokens, usage.cache_read_tokens) == (reasoning, cached)
    assert not usage.estimated


@every_row
def test_streamed_usage_equals_that_of_the_whole_answer(provider):
    """A stream asks for its usage, and reports the same as a whole call."""
    row = ROWS[provider]
    transport = replying(row.text)
    streamed = call(provider, transport, "stream")
    whole = call(provider, replying(row.text), "whole")

    assert streamed.usage == whole.usage
    assert streamed.events[-1].usage == streamed.result.usage
    asked = json.loads(transport.requests[0].body).get("stream_options")
    expected = {"include_usage": True} if provider in ("openrouter", "xai", "fireworks") else None
    assert asked == expected


@every_row
def test_cancel(provider):
    """`cancel()` closes the connection in the middle, and the result has what came."""
    frames = ROWS[provider].text.frames
    index = next(n for n, frame in enumerate(frames) if json.dumps(PIECES[0])[1:-1] in frame)
    pieces = [frame.encode() for frame in frames[: index + 1]]

    async def work(url):
        heard = []

        def on_chunk(chunk):
            heard.append(chunk["text"])
            running.cancel()

        adapter = HttpAdapter(provider, "planted-key", base_url=url)
        async with Client({provider: adapter}) as client:
            model = f"{provider}:{MODELS[provider]}"
            running = execute(model, "Weather?", client=client, on_chunk=on_chunk)
            return await running, heard

    with Server(streaming(*pieces)) as server:
        result, heard = asyncio.run(work(server.url))
        assert server.all_closed()

    assert (result.error.code, result.finish_reason) == ("cancelled", "cancelled")
    assert result.text == "".join(heard) == PIECES[0]


@every_row
def test_errors(provider):
    """A refused key in the provider's own words: raised by `generate`, returned by `execute`."""
    row = ROWS[provider]
    body = json.dumps(row.error).encode()
    refused = CannedReply(status=row.status, headers=JSON, body=body)

    for way in ("whole", "stream"):
        with pytest.raises(SDKError) as caught:
            call(provider, CannedTransport([refused]), way)
        error = caught.value
        assert (error.error_class, error.status_code) == (ErrorClass.AUTH, row.status)
        assert (error.provider, error.retryable) == (provider, False)
    outcome = call(provider, CannedTransport([refused]), "execute")
    assert outcome.error.status_code == row.status
    assert "key" in outcome.error.message or "credentials" in outcome.error.message
    assert "planted-key" not in outcome.error.message


@every_row
@pytest.mark.usefixtures("no_backoff")
def test_errors_that_pass(provider):
    """A busy server is asked again."""
    row = ROWS[provider]
    busy = CannedReply(status=503, headers={**JSON, "retry-after": "0"}, body=b"{}")
    good = CannedReply(headers=JSON, body=row.text.whole)
    transport = CannedTransport([busy, good])

    assert call(provider, transport, "whole").text == TEXT
    assert len(transport.requests) == 2
