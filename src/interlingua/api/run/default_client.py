"""The client that is used where none is given."""

from __future__ import annotations

import threading
from typing import Any

from interlingua.client.client import Client
from interlingua.spec.errors import ConfigurationError

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
    given: Any = client  # a caller without a type checker may pass another
    if given is not None and not isinstance(given, Client):
        kind = f"{type(given).__module__}.{type(given).__qualname__}"
        raise ConfigurationError(
            f"the default client must be an interlingua.Client, not {kind}; "
            "interlingua.sync uses the same"
        )
    global _client  # noqa: PLW0603 -- as above
    with _lock:
        _client = client
