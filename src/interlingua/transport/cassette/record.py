"""A transport that records its exchanges to a file."""

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

# These headers describe the transfer over the network; a replay has only the decoded body.
_TRANSFER_HEADERS = frozenset(
    ("content-encoding", "content-length", "transfer-encoding", "connection")
)


class RecordingTransport:
    """
    Sends requests through `inner`, and writes each exchange to a file when it has ended.

    The first exchange overwrites the file. Secrets are redacted: headers and query parameters
    that carry keys, text that looks like a key, and the given `secrets`, anywhere in the exchange.
    """

    def __init__(
        self, inner: Transport, path: str | PathLike[str], *, secrets: Iterable[str] = ()
    ) -> None:
        self._inner = inner
        self._path = Path(path)
        if self._path.is_dir():
            raise ConfigurationError(f"{str(path)!r} is a folder; give the path of a file to write")
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
        recorded: _RecordedReply | None = None
        error: SDKError | None = None
        began = asyncio.get_running_loop().time()
        body = await read_whole(request)
        request = replace(request, body=body)
        try:
            async with self._inner.send(request) as reply:
                recorded = _RecordedReply(reply, began)
                yield recorded
                recorded.reader_is_done = True
        except SDKError as failure:
            # With a reply, the error came from its reader (for example, the decoder) and not from
            # the transport, so it is not recorded.
            if recorded is None:
                error = failure
            else:
                recorded.reader_is_done = True
            raise
        finally:
            if recorded is not None or error is not None:
                self._write(request, body, recorded, error)

    def _write(
        self,
        request: HttpRequest,
        body: bytes,
        recorded: _RecordedReply | None,
        error: SDKError | None,
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
        if recorded is not None:
            error = recorded.error
            chunks = redact.redact_chunks([chunk for _, chunk in recorded.timed_chunks])
            exchange["reply"] = {
                "after": round(recorded.after, 4),
                "status": recorded.status,
                "headers": self._headers(recorded.headers),
                "chunks": [
                    {"after": round(after, 4), **encode_data(chunk)}
                    for (after, _), chunk in zip(recorded.timed_chunks, chunks, strict=True)
                ],
            }
            if error is None and not recorded.is_whole:
                error = StreamError("the recording ends here: the reader was stopped")
        if error is not None:
            exchange["error"] = encode_error(error)
        append_exchange(self._path, exchange, is_first=self._count == 0)
        self._count += 1

    def _headers(self, headers: Mapping[str, str]) -> dict[str, str]:
        return {
            name: self._redactor.redact_text(value)
            for name, value in redact_headers(headers).items()
            if name not in _TRANSFER_HEADERS
        }


class _RecordedReply:
    """A reply that keeps the chunks that are read from it."""

    def __init__(self, reply: HttpReply, began: float) -> None:
        self.status = reply.status
        self.headers = reply.headers
        self.timed_chunks: list[tuple[float, bytes]] = []
        """The chunks, each with the seconds since the one before."""
        self.error: SDKError | None = None
        self.reader_is_done = False
        """Whether the reader stopped by itself: after the last event, or with its own error."""
        self._has_ended = False
        self._is_aborted = False
        self._reply = reply
        self._last = asyncio.get_running_loop().time()
        self.after = self._last - began
        """Seconds until the headers arrived."""

    @property
    def is_whole(self) -> bool:
        """Whether the reader got all it wanted; false if it was cancelled."""
        return self._has_ended or (self.reader_is_done and not self._is_aborted)

    async def read(self) -> bytes:
        """The whole body."""
        try:
            body = await self._reply.read()
        except SDKError as failure:
            self.error = failure
            raise
        self._keep(body)
        self._has_ended = True
        return body

    async def chunks(self) -> AsyncIterator[bytes]:
        """The chunks of the body, as they arrive."""
        try:
            async for chunk in self._reply.chunks():
                self._keep(chunk)
                yield chunk
        except SDKError as failure:
            self.error = failure
            raise
        self._has_ended = True

    def abort(self) -> None:
        """Close the connection at once."""
        self._is_aborted = True
        self._reply.abort()

    def _keep(self, chunk: bytes) -> None:
        now = asyncio.get_running_loop().time()
        self.timed_chunks.append((now - self._last, chunk))
        self._last = now
