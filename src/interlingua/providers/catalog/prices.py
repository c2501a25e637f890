"""The prices of models, as data. Dollars per million tokens, except where a name says otherwise."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, date, datetime, time
from typing import Annotated, TypeAlias

from msgspec import Meta

from interlingua.spec.content import Record

Dollars: TypeAlias = Annotated[float, Meta(ge=0, le=1e9)]
"""An amount. The limits also exclude NaN and infinity, which YAML can write."""
Weekday: TypeAlias = Annotated[int, Meta(ge=1, le=7)]
"""A day of the week; 1 is Monday."""
TimeOfDay: TypeAlias = Annotated[time, Meta(tz=False)]
"""A time in UTC; it is written without a time zone."""


class Rates(Record, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What each kind of token costs. None means that there is no rate of its own, not 0."""

    input: Dollars | None = None
    """Dollars per million input tokens."""
    output: Dollars | None = None
    """Dollars per million output tokens."""
    cache_read: Dollars | None = None
    """Dollars per million tokens that are read from a cache."""
    cache_write: Dollars | None = None
    """For tokens that are written to a cache for five minutes, or for the host's only time."""
    cache_write_1h: Dollars | None = None
    """For tokens that are written to a cache for an hour."""
    input_audio: Dollars | None = None
    """For tokens of audio in the input."""
    cache_read_audio: Dollars | None = None
    """For tokens of audio that are read from a cache."""
    output_audio: Dollars | None = None
    """For tokens of audio in the output."""
    input_image: Dollars | None = None
    """For tokens of images in the input."""
    cache_read_image: Dollars | None = None
    """For tokens of images that are read from a cache."""
    output_image: Dollars | None = None
    """For tokens of images in the output."""
    input_video: Dollars | None = None
    """For tokens of video in the input."""
    output_video: Dollars | None = None
    """For tokens of video in the output."""
    reasoning: Dollars | None = None
    """For tokens of thinking, if their rate is not that of `output`."""
    per_request: Dollars | None = None
    """Dollars per call."""
    per_web_search: Dollars | None = None
    """Dollars per search that the provider made."""
    per_image: Dollars | None = None
    """Dollars per image that is made."""
    per_video_second: Dollars | None = None
    """Dollars per second of video that is made."""
    per_audio_hour: Dollars | None = None
    """Dollars per hour of audio that is transcribed."""
    per_million_characters: Dollars | None = None
    """Dollars per million characters that are spoken."""


class LongContext(Record, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The rates of a call with a long input; they hold for all of its tokens."""

    above: int
    """The number of input tokens above which they hold."""
    rates: Rates
    """The rates."""


class Price(Record, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """
    The rates of one model in one tier of service, from a date on or in some hours.

    Of the prices of a tier, the last one that holds at the time of a call is used.
    """

    rates: Rates
    """What each kind of token costs."""
    tier: str = "standard"
    """`standard`, `batch`, `flex`, `priority`, or a tier of one provider, such as `fast`."""
    long_context: tuple[LongContext, ...] = ()
    """The rates of long inputs, the smallest limit first."""
    starts: date | None = None
    """The first day (UTC) of these rates."""
    hours: tuple[TimeOfDay, TimeOfDay] | None = None
    """The hours of a day (UTC) in which they hold; the end, which may be after midnight, is out."""
    days: tuple[Weekday, ...] = ()
    """The days of the week (UTC, 1 is Monday) on which they hold; empty for all."""

    def holds(self, moment: datetime) -> bool:
        """Tell whether these rates are charged at a moment, which has a time zone."""
        utc = moment.astimezone(UTC)
        if self.starts is not None and utc.date() < self.starts:
            return False
        if self.days and utc.isoweekday() not in self.days:
            return False
        if self.hours is None:
            return True
        start, end = self.hours
        now = utc.time()
        return start <= now < end if start <= end else now >= start or now < end


def price_at(prices: Iterable[Price], moment: datetime, tier: str = "standard") -> Price | None:
    """The price of a tier at a moment: the last one that holds; None if there is none."""
    holding = [price for price in prices if price.tier == tier and price.holds(moment)]
    return holding[-1] if holding else None


class MediaVariant(Record, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A size or quality in which a model makes images or video, and its price in dollars."""

    size: str | None = None
    """The size, such as `1024x1536`, `2K` or `1080p`."""
    quality: str | None = None
    """The provider's name of the quality."""
    per_image: Dollars | None = None
    """Dollars per image."""
    per_video_second: Dollars | None = None
    """Dollars per second of video."""
