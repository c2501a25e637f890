import pytest

from support.bulk_jobs import Bench


@pytest.fixture
def bench(tmp_path):
    """A folder, a scripted client, and jobs on them."""
    return Bench(tmp_path)


@pytest.fixture
def make_bench(tmp_path):
    """Makes a bench whose models give these answers."""
    return lambda *turns: Bench(tmp_path, *turns)
