"""The httpx2 transport: your own client, its proxies, its packages, and stale connections."""

import asyncio
import gc
import sys
from functools import partial

import httpx2
import pytest

from interlingua.spec.defaults import Limits
from interlingua.spec.errors import (
    ConfigurationError,
    DecodeError,
    NetworkError,
)
from interlingua.transport.httpx2_transport import HttpxTransport
from support import http_calls
from support.http_calls import call, collect, read
from support.servers import Server, answering, free_port, reply
from support.simulated import settled

run = partial(http_calls.run, kind=HttpxTransport)


def test_several_event_loops():
    """One transport works in several event loops, and leaves nothing open."""
    transport = HttpxTransport()
    with Server(answering(reply())) as server:
        for _ in range(3):
            asyncio.run(read(transport, call(server.url)))
            gc.collect()
        assert server.all_closed()


def test_one_stale_connection_makes_the_others_suspect():
    """The request is sent again on a new connection, though others are idle."""

    async def script(connection):
        number = len(server.connections)
        await connection.read_request()
        await settled(lambda: len(server.connections) > 1)  # each call opens a connection
        await connection.send(reply(b"ok"))
        if number <= 2:
            await connection.read_request()
            connection.writer.close()

    async def work(transport):
        await asyncio.gather(*(read(transport, call(server.url)) for _ in range(2)))
        return (await read(transport, call(server.url)))[2]

    with Server(script) as server:
        assert run(work) == b"ok"

    assert sorted(len(connection.requests) for connection in server.connections) == [1, 1, 2]


def test_custom_client():
    """A given client is used with its settings, and stays open."""

    async def main():
        seen = []

        def answer(request):
            seen.append(request.headers["x-mine"])
            return httpx2.Response(200, content=b"mine")

        async with httpx2.AsyncClient(
            transport=httpx2.MockTransport(answer), headers={"x-mine": "yes"}
        ) as client:
            transport = HttpxTransport(client=client)
            for _ in range(2):
                assert (await read(transport, call("http://nowhere.invalid/")))[2] == b"mine"
                await transport.close()
        return seen

    assert asyncio.run(main()) == ["yes", "yes"]


NAMES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")


@pytest.fixture
def environment(monkeypatch):
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    return monkeypatch


def test_proxies_are_chosen_as_in_the_default_transport(environment):
    """Loopback and NO_PROXY hosts are connected directly, other hosts through the proxy."""
    with Server(answering(reply(b"proxied"))) as proxy, Server(answering(reply(b"own"))) as own:
        environment.setenv("ALL_PROXY", f"http://user:pass@127.0.0.1:{proxy.port}")
        environment.setenv("NO_PROXY", "direct.invalid")

        async def work(transport):
            through = (await read(transport, call("http://provider.test/v1")))[2]
            direct = (await read(transport, call(own.url)))[2]
            with pytest.raises(NetworkError, match=r"direct\.invalid"):
                await read(transport, call("http://direct.invalid/v1"))
            return through, direct

        assert run(work) == (b"proxied", b"own")

        async def refused(transport):
            with pytest.raises(NetworkError, match=r"provider\.invalid"):
                await read(transport, call("http://provider.invalid/v1"))

        run(refused, trust_env=False)

    (request,) = proxy.requests
    assert request.target.startswith("http://provider.test/v1?")
    assert request.headers["proxy-authorization"] == "basic dxnlcjpwyxnz"  # lowered by the server


def through_proxy(environment, proxy, url, **settings):
    """The error of a call through this proxy."""
    environment.setenv("ALL_PROXY", proxy)

    async def work(transport):
        with pytest.raises(NetworkError) as caught:
            await read(transport, call(url))
        return caught.value

    error = run(work, **settings)
    assert "planted" not in f"{error!s}{error!r}"
    return error


@pytest.mark.parametrize(
    ("status", "retryable"), [("407 Proxy Authentication Required", False), ("502 Bad", True)]
)
def test_a_proxy_that_refuses_a_tunnel(environment, status, retryable):
    """It is named, without its password; a wrong one is not retryable, a server error is."""
    with Server(answering(reply(status=status))) as proxy:
        address = f"127.0.0.1:{proxy.port}"
        error = through_proxy(
            environment, f"http://planted:planted@{address}", "https://provider.test/v1"
        )

    assert str(error) == (
        f"The proxy {address} refused a connection to provider.test:443: {status}"
    )
    assert (error.retryable, error.phase) == (retryable, "connect")
    assert proxy.requests[0].method == "CONNECT"
    assert "authorization" not in proxy.requests[0].headers


def test_a_socks_proxy_that_refuses_a_connection(environment):
    """It is named too."""
    pytest.importorskip("socksio", reason="needs httpx2[socks]")

    async def refuse(connection):
        await connection.reader.readexactly(3)
        await connection.send(b"\x05\xff")

    with Server(refuse) as proxy:
        address = f"127.0.0.1:{proxy.port}"
        error = through_proxy(environment, f"socks5h://{address}", "https://provider.test/v1")

    assert str(error).startswith(f"The proxy {address} refused a connection to provider.test:443: ")


@pytest.mark.parametrize("scheme", ["http", "socks5"])
def test_a_silent_proxy_is_cut_off(environment, scheme):
    """When the call is given up, the connection to the proxy is closed."""
    if scheme == "socks5":
        pytest.importorskip("socksio", reason="needs httpx2[socks]")

    asked = []

    async def silent_proxy(connection):
        asked.append(await connection.reader.read(1))

    with Server(silent_proxy) as proxy:
        environment.setenv("ALL_PROXY", f"{scheme}://127.0.0.1:{proxy.port}")

        async def work(transport):
            task = asyncio.ensure_future(read(transport, call("https://provider.test/v1")))
            await settled(lambda: asked)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert await asyncio.to_thread(proxy.all_closed)

        run(work)


def test_a_proxy_that_does_not_listen(environment):
    """The error names the proxy, and not the host that nobody asked."""
    address = f"127.0.0.1:{free_port()}"
    for url in ("https://provider.test/v1", "http://provider.test/v1"):
        error = through_proxy(environment, f"http://planted:planted@{address}", url)
        assert str(error) == f"Cannot connect to the proxy {address}: Connection refused"
        assert isinstance(error.cause, ConnectionRefusedError)


def test_a_host_behind_a_proxy_that_speaks_no_tls(environment):
    """The error names both."""

    async def script(connection):
        await connection.read_request()
        await connection.send(b"HTTP/1.1 200 OK\r\n\r\n")
        await connection.reader.read(1000)
        await connection.send(b"This is not TLS.")

    with Server(script) as proxy:
        address = f"127.0.0.1:{proxy.port}"
        error = through_proxy(environment, f"http://{address}", "https://provider.test/v1")

    start = f"The TLS handshake with provider.test:443 through the proxy {address} failed: "
    assert str(error).startswith(start)


def test_a_client_of_your_own_whose_proxy_refuses():
    """The transport does not know its address."""
    with Server(answering(reply(status="407 Who"))) as proxy:

        async def main():
            address = f"http://127.0.0.1:{proxy.port}"
            async with httpx2.AsyncClient(proxy=address, trust_env=False) as client:
                with pytest.raises(NetworkError) as caught:
                    await read(HttpxTransport(client=client), call("https://provider.test/v1"))
            return caught.value

        error = asyncio.run(main())

    assert str(error) == "The proxy refused a connection to provider.test:443: 407 Who"


@pytest.mark.parametrize(
    ("missing", "variables", "settings"),
    [
        ("httpx2", {}, {}),
        ("h2", {}, {"http2": True}),
        ("socksio", {"ALL_PROXY": "socks5://user:secret@127.0.0.1:9"}, {}),
        ("socksio", {"ALL_PROXY": "socks5h://127.0.0.1:9"}, {}),
    ],
)
def test_missing_packages(environment, missing, variables, settings):
    """The error names the missing package and the extra that installs it."""
    environment.setitem(sys.modules, missing, None)
    for name, value in variables.items():
        environment.setenv(name, value)

    async def work(transport):
        with pytest.raises(
            ConfigurationError, match=rf"{missing} .*interlingua\[httpx\]"
        ) as caught:
            await read(transport, call("http://provider.invalid/v1"))
        assert "secret" not in str(caught.value)

    run(work, **settings)


def test_a_stream_of_json_has_a_limit():
    """JSON that is read in chunks has the limit of a whole body."""
    large = reply(b"x" * 100, headers=("content-type: application/json",))
    with Server(answering(large)) as server:

        async def work(transport):
            with pytest.raises(DecodeError, match="larger than 99 bytes"):
                await collect(transport, call(server.url))

        run(work, limits=Limits(body=99))
