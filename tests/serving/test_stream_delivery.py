"""Sending a stream through ASGI: its headers, what leaves together, slow clients, silence."""

import asyncio

import pytest

from interlingua.serving import stream_delivery
from interlingua.serving.application import Framing
from interlingua.serving.stream_delivery import StreamDelivery
from interlingua.spec.contracts import Frame


class Client:
    """Takes messages of ASGI; `gate` lets it read."""

    def __init__(self):
        self.messages = []
        self.gate = asyncio.Event()
        self.gate.set()

    async def send(self, message):
        await self.gate.wait()
        self.messages.append(message)

    @property
    def kinds(self):
        return [message["type"].rpartition(".")[2] for message in self.messages]

    @property
    def bodies(self):
        return [message["body"] for message in self.messages if "body" in message]


def frames(*texts):
    return [Frame(data=text) for text in texts]


async def turns(count=5):
    for _ in range(count):
        await asyncio.sleep(0)


def test_headers_wait_for_the_first_content():
    """What comes before it is held back, so that an error can still have its own status."""

    async def main():
        client = Client()
        async with StreamDelivery(client.send, Framing()) as delivery:
            await delivery.put(frames("start"), begin=False)
            await turns()
            assert client.messages == []
            assert not delivery.has_begun
            delivery.headers["x-late"] = "1"
            await delivery.put(frames("content"), begin=True)
            await turns()
            assert client.kinds == ["start", "body"]
        assert (b"x-late", b"1") in client.messages[0]["headers"]
        assert client.bodies == [b"data: start\n\ndata: content\n\n", b""]
        assert client.messages[-1]["more_body"] is False

    asyncio.run(main())


def test_what_is_ready_in_one_turn_leaves_together():
    """Events that are put without a pause are one body."""

    async def main():
        client = Client()
        async with StreamDelivery(client.send, Framing()) as delivery:
            await delivery.put(frames("0"), begin=True)
            await turns()
            for number in range(1, 100):
                await delivery.put(frames(str(number)), begin=False)
            await turns()
            assert len(client.bodies) == 2
        assert b"".join(client.bodies).count(b"data:") == 100

    asyncio.run(main())


def test_the_hold_ends(monkeypatch):
    """After it the headers are sent without content."""
    monkeypatch.setattr(stream_delivery, "HOLD", 0.01)

    async def main():
        client = Client()
        async with StreamDelivery(client.send, Framing()) as delivery:
            await delivery.put(frames("start"), begin=False)
            while not client.messages:  # noqa: ASYNC110 -- a timer sends it
                await asyncio.sleep(0.001)
            assert delivery.has_begun

    asyncio.run(main())


def test_silence_is_filled(monkeypatch):
    """With comments, which clients ignore."""
    monkeypatch.setattr(stream_delivery, "KEEP_ALIVE", 0.01)

    async def main():
        client = Client()
        async with StreamDelivery(client.send, Framing()) as delivery:
            await delivery.put(frames("a"), begin=True)
            while client.bodies.count(Framing.keep_alive) < 2:  # noqa: ASYNC110 -- as above
                await asyncio.sleep(0.001)

    asyncio.run(main())


def test_a_slow_client_holds_the_source_back():
    """`put` waits while much is unsent, and goes on when the client reads."""

    async def main():
        client = Client()
        async with StreamDelivery(client.send, Framing()) as delivery:
            await delivery.put(frames("a"), begin=True)
            client.gate.clear()
            writing = asyncio.ensure_future(fill(delivery, 100))
            await turns(50)
            assert not writing.done()
            client.gate.set()
            await writing
        assert b"".join(client.bodies).count(b"data:") == 101

    async def fill(delivery, count):
        for _ in range(count):
            await delivery.put(frames("x" * 10_000), begin=False)

    asyncio.run(main())


def test_nothing_is_sent_after_it_was_abandoned():
    """Another reply takes its place."""

    async def main():
        client = Client()
        async with StreamDelivery(client.send, Framing()) as delivery:
            await delivery.put(frames("start"), begin=False)
            delivery.abandon()
        assert client.messages == []

    asyncio.run(main())


def test_an_error_inside_ends_it():
    """The stream stays open-ended, as the server closes the connection; no task is left."""

    async def main():
        client = Client()
        with pytest.raises(KeyError):
            await fail(client)
        assert client.messages[-1]["more_body"] is True
        assert asyncio.all_tasks() == {asyncio.current_task()}

    async def fail(client):
        async with StreamDelivery(client.send, Framing()) as delivery:
            await delivery.put(frames("a"), begin=True)
            await turns()
            raise KeyError

    asyncio.run(main())


def test_a_client_that_fails_ends_the_source():
    """`put` raises what the server raised."""

    async def broken(_message):
        raise ConnectionResetError

    async def main():
        async with StreamDelivery(broken, Framing()) as delivery:
            await delivery.put(frames("a"), begin=True)
            await turns()
            await delivery.put(frames("b"), begin=False)

    with pytest.raises(ConnectionResetError):
        asyncio.run(main())
