"""What every store does."""

import pytest

from interlingua.errors import ConfigurationError
from interlingua.stores import Limit, Refused, Reservation, Store

MINUTE = 60.0


def limit(key="calls", maximum=3, amount=1, **fields):
    return Limit(key=key, maximum=maximum, amount=amount, **fields)


def per_minute(maximum=3, amount=1, **fields):
    return limit("calls", maximum, amount, period=MINUTE, **fields)


def money(amount, maximum=1.0, **fields):
    return limit("usd", maximum, amount, mode="reserve", **fields)


# Taking.


def test_it_is_a_store(store):
    """The type checkers' contract holds at run time, too."""
    assert isinstance(store.store, Store)


def test_up_to_the_maximum(store):
    """What fits is taken, and what does not is refused with what counts."""
    taken = [store.reserve([limit()]) for _ in range(3)]

    assert len({reservation.id for reservation in taken}) == 3
    assert taken[0].limits == (limit(),)
    assert taken[0].taken_at == pytest.approx(store.clock(), abs=1e-6)
    assert store.reserve([limit()]) == Refused(key="calls", used=3, maximum=3)
    assert store.used("calls") == 3
    assert store.used("other") == 0


def test_all_or_nothing(store):
    """One amount that does not fit leaves every key as it was."""
    refused = store.reserve([limit("a"), limit("b", maximum=3, amount=4), limit("c")])

    assert refused == Refused(key="b", used=0, maximum=3)
    assert [store.used(key) for key in "abc"] == [0, 0, 0]


def test_nothing_to_take(store):
    """A call without limits is admitted."""
    assert isinstance(store.reserve([]), Reservation)


def test_an_amount_of_zero_asks(store):
    """It is refused only when more has been used than the maximum."""
    reservation = store.reserve([money(1.0)])

    assert isinstance(store.reserve([money(0)]), Reservation)
    store.settle(reservation, {"usd": 1.5})
    assert isinstance(store.reserve([money(0)]), Refused)


def test_fractions_add_up(store):
    """Three times a tenth fits in three tenths."""
    for _ in range(3):
        assert isinstance(store.reserve([money(0.1, maximum=0.3)]), Reservation)
    assert isinstance(store.reserve([money(0.001, maximum=0.3)]), Refused)


def test_the_key_that_waits_longest(store):
    """Of several that are full, the refusal names the one that decides, with its wait."""
    hour = limit("hour", 1, period=3600)
    minute = limit("minute", 1, period=60)
    store.reserve([minute, hour])

    refused = store.reserve([minute, hour])

    assert refused.key == "hour"
    assert 3600 <= refused.retry_after <= 3660
    assert store.reserve([minute, hour, limit("never", 1, 2)]) == Refused(
        key="never", used=0, maximum=1
    )


def test_keys_count_by_period(store):
    """One key may have a limit per minute and one per hour."""
    both = [per_minute(3), limit("calls", 4, period=3600)]
    for _ in range(3):
        store.reserve(both)
    store.advance(61.1)

    assert isinstance(store.reserve(both), Reservation)
    assert store.reserve(both).maximum == 4
    assert store.used("calls", MINUTE) == 1
    assert store.used("calls", 3600) == 4


@pytest.mark.parametrize(
    "wrong",
    [
        {"amount": -1},
        {"amount": float("nan")},
        {"maximum": float("inf")},
        {"period": 0},
        {"period": 1e10},
        {"burst": -1},
        {"ttl": 0},
        {"ttl": 1e10},
    ],
)
def test_wrong_limits(wrong):
    """A number that cannot be counted is an error where it is written."""
    with pytest.raises(ConfigurationError, match="'calls'"):
        Limit(**{"key": "calls", "maximum": 1, **wrong})


def test_wrong_calls(store):
    """So are two limits that would share their amounts, and times and amounts below zero."""
    with pytest.raises(ConfigurationError, match="same key and period"):
        store.reserve([limit(), limit(maximum=9)])
    for lease in (0, 1e10, float("inf"), float("nan")):
        with pytest.raises(ConfigurationError, match="lease"):
            store.reserve([limit()], lease=lease)
        with pytest.raises(ConfigurationError, match="lease"):
            store.renew(store.reserve([limit("renewed", maximum=9)]), lease)
    with pytest.raises(ConfigurationError, match="'calls'"):
        store.settle(store.reserve([limit()]), {"calls": -1})
    for call in (store.put, store.append):
        with pytest.raises(ConfigurationError, match="ttl"):
            call("key", b"", ttl=0)
    for ttl in (-1, 1e10):
        with pytest.raises(ConfigurationError, match="ttl"):
            store.add("key", 1, ttl=ttl)
    with pytest.raises(ConfigurationError, match="counter"):
        store.add("key", float("nan"))
    assert store.add("key", 0) == 0


# Periods.


def test_a_period_frees_whole_slots(store):
    """An amount leaves a period and at most a sixtieth later, and not before."""
    store.reserve([per_minute(1)])
    store.advance(60)
    assert isinstance(store.reserve([per_minute(1)]), Refused)
    store.advance(1)
    assert isinstance(store.reserve([per_minute(1)]), Reservation)


@pytest.mark.parametrize("burst", [None, 1])
def test_a_clock_that_is_set_back(store, burst):
    """What was taken counts for one more period, not until the clock is where it was."""
    wanted = [per_minute(2, burst=burst)]
    store.reserve(wanted)
    store.advance(-3600)
    assert store.used("calls", MINUTE) == 1
    if burst is not None:
        assert 28 <= store.reserve(wanted).retry_after <= 31
        store.advance(31)
    assert isinstance(store.reserve(wanted), Reservation)
    refused = store.reserve(wanted)
    assert refused.used == 2
    assert refused.retry_after <= 62
    store.advance(refused.retry_after)
    assert isinstance(store.reserve(wanted), Reservation)
    store.advance(62)
    assert store.used("calls", MINUTE) == 0


@pytest.mark.parametrize("period", [0.5, 1, 60, 86_400, 7.3])
@pytest.mark.parametrize("offset", [0, 0.123456, 0.999999])
def test_waiting_as_told_is_enough(store, period, offset):
    """After `retry_after` the amount fits; a microsecond earlier it does not."""
    store.advance(offset)
    for amount in (2, 1, 4):
        store.reserve([limit("k", 7, amount, period=period)])
        store.advance(period / 7)
    wanted = [limit("k", 7, 3, period=period)]
    refused = store.reserve(wanted)

    store.advance(refused.retry_after - 2e-6)
    assert isinstance(store.reserve(wanted), Refused)
    store.advance(2e-6)
    assert isinstance(store.reserve(wanted), Reservation)


def test_spent_amounts_are_corrected_in_their_time(store):
    """Settling a `spend` changes the amount where it was taken, and nothing once that has left."""
    early = store.reserve([per_minute(10, 5)])
    store.advance(30)
    late = store.reserve([per_minute(10, 5)])
    store.advance(10)

    assert store.settle(early, {"calls": 2})
    assert store.used("calls", MINUTE) == 7
    store.advance(22)
    assert store.used("calls", MINUTE) == 5
    store.advance(30)
    assert store.used("calls", MINUTE) == 0
    assert store.settle(late, {"calls": 9})
    assert store.used("calls", MINUTE) == 0


def test_reserved_money_counts_from_its_settlement(store):
    """However long the call took, what it cost counts for a whole period from its end."""
    reservation = store.reserve([money(0.5, period=MINUTE)], lease=600)
    store.advance(300)
    assert store.used("usd", MINUTE) == 0.5
    store.settle(reservation, {"usd": 0.75})
    store.advance(59)
    assert store.used("usd", MINUTE) == 0.75
    store.advance(2)
    assert store.used("usd", MINUTE) == 0


def test_totals_with_a_date_are_forgotten(store):
    """A total with `ttl` ends that long after its last change."""
    dated = money(0.5, ttl=100)
    store.settle(store.reserve([dated]), {})
    store.advance(99)
    assert store.used("usd") == 0.5
    store.settle(store.reserve([dated]), {})
    store.advance(99)
    assert store.used("usd") == 1.0
    store.advance(1)
    assert store.used("usd") == 0


# Pacing.


def test_a_burst_is_paced(store):
    """With `burst` one may take so much at once; then one has to wait for each."""
    paced = [per_minute(60, burst=2)]

    assert isinstance(store.reserve(paced), Reservation)
    assert isinstance(store.reserve(paced), Reservation)
    assert store.reserve(paced).retry_after == pytest.approx(1.0)
    store.advance(1)
    assert isinstance(store.reserve(paced), Reservation)
    assert isinstance(store.reserve(paced), Refused)


def test_more_than_a_burst(store):
    """An amount above the burst is taken when nothing is owed, and is then paced out."""
    large = [per_minute(60, 30, burst=2)]

    assert isinstance(store.reserve(large), Reservation)
    assert store.reserve([per_minute(60, burst=2)]).retry_after == pytest.approx(29.0)
    assert store.reserve(large).retry_after == pytest.approx(30.0)


def test_the_maximum_holds_with_a_burst(store):
    """A burst at the end of a minute and one at its beginning are one too many."""
    wanted = [per_minute(4, burst=4)]
    admitted = []
    for second in range(240):
        if isinstance(store.reserve(wanted), Reservation):
            admitted.append(second)
        store.advance(1)

    assert len(admitted) >= 12
    assert all(later - first >= 60 for first, later in zip(admitted, admitted[4:], strict=False))


def test_settling_corrects_the_pace(store):
    """What was not used need not be waited for."""
    reservation = store.reserve([per_minute(60, 10, burst=10)])
    assert store.reserve([per_minute(60, 10, burst=10)]).retry_after == pytest.approx(10.0)
    store.settle(reservation, {"calls": 4})
    assert store.reserve([per_minute(60, 10, burst=10)]).retry_after == pytest.approx(4.0)


def test_the_pace_of_what_counts_no_longer(store):
    """It is not made slower by a late settlement, whether the store has forgotten it or not."""
    wanted = [per_minute(60, 10, burst=10)]
    reservation = store.reserve(wanted)
    store.advance(100)

    assert store.settle(reservation, {"calls": 400})
    assert isinstance(store.reserve(wanted), Reservation)


def test_amounts_beyond_all_measure(store):
    """A call that used more than can be paced in a century is counted, and nothing fails."""
    wanted = [limit("k", 1, period=86_400, burst=1)]
    store.settle(store.reserve(wanted), {"k": 1e200})

    assert store.used("k", 86_400) == 1e200
    assert store.reserve(wanted).retry_after > 1e9


def test_a_total_that_began_anew(store):
    """What was taken before a total was forgotten is not corrected in the next one."""
    dated = limit("k", 9, 5, ttl=50)
    early = store.reserve([dated])
    store.advance(51)
    store.reserve([limit("k", 9, 2, ttl=50)])
    assert store.settle(early, {"k": 0})
    assert store.used("k") == 2


# Leases.


@pytest.mark.parametrize(("mode", "after"), [("spend", 2), ("reserve", 2), ("hold", 0)])
def test_settled(store, mode, after):
    """Once: then the real amount counts, or nothing where only the call itself counts."""
    reservation = store.reserve([limit(amount=3, mode=mode)])

    assert store.settle(reservation, {"calls": 2, "unknown": 9})
    assert store.used("calls") == after
    assert not store.settle(reservation, {"calls": 1})
    assert store.used("calls") == after
    assert not store.renew(reservation, 60)


@pytest.mark.parametrize(("mode", "after"), [("spend", 3), ("reserve", 3), ("hold", 0)])
def test_settled_as_taken(store, mode, after):
    """A key that is not named keeps its amount."""
    store.settle(store.reserve([limit(amount=3, mode=mode)]), {})

    assert store.used("calls") == after


@pytest.mark.parametrize(("mode", "after"), [("spend", 3), ("reserve", 0), ("hold", 0)])
def test_the_end_of_a_lease(store, mode, after):
    """What a crashed call took is given back, except what was spent."""
    reservation = store.reserve([limit(amount=3, mode=mode)], lease=10)
    store.advance(9.9)
    assert store.used("calls") == 3
    store.advance(0.1)
    assert store.used("calls") == after
    assert not store.renew(reservation, 60)


@pytest.mark.parametrize(("mode", "after"), [("spend", 5), ("reserve", 5), ("hold", 0)])
def test_settled_after_its_lease(store, mode, after):
    """What happened is counted, also if the call took longer than its lease."""
    reservation = store.reserve([limit(maximum=3, amount=3, mode=mode)], lease=10)
    store.advance(11)
    store.used("calls")

    assert store.settle(reservation, {"calls": 5})
    assert store.used("calls") == after


def test_settled_a_day_later(store):
    """A reservation is forgotten a day after its lease."""
    reservation = store.reserve([money(0.5)], lease=10)
    store.advance(86_411)

    assert not store.settle(reservation, {"usd": 0.5})


def test_a_lease_is_renewed(store):
    """It ends later; a shorter one does not end it earlier."""
    reservation = store.reserve([limit(mode="hold"), limit("b", mode="reserve")], lease=10)
    store.advance(8)
    assert store.renew(reservation, 10)
    assert store.renew(reservation, 1)
    store.advance(9)
    assert [store.used("calls"), store.used("b")] == [1, 1]
    store.advance(1)
    assert [store.used("calls"), store.used("b")] == [0, 0]


@pytest.mark.parametrize("mode", ["reserve", "hold"])
def test_waiting_for_leases(store, mode):
    """A refusal says when enough leases will have ended."""
    for lease in (30, 10, 20):
        store.reserve([limit(mode=mode)], lease=lease)

    assert store.reserve([limit(mode=mode)]).retry_after == pytest.approx(10)
    assert store.reserve([limit(mode=mode, amount=2)]).retry_after == pytest.approx(20)


# Values, counters, lists.


def test_values(store):
    """They are kept as they are; `only_new` does not replace."""
    value = bytes(range(256))

    assert store.get("k") is None
    assert store.put("k", value)
    assert store.get("k") == value
    assert not store.put("k", b"2", only_new=True)
    assert store.put("k", b"")
    assert store.get("k") == b""
    assert store.delete("k")
    assert not store.delete("k")
    assert store.put("k", b"3", only_new=True)
    assert store.get("k") == b"3"


def test_values_end(store):
    """A value with a time to live is gone after it; a later one without it stays."""
    store.put("k", b"1", ttl=50)
    store.put("stays", b"1", ttl=50)
    store.put("stays", b"2")
    assert store.get("k") == b"1"
    store.pass_ttl(51)

    assert store.get("k") is None
    assert not store.delete("k")
    assert store.put("k", b"2", only_new=True)
    assert store.get("stays") == b"2"


def test_counters(store):
    """They start at 0, may go below it, and end when the first call said."""
    assert store.add("n", 2) == 2
    assert store.add("n", -2.5) == -0.5
    assert store.add("m", 1, ttl=50) == 1
    assert store.add("m", 1, ttl=60) == 2
    store.pass_ttl(51)
    assert store.add("m", 1) == 1
    assert store.delete("m")
    assert store.add("m", 0) == 0


def test_lists(store):
    """Values stay in order, and end when the first call said."""
    assert [store.append("l", value) for value in (b"a", b"", b"c")] == [1, 2, 3]
    assert store.items("l") == [b"a", b"", b"c"]
    assert store.items("l", 2) == [b"c"]
    assert store.items("l", 3) == []
    assert store.items("other") == []
    assert store.append("m", b"a", ttl=50) == 1
    assert store.append("m", b"b", ttl=60) == 2
    store.pass_ttl(51)
    assert store.items("m") == []
    assert store.append("m", b"c") == 1
    assert store.delete("l")
    assert store.items("l") == []


def test_what_has_ended_is_gone_before_any_cleaning(store):
    """What ended a moment ago is gone: a list, counter or value of that key begins anew."""
    store.append("l", b"a", ttl=1)
    store.append("l", b"b", ttl=1)
    store.add("n", 5, ttl=1)
    store.put("v", b"a", ttl=1)
    store.pass_ttl(2)

    assert store.append("l", b"c", ttl=50) == 1
    assert store.items("l") == [b"c"]
    assert store.append("l", b"d") == 2
    assert store.items("l") == [b"c", b"d"]
    assert store.add("n", 1, ttl=50) == 1
    assert store.put("v", b"b", only_new=True)
    store.pass_ttl(10)
    assert store.items("l") == [b"c", b"d"]  # the new ones have times of their own


def test_kinds_are_apart(store):
    """A value, a counter, a list and a limit may have one key."""
    store.put("k", b"v")
    store.add("k", 5)
    store.append("k", b"i")
    store.reserve([limit("k")])

    assert store.get("k") == b"v"
    assert store.add("k", 0) == 5
    assert store.items("k") == [b"i"]
    assert store.used("k") == 1
    assert store.delete("k")
    assert (store.get("k"), store.add("k", 0), store.items("k")) == (None, 0, [])
    assert store.used("k") == 1


@pytest.mark.parametrize("key", ["", "ä:{}*", "a|b\n\x00c", "k" * 2000, "half \ud800 pair"])
def test_any_key(store, key):
    """A key is any text, even one that cannot be encoded."""
    store.put(key, b"v")
    store.add(key, 1)
    store.append(key, b"i")
    store.reserve([limit(key, period=60), limit(key, mode="hold")])

    assert store.get(key) == b"v"
    assert store.items(key) == [b"i"]
    assert store.add(key, 1) == 2
    assert store.used(key, 60) == store.used(key) == 1
    assert store.delete(key)
    assert store.get(key) is None


def test_closing_twice(store):
    """Closing is idempotent."""
    store.put("k", b"v")
    store.close()
    store.close()
