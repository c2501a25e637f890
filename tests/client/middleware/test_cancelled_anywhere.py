"""A caller that is cancelled wherever it waits: what was billed is counted all the same."""

import asyncio
from functools import partial
from itertools import count

import pytest

from interlingua.middleware import Budget, CircuitBreaker, RateLimit, per_attempt
from interlingua.simulator import text, usage
from interlingua.streams.accumulate import events_from_response
from support import virtual_time
from support.limited import USAGE, Metered, call, cent_per_token, client_of
from support.patience import PATIENCE
from support.simulated import DIALECTS, in_virtual_time
from support.steps import Steps, cancelled_at
from support.stores import KINDS, Clock

SPENT = cent_per_token(None, USAGE)  # dollars of one answer
INPUT = 0.07  # dollars of the estimated prompt
SCOPE = "model=metered:m"


class Billing(Metered):
    """Notes what a provider would bill: a whole answer at once, a stream at its end."""

    def __init__(self):
        super().__init__()
        self.billed = 0
        self.began = 0

    async def complete(self, request):
        self.began += 1
        response = await self.answer(request)
        self.billed += 1
        return response

    async def stream(self, request):
        self.began += 1
        *events, finish = events_from_response(await self.answer(request))
        for event in events:
            yield event
            await asyncio.sleep(0)
        self.billed += 1
        yield finish


@per_attempt
async def slow_layer(request, call_next):
    """Waits after the answer, as a layer of a program may."""
    response = await call_next(request)
    await asyncio.sleep(0)
    return response


LAYERS = {
    "budget, rate limit": lambda budget, limit, _: [budget, limit],
    "rate limit, budget": lambda budget, limit, _: [limit, budget],
    "with a breaker inside": lambda budget, limit, store: [
        budget,
        limit,
        CircuitBreaker(store=store),
    ],
    "with a layer of its own inside": lambda budget, limit, _: [limit, budget, slow_layer],
}


def check(adapter, way, spent, used):
    """What was billed counts; a whole answer that may have been billed counts as reserved."""
    if adapter.billed:
        assert spent == pytest.approx(SPENT)
        assert used == {"requests": 1, "output_tokens": USAGE.output_tokens, "concurrency": 0}
    elif not adapter.began:
        assert spent == 0
        assert used == {"requests": 0, "output_tokens": 0, "concurrency": 0}
    else:
        assert spent > 2 * SPENT if way == "complete" else INPUT <= spent < SPENT + 0.01
        assert (used["requests"], used["concurrency"]) == (1, 0)


def make(store, at, layers):
    """An adapter and a client with both guards; each number has its own counts in the store."""
    budget = Budget(100, cost=cent_per_token, max_tokens=50, store=store, name=f"b{at}")
    limit = RateLimit(
        requests_per_minute=9,
        output_tokens_per_minute=900,
        concurrency=1,
        store=store,
        name=f"r{at}",
    )
    adapter = Billing()
    return adapter, client_of(adapter, *LAYERS[layers](budget, limit, store)), budget, limit


MOMENTS = {
    "while it waits": {},
    "as the wait ends": {"late": True},
    "twice": {"twice": True},
}
each_moment = pytest.mark.parametrize("moment", MOMENTS.values(), ids=MOMENTS)
# Who cancels twice and ends the event loop does not let the store count.
each_single_moment = pytest.mark.parametrize("moment", [{}, {"late": True}], ids=[*MOMENTS][:2])
both_ways = pytest.mark.parametrize("way", ["complete", "stream"])


@each_moment
@both_ways
@pytest.mark.parametrize("layers", sorted(LAYERS))
@pytest.mark.parametrize("kind", sorted(KINDS))
def test_a_billed_answer_counts_wherever_the_caller_is_cancelled(
    kind, layers, way, moment, tmp_path
):
    """At every await of the call: money and limits count the answer, or that there was none."""

    async def cancel_everywhere(store):
        billed = began = 0
        for at in count():
            adapter, client, budget, limit = make(store, at, layers)
            is_cancelled = await cancelled_at(partial(call, client, way), at, **moment)
            await settled(store)
            assert not budget.tallies
            check(adapter, way, await budget.used(), await limit.used(SCOPE))
            billed, began = billed + adapter.billed, began + adapter.began
            if not is_cancelled:
                break
        return at, began, billed

    async def main():
        store = KINDS[kind](Clock(), tmp_path)
        try:
            steps, began, billed = await cancel_everywhere(store)
        finally:
            await store.close()
        assert 0 < billed <= began <= steps + 1
        if kind != "memory":
            assert billed > 1  # the waits after the answer

    asyncio.run(main())


@each_single_moment
@both_ways
@pytest.mark.parametrize("kind", sorted(KINDS))
def test_a_billed_answer_counts_if_the_program_ends_with_the_cancelled_call(
    kind, way, moment, tmp_path
):
    """As after Ctrl-C: the event loop is closed as soon as the call has ended."""
    store, billed = KINDS[kind](Clock(), tmp_path), 0

    async def cancel(client, at):
        await Steps(call(client, way), at, **moment)

    async def look(adapter, budget, limit):
        await settled(store)
        check(adapter, way, await budget.used(), await limit.used(SCOPE))
        await store.close()

    for at in count():
        adapter, client, budget, limit = make(store, at, "budget, rate limit")
        is_cancelled = False
        try:
            asyncio.run(cancel(client, at))
        except asyncio.CancelledError:
            is_cancelled = True
        asyncio.run(look(adapter, budget, limit))
        billed += adapter.billed
        if not is_cancelled:
            break
    assert billed > (kind != "memory")


@each_moment
@both_ways
@pytest.mark.parametrize("provider", sorted(DIALECTS))
def test_an_answer_over_http_counts_wherever_the_caller_is_cancelled(provider, way, moment):
    """At every await of the adapter and its transport: from the request on, money counts."""

    async def cancel(at):
        peer = in_virtual_time(text("one two three") + usage(input_tokens=10, output_tokens=5))
        budget = Budget(100, cost=cent_per_token)
        client = peer.client.with_middleware(budget, RateLimit(concurrency=1))
        request = peer.ask(provider, max_tokens=50)
        is_cancelled = await cancelled_at(partial(call, client, way, request), at, **moment)
        await asyncio.sleep(1)
        spent, exchanges = await budget.used(), peer.app.script.received
        await peer.client.close()
        assert not budget.tallies
        if not exchanges:  # the simulator may not have seen a request that was on its way
            assert spent == 0 or spent >= INPUT
        elif way == "complete":
            assert spent == pytest.approx(SPENT) or spent > 2 * SPENT
        else:
            assert INPUT <= spent <= SPENT + 0.01
        return is_cancelled, spent

    async def main():
        amounts = []
        for at in count():
            is_cancelled, spent = await cancel(at)
            amounts.append(spent)
            if not is_cancelled:
                break
        assert amounts[-1] == pytest.approx(SPENT)
        assert len(amounts) > 2

    virtual_time.run(main())


async def settled(store):
    """Wait until nothing is under way any more."""
    while others := asyncio.all_tasks() - {asyncio.current_task()}:
        await asyncio.wait(others, timeout=PATIENCE)
    await store.add("after all writes before it", 1)
