"""
The vendors' own clients as oracles: what each makes of an answer that we encoded.

One client for each dialect, over a transport in memory that says what it is told to. The
clients accept nearly anything, so the bodies are also validated against the vendor's types;
what those do not know is reported.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import httpx2
import pydantic

from interlingua.spec.content import Json
from interlingua.spec.contracts import Frame
from interlingua.wire.sse import encode_sse


class Call(NamedTuple):
    """A tool call; the input of a custom one is text."""

    id: str | None
    name: str
    arguments: Json


class Answer(NamedTuple):
    """What a client shows its user, in the vendor's words."""

    text: str
    refusal: str
    thinking: str
    calls: list[Call]
    finish: str | None
    usage: dict[str, int | None] | None


class Wire:
    """A transport that answers whatever it is asked with what was put on it."""

    def __init__(self) -> None:
        self._reply = httpx2.Response(500)
        self.client = httpx2.Client(transport=httpx2.MockTransport(lambda _: self._reply))

    def say(
        self, status: int, body: bytes, kind: str, headers: dict[str, str] | None = None
    ) -> None:
        self._reply = httpx2.Response(
            status, content=body, headers={**(headers or {}), "content-type": kind}
        )


class Oracle:
    """A vendor's client."""

    whole: type[Any]
    piece: Any

    def __init__(self) -> None:
        self.wire = Wire()
        self._whole = pydantic.TypeAdapter(self.whole)
        self._piece = pydantic.TypeAdapter(self.piece)

    def read(self, body: Json) -> Answer:
        """A whole answer."""
        self.wire.say(200, json.dumps(body).encode(), "application/json")
        return self.receive()

    def read_stream(self, frames: Iterable[Frame]) -> Answer:
        """A stream, as the vendor's helper adds it up."""
        self.wire.say(200, b"".join(map(encode_sse, frames)), "text/event-stream")
        return self.receive_stream()

    def read_error(self, status: int, headers: dict[str, str], body: Json) -> Exception:
        """The exception that is raised for an error."""
        self.wire.say(status, json.dumps(body).encode(), "application/json", headers)
        try:
            self.receive()
        except Exception as error:  # noqa: BLE001 -- which one it is is the question
            return error
        msg = "no error was raised"
        raise AssertionError(msg)

    def validate(self, body: Json) -> list[str]:
        """What the vendor's types mind in an answer."""
        return _validate(self._whole, body)

    def validate_stream(self, frames: Iterable[Frame]) -> list[str]:
        """What they mind in a stream."""
        found = (
            fault
            for frame in frames
            if frame.data != "[DONE]"
            for fault in _validate(self._piece, json.loads(frame.data))
        )
        return list(dict.fromkeys(found))

    def receive(self) -> Answer:
        raise NotImplementedError

    def receive_stream(self) -> Answer:
        raise NotImplementedError


_UNTYPED = (
    # Search models send the annotations of a message so; the SDK's type of a delta has none.
    ".choices.*.delta.annotations",
)


def _validate(adapter: pydantic.TypeAdapter[Any], value: Json) -> list[str]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # an enum's unknown word is only a warning
            found = _unknown(adapter.validate_python(value), "")
            return [f"unknown: {path}" for path in found if path not in _UNTYPED]
    except pydantic.ValidationError as error:
        return [f"{_path(found['loc'])}: {found['type']}" for found in error.errors()]
    except UserWarning as warning:
        return [str(warning)]


def _path(place: tuple[int | str, ...]) -> str:
    return ".".join("*" if isinstance(step, int) else step for step in place)


def _unknown(value: Any, path: str) -> Iterator[str]:
    if isinstance(value, pydantic.BaseModel):
        for name in value.model_extra or ():
            yield f"{path}.{name}"
        for name in value.model_fields_set & type(value).model_fields.keys():
            yield from _unknown(getattr(value, name), f"{path}.{name}")
    elif isinstance(value, list):
        for item in value:
            yield from _unknown(item, f"{path}.*")
