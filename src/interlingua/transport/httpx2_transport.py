"""A transport over httpx2 (extra `httpx`): HTTP/2, SOCKS proxies, or your own httpx2 client."""

from __future__ import annotations

import asyncio
import importlib
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from http.cookiejar import DefaultCookiePolicy
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from interlingua.spec.contracts import HttpReply, HttpRequest
from interlingua.spec.defaults import Limits, Timeouts
from interlingua.spec.errors import (
    ConfigurationError,
    NetworkError,
    SDKError,
    StreamError,
)
from interlingua.transport.bodies import (
    OutgoingBody,
    accepted_codings,
    inflate,
    inflater_for,
    sent_headers,
)
from interlingua.transport.per_loop import PerLoop
from interlingua.transport.proxies import HTTP, SOCKS, Proxies
from interlingua.transport.timeouts import (
    NO_HOST,
    Bounded,
    address_of,
    connection_error,
    host_of,
    is_one_value,
    next_deadline,
    system_error,
    timeout_error,
)
from interlingua.version import USER_AGENT
from interlingua.wire.multipart import is_repeatable

if TYPE_CHECKING:
    import httpx2


class HttpxTransport:
    """
    Sends requests through httpx2, with its own clients for each event loop.

    Proxies are read from the environment as in `HttpTransport`; SOCKS proxies work too.

    `client` is your own httpx2 client: it is used with its settings, only in the event loop it
    belongs to, and `close` leaves it open. Whether it reuses a connection is its own decision.
    Redirects are never followed. Cookies are not stored, except by your own client.
    """

    def __init__(
        self,
        *,
        client: httpx2.AsyncClient | None = None,
        timeouts: Timeouts | None = None,
        limits: Limits | None = None,
        trust_env: bool = True,
        http2: bool = False,
    ) -> None:
        self.timeouts: Timeouts = timeouts or Timeouts()
        self.limits: Limits = limits or Limits()
        self._trust_env = trust_env
        self._http2 = http2
        self._given = None if client is None else _Route(client)
        self._is_loaded = False
        self._clients: PerLoop[_Clients] = PerLoop(
            self._open,
            lambda clients: clients.close(),
            # httpx2 can close sockets only in their loop; the garbage collector closes them.
            lambda _: None,
        )

    def send(self, request: HttpRequest) -> AbstractAsyncContextManager[HttpReply]:
        """Send the request; the connection stays open while the `async with` block runs."""
        return self._exchange(self._given or self._route_of(request), request)

    async def get_ready(self, url: str) -> None:
        """Import httpx2 in a thread, and load the certificates for this address."""
        if self._given is None:
            if not self._is_loaded:
                await asyncio.to_thread(_import_libraries)
                self._is_loaded = True
            self._clients.get(asyncio.get_running_loop()).find(url)

    async def close(self) -> None:
        """Close every connection; your own `client` stays open."""
        await self._clients.close()

    def _route_of(self, request: HttpRequest) -> _Route:
        return self._clients.get(asyncio.get_running_loop()).find(request.url)

    def _open(self) -> _Clients:
        return _Clients(trust_env=self._trust_env, http2=self._http2)

    @asynccontextmanager
    async def _exchange(self, route: _Route, request: HttpRequest) -> AsyncIterator[HttpReply]:
        timeouts = request.timeouts or self.timeouts
        began = asyncio.get_running_loop().time()
        response = await _head(route, request, timeouts, began)
        reply = _Reply(response, request, timeouts, began, request.limits or self.limits)
        try:
            yield reply
        finally:
            await response.aclose()


def _import_libraries() -> None:
    with suppress(ImportError):  # the first request says what is missing
        importlib.import_module("interlingua.transport.httpx2_pool")
        # httpcore2 waits through anyio, which imports the rest of itself in an event loop.
        anyio: Any = importlib.import_module("anyio")
        anyio.run(anyio.sleep, 0)


class _Route(NamedTuple):
    """Which client sends a request."""

    client: httpx2.AsyncClient
    proxy: str | None = None
    """The host and port of its proxy, for messages; None if there is none, or if it is unknown."""


class _Clients:
    """The clients of one event loop: one for direct connections, and one for each proxy."""

    def __init__(self, *, trust_env: bool, http2: bool) -> None:
        self._trust_env = trust_env
        self._http2 = http2
        # httpx2's own proxy lookup is not used: it would send requests to loopback, and their
        # keys, through the proxy.
        proxies = Proxies((*HTTP, *SOCKS)) if trust_env else None
        self._proxies = proxies or None
        self._by_proxy: dict[str | None, _Route] = {}

    def find(self, url: str) -> _Route:
        """The client for this URL, with its proxy."""
        proxy = None if self._proxies is None else self._proxies.find(url)
        route = self._by_proxy.get(proxy)
        if route is None:
            address = None if proxy is None else address_of(proxy)
            route = self._by_proxy[proxy] = _Route(self._open(proxy), address)
        return route

    async def close(self) -> None:
        """Close every connection."""
        for route in self._by_proxy.values():
            await route.client.aclose()

    def _open(self, proxy: str | None) -> httpx2.AsyncClient:
        needed = ["httpx2"]
        if self._http2:
            needed.append("h2")
        if urlsplit(proxy or "").scheme in SOCKS:
            needed.append("socksio")
        for name in needed:
            try:
                importlib.import_module(name)
            except ImportError:
                raise ConfigurationError(
                    f"{name} is not installed. Run `pip install 'interlingua[httpx]'`."
                ) from None
        import httpx2

        from interlingua.transport.httpx2_pool import PoolTransport

        client = httpx2.AsyncClient(
            headers={"accept-encoding": accepted_codings(), "user-agent": USER_AGENT},
            transport=PoolTransport(http2=self._http2, trust_env=self._trust_env, proxy=proxy),
            trust_env=False,
        )
        client.cookies.jar.set_policy(DefaultCookiePolicy(allowed_domains=[]))
        return client


async def _head(
    route: _Route, request: HttpRequest, timeouts: Timeouts, began: float
) -> httpx2.Response:
    import httpx2

    deadline, phase = next_deadline(timeouts, "first_byte", began, began)
    error: SDKError
    try:
        async with asyncio.timeout_at(deadline):
            try:
                return await _send(route.client, request, timeouts)
            except httpx2.ReadError as failure:
                may_resend = request.may_resend and is_repeatable(request.body)
                if not _is_stale(failure) or not may_resend:
                    raise
            if request.on_resend is not None:
                request.on_resend()
            return await _send(route.client, request, timeouts)
    except SDKError:  # first: some of them are a TimeoutError or an OSError too
        raise
    except TimeoutError:
        error = timeout_error(phase, request, timeouts)
    except Exception as failure:  # noqa: BLE001 -- all are translated
        error = _send_error(failure, request, timeouts, route.proxy)
        error.add_cause(system_error(failure))
    raise error  # outside of `except`, so that httpx2's error is not its __context__


async def _send(
    client: httpx2.AsyncClient, request: HttpRequest, timeouts: Timeouts
) -> httpx2.Response:
    import httpx2

    body = request.body
    content = body if isinstance(body, bytes) else aiter(OutgoingBody(request))
    built = client.build_request(
        request.method,
        request.url,
        headers=sent_headers(request),
        content=content or None,
        timeout=httpx2.Timeout(None, connect=timeouts.connect),
    )
    return await client.send(built, stream=True, auth=None, follow_redirects=False)


def _is_stale(failure: Exception) -> bool:
    from interlingua.transport.httpx2_backend import StaleConnectionError

    return isinstance(failure.__cause__, StaleConnectionError)


class _Reply:
    """An httpx2 response with the interface of `HttpReply`."""

    def __init__(
        self,
        response: httpx2.Response,
        request: HttpRequest,
        timeouts: Timeouts,
        began: float,
        limits: Limits,
    ) -> None:
        self.status = response.status_code
        self.headers: Mapping[str, str] = dict(response.headers.items())
        self._response = response
        self._request = request
        self._timeouts = timeouts
        self._began = began
        self._limits = limits
        self._closing: asyncio.Task[None] | None = None

    async def read(self) -> bytes:
        """Read the whole body; `DecodeError` if it is larger than the limit."""
        blocks = Bounded(self._unpacked(), self._request, self._limits.body)
        deadline, phase = next_deadline(self._timeouts, "request", self._began, self._began)
        error: SDKError
        try:
            async with asyncio.timeout_at(deadline):
                return b"".join([block async for block in blocks])
        except SDKError:  # before TimeoutError, which it may be
            raise
        except TimeoutError:
            error = timeout_error(phase, self._request, self._timeouts)
        except Exception as failure:  # noqa: BLE001 -- all are translated
            error = self._body_error(NetworkError, failure)
        raise error

    def chunks(self) -> AsyncIterator[bytes]:
        """Yield the chunks of the body, as they arrive."""
        chunks = self._chunks()
        if is_one_value(self.headers):
            return Bounded(chunks, self._request, self._limits.body)
        return chunks

    async def _chunks(self) -> AsyncIterator[bytes]:
        source = self._unpacked()
        now = asyncio.get_running_loop().time
        while True:
            deadline, phase = next_deadline(self._timeouts, "stream_read", self._began, now())
            try:
                async with asyncio.timeout_at(deadline):
                    chunk = await anext(source, None)
            except SDKError:  # before TimeoutError, which it may be
                raise
            except TimeoutError:
                error: SDKError = timeout_error(phase, self._request, self._timeouts)
                break
            except Exception as failure:  # noqa: BLE001 -- all are translated
                error = self._body_error(StreamError, failure)
                break
            if chunk is None:
                return
            yield chunk
        raise error

    def abort(self) -> None:
        """Close the connection; a task that is reading from it gets an error."""
        if self._closing is None:
            self._closing = asyncio.ensure_future(self._response.aclose())

    async def _unpacked(self) -> AsyncIterator[bytes]:
        if self._response.is_stream_consumed:  # a mock client may return responses already read
            yield self._response.content
            return
        chunks = self._response.aiter_raw()
        inflater = inflater_for(self.headers, self._limits)
        async for chunk in chunks if inflater is None else inflate(chunks, inflater):
            if chunk:
                yield chunk

    def _body_error(
        self, kind: type[NetworkError | StreamError], failure: Exception
    ) -> NetworkError | StreamError:
        text = f"the response from {host_of(self._request)} is incomplete: it ended too early"
        return kind(text, cause=connection_error(failure))


def _send_error(
    failure: Exception, request: HttpRequest, timeouts: Timeouts, proxy: str | None
) -> SDKError:
    import httpx2

    host = host_of(request)
    if host == NO_HOST:  # httpx2 looks for the address of some of them
        failure = httpx2.InvalidURL(host)
    match failure:
        case httpx2.ConnectTimeout() | httpx2.PoolTimeout():
            return timeout_error("connect", request, timeouts)
        case httpx2.ConnectError():
            return _connect_error(failure, host, proxy)
        case httpx2.InvalidURL() | httpx2.UnsupportedProtocol():
            return ConfigurationError(
                f"The request URL is invalid (host: {host}). Use http:// or https:// and a host."
            )
        case httpx2.ProxyError():
            name = "The proxy" if proxy is None else f"The proxy {proxy}"
            text = f"{name} refused a connection to {host}: {failure}"
            retryable = str(failure).startswith("5")  # the text starts with the status code
            return NetworkError(text, retryable=retryable, phase="connect")
        case httpx2.LocalProtocolError() | ValueError():
            return ConfigurationError(
                f"The request to {host} has an invalid header. "
                "Check API keys and header values for line breaks."
            )
        case httpx2.RemoteProtocolError():
            text = f"{host} closed the connection, or its response is not valid HTTP."
            return NetworkError(text, cause=connection_error(failure))
    return NetworkError(f"The connection to {host} was lost before a response came.")


def _connect_error(failure: httpx2.ConnectError, host: str, proxy: str | None) -> NetworkError:
    # Only the text distinguishes TLS errors from others. It does not contain the URL.
    if "SSL" in str(failure):
        way = "" if proxy is None else f" through the proxy {proxy}"
        text = f"The TLS handshake with {host}{way} failed: {failure}"
        return NetworkError(text, retryable=False, phase="connect")
    peer = host if proxy is None else f"the proxy {proxy}"
    is_unknown = isinstance(system_error(failure), socket.gaierror)
    problem = "find the address of" if is_unknown else "connect to"
    return NetworkError(f"Cannot {problem} {peer}: {failure}", phase="connect")
