"""Response <-> body; the tables of stop reasons and usage."""

from __future__ import annotations

from collections.abc import Mapping

from interlingua.dialects.bedrock_converse.content import read_part, show_part
from interlingua.dialects.bedrock_converse.facts import NAME, extra_for
from interlingua.spec.content import Json, UncheckedJson
from interlingua.spec.contracts import NEUTRAL_PROFILE, NewId, Profile
from interlingua.spec.messages import Message
from interlingua.spec.request import Request
from interlingua.spec.response import FinishReason, Reason, Response, Usage, Warning
from interlingua.wire.fields import (
    carried_body,
    carry_body,
    count,
    extra_of,
    take_object,
    take_text,
    whole_object,
)
from interlingua.wire.ratelimit_headers import parse_rate_limit
from interlingua.wire.tool_calls import mark_cut
from interlingua.wire.usage import Count, Counts, note_limited, read_counts, served_tier

# `StopReason`.
_REASONS: dict[str, Reason] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "guardrail_intervened": "content_filter",
    "content_filtered": "content_filter",
    # The model wrote something that is no answer, and no tool call; it may be asked again.
    "malformed_model_output": "error",
    "malformed_tool_use": "error",
}
_STOP_REASONS: dict[Reason, str] = {  # `end_turn` for the others
    "length": "max_tokens",
    "tool_calls": "tool_use",
    "content_filter": "content_filtered",
}
_OUTPUT = "~output"
"""Our own key in `extra`: unknown fields beside `output.message`."""
_HOUR = "1h"
OWN = (_OUTPUT,)


def decode_response(
    body: UncheckedJson,
    *,
    headers: Mapping[str, str] | None = None,
    new_id: NewId | None = None,  # noqa: ARG001 -- this API always sends ids of tool calls
    profile: Profile = NEUTRAL_PROFILE,  # noqa: ARG001
    request: Request | None = None,  # noqa: ARG001
) -> Response:
    """Return the response that a client received."""
    whole = whole_object(body)
    match whole:
        case {"output": {"message": {"content": list(blocks), **fields}, **beside}}:
            unread = dict(whole)
            del unread["output"]
        case _:
            return carry_body(NAME, body)
    if fields.get("role") == "assistant":
        del fields["role"]
    if beside:
        unread[_OUTPUT] = beside
    content = tuple([read_part(block) for block in blocks])
    finish = decode_stop_reason(take_text(unread, "stopReason"))
    if finish.reason == "length":
        content = mark_cut(content, finish.reason)
    notes: list[Warning] = []
    usage = decode_usage(take_object(unread, "usage"), unread, notes)
    return Response(
        message=Message(role="assistant", content=content, extra=extra_for(fields)),
        finish_reason=finish,
        usage=usage,
        warnings=notes,
        rate_limit=parse_rate_limit(headers or {}),
        raw=body,
        extra={NAME: unread},
    )


def encode_response(response: Response, request: Request | None = None) -> Json:
    """
    Return the body that a server sends.

    With the request that it answers, tool calls are in the form of the tools that it declares.
    """
    carried = carried_body(response, NAME)
    if carried is not None:
        return carried
    from interlingua.streams.declared_calls import declared_response  # of the server side

    response = declared_response(response, request)
    native = NAME in response.extra
    extra = dict(extra_of(response, NAME))
    content = (show_part(part, native=native) for part in response.message.content)
    message: dict[str, Json] = {
        "role": "assistant",
        "content": [block for block in content if block is not None],
        **extra_of(response.message, NAME),
    }
    body: dict[str, Json] = {
        "output": {"message": message, **extra.pop(_OUTPUT, {})},
        "stopReason": encode_stop_reason(response.finish_reason, native=native),
        "usage": encode_usage(response.usage, extra, native=native),
    }
    if not native:
        extra["metrics"] = {"latencyMs": response.latency_ms or 0}
    return body | extra


def decode_stop_reason(raw: str | None) -> FinishReason:
    """An unknown reason becomes `other`; `raw` has its name."""
    return FinishReason(reason=_REASONS.get(raw or "", "other"), raw=raw)


def encode_stop_reason(finish: FinishReason, *, native: bool) -> str | None:
    """The provider's own reason if it is one of this API's, else the nearest."""
    if native and (finish.raw is not None or finish.reason == "other"):
        return finish.raw
    is_known = finish.raw is not None and _REASONS.get(finish.raw) == finish.reason
    return finish.raw if is_known else _STOP_REASONS.get(finish.reason, "end_turn")


class _Tokens(Counts, rename="camel"):
    """`TokenUsage`."""

    input_tokens: Count = None
    output_tokens: Count = None
    cache_read_input_tokens: Count = None
    cache_write_input_tokens: Count = None


def decode_usage(
    wire: UncheckedJson, fields: Mapping[str, UncheckedJson], notes: list[Warning] | None = None
) -> Usage:
    """
    Return the usage: the API's `inputTokens` excludes cached tokens, ours includes them.

    `fields` are those beside it: `serviceTier` says at which rates it is billed.
    """
    if not isinstance(wire, dict):
        return Usage()
    tokens = read_counts(wire, _Tokens, notes)
    read, written = tokens.cache_read_input_tokens or 0, tokens.cache_write_input_tokens or 0
    hourly = _hourly(wire.get("cacheDetails"))
    if hourly > written and notes is not None:
        note_limited("cache_write_1h", hourly, "cache_write", written, notes)
    tier = fields.get("serviceTier")
    return Usage(
        input_tokens=(tokens.input_tokens or 0) + read + written,
        output_tokens=tokens.output_tokens or 0,
        cache_read_tokens=tokens.cache_read_input_tokens,
        cache_write_tokens=tokens.cache_write_input_tokens,
        cache_write_1h_tokens=min(hourly, written) or None,
        service_tier=served_tier(tier.get("type")) if isinstance(tier, dict) else None,
        raw=wire,
    )


def _hourly(details: UncheckedJson) -> int:
    """`cacheDetails` has the written tokens by how long they live."""
    items = details if isinstance(details, list) else []
    return sum(
        count(each.get("inputTokens")) or 0
        for each in items
        if isinstance(each, dict) and each.get("ttl") == _HOUR
    )


def encode_usage(usage: Usage, fields: Mapping[str, Json], *, native: bool) -> dict[str, Json]:
    """The provider's own figures if they still match, else figures made from ours."""
    if native and usage.raw is not None and decode_usage(usage.raw, fields) == usage:
        return usage.raw  # type: ignore[no-any-return]
    read, written = usage.cache_read_tokens, usage.cache_write_tokens
    wire: dict[str, Json] = {
        "inputTokens": max(0, usage.input_tokens - (read or 0) - (written or 0)),
        "outputTokens": usage.output_tokens,
        "totalTokens": usage.input_tokens + usage.output_tokens,
    }
    if read is not None:
        wire["cacheReadInputTokens"] = read
    if written is not None:
        wire["cacheWriteInputTokens"] = written
        if usage.cache_write_1h_tokens is not None:
            hourly = usage.cache_write_1h_tokens
            lives = ((_HOUR, hourly), ("5m", written - hourly))
            wire["cacheDetails"] = [{"ttl": ttl, "inputTokens": n} for ttl, n in lives if n]
    return wire
