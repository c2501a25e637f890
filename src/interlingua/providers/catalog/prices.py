"""The prices of models, as data. Dollars per million tokens, except where a name says otherwise."""

from __future__ import annotations

from datetime import date, time

from interlingua.spec.content import Record


class Rates(Record, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What each kind of token costs. None means that there is no rate of its own, not 0."""

    input: float | None = None
    output: float | None = None
    cache_read: float | None = None
    cache_write: float | None = None
    """For a write that is kept for five minutes, or for a host that has only one kind."""
    cache_write_1h: float | None = None
    input_audio: float | None = None
    cache_read_audio: float | None = None
    output_audio: float | None = None
    input_image: float | None = None
    output_image: float | None = None
    reasoning: float | None = None
    """If thinking costs another rate than `output`."""
    per_request: float | None = None
    """Dollars per call."""
    per_image: float | None = None
    """Dollars per image that is made."""
    per_video_second: float | None = None
    """Dollars per second of video that is made."""


class LongContext(Record, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The rates of a call with more than `above` input tokens; they hold for all of its tokens."""

    above: int
    rates: Rates


class Price(Record, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The rates of one model in one tier of service, in a time."""

    rates: Rates
    tier: str = "standard"
    """`standard`, `batch`, `flex` or `priority`."""
    long_context: tuple[LongContext, ...] = ()
    """In ascending order."""
    starts: date | None = None
    """The first day (UTC) of these rates."""
    hours: tuple[time, time] | None = None
    """The hours of a day (UTC) in which they hold, where a host has cheaper hours."""
