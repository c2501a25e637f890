"""The second transport, over httpx2 (extra `httpx`): HTTP/2, SOCKS, or a client of your own."""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from http.cookiejar import DefaultCookiePolicy
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from interlingua.spec.contracts import HttpReply, HttpRequest, Timeouts
from interlingua.spec.errors import (
    ConfigurationError,
    NetworkError,
    SDKError,
    StreamError,
    TimeoutPhase,
)
from interlingua.transport.bodies import OutgoingBody, length_headers
from interlingua.transport.inflate import ACCEPTED, inflater_for
from interlingua.transport.per_loop import PerLoop
from interlingua.transport.proxies import HTTP, SOCKS, Proxies
from interlingua.transport.timeouts import (
    MAX_BODY,
    Bounded,
    head_clock,
    host_of,
    is_one_value,
    timeout_error,
    too_large,
)
from interlingua.version import USER_AGENT

if TYPE_CHECKING:
    import httpx2


class HttpxTransport:
    """
    Sends through httpx2, each event loop with a client of its own.

    Proxies come from the environment as in `AiohttpTransport`, SOCKS ones too.

    A `client` that is given is used as it is set up, in the one loop it belongs to, and is left
    open: it is its owner's. Redirects are not followed and cookies not kept in any case.
    """

    def __init__(
        self,
        *,
        client: httpx2.AsyncClient | None = None,
        timeouts: Timeouts | None = None,
        max_body: int = MAX_BODY,
        trust_env: bool = True,
        http2: bool = False,
    ) -> None:
        self._timeouts = timeouts or Timeouts()
        self._max_body = max_body
        self._trust_env = trust_env
        self._http2 = http2
        self._given = client
        self._clients: PerLoop[_Clients] = PerLoop(self._open, _close, _discard)

    def send(self, request: HttpRequest) -> AbstractAsyncContextManager[HttpReply]:
        """Send, and hold the connection while the block runs."""
        return self._exchange(self._given or self._client_for(request), request)

    async def close(self) -> None:
        """Release every connection; a client that was given stays open."""
        await self._clients.close()

    def _client_for(self, request: HttpRequest) -> httpx2.AsyncClient:
        return self._clients.get(asyncio.get_running_loop()).find(request.url)

    def _open(self) -> _Clients:
        return _Clients(trust_env=self._trust_env, http2=self._http2)

    @asynccontextmanager
    async def _exchange(
        self, client: httpx2.AsyncClient, request: HttpRequest
    ) -> AsyncIterator[HttpReply]:
        timeouts = request.timeouts or self._timeouts
        deadline = None
        if timeouts.request is not None:
            deadline = asyncio.get_running_loop().time() + timeouts.request
        response = await _head(client, request, timeouts)
        reply = _Reply(response, request, timeouts, deadline, self._max_body)
        try:
            yield reply
        finally:
            await response.aclose()


class _Clients:
    """The clients of one event loop: one that goes direct, and one for each proxy."""

    def __init__(self, *, trust_env: bool, http2: bool) -> None:
        self._trust_env = trust_env
        self._http2 = http2
        # The proxies are not left to httpx2: it would send keys for this machine through them.
        proxies = Proxies((*HTTP, *SOCKS)) if trust_env else None
        self._proxies = proxies or None
        self._by_proxy: dict[str | None, httpx2.AsyncClient] = {}

    def find(self, url: str) -> httpx2.AsyncClient:
        """The client through which this URL is reached."""
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
                    f"{name} is not installed; pip install 'interlingua[httpx]'"
                ) from None
        import httpx2

        from interlingua.transport.httpx2_backend import Backend

        transport = httpx2.AsyncHTTPTransport(
            http2=self._http2,
            trust_env=self._trust_env,  # for the certificates it names
            limits=httpx2.Limits(keepalive_expiry=60.0),
            proxy=proxy,
        )
        if not self._http2:
            # Without it a refusal that comes early is lost; httpx2 has no argument for it. HTTP/2
            # has a stream for each answer, and httpcore2 counts on reading it record by record.
            transport._pool._network_backend = Backend()  # noqa: SLF001
        client = httpx2.AsyncClient(
            headers={"accept-encoding": ACCEPTED, "user-agent": USER_AGENT},
            transport=transport,
            trust_env=False,
        )
        client.cookies.jar.set_policy(DefaultCookiePolicy(allowed_domains=[]))
        return client


async def _head(
    client: httpx2.AsyncClient, request: HttpRequest, timeouts: Timeouts
) -> httpx2.Response:
    import httpx2

    clock = httpx2.Timeout(None, connect=timeouts.connect)
    seconds, phase = head_clock(timeouts)
    body = request.body
    content = body if isinstance(body, bytes) else aiter(OutgoingBody(request))
    error: SDKError
    try:
        built = client.build_request(
            request.method,
            request.url,
            headers=length_headers(request),
            content=content or None,
            timeout=clock,
        )
        async with asyncio.timeout(seconds):
            return await client.send(built, stream=True, auth=None, follow_redirects=False)
    except SDKError:  # first: some of them are a TimeoutError or an OSError too
        raise
    except TimeoutError:
        error = timeout_error(phase, request, timeouts)
    except Exception as failure:  # noqa: BLE001 -- each is translated
        error = _send_error(failure, request, timeouts)
    raise error  # here, so that what it was made of is not its context


class _Reply:
    """A response of httpx2 as the adapters read it."""

    def __init__(
        self,
        response: httpx2.Response,
        request: HttpRequest,
        timeouts: Timeouts,
        deadline: float | None,
        limit: int,
    ) -> None:
        self.status = response.status_code
        self.headers: Mapping[str, str] = dict(response.headers.items())
        self._response = response
        self._request = request
        self._timeouts = timeouts
        self._deadline = deadline
        self._limit = limit
        self._closing: asyncio.Task[None] | None = None

    async def read(self) -> bytes:
        """The whole body; `DecodeError` if it is larger than the limit."""
        blocks: list[bytes] = []
        room = self._limit
        error: SDKError
        try:
            async with asyncio.timeout_at(self._deadline):
                async for block in self._unpacked():
                    blocks.append(block)
                    room -= len(block)
                    if room < 0:
                        break
        except SDKError:  # before TimeoutError, which it may be
            raise
        except TimeoutError:
            error = timeout_error("request", self._request, self._timeouts)
        except Exception:  # noqa: BLE001 -- each is translated
            error = self._body_error(NetworkError)
        else:
            if room >= 0:
                return b"".join(blocks)
            error = too_large(self._request, self._limit)
        raise error

    def chunks(self) -> AsyncIterator[bytes]:
        """The body as it comes."""
        chunks = self._chunks()
        if is_one_value(self.headers):
            return Bounded(chunks, self._request, self._limit)
        return chunks

    async def _chunks(self) -> AsyncIterator[bytes]:
        source = self._unpacked()
        phase: TimeoutPhase = "stream_read"
        while True:
            try:
                async with asyncio.timeout(self._timeouts.stream_read):
                    chunk = await anext(source, None)
            except SDKError:  # before TimeoutError, which it may be
                raise
            except TimeoutError:
                error: SDKError = timeout_error(phase, self._request, self._timeouts)
                break
            except Exception:  # noqa: BLE001 -- each is translated
                error = self._body_error(StreamError)
                break
            if chunk is None:
                return
            yield chunk
        raise error

    def abort(self) -> None:
        """Close the connection; who reads from it gets an error."""
        if self._closing is None:
            self._closing = asyncio.ensure_future(self._response.aclose())

    async def _unpacked(self) -> AsyncIterator[bytes]:
        if self._response.is_stream_consumed:  # a client for tests may give replies read before
            yield self._response.content
            return
        inflater = inflater_for(self.headers, self._limit)
        async for raw in self._response.aiter_raw():
            chunk = raw if inflater is None else inflater.feed(raw)
            if chunk:
                yield chunk
        if inflater is not None:
            inflater.finish()

    def _body_error(self, kind: type[NetworkError | StreamError]) -> SDKError:
        return kind(f"the reply of {host_of(self._request)} ended in the middle")


def _send_error(failure: Exception, request: HttpRequest, timeouts: Timeouts) -> SDKError:
    import httpx2

    host = host_of(request)
    match failure:
        case httpx2.ConnectTimeout() | httpx2.PoolTimeout():
            return timeout_error("connect", request, timeouts)
        case httpx2.ConnectError():
            # only the text tells TLS from the rest, and it holds no URL
            is_tls = "SSL" in str(failure)
            what = "no TLS with" if is_tls else "cannot connect to"
            return NetworkError(f"{what} {host}: {failure}", retryable=not is_tls)
        case httpx2.InvalidURL() | httpx2.UnsupportedProtocol():
            return ConfigurationError(f"not a URL that a request can go to (host: {host})")
        case httpx2.ProxyError():
            retryable = str(failure).startswith("5")  # the text begins with the status
            return NetworkError(f"the proxy refused {host}: {failure}", retryable=retryable)
        case httpx2.LocalProtocolError() | ValueError():
            return ConfigurationError(
                f"the request to {host} has a header that cannot be sent; "
                "look for line breaks in keys and header values"
            )
        case httpx2.RemoteProtocolError():
            return NetworkError(f"{host} closed the connection, or answered with no HTTP")
    return NetworkError(f"the connection to {host} was lost before it replied")


async def _close(clients: _Clients) -> None:
    await clients.close()


def _discard(clients: _Clients) -> None:
    """Its sockets go with it: httpx2 can close them only inside its loop."""
