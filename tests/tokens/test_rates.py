"""What each maker's models count."""

import pytest

from interlingua.tokens.fitted import FITTED
from interlingua.tokens.rates import ROWS, START, Rates, find_rates, rates_for


def test_rows_are_found_by_their_own_name():
    """No row is hidden by another."""
    assert all(
        find_rates((key, *place.split("/")), ROWS) is ROWS[place, key] for place, key in ROWS
    )


@pytest.mark.parametrize(
    ("name", "row"),
    [
        ("claude-sonnet-4-20250514", "claude-sonnet-4"),
        ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", "claude-sonnet-4-5"),
        ("anthropic/claude-opus-4.7", "claude-opus-4-7"),
        ("claude-fable-5-2", "claude"),
        ("google/gemini-2.0-flash-001", "gemini-2-0"),
        ("gemini-2.5-pro", "gemini-2"),
        ("openai/gpt-oss-120b", "gpt-oss"),
        ("Magistral-medium", "stral"),
        ("meta-llama/llama-4-scout", "llama-4"),
    ],
)
def test_ids_of_hosts_are_understood(name, row):
    """An id may carry its maker, a region or a date, and dots for dashes."""
    assert rates_for(name) is ROWS["", row]


@pytest.mark.parametrize("name", ["", "o3", "in-house-7", "openai_responses"])
def test_openai_is_the_default(name):
    """What says nothing is counted as OpenAI counts."""
    assert rates_for(name) is ROWS["", ""]


def test_the_first_name_that_says_something_counts():
    """A model's id comes before the dialect it is spoken to in."""
    assert rates_for("claude-opus-5", "openai_chat") is ROWS["", "claude"]
    assert rates_for("in-house-7", "gemini_generate") is ROWS["", "gemini"]


def test_a_host_may_count_otherwise():
    """A row of a host, of a format, or of both comes before the row of the model alone."""
    here, everywhere, both = Rates(text=1), Rates(text=2), Rates(text=3)
    rows = {
        ("", ""): Rates(),
        ("", "one"): everywhere,
        ("host", "one"): here,
        ("host/chat", "one"): both,
    }

    assert find_rates(("one-2", "chat", "other"), rows) is everywhere
    assert find_rates(("one-2", "", "host"), rows) is here
    assert find_rates(("one-2", "chat", "host"), rows) is both
    assert find_rates(("host-one", "", ""), rows) is everywhere


def test_fitted_rates_are_rates_of_known_models():
    """The fitted data change the start values of a row, and nothing else."""
    assert FITTED
    for (_, key), values in FITTED.items():
        assert key in START
        assert set(values) <= set(Rates.__struct_fields__)
