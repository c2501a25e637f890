"""Costs of stored records, computed again with another table of prices."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from time import time as now
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from interlingua.providers.cost import price_usage
from interlingua.providers.rows import providers, row_name
from interlingua.providers.tariffs import Prices, Seller, Tariffs, unknown_price
from interlingua.spec.check import describe
from interlingua.spec.errors import ConfigurationError
from interlingua.spec.messages import Message
from interlingua.spec.response import Attempt, Cost, Response, Usage

Stored = TypeVar("Stored")
_UNKNOWN = "price_unknown"


def reprice(
    records: Iterable[Stored],
    table: Prices | None = None,
    *,
    at: datetime | Callable[[Stored], datetime] | None = None,
) -> list[Stored]:
    """
    The records with their costs computed again; the records themselves are not changed.

    A record is a response, an attempt, a step or the result of a run, a message with `usage` in
    its metadata, or a mapping with `provider`, `model` and `usage`. Without a `table` the prices
    are those of the catalog, and figures that a provider reported stay. With one, only its prices
    count. `at` is the time of the calls, or gives that of each record; by default it is now. A cost
    that is not known is None.
    """
    tariffs = Tariffs(table, is_whole=table is not None)

    def seconds(record: Stored) -> float:
        moment = at(record) if callable(at) else at
        if moment is not None and not isinstance(moment, datetime):
            raise ConfigurationError(f"reprice: `at` must be a datetime, not {describe(moment)}.")
        return now() if moment is None else moment.timestamp()

    return [_Pricer(tariffs, seconds(record)).record(record) for record in records]


class _Pricer:
    """Prices records of calls that were made at one time."""

    def __init__(self, tariffs: Tariffs, at: float) -> None:
        self._tariffs = tariffs
        self._at = at

    def record(self, record: Any) -> Any:
        if isinstance(record, Response):
            return self.response(record)
        if isinstance(record, Attempt):
            return self.attempt(record)
        if isinstance(record, Message):
            return self.message(record)
        if isinstance(record, Mapping):
            return self.mapping(record)
        if hasattr(record, "steps"):
            steps = tuple(map(self.record, record.steps))
            return replace(record, steps=steps, messages=tuple(map(self.message, record.messages)))
        if hasattr(record, "response"):
            return replace(record, response=self.response(record.response))
        raise ConfigurationError(
            "reprice takes responses, attempts, steps, results, messages and mappings with "
            f"`usage`, not {describe(record)}."
        )

    def response(self, response: Response) -> Response:
        requested = response.message.metadata.get("model") or response.model
        cost = self.cost(response.provider, response.model, requested, response.usage)
        warnings = tuple(each for each in response.warnings if each.code != _UNKNOWN)
        if cost is None:
            unknown = unknown_price(_seller(response.provider), response.model, response.usage)
            warnings = (*warnings, unknown)
        return replace(
            response,
            cost=cost,
            warnings=warnings,
            message=self.message(response.message),
            attempts=tuple(map(self.attempt, response.attempts)),
        )

    def attempt(self, attempt: Attempt) -> Attempt:
        if attempt.usage is None:
            return attempt
        cost = self.cost(attempt.provider, attempt.model, attempt.model, attempt.usage)
        return replace(attempt, cost=cost)

    def message(self, message: Message) -> Message:
        if not isinstance(message.metadata.get("usage"), Mapping):
            return message
        return replace(message, metadata=self.mapping(message.metadata))

    def mapping(self, record: Mapping[str, Any]) -> dict[str, Any]:
        metadata = record.get("metadata")
        if isinstance(metadata, Mapping) and "usage" not in record:
            return {**record, "metadata": self.mapping(metadata)}
        provider, model = record.get("provider") or "", record.get("model") or ""
        if not (isinstance(provider, str) and isinstance(model, str)):
            raise ConfigurationError(
                "`provider` and `model` of a record with `usage` must be strings, not "
                f"{describe(provider)} and {describe(model)}."
            )
        cost = self.cost(provider, model, model, _read_usage(record.get("usage")))
        others = {name: value for name, value in record.items() if name != "cost"}
        if cost is None:
            return others
        parts = msgspec.structs.asdict(cost)
        shown = {name: part for name, part in parts.items() if part or name == "total"}
        return {**others, "cost": shown}

    def cost(self, provider: str, served: str, requested: str, usage: Usage) -> Cost | None:
        if self._tariffs.is_whole:
            usage = replace(usage, reported_cost=None)
        tariff = self._tariffs[_seller(provider), served, requested]
        return price_usage(usage, tariff, self._at)


def _seller(provider: str) -> Seller:
    name = row_name(provider) or provider
    row = providers().get(name)
    return Seller(name, provider, row is not None and row.is_local)


def _read_usage(usage: Any) -> Usage:
    if isinstance(usage, Usage):
        return usage
    what = "A record must have `usage` with counts such as `input_tokens`"
    if isinstance(usage, Mapping) and usage.keys().isdisjoint(Usage.__struct_fields__):
        # Counts with the names of another library would cost 0.
        raise ConfigurationError(f"{what}, not only {describe(sorted(map(str, usage)))}.")
    try:
        return msgspec.convert(usage, Usage)
    except msgspec.ValidationError as error:
        raise ConfigurationError(f"{what}: {error}") from None
