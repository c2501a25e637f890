"""Every fault of the network is a typed error that says whether to try again."""

import asyncio
import gzip
import os
import threading

import pytest

from interlingua.spec.contracts import HttpRequest
from interlingua.spec.errors import (
    ConfigurationError,
    DecodeError,
    NetworkError,
    StreamError,
)
from support.http_calls import (
    KEY,
    assert_no_key,
    call,
    collect,
    fails,
    make_certificate,
    read,
    run,
    server_tls,
)
from support.servers import (
    CHUNKED,
    LAST,
    PATIENCE,
    Server,
    answering,
    free_port,
    piece,
    reply,
)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """A certificate that no system trusts, with its key."""
    made = tmp_path_factory.mktemp("tls") / "both.pem"
    make_certificate(made)
    return made


@pytest.mark.parametrize("action", [read, collect])
def test_refused(action):
    """Nobody listens: a network error that may be tried again."""

    async def work(transport):
        with pytest.raises(NetworkError, match=r"cannot connect to 127\.0\.0\.1") as caught:
            await action(transport, call(f"http://127.0.0.1:{free_port()}/v1"))
        return caught.value

    error = run(work)

    assert error.retryable
    assert_no_key(error)


def test_no_such_name():
    """A host without an address: a network error that names it."""

    async def work(transport):
        with pytest.raises(NetworkError, match=r"cannot find the address of nowhere\.invalid") as c:
            await read(transport, call("http://nowhere.invalid/v1"))
        return c.value

    error = run(work)

    assert error.retryable
    assert_no_key(error)


def test_a_certificate_nobody_signed(certificate):
    """A certificate that is not trusted: an error that trying again cannot help."""
    error = fails(answering(reply()), tls=server_tls(certificate))

    assert type(error) is NetworkError
    assert not error.retryable
    assert "certificate" in error.message


def test_no_tls_there():
    """TLS to a server that speaks none."""

    async def script(connection):
        await connection.reader.read(1)
        await connection.send(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    with Server(script) as server:

        async def work(transport):
            with pytest.raises(NetworkError, match=r"the TLS handshake with .* failed") as caught:
                await read(transport, call(server.url.replace("http:", "https:")))
            return caught.value

        assert not run(work).retryable


async def reset_at_once(connection):
    await connection.read_request()
    connection.reset()


async def close_at_once(connection):
    await connection.read_request()
    connection.writer.close()


async def garbage(connection):
    await connection.read_request()
    await connection.send(b"SSH-2.0-OpenSSH_9.2\r\n\r\n")


@pytest.mark.parametrize("script", [reset_at_once, close_at_once, garbage])
@pytest.mark.parametrize("action", [read, collect])
def test_no_reply(script, action):
    """A connection that ends, or makes no sense, before the head: may be tried again."""
    error = fails(script, action)

    assert type(error) is NetworkError
    assert error.retryable


@pytest.mark.parametrize("url", ["", "x", "ftp://a/b", "http://", "http:///x", "http://[", "/v1"])
def test_no_url(url):
    """What is no HTTP URL is the caller's mistake."""

    async def work(transport):
        with pytest.raises(ConfigurationError):
            await read(transport, HttpRequest(url=url))

    run(work)


def test_a_key_with_a_line_break():
    """A header that cannot be sent is the caller's mistake, told without its value."""

    async def work(transport):
        request = HttpRequest(url=server.url, headers={"x-api-key": f"{KEY}\n"})
        with pytest.raises(ConfigurationError, match="line breaks") as caught:
            await read(transport, request)
        return caught.value

    with Server(answering(reply())) as server:
        assert_no_key(run(work))
    assert server.requests == []


def cut_after(*sent, how, seen):
    async def script(connection):
        await connection.read_request()
        await connection.send(*sent)
        # a reset overtakes what was sent before it
        await asyncio.to_thread(seen.wait, PATIENCE)
        connection.reset() if how == "reset" else connection.writer.close()

    return script


def fails_after(*sent, how, is_stream):
    seen = threading.Event()

    async def action(transport, request):
        async with transport.send(request) as got:
            if is_stream:
                async for _ in got.chunks():
                    seen.set()
            else:
                seen.set()
                await got.read()

    return fails(cut_after(*sent, how=how, seen=seen), action)


@pytest.mark.parametrize("how", ["reset", "close"])
@pytest.mark.parametrize(
    "sent",
    [
        (CHUNKED, piece(b"one")),
        (CHUNKED, piece(b"one"), b"40\r\npart"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\none",),
    ],
    ids=["between pieces", "inside a piece", "short of its length"],
)
def test_a_body_that_is_cut(sent, how):
    """A whole read is a network error, a stream a stream error; never a short success."""
    whole = fails_after(*sent, how=how, is_stream=False)
    stream = fails_after(*sent, how=how, is_stream=True)

    assert (type(whole), type(stream)) == (NetworkError, StreamError)
    assert whole.retryable
    assert stream.retryable


def test_what_came_before_the_cut_was_handed_over():
    """The chunks before a reset reach the reader."""
    got = []
    seen = threading.Event()
    seen.set()
    script = cut_after(CHUNKED, piece(b"one"), piece(b"two"), how="close", seen=seen)
    with Server(script) as server:

        async def work(transport):
            with pytest.raises(StreamError):
                await collect(transport, call(server.url), got)

        run(work)

    assert b"".join(got) == b"onetwo"


def test_packed_data_that_is_cut():
    """Half a gzip member is not a body."""
    half = gzip.compress(os.urandom(5000))[:2500]
    told = reply(half, headers=("content-encoding: gzip",))

    assert type(fails(answering(told), has_ended=True)) is NetworkError
    assert type(fails(answering(told), collect, has_ended=True)) is StreamError


@pytest.mark.parametrize(
    "told",
    [
        reply(b"x" * 5000),
        CHUNKED + piece(b"x" * 5000) + LAST,
        reply(gzip.compress(b"x" * 10_000_000), headers=("content-encoding: gzip",)),
    ],
    ids=["with its length", "in pieces", "packed"],
)
def test_a_body_that_is_too_large(told):
    """Over the limit is an error that says so, not memory without end."""
    error = fails(answering(told), has_ended=True, max_body=4000)

    assert type(error) is DecodeError
    assert not error.retryable
    assert "4000" in error.message


def test_a_body_as_large_as_the_limit():
    """The limit itself is allowed."""
    with Server(answering(reply(b"x" * 4000))) as server:
        assert len(run(lambda t: read(t, call(server.url)), max_body=4000)[2]) == 4000


def test_a_packing_nobody_asked_for():
    """Brotli is an error with its name, not noise."""
    error = fails(answering(reply(b"\x0b", headers=("content-encoding: br",))), has_ended=True)

    assert type(error) is DecodeError
    assert "'br'" in error.message
