"""
The ASGI application on which the simulator and a gateway are built.

It reads a request, finds its dialect, refuses what the vendor would refuse, and sends the reply.
The derived class decides what the answer is.
"""

from __future__ import annotations

import hmac
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Iterable, Iterator, Mapping
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, NamedTuple
from urllib.parse import parse_qs, parse_qsl, unquote

from msgspec.structs import replace

from interlingua import dialects
from interlingua.serving.asgi import (
    Delivery,
    Receive,
    Reply,
    Scope,
    Send,
    TooLargeError,
    answer_lifespan,
    headers_of,
    path_of,
    query_of,
    read_body,
    refuse_websocket,
    without_body,
)
from interlingua.spec.content import Json, UncheckedJson
from interlingua.spec.contracts import FormPart, Frame, WireCall
from interlingua.spec.errors import ConfigurationError, DecodeError, ProviderError, SDKError
from interlingua.spec.operations import (
    Failure,
    RouteKind,
    Serve,
    ServedOperation,
    ServerFacts,
    ServerRoute,
)
from interlingua.spec.request import Request
from interlingua.spec.response import RateLimitInfo
from interlingua.wire import aws_event_stream
from interlingua.wire.classify import classify, read_fault
from interlingua.wire.fields import request_errors
from interlingua.wire.framing import AWS_EVENT_STREAM
from interlingua.wire.json_text import dumps, loads
from interlingua.wire.multipart import decode_form
from interlingua.wire.secrets import redact_headers
from interlingua.wire.sse import encode_sse

_BEARER = "bearer "
_KEPT_PATH = 200
"""Characters of the longest path whose route is remembered."""


class Route(NamedTuple):
    """The kind and the dialect of a request."""

    kind: RouteKind
    dialect: str
    model: str | None = None
    operation: ServedOperation | None = None
    params: Mapping[str, str] = {}
    """The groups of the operation's path."""
    facts: ServerRoute | None = None
    """What the dialect says about this path, if it is no operation."""


def serve_of(dialect: str) -> Serve:
    """Return the server side of a dialect; `ConfigurationError` if there is none."""
    serve: Serve | None = getattr(dialects.get(dialect), "serve", None)
    if serve is None:
        raise ConfigurationError(f"The dialect {dialect!r} has no module `serve`.")
    return serve


def find_route(method: str, path: str, headers: Mapping[str, str]) -> Route:
    """Find the route of a request; an unknown path still has a dialect, for the error reply."""
    match_all = _match_all if len(path) <= _KEPT_PATH else _match_all.__wrapped__
    own, shared = match_all(method, path, tuple(name for name, _ in _served()))
    if own is not None:
        return own
    name = _recognise(path, headers, shared or dict(_served()))
    return shared.get(name) or Route("unknown", name)


@lru_cache(maxsize=1024)
def _match_all(
    method: str, path: str, names: tuple[str, ...]
) -> tuple[Route | None, Mapping[str, Route]]:
    """The route of the only dialect with this path, or those of the dialects that share it."""
    shared: dict[str, Route] = {}
    for name in names:
        found = _match_route(name, method, path)
        if found is not None and not found[1]:
            return found[0], {}
        if found is not None:
            shared[name] = found[0]
    return None, shared


def _match_route(dialect: str, method: str, path: str) -> tuple[Route, bool] | None:
    """The route of a dialect for this path, and whether other dialects have the path too."""
    serve = serve_of(dialect)
    for route in serve.SERVER.routes:
        match = route.pattern.fullmatch(path) if method == route.method else None
        if match is not None:
            model = match.groupdict().get("model")
            name = None if model is None else unquote(model)
            return Route(route.kind, dialect, name, facts=route), route.is_shared
    operation: ServedOperation
    for operation in getattr(serve, "SERVED", ()):
        match = operation.pattern.fullmatch(path) if method == operation.method else None
        if match is not None:
            params = {name: unquote(text) for name, text in match.groupdict("").items()}
            model = params.get("model")
            return Route("operation", dialect, model, operation, params), operation.is_shared
    return None


def read_call(scope: Mapping[str, Any], body: bytes, route: Route | None = None) -> WireCall:
    """Read the request without its key: its JSON, its form, or its other content."""
    headers = headers_of(scope)
    route = route or find_route(scope.get("method", "POST"), path_of(scope), headers)
    return _make_call(scope, body, route, headers)


def _make_call(
    scope: Mapping[str, Any], body: bytes, route: Route, headers: dict[str, str]
) -> WireCall:
    method, path, query = scope.get("method", "POST"), path_of(scope), query_of(scope)
    if scope.get("scheme") == "https":  # for replies that name an address of this server
        headers.setdefault("x-forwarded-proto", "https")
    server = serve_of(route.dialect).SERVER
    items: list[str] = []
    if query:
        secrets = tuple(f"{facts.key_query}=" for _, facts in _served() if facts.key_query)
        items = [item for item in query.split("&") if item and not item.startswith(secrets)]
    is_raw = route.operation is not None and route.operation.reads_bytes
    value, form, content = _read_content(headers.get("content-type", ""), body, is_raw=is_raw)
    is_stream = isinstance(value, dict) and value.get(server.stream_field) is True
    is_stream = is_stream or (route.facts is not None and route.facts.is_stream)
    shown = redact_headers(headers)
    # The names of conversations are no secrets, though they look like those of cookies.
    shown |= {name: headers[name] for name in server.session_headers if name in headers}
    return WireCall(
        method=method,
        path=f"{path}?{'&'.join(items)}" if items else path,
        body=value,
        form=form,
        content=content,
        headers=shown,
        stream=is_stream or (bool(server.stream_path) and path.endswith(server.stream_path)),
    )


def _read_content(
    content_type: str, body: bytes, *, is_raw: bool
) -> tuple[UncheckedJson, tuple[FormPart, ...], bytes | None]:
    """The JSON, the form, or the other content of a body."""
    if is_raw:
        return None, (), body
    try:
        if content_type.startswith("multipart/form-data"):
            return None, decode_form(content_type, body), None
        return (loads(body) if body else None), (), None
    except DecodeError:
        return None, (), body


def read_key(headers: Mapping[str, str], query: str) -> str | None:
    """Read the key of a request, from any place where clients of the dialects put it."""
    served = [facts for _, facts in _served()]
    for name in dict.fromkeys(name for facts in served for name in facts.key_headers):
        value = headers.get(name)
        if value:
            return value[len(_BEARER) :] if value.lower().startswith(_BEARER) else value
    parameters = parse_qs(query) if query else {}
    names = [facts.key_query for facts in served if facts.key_query]
    return next((parameters[name][0] for name in names if name in parameters), None)


def _served() -> Iterator[tuple[str, ServerFacts]]:
    """The dialects with a server side."""
    for name in dialects.names():
        serve: Serve | None = getattr(dialects.get(name), "serve", None)
        if serve is not None:
            yield name, serve.SERVER


def _recognise(path: str, headers: Mapping[str, str], names: Mapping[str, object]) -> str:
    """Choose one of these dialects: by headers, else by path, else the common one."""
    served = [(name, facts) for name, facts in _served() if name in names]
    for name, facts in served:
        if any(header in headers for header in facts.own_headers):
            return name
    for name, facts in served:
        if any(piece in path for piece in facts.own_paths):
            return name
    return next((name for name, facts in served if facts.is_common), served[0][0])


_HTML = (
    "<html>\r\n<head><title>{0} {1}</title></head>\r\n<body>\r\n<center><h1>{0} {1}</h1></center>"
    "\r\n</body>\r\n</html>\r\n"
)
_PHRASES = {502: "Bad Gateway", 503: "Service Temporarily Unavailable", 504: "Gateway Time-out"}


def vendor_body(dialect: str, failure: Failure, *, model: str, request_id: str) -> Json:
    """The body that the vendor sends with this status: JSON, or HTML of a load balancer."""
    body: Json = failure.body
    if body is None:
        body = serve_of(dialect).error_body(failure, model=model, request_id=request_id)
    if body is None:
        body = _HTML.format(failure.status, _PHRASES.get(failure.status, "Error"))
    return body


def body_bytes(body: Json | bytes) -> tuple[str, bytes]:
    """The content type (empty for JSON) and the bytes of a body."""
    if isinstance(body, str):
        body = body.encode()
    if isinstance(body, bytes):
        return "text/html" if body.lstrip().startswith(b"<") else "text/plain", body
    return "", dumps(body)


def retry_headers(dialect: str, failure: Failure) -> dict[str, str]:
    """`retry-after`, unless the vendor puts it into the body."""
    if failure.retry_after is None or not serve_of(dialect).SERVER.retry_after_header:
        return {}
    return {"retry-after": f"{failure.retry_after:g}"}


def limit_headers(
    facts: ServerFacts, limit: RateLimitInfo, now: datetime | None = None
) -> dict[str, str]:
    """The vendor's headers for these limits; empty if it has no such headers."""
    values: dict[str, object] = {
        name: getattr(limit, name)
        for name in ("requests_limit", "requests_remaining", "tokens_limit", "tokens_remaining")
    }
    if limit.reset_after is not None:
        reset = f"{limit.reset_after:g}s"
        if facts.resets_at:
            reset_at = (now or datetime.now(UTC)) + timedelta(seconds=limit.reset_after)
            reset = reset_at.isoformat().replace("+00:00", "Z")
        for bucket in ("requests", "tokens"):
            if values[f"{bucket}_limit"] is not None or values[f"{bucket}_remaining"] is not None:
                values[f"{bucket}_reset"] = reset
    return {
        header: str(values[name])
        for name, header in facts.limit_headers.items()
        if values.get(name) is not None
    }


def as_error(dialect: str, failure: Failure, *, model: str, request_id: str) -> ProviderError:
    """The failure as a `ProviderError`, for the error event of a stream."""
    body = vendor_body(dialect, failure, model=model, request_id=request_id)
    fault = read_fault(body)
    return classify(failure.status, fault)(
        failure.message or fault.message or "no message",
        status_code=failure.status,
        error_code=fault.code or fault.kind,
        retry_after=failure.retry_after,
        raw=body,
    )


SSE = "text/event-stream; charset=utf-8"


class Incoming(NamedTuple):
    """A received request; `call` does not contain the key."""

    call: WireCall
    """The method, the path, the headers without the key, and the body."""
    route: Route
    """What the path and the method ask for."""
    query: Mapping[str, str]
    """The query parameters, without the key."""
    key: str | None
    """The key that the client sent, if any."""

    @property
    def dialect(self) -> str:
        """The name of the dialect of the request."""
        return self.route.dialect

    @property
    def wants_array(self) -> bool:
        """Whether the request asks for a stream as one JSON array and not as SSE."""
        sse = serve_of(self.dialect).SERVER.sse_query
        return bool(sse) and self.call.stream and sse not in self.call.path.partition("?")[2]


class RefusedError(Exception):
    """The request is refused with the vendor's error body for this failure."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.status)
        self.failure = failure


class Application(ABC):
    """An ASGI application for every dialect that has a `serve` module."""

    max_body: int | None = None
    """The most bytes that a request may have; None for any number."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request: the entry point of ASGI."""
        if scope["type"] == "lifespan":
            await answer_lifespan(receive, send)
            return
        if scope["type"] == "websocket":
            await refuse_websocket(scope, receive, send)
            return
        if scope["type"] != "http":
            raise NotImplementedError(f"Unsupported ASGI scope: {scope['type']}.")
        if scope["method"] == "HEAD":
            send = without_body(send)
        try:
            body = await read_body(receive, self.max_body)
        except TooLargeError:
            await self._refuse_body(scope, receive, send)
            return
        if body is not None:
            await self.handle(read_request(scope, body), receive, send)

    async def _refuse_body(self, scope: Scope, receive: Receive, send: Send) -> None:
        text = f"The request is larger than {self.max_body} bytes."
        failure = Failure(status=413, message=text)
        reply = failure_reply(read_request(scope, b""), failure)
        await Delivery(receive, send).send(reply)

    @abstractmethod
    async def handle(self, incoming: Incoming, receive: Receive, send: Send) -> None:
        """Answer one request: `Delivery(receive, send).send(reply)`."""


def read_request(scope: Scope, body: bytes) -> Incoming:
    """Read the request of an ASGI scope."""
    headers, query = headers_of(scope), query_of(scope)
    route = find_route(scope["method"], path_of(scope), headers)
    return Incoming(
        call=_make_call(scope, body, route, headers),
        route=route,
        query=dict(parse_qsl(query)) if query else {},
        key=read_key(headers, query),
    )


def check_key(incoming: Incoming, key: str) -> None:
    """Raise `RefusedError` unless the request has this key."""
    if not hmac.compare_digest((incoming.key or "").encode(), key.encode()):
        is_missing = incoming.key is None
        raise RefusedError(serve_of(incoming.dialect).wrong_key(is_missing=is_missing))


def check_form(incoming: Incoming) -> None:
    """
    Raise `RefusedError` for a WebSocket, an unknown URL, a missing header, or a body without JSON.

    Clients that try a WebSocket first, such as Codex, use HTTP after a 426, and only then.
    """
    call = incoming.call
    if call.headers.get("upgrade", "").lower() == "websocket":
        raise RefusedError(Failure(status=426, message="WebSockets are not supported; use HTTP."))
    if incoming.route.kind == "unknown":
        address = f"{call.method} {call.path}"
        raise RefusedError(Failure(status=404, message=f"Unknown request URL: {address}"))
    facts = incoming.route.facts
    for header in serve_of(incoming.dialect).SERVER.required_headers:
        if header not in call.headers and (facts is None or facts.requires_headers):
            raise RefusedError(Failure(status=400, message=f"{header}: header is required"))
    needs_json = call.method == "POST" and incoming.route.kind != "operation"
    if needs_json and not isinstance(call.body, dict):
        message = "We could not parse the JSON body of your request."
        raise RefusedError(Failure(status=400, message=message))


def check_served(incoming: Incoming, *, keeps: bool = False) -> None:
    """
    Raise `RefusedError` if the request asks for something that only the vendor's server does.

    `keeps` says if this server keeps responses for the caller.
    """
    body = incoming.call.body
    if isinstance(body, dict):
        for each in serve_of(incoming.dialect).SERVER.unserved:
            if each.is_asked(body) and not (keeps and each.unless_kept):
                failure = Failure(status=400, message=each.message, details=each.details)
                raise RefusedError(failure)


def count_body(incoming: Incoming, count: Callable[[Request], int]) -> Json:
    """Return the body of the reply to a token-count request."""
    serve = serve_of(incoming.dialect)
    counted = serve.counted_call(incoming.call)
    return serve.count_tokens(count(dialects.get(incoming.dialect).decode_request(counted)))


def json_reply(
    incoming: Incoming,
    body: Json | bytes,
    status: int = 200,
    headers: Mapping[str, str] | None = None,
) -> Reply:
    """Make a reply that is not a stream; text and bytes are sent unchanged."""
    content_type, data = body_bytes(body)
    content_type = content_type or serve_of(incoming.dialect).SERVER.content_type
    return Reply(status, {"content-type": content_type, **(headers or {})}, (data,))


def operation_reply(incoming: Incoming, perform: Callable[[str, Any], Any]) -> Reply:
    """Reply to an operation; `perform` gets its name and its value, and returns the result."""
    operation, value = decode_operation(incoming)
    return encode_operation(incoming, perform(operation.name, value), value)


def decode_operation(incoming: Incoming) -> tuple[ServedOperation, Any]:
    """Read which operation a request asks for, and its value."""
    operation = incoming.route.operation
    if operation is None:
        raise RefusedError(Failure(status=404))
    call = replace(incoming.call, query=incoming.query)
    with request_errors():  # what cannot be read is the client's, not a provider's
        return operation, operation.decode(call, incoming.route.params)


def encode_operation(incoming: Incoming, result: Any, value: Any) -> Reply:
    """Make the reply with the result of an operation."""
    operation = incoming.route.operation
    if operation is None:
        raise RefusedError(Failure(status=404))
    reply = operation.encode(result, value)
    if reply.content is None:
        return json_reply(incoming, reply.body, reply.status, reply.headers)
    headers = {"content-type": reply.content_type, **reply.headers}
    is_whole = isinstance(reply.content, bytes)
    chunks = (reply.content,) if isinstance(reply.content, bytes) else reply.content
    return Reply(reply.status, headers, chunks, is_stream=not is_whole)


class Framing:
    """How the frames of a stream are written: as server-sent events."""

    headers: Mapping[str, str] = {"content-type": SSE, "cache-control": "no-cache"}
    keep_alive = b": keep-alive\n\n"
    """Bytes that clients ignore."""

    def comment(self, text: str) -> bytes:
        """A text that clients ignore; no bytes if there are no comments."""
        return f": {text}\n\n".encode()

    def encode(self, frame: Frame) -> bytes:
        """The bytes of one frame."""
        return encode_sse(frame)

    def end(self) -> bytes:
        """The bytes after the last frame."""
        return b""


class _BareFraming(Framing):
    """As server-sent events without comments; empty lines keep the connection."""

    keep_alive = b"\n\n"

    def comment(self, _text: str) -> bytes:
        return b""


class _AwsFraming(Framing):
    """As frames of AWS, which have no comments."""

    headers: Mapping[str, str] = {"content-type": AWS_EVENT_STREAM}
    keep_alive = b""

    def comment(self, _text: str) -> bytes:
        return b""

    def encode(self, frame: Frame) -> bytes:
        return aws_event_stream.encode_chunk(frame)


class _AwsEvents(_AwsFraming):
    """As frames of AWS that are events of the dialect itself."""

    def encode(self, frame: Frame) -> bytes:
        return aws_event_stream.encode_event(frame)


class _ArrayFraming(Framing):
    """As one JSON array, for dialects that can stream without SSE."""

    keep_alive = b"\r\n"

    def comment(self, _text: str) -> bytes:
        return b""

    def __init__(self, content_type: str) -> None:
        self.headers = {"content-type": content_type}
        self._start = "["

    def encode(self, frame: Frame) -> bytes:
        start, self._start = self._start, ","
        return f"{start}{frame.data}\r\n".encode("utf-8", "backslashreplace")

    def end(self) -> bytes:
        return b"]" if self._start == "," else b"[]"


def framing_of(incoming: Incoming) -> Framing:
    """The framing that a request for a stream asks for."""
    if incoming.wants_array:
        return _ArrayFraming(serve_of(incoming.dialect).SERVER.content_type)
    facts = incoming.route.facts
    if facts is not None and facts.framing == "aws-event-stream":
        is_own = facts.framing in dialects.get(incoming.dialect).FACTS.framings
        return _AwsEvents() if is_own else _AwsFraming()
    return Framing() if serve_of(incoming.dialect).SERVER.reads_comments else _BareFraming()


def frames_reply(incoming: Incoming, frames: Iterable[Frame] | AsyncIterable[Frame]) -> Reply:
    """Make a reply that sends a stream in the framing that the request asks for."""
    framing = framing_of(incoming)
    return Reply(200, framing.headers, _encoded(framing, frames), is_stream=True)


async def _encoded(
    framing: Framing, frames: Iterable[Frame] | AsyncIterable[Frame]
) -> AsyncGenerator[bytes, None]:
    async with aclosing(_each(frames)) as each:
        async for frame in each:
            yield framing.encode(frame)
    if last := framing.end():
        yield last


async def _each(frames: Iterable[Frame] | AsyncIterable[Frame]) -> AsyncGenerator[Frame, None]:
    """The frames; their source is closed at the end, or when the client has gone."""
    if not isinstance(frames, AsyncIterable):
        for frame in frames:
            yield frame
        return
    try:
        async for frame in frames:
            yield frame
    finally:
        if (close := getattr(frames, "aclose", None)) is not None:
            await close()


def failure_reply(
    incoming: Incoming, failure: Failure, *, model: str = "", request_id: str = ""
) -> Reply:
    """Make the reply for a failure, with the vendor's error body."""
    model = failure.model or model
    body = vendor_body(incoming.dialect, failure, model=model, request_id=request_id)
    if incoming.wants_array and isinstance(body, dict):
        body = [body]
    headers = retry_headers(incoming.dialect, failure)
    make_headers = serve_of(incoming.dialect).SERVER.error_headers
    if make_headers is not None:
        headers |= make_headers(failure)
    return json_reply(incoming, body, failure.status, headers)


def error_reply(incoming: Incoming, error: SDKError) -> Reply:
    """Make the reply for an error, as the dialect encodes it."""
    status, headers, body = dialects.get(incoming.dialect).encode_error(error)
    return json_reply(incoming, body, status, headers)
