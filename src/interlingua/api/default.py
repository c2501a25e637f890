"""The client that is used where none is given."""

from __future__ import annotations

import threading

from interlingua.client.client import Client

_lock = threading.Lock()
_client: Client | None = None


def get_default_client() -> Client:
    """The one that was set, or else one from the environment, made at first use."""
    global _client  # noqa: PLW0603 -- one for the program is the point
    with _lock:
        if _client is None:
            _client = Client.from_env()
        return _client


def set_default_client(client: Client | None) -> None:
    """Use this one from now on; None to make it from the environment again."""
    global _client  # noqa: PLW0603 -- as above
    with _lock:
        _client = client
