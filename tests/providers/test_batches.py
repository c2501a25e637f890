"""Requests of a batch are encoded item by item into a temporary file."""

import asyncio
import json
import tracemalloc

import pytest

from interlingua import Request
from interlingua.dialects.openai_shared.batches import read_reply
from interlingua.errors import ConfigurationError
from interlingua.providers.adapter import HttpAdapter
from interlingua.providers.batches import BatchRequests
from interlingua.providers.http_requests import Ready
from interlingua.providers.tariffs import Tariffs
from interlingua.spec.contracts import NEUTRAL_PROFILE, HttpRequest
from interlingua.spec.modalities.batch import BatchInput
from interlingua.spec.operations import ItemFormat
from interlingua.transport.bodies import FileBody
from interlingua.wire.batches import ReplyLines

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


def ready(request, path="/answers", headers=None):
    body = json.dumps({"text": request.messages[-1].text}).encode()
    http = HttpRequest(url=f"https://host/v1{path}", body=body, headers=headers or {})
    return Ready(request=request, profile=NEUTRAL_PROFILE, http=http, tariffs=Tariffs())


async def make_ready(request):
    return ready(request)


def spool(texts, *formats, requests=None, make=make_ready):
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
        return ready(request, headers={"X-Beta": f"f{number}", "version": "1", "key": "secret"})

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
    formats = adapter._dialect.OPERATIONS["submit_batch"].formats

    async def items():
        for number in range(3000):
            yield f"i{number}", Request(model="gpt-5.2", messages=f"{number} {LONG}")

    async def main():
        requests = BatchRequests(items())
        await adapter.ready(Request(model="gpt-5.2", messages="warm"))
        tracemalloc.start()
        spooled = await requests.spool(adapter.ready, formats, BatchInput(provider="openai"))
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
        first = await requests.spool(make_ready, (SMALL,), BatchInput())
        assert await requests.spool(make_ready, (SMALL,), BatchInput()) is first
        with pytest.raises(ConfigurationError, match="encoded for one provider"):
            await requests.spool(make_ready, (LARGE,), BatchInput())

    asyncio.run(main())
