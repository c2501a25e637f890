"""Attempts at adapters that are not an `HttpAdapter`: a program's own."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, get_args

from msgspec.structs import replace

from interlingua.client.adapter_members import (
    check_custom,
    prepare_custom,
    profile_of,
    wrong_shape,
)
from interlingua.client.metering import price_custom
from interlingua.prepare.behaviour import behave
from interlingua.providers.adapter import HttpAdapter
from interlingua.providers.profile_check import can_stream
from interlingua.providers.tariffs import Answer
from interlingua.providers.usage import estimate_finish, estimate_response
from interlingua.runtime.fold import close_stream
from interlingua.runtime.log import log_warnings
from interlingua.spec.check import describe
from interlingua.spec.content import Part
from interlingua.spec.contracts import NEUTRAL_PROFILE, Adapter, Profile
from interlingua.spec.errors import SDKError, UnsupportedError
from interlingua.spec.events import (
    ErrorEvent,
    Finish,
    ReasoningEnd,
    StreamEvent,
    StreamStart,
    TextEnd,
    ToolCallEnd,
)
from interlingua.spec.operations import Operation
from interlingua.spec.request import Request
from interlingua.spec.response import Response, Warning
from interlingua.streams.accumulate import events_from_response

if TYPE_CHECKING:
    from interlingua.client.calls import CallIds, Calls


_EVENTS = get_args(StreamEvent)
_METHODS = ("count_tokens", "list_models")


def perform_custom(
    adapter: Adapter, operation: str | Operation, value: Any, request_id: str
) -> Awaitable[Any]:
    """
    The result of an operation of an adapter that is not an `HttpAdapter`.

    It may have `perform`, or only the methods `list_models()` and `count_tokens(request)`.
    """
    perform = getattr(adapter, "perform", None)
    if perform is not None:
        performed: Awaitable[Any] = perform(operation, value, request_id=request_id)
        return performed
    name = operation if isinstance(operation, str) else operation.name
    method = getattr(adapter, name, None) if operation in _METHODS else None
    if method is None:
        raise UnsupportedError(f"The adapter {adapter.name!r} has no `perform` for {name!r}.")
    returned: Awaitable[Any] = method() if value is None else method(value)
    return returned


class CustomCall:
    """The request as the adapter gets it, and the answer with what the client knows."""

    def __init__(
        self,
        calls: Calls,
        adapter: Adapter,
        request: Request,
        call_ids: CallIds | None,
        logged: set[str],
    ) -> None:
        """`logged` holds the codes of warnings that were logged for the request before."""
        self._calls = calls
        self._adapter = adapter
        self._request = request
        self._key = request.provider or ""
        self._settings: dict[str, Any] = dict(calls.settings)
        self._logged = logged
        self._warnings: tuple[Warning, ...] = ()
        self._profile: Profile | None = None
        self.left_out: tuple[str, ...] = ()
        """The tools that the behaviour of the provider leaves out."""
        self._sent: Request = self._behave()
        if call_ids is not None:
            self._sent = call_ids.write(self._sent, adapter)

    async def complete(self) -> Response:
        """The whole answer, with the adapter's name in the client, which may be another."""
        self._prepare()
        answer: Any = self._adapter.complete(self._sent, **self._settings)
        response: object = await answer if isawaitable(answer) else answer
        if not isinstance(response, Response):
            what = f"`complete` must return a Response, not {describe(response)}"
            raise wrong_shape(self._key, what)
        warnings = (*self._warnings, *response.warnings)
        response = replace(response, provider=self._key, warnings=warnings)
        if response.cost is None and not response.usage.is_known:
            response = estimate_response(response, self._sent, self._key)
        return self._price(response, response.model)

    async def stream(self) -> AsyncGenerator[StreamEvent, None]:
        """The events of the answer. An `ErrorEvent` is raised, as by other adapters."""
        await self._calls.initialization.ensure(self._key)
        profile = self._prepare()
        if not can_stream(self._sent, profile):
            for event in events_from_response(await self.complete()):
                yield event
            return
        events, model = self._adapter.stream(self._sent, **self._settings), ""
        parts: list[Part] = []
        try:
            async for event in events:
                if isinstance(event, ErrorEvent):
                    raise event.error
                if isinstance(event, StreamStart):
                    model = event.model
                    warnings = (*self._warnings, *event.warnings)
                    yield replace(event, provider=self._key, warnings=warnings)
                elif isinstance(event, Finish):
                    yield self._end(event, tuple(parts), model)
                else:
                    if isinstance(event, (TextEnd, ReasoningEnd)):
                        parts.append(event.part)
                    elif isinstance(event, ToolCallEnd):
                        parts.append(event.tool_call)
                    elif not isinstance(event, _EVENTS):
                        what = f"`stream` must yield events, not {describe(event)}"
                        raise wrong_shape(self._key, what)
                    yield event
        finally:
            await close_stream(events)

    def _end(self, finish: Finish, parts: tuple[Part, ...], served: str) -> Finish:
        """The end of a stream of these parts."""
        response = finish.response
        if response is not None:
            response, served = replace(response, provider=self._key), response.model or served
            usage = finish.usage if finish.usage.is_known else response.usage
            cost = response.cost if finish.cost is None else finish.cost
            finish = replace(finish, response=response, usage=usage, cost=cost)
        if finish.cost is None and not finish.usage.is_known:
            finish = estimate_finish(finish, parts, self._sent, self._key)
        return self._price(finish, served)

    def _price(self, answer: Answer, served: str) -> Answer:
        return price_custom(answer, served, self._request, self._calls.tariffs, self._adapter)

    def _behave(self) -> Request:
        """The request as the behaviour of the provider makes it; an `HttpAdapter` does so."""
        request, adapter = self._request, self._adapter
        behaviour = self._calls.routing.behaviour_of(self._key)
        if behaviour is None:
            return request
        behaved = behave(request, behaviour, profile_of(adapter, request.model))
        self.left_out = behaved.left_out  # a run does not run these, whoever leaves them out
        if isinstance(adapter, HttpAdapter):
            return request
        self._warnings = behaved.warnings
        return behaved.request

    def _prepare(self) -> Profile:
        """
        Narrow the request to what the adapter supports; an `HttpAdapter` does so itself.

        Raises what the loss policy does not allow, and a request that is clearly too long.
        """
        adapter, request, profile = self._adapter, self._sent, self._profile
        if profile is not None:
            return profile
        self._profile = profile = profile_of(adapter, request.model)
        if isinstance(adapter, HttpAdapter) or profile == NEUTRAL_PROFILE:
            return profile
        try:
            prepared = prepare_custom(adapter, request, profile)
            check_custom(adapter, request, profile, prepared.warnings)
        except SDKError as error:
            error.add_facts(provider=self._key, model=request.model, request_id=request.request_id)
            raise
        if prepared.warnings:
            log_warnings(prepared.warnings, request, self._key, self._logged)
        self._warnings = (*self._warnings, *prepared.warnings)
        self._sent = prepared.request
        return profile
