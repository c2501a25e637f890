"""Which bound of a token estimate counts: the upper for reservations, the lower for the window."""

import pytest

from interlingua import Request
from interlingua.client.middleware.meter import estimate_input, reserve_input
from interlingua.errors import ContextLengthError
from interlingua.providers.profile_check import check_window
from interlingua.spec.request import BuiltinTool
from interlingua.tokens.bounds import bound_tokens

LONG = Request(model="m", messages="some words " * 2_000)
HOSTED = BuiltinTool(dialect="openai_responses", data={"type": "web_search"})


def test_reservations_use_the_upper_bound():
    """Without one, twice the estimate; for a short request, the estimate."""
    hosted = Request(model="m", messages=LONG.messages, tools=[HOSTED])
    short = Request(model="m", messages="Hi")

    assert reserve_input(LONG) == bound_tokens(LONG).upper > estimate_input(LONG)
    assert reserve_input(hosted) == 2 * estimate_input(hosted)
    assert reserve_input(short) == estimate_input(short)


def test_the_window_is_checked_with_the_lower_bound():
    """A request is refused only if it is too long for certain."""
    lower = bound_tokens(LONG).lower

    check_window(LONG, lower, "")
    with pytest.raises(ContextLengthError):
        check_window(LONG, lower - 1, "")
