"""
An ASGI application that answers every dialect with the models of a `Client`.

The way of a request: route of the dialect, key, decode, name to model, unseal, client, seal,
encode, send. While the answer is made and sent, the disconnect of the client is awaited beside it,
and ends the call of the model.
"""

from __future__ import annotations

import asyncio
from collections.abc import (
    Callable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import suppress
from fnmatch import fnmatchcase
from functools import partial
from secrets import token_bytes
from typing import Any, NamedTuple, Protocol, TypeAlias

from msgspec.structs import replace

from interlingua import dialects
from interlingua.client.client import Client
from interlingua.client.registry import Route as Place
from interlingua.client.stores.contract import Store
from interlingua.runtime.log import logger
from interlingua.serving.answer_stamp import stamp_result
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
    json_reply,
    serve_of,
)
from interlingua.serving.asgi import ClientGoneError, Receive, Reply, Send, wait_for_disconnect
from interlingua.serving.client_batches import ClientBatches
from interlingua.serving.client_operations import (
    as_asked,
    find_holder,
    is_held,
    keep_job,
    makes_job,
    needs_model,
    perform_at_holder,
    perform_by_model,
    perform_here,
    read_video,
)
from interlingua.serving.compaction import open_summaries
from interlingua.serving.exchange import (
    PREFIX,
    Exchange,
    ModelRoute,
    RequestIds,
    own_headers,
    refuse,
)
from interlingua.serving.holdings import Holding, Holdings
from interlingua.serving.kept_responses import (
    KeptResponses,
    Memory,
    Shelf,
    is_about_kept,
    perform_kept,
    start_keeping,
)
from interlingua.serving.model_list import catalog_models, describe_target, served_kinds
from interlingua.serving.storage import Storage
from interlingua.serving.stream_delivery import (
    SentParts,
    send_head,
    send_whole,
)
from interlingua.spec.errors import ConfigurationError, SDKError
from interlingua.spec.modalities.batch import BatchQuery, BatchSubmission
from interlingua.spec.operations import Failure, ServedModel
from interlingua.spec.response import RateLimitInfo

MAX_BODY = 64 * 1024 * 1024
"""Bytes of a request: histories with many images are this large."""

_DEFECT = "The gateway has failed. Its log says why."
_NOT_OPEN = (
    f"A key that may use only some models cannot name a provider in the header {PREFIX}provider: "
    "all keys share what is stored there."
)


class Caller(NamedTuple):
    """Who sends a request."""

    name: str = ""
    """Empty if callers have no names."""
    models: Sequence[str] | None = None
    """The names and patterns of the models that it may use; None for all."""
    keep: float | None = None
    """Seconds that its responses are kept, if any are; None for the usual time, 0 for none."""
    storage: Storage | None = None
    """The most that is stored for it; None for as much as usual."""

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
        """Return the names that clients are shown: all that are not patterns."""
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
    callers need the same stores. `policy` limits what callers may ask for. `storage` limits how
    much is stored for each.
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
        storage: Storage = Storage(),  # noqa: B008 -- it never changes
    ) -> None:
        self.max_body = max_body
        self._policy = policy
        self._kept = kept
        self._holdings = Holdings(store)
        self._storage = storage
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
        ids = RequestIds(incoming)
        try:
            if incoming.call.method == "HEAD" and _is_known(incoming):
                await send_head(send)
                return
            check_form(incoming)
            caller = await self._find_caller(incoming)
            shelf = self._shelf(caller)
            check_served(incoming, keeps=shelf is not None)
            incoming, keeping = await start_keeping(incoming, shelf)
            incoming = open_summaries(incoming, self._secret)
            if incoming.route.kind == "answer":
                exchange = await self._open(incoming, caller, ids, Memory(shelf, keeping))
                await exchange.read_files(self._holding(caller))
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
            reply = refuse(incoming, error, self._client)
        await ids.add_limits()
        await send_whole(ids.sign(reply), send)

    async def _find_caller(self, incoming: Incoming) -> Caller:
        """The caller; who has started an upload goes on without a key, as its clients do."""
        if incoming.key is None and incoming.route.operation is not None:
            upload_id = incoming.query.get("upload_id")
            found = await self._holdings.find_uploader(upload_id) if upload_id else None
            if found is not None and incoming.route.operation.name == "upload_chunk":
                return Caller(found[0], (), storage=found[1])
        return self._authorize(incoming)

    def _shelf(self, caller: Caller) -> Shelf | None:
        """What is kept of the responses of a caller; None if nothing is."""
        if self._kept is None:
            return None
        most = caller.storage or self._storage
        return self._kept.of_caller(caller.name, caller.keep, most)

    def _holding(self, caller: Caller) -> Holding:
        """The files and jobs of a caller."""
        return self._holdings.of_caller(caller.name, caller.storage or self._storage)

    async def _other(
        self, incoming: Incoming, caller: Caller, ids: RequestIds, shelf: Shelf | None
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
        self, incoming: Incoming, caller: Caller, ids: RequestIds, memory: Memory
    ) -> Reply:
        """The reply to an operation other than an answer."""
        operation, value = decode_operation(incoming)
        name, value = operation.name, replace(value, request_id=ids.request_id)
        held = self._holding(caller)
        batches = ClientBatches(
            self._client, held, self._secret, lambda item: self._open(item, caller, ids, memory)
        )
        if needs_model(name, value):
            route, place = self._find(value.model, caller)
            client = self._client_of(route, caller, ids)
            if makes_job(value):
                await held.check_jobs()
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
        self, incoming: Incoming, caller: Caller, ids: RequestIds, memory: Memory
    ) -> Exchange:
        asked = dialects.get(incoming.dialect).decode_request(incoming.call)
        route, _ = self._find(asked.model, caller)
        client = self._client_of(route, caller, ids)
        if route.affinity == "key":
            asked = replace(asked, session_id=caller.name)
        memory = await memory.with_seals(asked)
        return Exchange(incoming, asked, route, client, self._secret, ids, memory)

    def _client_of(self, route: ModelRoute, caller: Caller, ids: RequestIds) -> Client:
        """The client that answers the caller; the reply will tell what is left to it."""
        client = route.client or self._client
        if self._policy is None:
            return client
        ids.report = partial(self._policy.report, caller, client)
        return self._policy.client_for(caller, client)
