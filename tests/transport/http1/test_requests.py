"""What is written of a request."""

import asyncio

import pytest

from interlingua.spec.contracts import HttpRequest
from interlingua.spec.errors import ConfigurationError
from interlingua.transport.http1.addresses import find_target
from interlingua.transport.http1.exchange import _write_head
from support.forms import Streamed
from support.http_calls import run
from support.servers import CHUNKED, Server, piece

URL = "http://host.test/v1"


def written(**fields):
    """The headers of the request, as lines."""
    request = HttpRequest(url=URL, **fields)
    head = _write_head(request, find_target(URL, None)).decode()
    return head.split("\r\n")[1:-2]


@pytest.mark.parametrize("name", ["Content-Length", "content-length", "Transfer-Encoding"])
@pytest.mark.parametrize(
    ("body", "framing"),
    [
        (b"abc", "content-length: 3"),
        (b"", "content-length: 0"),
        (Streamed(b"abc", size=3), "content-length: 3"),
        (Streamed(b"abc"), "transfer-encoding: chunked"),
    ],
)
def test_the_body_alone_says_how_it_is_framed(name, body, framing):
    """Two lengths, or a length and chunks, would be two requests to some servers."""
    lines = written(headers={name: "9", "x-key": "a"}, body=body)
    found = [line for line in lines if line.startswith(("content-length", "transfer-encoding"))]

    assert found == [framing]
    assert "x-key: a" in lines


@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS"])
def test_a_request_without_a_body_has_no_length(method):
    """As its method has no meaning for a body."""
    lines = written(method=method, headers={"content-length": "5"})

    assert not any(line.startswith(("content-length", "transfer-encoding")) for line in lines)


@pytest.mark.parametrize("value", ["ä", "日本", "\u2028", "\x85"])
def test_a_header_that_is_not_ascii_is_sent_in_utf_8(value):
    """No character of it is a line break on the wire."""
    request = HttpRequest(url=URL, headers={"x-key": value})
    head = _write_head(request, find_target(URL, None))

    assert b"x-key: %b\r\n" % value.encode() in head
    assert head.count(b"\n") == head.count(b"\r\n")


@pytest.mark.parametrize(
    "fields",
    [
        {"headers": {"x-key": "a\ud800"}},
        {"headers": {"x-key": "a\r\n\r\nGET / HTTP/1.1"}},
        {"headers": {"x-key\n": "a"}},
        {"method": "GET / HTTP/1.1\r\nx: y\r\n"},
    ],
)
def test_what_would_break_a_head_is_refused(fields):
    """Before anything is sent."""
    with pytest.raises(ConfigurationError, match="invalid header"):
        written(**fields)


async def read(got):
    return await got.read()


async def collect(got):
    return [chunk async for chunk in got.chunks()]


@pytest.mark.parametrize("action", [read, collect])
def test_a_body_that_fails_while_the_reply_arrives(action):
    """The error is that of the body, also if the server began to answer before it had it all."""
    has_begun = asyncio.Event()

    async def pieces():
        yield b"x" * 1000
        await has_begun.wait()
        raise ZeroDivisionError

    async def script(connection):
        await connection.reader.readexactly(1000)
        await connection.send(CHUNKED, piece(b"one"))

    async def work(transport):
        async with transport.send(HttpRequest(url=server.url, body=pieces())) as got:
            has_begun.set()
            with pytest.raises(ConfigurationError, match="ZeroDivisionError"):
                await action(got)

    with Server(script) as server:
        run(work)
        assert server.all_closed()
