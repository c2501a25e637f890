"""
One request for an answer, from the decoded request to the last byte of the reply.

The way: address it to the model of its route, unseal the state that came back, call, seal, encode,
send.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
from contextlib import aclosing
from typing import Literal, NamedTuple

from msgspec.structs import replace

from interlingua import dialects
from interlingua.client.client import Client
from interlingua.client.configured import adapter_for, row_of
from interlingua.providers.operations import offers
from interlingua.runtime.ulid import new_ulid
from interlingua.serving.answer_stamp import AnswerStamp
from interlingua.serving.application import (
    Incoming,
    framing_of,
    json_reply,
    limit_headers,
    serve_of,
)
from interlingua.serving.asgi import Reply, Send
from interlingua.serving.compaction import check_summaries, find_compaction
from interlingua.serving.holdings import Holding
from interlingua.serving.joined_turns import join_turns
from interlingua.serving.kept_responses import Memory, without_references
from interlingua.serving.passed_on import (
    options_of,
    session_of,
    with_trace,
    without_refused_flags,
)
from interlingua.serving.sealed_state import SealedState
from interlingua.serving.stream_delivery import StreamDelivery, send_whole
from interlingua.serving.upstream_errors import client_reply, for_clients, hosts_of
from interlingua.spec.contracts import Frame, StreamEncoder
from interlingua.spec.errors import NotFoundError, SDKError, StoreError
from interlingua.spec.events import ErrorEvent, Finish, StreamEvent, StreamStart
from interlingua.spec.request import Request
from interlingua.spec.response import Cost, RateLimitInfo, Response, Warning
from interlingua.streams.grammar import DELTAS, is_content

PREFIX = "x-interlingua-"
"""How the names of our own headers begin."""

REQUEST_ID = "x-request-id"
"""The header of the id of a request, in both directions."""
_is_safe_id = re.compile(r"[A-Za-z0-9._-]{1,128}").fullmatch


class ModelRoute(NamedTuple):
    """What answers the requests for a name."""

    model: str
    """As requests of the client name it, such as `anthropic:claude-haiku-4-5`."""
    client: Client | None = None
    """A client with middleware of its own (fallback, cache, …); None for the application's."""
    settings: Mapping[str, object] = {}
    """Fields of `Request` for requests that do not set them."""
    affinity: Literal["session", "key"] = "session"
    """Whose requests go to the same one of several adapters: those of a session, or of a caller."""


class RequestIds:
    """The id of a request, which the client may choose, and the headers that tell it."""

    def __init__(self, incoming: Incoming) -> None:
        given = incoming.call.headers.get(REQUEST_ID, "")
        self.request_id: str = given if _is_safe_id(given) else new_ulid()
        self._facts = serve_of(incoming.dialect).SERVER
        names = (REQUEST_ID, self._facts.request_id_header)
        self.headers: dict[str, str] = {name: self.request_id for name in names if name}
        self.report: Callable[[], Awaitable[RateLimitInfo | None]] | None = None
        """Tells what is left to the caller, if it has limits."""

    async def add_limits(self) -> None:
        """Add the headers that tell what is left, once the request is counted."""
        limits = None if self.report is None else await self.report()
        if limits is not None:
            self.headers |= limit_headers(self._facts, limits)

    def sign(self, reply: Reply) -> Reply:
        """The reply with the id."""
        return reply._replace(headers={**reply.headers, **self.headers})


def own_headers(
    provider: str,
    model: str,
    warnings: Iterable[Warning],
    *,
    cost: Cost | None = None,
    request_id: str | None = None,
) -> dict[str, str]:
    """The headers that say who has answered, what was lost, what it cost, and the provider's id."""
    headers = {
        f"{PREFIX}provider": provider,
        f"{PREFIX}model": model,
        f"{PREFIX}warnings": ",".join(sorted({warning.code for warning in warnings})),
        f"{PREFIX}cost": _cost_text(cost),
        f"{PREFIX}upstream-request-id": request_id or "",
    }
    return {name: value for name, value in headers.items() if value and _is_plain(value)}


def _is_plain(value: str) -> bool:
    """Whether a text can be the value of a header."""
    return value.isascii() and value.isprintable()


def refuse(incoming: Incoming, error: SDKError, client: Client) -> Reply:
    """The reply for an error, with the id that the provider gave the request."""
    reply = client_reply(incoming, error, client)
    told = own_headers(error.provider or "", "", (), request_id=error.provider_request_id)
    return reply._replace(headers={**reply.headers, **told})


def _cost_text(cost: Cost | None) -> str:
    """Dollars; empty if they are unknown."""
    if cost is None or cost.total is None:
        return ""
    return f"{cost.total:.10f}".rstrip("0").rstrip(".")


def with_settings(request: Request, settings: Mapping[str, object]) -> Request:
    """The request with the settings of a route that it does not set itself."""
    unset = {name: value for name, value in settings.items() if getattr(request, name) is None}
    return replace(request, **unset) if unset else request


class Exchange:
    """One request for an answer."""

    def __init__(
        self,
        incoming: Incoming,
        asked: Request,
        route: ModelRoute,
        client: Client,
        secret: bytes,
        ids: RequestIds,
        memory: Memory,
    ) -> None:
        self._ids = ids
        self._incoming = incoming
        self._memory = memory
        self._keeping = keeping = memory.keeping
        plain = without_references(asked, incoming.dialect)
        self._asked = asked if keeping is not None else plain  # what the answer repeats
        self._client = client
        self._dialect = dialects.get(incoming.dialect)
        addressed = client.calls.routing.address(replace(asked, model=route.model))
        self._provider = addressed.provider or ""
        adapter = client.calls.adapters.get(self._provider)
        self._adapter = adapter_for(adapter, addressed.model)
        upstream = getattr(self._adapter, "dialect", None)
        self._state: SealedState | None = None
        self._warnings: tuple[Warning, ...] = ()
        if upstream is not None:
            self._state = SealedState(
                secret,
                client=self._dialect.FACTS,
                upstream=dialects.get(upstream).FACTS,
                provider=self._provider,
                model=addressed.model,
                kept=memory.seals,
            )
            asked, self._warnings = self._state.unseal_request(asked)
        if keeping is not None:
            asked = without_references(asked, incoming.dialect)
        is_own = upstream == incoming.dialect
        if not is_own:
            check_summaries(incoming)
            asked = join_turns(asked, self._dialect.FACTS)
        self._stamp = AnswerStamp(incoming.dialect)
        self._request = self._address(asked, route, upstream)
        self._compaction = find_compaction(
            client, self._request, incoming, secret, is_native=is_own
        )

    def _address(self, asked: Request, route: ModelRoute, upstream: str | None) -> Request:
        """The request as it goes to the model of a route, at a provider of this dialect."""
        incoming = self._incoming
        options = options_of(incoming, asked) if upstream == incoming.dialect else {}
        request = replace(
            asked,
            model=route.model,
            provider_options=with_trace(incoming, options, upstream),
            session_id=asked.session_id or session_of(incoming, asked),
            on_loss=asked.on_loss or "warn",
            request_id=self._ids.request_id,
        )
        row = row_of(self._adapter)
        request, refused = without_refused_flags(request, incoming.dialect, row)
        self._warnings = (*self._warnings, *refused)
        return with_settings(request, route.settings)

    async def _answer(self) -> Response:
        """The answer of the model, or the summary that is asked for."""
        if self._compaction is not None:
            return await self._compaction.complete()
        return await self._client.complete(self._request)

    def _events(self) -> AsyncGenerator[StreamEvent, None]:
        """The same as a stream."""
        if self._compaction is not None:
            return self._compaction.stream()
        return self._client.stream(self._request)

    @property
    def client(self) -> Client:
        """The client of the route."""
        return self._client

    @property
    def provider(self) -> str:
        """The provider that answers."""
        return self._provider

    @property
    def request(self) -> Request:
        """The request, as the client gets it."""
        return self._request

    async def read_files(self, held: Holding) -> None:
        """Replace references to files that are kept for the caller by their bytes."""
        address = serve_of(self._incoming.dialect).SERVER.file_address
        self._request = await held.with_files(self._request, address)

    async def complete(self) -> Reply:
        """The reply with the whole answer."""
        response = self._stamp.stamp_response(await self._answer())
        if self._state is not None:
            response = self._state.seal_response(response)
        if self._keeping is not None:
            response = self._keeping.mark(response)
        warnings = (*self._warnings, *response.warnings)
        headers = own_headers(
            response.provider,
            response.model,
            warnings,
            cost=response.cost,
            request_id=response.provider_request_id,
        )
        body = self._dialect.encode_response(response, self._asked)
        await self._memory.keep(body)
        return json_reply(self._incoming, body, headers=headers)

    async def count(self) -> int:
        """The input tokens as the provider counts them for free, else our estimate."""
        client, request = self._client, self._request
        row = row_of(client.calls.adapters.get(self._provider))
        if row is not None and offers(row, "count_tokens"):
            try:
                return await client.count_tokens(request)
            except NotFoundError:
                raise
            except SDKError:
                pass  # agents ask this often, and an estimate serves them better than an error
        return client.estimate_input_tokens(request)

    async def stream(self, send: Send) -> None:
        """Send the answer as it comes; an error before its first content is an error reply."""
        encoder: StreamEncoder = self._dialect.stream_encoder(self._asked)
        if self._state is not None:
            encoder = self._state.encoder(encoder)
        events = self._events()
        delivery = StreamDelivery(send, framing_of(self._incoming))
        delivery.headers |= self._ids.headers
        async with aclosing(events), delivery:
            try:
                async for event in events:
                    if type(event) is StreamStart and self._ids.report is not None:
                        await self._ids.add_limits()
                        delivery.headers |= self._ids.headers
                    shown = event if type(event) in DELTAS else self._show(event, delivery)
                    begin = not delivery.has_begun and is_content(event)
                    await delivery.put(await self._keep(encoder.feed(shown)), begin=begin)
            except SDKError as error:
                if delivery.has_begun:
                    return  # the stream has told it, in an event of the client's own dialect
                reply = refuse(self._incoming, error, self._client)
                delivery.abandon()
                await self._ids.add_limits()
                await send_whole(self._ids.sign(reply), send)

    async def _keep(self, frames: list[Frame]) -> list[Frame]:
        """The frames, those of an error if they end a response that cannot be kept."""
        if self._memory.shelf is None:
            return frames
        try:
            await self._memory.keep_last(frames)
        except StoreError as error:
            encoder: StreamEncoder = self._dialect.stream_encoder(self._asked)
            encoder.feed(StreamStart(id="", model=self._asked.model))  # was sent long ago
            return encoder.feed(ErrorEvent(error=for_clients(error, hosts_of(self._client))))
        return frames

    def _show(self, event: StreamEvent, delivery: StreamDelivery) -> StreamEvent:
        """The event for the client; what it tells about the answer is sent beside it."""
        event = self._stamp.stamp_event(event)
        if self._keeping is not None:
            event = self._keeping.mark_event(event)
        match event:
            case StreamStart():
                warnings = (*self._warnings, *event.warnings)
                delivery.headers |= own_headers(
                    event.provider, event.model, warnings, request_id=event.provider_request_id
                )
            case Finish() if cost := _cost_text(event.cost):
                delivery.comment(f"{PREFIX}cost: {cost}")
            case ErrorEvent():
                return replace(event, error=for_clients(event.error, hosts_of(self._client)))
        return event
