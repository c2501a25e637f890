"""The names of those who have a limit, whatever they are, in every store."""

import asyncio

import pytest

from interlingua.client.client import Client
from interlingua.client.middleware.budget import Budget
from interlingua.client.middleware.circuit_breaker import CircuitBreaker
from interlingua.client.middleware.rate_limit import RateLimit
from interlingua.spec.request import Request
from support.scripted_adapter import ScriptedAdapter, says
from support.stores import KINDS, Clock


def one_dollar(*_):
    return 1.0


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("user", ["eve", "Zoë", "a\0b", "half \ud800", "x" * 1000])
def test_any_name_has_its_own_limit(kind, user, tmp_path):
    """A user may have chosen it, so it need not even be valid Unicode."""

    async def work():
        clock = Clock()
        store = KINDS[kind](clock, tmp_path)
        budget = Budget(usd=10, key="user", cost=one_dollar, store=store, clock=clock)
        named = Budget(
            usd=10, key=lambda request: request.user, name="b", store=store, cost=one_dollar
        )
        rate = RateLimit(requests_per_minute=10, key="user", store=store)
        breaker = CircuitBreaker(key=lambda request: request.user or "", store=store)
        adapter = ScriptedAdapter(says("Yes."))
        client = Client({"a": adapter}, middleware=[budget, named, rate, breaker])
        for each in (user, "somebody else"):
            await client.complete(Request(model="a:one", messages="?", user=each))
        used = await budget.used(user), await named.used(user)
        await store.close()
        return used

    assert asyncio.run(work()) == (1.0, 1.0)
