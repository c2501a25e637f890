"""
An ASGI application that answers every dialect with the models of a `Client`.

The way of a request: route of the dialect, key, decode, name to model, unseal, client, seal,
encode, send. While the answer is made and sent, the disconnect of the client is awaited beside it,
and ends the call of the model.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing
from fnmatch import fnmatchcase
from secrets import token_bytes
from typing import NamedTuple, TypeAlias

from msgspec.structs import replace

from interlingua import dialects
from interlingua.client.client import Client
from interlingua.serving.application import (
    Application,
    Incoming,
    RefusedError,
    check_form,
    check_served,
    count_body,
    error_reply,
    failure_reply,
    framing_of,
    json_reply,
    serve_of,
)
from interlingua.serving.asgi import ClientGoneError, Receive, Reply, Send, wait_for_disconnect
from interlingua.serving.sealed_state import SealedState
from interlingua.serving.stream_delivery import StreamDelivery, send_whole
from interlingua.spec.contracts import StreamEncoder
from interlingua.spec.errors import SDKError
from interlingua.spec.events import StreamStart
from interlingua.spec.operations import Failure, ServedModel
from interlingua.spec.request import Request
from interlingua.spec.response import Warning
from interlingua.streams.grammar import is_content

MAX_BODY = 64 * 1024 * 1024
"""Bytes of a request: histories with many images are this large."""

PREFIX = "x-interlingua-"
"""How the names of our own headers begin."""


class ModelRoute(NamedTuple):
    """What answers the requests for a name."""

    model: str
    """As requests of the client name it, such as `anthropic:claude-haiku-4-5`."""
    client: Client | None = None
    """A client with middleware of its own (fallback, cache, …); None for the application's."""
    settings: Mapping[str, object] = {}
    """Fields of `Request` for requests that do not set them."""


class Caller(NamedTuple):
    """Who sends a request."""

    name: str = ""
    """Empty if callers have no names."""
    models: Sequence[str] | None = None
    """The names and patterns of the models that it may use; None for all."""

    def may_use(self, name: str) -> bool:
        """Whether this caller may use the model of this name."""
        return self.models is None or any(fnmatchcase(name, each) for each in self.models)


Authorize: TypeAlias = Callable[[Incoming], Caller]
"""Finds the caller of a request; raises `RefusedError` if its key is missing or wrong."""


def anybody(_: Incoming) -> Caller:
    """Let every request in, as a caller without a name."""
    return Caller()


class Routes:
    """
    The public names of models.

    A name is looked up as it is, then among the patterns (`claude-*`), the longest first, then, if
    `direct` allows it, as a model of the client (`provider:model`), then as `default`.
    """

    def __init__(
        self, routes: Mapping[str, str | ModelRoute] | None = None, *, direct: bool = True
    ) -> None:
        given = {
            name: ModelRoute(route) if isinstance(route, str) else route
            for name, route in (routes or {}).items()
        }
        self._names = {name: route for name, route in given.items() if not _is_pattern(name)}
        patterns = [(name, route) for name, route in given.items() if _is_pattern(name)]
        self._patterns = sorted(patterns, key=lambda each: -len(each[0]))
        self._default = self._names.pop("default", None)
        self._direct = direct

    def find(self, name: str) -> ModelRoute | None:
        """The route of a public name; None if there is none."""
        route = self._names.get(name)
        if route is None:
            for pattern, candidate in self._patterns:
                if fnmatchcase(name, pattern):
                    route = candidate
                    break
        if route is None and self._direct and ":" in name:
            route = ModelRoute(name)
        return route or self._default

    def names(self) -> tuple[str, ...]:
        """The names that clients are told: those that are no patterns."""
        return tuple(self._names)

    def items(self) -> Iterator[tuple[str, ModelRoute]]:
        """All names and patterns, in the order in which they are tried."""
        yield from self._names.items()
        yield from self._patterns
        if self._default is not None:
            yield "default", self._default


def _is_pattern(name: str) -> bool:
    return any(character in name for character in "*?[")


class ClientApplication(Application):
    """
    Answers the requests of every dialect with the models of a client.

        routes = {"claude-*": "gemini:gemini-3-pro", "default": "local:smollm2"}
        app = ClientApplication(client, routes)

    `secret` authenticates the state that travels through the programs that call: at least 16 bytes,
    the same in all processes that serve them; without it the state ends with this process.
    `authorize` finds the caller of a request, and refuses a wrong key. A request of more than
    `max_body` bytes is refused.
    """

    def __init__(
        self,
        client: Client,
        routes: Mapping[str, str | ModelRoute] | Routes | None = None,
        *,
        secret: bytes | None = None,
        authorize: Authorize = anybody,
        max_body: int | None = MAX_BODY,
    ) -> None:
        self.max_body = max_body
        self._client = client
        self._routes = routes if isinstance(routes, Routes) else Routes(routes)
        self._secret = secret or token_bytes(32)
        self._authorize = authorize

    async def handle(self, incoming: Incoming, receive: Receive, send: Send) -> None:
        """Answer one request, unless its client leaves before the end."""
        work = asyncio.ensure_future(self._work(incoming, send))
        gone = asyncio.ensure_future(wait_for_disconnect(receive))
        try:
            await asyncio.wait({work, gone}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            gone.cancel()
            work.cancel()  # does nothing if it has ended
            await asyncio.wait({work})
        if not work.cancelled() and not isinstance(work.exception(), ClientGoneError):
            work.result()

    async def _work(self, incoming: Incoming, send: Send) -> None:
        try:
            check_form(incoming)
            caller = self._authorize(incoming)
            check_served(incoming)
            if incoming.route.kind == "answer":
                exchange = self._open(incoming, caller)
                if incoming.call.stream:
                    await exchange.stream(send)
                    return
                reply = await exchange.complete()
            else:
                reply = await self._other(incoming, caller)
        except RefusedError as refused:
            reply = failure_reply(incoming, refused.failure)
        except SDKError as error:
            reply = error_reply(incoming, error)
        await send_whole(reply, send)

    async def _other(self, incoming: Incoming, caller: Caller) -> Reply:
        """The reply to what is no request for an answer."""
        kind = incoming.route.kind
        if kind == "models":
            models = [ServedModel(id=name) for name in self._routes.names() if caller.may_use(name)]
            return json_reply(
                incoming, serve_of(incoming.dialect).list_models(models, incoming.query)
            )
        if kind == "count":
            return json_reply(incoming, count_body(incoming, self._count(caller)))
        raise RefusedError(Failure(status=404, message="This server does not have that."))

    def _count(self, caller: Caller) -> Callable[[Request], int]:
        def count(request: Request) -> int:
            route = self._find(request.model, caller)
            client = route.client or self._client
            return client.estimate_input_tokens(replace(request, model=route.model))

        return count

    def _find(self, name: str, caller: Caller) -> ModelRoute:
        route = self._routes.find(name)
        if route is None or not caller.may_use(name):
            message = f"The model {name!r} does not exist, or this key may not use it."
            raise RefusedError(Failure(status=404, model=name, message=message))
        return route

    def _open(self, incoming: Incoming, caller: Caller) -> _Exchange:
        asked = dialects.get(incoming.dialect).decode_request(incoming.call)
        route = self._find(asked.model, caller)
        return _Exchange(incoming, asked, route, route.client or self._client, self._secret)


class _Exchange:
    """One request for an answer."""

    def __init__(
        self,
        incoming: Incoming,
        asked: Request,
        route: ModelRoute,
        client: Client,
        secret: bytes,
    ) -> None:
        self._incoming = incoming
        self._asked = asked
        self._client = client
        self._dialect = dialects.get(incoming.dialect)
        addressed = client.calls.routing.address(replace(asked, model=route.model))
        upstream = getattr(client.calls.adapters.get(addressed.provider or ""), "dialect", None)
        self._state: SealedState | None = None
        self._warnings: tuple[Warning, ...] = ()
        if upstream is not None:
            self._state = SealedState(
                secret,
                client=self._dialect.FACTS,
                upstream=dialects.get(upstream).FACTS,
                provider=addressed.provider or "",
                model=addressed.model,
            )
            asked, self._warnings = self._state.unseal_request(asked)
        is_own = upstream == incoming.dialect
        self._request = replace(
            asked,
            model=route.model,
            provider_options=asked.provider_options if is_own else {},
            on_loss=asked.on_loss or "warn",
        )
        unset = {
            name: value
            for name, value in route.settings.items()
            if getattr(self._request, name) is None
        }
        if unset:
            self._request = replace(self._request, **unset)

    async def complete(self) -> Reply:
        """The reply with the whole answer."""
        response = await self._client.complete(self._request)
        if self._state is not None:
            response = self._state.seal_response(response)
        headers = self._headers(response.provider, response.model, response.warnings)
        if response.cost is not None and response.cost.total is not None:
            headers[f"{PREFIX}cost"] = f"{response.cost.total:.10f}".rstrip("0").rstrip(".")
        body = self._dialect.encode_response(response, self._asked)
        return json_reply(self._incoming, body, headers=headers)

    async def stream(self, send: Send) -> None:
        """Send the answer as it comes; an error before its first content is an error reply."""
        encoder: StreamEncoder = self._dialect.stream_encoder(self._asked)
        if self._state is not None:
            encoder = self._state.encoder(encoder)
        events = self._client.stream(self._request)
        delivery = StreamDelivery(send, framing_of(self._incoming))
        async with aclosing(events), delivery:
            try:
                async for event in events:
                    if type(event) is StreamStart:
                        delivery.headers |= self._headers(
                            event.provider, event.model, event.warnings
                        )
                    await delivery.put(encoder.feed(event), begin=is_content(event))
            except SDKError as error:
                if delivery.has_begun:
                    return  # the stream has told it, in an event of the client's own dialect
                reply = error_reply(self._incoming, error)
                delivery.abandon()
                await send_whole(reply, send)

    def _headers(self, provider: str, model: str, warnings: Iterable[Warning]) -> dict[str, str]:
        codes = sorted({warning.code for warning in (*self._warnings, *warnings)})
        headers = {f"{PREFIX}provider": provider, f"{PREFIX}model": model}
        if codes:
            headers[f"{PREFIX}warnings"] = ",".join(codes)
        return {name: value for name, value in headers.items() if value}
