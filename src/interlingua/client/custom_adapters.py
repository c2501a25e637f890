"""Calls of adapters that are not an `HttpAdapter`: a program's own, and `Balance`."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from typing import TYPE_CHECKING, Protocol, TypeAlias, runtime_checkable

from msgspec.structs import replace

from interlingua.client.metering import price_custom
from interlingua.prepare.behaviour import behave
from interlingua.providers.adapter import HttpAdapter
from interlingua.providers.fold import close_stream
from interlingua.spec.contracts import NEUTRAL_PROFILE, Adapter
from interlingua.spec.events import ErrorEvent, Finish, StreamEvent, StreamStart
from interlingua.spec.request import Request
from interlingua.spec.response import Response, Warning

if TYPE_CHECKING:
    from interlingua.client.attempts import Calls

OnMember: TypeAlias = Callable[[str], object]
"""Called with the name of the key or endpoint that is used."""
OnLeftOut: TypeAlias = Callable[[tuple[str, ...]], object]
"""Called with the names of the tools that are not sent."""


@runtime_checkable
class MemberAdapter(Protocol):
    """An adapter over several others, such as `Balance`: it chooses one for each attempt."""

    name: str

    @property
    def first(self) -> Adapter:
        """The one that stands for all where only one can."""

    def rebind(self, name: str) -> Adapter:
        """A copy with another name."""

    async def send_by_member(
        self,
        request: Request,
        send: Callable[[Adapter], Awaitable[Response]],
        on_member: OnMember | None = None,
    ) -> Response:
        """The answer that `send` gets from the chosen adapter."""

    def stream_by_member(
        self,
        request: Request,
        send: Callable[[Adapter], AsyncIterator[StreamEvent]],
        on_member: OnMember | None = None,
    ) -> AsyncIterator[StreamEvent]:
        """The events that `send` gets from the chosen adapter."""


async def complete_custom(
    calls: Calls, adapter: Adapter, request: Request, on_left_out: OnLeftOut
) -> Response:
    """The whole answer of a custom adapter, with its name in the client, and with its cost."""
    sent, warnings = _behave(calls, adapter, request, on_left_out)
    sent = sent if calls.call_ids is None else calls.call_ids.write(sent, adapter)
    response = await adapter.complete(sent, **calls.settings)
    warnings = (*warnings, *response.warnings)
    response = replace(response, provider=request.provider or "", warnings=warnings)
    return price_custom(response, response.model, request, calls.tariffs, adapter)


async def stream_custom(
    calls: Calls, adapter: Adapter, request: Request, on_left_out: OnLeftOut
) -> AsyncGenerator[StreamEvent, None]:
    """
    The events of a custom adapter, with its name in the client, which may be another.

    An `ErrorEvent` is raised, as by other adapters.
    """
    key, ids = request.provider or "", calls.call_ids
    await calls.initialization.ensure(key)
    sent, warnings = _behave(calls, adapter, request, on_left_out)
    sent = sent if ids is None else ids.write(sent, adapter)
    events, model = adapter.stream(sent, **calls.settings), ""
    try:
        async for event in events:
            if isinstance(event, ErrorEvent):
                raise event.error
            if isinstance(event, StreamStart):
                model = event.model
                yield replace(event, provider=key, warnings=(*warnings, *event.warnings))
            elif isinstance(event, Finish):
                response = event.response
                if response is not None:
                    event = replace(event, response=replace(response, provider=key))  # noqa: PLW2901
                    model = response.model or model
                yield price_custom(event, model, request, calls.tariffs, adapter)
            else:
                yield event
    finally:
        await close_stream(events)


def _behave(
    calls: Calls, adapter: Adapter, request: Request, on_left_out: OnLeftOut
) -> tuple[Request, tuple[Warning, ...]]:
    """The request as the behaviour at a custom adapter makes it; an `HttpAdapter` does so."""
    behaviour = calls.routing.behaviour_of(request.provider or "")
    if behaviour is None or isinstance(adapter, HttpAdapter):
        return request, ()
    profile_for = getattr(adapter, "profile_for", None)
    profile = NEUTRAL_PROFILE if profile_for is None else profile_for(request.model)
    behaved = behave(request, behaviour, profile)
    on_left_out(behaved.left_out)
    return behaved.request, behaved.warnings
