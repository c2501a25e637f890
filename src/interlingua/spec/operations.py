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

from interlingua.spec.content import Json
from interlingua.spec.contracts import Profile, WireCall
from interlingua.spec.events import ProviderEvent
from interlingua.spec.response import Reason


class ServedModel(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, repr_omit_defaults=True
):
    """A model as its provider lists it."""

    id: str
    provider: str = ""
    name: str | None = None
    """For people."""
    context_window: int | None = None
    max_output_tokens: int | None = None
    raw: Json = None


class ItemDecoder(Protocol):
    """The bytes of a streamed reply in, its items out."""

    def feed(self, chunk: bytes) -> list[Any]:
        """The items that these bytes complete."""

    def finish(self) -> list[Any]:
        """End of body: what is left, or `StreamError` if the reply was cut short."""


class Operation(msgspec.Struct, frozen=True, kw_only=True):
    """
    One operation of a dialect: how its call is written, and how its reply is read.

    All of it is pure. `HttpAdapter.perform` adds the address and the key, sends the call, raises
    the error of a reply that is one, and calls `decode` with any other.
    """

    name: str
    encode: Callable[[Any, Profile], WireCall]
    """The call for a value; the profile is that of `value.model`, or of no model in particular."""
    decode: Callable[[int, Mapping[str, str], bytes], Any]
    """The result in a reply: status, headers (names in lower case), body."""
    stream_decoder: Callable[[], ItemDecoder] | None = None
    """
    Makes the decoder of a reply that is read as it comes.

    The result of an operation that has it is an async iterator of items, and `decode` is not
    called. Until the reply begins, a failure is raised (and retried) by `perform`.
    """
    next_page: Callable[[WireCall, Mapping[str, str], bytes], WireCall | None] | None = None
    """
    The call for the page after this reply; None after the last.

    An operation that has it decodes each page to a list, and its result is all of them joined.
    """


RouteKind: TypeAlias = Literal["answer", "count", "embed", "models", "model", "unknown"]
"""What a request asks for: an answer, a token count, vectors, the models, one of them."""


class ServerRoute(msgspec.Struct, frozen=True, kw_only=True):
    """Which requests are of one kind. The group `model` of the pattern is a model's id."""

    method: str
    pattern: re.Pattern[str]
    """Of the whole path. It begins with `.*`, because vendors and proxies add prefixes."""
    kind: RouteKind
    is_shared: bool = False
    """Other dialects have this path too; the request's headers say whose it is."""


class ServerFacts(msgspec.Struct, frozen=True, kw_only=True):
    """How a server of one dialect looks from outside."""

    routes: tuple[ServerRoute, ...] = ()
    own_headers: tuple[str, ...] = ()
    """A request with one of these headers is for this dialect, where the path does not say it."""
    own_paths: tuple[str, ...] = ()
    """The same for these pieces of a path."""
    is_common: bool = False
    """Requests that no dialect recognises are for this one, because most servers speak it."""
    key_headers: tuple[str, ...] = ("authorization",)
    key_query: str = ""
    """The query parameter that may hold the key."""
    required_headers: tuple[str, ...] = ()
    stream_field: str = "stream"
    """The field of a body that is true to ask for a stream."""
    stream_path: str = ""
    """The end of a path that asks for a stream, whatever the body says."""
    sse_query: str = ""
    """A stream is SSE only if the query has this, and else one JSON array."""
    ping: ProviderEvent | None = None
    """The keep-alive event of its streams."""
    content_type: str = "application/json"
    request_id_header: str | None = None
    retry_after_header: bool = True
    """It says in a header how long to wait; if not, its error body does."""
    limit_headers: Mapping[str, str] = {}
    """Headers by the names of `RateLimit` and `reset`, for requests and for tokens."""
    resets_at: bool = False
    """A reset is a moment, not a duration."""
    response_prefix: str = ""
    call_prefix: str = ""
    thinking_prefix: str | None = None
    """Of the ids of thoughts, where they have ids and encrypted data instead of signatures."""
    refusal: Reason = "stop"
    """Why an answer ended that is a refusal."""


class Failure(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, repr_omit_defaults=True
):
    """An error as a server sends it: its status, and what replaces the vendor's usual words."""

    status: int
    message: str | None = None
    body: Json = None
    """The whole body: bytes or text as they are, anything else as JSON."""
    retry_after: float | None = None
    model: str | None = None
    """The model it is about, if not the one that was asked."""


class Serve(Protocol):
    """What a server of a dialect needs and only the dialect knows. A module satisfies it."""

    @property
    def SERVER(self) -> ServerFacts:  # noqa: N802 -- a constant of the module
        """Its routes, headers and ids."""

    def list_models(self, models: Sequence[ServedModel], query: Mapping[str, str]) -> Json:
        """One page of the models; `InvalidRequestError` if the query asks for none there is."""

    def describe_model(self, model: ServedModel) -> dict[str, Any]:
        """One model."""

    def counted_call(self, call: WireCall) -> WireCall:
        """The call whose tokens a call for a count asks about."""

    def count_tokens(self, tokens: int) -> Json:
        """A token count."""

    def error_body(self, failure: Failure, *, model: str, request_id: str) -> Json:
        """
        The body for a status; None where what answers is a load balancer.

        Its message is that of the failure, or what the vendor says about this model.
        """

    def wrong_key(self, *, is_missing: bool) -> Failure:
        """The answer to a request whose key is missing or wrong."""
