"""The client that is used where none is given."""

import pytest

from interlingua import sync
from interlingua.api.run.run import get_default_client, set_default_client
from interlingua.client.client import Client
from interlingua.spec.errors import ConfigurationError


@pytest.fixture(autouse=True)
def clean():
    yield
    set_default_client(None)


def test_made_once_from_the_environment(monkeypatch):
    """At first use, not before."""
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    client = get_default_client()

    assert "openai" in repr(client)
    assert get_default_client() is client


def test_set():
    """Until it is set to None again."""
    mine = Client({})
    set_default_client(mine)

    assert get_default_client() is mine
    set_default_client(None)
    assert get_default_client() is not mine


def test_only_a_client_will_do():
    """One that blocks is none: the blocking functions use the same default."""
    with pytest.raises(ConfigurationError, match=r"not interlingua\.sync\.client\.Client"):
        set_default_client(sync.Client({}))
