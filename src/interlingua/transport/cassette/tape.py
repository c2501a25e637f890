"""
The file of a recording: JSON, laid out to be read and compared by people.

    {"format": "interlingua cassette 1", "exchanges": [
     {"request": {"method", "url", "headers", "json" | "text" | "base64"},
      "reply": {"after", "status", "headers",
                "chunks": [{"after", "json" | "text" | "base64"}, ...]},
      "error": {"type", "message", "retryable", "phase"}},
     ...
    ]}

`after` is seconds: of a reply since the request was sent, of a chunk since the head or the chunk
before. `error` is there if the exchange failed: without a `reply` before its head, else after its
chunks.
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
    """Write one more exchange; the file is whole after each."""
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
    """The exchanges of a file; `ConfigurationError` if it is none, or not a good one."""
    try:
        tape = loads(path.read_bytes())
    except FileNotFoundError:
        raise ConfigurationError(f"there is no cassette {str(path)!r}; record it first") from None
    except OSError as error:
        raise ConfigurationError(f"cannot read the cassette {str(path)!r}: {error}") from error
    except DecodeError as error:
        raise ConfigurationError(f"{str(path)!r} is not a cassette: {error}") from None
    if not isinstance(tape, dict) or tape.get("format") != FORMAT:
        raise ConfigurationError(f"{str(path)!r} is not a cassette of the form {FORMAT!r}")
    try:
        for exchange in msgspec.convert(tape, _Tape).exchanges:
            for held in (exchange.request, *(exchange.reply.chunks if exchange.reply else ())):
                base64.b64decode(held.base64)
    except ValueError as error:  # msgspec's and base64's
        raise ConfigurationError(f"the cassette {str(path)!r} is broken: {error}") from None
    return list(tape["exchanges"])


def encode_data(data: bytes) -> dict[str, Json]:
    """Bytes in the most readable form that gives them back exactly."""
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


def decode_data(held: dict[str, Any]) -> bytes:
    """The bytes again."""
    if "json" in held:
        return dumps(held["json"])
    if "base64" in held:
        return base64.b64decode(held["base64"])
    return str(held.get("text", "")).encode()


def encode_error(error: SDKError) -> dict[str, Json]:
    """The error of a transport."""
    held: dict[str, Json] = {
        "type": type(error).__name__,
        "message": error.message,
        "retryable": error.retryable,
    }
    if getattr(error, "phase", None) is not None:
        held["phase"] = error.phase  # type: ignore[attr-defined] # only timeouts have one
    return held


def decode_error(held: dict[str, Any]) -> SDKError:
    """The error again; one of a kind that no longer exists is a `StreamError`."""
    kind = getattr(errors, str(held.get("type")), None)
    if not (isinstance(kind, type) and issubclass(kind, SDKError)):
        kind = StreamError
    fields = {"phase": held["phase"]} if "phase" in held else {}
    return kind(held.get("message", ""), retryable=held.get("retryable"), **fields)
