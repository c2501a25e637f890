"""`Hedge`: when a second request is sent, which answer counts, and what becomes of the other."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from interlingua import sync
from interlingua.api.run.generate import generate, stream
from interlingua.client import attempt_log
from interlingua.client.client import Client
from interlingua.client.middleware.budget import Budget
from interlingua.client.middleware.cache import Cache
from interlingua.client.middleware.fallback import Fallback
from interlingua.client.middleware.hedge import (
    ENOUGH_SAMPLES,
    Hedge,
    HedgeShare,
    LearnedTime,
    quantile,
)
from interlingua.client.middleware.meter import estimate_input
from interlingua.client.middleware.other_model import OtherModel
from interlingua.client.retry_policy import RetryPolicy
from interlingua.providers.adapter import HttpAdapter
from interlingua.simulator import Simulator, error, latency, serve_in_thread, text
from interlingua.spec.errors import AbortError, ConfigurationError, ErrorClass, ServerError
from interlingua.spec.events import StreamStart
from interlingua.spec.request import Request
from interlingua.spec.response import Usage
from interlingua.streams.accumulate import events_from_response
from interlingua.streams.grammar import Grammar
from interlingua.transport import HttpTransport, HttpxTransport
from support import virtual_time
from support.patience import PATIENCE
from support.scripted_adapter import Cut, ScriptedAdapter, Slow, says

ASK = Request(model="a:one", messages="Hi.", request_id="call")
NEVER = Slow(30, says("never"))
both = pytest.mark.parametrize("mode", ["whole", "stream"])


async def ask(client, mode, request=ASK, **options):
    if mode == "whole":
        return await client.complete(request, **options)
    grammar, events = Grammar(), []
    async for event in client.stream(request, **options):
        grammar.feed(event)
        events.append(event)
    return events[-1].response


def client_of(*answers, **settings):
    settings = {"after": 0.02, "share": 1.0, **settings}
    adapter = ScriptedAdapter(*answers)
    return Client({"a": adapter}, middleware=[Hedge(**settings)]), adapter


@both
def test_a_quick_answer_is_not_hedged(mode):
    """One request, one attempt."""
    client, adapter = client_of(says("x"))

    response = virtual_time.run(ask(client, mode))

    assert response.text == "x"
    assert len(adapter.asked) == len(response.attempts) == 1


@both
def test_the_second_request_answers(mode):
    """The first is cancelled; both are attempts, and the events are those of the winner."""
    client, adapter = client_of(NEVER, says("second"))
    events = []
    client.subscribe(events.append)

    response = virtual_time.run(ask(client, mode))

    assert response.text == "second"
    assert adapter.cancelled == 1
    listed = [(attempt.number, attempt.error_class) for attempt in response.attempts]
    assert listed == [(0, ErrorClass.CANCELLED), (1, None)]
    assert response.attempts[-1].usage == response.usage
    assert response.message.metadata["provider"] == "a"
    kinds = sorted((event.type, event.attempt) for event in events)
    assert kinds == [
        ("call_completed", 0),
        ("call_completed", 1),
        ("call_started", 0),
        ("call_started", 1),
    ]


@both
def test_the_winner_is_paid_once(mode):
    """The cost of a run is that of its attempts; that of the loser is an estimate."""
    client, _ = client_of(NEVER, says("second"))
    client = client.with_prices({"one": {"input": 1000, "output": 1000}})

    async def work():
        if mode == "whole":
            return await generate("a:one", "Hi.", client=client)
        events = stream("a:one", "Hi.", client=client)
        async for _ in events:
            pass
        return events.result()

    result = virtual_time.run(work())

    loser = result.response.attempts[0]
    assert result.response.cost.total == pytest.approx(0.009)  # 3 tokens in, 6 out
    assert loser.cost.total == pytest.approx(loser.usage.total_tokens / 1000)
    assert result.total_cost.total == pytest.approx(0.009 + loser.cost.total)


@both
@pytest.mark.parametrize("is_outside", [True, False], ids=["outside", "inside"])
def test_a_budget_counts_an_estimate_of_the_loser(mode, is_outside):
    """Its prompt, and the output of the winner."""
    budget = Budget(100, cost=lambda _, usage: usage.input_tokens + usage.output_tokens)
    hedge = Hedge(after=0.02, share=1.0)
    adapter = ScriptedAdapter(NEVER, says("second"))
    layers = [budget, hedge] if is_outside else [hedge, budget]
    client = Client({"a": adapter}, middleware=layers)

    async def work():
        response = await ask(client, mode, replace(ASK, max_tokens=1))
        return response, await budget.used()

    response, used = virtual_time.run(work())

    loser, usage = response.attempts[0].usage, response.usage
    length = usage.output_tokens
    assert loser == Usage(input_tokens=estimate_input(ASK), output_tokens=length, estimated=True)
    assert used == usage.total_tokens + loser.total_tokens


class Streams:
    """An adapter whose requests are answered by these functions, which yield events."""

    name = "scripted"

    def __init__(self, *streams):
        self._streams = iter(streams)

    async def complete(self, _):
        raise AssertionError("not asked")

    def stream(self, _):
        return next(self._streams)()


async def begun():
    """Its input is reported, and nothing comes of its answer."""
    yield StreamStart(usage=Usage(input_tokens=40, output_tokens=1))
    await asyncio.sleep(30)


async def long():
    """An answer whose last part comes late."""
    *events, finish = events_from_response(says("a long answer"))
    for event in events:
        yield event
    await asyncio.sleep(10)
    yield finish


def hedged_streams(*streams, budget=None):
    layers = [Hedge(after=1, share=1.0)] if budget is None else [budget, Hedge(after=1, share=1.0)]
    client, seen = Client({"a": Streams(*streams)}, middleware=layers), []
    client.subscribe(seen.append)
    return client, seen


def ended(seen):
    """The events that end attempts, by the attempt; each is told once."""
    events = [event for event in seen if event.type == "call_completed"]
    assert len({event.attempt for event in events}) == len(events)
    return {event.attempt: event for event in events}


def test_the_loser_of_a_stream_is_counted_when_the_winner_has_ended(monkeypatch):
    """With the input that was reported; it was cut when the winner began."""
    clock = lambda: asyncio.get_running_loop().time()  # noqa: E731
    monkeypatch.setattr(attempt_log, "perf_counter", clock)
    client, seen = hedged_streams(begun, long)

    response = virtual_time.run(ask(client, "stream"))

    loser, winner = response.attempts
    assert loser.usage == Usage(input_tokens=40, output_tokens=13, estimated=True)
    assert winner.usage == response.usage
    assert (loser.latency_ms, winner.latency_ms) == (1_000, 10_000)
    assert ended(seen)[0].usage == loser.usage
    assert ended(seen)[0].finish_reason == "cancelled"


def test_a_loser_that_has_more_output_keeps_it():
    """What was reported is a lower bound."""

    async def much():
        yield StreamStart(usage=Usage(input_tokens=40, output_tokens=1_000))
        await asyncio.sleep(30)

    client, _ = hedged_streams(much, long)

    assert virtual_time.run(ask(client, "stream")).attempts[0].usage.output_tokens == 1_000


@pytest.mark.parametrize("way", ["leave", "cancel", "fail"])
def test_a_winner_that_does_not_end_is_the_measure_as_far_as_it_came(way):
    """Both attempts are told once, and a budget counts both."""

    async def failing():
        for event in events_from_response(says("a long answer"))[:3]:
            yield event
        raise ServerError("gone")

    budget = Budget(100_000, cost=lambda _, usage: usage.input_tokens + usage.output_tokens)
    client, seen = hedged_streams(begun, failing if way == "fail" else long, budget=budget)

    async def work():
        events = client.stream(ASK)
        try:
            async for event in events:
                if event.type == "text_delta" and way == "leave":
                    await events.aclose()
                elif event.type == "text_delta" and way == "cancel":
                    await client.cancel("call")
        except ServerError:
            pass
        return await budget.used()

    used = virtual_time.run(work())

    ends = {event.attempt: event for event in seen if event.type != "call_started"}
    assert sorted(ends) == [0, 1]
    assert len(seen) == 4
    winner = ends[1].usage.output_tokens
    assert ends[0].usage == Usage(input_tokens=40, output_tokens=winner, estimated=True)
    assert winner > 0
    assert used > 40 + ends[0].usage.output_tokens


def test_both_requests_of_a_cancelled_call_are_told_once():
    """Neither has won."""
    client, seen = hedged_streams(begun, begun)

    async def work():
        call = asyncio.create_task(ask(client, "stream"))
        await asyncio.sleep(5)
        assert await client.cancel("call")
        return await call

    response = virtual_time.run(work())

    assert sorted(ended(seen)) == [0, 1]
    assert [attempt.usage.input_tokens for attempt in response.attempts] == [40, 40]


@both
def test_the_first_request_may_still_win(mode):
    """Then the second is cancelled."""
    client, adapter = client_of(Slow(0.3, says("first")), NEVER, model="a:two")

    response = virtual_time.run(ask(client, mode))

    assert response.text == "first"
    assert response.message.metadata["model"] == "one"
    assert "chosen_because" not in response.message.metadata
    assert adapter.cancelled == 1
    assert len(response.attempts) == 2


@both
def test_a_failure_waits_for_the_other(mode):
    """Of either request, once both are under way."""
    client, _ = client_of(Slow(0.3, ServerError("down")), Slow(0.4, says("second")))
    assert virtual_time.run(ask(client, mode)).text == "second"

    client, _ = client_of(Slow(0.4, says("first")), ServerError("down"))
    response = virtual_time.run(ask(client, mode))
    assert response.text == "first"
    assert {attempt.error_class for attempt in response.attempts} == {
        None,
        ErrorClass.SERVER_ERROR,
    }


@both
def test_if_both_fail_the_first_error_is_raised(mode):
    """With all attempts."""
    client, _ = client_of(Slow(0.3, ServerError("one")), ServerError("two"))

    with pytest.raises(ServerError, match="one") as caught:
        virtual_time.run(ask(client, mode))

    assert len(caught.value.attempts) == 2


@both
def test_a_quick_failure_is_not_hedged(mode):
    """Retries and fallbacks are for that."""
    client, adapter = client_of(ServerError("down"))

    with pytest.raises(ServerError):
        virtual_time.run(ask(client, mode))

    assert len(adapter.asked) == 1


@both
def test_another_model(mode):
    """With its own settings; the answer says which model gave it."""
    named = {"a": ScriptedAdapter(NEVER), "b": ScriptedAdapter(says("b"))}
    hedge = Hedge(after=0.02, share=1.0, model=OtherModel("b:two", max_tokens=7))
    client = Client(named, middleware=[hedge])

    response = virtual_time.run(ask(client, mode))

    assert (response.text, response.provider) == ("b", "b")
    assert (response.message.metadata["provider"], response.message.metadata["model"]) == (
        "b",
        "two",
    )
    assert named["b"].asked[0].max_tokens == 7
    assert response.message.metadata["chosen_because"] == "hedge: a:one had not answered in time"
    assert {(attempt.provider, attempt.model) for attempt in response.attempts} == {
        ("a", "one"),
        ("b", "two"),
    }


@both
def test_cancel_ends_both(mode):
    """By the request id, which both have."""
    client, adapter = client_of(NEVER)

    async def work():
        call = asyncio.create_task(ask(client, mode))
        await asyncio.sleep(0.4)
        assert len(adapter.asked) == 2
        assert await client.cancel("call")
        return await asyncio.gather(call, return_exceptions=True)

    (outcome,) = virtual_time.run(work())

    assert adapter.cancelled == 2
    if mode == "whole":
        assert isinstance(outcome, AbortError)
    else:
        assert outcome.finish_reason.reason == "cancelled"


@both
def test_a_cancelled_task_ends_both(mode):
    """And so does a timeout of the caller's."""
    client, adapter = client_of(NEVER)

    async def work():
        async with asyncio.timeout(0.4):
            await ask(client, mode)

    with pytest.raises(TimeoutError):
        virtual_time.run(work())
    assert adapter.cancelled == 2


def test_a_reader_that_leaves_ends_the_winner():
    """Its stream is closed."""
    client, _ = client_of(NEVER, says("second"))

    async def work():
        events = client.stream(ASK)
        async for event in events:
            if event.type == "text_delta":
                break
        await events.aclose()
        return len(asyncio.all_tasks())

    assert virtual_time.run(work()) == 1


def test_nothing_is_sent_after_the_first_text():
    """A stream that is slow later is not hedged, and one that breaks is not either."""
    client, adapter = client_of(Cut(says("half"), 3))

    with pytest.raises(Exception, match="cut") as caught:
        virtual_time.run(ask(client, "stream"))

    assert caught.value.partial.text == "half"
    assert len(adapter.asked) == 1


@both
def test_retries_of_both_are_attempts_of_one_call(mode):
    """Each request is retried by the policy; the numbers of the attempts do not repeat."""
    client, _ = client_of(Slow(0.3, ServerError("one")), ServerError("two"), NEVER, says("x"))
    policy = RetryPolicy(max_retries=1, base_delay=0.0)

    response = virtual_time.run(ask(client, mode, retry=policy))

    assert response.text == "x"
    assert sorted(attempt.number for attempt in response.attempts) == [0, 1, 2, 3]


@both
def test_around_a_cache(mode):
    """The second request is sent: it does not wait for the answer to the first, which is equal."""
    adapter = ScriptedAdapter(NEVER, says("second"))
    client = Client({"a": adapter}, middleware=[Hedge(after=0.02, share=1.0), Cache()])

    async def work():
        response = await ask(client, mode)
        return response.text, virtual_time.now()

    answer, ended = virtual_time.run(work())
    assert answer == "second"
    assert ended < 1_010.0


@both
def test_inside_a_cache(mode):
    """The answer of another model is not stored as one of the requested model."""
    adapter = ScriptedAdapter(NEVER, says("two", provider="a"), says("one", provider="a"))
    layers = [Cache(), Hedge(after=0.02, share=1.0, model="a:two")]
    client = Client({"a": adapter}, middleware=layers)

    async def work():
        return [(await ask(client, mode)).text for _ in range(3)]

    assert virtual_time.run(work()) == ["two", "one", "one"]
    assert len(adapter.asked) == 3


@both
def test_inside_a_fallback(mode):
    """Both requests fail, and the next model is asked."""
    named = {
        "a": ScriptedAdapter(Slow(0.3, ServerError("one")), ServerError("two")),
        "b": ScriptedAdapter(says("b")),
    }
    client = Client(named, middleware=[Fallback("b:one"), Hedge(after=0.02, share=1.0)])

    response = virtual_time.run(ask(client, mode))

    assert response.text == "b"
    assert [attempt.provider for attempt in response.attempts] == ["a", "a", "b"]


def test_blocking_code_and_runs():
    """Through `interlingua.sync`, and with `generate`."""
    client, _ = client_of(NEVER, says("x"))
    assert sync.generate("a:one", "Hi.", client=client).text == "x"
    client, _ = client_of(NEVER, says("x"))
    assert "".join(sync.stream("a:one", "Hi.", client=client).text_stream) == "x"
    client, _ = client_of(NEVER, says("x"))
    assert virtual_time.run(generate("a:one", "Hi.", client=client)).text == "x"


# Real sockets.


@pytest.mark.parametrize("transport", [HttpTransport, HttpxTransport])
@both
def test_the_socket_of_the_loser_closes(mode, transport):
    """Over HTTP, with each transport: the server sees the disconnect, and no task is left."""
    slow = text("one two three") + latency(first=20.0)
    app = Simulator(slow, text("one two three"))
    with serve_in_thread(app) as server:

        async def work():
            adapter = HttpAdapter("openai", "k", base_url=server.url, transport=transport())
            layers = [Hedge(after=0.1, share=1.0)]
            async with Client({"openai": adapter}, middleware=layers) as client:
                response = await ask(client, mode, Request(model="openai:gpt-5.2", messages="Hi."))
            await asyncio.to_thread(app.script.received[0].over.wait, PATIENCE)
            return response

        response = asyncio.run(work())

    assert response.text == "one two three"
    assert app.script.received[0].disconnected is not None
    assert len(response.attempts) == 2


def test_one_encoded_request_serves_both():
    """The bytes are the same; the ids that some rows send are not."""
    app = Simulator(text("slow") + latency(first=20.0), error(503), text("x"))
    with serve_in_thread(app) as server:

        async def work():
            adapter = HttpAdapter("openai", "k", base_url=server.url)
            layers = [Hedge(after=0.1, share=1.0)]
            async with Client({"openai": adapter}, middleware=layers) as client:
                policy = RetryPolicy(max_retries=1, base_delay=0.0)
                request = Request(model="openai:gpt-5.2", messages="Hi.")
                return await client.complete(request, retry=policy)

        response = asyncio.run(work())

    assert response.text == "x"
    bodies = [exchange.call.body for exchange in app.script.received]
    assert bodies[0] == bodies[1] == bodies[2]
    headers = [exchange.call.headers.get("x-client-request-id") for exchange in app.script.received]
    assert len(set(headers)) == 3


# The share and the quantile.


@given(st.floats(0.01, 1.0), st.lists(st.booleans(), max_size=400))
def test_law_of_the_share(share, wishes):
    """Hedges never exceed the share of the calls, but for what may be saved up at the start."""
    limit, hedges = HedgeShare(share), 0
    for calls, wish in enumerate(wishes, 1):
        limit.add_call()
        if wish:
            hedges += limit.take()
        assert hedges <= 1 + share * calls + 1e-6


@both
def test_an_outage_does_not_double_the_load(mode):
    """Most calls wait for their one request."""
    client, adapter = client_of(Slow(0.3, says("x")), share=0.1, after=0.01)

    async def work():
        await asyncio.gather(
            *(ask(client, mode, Request(model="a:one", messages="Hi.")) for _ in range(50))
        )

    virtual_time.run(work())

    assert 51 <= len(adapter.asked) <= 56


@given(st.lists(st.floats(0, 100), min_size=1), st.floats(0.01, 0.99))
def test_law_of_the_quantile(samples, part):
    """So many samples are not greater, and it is one of them."""
    value = quantile(samples, part)

    assert value in samples
    assert sum(sample <= value for sample in samples) >= part * len(samples) - 1e-9
    assert sum(sample < value for sample in samples) < part * len(samples) + 1e-9


def test_a_quantile_is_learned_per_model():
    """With the floor until there are enough samples, and never less than the floor."""
    now = [0.0]
    hedge = Hedge(after="p90", floor=0.5, clock=lambda: now[0])
    one, two = Request(provider="a", model="one"), Request(provider="a", model="two")
    for number in range(ENOUGH_SAMPLES):
        assert hedge.delay(one, stream=True) == 0.5
        began = hedge.begin()
        now[0] += 1.0 if number % 5 else 3.0
        hedge.end(one, began, stream=True)

    assert hedge.delay(one, stream=True) == pytest.approx(3.0)
    assert hedge.delay(one, stream=False) == hedge.delay(two, stream=True) == 0.5
    learned = LearnedTime(0.5)
    for _ in range(ENOUGH_SAMPLES):
        learned.add(0.1)
    assert learned.value == pytest.approx(0.1)


@pytest.mark.parametrize(
    "settings",
    [
        {"after": "95"},
        {"after": "p0"},
        {"after": "p100"},
        {"after": -1},
        {"after": float("nan")},
        {"share": 0},
        {"share": 2},
        {"floor": -1},
    ],
    ids=str,
)
def test_wrong_settings(settings):
    """They are refused when it is made."""
    with pytest.raises(ConfigurationError, match="Hedge"):
        Hedge(**settings)
