"""What the client does for adapters that are not `HttpAdapter`: behaviour, names, costs."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator

from msgspec.structs import replace

from interlingua.client.metering import price_custom
from interlingua.client.routing import Routing
from interlingua.prepare.behaviour import Behaved, behave
from interlingua.providers.adapter import HttpAdapter
from interlingua.providers.fold import close_stream
from interlingua.providers.tariffs import Tariffs
from interlingua.spec.contracts import NEUTRAL_PROFILE, Adapter
from interlingua.spec.events import ErrorEvent, Finish, StreamEvent, StreamStart
from interlingua.spec.request import Request


def behave_custom(adapter: Adapter, request: Request, routing: Routing) -> Behaved:
    """The request as the behaviour at a custom adapter makes it; others do so themselves."""
    behaviour = routing.behaviour_of(request.provider or "")
    is_http = isinstance(adapter, HttpAdapter) or hasattr(adapter, "reports_member")
    if behaviour is None or is_http:
        return Behaved(request=request)
    profile_for = getattr(adapter, "profile_for", None)
    profile = NEUTRAL_PROFILE if profile_for is None else profile_for(request.model)
    return behave(request, behaviour, profile)


async def name_events(
    events: AsyncIterator[StreamEvent],
    behaved: Behaved,
    request: Request,
    adapter: Adapter,
    tariffs: Tariffs,
) -> AsyncGenerator[StreamEvent, None]:
    """
    The events of a custom adapter, with its name in the client, which may be another, and the cost.

    An `ErrorEvent` is raised, as by other adapters.
    """
    key, model = request.provider or "", ""
    try:
        async for event in events:
            if isinstance(event, ErrorEvent):
                raise event.error
            if isinstance(event, StreamStart):
                model, warnings = event.model, behaved.add_warnings(event.warnings)
                yield replace(event, provider=key, warnings=warnings)
            elif isinstance(event, Finish):
                response = event.response
                if response is not None:
                    event = replace(event, response=replace(response, provider=key))  # noqa: PLW2901
                    model = response.model or model
                yield price_custom(event, model, request, tariffs, adapter)
            else:
                yield event
    finally:
        await close_stream(events)
