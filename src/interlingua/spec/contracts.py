"""
The protocols between the layers, and the records that they pass.

A dialect is a module with its facts and eight functions (see `Dialect`); an adapter answers
requests; a transport sends bytes.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, Literal, Protocol, TypeAlias

import msgspec

from interlingua.spec.content import Record, ToolType, UncheckedJson
from interlingua.spec.defaults import Limits, Timeouts
from interlingua.spec.errors import ProviderError
from interlingua.spec.events import StreamEvent
from interlingua.spec.facts import Facts
from interlingua.spec.request import Request, ToolChoiceMode
from interlingua.spec.response import Response, Warning

NewId: TypeAlias = Callable[[], str]
"""Creates ids for tool calls that arrive without one."""

Modality: TypeAlias = Literal["text", "image", "audio", "video"]
ModelKind: TypeAlias = Literal[
    "chat", "embedding", "image", "speech", "transcription", "video", "rerank", "moderation"
]
"""What a model produces."""
StructuredOutput: TypeAlias = Literal["native", "tool", "prompt"]
ThinkingMode: TypeAlias = Literal["adaptive", "enabled", "disabled", "between_tools"]
ThinkingShown: TypeAlias = Literal["always", "if_asked", "if_permitted", "never"]
Setting: TypeAlias = Literal[
    "temperature",
    "top_p",
    "top_k",
    "frequency_penalty",
    "presence_penalty",
    "seed",
    "stop_sequences",
    "verbosity",
    "logprobs",
]
"""A setting of a request that a model may reject."""


class Frame(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One unit of a stream. For SSE: the name in `event:` and the text in `data:`."""

    data: str
    """The text of the unit; of SSE, that of `data:`."""
    event: str | None = None
    """The name of the event, if it has one."""
    id: str | None = None
    """The id of the event, if it has one."""
    retry: int | None = None
    """The milliseconds of `retry:`, if there are any."""


Content: TypeAlias = bytes | AsyncIterable[bytes]
"""
Bytes to send, or an async iterable of bytes.

An iterable with a `size` is sent with that content-length, any other in chunks. An iterable that
can be read only once (an async generator) is not sent again after a failure.
"""


class FormPart(msgspec.Struct, frozen=True, kw_only=True):
    """One part of a multipart form; a part with a file name is a file."""

    name: str
    """The name of the field."""
    content: str | Content
    """Its value."""
    file_name: str | None = None
    """The name of the file, for a file."""
    media_type: str | None = None
    """The media type of the file."""


class WireCall(msgspec.Struct, frozen=True, kw_only=True):
    """An HTTP request without its base URL and key; it has a body, a content or a form."""

    method: str = "POST"
    """The HTTP method."""
    path: str = ""
    """The path after the base URL."""
    query: Mapping[str, str] = {}
    """Query parameters to add to the path."""
    body: UncheckedJson = None
    """The body as a JSON value."""
    content: Content | None = None
    """A body that is not JSON, sent unchanged; `headers` give its content type."""
    form: tuple[FormPart, ...] = ()
    """The fields and files of a body of type multipart/form-data."""
    headers: Mapping[str, str] = {}
    """The headers that the dialect needs."""
    stream: bool = False
    """Whether the reply is a stream."""
    starts_job: bool = False
    """
    It starts work that is paid for, so it is sent once, unless the provider has not accepted it.

    After a failure it is retried only if nothing was sent, or if the provider refused it.
    """
    warnings: tuple[Warning, ...] = ()
    """What was changed or lost in the request."""

    def __repr__(self) -> str:
        return Record.__repr__(self)  # type: ignore[arg-type]


class Profile(Record, frozen=True, kw_only=True):
    """
    What a model or server supports.

    Every default is neutral: it limits nothing and adds nothing. None means unknown: what is
    asked for is sent, and the provider decides. False and an empty tuple mean not supported.
    """

    kind: ModelKind | None = None
    """What the model is for; only chat models answer a `Request`."""
    output_modalities: tuple[Modality, ...] | None = None
    """What a chat model returns: some also make images or speak."""
    dialect: str = ""
    """The dialect that is spoken; its key in `provider_options` is used."""

    context_window: int | None = None
    """The maximum number of input and output tokens together."""
    max_output_tokens: int | None = None
    """The maximum number of tokens of one response, including thinking."""

    image_types: tuple[str, ...] | None = None
    """The supported media types of images; `image/*` means all."""
    max_image_bytes: int | None = None
    """The maximum size of one image."""
    audio_types: tuple[str, ...] | None = None
    """The supported media types of audio."""
    document_types: tuple[str, ...] | None = None
    """The supported media types of documents, including video."""
    tool_result_types: tuple[str, ...] | None = None
    """The media types that a tool result may contain; others are moved to a user message."""

    tools: bool | None = None
    """Tools are supported."""
    hosted_tools: bool | None = None
    """Tools that the provider runs are supported, also where `tools` is False."""
    tools_while_thinking: bool | None = None
    """Tools are supported together with thinking; if not, thinking is disabled for tools."""
    tool_choice_modes: tuple[ToolChoiceMode, ...] | None = None
    """The supported modes of `tool_choice`: `auto`, `none`, `required`, `named`."""
    thinking_tool_choice: Mapping[str, tuple[ToolChoiceMode, ...]] = {}
    """The supported modes of `tool_choice` by thinking mode, where thinking allows fewer."""
    tool_choice_without_tools: bool | None = None
    """`tool_choice` may be sent without tools."""
    parallel_tool_calls: bool | None = None
    """Parallel tool calls are supported, and so is the setting that disables them."""
    custom_tools: bool | None = None
    """Tools that take free text are supported; if not, they are sent as functions."""
    strict_tools: bool | None = None
    """Strict tools are supported: the arguments of a call must match the schema."""
    max_strict_tools: int | None = None
    """The maximum number of strict tools."""

    streaming: bool | None = None
    """Streaming is supported."""
    whole_tool_calls: bool | None = None
    """Tool calls are supported in whole answers; if not, such answers are streamed and joined."""
    # Anthropic's SDK refuses a whole answer that may take longer than ten minutes, at 128,000
    # tokens an hour, and of a few models one above a figure of their own
    # (`_calculate_nonstreaming_timeout`, `MODEL_NONSTREAMING_TOKENS`):
    # https://platform.claude.com/docs/en/cli-sdks-libraries/sdks/python#long-requests
    max_whole_tokens: int | None = None
    """The maximum `max_tokens` of a whole answer; one with more is streamed and joined."""
    streaming_tool_calls: bool | None = None
    """Tool calls are supported in streams."""

    structured_output: tuple[StructuredOutput, ...] | None = None
    """The supported ways to get JSON that matches a schema, best first."""
    structured_output_with_tools: bool | None = None
    """`native` structured output can be combined with tools."""

    sampling: bool | None = None
    """`temperature`, `top_p` and `top_k` are supported."""
    sampling_versions: tuple[str, ...] | None = None
    """
    The API versions in which these three are still supported. If they are asked for and `sampling`
    is true, the last of these is used, unless the caller chose another version.
    """
    api_version: str | None = None
    """The API version to use, unless the provider options of the request name another."""
    max_temperature: float | None = None
    """The maximum temperature."""
    rejected_while_thinking: tuple[Setting, ...] = ()
    """The settings that are rejected or ignored while the model thinks."""
    penalties: bool | None = None
    """`frequency_penalty` and `presence_penalty` are supported."""
    seed: bool | None = None
    """`seed` is supported."""
    logprobs: bool | None = None
    """Log probabilities of tokens are supported."""
    verbosity: bool | Literal["instruction"] | None = None
    """`verbosity` is supported, or is sent as an instruction."""
    stop_sequences: int | None = None
    """The maximum number of stop sequences."""

    thinking: bool | None = None
    """Thinking is supported."""
    thinks_by_default: bool = False
    """Thinking is on by default."""
    thinking_modes: tuple[ThinkingMode, ...] | None = None
    """
    The supported ways to configure thinking: `adaptive` (by effort), `enabled` (by token budget),
    `disabled`, `between_tools` (only notes between tool calls).
    """
    # OpenAI shows summaries only to verified organizations; the others ask for no permission.
    # Claude hides thoughts by default since Opus 4.7:
    # https://platform.claude.com/docs/en/about-claude/models/whats-new-claude-4-7
    thinking_shown: ThinkingShown | None = None
    """
    When thoughts are visible: `always`; `if_asked`, which an effort or a budget does too;
    `if_permitted`, where only `include_thinking` asks; `never`.
    """
    reasoning_efforts: tuple[str, ...] | None = None
    """The supported efforts; any other effort is replaced by the nearest."""
    effort_map: Mapping[str, str] = {}
    """Replacements for unsupported efforts, where the nearest is not the right one."""
    effort_budgets: Mapping[str, int] = {}
    """The thinking budget for an effort, where it differs from the default table."""
    min_thinking_budget: int | None = None
    """The minimum thinking budget, other than 0."""
    max_thinking_budget: int | None = None
    """The maximum thinking budget."""
    dynamic_budget: bool = False
    """A budget of 0 disables thinking, and a negative one lets the model decide."""
    budget_below_max_tokens: bool = False
    """The budget must be smaller than `max_tokens`, which includes thinking."""
    thinking_bound_to_model: bool = False
    """Thinking from any other model is rejected, even from the same vendor."""
    thinking_dialects: tuple[str, ...] = ()
    """Other dialects through which the same models answer: their thinking is accepted too."""
    signed_thinking: bool = False
    """Thinking in the history without a signature is rejected."""
    signed_calls: bool = False
    """Tool calls in the history without a thought signature are rejected."""

    stateless: bool = False
    """The provider stores answers unless it is asked not to; it is asked, by default."""
    compaction: bool = False
    """The provider makes a summary of a conversation itself, which only it can read."""

    caching: bool = False
    """Prompt caching is supported; the encoder requests it where the dialect requires that."""
    cache_breakpoints: int | None = None
    """The maximum number of cache marks in a request, including the automatic one."""
    automatic_cache_mark: bool = False
    """One mark for the whole request is supported; the server places it at the end."""
    cache_key: bool = False
    """`prompt_cache_key` is supported: it routes the calls of a conversation to one cache."""
    min_cache_tokens: int | None = None
    """The minimum length of a cached prefix, in tokens."""

    system_prompt: bool | None = None
    """System messages are supported."""
    system_mid_conversation: bool | None = None
    """System messages are also supported after the first turn."""
    single_system_prompt: bool = False
    """Several leading system messages are rejected; they are joined by a blank line."""
    media_urls: bool | None = None
    """Media may be given by URL; if False, it is fetched and sent as bytes."""
    moves_media: bool | None = None
    """
    Media in system or assistant messages, where the format has none, is moved to the next user
    message; if False, it is refused.
    """
    prefill: bool | None = None
    """The last message may be from the assistant; the model continues it."""
    tool_call_id_pattern: str | None = None
    """A regular expression that the whole id of a tool call must match."""

    hosted_call_types: tuple[ToolType, ...] = ()
    """
    The types of tool calls that the provider has run itself, if the request declares no tool of
    that name.
    """

    quirks: Any = None
    """The dialect's own record of how this server differs, e.g. `ChatQuirks`."""


NEUTRAL_PROFILE = Profile()
"""A profile that limits nothing and adds nothing."""


class ToolCallCapabilities(Record, frozen=True, kw_only=True):
    """The support for tool calls. None means unknown."""

    non_streaming: bool | None = True
    streaming_mode: Literal["none", "deltas"] | None = "deltas"
    """In streams: not supported, or in fragments."""
    parallel: bool | None = True
    """Several calls in one response."""


class AdapterCapabilities(msgspec.Struct, frozen=True):
    """
    What an adapter supports, for routers: a view of its profile.

    None means unknown, or no known limit. A search by capability treats it as no.
    """

    profile: Profile = NEUTRAL_PROFILE
    """The profile that it shows."""

    @property
    def supports_images(self) -> bool | None:
        """Whether any type of image is supported."""
        types = self.profile.image_types
        return None if types is None else types != ()

    @property
    def accepted_image_media_types(self) -> tuple[str, ...] | None:
        """The supported media types of images."""
        return self.profile.image_types

    @property
    def supports_thinking(self) -> bool | None:
        """Whether the model can think."""
        return self.profile.thinking

    @property
    def supports_tools(self) -> bool | None:
        """Whether tools are supported."""
        return self.profile.tools

    @property
    def supports_system_prompt(self) -> bool | None:
        """Whether system messages are supported."""
        return self.profile.system_prompt

    @property
    def supports_structured_output(self) -> bool | None:
        """Whether the provider itself enforces a schema."""
        ways = self.profile.structured_output
        return None if ways is None else "native" in ways

    @property
    def supports_streaming(self) -> bool | None:
        """Whether responses can be streamed."""
        return self.profile.streaming

    @property
    def supports_streaming_tool_calls(self) -> bool | None:
        """Whether tool calls can be streamed."""
        profile = self.profile
        return _all((profile.tools, profile.streaming, profile.streaming_tool_calls))

    @property
    def supports_parallel_tool_calls(self) -> bool | None:
        """Whether one response may have several tool calls."""
        return _all((self.profile.tools, self.profile.parallel_tool_calls))

    @property
    def supports_prompt_caching(self) -> bool:
        """Whether prompt caching can be requested."""
        return self.profile.caching

    @property
    def max_context_tokens(self) -> int | None:
        """The size of the context window."""
        return self.profile.context_window

    @property
    def max_output_tokens(self) -> int | None:
        """The maximum number of tokens of one response."""
        return self.profile.max_output_tokens

    @property
    def tool_calls(self) -> ToolCallCapabilities:
        """The properties about tool calls, as one record; a profile row may be written so."""
        streamed = self.supports_streaming_tool_calls
        return ToolCallCapabilities(
            non_streaming=_all((self.profile.tools, self.profile.whole_tool_calls)),
            streaming_mode=None if streamed is None else "deltas" if streamed else "none",
            parallel=self.supports_parallel_tool_calls,
        )


def _all(known: tuple[bool | None, ...]) -> bool | None:
    """Whether all are true: False if one is false, None if one is unknown."""
    return False if False in known else None if None in known else True


class Prepared(msgspec.Struct, frozen=True, kw_only=True):
    """A request that was adapted to its target and is ready to encode."""

    request: Request
    """The request as its target accepts it."""
    options: Mapping[str, Any] = {}
    """The provider options for the target; the encoder merges them last."""
    warnings: tuple[Warning, ...] = ()
    """The changes and losses."""
    origin: Callable[[str], str | None] | None = None
    """Maps a path in `request` to the path in the caller's request; None if they are equal."""

    def __repr__(self) -> str:
        return Record.__repr__(self)  # type: ignore[arg-type]


class StreamDecoder(Protocol):
    """Frames in, events out."""

    def feed(self, frame: Frame) -> list[StreamEvent]:
        """Return the events that this frame completes; raise the error that it contains."""

    def finish(self) -> list[StreamEvent]:
        """End of body: raises `StreamError` if the stream is incomplete."""


class StreamEncoder(Protocol):
    """Events in, frames out."""

    def feed(self, event: StreamEvent) -> list[Frame]:
        """Return the frames for this event."""

    def finish(self) -> list[Frame]:
        """Return the frames that end the stream, if there are any."""


class Dialect(Protocol):
    """
    A wire format in both directions. A module satisfies it.

    `encode` converts canonical values to wire values, `decode` the reverse. All of it is pure.
    """

    @property
    def NAME(self) -> str:  # noqa: N802 -- a constant of the module
        """Its name in `extra`, in `provider_options` and in the rows of providers."""

    @property
    def FACTS(self) -> Facts:  # noqa: N802 -- a constant of the module
        """Its properties besides the functions."""

    def encode_request(
        self, request: Request | Prepared, profile: Profile = ..., *, stream: bool = ...
    ) -> WireCall:
        """Return the call that a client sends; a `Request`, not a `Prepared`, is prepared first."""

    def decode_request(self, call: WireCall) -> Request:
        """Return the request of a call; `InvalidRequestError` names the path of a wrong value."""

    def decode_response(
        self,
        body: UncheckedJson,
        *,
        headers: Mapping[str, str] = ...,
        new_id: NewId | None = ...,
        profile: Profile = ...,
        request: Request | None = ...,
    ) -> Response:
        """
        Return the response that a client received.

        `request` is the one that it answers, if it is known. A dialect that does not need it may
        leave this argument out, here and in `stream_decoder`.
        """

    def encode_response(self, response: Response, request: Request | None = None) -> UncheckedJson:
        """Return the body that a server sends."""

    def stream_decoder(
        self,
        *,
        new_id: NewId | None = ...,
        profile: Profile = ...,
        request: Request | None = ...,
    ) -> StreamDecoder:
        """Return a decoder for a stream that a client receives."""

    def stream_encoder(self, request: Request | None) -> StreamEncoder:
        """Return an encoder for a stream that a server sends."""

    def decode_error(self, status: int, headers: Mapping[str, str], body: bytes) -> ProviderError:
        """Return the error for a reply; for an unreadable body, one by its status. Never raise."""

    def encode_error(self, error: Exception) -> tuple[int, dict[str, str], UncheckedJson]:
        """Return the status, headers and body for this error."""


class HttpRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A complete HTTP request, with URL and key."""

    method: str = "POST"
    url: str
    headers: Mapping[str, str] = {}
    body: Content = b""
    timeouts: Timeouts | None = None
    """For this request only; None for those of the transport."""
    limits: Limits | None = None
    """For this request only; None for those of the transport."""
    keep_alive: bool = True
    """Whether the connection may serve other requests, before and after this one."""
    may_resend: bool = True
    """Whether it may be sent once more if a reused connection ends before one reply byte."""
    on_resend: Callable[[], object] | None = None
    """
    Called if the request is sent once more, because the server had closed the connection that was
    reused: it ended before one byte of the reply.
    """
    on_connect: Callable[[bool], object] | None = None
    """
    Called with True before a connection is opened, and with False when it is open.

    A transport need not do so: then the request counts as sent at once.
    """

    @property
    def body_size(self) -> int | None:
        """The size of the body in bytes; None if it is not known before sending."""
        if isinstance(self.body, bytes):
            return len(self.body)
        size = getattr(self.body, "size", None)
        return size if isinstance(size, int) else None

    def __repr__(self) -> str:
        # Headers and query may contain keys, and the body may be large.
        url = self.url.partition("?")[0]
        size = self.body_size
        return f"HttpRequest({self.method} {url}, {'?' if size is None else size} bytes)"


class HttpReply(Protocol):
    """A reply whose headers have arrived; the body arrives while it is read."""

    @property
    def status(self) -> int:
        """The HTTP status."""

    @property
    def headers(self) -> Mapping[str, str]:
        """Names in lower case; the values of a repeated name are joined by commas."""

    async def read(self) -> bytes:
        """The whole body."""

    def chunks(self) -> AsyncIterator[bytes]:
        """The chunks of the body, as they arrive."""

    def abort(self) -> None:
        """Close the connection at once; a task that is reading gets an error."""


class Transport(Protocol):
    """
    Sends HTTP requests. Only transports use the network.

    `get_ready(url)` is optional: an async method that does what takes time before the first request
    to an address, such as imports, and sends nothing.
    """

    def send(self, request: HttpRequest) -> AbstractAsyncContextManager[HttpReply]:
        """
        Send the request; the connection stays open while the `async with` block runs.

        Leaving the block before the end of the body closes the connection. Redirects are not
        followed: a 3xx is an ordinary reply.
        """

    async def close(self) -> None:
        """Release every connection."""


class Adapter(Protocol):
    """
    Answers requests.

    Other methods are optional: `initialize` (called once, before the first call), `get_ready`
    (called before a place in a limit is taken) and `close`, each sync or async; `cancel`,
    `perform`, `list_models`, `count_tokens`. What it supports, and so what the loss policy does,
    is what `profile_for(model)` returns, or what `capabilities` says, with
    `supports_tool_choice(mode)`; `estimate_input_tokens(request)` estimates tokens, and `on_loss`
    is its policy. A client checks the shape of an adapter when it is made.
    """

    name: str
    """The name of the provider."""

    async def complete(self, request: Request) -> Response:
        """Return the whole response."""

    def stream(self, request: Request) -> AsyncIterator[StreamEvent]:
        """Yield the events of the response, as they arrive."""
