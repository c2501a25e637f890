"""The client that is used where none is given."""

import pytest

from interlingua.api.default import get_default_client, set_default_client
from interlingua.client.client import Client


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
