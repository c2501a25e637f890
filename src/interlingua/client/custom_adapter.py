"""One attempt at an adapter that is not an `HttpAdapter`: the client does more of the work."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from msgspec.structs import replace

from interlingua.client.metering import price_custom
from interlingua.prepare.behaviour import behave
from interlingua.providers.adapter import HttpAdapter
from interlingua.providers.fold import close_stream
from interlingua.providers.tariffs import Answer
from interlingua.spec.contracts import NEUTRAL_PROFILE, Adapter
from interlingua.spec.events import ErrorEvent, Finish, StreamEvent, StreamStart
from interlingua.spec.request import Request
from interlingua.spec.response import Response, Warning

if TYPE_CHECKING:
    from interlingua.client.attempts import Calls


OnMember: TypeAlias = Callable[[str], object]
"""Called with the name of the key or endpoint that is used."""


class CustomCall:
    """
    The request as the adapter gets it, and the answer with what the client knows.

    `on_member` is told which of several keys or endpoints the adapter uses, if it has several.
    """

    def __init__(
        self, calls: Calls, adapter: Adapter, request: Request, on_member: OnMember
    ) -> None:
        self._calls = calls
        self._adapter = adapter
        self._request = request
        self._key = request.provider or ""
        self._settings: dict[str, Any] = dict(calls.settings)
        if getattr(adapter, "reports_member", False):
            self._settings["on_member"] = on_member
        self._warnings: tuple[Warning, ...] = ()
        self.left_out: tuple[str, ...] = ()
        """The tools that the behaviour of the provider leaves out."""
        self._sent: Request = self._behave()
        if calls.call_ids is not None:
            self._sent = calls.call_ids.write(self._sent, adapter)

    async def complete(self) -> Response:
        """The whole answer, with the adapter's name in the client, which may be another."""
        response = await self._adapter.complete(self._sent, **self._settings)
        warnings = (*self._warnings, *response.warnings)
        response = replace(response, provider=self._key, warnings=warnings)
        return self._price(response, response.model)

    async def stream(self) -> AsyncGenerator[StreamEvent, None]:
        """The events of the answer. An `ErrorEvent` is raised, as by other adapters."""
        await self._calls.initialization.ensure(self._key)
        events, model = self._adapter.stream(self._sent, **self._settings), ""
        try:
            async for event in events:
                if isinstance(event, ErrorEvent):
                    raise event.error
                if isinstance(event, StreamStart):
                    model = event.model
                    warnings = (*self._warnings, *event.warnings)
                    yield replace(event, provider=self._key, warnings=warnings)
                elif isinstance(event, Finish):
                    response = event.response
                    if response is not None:
                        event = replace(event, response=replace(response, provider=self._key))  # noqa: PLW2901
                        model = response.model or model
                    yield self._price(event, model)
                else:
                    yield event
        finally:
            await close_stream(events)

    def _price(self, answer: Answer, served: str) -> Answer:
        return price_custom(answer, served, self._request, self._calls.tariffs, self._adapter)

    def _behave(self) -> Request:
        """The request as the behaviour of the provider makes it; others do so themselves."""
        request, adapter = self._request, self._adapter
        behaviour = self._calls.routing.behaviour_of(self._key)
        if behaviour is None:
            return request
        profile_for = getattr(adapter, "profile_for", None)
        profile = NEUTRAL_PROFILE if profile_for is None else profile_for(request.model)
        behaved = behave(request, behaviour, profile)
        self.left_out = behaved.left_out  # a run does not run these, whoever leaves them out
        if isinstance(adapter, HttpAdapter) or hasattr(adapter, "reports_member"):
            return request
        self._warnings = behaved.warnings
        return behaved.request
