"""Streams of events of OpenAI's endpoints other than chat: speech, transcripts, images."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from interlingua.spec.contracts import Frame
from interlingua.spec.errors import StreamError
from interlingua.spec.operations import ItemDecoder
from interlingua.wire.classify import make_error, read_fault
from interlingua.wire.json_text import dump_text, loads
from interlingua.wire.sse import SSEDecoder, encode_sse

_DONE = "[DONE]"


class EventItems:
    """
    Decodes SSE into items: `read` gives the items of one event.

    An error event is raised. A stream that ends before the event `last` is a `StreamError`.
    """

    def __init__(self, read: Callable[[dict[str, Any]], Iterable[Any]], last: str) -> None:
        self._frames = SSEDecoder()
        self._read = read
        self._last = last
        self._has_ended = False

    def feed(self, chunk: bytes) -> list[Any]:
        """The items of the events that this chunk completes."""
        return [item for frame in self._frames.feed(chunk) for item in self.feed_frame(frame)]

    def finish(self) -> list[Any]:
        """The items of the last event; `StreamError` if the stream is incomplete."""
        items = [item for frame in self._frames.finish() for item in self.feed_frame(frame)]
        if not self._has_ended:
            raise StreamError(f"The stream ended before its last event ({self._last}).")
        return items

    def feed_frame(self, frame: Frame) -> Iterable[Any]:
        """The items of one event."""
        if not frame.data or frame.data == _DONE:
            return ()
        event = loads(frame.data)
        if not isinstance(event, dict):
            return ()
        if event.get("type", frame.event) == "error" or isinstance(event.get("error"), dict):
            raise make_error(None, {}, read_fault(event), raw=event)
        if event.get("type") == self._last:
            self._has_ended = True
        return self._read(event)


def encode_event(body: dict[str, Any]) -> bytes:
    """One event of a stream that a server sends."""
    return encode_sse(Frame(data=dump_text(body)))


def whole_items(decoder: ItemDecoder, body: bytes) -> list[Any]:
    """All items of a stream that was read as a whole."""
    return [*decoder.feed(body), *decoder.finish()]
