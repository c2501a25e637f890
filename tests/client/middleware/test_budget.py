"""`Budget`: never overspent, settled whatever happens to a call."""

import asyncio
import contextlib
import logging
from datetime import UTC, datetime

import pytest
import uvloop
from msgspec.structs import replace

from interlingua import sync
from interlingua.api.run.generate import generate
from interlingua.client.client import Client
from interlingua.client.middleware.budget import ASSUMED_OUTPUT, Budget
from interlingua.client.middleware.contract import Call
from interlingua.client.retry_policy import RetryPolicy
from interlingua.client.stores.memory import MemoryStore
from interlingua.middleware import RateLimit
from interlingua.providers.adapter import HttpAdapter
from interlingua.providers.catalog.search import get_model_info
from interlingua.providers.tariffs import Tariffs
from interlingua.simulator import text
from interlingua.spec.errors import (
    BudgetExceededError,
    ConfigurationError,
    RequestTimeoutError,
    ServerError,
    StoreError,
)
from interlingua.spec.events import TextDelta
from interlingua.spec.modalities.images import ImageInput
from interlingua.spec.operations import OperationInput
from interlingua.spec.response import Cost, Usage
from support import virtual_time
from support.limited import ANSWER, USAGE, Metered, ask, call, calls, cent_per_token, client_of
from support.patience import PATIENCE
from support.simulated import simulated
from support.stores import KINDS, Clock

WAYS = ("complete", "stream")
FAST = RetryPolicy(base_delay=0.0, max_retries=3)
SPENT = cent_per_token(None, USAGE)  # dollars of one answer
both_ways = pytest.mark.parametrize("way", WAYS)


def budget(usd=1.0, **options):
    return Budget(usd=usd, **{"cost": cent_per_token, "max_tokens": 20, **options})


class Broken(MemoryStore):
    """A store that can be switched off."""

    def __init__(self):
        super().__init__()
        self.is_down = False

    def _check(self):
        if self.is_down:
            raise StoreError("The store is down.")

    async def reserve(self, limits, *, lease=60.0):
        self._check()
        return await super().reserve(limits, lease=lease)

    async def settle(self, reservation, amounts):
        self._check()
        return await super().settle(reservation, amounts)


# The law.


@pytest.mark.parametrize("count", [2, 10, 100])
@both_ways
def test_concurrent_calls_never_overspend(way, count):
    """K calls at once spend at most the budget: what is reserved is always enough.

    Field bug 80.
    """

    async def main():
        adapter, limit = Metered(delay=0.001), budget(usd=1.0)
        client = client_of(adapter, limit)
        outcomes = await calls(client, way, count)
        refused = [each for each in outcomes if isinstance(each, BudgetExceededError)]
        spent = await limit.used()
        assert len(adapter.sent) + len(refused) == count
        assert spent == pytest.approx(SPENT * len(adapter.sent))
        assert spent <= 1.0
        # later calls go on until not even one more fits
        while True:
            try:
                await call(client, way)
            except BudgetExceededError:
                break
        assert 1.0 - limit.estimate(adapter.sent[0]) <= await limit.used() <= 1.0

    asyncio.run(main())


@both_ways
def test_a_real_cost_above_the_estimate_overspends_by_one_reservation_at_most(way):
    """The next call is refused as soon as the real costs are more than the budget.

    Field bug 80.
    """
    dear = Usage(input_tokens=10, output_tokens=60)

    async def main():
        adapter = Metered(replace(ANSWER, usage=dear))
        limit = budget(usd=1.0)
        client = client_of(adapter, limit)
        for _ in range(5):
            await asyncio.gather(call(client, way), return_exceptions=True)
        assert len(adapter.sent) == 2
        assert await limit.used() == pytest.approx(1.4)

    asyncio.run(main())


@both_ways
def test_the_refusal_says_what_is_used_and_when_it_renews(way):
    """Nothing is sent, and the error says what is used, the limit, the scope and the renewal."""
    noon = datetime(2026, 2, 28, 12, tzinfo=UTC).timestamp()

    async def main():
        adapter = Metered()
        limit = budget(usd=0.5, period="day", key="user", clock=lambda: noon)
        client = client_of(adapter, limit)
        await call(client, way, ask(user="alice"))
        await call(client, way, ask(user="alice"))
        with pytest.raises(BudgetExceededError) as caught:
            await call(client, way, ask(user="alice"))
        error = caught.value
        assert len(adapter.sent) == 2
        assert (error.used, error.limit, error.scope) == (pytest.approx(0.3), 0.5, "user=alice")
        assert error.renews_at == datetime(2026, 3, 1, tzinfo=UTC)
        assert error.retry_after == 12 * 3600
        assert not error.retryable
        assert "user=alice" in str(error)
        assert "2026-03-01 00:00:00 UTC" in str(error)
        await call(client, way, ask(user="bob"))  # has a budget of his own

    asyncio.run(main())


def test_a_call_that_never_fits_says_so():
    """A reservation above the whole budget advises a lower `max_tokens`."""

    async def main():
        with pytest.raises(BudgetExceededError, match="set a lower max_tokens"):
            await call(client_of(Metered(), budget(usd=0.1)), "complete")

    asyncio.run(main())


# Scopes and periods.


@pytest.mark.parametrize(
    ("key", "one", "other"),
    [
        ("user", {"user": "alice"}, {"user": "bob"}),
        ("session", {"session_id": "s1"}, {"session_id": "s2"}),
        ("run", {"request_id": "r1"}, {"request_id": "r2"}),
        ("model", {"model": "small"}, {"model": "large"}),
        (lambda request: request.context, {"context": "team a"}, {"context": "team b"}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_scopes(key, one, other):
    """Each name has a budget of its own."""

    async def main():
        client = client_of(Metered(), budget(usd=0.4, key=key))
        await call(client, "complete", ask(**one))
        with pytest.raises(BudgetExceededError):
            await call(client, "complete", ask(**one))
        await call(client, "complete", ask(**other))

    asyncio.run(main())


def test_requests_without_a_name_share_a_budget():
    """Leaving the user out is no way around a budget."""

    async def main():
        limit = budget(usd=0.4, key="user")
        client = client_of(Metered(), limit)
        await call(client, "complete")
        with pytest.raises(BudgetExceededError, match="for user="):
            await call(client, "complete")
        assert await limit.used() == pytest.approx(SPENT)

    asyncio.run(main())


@both_ways
def test_a_function_that_returns_none_does_not_limit(way):
    """A request whose key is None is neither refused nor counted."""

    async def main():
        limit = budget(usd=0.0, key=lambda _: None)
        assert (await call(client_of(Metered(), limit), way)).text == "one two three"
        assert await limit.used("anything") == 0.0

    asyncio.run(main())


RENEWALS = [
    ("day", "2026-12-31 23:59:59", "2027-01-01 00:00:00"),
    ("day", "2028-02-28 00:00:00", "2028-02-29 00:00:00"),
    ("month", "2026-01-31 12:00:00", "2026-02-01 00:00:00"),
    ("month", "2026-03-01 00:00:00", "2026-04-01 00:00:00"),
    ("month", "2026-12-01 08:30:00", "2027-01-01 00:00:00"),
]


@pytest.mark.parametrize(("period", "at", "end"), RENEWALS)
def test_the_renewal_is_the_next_midnight_or_the_first_of_the_next_month(period, at, end):
    """A refusal says the start of the next day or month, which is always still to come."""
    now, renewal = (datetime.fromisoformat(each).replace(tzinfo=UTC) for each in (at, end))

    async def main():
        limit = budget(usd=0.4, period=period, clock=now.timestamp)
        client = client_of(Metered(), limit)
        await call(client, "complete")
        with pytest.raises(BudgetExceededError) as caught:
            await call(client, "complete")
        assert caught.value.renews_at == renewal
        assert caught.value.retry_after == (renewal - now).total_seconds() > 0
        assert f"{end} UTC" in str(caught.value)

    asyncio.run(main())


@pytest.mark.parametrize(("period", "seconds"), [("day", 86_400), ("month", 28 * 86_400), (60, 62)])
def test_periods(period, seconds):
    """A new day, month or window has the whole budget again."""
    now = datetime(2026, 2, 1, 0, 0, 5, tzinfo=UTC).timestamp()

    async def main():
        nonlocal now
        store = MemoryStore(clock=lambda: now)
        limit = budget(usd=0.4, period=period, store=store, clock=lambda: now)
        client = client_of(Metered(), limit)
        await call(client, "complete")
        with pytest.raises(BudgetExceededError) as caught:
            await call(client, "complete")
        assert caught.value.retry_after == pytest.approx(seconds, abs=6)
        renewal = now + caught.value.retry_after
        assert caught.value.renews_at.timestamp() == pytest.approx(renewal)
        now += caught.value.retry_after
        await call(client, "complete")
        assert await limit.used() == pytest.approx(SPENT)

    asyncio.run(main())


@both_ways
def test_several_budgets_must_all_have_room(way):
    """If an inner budget refuses, the outer one gives its reservation back."""

    async def main():
        adapter, total, each = Metered(), budget(usd=10.0), budget(usd=0.4, key="user", name="u")
        client = client_of(adapter, total, each)
        await call(client, way, ask(user="alice"))
        with pytest.raises(BudgetExceededError, match="user=alice"):
            await call(client, way, ask(user="alice"))
        assert await total.used() == await each.used("alice") == pytest.approx(SPENT)

    asyncio.run(main())


# Settling.


@both_ways
def test_every_attempt_is_settled(way):
    """Failed attempts that were billed count, those that were not do not."""
    billed = ServerError("later", status_code=500, partial=ANSWER)
    free = ServerError("at once", status_code=500)

    async def main():
        adapter, limit = Metered(billed, free, ANSWER), budget(usd=10.0)
        await call(client_of(adapter, limit), way, retry=FAST)
        assert len(adapter.sent) == 3
        assert await limit.used() == pytest.approx(2 * SPENT)

    asyncio.run(main())


@both_ways
def test_a_retry_that_the_budget_does_not_cover_is_not_sent(way):
    """Attempts that were billed use up the reservation; a retry needs room of its own."""
    billed = ServerError("later", status_code=500, partial=ANSWER)

    async def main():
        adapter, limit = Metered(billed), budget(usd=0.5)
        with pytest.raises(BudgetExceededError) as caught:
            await call(client_of(adapter, limit), way, retry=FAST)
        assert len(adapter.sent) == 2
        assert len(caught.value.attempts) == 3
        assert await limit.used() == pytest.approx(2 * SPENT)

    asyncio.run(main())


@both_ways
def test_another_model_is_reserved_at_its_own_price(way):
    """A middleware inside that changes the model does not get around the budget."""

    async def upgrade(request, call_next):
        return await call_next(replace(request, model="dear"))

    async def main():
        adapter = Metered()
        limit = budget(usd=1.0, cost=lambda request, _: 0.9 + 0.2 * (request.model == "dear"))
        with pytest.raises(BudgetExceededError):
            await call(client_of(adapter, limit, upgrade), way)
        assert adapter.sent == []
        assert await limit.used() == 0.0

    asyncio.run(main())


@both_ways
def test_a_request_that_cannot_be_routed_gives_everything_back(way):
    """A middleware inside that names an unknown provider leaves no reservation behind."""

    async def misroute(request, call_next):
        return await call_next(replace(request, provider="nobody"))

    async def main():
        limit = budget(usd=10.0)
        with pytest.raises(ConfigurationError):
            await call(client_of(Metered(), limit, misroute), way)
        assert await limit.used() == 0.0
        assert limit.tallies == {}

    asyncio.run(main())


def test_hedged_attempts_are_all_counted():
    """Two attempts at once need room for two, and both are settled."""

    async def twice(request, call_next):
        first, _ = await asyncio.gather(call_next(request), call_next(request))
        return first

    async def main():
        adapter, limit = Metered(delay=0.001), budget(usd=10.0)
        await call(client_of(adapter, limit, twice), "complete")
        await call(client_of(adapter, twice, limit), "complete")
        assert len(adapter.sent) == 4
        assert await limit.used() == pytest.approx(4 * SPENT)
        small = budget(usd=0.4)
        with pytest.raises(BudgetExceededError):
            await call(client_of(Metered(delay=0.001), small, twice), "complete")

    asyncio.run(main())


def cut_off():
    """What a stream has used whose reader leaves after one of its deltas."""
    return pytest.approx(cent_per_token(None, Usage(input_tokens=7, output_tokens=4)))


@pytest.mark.parametrize("end", ["leave", "cancel", "task"])
def test_a_stream_that_is_cut_short_is_settled_with_what_arrived(end):
    """The reader leaves, the call is cancelled by its id, or its task is cancelled."""

    async def main():
        limit, hold = budget(usd=10.0), asyncio.Event()
        client = client_of(Metered(hold=hold), limit)

        async def read():
            async for event in client.stream(ask(request_id="r")):
                if isinstance(event, TextDelta):
                    if end == "leave":
                        break
                    waiting.set()

        waiting = asyncio.Event()
        events = client.stream(ask(request_id="r"))
        if end == "leave":
            async for event in events:
                if isinstance(event, TextDelta):
                    break
            assert await limit.used() > 0.2  # reserved
            await events.aclose()
        else:
            task = asyncio.create_task(read())
            await waiting.wait()
            if end == "cancel":
                assert await client.cancel("r")
                await task
            else:
                task.cancel()
                await asyncio.wait([task])
        assert await limit.used() == cut_off()

    asyncio.run(main())


RESERVED = 0.3  # dollars of the input of `ask` with its error, and of 20 output tokens
LATE = RequestTimeoutError("late", phase="request")


@pytest.mark.parametrize(("on_cancel", "spent"), [("reserved", RESERVED), ("input", 0.07)])
@pytest.mark.parametrize("end", ["task", "id", LATE], ids=["task", "id", "timeout"])
def test_a_whole_answer_that_never_came_counts_as_reserved_or_its_input(end, on_cancel, spent):
    """The provider may go on after a timeout or a cancellation, and bill the whole answer."""

    async def main():
        limit = budget(usd=10.0, on_cancel=on_cancel)
        client = client_of(Metered(ANSWER if end != LATE else LATE, delay=10), limit)
        task = asyncio.create_task(call(client, "complete", ask(request_id="r")))
        await asyncio.sleep(0.01)
        if end == "task":
            task.cancel()
        elif end == "id":
            assert await client.cancel("r")
        await asyncio.wait([task])
        assert await limit.used() == pytest.approx(spent)

    virtual_time.run(main())


def test_each_attempt_that_timed_out_counts_as_reserved():
    """A retry after a timeout needs room of its own, and both count."""

    async def main():
        limit = budget(usd=0.7)
        late = RequestTimeoutError("late", phase="request", retryable=True)
        adapter = Metered(late, ANSWER)
        await call(client_of(adapter, limit), "complete", retry=FAST)
        assert await limit.used() == pytest.approx(RESERVED + SPENT)
        with pytest.raises(BudgetExceededError):
            await call(client_of(Metered(late), limit), "complete", retry=FAST)

    asyncio.run(main())


@pytest.mark.parametrize(
    "error",
    [
        RequestTimeoutError("late", phase="connect"),
        ServerError("no", status_code=500),
    ],
    ids=["not connected", "refused"],
)
def test_what_was_not_answered_for_a_known_reason_costs_nothing(error):
    """Nothing was sent, or the provider says that there is no answer."""

    async def main():
        limit = budget(usd=10.0)
        with pytest.raises(type(error)):
            await call(client_of(Metered(error), limit), "complete")
        assert await limit.used() == 0.0

    asyncio.run(main())


@both_ways
def test_a_call_that_is_cancelled_before_it_is_sent_costs_nothing(way):
    """It waits for a rate limit, inside of the budget or outside."""

    async def main(*layers):
        adapter, limit = Metered(delay=100), next(each for each in layers if type(each) is Budget)
        client = client_of(adapter, *layers)
        first = asyncio.create_task(call(client, way))
        await asyncio.sleep(0.01)
        second = asyncio.create_task(call(client, way))
        await asyncio.sleep(0.01)
        before = await limit.used()
        second.cancel()
        await asyncio.wait([second])
        assert len(adapter.sent) == 1
        assert await limit.used() == pytest.approx(RESERVED)
        assert before >= RESERVED
        first.cancel()
        await asyncio.wait([first])

    for order in (1, -1):
        layers = [budget(usd=10.0), RateLimit(concurrency=1)]
        virtual_time.run(main(*layers[::order]))


@pytest.mark.parametrize("has_sent", [True, False], ids=["sent", "connecting"])
@both_ways
def test_a_call_that_is_cancelled_while_it_connects_costs_nothing(way, has_sent):
    """A server that takes the connection, and says nothing: not even hello, if it should."""

    async def main():
        arrived = asyncio.Event()

        async def say_nothing(reader, writer):
            await reader.readuntil(b"\r\n\r\n" if has_sent else b"\x16")
            arrived.set()
            with contextlib.suppress(ConnectionError):
                await reader.read()
            writer.close()

        async with await asyncio.start_server(say_nothing, "127.0.0.1", 0) as server:
            port, limit = server.sockets[0].getsockname()[1], budget(usd=10.0)
            url = f"http{'' if has_sent else 's'}://127.0.0.1:{port}"
            adapter = HttpAdapter("openai", "k", base_url=url)
            async with Client({"metered": adapter}, middleware=[limit]) as client:
                task = asyncio.create_task(call(client, way, ask(model="metered:m")))
                await asyncio.wait_for(arrived.wait(), PATIENCE)
                task.cancel()
                await asyncio.wait([task])
                used = await limit.used()
        assert (used > 0) is has_sent

    asyncio.run(main())


@pytest.mark.parametrize(("on_cancel", "spent"), [("reserved", 0.25), ("input", 0.05)])
@pytest.mark.parametrize("end", ["task", LATE], ids=["task", "timeout"])
def test_an_operation_that_never_ended_counts_as_reserved_or_its_input(end, on_cancel, spent):
    """As a whole answer does."""

    class Drawing(Metered):
        async def perform(self, operation, value, *, request_id=None):
            self.sent.append((operation, value, request_id))
            await asyncio.sleep(10)
            raise LATE

    def price(_, usage):
        return 0.25 if usage.images else usage.input_tokens / 100

    async def main():
        limit = Budget(usd=1.0, cost=price, on_cancel=on_cancel)
        client = client_of(Drawing(), limit)
        drawing = ImageInput(model="metered:m", prompt="a cat on a mat")
        task = asyncio.create_task(client.perform("metered", "generate_image", drawing))
        await asyncio.sleep(0.01)
        if end == "task":
            task.cancel()
        await asyncio.wait([task])
        assert await limit.used() == pytest.approx(spent, abs=0.02)

    virtual_time.run(main())


@both_ways
def test_a_failed_call_gives_everything_back(way):
    """An error before anything was billed costs nothing."""

    async def main():
        limit = budget(usd=10.0)
        adapter = Metered(ServerError("no", status_code=500))
        with pytest.raises(ServerError):
            await call(client_of(adapter, limit), way)
        assert await limit.used() == 0.0

    asyncio.run(main())


# Prices.


@both_ways
def test_the_price_is_that_of_the_client(way):
    """Without `cost=`, the prices of the client and the catalog count, before and after."""
    known = get_model_info("gpt-5.2", "openai")
    rates = known.input_cost_per_million, known.output_cost_per_million

    async def main():
        limit, adapter = Budget(usd=1.0), Metered()
        adapter.name = "openai"
        client = Client({"openai": adapter}, middleware=[limit], prices={"own": {"input": 1e4}})
        await call(client, way, ask(model="openai:gpt-5.2"))
        spent = await limit.used()
        assert spent == pytest.approx((10 * rates[0] + 5 * rates[1]) / 1e6)
        with pytest.raises(ConfigurationError, match="openai:own is unknown"):
            await call(client, way, ask(model="openai:own"))  # nothing is known of its output
        client = Client(
            {"openai": adapter},
            middleware=[limit],
            prices={"own": {"input": 1e4, "output": 2e4}},
        )
        await call(client, way, ask(model="openai:own", max_tokens=10))
        assert await limit.used() - spent == pytest.approx((10 * 1e4 + 5 * 2e4) / 1e6)

    asyncio.run(main())


@both_ways
def test_an_unknown_price_is_refused(way):
    """A cost that cannot be counted is never taken for 0."""

    async def main():
        adapter = Metered()
        with pytest.raises(ConfigurationError, match="price of metered:m is unknown"):
            await call(client_of(adapter, Budget(usd=1.0)), way)
        assert adapter.sent == []

    asyncio.run(main())


def test_an_unknown_price_can_be_allowed(caplog):
    """`unknown="allow"` sends the call, and says once per model that it is not counted."""

    async def main():
        limit = Budget(usd=1.0, unknown="allow")
        client = client_of(Metered(), limit)
        for _ in range(3):
            await call(client, "complete")
        assert await limit.used() == 0.0

    with caplog.at_level(logging.WARNING, "interlingua"):
        asyncio.run(main())
    (record,) = [each for each in caplog.records if "price is unknown" in each.message]
    assert "metered:m" in record.message


def test_the_default_of_max_tokens_is_reserved():
    """A request without `max_tokens` reserves the documented default, and its thinking budget."""
    limit = Budget(usd=1.0, cost=lambda _, usage: usage.output_tokens)
    assert limit.estimate(ask()) == ASSUMED_OUTPUT
    assert limit.estimate(ask(thinking_budget=1_000)) == ASSUMED_OUTPUT + 1_000
    assert limit.estimate(ask(max_tokens=50, thinking_budget=1_000)) == 50
    assert limit.estimate(ask(max_tokens=-50, thinking_budget=-1)) == ASSUMED_OUTPUT


@pytest.mark.parametrize("price", [-1.0, float("nan"), float("inf")])
@both_ways
def test_a_price_that_cannot_be_reserved_is_refused(way, price):
    """A wrong `cost=` gives no money back: the call is not sent."""

    async def main():
        adapter, limit = Metered(), budget(cost=lambda *_: price)
        with pytest.raises(ConfigurationError, match="cost="):
            await call(client_of(adapter, limit), way)
        assert not adapter.sent
        assert await limit.used() == 0

    asyncio.run(main())


@pytest.mark.parametrize("period", [None, "day", 60.0])
def test_another_amount_counts_from_the_next_call_on(period):
    """`usd` may be raised and lowered; what is spent stays spent."""

    async def main():
        limit = budget(usd=1.0, period=period)
        client = client_of(Metered(), limit)
        await call(client, "complete")
        limit.usd = 0.1
        with pytest.raises(BudgetExceededError) as caught:
            await call(client, "complete")
        assert caught.value.limit == 0.1
        limit.usd = 2.0
        await call(client, "complete")
        assert await limit.used() == pytest.approx(2 * SPENT)

    asyncio.run(main())


def test_an_estimate_follows_the_prices():
    """Other prices count at once: of another client, another model, and a table that changed."""
    dear, cheap = (Tariffs({"m": {"input": 0, "output": rate}}) for rate in (2e6, 1e6))
    limit, request = Budget(usd=1.0), ask(max_tokens=1, provider="metered")
    other = replace(request, model="n")

    assert limit.estimate(request, Call(tariffs=dear)) == 2.0
    assert limit.estimate(request, Call(tariffs=cheap)) == 1.0
    with pytest.raises(ConfigurationError, match="metered:n"):
        limit.estimate(other, Call(tariffs=cheap))
    assert limit.estimate(request, Call(tariffs=cheap)) == 1.0
    cheap.given = dear.given
    cheap.clear()  # as when the catalog changes
    assert limit.estimate(request, Call(tariffs=cheap)) == 2.0


@pytest.mark.parametrize(
    ("options", "tier"),
    [
        ({"openai": {"service_tier": "priority"}}, "priority"),
        ({"speed": "fast"}, "fast"),
        ({"openai": {"service_tier": "flex"}}, "standard"),  # it may not be served there
        ({"openai": {"service_tier": "auto", "store": True}}, "standard"),
        ({}, "standard"),
    ],
)
@pytest.mark.parametrize("place", ["request", "adapter"])
def test_a_tier_of_service_that_is_asked_for_is_reserved(options, tier, place):
    """The options of a request or of its adapter may name a tier that costs more."""
    own = options if place == "adapter" else {}
    adapter = HttpAdapter("openai", "key", options=own)
    asked = options if place == "request" else {}
    request = ask(model="gpt-5.2", provider="openai", max_tokens=1_000_000, provider_options=asked)
    (price,) = (row for row in get_model_info("gpt-5.2", "openai").prices if row.tier == tier)
    limit, call = Budget(usd=1.0), Call(adapters={"openai": adapter})

    for _ in range(2):  # the second time some of it is known
        assert limit.estimate(request, call) == pytest.approx(price.rates.output, rel=1e-3)


# Operations.


class Embedding:
    """What an operation returns."""

    usage = Usage(input_tokens=30)


class Priced:
    """What an operation returns that knows its cost."""

    cost = Cost(total=0.25)


def test_operations_are_counted():
    """The usage or the cost of the result counts; what is free is not refused."""

    async def main():
        limit = budget(usd=1.0)
        embed = client_of(Metered(Embedding()), limit)
        await embed.perform("metered", "embed", {"model": "e", "input": ["some words"] * 3})
        assert await limit.used() == pytest.approx(0.3)
        await client_of(Metered(Priced()), limit).perform("metered", "draw", {"prompt": "a cat"})
        assert await limit.used() == pytest.approx(0.55)
        await client_of(Metered(None), limit).perform("metered", "speak", {"input": "a b c d"})
        assert await limit.used() > 0.55
        with pytest.raises(BudgetExceededError):
            await embed.perform("metered", "embed", {"model": "e", "input": "many words " * 200})
        free = client_of(Metered([]), budget(usd=0.0))
        assert await free.perform("metered", "list_models") == []
        assert await free.perform("metered", "retrieve_model", OperationInput(model="m")) == []

    asyncio.run(main())


# Stores that fail.


@both_ways
def test_a_store_that_fails_refuses_calls_by_default(way, caplog):
    """Nothing is sent, and the log says so once, and once when the store is back."""

    async def main():
        store, adapter = Broken(), Metered()
        limit = budget(usd=10.0, store=store)
        client = client_of(adapter, limit)
        store.is_down = True
        for _ in range(5):
            with pytest.raises(StoreError, match="was not sent, because the store failed"):
                await call(client, way)
        assert adapter.sent == []
        store.is_down = False
        await call(client, way)

    with caplog.at_level(logging.WARNING, "interlingua"):
        asyncio.run(main())
    lines = [each.message for each in caplog.records]
    assert [line.split(": ")[1][:16] for line in lines] == ["the store failed", "the store answer"]


@both_ways
def test_open_sends_calls_while_the_store_fails(way):
    """With `on_store_failure="open"` calls are sent without the limit."""

    async def main():
        store = Broken()
        client = client_of(Metered(), budget(usd=0.0, store=store, on_store_failure="open"))
        store.is_down = True
        await call(client, way)
        store.is_down = False
        with pytest.raises(BudgetExceededError):
            await call(client, way)

    asyncio.run(main())


def test_what_could_not_be_settled_is_settled_later():
    """A call that ends while the store fails is counted when the store answers again."""

    async def main():
        store, adapter = Broken(), Metered(delay=0.01)
        limit = budget(usd=10.0, store=store)
        client = client_of(adapter, limit)
        task = asyncio.create_task(call(client, "complete"))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        store.is_down = True
        await task
        store.is_down = False
        await call(client, "complete")
        assert await limit.used() == pytest.approx(2 * SPENT)

    virtual_time.run(main())


def test_leases_are_renewed_and_end_after_a_crash(monkeypatch):
    """A long call keeps its reservation; one whose process is gone gives it back."""
    monkeypatch.setattr("interlingua.client.middleware.leases.MemoryStore", type(None))

    async def main():
        store, hold = MemoryStore(clock=virtual_time.now), asyncio.Event()
        limit = budget(usd=0.3, store=store, lease=60.0)
        client = client_of(Metered(hold=hold), limit)
        events = client.stream(ask())
        await anext(events)
        await asyncio.sleep(300.0)
        with pytest.raises(BudgetExceededError):
            await call(client, "complete")
        hold.set()
        async for _ in events:
            pass
        assert await limit.used() == pytest.approx(SPENT)

    virtual_time.run(main())

    async def crash():
        limit = budget(usd=0.3, store=store, lease=60.0)
        events = client_of(Metered(), limit).stream(ask())
        await anext(events)
        left.append(events)  # never closed, and its event loop stands still
        return await limit.used()

    clock, left = Clock(), []
    store = MemoryStore(clock=clock)
    loop = asyncio.new_event_loop()
    assert loop.run_until_complete(crash()) > 0.2
    clock.advance(59)
    assert asyncio.run(store.used("budget:all")) > 0.2
    clock.advance(2)
    assert asyncio.run(store.used("budget:all")) == 0.0
    loop.run_until_complete(left[0].aclose())
    loop.close()


# Where it runs.


def test_repeated_loops_and_uvloop():
    """One budget serves one event loop after another."""
    limit = budget(usd=10.0)
    client = client_of(Metered(), limit)
    for run in (asyncio.run, asyncio.run, uvloop.run):
        run(call(client, "complete"))
        run(call(client, "stream"))
    assert asyncio.run(limit.used()) == pytest.approx(6 * SPENT)


def test_the_blocking_client():
    """The blocking functions pass through a budget."""
    limit = budget(usd=0.4)
    client = sync.Client({"metered": Metered()}, middleware=[limit])
    client.complete(ask())
    with pytest.raises(BudgetExceededError):
        client.complete(ask())
    client.close()


def test_twins_share_the_budget():
    """A client with another key has the same budgets; over real HTTP, whole and streamed."""
    with simulated(text("Hello.")) as peer:
        limit = budget(usd=10.0)
        client = peer.client.with_middleware(limit)
        twin = client.with_access("claude-haiku-4-5", "anthropic", api_key="another")

        async def main():
            costs = []
            for each, way in ((client, "complete"), (twin, "stream")):
                response = await call(each, way, peer.ask("anthropic"))
                costs.append(cent_per_token(None, response.usage))
            assert await limit.used() == pytest.approx(sum(costs))
            await client.close()

        asyncio.run(main())


def test_a_run_shares_its_key():
    """All steps of a run, and the functions above the client, have one run budget."""

    async def main():
        limit = budget(usd=10.0, key="run")
        result = await generate("m", "hello", client=client_of(Metered(), limit), request_id="r1")
        assert result.text == "one two three"
        assert await limit.used("r1") == pytest.approx(SPENT)

    asyncio.run(main())


@pytest.mark.parametrize("kind", KINDS)
def test_runs_of_long_ago_are_forgotten(kind, tmp_path):
    """Any number of them takes no room for ever; what a user spent stays."""

    async def main():
        clock = Clock()
        store = KINDS[kind](clock, tmp_path)
        limits = [budget(usd=10.0, key=key, store=store, clock=clock) for key in ("run", "user")]
        client = client_of(Metered(), *limits)
        await generate("m", "hello", client=client, request_id="r1", user="eve")
        clock.advance(86_000)
        assert await limits[0].used("r1") == pytest.approx(SPENT)
        clock.advance(1_000)
        assert await limits[0].used("r1") == 0
        assert await limits[1].used("eve") == pytest.approx(SPENT)
        await store.close()

    asyncio.run(main())


@pytest.mark.parametrize(
    "options",
    [
        {"usd": -1},
        {"usd": float("nan")},
        {"period": "week"},
        {"period": 0},
        {"unknown": "maybe"},
        {"on_store_failure": "ajar"},
        {"lease": 0},
        {"key": 3},
    ],
    ids=str,
)
def test_wrong_options(options):
    """What a budget cannot mean is refused when it is made."""
    with pytest.raises(ConfigurationError):
        Budget(**{"usd": 1.0, **options})
