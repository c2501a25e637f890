"""
What a call costs: a pure function of its usage, the rates, and the time of the call.

`providers/tariffs.py` finds the rates of a model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from math import ceil, inf, isnan, nan
from operator import attrgetter
from typing import NamedTuple, TypeAlias

from msgspec.structs import asdict, replace

from interlingua.providers.catalog.prices import MediaVariant, Price, Rates
from interlingua.spec.response import Cost, CostSource, Usage, sum_costs

STANDARD = "standard"
"""The tier of service of a call for which the provider names no other."""
_MILLION = 1_000_000
_HOUR = 3600  # seconds
_MEDIA = (
    *("input_audio", "cache_read_audio", "output_audio", "input_image", "output_image"),
    *("per_image", "per_video_second", "per_audio_hour", "per_million_characters"),
)


class _Rates(NamedTuple):
    """The rates of a call after their fallbacks; nan where tokens cannot be priced."""

    input: float
    output: float
    cache_read: float
    cache_write: float
    cache_write_1h: float
    reasoning: float
    per_request: float
    per_search: float
    media: Rates | None
    """The rates without fallbacks, if there are any for media."""

    @classmethod
    def of(cls, rates: Rates) -> _Rates:
        write = first_known(rates.cache_write, rates.input)
        has_media = any(getattr(rates, name) is not None for name in _MEDIA)
        return cls(
            input=first_known(rates.input),
            output=first_known(rates.output),
            cache_read=first_known(rates.cache_read, rates.input),
            cache_write=write,
            cache_write_1h=first_known(rates.cache_write_1h, write),
            reasoning=first_known(rates.reasoning, rates.output),
            per_request=(rates.per_request or 0.0) * _MILLION,
            per_search=first_known(rates.per_web_search) * _MILLION,
            media=rates if has_media else None,
        )


class _Row(NamedTuple):
    """A `Price` in the form in which it is used."""

    price: Price
    rates: _Rates
    long_context: tuple[tuple[int, _Rates], ...]

    @classmethod
    def of(cls, price: Price) -> _Row:
        longer = tuple(
            (each.above, _Rates.of(merge_rates(price.rates, each.rates)))
            for each in sorted(price.long_context, key=lambda each: each.above)
        )
        return cls(price, _Rates.of(price.rates), longer)


_Flat: TypeAlias = tuple[float, float, float, float]
"""The rates of input, output and a request, and up to how many input tokens they hold."""
_NO_FLAT: _Flat = (nan, nan, nan, -1)


def _flat_rates(row: _Row) -> _Flat:
    """Of plain input and output, if both have a price."""
    rates = row.rates
    if isnan(rates.input) or isnan(rates.output):
        return _NO_FLAT
    longest = row.long_context[0][0] if row.long_context else inf
    return rates.input, rates.output, rates.per_request, longest


class Tariff:
    """The rates of one model, and the version of the table that they are from."""

    __slots__ = ("_find", "_flat", "_rows", "only", "prices", "source", "variants", "version")

    def __init__(
        self,
        prices: Iterable[Price],
        version: str,
        source: CostSource,
        variants: Iterable[MediaVariant] = (),
        find: Callable[[str], Tariff | None] | None = None,
    ) -> None:
        self._find = find
        self.prices: tuple[Price, ...] = tuple(prices)
        self.variants: tuple[MediaVariant, ...] = tuple(variants)
        """The sizes of images or video that have a price of their own."""
        self.version: str = version
        self.source: CostSource = source
        self._rows = tuple(map(_Row.of, self.prices))
        standard = [row for row in self._rows if row.price.tier == STANDARD]
        first = standard[0].price if len(standard) == 1 else None
        is_constant = first is not None and not (first.starts or first.hours or first.days)
        self.only: _Row | None = standard[0] if is_constant else None
        """The row of the standard tier, if it is the same at all times."""
        self._flat = _NO_FLAT if self.only is None else _flat_rates(self.only)

    def of(self, model: str) -> Tariff | None:
        """The rates of another model of the same seller; None if they are unknown."""
        if not model:
            return self
        return None if self._find is None else self._find(model)

    def unknown_model(self, usage: Usage) -> str | None:
        """The first model among the passes of a usage that has no rates."""
        return next((each.model for each in usage.passes if self.of(each.model) is None), None)

    @property
    def tiers(self) -> tuple[str, ...]:
        """The tiers of service that have a price."""
        return tuple(dict.fromkeys(row.price.tier for row in self._rows))

    def price_tokens(
        self, input_tokens: float, output_tokens: int, clock: Callable[[], float]
    ) -> float | None:
        """
        The total of `price_usage` for input that is not cached and output without reasoning.

        The input may be an estimate that is no whole number.
        """
        per_input, per_output, per_request, longest = self._flat
        if input_tokens <= longest:
            return (input_tokens * per_input + per_request + output_tokens * per_output) / _MILLION
        usage = Usage(input_tokens=ceil(input_tokens), output_tokens=output_tokens)
        priced = price_usage(usage, self, clock())
        return None if priced is None else priced.total

    def media_rates(self, usage: Usage, rates: Rates | None) -> Rates | None:
        """The rates of media, with the price of an image or a second of video of this size."""
        size = usage.media_size
        if not (usage.video_seconds or usage.images) or size is None:
            return rates
        from interlingua.spec.modalities.images import resolution_of

        for variant in self.variants:
            is_same = (variant.size, variant.quality) == (size, usage.media_quality)
            if variant.per_image and is_same:
                return replace(rates or Rates(), per_image=variant.per_image)
            if variant.per_video_second and variant.size in {size, resolution_of(size)}:
                return replace(rates or Rates(), per_video_second=variant.per_video_second)
        return rates

    def row(self, tier: str, at: float) -> _Row | None:
        """The last row of a tier that holds at a time (seconds since 1970); None if none does."""
        moment = datetime.fromtimestamp(at, UTC)
        for row in reversed(self._rows):
            if row.price.tier == tier and row.price.holds(moment):
                return row
        return None


def price_usage(usage: Usage, tariff: Tariff | None, at: float) -> Cost | None:
    """
    What the tokens cost; None if a price is unknown, never 0 for it.

    The provider's own figure counts if it reports one. Otherwise the rates are those of the served
    tier at the time `at` (seconds since 1970), and those of long context if the input is longer
    than its limit. Prices per request and per web search are part of `input`.

    A rate that is None falls back: cache reads and writes to `input`, hour-long writes to
    `cache_write`, reasoning to `output`, audio and images to text, cached audio to `cache_read`,
    and rates of long context to those of short context. If there is still none for tokens that
    were used, the cost is None. Tokens that a host counts as read and as written are priced as
    read, so that no part is negative. Each of the `passes` has the rates of its own model.
    """
    if usage.reported_cost is not None:
        return Cost(total=usage.reported_cost, source="provider")
    if tariff is None:
        return None
    if usage.passes:
        return _price_passes(usage, tariff, at)
    row = tariff.only if usage.service_tier is None else None
    row = row or tariff.row(usage.service_tier or STANDARD, at)
    if row is None:
        return None
    total, output, rates = usage.input_tokens, usage.output_tokens, row.rates
    for above, higher in row.long_context:
        if total > above:
            rates = higher
    has_parts = usage.cache_read_tokens or usage.cache_write_tokens or usage.reasoning_tokens
    read, written, hourly, thought = _parts_of(usage) if has_parts else (0, 0, 0, 0)
    fresh, spoken = total - read - written, output - thought
    sized = tariff.media_rates(usage, rates.media) if tariff.variants else rates.media
    media = 0.0 if total or output or _has_price(usage, sized) else nan
    if sized is not None and _read_media(usage) != _NO_MEDIA:
        extra, fresh, read, spoken = _price_media(usage, sized, fresh, read, spoken)
        media += extra
    # A rate may be nan, and 0 * nan is nan.
    thinking = thought * rates.reasoning if thought else 0.0
    input_cost = (fresh * rates.input if fresh else 0.0) + rates.per_request
    if usage.web_searches:
        input_cost += usage.web_searches * rates.per_search
    read_cost = read * rates.cache_read if read else 0.0
    write_cost = (written - hourly) * rates.cache_write if written else 0.0
    write_cost += hourly * rates.cache_write_1h if hourly else 0.0
    output_cost = (spoken * rates.output if spoken else 0.0) + thinking
    total_cost = input_cost + read_cost + write_cost + output_cost + media
    if isnan(total_cost):
        return None
    return Cost(
        total=total_cost / _MILLION,
        input=input_cost / _MILLION,
        cache_read=read_cost / _MILLION,
        cache_write=write_cost / _MILLION,
        output=output_cost / _MILLION,
        reasoning=thinking / _MILLION,
        media=media / _MILLION,
        pricing_version=tariff.version,
        source=tariff.source,
    )


def _price_passes(usage: Usage, tariff: Tariff, at: float) -> Cost | None:
    """Each pass at the rates of its model; what was thought is part of the answering model's."""
    thought = usage.reasoning_tokens or 0
    costs = []
    for each in usage.passes:
        own = 0 if each.model else min(thought, each.usage.output_tokens)
        thought -= own
        part = replace(each.usage, reasoning_tokens=own, service_tier=usage.service_tier)
        costs.append(price_usage(part, tariff.of(each.model), at))
    if usage.web_searches:
        searches = Usage(web_searches=usage.web_searches, service_tier=usage.service_tier)
        costs.append(price_usage(searches, tariff, at))
    return sum_costs(costs)


def _parts_of(usage: Usage) -> tuple[int, int, int, int]:
    """The tokens that were read from a cache, written, written for an hour, and of reasoning."""
    read = min(usage.cache_read_tokens or 0, usage.input_tokens)
    written = min(usage.cache_write_tokens or 0, usage.input_tokens - read)
    hourly = min(usage.cache_write_1h_tokens or 0, written)
    return read, written, hourly, min(usage.reasoning_tokens or 0, usage.output_tokens)


_read_media = attrgetter(
    *("images", "characters", "audio_seconds", "video_seconds", "input_audio_tokens"),
    *("cache_read_audio_tokens", "input_image_tokens", "output_audio_tokens"),
    "output_image_tokens",
)
_NO_MEDIA = (None,) * 9
_UNITS = (
    ("images", "per_image"),
    ("characters", "per_million_characters"),
    ("audio_seconds", "per_audio_hour"),
    ("video_seconds", "per_video_second"),
)
"""What is paid for without tokens, and its rates."""


def _has_price(usage: Usage, rates: Rates | None) -> bool:
    """Whether each thing that was made without tokens has a rate."""
    return all(
        not getattr(usage, count) or getattr(rates, rate, None) is not None
        for count, rate in _UNITS
    )


def _price_media(
    usage: Usage, rates: Rates, fresh: int, read: int, spoken: int
) -> tuple[float, int, int, int]:
    """
    The price of media with a rate of their own, and the other tokens: fresh, read and output.

    Where the provider does not say which tokens were cached, text comes first.
    """
    cost = (usage.images or 0) * (rates.per_image or 0.0) * _MILLION
    cost += (usage.video_seconds or 0.0) * (rates.per_video_second or 0.0) * _MILLION
    cost += (usage.audio_seconds or 0.0) * (rates.per_audio_hour or 0.0) * _MILLION / _HOUR
    cost += (usage.characters or 0) * (rates.per_million_characters or 0.0)
    audio = usage.input_audio_tokens or 0
    cached = min(read, audio, max(usage.cache_read_audio_tokens or 0, audio - fresh))
    if rates.cache_read_audio is not None:
        read -= cached
        cost += cached * rates.cache_read_audio
    if rates.input_audio is not None:
        heard = min(audio - cached, fresh)
        fresh -= heard
        cost += heard * rates.input_audio
    if rates.input_image is not None:
        seen = min(usage.input_image_tokens or 0, fresh)
        fresh -= seen
        cost += seen * rates.input_image
    for count, rate in (
        (usage.output_audio_tokens, rates.output_audio),
        (usage.output_image_tokens, rates.output_image),
    ):
        if rate is not None:
            made = min(count or 0, spoken)
            spoken -= made
            cost += made * rate
    return cost, fresh, read, spoken


def merge_rates(base: Rates, changes: Rates) -> Rates:
    """The rates of `base`, with those that `changes` has in their place."""
    given = {name: rate for name, rate in asdict(changes).items() if rate is not None}
    return replace(base, **given)


def first_known(*rates: float | None) -> float:
    """The first rate that is not None; nan if there is none."""
    return next((rate for rate in rates if rate is not None), nan)
