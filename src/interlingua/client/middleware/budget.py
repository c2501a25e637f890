"""
A budget in dollars.

Before a call an upper estimate of its cost is reserved; afterwards the real cost of all of its
attempts is settled. A layer inside of the attempts adds up what they cost.
"""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from math import ceil, inf, isfinite
from typing import Any, ClassVar, Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from interlingua.client.metering import options_of, seller_of
from interlingua.client.middleware.contract import NO_CALL, Call, PerformNext
from interlingua.client.middleware.counting import Counting
from interlingua.client.middleware.leases import Hold, Leases, OnStoreFailure
from interlingua.client.middleware.meter import is_lost, reserve_input, with_output_of
from interlingua.client.middleware.operation_meter import (
    estimate_operation,
    possible_usages,
    request_of,
    result_usage,
)
from interlingua.client.middleware.scopes import ScopeKey, name_scope, scope_reader
from interlingua.client.stores.contract import Limit, Refused, Store
from interlingua.client.stores.memory import LimitGroup, MemoryStore
from interlingua.lazy import Remade
from interlingua.providers.cost import Tariff, price_usage
from interlingua.providers.operations import NO_USAGE
from interlingua.providers.tariffs import Tariffs
from interlingua.runtime.cancel import is_cancelled, outlast, start_task
from interlingua.runtime.items import ItemsEnd, WatchedItems
from interlingua.runtime.log import logger
from interlingua.spec.contracts import Adapter
from interlingua.spec.errors import (
    AbortError,
    BudgetExceededError,
    ConfigurationError,
    NetworkError,
    ProviderError,
    RequestTimeoutError,
    SDKError,
)
from interlingua.spec.modalities.batch import BATCH_TIER, BatchInput
from interlingua.spec.operations import OperationResult
from interlingua.spec.request import Request
from interlingua.spec.response import Cost, Usage
from interlingua.wire.classify import was_refused

Period: TypeAlias = Literal["day", "month"] | float | None
"""A calendar day or month (UTC), a number of seconds that ends now, or None: for ever."""
OnCancel: TypeAlias = Literal["reserved", "input"]
"""What counts of a whole answer that was cancelled or timed out after its request was sent."""
PriceFunction: TypeAlias = Callable[[Request, Usage], "float | Cost | None"]
"""What a usage of the model of a request costs, in dollars; None if that is unknown."""

ASSUMED_OUTPUT = 4_096
"""The output tokens that are reserved for a request without `max_tokens`."""
_SURE = 1.15  # beside the upper bound, which short requests do not have
_UNLIMITED = 1e15
_CATALOG = Tariffs()
_FREE = frozenset(
    (
        *("count_tokens", "list_models", "retrieve_model"),
        # A job and a batch are counted when they are created.
        *("batch_results", "cancel_batch", "delete_batch", "list_batches", "retrieve_batch"),
        *("retrieve_video", "list_videos", "download_video", "cancel_video", "delete_video"),
    )
)
_CALENDAR = {"day": "%Y-%m-%d", "month": "%Y-%m"}
_DAY = 86_400.0
_KEPT = {"day": 2 * _DAY, "month": 62 * _DAY}  # seconds; old days need not be kept
_MAX_SCOPES = 10_000


class Budget(Counting["_Tally"], Remade):
    """
    Refuses a call with `BudgetExceededError` before it is sent if it may cost too much.

        Client.from_env(middleware=[Budget(usd=20, period="day", key="user", store=store)])

    `key` says who has a budget: see `ScopeKey`. `cost` prices a usage; where it returns None, the
    prices of the client and the catalog count. Without a price, `unknown="refuse"` raises
    `ConfigurationError`; `unknown="allow"` sends the call and does not count it. `max_tokens` is
    what is reserved for the output of a request that sets none. A whole answer that is cancelled or
    times out after it was sent counts as reserved, because the provider may go on and bill it;
    with `on_cancel="input"` only its input counts. A reservation of a process that has crashed is
    given back after `lease` seconds.
    """

    guard: ClassVar[bool] = True

    def __init__(  # noqa: PLR0913 -- options, all but one by name
        self,
        usd: float,
        *,
        period: Period = None,
        key: ScopeKey = "all",
        store: Store | None = None,
        cost: PriceFunction | None = None,
        unknown: Literal["refuse", "allow"] = "refuse",
        max_tokens: int = ASSUMED_OUTPUT,
        on_cancel: OnCancel = "reserved",
        lease: float = 60.0,
        on_store_failure: OnStoreFailure = "closed",
        name: str = "budget",
        clock: Callable[[], float] = time.time,
    ) -> None:
        _check(usd, period, max_tokens)
        _check_word("unknown", unknown, ("refuse", "allow"))
        _check_word("on_cancel", on_cancel, ("reserved", "input"))
        self._usd = usd
        self._period = period
        self._is_calendar = isinstance(period, str)
        self._key = key
        self._scope = scope_reader(key)
        self._cost = cost
        self._allows_unknown = unknown == "allow"
        self._max_tokens = max_tokens
        self._counts_reserved = on_cancel == "reserved"
        self._name = name
        self._clock = clock
        self._leases = Leases(
            MemoryStore() if store is None else store,
            owner=f"Budget {name!r}",
            seconds=lease,
            on_failure=on_store_failure,
        )
        self.tallies: dict[str | None, _Tally] = {}
        """The calls under way, by request id."""
        self._unpriced: set[str] = set()
        self._groups: dict[str, LimitGroup] = {}  # by scope, of one day
        self._day = 0.0
        self._last_asked: _Asked = ({}, _CATALOG, -1, None, "", None)
        self.attempt_layer: _Meter = _Meter(self, counts_reserved=self._counts_reserved)
        """Adds up the cost of the attempts."""

    @property
    def usd(self) -> float:
        """The dollars of a period; another amount counts from the next call on."""
        return self._usd

    @usd.setter
    def usd(self, usd: float) -> None:
        self._usd, self._groups = usd, {}

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle as its configuration; refused if other processes would count for themselves."""
        if isinstance(self._leases.store, MemoryStore):
            raise ConfigurationError(
                f"{self!r} counts in the memory of this process. To pickle it, give it a store "
                "that processes share: store=RedisStore(…)."
            )
        return super().__reduce__()

    def __repr__(self) -> str:
        return f"Budget(usd={self.usd:g}, period={self._period!r}, key={self._key!r})"

    async def used(self, name: str | None = None) -> float:
        """
        Return the dollars that are spent or reserved in this period.

        `name` is the user, session, run, model or provider, or what the function `key` returns.
        """
        (limit,) = self._group(name_scope(self._key, name)).limits
        return await self._leases.store.used(limit.key, limit.period)

    # Calls.

    async def begin(self, request: Request, call: Call) -> _Tally | None:
        """Reserve what a call may cost."""
        scope = self._scope(request)
        if scope is None:
            return None
        amount = self.estimate(request, call)
        hold = await self._reserve(scope, amount, request)
        begun = _Tally(request.request_id, request, scope, call, amount, hold)
        tally = self.tallies.setdefault(begun.id, begun)
        return tally if tally is begun else tally.join(begun)

    async def end(self, tally: _Tally, *_: object) -> None:
        """Settle what the attempts of a call have cost."""
        if tally.calls > 1:
            tally.calls -= 1
            return
        tally.calls = 0
        del self.tallies[tally.id]
        settlements = [self._settle(tally.hold, tally.spent)]
        settlements += [self._settle(hold, 0.0) for hold in tally.others]
        await outlast(*settlements)

    async def perform(self, operation: Call, value: Any, call_next: PerformNext) -> Any:
        """Reserve what an operation may cost, if it costs anything, and settle by its result."""
        if isinstance(value, BatchInput):
            return await self._submit_batch(operation, value, call_next)
        request = request_of(operation, value)
        scope = None if operation.name in _FREE else self._scope(request)
        if scope is None:
            return await call_next(value)
        usages = possible_usages(operation, value)
        amounts = (self._price(request, usage, operation) for usage in usages)
        priced = (amount for amount in amounts if amount is not None)
        reserved = self._expected_cost(request, next(priced, None))
        hold = await self._reserve(scope, reserved, request)
        spent, is_stream = 0.0, False
        try:
            result = await call_next(value)
            is_stream = isinstance(result, AsyncGenerator)
            if is_stream:

                async def settle_by(end: ItemsEnd) -> None:
                    cost = self._settled_cost(request, end.result, reserved, operation)
                    await outlast(self._settle(hold, cost))

                return WatchedItems(result, settle_by)
            spent = self._settled_cost(request, result, reserved, operation)
            return result
        finally:
            if not is_stream:
                lost = operation.progress.lost * self._lost_cost(
                    request, reserved, operation, value
                )
                await outlast(self._settle(hold, spent + lost))

    def _lost_cost(self, request: Request, reserved: float, operation: Call, value: Any) -> float:
        """What counts of an operation that was cancelled or timed out after it was sent."""
        if self._counts_reserved:
            return reserved
        tokens = estimate_operation(operation, value)
        usage = Usage(input_tokens=tokens, estimated=True)
        return self._price(request, usage, operation) or 0.0

    async def _submit_batch(
        self, operation: Call, value: BatchInput, call_next: PerformNext
    ) -> Any:
        """
        Count a batch with the most that it should cost, when it is submitted.

        Its results may be read in another process, or never, so they correct nothing. A batch
        that the provider has refused is not counted.
        """
        amounts = defaultdict[str, float](float)
        holds: list[tuple[Hold | None, float]] = []

        def see(request: Request) -> None:
            scope = self._scope(request)
            if scope is not None:
                amounts[scope] += self.estimate(request, operation, BATCH_TIER)

        async def admit() -> None:
            whole = request_of(operation, value)
            for scope, amount in amounts.items():
                holds.append((await self._reserve(scope, amount, whole), amount))

        is_counted = False
        try:
            result = await call_next(replace(value, requests=value.requests.admitted(see, admit)))
            is_counted = True
            return result
        except SDKError as error:
            is_counted = isinstance(error, _UNCERTAIN) and not was_refused(error)
            raise
        except BaseException:  # cancelled: the provider may have it
            is_counted = True
            raise
        finally:
            await outlast(
                *(self._settle(hold, amount if is_counted else 0.0) for hold, amount in holds)
            )

    # Reserving.

    def _settle(self, hold: Hold | None, spent: float) -> asyncio.Task[None] | None:
        return None if hold is None else self._leases.settle(hold, (spent,))

    async def reserve_more(self, tally: _Tally, request: Request) -> float:
        """
        Return what an attempt may cost; reserve what the reservation of the call does not cover.

        So a retry after attempts that were billed, a second attempt at the same time, and another
        model are not sent either if the budget is used up.
        """
        amount = self.estimate(request, tally.call)
        missing = tally.spent + tally.running + amount - tally.reserved
        if missing > 0:
            hold = await self._reserve(tally.scope, missing, request)
            tally.others += (hold,)
            tally.reserved += missing
        return amount

    async def count_late(self, tally: _Tally, spent: float) -> None:
        """Count an attempt that ended after its call, whatever is left of the budget."""
        await outlast(start_task(self._count_late(tally, spent)))

    async def _count_late(self, tally: _Tally, spent: float) -> None:
        (limit,) = self._group(tally.scope).limits
        group = LimitGroup((replace(limit, maximum=_UNLIMITED),))
        hold = await self._leases.reserve(group, (spent,), renew=False)
        await outlast(self._settle(None if isinstance(hold, Refused) else hold, spent))

    async def _reserve(self, scope: str, amount: float, request: Request) -> Hold | None:
        outcome = await self._leases.reserve(self._group(scope), (amount,))
        if isinstance(outcome, Refused):
            raise self._refusal(scope, amount, request, outcome)
        return outcome

    def _group(self, scope: str) -> LimitGroup:
        """The limit of a scope, in this day."""
        now = self._clock() if self._is_calendar else 0.0
        day, groups = now // _DAY, self._groups
        if day != self._day or len(groups) >= _MAX_SCOPES:
            self._day, self._groups = day, {}
        group = self._groups.get(scope)
        if group is None:
            group = self._groups[scope] = LimitGroup((self._make_limit(scope, now),))
        return group

    def _make_limit(self, scope: str, now: float) -> Limit:
        name, usd, span = self._name, self.usd, self._period
        if isinstance(span, str):
            date = datetime.fromtimestamp(now, UTC).strftime(_CALENDAR[span])
            key = f"{name}:{date}:{scope}"
            return Limit(key=key, maximum=usd, mode="reserve", ttl=_KEPT[span])
        key = f"{name}:{scope}" if span is None else f"{name}:{span:g}s:{scope}"
        # A program has any number of runs, and each of them is over some time.
        ttl = _DAY if span is None and self._key == "run" else None
        return Limit(key=key, maximum=usd, period=span, mode="reserve", ttl=ttl)

    def _refusal(
        self, scope: str, amount: float, request: Request, refused: Refused
    ) -> BudgetExceededError:
        renews_at, wait = self._renewal(refused)
        advice = "It does not renew."
        if amount > self.usd:
            advice = "The call alone is more than the budget: set a lower max_tokens."
        elif renews_at is not None:
            advice = f"There may be room again at {renews_at:%Y-%m-%d %H:%M:%S} UTC."
        return BudgetExceededError(
            f"The call was not sent: it may cost ${amount:.6g}, and ${refused.used:.6g} of the "
            f"budget of ${self.usd:g} for {scope} {_SPANS.get(self._period, '')}"
            f"is spent or reserved. {advice}",
            provider=request.provider,
            model=request.model or None,
            request_id=request.request_id,
            used=refused.used,
            limit=self.usd,
            scope=scope,
            renews_at=renews_at,
            retry_after=wait,
        )

    def _renewal(self, refused: Refused) -> tuple[datetime | None, float | None]:
        """When there may be room again, as a time and in seconds."""
        now = datetime.fromtimestamp(self._clock(), UTC)
        if isinstance(self._period, str):
            today = now.replace(hour=0, minute=0, second=0, microsecond=0)
            end = today + timedelta(days=1)
            if self._period == "month":
                end = (today.replace(day=1) + timedelta(days=32)).replace(day=1)
            return end, (end - now).total_seconds()
        if self._period is None or refused.retry_after is None:
            return None, None
        return now + timedelta(seconds=refused.retry_after), refused.retry_after

    # Prices.

    def estimate(self, request: Request, call: Call = NO_CALL, tier: str | None = None) -> float:
        """Return the most that one attempt should cost; in a tier, if the tier has a price."""
        output = request.max_tokens
        if output is None or output < 0:
            output = self._max_tokens + max(0, request.thinking_budget or 0)
        tokens = reserve_input(request) * _SURE + 1
        if self._cost is None and tier is None and not request.provider_options:
            tariffs = _CATALOG if call.tariffs is None else call.tariffs
            adapters, known_tariffs, changes, provider, model, tariff = self._last_asked
            if (  # most calls ask the same model as the call before
                model != request.model
                or provider != request.provider
                or adapters is not call.adapters
                or known_tariffs is not tariffs
                or changes != tariffs.changes
            ):
                tariff = self._find_plain_tariff(request, tariffs, call)
            if tariff is not None:
                priced = tariff.price_tokens(tokens, output, tariffs.clock)
                if priced is not None:
                    return priced
        usage = Usage(input_tokens=ceil(tokens), output_tokens=output, estimated=True)
        return self._highest_cost(request, usage, call, tier)

    def _highest_cost(self, request: Request, usage: Usage, call: Call, tier: str | None) -> float:
        """What a usage costs in this tier of service; without one, in all that may serve it."""
        tariffs = _CATALOG if call.tariffs is None else call.tariffs
        tariff = _find_tariff(request, tariffs, call)
        tiers = (None, *_asked_tiers(request, call, tariff)) if tier is None else (tier,)
        usages = (replace(usage, service_tier=each) for each in tiers)
        amounts = [self._price(request, each, call) for each in usages]
        known = [self._expected_cost(request, each) for each in amounts if each is not None]
        if not known and tier is not None:
            return self._highest_cost(request, usage, call, None)
        return max(known) if known else self._expected_cost(request, None)

    def cost_of(
        self, request: Request, usage: Usage | None, cost: Cost | None, call: Call
    ) -> float:
        """Return what an attempt has cost; `cost` is what its answer says."""
        if cost is not None and self._cost is None:  # it counts as it is reported
            return cost.total
        if usage is None:
            return 0.0
        # An unknown price was refused or allowed before the attempt was sent.
        return self._price(request, usage, call, cost) or 0.0

    def _price(
        self, request: Request, usage: Usage, call: Call, cost: Cost | None = None
    ) -> float | None:
        """The dollars of a usage: by the function of the caller, as reported, or by the client."""
        amount = None if self._cost is None else self._cost(request, usage)
        if amount is None:
            amount = self._client_price(request, usage, call) if cost is None else cost
        return amount.total if isinstance(amount, Cost) else amount

    def _client_price(self, request: Request, usage: Usage, call: Call) -> Cost | None:
        """The cost of a usage by the prices of the client; None if it is unknown."""
        tariffs = _CATALOG if call.tariffs is None else call.tariffs
        return price_usage(usage, _find_tariff(request, tariffs, call), tariffs.clock())

    def _find_plain_tariff(self, request: Request, tariffs: Tariffs, call: Call) -> Tariff | None:
        """The rates of the model; None if they are unknown, or the adapter asks for a tier."""
        tariff = _find_tariff(request, tariffs, call)
        if any(_asked_tiers(request, call, tariff)):
            tariff = None
        place = (request.provider, request.model)
        self._last_asked = (call.adapters, tariffs, tariffs.changes, *place, tariff)
        return tariff

    def _settled_cost(self, request: Request, result: Any, reserved: float, call: Call) -> float:
        """What an operation has cost; if its result does not show that, what was reserved."""
        shown = getattr(result, "cost", None)
        if isinstance(shown, Cost):
            return shown.total
        usage = result_usage(result)
        is_running = isinstance(result, OperationResult) and not result.is_final
        if usage is None or (is_running and usage == NO_USAGE):
            return reserved
        return self.cost_of(request, usage, None, call)

    def _expected_cost(self, request: Request, amount: float | None) -> float:
        """An amount that can be reserved; an unknown one is refused, or logged and 0."""
        if amount is not None and 0 <= amount < inf:
            return amount
        if amount is not None:
            raise ConfigurationError(
                f"{self!r} cannot reserve ${amount}, the price of a call of {request.model}, and "
                "the call was not sent. What cost= returns must be a finite number >= 0, or None.",
                setting="cost",
            )
        target = f"{request.provider}:{request.model}"
        if not self._allows_unknown:
            raise ConfigurationError(
                f"The price of {target} is unknown, so {self!r} cannot count this call, and it "
                "was not sent. Give the client its prices=, or pass cost= or unknown='allow'.",
                setting="cost",
            )
        if target not in self._unpriced:
            self._unpriced.add(target)
            logger.warning(
                "%r does not count calls of %s: the price is unknown. Give the client its prices=.",
                self,
                target,
            )
        return 0.0


_UNCERTAIN = (ProviderError, NetworkError, RequestTimeoutError, AbortError)
"""Errors after which the provider may have a batch, unless it has refused it."""


def _find_tariff(request: Request, tariffs: Tariffs, call: Call) -> Tariff | None:
    """The rates of the model of a request; None if they are unknown."""
    key, model = request.provider or "", request.model
    return tariffs[seller_of(call.adapters.get(key), key), model, model]


def _asked_tiers(request: Request, call: Call, tariff: Tariff | None) -> Iterator[str]:
    """The tiers of service with a price that the options of a request or its adapter name."""
    own = options_of(call.adapters.get(request.provider or ""))
    if tariff is not None and (own or request.provider_options):
        names = {*_texts_in(own), *_texts_in(request.provider_options)}
        yield from (tier for tier in tariff.tiers if tier in names)


def _texts_in(options: Mapping[str, Any]) -> Iterator[str]:
    """The texts among the values, also of mappings in it: fields of the wire by provider."""
    for value in options.values():
        if isinstance(value, str):
            yield value
        elif isinstance(value, Mapping):
            yield from (each for each in value.values() if isinstance(each, str))


class _Tally(Struct, gc=False):
    """What the attempts of a call have cost, and what is reserved for them."""

    id: str | None
    first: Request | None
    """The request of the first attempt, until an attempt begins."""
    scope: str
    call: Call
    reserved: float
    hold: Hold | None
    others: tuple[Hold | None, ...] = ()
    """What was reserved later."""
    running: float = 0.0
    """The estimates of the attempts that are under way."""
    under_way: int = 0
    """How many they are."""
    losers: tuple[tuple[Request, Usage], ...] = ()
    """The attempts at a stream that a hedge has cancelled: they count when the winner has ended."""
    spent: float = 0.0
    calls: int = 1

    def join(self, other: _Tally) -> _Tally:
        """
        Add the tally of another call of the same id, and return this one.

        Calls of one id at the same time, such as hedged ones outside of the budget, are counted
        together: an attempt shows only the id.
        """
        self.calls += 1
        self.first = None  # each attempt is compared with what is reserved for both calls
        self.reserved += other.reserved
        self.others += (other.hold,)
        return self


_Asked: TypeAlias = tuple[Mapping[str, Adapter], Tariffs, int, str | None, str, Tariff | None]
"""The rates of a model, after all that they depend on; None if they are not all that counts."""
_Attempt: TypeAlias = tuple[_Tally, Request, float, Call]
"""The tally of an attempt, its request, what it may cost, and what else is known about it."""


class _Meter(Counting[_Attempt]):
    """The layer inside of the attempts: adds up their costs."""

    def __init__(self, budget: Budget, *, counts_reserved: bool) -> None:
        self._budget = budget
        self._counts_reserved = counts_reserved
        self._tallies = budget.tallies

    async def begin(self, request: Request, call: Call) -> _Attempt | None:
        tally = self._tallies.get(request.request_id)
        if tally is None:
            return None
        if request is tally.first:
            amount = tally.reserved
            tally.first = None
        else:
            tally.first = None
            amount = await self._budget.reserve_more(tally, request)
        tally.running += amount
        tally.under_way += 1
        return tally, request, amount, call

    async def end(
        self,
        attempt: _Attempt,
        usage: Usage | None,
        cost: Cost | None,
        error: BaseException | None,
    ) -> None:
        tally, request, amount, call = attempt
        tally.running -= amount
        tally.under_way -= 1
        progress = call.progress
        is_beaten = progress.is_stream and progress.usage is None and tally.under_way > 0
        if is_beaten and usage is not None and is_cancelled(error):
            tally.losers += ((request, usage),)
            return
        if self._counts_reserved and is_lost(error, call):
            spent = amount
        else:
            spent = self._budget.cost_of(request, usage, cost, tally.call)
        if tally.losers and not tally.under_way:
            for lost, known in tally.losers:
                known = with_output_of(known, usage)  # noqa: PLW2901
                spent += self._budget.cost_of(lost, known, None, tally.call)
            tally.losers = ()
        if tally.calls:
            tally.spent += spent
        else:  # its call has ended
            await self._budget.count_late(tally, spent)


_SPANS: dict[object, str] = {"day": "of this day ", "month": "of this month "}


def _check(usd: float, period: Any, max_tokens: int) -> None:
    for name, amount in (("usd", usd), ("max_tokens", max_tokens)):
        if not amount >= 0:
            raise ConfigurationError(f"Budget: {name} must be 0 or more, not {amount!r}.")
    is_span = isinstance(period, (int, float)) and isfinite(period) and period > 0
    if period is not None and period not in _CALENDAR and not is_span:
        raise ConfigurationError(
            f"Budget: period must be 'day', 'month', a number of seconds or None, not {period!r}."
        )


def _check_word(name: str, word: str, known: tuple[str, str]) -> None:
    if word not in known:
        raise ConfigurationError(
            f"Budget: {name} must be {known[0]!r} or {known[1]!r}, not {word!r}."
        )
