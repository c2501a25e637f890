"""How a client is carried to another process: as its configuration."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from interlingua.client.routing import Routing
from interlingua.spec.errors import ConfigurationError

if TYPE_CHECKING:
    from interlingua.client.client import Client


def carry(client: Client, routing: Routing, settings: Mapping[str, Any]) -> tuple[Any, ...]:
    """What makes the client again: a function and its arguments, for `__reduce__`."""
    from interlingua.client.client import Client

    if type(client).__init__ is not Client.__init__:
        raise ConfigurationError(
            f"A {type(client).__name__} cannot be pickled: only a Client can be made again."
        )
    is_from_environment = routing.environ is not None
    made = (type(client), dict(routing.adapters), dict(settings), routing.chosen)
    return remake, (*made, is_from_environment)


def remake(
    kind: type[Client],
    adapters: dict[str, Any],
    settings: dict[str, Any],
    chosen: str | None,
    is_from_environment: bool,
) -> Client:
    """Make a client again."""
    client = kind(adapters, **settings)
    routing = client._routing  # noqa: SLF001 -- a part of the client
    routing.choose_provider(chosen)
    if is_from_environment:
        routing.environ = os.environ
    return client
