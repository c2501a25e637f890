"""Response <-> body; the tables of stop reasons and usage."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from interlingua.dialects.anthropic_messages.content import encode_part, read_part, show_thinking
from interlingua.dialects.anthropic_messages.facts import NAME
from interlingua.spec.content import Audio, Document, Image, Json, Part, Thinking
from interlingua.spec.contracts import NEUTRAL_PROFILE, NewId, Profile
from interlingua.spec.messages import Message
from interlingua.spec.response import FinishReason, Reason, Response, Usage
from interlingua.spec.warnings import WarningList
from interlingua.wire.fields import (
    Fields,
    carried_body,
    carry_body,
    count,
    counts,
    restore,
    whole_object,
)
from interlingua.wire.ratelimit_headers import parse_rate_limit

_REASONS: dict[str, Reason] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool_calls",
    "refusal": "content_filter",
    "pause_turn": "other",
    "compaction": "other",
}
_STOP_REASONS: dict[Reason, str] = {
    "stop": "end_turn",
    "length": "max_tokens",
    "tool_calls": "tool_use",
    "content_filter": "refusal",
    "cancelled": "end_turn",
    "error": "end_turn",
    "other": "end_turn",
}
_COUNTS = (
    "input_tokens",
    "output_tokens",
    "cache_read_input_tokens",
    "cache_creation_input_tokens",
)
_CONSTANTS = {"type": "message", "role": "assistant", "stop_sequence": None}


def decode_response(
    body: Json,
    *,
    headers: Mapping[str, str] | None = None,
    new_id: NewId | None = None,  # noqa: ARG001 -- this API always names its calls
    profile: Profile = NEUTRAL_PROFILE,  # noqa: ARG001
) -> Response:
    """What a client received."""
    whole = whole_object(body)
    if not isinstance(whole.get("content"), list):
        return carry_body(NAME, body)
    fields = Fields(whole, strict=False)
    take_constants(fields.left)
    content = tuple([read_part(block) for block in fields.take("content")])
    usage = decode_usage(fields.object("usage"))
    return Response(
        id=fields.text("id") or "",
        model=fields.text("model") or "",
        message=Message(role="assistant", content=content),
        finish_reason=decode_stop_reason(fields.text("stop_reason")),
        usage=usage,
        rate_limit=parse_rate_limit(headers or {}),
        raw=body,
        extra={NAME: fields.left},
    )


def encode_response(response: Response) -> Json:
    """What a server sends."""
    carried = carried_body(response, NAME)
    if carried is not None:
        return carried
    native = NAME in response.extra
    content = (encode_answer_part(part, native=native) for part in response.message.content)
    body: dict[str, Any] = {
        "id": response.id,
        "type": "message",
        "role": "assistant",
        "model": response.model,
        "content": [block for block in content if block is not None],
        "stop_reason": encode_stop_reason(response.finish_reason, native=native),
        "usage": encode_usage(response.usage, native=native),
    }
    body = restore(body, response, NAME)
    body.setdefault("stop_sequence", None)
    return body


def encode_answer_part(part: Part, *, native: bool) -> dict[str, Any] | None:
    """
    The block that says a part of an answer; None if there is none.

    Another model's thoughts may be shown there, but not proven. Media have no block in an
    answer, whatever others may have made.
    """
    if isinstance(part, Thinking):
        return show_thinking(part)
    if isinstance(part, (Image, Audio, Document)) and not native:
        return None
    return encode_part(part, WarningList())


def decode_stop_reason(raw: str | None) -> FinishReason:
    """An unknown reason is `other`, with its own name kept."""
    return FinishReason(reason=_REASONS.get(raw or "", "other"), raw=raw)


def encode_stop_reason(finish: FinishReason, *, native: bool) -> str | None:
    """The provider's own word if it was this one's, else the nearest."""
    if native and (finish.raw is not None or finish.reason == "other"):
        return finish.raw
    is_known = finish.raw is not None and _REASONS.get(finish.raw) == finish.reason
    return finish.raw if is_known else _STOP_REASONS[finish.reason]


def decode_usage(wire: Any) -> Usage:
    """`input_tokens` leaves out the cached ones here; ours has them."""
    if not isinstance(wire, dict):
        return Usage()
    going_in, going_out, read, written = counts(wire, *_COUNTS)
    details = wire.get("output_tokens_details")
    return Usage(
        input_tokens=(going_in or 0) + (read or 0) + (written or 0),
        output_tokens=going_out or 0,
        reasoning_tokens=count(details.get("thinking_tokens"))
        if isinstance(details, dict)
        else None,
        cache_read_tokens=read,
        cache_write_tokens=written,
        raw=wire,
    )


def encode_usage(usage: Usage, *, native: bool) -> dict[str, Any]:
    """The provider's own figures if they say the same, else made from ours."""
    if native and usage.raw is not None and decode_usage(usage.raw) == usage:
        return usage.raw  # type: ignore[no-any-return]
    read, written = usage.cache_read_tokens or 0, usage.cache_write_tokens or 0
    wire: dict[str, Any] = {
        "input_tokens": max(0, usage.input_tokens - read - written),
        "output_tokens": usage.output_tokens,
    }
    if usage.cache_write_tokens is not None:
        wire["cache_creation_input_tokens"] = written
    if usage.cache_read_tokens is not None:
        wire["cache_read_input_tokens"] = read
    if usage.reasoning_tokens is not None:
        wire["output_tokens_details"] = {"thinking_tokens": usage.reasoning_tokens}
    return wire


def take_constants(left: dict[str, Any]) -> None:
    """Some fields say nothing when they are what they usually are."""
    for name, value in _CONSTANTS.items():
        if name in left and left[name] == value:
            del left[name]
