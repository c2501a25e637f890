"""
The contracts between the layers.

A dialect is a module with its facts and eight functions (see `Dialect`); an adapter answers
requests; a transport sends bytes.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, Literal, Protocol, TypeAlias

import msgspec

from interlingua.spec.content import Json
from interlingua.spec.errors import ProviderError
from interlingua.spec.events import StreamEvent
from interlingua.spec.facts import Facts
from interlingua.spec.request import Request, ToolChoiceMode
from interlingua.spec.response import Response, Warning

NewId: TypeAlias = Callable[[], str]
"""Makes ids for calls that come without one."""

StructuredOutput: TypeAlias = Literal["native", "tool", "prompt"]
ThinkingMode: TypeAlias = Literal["adaptive", "enabled", "disabled", "between_tools"]
Setting: TypeAlias = Literal[
    "temperature",
    "top_p",
    "top_k",
    "frequency_penalty",
    "presence_penalty",
    "seed",
    "n",
    "stop_sequences",
    "verbosity",
    "logprobs",
]
"""A setting that a model may refuse; all but `logprobs` are fields of a request."""


class Frame(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One framed unit of a stream: of SSE, its `event:` name and its `data:` text."""

    data: str
    event: str | None = None
    id: str | None = None
    retry: int | None = None


Content: TypeAlias = bytes | AsyncIterable[bytes]
"""
Bytes to send, or what yields them.

An iterable with a `size` is sent with that content-length, any other in chunks. One that can be
iterated only once (an async generator) is not sent again after a failure.
"""


class FormPart(msgspec.Struct, frozen=True, kw_only=True):
    """One part of a multipart form; it is a file if it has a file name."""

    name: str
    content: str | Content
    file_name: str | None = None
    media_type: str | None = None


class WireCall(msgspec.Struct, frozen=True, kw_only=True):
    """
    An HTTP call before it has an address and a key.

    What is sent is `body` as JSON, or `content` as it is, or `form` as multipart/form-data.
    """

    method: str = "POST"
    path: str = ""
    query: Mapping[str, str] = {}
    """Parameters that are added to the path."""
    body: Json = None
    content: Content | None = None
    """A body that is not JSON; `headers` give its content type."""
    form: tuple[FormPart, ...] = ()
    headers: Mapping[str, str] = {}
    stream: bool = False
    warnings: tuple[Warning, ...] = ()


class Profile(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, repr_omit_defaults=True
):
    """
    What a model or server accepts and wants.

    Every default is neutral: it clamps nothing, adds nothing, forces nothing. None means
    "no limit known", an empty tuple "none at all".
    """

    dialect: str = ""
    """The dialect it is about, whose options in a request then count."""

    context_window: int | None = None
    """The most tokens that input and output may have together."""
    max_output_tokens: int | None = None
    """The most tokens one answer may have, thinking included."""

    image_types: tuple[str, ...] | None = None
    """The media types of images it reads; `image/*` stands for all."""
    audio_types: tuple[str, ...] | None = None
    """The media types of sound it reads."""
    document_types: tuple[str, ...] | None = None
    """The media types of documents it reads, video among them."""
    tool_result_types: tuple[str, ...] | None = None
    """The media types a tool result may carry; what it cannot carry has to go elsewhere."""

    tools: bool = True
    """It calls tools."""
    tools_while_thinking: bool = True
    """It calls tools also while it thinks; if not, thinking gives way to tools."""
    tool_choice_modes: tuple[ToolChoiceMode, ...] | None = None
    """The ways of choosing among tools it accepts: `auto`, `none`, `required`, `named`."""
    thinking_tool_choice: Mapping[str, tuple[ToolChoiceMode, ...]] = {}
    """The same while it thinks in a mode of `thinking_modes`, where fewer are accepted then."""
    tool_choice_without_tools: bool = True
    """A choice among tools may be sent where there are none."""
    parallel_tool_calls: bool = True
    """It can call several tools at once, and takes the switch that says whether it may."""
    strict_tools: bool = True
    """It takes the mark that a tool's input must fit its schema."""
    max_strict_tools: int | None = None
    """The most tools that may carry that mark."""

    streaming: bool = True
    """It can send its answer as it comes."""
    streaming_tool_calls: bool = True
    """It can call tools in an answer that streams."""

    structured_output: tuple[StructuredOutput, ...] = ("native", "tool", "prompt")
    """The ways to get JSON of a given schema from it, best first."""
    structured_output_with_tools: bool = True
    """The native way works also beside tools."""

    sampling: bool = True
    """It takes `temperature`, `top_p` and `top_k`."""
    sampling_versions: tuple[str, ...] | None = None
    """The versions of its API that still take them."""
    api_version: str | None = None
    """The version of its API that is spoken, unless the request's options name another."""
    max_temperature: float | None = None
    """The highest temperature it takes."""
    rejected_while_thinking: tuple[Setting, ...] = ()
    """The settings it refuses or ignores while it thinks."""
    penalties: bool = True
    """It takes `frequency_penalty` and `presence_penalty`."""
    seed: bool = True
    """It takes a seed."""
    n: bool = True
    """It can give more than one answer."""
    logprobs: bool = True
    """It can report the probabilities of tokens."""
    verbosity: bool = True
    """It can be told how long to write."""
    stop_sequences: int | None = None
    """The most stop sequences it takes."""

    thinking: bool = True
    """It can think before it answers."""
    thinks_by_default: bool = False
    """It thinks unless it is told not to."""
    thinking_modes: tuple[ThinkingMode, ...] | None = None
    """
    How it can be told to think: `adaptive` (by effort), `enabled` (up to a budget of tokens),
    `disabled` (not at all), `between_tools` (only notes between calls).
    """
    reasoning_efforts: tuple[str, ...] | None = None
    """The efforts it knows; the nearest is sent for another."""
    effort_map: Mapping[str, str] = {}
    """What is sent for an effort it does not know, where that is not the nearest."""
    effort_budgets: Mapping[str, int] = {}
    """Tokens of thinking that stand for an effort, where they are not the usual ones."""
    min_thinking_budget: int | None = None
    """The smallest budget it takes, besides none at all."""
    max_thinking_budget: int | None = None
    """The largest budget it takes."""
    dynamic_budget: bool = False
    """It takes a budget of 0 for none, and a negative one for as much as it sees fit."""
    budget_below_max_tokens: bool = False
    """The budget must be smaller than `max_tokens`, which counts both."""
    thinking_bound_to_model: bool = False
    """It refuses thinking that another model made, even one of its own maker."""
    signed_calls: bool = False
    """It refuses calls in the history that lack the signature of their thought."""

    caching: bool = False
    """It keeps prompts for reuse; an encoder asks for it where its dialect has to."""
    cache_breakpoints: int | None = None
    """The most cache marks one request may carry, the automatic one among them."""
    automatic_cache_mark: bool = False
    """It takes one mark for the whole request, and places it at the end itself."""
    cache_key: bool = False
    """It takes `prompt_cache_key`, by which calls of one conversation find the same cache."""
    min_cache_tokens: int | None = None
    """The shortest prefix that is kept."""

    system_prompt: bool = True
    """It takes instructions apart from what the user says."""
    system_mid_conversation: bool = True
    """Instructions may also stand after the first turn."""
    prefill: bool = True
    """A conversation may end in words of the model, which it then continues."""
    tool_call_id_pattern: str | None = None
    """The regular expression that the whole id of a call must match."""

    quirks: Any = None
    """A dialect's own record of how this server differs, e.g. `ChatQuirks`."""


NEUTRAL_PROFILE = Profile()


class Prepared(msgspec.Struct, frozen=True, kw_only=True):
    """A request that its target accepts, ready to encode."""

    request: Request
    options: Mapping[str, Any] = {}
    """The provider options that are meant for the target; an encoder merges them last."""
    warnings: tuple[Warning, ...] = ()
    """What was changed or lost."""
    origin: Callable[[str], str | None] | None = None
    """Of a path in `request`, the path in the caller's request; None if they are the same."""


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

    @property
    def NAME(self) -> str:  # noqa: N802 -- a constant of the module
        """What it is called in `extra`, in `provider_options` and in a provider's row."""

    @property
    def FACTS(self) -> Facts:  # noqa: N802 -- a constant of the module
        """What is true of it beyond its functions."""

    def encode_request(
        self, request: Request | Prepared, profile: Profile = ..., *, stream: bool = ...
    ) -> WireCall:
        """What a client sends. A `Request` is prepared first, a `Prepared` is encoded as it is."""

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


class Timeouts(msgspec.Struct, frozen=True, kw_only=True):
    """How long each step of a call may take, in seconds; None for as long as it likes."""

    connect: float | None = 10.0
    """Name, connection and TLS."""
    request: float | None = 600.0
    """A whole exchange; of a stream, all up to its head."""
    first_byte: float | None = None
    """From the start to the head of the reply."""
    stream_read: float | None = 300.0
    """A stream's silence; any bytes end it."""


class HttpRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A call with its address and key, ready to send."""

    method: str = "POST"
    url: str
    headers: Mapping[str, str] = {}
    body: Content = b""
    timeouts: Timeouts | None = None
    """For this call only; None for the transport's own."""

    @property
    def body_size(self) -> int | None:
        """How many bytes the body has; None if that is not known before it is sent."""
        if isinstance(self.body, bytes):
            return len(self.body)
        size = getattr(self.body, "size", None)
        return size if isinstance(size, int) else None

    def __repr__(self) -> str:
        # headers and query may hold keys, and the body is large
        url = self.url.partition("?")[0]
        size = self.body_size
        return f"HttpRequest({self.method} {url}, {'?' if size is None else size} bytes)"


class HttpReply(Protocol):
    """A reply whose head has come; its body comes as it is read."""

    @property
    def status(self) -> int:
        """The HTTP status."""

    @property
    def headers(self) -> Mapping[str, str]:
        """Names in lower case; a name that came twice has both values, comma between."""

    async def read(self) -> bytes:
        """The whole body."""

    def chunks(self) -> AsyncIterator[bytes]:
        """The body as it comes."""

    def abort(self) -> None:
        """Close the connection at once, whoever reads from it."""


class Transport(Protocol):
    """Sends bytes. The only thing that touches a network."""

    def send(self, request: HttpRequest) -> AbstractAsyncContextManager[HttpReply]:
        """
        Send, and hold the connection while the block runs.

        Leaving the block before the body's end closes the connection. No redirect is followed:
        a 3xx is a reply like another.
        """

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
