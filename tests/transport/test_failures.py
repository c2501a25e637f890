"""Each network failure is a typed error that says whether it is retryable."""

import asyncio
import gzip
import os
import socket
import threading

import pytest

from interlingua.spec.contracts import HttpRequest
from interlingua.spec.defaults import Limits
from interlingua.spec.errors import (
    ConfigurationError,
    DecodeError,
    NetworkError,
    StreamError,
)
from interlingua.transport.timeouts import address_of
from support.http_calls import KEY, assert_no_key, call, collect, make_certificate, read, server_tls
from support.patience import PATIENCE
from support.servers import (
    CHUNKED,
    LAST,
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
def test_a_refused_connection_names_host_and_port(run, action):
    """A refused connection is a retryable network error."""
    port = free_port()

    async def work(transport):
        with pytest.raises(NetworkError, match=rf"Cannot connect to 127\.0\.0\.1:{port}") as caught:
            await action(transport, call(f"http://127.0.0.1:{port}/v1"))
        return caught.value

    error = run(work)

    assert error.retryable
    assert_no_key(error)


def test_unknown_host(run):
    """A host without an address is a network error that names the host."""

    async def work(transport):
        with pytest.raises(NetworkError, match=r"Cannot find the address of nowhere\.invalid") as c:
            await read(transport, call("http://nowhere.invalid/v1"))
        return c.value

    error = run(work)

    assert error.retryable
    assert isinstance(error.cause, socket.gaierror)
    assert_no_key(error)


def test_untrusted_certificate(fails, certificate):
    """An untrusted certificate is an error that is not retryable."""
    error = fails(answering(reply()), tls=server_tls(certificate))

    assert type(error) is NetworkError
    assert not error.retryable
    assert "certificate" in error.message


def test_server_without_tls(run):
    """TLS to a server without TLS is a network error."""

    async def script(connection):
        await connection.reader.read(1)
        await connection.send(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    with Server(script) as server:

        async def work(transport):
            with pytest.raises(NetworkError, match=r"The TLS handshake with .* failed") as caught:
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
def test_no_reply(fails, script, action):
    """A connection that ends, or is not HTTP, before the headers is a retryable error."""
    error = fails(script, action)

    assert type(error) is NetworkError
    assert error.retryable
    # httpx2 does not tell garbage from the end of the connection
    not_http = (type(None), EOFError)
    causes = {reset_at_once: ConnectionResetError, close_at_once: EOFError, garbage: not_http}
    assert isinstance(error.cause, causes[script])


@pytest.mark.parametrize("url", ["", "x", "ftp://a/b", "http://", "http:///x", "http://[", "/v1"])
def test_invalid_url(run, url):
    """An invalid URL is a ConfigurationError."""

    async def work(transport):
        with pytest.raises(ConfigurationError):
            await read(transport, HttpRequest(url=url))

    run(work)


def test_a_key_with_a_line_break(run):
    """An invalid header is a ConfigurationError that does not show its value."""

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


def fails_after(fails, *sent, how, is_stream):
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
def test_incomplete_body(fails, sent, how):
    """An incomplete body is a NetworkError, or a StreamError for a stream; never a success."""
    whole = fails_after(fails, *sent, how=how, is_stream=False)
    stream = fails_after(fails, *sent, how=how, is_stream=True)

    assert (type(whole), type(stream)) == (NetworkError, StreamError)
    assert whole.retryable
    assert stream.retryable
    assert isinstance(whole.cause, (ConnectionResetError, EOFError))
    assert isinstance(stream.cause, (ConnectionResetError, EOFError))


def test_chunks_before_a_reset(run):
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


def test_incomplete_gzip(fails):
    """An incomplete gzip member is an error."""
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
def test_a_body_that_is_too_large(fails, told):
    """A body over the limit is an error."""
    error = fails(answering(told), has_ended=True, limits=Limits(body=4000))

    assert type(error) is DecodeError
    assert not error.retryable
    assert "4000" in error.message


def test_a_body_as_large_as_the_limit(run):
    """The limit itself is allowed."""
    with Server(answering(reply(b"x" * 4000))) as server:
        assert len(run(lambda t: read(t, call(server.url)), limits=Limits(body=4000))[2]) == 4000


def test_unsupported_content_encoding(fails):
    """An unsupported content encoding is an error that names it."""
    error = fails(
        answering(reply(b"\x0b", headers=("content-encoding: compress",))), has_ended=True
    )

    assert type(error) is DecodeError
    assert "'compress'" in error.message


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("https://api.example/v1", "api.example:443"),
        ("http://api.example/v1", "api.example:80"),
        ("http://[::1]:8080/", "[::1]:8080"),
        ("https://user:secret@h.example:9/x?key=secret", "h.example:9"),
        ("http://h:99999/", "no host"),
        ("nonsense", "no host"),
    ],
)
def test_messages_have_host_and_port_and_nothing_else_of_the_url(url, address):
    """Host and port, and nothing else of the URL."""
    assert address_of(url) == address
