"""The price that holds at a moment."""

from datetime import UTC, date, datetime, time, timedelta, timezone

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlingua.providers.catalog.models import find_model
from interlingua.providers.catalog.prices import Price, Rates, price_at


def price(amount, **fields):
    return Price(rates=Rates(input=amount), **fields)


moments = st.datetimes(datetime(2026, 1, 1), datetime(2027, 1, 1))  # noqa: DTZ001
starts = st.none() | st.dates(date(2026, 1, 1), date(2027, 1, 1))


@given(st.lists(starts, max_size=5), moments, st.integers(-12, 14))
def test_the_last_price_that_has_begun(days, moment, offset):
    """In the order of the list, by the day in UTC, wherever the clock is."""
    prices = [price(number, starts=day) for number, day in enumerate(days)]
    begun = [one for one in prices if one.starts is None or one.starts <= moment.date()]
    aware = moment.replace(tzinfo=UTC).astimezone(timezone(timedelta(hours=offset)))

    assert price_at(prices, aware) == (begun[-1] if begun else None)


@given(st.times(), st.times(), moments)
def test_hours(start, end, moment):
    """From the first to before the second, also over midnight."""
    now = moment.time()
    inside = start <= now < end if start <= end else not end <= now < start

    assert price(1, hours=(start, end)).holds(moment.replace(tzinfo=UTC)) is inside


@given(st.sets(st.integers(1, 7)), moments)
def test_days(days, moment):
    """On these days of the week; on all if there are none."""
    one = price(1, days=tuple(sorted(days)))

    assert one.holds(moment.replace(tzinfo=UTC)) is (not days or moment.isoweekday() in days)


def test_a_tier_has_its_own_prices():
    """And none of another tier."""
    prices = [price(2), price(1, tier="batch"), price(3, starts=date(2026, 5, 1))]
    moment = datetime(2026, 11, 16, tzinfo=UTC)

    assert price_at(prices, moment).rates.input == 3
    assert price_at(prices, moment, "batch").rates.input == 1
    assert price_at(prices, moment, "flex") is None


def test_prices_come_back_from_json():
    """With dates, hours and days."""
    one = price(2, starts=date(2026, 5, 1), hours=(time(1), time(4)), days=(1, 2))

    assert msgspec.json.decode(msgspec.json.encode(one), type=Price) == one
    assert msgspec.json.decode(msgspec.json.encode(price(1))) == {"rates": {"input": 1}}


@pytest.mark.parametrize(
    ("model", "moment", "tier", "expected"),
    [
        ("deepseek-v4-pro", datetime(2026, 8, 1, 2, tzinfo=UTC), "standard", 0.435),
        ("deepseek-v4-pro", datetime(2026, 11, 16, 0, 59, tzinfo=UTC), "standard", 0.66),
        ("deepseek-v4-pro", datetime(2026, 11, 16, 1, tzinfo=UTC), "standard", 1.32),
        ("deepseek-v4-pro", datetime(2026, 11, 16, 4, tzinfo=UTC), "standard", 0.66),
        ("deepseek-v4-pro", datetime(2026, 11, 15, 2, tzinfo=UTC), "standard", 0.66),  # a Sunday
        ("gpt-5.6-sol", datetime(2026, 8, 20, tzinfo=UTC), "standard", 5),
        ("gpt-5.6-sol", datetime(2026, 8, 21, tzinfo=UTC), "standard", 4),
        ("gpt-5.6-sol", datetime(2026, 11, 16, tzinfo=UTC), "flex", 2),
        ("gpt-5.6-sol", datetime(2026, 11, 16, tzinfo=UTC), "priority", 8),
        ("gemini-4-argon", datetime(2026, 11, 30, tzinfo=UTC), "batch", 1),
        ("gemini-4-argon", datetime(2026, 12, 1, tzinfo=UTC), "batch", 2),
        ("gemini-3.5-flash", datetime(2026, 11, 16, tzinfo=UTC), "flex", 0.75),
        ("claude-opus-5", datetime(2026, 11, 16, tzinfo=UTC), "fast", 10),
        ("claude-opus-5", datetime(2026, 11, 16, tzinfo=UTC), "batch", 2.5),
    ],
)
def test_prices_of_the_catalog(model, moment, tier, expected):
    """As their providers published them."""
    assert price_at(find_model(model).prices, moment, tier).rates.input == expected


def test_a_write_that_is_kept_for_an_hour():
    """It costs twice the input."""
    (standard,) = [one for one in find_model("claude-opus-5-5").prices if one.tier == "standard"]

    assert standard.rates.cache_write_1h == 2 * standard.rates.input == 8
    assert standard.rates.cache_write == 1.25 * standard.rates.input
