"""
Operations besides answering (token counts, lists of models), and the server side of a dialect.

A dialect that can be served has a module `serve` (see `Serve`); a dialect without one still works
for clients.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

import msgspec

from interlingua.spec.content import Extra, Json, Opaque, Record, Thinking, UncheckedJson
from interlingua.spec.contracts import Profile, WireCall
from interlingua.spec.events import ProviderEvent
from interlingua.spec.facts import Framing
from interlingua.spec.request import OnLoss, Request
from interlingua.spec.response import Cost, Reason, Usage, Warning


class ServedModel(Record, frozen=True, kw_only=True):
    """A model as its provider lists it. What the provider does not say is None."""

    id: str
    """The id in requests."""
    provider: str = ""
    """The provider that serves it."""
    name: str | None = None
    """The display name."""
    description: str | None = None
    """What the provider says about it."""
    owner: str | None = None
    """Who made it, in the words of the provider."""
    created_at: float | None = None
    """Seconds since 1970."""
    context_window: int | None = None
    """The maximum number of input and output tokens together."""
    max_output_tokens: int | None = None
    """The maximum number of tokens of one answer."""
    input_modalities: tuple[str, ...] | None = None
    """What it accepts, such as `text`, `image`, `audio`, `pdf`."""
    output_modalities: tuple[str, ...] | None = None
    """What it returns."""
    supports_tools: bool | None = None
    """Whether it can call tools."""
    supports_reasoning: bool | None = None
    """Whether it can think before it answers."""
    supports_structured_output: bool | None = None
    """Whether it can be held to a JSON Schema."""
    input_cost_per_million: float | None = None
    """The price of input in US dollars."""
    output_cost_per_million: float | None = None
    """The price of output in US dollars."""
    raw: UncheckedJson = None
    """The description as it was received."""
    extra: Extra = {}
    """Other fields, by dialect, as in parts."""


class OperationInput(Record, frozen=True, kw_only=True):
    """The value of an operation that a model performs."""

    model: str = ""
    provider: str | None = None
    """The provider that performs it, once it is known."""
    provider_options: Mapping[str, Mapping[str, Any]] = {}
    """More fields of the body, by provider or dialect; they replace the encoded ones."""
    on_loss: OnLoss | None = None
    """What to do about losses, as in `Request`."""
    request_id: str | None = None

    @property
    def rough_size(self) -> int:
        """About how many bytes it has; a large value is encoded in a thread."""
        return 0

    @property
    def expected_usage(self) -> Usage | None:
        """What it will use at most; None if that follows from the tokens of its texts."""
        return None


class OperationResult(Record, frozen=True, kw_only=True):
    """
    The result of an operation.

    The adapter adds the provider, the ids, the cost, and the warnings about the request.
    """

    model: str = ""
    """The model that performed it, as the provider names it."""
    provider: str = ""
    """The adapter that was called."""
    usage: Usage = Usage()
    """What the operation used."""
    cost: Cost | None = None
    """What it cost; None if the price is unknown, and a warning says so."""
    warnings: tuple[Warning, ...] = ()
    """What was changed or lost in the request."""
    request_id: str | None = None
    """The id of our request."""
    provider_request_id: str | None = None
    """The id that the provider gave the request, for its support."""
    raw: UncheckedJson = None
    """The body as it was received, for debugging."""

    @property
    def is_final(self) -> bool:
        """Whether the work is done, so that its usage can be reported; False for a running job."""
        return True


class OperationReply(NamedTuple):
    """One HTTP reply of an operation that makes several calls."""

    status: int
    headers: Mapping[str, str]
    """Names in lower case."""
    body: bytes


Script: TypeAlias = Generator[WireCall, OperationReply, Any]
"""An operation of several calls: it yields each call, is sent the reply, and returns the result."""


class ItemDecoder(Protocol):
    """
    Decodes the bytes of a streamed reply into items.

    One that can decode only the whole reply has an attribute `held`, the number of bytes that it
    has: many are decoded in a thread. One for replies with several pages has `next_page(call)`,
    which returns the call for the page after the one that it has decoded, or None after the last
    page; each page has a decoder of its own.
    """

    def feed(self, chunk: bytes) -> list[Any]:
        """Return the items that this chunk completes."""

    def finish(self) -> list[Any]:
        """End of body: the last items, or `StreamError` if the reply is incomplete."""


class ItemFormat(msgspec.Struct, frozen=True, kw_only=True):
    """
    How the requests of a batch are written into one body, item by item.

    Each item contains the body that a call with this request would have, byte for byte.
    """

    name: str
    envelope: Callable[[Any], tuple[bytes, bytes]] = lambda _value: (b"", b"")
    """What stands before and after all items, from the value of the operation."""
    wrap: Callable[[str], tuple[bytes, bytes]]
    """What stands before and after the body of one item, from its id."""
    separator: bytes = b"\n"
    endpoint: str
    """The end of the path of each call; a call with another path cannot be in the batch."""
    max_items: int | None = None
    max_bytes: int | None = None
    id_pattern: str | None = None
    """A regular expression that the whole id of an item must match."""
    single_model: bool = False
    """All items must have the same model."""


class InputLimits(msgspec.Struct, frozen=True, kw_only=True):
    """How much one call may contain. A function with more inputs makes several calls."""

    items: int | None = None
    tokens: int | None = None
    """Of all inputs together; they are estimated."""
    bytes: int | None = None
    """Of all inputs together."""


class Operation(msgspec.Struct, frozen=True, kw_only=True):
    """
    One operation of a dialect: how to encode its call and decode its reply.

    All of it is pure. `HttpAdapter.perform` adds the URL and the key, sends the call, and raises an
    error reply as an exception. An operation has either `encode` and `decode`, or `script`.
    """

    name: str
    """Its name, such as `embed` or `list_models`."""
    encode: Callable[[Any, Profile], WireCall] | None = None
    """The call for a value; the profile is that of `value.model`, if there is one."""
    decode: Callable[[int, Mapping[str, str], bytes], Any] | None = None
    """The result of a reply: status, headers (names in lower case), body."""
    script: Callable[[Any, Profile], Script] | None = None
    """
    Makes a generator for an operation of several calls, such as an upload that has two steps.

        def upload(file: NewFile, profile: Profile) -> Script:
            reply = yield WireCall(path="/uploads", body={"name": file.name})
            reply = yield WireCall(path=reply.headers["x-upload-url"], content=file.content)
            return read_file(reply.body)

    A path may be a whole URL; the key is sent only to the host of the provider.
    """
    stream_decoder: Callable[[Any], ItemDecoder] | None = None
    """
    Creates the decoder of a streamed reply, from the value of the operation.

    The result of the operation is then an async iterator of items, and `decode` is not called.
    `perform` raises (and retries) failures until the reply begins.
    """
    chat_models: Literal["all", "output"] | None = None
    """
    Which chat models perform it as well: all of them, for example with a hosted tool, or those that
    return what it makes. None: it needs models of its own kind.
    """
    error_is_data: bool = False
    """A field `error` in a reply with status 200 is about a job, and does not fail this call."""
    formats: tuple[ItemFormat, ...] = ()
    """
    How the adapter encodes the requests of the value, best first, before the operation begins.

    The first format whose limits are not exceeded is used.
    """
    is_download: bool = False
    """
    The reply is a file: redirects are followed, and the path may be a URL at any host.

    The key is sent only to the host of the provider.
    """
    next_page: Callable[[WireCall, Mapping[str, str], bytes], WireCall | None] | None = None
    """
    The call for the page after this reply; None after the last page.

    `decode` then returns a list for each page, and the result is all of them joined.
    """
    limits: Callable[[Any], InputLimits] | None = None
    """How many of the inputs of a value fit into one call; None if no limit is known."""


RouteKind: TypeAlias = Literal["answer", "count", "models", "model", "operation", "unknown"]
"""The kind of a request: answer, token count, list of models, one model, another operation."""


class ServerRoute(msgspec.Struct, frozen=True, kw_only=True):
    """The method and path of one kind of request. The group `model` is the id of a model."""

    method: str
    pattern: re.Pattern[str]
    """Matches the whole path. It starts with `.*`, because vendors and proxies add prefixes."""
    kind: RouteKind
    is_shared: bool = False
    """Other dialects have this path too; the headers of the request decide."""
    is_stream: bool = False
    """An answer on this path is a stream, whatever the body says."""
    framing: Framing = "sse"
    """How its streams are split into frames."""
    requires_headers: bool = True
    """The required headers of the vendor's own API are also required on this path."""


class ServedReply(msgspec.Struct, frozen=True, kw_only=True):
    """What a server sends for an operation: JSON, bytes, or a stream of bytes."""

    body: UncheckedJson = None
    """Sent as JSON, unless `content` is given."""
    content: bytes | Iterable[bytes] | None = None
    """Bytes with the `content_type`; an iterable is sent piece by piece."""
    content_type: str = "application/octet-stream"
    status: int = 200
    headers: Mapping[str, str] = {}


class ServedOperation(msgspec.Struct, frozen=True, kw_only=True):
    """The server side of one endpoint: it decodes a request and encodes its result."""

    name: str
    """The operation, by which a server finds the function that performs it."""
    method: str
    pattern: re.Pattern[str]
    """Matches the whole path; its groups are the `params` of `decode`, unquoted."""
    decode: Callable[[WireCall, Mapping[str, str]], Any]
    """
    The value, from the call and the groups of the path (and the query, as `call.query`).

    A form is in `call.form`, any other body that is not JSON in `call.content`.
    """
    encode: Callable[[Any, Any], ServedReply]
    """The reply, from the result and the value."""
    reads_bytes: bool = False
    """The body is bytes, even if it looks like JSON: it is in `call.content`."""
    is_shared: bool = False
    """As in `ServerRoute`."""


class Unserved(NamedTuple):
    """Something in the body of a request that a server without stored answers cannot do."""

    is_asked: Callable[[Mapping[str, Json]], bool]
    """Whether a body asks for it."""
    message: str
    """What the client is told: what is not done, and what to send instead."""
    unless_kept: bool = False
    """Whether a server that keeps responses can do it."""
    details: Mapping[str, Json] = {}
    """By which the vendor's SDK knows that it may ask without it, where there is such a way."""


class Failure(Record, frozen=True, kw_only=True):
    """An error that a server sends: its status, and what replaces the vendor's default body."""

    status: int
    """The HTTP status."""
    message: str | None = None
    """The message in the vendor's body; None for the vendor's own."""
    body: UncheckedJson = None
    """The whole body: bytes or text are sent unchanged, anything else as JSON."""
    retry_after: float | None = None
    """The header `retry-after`, in seconds."""
    model: str | None = None
    """The model in the message; default: the requested one."""
    details: Mapping[str, Json] = {}
    """What the vendor's body has beside the message, for programs."""


class ServerFacts(msgspec.Struct, frozen=True, kw_only=True):
    """How a server of one dialect behaves."""

    routes: tuple[ServerRoute, ...] = ()
    own_headers: tuple[str, ...] = ()
    """Headers that identify this dialect if the path does not."""
    own_paths: tuple[str, ...] = ()
    """Parts of a path that identify this dialect."""
    is_common: bool = False
    """This dialect answers requests that no dialect recognises, because most servers speak it."""
    key_headers: tuple[str, ...] = ("authorization",)
    key_query: str = ""
    """The query parameter that may contain the key."""
    required_headers: tuple[str, ...] = ()
    version_header: str = ""
    """The header that names the version of the API."""
    required_fields: tuple[str, ...] = ()
    """The fields that the body of a request for an answer must have."""
    body_problem: Callable[[Mapping[str, Json]], str | None] | None = None
    """What the vendor has against the shape of such a body, for a strict simulator."""
    stream_field: str = "stream"
    """The body field that is true to request a stream."""
    stream_path: str = ""
    """The end of a path that requests a stream, whatever the body says."""
    reads_comments: bool = True
    """Its clients ignore the comments of server-sent events, as they should."""
    sse_query: str = ""
    """A stream is SSE only if the query contains this, otherwise one JSON array."""
    file_address: str | None = None
    """How the addresses of stored files begin, if requests refer to files by addresses, not ids."""
    ping: ProviderEvent | None = None
    """The keep-alive event of its streams."""
    content_type: str = "application/json"
    request_id_header: str | None = None
    error_headers: Callable[[Failure], Mapping[str, str]] | None = None
    """The headers of an error reply, where the vendor names the error in a header."""
    retry_after_header: bool = True
    """It sends `retry-after` as a header; otherwise the error body contains the delay."""
    limit_headers: Mapping[str, str] = {}
    """Header names by the fields of `RateLimitInfo`, and `requests_reset` and `tokens_reset`."""
    resets_at: bool = False
    """A reset is a point in time, not a duration."""
    response_prefix: str = ""
    call_prefix: str = ""
    thinking_prefix: str | None = None
    """The prefix of thinking ids, if thinking has ids and encrypted data, not signatures."""
    shown_thinking: Callable[[Thinking, Request, Profile], Thinking | None] | None = None
    """A thought as the vendor sends it to this request, None if not at all; shown by default."""
    refusal: Reason = "stop"
    """The finish reason of a refusal."""
    spent_status: int | None = None
    """The status of spent money that stops its clients; None if the vendor's own does."""
    hosted_parts: Callable[[Opaque], tuple[Opaque, ...]] | None = None
    """The parts of a call of a hosted tool, and of its result, from a description of both."""
    unserved: tuple[Unserved, ...] = ()
    """What requests may ask for that only the vendor's own server can do."""
    session_headers: tuple[str, ...] = ()
    """The headers in which its clients name the conversation."""
    session_field: str = ""
    """The body field in which they do, if no header does."""
    flag_options: tuple[str, ...] = ()
    """The options in which requests have flags of features in testing."""
    passed_headers: tuple[str, ...] = ()
    """The other headers of a client that a server of the same dialect may be sent."""


class Serve(Protocol):
    """The server side of a dialect besides its codec. A module satisfies it."""

    @property
    def SERVER(self) -> ServerFacts:  # noqa: N802 -- a constant of the module
        """Its routes, headers and ids."""

    def list_models(self, models: Sequence[ServedModel], query: Mapping[str, str]) -> Json:
        """One page of the list; `InvalidRequestError` if the query is invalid."""

    def describe_model(self, model: ServedModel) -> dict[str, Any]:
        """The description of one model."""

    def counted_call(self, call: WireCall) -> WireCall:
        """The call whose tokens a token-count request asks about."""

    def count_tokens(self, tokens: int) -> Json:
        """The body of a token count."""

    def error_body(self, failure: Failure, *, model: str, request_id: str) -> Json:
        """
        The body for a status; None if a load balancer would answer.

        Its message is that of the failure, or the vendor's message about this model.
        """

    @property
    def SERVED(self) -> Sequence[ServedOperation]:  # noqa: N802 -- a constant of the module
        """Its operations other than lists of models and token counts."""

    def wanted_image(self, request: Request) -> Any:
        """The `ImageInput` of the image that a request for an answer asks for, if it does."""

    def wanted_speech(self, request: Request) -> Any:
        """The `SpeakInput` of the speech that a request for an answer asks for, if it does."""

    def write_batch_file(self, replies: Iterable[Any]) -> bytes:
        """The file with these results (`BatchReply`) of a batch, if the vendor has such files."""

    def wrong_key(self, *, is_missing: bool, message: str | None = None) -> Failure:
        """
        The failure for a request whose key is missing or wrong.

        Its message is the vendor's own, unless another is given.
        """
