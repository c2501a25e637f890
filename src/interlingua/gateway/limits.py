"""
The gateway's own limits: of requests, tokens and dollars, for a key or a route.

They are layers of the client that answers, outside of its cache and its fallbacks: a request counts
once, whatever becomes of it, and one above a limit is refused at once, not queued.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Literal, NamedTuple, TypedDict

from msgspec.structs import replace

from interlingua.client.client import Client
from interlingua.client.config import Section
from interlingua.client.middleware.budget import Budget
from interlingua.client.middleware.contract import Call, Middleware, Progress
from interlingua.client.middleware.rate_limit import RateLimit
from interlingua.client.stores.contract import Store
from interlingua.gateway.stores import MEMORY, Stores
from interlingua.serving.client_application import Caller
from interlingua.serving.exchange import ModelRoute
from interlingua.spec.check import Positive, rows_of_options
from interlingua.spec.errors import ConfigurationError, RateLimitError
from interlingua.spec.request import Request
from interlingua.spec.response import RateLimitInfo

FILE = "limits.db"
"""Where limits are counted if a process must not forget them: a file beside the registry file."""
MINUTE = 60.0
_SOON = 1.0
"""Seconds after which a client may ask again, if nobody knows when another request ends."""


class LimitKeys(TypedDict, total=False):
    """The keys of `limits`."""

    requests_per_minute: Positive
    input_tokens_per_minute: Positive
    output_tokens_per_minute: Positive
    concurrency: Positive
    usd: float
    period: Literal["day", "month"]


_RATES = ("requests_per_minute", "input_tokens_per_minute", "output_tokens_per_minute")


class CallLimit(RateLimit):
    """A limit of calls, not of attempts, that refuses what is above it."""

    per_attempt: ClassVar[bool] = False

    def __init__(self, scope: str, limits: Mapping[str, Any], store: Store) -> None:
        rates: dict[str, Any] = {name: limits.get(name) for name in (*_RATES, "concurrency")}
        super().__init__(
            **rates, key=scope, store=store, max_wait=0, learn=False, name="gateway-limit"
        )
        self._scope_name = scope
        self._rates = rates

    async def begin(self, request: Request, call: Call) -> Any:
        """Let a call begin, or refuse it."""
        # What was admitted counts, also if its provider fails.
        counted = replace(call, progress=Progress(is_sent=True))
        try:
            return await super().begin(request, counted)
        except RateLimitError as error:
            text = f"The gateway's limit of {self._scope_name} is reached: {self._describe()}."
            raise RateLimitError(text, retry_after=error.retry_after or _SOON) from None

    async def report(self) -> RateLimitInfo:
        """What is left."""
        used = await self.used(self._scope_name)
        requests = self._rates["requests_per_minute"]
        # The headers of most dialects have one limit of tokens.
        kind = "output_tokens" if self._rates["input_tokens_per_minute"] is None else "input_tokens"
        tokens = self._rates[f"{kind}_per_minute"]
        limits = {"requests": requests, kind: tokens}
        shares = [used[name] / most for name, most in limits.items() if most is not None]
        return RateLimitInfo(
            requests_limit=requests,
            requests_remaining=_left(requests, used.get("requests", 0.0)),
            tokens_limit=tokens,
            tokens_remaining=_left(tokens, used.get(kind, 0.0)),
            # What was taken comes back within a minute.
            reset_after=round(MINUTE * min(1.0, max(shares)), 3) if shares else None,
        )

    def _describe(self) -> str:
        words = {name: name.replace("_", " ") for name in self._rates}
        given = [f"{most} {words[name]}" for name, most in self._rates.items() if most is not None]
        return ", ".join(given).replace("concurrency", "requests at once")


def _left(most: int | None, used: float) -> int | None:
    return None if most is None else max(0, int(most - used))


class Limit(NamedTuple):
    """The limits of one key or route."""

    layers: tuple[Middleware, ...]
    rate: CallLimit | None

    async def report(self) -> RateLimitInfo | None:
        """What is left of the requests and tokens of a minute."""
        return None if self.rate is None else await self.rate.report()


def read_limit(section: Section, scope: str, stores: Stores, *, place: str | None) -> Limit | None:
    """The part `limits` of a key or a route; None if it has none."""
    limits = section.section("limits", f"{scope}.limits").check(rows_of_options(LimitKeys))
    given = {name: limits.get(name) for name in limits}
    if not given:
        return None
    # Dollars must outlive the process; what is counted for a minute need not.
    store = stores.open(place or (FILE if "usd" in given or stores.is_shared else MEMORY))
    if "period" in given and "usd" not in given:
        raise limits.error(
            "period", f"{scope}.limits: `period` is that of `usd`, which is missing."
        )
    rate = CallLimit(scope, given, store) if {*given} & {*_RATES, "concurrency"} else None
    layers: list[Middleware] = [] if rate is None else [rate]
    if "usd" in given:
        name, usd, period = "gateway-budget", given["usd"], given.get("period")
        try:
            layers.append(Budget(usd, period=period, key=scope, store=store, name=name))
        except ConfigurationError as error:
            raise limits.error("usd", f"{scope}.limits: {error.message}") from None
    return Limit(tuple(layers), rate)


class Clients:
    """The clients of a gateway: each is the same client, with middleware of a route and a key."""

    def __init__(self, base: Client, *usual: Middleware) -> None:
        self._base = base
        self._usual = usual
        self._layers: dict[int, tuple[Middleware, ...]] = {}
        self._made: dict[tuple[str, int], Client] = {}
        self.plain: Client = self.make()
        """The client without limits of its own."""

    def make(self, *inner: Middleware, limit: Limit | None = None) -> Client:
        """A client with this middleware, and the limits around it."""
        outer = () if limit is None else limit.layers
        layers = (*outer, *self._usual, *inner)
        client = self._base.with_middleware(*layers)
        self._layers[id(client)] = layers
        return client

    def with_limit(self, name: str, limit: Limit, client: Client) -> Client:
        """One of these clients with the limits of a key around it."""
        known = self._made.get((name, id(client)))
        if known is None:
            layers = (*limit.layers, *self._layers[id(client)])
            known = self._made[name, id(client)] = self._base.with_middleware(*layers)
        return known


class Limits:
    """The limits of all keys and routes: the policy of the application."""

    def __init__(
        self,
        clients: Clients,
        keys: Mapping[str, Limit],
        routes: Iterable[tuple[ModelRoute, Limit]],
    ) -> None:
        self._clients = clients
        self._keys = keys
        self._routes = {id(route.client): limit for route, limit in routes}

    def client_for(self, caller: Caller, client: Client) -> Client:
        """The client with the limits of the caller around it."""
        limit = self._keys.get(caller.name)
        return client if limit is None else self._clients.with_limit(caller.name, limit, client)

    async def report(self, caller: Caller, client: Client) -> RateLimitInfo | None:
        """What is left to the caller: of its own limits, else of those of the route."""
        limit = self._keys.get(caller.name)
        found = None if limit is None else await limit.report()
        if found is None and (limit := self._routes.get(id(client))) is not None:
            found = await limit.report()
        return found
