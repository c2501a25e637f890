"""Calls on each transport; a test of one transport uses `support.http_calls`, and says why."""

from functools import partial

import pytest

from support import http_calls


@pytest.fixture
def run(transport_type):
    """Run `work(transport)` on each transport."""
    return partial(http_calls.run, kind=transport_type)


@pytest.fixture
def fails(transport_type):
    """The error of one call on each transport."""
    return partial(http_calls.fails, kind=transport_type)


@pytest.fixture
def leaves(transport_type):
    """Run `action(transport, request, ready)` on each, and see that the server notices the end."""
    return partial(http_calls.leaves, kind=transport_type)
