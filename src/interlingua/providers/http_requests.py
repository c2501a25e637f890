"""The HTTP requests of calls of a model: headers and addresses. Nothing is sent here."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec
from msgspec.structs import replace

from interlingua.providers.tariffs import Tariffs
from interlingua.runtime.ulid import new_ulid
from interlingua.spec.content import UncheckedJson
from interlingua.spec.contracts import HttpRequest, Profile
from interlingua.spec.request import Request
from interlingua.spec.response import Warning

ACCEPT = {"accept": "application/json"}
# Compression is declined for streams, because a compressor delays events.
ACCEPT_STREAM = {"accept": "text/event-stream", "accept-encoding": "identity"}
_JSON = {"content-type": "application/json", **ACCEPT}
_JSON_STREAM = {"content-type": "application/json", **ACCEPT_STREAM}
_MAX_ID = 480  # characters; OpenAI accepts 512 in the header, and the step and attempt follow


class Encoded(msgspec.Struct, frozen=True, kw_only=True):
    """A request that is encoded: what is sent, but not yet where to and with which key."""

    request: Request
    """With the bytes of its files, and with its `request_id`."""
    profile: Profile
    path: str
    headers: Mapping[str, str] = {}
    """The headers that this request needs besides those of every call."""
    body: bytes
    warnings: tuple[Warning, ...] = ()
    stream: bool = False
    """Whether the reply is a stream."""
    left_out: tuple[str, ...] = ()
    """The names of tools that the behaviour of the provider did not send."""


class Ready(msgspec.Struct, frozen=True, kw_only=True):
    """A request that is encoded, addressed and signed: every attempt sends the same bytes."""

    request: Request
    """As in `Encoded`."""
    profile: Profile
    http: HttpRequest
    warnings: tuple[Warning, ...] = ()
    stream: bool = False
    """As in `Encoded`."""
    tariffs: Tariffs
    """The prices of the call."""
    left_out: tuple[str, ...] = ()
    """As in `Encoded`."""
    id_header: str | None = None
    """The header with `<request id>-<step>-<attempt>`, if there is one."""

    def for_attempt(
        self,
        step: int,
        attempt: int,
        on_resend: Callable[[], object] | None = None,
        on_connect: Callable[[bool], object] | None = None,
    ) -> Ready:
        """The same for another attempt; two attempts may be under way at once."""
        headers = self.http.headers
        if self.id_header is not None:
            headers = {**headers, self.id_header: f"{self.request.request_id}-{step}-{attempt}"}
        http = replace(self.http, headers=headers, on_resend=on_resend, on_connect=on_connect)
        return replace(self, http=http)


class DryRun(msgspec.Struct, frozen=True, kw_only=True):
    """What would be sent, without the API key."""

    profile: Profile
    url: str
    headers: Mapping[str, str]
    body: UncheckedJson
    warnings: tuple[Warning, ...] = ()
    addendum: str = ""
    """What the behaviour of the provider added to the system prompt."""
    left_out: tuple[str, ...] = ()
    """As in `Encoded`."""

    def __repr__(self) -> str:
        # The headers may hold keys, and the body may be large.
        from interlingua.wire.secrets import redact_headers

        return (
            f"DryRun({self.url}, headers={redact_headers(self.headers)}, "
            f"warnings={len(self.warnings)})"
        )


def with_defaults(request: Request, *, strict: bool) -> Request:
    """The request with an id, and with the loss policy that `strict` stands for."""
    return replace(
        request,
        request_id=request.request_id or new_ulid(),
        on_loss=request.on_loss or ("strict" if strict else None),
    )


def headers_for(
    own: Mapping[str, str], defaults: Mapping[str, str], *, stream: bool
) -> dict[str, str]:
    """The headers of a call: the headers of its mode, then the defaults, then its own."""
    mode = _JSON_STREAM if stream else _JSON
    if not own:
        return {**mode, **defaults}
    if defaults.keys().isdisjoint(own):
        return {**mode, **defaults, **own}
    return join_headers(mode, defaults, own)


def join_headers(*layers: Mapping[str, str]) -> dict[str, str]:
    """
    Merge headers under lower-case names; a later layer replaces an earlier one.

    Lists of flags (`anthropic-beta`) are joined instead.
    """
    headers: dict[str, str] = {}
    for layer in layers:
        for name, value in layer.items():
            lowered = name.lower()
            if lowered.endswith("-beta") and lowered in headers:
                flags = (*headers[lowered].split(","), *value.split(","))
                value = ",".join(dict.fromkeys(flag.strip() for flag in flags))  # noqa: PLW2901
            headers[lowered] = value
    return headers


def add_attempt_id(
    headers: dict[str, str], header: str, request_id: str | None, step: int, attempt: int
) -> str | None:
    """Add the header with the id of an attempt; returns its name, None if it cannot be added."""
    # A caller's id may not be valid in a header; a header that the caller has set is kept.
    known = request_id or ""
    is_valid = 0 < len(known) <= _MAX_ID and known.isascii() and known.isprintable()
    if not is_valid or header in headers:
        return None
    headers[header] = f"{known}-{step}-{attempt}"
    return header
