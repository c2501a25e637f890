"""What each maker's models count."""

import pytest

from interlingua.tokens.rates import ROWS, START, find_rates, rates_for


def test_rows_are_found_by_their_own_name():
    """No row is hidden by another."""
    assert all(rates_for(name) is row for name, row in _ROWS.items())


@pytest.mark.parametrize(
    ("name", "row"),
    [
        ("claude-sonnet-4-20250514", "claude-sonnet-4"),
        ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", "claude-sonnet-4-5"),
        ("anthropic/claude-opus-4.7", "claude-opus-4-7"),
        ("claude-fable-5-2", "claude"),
        ("anthropic_messages", "anthropic"),
        ("google/gemini-2.0-flash-001", "gemini-2-0"),
        ("gemini-2.5-pro", "gemini-2"),
        ("gemini_generate", "gemini"),
        ("openai/gpt-oss-120b", "gpt-oss"),
        ("Magistral-medium", "stral"),
        ("meta-llama/llama-4-scout", "llama-4"),
    ],
)
def test_ids_of_hosts_are_understood(name, row):
    """An id may carry its maker, a region or a date, and dots for dashes."""
    assert rates_for(name) is _ROWS[row]


@pytest.mark.parametrize("name", ["", "gpt-6-astra", "o3", "in-house-7", "openai_responses"])
def test_openai_is_the_default(name):
    """What says nothing is counted as OpenAI counts."""
    assert rates_for(name) == Rates()


def test_the_first_name_that_says_something_counts():
    """A model's id comes before the dialect it is spoken to in."""
    assert rates_for("claude-opus-5", "openai_chat") is _ROWS["claude"]
    assert rates_for("in-house-7", "gemini_generate") is _ROWS["gemini"]
