"""Calls written down as they are made."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from os import PathLike
from pathlib import Path

from msgspec.structs import replace

from interlingua.spec.content import Json
from interlingua.spec.contracts import HttpReply, HttpRequest, Transport
from interlingua.spec.errors import ConfigurationError, SDKError, StreamError
from interlingua.transport.bodies import read_whole
from interlingua.transport.cassette.tape import append_exchange, encode_data, encode_error
from interlingua.wire.secrets import Redactor, redact_headers, redact_url

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
        if self._path.is_dir():
            raise ConfigurationError(f"{str(path)!r} is a folder; name a file to record to")
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
        began = asyncio.get_running_loop().time()
        body = await read_whole(request)
        request = replace(request, body=body)
        try:
            async with self._inner.send(request) as reply:
                tap = _Tap(reply, began)
                yield tap
                tap.is_left = True
        except SDKError as failure:
            # an error that the reader raised itself, about what it read, is not the transport's
            if tap is None:
                error = failure
            else:
                tap.is_left = True
            raise
        finally:
            if tap is not None or error is not None:
                self._write(request, body, tap, error)

    def _write(
        self, request: HttpRequest, body: bytes, tap: _Tap | None, error: SDKError | None
    ) -> None:
        redact = self._redactor
        exchange: dict[str, Json] = {
            "request": {
                "method": request.method,
                "url": redact.redact_text(redact_url(request.url)),
                "headers": self._headers(request.headers),
                **encode_data(redact.redact(body)),
            }
        }
        if tap is not None:
            error = tap.error
            chunks = redact.redact_chunks([chunk for _, chunk in tap.taken])
            exchange["reply"] = {
                "after": round(tap.after, 4),
                "status": tap.status,
                "headers": self._headers(tap.headers),
                "chunks": [
                    {"after": round(after, 4), **encode_data(chunk)}
                    for (after, _), chunk in zip(tap.taken, chunks, strict=True)
                ],
            }
            if error is None and not tap.is_whole:
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

    def __init__(self, reply: HttpReply, began: float) -> None:
        self.status = reply.status
        self.headers = reply.headers
        self.taken: list[tuple[float, bytes]] = []
        self.error: SDKError | None = None
        self.is_left = False
        """Whether the reader left of itself: it has its last event, or an error it found."""
        self._has_ended = False
        self._is_aborted = False
        self._reply = reply
        self._last = asyncio.get_running_loop().time()
        self.after = self._last - began
        """Seconds until the head came."""

    @property
    def is_whole(self) -> bool:
        """Whether all was read that the reader wanted; not if it was stopped."""
        return self._has_ended or (self.is_left and not self._is_aborted)

    async def read(self) -> bytes:
        """The whole body."""
        try:
            body = await self._reply.read()
        except SDKError as failure:
            self.error = failure
            raise
        self._take(body)
        self._has_ended = True
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
        self._has_ended = True

    def abort(self) -> None:
        """Close the connection at once."""
        self._is_aborted = True
        self._reply.abort()

    def _take(self, chunk: bytes) -> None:
        now = asyncio.get_running_loop().time()
        self.taken.append((now - self._last, chunk))
        self._last = now
