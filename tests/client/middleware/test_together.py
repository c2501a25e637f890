"""Any layers in any order, with any faults and any end: nothing is lost, and nothing is left."""

import asyncio
import contextlib
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interlingua.api.run.generate import generate, stream
from interlingua.api.run.options import TimeoutConfig
from interlingua.api.session.session import Session
from interlingua.api.tools.tool import tool
from interlingua.client.client import Client
from interlingua.client.retry_policy import RetryPolicy
from interlingua.client.stores.contract import Reservation
from interlingua.middleware import (
    Balance,
    Budget,
    Cache,
    CircuitBreaker,
    Fallback,
    Hedge,
    Logging,
    RateLimit,
    Redact,
    Telemetry,
    per_attempt,
)
from interlingua.providers.adapter import HttpAdapter
from interlingua.simulator import (
    Simulator,
    cut,
    error,
    error_event,
    latency,
    malformed,
    reset,
    stall,
    text,
    tool_call,
)
from interlingua.spec.errors import SDKError
from interlingua.spec.events import Finish
from interlingua.spec.request import Request
from interlingua.stores import MemoryStore
from interlingua.transport import AsgiTransport
from support import virtual_time
from support.run_profile import examples

MODEL, OTHER = "openai:gpt-5.2", "anthropic:claude-haiku-4-5"
ANSWER = "one two three four five six seven eight"
PROMPTS = ("I am ada@example.com.", "Hi.")
HIGH = 5_000  # tokens; what is reserved is much more than any estimate of what was used
RETRY = RetryPolicy(max_retries=2, base_delay=0.1)


class Later(MemoryStore):
    """A store with leases, whose answers take some time, as if it were in another process."""

    async def get(self, key):
        return await self._later(super().get, key)

    async def put(self, key, value, **settings):
        return await self._later(super().put, key, value, **settings)

    async def delete(self, key):
        return await self._later(super().delete, key)

    async def add(self, key, amount, **settings):
        return await self._later(super().add, key, amount, **settings)

    async def settle(self, reservation, amounts):
        return await self._later(super().settle, reservation, amounts)

    async def reserve(self, limits, **settings):
        outcome = await super().reserve(limits, **settings)
        try:
            await asyncio.sleep(0.001)
        except asyncio.CancelledError:
            if isinstance(outcome, Reservation):  # as the stores of other processes do
                await super().settle(outcome, {limit.key: 0.0 for limit in limits})
            raise
        return outcome

    @staticmethod
    async def _later(method, *arguments, **settings):
        await asyncio.sleep(0.001)
        result = await method(*arguments, **settings)
        await asyncio.sleep(0.001)
        return result


async def passing(request, call_next):
    return await call_next(request)


async def passing_events(request, call_next):
    async for event in call_next(request):
        yield event


@per_attempt
async def passing_attempts(request, call_next):
    return await call_next(request)


LAYERS = {
    "budget": lambda store: Budget(1_000, store=store, on_cancel="input"),
    "budget of a user": lambda store: Budget(1_000, key="user", store=store),
    "rate limit": lambda store: RateLimit(concurrency=2, learn=False, store=store),
    "cache": lambda _: Cache(),
    "fallback": lambda _: Fallback(OTHER),
    "restarting fallback": lambda _: Fallback(OTHER, midstream="restart-marked"),
    "hedge": lambda _: Hedge(after=0.25, share=1.0),
    "hedge by another": lambda _: Hedge(after=0.25, share=1.0, model=OTHER),
    "breaker": lambda store: CircuitBreaker(
        failures=3, cooldown=2, clock=virtual_time.now, store=store
    ),
    "redact": lambda _: Redact("email", restore=True, answers=True),
    "logging": lambda _: Logging(content=True),
    "telemetry": lambda _: Telemetry(),
    "function": lambda _: passing,
    "generator": lambda _: passing_events,
    "function of attempts": lambda _: passing_attempts,
}
FAULTS = {
    "slow": text(ANSWER) + latency(first=2.0),
    "slow words": text(ANSWER) + latency(between=0.2),
    "error": error(500),
    "wait": error(429, retry_after=1.0),
    "key": error(401),
    "wrong": error(400),
    "cut at once": text(ANSWER) + cut(),
    "cut": text(ANSWER) + cut(700),
    "cut late": text(ANSWER) + cut(1300),
    "reset": text(ANSWER) + reset(300),
    "stalled": text(ANSWER) + stall(400, seconds=3.0),
    "error in the stream": error_event(500),
    "malformed": text(ANSWER) + malformed(2),
    "call": tool_call("look", city="Oslo"),
    "none": text(ANSWER),
}


@tool
async def look(city: str) -> str:
    """The weather in a city."""
    await asyncio.sleep(0.1)
    return f"Rain in {city}."


async def read(events, leaves):
    """All events but those after which the reader leaves; the last response."""
    async with contextlib.aclosing(events):
        async for event in events:
            if isinstance(event, Finish):
                return event.response
            leaves -= 1
            if not leaves:
                break
    return None


class Calls:
    """The ways to call a model; each returns its response and, of a run, its cost."""

    def __init__(self, client, number, leaves, seconds):
        self.client, self.leaves = client, leaves
        self.prompt, self.id = PROMPTS[number % 2], f"call {number}"
        self.fields = {"request_id": self.id, "user": "u", "max_tokens": HIGH}
        self.options = {**self.fields, "client": client, "tools": [look], "max_tool_rounds": 3}
        self.options["timeout"] = TimeoutConfig(total=seconds)

    async def whole(self):
        request = Request(model=MODEL, messages=self.prompt, **self.fields)
        return await self.client.complete(request, retry=RETRY), None

    async def events(self):
        request = Request(model=MODEL, messages=self.prompt, **self.fields)
        return await read(self.client.stream(request, retry=RETRY), self.leaves), None

    async def run(self):
        result = await generate(MODEL, self.prompt, **self.options)
        return result.response, result.total_cost

    async def run_of_events(self):
        return await read(stream(MODEL, self.prompt, **self.options), self.leaves), None

    async def session(self):
        session = Session(MODEL, client=self.client, tools=[look], user="u", max_tokens=HIGH)
        result = await session.send(self.prompt, request_id=self.id)
        return result.response, result.total_cost

    async def operation(self):
        await self.client.count_tokens(Request(model=OTHER, messages=self.prompt))
        return None, None


ways = st.sampled_from(["whole", "events", "run", "run_of_events", "session", "operation"])
ends = st.sampled_from(["none", "cancelled", "cancelled twice", "cancelled by its id"])
times = st.sampled_from([0.0, 0.001, 0.002, 0.05, 0.12, 0.26, 0.3, 0.5, 1.0, 2.2])
plans = st.tuples(ways, ends, times, st.integers(0, 9), st.sampled_from([0.31, 100.0]))


async def make(client, number, plan, outcomes):
    """One call that ends as planned."""
    way, end, when, leaves, seconds = plan
    calls = Calls(client, number, leaves, seconds)
    task = asyncio.create_task(getattr(calls, way)())
    if end != "none":
        await asyncio.sleep(when)
    if end == "cancelled by its id":
        await client.cancel(calls.id)
    elif end != "none":
        task.cancel()
    if end == "cancelled twice":
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        task.cancel()
    await asyncio.wait({task})
    outcomes[calls.id] = None if task.cancelled() else task.exception() or task.result()


def check_attempts(events):
    """Each attempt begins and ends once."""
    began = Counter(_place(each) for each in events if each.type == "call_started")
    ended = Counter(_place(each) for each in events if each.type != "call_started")
    assert began == ended
    assert set(began.values()) <= {1}


def _place(event):
    return event.request_id, event.step, event.attempt


def cost_of(events):
    return sum(event.cost.total for event in events if getattr(event, "cost", None) is not None)


def check_outcome(outcome, events):
    """It is an error of ours, or the answer with each of its attempts once."""
    if outcome is None or isinstance(outcome, SDKError):
        return
    response, total = outcome  # fails for any other error
    if response is None:
        return
    numbers = [attempt.number for attempt in response.attempts]
    assert len(numbers) == len(set(numbers))
    assert response.finish_reason.reason != "stop" or response.text == ANSWER
    if total is not None:
        assert total.total == pytest.approx(cost_of(events))


async def check_budget(budget, events, *, is_of_user):
    """What counts is what was spent; of other attempts, an estimate, or what was reserved."""
    ended = [each for each in events if each.type == "call_completed"]
    spent = cost_of(each for each in ended if each.finish_reason != "cancelled")
    names = (None, "u", "")
    used = max([await budget.used(name) for name in names])
    most = 0.2 if is_of_user else 0.001  # dollars of an attempt
    assert not budget.tallies
    assert spent - 1e-9 <= used < spent + most * len(events) + 1e-9


async def check_layers(layers, store, events):
    for layer in layers:
        if isinstance(layer, Budget):
            await check_budget(layer, events, is_of_user="user" in repr(layer))
        if isinstance(layer, RateLimit):
            for model in (MODEL, OTHER):
                assert await layer.used(f"model={model}") == {"concurrency": 0}
        if isinstance(layer, CircuitBreaker):
            for name in ("openai", MODEL, "anthropic", OTHER):
                assert await store.get(f"circuit-probe:{name}") is None


def client_of(app, layers, *, is_balanced):
    def adapter(row, name):
        return HttpAdapter(row, "k", base_url="http://x", name=name, transport=AsgiTransport(app))

    first = adapter("openai", "openai")
    if is_balanced:
        members = adapter("openai", "eu"), adapter("openai", "us")
        first = Balance(*members, clock=virtual_time.now, cooldown=2)
    other = adapter("anthropic", "anthropic")
    return Client({"openai": first, "anthropic": other}, middleware=layers)


@settings(max_examples=examples(400))
@given(
    st.lists(st.sampled_from(sorted(LAYERS)), min_size=1, max_size=6, unique=True),
    st.lists(st.sampled_from(sorted(FAULTS)), max_size=9),
    st.lists(plans, min_size=1, max_size=4),
    st.booleans(),
    st.booleans(),
)
def test_law_of_layers(names, faults, plan, is_balanced, is_shared):
    """
    What is reserved is given back, each attempt is counted once, and answers stay as they are.

    After the last call no task, connection, permit or probe is left.
    """

    async def work():
        store = (Later if is_shared else MemoryStore)(clock=virtual_time.now)
        app = Simulator(*(FAULTS[name] for name in faults), text(ANSWER))
        layers = [LAYERS[name](store) for name in names]
        client = client_of(app, layers, is_balanced=is_balanced)
        events, outcomes = [], {}
        client.subscribe(events.append)
        works = [make(client, number, each, outcomes) for number, each in enumerate(plan)]
        async with asyncio.timeout(10_000), client:
            await asyncio.gather(*works)
            await asyncio.sleep(2.0)  # what goes on after a cancelled call
            assert asyncio.all_tasks() == {asyncio.current_task()}
        check_attempts(events)
        for id_, outcome in outcomes.items():
            check_outcome(outcome, [event for event in events if event.request_id == id_])
        await check_layers(layers, store, events)
        assert all(exchange.over.is_set() for exchange in app.script.received)

    virtual_time.run(work())
