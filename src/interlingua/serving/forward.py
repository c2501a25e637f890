"""
An ASGI application that sends requests on to other servers, through a transport.

With a `RecordingTransport` it records the exchanges of programs that do not use this library; with
a `ReplayTransport` it plays them back. It adds no key: each request is sent with its own.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeAlias

from interlingua.serving.application import failure_reply, read_request
from interlingua.serving.asgi import (
    CutConnectionError,
    Delivery,
    Receive,
    Scope,
    Send,
    answer_lifespan,
    headers_of,
    path_of,
    query_of,
    read_body,
    refuse_websocket,
    wait_for_disconnect,
)
from interlingua.spec.contracts import HttpReply, HttpRequest, Transport
from interlingua.spec.errors import ConfigurationError, RequestTimeoutError, SDKError
from interlingua.spec.operations import Failure

Locate: TypeAlias = Callable[[str], str]
"""The URL for a path with its query; raises `ConfigurationError` if there is none."""

# RFC 9110: these belong to one connection. The transport sets its own `accept-encoding` and
# returns bodies decompressed. A cookie of a load balancer is of no use to a replay.
_OF_CONNECTION = frozenset(
    (
        *("connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "te"),
        *("trailer", "transfer-encoding", "upgrade", "content-length", "content-encoding"),
    )
)
_OF_REQUEST = _OF_CONNECTION - {"content-encoding"} | {"host", "accept-encoding", "expect"}
_OF_REPLY = _OF_CONNECTION | {"set-cookie"}
_WITHOUT_BODY = frozenset((204, 304))


class Forwarded(NamedTuple):
    """A request that was answered, and how."""

    method: str
    path: str
    """Without its query, which may contain a key."""
    status: int
    """0 if the client disconnected before the reply began."""
    seconds: float
    error: SDKError | None = None
    """Why there was no whole reply, or why it could not be recorded."""


OnExchange: TypeAlias = Callable[[Forwarded], object]


class Forwarder:
    """
    Sends each request to the URL that `locate` gives for it; streams stay streams.

    A request without such a URL, or without a recording, is answered with 400 (clients do not
    retry it), and a server that cannot be reached with 502 or 504, in the form of the dialect.
    `on_exchange` is called when an exchange has ended, or before such an answer is sent.
    """

    def __init__(
        self,
        transport: Transport,
        locate: Locate,
        on_exchange: OnExchange = lambda _: None,
    ) -> None:
        self._transport = transport
        self._locate = locate
        self._on_exchange = on_exchange

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request: the entry point of ASGI."""
        if scope["type"] == "lifespan":
            await answer_lifespan(receive, send)
        elif scope["type"] == "websocket":
            await refuse_websocket(scope, receive, send)
        elif (body := await read_body(receive)) is not None:
            exchange = _Exchange(scope, body, receive, send, self._on_exchange)
            work = asyncio.ensure_future(exchange.run(self._transport, self._locate))
            disconnected = asyncio.ensure_future(wait_for_disconnect(receive))
            try:
                await asyncio.wait({work, disconnected}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                disconnected.cancel()
                work.cancel()  # does nothing if it has ended
                await asyncio.wait({work})
                exchange.report()
            failure = None if work.cancelled() else work.exception()
            is_gone = isinstance(failure, OSError) and not isinstance(failure, CutConnectionError)
            if failure is not None and not is_gone:  # ASGI servers raise it after a disconnect
                raise failure


class _Exchange:
    """One request and its reply."""

    def __init__(
        self, scope: Scope, body: bytes, receive: Receive, send: Send, on_exchange: OnExchange
    ) -> None:
        self._status = 0
        self._error: SDKError | None = None
        self._scope = scope
        self._body = body
        self._receive = receive
        self._send = send
        self._on_exchange: OnExchange | None = on_exchange
        self._began = time.monotonic()
        self._is_complete = False

    def report(self) -> None:
        """Report the exchange, once."""
        on_exchange, self._on_exchange = self._on_exchange, None
        if on_exchange is not None:
            seconds = time.monotonic() - self._began
            method, path = self._scope["method"], path_of(self._scope)
            on_exchange(Forwarded(method, path, self._status, seconds, self._error))

    async def run(self, transport: Transport, locate: Locate) -> None:
        """Send the request and pass its reply on."""
        try:
            if "websocket" in headers_of(self._scope).get("upgrade", "").lower():
                # Clients that try a WebSocket first, such as Codex, use HTTP after a 426.
                await self._fail(426, "WebSockets are not supported; use HTTP.")
                return
            async with transport.send(self._request(locate)) as reply:
                await self._pass_on(reply)
        except SDKError as error:
            self._error = error
            if self._is_complete:  # only the recording has failed
                pass
            elif self._status:
                raise CutConnectionError from error
            else:
                await self._fail(_status_of(error), error.message)
                return
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})

    def _request(self, locate: Locate) -> HttpRequest:
        query = query_of(self._scope)
        target = path_of(self._scope) + (f"?{query}" if query else "")
        return HttpRequest(
            method=self._scope["method"],
            url=locate(target),
            headers=_without(headers_of(self._scope), _OF_REQUEST),
            body=self._body,
        )

    async def _pass_on(self, reply: HttpReply) -> None:
        headers = _without(reply.headers, _OF_REPLY)
        has_body = reply.status not in _WITHOUT_BODY and self._scope["method"] != "HEAD"
        whole = None
        if not has_body or "content-length" in reply.headers:
            whole = await reply.read()
            self._is_complete = True
            headers["content-length"] = str(len(whole))
        raw = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
        self._status = reply.status
        await self._send({"type": "http.response.start", "status": reply.status, "headers": raw})
        if whole is not None:
            await self._put(whole if has_body else b"")
            return
        async for chunk in reply.chunks():
            await self._put(chunk)
        self._is_complete = True

    async def _put(self, chunk: bytes) -> None:
        if chunk:
            await self._send({"type": "http.response.body", "body": chunk, "more_body": True})

    async def _fail(self, status: int, message: str) -> None:
        self._status = status
        self.report()  # first: the client may print what it receives at once
        incoming = read_request(self._scope, self._body)
        reply = failure_reply(incoming, Failure(status=status, message=message))
        await Delivery(self._receive, self._send).send(reply)


def _without(headers: Mapping[str, str], names: frozenset[str]) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name.lower() not in names}


def _status_of(error: SDKError) -> int:
    if isinstance(error, ConfigurationError):
        return 400
    return 504 if isinstance(error, RequestTimeoutError) else 502
