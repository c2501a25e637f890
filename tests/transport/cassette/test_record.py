"""Recording."""

import asyncio
import contextlib
import json

import pytest

from interlingua import dialects
from interlingua.providers.adapter import HttpAdapter
from interlingua.simulator import Simulator, latency, text
from interlingua.spec.contracts import HttpRequest, Transport
from interlingua.spec.errors import ConfigurationError, NetworkError, StreamError
from interlingua.spec.request import Request
from interlingua.transport.asgi import AsgiTransport
from interlingua.transport.canned import CannedReply, CannedTransport
from interlingua.transport.cassette import RecordingTransport, load_exchanges
from support import virtual_time
from support.simulated import DIALECTS

KEY = "planted-key-0123456789"
REQUEST = HttpRequest(
    url=f"https://user:{KEY}@api.example.com/v1/x?key={KEY}&alt=sse",
    headers={"Authorization": f"Bearer {KEY}", "X-Custom": f"a {KEY}", "accept": "*/*"},
    body=json.dumps({"model": "m", "note": f"my {KEY}"}).encode(),
)
ECHO = {"Set-Cookie": f"s={KEY}", "X-Echo": KEY, "content-encoding": "gzip", "x-request-id": "r1"}


def record(path, *answers, use):
    async def main():
        transport: Transport = RecordingTransport(CannedTransport(answers), path)
        await use(transport)
        await transport.close()

    virtual_time.run(main())
    return load_exchanges(path)


async def read(transport):
    async with transport.send(REQUEST) as got:
        return await got.read()


async def collect(transport):
    async with transport.send(REQUEST) as got:
        return [chunk async for chunk in got.chunks()]


def test_secrets_are_redacted(tmp_path):
    """Request and reply are complete, without any key."""
    path = tmp_path / "tape.json"
    body = f'{{"echo":"{KEY}"}}'.encode()

    (exchange,) = record(path, CannedReply(body=body, headers=ECHO), use=read)

    assert KEY not in path.read_text()
    stars = "*" * len(KEY)
    assert exchange["request"] == {
        "method": "POST",
        "url": "https://api.example.com/v1/x?key=[redacted]&alt=sse",
        "headers": {"authorization": "[redacted]", "x-custom": f"a {stars}", "accept": "*/*"},
        "text": json.dumps({"model": "m", "note": f"my {stars}"}),
    }
    reply = exchange["reply"]
    assert reply["headers"] == {"set-cookie": "[redacted]", "x-echo": stars, "x-request-id": "r1"}
    assert [chunk["json"] for chunk in reply["chunks"]] == [{"echo": stars}]
    assert "error" not in exchange


def test_given_secrets(tmp_path):
    """The given secrets are redacted too."""
    path = tmp_path / "tape.json"

    async def main():
        inner = CannedTransport([CannedReply(body=b"the launch code is 12345678")])
        await read(RecordingTransport(inner, path, secrets=["12345678"]))

    asyncio.run(main())
    assert "12345678" not in path.read_text().replace("0123456789", "")


def test_the_reader_gets_everything(tmp_path):
    """Recording changes nothing of what is read, keys included."""
    got = []

    async def use(transport):
        got.append(await read(transport))
        got.append(await collect(transport))

    record(
        tmp_path / "t.json",
        CannedReply(body=KEY.encode()),
        CannedReply(body=(KEY[:5].encode(), KEY[5:].encode())),
        use=use,
    )
    assert got == [KEY.encode(), [KEY[:5].encode(), KEY[5:].encode()]]


def test_streams_keep_their_chunks_and_pauses(tmp_path):
    """A chunk a line, with the time before it; a key cut in two is found."""
    body = (b"one ", 0.05, KEY[:9].encode(), KEY[9:].encode())

    (exchange,) = record(tmp_path / "t.json", CannedReply(body=body), use=collect)

    chunks = exchange["reply"]["chunks"]
    assert [chunk["text"] for chunk in chunks] == ["one ", "*" * 9, "*" * (len(KEY) - 9)]
    assert chunks[1]["after"] >= 0.04
    assert "error" not in exchange


def test_failures_are_recorded(tmp_path):
    """A failed connection and an incomplete body are recorded with their errors."""

    async def use(transport):
        for kind, action in ((NetworkError, read), (StreamError, collect)):
            with pytest.raises(kind):
                await action(transport)

    first, second = record(
        tmp_path / "t.json",
        NetworkError("refused", retryable=False),
        CannedReply(body=(b"one", StreamError("cut"))),
        use=use,
    )

    assert first["error"] == {"type": "NetworkError", "message": "refused", "retryable": False}
    assert "reply" not in first
    assert second["error"]["message"] == "cut"
    assert [chunk["text"] for chunk in second["reply"]["chunks"]] == ["one"]


def test_cancelled_reader(tmp_path):
    """The chunks that were read are recorded, with the fact that more was coming."""

    async def use(transport):
        async with transport.send(REQUEST) as got:
            await anext(got.chunks())
            got.abort()

    (exchange,) = record(tmp_path / "t.json", CannedReply(body=(b"one", b"two")), use=use)

    assert [chunk["text"] for chunk in exchange["reply"]["chunks"]] == ["one"]
    assert exchange["error"]["type"] == "StreamError"


def test_reader_finished(tmp_path):
    """A reader that stops at the last event gives a complete recording."""

    async def use(transport):
        async with transport.send(REQUEST) as got:
            await anext(got.chunks())

    (exchange,) = record(tmp_path / "t.json", CannedReply(body=(b"one", b"two")), use=use)

    assert [chunk["text"] for chunk in exchange["reply"]["chunks"]] == ["one"]
    assert "error" not in exchange


@pytest.mark.parametrize("dialect", dialects.names())
def test_good_streams_are_good_recordings(tmp_path, dialect):
    """Of every dialect, though its reader leaves at the last event."""
    path = tmp_path / "t.json"
    rows = {name: row for row, name in DIALECTS.items()}
    rows["bedrock_converse"] = "bedrock_converse"

    async def main():
        inner = AsgiTransport(Simulator(text("one two three")))
        adapter = HttpAdapter(
            rows[dialect], KEY, base_url="http://h/v1", transport=RecordingTransport(inner, path)
        )
        events = [event async for event in adapter.stream(Request(model="m", messages="hi"))]
        await adapter.close()
        return events

    assert asyncio.run(main())[-1].response.text == "one two three"
    (exchange,) = load_exchanges(path)
    assert "error" not in exchange


@pytest.mark.parametrize("how", ["cancel", "break"])
def test_aborted_stream(tmp_path, how):
    """A stream that was stopped early gives an incomplete recording."""
    path = tmp_path / "t.json"

    async def main():
        inner = AsgiTransport(Simulator(text("one two three") + latency(between=0.01)))
        adapter = HttpAdapter(
            "anthropic", KEY, base_url="http://h/v1", transport=RecordingTransport(inner, path)
        )
        stream = adapter.stream(Request(model="m", messages="hi", request_id="r"))
        async with contextlib.aclosing(stream):
            async for event in stream:
                if event.type == "text_delta":
                    if how == "break":
                        break
                    await adapter.cancel("r")
        await adapter.close()

    asyncio.run(main())
    (exchange,) = load_exchanges(path)
    assert exchange["error"]["type"] == "StreamError"


def test_time_to_the_headers(tmp_path):
    """The time to the headers is recorded."""
    (exchange,) = record(tmp_path / "t.json", CannedReply(body=b"x", after=5), use=read)

    assert exchange["reply"]["after"] == 5
    assert exchange["reply"]["chunks"][0]["after"] == 0


def test_path_is_a_folder(tmp_path):
    """A folder as path is refused before anything is sent."""
    with pytest.raises(ConfigurationError, match="is a folder"):
        RecordingTransport(CannedTransport([]), tmp_path)


def test_errors_of_the_reader(tmp_path):
    """The reader's own error is not recorded as a network error."""

    async def use(transport):
        with pytest.raises(NetworkError):
            await complain(transport)

    async def complain(transport):
        async with transport.send(REQUEST) as got:
            await got.read()
            raise NetworkError("my own")

    (exchange,) = record(tmp_path / "t.json", CannedReply(body=b"x"), use=use)

    assert "error" not in exchange


def test_a_conversation_is_one_file(tmp_path):
    """Exchanges are appended; a new recording overwrites the file."""

    async def twice(transport):
        await read(transport)
        await read(transport)

    path = tmp_path / "t.json"
    replies = [CannedReply(body=b"1"), CannedReply(body=b"2")]

    assert len(record(path, *replies, use=twice)) == 2
    assert len(record(path, replies[0], use=read)) == 1
