"""How subscribers are told of calls that were cancelled: completed, never failed."""

import asyncio
import contextlib

import pytest

from interlingua import AbortController, embed, generate
from interlingua import stream as stream_run
from interlingua.api.run.options import TimeoutConfig
from interlingua.errors import AbortError, ErrorClass, RequestTimeoutError
from interlingua.media import stream_speech
from interlingua.middleware import Hedge, Logging
from interlingua.simulator import latency, text
from interlingua.spec.events import TextDelta
from support.blocking import blocking
from support.simulated import DIALECTS, MODELS, SLOW, in_virtual_time

NAME = "r"  # the id of the call
providers = pytest.mark.parametrize("provider", sorted(DIALECTS))


async def read(events):
    async with contextlib.aclosing(events):
        async for _ in events:
            pass


class Ways:
    """The ways to ask; each ends when the call has ended."""

    def __init__(self, peer, provider):
        self.client = peer.client
        self.request = peer.ask(provider, request_id=NAME)
        self.model = f"{provider}:{MODELS[provider]}"
        self.controller = AbortController()
        signal = self.controller.signal
        self.options = {"client": self.client, "request_id": NAME, "abort_signal": signal}

    async def whole(self):
        await self.client.complete(self.request)

    async def events(self):
        await read(self.client.stream(self.request))

    async def run(self):
        await generate(self.model, "Hi.", **self.options)

    async def run_of_events(self):
        await read(stream_run(self.model, "Hi.", **self.options))


async def by_id(ways, _):
    assert await ways.client.cancel(NAME)


async def by_task(_, task):
    task.cancel()


async def by_close(ways, _):
    await ways.client.close()


async def by_signal(ways, _):
    ways.controller.abort()


ENDS = {"its id": by_id, "its task": by_task, "the end of the client": by_close}


def check(seen, count=1):
    """Each attempt began, and ended as cancelled."""
    assert [event.type for event in seen] == ["call_started", "call_completed"] * count
    assert {each.finish_reason for each in seen[1::2]} == {"cancelled"}


def end_of(peer, provider, way, end):
    """The call events of a call that is ended while its answer arrives."""
    seen = []

    async def work():
        ways = Ways(peer, provider)
        ways.client.subscribe(seen.append)
        task = asyncio.create_task(getattr(ways, way)())
        await asyncio.sleep(0.5)
        await end(ways, task)
        await asyncio.wait({task})
        if not task.cancelled():
            assert task.exception() is None or isinstance(task.exception(), AbortError)
        await peer.client.close()

    peer.run(work())
    return seen


@pytest.mark.parametrize("has_layers", [False, True], ids=["plain", "layered"])
@pytest.mark.parametrize("end", sorted(ENDS))
@pytest.mark.parametrize("way", ["whole", "events", "run", "run_of_events"])
@providers
def test_a_cancelled_call_is_completed_as_cancelled(provider, way, end, has_layers):
    """By its id, with its task or with its client: whole, streamed, and in a run."""
    peer = in_virtual_time(SLOW)
    if has_layers:
        peer.client = peer.client.with_middleware(Logging())
    check(end_of(peer, provider, way, ENDS[end]))


@pytest.mark.parametrize("way", ["run", "run_of_events"])
def test_an_aborted_run_is_completed_as_cancelled(way):
    """The signal of the caller has fired."""
    check(end_of(in_virtual_time(SLOW), "anthropic", way, by_signal))


@pytest.mark.parametrize("leaves_at", [1, 3])
@providers
def test_a_stream_that_is_left_is_completed_as_cancelled(provider, leaves_at):
    """With what had arrived; the usage of a stream is an estimate then."""
    peer, seen = in_virtual_time(SLOW), []

    async def work():
        peer.client.subscribe(seen.append)
        events, count = peer.client.stream(peer.ask(provider)), 0
        async with contextlib.aclosing(events):
            async for event in events:
                count += isinstance(event, TextDelta)
                if count == leaves_at:
                    break
        await peer.client.close()

    peer.run(work())

    check(seen)
    assert seen[-1].usage.estimated
    assert seen[-1].usage.output_tokens > 0


def test_a_blocking_stream_that_is_left_is_completed_as_cancelled():
    """A plain loop that ends early."""
    seen = []
    with blocking(SLOW) as (peer, client):
        client.subscribe(seen.append)
        with client.stream(peer.ask("openai")) as events:
            assert next(events).type == "stream_start"

    check(seen)


@pytest.mark.parametrize("way", ["whole", "events"])
def test_the_loser_of_a_hedge_is_completed_as_cancelled(way):
    """Both requests begin, the loser is cancelled, and the winner stops as it would alone."""
    peer, seen = in_virtual_time(text("late") + latency(first=30), text("in time")), []
    peer.client = peer.client.with_middleware(Hedge(after=1, share=1.0))

    async def work():
        peer.client.subscribe(seen.append)
        await getattr(Ways(peer, "openai"), way)()
        await peer.client.close()

    peer.run(work())

    ended = {event.attempt: event for event in seen if event.type != "call_started"}
    assert {each.type for each in ended.values()} == {"call_completed"}
    assert [ended[0].finish_reason, ended[1].finish_reason] == ["cancelled", "stop"]
    assert ended[0].usage.estimated


@pytest.mark.parametrize("end", sorted(ENDS))
def test_a_cancelled_operation_is_completed_as_cancelled(end):
    """As a call of a model is."""
    peer, seen = in_virtual_time(latency(first=30)), []

    async def work():
        ways = Ways(peer, "openai")
        ways.client.subscribe(seen.append)
        model = "openai:text-embedding-3-small"
        task = asyncio.create_task(embed(model, "Hi.", client=ways.client, request_id=NAME))
        await asyncio.sleep(0.5)
        await ENDS[end](ways, task)
        await asyncio.wait({task})
        assert task.cancelled() or isinstance(task.exception(), AbortError)
        await peer.client.close()

    peer.run(work())

    check(seen)


@pytest.mark.parametrize("end", ["left", "cancelled"])
def test_a_streamed_operation_that_is_not_read_to_its_end_is_completed_as_cancelled(end):
    """Its reader leaves, or it is cancelled by its id."""
    peer, seen = in_virtual_time(), []

    async def work():
        peer.client.subscribe(seen.append)
        speech = stream_speech(
            "openai:gpt-4o-mini-tts", "one two three", client=peer.client, request_id=NAME
        )
        async with speech as stream:
            await anext(aiter(stream))
            if end == "cancelled":
                assert await peer.client.cancel(NAME)
        await peer.client.close()

    peer.run(work())

    check(seen)


@pytest.mark.parametrize("way", ["run", "run_of_events"])
def test_a_timeout_is_a_failure(way):
    """The time of the whole run is over: nobody has cancelled it."""
    peer, seen = in_virtual_time(SLOW), []

    async def work():
        peer.client.subscribe(seen.append)
        ways = Ways(peer, "openai")
        ways.options["timeout"] = TimeoutConfig(total=2.0)
        with pytest.raises(RequestTimeoutError):
            await getattr(ways, way)()
        await peer.client.close()

    peer.run(work())

    assert [event.type for event in seen] == ["call_started", "call_failed"]
    assert seen[-1].error_class is ErrorClass.NETWORK
    assert "total timeout" in seen[-1].message


@pytest.mark.parametrize("way", ["whole", "events"])
def test_a_call_that_is_cancelled_while_a_subscriber_waits_has_an_end(way):
    """An async subscriber handles the beginning when the task is cancelled."""
    peer, seen = in_virtual_time(text("Hi.")), []

    async def slow(event):
        seen.append(event)
        await asyncio.sleep(5 if event.type == "call_started" else 0)

    async def work():
        peer.client.subscribe(slow)
        task = asyncio.create_task(getattr(Ways(peer, "openai"), way)())
        await asyncio.sleep(0.5)
        task.cancel()
        await asyncio.wait({task})
        await peer.client.close()

    peer.run(work())

    check(seen)
    assert not peer.app.script.received
