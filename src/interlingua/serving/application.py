"""
The ASGI application on which the simulator and a gateway are built.

It reads a request, finds its dialect, refuses what the vendor would refuse, and sends the reply.
What the answer is, is up to the class that derives from it.
"""

from __future__ import annotations

import hmac
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import NamedTuple
from urllib.parse import parse_qsl

from interlingua import dialects
from interlingua.serving.asgi import (
    Receive,
    Scope,
    Send,
    answer_lifespan,
    headers_of,
    path_of,
    query_of,
    read_body,
)
from interlingua.serving.delivery import Reply
from interlingua.serving.errors import body_bytes, retry_headers, vendor_body
from interlingua.serving.routes import Route, find_route, read_call, read_key, serve_of
from interlingua.spec.content import Json
from interlingua.spec.contracts import WireCall
from interlingua.spec.errors import SDKError
from interlingua.spec.request import Request
from interlingua.spec.serve import Failure

SSE = "text/event-stream; charset=utf-8"


class Incoming(NamedTuple):
    """A request as it came, without its key in `call`."""

    call: WireCall
    route: Route
    query: Mapping[str, str]
    key: str | None

    @property
    def dialect(self) -> str:
        """The name of the dialect that it is in."""
        return self.route.dialect

    @property
    def wants_array(self) -> bool:
        """It asks for a stream as one JSON array, not as SSE."""
        sse = serve_of(self.dialect).SERVER.sse_query
        return bool(sse) and self.call.stream and sse not in self.call.path.partition("?")[2]


class RefusedError(Exception):
    """The request is refused, in the vendor's words for this failure."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.status)
        self.failure = failure


class Application(ABC):
    """An ASGI application that speaks every dialect that has a `serve` module."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, as ASGI has it."""
        if scope["type"] == "lifespan":
            await answer_lifespan(receive, send)
            return
        if scope["type"] != "http":
            raise NotImplementedError(f"this application does not speak {scope['type']}")
        body = await read_body(receive)
        if body is not None:
            await self.handle(read_request(scope, body), receive, send)

    @abstractmethod
    async def handle(self, incoming: Incoming, receive: Receive, send: Send) -> None:
        """Answer one request: `Delivery(receive, send).send(reply)`."""


def read_request(scope: Scope, body: bytes) -> Incoming:
    """The request of an ASGI scope."""
    headers, query = headers_of(scope), query_of(scope)
    route = find_route(scope["method"], path_of(scope), headers)
    return Incoming(
        call=read_call(scope, body, route),
        route=route,
        query=dict(parse_qsl(query)),
        key=read_key(headers, query),
    )


def check_key(incoming: Incoming, key: str) -> None:
    """Raise `RefusedError` unless the request carries this key."""
    if not hmac.compare_digest((incoming.key or "").encode(), key.encode()):
        is_missing = incoming.key is None
        raise RefusedError(serve_of(incoming.dialect).wrong_key(is_missing=is_missing))


def check_form(incoming: Incoming) -> None:
    """Raise `RefusedError` for an unknown address, a missing header, a body that is not JSON."""
    call = incoming.call
    if incoming.route.kind == "unknown":
        address = f"{call.method} {call.path}"
        raise RefusedError(Failure(status=404, message=f"Unknown request URL: {address}"))
    for header in serve_of(incoming.dialect).SERVER.required_headers:
        if header not in call.headers:
            raise RefusedError(Failure(status=400, message=f"{header}: header is required"))
    if call.method == "POST" and not isinstance(call.body, dict):
        message = "We could not parse the JSON body of your request."
        raise RefusedError(Failure(status=400, message=message))


def count_body(incoming: Incoming, count: Callable[[Request], int]) -> Json:
    """The body for a request for a token count."""
    serve = serve_of(incoming.dialect)
    counted = serve.counted_call(incoming.call)
    return serve.count_tokens(count(dialects.get(incoming.dialect).decode_request(counted)))


def json_reply(
    incoming: Incoming, body: Json, status: int = 200, headers: Mapping[str, str] | None = None
) -> Reply:
    """A whole reply; a body that is text or bytes is sent as it is."""
    content_type, data = body_bytes(body)
    content_type = content_type or serve_of(incoming.dialect).SERVER.content_type
    return Reply(status, {"content-type": content_type, **(headers or {})}, (data,))


def refusal(
    incoming: Incoming, failure: Failure, *, model: str = "", request_id: str = ""
) -> Reply:
    """A failure in the vendor's words."""
    model = failure.model or model
    body = vendor_body(incoming.dialect, failure, model=model, request_id=request_id)
    if incoming.wants_array and isinstance(body, dict):
        body = [body]
    return json_reply(incoming, body, failure.status, retry_headers(incoming.dialect, failure))


def error_reply(incoming: Incoming, error: SDKError) -> Reply:
    """An error of ours, as the dialect tells it."""
    status, headers, body = dialects.get(incoming.dialect).encode_error(error)
    return json_reply(incoming, body, status, headers)
