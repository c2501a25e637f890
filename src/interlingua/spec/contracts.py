"""
The contracts between the layers.

A dialect is a module with eight functions (see `Dialect`); an adapter answers requests;
a transport sends bytes.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, Literal, Protocol, TypeAlias

import msgspec

from interlingua.spec.content import Json
from interlingua.spec.errors import ProviderError
from interlingua.spec.events import StreamEvent
from interlingua.spec.request import Request
from interlingua.spec.response import Response, Warning

NewId: TypeAlias = Callable[[], str]
"""Makes ids for calls that come without one."""

DIALECT_NAMES = ("openai_responses", "openai_chat", "anthropic_messages", "gemini_generate")
"""The wire formats this library ships."""

StructuredOutput: TypeAlias = Literal["native", "tool", "prompt"]


class Frame(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One framed unit of a stream: of SSE, its `event:` name and its `data:` text."""

    data: str
    event: str | None = None
    id: str | None = None
    retry: int | None = None


class WireCall(msgspec.Struct, frozen=True, kw_only=True):
    """An HTTP call before it has an address and a key."""

    path: str = ""
    body: Json = None
    headers: Mapping[str, str] = {}
    stream: bool = False
    warnings: tuple[Warning, ...] = ()


class Profile(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, repr_omit_defaults=True
):
    """
    What a model or server accepts and wants.

    Every default is neutral: it clamps nothing, adds nothing, forces nothing. None means
    "no limit known".
    """

    context_window: int | None = None
    max_output_tokens: int | None = None
    image_types: tuple[str, ...] | None = None
    audio_types: tuple[str, ...] | None = None
    document_types: tuple[str, ...] | None = None
    tools: bool = True
    tool_choice_modes: tuple[str, ...] | None = None
    parallel_tool_calls: bool = True
    strict_tools: bool = True
    streaming: bool = True
    streaming_tool_calls: bool = True
    structured_output: tuple[StructuredOutput, ...] = ("native", "tool", "prompt")
    sampling: bool = True
    reasoning_efforts: tuple[str, ...] | None = None
    thinking_modes: tuple[str, ...] | None = None
    caching: bool = False
    stop_sequences: int | None = None
    """The most stop sequences it takes."""
    quirks: Any = None
    """A dialect's own record of how this server differs, e.g. `ChatQuirks`."""


DEFAULT = Profile()


class StreamDecoder(Protocol):
    """Frames in, events out."""

    def feed(self, frame: Frame) -> list[StreamEvent]:
        """The events this frame completes; raises the provider's error if it carries one."""

    def finish(self) -> list[StreamEvent]:
        """End of body: raises `StreamError` if the stream was not at its end."""


class StreamEncoder(Protocol):
    """Events in, frames out."""

    def feed(self, event: StreamEvent) -> list[Frame]:
        """The frames that say this event."""

    def finish(self) -> list[Frame]:
        """The frames that close the stream, if any are owed."""


class Dialect(Protocol):
    """
    A wire format, both ways. A module satisfies it.

    `encode` is ours to theirs, `decode` theirs to ours. All of it is pure.
    """

    NAME: str

    def encode_request(
        self, request: Request, profile: Profile = ..., *, stream: bool = ...
    ) -> WireCall:
        """What a client sends."""

    def decode_request(self, call: WireCall) -> Request:
        """What a server received; `InvalidRequestError` names the JSON path it cannot read."""

    def decode_response(
        self,
        body: Json,
        *,
        headers: Mapping[str, str] = ...,
        new_id: NewId | None = ...,
        profile: Profile = ...,
    ) -> Response:
        """What a client received."""

    def encode_response(self, response: Response) -> Json:
        """What a server sends."""

    def stream_decoder(
        self, *, new_id: NewId | None = ..., profile: Profile = ...
    ) -> StreamDecoder:
        """For a stream a client receives."""

    def stream_encoder(self, request: Request | None) -> StreamEncoder:
        """For a stream a server sends."""

    def decode_error(self, status: int, headers: Mapping[str, str], body: bytes) -> ProviderError:
        """Never raises: a body we cannot read still becomes an error with its status."""

    def encode_error(self, error: Exception) -> tuple[int, dict[str, str], Json]:
        """Status, headers and body that say this error."""


class HttpRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A call with its address and key, ready to send."""

    method: str = "POST"
    url: str
    headers: Mapping[str, str] = {}
    body: bytes = b""


class HttpReply(Protocol):
    """A reply whose head has come; its body comes as it is read."""

    status: int
    headers: Mapping[str, str]

    async def read(self) -> bytes:
        """The whole body."""

    def chunks(self) -> AsyncIterator[bytes]:
        """The body as it comes."""


class Transport(Protocol):
    """Sends bytes. The only thing that touches a network."""

    def send(self, request: HttpRequest) -> AbstractAsyncContextManager[HttpReply]:
        """Send, and hold the connection while the block runs."""

    async def close(self) -> None:
        """Release every connection."""


class Adapter(Protocol):
    """Answers requests."""

    name: str

    async def complete(self, request: Request) -> Response:
        """The whole answer."""

    def stream(self, request: Request) -> AsyncIterator[StreamEvent]:
        """The answer as it comes."""

    async def close(self) -> None:
        """Release what it holds."""
