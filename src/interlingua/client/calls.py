"""The calls of one client: their adapters, layers, prices, subscribers and scopes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from copy import copy
from typing import Any, Protocol, Self

from interlingua.client.call_events import Subscriber
from interlingua.client.lifecycle import Initialization
from interlingua.client.middleware.layers import Layers
from interlingua.client.routing import Routing
from interlingua.providers.tariffs import Prices, Tariffs
from interlingua.runtime.cancel import Scopes
from interlingua.spec.contracts import Adapter
from interlingua.spec.events import StreamEvent
from interlingua.spec.request import Request
from interlingua.spec.response import Response


class CallIds(Protocol):
    """
    Translates the ids of tool calls between a conversation and its providers.

    This is no middleware: it is inside of all of them, and what it changes is not a change of the
    answer, so the answer keeps its raw body.
    """

    def write(self, request: Request, adapter: Adapter) -> Request:
        """The request with the ids that its provider knows."""

    def read(self, response: Response, provider: str) -> Response:
        """The response with the ids of the conversation."""

    def read_events(
        self, events: AsyncIterator[StreamEvent], provider: str
    ) -> AsyncIterator[StreamEvent]:
        """The events of a response with the ids of the conversation."""


class Calls:
    """
    The calls of one client.

    `routing` gives a request its provider, model and id, again if a middleware has changed it.
    """

    def __init__(
        self,
        routing: Routing,
        *,
        outer: Layers,
        inner: Layers,
        settings: Mapping[str, Any],
        registry_ids: Mapping[tuple[str, str], str],
        tariffs: Tariffs,
    ) -> None:
        self.routing = routing
        self.outer = outer
        self.inner = inner
        self.settings = settings
        """Keyword arguments for `complete` and `stream` of custom adapters."""
        self.registry_ids = registry_ids
        """The ids of the registry file, by provider and model."""
        self.tariffs: Tariffs = tariffs
        """The prices of the calls."""
        self.has_layers: bool = not (outer.is_empty and inner.is_empty)
        """Whether a layer gets the answers or their events."""
        self.initialization: Initialization = Initialization(routing.adapters)
        self.scopes: Scopes = Scopes()
        """The active runs and calls."""
        self.subscribers: tuple[Subscriber, ...] = ()

    def rebind(
        self,
        routing: Routing,
        outer: Layers | None = None,
        inner: Layers | None = None,
    ) -> Self:
        """The same calls, with other adapters or layers."""
        twin = copy(self)
        twin.routing = routing
        twin.outer, twin.inner = outer or self.outer, inner or self.inner
        twin.has_layers = not (twin.outer.is_empty and twin.inner.is_empty)
        return twin

    def with_prices(self, prices: Prices) -> Self:
        """The same calls, with these prices over those of this one."""
        twin = copy(self)
        twin.tariffs = self.tariffs.with_prices(prices)
        return twin

    @property
    def adapters(self) -> Mapping[str, Adapter]:
        """The adapters of new calls, by key."""
        return self.routing.adapters

    async def load(self, key: str) -> None:
        """Load what a first request to this adapter needs, before the clock of a caller starts."""
        load = getattr(self.adapters.get(key), "load", None)
        if load is not None:
            await load()

    def left_out(self, request: Request) -> tuple[str, ...]:
        """The names of the tools of a request that its provider would not get."""
        behaviour = self.routing.behaviour_of(self.routing.address(request).provider or "")
        if behaviour is None:
            return ()
        from interlingua.prepare.behaviour import tools_left_out

        return tools_left_out(request, behaviour)
