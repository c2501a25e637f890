"""`HttpAdapter`: answers requests through one provider (encode, sign, send, read, decode)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from functools import partial
from math import inf
from time import perf_counter, time
from typing import ClassVar, TypeAlias

from msgspec.structs import replace

from interlingua.prepare.behaviour import Behaved, behave
from interlingua.prepare.history.scan import HistoryScan, scan_history
from interlingua.prepare.prepare import prepare
from interlingua.prepare.schema import restore_arguments, restore_event
from interlingua.providers.adapter_operations import OperationCalls
from interlingua.providers.adapter_options import (
    join_options,
    unknown_owners,
)
from interlingua.providers.answer_check import (
    UNCLEAR,
    UNREADABLE,
    WholeBody,
    WholeDecoder,
    check_answer,
    check_body,
    read_error,
    read_json,
    unreadable,
)
from interlingua.providers.catalog.lifecycle import lifecycle_notices
from interlingua.providers.catalog.models import NOTICES
from interlingua.providers.cost import price_usage
from interlingua.providers.default_options import under_request
from interlingua.providers.http_requests import (
    DryRun,
    Ready,
    add_attempt_id,
    headers_for,
    with_defaults,
)
from interlingua.providers.media import gather_media
from interlingua.providers.profile_check import can_stream, check_window, refuse_losses, wrong_kind
from interlingua.providers.provider import join_url
from interlingua.providers.reading import LARGE, FrameBatches
from interlingua.providers.stored_files import mark_lost_files
from interlingua.providers.tariffs import Tariffs, price_finish, unknown_price
from interlingua.providers.uploads import (
    Place,
    Uploads,
    check_request_size,
    closed,
    closing,
)
from interlingua.providers.usage import estimate_finish, estimate_response
from interlingua.runtime.cancel import CancelScope
from interlingua.runtime.fold import fold_body, fold_stream
from interlingua.runtime.log import log_warnings
from interlingua.runtime.ulid import new_ulid
from interlingua.spec.content import Json
from interlingua.spec.contracts import HttpReply, HttpRequest, Profile, StreamDecoder, WireCall
from interlingua.spec.defaults import Limits
from interlingua.spec.errors import DecodeError, SDKError
from interlingua.spec.events import StreamEvent
from interlingua.spec.request import Request
from interlingua.spec.response import Response, Warning, label_message
from interlingua.spec.warnings import current_turn_first
from interlingua.streams.grammar import DELTAS
from interlingua.streams.reader import FrameDecoder, StreamReader
from interlingua.wire import aws_event_stream
from interlingua.wire.json_array import JSONArrayDecoder
from interlingua.wire.json_text import dumps, loads
from interlingua.wire.ratelimit_headers import parse_rate_limit
from interlingua.wire.sse import SSEDecoder

OnResend: TypeAlias = Callable[[], object]
_CATALOG = Tariffs()
"""The prices of adapters that are used without a client."""


class HttpAdapter(OperationCalls):
    """
    Answers requests through one provider.

        adapter = HttpAdapter("groq", api_key="…")
        response = await adapter.complete(Request(model="…", messages="Hello"))

    A provider given by its name reads its environment variables for the key, address and headers
    that are not given. `api_key` may be a function that makes the key (see `ApiKey`), and `places`
    are the values of the places in the provider's address. `options` are fields of the body that a
    request does not set. `profile` and `model_profiles` (by model) override fields of `Profile`.
    `max_retries` is used by the client; an adapter itself never retries. With `read_files=False`
    it neither reads the files that parts name by `path` nor fetches URLs. `behaviour` changes what
    is sent; see `Behaviour`.
    """

    has_stations: ClassVar[bool] = True
    """Whether a client calls `ready`, then `answer` or `events`, not `complete` or `stream`."""

    def __init_subclass__(cls) -> None:
        if not {"complete", "stream"}.isdisjoint(vars(cls)):
            cls.has_stations = False  # call the overridden methods

    # Calls.

    def dry_run(self, request: Request, *, stream: bool = False, strict: bool = False) -> DryRun:
        """What would be sent, without the API key; nothing is sent."""
        profile = self.profile_for(request.model)
        behaved = Behaved(request=with_defaults(request, strict=strict))
        if self.behaviour is not None:
            behaved = behave(behaved.request, self.behaviour, profile)
        request = behaved.request
        stream = can_stream(request, profile, asked=stream)
        wire = self._encode(request, profile, stream=stream)
        self._check_length(request, profile, len(dumps(wire.body)))
        return DryRun(
            profile=profile,
            url=join_url(self._base_url, wire.path),
            headers=headers_for(wire, self._headers),
            body=wire.body,
            warnings=behaved.add_warnings(wire.warnings),
            addendum=behaved.addendum,
            left_out=behaved.left_out,
        )

    async def complete(self, request: Request, *, strict: bool = False) -> Response:
        """The whole answer; `AbortError` if the call is cancelled."""
        request = with_defaults(request, strict=strict)
        request_id = request.request_id or ""
        if request.upload is None:
            return await self._scopes.wait(request_id, self._complete(request))
        async with closed(Uploads()) as uploads:
            return await self._scopes.wait(request_id, self._complete(request, uploads))

    def stream(
        self, request: Request, *, strict: bool = False
    ) -> AsyncGenerator[StreamEvent, None]:
        """
        The events of the answer as they arrive.

        Closing the iterator closes the connection. If the stream fails after its first event,
        `ErrorEvent` and `Finish` are delivered before the error is raised.
        """
        request = with_defaults(request, strict=strict)
        uploads = None if request.upload is None else Uploads()
        make_ready = partial(self.ready, request, stream=True, uploads=uploads)
        named = replace(request, provider=self.name)
        events = fold_stream(partial(self.events, make_ready), named, self._scopes)
        return events if uploads is None else closing(events, uploads)

    # The stations of a call. A client calls them itself, with its own scope and its own fold.

    async def ready(
        self,
        request: Request,
        *,
        stream: bool = False,
        step: int = 0,
        attempt: int = 0,
        logged: set[str] | None = None,
        on_resend: OnResend | None = None,
        tariffs: Tariffs | None = None,
        uploads: Uploads | None = None,
    ) -> Ready:
        """
        Read the files and URLs of a request, prepare it, encode it, address and sign it.

        All attempts of the request send the same bytes: `Ready.for_attempt`. `logged` holds the
        codes of warnings that were logged for it before. `on_resend`: see `HttpRequest`. `tariffs`:
        the catalog's if None. `uploads` holds the files of the run, for a request with `upload`.
        """
        try:
            if not self._key:
                self._check_key()
            scan = HistoryScan(request.messages)
            if scan.holds_media:
                request = await self._gather(request, uploads)
                scan = scan_history(request.messages, scan)
            is_remote = self.server is None
            base_url = self._base_url if is_remote else await self._start_server(request.model)
            profile = self._profiles.get(request.model) or self.profile_for(request.model)
            given, behaved = request, None
            if self.behaviour is not None:
                behaved = behave(request, self.behaviour, profile)
                request, scan = behaved.request, scan_history(behaved.request.messages, scan)
            if stream or request.tools:
                stream = can_stream(request, profile, asked=stream)
            if scan.rough_size > LARGE:
                wire, body = await self._encode_in_thread(request, profile, scan, stream=stream)
            else:
                wire = self._encode(request, profile, scan, stream=stream)
                body = dumps(wire.body)
            # A token is at least one byte, so most requests need no estimate.
            if len(body) > min(self._most_bytes, profile.context_window or inf):
                self._check_length(request, profile, len(body))
        except SDKError as error:
            self._label_error(error, request.request_id, request.model)
            raise
        warnings = wire.warnings if behaved is None else behaved.add_warnings(wire.warnings)
        if warnings:
            log_warnings(warnings, given, self.name, set() if logged is None else logged)
        http, id_header = self._address(request, wire, body, base_url, step, attempt, on_resend)
        return Ready(
            request=request,
            profile=profile,
            http=http,
            warnings=warnings,
            stream=stream,
            left_out=() if behaved is None else behaved.left_out,
            tariffs=_CATALOG if tariffs is None else tariffs,
            id_header=id_header,
        )

    def _address(
        self,
        request: Request,
        wire: WireCall,
        body: bytes,
        base_url: str,
        step: int,
        attempt: int,
        on_resend: OnResend | None,
    ) -> tuple[HttpRequest, str | None]:
        """The HTTP request with its address and key; and the header with the attempt's id."""
        headers = {**headers_for(wire, self._headers), **self._signature}
        id_header = self._request_id_header
        if id_header is not None:
            id_header = add_attempt_id(headers, id_header, request.request_id, step, attempt)
        http = HttpRequest(
            url=join_url(base_url, wire.path),
            headers=headers,
            body=body,
            timeouts=self._timeouts,
            limits=self._limits,
            keep_alive=self.provider.keep_alive,
            on_resend=on_resend,
        )
        return http, id_header

    async def _encode_in_thread(
        self, request: Request, profile: Profile, scan: HistoryScan, *, stream: bool
    ) -> tuple[WireCall, bytes]:
        encode = partial(self._encode, request, profile, scan, stream=stream)
        wire = await asyncio.to_thread(encode)
        return wire, await asyncio.to_thread(dumps, wire.body)

    async def answer(self, ready: Ready) -> Response:
        """Send, read and decode: one attempt at a whole answer."""
        began, request = perf_counter(), ready.request
        try:
            async with self._transport.send(ready.http) as reply:
                if reply.status >= 300:
                    raise await read_error(reply, self._dialect)
                body = await reply.read()
            if ready.stream or len(body) > LARGE:
                decode = partial(self._decode_body, body, ready, reply, began)
                response = await asyncio.to_thread(decode) if len(body) > LARGE else decode()
            else:
                try:  # as `read_json`, without another function
                    value = loads(body)
                except DecodeError as error:
                    raise unreadable(error, reply.headers) from None
                response = self._decode(value, ready, reply.headers)
        except SDKError as error:
            self._label_error(error, request.request_id, request.model)
            raise
        usage, warnings = response.usage, (*ready.warnings, *response.warnings)
        tariff = ready.tariffs[self.seller, response.model, request.model]
        cost = price_usage(usage, tariff, ready.tariffs.clock())
        if cost is None:
            unknown = unknown_price(self.seller, response.model or request.model, usage)
            warnings = (*warnings, unknown)
        return replace(
            response,
            provider=self.name,
            request_id=request.request_id,
            cost=cost,
            warnings=warnings,
            latency_ms=round((perf_counter() - began) * 1000),
        )

    async def events(  # noqa: C901, PLR0912 -- one function: a generator would cost each delta
        self,
        make_ready: Callable[[], Awaitable[Ready]],
        scope: CancelScope,
    ) -> AsyncGenerator[StreamEvent, None]:
        """Send, read and decode: one attempt at a stream. A failure is raised, without events."""
        ready, began = await make_ready(), perf_counter()
        reader: StreamReader | None = None
        try:
            async with self._transport.send(ready.http) as reply:
                if reply.status >= 300:
                    raise await read_error(reply, self._dialect)
                scope.replies = (*scope.replies, reply)
                try:
                    reader = self._reader(ready, reply, began)
                    feed = reader.decoder.feed
                    batches = FrameBatches(reply, reader.frames, self._stream_content)
                    async for frames in batches:
                        has_content = False
                        for frame in frames:
                            is_large = len(frame.data) > LARGE
                            events = (
                                await asyncio.to_thread(feed, frame) if is_large else feed(frame)
                            )
                            for event in events:
                                if type(event) in DELTAS:
                                    has_content = True
                                    yield event
                                else:
                                    yield reader.label(event)
                            if reader.is_finished:
                                return
                        if has_content:
                            batches.content_at = perf_counter()
                    last = reader.finish()
                    if isinstance(reader.frames, WholeBody) and reader.frames.size > LARGE:
                        last = iter(await asyncio.to_thread(list, last))
                    for event in last:
                        yield event
                finally:
                    scope.replies = tuple(other for other in scope.replies if other is not reply)
        except SDKError as failure:
            error: SDKError = failure
            if reader is not None and not reader.is_started and isinstance(error, UNREADABLE):
                error = unreadable(failure, reply.headers)
            self._label_error(error, ready.request.request_id, ready.request.model)
            if error is failure:
                raise
            raise error from None

    # The steps.

    async def _gather(self, request: Request, uploads: Uploads | None = None) -> Request:
        """The request with its large files stored, the others read, and some URLs fetched."""
        if uploads is not None:
            request = await uploads.place(request, self._place())
        profile = self.profile_for(request.model)
        request = await gather_media(request, profile, reads_files=self.reads_files)
        return mark_lost_files(request, (self.name, self.provider.name), time())

    async def _complete(self, request: Request, uploads: Uploads | None = None) -> Response:
        response = await self.answer(await self.ready(request, uploads=uploads))
        message = label_message(response, request.request_id or "", self.name, request.model)
        return replace(response, message=message)

    def _decode_body(self, body: bytes, ready: Ready, reply: HttpReply, began: float) -> Response:
        if ready.stream:
            bare = replace(ready, warnings=())  # `answer` adds them, and the cost
            return fold_body(self._reader(bare, reply, began, price=False), body)
        return self._decode(read_json(body, reply.headers), ready, reply.headers)

    def _decode(self, body: Json, ready: Ready, headers: Mapping[str, str]) -> Response:
        response = self._dialect.decode_response(
            body, headers=headers, new_id=new_ulid, profile=ready.profile
        )
        if response.finish_reason.reason in UNCLEAR:
            check_answer(response, body, headers, ready.request, self._dialect)
        usage = response.usage
        if not (usage.input_tokens or usage.output_tokens):
            response = estimate_response(response, ready.request, self._family)
        return restore_arguments(response, ready.request) if ready.request.tools else response

    def _encode(
        self, request: Request, profile: Profile, scan: HistoryScan | None = None, *, stream: bool
    ) -> WireCall:
        if profile.kind != "chat" and not self._is_lenient(request):
            raise wrong_kind(request, profile)
        headers: dict[str, str] = {}
        unknown: list[Warning] = []
        if self._options or request.provider_options:
            row = self.provider
            unknown = unknown_owners(request, (self.name, row.name, *row.aliases))
            request, headers = self._with_options(request, profile)
        prepared = prepare(request, profile, self._dialect.FACTS, scan)
        wire = self._dialect.encode_request(prepared, profile, stream=stream)
        if self._endpoint is not None:
            wire = self._endpoint.address(wire, request.model, self._api_version)
        notices = NOTICES.get((self.provider.name, request.model))
        if notices is None:
            notices = lifecycle_notices(self.provider.name, request.model)
        if headers or unknown or notices:
            warnings = (*unknown, *wire.warnings, *notices)
            wire = replace(wire, headers={**wire.headers, **headers}, warnings=warnings)
        if not wire.warnings:
            return wire
        refuse_losses(wire.warnings, request, request.on_loss or self.on_loss)
        return replace(wire, warnings=current_turn_first(wire.warnings, request))

    def _place(self) -> Place:
        facts = self._dialect.FACTS
        return Place(self.name, self.provider, facts, self.perform, self.reads_files)

    def _check_length(self, request: Request, profile: Profile, size: int) -> None:
        """Raise an error if the body is longer than the provider or the model accepts."""
        if self._is_lenient(request):
            return
        check_request_size(size, self.provider, request)
        if profile.context_window is not None and size > profile.context_window:
            check_window(request, profile.context_window, self._dialect.FACTS.token_family)

    def _is_lenient(self, request: Request) -> bool:
        return (request.on_loss or self.on_loss) == "warn"

    def _reader(
        self, ready: Ready, reply: HttpReply, began: float, *, price: bool = True
    ) -> StreamReader:
        """
        The reader for a reply, chosen by its content type.

        With `price=False` its response has no cost yet.
        """
        request, dialect = ready.request, self._dialect
        known = Response(
            provider=self.name,
            request_id=request.request_id,
            model=request.model,
            warnings=ready.warnings,
            rate_limit=parse_rate_limit(reply.headers),
        )
        limits = self._limits or getattr(self._transport, "limits", None) or Limits()
        frames: FrameDecoder = SSEDecoder(limits.event, limits.events)
        decoder: StreamDecoder
        content_type = reply.headers.get("content-type", "")
        is_json = not ready.stream or "json" in content_type
        if not is_json:
            if content_type.startswith(aws_event_stream.MEDIA_TYPE):
                frames = aws_event_stream.ChunkDecoder(limits.event, limits.events)
            decoder = dialect.stream_decoder(new_id=new_ulid, profile=ready.profile)
        elif ready.stream and "json-array" in dialect.FACTS.framings:
            frames = JSONArrayDecoder(limits.event, limits.events)
            decoder = dialect.stream_decoder(new_id=new_ulid, profile=ready.profile)
        else:  # the server does not stream: one JSON body
            frames = WholeBody()
            decoder = WholeDecoder(partial(self._decode, ready=ready, headers=reply.headers))
        return StreamReader(
            decoder,
            known,
            lambda: round((perf_counter() - began) * 1000),
            frames=frames,
            edit=partial(restore_event, request=request) if request.tools else None,
            check=lambda response: check_body(response, request, dialect.NAME),
            estimate=partial(estimate_finish, request=request, family=self._family),
            price=partial(price_finish, ready.tariffs, self.seller, request) if price else None,
            keep_raw=request.keep_raw,
        )

    def _with_options(self, request: Request, profile: Profile) -> tuple[Request, dict[str, str]]:
        own = {}
        if self._options:
            own = under_request(self._options, request, profile, self._dialect)
        names = (self.name, request.provider)
        return join_options(request, own, self.provider, self._dialect_name, names)
