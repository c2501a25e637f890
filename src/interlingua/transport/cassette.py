"""
Recording and replaying HTTP: the cassette file, and the two transports that use it.

The file is JSON, formatted so that people can read and diff it:

    {"format": "interlingua cassette 1", "exchanges": [
     {"request": {"method", "url", "headers", "json" | "text" | "base64"},
      "reply": {"after", "status", "headers",
                "chunks": [{"after", "json" | "text" | "base64"}, ...]},
      "error": {"type", "message", "retryable", "phase"}},
     ...
    ]}

`after` is in seconds: for a reply since the request was sent, for a chunk since the headers or the
chunk before it. `error` is present if the exchange failed: before the headers if there is no
`reply`, otherwise after the chunks.
"""

from __future__ import annotations

import asyncio
import base64
import json
import re
from collections.abc import AsyncIterator, Collection, Iterable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from io import RawIOBase
from os import PathLike
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypeAlias

import msgspec
from msgspec.structs import replace

from interlingua.spec import errors
from interlingua.spec.content import Json, UncheckedJson
from interlingua.spec.contracts import HttpReply, HttpRequest, Transport
from interlingua.spec.errors import (
    ConfigurationError,
    DecodeError,
    SDKError,
    StreamError,
)
from interlingua.transport.bodies import read_whole, with_whole_body
from interlingua.transport.canned import CannedReply, Piece, open_reply
from interlingua.wire.json_text import dumps, loads
from interlingua.wire.secrets import Redactor, redact_headers, redact_url, target_of

FORMAT = "interlingua cassette 1"
_HEAD = f'{{"format": {json.dumps(FORMAT)}, "exchanges": [\n'
_TAIL = "\n]}\n"


_Seconds: TypeAlias = Annotated[float, msgspec.Meta(ge=0, le=86_400)]


class _Data(msgspec.Struct):
    json: Any = None
    text: str = ""
    base64: str = ""


class _Request(_Data, kw_only=True):
    method: str
    url: str
    headers: dict[str, str] = {}


class _Chunk(_Data, kw_only=True):
    after: _Seconds = 0.0


class _Reply(msgspec.Struct, kw_only=True):
    status: int
    headers: dict[str, str]
    chunks: list[_Chunk]
    after: _Seconds = 0.0


class _Error(msgspec.Struct):
    type: str
    message: str = ""
    retryable: bool | None = None
    phase: str | None = None


class _Exchange(msgspec.Struct, kw_only=True):
    request: _Request
    reply: _Reply | None = None
    error: _Error | None = None


class _Tape(msgspec.Struct, kw_only=True):
    exchanges: list[_Exchange]


def append_exchange(path: Path, exchange: dict[str, Json], *, is_first: bool) -> None:
    """Append an exchange; the file is valid JSON after each call."""
    text = json.dumps(exchange, indent=1, ensure_ascii=False)
    try:
        if is_first:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(_HEAD + text + _TAIL, encoding="utf-8")
            return
        with path.open("r+b", buffering=0) as file:
            end = file.seek(-len(_TAIL), 2)
            try:
                _write_all(file, f",\n{text}{_TAIL}".encode())
            except OSError:  # the disk is full: the exchanges before this one stay readable
                file.seek(end)
                _write_all(file, _TAIL.encode())
                file.truncate()
                raise
    except OSError as error:
        raise ConfigurationError(f"Cannot write the cassette {str(path)!r}: {error}") from error


def _write_all(file: RawIOBase, data: bytes) -> None:
    while data:
        data = data[file.write(data) or 0 :]


def load_exchanges(path: Path) -> list[dict[str, Any]]:
    """Read the exchanges of a cassette; `ConfigurationError` if it is missing or invalid."""
    try:
        tape = loads(path.read_bytes())
    except FileNotFoundError:
        raise ConfigurationError(
            f"The cassette {str(path)!r} does not exist. Record it first."
        ) from None
    except OSError as error:
        raise ConfigurationError(f"Cannot read the cassette {str(path)!r}: {error}") from error
    except DecodeError as error:
        raise ConfigurationError(f"{str(path)!r} is not a cassette: {error}") from None
    if not isinstance(tape, dict) or tape.get("format") != FORMAT:
        raise ConfigurationError(f"{str(path)!r} is not a cassette with the format {FORMAT!r}.")
    try:
        for exchange in msgspec.convert(tape, _Tape).exchanges:
            for item in (exchange.request, *(exchange.reply.chunks if exchange.reply else ())):
                base64.b64decode(item.base64)
    except ValueError as error:  # from msgspec or base64
        raise ConfigurationError(f"The cassette {str(path)!r} is invalid: {error}") from None
    return list(tape["exchanges"])


def encode_data(data: bytes) -> dict[str, Json]:
    """Write bytes in the most readable form from which they can be restored exactly."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}
    if text[:1] in {"{", "["}:
        try:
            value = loads(text)
        except DecodeError:
            return {"text": text}
        if dumps(value) == data:
            return {"json": value}
    return {"text": text}


def decode_data(item: Mapping[str, UncheckedJson]) -> bytes:
    """Read the bytes that `encode_data` stored."""
    if "json" in item:
        return dumps(item["json"])
    if "base64" in item:
        return base64.b64decode(item["base64"])
    return str(item.get("text", "")).encode(errors="replace")  # half a character is damage


def encode_error(error: SDKError) -> dict[str, Json]:
    """A transport error as JSON."""
    fields: dict[str, Json] = {
        "type": type(error).__name__,
        "message": error.message,
        "retryable": error.retryable,
    }
    if getattr(error, "phase", None) is not None:
        fields["phase"] = error.phase  # type: ignore[attr-defined] # checked above
    return fields


def decode_error(fields: dict[str, Any]) -> SDKError:
    """Read the error that `encode_error` stored; an unknown type becomes a `StreamError`."""
    kind = getattr(errors, str(fields.get("type")), None)
    if not (isinstance(kind, type) and issubclass(kind, SDKError)):
        kind = StreamError
    has_phase = hasattr(kind, "phase") and fields.get("phase") is not None
    phase = {"phase": fields["phase"]} if has_phase else {}
    return kind(fields.get("message", ""), retryable=fields.get("retryable"), **phase)


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
            raise ConfigurationError(
                f"{str(path)!r} is a folder. Give the path of a file to write."
            )
        self._redactor = Redactor(secrets)
        self.count: int = 0
        """The number of exchanges that were written."""

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
                error = StreamError("The recording ends here: the reader was stopped.")
        if error is not None:
            exchange["error"] = encode_error(error)
        append_exchange(self._path, exchange, is_first=self.count == 0)
        self.count += 1

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
        """Read the whole body."""
        try:
            body = await self._reply.read()
        except SDKError as failure:
            self.error = failure
            raise
        self._keep(body)
        self._has_ended = True
        return body

    async def chunks(self) -> AsyncIterator[bytes]:
        """Yield the chunks of the body, as they arrive."""
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


# An id that this library generated: words and a ULID.
_is_generated_id = re.compile(r"(?:[a-z]+_)+[0-7][0-9A-HJKMNP-TV-Z]{25}").fullmatch
_find_boundary = re.compile(r'multipart/[^;]*+;.*?boundary="?([^";,\s]++)').match
_MAX_DIFFERENCES = 5  # in a message
_MAX_VALUE = 60  # characters of a value in a message


class _RequestKey(NamedTuple):
    """The properties of a request that must match the recording."""

    method: str
    target: str
    body: Json


class ReplayTransport:
    """
    Answers each request with the recorded exchange of the same method, path, query and body.

    JSON bodies are compared as values, without the top-level fields in `ignore`. Hosts, API keys
    and ids that this library generated are not compared, nor are the boundaries of forms. Equal
    requests get their replies in recorded order; with `repeat`, the last of them again and again.
    `speed` 1 keeps the recorded pauses, 2 halves them, 0 (the default) skips them.
    """

    def __init__(
        self,
        path: str | PathLike[str],
        *,
        speed: float = 0.0,
        ignore: Collection[str] = (),
        secrets: Collection[str] = (),
        repeat: bool = False,
    ) -> None:
        self._path = Path(path)
        self._speed = speed
        self._repeat = repeat
        self._ignore = frozenset(ignore)
        self._secrets = secrets
        self._exchanges = load_exchanges(self._path)
        self._keys = [self._recorded_key(exchange) for exchange in self._exchanges]
        self._used: set[int] = set()

    @property
    def unused(self) -> int:
        """The number of recorded exchanges that were not replayed."""
        return len(self._exchanges) - len(self._used)

    def send(self, request: HttpRequest) -> AbstractAsyncContextManager[HttpReply]:
        """Replay the exchange that was recorded for this request."""
        if not isinstance(request.body, bytes):
            return self._send_streamed(request)
        redactor = Redactor(self._secrets)
        redactor.learn(request)
        target = target_of(redactor.redact_text(redact_url(request.url)))
        body = self._body(redactor.redact(request.body), request.headers)
        key = _RequestKey(request.method, target, body)
        index = self._find(key)
        if index is None:
            raise ConfigurationError(self._explain_miss(key))
        self._used.add(index)
        return open_reply(self._answer(self._exchanges[index]))

    async def close(self) -> None:
        """Do nothing: there is nothing to release."""

    @asynccontextmanager
    async def _send_streamed(self, request: HttpRequest) -> AsyncIterator[HttpReply]:
        async with self.send(await with_whole_body(request)) as reply:
            yield reply

    def _find(self, key: _RequestKey) -> int | None:
        """The exchange that answers a request; None if there is none, or none is left."""
        equal = [index for index, recorded in enumerate(self._keys) if recorded == key]
        last = equal[-1] if equal and self._repeat else None
        return next((index for index in equal if index not in self._used), last)

    def _recorded_key(self, exchange: dict[str, Any]) -> _RequestKey:
        request = exchange["request"]
        target = target_of(request["url"])
        body = self._body(decode_data(request), request.get("headers", {}))
        return _RequestKey(request["method"], target, body)

    def _body(self, data: bytes, headers: Mapping[str, str]) -> Json:
        try:
            value = loads(data)
        except DecodeError:
            return encode_data(_without_boundary(data, headers))
        if isinstance(value, dict) and self._ignore:
            value = {name: item for name, item in value.items() if name not in self._ignore}
        return number_ids(value, {})

    def _answer(self, exchange: dict[str, Any]) -> CannedReply | Exception:
        error = exchange.get("error")
        failure = None if error is None else decode_error(error)
        reply = exchange.get("reply")
        if reply is None:
            return failure or ConfigurationError(
                f"{str(self._path)!r} has an exchange without a reply. Record it again."
            )
        body: list[Piece] = []
        for chunk in reply["chunks"]:
            if self._speed > 0 and chunk.get("after"):
                body.append(float(chunk["after"]) / self._speed)
            body.append(decode_data(chunk))
        if failure is not None:
            body.append(failure)
        pause = float(reply.get("after", 0)) / self._speed if self._speed > 0 else 0.0
        return CannedReply(
            status=reply["status"], headers=reply["headers"], body=tuple(body), after=pause
        )

    def _explain_miss(self, key: _RequestKey) -> str:
        miss = f"the cassette {str(self._path)!r} has no reply for {key.method} {key.target}"
        if key in self._keys:
            count = self._keys.count(key)
            return f"{miss}: it was recorded {count} times and requested {count + 1} times"
        candidates = [recorded for recorded in self._keys if recorded[:2] == key[:2]]
        if not candidates:
            known = sorted({f"{recorded.method} {recorded.target}" for recorded in self._keys})
            return f"{miss}; it has replies for: {', '.join(known) or 'nothing'}"
        nearest = min((list(differences(one.body, key.body)) for one in candidates), key=len)
        lines = "\n".join(f"  {line}" for line in nearest[:_MAX_DIFFERENCES])
        rest = len(nearest) - _MAX_DIFFERENCES
        more = f"\n  and {rest} more" if rest > 0 else ""
        return f"{miss}; the most similar recorded request differs at\n{lines}{more}"


def _without_boundary(data: bytes, headers: Mapping[str, str]) -> bytes:
    """The body with a fixed text for the boundary of a form, which clients choose by chance."""
    kind = next((value for name, value in headers.items() if name.lower() == "content-type"), "")
    match = _find_boundary(kind)
    return data if match is None else data.replace(match[1].encode(), b"boundary")


def number_ids(value: Json, known: dict[str, str]) -> Json:
    """The value with generated ids, which differ in each run, replaced by `id 1`, `id 2`, …"""
    if isinstance(value, str):
        if _is_generated_id(value) is None:
            return value
        return known.setdefault(value, f"id {len(known) + 1}")
    if isinstance(value, dict):
        return {name: number_ids(item, known) for name, item in value.items()}
    return [number_ids(item, known) for item in value] if isinstance(value, list) else value


def differences(recorded: Json, actual: Json, path: str = "body") -> Iterator[str]:
    """The differences between two JSON values, one line each."""
    if isinstance(recorded, dict) and isinstance(actual, dict):
        for name in [*recorded, *(name for name in actual if name not in recorded)]:
            inner = f"{path}.{name}"
            if name not in actual:
                yield f"{inner}: recorded {_show(recorded[name])}, now absent"
            elif name not in recorded:
                yield f"{inner}: not recorded, now {_show(actual[name])}"
            else:
                yield from differences(recorded[name], actual[name], inner)
    elif isinstance(recorded, list) and isinstance(actual, list):
        if len(recorded) != len(actual):
            yield f"{path}: recorded {len(recorded)} items, now {len(actual)}"
        for index, (one, other) in enumerate(zip(recorded, actual, strict=False)):
            yield from differences(one, other, f"{path}[{index}]")
    elif recorded != actual:
        yield f"{path}: recorded {_show(recorded)}, now {_show(actual)}"


def _show(value: Json) -> str:
    text = repr(value)
    return text if len(text) <= _MAX_VALUE else f"{text[:_MAX_VALUE]}…"
