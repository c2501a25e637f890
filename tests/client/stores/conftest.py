"""Every store, with a clock that the test moves."""

import pytest

from support.stores import KINDS, Blocking, Clock


@pytest.fixture(params=KINDS)
def store(request, tmp_path):
    """One store of each kind, empty."""
    clock = Clock()
    blocking = Blocking(KINDS[request.param](clock, tmp_path), clock)
    yield blocking
    blocking.stop()
