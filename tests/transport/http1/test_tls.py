"""TLS: versions, certificates, and connections that end in the middle of it."""

import asyncio
import os
import socket
import ssl
import subprocess
import sys
import threading
import time
from contextlib import suppress

import pytest

from interlingua.spec.contracts import HttpRequest
from interlingua.spec.defaults import Timeouts
from interlingua.spec.errors import (
    ConfigurationError,
    NetworkError,
    RequestTimeoutError,
    StreamError,
)
from interlingua.transport.http1 import tls as certificates
from support.http_calls import (
    assert_no_key,
    call,
    collect,
    make_certificate,
    read,
    run,
    server_tls,
)
from support.loops import every_loop
from support.patience import PATIENCE, with_some_timeout
from support.servers import CHUNKED, LAST, Server, answering, piece, reply
from support.simulated import settled

VERSIONS = [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3]
every_version = pytest.mark.parametrize("version", VERSIONS, ids=["TLS 1.2", "TLS 1.3"])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("tls")


@pytest.fixture(scope="module")
def certificate(folder):
    """For 127.0.0.1, with its key; no system trusts it."""
    return make_certificate(folder / "server.pem")


def serving(certificate, version=None):
    """The context of a server."""
    context = server_tls(certificate)
    if version is not None:
        context.minimum_version = context.maximum_version = version
    return context


def trusting(certificate):
    """The context of a client that trusts this certificate alone."""
    return ssl.create_default_context(cafile=str(certificate))


async def converse(connection):
    """Whole replies, streams, and bodies until the close, by the path of the request."""
    while (request := await connection.read_request()) is not None:
        kind = request.target.rpartition("/")[2]
        if kind == "stream":
            await connection.send(CHUNKED, piece(b"one"), piece(b"two"), LAST)
        elif kind == "large":
            connection.writer.write(reply(bytes(5_000_000)))
        elif kind == "close":
            await connection.send(b"HTTP/1.1 200 OK\r\n\r\n", b"x" * 700_000)
            connection.writer.close()
            return
        else:
            await connection.send(reply(b"%d" % len(request.body)))


@every_loop
@every_version
def test_exchanges_over_tls(certificate, version, loop):
    """Of every kind, large and small; those that may share a connection do."""

    async def work(transport):
        url = server.url.removesuffix("x")
        for size in (2, 900_000, 3_000_000):
            got = await read(transport, HttpRequest(url=f"{url}whole", body=bytes(size)))
            assert got[2] == b"%d" % size
        assert await collect(transport, HttpRequest(url=f"{url}stream")) == b"onetwo"
        assert (await read(transport, HttpRequest(url=f"{url}large")))[2] == bytes(5_000_000)
        assert len(server.connections) == 1
        assert (await read(transport, HttpRequest(url=f"{url}close")))[2] == b"x" * 700_000
        assert (await read(transport, HttpRequest(url=f"{url}whole")))[2] == b"0"
        assert len(server.connections) == 2

    with Server(converse, tls=serving(certificate, version)) as server:
        run(work, loop=loop, tls=trusting(certificate))


@every_loop
def test_a_slow_reader_gets_all_of_a_body_until_the_close(certificate, loop):
    """What TLS had decrypted when reading stopped is not lost at the end."""

    async def work(transport):
        async with transport.send(HttpRequest(url=server.url.removesuffix("x") + "close")) as got:
            size = 0
            async for chunk in got.chunks():
                size += len(chunk)
                await asyncio.sleep(0.01)
        return size

    with Server(converse, tls=serving(certificate)) as server:
        assert run(work, loop=loop, tls=trusting(certificate)) == 700_000


@every_loop
def test_a_slow_reader_gets_all_before_an_error(certificate, loop):
    """The same for a body that is cut short."""

    async def script(connection):
        await connection.read_request()
        await connection.send(b"HTTP/1.1 200 OK\r\ncontent-length: 900000\r\n\r\n", bytes(700_000))
        connection.writer.close()

    async def work(transport):
        sizes = []
        with pytest.raises(StreamError):
            await collect_slowly(transport, sizes)
        return sum(sizes)

    async def collect_slowly(transport, sizes):
        async with transport.send(HttpRequest(url=server.url)) as got:
            async for chunk in got.chunks():
                sizes.append(len(chunk))
                await asyncio.sleep(0.01)

    with Server(script, tls=serving(certificate)) as server:
        assert run(work, loop=loop, tls=trusting(certificate)) == 700_000


class OpenSsl:
    """Runs `talk(socket)` in a thread for each connection; asyncio does not send every alert."""

    def __init__(self, talk):
        self._talk = talk

    def __enter__(self):
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.url = f"https://127.0.0.1:{self.port}/v1/x"
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join(PATIENCE)
        self._listener.close()

    def _accept(self):
        with suppress(OSError):
            while True:
                sock, _ = self._listener.accept()
                with sock, suppress(OSError):
                    self._talk(sock)


def fails_with(url, *, loop="asyncio", action=read, **settings):
    """The error of one call."""

    async def work(transport):
        with pytest.raises((NetworkError, RequestTimeoutError)) as caught:
            await action(transport, call(url))
        return caught.value

    error = run(work, loop=loop, **settings)
    assert_no_key(error)
    return error


@every_loop
@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"name": "other.test"}, "IP address mismatch"),
        ({"name": "127.0.0.2"}, "IP address mismatch"),
        ({"days": -1}, "certificate has expired"),
    ],
    ids=["another name", "another address", "expired"],
)
def test_a_certificate_that_is_not_valid(folder, loop, settings, words):
    """The error names the host and says why; a retry would not help."""
    wrong = make_certificate(folder / "wrong.pem", **settings)
    with Server(answering(reply()), tls=serving(wrong)) as server:
        error = fails_with(server.url, loop=loop, tls=trusting(wrong))

    assert f"The TLS handshake with 127.0.0.1:{server.port} failed: " in error.message
    assert words in error.message
    assert (error.phase, error.retryable) == ("connect", False)
    assert server.requests == []


@every_loop
@every_version
def test_client_certificates(certificate, folder, version, loop):
    """A context with one is accepted; without it the error names TLS, and a retry is no help."""
    own = make_certificate(folder / "client.pem", name="client.test")
    context = serving(certificate, version)
    context.load_verify_locations(own)
    context.verify_mode = ssl.CERT_REQUIRED
    with_own = trusting(certificate)
    with_own.load_cert_chain(own)

    def talk(sock):
        with context.wrap_socket(sock, server_side=True, do_handshake_on_connect=False) as peer:
            try:
                peer.do_handshake()
            except ssl.SSLError:
                while os.read(peer.fileno(), 65536):  # else the close would be a reset
                    pass
            else:
                peer.recv(65536)
                peer.sendall(reply(b"known"))
                peer.recv(65536)

    with OpenSsl(talk) as server:
        got = run(lambda t: read(t, call(server.url)), loop=loop, tls=with_own)
        error = fails_with(server.url, loop=loop, tls=trusting(certificate))

    assert got[2] == b"known"
    assert f"127.0.0.1:{server.port} failed: " in error.message
    assert "ALERT" in error.message
    assert not error.retryable


def test_the_variable_of_openssl_names_the_certificates(certificate):
    """`SSL_CERT_FILE` is read; without it this certificate is not trusted."""
    code = """
import asyncio, sys
from interlingua.spec.contracts import HttpRequest
from interlingua.transport import HttpTransport

async def main():
    transport = HttpTransport()
    try:
        async with transport.send(HttpRequest(url=sys.argv[1])) as reply:
            print((await reply.read()).decode())
    except OSError as error:
        print(error)
    finally:
        await transport.close()

asyncio.run(main())
"""

    def said(**variables):
        environment = {key: value for key, value in os.environ.items() if key != "SSL_CERT_FILE"}
        return subprocess.run(
            [sys.executable, "-W", "error", "-c", code, server.url],
            capture_output=True,
            text=True,
            check=True,
            timeout=PATIENCE,
            env=environment | variables,
        ).stdout.strip()

    with Server(answering(reply(b"trusted")), tls=serving(certificate)) as server:
        assert said(SSL_CERT_FILE=str(certificate)) == "trusted"
        assert "self-signed certificate" in said()


def test_the_certificates_are_loaded_once(monkeypatch):
    """Also by calls at the same time."""
    made = []
    create = ssl.create_default_context

    def slow(*args, **options):
        made.append(1)
        time.sleep(0.05)
        return create(*args, **options)

    monkeypatch.setattr(ssl, "create_default_context", slow)
    certificates.load.cache_clear()

    async def work(transport):
        await asyncio.gather(*(transport.get_ready("https://host.test/") for _ in range(10)))
        await transport.get_ready("http://host.test/")

    run(work)
    run(work)
    assert len(made) == 1


def test_certificates_that_cannot_be_loaded(monkeypatch, tmp_path):
    """The error says what is wrong, and is not one of the network."""
    monkeypatch.setenv("SSLKEYLOGFILE", str(tmp_path / "missing" / "keys"))
    certificates.load.cache_clear()

    async def work(transport):
        with pytest.raises(ConfigurationError, match=r"Cannot prepare TLS: .*missing"):
            await read(transport, call("https://127.0.0.1:9/"))

    run(work)


async def silent(connection):
    await connection.reader.read(1000)
    await connection.gone()


async def half_a_handshake(connection):
    await connection.reader.read(1000)
    await connection.send(b"\x16\x03\x03\x00\x7a\x02\x00")
    await connection.gone()


@every_loop
@pytest.mark.parametrize("script", [silent, half_a_handshake])
def test_a_handshake_that_stalls(script, loop):
    """It ends with the connect timeout, and the connection is closed."""

    with Server(script) as server:
        url = server.url.replace("http:", "https:")
        error = fails_with(url, loop=loop, timeouts=Timeouts(connect=0.1))
        assert server.all_closed()

    assert (error.phase, error.retryable) == ("connect", True)
    assert f"127.0.0.1:{server.port}" in error.message


async def plain(connection):
    await connection.reader.read(1000)
    await connection.send(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n")
    await connection.gone()


async def close_at_once(connection):
    await connection.reader.read(1000)
    connection.writer.close()


async def reset_at_once(connection):
    await connection.reader.read(1000)
    connection.reset()


@every_loop
@pytest.mark.parametrize(
    ("script", "retryable"), [(plain, False), (close_at_once, True), (reset_at_once, True)]
)
def test_a_server_without_tls(script, retryable, loop):
    """One that speaks something else is wrong; one that hangs up may be back soon."""
    with Server(script) as server:
        error = fails_with(server.url.replace("http:", "https:"), loop=loop)

    assert type(error) is NetworkError
    assert f"127.0.0.1:{server.port}" in error.message
    assert (error.phase, error.retryable) == ("connect", retryable)


def at_once(context, last):
    """
    A server that sends something together with the end of the handshake, in one segment.

    In TLS 1.2 the server ends the handshake.
    """

    def talk(sock):
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        peer = context.wrap_bio(incoming, outgoing, server_side=True)
        while True:
            try:
                peer.do_handshake()
            except ssl.SSLWantReadError:
                sock.sendall(outgoing.read())
                incoming.write(sock.recv(65536))
            else:
                break
        last(peer)
        sock.sendall(outgoing.read())
        sock.recv(65536)  # the request, or the end

    return talk


def hang_up(peer):
    with suppress(ssl.SSLError):  # the client's part is not awaited
        peer.unwrap()


def shout(peer):
    peer.write(reply(b"unasked"))


@every_loop
@pytest.mark.parametrize("last", [hang_up, shout])
def test_what_comes_with_the_end_of_the_handshake(certificate, last, loop):
    """
    It is an error, and no connection is kept.

    An unasked reply is an answer on loops that deliver it only after the request was sent.
    """

    async def work(transport):
        for _ in range(20):
            try:
                got = await asyncio.wait_for(read(transport, call(server.url)), PATIENCE)
            except NetworkError as error:
                assert error.retryable
            else:
                assert (last, got[2]) == (shout, b"unasked")
        pool = transport._pools.get(asyncio.get_running_loop())
        await settled(lambda: not pool.connections)

    context = serving(certificate, ssl.TLSVersion.TLSv1_2)
    with OpenSsl(at_once(context, last)) as server:
        run(work, loop=loop, tls=trusting(certificate))


def test_an_idle_connection_that_the_server_closed_is_not_used(certificate):
    """The close of TLS is seen before the next call."""

    async def script(connection):
        await connection.read_request()
        await connection.send(reply(b"ok"))
        connection.writer.close()

    async def work(transport):
        resent = []
        for _ in range(10):
            request = call(server.url, on_resend=lambda: resent.append(1))
            assert (await read(transport, request))[2] == b"ok"
        return resent

    with Server(script, tls=serving(certificate)) as server:
        run(work, tls=trusting(certificate))

    assert len(server.requests) >= 10


def test_a_slow_handshake_is_within_the_connect_timeout(certificate):
    """A connection that opens in time is used."""

    def check(seconds):
        async def work(transport):
            return (await read(transport, call(server.url)))[2]

        with Server(answering(reply(b"ok")), tls=serving(certificate)) as server:
            timeouts = Timeouts(connect=seconds)
            assert run(work, tls=trusting(certificate), timeouts=timeouts) == b"ok"

    with_some_timeout(check)
