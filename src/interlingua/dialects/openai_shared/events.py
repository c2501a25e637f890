"""Streams of events of OpenAI's endpoints other than chat: speech, transcripts, images."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

from interlingua.spec.content import Json
from interlingua.spec.contracts import Frame
from interlingua.spec.errors import StreamError
from interlingua.wire.classify import make_error, read_fault
from interlingua.wire.json_text import dump_text, loads
from interlingua.wire.sse import SSEDecoder, encode_sse

T = TypeVar("T")

_DONE = "[DONE]"  # not of OpenAI's endpoints beside chat, but of servers that copy them


class EventItems(Generic[T]):
    """
    Decodes SSE into items: `read` gives the items of one event.

    An error event is raised. A stream that ends before the event `last` is a `StreamError`.
    """

    def __init__(self, read: Callable[[dict[str, Json]], Iterable[T]], last: str) -> None:
        self._frames = SSEDecoder()
        self._read = read
        self._last = last
        self._has_ended = False

    def feed(self, chunk: bytes) -> list[T]:
        """The items of the events that this chunk completes."""
        return [item for frame in self._frames.feed(chunk) for item in self.feed_frame(frame)]

    def finish(self) -> list[T]:
        """The items of the last event; `StreamError` if the stream is incomplete."""
        items = [item for frame in self._frames.finish() for item in self.feed_frame(frame)]
        if not self._has_ended:
            raise StreamError(f"The stream ended before its last event ({self._last}).")
        return items

    def feed_frame(self, frame: Frame) -> Iterable[T]:
        """The items of one event."""
        if not frame.data or frame.data == _DONE:
            return ()
        event = loads(frame.data)
        if not isinstance(event, dict):
            return ()
        # As in Responses, an error has the type `error` or is an object in the field `error`.
        if event.get("type", frame.event) == "error" or isinstance(event.get("error"), dict):
            raise make_error(None, {}, read_fault(event), raw=event)
        if event.get("type") == self._last:
            self._has_ended = True
        return self._read(event)


def encode_event(body: dict[str, Json]) -> bytes:
    """One event of a stream that a server sends."""
    return encode_sse(Frame(data=dump_text(body)))
