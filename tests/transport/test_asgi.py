"""The ASGI transport."""

import asyncio

import pytest

from interlingua.spec.contracts import HttpRequest, Transport
from interlingua.spec.defaults import Limits, Timeouts
from interlingua.spec.errors import DecodeError, NetworkError, RequestTimeoutError, StreamError
from interlingua.transport.asgi import AsgiTransport

REQUEST = HttpRequest(
    url="https://api.example.com/v1/a%20b?x=1", headers={"X-Key": "k"}, body=b"hello"
)
START = {"type": "http.response.start", "status": 201, "headers": [(b"X-A", b"1"), (b"x-a", b"2")]}


def body(data=b"", *, more=True):
    return {"type": "http.response.body", "body": data, "more_body": more}


def run(app, work, **settings):
    async def main():
        transport: Transport = AsgiTransport(app, **settings)
        try:
            return await work(transport)
        finally:
            await transport.close()
            assert len(asyncio.all_tasks()) == 1

    return asyncio.run(main())


async def collect(transport):
    async with transport.send(REQUEST) as got:
        return [chunk async for chunk in got.chunks()]


def test_request_and_reply():
    """The request reaches the app complete, and so does the reply the client."""
    seen = {}

    async def app(scope, receive, send):
        seen.update(scope, received=await receive())
        await send(START)
        await send(body(b"one", more=False))

    async def work(transport):
        async with transport.send(REQUEST) as got:
            return got.status, got.headers, await got.read()

    assert run(app, work) == (201, {"x-a": "1, 2"}, b"one")
    assert (seen["method"], seen["path"], seen["raw_path"]) == ("POST", "/v1/a b", b"/v1/a%20b")
    assert seen["query_string"] == b"x=1"
    assert (b"x-key", b"k") in seen["headers"]
    assert (b"host", b"api.example.com") in seen["headers"]
    assert seen["received"] == {"type": "http.request", "body": b"hello", "more_body": False}


def test_backpressure():
    """The app waits when its reader is a few chunks behind."""
    sent = []

    async def app(_scope, _receive, send):
        await send(START)
        for number in range(1000):
            await send(body(b"%d" % number))
            sent.append(number)
        await send(body(more=False))

    async def work(transport):
        async with transport.send(REQUEST) as got:
            chunks = got.chunks()
            first = await anext(chunks)
            await asyncio.sleep(0.01)
            ahead = len(sent)
            return first, ahead, [chunk async for chunk in chunks]

    first, ahead, rest = run(app, work)
    assert first == b"0"
    assert ahead < 50
    assert rest == [b"%d" % number for number in range(1, 1000)]


@pytest.mark.parametrize("how", ["leave", "abort", "cancel"])
def test_disconnect(how):
    """The app receives `http.disconnect`, and its later sends fail."""
    seen = []

    async def app(_scope, receive, send):
        await receive()
        await send(START)
        await send(body(b"one"))
        seen.append((await receive())["type"])
        try:
            await send(body(b"two"))
        except OSError:
            seen.append("refused")

    async def use(transport, ready):
        async with transport.send(REQUEST) as got:
            chunks = got.chunks()
            await anext(chunks)
            ready.set()
            if how == "abort":
                got.abort()
            if how != "leave":
                await anext(chunks)

    async def work(transport):
        ready = asyncio.Event()
        task = asyncio.ensure_future(use(transport, ready))
        await ready.wait()
        if how == "cancel":
            task.cancel()
        (end,) = await asyncio.gather(task, return_exceptions=True)
        kinds = {"cancel": asyncio.CancelledError, "abort": StreamError}
        assert type(end) is kinds.get(how, type(None))

    run(app, work)
    assert seen == ["http.disconnect", "refused"]


def test_app_that_ignores_the_disconnect():
    """An app that ignores the disconnect is cancelled after the grace time."""
    ends = []

    async def app(_scope, _receive, send):
        await send(START)
        try:
            await asyncio.sleep(60)
        finally:
            ends.append("cancelled")

    async def work(transport):
        async with transport.send(REQUEST):
            pass

    run(app, work)
    assert ends == ["cancelled"]


def test_background_work():
    """The app may go on after its reply; closing the transport cancels it."""
    done = []

    async def app(_scope, _receive, send):
        await send(START)
        await send(body(b"one", more=False))
        await asyncio.sleep(0.01)
        done.append("soon")
        await asyncio.sleep(60)
        done.append("late")

    async def work(transport):
        await collect(transport)
        await asyncio.sleep(0.05)

    run(app, work)
    assert done == ["soon"]


def test_an_app_that_fails():
    """An exception is a NetworkError before the headers, a StreamError after; it is the cause."""

    async def at_once(_scope, _receive, _send):
        raise KeyError("x")

    async def later(_scope, _receive, send):
        await send(START)
        await send(body(b"one"))
        raise KeyError("x")

    async def silent(_scope, _receive, _send):
        pass

    for app, kind, cause in (
        (at_once, NetworkError, KeyError),
        (later, StreamError, KeyError),
        (silent, NetworkError, type(None)),
    ):
        with pytest.raises(kind) as caught:
            run(app, collect)
        assert type(caught.value.__cause__) is cause


@pytest.mark.parametrize("phase", ["request", "first_byte", "stream_read"])
def test_timeouts(phase):
    """A stall before the headers or in the stream is a timeout."""

    async def app(_scope, _receive, send):
        if phase == "stream_read":
            await send(START)
        await asyncio.sleep(60)

    with pytest.raises(RequestTimeoutError) as caught:
        run(app, collect, timeouts=Timeouts(**{phase: 0.05}))
    assert (caught.value.phase, caught.value.retryable) == (phase, False)


async def read(transport):
    async with transport.send(REQUEST) as got:
        return await got.read()


def test_request_timeout():
    """The request timeout also covers the body; the stream_read timeout does not apply to it."""

    async def drips(_scope, _receive, send):
        await send(START)
        while True:
            await send(body(b"x"))
            await asyncio.sleep(0.01)

    with pytest.raises(RequestTimeoutError) as caught:
        run(drips, read, timeouts=Timeouts(request=0.05, stream_read=60))
    assert caught.value.phase == "request"

    async def pauses(_scope, _receive, send):
        await send(START)
        await asyncio.sleep(0.05)
        await send(body(b"x", more=False))

    assert run(pauses, read, timeouts=Timeouts(stream_read=0.01)) == b"x"


def test_body_limit():
    """A body over the limit is an error, as with the other transports."""

    async def app(_scope, _receive, send):
        await send(START)
        await send(body(b"x" * 100, more=False))

    with pytest.raises(DecodeError, match="larger than 99 bytes"):
        run(app, read, limits=Limits(body=99))
