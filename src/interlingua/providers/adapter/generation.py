"""Calls of a model through one provider: encode, address and sign, send, read, decode."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from math import inf
from time import perf_counter, time
from typing import TYPE_CHECKING, Literal, TypeAlias

from msgspec.structs import replace

from interlingua import lazy
from interlingua.prepare.history.scan import HistoryScan, scan_history
from interlingua.prepare.prepare import prepare
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
    join_headers,
)
from interlingua.providers.profile_check import (
    can_stream,
    check_maker,
    check_places,
    check_window,
    must_stream,
    refuse_losses,
    wrong_kind,
)
from interlingua.providers.provider import join_url
from interlingua.providers.replies import (
    LARGE,
    STEP,
    UNCLEAR,
    answer_headers,
    check_answer,
    find_request_id,
    read_error,
    read_json,
    unreadable,
)
from interlingua.providers.tariffs import Tariffs, unknown_price
from interlingua.runtime.log import log_warnings
from interlingua.runtime.ulid import new_ulid
from interlingua.spec.content import UncheckedJson
from interlingua.spec.contracts import HttpReply, HttpRequest, Profile, WireCall
from interlingua.spec.defaults import MANY_PARTS
from interlingua.spec.errors import DecodeError, SDKError
from interlingua.spec.request import Request
from interlingua.spec.response import Response, Warning
from interlingua.spec.warnings import current_turn_first
from interlingua.wire.json_text import dumps, loads

if TYPE_CHECKING:
    from interlingua.prepare.behaviour import Behaved
    from interlingua.providers.adapter.streaming import Streaming

OnResend: TypeAlias = Callable[[], object]
OnConnect: TypeAlias = Callable[[bool], object]
Mode: TypeAlias = Literal["whole", "stream", "batch"]
_CATALOG = Tariffs()
"""The prices of adapters that are used without a client."""


class Generation:
    """
    The stations of a call of a model: `encode`, `address`, then `answer` or `streaming.events`.

    A client calls them with its own scope and its own fold; `HttpAdapter.complete` and `stream` do
    without one.
    """

    def __init__(self, configuration: Configuration) -> None:
        self._configuration = configuration

    @lazy.attribute
    def streaming(self) -> Streaming:
        """The stations of a stream; a program without streams does not load them."""
        from interlingua.providers.adapter.streaming import Streaming

        return Streaming(self._configuration, self.decode)

    def load(self) -> None:
        """Load what any call needs, before the first one."""
        dialect = self._configuration.dialect
        _ = self.streaming, dialect.encode_request, dialect.decode_response, dialect.stream_decoder

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
                behaved = self._behave(request, profile)
                request, scan = behaved.request, scan_history(behaved.request.messages, scan)
            mode: Mode = "batch" if in_batch else "stream" if stream else "whole"
            if scan.rough_size > LARGE or len(scan.parts) > MANY_PARTS:
                wire, body = await self._encode_in_thread(request, profile, scan, mode)
            else:
                wire = self._encode(request, profile, scan, mode)
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
            stream=wire.stream,
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
        if own.starts_server:
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
        own = self._configuration
        profile = own.profile_for(request.model)
        behaved = self._behave(request, profile)
        request = behaved.request
        wire = self._encode(request, profile, None, "stream" if stream else "whole")
        self._check_length(request, profile, len(dumps(wire.body)))
        return DryRun(
            profile=profile,
            url=join_url(own.base_url, wire.path),
            headers=headers_for(wire.headers, own.headers, stream=wire.stream),
            body=wire.body,
            warnings=behaved.add_warnings(wire.warnings),
            addendum=behaved.addendum,
            left_out=behaved.left_out,
        )

    def estimate_input_tokens(self, request: Request) -> int:
        """An offline estimate of the number of input tokens."""
        from interlingua.tokens.estimate import estimate_request

        own = self._configuration
        if own.behaviour is not None:
            request = self._behave(request, own.profile_for(request.model)).request
        return estimate_request(request, own.dialect.FACTS.token_family)

    def _behave(self, request: Request, profile: Profile) -> Behaved:
        """The request as the behaviour of the provider changes it, if it has one."""
        from interlingua.prepare.behaviour import Behaved, behave

        behaviour = self._configuration.behaviour
        if behaviour is None:
            return Behaved(request=request)
        return behave(request, behaviour, profile)

    async def gather(self, request: Request) -> Request:
        """The request with its files read, some URLs fetched, and lost files marked."""
        from interlingua.providers.media import gather_media, mark_lost_files

        own = self._configuration
        profile = own.profile_for(request.model)
        request = await gather_media(request, profile, reads_files=own.reads_files)
        return mark_lost_files(request, (own.name, own.provider.name), time())

    async def _encode_in_thread(
        self, request: Request, profile: Profile, scan: HistoryScan, mode: Mode
    ) -> tuple[WireCall, bytes]:
        wire = await asyncio.to_thread(self._encode, request, profile, scan, mode)
        return wire, await asyncio.to_thread(dumps, wire.body)

    def _encode(
        self, request: Request, profile: Profile, scan: HistoryScan | None, mode: Mode
    ) -> WireCall:
        own = self._configuration
        row, dialect = own.provider, own.dialect
        if row.url_env or profile.kind not in (None, "chat"):
            self._check_model(request, profile)
        headers: dict[str, str] = {}
        unknown: list[Warning] = []
        if own.options or request.provider_options:
            unknown = unknown_owners(request, (own.name, row.name, *row.aliases))
            request, headers, lost = own.with_options(request, profile)
            unknown += lost
        prepared = prepare(request, profile, dialect.FACTS, scan)
        if mode == "stream":
            stream = can_stream(request, profile)
        else:  # most providers give every answer as a whole
            is_usual = not request.tools and profile.max_whole_tokens is None
            may_stream = mode == "whole" and not is_usual
            stream = may_stream and must_stream(prepared, profile, dialect.FACTS)
        wire = dialect.encode_request(prepared, profile, stream=stream)
        if own.endpoint is not None:
            wire = own.endpoint.address(wire, request.model, own.api_version)
        notices = NOTICES.get((own.seller.provider, request.model))
        if notices is None:
            notices = lifecycle_notices(own.seller.provider, request.model)
        if request.short_name is not None:
            notices = (*notices, short_name_notice(request.short_name, own.name, request.model))
        if headers or unknown or notices:
            warnings = (*unknown, *wire.warnings, *notices)
            joined = join_headers(wire.headers, headers) if headers else wire.headers
            wire = replace(wire, headers=joined, warnings=warnings)
        if not wire.warnings:
            return wire
        refuse_losses(wire.warnings, request, request.on_loss or own.on_loss)
        return replace(wire, warnings=current_turn_first(wire.warnings, request))

    def _check_model(self, request: Request, profile: Profile) -> None:
        """Raise an error if the model does not chat, or is not one of this address."""
        own = self._configuration
        check_places(request.model, own.provider, own.places)
        if self._is_lenient(request):
            return
        if profile.kind not in (None, "chat"):
            raise wrong_kind(request.model, profile.kind)
        check_maker(request.model, own.provider)

    def _check_length(self, request: Request, profile: Profile, size: int) -> None:
        """Raise an error if the body is longer than the provider or the model accepts."""
        if self._is_lenient(request):
            return
        from interlingua.providers.uploads import check_request_size

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
            return await self.streaming.joined(ready)
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
            provider_request_id=find_request_id(reply.headers),
            cost=cost,
            warnings=warnings,
            latency_ms=round((perf_counter() - began) * 1000),
        )

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
        dialect, given = own.dialect, {"request": request} if own.answers_take_request else {}
        response = dialect.decode_response(
            body, headers=headers, new_id=new_ulid, profile=profile, **given
        )
        if response.finish_reason.reason in UNCLEAR:
            check_answer(response, body, headers, request, own.dialect)
        usage = response.usage
        if not (usage.input_tokens or usage.output_tokens or usage.is_known):
            from interlingua.providers.usage import estimate_response

            response = estimate_response(response, request, dialect.FACTS.token_family)
        if not request.tools:
            return response
        from interlingua.prepare.schema.restore import restore_arguments

        return restore_arguments(response, request)
