"""
Checks a running server that claims to speak a dialect, over HTTP.

Each check sends requests as a client of the dialect would, with the transport and the codecs of
this library, and reads the replies. A finding says what was sent, what came back, and what the
dialect requires.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TypeAlias
from urllib.parse import urlsplit

import msgspec
from msgspec.structs import replace

from interlingua.conformance.laws import cut_frames, decode_frames, fold
from interlingua.conformance.probes import (
    ANSWER_CHECKS,
    ENOUGH,
    FEW,
    HELLO,
    LONG,
    STOP,
    UNKNOWN_MODEL,
    NotApplicableError,
    ProblemError,
    check_reason,
    lacking,
)
from interlingua.conformance.report import Report, Score, Violation, choose, run_check
from interlingua.providers.adapter import HttpAdapter
from interlingua.providers.provider import Provider, find_dialect
from interlingua.providers.rows import providers
from interlingua.spec.content import Json
from interlingua.spec.contracts import Dialect, HttpRequest, Profile, Transport
from interlingua.spec.defaults import Timeouts
from interlingua.spec.errors import (
    AccessDeniedError,
    AuthenticationError,
    ConfigurationError,
    InvalidRequestError,
    NetworkError,
    NotFoundError,
    SDKError,
)
from interlingua.spec.request import Request
from interlingua.spec.response import Response
from interlingua.transport.http1.transport import default_transport
from interlingua.wire.framing import AWS_EVENT_STREAM
from interlingua.wire.json_text import dumps, loads
from interlingua.wire.secrets import Redactor

WRONG_KEY = "sk-interlingua-conformance-wrong-key"
_STREAM_TYPES = {"sse": "text/event-stream", "aws-event-stream": AWS_EVENT_STREAM}
_SHOWN = 400  # characters of a body in a finding


class Exchange(msgspec.Struct, frozen=True, kw_only=True):
    """One request and its reply, with what is shown of them in a finding."""

    request: HttpRequest
    status: int
    headers: dict[str, str]
    chunks: tuple[bytes, ...]
    sent: str
    received: str
    profile: Profile

    @property
    def body(self) -> bytes:
        """The whole body of the reply."""
        return b"".join(self.chunks)

    @property
    def content_type(self) -> str:
        """The media type of the reply, without parameters."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    def problem(self, required: str, received: str = "") -> ProblemError:
        """The error for a requirement that this exchange does not meet."""
        return ProblemError(required, received or self.received, self.sent)

    def require(self, holds: object, required: str, received: str = "") -> None:
        """Raise the error unless the claim holds."""
        if not holds:
            raise self.problem(required, received)


class Target:
    """A server that claims to speak a dialect."""

    def __init__(
        self,
        url: str,
        dialect: Dialect,
        model: str,
        key: str | None,
        transport: Transport | None = None,
        timeout: float = 60.0,
    ) -> None:
        self.dialect = dialect
        self.model = model
        self.key = key
        self._transport = transport or default_transport()
        self._redactor = Redactor((key or "",))
        self._adapter = HttpAdapter(
            _row(url, dialect.NAME),
            key,
            base_url=url,
            transport=self._transport,
            timeout=Timeouts(connect=timeout, request=timeout, stream_read=timeout),
            on_loss="warn",
        )

    @property
    def url(self) -> str:
        """The address, as it is used."""
        return self._adapter.base_url

    async def close(self) -> None:
        """Release the connections."""
        await self._transport.close()

    async def make(self, request: Request, *, stream: bool = False) -> tuple[HttpRequest, Profile]:
        """The HTTP request; raises `NotApplicableError` if the dialect cannot express it."""
        generation = self._adapter.generation
        named = replace(request, model=request.model or self.model, on_loss="warn")
        ready = await generation.address(await generation.encode(named, stream=stream))
        for warning in ready.warnings:
            if warning.code.endswith("_dropped"):
                raise NotApplicableError(warning.message)
        return ready.http, ready.profile

    async def ask(self, request: Request, *, stream: bool = False) -> Exchange:
        """Send a request and read the whole reply."""
        http, profile = await self.make(request, stream=stream)
        return await self.send(http, profile)

    async def send(self, http: HttpRequest, profile: Profile, *, chunks: int = -1) -> Exchange:
        """Send this, and read the reply, or only its first chunks; then the connection closes."""
        got: list[bytes] = []
        async with self._transport.send(http) as reply:
            async for chunk in reply.chunks():
                got.append(chunk)
                if len(got) == chunks:
                    break
        return Exchange(
            request=http,
            status=reply.status,
            headers=dict(reply.headers),
            chunks=tuple(got),
            sent=self._shown(f"{http.method} {urlsplit(http.url).path} ", [http.body]),
            received=self._shown(f"HTTP {reply.status}: ", got),
            profile=profile,
        )

    def _shown(self, start: str, chunks: Iterable[object]) -> str:
        body = b"".join(chunk for chunk in chunks if isinstance(chunk, bytes))
        text = self._redactor.redact(body).decode("utf-8", "replace").strip()
        if len(text) > _SHOWN:
            text = f"{text[: _SHOWN // 2]} … {text[-_SHOWN // 2 :]}"
        return start + text

    def signed_with(self, http: HttpRequest, key: str) -> HttpRequest:
        """The request, signed with another key."""
        own = self.key or ""
        headers = {name: value.replace(own, key) for name, value in http.headers.items()}
        return replace(http, headers=headers)

    async def answer(self, request: Request) -> tuple[Response, Exchange]:
        """The whole answer, decoded; raises `ProblemError` if it is not one."""
        exchange = await self.ask(request)
        self._require_ok(request, exchange)
        exchange.require(
            exchange.content_type == "application/json",
            "send a whole answer as application/json",
            f"content-type: {exchange.content_type}",
        )
        try:
            body = loads(exchange.body)
            response = self.dialect.decode_response(
                body, headers=exchange.headers, profile=exchange.profile
            )
        except SDKError as error:
            required = "send a body that the dialect can decode"
            raise exchange.problem(required, f"{error}; {exchange.received}") from None
        return self._named(response, request), exchange

    def _named(self, response: Response, request: Request) -> Response:
        """The response with the model that was asked, where answers of the dialect name none."""
        if self.dialect.FACTS.names_model:
            return response
        return replace(response, model=response.model or request.model or self.model)

    async def streamed(self, request: Request) -> tuple[Response, Exchange]:
        """The answer as a stream, decoded and added up; it must obey the grammar of events."""
        exchange = await self.ask(request, stream=True)
        self._require_ok(request, exchange)
        framing = self.dialect.FACTS.framings[0]
        wanted = _STREAM_TYPES[framing]
        exchange.require(
            exchange.content_type == wanted,
            f"send a stream as {wanted}",
            f"content-type: {exchange.content_type}",
        )
        try:
            frames = cut_frames(exchange.chunks, framing)
            response = fold(decode_frames(self.dialect, frames))
            return self._named(response, request), exchange
        except SDKError as error:
            required = "send events that the dialect can decode, in order, up to the last one"
            end = exchange.body[-_SHOWN:].decode("utf-8", "replace").strip()
            raise exchange.problem(required, f"{error}; the stream ended with: {end}") from None

    def _require_ok(self, request: Request, exchange: Exchange) -> None:
        """Raise unless the request was accepted; what the model lacks is not applicable."""
        if exchange.status >= 400:
            error = self.dialect.decode_error(exchange.status, exchange.headers, exchange.body)
            reason = lacking(request, error.message)
            if reason is not None:
                raise NotApplicableError(reason)
        exchange.require(exchange.status == 200, "answer a valid request with status 200")

    def read_error(self, exchange: Exchange) -> SDKError:
        """The error of a reply, which must have the form that the dialect gives errors."""
        error = self.dialect.decode_error(exchange.status, exchange.headers, exchange.body)
        try:
            body = loads(exchange.body)
        except SDKError:
            raise exchange.problem("send errors as JSON") from None
        plain = self.dialect.decode_error(exchange.status, {}, exchange.body)
        _, _, wanted = self.dialect.encode_error(plain)
        lacks = _lacking(wanted, body)
        exchange.require(
            not lacks,
            f"give errors the form {_form(wanted)}",
            f"{'; '.join(lacks)}; {exchange.received}",
        )
        exchange.require(error.message, "say in the error what was wrong")
        return error


def _lacking(wanted: Json, found: Json, path: str = "") -> list[str]:
    """What the error of a server lacks, compared with what this library would send for it."""
    if isinstance(wanted, dict):
        if not isinstance(found, dict):
            return [f"{path or 'the body'} is not an object"]
        missing = [f"{path}{name} is missing" for name in wanted if name not in found]
        inner = (
            _lacking(value, found[name], f"{path}{name}.")
            for name, value in wanted.items()
            if name in found
        )
        return [*missing, *(lack for lacks in inner for lack in lacks)]
    if wanted is None or found is None or isinstance(found, type(wanted)):
        return []
    kind = type(wanted).__name__.replace("str", "a string").replace("int", "a number")
    return [f"{path.rstrip('.')} is not {kind}"]


def _form(body: Json) -> str:
    def empty(value: Json) -> Json:
        if isinstance(value, dict):
            return {name: empty(item) for name, item in value.items()}
        return "…" if isinstance(value, str) else value

    return dumps(empty(body)).decode()


def _speaks(row: Provider, dialect: str) -> bool:
    """Whether a provider has the dialect at its base URL, in the usual way."""
    named = (row.dialect, *(set(row.other_dialects) - set(row.endpoints)))
    return dialect in named and row.base_url.startswith("https://") and "{" not in row.base_url


def _row(url: str, dialect: str) -> Provider:
    """A row for the server: the key is sent as the maker of the dialect wants it."""
    maker = next((row for row in providers().values() if _speaks(row, dialect)), None)
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise ConfigurationError(f"{url!r} is no address of a server. Write http://host:port/path.")
    return Provider(
        name="endpoint",
        dialect=dialect,
        base_path="" if maker is None else urlsplit(maker.base_url).path.rstrip("/"),
        signing="bearer" if maker is None else maker.signing,
        key_required=False,
    )


__all__ = ["CHECKS", "EndpointCheck", "check_endpoint"]

EndpointCheck: TypeAlias = Callable[[Target], Awaitable[None]]
"""Raises `ProblemError` if the server does not meet a requirement."""


async def bad_key(target: Target) -> None:
    """A wrong key is refused, as an authentication error."""
    if not target.key:
        raise NotApplicableError("No key was given.")
    http, profile = await target.make(HELLO)
    exchange = await target.send(target.signed_with(http, WRONG_KEY), profile)
    error = _refused(target, exchange, "a request with a wrong key")
    wanted = (AuthenticationError, AccessDeniedError)
    exchange.require(isinstance(error, wanted), "refuse a wrong key with status 401 or 403")


async def unknown_model(target: Target) -> None:
    """A model that there is not is refused, as not found."""
    exchange = await target.ask(replace(HELLO, model=UNKNOWN_MODEL))
    error = _refused(target, exchange, "a request for an unknown model")
    exchange.require(isinstance(error, NotFoundError), "refuse an unknown model with status 404")


async def stream_error(target: Target) -> None:
    """A stream that cannot begin is refused by its status, not with status 200."""
    exchange = await target.ask(replace(HELLO, model=UNKNOWN_MODEL), stream=True)
    _refused(target, exchange, "a stream of an unknown model")


async def bad_json(target: Target) -> None:
    """A body that is no JSON is refused, as invalid."""
    http, profile = await target.make(HELLO)
    exchange = await target.send(replace(http, body=b'{"model": '), profile)
    _check_invalid(target, exchange, "a body that is no JSON")


async def bad_body(target: Target) -> None:
    """A body whose messages are a number is refused, as invalid."""
    http, profile = await target.make(HELLO)
    body = loads(http.body if isinstance(http.body, bytes) else b"{}")
    lists = [name for name, value in body.items() if isinstance(value, list)]
    for name in lists or [name for name in ("input",) if name in body]:
        body[name] = 5
    exchange = await target.send(replace(http, body=dumps(body)), profile)
    _check_invalid(target, exchange, "a body whose messages are a number")


def _check_invalid(target: Target, exchange: Exchange, what: str) -> None:
    error = _refused(target, exchange, what)
    exchange.require(isinstance(error, InvalidRequestError), f"refuse {what} with status 400")


def _refused(target: Target, exchange: Exchange, what: str) -> SDKError:
    exchange.require(exchange.status >= 400, f"refuse {what} with an error status")
    exchange.require(exchange.status < 500, f"refuse {what} as the client's error, not with a 5xx")
    return target.read_error(exchange)


async def cancel(target: Target) -> None:
    """Cancel: after a client closes a stream in its middle, the server answers the next request."""
    http, profile = await target.make(replace(HELLO, messages=LONG), stream=True)
    begun = await target.send(http, profile, chunks=1)
    begun.require(begun.status == 200 and begun.chunks, "begin to send a stream")
    try:
        response, exchange = await target.answer(HELLO)
    except NetworkError as error:
        raise begun.problem("survive a client that closes a stream", str(error)) from None
    exchange.require(response.text, "answer as usual after a client closed a stream")


async def max_tokens(target: Target) -> None:
    """Limits: the answer ends at `max_tokens`, and its finish reason says so."""
    response, exchange = await target.answer(
        Request(messages=LONG, max_tokens=FEW, temperature=None)
    )
    count = response.usage.output_tokens
    exchange.require(
        count <= FEW,
        f"send at most {FEW} tokens if that is the limit",
        f"{count} output tokens; {exchange.received}",
    )
    check_reason(exchange, response, "length")


async def stop(target: Target) -> None:
    """Limits: the answer ends before a stop sequence."""
    request = Request(messages=LONG, max_tokens=ENOUGH, stop_sequences=(STOP,))
    response, exchange = await target.answer(request)
    exchange.require(STOP not in response.text, "end the answer before the stop sequence")
    check_reason(exchange, response, "stop", "length")


CHECKS: Mapping[str, EndpointCheck] = {
    **ANSWER_CHECKS,
    "error: wrong key": bad_key,
    "error: unknown model": unknown_model,
    "error: unknown model in a stream": stream_error,
    "error: no JSON": bad_json,
    "error: wrong type": bad_body,
    "cancel": cancel,
    "limit: max_tokens": max_tokens,
    "limit: stop sequence": stop,
}
"""Every check, in the order in which they run."""


async def check_endpoint(
    url: str,
    dialect: str,
    model: str,
    key: str | None = None,
    *,
    checks: Iterable[str] | None = None,
    transport: Transport | None = None,
    timeout: float = 60.0,  # noqa: ASYNC109 -- of each request, not of this function
    on_check: Callable[[str], object] | None = None,
) -> Report:
    """
    Check a running server that claims to speak a dialect.

    `url` is what a client would be given as its base URL. `checks` are names from `CHECKS`; all by
    default. `on_check` is called with the name of each check before it runs. Raises `NetworkError`
    if the server cannot be reached at all.
    """
    chosen = choose(CHECKS, checks)
    target = Target(url, find_dialect(dialect), model, key, transport, timeout)
    scores: list[Score] = []
    found: list[Violation] = []
    try:
        for name, check in chosen.items():
            if on_check is not None:
                on_check(name)
            score, violation = await run_check(name, check, target, is_first=not scores)
            scores.append(score)
            found += violation
    finally:
        if transport is None:
            await target.close()
    return Report(
        dialect=dialect,
        subject=target.url,
        cases=1,
        checks=len(chosen),
        violations=tuple(found),
        scores=tuple(scores),
    )
