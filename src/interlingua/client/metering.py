"""What attempts that are not plain have used and cost: those that failed, and custom adapters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from interlingua.providers.adapter import HttpAdapter
from interlingua.providers.cost import price_usage
from interlingua.providers.tariffs import Answer, Seller, Tariffs, price_answer
from interlingua.spec.contracts import Adapter
from interlingua.spec.request import Request
from interlingua.spec.response import Attempt, Cost, Response, Usage
from interlingua.tokens.estimate import estimate_usage

if TYPE_CHECKING:
    from interlingua.streams.accumulate import StreamAccumulator


def seller_of(adapter: Adapter | None, key: str) -> Seller:
    """Whose prices the calls of an adapter have; `key` is its name in the client."""
    seller = getattr(adapter, "seller", None)
    if isinstance(seller, Seller):
        return seller
    return Seller(key) if adapter is None else Seller(adapter.name, key)


def options_of(adapter: Adapter | None) -> Mapping[str, Any]:
    """The options that an adapter adds to its requests; those of custom adapters are unknown."""
    options: Mapping[str, Any] = {}
    return adapter.settings()["options"] if isinstance(adapter, HttpAdapter) else options


def price_custom(
    answer: Answer, served: str, request: Request, tariffs: Tariffs, adapter: Adapter
) -> Answer:
    """The answer of a custom adapter with its cost, unless the adapter has set one."""
    if answer.cost is not None:
        return answer
    seller = seller_of(adapter, request.provider or "")
    return price_answer(answer, tariffs, seller, served, request.model)


def meter_failure(
    usage: Usage | None,
    request: Request,
    accumulator: StreamAccumulator | None,
    tariffs: Tariffs,
    adapter: Adapter,
) -> tuple[Usage | None, Cost | None]:
    """
    The usage and the cost of an attempt that failed; `usage` is what the provider reported.

    Providers bill what a stream has delivered, but many report it only at the end. What they did
    not report is estimated.
    """
    served, key = request.model, request.provider or ""
    if accumulator is not None and accumulator.has_begun:
        partial = accumulator.partial(parse=False)  # maybe in a thread, while a reader looks at it
        is_own = partial.provider in (key, "")  # not of another model, before a fallback
        served = partial.model if is_own and partial.model else served
        if is_own and partial.message.content:
            usage = estimate_usage(usage or partial.usage, request, partial.message, key)
    if usage is None:
        return None, None
    tariff = tariffs[seller_of(adapter, key), served, request.model]
    return usage, price_usage(usage, tariff, tariffs.clock())


def add_metered(partial: Response, attempts: tuple[Attempt, ...]) -> Response:
    """An answer that was cut off, with the usage and the cost of its attempt, the last one."""
    last = attempts[-1]
    usage = partial.usage if last.usage is None else last.usage
    return replace(partial, usage=usage, cost=last.cost, attempts=attempts)
