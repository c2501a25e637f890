"""`RateLimit`: never above its limits, in order, and obedient to the provider."""

import asyncio
import logging
import time
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
import uvloop
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from interlingua import sync, transcribe
from interlingua.api.run.generate import generate
from interlingua.client.middleware.contract import per_attempt
from interlingua.client.middleware.rate_limit import ASSUMED_OUTPUT, RateLimit
from interlingua.client.retry_policy import RetryPolicy
from interlingua.client.stores.memory import MemoryStore
from interlingua.media import stream_transcription
from interlingua.simulator import error, latency, text
from interlingua.spec.content import Audio
from interlingua.spec.errors import (
    AbortError,
    ConfigurationError,
    RateLimitError,
    RequestTimeoutError,
    ServerError,
    StoreError,
)
from interlingua.spec.modalities.speech import TranscribeInput
from interlingua.spec.response import RateLimitInfo, Usage
from support import virtual_time
from support.limited import ANSWER, Metered, ask, call, calls, client_of
from support.patience import PATIENCE
from support.run_profile import examples
from support.simulated import in_virtual_time, run, simulated

WAYS = ("complete", "stream")
FAST = RetryPolicy(base_delay=0.0, max_retries=3)
SCOPE = "model=metered:m"
both_ways = pytest.mark.parametrize("way", WAYS)


class Timed(Metered):
    """Notes when each attempt is sent."""

    def __init__(self, *script, **options):
        super().__init__(*script, **options)
        self.times = []

    async def answer(self, request):
        self.times.append(virtual_time.now())
        return await super().answer(request)


def virtual_store():
    return MemoryStore(clock=virtual_time.now)


# The law.


@both_ways
def test_no_window_has_more_requests_than_the_limit(way):
    """However many callers there are, each window has at most the limit, and all get through.

    Field bug 81.
    """

    async def main():
        adapter, used = Timed(), []
        limit = RateLimit(requests_per_minute=10, period=0.2, store=virtual_store())

        @per_attempt
        async def note(request, call_next):
            used.append((await limit.used(SCOPE))["requests"])
            return await call_next(request)

        outcomes = await calls(client_of(adapter, limit, note), way, 30)
        assert [each.text for each in outcomes] == ["one two three"] * 30
        assert max(used) == 10  # by the clock of the store
        assert 0.4 <= adapter.times[-1] - adapter.times[0] < 0.5

    virtual_time.run(main())


@both_ways
def test_no_window_has_more_tokens_than_the_limit(way):
    """Input and output tokens are limited by their estimates, and then by what was used.

    Field bug 81.
    """

    async def main():
        answer = replace(ANSWER, usage=Usage(input_tokens=7, output_tokens=10))
        adapter = Timed(answer, delay=0.01)
        limit = RateLimit(output_tokens_per_minute=100, input_tokens_per_minute=1_000)
        client = client_of(adapter, limit)
        began = virtual_time.now()
        await calls(client, way, 5, max_tokens=50)  # two at once, then one by one
        assert adapter.most_at_once == 2
        assert virtual_time.now() - began < 0.1  # the tokens that are given back wake the next one
        assert await limit.used(SCOPE) == {"input_tokens": 35.0, "output_tokens": 50.0}

    virtual_time.run(main())


@both_ways
def test_concurrency(way):
    """No more attempts are under way at once, and the next begins when one ends."""

    async def main():
        adapter = Timed(delay=0.02)
        limit = RateLimit(concurrency=3)
        await calls(client_of(adapter, limit), way, 12)
        assert adapter.most_at_once == 3
        assert await limit.used(SCOPE) == {"concurrency": 0.0}

    virtual_time.run(main())


def test_a_burst_is_spread():
    """With `burst`, requests above it start at even distances."""

    async def main():
        adapter = Timed()
        limit = RateLimit(requests_per_minute=20, burst=1, period=0.4, store=virtual_store())
        client = client_of(adapter, limit)
        await calls(client, "complete", 6)
        gaps = [after - before for before, after in pairwise(adapter.times)]
        assert 0.0199 <= min(gaps) <= max(gaps) < 0.05

    virtual_time.run(main())


# The queue.


@given(order=st.permutations(range(8)), cancelled=st.sets(st.integers(0, 7), max_size=6))
@settings(max_examples=examples(100))
def test_callers_are_served_in_order_and_leave_no_hole(order, cancelled):
    """Whoever is cancelled while waiting, the others are served in the order in which they came."""

    async def main():
        gate = asyncio.Event()
        adapter = Metered(delay=0.0)
        client = client_of(adapter, RateLimit(concurrency=1), pass_gate(gate))
        first = asyncio.create_task(call(client, "complete", ask("first")))
        await asyncio.sleep(0)
        tasks = {}
        for number in order:
            tasks[number] = asyncio.create_task(call(client, "complete", ask(str(number))))
            await asyncio.sleep(0)
        await asyncio.sleep(0)
        for number in cancelled:
            tasks[number].cancel()
        await asyncio.sleep(0)
        gate.set()
        await asyncio.wait_for(asyncio.wait([first, *tasks.values()]), PATIENCE)
        served = [each.messages[0].text for each in adapter.sent]
        assert served == ["first", *(str(each) for each in order if each not in cancelled)]

    virtual_time.run(main())


def pass_gate(gate):
    """A layer inside of the limit that waits."""

    async def wait(request, call_next):
        await gate.wait()
        return await call_next(request)

    wait.per_attempt = True
    return wait


def test_a_large_request_is_not_starved():
    """Small requests that come later do not overtake a large one that waits."""

    async def main():
        adapter = Timed(delay=0.01)
        store = virtual_store()
        limit = RateLimit(output_tokens_per_minute=100, period=0.2, learn=False, store=store)
        client = client_of(adapter, limit)
        sizes = (60, 100, 10, 10, 10)
        tasks = []
        for size in sizes:
            tasks.append(asyncio.create_task(call(client, "complete", ask(max_tokens=size))))
            await asyncio.sleep(0)
        await asyncio.gather(*tasks)
        assert tuple(each.max_tokens for each in adapter.sent) == sizes

    virtual_time.run(main())


@both_ways
def test_max_wait_is_a_typed_error_before_sending(way):
    """An attempt that would wait too long is refused at once, with the time it would take."""

    async def main():
        adapter = Metered()
        store = virtual_store()
        limit = RateLimit(requests_per_minute=1, period=30.0, max_wait=0.1, store=store)
        client = client_of(adapter, limit)
        await call(client, way)
        began = virtual_time.now()
        with pytest.raises(RateLimitError, match=r"not sent: it would wait .* in 30") as caught:
            await call(client, way, retry=FAST)
        assert virtual_time.now() == began
        assert caught.value.retry_after == pytest.approx(30, abs=1)
        assert caught.value.error_code == "local_rate_limit"
        assert len(adapter.sent) == 1
        assert len(caught.value.attempts) == 1  # the attempts do not wait either

    virtual_time.run(main())


@both_ways
@pytest.mark.parametrize("form", ["retry_after", "reset_after"])
def test_a_pause_that_the_provider_asked_for_counts_against_max_wait(way, form):
    """During a pause longer than `max_wait` a call is refused at once, with what is left."""
    if form == "retry_after":
        busy = RateLimitError("slow down", retry_after=300)
    else:
        busy = RateLimitError(
            "slow down", rate_limit=RateLimitInfo(requests_remaining=0, reset_after=300)
        )

    async def main():
        adapter = Metered(busy)
        client = client_of(adapter, RateLimit(requests_per_minute=100, max_wait=250))
        began = time.monotonic()
        with pytest.raises(RateLimitError, match="slow down"):
            await call(client, way)
        before = virtual_time.now()
        with pytest.raises(RateLimitError, match="not sent: it would wait") as caught:
            await call(client, way)
        passed = time.monotonic() - began
        assert virtual_time.now() == before  # it did not wait for `max_wait` either
        assert 300 - passed <= caught.value.retry_after <= 300
        assert caught.value.error_code == "local_rate_limit"
        assert len(adapter.sent) == 1

    virtual_time.run(main())


def test_max_wait_in_the_queue():
    """Who waits behind others is refused after `max_wait`, and the queue goes on."""

    async def main():
        adapter = Metered(delay=0.15)
        client = client_of(adapter, RateLimit(concurrency=1, max_wait=0.1))
        outcomes = await calls(client, "complete", 3)
        kinds = [type(each).__name__ for each in outcomes]
        assert kinds == ["Response", "RateLimitError", "RateLimitError"]
        assert (await call(client, "complete")).text == "one two three"

    virtual_time.run(main())


def test_a_timeout_or_a_cancellation_ends_the_wait():
    """The total timeout of a run, and `cancel` by its id, end a wait in the queue."""

    async def main():
        adapter = Metered(delay=0.3)
        client = client_of(adapter, RateLimit(concurrency=1))
        first = asyncio.create_task(call(client, "complete"))
        await asyncio.sleep(0.01)
        with pytest.raises(RequestTimeoutError):
            await generate("m", "hello", client=client, timeout=0.05)
        waiting = asyncio.create_task(call(client, "complete", ask(request_id="r")))
        await asyncio.sleep(0.01)
        assert await client.cancel("r")
        with pytest.raises(AbortError):
            await waiting
        await first
        await call(client, "complete")
        assert len(adapter.sent) == 2

    virtual_time.run(main())


@pytest.mark.parametrize("earlier", [0, 3])
def test_a_request_that_never_fits_is_refused(earlier):
    """More input than the limit of a minute is an error, not an endless wait; also later on."""

    async def main():
        client = client_of(Metered(), RateLimit(input_tokens_per_minute=60))
        for _ in range(earlier):
            await call(client, "complete", ask("hi"))
        with pytest.raises(RateLimitError, match="never admits so many"):
            await call(client, "complete", ask("many words " * 50))

    asyncio.run(main())


# What an attempt counts.


def test_retries_are_counted_one_by_one():
    """Each attempt takes its place in the limit."""

    async def main():
        adapter = Timed(
            ServerError("no", status_code=500), ServerError("no", status_code=500), ANSWER
        )
        limit = RateLimit(requests_per_minute=2, period=0.2, store=virtual_store())
        await call(client_of(adapter, limit), "complete", retry=FAST)
        assert adapter.times[2] - adapter.times[0] >= 0.2

    virtual_time.run(main())


def test_the_average_output_is_learned():
    """Without `max_tokens`, an answer is expected to be as long as those before."""

    async def main():
        adapter, limit = Metered(), RateLimit(output_tokens_per_minute=10_000)
        client = client_of(adapter, limit)
        for _ in range(60):
            await call(client, "complete")
        expected = limit._learned[SCOPE].average_output
        assert 5 <= expected < 10 < ASSUMED_OUTPUT
        assert await limit.used(SCOPE) == {"output_tokens": 300.0}

    asyncio.run(main())


@pytest.mark.parametrize("end", ["leave", "cancel"])
def test_a_stream_that_is_cut_short_gives_back_what_it_holds(end):
    """The place of a stream is free when its reader leaves or it is cancelled."""

    async def main():
        limit = RateLimit(concurrency=1, output_tokens_per_minute=10_000)
        client = client_of(Metered(hold=asyncio.Event()), limit)
        events = client.stream(ask(request_id="r"))
        for _ in range(3):
            await anext(events)
        assert (await limit.used(SCOPE))["concurrency"] == 1
        if end == "cancel":
            assert await client.cancel("r")
            assert [each.type async for each in events][-1] == "finish"
        else:
            await events.aclose()
        assert await limit.used(SCOPE) == {"output_tokens": 4.0, "concurrency": 0.0}

    asyncio.run(main())


@both_ways
def test_a_request_that_cannot_be_routed_leaves_no_place_taken(way):
    """A layer inside that names an unknown provider gives everything back."""

    async def misroute(request, call_next):
        return await call_next(replace(request, provider="nobody"))

    misroute.per_attempt = True

    async def main():
        limit = RateLimit(concurrency=1, requests_per_minute=10)
        with pytest.raises(ConfigurationError):
            await call(client_of(Metered(), limit, misroute), way)
        assert await limit.used(SCOPE) == {"requests": 0.0, "concurrency": 0.0}

    asyncio.run(main())


def test_keys():
    """Each key has limits of its own; None is not limited."""

    async def main():
        adapter = Metered()
        limit = RateLimit(requests_per_minute=1, key=lambda each: each.user, max_wait=0.0)
        client = client_of(adapter, limit)
        for user in ("alice", "bob", None, None):
            await call(client, "complete", ask(user=user))
        with pytest.raises(RateLimitError):
            await call(client, "complete", ask(user="alice"))

    asyncio.run(main())


# Learning.


@both_ways
def test_a_429_with_retry_after_stops_the_key(way):
    """Nothing of the key is sent until the time has passed; other keys go on."""

    async def main():
        slow = RateLimitError("slow down", status_code=429, retry_after=0.2)
        adapter = Timed(slow, ANSWER)
        client = client_of(adapter, RateLimit())
        with pytest.raises(RateLimitError):
            await call(client, way)
        await call(client, way, ask(model="another"))
        await call(client, way)
        assert adapter.times[1] < adapter.times[2]
        assert adapter.times[2] - adapter.times[0] >= 0.2

    asyncio.run(main())


@both_ways
@pytest.mark.parametrize("source", ["response", "error"])
def test_nothing_remaining_pauses_until_the_reset(way, source):
    """The headers of an answer or of an error say that nothing is left."""
    limit = RateLimitInfo(requests_remaining=0, reset_after=0.2)
    first = {
        "response": replace(ANSWER, rate_limit=limit),
        "error": RateLimitError("no", status_code=429, rate_limit=limit),
    }[source]

    async def main():
        adapter = Timed(first, ANSWER)
        client = client_of(adapter, RateLimit())
        await asyncio.gather(call(client, way), return_exceptions=True)
        await call(client, way)
        assert adapter.times[1] - adapter.times[0] >= 0.2

    asyncio.run(main())


def test_a_reset_may_be_a_point_in_time():
    """A provider may say when, not how long."""

    async def main():
        soon = datetime.now(UTC) + timedelta(seconds=0.2)
        limit = RateLimitInfo(tokens_remaining=0, reset_at=soon)
        adapter = Timed(replace(ANSWER, rate_limit=limit), ANSWER)
        client = client_of(adapter, RateLimit())
        await call(client, "complete")
        await call(client, "complete")
        assert datetime.now(UTC) >= soon

    asyncio.run(main())


@both_ways
def test_a_429_over_http_is_learned(way):
    """The simulator's 429 halves the limit; the client waits as long as it asks."""
    with simulated(error(429, retry_after=0.2), text("Hello.")) as peer:
        limit = RateLimit(requests_per_minute=100)
        client = peer.client.with_middleware(limit)

        async def main():
            began = time.monotonic()
            request = peer.ask("openai")
            response = await call(client, way, request, retry=FAST)
            assert response.text == "Hello."
            assert time.monotonic() - began >= 0.2
            share = limit._learned["model=openai:gpt-5.2"].share
            assert share == pytest.approx(0.51)
            await client.close()

        asyncio.run(main())


def test_aimd():
    """A 429 halves the share, successes add to it, and it stays between a tenth and one."""

    async def main():
        limit = RateLimit(requests_per_minute=100)
        learned = limit._make_learned("k")
        error = RateLimitError("no", status_code=429)
        shares = []
        for _ in range(6):
            learned.fail(error, learned.decreases)
            shares.append(learned.share)
        assert shares == [0.5, 0.25, 0.125, 0.1, 0.1, 0.1]
        learned.fail(error, 0.0)  # was under way at the last one
        for _ in range(10):
            learned.succeed(0)
        assert learned.share == pytest.approx(0.2)
        for _ in range(1_000):
            learned.succeed(0)
        assert learned.share == 1.0

    asyncio.run(main())


@both_ways
def test_the_learned_share_is_obeyed(way):
    """After a 429 only half of the limit is sent."""

    async def main():
        script = [RateLimitError("no", status_code=429), ServerError("x", status_code=500)]
        adapter = Timed(*script)
        client = client_of(adapter, RateLimit(requests_per_minute=10, max_wait=0.05))
        outcomes = [await call_or_error(client, way) for _ in range(10)]
        refused = [each for each in outcomes if each.error_code == "local_rate_limit"]
        assert len(adapter.sent) == 5
        assert len(refused) == 5

    asyncio.run(main())


async def call_or_error(client, way):
    try:
        return await call(client, way)
    except (RateLimitError, ServerError) as failure:
        return failure


# Operations.


class Embedding:
    """What an operation returns."""

    usage = Usage(input_tokens=30)


def test_operations_are_limited():
    """Operations count as requests, with the tokens that their value or result shows."""

    async def main():
        limit = RateLimit(requests_per_minute=2, input_tokens_per_minute=1_000, max_wait=0.0)
        client = client_of(Metered(Embedding()), limit)
        value = {"model": "m", "input": ["a b c", "d e f"]}
        await client.perform("metered", "embed", value)
        assert await limit.used(SCOPE) == {"requests": 1.0, "input_tokens": 30.0}
        await client.perform("metered", "count_tokens", ask())
        with pytest.raises(RateLimitError):
            await client.perform("metered", "embed", value)

    asyncio.run(main())


# Stores that fail.


class Broken(MemoryStore):
    """A store that is always down."""

    async def reserve(self, limits, *, lease=60.0):  # noqa: ARG002
        raise StoreError("The store is down.")


@both_ways
@pytest.mark.parametrize("behaviour", ["open", "closed"])
def test_calls_are_sent_or_refused_as_declared_when_the_store_fails(way, behaviour, caplog):
    """Calls are sent or refused as declared, quickly, and with one line in the log.

    Field bug 81.
    """
    options = {} if behaviour == "open" else {"on_store_failure": behaviour}

    async def main():
        adapter = Metered()
        limit = RateLimit(requests_per_minute=1, store=Broken(), **options)
        began = virtual_time.now()
        outcomes = await calls(client_of(adapter, limit), way, 20)
        assert virtual_time.now() == began
        errors = [each for each in outcomes if isinstance(each, StoreError)]
        assert (len(adapter.sent), len(errors)) == ((20, 0) if behaviour == "open" else (0, 20))

    with caplog.at_level(logging.WARNING, "interlingua"):
        virtual_time.run(main())
    assert len(caplog.records) == 1


# Where it runs.


def test_repeated_loops_and_uvloop():
    """One limit serves one event loop after another, also with a queue."""
    limit = RateLimit(concurrency=2)
    client = client_of(Metered(delay=0.001), limit)
    for start in (asyncio.run, asyncio.run, uvloop.run):
        for way in WAYS:
            assert len(start(calls(client, way, 10))) == 10
    assert asyncio.run(limit.used(SCOPE)) == {"concurrency": 0.0}


def test_threads_with_a_loop_each():
    """Two event loops share one limit; what one gives back wakes the other."""
    adapter = Timed(delay=0.01)
    client = client_of(adapter, RateLimit(concurrency=1))

    async def main():
        loops = (asyncio.to_thread(asyncio.run, calls(client, "complete", 5)) for _ in range(3))
        results = await asyncio.gather(*loops)
        assert sum(map(len, results)) == 15
        assert adapter.most_at_once == 1

    asyncio.run(main())


def test_the_blocking_client():
    """The blocking functions pass through a rate limit."""
    client = sync.Client(
        {"metered": Metered()}, middleware=[RateLimit(requests_per_minute=1, max_wait=0.0)]
    )
    client.complete(ask())
    with pytest.raises(RateLimitError):
        client.complete(ask())
    client.close()


@pytest.mark.parametrize(
    "options",
    [{"requests_per_minute": 0}, {"concurrency": -1}, {"period": 0}, {"max_wait": -1}, {"key": ""}],
    ids=str,
)
def test_wrong_options(options):
    """What a limit cannot mean is refused when it is made."""
    with pytest.raises(ConfigurationError):
        RateLimit(**options)


@both_ways
def test_a_negative_max_tokens_gives_no_room(way):
    """A layer that sets one does not free tokens of others while its call is under way."""
    limit = RateLimit(output_tokens_per_minute=10_000)
    used = []

    class Noting(Metered):
        async def answer(self, request):
            used.append(await limit.used(SCOPE))
            return await super().answer(request)

    class Negative:
        def complete(self, request, call_next):
            return call_next(replace(request, max_tokens=-5_000))

        stream = complete

    asyncio.run(call(client_of(Noting(), Negative(), limit), way))

    assert used == [{"output_tokens": ASSUMED_OUTPUT}]


# Operations whose results are streams.

WAVE = Audio(data=b"RIFF....WAVE", media_type="audio/wav")
SPOKEN = text("one two three four " * 20) + latency(between=0.05, write_bytes=200)
TRANSCRIBER = "gemini:gemini-2.5-flash"


def test_a_streamed_operation_is_concurrent_until_its_end():
    """The next one waits until the stream has ended, or its reader has left."""
    limit = RateLimit(concurrency=1, learn=False)

    async def work(client):
        client = client.with_middleware(limit)
        first = stream_transcription(TRANSCRIBER, WAVE, client=client)
        await anext(aiter(first))
        used = [await limit.used(f"model={TRANSCRIBER}")]
        second = asyncio.create_task(transcribe(TRANSCRIBER, WAVE, client=client))
        await asyncio.sleep(0.3)
        assert not second.done()
        await first.aclose()
        await second
        return [*used, await limit.used(f"model={TRANSCRIBER}")]

    used = run(in_virtual_time(SPOKEN), work)

    assert used == [{"concurrency": 1.0}, {"concurrency": 0.0}]


def test_a_streamed_operation_that_nobody_reads():
    """It is over when it is closed, also before its first item."""
    limit = RateLimit(concurrency=1, learn=False)

    async def work(client):
        client = client.with_middleware(limit)
        value = TranscribeInput(audio=WAVE, model=TRANSCRIBER.partition(":")[2])
        items = await client.perform("gemini", "stream_transcription", value)
        used = [await limit.used(f"model={TRANSCRIBER}")]
        await items.aclose()
        return [*used, await limit.used(f"model={TRANSCRIBER}")]

    used = run(in_virtual_time(SPOKEN), work)

    assert used == [{"concurrency": 1.0}, {"concurrency": 0.0}]
