"""Proxies: tunnels, TLS to the proxy, TLS within TLS, and proxies that fail."""

import asyncio
import ssl
from base64 import b64encode

import pytest

from interlingua.spec.contracts import HttpRequest
from interlingua.spec.defaults import Timeouts
from interlingua.spec.errors import ConfigurationError, NetworkError, RequestTimeoutError
from support.http_calls import assert_no_key, call, collect, make_certificate, read, run, server_tls
from support.loops import every_loop
from support.servers import CHUNKED, LAST, Server, free_port, piece, reply

HOST = "provider.test"  # nobody can find its address, so only a proxy gets there
SECRET = "hunter2-planted"


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    return monkeypatch


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("tls")


@pytest.fixture(scope="module")
def host_certificate(folder):
    return make_certificate(folder / "host.pem", name=HOST)


@pytest.fixture(scope="module")
def proxy_certificate(folder):
    return make_certificate(folder / "proxy.pem")


@pytest.fixture(scope="module")
def trusting(host_certificate, proxy_certificate):
    """The context of a client that trusts both."""
    context = ssl.create_default_context(cafile=str(host_certificate))
    context.load_verify_locations(proxy_certificate)
    return context


async def converse(connection):
    """Whole replies and streams, by the path of the request."""
    while (request := await connection.read_request()) is not None:
        if request.target.endswith("/stream"):
            await connection.send(CHUNKED, piece(b"one"), piece(b"two"), LAST)
        elif request.target.endswith("/large"):
            connection.writer.write(reply(bytes(3_000_000)))
        else:
            await connection.send(reply(b"%d" % len(request.body)))


def tunnel_to(server):
    """A script that opens tunnels to this server, whatever host was named."""

    async def script(connection):
        request = await connection.read_request()
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        await connection.send(b"HTTP/1.1 200 Connection established\r\n\r\n")
        assert request.method == "CONNECT"
        try:
            await asyncio.gather(
                pass_on(connection.reader, writer), pass_on(reader, connection.writer)
            )
        finally:
            writer.transport.abort()

    return script


async def pass_on(reader, writer):
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()
    writer.close()


def basic(user, password):
    """As a header that the server has put in lower case."""
    return "basic " + b64encode(f"{user}:{password}".encode()).decode().lower()


@every_loop
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_tunnel(environment, host_certificate, proxy_certificate, trusting, scheme, loop):
    """Calls to an https host go through one tunnel; each side gets the keys that are its own."""

    async def work(transport):
        url = f"https://{HOST}/v1"
        assert (await read(transport, call(url)))[2] == b"7"
        assert await collect(transport, HttpRequest(url=f"{url}/stream")) == b"onetwo"
        for size in (900_000, 3_000_000):
            got = await read(transport, HttpRequest(url=url, body=bytes(size)))
            assert got[2] == b"%d" % size
        assert (await read(transport, HttpRequest(url=f"{url}/large")))[2] == bytes(3_000_000)

    with Server(converse, tls=server_tls(host_certificate)) as host:
        tls = server_tls(proxy_certificate) if scheme == "https" else None
        with Server(tunnel_to(host), tls=tls) as proxy:
            address = f"{scheme}://me%40corp:{SECRET}%3A@127.0.0.1:{proxy.port}"
            environment.setenv("HTTPS_PROXY", address)
            run(work, loop=loop, tls=trusting)

    (asked,) = proxy.requests
    assert (asked.method, asked.target) == ("CONNECT", f"{HOST}:443")
    assert asked.headers["host"] == f"{HOST}:443"
    assert asked.headers["proxy-authorization"] == basic("me@corp", f"{SECRET}:")
    assert "authorization" not in asked.headers
    assert len(host.connections) == 1
    assert all("proxy-authorization" not in request.headers for request in host.requests)
    assert host.requests[0].headers["host"] == HOST


@every_loop
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_an_http_host_behind_a_proxy(environment, proxy_certificate, trusting, scheme, loop):
    """The proxy gets the whole URL, over TLS if it has that; connections are kept."""

    async def work(transport):
        for _ in range(3):
            assert (await read(transport, call(f"http://{HOST}:8080/v1")))[2] == b"7"

    tls = server_tls(proxy_certificate) if scheme == "https" else None
    with Server(converse, tls=tls) as proxy:
        environment.setenv("HTTP_PROXY", f"{scheme}://me:{SECRET}@127.0.0.1:{proxy.port}")
        run(work, loop=loop, tls=trusting)

    assert len(proxy.connections) == 1
    for request in proxy.requests:
        assert request.target.startswith(f"http://{HOST}:8080/v1?key=")
        assert request.headers["host"] == f"{HOST}:8080"
        assert request.headers["proxy-authorization"] == basic("me", SECRET)


def test_hosts_without_a_proxy(environment):
    """A host in `NO_PROXY` is asked directly, here in vain."""
    environment.setenv("ALL_PROXY", "http://127.0.0.1:9")
    environment.setenv("NO_PROXY", "provider.invalid")

    async def work(transport):
        for host, words in (
            ("provider.invalid", r"Cannot find the address of provider\.invalid:443"),
            ("other.invalid", r"Cannot connect to the proxy 127\.0\.0\.1:9"),
        ):
            with pytest.raises(NetworkError, match=words):
                await read(transport, call(f"https://{host}/v1"))

    run(work)


def test_a_socks_proxy(environment):
    """The error names the transport that supports it."""
    environment.setenv("ALL_PROXY", f"socks5://me:{SECRET}@127.0.0.1:9")

    async def work(transport):
        with pytest.raises(ConfigurationError, match="Use HttpxTransport") as caught:
            await read(transport, call(f"https://{HOST}/v1"))
        return caught.value

    assert SECRET not in str(run(work))


def fails_with(environment, script, *, loop, url=f"https://{HOST}/v1", proxy_tls=None, **settings):
    """The error of a call through a proxy with this script, and the name of the proxy."""

    async def work(transport):
        with pytest.raises((NetworkError, RequestTimeoutError)) as caught:
            await read(transport, call(url))
        return caught.value

    with Server(script, tls=proxy_tls) as proxy:
        scheme = "https" if proxy_tls else "http"
        for name in ("HTTP_PROXY", "HTTPS_PROXY"):
            environment.setenv(name, f"{scheme}://me:{SECRET}@127.0.0.1:{proxy.port}")
        error = run(work, loop=loop, **settings)
        assert proxy.all_closed()
    assert_no_key(error)
    assert SECRET not in f"{error}{error!r}{error.cause!r}"
    return error, f"the proxy 127.0.0.1:{proxy.port}"


def answer(*pieces, then=None):
    """A script that answers CONNECT with these bytes."""

    async def script(connection):
        await connection.read_request()
        await connection.send(*pieces)
        if then == "close":
            connection.writer.close()
        elif then == "reset":
            connection.reset()

    return script


OPEN = b"HTTP/1.1 200 OK\r\n\r\n"
FAULTS = {
    "refuses a password": (answer(reply(status="407 Auth", headers=("connection: close",))), False),
    "forbids the host": (answer(reply(b"no", status="403 Forbidden")), False),
    "redirects": (answer(reply(status="302 Found", headers=("location: http://x/",))), False),
    "finds no host": (answer(reply(status="502 Bad Gateway")), True),
    "closes": (answer(then="close"), True),
    "resets": (answer(then="reset"), True),
    "closes in its answer": (answer(b"HTTP/1.1 200 OK\r\nx: ", then="close"), True),
    "answers garbage": (answer(b"garbage\r\n\r\n"), True),
    "speaks another protocol": (answer(b"\x05\x00"), True),
    "changes the protocol": (answer(b"HTTP/1.1 101 Up\r\n\r\n"), True),
    "closes its tunnel": (answer(OPEN, then="close"), True),
    "resets its tunnel": (answer(OPEN, then="reset"), True),
}  # fmt: skip


@every_loop
@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize(("script", "retryable"), FAULTS.values(), ids=FAULTS)
def test_a_proxy_that_fails_is_named(
    environment, proxy_certificate, trusting, scheme, script, retryable, loop
):
    """The error names the proxy, holds no password, and says whether a retry can help."""
    tls = server_tls(proxy_certificate) if scheme == "https" else None
    error, proxy = fails_with(environment, script, loop=loop, proxy_tls=tls, tls=trusting)

    assert type(error) is NetworkError
    assert proxy in error.message.replace("The proxy", "the proxy")
    assert (error.phase, error.retryable) == ("connect", retryable)


@every_loop
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_tunnel_that_leads_to_no_tls(environment, proxy_certificate, trusting, scheme, loop):
    """What the proxy lets through is not the host."""
    tls = server_tls(proxy_certificate) if scheme == "https" else None
    script = answer(OPEN, b"garbage " * 10)
    error, proxy = fails_with(environment, script, loop=loop, proxy_tls=tls, tls=trusting)

    assert f"{HOST}:443 (through {proxy})" in error.message
    assert error.phase == "connect"


@every_loop
@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize("pieces", [(), (OPEN,), (b"HTTP/1.1 2",)], ids=["", "open", "half"])
def test_a_proxy_that_stalls(environment, proxy_certificate, trusting, scheme, pieces, loop):
    """The connect timeout names the proxy."""
    tls = server_tls(proxy_certificate) if scheme == "https" else None
    settings = {"proxy_tls": tls, "tls": trusting, "timeouts": Timeouts(connect=0.2)}
    error, proxy = fails_with(environment, answer(*pieces), loop=loop, **settings)

    assert type(error) is RequestTimeoutError
    assert f"{HOST}:443 (through {proxy})" in error.message
    assert (error.phase, error.retryable) == ("connect", True)


@every_loop
@pytest.mark.parametrize("fault", ["close", "reset", "garbage", "half"])
def test_a_proxy_that_fails_for_an_http_host_is_named(environment, fault, loop):
    """It or the host has failed, so the error names both."""

    async def script(connection):
        await connection.read_request()
        if fault == "garbage":
            await connection.send(b"garbage\r\n\r\n")
        elif fault == "reset":
            connection.reset()
        else:
            head = b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n"
            await connection.send(head if fault == "half" else b"")
            connection.writer.close()

    error, proxy = fails_with(environment, script, loop=loop, url=f"http://{HOST}/v1")

    assert f"{HOST}:80 (through {proxy})" in error.message
    assert error.retryable


@every_loop
def test_a_proxy_that_is_not_there(environment, loop):
    """A refused connection, and a proxy without an address."""

    async def work(transport):
        with pytest.raises(NetworkError) as caught:
            await read(transport, call(f"https://{HOST}/v1"))
        return caught.value

    port = free_port()
    environment.setenv("HTTPS_PROXY", f"http://me:{SECRET}@127.0.0.1:{port}")
    refused = run(work, loop=loop)
    environment.setenv("HTTPS_PROXY", f"http://me:{SECRET}@proxy.invalid:3128")
    unknown = run(work, loop=loop)

    assert f"Cannot connect to the proxy 127.0.0.1:{port}: " in refused.message
    assert "Cannot find the address of the proxy proxy.invalid:3128: " in unknown.message
    assert SECRET not in f"{refused!r}{unknown!r}"


@every_loop
def test_a_proxy_whose_certificate_is_not_trusted(environment, proxy_certificate, loop):
    """It is the proxy that the error names."""
    tls = server_tls(proxy_certificate)
    error, proxy = fails_with(environment, answer(OPEN), loop=loop, proxy_tls=tls)

    assert f"The TLS handshake with {proxy} failed: self-signed certificate" in error.message
    assert not error.retryable


@every_loop
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_host_whose_certificate_is_not_valid_behind_a_proxy(
    environment, proxy_certificate, trusting, scheme, loop
):
    """It is the host that the error names; TLS is not ended by the proxy."""
    with Server(converse, tls=server_tls(proxy_certificate)) as host:
        tls = server_tls(proxy_certificate) if scheme == "https" else None
        error, proxy = fails_with(
            environment, tunnel_to(host), loop=loop, proxy_tls=tls, tls=trusting
        )

    assert f"The TLS handshake with {HOST}:443 (through {proxy}) failed: " in error.message
    assert "Hostname mismatch" in error.message
    assert not error.retryable
    assert host.requests == []
