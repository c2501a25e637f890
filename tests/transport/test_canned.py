"""The transport with canned replies."""

import asyncio

import pytest

from interlingua.spec.contracts import HttpRequest, Transport
from interlingua.spec.errors import ConfigurationError, DecodeError, NetworkError, StreamError
from interlingua.transport.canned import CannedReply, CannedTransport, MemoryReply

REQUEST = HttpRequest(url="https://api.example.com/v1?key=secret", body=b"{}")


def test_replies_in_order():
    """Each request gets the next reply or error; after the last one there is a clear error."""
    answers = [CannedReply(body=b"one", headers={"X-Id": "1"}), NetworkError("gone")]
    transport: Transport = CannedTransport(answers)

    async def main():
        async with transport.send(REQUEST) as got:
            assert (got.status, got.headers, await got.read()) == (200, {"x-id": "1"}, b"one")
        with pytest.raises(NetworkError, match="gone"):
            async with transport.send(REQUEST):
                pass
        with pytest.raises(ConfigurationError, match="No canned reply is left") as caught:
            transport.send(REQUEST)
        assert "secret" not in str(caught.value)
        await transport.close()

    asyncio.run(main())
    assert transport.requests == [REQUEST] * 3


def test_a_function_answers():
    """A function can choose the reply for each request."""
    transport = CannedTransport(lambda request: CannedReply(body=request.body * 2))

    async def main():
        async with transport.send(HttpRequest(url="http://a/", body=b"ab")) as got:
            return await got.read()

    assert asyncio.run(main()) == b"abab"


def test_a_body_in_chunks():
    """Chunks, pauses and an error come in their order."""
    body = (b"one", 0.001, b"", b"two", StreamError("cut"))
    transport = CannedTransport([CannedReply(body=body)])
    got = []

    async def main():
        async with transport.send(REQUEST) as reply:
            async for chunk in reply.chunks():
                got.append(chunk)  # noqa: PERF401 -- kept though it fails

    with pytest.raises(StreamError, match="cut"):
        asyncio.run(main())
    assert got == [b"one", b"two"]


def test_abort():
    """A waiting reader gets an error, and so does a later reader."""
    transport = CannedTransport([CannedReply(body=(b"one", 60.0))])

    async def main():
        async with transport.send(REQUEST) as reply:
            chunks = reply.chunks()
            assert await anext(chunks) == b"one"
            reading = asyncio.ensure_future(anext(chunks))
            await asyncio.sleep(0)
            reply.abort()
            for waiting in (reading, anext(chunks)):
                with pytest.raises(StreamError):
                    await waiting

    asyncio.run(main())


def test_cancel():
    """A cancelled reader gets CancelledError, not an error about the reply."""
    transport = CannedTransport([CannedReply(body=(60.0,))])

    async def main():
        async with transport.send(REQUEST) as reply:
            await reply.read()

    async def outer():
        task = asyncio.ensure_future(main())
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(outer())


def test_abort_after_a_caught_cancellation():
    """A task that caught its cancellation gets the error of abort, not another cancellation."""
    transport = CannedTransport([CannedReply(body=(60.0,))])

    async def reads():
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            async with transport.send(REQUEST) as reply:
                asyncio.get_running_loop().call_soon(reply.abort)
                asyncio.get_running_loop().call_soon(reply.abort)  # twice is as once
                with pytest.raises(StreamError):
                    await reply.read()
            return "went on"

    async def main():
        task = asyncio.ensure_future(reads())
        await asyncio.sleep(0)
        task.cancel()
        return await task

    assert asyncio.run(main()) == "went on"


@pytest.mark.parametrize("headers", [{}, {"content-type": "application/json"}])
def test_body_limit(headers):
    """The limit applies to a whole body and to JSON in chunks, but not to a stream of events."""

    async def body():
        for _ in range(3):
            yield b"x" * 10

    async def main(action, limit):
        return await action(MemoryReply(200, headers, body(), limit=limit))

    async def read(reply):
        return await reply.read()

    async def collect(reply):
        return b"".join([chunk async for chunk in reply.chunks()])

    with pytest.raises(DecodeError, match="larger than 29 bytes"):
        asyncio.run(main(read, 29))
    assert asyncio.run(main(read, 30)) == b"x" * 30
    if headers:
        with pytest.raises(DecodeError, match="larger than 29 bytes"):
            asyncio.run(main(collect, 29))
    else:
        assert asyncio.run(main(collect, 29)) == b"x" * 30
