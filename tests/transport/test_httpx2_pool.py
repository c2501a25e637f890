"""The pool under httpx2: proxies, TLS and HTTP/2 over our network backend."""

import asyncio

import httpcore2
import httpx2
import pytest

from interlingua.spec.contracts import HttpRequest
from interlingua.spec.errors import NetworkError
from interlingua.transport.httpx2_pool import _ERRORS, PoolTransport
from interlingua.transport.httpx2_transport import HttpxTransport
from support.http2 import http2, http2_tls, send
from support.http_calls import make_certificate, server_tls
from support.servers import Server, answering, reply
from support.simulated import settled

UNASKED = reply(b"unasked")


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """A certificate with its key."""
    made = tmp_path_factory.mktemp("tls") / "both.pem"
    make_certificate(made)
    return made


@pytest.fixture
def trusted(certificate, monkeypatch):
    """The same, which clients trust."""
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    return certificate


def run(work, *, proxy=None, http2=False, trust_env=True, streams=None):
    """
    Run `work(transport)` over a client with the pool; a proxy is used for loopback too.

    The network stream of each response is added to `streams`.
    """

    async def note(response):
        if streams is not None:
            streams.append(response.extensions["network_stream"])

    async def main():
        pool = PoolTransport(http2=http2, trust_env=trust_env, proxy=proxy)
        async with httpx2.AsyncClient(
            transport=pool, trust_env=False, event_hooks={"response": [note]}
        ) as client:
            return await work(HttpxTransport(client=client))

    return asyncio.run(main())


async def ask(transport, url, body=b"{}", **fields):
    async with transport.send(HttpRequest(url=url, body=body, **fields)) as got:
        return await got.read()


def numbers(server):
    """How many requests came on each connection."""
    return [len(connection.requests) for connection in server.connections]


def with_unasked(connection):
    """Answer each request with its number on this connection, in one segment with a reply more."""

    async def main():
        number = 0
        while await connection.read_request() is not None:
            number += 1
            await connection.send(reply(b"%d" % number) + UNASKED)

    return main()


async def pump(reader, writer):
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()
    writer.close()


def tunnel(port):
    """A proxy that lets CONNECT through to this port of loopback."""

    async def script(connection):
        request = await connection.read_request()
        if request is None:
            return
        assert request.method == "CONNECT"
        await connection.send(b"HTTP/1.1 200 Connection established\r\n\r\n")
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        await asyncio.gather(pump(connection.reader, writer), pump(reader, connection.writer))

    return script


def socks(talk, *, code=0):
    """A SOCKS5 proxy that plays the host itself, by the script `talk`."""

    async def script(connection):
        read = connection.reader.readexactly
        _, count = await read(2)
        await read(count)
        await connection.send(b"\x05\x00")
        *_, kind = await read(4)
        await read(6 if kind == 1 else (await read(1))[0] + 2)
        await connection.send(bytes([5, code, 0, 1, 0, 0, 0, 0, 0, 0]))
        if not code:
            await talk(connection)

    return script


@pytest.mark.parametrize("secure_proxy", [False, True])
def test_calls_go_through_a_tunnel(trusted, secure_proxy):
    """They share one tunnel, which begins anew after the reply of the proxy."""
    tls = server_tls(trusted)
    with (
        Server(answering(reply(b"ok")), tls=tls) as host,
        Server(tunnel(host.port), tls=tls if secure_proxy else None) as proxy,
    ):

        async def work(transport):
            return [await ask(transport, host.url) for _ in range(3)]

        assert run(work, proxy=proxy.url) == [b"ok"] * 3

    assert numbers(host) == [3]
    assert proxy.requests[0].target == f"127.0.0.1:{host.port}"
    assert len(proxy.requests) == 1


def test_a_proxy_is_trusted_as_hosts_are(trusted):
    """Without `trust_env`, SSL_CERT_FILE does not count for it either."""

    async def work(transport):
        with pytest.raises(NetworkError, match="TLS handshake"):
            await ask(transport, "http://provider.test/v1")

    with Server(answering(reply(b"ok")), tls=server_tls(trusted)) as proxy:
        run(work, proxy=proxy.url, trust_env=False)
    assert proxy.requests == []


def test_an_unasked_response_through_a_tunnel_answers_no_call(trusted):
    """The tunnel is not used again."""
    tls = server_tls(trusted)
    with Server(with_unasked, tls=tls) as host, Server(tunnel(host.port)) as proxy:

        async def work(transport):
            return [await ask(transport, host.url) for _ in range(3)]

        assert run(work, proxy=proxy.url) == [b"1"] * 3


@pytest.mark.parametrize("scheme", ["socks5", "socks5h"])
def test_calls_go_through_a_socks_proxy(scheme):
    """They share one connection."""
    pytest.importorskip("socksio", reason="needs httpx2[socks]")

    async def work(transport):
        return [await ask(transport, "http://provider.test/v1") for _ in range(3)]

    with Server(socks(answering(reply(b"ok")))) as proxy:
        assert run(work, proxy=f"{scheme}://127.0.0.1:{proxy.port}") == [b"ok"] * 3

    assert numbers(proxy) == [3]


def test_an_unasked_response_through_a_socks_proxy_answers_no_call():
    """The connection is not used again."""
    pytest.importorskip("socksio", reason="needs httpx2[socks]")

    async def work(transport):
        return [await ask(transport, "http://provider.test/v1") for _ in range(3)]

    with Server(socks(with_unasked)) as proxy:
        assert run(work, proxy=f"socks5://127.0.0.1:{proxy.port}") == [b"1"] * 3


def test_a_new_connection_through_a_socks_proxy_is_not_stale():
    """What the proxy said before is no reply, so the request is not sent again."""
    pytest.importorskip("socksio", reason="needs httpx2[socks]")

    async def hang_up(connection):
        await connection.read_request()
        connection.writer.close()

    async def work(transport):
        with pytest.raises(NetworkError):
            await ask(transport, "http://provider.test/v1")

    with Server(socks(hang_up)) as proxy:
        run(work, proxy=f"socks5://127.0.0.1:{proxy.port}")

    assert numbers(proxy) == [1]


@pytest.mark.parametrize("is_secure", [False, True])
def test_the_checks_hold_where_http2_is_offered_to_an_older_server(trusted, is_secure):
    """An unasked response answers no call, and a stale connection costs none."""

    async def ends_on_reuse(connection):
        await connection.read_request()
        await connection.send(reply(b"1"))
        await connection.read_request()
        connection.writer.close()

    async def work(transport):
        return [await ask(transport, server.url) for _ in range(3)]

    for script in (with_unasked, ends_on_reuse):
        with Server(script, tls=server_tls(trusted) if is_secure else None) as server:
            assert run(work, http2=True) == [b"1"] * 3


def test_a_reply_without_a_body_leaves_its_connection_open():
    """Hints before a reply, and a reply to HEAD that names the size of its body."""
    hints = b"HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n"
    sized = b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\n"

    async def work(transport):
        got = await ask(transport, server.url, b"", method="HEAD")
        return got, await ask(transport, server.url), await ask(transport, server.url)

    empty = b"HTTP/1.1 204 No Content\r\n\r\n"
    with Server(answering(hints + sized, empty, reply(b"ok"))) as server:
        assert run(work) == (b"", b"", b"ok")

    assert numbers(server) == [3]


def over_http2(answer, certificate, work, **settings):
    pytest.importorskip("h2", reason="needs httpx2[http2]")
    with Server(http2(answer), tls=http2_tls(certificate)) as server:
        got = run(lambda transport: work(transport, server), http2=True, **settings)
    return got, numbers(server)


def test_many_calls_at_once_share_one_http2_connection(trusted):
    """Each gets its own reply, while others still send their large bodies."""
    bodies = [b"%d" % number * 300_000 for number in range(8)]

    def answer(state, stream_id, _):
        send(state, stream_id, b"%d," % stream_id * 1_000)
        return True

    async def work(transport, server):
        await ask(transport, server.url)
        return await asyncio.gather(*(ask(transport, server.url, body) for body in bodies))

    got, requests = over_http2(answer, trusted, work)

    assert sorted(got) == sorted(b"%d," % (3 + 2 * number) * 1_000 for number in range(8))
    assert requests == [9]


def test_an_http2_server_that_says_goodbye_later_costs_no_call(trusted):
    """Its last frames are read though it has closed the connection since."""
    states, streams = [], []

    def answer(state, stream_id, _):
        states.append(state)
        send(state, stream_id, b"ok")
        return True

    def say_goodbye(server):
        states[-1].close_connection(last_stream_id=1)
        writer = server.connections[-1].writer
        writer.write(states[-1].data_to_send())
        writer.close()

    async def work(transport, server):
        got = []
        for _ in range(3):
            got.append(await ask(transport, server.url))
            server._loop.call_soon_threadsafe(say_goodbye, server)
            await settled(lambda: streams[-1]._connection._is_closed)
        return got

    got, requests = over_http2(answer, trusted, work, streams=streams)

    assert got == [b"ok"] * 3
    assert requests == [1] * 3


def test_every_error_of_the_pool_has_its_twin():
    """Each is translated into the class of the same name."""
    names = {kind.__name__: twin.__name__ for kind, twin in _ERRORS.items()}
    named = [getattr(httpcore2, name) for name in httpcore2.__all__]
    errors = {kind for kind in named if isinstance(kind, type) and issubclass(kind, Exception)}
    bases = {base for kind in errors for base in kind.__bases__}

    # `ConnectionNotAvailable` does not leave the pool
    assert set(names) == {kind.__name__ for kind in errors - bases} - {"ConnectionNotAvailable"}
    assert all(name == twin for name, twin in names.items())


def test_an_error_of_the_body_is_not_translated():
    """It has the name of an error of httpcore2, and reaches the caller as it is."""

    async def body():
        yield b"x"
        raise NetworkError("The disk is gone.")

    async def work(transport):
        with pytest.raises(NetworkError, match="The disk is gone"):
            await ask(transport, server.url, body())

    with Server(answering(reply())) as server:
        run(work)
