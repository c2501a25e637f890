"""
An ASGI application that answers every dialect with the models of a `Client`.

The way of a request: route of the dialect, key, decode, name to model, unseal, client, seal,
encode, send. While the answer is made and sent, the disconnect of the client is awaited beside it,
and ends the call of the model.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import (
    AsyncGenerator,
    Awaitable,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import aclosing, suppress
from fnmatch import fnmatchcase
from functools import partial
from secrets import token_bytes
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

from msgspec.structs import replace

from interlingua import dialects
from interlingua.client.client import Client
from interlingua.client.configured import row_of
from interlingua.client.registry import Route as Place
from interlingua.client.stores.contract import Store
from interlingua.providers.operations import offers
from interlingua.runtime.log import logger
from interlingua.runtime.ulid import new_ulid
from interlingua.serving.answer_stamp import AnswerStamp, stamp_result
from interlingua.serving.application import (
    Application,
    Incoming,
    RefusedError,
    check_form,
    check_served,
    decode_operation,
    encode_operation,
    failure_reply,
    find_route,
    framing_of,
    json_reply,
    limit_headers,
    serve_of,
)
from interlingua.serving.asgi import ClientGoneError, Receive, Reply, Send, wait_for_disconnect
from interlingua.serving.client_batches import ClientBatches
from interlingua.serving.client_operations import (
    as_asked,
    find_holder,
    is_held,
    keep_job,
    needs_model,
    perform_at_holder,
    perform_by_model,
    perform_here,
    read_video,
)
from interlingua.serving.compaction import check_summaries, find_compaction, open_summaries
from interlingua.serving.holdings import Holding, Holdings
from interlingua.serving.joined_turns import join_turns
from interlingua.serving.kept_responses import (
    KeptResponses,
    Memory,
    Shelf,
    is_about_kept,
    perform_kept,
    start_keeping,
    without_references,
)
from interlingua.serving.model_list import catalog_models, describe_target, served_kinds
from interlingua.serving.passed_on import (
    options_of,
    session_of,
    with_trace,
    without_refused_flags,
)
from interlingua.serving.sealed_state import SealedState
from interlingua.serving.stream_delivery import (
    SentParts,
    StreamDelivery,
    send_head,
    send_whole,
)
from interlingua.serving.upstream_errors import client_reply, for_clients, hosts_of
from interlingua.spec.contracts import Frame, StreamEncoder
from interlingua.spec.errors import ConfigurationError, NotFoundError, SDKError, StoreError
from interlingua.spec.events import ErrorEvent, Finish, StreamEvent, StreamStart
from interlingua.spec.modalities.batch import BatchQuery, BatchSubmission
from interlingua.spec.operations import Failure, ServedModel
from interlingua.spec.request import Request
from interlingua.spec.response import Cost, RateLimitInfo, Response, Warning
from interlingua.streams.grammar import DELTAS, is_content

MAX_BODY = 64 * 1024 * 1024
"""Bytes of a request: histories with many images are this large."""

PREFIX = "x-interlingua-"
"""How the names of our own headers begin."""

REQUEST_ID = "x-request-id"
"""The header of the id of a request, in both directions."""
_DEFECT = "The gateway has failed. Its log says why."
_NOT_OPEN = (
    f"A key that may use only some models cannot name a provider in the header {PREFIX}provider: "
    "all keys share what is stored there."
)
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


class Caller(NamedTuple):
    """Who sends a request."""

    name: str = ""
    """Empty if callers have no names."""
    models: Sequence[str] | None = None
    """The names and patterns of the models that it may use; None for all."""
    keep: float | None = None
    """Seconds that its responses are kept, if any are; None for the usual time, 0 for none."""

    def may_use(self, name: str) -> bool:
        """Tell whether this caller may use the model of this name."""
        return self.models is None or any(fnmatchcase(name, each) for each in self.models)


Authorize: TypeAlias = Callable[[Incoming], Caller]
"""Finds the caller of a request; raises `RefusedError` if its key is missing or wrong."""


def anybody(_: Incoming) -> Caller:
    """Let every request in, as a caller without a name."""
    return Caller()


class Policy(Protocol):
    """The limits of callers."""

    def client_for(self, caller: Caller, client: Client, /) -> Client:
        """The client of a route, with the limits of the caller."""

    async def report(self, caller: Caller, client: Client, /) -> RateLimitInfo | None:
        """What is left to the caller, of a route with this client; None if it has no limits."""


class Routes:
    """
    The public names of models.

    A name is looked up as it is, then among the patterns (`claude-*`), the longest first, then as a
    model of the client (`provider:model`), then as `default`. `direct` says if callers may name
    models of the client.
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
        """Return the route of a public name; None if there is none."""
        route = self._names.get(name)
        if route is None:
            for pattern, candidate in self._patterns:
                if fnmatchcase(name, pattern):
                    route = candidate
                    break
        if route is None and self._direct and ":" in name:
            route = ModelRoute(name)
        return route or self._default

    @property
    def is_direct(self) -> bool:
        """Whether models of the client can be named without a route."""
        return self._direct

    def names(self) -> tuple[str, ...]:
        """Return the names that clients are told: those that are no patterns."""
        return tuple(self._names)

    def items(self) -> Iterator[tuple[str, ModelRoute]]:
        """Yield all names and patterns, in the order in which they are tried."""
        yield from self._names.items()
        yield from self._patterns
        if self._default is not None:
            yield "default", self._default


def _is_known(incoming: Incoming) -> bool:
    """Whether there is something at the path of a request, by whatever method."""
    path = incoming.call.path.partition("?")[0]
    methods = ("GET", "POST", "DELETE")
    return any(find_route(each, path, incoming.call.headers).kind != "unknown" for each in methods)


def _is_pattern(name: str) -> bool:
    return any(character in name for character in "*?[")


class ClientApplication(Application):
    """
    Answers the requests of every dialect with the models of a client.

        client = Client(adapters)
        app = ClientApplication(client, {"claude-*": "openai:gpt-5.2"})

    `routes` are the public names of models, or patterns, and the models behind them; without them
    models are named as the client names them. `secret` authenticates the state that travels through
    the programs that call: at least 16 bytes, the same in all processes that serve them; without it
    the state ends with this process.
    `authorize` finds the caller of a request, and refuses a wrong key. A request of more than
    `max_body` bytes is refused. `kept` keeps responses, so that requests can refer to them; `store`
    has the files of callers, and where their batches and videos are. Processes that serve the same
    callers need the same stores. `policy` limits what callers may ask for.
    """

    def __init__(
        self,
        client: Client,
        routes: Mapping[str, str | ModelRoute] | Routes | None = None,
        *,
        secret: bytes | None = None,
        authorize: Authorize = anybody,
        max_body: int | None = MAX_BODY,
        kept: KeptResponses | None = None,
        policy: Policy | None = None,
        store: Store | None = None,
    ) -> None:
        self.max_body = max_body
        self._policy = policy
        self._kept = kept
        self._holdings = Holdings(store)
        self._client = client
        self._routes = routes if isinstance(routes, Routes) else Routes(routes, direct=not routes)
        self._secret = secret or token_bytes(32)
        self._authorize = authorize

    async def handle(self, incoming: Incoming, receive: Receive, send: Send) -> None:
        """Answer one request, unless its client leaves before the end."""
        sent = SentParts(send)
        task, is_over, has_left = asyncio.current_task(), False, False

        def leave(_: object) -> None:
            nonlocal has_left
            if not is_over and task is not None:  # else the task may do something else by now
                has_left = True
                task.cancel()

        gone = asyncio.ensure_future(wait_for_disconnect(receive))
        gone.add_done_callback(leave)
        try:
            await self._work(incoming, sent.send)
        except ClientGoneError:
            pass
        except asyncio.CancelledError:
            # Somebody else may have cancelled it at the same time.
            if not has_left or task is None or task.cancelling() > 1:
                raise
        except OSError:  # of the connection
            raise
        except Exception as defect:
            if sent.has_begun:
                raise
            logger.error("The reply to a request is 500, because of a defect.", exc_info=defect)
            await send_whole(failure_reply(incoming, Failure(status=500, message=_DEFECT)), send)
        finally:
            is_over = True
            gone.cancel()
            if has_left and task is not None:
                task.uncancel()

    async def _work(self, incoming: Incoming, send: Send) -> None:
        ids = _Ids(incoming)
        try:
            if incoming.call.method == "HEAD" and _is_known(incoming):
                await send_head(send)
                return
            check_form(incoming)
            caller = await self._find_caller(incoming)
            shelf = None if self._kept is None else self._kept.of_caller(caller.name, caller.keep)
            check_served(incoming, keeps=shelf is not None)
            incoming, keeping = await start_keeping(incoming, shelf)
            incoming = open_summaries(incoming, self._secret)
            if incoming.route.kind == "answer":
                exchange = await self._open(incoming, caller, ids, Memory(shelf, keeping))
                await exchange.read_files(self._holdings.of_caller(caller.name))
                if incoming.call.stream:
                    await exchange.stream(send)
                    return
                reply = await exchange.complete()
            else:
                reply = await self._other(incoming, caller, ids, shelf)
        except RefusedError as refused:
            reply = failure_reply(incoming, refused.failure, request_id=ids.request_id)
        except SDKError as error:
            error.add_facts(request_id=ids.request_id)
            reply = _refuse(incoming, error, self._client)
        await ids.add_limits()
        await send_whole(ids.sign(reply), send)

    async def _find_caller(self, incoming: Incoming) -> Caller:
        """The caller; who has started an upload goes on without a key, as its clients do."""
        if incoming.key is None and incoming.route.operation is not None:
            upload_id = incoming.query.get("upload_id")
            name = await self._holdings.find_uploader(upload_id) if upload_id else None
            if name is not None and incoming.route.operation.name == "upload_chunk":
                return Caller(name, ())
        return self._authorize(incoming)

    async def _other(
        self, incoming: Incoming, caller: Caller, ids: _Ids, shelf: Shelf | None
    ) -> Reply:
        """The reply to what is no request for an answer."""
        kind = incoming.route.kind
        serve = serve_of(incoming.dialect)
        if kind == "models":
            return json_reply(
                incoming, serve.list_models(self._list(incoming, caller), incoming.query)
            )
        if kind == "model":
            model = self._describe(incoming.route.model or "", caller)
            return json_reply(incoming, serve.describe_model(model))
        if kind == "count":
            counted = incoming._replace(call=serve.counted_call(incoming.call))
            tokens = await (await self._open(counted, caller, ids, Memory(shelf))).count()
            return json_reply(incoming, serve.count_tokens(tokens))
        if is_about_kept(incoming):
            return await perform_kept(incoming, shelf)
        return await self._perform(incoming, caller, ids, Memory(shelf))

    async def _perform(
        self, incoming: Incoming, caller: Caller, ids: _Ids, memory: Memory
    ) -> Reply:
        """The reply to an operation other than an answer."""
        operation, value = decode_operation(incoming)
        name, value = operation.name, replace(value, request_id=ids.request_id)
        held = self._holdings.of_caller(caller.name)
        batches = ClientBatches(
            self._client, held, self._secret, lambda item: self._open(item, caller, ids, memory)
        )
        if needs_model(name, value):
            route, place = self._find(value.model, caller)
            client = self._client_of(route, caller, ids)
            result: Any = stamp_result(await perform_by_model(client, name, value, place))
            result = await keep_job(held, result, incoming.dialect)
            reply = encode_operation(incoming, as_asked(result, value), value)
            headers = own_headers(
                result.provider,
                result.model,
                result.warnings,
                cost=result.cost,
                request_id=result.provider_request_id,
            )
            return reply._replace(headers={**reply.headers, **headers})
        named = incoming.call.headers.get(f"{PREFIX}provider", "")
        if named and caller.models is not None:
            raise RefusedError(Failure(status=404, message=_NOT_OPEN))
        holder = find_holder(self._client, value, named) if caller.models is None else None
        if isinstance(value, (BatchQuery, BatchSubmission)):
            result = await batches.perform(incoming, name, value, named)
            value = replace(value, after=None) if name == "list_batches" else value  # it is a page
        elif holder is not None and not await is_held(held, value):
            result = await perform_at_holder(self._client, holder[0], name, holder[1])
        else:
            output = None
            if name == "download_file":
                output = await batches.read_output(value)
                output = output or await read_video(self._client, held, value)
            result = output or await perform_here(self._client, held, name, value)
        return encode_operation(incoming, result, value)

    def _list(self, incoming: Incoming, caller: Caller) -> list[ServedModel]:
        """The models that the caller may use: the routes, then those that can be named directly."""
        names = [name for name in self._routes.names() if caller.may_use(name)]
        models = {name: self._describe(name, caller) for name in names}
        if self._routes.is_direct:
            for model in catalog_models(self._client, served_kinds(incoming.dialect)):
                if caller.may_use(model.id):
                    models.setdefault(model.id, model)
        return list(models.values())

    def _describe(self, name: str, caller: Caller) -> ServedModel:
        route, place = self._find(name, caller)
        return describe_target(name, route.client or self._client, place.provider, place.model)

    def _find(self, name: str, caller: Caller) -> tuple[ModelRoute, Place]:
        """The route of a public name, and where it leads; a refusal with 404 if there is none."""
        route = self._routes.find(name) if caller.may_use(name) else None
        if route is not None:
            client = route.client or self._client
            with suppress(ConfigurationError):  # it tells the operator what to set, not the caller
                return route, client.calls.routing.place(None, route.model)
        message = f"The model {name!r} does not exist, or this key may not use it."
        raise RefusedError(Failure(status=404, model=name, message=message))

    async def _open(
        self, incoming: Incoming, caller: Caller, ids: _Ids, memory: Memory
    ) -> _Exchange:
        asked = dialects.get(incoming.dialect).decode_request(incoming.call)
        route, _ = self._find(asked.model, caller)
        client = self._client_of(route, caller, ids)
        if route.affinity == "key":
            asked = replace(asked, session_id=caller.name)
        memory = await memory.with_seals(asked)
        return _Exchange(incoming, asked, route, client, self._secret, ids, memory)

    def _client_of(self, route: ModelRoute, caller: Caller, ids: _Ids) -> Client:
        """The client that answers the caller; the reply will tell what is left to it."""
        client = route.client or self._client
        if self._policy is None:
            return client
        ids.report = partial(self._policy.report, caller, client)
        return self._policy.client_for(caller, client)


class _Ids:
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


def _refuse(incoming: Incoming, error: SDKError, client: Client) -> Reply:
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


class _Exchange:
    """One request for an answer."""

    def __init__(
        self,
        incoming: Incoming,
        asked: Request,
        route: ModelRoute,
        client: Client,
        secret: bytes,
        ids: _Ids,
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
        upstream = getattr(client.calls.adapters.get(self._provider), "dialect", None)
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
        row = row_of(self._client.calls.adapters.get(self._provider))
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
                reply = _refuse(self._incoming, error, self._client)
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
