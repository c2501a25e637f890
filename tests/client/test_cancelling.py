"""However a call is given up, the server sees it, and nothing is left behind."""

import asyncio
import gc

import pytest

from interlingua.simulator import latency, text, tool_call
from interlingua.spec.errors import AbortError
from support.patience import PATIENCE
from support.simulated import DIALECTS, SLOW, run, settled, simulated

WORDS = "Oslo " * 200
# Two calls: the last one of Gemini comes with the end of the stream.
SLOW_CALL = tool_call("look", city=WORDS) + tool_call("look", city=WORDS) + latency(between=0.01)
NEVER = text("never") + latency(first=60)
SOME = 4  # deltas after which a stream is in its middle

every_provider = pytest.mark.parametrize("provider", sorted(DIALECTS))


async def closed(peer):
    """Wait until the server has noticed, while the client is still open."""
    (exchange,) = peer.app.script.received
    await settled(lambda: exchange.disconnected is not None)


async def begun(peer):
    await settled(lambda: peer.app.script.received)


@every_provider
def test_before_the_head(provider):
    """By `cancel` and by the task: a whole call raises, a stream says that it was cancelled."""

    async def whole(client):
        task = asyncio.ensure_future(client.complete(peer.ask(provider, request_id="r")))
        await begun(peer)
        assert await client.cancel("r")
        await closed(peer)
        with pytest.raises(AbortError):
            await task

    async def streamed(client):
        task = asyncio.ensure_future(collect(client.stream(peer.ask(provider, request_id="r"))))
        await begun(peer)
        assert await client.cancel("r")
        await closed(peer)
        events = await task
        assert [event.type for event in events] == ["stream_start", "finish"]
        assert events[-1].finish_reason.reason == "cancelled"

    async def by_task(client):
        task = asyncio.ensure_future(client.complete(peer.ask(provider)))
        await begun(peer)
        task.cancel()
        await closed(peer)
        with pytest.raises(asyncio.CancelledError):
            await task

    for way in (whole, streamed, by_task):
        with simulated(NEVER) as peer:
            run(peer, way)


async def collect(events):
    return [event async for event in events]


class Reading:
    """A task that reads a stream, to be stopped in some way."""

    def __init__(self, stream, *, leaves=False):
        self.stream = stream
        self.events = []
        self.some = asyncio.Event()
        self.deltas = 0
        self.task = asyncio.ensure_future(self.read(leaves))

    async def read(self, leaves):
        async for event in self.stream:
            self.events.append(event)
            self.deltas += event.type.endswith("_delta")
            if self.deltas == SOME or event.type == "tool_call_end":  # Gemini sends calls whole
                self.some.set()
                if leaves:
                    break
        if leaves:
            del self.stream

    async def begun(self):
        await asyncio.wait_for(self.some.wait(), PATIENCE)


@every_provider
@pytest.mark.parametrize("answer", [SLOW, SLOW_CALL], ids=["mid-text", "mid-call"])
def test_in_the_middle_by_cancel(provider, answer):
    """What is open is closed, one end says why, and what had come is there."""

    async def work(client):
        reading = Reading(client.stream(peer.ask(provider, request_id="r")))
        await reading.begun()
        assert await client.cancel("r")
        await closed(peer)
        await reading.task
        return reading.events

    with simulated(answer) as peer:
        events = run(peer, work)

    response = events[-1].response
    assert events[-1].finish_reason.reason == "cancelled"
    assert sum(event.type == "finish" for event in events) == 1
    assert response.message.content
    if answer is SLOW_CALL:
        (call,) = response.tool_calls
        raw = "".join(event.delta for event in events if event.type == "tool_call_delta")
        city = call.arguments.pop("city")
        assert call.arguments == {}
        assert raw == '{"city":"' + city + ('"}' if provider == "gemini" else "")
        assert WORDS.startswith(city)
        assert city
        assert (city == WORDS) == (provider == "gemini")


@every_provider
@pytest.mark.parametrize("answer", [SLOW, SLOW_CALL], ids=["mid-text", "mid-call"])
def test_in_the_middle_by_the_task(provider, answer):
    """A task that is cancelled takes its connection along."""

    async def work(client):
        reading = Reading(client.stream(peer.ask(provider)))
        await reading.begun()
        reading.task.cancel()
        await closed(peer)
        await asyncio.gather(reading.task, return_exceptions=True)
        assert reading.task.cancelled()

    with simulated(answer) as peer:
        run(peer, work)


@every_provider
@pytest.mark.parametrize("answer", [SLOW, SLOW_CALL], ids=["mid-text", "mid-call"])
def test_in_the_middle_by_leaving_the_loop(provider, answer):
    """With `break`: nobody holds the iterator any more."""

    async def work(client):
        reading = Reading(client.stream(peer.ask(provider)), leaves=True)
        await reading.task
        await closed(peer)

    with simulated(answer) as peer:
        run(peer, work)


@every_provider
def test_in_the_middle_by_closing_the_iterator(provider):
    """At once, though it is still held."""

    async def work(client):
        stream = client.stream(peer.ask(provider))
        async for event in stream:
            if event.type == "text_delta":
                break
        await stream.aclose()
        await closed(peer)

    with simulated(SLOW) as peer:
        run(peer, work)


def test_a_reader_that_is_busy_elsewhere():
    """The socket is closed though nobody reads; the stream ends when it is read again."""

    async def work(client):
        stream = client.stream(peer.ask("anthropic", request_id="r"))
        await anext(stream)
        assert await client.cancel("r")
        await closed(peer)
        rest = [event async for event in stream]
        return rest[-1].finish_reason.reason

    with simulated(SLOW) as peer:
        reason = run(peer, work)

    assert reason == "cancelled"


def test_five_hundred_streams_half_of_them_cancelled():
    """No open socket and no task is left."""

    async def read(client, provider, number):
        request = peer.ask(provider, request_id=f"r{number}")
        kept = 0
        async for event in client.stream(request):
            kept += 1
            if number % 2 and event.type == "text_delta":
                if number % 4 == 1:
                    await client.cancel(request.request_id)
                else:
                    break
        return kept

    async def work(client):
        names = sorted(DIALECTS)
        before = asyncio.all_tasks()
        reads = [read(client, names[number % 4], number) for number in range(500)]
        kept = await asyncio.gather(*reads)
        gc.collect()
        await settled(lambda: asyncio.all_tasks() == before)
        await client.close()
        await settled(lambda: peer.server.open_connections == 0)
        return kept

    with simulated(text("some words of an answer") + latency(between=0.001)) as peer:
        kept = run(peer, work)

    assert len(kept) == 500
    assert all(kept)
