"""
Operations besides answering (token counts, lists of models), and the server side of a dialect.

A dialect that can be served has a module `serve` (see `Serve`); a dialect without one still works
for clients.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, Protocol, TypeAlias

import msgspec

from interlingua.spec.content import Json, Record
from interlingua.spec.contracts import Profile, WireCall
from interlingua.spec.events import ProviderEvent
from interlingua.spec.response import Reason


class ServedModel(Record, frozen=True, kw_only=True):
    """A model as its provider lists it."""

    id: str
    provider: str = ""
    name: str | None = None
    """The display name."""
    context_window: int | None = None
    max_output_tokens: int | None = None
    raw: Json = None


class ItemDecoder(Protocol):
    """Decodes the bytes of a streamed reply into items."""

    def feed(self, chunk: bytes) -> list[Any]:
        """The items that this chunk completes."""

    def finish(self) -> list[Any]:
        """End of body: the last items, or `StreamError` if the reply is incomplete."""


class Operation(msgspec.Struct, frozen=True, kw_only=True):
    """
    One operation of a dialect: how to encode its call and decode its reply.

    All of it is pure. `HttpAdapter.perform` adds the URL and the key, sends the call, and raises an
    error reply as an exception.
    """

    name: str
    encode: Callable[[Any, Profile], WireCall]
    """The call for a value; the profile is that of `value.model`, if there is one."""
    decode: Callable[[int, Mapping[str, str], bytes], Any]
    """The result of a reply: status, headers (names in lower case), body."""
    stream_decoder: Callable[[], ItemDecoder] | None = None
    """
    Creates the decoder of a streamed reply.

    The result of the operation is then an async iterator of items, and `decode` is not called.
    `perform` raises (and retries) failures until the reply begins.
    """
    next_page: Callable[[WireCall, Mapping[str, str], bytes], WireCall | None] | None = None
    """
    The call for the page after this reply; None after the last page.

    `decode` then returns a list for each page, and the result is all of them joined.
    """


RouteKind: TypeAlias = Literal["answer", "count", "embed", "models", "model", "unknown"]
"""The kind of a request: answer, token count, embeddings, list of models, one model."""


class ServerRoute(msgspec.Struct, frozen=True, kw_only=True):
    """The method and path of one kind of request. The group `model` is the id of a model."""

    method: str
    pattern: re.Pattern[str]
    """Matches the whole path. It starts with `.*`, because vendors and proxies add prefixes."""
    kind: RouteKind
    is_shared: bool = False
    """Other dialects have this path too; the headers of the request decide."""


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
    stream_field: str = "stream"
    """The body field that is true to request a stream."""
    stream_path: str = ""
    """The end of a path that requests a stream, whatever the body says."""
    sse_query: str = ""
    """A stream is SSE only if the query contains this, otherwise one JSON array."""
    ping: ProviderEvent | None = None
    """The keep-alive event of its streams."""
    content_type: str = "application/json"
    request_id_header: str | None = None
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
    refusal: Reason = "stop"
    """The finish reason of a refusal."""


class Failure(Record, frozen=True, kw_only=True):
    """An error that a server sends: its status, and what replaces the vendor's default body."""

    status: int
    message: str | None = None
    body: Json = None
    """The whole body: bytes or text are sent unchanged, anything else as JSON."""
    retry_after: float | None = None
    model: str | None = None
    """The model in the message; default: the requested one."""


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

    def wrong_key(self, *, is_missing: bool) -> Failure:
        """The failure for a request whose key is missing or wrong."""
