"""Bodies: a hostile reply costs bounded memory, and never holds up the event loop."""

import asyncio
import gzip
import json
import threading
import zlib

import pytest

from interlingua import Request, dialects
from interlingua.providers.adapter import HttpAdapter
from interlingua.spec.contracts import WireCall
from interlingua.spec.defaults import Limits, Timeouts
from interlingua.spec.errors import DecodeError, RequestTimeoutError, SDKError, StreamError
from interlingua.spec.messages import Message
from interlingua.spec.operations import Operation
from support.http_calls import call, collect, read
from support.servers import CHUNKED, LAST, Server, answering, piece, reply

EVENTS = ("content-type: text/event-stream",)
PACKED = (*EVENTS, "content-encoding: gzip")


def run(transport_type, work, **settings):
    """Run `work(transport)` in a loop of its own."""

    async def main():
        transport = transport_type(**settings)
        try:
            return await work(transport)
        finally:
            await transport.close()

    return asyncio.run(main())


def packed_zeros(size):
    """About a thousandth of this size, packed."""
    packer = zlib.compressobj(9, wbits=16 + zlib.MAX_WBITS)
    blocks = [packer.compress(bytes(1_000_000)) for _ in range(size // 1_000_000)]
    return b"".join(blocks) + packer.flush()


@pytest.mark.parametrize("action", [read, collect])
def test_a_packed_reply_is_limited(transport_type, action):
    """32 KiB that become 32 MB are refused at the limit, as a whole and as a stream."""
    told = reply(packed_zeros(32_000_000), headers=PACKED)
    limits = Limits(inflated=4_000_000)

    async def work(transport):
        with pytest.raises(DecodeError, match="larger than 4000000 bytes after decompression"):
            await action(transport, call(server.url))

    with Server(answering(told)) as server:
        run(transport_type, work, limits=limits)


@pytest.mark.parametrize("action", [read, collect])
def test_other_tasks_run_while_a_reply_is_inflated(transport_type, action):
    """At least once for each 32 KiB."""
    told = reply(packed_zeros(32_000_000), headers=PACKED)
    turns = 0

    async def other():
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async def work(transport):
        async with transport.send(call(server.url)) as got:  # the whole reply may have arrived
            await asyncio.sleep(0.1)
            task = asyncio.ensure_future(other())
            body = await got.read() if action is read else b"".join([c async for c in got.chunks()])
            task.cancel()
        return len(body)

    with Server(answering(told)) as server:
        assert run(transport_type, work) == 32_000_000

    assert turns >= 32_000_000 // (32 * 1024)


def chat(url, transport, **settings):
    return HttpAdapter("openai_compatible", base_url=url, transport=transport, **settings)


def test_other_tasks_run_between_small_events(transport_type):
    """20,000 events in one chunk are read 256 at a time."""
    delta = {"id": "c", "model": "m", "choices": [{"index": 0, "delta": {"content": "x"}}]}
    last = {
        "id": "c",
        "model": "m",
        "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}],
    }
    count = 20_000
    body = b"".join(
        (
            *[b"data: %s\n\n" % json.dumps(delta).encode()] * count,
            b"data: %s\n\n" % json.dumps(last).encode(),
            b"data: [DONE]\n\n",
        )
    )
    turns = most = since = 0

    async def other():
        nonlocal turns, since
        while True:
            turns += 1
            since = 0
            await asyncio.sleep(0)

    async def work(transport):
        nonlocal most, since
        task = asyncio.ensure_future(other())
        text = 0
        async for event in chat(server.url, transport).stream(Request(model="m", messages="Hi")):
            since += 1
            most = max(most, since)
            text += event.type == "text_delta"
        task.cancel()
        return text

    with Server(answering(reply(gzip.compress(body), headers=PACKED))) as server:
        assert run(transport_type, work) == count

    assert turns >= count // 256
    assert most <= 300


def test_other_tasks_run_between_pings(transport_type):
    """Also in a stream that has no events at all."""
    turns, size = 0, 2_000_000

    async def other():
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async def work(transport):
        task = asyncio.ensure_future(other())
        with pytest.raises(StreamError):
            async for _ in chat(server.url, transport).stream(Request(model="m", messages="Hi")):
                pass
        task.cancel()

    body = gzip.compress(b": \n\n" * (size // 4))
    with Server(answering(reply(body, headers=PACKED))) as server:
        run(transport_type, work)

    assert turns >= size // (32 * 1024)


def test_a_stream_has_a_limit_of_events(transport_type):
    """Settable on the adapter; the message says how."""
    body = CHUNKED + piece(b"data: {}\n\n" * 100) + LAST

    async def work(transport):
        adapter = chat(server.url, transport, limits=Limits(events=50))
        with pytest.raises(
            StreamError, match=r"more than 50 events.*limits=Limits\(events="
        ) as error:
            async for _ in adapter.stream(Request(model="m", messages="Hi")):
                pass
        return error.value

    with Server(answering(body)) as server:
        assert not run(transport_type, work).retryable


ANSWER = {
    "id": "c",
    "model": "m",
    "choices": [
        {"index": 0, "message": {"role": "assistant", "content": "x"}, "finish_reason": "stop"}
    ],
}


@pytest.mark.parametrize("is_stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("size", [1_000, 3_000_000])
def test_large_answers_and_requests_are_coded_in_a_thread(
    transport_type, size, is_stream, monkeypatch
):
    """
    Above a megabyte, decoding and encoding leave the event loop free.

    Also for a server that answers a stream with one JSON body.
    """
    threads = {}
    answer = {**ANSWER, "padding": "x" * size}

    async def work(transport):
        adapter = chat(server.url, transport)
        dialect = adapter.configuration.dialect

        class Watched:
            def __getattr__(self, name):
                return getattr(dialect, name)

            def encode_request(self, *args, **kwargs):
                threads["encode"] = threading.current_thread()
                return dialect.encode_request(*args, **kwargs)

            def decode_response(self, *args, **kwargs):
                threads["decode"] = threading.current_thread()
                return dialect.decode_response(*args, **kwargs)

        monkeypatch.setattr(adapter.configuration, "dialect", Watched())
        request = Request(model="m", messages=[Message.user("x" * size)])
        if is_stream:
            assert [event async for event in adapter.stream(request)][-1].response.text == "x"
        else:
            assert (await adapter.complete(request)).text == "x"

    told = reply(json.dumps(answer).encode(), headers=("content-type: application/json",))
    with Server(answering(told)) as server:
        run(transport_type, work)

    is_main = {name: thread is threading.main_thread() for name, thread in threads.items()}
    assert is_main == {"encode": size < 1_000_000, "decode": size < 1_000_000}


@pytest.mark.parametrize("size", [1_000, 3_000_000])
def test_large_results_of_operations_are_decoded_in_a_thread(transport_type, size):
    """As answers are."""

    def decode(_status, _headers, body):
        return len(body), threading.current_thread() is threading.main_thread()

    operation = Operation(name="fetch", encode=lambda *_: WireCall(path="/fetch"), decode=decode)

    async def work(transport):
        return await chat(server.url, transport).perform(operation)

    with Server(answering(reply(b"x" * size))) as server:
        assert run(transport_type, work) == (size, size < 1_000_000)


@pytest.mark.parametrize("size", [1_000, 3_000_000])
def test_large_requests_of_operations_are_encoded_in_a_thread(transport_type, size):
    """Such as a request whose tokens are counted."""
    threads = []

    def encode(value, _profile):
        threads.append(threading.current_thread() is threading.main_thread())
        return WireCall(path="/count", body={"text": value.messages[0].text})

    operation = Operation(name="count", encode=encode, decode=lambda *_: 1)

    async def work(transport):
        request = Request(model="m", messages=[Message.user("x" * size)])
        return await chat(server.url, transport).perform(operation, request)

    with Server(answering(reply(b"{}"))) as server:
        assert run(transport_type, work) == 1
    assert threads == [size < 1_000_000]


@pytest.mark.parametrize("unit", [b"-eyJ", b"maximum ", b"[", b'{"error":', b"\xff", b"a\n"])
def test_a_large_error_body_is_cut(transport_type, unit):
    """What is read of it is bounded, and the error is the one of the status."""
    told = reply(unit * (8_000_000 // len(unit)), status="400 Bad Request")

    async def work(transport):
        with pytest.raises(SDKError) as caught:
            await chat(server.url, transport).complete(Request(model="m", messages="Hi"))
        return caught.value

    with Server(answering(told)) as server:
        error = run(transport_type, work)

    assert error.status_code == 400
    assert len(str(error)) < 300_000


async def drip(connection):
    """An endless stream of pings."""
    await connection.read_request()
    await connection.send(CHUNKED)
    while True:
        await connection.send(piece(b": ping\n\n"))
        await asyncio.sleep(0.02)


@pytest.mark.parametrize(
    ("timeout", "phase"),
    [
        (Timeouts(stream_content=0.1), "stream_content"),
        (Timeouts(total=0.1), "total"),
        (0.1, "total"),
    ],
    ids=["content", "total", "a number"],
)
def test_pings_do_not_keep_a_stream_alive_for_ever(transport_type, timeout, phase):
    """Neither past the content timeout nor past the adapter's own."""

    async def work(transport):
        adapter = chat(server.url, transport, timeout=timeout)
        with pytest.raises(RequestTimeoutError) as caught:
            async for _ in adapter.stream(Request(model="m", messages="Hi")):
                pass
        return caught.value

    with Server(drip) as server:
        error = run(transport_type, work)

    assert error.phase == phase
    assert "0.1 s" in error.message


HTML = b"<!DOCTYPE html><html><body>Welcome to the proxy</body></html>"


@pytest.mark.parametrize("dialect", dialects.names())
@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        (HTML, "text/html; charset=utf-8"),
        (HTML, "application/json"),
        (b"\xff\xfe{}", "application/json"),
        (b'{"a": "\xff\xfe"', "application/json"),
        (b"\xff\xfe\xfd", "text/plain"),
        (b"", "application/json"),
        (b"", "text/html"),
    ],
    ids=["html", "html as json", "not utf-8", "cut and not utf-8", "binary", "empty", "empty html"],
)
def test_a_reply_that_is_not_an_answer_is_the_same_error_whole_and_streamed(
    transport_type, dialect, body, content_type
):
    """With a 200, `complete` and `stream` raise the same class of error."""
    told = reply(body, headers=(f"content-type: {content_type}",))

    async def work(transport):
        adapter = chat(server.url, transport, dialect=dialect)
        request = Request(model="m", messages="Hi")
        with pytest.raises(SDKError) as whole:
            await adapter.complete(request)
        with pytest.raises(SDKError) as streamed:
            async for _ in adapter.stream(request):
                pass
        return whole.value, streamed.value

    with Server(answering(told)) as server:
        whole, streamed = run(transport_type, work)

    assert type(whole) is type(streamed) is DecodeError
    assert whole.error_class is streamed.error_class


@pytest.mark.parametrize(
    "done", [b"data: [DONE] \n\n", b"data: [DONE]\t\r\n\r\n", b"data:  [DONE]  \n\n"]
)
def test_a_done_with_blanks_ends_the_stream(transport_type, done):
    """It ends the stream, and what follows is ignored."""
    delta = {"id": "c", "model": "m", "choices": [{"index": 0, "delta": {"content": "x"}}]}
    body = b"data: %s\n\n%sdata: never read\n\n" % (json.dumps(delta).encode(), done)

    async def work(transport):
        adapter = chat(server.url, transport)
        return [event.type async for event in adapter.stream(Request(model="m", messages="Hi"))]

    with Server(answering(reply(body, headers=EVENTS))) as server:
        assert run(transport_type, work)[-1] == "finish"


@pytest.mark.parametrize(
    "dialect", ["openai_chat", "openai_responses", "anthropic_messages", "gemini_generate"]
)
def test_an_error_line_is_the_error(transport_type, dialect):
    """Its text is the message, on every dialect with lines: Converse has frames of bytes."""
    body = b'error: {"code":500,"message":"the context is broken","type":"server_error"}\n\n'

    async def work(transport):
        adapter = chat(server.url, transport, dialect=dialect)
        with pytest.raises(SDKError) as caught:
            async for _ in adapter.stream(Request(model="m", messages="Hi")):
                pass
        return caught.value

    with Server(answering(reply(body, headers=EVENTS))) as server:
        assert "the context is broken" in str(run(transport_type, work))
