"""One connection: HTTP/1.1 on a real socket, and how it breaks."""

import contextlib
import http.client
import json
import socket
import time

import pytest

from interlingua.simulator import (
    Simulator,
    cut,
    error,
    latency,
    reset,
    serve_in_thread,
    stall,
    text,
)
from support.patience import PATIENCE

PATH = "/v1/chat/completions"
PLAIN = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
STREAM = {**PLAIN, "stream": True}


@contextlib.contextmanager
def connected(app):
    """A server and a connection to it."""
    with serve_in_thread(app) as server:
        connection = http.client.HTTPConnection(server.host, server.port, timeout=PATIENCE)
        try:
            yield server, connection
        finally:
            connection.close()


def post(connection, body=PLAIN):
    connection.request("POST", PATH, json.dumps(body), {"content-type": "application/json"})
    return connection.getresponse()


def raw(server, data, *, wait=True):
    """Bytes out, bytes in until the server closes."""
    with socket.create_connection((server.host, server.port), timeout=PATIENCE) as sock:
        sock.sendall(data)
        if wait:
            return b"".join(iter(lambda: sock.recv(65536), b""))
    return None


def until(condition):
    """Wait for what another thread will do."""
    for _ in range(int(PATIENCE / 0.005)):
        if condition():
            return True
        time.sleep(0.005)
    return False


def test_connections_are_kept():
    """Whole and streamed answers follow one another on the same connection."""
    with connected(Simulator(text("hi there"))) as (server, connection):
        for body in (PLAIN, STREAM, PLAIN):
            reply = post(connection, body)
            assert reply.status == 200
            assert b"there" in reply.read()
            assert reply.getheader("date")

        assert server.accepted == 1


def test_requests_may_follow_without_waiting():
    """Two in one write are two answers in order."""
    body = json.dumps(PLAIN).encode()
    head = f"POST {PATH} HTTP/1.1\r\ncontent-length: {len(body)}\r\n"
    one = head.encode() + b"\r\n" + body
    two = head.encode() + b"Connection: close\r\n\r\n" + body
    with serve_in_thread(Simulator(text("first"), text("second"))) as server:
        got = raw(server, one + two)

    assert got.count(b"HTTP/1.1 200 OK") == 2
    assert got.index(b"first") < got.index(b"second")


def test_a_body_in_chunks():
    """With an extension and a trailer, as the standard allows."""
    body = json.dumps(PLAIN).encode()
    chunks = b"%x;a=b\r\n%b\r\n%x\r\n%b\r\n0\r\nx-t: 1\r\n\r\n" % (
        5,
        body[:5],
        len(body) - 5,
        body[5:],
    )
    head = f"POST {PATH} HTTP/1.1\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
    with serve_in_thread(Simulator(text("read it"))) as server:
        assert b"read it" in raw(server, head.encode() + chunks)


def test_a_client_may_ask_whether_to_go_on():
    """`Expect: 100-continue` is answered before the body."""
    body = json.dumps(PLAIN).encode()
    head = (
        f"POST {PATH} HTTP/1.1\r\nExpect: 100-continue\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    with serve_in_thread(Simulator(text("ok"))) as server:
        assert raw(server, head.encode() + body).startswith(b"HTTP/1.1 100 Continue\r\n\r\n")


def test_an_old_client_gets_no_chunks():
    """The end of the connection is the end of the body."""
    body = json.dumps(STREAM).encode()
    head = f"POST {PATH} HTTP/1.0\r\nContent-Length: {len(body)}\r\n\r\n"
    with serve_in_thread(Simulator(text("old"))) as server:
        got = raw(server, head.encode() + body)

    assert b"transfer-encoding" not in got
    assert got.endswith(b"data: [DONE]\n\n")


@pytest.mark.parametrize(
    "data",
    [
        b"hello\r\n\r\n",
        b"GET / HTTP/2\r\n\r\n",
        b"GET / HTTP/1.1\r\nno colon\r\n\r\n",
        b"GET / HTTP/1.1\r\n name: x\r\n\r\n",
        b"POST / HTTP/1.1\r\ncontent-length: -1\r\n\r\n",
        b"POST / HTTP/1.1\r\ncontent-length: 99999999999\r\n\r\n",
        b"POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
        b"POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n-5\r\n",
        b"GET / HTTP/1.1\r\nx: " + b"y" * 70_000,
        b"GET / HTTP/1.12\r\n\r\n",
        b"GET / HTTP/1.x\r\n\r\n",
        b"G\xc3\x89T / HTTP/1.1\r\n\r\n",
        b"G(T / HTTP/1.1\r\n\r\n",
        b"GET /\x00 HTTP/1.1\r\n\r\n",
        b"GET /\x7f HTTP/1.1\r\n\r\n",
        b"GET /\tx HTTP/1.1\r\n\r\n",
        b"GET  HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nx: a\x00b\r\n\r\n",
        b"GET / HTTP/1.1\r\nx: a\nb: c\r\n\r\n",
        b"GET / HTTP/1.1\r\nx: a\rb\r\n\r\n",
        b"GET / HTTP/1.1\r\nx: a\x1b[2J\r\n\r\n",
        b"GET / HTTP/1.1\r\nx y: a\r\n\r\n",
        b"GET / HTTP/1.1\r\nx\x00: a\r\n\r\n",
        b"GET / HTTP/1.1\r\nx : a\r\n\r\n",
        b"GET / HTTP/1.1\r\n: a\r\n\r\n",
        b"GET / HTTP/1.1\r\nx: a\r\n folded\r\n\r\n",
        *(
            b"POST / HTTP/1.1\r\ncontent-length: %b\r\n\r\n" % length
            for length in (b"+5", b"0x5", b"5_0", b"5,5", b"\xb2", b"9" * 5_000, b"5 5", b"1e3")
        ),
        b"POST / HTTP/1.1\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\nhello",
        *(
            b"POST / HTTP/1.1\r\ntransfer-encoding: %b\r\n\r\n0\r\n\r\n" % coding
            for coding in (b"gzip", b"gzip, chunked", b"chunked, chunked", b"xchunked", b"")
        ),
        b"POST / HTTP/1.0\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
        b"POST / HTTP/1.1\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
        *(
            b"POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n%b\r\n" % size
            for size in (b"+5", b"0x5", b"5_0", b" 5", b"5 ", b"", b";a=b", b"f" * 17, b"\xb2")
        ),
        b"POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhelloXX0\r\n\r\n",
        b"POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n1;" + b"a" * 5_000,
        b"POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n1;a\x00\r\nx\r\n0\r\n\r\n",
        b"POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n0\r\n" + b"x: y\r\n" * 20_000,
        b"POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n0\r\nx\x00: y\r\n\r\n",
    ],
)
def test_what_is_no_http(data):
    """Is refused, and the connection closed."""
    with serve_in_thread(Simulator()) as server:
        assert raw(server, data).startswith(b"HTTP/1.1 400 ")


@pytest.mark.parametrize("body", [PLAIN, STREAM])
def test_a_truncated_body(body):
    """The client can tell that there should have been more."""
    with connected(Simulator(text("hello") + cut(20))) as (_, connection):
        reply = post(connection, body)
        assert reply.status == 200
        with pytest.raises(http.client.IncompleteRead) as raised:
            reply.read()

    # of a chunked body the library gives back only whole chunks
    assert len(raised.value.partial) <= 20


def test_a_stream_that_is_cut_cleanly():
    """The client's HTTP library is content; exactly so much came."""
    for place in (0, 1, 100, 333):
        with connected(Simulator(text("hello") + cut(place, clean=True))) as (_, connection):
            assert len(post(connection, STREAM).read()) == place


def test_closed_before_the_head():
    """There is no reply at all."""
    with (
        connected(Simulator(cut())) as (_, connection),
        pytest.raises(http.client.RemoteDisconnected),
    ):
        post(connection)


def test_reset_before_the_head():
    """The kernel says so, not an end of file."""
    with (
        connected(Simulator(reset())) as (_, connection),
        pytest.raises(ConnectionResetError) as raised,
    ):
        post(connection)

    assert not isinstance(raised.value, http.client.RemoteDisconnected)  # the library's for an end


@pytest.mark.parametrize("place", [0, 40])
def test_reset_after_the_head(place):
    """The head has come, then the connection is reset."""
    turn = text("hello") + stall(place, seconds=0.1) + reset(place)
    with connected(Simulator(turn)) as (_, connection):
        reply = post(connection, STREAM)
        assert reply.status == 200
        with pytest.raises(ConnectionResetError):
            reply.read()


@pytest.mark.parametrize("place", [None, 0, 30])
def test_a_stall(place):
    """The connection stays open and nothing comes; the server notices when the client gives up."""
    simulator = Simulator(text("hello") + stall(place))
    with serve_in_thread(simulator) as server:
        with socket.create_connection((server.host, server.port), PATIENCE) as connection:
            body = json.dumps(STREAM).encode()
            head = f"POST {PATH} HTTP/1.1\r\nhost: here\r\ncontent-length: {len(body)}\r\n\r\n"
            connection.sendall(head.encode() + body)
            assert until(lambda: [x.sent_bytes for x in simulator.script.received] == [place or 0])
            connection.settimeout(0.1)
            with pytest.raises(TimeoutError):
                b"".join(iter(lambda: connection.recv(1000), b""))

        exchange = simulator.script.received[0]
        assert exchange.over.wait(PATIENCE)
        assert exchange.disconnected is not None
        assert exchange.sent_bytes == (place or 0)
        assert until(lambda: server.open_connections == 0)


def test_a_client_that_leaves_in_the_middle():
    """No more is sent than was on its way."""
    simulator = Simulator(text("word " * 2000) + latency(between=0.002))
    with connected(simulator) as (server, connection):
        reply = post(connection, STREAM)
        reply.read(10)
        reply.close()
        connection.close()
        exchange = simulator.script.received[0]
        assert exchange.over.wait(PATIENCE)
        assert exchange.disconnected is not None
        assert until(lambda: server.open_connections == 0)

    assert exchange.sent_bytes < 2000 * 20


def test_a_client_that_does_not_read_is_waited_for():
    """A large body is not held in memory as a whole write; it arrives complete."""
    size = 20_000_000
    with connected(Simulator(error(500, body=b"x" * size))) as (_, connection):
        reply = post(connection)
        time.sleep(0.05)
        assert len(reply.read()) == size


def test_half_a_request():
    """A client that leaves within its request is no request."""
    simulator = Simulator()
    with serve_in_thread(simulator) as server:
        raw(server, b"POST / HTTP/1.1\r\ncontent-length: 5\r\n\r\nab", wait=False)
        assert until(lambda: server.accepted == 1 and server.open_connections == 0)

    assert simulator.script.received == ()


@pytest.mark.parametrize("begun", [False, True])
def test_an_application_that_fails(begun):
    """It is a 500, or a reply that breaks off if it had begun."""

    async def app(_scope, _receive, send):
        if begun:
            await send({"type": "http.response.start", "status": 299, "headers": []})
            await send({"type": "http.response.body", "body": b"x", "more_body": True})
        raise LookupError("a fault of the application")

    with connected(app) as (_, connection):
        reply = post(connection)
        if not begun:
            assert reply.status == 500
            return
        assert (reply.status, reply.reason) == (299, "Unknown")
        with pytest.raises(http.client.IncompleteRead):
            reply.read()
