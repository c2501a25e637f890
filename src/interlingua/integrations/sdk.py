"""
HTTP clients for the vendors' SDKs that reach any model, in the same process and without a server.

    http = sdk.http_client(client, {"gpt-*": "anthropic:claude-haiku-4-5"})
    openai_client = openai.AsyncOpenAI(api_key="any", http_client=http)

The transports run an ASGI application: its reply arrives piece by piece, a slow reader slows it
down, and it gets `http.disconnect` when a reply is closed, cancelled or lost before its end. They
are made for httpx2, or for httpx, which older SDKs use; neither is imported before it is asked for.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterable, AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, suppress
from functools import cache
from importlib import import_module
from typing import (
    TYPE_CHECKING,
    Any,
    Generic,
    Literal,
    NamedTuple,
    Self,
    TypeAlias,
    TypeVar,
    overload,
)
from weakref import WeakSet

from interlingua.api.run.clients import BlockingClient, find_client
from interlingua.client.client import Client
from interlingua.serving.asgi import App
from interlingua.serving.client_application import ClientApplication, Routes
from interlingua.serving.exchange import ModelRoute
from interlingua.spec.contracts import HttpReply, HttpRequest
from interlingua.spec.defaults import Timeouts
from interlingua.spec.errors import ConfigurationError, RequestTimeoutError, SDKError
from interlingua.sync.blocking_iterator import BlockingIterator
from interlingua.transport.asgi import AsgiTransport

if TYPE_CHECKING:
    import httpx2

__all__ = ["blocking_http_client", "blocking_transport", "http_client", "transport"]

Library: TypeAlias = Literal["httpx2", "httpx"]
"""An HTTP library of SDKs."""


@overload
def http_client(
    client: Client | BlockingClient | None = None,
    routes: Mapping[str, str | ModelRoute] | Routes | None = None,
    *,
    secret: bytes | None = None,
    library: Literal["httpx2"] = "httpx2",
) -> httpx2.AsyncClient: ...
@overload
def http_client(
    client: Client | BlockingClient | None = None,
    routes: Mapping[str, str | ModelRoute] | Routes | None = None,
    *,
    secret: bytes | None = None,
    library: Literal["httpx"],
) -> Any: ...
def http_client(
    client: Client | BlockingClient | None = None,
    routes: Mapping[str, str | ModelRoute] | Routes | None = None,
    *,
    secret: bytes | None = None,
    library: Library = "httpx2",
) -> Any:
    """
    Make an `AsyncClient` for an async SDK, whose requests the models of a client answer.

        http = sdk.http_client(client, {"gpt-*": "anthropic:claude-haiku-4-5"})
        openai_client = openai.AsyncOpenAI(api_key="any", http_client=http)

    `routes` says which model answers for a name or a pattern; without it, the SDK names a model as
    requests of the client do (`anthropic:claude-haiku-4-5`). `secret` authenticates the reasoning
    state that the SDK keeps: give one if histories outlive the process. Any key and any address are
    accepted: nothing is sent there. The client stays open when this one is closed; None is the
    default client.
    """
    application = ClientApplication(find_client(client), routes, secret=secret)
    return _import(library).AsyncClient(
        transport=transport(application, library=library), trust_env=False
    )


@overload
def blocking_http_client(
    client: Client | BlockingClient | None = None,
    routes: Mapping[str, str | ModelRoute] | Routes | None = None,
    *,
    secret: bytes | None = None,
    library: Literal["httpx2"] = "httpx2",
) -> httpx2.Client: ...
@overload
def blocking_http_client(
    client: Client | BlockingClient | None = None,
    routes: Mapping[str, str | ModelRoute] | Routes | None = None,
    *,
    secret: bytes | None = None,
    library: Literal["httpx"],
) -> Any: ...
def blocking_http_client(
    client: Client | BlockingClient | None = None,
    routes: Mapping[str, str | ModelRoute] | Routes | None = None,
    *,
    secret: bytes | None = None,
    library: Library = "httpx2",
) -> Any:
    """
    Make the same as `http_client` for a blocking SDK: a `Client` of the HTTP library.

        http = sdk.blocking_http_client(client, {"claude-*": "openai:gpt-5.2"})
        anthropic_client = anthropic.Anthropic(api_key="any", http_client=http)

    The work is done in the background thread of `interlingua.sync`.
    """
    application = ClientApplication(find_client(client), routes, secret=secret)
    return _import(library).Client(
        transport=blocking_transport(application, library=library), trust_env=False
    )


@overload
def transport(app: App, *, library: Literal["httpx2"] = "httpx2") -> httpx2.AsyncBaseTransport: ...
@overload
def transport(app: App, *, library: Literal["httpx"]) -> Any: ...
def transport(app: App, *, library: Library = "httpx2") -> Any:
    """
    Make an `AsyncBaseTransport` that runs an ASGI application in the current event loop.

    It may be used in several event loops. The read timeout of a request is kept; an exception in
    the application is a `RemoteProtocolError`.
    """
    return _classes(library).transport(app)


@overload
def blocking_transport(
    app: App, *, library: Literal["httpx2"] = "httpx2"
) -> httpx2.BaseTransport: ...
@overload
def blocking_transport(app: App, *, library: Literal["httpx"]) -> Any: ...
def blocking_transport(app: App, *, library: Library = "httpx2") -> Any:
    """
    Make a `BaseTransport` that runs an ASGI application in the thread of `interlingua.sync`.

    Any number of threads may use it. Errors are those of `transport`.
    """
    return _classes(library).blocking_transport(app)


# The classes: each is joined with the base class of its library, which checks for it.


class _Classes(NamedTuple):
    transport: type[_Transport]
    blocking_transport: type[_BlockingTransport]


@cache
def _classes(name: Library) -> _Classes:
    library = _import(name)
    body = type("Body", (_Body, library.AsyncByteStream), {})
    blocking_body = type("BlockingBody", (_BlockingBody, library.SyncByteStream), {})
    return _Classes(
        type(
            "Transport",
            (_Transport, library.AsyncBaseTransport),
            {"library": library, "body": body},
        ),
        type(
            "BlockingTransport",
            (_BlockingTransport, library.BaseTransport),
            {"library": library, "body": blocking_body},
        ),
    )


def _import(name: Library) -> Any:
    if name not in ("httpx2", "httpx"):
        raise ConfigurationError(f"`library` must be 'httpx2' or 'httpx', not {name!r}.")
    try:
        return import_module(name)
    except ImportError:
        raise ConfigurationError(f"{name} is not installed. Run `pip install {name}`.") from None


Body = TypeVar("Body", bound="_Body | _BlockingBody")


class _Exchanges(Generic[Body]):
    """What both transports have: the application, and the replies that are being read."""

    library: Any
    body: type[Body]

    def __init__(self, app: App) -> None:
        self._asgi = AsgiTransport(app)
        self._lock = threading.Lock()
        self._open: WeakSet[Body] = WeakSet()

    def response(self, request: Any, reply: HttpReply, body: Body) -> Any:
        """The response of the library, whose body is still to come."""
        with self._lock:
            self._open.add(body)
        return self.library.Response(
            reply.status, headers=dict(reply.headers), stream=body, request=request
        )

    def abandon(self) -> None:
        """End what is still being read, as a pool closes its connections."""
        with self._lock:
            bodies = list(self._open)
        for body in bodies:
            body.abandon()

    def explain(self, error: SDKError, request: Any) -> Exception:
        """The error of the library that stands for ours, so that SDKs know what it is."""
        if isinstance(error, RequestTimeoutError):
            seconds = _read_timeout(request)
            text = f"No byte of the answer came within {seconds:g} s (the read timeout)."
            return self.library.ReadTimeout(text, request=request)  # type: ignore[no-any-return]
        if isinstance(error, ConfigurationError):
            return error
        return self.library.RemoteProtocolError(str(error), request=request)  # type: ignore[no-any-return]


class _Transport(_Exchanges["_Body"]):
    async def handle_async_request(self, request: Any) -> Any:
        """Run the application; return when the status and the headers of its reply are there."""
        exchange = self._asgi.send(_outgoing(request, self.library))
        try:
            reply = await exchange.__aenter__()
        except SDKError as error:
            raise self.explain(error, request) from error
        return self.response(request, reply, self.body(self, request, exchange, reply))

    async def aclose(self) -> None:
        """End the replies that are being read."""
        self.abandon()


class _Body:
    """The body of a reply, as it comes; closed before its end, the application is told."""

    def __init__(
        self,
        exchanges: _Transport,
        request: Any,
        exchange: AbstractAsyncContextManager[HttpReply],
        reply: HttpReply,
    ) -> None:
        self._exchanges = exchanges
        self._request = request
        self._exchange = exchange
        self._reply = reply
        self._chunks = reply.chunks()
        self._loop = asyncio.get_running_loop()
        self._is_closed = False

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        try:
            return await anext(self._chunks)
        except SDKError as error:
            raise self._exchanges.explain(error, self._request) from error

    async def aclose(self) -> None:
        """Leave the exchange; a task that is reading gets an error."""
        if not self._is_closed:
            self._is_closed = True
            self._reply.abort()
            await self._exchange.__aexit__(None, None, None)

    def abandon(self) -> None:
        """Tell the application without waiting, from any thread."""
        if not self._is_closed:
            with suppress(RuntimeError):  # the loop is closed, and all its tasks have ended
                self._loop.call_soon_threadsafe(self._reply.abort)

    def __del__(self) -> None:
        self.abandon()


class _BlockingTransport(_Exchanges["_BlockingBody"]):
    def handle_request(self, request: Any) -> Any:
        """Run the application; return when the status and the headers of its reply are there."""
        pieces = BlockingIterator(self._run(_outgoing(request, self.library)))
        try:
            reply = next(pieces)
        except SDKError as error:
            raise self.explain(error, request) from error
        return self.response(request, reply, self.body(self, request, pieces))

    def close(self) -> None:
        """End the replies that are being read."""
        self.abandon()

    async def _run(self, request: HttpRequest) -> AsyncIterator[Any]:
        """Yield the reply, then its chunks."""
        async with self._asgi.send(request) as reply:
            yield reply
            async for chunk in reply.chunks():
                yield chunk


class _BlockingBody:
    """The same for a thread that waits."""

    def __init__(
        self, exchanges: _BlockingTransport, request: Any, pieces: BlockingIterator[Any]
    ) -> None:
        self._exchanges = exchanges
        self._request = request
        self._pieces = pieces

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> bytes:
        try:
            return next(self._pieces)  # type: ignore[no-any-return]
        except SDKError as error:
            raise self._exchanges.explain(error, self._request) from error

    def close(self) -> None:
        """Leave the exchange, and wait until the application has ended."""
        self._pieces.close()

    abandon = close


# Requests of the library as requests of ours.


def _outgoing(request: Any, library: Any) -> HttpRequest:
    """The request for the application."""
    body: bytes | AsyncIterable[bytes]
    try:
        body = request.content
    except library.RequestNotRead:
        stream = request.stream
        body = stream if hasattr(stream, "__aiter__") else _read_in_threads(stream)
    read = _read_timeout(request)
    return HttpRequest(
        method=request.method,
        url=str(request.url),
        headers=dict(request.headers),
        body=body,
        timeouts=Timeouts(
            connect=None, request=None, first_byte=read, stream_read=read, stream_content=None
        ),
    )


def _read_timeout(request: Any) -> float | None:
    """How many seconds the SDK waits for the next bytes; None for ever."""
    seconds: float | None = request.extensions.get("timeout", {}).get("read")
    return seconds


async def _read_in_threads(stream: Any) -> AsyncIterator[bytes]:
    """The pieces of a blocking body: its `next` may read a file, or wait."""
    pieces = iter(stream)
    while (piece := await asyncio.to_thread(next, pieces, None)) is not None:
        yield piece
