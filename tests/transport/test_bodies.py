"""Streamed bodies and forms over every transport, against a server on loopback."""

import asyncio
import os
from contextlib import asynccontextmanager

import pytest
from msgspec.structs import replace

from interlingua.serving.asgi import headers_of, read_body
from interlingua.serving.server import serve_in_thread
from interlingua.spec.contracts import FormPart, HttpRequest
from interlingua.spec.errors import ConfigurationError, NetworkError, RequestTimeoutError
from interlingua.transport import (
    AsgiTransport,
    CannedReply,
    CannedTransport,
    FileBody,
    HttpTransport,
    HttpxTransport,
    RecordingTransport,
    ReplayTransport,
)
from interlingua.wire.multipart import encode_form
from support.forms import Streamed, read_form

DATA = os.urandom(700_000)


class Receiver:
    """An application that keeps what it received."""

    def __init__(self):
        self.received = []

    async def __call__(self, scope, receive, send):
        body = await read_body(receive)
        self.received.append((scope["method"], headers_of(scope), body))
        head = [(b"content-type", b"application/json")]
        await send({"type": "http.response.start", "status": 200, "headers": head})
        await send({"type": "http.response.body", "body": b'{"ok":true}'})


@asynccontextmanager
async def closing(transport):
    try:
        yield transport
    finally:
        await transport.close()


def put(make, body, headers=None, method="POST"):
    """What an application receives of a body that is sent over this transport."""
    app = Receiver()

    async def work(url):
        transport = AsgiTransport(app) if make is AsgiTransport else make()
        request = HttpRequest(method=method, url=url, headers=headers or {}, body=body)
        async with closing(transport), transport.send(request) as reply:
            assert await reply.read() == b'{"ok":true}'

    with serve_in_thread(app) as server:
        asyncio.run(work(f"{server.url}/v1/files"))
    return app.received


REAL = [HttpTransport, HttpxTransport, AsgiTransport]


@pytest.mark.parametrize("make", REAL)
def test_a_file(make, tmp_path):
    """It arrives whole, with its length in the head, and may be sent again."""
    path = tmp_path / "f"
    path.write_bytes(DATA)
    body = FileBody(path)
    for _ in range(2):
        ((method, headers, received),) = put(make, body, method="PUT")

        assert (method, received) == ("PUT", DATA)
        assert headers["content-length"] == str(len(DATA))
        assert "transfer-encoding" not in headers


@pytest.mark.parametrize("make", REAL)
@pytest.mark.parametrize("is_generator", [True, False])
def test_what_yields_bytes(make, is_generator):
    """An iterable that tells no size is sent in chunks; empty pieces do not end it."""

    async def generate():
        for start in range(0, len(DATA), 100_000):
            yield DATA[start : start + 100_000]
            yield b""

    ((_, headers, received),) = put(make, generate() if is_generator else Streamed(DATA[:500]))

    assert received == (DATA if is_generator else DATA[:500])
    assert "content-length" not in headers


@pytest.mark.parametrize("make", REAL)
def test_a_form_with_a_file(make, tmp_path):
    """As one would upload it."""
    path = tmp_path / "f"
    path.write_bytes(DATA)
    parts = (
        FormPart(name="purpose", content="batch"),
        FormPart(name="file", content=FileBody(path), file_name="f.jsonl"),
    )
    content_type, body = encode_form(parts, lambda: "a-boundary")
    ((_, headers, received),) = put(make, body, {"content-type": content_type})

    assert headers["content-length"] == str(len(received))
    fields = {name: content for name, _, _, content in read_form(content_type, received)}
    assert fields == {"purpose": b"batch", "file": DATA}


class Failing:
    def __init__(self, error):
        self.error = error

    async def __aiter__(self):
        yield b"x"
        raise self.error


@pytest.mark.parametrize("make", REAL)
@pytest.mark.parametrize(
    ("body", "words"),
    [
        (Failing(ZeroDivisionError()), "Cannot read the body of the request: ZeroDivisionError"),
        (Streamed(b"abc", size=2), "declared size of 2 bytes"),
        (Streamed(b"abc", size=4), "declared size of 4 bytes"),
    ],
)
def test_a_body_that_cannot_be_sent(make, body, words):
    """The error is about the body, not about the network."""
    with pytest.raises(ConfigurationError, match=words):
        put(make, body)


@pytest.mark.parametrize("make", REAL)
@pytest.mark.parametrize("error", [RequestTimeoutError("late"), NetworkError("gone")])
def test_own_errors_of_a_body_are_not_translated(make, error):
    """An SDKError of the body is raised unchanged, also if it is a TimeoutError or OSError."""
    with pytest.raises(type(error)) as caught:
        put(make, Failing(error))
    assert caught.value is error


@pytest.mark.parametrize("make", [HttpTransport, HttpxTransport])
def test_nobody_listens(make):
    """A streamed body does not hide what went wrong."""

    async def work():
        transport = make()
        request = HttpRequest(url="http://127.0.0.1:9/x", body=Streamed(b"abc"))
        async with closing(transport), transport.send(request):
            pass

    with pytest.raises(NetworkError, match="Cannot connect"):
        asyncio.run(work())


def test_a_file_that_is_not_there(tmp_path):
    """It is named at once."""
    with pytest.raises(ConfigurationError, match=r"missing\.bin: No such file"):
        FileBody(tmp_path / "missing.bin")


def test_canned_replies_and_cassettes_see_the_bytes(tmp_path):
    """They keep what was sent, however it was sent; equal bytes are replayed."""
    canned = CannedTransport([CannedReply(body=b"{}")])
    request = HttpRequest(url="http://a.example/x", body=Streamed(b"abc"))

    async def work(transport, request=request):
        async with transport.send(request) as reply:
            return await reply.read()

    path = tmp_path / "tape"
    assert asyncio.run(work(RecordingTransport(canned, path))) == b"{}"
    assert [sent.body for sent in canned.requests] == [b"abc"]
    assert asyncio.run(work(ReplayTransport(path))) == b"{}"
    other = replace(request, body=Streamed(b"abd"))
    with pytest.raises(ConfigurationError):
        asyncio.run(work(ReplayTransport(path), other))
    again = CannedTransport([CannedReply(body=b"{}")])
    assert asyncio.run(work(again)) == b"{}"
    assert [sent.body for sent in again.requests] == [b"abc"]
