"""
The event stream format of AWS: binary messages with checksums.

A message is its length, the length of its headers, a checksum of the two, the headers, the
payload, and a checksum of all. Numbers are big-endian. Bedrock streams answers in this form: with
`InvokeModel` each payload holds one event of the model's own format, with `ConverseStream` the name
of an event is a header and its payload is JSON.

Format: https://smithy.io/2.0/aws/amazon-eventstream.html
"""

from __future__ import annotations

import struct
from base64 import b64encode
from binascii import a2b_base64
from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import NamedTuple, TypeAlias
from zlib import crc32

from interlingua.spec.contracts import Frame
from interlingua.spec.defaults import Limits
from interlingua.spec.errors import ConfigurationError, DecodeError, ProviderError, StreamError
from interlingua.wire.classify import Fault, make_error
from interlingua.wire.framing import allow, too_many
from interlingua.wire.json_text import dump_text, dumps, loads

Value: TypeAlias = bool | int | bytes | str
"""The value of a header."""

_LIMITS = Limits()
_PRELUDE = 12
_OVERHEAD = 16  # the prelude and the last checksum
_MAX_HEADERS = 128 * 1024
_TRUE, _FALSE, _BYTES, _STRING, _UUID = 0, 1, 6, 7, 9
_INTEGERS = {2: ">b", 3: ">h", 4: ">i", 5: ">q", 8: ">q"}  # 8 is a time in milliseconds
_LONG = 5
_read_prelude = struct.Struct(">III").unpack_from
_read_length = struct.Struct(">H").unpack_from
_read_checksum = struct.Struct(">I").unpack_from


class Message(NamedTuple):
    """One message."""

    headers: Mapping[str, Value]
    payload: bytes


class MessageDecoder:
    """
    Splits bytes into messages.

    Chunk boundaries do not change the result. A damaged message is a `StreamError`.
    """

    def __init__(self, max_bytes: int = _LIMITS.event, max_messages: int = _LIMITS.events) -> None:
        self._limit = max_bytes
        self._max_messages = self._room = max_messages
        self._buffer = bytearray()
        self._length = 0  # of the current message; 0 before its prelude was read
        self._failure: StreamError | None = None

    def feed(self, chunk: bytes) -> list[Message]:
        """The messages that this chunk completes; messages before a damaged one come first."""
        if self._failure is not None:
            raise self._failure
        self._buffer += chunk
        messages: list[Message] = []
        try:
            self._read(messages)
        except StreamError as failure:
            self._failure = failure
            self._buffer.clear()
            if not messages:
                raise
        return messages

    def finish(self) -> None:
        """End of body: `StreamError` inside a message, or after a damaged one."""
        if self._failure is None and self._buffer:
            self._failure = StreamError("The stream ended inside a message.")
        if self._failure is not None:
            raise self._failure

    def _read(self, messages: list[Message]) -> None:
        start = 0
        buffer = self._buffer
        while True:
            if not self._length and len(buffer) - start >= _PRELUDE:
                self._length = self._read_length(start)
            if not self._length or len(buffer) - start < self._length:
                break
            self._room -= 1
            if self._room < 0:
                raise StreamError(too_many(self._max_messages), retryable=False)
            end = start + self._length
            messages.append(decode_message(bytes(buffer[start:end])))
            start, self._length = end, 0
        del buffer[:start]

    def _read_length(self, start: int) -> int:
        total, headers, checksum = _read_prelude(self._buffer, start)
        if checksum != crc32(self._buffer[start : start + 8]):
            raise StreamError("A message of the stream is damaged: wrong checksum of its lengths.")
        if headers > _MAX_HEADERS or total < headers + _OVERHEAD:
            raise StreamError("A message of the stream has impossible lengths.")
        if total > self._limit:
            raise StreamError(
                f"A message of the stream is larger than {self._limit} bytes. {allow('event')}",
                retryable=False,
            )
        return int(total)


def decode_message(data: bytes) -> Message:
    """The message in these bytes, whose prelude was checked."""
    (checksum,) = _read_checksum(data, len(data) - 4)
    if checksum != crc32(data[:-4]):
        raise StreamError("A message of the stream is damaged: wrong checksum.")
    end = _PRELUDE + int.from_bytes(data[4:8], "big")
    return Message(_decode_headers(data[_PRELUDE:end]), data[end:-4])


@lru_cache(maxsize=32)  # most messages of a stream have the same headers
def _decode_headers(data: bytes) -> Mapping[str, Value]:
    headers: dict[str, Value] = {}
    at = 0
    try:
        while at < len(data):
            name, at = _take(data, at + 1, data[at])
            value, at = _decode_value(data[at], data, at + 1)
            headers[name.decode()] = value
    except (IndexError, KeyError, ValueError, struct.error):
        raise StreamError("A message of the stream has headers that cannot be read.") from None
    return MappingProxyType(headers)


def _decode_value(kind: int, data: bytes, at: int) -> tuple[Value, int]:
    if kind in (_TRUE, _FALSE):
        return kind == _TRUE, at
    if kind in (_BYTES, _STRING):
        (length,) = _read_length(data, at)
        value, at = _take(data, at + 2, length)
        return (value.decode() if kind == _STRING else value), at
    if kind == _UUID:
        return _take(data, at, 16)
    form = _INTEGERS[kind]
    return struct.unpack_from(form, data, at)[0], at + struct.calcsize(form)


def _take(data: bytes, start: int, length: int) -> tuple[bytes, int]:
    end = start + length
    if end > len(data):
        raise IndexError
    return data[start:end], end


def encode_message(message: Message) -> bytes:
    """The bytes of a message."""
    headers = b"".join(_encode_header(name, value) for name, value in message.headers.items())
    if len(headers) > _MAX_HEADERS:
        raise ConfigurationError(f"A message may have {_MAX_HEADERS} bytes of headers.")
    lengths = struct.pack(">II", len(headers) + len(message.payload) + _OVERHEAD, len(headers))
    data = b"".join((lengths, struct.pack(">I", crc32(lengths)), headers, message.payload))
    return data + struct.pack(">I", crc32(data))


def _encode_header(name: str, value: Value) -> bytes:
    coded = name.encode()
    if not 0 < len(coded) < 256:
        raise ConfigurationError("The name of a header must have 1 to 255 bytes.")
    start = bytes((len(coded),)) + coded
    if isinstance(value, bool):
        return start + bytes((_TRUE if value else _FALSE,))
    if isinstance(value, int):
        return start + struct.pack(">Bq", _LONG, value)
    kind, content = (_BYTES, value) if isinstance(value, bytes) else (_STRING, value.encode())
    if len(content) > 0x7FFF:
        raise ConfigurationError("The value of a header may have 32,767 bytes.")
    return start + struct.pack(">BH", kind, len(content)) + content


# Bedrock: `InvokeModelWithResponseStream` and `ConverseStream`.

_STATUSES = {
    "internalServerException": 500,
    "modelStreamErrorException": 424,
    "modelTimeoutException": 408,
    "serviceUnavailableException": 503,
    "throttlingException": 429,
    "validationException": 400,
}
"""The HTTP status that stands for an exception inside a stream."""


class ChunkDecoder:
    """
    The frames in the messages of `InvokeModelWithResponseStream`.

    Each message of the type `chunk` holds one event of the model, in Base64. An exception in the
    stream is a typed error.
    """

    def __init__(self, max_bytes: int = _LIMITS.event, max_events: int = _LIMITS.events) -> None:
        self._messages = MessageDecoder(max_bytes, max_events)
        self._failure: Exception | None = None

    def feed(self, chunk: bytes) -> list[Frame]:
        """The frames that this chunk completes; frames before an exception come first."""
        if self._failure is not None:
            raise self._failure
        frames: list[Frame] = []
        for message in self._messages.feed(chunk):
            try:
                frame = self._read(message)
            except (ProviderError, StreamError) as failure:
                self._failure = failure
                if not frames:
                    raise
                break
            if frame is not None:
                frames.append(frame)
        return frames

    def finish(self) -> list[Frame]:
        """End of body: an error inside a message, or after an exception."""
        if self._failure is not None:
            raise self._failure
        self._messages.finish()
        return []

    def _read(self, message: Message) -> Frame | None:
        return _read_chunk(message)


class EventDecoder(ChunkDecoder):
    """
    The frames in the messages of `ConverseStream`: the name of a frame is the type of its event.

    An exception that the API describes is a frame too, with its own name.
    """

    def _read(self, message: Message) -> Frame | None:
        headers = message.headers
        if headers.get(":message-type", "event") == "error":
            raise _stream_exception(headers, message.payload)
        name = headers.get(":exception-type") or headers.get(":event-type")
        if not isinstance(name, str):
            return None  # a message without a name says nothing
        try:
            return Frame(event=name, data=message.payload.decode())
        except UnicodeDecodeError:
            raise StreamError("An event of the stream is not UTF-8.") from None


def _read_chunk(message: Message) -> Frame | None:
    headers = message.headers
    kind = headers.get(":message-type", "event")
    if kind in ("exception", "error"):
        raise _stream_exception(headers, message.payload)
    if headers.get(":event-type") != "chunk":
        return None  # an event that is newer than this library
    try:
        body = loads(message.payload)
        return Frame(data=a2b_base64(body["bytes"], strict_mode=True).decode())
    except (DecodeError, KeyError, TypeError, ValueError):
        raise StreamError("A chunk of the stream holds no event.") from None


def _stream_exception(headers: Mapping[str, Value], payload: bytes) -> ProviderError:
    code = headers.get(":exception-type") or headers.get(":error-code")
    name = code if isinstance(code, str) else None
    return exception_error(name, payload, str(headers.get(":error-message", "")))


def exception_error(name: str | None, payload: bytes, message: str = "") -> ProviderError:
    """The error for an exception inside a stream, by its name; `payload` may have a message."""
    text = payload.decode("utf-8", "replace")
    try:
        body = loads(payload)
    except DecodeError:
        body = None
    found = body.get("message") or body.get("Message") if isinstance(body, dict) else None
    message = found if isinstance(found, str) else message
    fault = Fault(message or text or "an exception in the stream", None, name)
    return make_error(_STATUSES.get(name or "", 500), {}, fault, raw=body, text=text)


def encode_chunk(frame: Frame) -> bytes:
    """The message with this frame, as `InvokeModelWithResponseStream` sends it."""
    headers: dict[str, Value] = {
        ":event-type": "chunk",
        ":content-type": "application/json",
        ":message-type": "event",
    }
    content = b64encode(frame.data.encode("utf-8", "backslashreplace")).decode()
    return encode_message(Message(headers, dumps({"bytes": content})))


def encode_event(frame: Frame) -> bytes:
    """The message with this frame, as `ConverseStream` sends it; exceptions are known by name."""
    name = frame.event or ""
    is_exception = name.endswith("Exception")
    headers: dict[str, Value] = {
        ":exception-type" if is_exception else ":event-type": name,
        ":content-type": "application/json",
        ":message-type": "exception" if is_exception else "event",
    }
    return encode_message(Message(headers, frame.data.encode("utf-8", "backslashreplace")))


def encode_exception(kind: str, message: str) -> bytes:
    """The message with an exception, as Bedrock sends it."""
    headers: dict[str, Value] = {
        ":exception-type": kind,
        ":content-type": "application/json",
        ":message-type": "exception",
    }
    return encode_message(Message(headers, dump_text({"message": message}).encode()))
