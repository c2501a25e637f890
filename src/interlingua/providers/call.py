"""A request made ready for its provider: encoded, addressed, checked. Nothing is sent here."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from time import perf_counter
from typing import Any

import msgspec

from interlingua.spec.contracts import HttpRequest, Profile, WireCall
from interlingua.spec.request import Request
from interlingua.spec.response import Warning

logger: logging.Logger = logging.getLogger("interlingua")
logger.addHandler(logging.NullHandler())  # nothing is printed unless the program sets up logging

_place = re.compile(r"messages\[(\d+)\](?:\.content\[(\d+)\])?").match


class Ready(msgspec.Struct, frozen=True, kw_only=True):
    """A request as it is sent, by each of its attempts."""

    request: Request
    """With the bytes of its files, and with its `request_id`."""
    profile: Profile
    http: HttpRequest
    warnings: tuple[Warning, ...] = ()


class DryRun(msgspec.Struct, frozen=True, kw_only=True):
    """What would be sent, without key."""

    profile: Profile
    url: str
    headers: Mapping[str, str]
    body: Any
    warnings: tuple[Warning, ...] = ()

    def __repr__(self) -> str:
        # the headers may hold keys, and the body is large
        from interlingua.wire.secrets import redact_headers

        return (
            f"DryRun({self.url}, headers={redact_headers(self.headers)}, "
            f"warnings={len(self.warnings)})"
        )


_WHOLE = {"content-type": "application/json", "accept": "application/json"}
_STREAM = {
    "content-type": "application/json",
    "accept": "text/event-stream",
    "accept-encoding": "identity",  # a packer holds events back
}


def headers_for(wire: WireCall, defaults: Mapping[str, str]) -> dict[str, str]:
    """The headers of a call: the usual ones, the defaults, the encoder's, each over the last."""
    usual = _STREAM if wire.stream else _WHOLE
    if defaults.keys().isdisjoint(wire.headers):
        return {**usual, **defaults, **wire.headers}
    return join_headers(usual, defaults, wire.headers)


def join_headers(*layers: Mapping[str, str]) -> dict[str, str]:
    """
    Headers by their names in small letters, each layer over the last.

    Flags that several of them name (`anthropic-beta`) are joined, not replaced.
    """
    headers: dict[str, str] = {}
    for given in layers:
        for name, value in given.items():
            lowered = name.lower()
            if lowered.endswith("-beta") and lowered in headers:
                both = (*headers[lowered].split(","), *value.split(","))
                value = ",".join(dict.fromkeys(flag.strip() for flag in both))  # noqa: PLW2901
            headers[lowered] = value
    return headers


def log_losses(warnings: tuple[Warning, ...], request: Request, adapter: str) -> None:
    """One record for each thing that could not be said as it was asked."""
    for warning in warnings:
        message_id, kind = _about(warning, request)
        logger.warning(
            "%s: %s",
            warning.code,
            warning.message,
            extra={
                "request_id": request.request_id,
                "message_id": message_id,
                "part_kind": kind,
                "adapter": adapter,
                "reason": warning.code,
            },
        )


def since(began: float) -> int:
    """Milliseconds, rounded, from that moment of `perf_counter` on."""
    return round((perf_counter() - began) * 1000)


def _about(warning: Warning, request: Request) -> tuple[str | None, str | None]:
    """The id of the message and the kind of part a warning's path names."""
    found = _place(warning.path or "")
    if found is None:
        return None, None
    messages = request.messages
    at = int(found.group(1))
    if at >= len(messages):
        return None, None
    message = messages[at]
    part = int(found.group(2)) if found.group(2) else None
    if part is None or part >= len(message.content):
        return message.id, None
    return message.id, message.content[part].kind
