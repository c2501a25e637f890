"""Operations: what a provider does besides answering, e.g. counting tokens or listing models."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import msgspec

from interlingua.spec.content import Json
from interlingua.spec.contracts import Profile, WireCall


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
