"""The connections of an httpx2 client: httpcore2's pool over our network backend."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any

import httpcore2
import httpx2

from interlingua.transport.httpx2_backend import Backend
from interlingua.transport.proxies import SOCKS

_KEEP_ALIVE = 60.0  # seconds that an idle connection is kept

_ERRORS: dict[type[Exception], type[httpx2.TransportError]] = {
    httpcore2.ConnectTimeout: httpx2.ConnectTimeout,
    httpcore2.ReadTimeout: httpx2.ReadTimeout,
    httpcore2.WriteTimeout: httpx2.WriteTimeout,
    httpcore2.PoolTimeout: httpx2.PoolTimeout,
    httpcore2.ConnectError: httpx2.ConnectError,
    httpcore2.ReadError: httpx2.ReadError,
    httpcore2.WriteError: httpx2.WriteError,
    httpcore2.ProxyError: httpx2.ProxyError,
    httpcore2.UnsupportedProtocol: httpx2.UnsupportedProtocol,
    httpcore2.LocalProtocolError: httpx2.LocalProtocolError,
    httpcore2.RemoteProtocolError: httpx2.RemoteProtocolError,
}


class PoolTransport(httpx2.AsyncBaseTransport):
    """
    Sends the requests of an httpx2 client through a connection pool of its own.

    httpx2's own transport is the same, but takes no network backend.
    """

    def __init__(self, *, http2: bool, trust_env: bool, proxy: str | None) -> None:
        given = None if proxy is None else httpx2.Proxy(proxy)
        self._is_socks = given is not None and given.url.scheme in SOCKS
        # `trust_env` is for SSL_CERT_FILE and SSL_CERT_DIR.
        self._pool = httpcore2.AsyncConnectionPool(
            ssl_context=httpx2.create_ssl_context(trust_env=trust_env),
            proxy=None if given is None else _proxy(given, trust_env=trust_env),
            max_connections=None,
            keepalive_expiry=_KEEP_ALIVE,
            http2=http2,
            network_backend=Backend(),
        )

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send the request; returns when the status line and the headers have arrived."""
        sent = httpcore2.Request(
            request.method,
            _url(request.url),
            headers=request.headers.raw,
            content=request.stream,
            extensions=request.extensions,
        )
        if self._is_socks:
            sent.extensions = {**sent.extensions, "trace": _close_after_refusal()}
        try:
            response = await self._pool.handle_async_request(sent)
        except Exception as error:
            for kind, translated in _ERRORS.items():
                if isinstance(error, kind):
                    raise translated(str(error)) from error
            raise
        return httpx2.Response(
            response.status,
            headers=response.headers,
            stream=_Body(response),
            extensions=response.extensions,
        )

    async def aclose(self) -> None:
        """Close every connection."""
        await self._pool.aclose()


class _Body(httpx2.AsyncByteStream):
    """The body of a response; its errors are httpcore2's."""

    def __init__(self, response: httpcore2.Response) -> None:
        self._response = response

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._response.aiter_stream()

    async def aclose(self) -> None:
        await self._response.aclose()


def _close_after_refusal() -> Callable[[str, Mapping[str, Any]], Awaitable[None]]:
    """
    Closes the connection to a SOCKS proxy that refuses, or is silent until the request is given up.

    httpcore2 forgets such a connection without closing it. It tells each step to a `trace`.
    """
    opened: list[httpcore2.AsyncNetworkStream] = []

    async def trace(event: str, info: Mapping[str, Any]) -> None:
        if event == "socks.setup_socks5_connection.started":
            opened.append(info["stream"])
        elif event == "socks.setup_socks5_connection.failed":
            await opened.pop().aclose()

    return trace


def _url(url: httpx2.URL) -> httpcore2.URL:
    return httpcore2.URL(
        scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path
    )


def _proxy(proxy: httpx2.Proxy, *, trust_env: bool) -> httpcore2.Proxy:
    # Not the context of the hosts: httpcore2 offers HTTP/2 to them, and not to a proxy.
    is_secure = proxy.url.scheme == "https"
    context = httpx2.create_ssl_context(trust_env=trust_env) if is_secure else None
    return httpcore2.Proxy(_url(proxy.url), auth=proxy.raw_auth, ssl_context=context)
