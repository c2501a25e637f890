"""What differs between the vendors besides their dialects: ids, headers, keys. One row each."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qs

import msgspec

from interlingua.spec.response import RateLimit, Reason

_BEARER = "bearer "
_KEY_HEADERS = ("authorization", "x-api-key", "x-goog-api-key", "api-key")


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """How one vendor's server looks from outside."""

    dialect: str
    response_prefix: str
    call_prefix: str
    thinking_prefix: str | None = None
    """Of the ids of thoughts, where they have ids and encrypted data instead of signatures."""
    refusal: Reason = "stop"
    """Why an answer ended that is a refusal."""
    request_id_header: str | None = None
    limit_headers: Mapping[str, str] = {}
    """Headers by the names of `RateLimit` and `reset`, for requests and for tokens."""
    resets_at: bool = False
    """A reset is a moment, not a duration."""
    content_type: str = "application/json"


_OPENAI_LIMITS = {
    "requests_limit": "x-ratelimit-limit-requests",
    "requests_remaining": "x-ratelimit-remaining-requests",
    "requests_reset": "x-ratelimit-reset-requests",
    "tokens_limit": "x-ratelimit-limit-tokens",
    "tokens_remaining": "x-ratelimit-remaining-tokens",
    "tokens_reset": "x-ratelimit-reset-tokens",
}

ROWS: dict[str, Row] = {
    row.dialect: row
    for row in (
        Row(
            dialect="openai_responses",
            response_prefix="resp_",
            call_prefix="call_",
            thinking_prefix="rs_",
            request_id_header="x-request-id",
            limit_headers=_OPENAI_LIMITS,
        ),
        Row(
            dialect="openai_chat",
            response_prefix="chatcmpl-",
            call_prefix="call_",
            request_id_header="x-request-id",
            limit_headers=_OPENAI_LIMITS,
        ),
        Row(
            dialect="anthropic_messages",
            response_prefix="msg_",
            call_prefix="toolu_",
            refusal="content_filter",
            request_id_header="request-id",
            limit_headers={
                "requests_limit": "anthropic-ratelimit-requests-limit",
                "requests_remaining": "anthropic-ratelimit-requests-remaining",
                "requests_reset": "anthropic-ratelimit-requests-reset",
                "tokens_limit": "anthropic-ratelimit-tokens-limit",
                "tokens_remaining": "anthropic-ratelimit-tokens-remaining",
                "tokens_reset": "anthropic-ratelimit-tokens-reset",
            },
            resets_at=True,
        ),
        Row(
            dialect="gemini_generate",
            response_prefix="",
            call_prefix="",
            refusal="content_filter",
            content_type="application/json; charset=UTF-8",
        ),
    )
}


def request_id(number: int) -> str:
    """The id of a request, which says that it is simulated."""
    return f"req_simulated{number:06d}"


def limit_headers(row: Row, limit: RateLimit, now: datetime | None = None) -> dict[str, str]:
    """The vendor's headers for these limits; none where it has none."""
    said: dict[str, object] = {
        name: getattr(limit, name)
        for name in ("requests_limit", "requests_remaining", "tokens_limit", "tokens_remaining")
    }
    if limit.reset_after is not None:
        reset = f"{limit.reset_after:g}s"
        if row.resets_at:
            moment = (now or datetime.now(UTC)) + timedelta(seconds=limit.reset_after)
            reset = moment.isoformat().replace("+00:00", "Z")
        for bucket in ("requests", "tokens"):
            if said[f"{bucket}_limit"] is not None or said[f"{bucket}_remaining"] is not None:
                said[f"{bucket}_reset"] = reset
    return {
        header: str(said[name])
        for name, header in row.limit_headers.items()
        if said.get(name) is not None
    }


def read_key(headers: Mapping[str, str], query: str) -> str | None:
    """The key a request carries, wherever a vendor's client puts it."""
    for name in _KEY_HEADERS:
        value = headers.get(name)
        if value:
            return value[len(_BEARER) :] if value.lower().startswith(_BEARER) else value
    return next(iter(parse_qs(query).get("key", ())), None)
