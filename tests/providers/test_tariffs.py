"""Which rates a call has."""

import sys
import threading

import pytest

from interlingua.catalog import get_model_info, update
from interlingua.providers.catalog.models import reset_table, table
from interlingua.providers.tariffs import Seller, Tariffs

OPENAI = Seller("openai", "openai")


def test_the_served_model_prices_the_call():
    """By its id, an alias or the dated id of a version; if it is unknown, by what was asked for."""
    tariffs = Tariffs()
    small, large = (get_model_info(name).prices for name in ("gpt-5-mini", "gpt-5.2"))

    assert small != large
    assert tariffs[OPENAI, "gpt-5-mini", "gpt-5.2"].prices == small
    assert tariffs[OPENAI, "gpt-5-mini-2031-01-01", "gpt-5.2"].prices == small
    assert tariffs[OPENAI, "a-name-of-tomorrow", "gpt-5.2"].prices == large
    assert tariffs[OPENAI, "", "gpt-5.2"].prices == large
    assert tariffs[OPENAI, "gpt-5.2", ""].version == table().version


@pytest.mark.parametrize(
    ("seller", "model"),
    [
        (OPENAI, "a-name-of-tomorrow"),
        (OPENAI, "ft:gpt-5.2:acme::1"),  # costs more than its base
        (Seller("openai_compatible"), "gpt-5.2"),
        (Seller("groq"), "gpt-5.2"),
    ],
)
def test_unknown(seller, model):
    """A price is of one provider; another's is not used."""
    assert Tariffs()[seller, model, model] is None


def test_an_adapter_under_another_name():
    """The catalog knows the provider's row, the caller the name in the client."""
    seller = Seller("openai", "work")
    tariffs = Tariffs({"work:gpt-5.2": {"input": 7}})

    assert tariffs[seller, "gpt-5.2", "gpt-5.2"].prices[0].rates.input == 7
    assert tariffs[OPENAI, "gpt-5.2", "gpt-5.2"].prices[0].rates.input != 7


def test_other_tiers_stay():
    """Rates that are given are those of the standard tier."""
    given = Tariffs({"gpt-5.2": {"input": 7}})[OPENAI, "gpt-5.2", "gpt-5.2"].prices
    known = get_model_info("gpt-5.2").prices

    assert [price.tier for price in given] == [price.tier for price in known]
    assert [price for price in given if price.tier != "standard"] == [
        price for price in known if price.tier != "standard"
    ]


def test_a_change_of_the_catalog_is_seen(tmp_path):
    """Prices that were looked up before change with it."""
    tariffs = Tariffs()
    before = tariffs[OPENAI, "gpt-5.2", "gpt-5.2"]
    file = tmp_path / "models.json"
    file.write_text(
        '{"models": [{"id": "gpt-5.2", "provider": "openai", '
        '"prices": [{"rates": {"input": 7, "output": 9}}]}]}'
    )
    try:
        update(file)
        after = tariffs[OPENAI, "gpt-5.2", "gpt-5.2"]
    finally:
        reset_table()

    assert after.prices[0].rates.input == 7
    assert after.version != before.version


def test_a_change_during_a_lookup_is_seen(tmp_path):
    """Another thread changes the catalog: the old price is not cached."""
    file = tmp_path / "models.json"
    file.write_text(
        '{"models": [{"id": "gpt-5.2", "provider": "openai", '
        '"prices": [{"rates": {"input": 7, "output": 9}}]}]}'
    )

    class Slow(Tariffs):
        def _find(self, *key):
            found = super()._find(*key)
            update(file)
            return found

    tariffs = Slow()
    try:
        before = tariffs[OPENAI, "gpt-5.2", "gpt-5.2"]
        after = tariffs[OPENAI, "gpt-5.2", "gpt-5.2"]
    finally:
        reset_table()

    assert before.prices[0].rates.input != 7
    assert after.prices[0].rates.input == 7


def test_the_catalog_changes_while_clients_are_made():
    """In other threads; each has its prices."""
    interval, ended, made = sys.getswitchinterval(), threading.Event(), []

    def make():
        while not ended.is_set():
            made[:] = [*made[-300:], Tariffs()]

    thread = threading.Thread(target=make)
    sys.setswitchinterval(1e-6)
    thread.start()
    try:
        for _ in range(100):
            reset_table()
    finally:
        ended.set()
        thread.join()
        sys.setswitchinterval(interval)

    assert made


def test_versions_of_given_prices():
    """Equal prices have the same one, others another."""
    one, same = Tariffs({"m": {"input": 1}}), Tariffs({"m": {"input": 1.0}})

    assert one.version == same.version != Tariffs({"m": {"input": 2}}).version
    assert one.with_prices({"m": {"output": 1}}).version not in (one.version, "")
    assert Tariffs().version == ""


def test_it_does_not_grow_without_end():
    """Servers choose the names of models."""
    tariffs = Tariffs()
    for number in range(2000):
        assert tariffs[OPENAI, f"m{number}", ""] is None

    assert len(tariffs) < 1000
