"""Fixtures for tests with the vendors' clients."""

import contextlib

import pytest


@pytest.fixture
def closed():
    """
    Closes what it is called with at the end of the test, and returns it.

    A client that is left to the garbage collector may lose its socket first, and the warning of
    that fails whatever test runs then.
    """
    with contextlib.ExitStack() as stack:
        yield lambda client: stack.enter_context(contextlib.closing(client))
