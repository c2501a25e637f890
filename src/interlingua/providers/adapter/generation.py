"""Calls of a model through one provider: encode, address and sign, send, read, decode."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from functools import partial
from math import inf
from time import perf_counter, time
from typing import TypeAlias

from msgspec.structs import replace

from interlingua.prepare.behaviour import Behaved, behave
from interlingua.prepare.history.scan import HistoryScan, scan_history
from interlingua.prepare.prepare import prepare
from interlingua.prepare.schema import restore_arguments, restore_event
from interlingua.providers.adapter.configuration import Configuration
from interlingua.providers.adapter_options import unknown_owners
from interlingua.providers.catalog.models import NOTICES
from interlingua.providers.catalog.search import lifecycle_notices, short_name_notice
from interlingua.providers.cost import price_usage
from interlingua.providers.http_requests import (
    DryRun,
    Encoded,
    Ready,
    add_attempt_id,
    headers_for,
)
from interlingua.providers.media import gather_media, mark_lost_files
from interlingua.providers.profile_check import (
    can_stream,
    check_maker,
    check_window,
    refuse_losses,
    wrong_kind,
)
from interlingua.providers.provider import join_url
from interlingua.providers.replies import (
    HELD,
    LARGE,
    STEP,
    UNCLEAR,
    UNREADABLE,
    FrameBatches,
    WholeBody,
    WholeDecoder,
    answer_headers,
    check_answer,
    check_body,
    collect,
    feed_rest,
    in_steps,
    read_error,
    read_json,
    unreadable,
)
from interlingua.providers.tariffs import Tariffs, price_finish, unknown_price
from interlingua.providers.uploads import check_request_size
from interlingua.providers.usage import estimate_finish, estimate_response
from interlingua.runtime.cancel import CancelScope
from interlingua.runtime.fold import ClosedStream
from interlingua.runtime.log import log_warnings
from interlingua.runtime.ulid import new_ulid
from interlingua.spec.content import UncheckedJson
from interlingua.spec.contracts import HttpReply, HttpRequest, Profile, StreamDecoder, WireCall
from interlingua.spec.errors import DecodeError, SDKError
from interlingua.spec.events import Finish, StreamEvent
from interlingua.spec.request import Request
from interlingua.spec.response import Response, Warning
from interlingua.spec.warnings import current_turn_first
from interlingua.streams.accumulate import StreamAccumulator
from interlingua.streams.grammar import DELTAS
from interlingua.streams.reader import FrameDecoder, StreamReader
from interlingua.tokens.estimate import estimate_request
from interlingua.wire import aws_event_stream
from interlingua.wire.json_array import JSONArrayDecoder
from interlingua.wire.json_text import dumps, loads
from interlingua.wire.ratelimit_headers import parse_rate_limit
from interlingua.wire.sse import SSEDecoder

OnResend: TypeAlias = Callable[[], object]
OnConnect: TypeAlias = Callable[[bool], object]
_CATALOG = Tariffs()
"""The prices of adapters that are used without a client."""


class Generation:
    """
    The stations of a call of a model: `encode`, `address`, then `answer` or `events`.

    A client calls them with its own scope and its own fold; `HttpAdapter.complete` and `stream` do
    without one.
    """

    def __init__(self, configuration: Configuration) -> None:
        self._configuration = configuration

    # Before the request is sent.

    async def encode(
        self,
        request: Request,
        *,
        stream: bool = False,
        in_batch: bool = False,
        logged: set[str] | None = None,
    ) -> Encoded:
        """
        Read the files and URLs of a request, apply the behaviour, prepare it and encode it.

        `logged` holds the codes of warnings that were logged for the request before. `in_batch`
        is for the requests of a batch, which are never streamed.
        """
        own = self._configuration
        try:
            if not own.key:
                own.check_key()
            scan = HistoryScan(request.messages)
            if scan.holds_media:
                request = await self.gather(request)
                scan = scan_history(request.messages, scan)
            profile = own.profiles.get(request.model) or own.profile_for(request.model)
            given, behaved = request, None
            if own.behaviour is not None:
                behaved = behave(request, own.behaviour, profile)
                request, scan = behaved.request, scan_history(behaved.request.messages, scan)
            if (stream or request.tools or request.max_tokens is not None) and not in_batch:
                stream = can_stream(request, profile, asked=stream)
            if scan.rough_size > LARGE:
                wire, body = await self._encode_in_thread(request, profile, scan, stream=stream)
            else:
                wire = self._encode(request, profile, scan, stream=stream)
                body = dumps(wire.body)
            # A token is at least one byte, so most requests need no estimate.
            if len(body) > min(own.provider.sizes.request or inf, profile.context_window or inf):
                self._check_length(request, profile, len(body))
        except SDKError as error:
            own.label_error(error, request.request_id, request.model)
            raise
        warnings = wire.warnings if behaved is None else behaved.add_warnings(wire.warnings)
        if warnings:
            log_warnings(warnings, given, own.name, set() if logged is None else logged)
        return Encoded(
            request=request,
            profile=profile,
            path=wire.path,
            headers=wire.headers,
            body=body,
            warnings=warnings,
            stream=stream,
            left_out=() if behaved is None else behaved.left_out,
        )

    async def address(
        self,
        encoded: Encoded,
        *,
        step: int = 0,
        attempt: int = 0,
        on_resend: OnResend | None = None,
        on_connect: OnConnect | None = None,
        tariffs: Tariffs = _CATALOG,
    ) -> Ready:
        """
        Address and sign an encoded request; a local server is started first.

        All attempts of the request send the same bytes: `Ready.for_attempt`. `on_resend` and
        `on_connect`: see `HttpRequest`.
        """
        own, request = self._configuration, encoded.request
        base_url = own.base_url
        if own.server is not None:
            try:
                base_url = await own.start_server(request.model)
            except SDKError as error:
                own.label_error(error, request.request_id, request.model)
                raise
        headers = headers_for(encoded.headers, own.headers, stream=encoded.stream)
        headers |= own.signature
        id_header = own.provider.request_id_header
        if id_header is not None:
            id_header = add_attempt_id(headers, id_header, request.request_id, step, attempt)
        http = HttpRequest(
            url=join_url(base_url, encoded.path),
            headers=headers,
            body=encoded.body,
            timeouts=own.timeouts,
            limits=own.limits,
            keep_alive=own.provider.keep_alive,
            on_resend=on_resend,
            on_connect=on_connect,
        )
        return Ready(
            request=request,
            profile=encoded.profile,
            http=http,
            warnings=encoded.warnings,
            stream=encoded.stream,
            left_out=encoded.left_out,
            tariffs=tariffs,
            id_header=id_header,
        )

    def dry_run(self, request: Request, *, stream: bool) -> DryRun:
        """What would be sent, without the API key; files are not read."""
        own, behaved = self._configuration, Behaved(request=request)
        profile = own.profile_for(request.model)
        if own.behaviour is not None:
            behaved = behave(request, own.behaviour, profile)
        request = behaved.request
        stream = can_stream(request, profile, asked=stream)
        wire = self._encode(request, profile, stream=stream)
        self._check_length(request, profile, len(dumps(wire.body)))
        return DryRun(
            profile=profile,
            url=join_url(own.base_url, wire.path),
            headers=headers_for(wire.headers, own.headers, stream=stream),
            body=wire.body,
            warnings=behaved.add_warnings(wire.warnings),
            addendum=behaved.addendum,
            left_out=behaved.left_out,
        )

    def estimate_input_tokens(self, request: Request) -> int:
        """An offline estimate of the number of input tokens."""
        own = self._configuration
        if own.behaviour is not None:
            request = behave(request, own.behaviour, own.profile_for(request.model)).request
        return estimate_request(request, own.dialect.FACTS.token_family)

    async def gather(self, request: Request) -> Request:
        """The request with its files read, some URLs fetched, and lost files marked."""
        own = self._configuration
        profile = own.profile_for(request.model)
        request = await gather_media(request, profile, reads_files=own.reads_files)
        return mark_lost_files(request, (own.name, own.provider.name), time())

    async def _encode_in_thread(
        self, request: Request, profile: Profile, scan: HistoryScan, *, stream: bool
    ) -> tuple[WireCall, bytes]:
        encode = partial(self._encode, request, profile, scan, stream=stream)
        wire = await asyncio.to_thread(encode)
        return wire, await asyncio.to_thread(dumps, wire.body)

    def _encode(
        self, request: Request, profile: Profile, scan: HistoryScan | None = None, *, stream: bool
    ) -> WireCall:
        own = self._configuration
        row, dialect = own.provider, own.dialect
        if profile.kind not in (None, "chat") and not self._is_lenient(request):
            raise wrong_kind(request.model, profile.kind)
        if row.makers and not self._is_lenient(request):
            check_maker(request.model, row)
        headers: dict[str, str] = {}
        unknown: list[Warning] = []
        if own.options or request.provider_options:
            unknown = unknown_owners(request, (own.name, row.name, *row.aliases))
            request, headers, lost = own.with_options(request, profile)
            unknown += lost
        prepared = prepare(request, profile, dialect.FACTS, scan)
        wire = dialect.encode_request(prepared, profile, stream=stream)
        if own.endpoint is not None:
            wire = own.endpoint.address(wire, request.model, own.api_version)
        notices = NOTICES.get((row.name, request.model))
        if notices is None:
            notices = lifecycle_notices(row.name, request.model)
        if request.short_name is not None:
            notices = (*notices, short_name_notice(request.short_name, own.name, request.model))
        if headers or unknown or notices:
            warnings = (*unknown, *wire.warnings, *notices)
            wire = replace(wire, headers={**wire.headers, **headers}, warnings=warnings)
        if not wire.warnings:
            return wire
        refuse_losses(wire.warnings, request, request.on_loss or own.on_loss)
        return replace(wire, warnings=current_turn_first(wire.warnings, request))

    def _check_length(self, request: Request, profile: Profile, size: int) -> None:
        """Raise an error if the body is longer than the provider or the model accepts."""
        if self._is_lenient(request):
            return
        check_request_size(size, self._configuration.provider, request)
        if profile.context_window is not None and size > profile.context_window:
            family = self._configuration.dialect.FACTS.token_family
            check_window(request, profile.context_window, family)

    def _is_lenient(self, request: Request) -> bool:
        return (request.on_loss or self._configuration.on_loss) == "warn"

    # The answer.

    async def answer(self, ready: Ready) -> Response:
        """Send, read and decode: one attempt at a whole answer."""
        if ready.stream:
            return await self._joined(ready)
        own, began, request = self._configuration, perf_counter(), ready.request
        try:
            async with own.transport.send(ready.http) as reply:
                if reply.status >= 300:
                    raise await read_error(reply, own.dialect)
                body = await reply.read()
            if len(body) > STEP:
                response = await asyncio.to_thread(self._decode_body, body, ready, reply)
            else:
                try:  # as `read_json`, without another function
                    value = loads(body)
                except DecodeError as error:
                    raise unreadable(error, reply.headers) from None
                response = self.decode(value, request, ready.profile, reply.headers)
        except SDKError as error:
            own.label_error(error, request.request_id, request.model)
            raise
        usage, warnings = response.usage, (*ready.warnings, *response.warnings)
        tariff = ready.tariffs[own.seller, response.model, request.model]
        cost = price_usage(usage, tariff, ready.tariffs.clock())
        if cost is None:
            unknown = unknown_price(own.seller, response.model or request.model, usage, tariff)
            warnings = (*warnings, unknown)
        return replace(
            response,
            provider=own.name,
            request_id=request.request_id,
            cost=cost,
            warnings=warnings,
            latency_ms=round((perf_counter() - began) * 1000),
        )

    async def _joined(self, ready: Ready) -> Response:
        """
        The response of a stream, for an answer that was asked for as a whole.

        The timeouts are those of a stream. `raw` is the body that a whole answer would have had.
        """

        async def make_ready() -> Ready:
            return ready

        accumulator = StreamAccumulator()
        async with ClosedStream(self.events(make_ready, CancelScope())) as events:
            try:
                async for event in events:
                    accumulator.feed(event)
                response = accumulator.response()
            except SDKError as error:
                error.add_facts(partial=accumulator.partial())
                raise
        body = self._configuration.dialect.encode_response(response, ready.request)
        return replace(response, raw=body)

    async def events(  # noqa: C901, PLR0912 -- one function: a generator would cost each delta
        self, make_ready: Callable[[], Awaitable[Ready]], scope: CancelScope
    ) -> AsyncGenerator[StreamEvent, None]:
        """Send, read and decode: one attempt at a stream. A failure is raised, without events."""
        own, ready, began = self._configuration, await make_ready(), perf_counter()
        reader: StreamReader | None = None
        try:
            async with own.transport.send(ready.http) as reply:
                if reply.status >= 300:
                    raise await read_error(reply, own.dialect)
                scope.replies = (*scope.replies, reply)
                try:
                    reader = self._reader(ready, reply, began)
                    feed = reader.decoder.feed
                    batches = FrameBatches(reply, reader.frames, own.stream_content)
                    next_check, in_thread = STEP, False
                    async for frames in batches:
                        has_content = False
                        if batches.size > next_check:  # not for each frame, which would cost
                            next_check = batches.size + STEP
                            in_thread = getattr(reader.decoder, "held", 0) > HELD
                        for frame in frames:
                            if in_thread or len(frame.data) > STEP:
                                decoded = await asyncio.to_thread(feed_rest, feed, frames, frame)
                                async for event in in_steps(*decoded):
                                    has_content = has_content or type(event) in DELTAS
                                    yield await _label(reader, event, batches.size)
                                if reader.is_finished:
                                    return
                                next_check = 0
                                break
                            for event in feed(frame):
                                if type(event) in DELTAS:
                                    has_content = True
                                    yield event
                                elif type(event) is Finish:
                                    yield await _label(reader, event, batches.size)
                                else:
                                    yield reader.label(event)
                            if reader.is_finished:
                                return
                        if has_content:
                            batches.content_at = perf_counter()
                    end = partial(collect, reader.finish())
                    decoded = await asyncio.to_thread(end) if batches.size > STEP else end()
                    async for event in in_steps(*decoded):
                        yield event
                finally:
                    scope.replies = tuple(other for other in scope.replies if other is not reply)
        except SDKError as failure:
            is_unread = reader is not None and not reader.is_started
            is_unread = is_unread and isinstance(failure, UNREADABLE)
            error = unreadable(failure, reply.headers) if is_unread else failure
            own.label_error(error, ready.request.request_id, ready.request.model)
            if error is failure:
                raise
            raise error from None

    def _decode_body(self, body: bytes, ready: Ready, reply: HttpReply) -> Response:
        value = read_json(body, reply.headers)
        return self.decode(value, ready.request, ready.profile, reply.headers)

    def decode(
        self, body: UncheckedJson, request: Request, profile: Profile, headers: Mapping[str, str]
    ) -> Response:
        """The whole answer that the body of a reply holds, without its cost."""
        own = self._configuration
        if "date" not in headers:  # all known providers send one
            headers = answer_headers(headers)
        response = own.decode_response(
            body, headers=headers, new_id=new_ulid, profile=profile, request=request
        )
        if response.finish_reason.reason in UNCLEAR:
            check_answer(response, body, headers, request, own.dialect)
        usage = response.usage
        if not (usage.input_tokens or usage.output_tokens or usage.is_known):
            response = estimate_response(response, request, own.dialect.FACTS.token_family)
        return restore_arguments(response, request) if request.tools else response

    def _reader(self, ready: Ready, reply: HttpReply, began: float) -> StreamReader:
        """The reader for a reply, chosen by its content type."""
        own, request, profile = self._configuration, ready.request, ready.profile
        dialect, limits = own.dialect, own.reply_limits
        known = Response(
            provider=own.name,
            request_id=request.request_id,
            model=request.model,
            warnings=ready.warnings,
            rate_limit=parse_rate_limit(answer_headers(reply.headers)),
        )
        frames: FrameDecoder = SSEDecoder(limits.event, limits.events)
        decoder: StreamDecoder
        content_type = reply.headers.get("content-type", "")
        is_json = not ready.stream or "json" in content_type
        make = partial(own.stream_decoder, new_id=new_ulid, profile=profile, request=request)
        if not is_json:
            if content_type.startswith(aws_event_stream.MEDIA_TYPE):
                frames = aws_event_stream.ChunkDecoder(limits.event, limits.events)
            decoder = make()
        elif ready.stream and "json-array" in dialect.FACTS.framings:
            frames = JSONArrayDecoder(limits.event, limits.events)
            decoder = make()
        else:  # the server does not stream: one JSON body
            frames = WholeBody()
            decoder = WholeDecoder(
                partial(self.decode, request=request, profile=profile, headers=reply.headers)
            )
        return StreamReader(
            decoder,
            known,
            lambda: round((perf_counter() - began) * 1000),
            frames=frames,
            edit=partial(restore_event, request=request) if request.tools else None,
            check=lambda response: check_body(response, request, dialect.NAME),
            estimate=partial(estimate_finish, request=request, family=dialect.FACTS.token_family),
            price=partial(price_finish, ready.tariffs, own.seller, request),
            keep_raw=request.keep_raw,
        )


async def _label(reader: StreamReader, event: StreamEvent, size: int) -> StreamEvent:
    """As `StreamReader.label`; the end of a large stream is read in a thread."""
    if type(event) is Finish and size > STEP:
        return await asyncio.to_thread(reader.label, event)
    return event if type(event) in DELTAS else reader.label(event)
