"""Calls written down as they are made."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from os import PathLike
from pathlib import Path

from interlingua.spec.content import Json
from interlingua.spec.contracts import HttpReply, HttpRequest, Transport
from interlingua.spec.errors import SDKError, StreamError
from interlingua.transport.cassette.redact import Redactor, redact_headers, redact_url
from interlingua.transport.cassette.tape import append_exchange, encode_data, encode_error

# How the bytes came over the network; a replay has only the body.
_OF_THE_WAY = frozenset(("content-encoding", "content-length", "transfer-encoding", "connection"))


class RecordingTransport:
    """
    Passes calls on, and writes each to a file once it has ended.

    The file is begun anew by the first call. Keys are left out: headers and parameters that hold
    them, what looks like one, and `secrets`, wherever they stand.
    """

    def __init__(
        self, inner: Transport, path: str | PathLike[str], *, secrets: Iterable[str] = ()
    ) -> None:
        self._inner = inner
        self._path = Path(path)
        self._redactor = Redactor(secrets)
        self._count = 0

    def send(self, request: HttpRequest) -> AbstractAsyncContextManager[HttpReply]:
        """Send through the inner transport."""
        self._redactor.learn(request)
        return self._exchange(request)

    async def close(self) -> None:
        """Close the inner transport."""
        await self._inner.close()

    @asynccontextmanager
    async def _exchange(self, request: HttpRequest) -> AsyncIterator[HttpReply]:
        tap: _Tap | None = None
        error: SDKError | None = None
        try:
            async with self._inner.send(request) as reply:
                tap = _Tap(reply)
                yield tap
        except SDKError as failure:
            # an error that the reader raised itself, about what it read, is not the transport's
            if tap is None:
                error = failure
            raise
        finally:
            if tap is not None or error is not None:
                self._write(request, tap, error)

    def _write(self, request: HttpRequest, tap: _Tap | None, error: SDKError | None) -> None:
        redact = self._redactor
        exchange: dict[str, Json] = {
            "request": {
                "method": request.method,
                "url": redact.redact_text(redact_url(request.url)),
                "headers": self._headers(request.headers),
                **encode_data(redact.redact(request.body)),
            }
        }
        if tap is not None:
            error = tap.error
            chunks = redact.redact_chunks([chunk for _, chunk in tap.taken])
            exchange["reply"] = {
                "status": tap.status,
                "headers": self._headers(tap.headers),
                "chunks": [
                    {"after": round(after, 4), **encode_data(chunk)}
                    for (after, _), chunk in zip(tap.taken, chunks, strict=True)
                ],
            }
            if not tap.has_ended and error is None:
                error = StreamError("the reader left here when this was recorded")
        if error is not None:
            exchange["error"] = encode_error(error)
        append_exchange(self._path, exchange, is_first=self._count == 0)
        self._count += 1

    def _headers(self, headers: Mapping[str, str]) -> dict[str, str]:
        return {
            name: self._redactor.redact_text(value)
            for name, value in redact_headers(headers).items()
            if name not in _OF_THE_WAY
        }


class _Tap:
    """A reply that remembers what was read from it."""

    def __init__(self, reply: HttpReply) -> None:
        self.status = reply.status
        self.headers = reply.headers
        self.taken: list[tuple[float, bytes]] = []
        self.error: SDKError | None = None
        self.has_ended = False
        self._reply = reply
        self._last = asyncio.get_running_loop().time()

    async def read(self) -> bytes:
        """The whole body."""
        try:
            body = await self._reply.read()
        except SDKError as failure:
            self.error = failure
            raise
        self._take(body)
        self.has_ended = True
        return body

    async def chunks(self) -> AsyncIterator[bytes]:
        """The body as it comes."""
        try:
            async for chunk in self._reply.chunks():
                self._take(chunk)
                yield chunk
        except SDKError as failure:
            self.error = failure
            raise
        self.has_ended = True

    def abort(self) -> None:
        """Close the connection at once."""
        self._reply.abort()

    def _take(self, chunk: bytes) -> None:
        now = asyncio.get_running_loop().time()
        self.taken.append((now - self._last, chunk))
        self._last = now
