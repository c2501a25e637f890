"""Ids that sort by time."""

import re

from interlingua.providers.ids import new_call_id, new_ulid


def test_ulids():
    """26 letters of Crockford's alphabet, all different, in order over time."""
    made = [new_ulid() for _ in range(1000)]

    assert all(re.fullmatch("[0-7][0-9A-HJKMNP-TV-Z]{25}", one) for one in made)
    assert len(set(made)) == 1000
    assert [one[:10] for one in made] == sorted(one[:10] for one in made)


def test_call_ids_fit_every_provider():
    """The narrowest pattern among the large providers."""
    assert re.fullmatch("[A-Za-z0-9_-]{1,40}", new_call_id())
