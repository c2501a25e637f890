"""
HTTP/1.1 over aiohttp's connections: the pool of one event loop.

aiohttp resolves, connects, encrypts, pools and parses. Its `ClientSession` is not used: for each
request it builds headers, URLs, cookies and a task again, which costs more than the rest of a call.
"""

from __future__ import annotations

import asyncio
import ssl
from base64 import b64encode
from collections.abc import AsyncIterator, Callable, Hashable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import aiohttp
from yarl import URL

from interlingua.spec.contracts import HttpRequest
from interlingua.spec.defaults import Timeouts
from interlingua.transport.aiohttp_connector import Connector, Handler, StaleConnectionError
from interlingua.transport.bodies import ACCEPTED, OutgoingBody, sent_headers
from interlingua.transport.proxies import Proxies
from interlingua.transport.timeouts import Watch
from interlingua.version import USER_AGENT
from interlingua.wire.multipart import is_repeatable

_MAX_TARGETS = 256  # cached per pool
_LARGE = 1 << 20  # a body of bytes above this size is written piece by piece
_PIECE = 256 * 1024
_BODILESS = ("GET", "HEAD", "OPTIONS", "TRACE")


class Target(NamedTuple):
    """Where the requests for one URL go, and what is the same in all of them."""

    address: aiohttp.ClientRequest
    """Names the host, the port and the proxy to the connector; it is never sent."""
    key: Hashable
    """The same for all targets whose requests may use the same connection."""
    path: str
    """As in the request line."""
    headers: Mapping[str, str]


class OpenReply:
    """A reply whose status line and headers have arrived; it holds its connection to its end."""

    __slots__ = ("_connector", "_key", "_writer", "content", "handler", "headers", "status")

    def __init__(
        self,
        message: Any,
        content: aiohttp.StreamReader,
        handler: Handler,
        writer: asyncio.Task[None] | None,
        connector: Connector,
        key: Hashable,
    ) -> None:
        self.status: int = message.code
        self.headers: Mapping[str, str] = message.headers
        self.content = content
        self.handler: Handler | None = handler
        """Its connection; None after the end of the body."""
        self._writer = writer
        self._connector = connector
        self._key = key
        content.on_eof(self._release)

    def _release(self) -> None:
        """The body has ended: the next request may use the connection."""
        handler, self.handler = self.handler, None
        if handler is None:
            return
        if self._writer is None or self._writer.done():
            self._connector.give(self._key, handler)
        else:  # the server has answered before it read the whole request
            _drop(handler, self._writer)

    def drop(self) -> None:
        """Close the connection if the body is incomplete; a task that is reading gets an error."""
        handler, self.handler = self.handler, None
        if handler is None:
            return
        if self.content.exception() is None:
            self.content.set_exception(aiohttp.ClientConnectionError())
        _drop(handler, self._writer)


class Pool:
    """The connections of one event loop, and the state that its exchanges share."""

    def __init__(self, *, trust_env: bool, tls: ssl.SSLContext | None) -> None:
        # aiohttp's own `trust_env` looks up the proxy in a thread and reads netrc for each request,
        # and credentials from netrc would conflict with the API keys.
        self._proxies = Proxies() if trust_env else None
        self.lingering: set[Any] = set()
        """Exchanges whose reader has finished, and whose body may end at any moment."""
        self._loop = asyncio.get_running_loop()
        self.watch: Watch = Watch(self._loop)
        """The deadlines of the exchanges."""
        self._target = lru_cache(_MAX_TARGETS)(self._find_target)
        self.connector = Connector(
            ssl=True if tls is None else tls, resolver=aiohttp.ThreadedResolver()
        )

    async def send(self, request: HttpRequest, timeouts: Timeouts) -> OpenReply:
        """
        Send the request; returns when the status line and the headers have arrived.

        It is sent once more if a reused connection ended before one byte of the reply.
        """
        target, body, connector = self._target(request.url), request.body, self.connector
        head, keep_alive = _write_head(request, target), request.keep_alive
        while True:
            handler = connector.take(target.key) if keep_alive else None
            if handler is None:
                handler = await self._connect(target, timeouts, request.on_connect)
            writer = outgoing = None
            try:
                handler.begin(keep_alive=keep_alive, has_body=request.method != "HEAD")
                if isinstance(body, bytes) and len(body) <= _LARGE:
                    handler.write(head + body)
                else:
                    outgoing = OutgoingBody(request)
                    writer = self._loop.create_task(_write(handler, head, request, outgoing))
                message, content = await handler.read()
                while 100 <= message.code < 200 and message.code != 101:
                    message, content = await handler.read()
            except BaseException as error:
                _drop(handler, writer)
                if outgoing is not None and outgoing.error is not None:
                    raise outgoing.error from None
                if not handler.is_stale(error):
                    raise
            else:
                return OpenReply(message, content, handler, writer, connector, target.key)
            _check_resend(request)
            keep_alive = False  # on a new connection, which is closed after the reply

    async def _connect(
        self, target: Target, timeouts: Timeouts, on_connect: Callable[[bool], object] | None
    ) -> Handler:
        if on_connect is not None:
            on_connect(True)
        try:
            handler = await self.connector.open(target.address, timeouts.connect)
        except TimeoutError as error:
            raise aiohttp.ConnectionTimeoutError from error
        if on_connect is not None:
            on_connect(False)
        return handler

    def _find_target(self, url: str) -> Target:
        try:
            parsed = URL(url)
        except ValueError as error:
            raise aiohttp.InvalidURL(url) from error
        if parsed.scheme not in ("http", "https"):
            raise aiohttp.InvalidURL(url)
        found = None if self._proxies is None else self._proxies.find(url)
        proxy = None if found is None else URL(found)
        address = aiohttp.ClientRequest("POST", parsed, loop=self._loop, proxy=proxy)
        key = address.connection_key
        headers = {
            "host": address.headers["host"],
            "accept": "*/*",
            "accept-encoding": ACCEPTED,
            "user-agent": USER_AGENT,
            **_basic_auth("authorization", parsed),
        }
        if proxy is None or address.is_ssl():
            return Target(address, key, parsed.raw_path_qs, headers)
        whole = parsed.with_user(None).with_fragment(None)
        return Target(address, key, str(whole), headers | _basic_auth("proxy-authorization", proxy))

    async def close(self) -> None:
        """Close every connection."""
        for exchange in tuple(self.lingering):
            exchange.abort()
        self.watch.close()
        await self.connector.close()

    def discard(self) -> None:
        """Close the connections without the event loop, which is no longer running."""
        self.connector.discard()


def _basic_auth(header: str, url: URL) -> dict[str, str]:
    """The header for the name and the password in a URL, if there are any."""
    if not (url.user or url.password):
        return {}
    pair = f"{url.user or ''}:{url.password or ''}"
    return {header: f"Basic {b64encode(pair.encode()).decode()}"}


def _write_head(request: HttpRequest, target: Target) -> bytes:
    """The request line and the headers; `ValueError` if one of them has a line break."""
    headers, size = sent_headers(request), request.body_size
    if not "".join(headers).islower():
        headers = {name.lower(): value for name, value in headers.items()}
    headers = {**target.headers, **headers}
    if size is None:
        headers["transfer-encoding"] = "chunked"
    elif size or request.method not in _BODILESS:
        headers["content-length"] = str(size)
    lines = "\r\n".join(map(": ".join, headers.items()))
    head = f"{request.method} {target.path} HTTP/1.1\r\n{lines}\r\n\r\n"
    breaks = len(headers) + 2
    if head.count("\n") != breaks or head.count("\r") != breaks or "\0" in head:
        raise ValueError("A header has a line break.")
    return head.encode()


def _check_resend(request: HttpRequest) -> None:
    """Raise `StaleConnectionError` if the request may not be sent once more."""
    if not (request.may_resend and is_repeatable(request.body)):
        raise StaleConnectionError
    if request.on_resend is not None:
        request.on_resend()


async def _write(
    handler: Handler, head: bytes, request: HttpRequest, outgoing: OutgoingBody
) -> None:
    """Write a request with a large or streamed body, as fast as the server reads it."""
    is_chunked = request.body_size is None
    pieces = _pieces(request.body) if isinstance(request.body, bytes) else outgoing
    try:
        handler.write(head)
        async for piece in pieces:
            handler.write(b"%x\r\n%b\r\n" % (len(piece), piece) if is_chunked else piece)
            await handler.drain()
        if is_chunked:
            handler.write(b"0\r\n\r\n")
    except Exception as error:  # noqa: BLE001 -- the reader of the reply raises it
        if handler.exception() is None:
            handler.set_exception(error)


async def _pieces(body: bytes) -> AsyncIterator[bytes]:
    for at in range(0, len(body), _PIECE):
        yield body[at : at + _PIECE]


def _drop(handler: Handler, writer: asyncio.Task[None] | None) -> None:
    if writer is not None:
        writer.cancel()
    handler.drop()
