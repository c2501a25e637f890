"""What a request says of some settings."""

from hypothesis import given
from hypothesis import strategies as st

from interlingua.prepare.options import Settings
from interlingua.spec.request import Request

values = st.none() | st.sampled_from([0, 1, 7])


@given(values, values, values)
def test_what_is_said_is_told_in_order(seed, top_k, limit):
    """Nothing that is None, everything that is not: 0 is a value."""
    request = Request(seed=seed, top_k=top_k, max_tokens=limit)
    told = dict(Settings("top_k", "max_tokens", "seed").values_in(request))
    asked = {"top_k": top_k, "max_tokens": limit, "seed": seed}

    assert list(told.items()) == [item for item in asked.items() if item[1] is not None]
