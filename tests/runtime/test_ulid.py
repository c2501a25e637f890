"""Ids that sort by time."""

import re

from interlingua.runtime.ulid import new_ulid


def test_ulids():
    """26 letters of Crockford's alphabet, all different, in order over time."""
    made = [new_ulid() for _ in range(1000)]

    assert all(re.fullmatch("[0-7][0-9A-HJKMNP-TV-Z]{25}", one) for one in made)
    assert len(set(made)) == 1000
    assert [one[:10] for one in made] == sorted(one[:10] for one in made)
