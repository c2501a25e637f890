"""
The cassette file: JSON, formatted so that people can read and diff it.

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

import base64
import json
from pathlib import Path
from typing import Any

import msgspec

from interlingua.spec import errors
from interlingua.spec.content import Json
from interlingua.spec.errors import ConfigurationError, DecodeError, SDKError, StreamError
from interlingua.wire.json_text import dumps, loads

FORMAT = "interlingua cassette 1"
_HEAD = f'{{"format": {json.dumps(FORMAT)}, "exchanges": [\n'
_TAIL = "\n]}\n"


class _Data(msgspec.Struct):
    json: Any = None
    text: str = ""
    base64: str = ""


class _Request(_Data, kw_only=True):
    method: str
    url: str
    headers: dict[str, str] = {}


class _Chunk(_Data, kw_only=True):
    after: float = 0.0


class _Reply(msgspec.Struct, kw_only=True):
    status: int
    headers: dict[str, str]
    chunks: list[_Chunk]
    after: float = 0.0


class _Exchange(msgspec.Struct, kw_only=True):
    request: _Request
    reply: _Reply | None = None
    error: dict[str, Any] | None = None


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
        with path.open("r+b") as file:
            file.seek(-len(_TAIL), 2)
            file.write(f",\n{text}{_TAIL}".encode())
    except OSError as error:
        raise ConfigurationError(f"cannot write the cassette {str(path)!r}: {error}") from error


def load_exchanges(path: Path) -> list[dict[str, Any]]:
    """The exchanges of a cassette; raises `ConfigurationError` if it is missing or invalid."""
    try:
        tape = loads(path.read_bytes())
    except FileNotFoundError:
        raise ConfigurationError(
            f"the cassette {str(path)!r} does not exist; record it first"
        ) from None
    except OSError as error:
        raise ConfigurationError(f"cannot read the cassette {str(path)!r}: {error}") from error
    except DecodeError as error:
        raise ConfigurationError(f"{str(path)!r} is not a cassette: {error}") from None
    if not isinstance(tape, dict) or tape.get("format") != FORMAT:
        raise ConfigurationError(f"{str(path)!r} is not a cassette with the format {FORMAT!r}")
    try:
        for exchange in msgspec.convert(tape, _Tape).exchanges:
            for item in (exchange.request, *(exchange.reply.chunks if exchange.reply else ())):
                base64.b64decode(item.base64)
    except ValueError as error:  # from msgspec or base64
        raise ConfigurationError(f"the cassette {str(path)!r} is invalid: {error}") from None
    return list(tape["exchanges"])


def encode_data(data: bytes) -> dict[str, Json]:
    """The bytes in the most readable form from which they can be restored exactly."""
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


def decode_data(item: dict[str, Any]) -> bytes:
    """The bytes that `encode_data` stored."""
    if "json" in item:
        return dumps(item["json"])
    if "base64" in item:
        return base64.b64decode(item["base64"])
    return str(item.get("text", "")).encode()


def encode_error(error: SDKError) -> dict[str, Json]:
    """A transport error as JSON."""
    fields: dict[str, Json] = {
        "type": type(error).__name__,
        "message": error.message,
        "retryable": error.retryable,
    }
    if getattr(error, "phase", None) is not None:
        fields["phase"] = error.phase  # type: ignore[attr-defined] # only timeouts have one
    return fields


def decode_error(fields: dict[str, Any]) -> SDKError:
    """The error that `encode_error` stored; an unknown type becomes a `StreamError`."""
    kind = getattr(errors, str(fields.get("type")), None)
    if not (isinstance(kind, type) and issubclass(kind, SDKError)):
        kind = StreamError
    phase = {"phase": fields["phase"]} if "phase" in fields else {}
    return kind(fields.get("message", ""), retryable=fields.get("retryable"), **phase)
