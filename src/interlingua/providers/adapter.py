"""One row and one transport: encode, sign, send, read, decode."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from functools import partial
from time import perf_counter
from typing import Any, TypedDict, Unpack

from msgspec.structs import replace

from interlingua import dialects
from interlingua.providers.builtin import find_provider
from interlingua.providers.call import Call, headers_for, join_headers, log_losses, since
from interlingua.providers.counting import counted, counting_call, read_count
from interlingua.providers.flights import CancelledCallError, Flight, Watched
from interlingua.providers.ids import new_call_id, new_ulid
from interlingua.providers.models import ServedModel, next_page, read_models
from interlingua.providers.profiles import profile_for
from interlingua.providers.provider import Provider, check_base_url, join_url, sign
from interlingua.spec.capabilities import AdapterCapabilities, capabilities_of
from interlingua.spec.content import Json
from interlingua.spec.contracts import (
    Dialect,
    HttpReply,
    HttpRequest,
    Profile,
    Timeouts,
    Transport,
)
from interlingua.spec.errors import (
    AbortError,
    ConfigurationError,
    ProviderError,
    SDKError,
)
from interlingua.spec.events import StreamEvent
from interlingua.spec.request import Request, ToolChoiceMode
from interlingua.spec.response import Response
from interlingua.transport.fetch import fetch_media
from interlingua.transport.files import load_media_async
from interlingua.wire.jsonarray import JSONArrayDecoder
from interlingua.wire.jsontext import loads
from interlingua.wire.limits import parse_rate_limit
from interlingua.wire.options import merge
from interlingua.wire.plain import may_hold_media
from interlingua.wire.reader import StreamReader, WholeBody, WholeDecoder
from interlingua.wire.schema import restore_arguments, restore_event
from interlingua.wire.strict import raise_on_loss
from interlingua.wire.tokens import estimate_request

_FRAMED_AS_ARRAY = "gemini_generate"  # the one dialect that streams JSON without SSE


class AdapterSettings(TypedDict, total=False):
    """What every adapter takes besides its key."""

    base_url: str | None
    dialect: str | None
    default_headers: Mapping[str, str]
    timeout: float | Timeouts | None
    max_retries: int
    options: Mapping[str, Any]
    profile: Mapping[str, Any] | None
    model_profiles: Mapping[str, Mapping[str, Any]]
    read_files: bool
    strict: bool
    transport: Transport | None
    name: str | None


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

    def __init__(
        self,
        provider: Provider | str,
        api_key: str | None = None,
        **settings: Unpack[AdapterSettings],
    ) -> None:
        row = find_provider(provider) if isinstance(provider, str) else provider
        self.provider = row
        self.name = settings.get("name") or row.name
        self.max_retries = settings.get("max_retries", 0)
        self.strict = settings.get("strict", False)
        self._reads_files = settings.get("read_files", True)
        self._key = api_key
        self._base_url = check_base_url(settings.get("base_url") or row.base_url, row.base_path)
        self._headers = join_headers(row.headers, settings.get("default_headers") or {})
        self._options = settings.get("options") or {}
        self._overrides = settings.get("profile") or {}
        self._model_overrides = settings.get("model_profiles") or {}
        self._profiles: dict[str, Profile] = {}
        self._flights: dict[str, Flight] = {}
        self._dialect_name = settings.get("dialect") or row.dialect
        self._dialect: Dialect = dialects.get(self._dialect_name)
        self._transport = settings.get("transport") or _default_transport()
        self._timeouts = _timeouts(settings.get("timeout"))

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
        return capabilities_of(self.profile_for(model))

    def profile_for(self, model: str) -> Profile:
        """What is known of one of its models."""
        profile = self._profiles.get(model)
        if profile is None:
            overrides = {**self._overrides, **self._model_overrides.get(model, {})}
            profile = profile_for(self._dialect_name, model, self.provider.name, overrides)
            self._profiles[model] = profile
        return profile

    def supports_tool_choice(self, mode: ToolChoiceMode, model: str = "") -> bool:
        """Whether tools can be chosen this way."""
        profile = self.profile_for(model)
        modes = profile.tool_choice_modes
        return profile.tools and (modes is None or mode in modes)

    def estimate_input_tokens(self, request: Request) -> int:
        """About how many tokens the request has; nothing is sent."""
        return estimate_request(request, self._dialect_name)

    def initialize(self) -> None:
        """Raise `ConfigurationError` if calls cannot work as it is set up; nothing is sent."""
        if not self.is_configured:
            raise ConfigurationError(_no_key(self.provider, self.name))

    # Calls.

    def prepare(self, request: Request, *, stream: bool = False, strict: bool = False) -> Call:
        """The call that would be made, without key; nothing is sent."""
        if request.request_id is None:
            request = replace(request, request_id=new_ulid())
        profile = self.profile_for(request.model)
        options = self._options
        wire = self._dialect.encode_request(
            _with_options(request, self._dialect_name, options) if options else request,
            profile,
            stream=stream,
        )
        if (strict or self.strict) and wire.warnings:
            raise_on_loss(wire.warnings)
        return Call(
            request=request,
            profile=profile,
            url=join_url(self._base_url, wire.path),
            headers=headers_for(wire, self._headers),
            body=wire.body,
            stream=stream,
            warnings=wire.warnings,
        )

    async def complete(self, request: Request, *, strict: bool = False) -> Response:
        """The whole answer; `AbortError` if the call is cancelled meanwhile."""
        request = await self._gather(request)
        call = self._ready(request, stream=False, strict=strict)
        flight = self._start(call)
        try:
            return await flight.wait(self._exchange(call))
        except CancelledCallError:
            gone = AbortError("the call was cancelled", request_id=call.request.request_id)
            raise gone from None
        except SDKError as error:
            self._stamp(error, call)
            raise
        finally:
            self._end(call)

    async def stream(self, request: Request, *, strict: bool = False) -> AsyncIterator[StreamEvent]:
        """
        The answer as it comes.

        Leaving the loop closes the connection. A failure after the first event is told by
        events before it is raised.
        """
        request = await self._gather(request)
        call = self._ready(request, stream=True, strict=strict)
        reader = self._reader(call)
        flight = self._start(call)
        try:
            async with Watched(self._transport.send(self._signed(call)), flight) as reply:
                await self._begin(reader, reply, call)
                chunks = aiter(reply.chunks())
                while not reader.is_done and (chunk := await flight.next_chunk(chunks)):
                    for event in reader.feed(chunk):
                        yield event
                for event in reader.finish():
                    yield event
                if reader.error is not None:
                    raise reader.error
        except CancelledCallError:
            for event in reader.cancel():
                yield event
        except SDKError as error:
            if not reader.is_finished:  # what breaks after the end does not matter
                self._stamp(error, call)
                for event in reader.fail(error):
                    yield event
                raise
        finally:
            self._end(call)

    async def list_models(self) -> list[ServedModel]:
        """The models it serves now, asked live."""
        await self._wake()
        self.initialize()
        url = join_url(self._base_url, self.provider.models_path)
        headers = {**self._headers, "accept": "application/json"}
        if self._dialect_name == "anthropic_messages":
            headers["anthropic-version"] = self.profile_for("").api_version or "2023-06-01"
        headers |= sign(self.provider.signing, self._key)
        found: list[ServedModel] = []
        query: str | None = ""
        while query is not None:
            address = f"{url}?{query}" if query else url
            request = HttpRequest(
                method="GET", url=address, headers=headers, timeouts=self._timeouts
            )
            async with self._transport.send(request) as reply:
                if reply.status >= 300:
                    raise await self._refusal(reply)
                page = loads(await reply.read())
            found += read_models(page, self.name)
            query = next_page(page)
        return found

    async def count_tokens(self, request: Request) -> int:
        """How many tokens the request has, as the provider counts them, asked live."""
        await self._wake()
        self.initialize()
        call = counting_call(self.prepare(counted(request, self._dialect_name)))
        async with self._transport.send(self._signed(call)) as reply:
            if reply.status >= 300:
                raise await self._refusal(reply)
            return read_count(loads(await reply.read()))

    async def cancel(self, request_id: str) -> bool:
        """Stop a call under way; False if there is none of that id, or it was stopped before."""
        flight = self._flights.get(request_id)
        return flight is not None and flight.cancel()

    async def close(self) -> None:
        """Stop what is under way, and release every connection."""
        for flight in tuple(self._flights.values()):
            flight.cancel()
        await self._transport.close()

    # The steps.

    async def _wake(self) -> None:
        """Be there to be called: for adapters whose server has to be started."""

    async def _gather(self, request: Request) -> Request:
        """The request with the bytes of the files it names, and of URLs its dialect cannot."""
        await self._wake()
        if self._reads_files and may_hold_media(request.messages):
            request = await load_media_async(request)
            request = await fetch_media(request, self._dialect_name)
        return request

    def _ready(self, request: Request, *, stream: bool, strict: bool) -> Call:
        self.initialize()
        call = self.prepare(request, stream=stream, strict=strict)
        if call.warnings:
            log_losses(call, self.name)
        return call

    def _signed(self, call: Call) -> HttpRequest:
        return call.to_http(sign(self.provider.signing, self._key), self._timeouts)

    async def _exchange(self, call: Call) -> Response:
        began = perf_counter()
        async with self._transport.send(self._signed(call)) as reply:
            if reply.status >= 300:
                raise await self._refusal(reply)
            body = await reply.read()
        response = self._decode(loads(body), call, reply.headers)
        return replace(
            response,
            provider=self.name,
            request_id=call.request.request_id,
            warnings=(*call.warnings, *response.warnings),
            latency_ms=since(began),
        )

    def _decode(self, body: Json, call: Call, headers: Mapping[str, str]) -> Response:
        response = self._dialect.decode_response(
            body, headers=headers, new_id=new_call_id, profile=call.profile
        )
        return restore_arguments(response, call.request) if call.request.tools else response

    async def _refusal(self, reply: HttpReply) -> ProviderError:
        return self._dialect.decode_error(reply.status, reply.headers, await reply.read())

    def _reader(self, call: Call) -> StreamReader:
        about = Response(
            provider=self.name,
            request_id=call.request.request_id,
            model=call.request.model,
            warnings=call.warnings,
        )
        decoder = self._dialect.stream_decoder(new_id=new_call_id, profile=call.profile)
        began = perf_counter()
        tools = call.request.tools
        edit = partial(restore_event, request=call.request) if tools else None
        return StreamReader(decoder, about, lambda: since(began), edit)

    async def _begin(self, reader: StreamReader, reply: HttpReply, call: Call) -> None:
        """Tell the reader how the reply is framed; raise it if it is an error."""
        if reply.status >= 300:
            raise await self._refusal(reply)
        limits = parse_rate_limit(reply.headers)
        if "json" not in reply.headers.get("content-type", ""):
            reader.begin(limits)
        elif self._dialect_name == _FRAMED_AS_ARRAY:
            reader.begin(limits, JSONArrayDecoder())
        else:  # a server that does not stream
            decode = partial(self._decode, call=call, headers=reply.headers)
            reader.begin(limits, WholeBody(), WholeDecoder(lambda text: decode(loads(text))))

    def _start(self, call: Call) -> Flight:
        """The call is under way, and known by its id."""
        request_id = call.request.request_id or ""
        if request_id in self._flights:
            raise ConfigurationError(
                f"a call with the request id {request_id!r} is under way; ids must differ"
            )
        flight = self._flights[request_id] = Flight()
        return flight

    def _end(self, call: Call) -> None:
        del self._flights[call.request.request_id or ""]

    def _stamp(self, error: SDKError, call: Call) -> None:
        """Say whose call it was."""
        if isinstance(error, ProviderError):
            error.provider = self.name
            error.provider_request_id = error.request_id
        error.request_id = call.request.request_id


def _with_options(request: Request, dialect: str, options: Mapping[str, Any]) -> Request:
    """The adapter's own options under those of the request."""
    given = request.provider_options
    joined = merge(options, given.get(dialect) or {})
    return replace(request, provider_options={**given, dialect: joined})


def _no_key(row: Provider, name: str) -> str:
    names = " or ".join(row.key_env) or "its key"
    return f"{name} has no API key; set {names} for Client.from_env(), or pass api_key"


def _timeouts(given: float | Timeouts | None) -> Timeouts | None:
    """A number is the time for a whole exchange."""
    return given if given is None or isinstance(given, Timeouts) else Timeouts(request=given)


def _default_transport() -> Transport:
    from interlingua.transport import default_transport

    return default_transport()
