"""Cases: recorded or written exchanges the laws run over, and how to run a stream."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from interlingua.spec.content import Json
from interlingua.spec.contracts import Dialect, Frame, WireCall
from interlingua.spec.events import StreamEvent
from interlingua.spec.facts import Framing
from interlingua.spec.response import Response
from interlingua.streams.accumulate import StreamAccumulator
from interlingua.streams.grammar import Grammar
from interlingua.wire.json_array import JSONArrayDecoder
from interlingua.wire.sse import SSEDecoder


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """One exchange in a dialect: any of a request, a whole response, a stream."""

    name: str
    call: WireCall | None = None
    response: Json = None
    stream: bytes | None = None
    framing: Framing = "sse"
    status: int = 200
    headers: Mapping[str, str] = {}


def read_cases(folder: Path) -> Iterator[Case]:
    """
    One case for each folder below: `request.json`, `response.json`, `stream.sse`.

    `meta.json` may say `path`, `headers` and `stream` of the request, and the `status`.
    """
    for place in sorted(path for path in folder.iterdir() if path.is_dir()):
        meta = _read(place / "meta.json") or {}
        body = _read(place / "request.json")
        stream = place / "stream.sse"
        call = None
        if body is not None:
            call = WireCall(
                path=meta.get("path", ""),
                body=body,
                headers=meta.get("headers", {}),
                stream=meta.get("stream", bool(isinstance(body, dict) and body.get("stream"))),
            )
        yield Case(
            name=place.name,
            call=call,
            response=_read(place / "response.json"),
            stream=stream.read_bytes() if stream.exists() else None,
            status=meta.get("status", 200),
        )


def _read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


def cut_frames(chunks: Iterable[bytes], framing: Framing = "sse") -> list[Frame]:
    """The frames of a body."""
    decoder = SSEDecoder() if framing == "sse" else JSONArrayDecoder()
    frames = [frame for chunk in chunks for frame in decoder.feed(chunk)]
    return frames + decoder.finish()


def decode_frames(dialect: Dialect, frames: Iterable[Frame]) -> list[StreamEvent]:
    """The events of a stream that must be whole."""
    decoder = dialect.stream_decoder()
    events = [event for frame in frames for event in decoder.feed(frame)]
    return events + decoder.finish()


def encode_events(dialect: Dialect, events: Iterable[StreamEvent]) -> list[Frame]:
    """The frames that say these events."""
    encoder = dialect.stream_encoder(None)
    frames = [frame for event in events for frame in encoder.feed(event)]
    return frames + encoder.finish()


def fold(events: Iterable[StreamEvent]) -> Response:
    """The response that events add up to; they must obey the grammar."""
    grammar, accumulator = Grammar(), StreamAccumulator()
    for event in events:
        grammar.feed(event)
        accumulator.feed(event)
    grammar.finish()
    return accumulator.response()
