"""Requests of a batch are encoded item by item into a temporary file."""

import asyncio
import json
import tracemalloc

import pytest

from interlingua import Client, Request, batch
from interlingua.dialects.openai_shared.batches import read_reply
from interlingua.errors import ConfigurationError
from interlingua.providers.adapter import HttpAdapter, generation
from interlingua.providers.batches import BatchRequests
from interlingua.providers.http_requests import Encoded
from interlingua.spec.contracts import NEUTRAL_PROFILE
from interlingua.spec.modalities.batch import BatchInput
from interlingua.spec.operations import ItemFormat
from interlingua.transport.bodies import FileBody
from interlingua.transport.canned import CannedReply, CannedTransport
from interlingua.wire.batches import ReplyLines
from support.batches import MODELS, finish, with_client

SMALL = ItemFormat(
    name="small",
    envelope=lambda _value: (b"[", b"]"),
    wrap=lambda item_id: (f'{{"{item_id}":'.encode(), b"}"),
    separator=b",",
    endpoint="/answers",
    max_items=3,
    max_bytes=1000,
)
LARGE = ItemFormat(name="large", wrap=lambda _id: (b"", b""), endpoint="/answers")

JOB = {"id": "msgbatch_1", "type": "message_batch", "processing_status": "in_progress"}


def encoded(request, path="/answers", headers=None):
    body = json.dumps({"text": request.messages[-1].text}).encode()
    profile = NEUTRAL_PROFILE
    return Encoded(request=request, profile=profile, path=path, headers=headers or {}, body=body)


async def encode(request):
    return encoded(request)


def spool(texts, *formats, requests=None, make=encode):
    async def items():
        for number, text in enumerate(texts):
            yield f"i{number}", Request(model="m", messages=text)

    async def main():
        batch_requests = BatchRequests(items())
        for change in requests or ():
            batch_requests = change(batch_requests)
        try:
            spooled = await batch_requests.spool(make, formats, BatchInput(provider="host"))
            content = spooled.content
            if isinstance(content, FileBody):
                content = b"".join([piece async for piece in content])
            return spooled, content
        finally:
            batch_requests.close()

    return asyncio.run(main())


def test_the_first_format_that_fits():
    """Few items are in the best format; more, or longer ones, in the next."""
    spooled, content = spool(["a", "b"], SMALL, LARGE)
    assert spooled.format == "small"
    assert json.loads(content) == [{"i0": {"text": "a"}}, {"i1": {"text": "b"}}]
    spooled, content = spool(["a"] * 4, SMALL, LARGE)
    assert (spooled.format, content.count(b"\n")) == ("large", 3)
    assert spool(["a" * 2000], SMALL, LARGE)[0].format == "large"


def test_no_format_fits():
    """The error says what the provider accepts."""
    with pytest.raises(ConfigurationError, match="host accepts at most 3 requests"):
        spool(["a"] * 4, SMALL)
    with pytest.raises(ConfigurationError, match="host accepts at most 1,000 bytes"):
        spool(["a" * 2000], SMALL)


def test_edits_in_their_order():
    """The outer one sees the request first; all are applied before it is encoded."""

    def adding(letter):
        async def edit(request):
            text = request.messages[-1].text + letter
            return Request(model=request.model, messages=text)

        return lambda requests: requests.edited(edit)

    _, content = spool(["x"], SMALL, requests=[adding("1"), adding("2")])
    assert json.loads(content) == [{"i0": {"text": "x12"}}]


def test_admission_comes_after_all_requests():
    """It is asked once, when all requests were seen, and may refuse them all."""
    seen, asked = [], []

    async def admit():
        asked.append(len(seen))

    spool(["a", "b"], SMALL, requests=[lambda requests: requests.admitted(seen.append, admit)])
    assert asked == [2]

    async def refuse():
        raise ConfigurationError("too much")

    with pytest.raises(ConfigurationError, match="too much"):
        spool(["a"], SMALL, requests=[lambda requests: requests.admitted(seen.append, refuse)])


def test_headers_of_all_requests():
    """Headers that requests need are sent with the batch; flags are joined, keys left out."""

    async def make(request):
        number = request.messages[-1].text
        return encoded(request, headers={"X-Beta": f"f{number}", "version": "1", "key": "secret"})

    async def items():
        for number in range(3):
            yield f"i{number}", Request(model="m", messages=str(number))

    async def main():
        requests = BatchRequests(items())
        return await requests.spool(make, (SMALL,), BatchInput(), frozenset({"key"}))

    assert asyncio.run(main()).headers == {"x-beta": "f0,f1,f2", "version": "1"}


MEGABYTE = 1024 * 1024
LONG = "word " * 1000


def test_requests_are_not_held_in_memory():
    """Fifteen megabytes of requests take less than four, encoded as a real adapter does it."""
    adapter = HttpAdapter("openai", "k")
    formats = adapter.configuration.dialect.OPERATIONS["submit_batch"].formats

    async def items():
        for number in range(3000):
            yield f"i{number}", Request(model="gpt-5.2", messages=f"{number} {LONG}")

    async def main():
        requests = BatchRequests(items())
        await adapter.generation.encode(Request(model="gpt-5.2", messages="warm"))
        tracemalloc.start()
        spooled = await requests.spool(
            adapter.generation.encode, formats, BatchInput(provider="openai")
        )
        size = 0
        async for piece in spooled.content:
            size += len(piece)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        requests.close()
        return size, spooled.content.size, peak

    size, announced, peak = asyncio.run(main())
    assert size == announced > 15_000_000
    assert peak < 4 * MEGABYTE


def test_results_are_not_held_in_memory():
    """Nor are results: the lines of a large file are decoded as they arrive."""
    body = {"choices": [{"message": {"role": "assistant", "content": LONG}}]}
    line = {"custom_id": "a", "response": {"status_code": 200, "body": body}, "error": None}
    data = json.dumps(line).encode() + b"\n"
    decoder = ReplyLines(read_reply)
    tracemalloc.start()
    count = sum(len(decoder.feed(data)) for _ in range(3000)) + len(decoder.finish())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert count == 3000
    assert peak < MEGABYTE


def test_encoded_for_one_provider():
    """Requests that were encoded for one provider are not sent to another."""

    async def items():
        yield "a", Request(model="m", messages="x")

    async def main():
        requests = BatchRequests(items())
        first = await requests.spool(encode, (SMALL,), BatchInput())
        assert await requests.spool(encode, (SMALL,), BatchInput()) is first
        with pytest.raises(ConfigurationError, match="encoded for one provider"):
            await requests.spool(encode, (LARGE,), BatchInput())

    asyncio.run(main())


@pytest.mark.parametrize("provider", MODELS)
def test_items_are_encoded_but_not_addressed_or_signed(provider, monkeypatch):
    """An item of a batch is never an HTTP request: only the requests of the batch itself are."""
    addressed = []

    async def work(client, _):
        adapter = client.adapter(provider)
        monkeypatch.setattr(adapter.generation, "address", addressed.append)
        monkeypatch.setattr(generation, "HttpRequest", addressed.append)
        prompts = {"a": "one", "b": "two"}
        job = await batch.submit(prompts, f"{provider}:{MODELS[provider]}", client=client)
        return await finish(job, client)

    assert with_client(provider, work).counts.succeeded == 2
    assert not addressed


def test_a_long_answer_of_a_batch_is_not_streamed():
    """A batch has no streams, and its requests have the time that they need."""

    async def work(client, app):
        request = Request(messages="Write a book.", max_tokens=60_000)
        job = await batch.submit([request], "anthropic:claude-haiku-4-5", client=client)
        await finish(job, client)
        return [each.call for each in app.script.received if each.request]

    (call,) = with_client("anthropic", work)

    assert (call.stream, call.body["max_tokens"]) == (False, 60_000)


def test_flags_of_requests_join_those_of_the_adapter():
    """A flag that one request of a batch needs is sent beside the flag of every call."""
    reply = CannedReply(headers={"content-type": "application/json"}, body=json.dumps(JOB).encode())
    transport = CannedTransport([reply])
    adapter = HttpAdapter(
        "anthropic", "k", transport=transport, default_headers={"anthropic-beta": "every-call"}
    )
    options = {"anthropic": {"betas": ["one-request"]}}
    request = Request(messages="x", provider_options=options)

    async def main():
        async with Client({"anthropic": adapter}) as client:
            await batch.submit([request], "anthropic:claude-haiku-4-5", client=client)

    asyncio.run(main())
    flags = transport.requests[0].headers["anthropic-beta"].split(",")
    assert {"every-call", "one-request"} <= set(flags)
