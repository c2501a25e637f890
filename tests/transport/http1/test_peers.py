"""Servers and clients that others wrote agree with the default transport."""

import asyncio
import hashlib
import os
import threading

import httpx2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interlingua.spec.contracts import HttpRequest
from interlingua.transport.http1.transport import HttpTransport
from support.http1_peers import PEERS
from support.http1_replies import read_value, replies
from support.http_calls import collect, read, run
from support.loops import every_loop
from support.patience import PATIENCE
from support.run_profile import examples
from support.servers import Server, reply

# Clients: the same bytes from a socket.


class Table:
    """Replies by their number, which is the path of a request."""

    def __init__(self):
        self.replies = {}

    def add(self, written):
        self.replies[len(self.replies)] = written
        return f"/{len(self.replies) - 1}"

    async def script(self, connection):
        while (request := await connection.read_request()) is not None:
            written = self.replies[int(request.target.removeprefix("/"))]
            middle = len(written.wire) // 2
            await connection.send(written.wire[:middle], written.wire[middle:])
            if not written.is_reusable and written.method != "HEAD":
                connection.writer.close()
                return


@pytest.fixture(scope="module")
def table():
    return Table()


@pytest.fixture(scope="module")
def origin(table):
    """The address of the table."""
    with Server(table.script) as server:
        yield server.url.removesuffix("/v1/x")


@pytest.fixture(scope="module")
def ours():
    """Reads a reply with the default transport, over connections that are kept."""
    with asyncio.Runner() as runner:
        transport = HttpTransport()

        def ask(method, url):
            return runner.run(read(transport, HttpRequest(method=method, url=url)))

        yield ask
        runner.run(transport.close())


@pytest.fixture(scope="module")
def theirs():
    """Reads a reply with httpx2, which reads with h11."""
    with httpx2.Client(trust_env=False) as client:

        def ask(method, url):
            got = client.request(method, url)
            headers = {}
            for name, value in got.headers.raw:
                headers.setdefault(name.decode().lower(), []).append(read_value(value))
            return got.status_code, {name: ", ".join(v) for name, v in headers.items()}, got.content

        yield ask


@settings(max_examples=examples(400))
@given(data=st.data())
def test_httpx2_reads_the_same_from_the_same_bytes(table, origin, ours, theirs, data):
    """Status, headers and body, of any reply."""
    written = data.draw(replies())
    url = origin + table.add(written)
    status, headers, body = ours(written.method, url)

    assert (status, dict(headers), body) == (written.status, written.headers, written.body)
    if "transfer-encoding" in headers:
        headers = {**headers, "transfer-encoding": "chunked"}  # in lower case, as h11 has it
    assert theirs(written.method, url) == (status, headers, body)


# Servers.

DATA = os.urandom(900_000)


async def application(scope, receive, send):
    """An application of ASGI that does what its path says."""
    kind = scope["path"].removeprefix("/")
    body, more = b"", kind != "early"
    while more:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
    headers = [(b"content-type", b"text/plain")]
    if kind == "stream":
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        for number in range(20):
            piece = {"type": "http.response.body", "body": b"%d;" % number, "more_body": True}
            await send(piece)
            await asyncio.sleep(0)
        await send({"type": "http.response.body"})
        return
    text = {"large": DATA, "empty": b""}.get(kind, hashlib.sha256(body).hexdigest().encode())
    if kind == "close":
        headers.append((b"connection", b"close"))
    headers.append((b"content-length", b"%d" % len(text)))
    status = {"early": 413, "empty": 204}.get(kind, 200)
    if status == 204:
        headers.pop()
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": text})


@pytest.fixture(scope="module", params=PEERS)
def peer(request):
    """The address of the application behind each server."""
    with PEERS[request.param](application) as url:
        yield url


def digest(data):
    return hashlib.sha256(data).hexdigest().encode()


@every_loop
def test_whole_and_streamed_replies(peer, loop):
    """Replies with a length, in chunks, empty and large."""

    async def work(transport):
        _, headers, whole = await read(transport, HttpRequest(url=f"{peer}/echo", body=b"a"))
        stream = await collect(transport, HttpRequest(url=f"{peer}/stream", body=b"a"))
        large = (await read(transport, HttpRequest(method="GET", url=f"{peer}/large")))[2]
        empty = await read(transport, HttpRequest(url=f"{peer}/empty"))
        return headers["content-type"], whole, stream, large, empty[0], empty[2]

    numbers = b"".join(b"%d;" % number for number in range(20))
    expected = ("text/plain", digest(b"a"), numbers, DATA, 204, b"")
    assert run(work, loop=loop) == expected


@every_loop
def test_uploads(peer, loop):
    """Bodies of bytes, large or not, and streamed ones."""

    async def pieces():
        for at in range(0, len(DATA), 70_000):
            yield DATA[at : at + 70_000]
            await asyncio.sleep(0)

    async def work(transport):
        bodies = (b"", b"x", DATA, DATA * 3, pieces())
        return [
            (await read(transport, HttpRequest(url=f"{peer}/echo", body=body)))[2]
            for body in bodies
        ]

    sent = (b"", b"x", DATA, DATA * 3, DATA)
    assert run(work, loop=loop) == [digest(data) for data in sent]


@every_loop
def test_many_requests_use_one_connection(peer, loop):
    """Of any kind, one after another, until a server ends it."""

    async def work(transport):
        seen = set()
        pool = transport._pools.get(asyncio.get_running_loop())
        for number in range(60):
            path = ("echo", "stream", "empty")[number % 3]
            await read(transport, HttpRequest(url=f"{peer}/{path}", body=b"%d" % number))
            seen |= pool.connections
        assert len(seen) == 1
        await read(transport, HttpRequest(url=f"{peer}/close"))
        await asyncio.sleep(0.01)
        assert pool.connections == set()
        assert (await read(transport, HttpRequest(url=f"{peer}/echo")))[0] == 200

    run(work, loop=loop)


@every_loop
@pytest.mark.parametrize("is_streamed", [False, True])
def test_an_answer_before_the_request_is_sent(peer, loop, is_streamed):
    """A 413 is the answer, however much of the request was sent by then."""

    async def pieces():
        for _ in range(300):
            yield DATA[:100_000]

    async def work(transport):
        for _ in range(5):
            body = pieces() if is_streamed else bytes(30_000_000)
            status, _, text = await read(transport, HttpRequest(url=f"{peer}/early", body=body))
            assert (status, text) == (413, digest(b""))

    run(work, loop=loop)


@every_loop
def test_an_answer_that_came_before_the_next_piece_is_read_first(loop):
    """Writing to a connection that the server has reset would lose the answer."""
    is_waiting, has_answered = threading.Event(), threading.Event()

    async def script(connection):
        await connection.reader.readexactly(1000)
        await asyncio.to_thread(is_waiting.wait, PATIENCE)
        await connection.send(reply(b"no", status="413 Too Large"))
        connection.reset()
        has_answered.set()

    async def pieces():
        yield b"x" * 2000
        for _ in range(3):
            await asyncio.sleep(0)  # uvloop writes at the end of a turn
        is_waiting.set()
        has_answered.wait(PATIENCE)  # in this thread: nothing is read meanwhile
        yield b"y" * 2000
        yield b"z" * 2000

    async def work(transport):
        status, _, text = await read(transport, HttpRequest(url=server.url, body=pieces()))
        assert (status, text) == (413, b"no")

    with Server(script) as server:
        run(work, loop=loop)
