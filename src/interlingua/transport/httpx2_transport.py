"""A transport over httpx2 (extra `httpx`): HTTP/2, SOCKS proxies, or your own httpx2 client."""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import AsyncIterable, AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from http.cookiejar import DefaultCookiePolicy
from typing import TYPE_CHECKING, Any
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
    Bounded,
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
    belongs to, and `close` leaves it open. Redirects are never followed. Cookies are not stored,
    except by your own client.
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
        self._given = client
        self._is_loaded = False
        self._clients: PerLoop[_Clients] = PerLoop(
            self._open,
            lambda clients: clients.close(),
            # httpx2 can close sockets only in their loop; the garbage collector closes them.
            lambda _: None,
        )

    def send(self, request: HttpRequest) -> AbstractAsyncContextManager[HttpReply]:
        """Send the request; the connection stays open while the `async with` block runs."""
        return self._exchange(self._given or self._client_for(request), request)

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

    def _client_for(self, request: HttpRequest) -> httpx2.AsyncClient:
        return self._clients.get(asyncio.get_running_loop()).find(request.url)

    def _open(self) -> _Clients:
        return _Clients(trust_env=self._trust_env, http2=self._http2)

    @asynccontextmanager
    async def _exchange(
        self, client: httpx2.AsyncClient, request: HttpRequest
    ) -> AsyncIterator[HttpReply]:
        timeouts = request.timeouts or self.timeouts
        began = asyncio.get_running_loop().time()
        response = await _head(client, request, timeouts, began)
        reply = _Reply(response, request, timeouts, began, request.limits or self.limits)
        try:
            yield reply
        finally:
            await _close(response)


def _import_libraries() -> None:
    with suppress(ImportError):  # the first request says what is missing
        importlib.import_module("interlingua.transport.httpx2_backend")
        # httpcore2 waits through anyio, which imports the rest of itself in an event loop.
        anyio: Any = importlib.import_module("anyio")
        anyio.run(anyio.sleep, 0)


class _Clients:
    """The clients of one event loop: one for direct connections, and one for each proxy."""

    def __init__(self, *, trust_env: bool, http2: bool) -> None:
        self._trust_env = trust_env
        self._http2 = http2
        # httpx2's own proxy lookup is not used: it would send requests to loopback, and their
        # keys, through the proxy.
        proxies = Proxies((*HTTP, *SOCKS)) if trust_env else None
        self._proxies = proxies or None
        self._by_proxy: dict[str | None, httpx2.AsyncClient] = {}

    def find(self, url: str) -> httpx2.AsyncClient:
        """The client for this URL, with its proxy."""
        proxy = None if self._proxies is None else self._proxies.find(url)
        client = self._by_proxy.get(proxy)
        if client is None:
            client = self._by_proxy[proxy] = self._open(proxy)
        return client

    async def close(self) -> None:
        """Close every connection."""
        for client in self._by_proxy.values():
            await client.aclose()

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

        from interlingua.transport.httpx2_backend import Backend

        transport = httpx2.AsyncHTTPTransport(
            http2=self._http2,
            trust_env=self._trust_env,  # for SSL_CERT_FILE and SSL_CERT_DIR
            limits=httpx2.Limits(keepalive_expiry=60.0),
            proxy=proxy,
        )
        if not self._http2:
            # Our backend reads an early refusal of a large request; httpx2 has no public argument
            # for it. HTTP/2 has a stream for each response, and httpcore2 relies on reading it
            # record by record.
            transport._pool._network_backend = Backend()  # noqa: SLF001
        client = httpx2.AsyncClient(
            headers={"accept-encoding": accepted_codings(), "user-agent": USER_AGENT},
            transport=transport,
            trust_env=False,
        )
        client.cookies.jar.set_policy(DefaultCookiePolicy(allowed_domains=[]))
        return client


async def _head(
    client: httpx2.AsyncClient, request: HttpRequest, timeouts: Timeouts, began: float
) -> httpx2.Response:
    import httpx2

    deadline, phase = next_deadline(timeouts, "first_byte", began, began)
    error: SDKError
    try:
        async with asyncio.timeout_at(deadline):
            try:
                return await _send(client, request, timeouts)
            except httpx2.ReadError as failure:
                may_resend = request.may_resend and is_repeatable(request.body)
                if not _is_stale(failure) or not may_resend:
                    raise
            if request.on_resend is not None:
                request.on_resend()
            return await _send(client, request, timeouts)
    except SDKError:  # first: some of them are a TimeoutError or an OSError too
        raise
    except TimeoutError:
        error = timeout_error(phase, request, timeouts)
    except Exception as failure:  # noqa: BLE001 -- all are translated
        error = _send_error(failure, request, timeouts)
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
        headers=dict(sent_headers(request)),
        content=content or None,
        timeout=httpx2.Timeout(None, connect=timeouts.connect),
    )
    return await client.send(built, stream=True, auth=None, follow_redirects=False)


def _is_stale(failure: Exception) -> bool:
    from interlingua.transport.httpx2_backend import StaleConnectionError

    return isinstance(failure.__cause__, StaleConnectionError)


async def _close(response: httpx2.Response) -> None:
    """Release the connection; it is not reused if anything arrived after the response."""
    connection = http11_connection(response)
    if connection is not None and connection._h11_state.trailing_data[0]:  # noqa: SLF001
        connection._keepalive_expiry = -1.0  # noqa: SLF001
    await response.aclose()


def http11_connection(response: httpx2.Response) -> Any:
    """httpcore2's connection of a response; None for HTTP/2 and for clients without sockets."""
    source: Any = response.stream
    for name in ("_stream", "_httpcore_stream", "_stream", "_connection"):
        source = getattr(source, name, None)
    return source if hasattr(source, "_h11_state") else None


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
            self._closing = asyncio.ensure_future(_close(self._response))

    async def _unpacked(self) -> AsyncIterator[bytes]:
        if self._response.is_stream_consumed:  # a mock client may return responses already read
            yield self._response.content
            return
        # Not `aiter_raw`, which releases the connection before `_close` has checked it.
        chunks = self._response.stream
        assert isinstance(chunks, AsyncIterable)  # noqa: S101 -- always true for an async client
        inflater = inflater_for(self.headers, self._limits)
        async for chunk in chunks if inflater is None else inflate(chunks, inflater):
            if chunk:
                yield chunk

    def _body_error(
        self, kind: type[NetworkError | StreamError], failure: Exception
    ) -> NetworkError | StreamError:
        text = f"the response from {host_of(self._request)} is incomplete: it ended too early"
        return kind(text, cause=connection_error(failure))


def _send_error(failure: Exception, request: HttpRequest, timeouts: Timeouts) -> SDKError:
    import httpx2

    host = host_of(request)
    match failure:
        case httpx2.ConnectTimeout() | httpx2.PoolTimeout():
            return timeout_error("connect", request, timeouts)
        case httpx2.ConnectError():
            # Only the text distinguishes TLS errors from others. It does not contain the URL.
            if "SSL" in str(failure):
                text = f"The TLS handshake with {host} failed: {failure}"
                return NetworkError(text, retryable=False, phase="connect")
            return NetworkError(f"Cannot connect to {host}: {failure}", phase="connect")
        case httpx2.InvalidURL() | httpx2.UnsupportedProtocol():
            return ConfigurationError(
                f"The request URL is invalid (host: {host}). Use http:// or https:// and a host."
            )
        case httpx2.ProxyError():
            retryable = str(failure).startswith("5")  # the text starts with the status code
            return NetworkError(f"The proxy refused {host}: {failure}", retryable=retryable)
        case httpx2.LocalProtocolError() | ValueError():
            return ConfigurationError(
                f"The request to {host} has an invalid header. "
                "Check API keys and header values for line breaks."
            )
        case httpx2.RemoteProtocolError():
            text = f"{host} closed the connection, or its response is not valid HTTP."
            return NetworkError(text, cause=connection_error(failure))
    return NetworkError(f"The connection to {host} was lost before a response came.")
