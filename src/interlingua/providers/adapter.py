"""One row and one transport: encode, sign, send, read, decode."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any, ClassVar, Unpack

from msgspec.structs import replace

from interlingua.prepare.media import may_hold_media
from interlingua.prepare.prepare import prepare
from interlingua.prepare.schema import restore_arguments, restore_event
from interlingua.providers.adapter_options import (
    RowSettings,
    check_key,
    check_settings,
    find_base_url,
    find_server,
    find_timeouts,
    find_transport,
)
from interlingua.providers.answer_check import (
    UNCLEAR,
    WholeBody,
    WholeDecoder,
    check_answer,
    check_body,
    read_refusal,
)
from interlingua.providers.call import (
    DryRun,
    Ready,
    headers_for,
    join_headers,
    log_losses,
    since,
)
from interlingua.providers.cancel import CancelScope, Scopes
from interlingua.providers.catalog.profiles import profile_for
from interlingua.providers.error_labels import Stamp
from interlingua.providers.fold import fold_stream
from interlingua.providers.media import gather_media
from interlingua.providers.operations import (
    exchange,
    find_operation,
    http_request,
    name_models,
    note_used_body,
    perform_pages,
)
from interlingua.providers.provider import Provider, check_base_url, find_dialect, join_url, sign
from interlingua.providers.rows import find_provider
from interlingua.providers.ulid import new_ulid
from interlingua.spec.content import Json
from interlingua.spec.contracts import (
    AdapterCapabilities,
    Dialect,
    HttpReply,
    HttpRequest,
    Profile,
    StreamDecoder,
    WireCall,
)
from interlingua.spec.errors import ConfigurationError, SDKError
from interlingua.spec.events import StreamEvent
from interlingua.spec.operations import ItemDecoder, Operation, ServedModel
from interlingua.spec.request import OnLoss, Request, ToolChoiceMode
from interlingua.spec.response import Response
from interlingua.spec.warnings import check_losses, current_turn_first
from interlingua.streams.grammar import DELTAS
from interlingua.streams.reader import FrameDecoder, StreamReader
from interlingua.tokens.estimate import estimate_request
from interlingua.wire.fields import merge
from interlingua.wire.framing import JSONArrayDecoder
from interlingua.wire.json_text import dumps, loads
from interlingua.wire.ratelimit_headers import parse_rate_limit

if TYPE_CHECKING:
    from interlingua.local import LocalServer

_PROFILES = 512  # of models, that one adapter remembers


class HttpAdapter:
    """
    Answers requests through one provider.

        adapter = HttpAdapter("groq", api_key="…")
        response = await adapter.complete(Request(model="…", messages="Hello"))

    `options` are merged under the provider options of each request; `profile` (and
    `model_profiles`, by model) hold fields of `Profile` known better here. `max_retries` is
    for the client that calls it: an adapter alone never repeats a call. `read_files=False` is
    for requests that came over a network: a path in them is somebody else's.
    """

    has_stations: ClassVar[bool] = True
    """A client calls `ready`, then `answer` or `events`, and not `complete` or `stream`."""

    def __init_subclass__(cls) -> None:
        if not {"complete", "stream"}.isdisjoint(vars(cls)):
            cls.has_stations = False  # it answers in a way of its own

    def __init__(
        self,
        provider: Provider | str,
        api_key: str | None = None,
        **settings: Unpack[RowSettings],
    ) -> None:
        row = find_provider(provider) if isinstance(provider, str) else provider
        given = check_settings(settings)
        self.provider = row
        self.name: str = given.get("name") or row.name
        self.max_retries: int = given.get("max_retries", 0)
        self.on_loss: OnLoss = "strict" if given.get("strict") else given.get("on_loss", "content")
        self.reads_files: bool = given.get("read_files", True)
        self.server: LocalServer | None = find_server(row, given)
        """The server that it starts, if it is one of its own."""
        self._key = check_key(api_key)
        self._base_url = find_base_url(row, given, self.server)
        self._headers = join_headers(row.headers, given.get("default_headers", {}))
        self._signature = sign(row.signing, self._key)
        self._errors = Stamp(self.name, self._key, self._headers)
        self._options: Mapping[str, Any] = given.get("options", {})
        self._overrides: Mapping[str, Any] = given.get("profile", {})
        self._model_overrides: Mapping[str, Mapping[str, Any]] = given.get("model_profiles", {})
        self._profiles: dict[str, Profile] = {}
        self._scopes = Scopes()
        self._dialect_name: str = given.get("dialect") or row.dialect
        self._dialect: Dialect = find_dialect(self._dialect_name)
        self._transport = find_transport(given)
        self._timeouts = find_timeouts(given)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, base_url={self._base_url!r})"

    # What it can do.

    @property
    def dialect(self) -> str:
        """The name of the dialect it speaks."""
        return self._dialect_name

    @property
    def is_configured(self) -> bool:
        """Whether it has the key it needs."""
        return bool(self._key) or not self.provider.key_required

    @property
    def capabilities(self) -> AdapterCapabilities:
        """What this provider's models can do, as far as they agree."""
        return self.capabilities_for("")

    def capabilities_for(self, model: str) -> AdapterCapabilities:
        """What one of its models can do."""
        return AdapterCapabilities(self.profile_for(model))

    def profile_for(self, model: str) -> Profile:
        """What is known of one of its models."""
        profile = self._profiles.get(model)
        if profile is None:
            overrides = {**self._overrides, **self._model_overrides.get(model, {})}
            profile = profile_for(self._dialect_name, model, self.provider.name, overrides)
            if len(self._profiles) >= _PROFILES:  # names come from callers, who may have any
                self._profiles.clear()
            self._profiles[model] = profile
        return profile

    def supports_tool_choice(self, mode: ToolChoiceMode, model: str = "") -> bool:
        """Whether tools can be chosen this way."""
        profile = self.profile_for(model)
        modes = profile.tool_choice_modes
        return profile.tools and (modes is None or mode in modes)

    def estimate_input_tokens(self, request: Request) -> int:
        """About how many tokens the request has; nothing is sent."""
        return estimate_request(request, self._dialect.FACTS.token_family)

    def initialize(self) -> None:
        """Raise `ConfigurationError` if calls cannot work as it is set up; nothing is sent."""
        if not self.is_configured:
            raise ConfigurationError(_no_key(self.provider, self.name))

    # Calls.

    def dry_run(self, request: Request, *, stream: bool = False, strict: bool = False) -> DryRun:
        """What would be sent, without key; nothing is sent."""
        profile = self.profile_for(request.model)
        wire = self._encode(request, profile, stream=stream, strict=strict)
        return DryRun(
            profile=profile,
            url=join_url(self._base_url, wire.path),
            headers=headers_for(wire, self._headers),
            body=wire.body,
            warnings=wire.warnings,
        )

    async def complete(self, request: Request, *, strict: bool = False) -> Response:
        """The whole answer; `AbortError` if the call is cancelled meanwhile."""
        request = _with_id(request)
        return await self._scopes.wait(
            request.request_id or "", self._complete(request, strict=strict)
        )

    def stream(
        self, request: Request, *, strict: bool = False
    ) -> AsyncGenerator[StreamEvent, None]:
        """
        The answer as it comes.

        Leaving the loop closes the connection. A failure after the first event is told by
        events before it is raised.
        """
        request = _with_id(request)
        make_ready = partial(self.ready, request, stream=True, strict=strict)
        about = replace(request, provider=self.name)
        return fold_stream(partial(self.events, make_ready), about, self._scopes)

    # The stations of a call. A client calls them itself, with its own scope and its own fold.

    async def ready(self, request: Request, *, stream: bool = False, strict: bool = False) -> Ready:
        """
        Read the files and URLs of a request, prepare it, encode it, address and sign it.

        All attempts of the request send the same bytes.
        """
        try:
            request = await self._gather(request)
            profile = self._profiles.get(request.model) or self.profile_for(request.model)
            wire = self._encode(request, profile, stream=stream, strict=strict)
        except SDKError as error:
            self._errors.stamp(error, request.request_id, request.model)
            raise
        if wire.warnings:
            log_losses(wire.warnings, request, self.name)
        http = self._address(wire)
        return Ready(request=request, profile=profile, http=http, warnings=wire.warnings)

    async def answer(self, ready: Ready) -> Response:
        """Send, read and decode: one attempt at a whole answer."""
        began, request = perf_counter(), ready.request
        try:
            async with self._transport.send(ready.http) as reply:
                if reply.status >= 300:
                    raise await read_refusal(reply, self._dialect)
                body = await reply.read()
            response = self._decode(loads(body), ready, reply.headers)
        except SDKError as error:
            self._errors.stamp(error, request.request_id, request.model)
            raise
        return replace(
            response,
            provider=self.name,
            request_id=request.request_id,
            warnings=(*ready.warnings, *response.warnings),
            latency_ms=since(began),
        )

    async def events(
        self, make_ready: Callable[[], Awaitable[Ready]], scope: CancelScope
    ) -> AsyncGenerator[StreamEvent, None]:
        """Send, read and decode: one attempt at a stream. It only raises when it fails."""
        ready = await make_ready()
        began = perf_counter()
        try:
            async with self._transport.send(ready.http) as reply:
                if reply.status >= 300:
                    raise await read_refusal(reply, self._dialect)
                scope.replies = (*scope.replies, reply)
                try:
                    reader = self._reader(ready, reply, began)
                    frames, decoder = reader.frames, reader.decoder
                    async for chunk in reply.chunks():
                        for frame in frames.feed(chunk):
                            for event in decoder.feed(frame):
                                yield event if type(event) in DELTAS else reader.label(event)
                            if reader.is_finished:
                                return
                    for event in reader.finish():
                        yield event
                finally:
                    scope.replies = tuple(held for held in scope.replies if held is not reply)
        except SDKError as error:
            self._errors.stamp(error, ready.request.request_id, ready.request.model)
            raise

    async def perform(
        self, operation: str | Operation, value: Any = None, *, request_id: str | None = None
    ) -> Any:
        """
        Do what is no answer: count tokens, list models, or an operation of your own.

        A name is that of an operation of its dialect. `AbortError` if it is cancelled meanwhile.
        """
        operation = find_operation(operation, self._dialect)
        request_id = request_id or getattr(value, "request_id", None) or new_ulid()
        if operation.stream_decoder is not None:
            scope, decoder = CancelScope(), operation.stream_decoder()
            items = self._stream_items(operation, decoder, value, request_id, scope)
            await scope.wait(anext(items))  # the reply has begun
            return items
        try:
            return await self._scopes.wait(request_id, self._perform(operation, value))
        except SDKError as error:
            self._errors.stamp(error, request_id, getattr(value, "model", None))
            raise

    async def list_models(self) -> list[ServedModel]:
        """The models it serves now, asked live."""
        return name_models(await self.perform("list_models"), self.name)

    async def count_tokens(self, request: Request) -> int:
        """How many tokens the request has, as the provider counts them, asked live."""
        tokens: int = await self.perform("count_tokens", request)
        return tokens

    async def cancel(self, request_id: str) -> bool:
        """Stop a call under way; False if there is none of that id, or it was stopped before."""
        return self._scopes.cancel(request_id)

    async def close(self) -> None:
        """Stop what is under way, and release every connection."""
        self._scopes.cancel_all()
        await self._transport.close()

    # The steps.

    async def _wake(self) -> None:
        """Be there to be called, if the server has to be started."""
        if self.server is not None:
            url = await asyncio.to_thread(self.server.start)
            self._base_url = check_base_url(url, self.provider.base_path)

    async def _gather(self, request: Request) -> Request:
        """The request with the bytes of the files it names, and of URLs its dialect cannot."""
        if not self._key:
            self.initialize()
        if self.server is not None:
            await self._wake()
        if self.reads_files and may_hold_media(request.messages):
            request = await gather_media(request, self.profile_for(request.model))
        return request

    async def _complete(self, request: Request, *, strict: bool) -> Response:
        return await self.answer(await self.ready(request, strict=strict))

    def _decode(self, body: Json, ready: Ready, headers: Mapping[str, str]) -> Response:
        response = self._dialect.decode_response(
            body, headers=headers, new_id=new_ulid, profile=ready.profile
        )
        if response.finish_reason.reason in UNCLEAR:
            check_answer(response, body, headers, ready.request, self._dialect)
        return restore_arguments(response, ready.request) if ready.request.tools else response

    def _encode(
        self, request: Request, profile: Profile, *, stream: bool, strict: bool
    ) -> WireCall:
        if self._options or request.provider_options:
            request = self._with_options(request)
        prepared = prepare(request, profile, self._dialect.FACTS)
        wire = self._dialect.encode_request(prepared, profile, stream=stream)
        if not wire.warnings:
            return wire
        on_loss = request.on_loss or ("strict" if strict else self.on_loss)
        check_losses(wire.warnings, request, on_loss)
        return replace(wire, warnings=current_turn_first(wire.warnings, request))

    def _address(self, wire: WireCall) -> HttpRequest:
        return HttpRequest(
            url=join_url(self._base_url, wire.path),
            headers={**headers_for(wire, self._headers), **self._signature},
            body=dumps(wire.body),
            timeouts=self._timeouts,
        )

    async def _perform(self, operation: Operation, value: Any) -> Any:
        async def send(page: WireCall) -> tuple[HttpReply, bytes]:
            return await exchange(self._addressed(page), self._transport, self._dialect)

        return await perform_pages(operation, await self._encode_operation(operation, value), send)

    async def _stream_items(
        self,
        operation: Operation,
        decoder: ItemDecoder,
        value: Any,
        request_id: str,
        scope: CancelScope,
    ) -> AsyncGenerator[Any, None]:
        """None when the reply has begun, then its items as they come."""
        self._scopes.add(request_id, scope)
        try:
            request = self._addressed(await self._encode_operation(operation, value))
            try:
                async with self._transport.send(request) as reply:
                    if reply.status >= 300:
                        raise await read_refusal(reply, self._dialect)
                    scope.replies = (reply,)
                    yield None
                    chunks = aiter(reply.chunks())
                    while chunk := await scope.wait(anext(chunks, b"")):
                        for item in decoder.feed(chunk):
                            yield item
                for item in decoder.finish():
                    yield item
            except SDKError as error:
                note_used_body(error, request)
                raise
        except SDKError as error:
            self._errors.stamp(error, request_id)
            raise
        finally:
            self._scopes.remove(request_id, scope)

    def _addressed(self, call: WireCall) -> HttpRequest:
        return http_request(call, self._base_url, self._headers, self._signature, self._timeouts)

    async def _encode_operation(self, operation: Operation, value: Any) -> WireCall:
        """The call of an operation, at the path that the row has for it."""
        if isinstance(value, Request):
            value = self._with_options(await self._gather(value))
        else:
            self.initialize()
            await self._wake()
        model = getattr(value, "model", None)
        call = operation.encode(value, self.profile_for(model if isinstance(model, str) else ""))
        path = self.provider.operation_paths.get(operation.name)
        return call if path is None else replace(call, path=path)

    def _reader(self, ready: Ready, reply: HttpReply, began: float) -> StreamReader:
        """The decoder of a reply, by how its head says that it is framed."""
        request, dialect = ready.request, self._dialect
        about = Response(
            provider=self.name,
            request_id=request.request_id,
            model=request.model,
            warnings=ready.warnings,
            rate_limit=parse_rate_limit(reply.headers),
        )
        frames: FrameDecoder | None = None
        decoder: StreamDecoder
        if "json" not in reply.headers.get("content-type", ""):
            decoder = dialect.stream_decoder(new_id=new_ulid, profile=ready.profile)
        elif "json-array" in dialect.FACTS.framings:
            frames = JSONArrayDecoder()
            decoder = dialect.stream_decoder(new_id=new_ulid, profile=ready.profile)
        else:  # a server that does not stream
            frames = WholeBody()
            decoder = WholeDecoder(partial(self._decode, ready=ready, headers=reply.headers))
        return StreamReader(
            decoder,
            about,
            lambda: since(began),
            frames=frames,
            edit=partial(restore_event, request=request) if request.tools else None,
            check=lambda response: check_body(response, request, dialect.NAME),
        )

    def _with_options(self, request: Request) -> Request:
        """The adapter's own options under those of the request, by any name it goes by."""
        given = request.provider_options
        joined = self._options
        names = (self._dialect_name, self.provider.name, self.name, request.provider)
        for name in dict.fromkeys(names):
            options = given.get(name) if name else None
            if isinstance(options, Mapping):
                joined = merge(joined, options)
        return replace(request, provider_options={**given, self._dialect_name: joined})


def _with_id(request: Request) -> Request:
    return request if request.request_id else replace(request, request_id=new_ulid())


def _no_key(row: Provider, name: str) -> str:
    names = " or ".join(row.key_env) or "its key"
    return f"{name} has no API key; set {names} for Client.from_env(), or pass api_key"
