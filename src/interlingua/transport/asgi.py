"""A transport that runs an ASGI app in the process, with streaming, disconnects and timeouts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from contextlib import AbstractAsyncContextManager
from typing import Any, TypeAlias
from urllib.parse import unquote, urlsplit

from interlingua.spec.contracts import HttpReply, HttpRequest
from interlingua.spec.defaults import Limits, Timeouts
from interlingua.spec.errors import NetworkError, SDKError, StreamError
from interlingua.transport.bodies import OutgoingBody
from interlingua.transport.canned import MemoryReply
from interlingua.transport.timeouts import next_deadline, timeout_error

Event: TypeAlias = MutableMapping[str, Any]
App: TypeAlias = Callable[
    [Event, Callable[[], Awaitable[Event]], Callable[[Event], Awaitable[None]]], Awaitable[None]
]

GRACE = 0.05
"""Seconds an app has to react to `http.disconnect` before it is cancelled."""
_QUEUE_SIZE = 16  # chunks that wait for the reader; then the app's `send` waits


class AsgiTransport:
    """
    Sends requests to an ASGI app in the current event loop.

    As behind a server, the app receives the body, and `http.disconnect` after the client has
    disconnected. An exception in the app is a `NetworkError` or `StreamError` for the client,
    with the exception as its cause.
    """

    def __init__(
        self, app: App, *, timeouts: Timeouts | None = None, limits: Limits | None = None
    ) -> None:
        self._app = app
        self.timeouts: Timeouts = timeouts or Timeouts()
        self.limits: Limits = limits or Limits()
        self._tasks: set[asyncio.Task[None]] = set()

    def send(self, request: HttpRequest) -> AbstractAsyncContextManager[HttpReply]:
        """Run the app for this request; the `async with` block gets its reply."""
        return _Exchange(self._app, request, self, self._tasks)

    async def close(self) -> None:
        """Cancel the work that apps do after their replies."""
        for task in tuple(self._tasks):
            await _cancel(task)


class _Exchange(AbstractAsyncContextManager[HttpReply]):
    """
    A request and its reply.

    It is no async generator: a reader that leaves a stream lets the event loop close all
    generators at once, and one cannot be closed while another waits for it.
    """

    def __init__(
        self,
        app: App,
        request: HttpRequest,
        defaults: AsgiTransport,
        tasks: set[asyncio.Task[None]],
    ) -> None:
        self._app = app
        self._tasks = tasks
        self._request = request
        self._limit = (request.limits or defaults.limits).body
        self._timeouts = request.timeouts or defaults.timeouts

    async def __aenter__(self) -> HttpReply:
        self._run = run = _Run(self._request, self._timeouts)
        self._task = asyncio.ensure_future(run.drive(self._app))
        self._tasks.add(self._task)
        self._task.add_done_callback(self._tasks.discard)
        try:
            status, headers = await run.head()
        except BaseException:
            await self._end()
            raise
        return _Reply(run, status, headers, self._limit)

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is GeneratorExit:  # the event loop may be ending, so nothing is waited for
            self._leave()
        else:
            await self._end()

    def _leave(self) -> None:
        self._run.disconnect()
        if not self._run.is_complete:
            self._task.get_loop().call_later(GRACE, self._task.cancel)

    async def _end(self) -> None:
        self._run.disconnect()
        if not self._run.is_complete:  # after a complete reply the app may go on (background work)
            try:
                await asyncio.wait((self._task,), timeout=GRACE)
            finally:
                await _cancel(self._task)


class _Reply(MemoryReply):
    """The app's reply; `read` uses the request timeout, `chunks` the stream_read timeout."""

    def __init__(self, run: _Run, status: int, headers: dict[str, str], limit: int) -> None:
        super().__init__(status, headers, run.body(), run.disconnect, limit=limit)
        self._run = run

    async def read(self) -> bytes:
        """Read the whole body, within the request timeout."""
        self._run.is_stream = False
        return await super().read()


class _Run:
    """One request as the app sees it."""

    def __init__(self, request: HttpRequest, timeouts: Timeouts) -> None:
        self._disconnected = asyncio.Event()
        self.is_complete = False
        self.is_stream = True
        self._request = request
        self._timeouts = timeouts
        self._loop = asyncio.get_running_loop()
        self._began = self._loop.time()
        self._head: asyncio.Future[tuple[int, dict[str, str]]] = self._loop.create_future()
        self._pieces: AsyncIterator[bytes] | None = None
        self._is_sent = False
        # Chunks, then None at the end or the error that ended the body.
        self._queue: asyncio.Queue[bytes | SDKError | None] = asyncio.Queue(_QUEUE_SIZE)

    async def drive(self, app: App) -> None:
        """Run the app to its end."""
        failure: Exception | None = None
        try:
            await app(_scope(self._request), self._receive, self._send)
        except Exception as error:  # noqa: BLE001 -- the client gets it as a cause
            failure = error
        if self.is_complete or self._disconnected.is_set():
            return
        why = "returned" if failure is None else f"failed: {type(failure).__name__}"
        if not self._head.done():
            text = f"the ASGI app {why} before it sent a response"
            self._head.set_exception(NetworkError(text, cause=failure))
            return
        text = f"the ASGI app {why} before its response was complete"
        await self._queue.put(StreamError(text, cause=failure))

    async def head(self) -> tuple[int, dict[str, str]]:
        """Status and headers."""
        deadline, phase = next_deadline(self._timeouts, "first_byte", self._began, self._began)
        try:
            async with asyncio.timeout_at(deadline):
                return await self._head
        except SDKError:  # before TimeoutError, which it may be
            raise
        except TimeoutError:
            pass
        raise timeout_error(phase, self._request, self._timeouts)

    async def body(self) -> AsyncIterator[bytes]:
        """Yield the chunks of the body, as the app sends them."""
        while True:
            deadline, phase = next_deadline(
                self._timeouts,
                "stream_read" if self.is_stream else "request",
                self._began,
                self._loop.time(),
            )
            try:
                async with asyncio.timeout_at(deadline):
                    chunk = await self._queue.get()
            except TimeoutError:
                break
            if chunk is None:
                return
            if isinstance(chunk, SDKError):
                raise chunk
            yield chunk
        raise timeout_error(phase, self._request, self._timeouts)

    def disconnect(self) -> None:
        """Tell the app that the client has disconnected, and unblock an app that is sending."""
        self._disconnected.set()
        while not self._queue.empty():
            self._queue.get_nowait()

    async def _receive(self) -> Event:
        body = self._request.body
        if self._is_sent:
            await self._disconnected.wait()
            return {"type": "http.disconnect"}
        if isinstance(body, bytes):
            self._is_sent = True
            return {"type": "http.request", "body": body, "more_body": False}
        return await self._next_piece()

    async def _next_piece(self) -> Event:
        """The next piece of a streamed body; an error while reading it ends the exchange."""
        if self._pieces is None:
            self._pieces = aiter(OutgoingBody(self._request))
        try:
            piece = await anext(self._pieces, None)
        except SDKError as error:
            self._is_sent = True
            self._disconnected.set()
            if not self._head.done():
                self._head.set_exception(error)
            return {"type": "http.disconnect"}
        self._is_sent = piece is None
        return {"type": "http.request", "body": piece or b"", "more_body": piece is not None}

    async def _send(self, event: Event) -> None:
        if self._disconnected.is_set():
            raise OSError("The client has disconnected.")  # what ASGI 2.4 asks servers to raise
        if event["type"] == "http.response.start":
            headers: dict[str, str] = {}
            for raw_name, raw_value in event.get("headers", ()):
                name, value = raw_name.decode("latin-1").lower(), raw_value.decode("latin-1")
                headers[name] = f"{headers[name]}, {value}" if name in headers else value
            self._head.set_result((event["status"], headers))
        elif event["type"] == "http.response.body":
            if body := event.get("body", b""):
                await self._queue.put(bytes(body))
            if not event.get("more_body", False):
                self.is_complete = True
                await self._queue.put(None)


def _scope(request: HttpRequest) -> Event:
    parts = urlsplit(request.url)
    headers = {"host": parts.netloc, **request.headers}
    if request.body_size is not None:
        headers["content-length"] = str(request.body_size)
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.4"},
        "http_version": "1.1",
        "method": request.method,
        "scheme": parts.scheme,
        "path": unquote(parts.path),
        "raw_path": parts.path.encode("ascii"),
        "query_string": parts.query.encode("ascii"),
        "root_path": "",
        "headers": [
            (name.lower().encode("latin-1"), value.encode("latin-1"))
            for name, value in headers.items()
        ],
        "client": ("127.0.0.1", 0),
        "server": (parts.hostname, parts.port),
    }


async def _cancel(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.wait((task,))
