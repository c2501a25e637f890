"""The default transport on real sockets: faults, clocks, limits, cancellation, loops."""

import asyncio
import gc
import gzip
import os
import socket
import ssl
import subprocess
import sys
import threading
import time
import zlib

import pytest
from servers import (
    CHUNKED,
    LAST,
    PATIENCE,
    Server,
    answering,
    free_port,
    piece,
    reply,
    streaming,
)

from interlingua.spec.contracts import HttpRequest, Timeouts, Transport
from interlingua.spec.errors import (
    ConfigurationError,
    DecodeError,
    NetworkError,
    RequestTimeoutError,
    SDKError,
    StreamError,
)
from interlingua.transport.http import AiohttpTransport

KEY = "sk-planted-0123456789abcdef"
SHORT = 0.2


def call(url, **fields):
    headers = {"authorization": f"Bearer {KEY}", "content-type": "application/json"}
    return HttpRequest(url=f"{url}?key={KEY}", headers=headers, body=b'{"a":1}', **fields)


async def read(transport, request):
    async with transport.send(request) as got:
        return got.status, got.headers, await got.read()


async def collect(transport, request, into=None):
    chunks = [] if into is None else into
    async with transport.send(request) as got:
        async for chunk in got.chunks():
            chunks.append(chunk)  # noqa: PERF401 -- kept also if it fails
    return b"".join(chunks)


def run(work, **settings):
    """Run `work(transport)` in a loop of its own, and show that no task outlives it."""

    async def main():
        transport = AiohttpTransport(**settings)
        try:
            return await work(transport)
        finally:
            await transport.close()
            assert [task for task in asyncio.all_tasks() if task is not asyncio.current_task()] == []

    return asyncio.run(main())


def fails(script, action=read, *, tls=None, has_ended=False, **settings):
    """The error of one call to a server with this script, after which the client has closed."""
    with Server(script, tls=tls) as server:

        async def work(transport):
            with pytest.raises(SDKError) as caught:
                await action(transport, call(server.url))
            # a connection whose body has ended is free for the next call
            assert has_ended or await asyncio.to_thread(server.all_closed)
            return caught.value

        error = run(work, **settings)
    assert_no_key(error)
    return error


def assert_no_key(error):
    seen = error
    while seen is not None:
        assert KEY not in f"{seen!s}{seen!r}{vars(seen)}"
        seen = seen.__cause__ or seen.__context__


def test_it_is_a_transport():
    """It has the shape the adapters ask for."""
    transport: Transport = AiohttpTransport()

    assert callable(transport.send)


def test_a_whole_reply():
    """Status, headers in lower case with doubles joined, and body; the request as it was given."""
    told = reply(b'{"b":2}', status="201 Created", headers=("X-One: 1", "X-Two: a", "x-two: b"))
    with Server(answering(told)) as server:
        status, headers, body = run(lambda transport: read(transport, call(server.url)))

    assert (status, body) == (201, b'{"b":2}')
    assert headers["x-one"] == "1"
    assert headers["x-two"] == "a, b"
    (sent,) = server.requests
    assert (sent.method, sent.target, sent.body) == ("POST", f"/v1/x?key={KEY}", b'{"a":1}')
    assert sent.headers["authorization"] == f"bearer {KEY}"
    assert sent.headers["accept-encoding"] == "gzip, deflate"


def test_a_stream_comes_as_it_is_sent():
    """A chunk is handed over before the next one is sent, and nothing is lost or held back."""
    turns = []

    async def script(connection):
        await connection.read_request()
        await connection.send(CHUNKED)
        for number in range(5):
            while len(turns) < number:
                await asyncio.sleep(0.001)
            await connection.send(piece(b"data: %d\n\n" % number))
        await connection.send(LAST)

    async def work(transport):
        async with transport.send(call(server.url)) as got:
            async for chunk in got.chunks():
                turns.append(chunk)  # noqa: PERF401 -- the server waits for it

    with Server(script) as server:
        run(work)

    assert turns == [b"data: %d\n\n" % number for number in range(5)]


def test_connections_are_used_again():
    """Calls one after another share a connection, whether read whole or as a stream."""

    async def script(connection):
        while await connection.read_request() is not None:
            await connection.send(CHUNKED, piece(b"x"), LAST)

    async def work(transport):
        await read(transport, call(server.url))
        await collect(transport, call(server.url))
        await read(transport, call(server.url))

    with Server(script) as server:
        run(work)

    assert [len(connection.requests) for connection in server.connections] == [3]


def test_a_reader_that_leaves_at_the_last_event_frees_the_connection():
    """The end of the body may come just after the reader has left."""

    async def script(connection):
        while await connection.read_request() is not None:
            await connection.send(CHUNKED, piece(b"last"), LAST)

    async def work(transport):
        for _ in range(3):
            async with transport.send(call(server.url)) as got:
                async for _chunk in got.chunks():
                    break
            await asyncio.sleep(0.02)

    with Server(script) as server:
        run(work)

    assert [len(connection.requests) for connection in server.connections] == [3]


def test_redirects_are_not_followed():
    """A 3xx is a reply like another: no key goes to a host that was not named."""
    target = reply(b"caught")
    with Server(answering(target)) as thief:
        told = reply(status="307 Temporary Redirect", headers=(f"location: {thief.url}",))
        with Server(answering(told)) as server:
            status, headers, _ = run(lambda transport: read(transport, call(server.url)))

    assert status == 307
    assert headers["location"] == thief.url
    assert thief.connections == []


def test_cookies_are_not_kept():
    """What one reply sets, the next request does not send."""
    told = reply(headers=("set-cookie: session=1; path=/",))

    async def work(transport):
        await read(transport, call(server.url))
        await read(transport, call(server.url))

    with Server(answering(told)) as server:
        run(work)

    assert all("cookie" not in request.headers for request in server.requests)


@pytest.mark.parametrize("pack", [gzip.compress, zlib.compress])
def test_packed_bodies_are_unpacked(pack):
    """Gzip and deflate, whole and as a stream."""
    coding = "gzip" if pack is gzip.compress else "deflate"
    told = reply(pack(b"hello" * 1000), headers=(f"content-encoding: {coding}",))
    with Server(answering(told)) as server:
        whole = run(lambda transport: read(transport, call(server.url)))[2]
        streamed = run(lambda transport: collect(transport, call(server.url)))

    assert whole == streamed == b"hello" * 1000


# Faults before a reply.


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


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """A certificate that no system trusts, with its key."""
    folder = tmp_path_factory.mktemp("tls")
    made = folder / "both.pem"
    make_certificate(made)
    return made


def make_certificate(path):
    """Self-signed, for 127.0.0.1."""
    import datetime
    import ipaddress

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]),
            critical=False,
        )
        .sign(key, hashes.SHA256())
    )
    form = serialization.Encoding.PEM
    secret = key.private_bytes(
        form, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path.write_bytes(secret + made.public_bytes(form))


def server_tls(certificate):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    return context


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
            with pytest.raises(NetworkError, match="no TLS") as caught:
                await read(transport, call(server.url.replace("http:", "https:")))
            return caught.value

        assert not run(work).retryable


def test_tls_of_the_caller(certificate):
    """A context that trusts the certificate makes the call work, and cancel closes it."""
    trusting = ssl.create_default_context(cafile=str(certificate))
    with Server(streaming(b"one"), tls=server_tls(certificate)) as server:

        async def work(transport):
            async with transport.send(call(server.url)) as got:
                async for chunk in got.chunks():
                    assert chunk == b"one"
                    break
            assert await asyncio.to_thread(server.all_closed)

        run(work, tls=trusting)


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


def test_one_call_is_one_request():
    """A GET whose connection dies is not sent again behind the caller's back."""

    async def script(connection):
        await connection.read_request()
        await connection.send(reply())
        await connection.read_request()
        connection.reset()

    async def work(transport):
        get = HttpRequest(method="GET", url=server.url)
        await read(transport, get)
        with pytest.raises(NetworkError):
            await read(transport, get)

    with Server(script) as server:
        run(work)

    assert len(server.requests) == 2


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


# Faults in the body.


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


# Clocks.


async def silent(connection):
    await connection.read_request()


async def drip(connection):
    await connection.read_request()
    await connection.send(b"HTTP/1.1 200 OK\r\n")
    while True:
        await connection.send(b"x: y\r\n")
        await asyncio.sleep(0.02)


async def drip_body(connection):
    await connection.read_request()
    await connection.send(b"HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n")
    while True:
        await connection.send(b"x")
        await asyncio.sleep(0.02)


@pytest.mark.parametrize("script", [silent, drip])
@pytest.mark.parametrize("phase", ["first_byte", "request"])
@pytest.mark.parametrize("action", [read, collect])
def test_no_head_in_time(script, phase, action):
    """A stall before the head, or a head that drips, ends at the clock and is not retried."""
    error = fails(script, action, timeouts=Timeouts(**{phase: SHORT}))

    assert type(error) is RequestTimeoutError
    assert (error.phase, error.retryable) == (phase, False)


def test_a_body_that_drips():
    """The clock of a whole exchange runs on while bytes come."""
    error = fails(drip_body, timeouts=Timeouts(request=SHORT))

    assert type(error) is RequestTimeoutError
    assert (error.phase, error.retryable) == ("request", False)


def test_field_bug_78_a_stream_that_stalls():
    """Silence in the middle of a stream has a clock of its own."""
    error = fails(streaming(b"one"), collect, timeouts=Timeouts(stream_read=SHORT))

    assert type(error) is RequestTimeoutError
    assert (error.phase, error.retryable) == ("stream_read", False)


def test_field_bug_78_a_stream_that_goes_on_is_not_silent():
    """Neither the clock of the head nor that of the exchange ends a stream that speaks."""

    async def script(connection):
        await connection.read_request()
        await connection.send(CHUNKED)
        for _ in range(20):
            await connection.send(piece(b": ping\n\n"))
            await asyncio.sleep(SHORT / 5)
        await connection.send(LAST)

    clocks = Timeouts(request=SHORT, first_byte=SHORT, stream_read=SHORT * 3)
    with Server(script) as server:
        body = run(lambda transport: collect(transport, call(server.url)), timeouts=clocks)

    assert body == b": ping\n\n" * 20


def test_a_slow_reader_is_not_a_silent_server():
    """The time a reader takes for itself does not count."""

    async def work(transport):
        async with transport.send(call(server.url)) as got:
            chunks = got.chunks()
            first = await anext(chunks)
            await asyncio.sleep(SHORT * 3)
            return [first, *[chunk async for chunk in chunks]]

    with Server(streaming(b"one", b"two", end=LAST)) as server:
        got = run(work, timeouts=Timeouts(stream_read=SHORT))

    assert b"".join(got) == b"onetwo"


def test_clocks_of_one_call():
    """A request may bring its own."""
    with Server(silent) as server:

        async def work(transport):
            with pytest.raises(RequestTimeoutError):
                await read(transport, call(server.url, timeouts=Timeouts(first_byte=SHORT)))

        run(work)


def test_connecting_takes_too_long():
    """A connection that does not come about is the one timeout that may be tried again."""
    with full_backlog() as url:

        async def work(transport):
            with pytest.raises(RequestTimeoutError) as caught:
                await read(transport, call(url))
            return caught.value

        error = run(work, timeouts=Timeouts(connect=SHORT))

    assert (error.phase, error.retryable) == ("connect", True)
    assert_no_key(error)


def full_backlog():
    """A server that accepts no TLS handshake: it never reads."""
    import contextlib

    @contextlib.contextmanager
    def serve():
        async def script(connection):
            await asyncio.sleep(PATIENCE)

        with Server(script) as server:
            yield server.url.replace("http:", "https:")

    return serve()


def test_no_clocks():
    """None means none."""
    none = Timeouts(connect=None, request=None, first_byte=None, stream_read=None)
    with Server(streaming(b"one", end=LAST)) as server:
        assert run(lambda t: collect(t, call(server.url)), timeouts=none) == b"one"


# Cancellation: the server sees the connection close, each time.


def leaves(script, action, *, body=b"{}"):
    """Run `action(transport, request, ready)`, and wait until the server sees the client leave."""
    with Server(script) as server:

        async def work(transport):
            request = HttpRequest(url=server.url, body=body)
            await action(transport, request, server)
            started = time.monotonic()
            assert await asyncio.to_thread(server.all_closed)
            return time.monotonic() - started

        return run(work)


async def cancel_when(task, condition):
    for _ in range(1000):
        if condition():
            break
        await asyncio.sleep(0.005)
    assert condition()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def test_cancelled_before_the_head():
    """The task is cancelled while it waits for the head."""

    async def action(transport, request, server):
        task = asyncio.ensure_future(read(transport, request))
        await cancel_when(task, lambda: server.requests)

    leaves(silent, action)


def test_cancelled_in_the_middle():
    """The task is cancelled while it waits for the next chunk."""

    async def action(transport, request, server):
        got = []
        task = asyncio.ensure_future(collect(transport, request, got))
        await cancel_when(task, lambda: got)

    leaves(streaming(b"one"), action)


def test_cancelled_while_it_sends():
    """A server that does not read sees the end of a call all the same."""
    stuck = threading.Event()
    left = threading.Event()

    async def script(connection):
        await connection.reader.readexactly(1000)
        connection.writer.transport.pause_reading()
        peer = connection.writer.get_extra_info("socket")
        stuck.set()
        for _ in range(int(PATIENCE / 0.01)):
            if peer.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1) == b"\x07":  # closed
                left.set()
                break
            await asyncio.sleep(0.01)
        connection.writer.transport.resume_reading()

    async def action(transport, request, server):
        task = asyncio.ensure_future(read(transport, request))
        await asyncio.to_thread(stuck.wait, PATIENCE)
        await cancel_when(task, stuck.is_set)
        assert await asyncio.to_thread(left.wait, PATIENCE)

    leaves(script, action, body=b"x" * 50_000_000)


def test_a_large_request_arrives_whole():
    """Many megabytes are sent piece by piece."""
    body = os.urandom(3_000_000)
    with Server(answering(reply())) as server:
        run(lambda transport: read(transport, HttpRequest(url=server.url, body=body)))

    assert server.requests[0].body == body


def test_leaving_the_block():
    """The block is left with an error, or early without one."""

    async def fail(transport, request, server):
        with pytest.raises(KeyError):
            async with transport.send(request) as got:
                await anext(got.chunks())
                raise KeyError

    async def leave(transport, request, server):
        async with transport.send(request) as got:
            await anext(got.chunks())

    leaves(streaming(b"one"), fail)
    leaves(streaming(b"one"), leave)


def test_leaving_a_generator():
    """A generator around the call is closed, or just forgotten."""

    async def events(transport, request):
        async with transport.send(request) as got:
            async for chunk in got.chunks():
                yield chunk

    async def close(transport, request, server):
        stream = events(transport, request)
        await anext(stream)
        await stream.aclose()

    async def forget(transport, request, server):
        async for _ in events(transport, request):
            break
        gc.collect()
        await asyncio.sleep(0)

    leaves(streaming(b"one"), close)
    leaves(streaming(b"one"), forget)


def test_a_forgotten_reply():
    """A reply entered by hand and dropped does not keep its connection, nor complain."""

    async def action(transport, request, server):
        got = await transport.send(request).__aenter__()
        await anext(got.chunks())
        del got
        gc.collect()

    leaves(streaming(b"one"), action)


def test_abort():
    """The connection closes under a reader, who gets an error."""

    async def action(transport, request, server):
        async with transport.send(request) as got:
            chunks = got.chunks()
            await anext(chunks)
            reading = asyncio.ensure_future(anext(chunks))
            await asyncio.sleep(0.01)
            got.abort()
            got.abort()
            with pytest.raises(StreamError):
                await reading
            with pytest.raises(StreamError):
                await got.read()

    leaves(streaming(b"one"), action)


def test_many_streams_half_of_them_cancelled():
    """500 at once, every second one cancelled: the others end well, and nothing stays open."""
    count = 500

    async def script(connection):
        await connection.read_request()
        await connection.send(CHUNKED, piece(b"one"))
        while not release.is_set():  # noqa: ASYNC110 -- it is set by another thread
            await asyncio.sleep(0.01)
        await connection.send(piece(b"two"), LAST)

    release = threading.Event()
    with Server(script) as server:

        async def work(transport):
            got = [[] for _ in range(count)]
            tasks = [asyncio.ensure_future(collect(transport, call(server.url), g)) for g in got]
            while not all(got):  # noqa: ASYNC110 -- there is no event to wait for
                await asyncio.sleep(0.01)
            for task in tasks[::2]:
                task.cancel()
            release.set()
            ends = await asyncio.gather(*tasks, return_exceptions=True)
            assert all(isinstance(end, asyncio.CancelledError) for end in ends[::2])
            assert ends[1::2] == [b"onetwo"] * (count // 2)
            left = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
            assert left == []
            await transport.close()
            assert await asyncio.to_thread(server.all_closed)

        run(work)
    assert len(server.connections) == count


# Loops, threads, processes.


def complains(code, *arguments):
    """What Python says when this code runs with every warning shown; it must say nothing."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code, *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        cwd=os.path.dirname(__file__),
    )
    return done.stdout + done.stderr


PROGRAM = """
import asyncio, gc, sys, threading
from interlingua.spec.contracts import HttpRequest
from interlingua.transport.http import AiohttpTransport

transport = AiohttpTransport()

async def main(leave=False):
    async with transport.send(HttpRequest(url=sys.argv[1], body=b"{}")) as reply:
        if leave:
            await anext(reply.chunks())
        else:
            assert await reply.read() == b"{}"
"""


@pytest.mark.parametrize(
    "code",
    [
        "for _ in range(3): asyncio.run(main())",
        "for _ in range(3): asyncio.run(main(leave=True))",
        "for _ in range(3): asyncio.run(main()); gc.collect()",
        "asyncio.run(main()); del transport; gc.collect()",
        # a loop closed by hand, its generators never told
        """
for _ in range(3):
    loop = asyncio.new_event_loop()
    loop.run_until_complete(main())
    loop.close()
    del loop
    gc.collect()
asyncio.run(main())
gc.collect()
""",
        # a loop that is never closed is the caller's own to complain about, the pool not
        """
loop = asyncio.new_event_loop()
loop.run_until_complete(main())
loop.run_until_complete(transport.close())
loop.close()
""",
        """
def work():
    for _ in range(3): asyncio.run(main())
threads = [threading.Thread(target=work) for _ in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
asyncio.run(main())
gc.collect()
""",
        # closed from another loop while its own runs
        """
ready, done = threading.Event(), threading.Event()
async def other():
    await main()
    ready.set()
    while not done.is_set(): await asyncio.sleep(0.01)
    await main()
thread = threading.Thread(target=lambda: asyncio.run(other()))
thread.start()
ready.wait()
async def here():
    await main()
    await transport.close()
asyncio.run(here())
done.set()
thread.join()
gc.collect()
""",
        # forgotten inside a loop that runs on
        """
async def here():
    global transport
    await main()
    del transport
    gc.collect()
    await asyncio.sleep(0.05)
asyncio.run(here())
gc.collect()
""",
    ],
)
def test_field_bug_83_no_loop_is_left_with_something_open(code):
    """Loops one after another, at once, closed by hand: one transport serves all, in silence."""
    with Server(answering(reply())) as server:
        assert complains(PROGRAM + code, server.url) == ""
        assert server.requests
        assert server.all_closed()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork on this system")
def test_field_bug_83_a_forked_child_opens_its_own():
    """Parent and child go on with one transport, each over its own connections."""
    code = """
import os
async def parent():
    await main()
    child = os.fork()
    if child == 0:
        asyncio.run(main())
        sys.stdout.flush(); sys.stderr.flush()
        os._exit(0)
    await main()
    _, status = await asyncio.to_thread(os.waitpid, child, 0)
    assert status == 0
    await main()
asyncio.run(parent())
"""
    with Server(answering(reply())) as server:
        assert complains(PROGRAM + code, server.url) == ""
        counts = sorted(len(connection.requests) for connection in server.connections)
    assert counts == [1, 3]


def test_import_is_late():
    """aiohttp is loaded by the first call, not before."""
    code = """
import sys
from interlingua.transport import default_transport
default_transport()
print("aiohttp" in sys.modules)
"""
    assert complains(code).strip() == "False"


def test_closing_twice_and_going_on():
    """A transport that was closed opens again."""

    async def work(transport):
        await transport.close()
        await read(transport, call(server.url))
        await transport.close()
        await transport.close()
        return (await read(transport, call(server.url)))[0]

    with Server(answering(reply())) as server:
        assert run(work) == 200
