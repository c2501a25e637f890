"""The rates of models: those that the caller gave with `prices=`, or those of the catalog."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from functools import lru_cache, partial
from time import time as now
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

import msgspec
from msgspec.structs import replace

from interlingua.providers.catalog.models import clear_on_change, table, without_date
from interlingua.providers.catalog.prices import LongContext, Price, Rates
from interlingua.providers.cost import STANDARD, Tariff, merge_rates, price_usage
from interlingua.providers.rows import providers, row_name
from interlingua.spec.check import advice, describe
from interlingua.spec.errors import ConfigurationError
from interlingua.spec.events import Finish
from interlingua.spec.messages import Message
from interlingua.spec.request import Request
from interlingua.spec.response import Attempt, Cost, Response, Usage, Warning
from interlingua.spec.warnings import make_warning

if TYPE_CHECKING:
    from interlingua.spec.operations import OperationResult

Prices: TypeAlias = Mapping[str, Rates | Price | Iterable[Price] | Mapping[str, float]]
"""
Prices by model (`gpt-5.2` or `openai:gpt-5.2`), in dollars per million tokens.

`Rates`, or a mapping of its fields to numbers, changes only these rates of the standard tier. One
or more `Price` rows replace all that is known of the model.
"""
Given: TypeAlias = Mapping[str, Rates | tuple[Price, ...]]
"""`Prices`, checked."""
Priced = TypeVar("Priced", Rates, Price)
Answer = TypeVar("Answer", Response, Finish, "OperationResult")

_MAX_TARIFFS = 512  # cached per table: servers choose the names of models
_OTHER_NAMES = {
    "inputPricePerMillion": "input",
    "inputCachedPricePerMillion": "cache_read",
    "outputPricePerMillion": "output",
    "outputPricePerSecond": "per_video_second",
}
"""Other names of rates that `prices=` accepts."""
_FREE = Rates(input=0.0, output=0.0)


class Seller(NamedTuple):
    """Who is paid for a call."""

    provider: str
    """The name of the provider's row, as in the catalog."""
    name: str = ""
    """The name of the adapter in its client."""
    is_local: bool = False


class Tariffs(dict[tuple[Seller, str, str], "Tariff | None"]):
    """
    The rates by seller, the served model and the requested model; None where they are unknown.

    It is a dict so that a model that was looked up before costs no function call. `prices` are
    over the catalog, or with `is_whole` instead of it. `clock` gives the time of a call in seconds
    since 1970.
    """

    def __init__(
        self,
        prices: Prices | None = None,
        clock: Callable[[], float] = now,
        *,
        is_whole: bool = False,
    ) -> None:
        super().__init__()
        self.is_whole: bool = is_whole
        given = dict(_read_prices(prices or {}))
        self.given: tuple[Given, ...] = (given,) if given else ()
        """The given prices; later ones are over earlier ones."""
        self.clock: Callable[[], float] = clock
        self.version: str = _hash(self.given)
        self.changes: int = 0
        """Changes whenever what was read may no longer be true."""
        clear_on_change(self)

    def clear(self) -> None:
        """Forget what was looked up."""
        super().clear()
        self.changes += 1

    def with_prices(self, prices: Prices) -> Tariffs:
        """A table with these prices over those of this one."""
        twin = Tariffs(prices, self.clock, is_whole=self.is_whole)
        twin.given = (*self.given, *twin.given)
        twin.version = _hash(twin.given)
        return twin

    def __missing__(self, key: tuple[Seller, str, str]) -> Tariff | None:
        if len(self) >= _MAX_TARIFFS:
            self.clear()
        changes = self.changes
        tariff = self[key] = self._find(*key)
        if self.changes != changes:  # another thread changed the catalog meanwhile
            self.pop(key, None)
        return tariff

    def _find(self, seller: Seller, served: str, requested: str) -> Tariff | None:
        tariff = None if self.is_whole else self._find_known(seller, served, requested)
        find = partial(self._find_other, seller)
        for prices in self.given:
            given = _match(prices, seller, served, requested)
            if given is not None:
                variants = () if tariff is None or _sets_media(given) else tariff.variants
                rows = _overlay(given, tariff)
                tariff = Tariff(rows, self.version, "prices", variants, find)
        return tariff

    def _find_other(self, seller: Seller, model: str) -> Tariff | None:
        return self[seller, model, model]

    def _find_known(self, seller: Seller, served: str, requested: str) -> Tariff | None:
        """The rates without `prices=`."""
        if seller.is_local:
            return Tariff((Price(rates=_FREE),), "", "local", (), partial(self._find_other, seller))
        for model in (served, requested):
            for name in _spellings(model):
                prices, version = catalog_prices(seller.provider, name)
                if prices:
                    info = table().find(name, seller.provider)
                    variants = () if info is None else info.variants
                    find = partial(self._find_other, seller)
                    return Tariff(prices, version, "catalog", variants, find)
        return None


def catalog_prices(provider: str, model: str) -> tuple[tuple[Price, ...], str]:
    """The prices of an id or alias in the catalog, and the version of the catalog."""
    known = table()
    info = known.find(model, provider)
    return ((), "") if info is None else (info.prices, known.version)


def price_answer(
    answer: Answer, tariffs: Tariffs, seller: Seller, served: str, requested: str
) -> Answer:
    """The answer with its cost, or with a warning that it is unknown."""
    tariff = tariffs[seller, served, requested]
    cost = price_usage(answer.usage, tariff, tariffs.clock())
    if cost is not None:
        return replace(answer, cost=cost)
    warning = unknown_price(seller, served or requested, answer.usage, tariff)
    return replace(answer, warnings=(*answer.warnings, warning))


def price_finish(
    tariffs: Tariffs, seller: Seller, request: Request, finish: Finish, served: str
) -> Finish:
    """The end of a stream that a model served, with its cost."""
    return price_answer(finish, tariffs, seller, served, request.model)


def unknown_price(seller: Seller, model: str, usage: Usage, tariff: Tariff | None) -> Warning:
    """The warning that a call has no price, or a pass of another model within it."""
    model = (tariff and tariff.unknown_model(usage)) or model
    return _unknown_price(seller.name or seller.provider, model, usage.service_tier)


@lru_cache(maxsize=256)  # every call of such a model has it
def _unknown_price(seller: str, model: str, served_tier: str | None) -> Warning:
    target = ":".join(filter(None, (seller, model)))
    tier = f" in the tier {served_tier!r}" if served_tier else ""
    return make_warning("price_unknown", target=target or "the model", tier=tier)


def _match(
    prices: Given, seller: Seller, served: str, requested: str
) -> Rates | tuple[Price, ...] | None:
    """The given prices of a model, by its name with or without the provider."""
    names = (*_spellings(served), *_spellings(requested))
    for name in names:
        for prefix in (f"{seller.name}:", f"{seller.provider}:", ""):
            if prefix + name in prices:
                return prices[prefix + name]
    for key, given in prices.items():  # with another name of the provider
        prefix, _, name = key.partition(":")
        if name in names and row_name(prefix) == seller.provider:
            return given
    return None


def _spellings(model: str) -> Iterator[str]:
    """The name of a model, its id in the ARN of Bedrock, and the name without a date."""
    if model:
        yield model
        if model.startswith("arn:"):
            yield model.rpartition("/")[2]
        bare = without_date(model)
        if bare != model:
            yield bare


def _overlay(given: Rates | tuple[Price, ...], known: Tariff | None) -> tuple[Price, ...]:
    """Price rows as they are; rates over those of the standard tier."""
    if isinstance(given, tuple):
        return given
    rows = known.prices if known is not None else ()
    if not any(row.tier == STANDARD for row in rows):
        return (*rows, Price(rates=given))
    return tuple(_change(row, given) if row.tier == STANDARD else row for row in rows)


def _sets_media(given: Rates | tuple[Price, ...]) -> bool:
    """Whether the given prices are also those of images and videos of all sizes."""
    return isinstance(given, tuple) or given.per_video_second is not None


def _change(price: Price, given: Rates) -> Price:
    """The row with the given rates, also for long context."""
    longer = tuple(
        LongContext(above=each.above, rates=merge_rates(each.rates, given))
        for each in price.long_context
    )
    return replace(price, rates=merge_rates(price.rates, given), long_context=longer)


# Reading `prices=`.


def _read_prices(prices: object) -> Iterator[tuple[str, Rates | tuple[Price, ...]]]:
    if not isinstance(prices, Mapping):
        raise ConfigurationError(
            f"`prices` must be a mapping of models to rates, not {describe(prices)}."
        )
    for model, given in prices.items():
        if not isinstance(model, str) or not model:
            raise ConfigurationError(f"`prices`: The name of a model is {describe(model)}.")
        yield model, _read_one(model, given)


def _read_one(model: str, given: object) -> Rates | tuple[Price, ...]:
    if isinstance(given, Rates):
        return _check(f"prices[{model!r}]", given)
    if isinstance(given, Price):
        return (_check(f"prices[{model!r}]", given),)
    if isinstance(given, Mapping):
        return _read_rates(model, given)
    rows = tuple(given) if isinstance(given, Iterable) and not isinstance(given, str) else ()
    if not rows or not all(isinstance(row, Price) for row in rows):
        raise ConfigurationError(
            f"`prices[{model!r}]` must be rates such as {{'input': 2.5, 'output': 10}}, or rows of "
            f"Price, not {describe(given)}."
        )
    return tuple(_check(f"prices[{model!r}][{at}]", row) for at, row in enumerate(rows))


def _check(place: str, given: Priced) -> Priced:
    """The same, if all its values have the right types and no rate is below 0."""
    try:
        return msgspec.convert(msgspec.to_builtins(given), type(given))
    except (msgspec.ValidationError, TypeError) as error:
        raise ConfigurationError(f"`{place}`: {error}.") from None


def _read_rates(model: str, given: Mapping[str, Any]) -> Rates:
    rates: dict[str, float] = {}
    for name, rate in given.items():
        field = _OTHER_NAMES.get(name, name)
        if field not in Rates.__struct_fields__:
            known = (*Rates.__struct_fields__, *_OTHER_NAMES)
            hint = advice(name, known)
            raise ConfigurationError(f"`prices[{model!r}]` has no rate {name!r}. {hint}")
        if rate is None:
            continue
        is_number = isinstance(rate, (int, float)) and not isinstance(rate, bool)
        if not is_number or not 0 <= rate < float("inf"):
            raise ConfigurationError(
                f"`prices[{model!r}][{name!r}]` must be a number of dollars, not {describe(rate)}."
            )
        rates[field] = float(rate)
    return Rates(**rates)


def _hash(given: tuple[Given, ...]) -> str:
    """A version that differs where prices differ; empty if there are none."""
    if not given:
        return ""
    from hashlib import blake2s  # loads OpenSSL

    return f"prices-{blake2s(msgspec.json.encode(given), digest_size=4).hexdigest()}"


# Costs of records that were made before.


Stored = TypeVar("Stored")
_UNKNOWN = "price_unknown"


def reprice(
    records: Iterable[Stored],
    table: Prices | None = None,
    *,
    at: datetime | Callable[[Stored], datetime] | None = None,
) -> list[Stored]:
    """
    Return the records with their costs computed again; the given records are not changed.

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
            raise ConfigurationError(f"`at` must be a datetime, not {describe(moment)}.")
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
            "`reprice` takes responses, attempts, steps, results, messages and mappings with "
            f"`usage`, not {describe(record)}."
        )

    def response(self, response: Response) -> Response:
        requested = response.message.metadata.get("model") or response.model
        cost = self.cost(response.provider, response.model, requested, response.usage)
        warnings = tuple(each for each in response.warnings if each.code != _UNKNOWN)
        if cost is None:
            unknown = unknown_price(
                _seller(response.provider), response.model, response.usage, None
            )
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


def _read_usage(usage: object) -> Usage:
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
