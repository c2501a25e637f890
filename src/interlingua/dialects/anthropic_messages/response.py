"""Response <-> body; the tables of stop reasons and usage."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from operator import add

from msgspec.structs import replace

from interlingua.dialects.anthropic_messages.content import (
    encode_part,
    read_part,
    show_text,
    show_thinking,
)
from interlingua.dialects.anthropic_messages.facts import NAME
from interlingua.spec.content import MEDIA_TYPES, Json, Part, Text, Thinking, UncheckedJson
from interlingua.spec.contracts import NEUTRAL_PROFILE, NewId, Profile
from interlingua.spec.messages import Message
from interlingua.spec.request import Request
from interlingua.spec.response import FinishReason, Reason, Response, Usage, UsagePass, Warning
from interlingua.spec.warnings import WarningList
from interlingua.wire.fields import (
    carried_body,
    carry_body,
    restore,
    take_object,
    take_text,
    text_of,
    whole_object,
)
from interlingua.wire.ratelimit_headers import parse_rate_limit
from interlingua.wire.tool_calls import mark_cut
from interlingua.wire.usage import Count, Counts, note_limited, own_cost, read_counts

# https://platform.claude.com/docs/en/build-with-claude/handling-stop-reasons
_REASONS: dict[str, Reason] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool_calls",
    "refusal": "content_filter",
    "pause_turn": "other",  # `HistoryRules.paused` continues it
    "compaction": "other",  # a beta: the answer is only a summary of the conversation
}
_STOP_REASONS: dict[Reason, str] = {  # `end_turn` for the others
    "length": "max_tokens",
    "tool_calls": "tool_use",
    "content_filter": "refusal",
}
_CACHE_READ = "cache_read_input_tokens"
_CACHE_WRITE = "cache_creation_input_tokens"
_CREATION = "cache_creation"
_HOUR = "ephemeral_1h_input_tokens"
_ATTEMPTS = frozenset(("message", "fallback_message"))
"""Entries of `iterations` that are attempts at the answer; others are made beside it."""
_SERVED = {"batch": "batch"}
"""
Served tiers with rates of their own. The priority tier is paid by a commitment in advance.

https://platform.claude.com/docs/en/api/service-tiers
"""


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
    if not isinstance(whole.get("content"), list):
        return carry_body(NAME, body)
    unread = dict(whole)
    take_constants(unread)
    content = tuple([read_part(block) for block in unread.pop("content")])
    finish = decode_stop_reason(take_text(unread, "stop_reason"))
    if finish.reason == "length":
        content = mark_cut(content, finish.reason)
    notes: list[Warning] = []
    return Response(
        id=take_text(unread, "id") or "",
        model=take_text(unread, "model") or "",
        message=Message(role="assistant", content=content),
        finish_reason=finish,
        usage=decode_usage(take_object(unread, "usage"), notes),
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
    content = (encode_answer_part(part, native=native) for part in response.message.content)
    body: dict[str, Json] = {
        "id": response.id,
        "type": "message",
        "role": "assistant",
        "model": response.model,
        "content": [block for block in content if block is not None],
        "stop_reason": encode_stop_reason(response.finish_reason, native=native),
        "usage": encode_usage(response.usage, native=native),
    }
    restore(body, response, NAME).setdefault("stop_sequence", None)
    if response.created_at is not None:
        from interlingua.dialects.anthropic_messages.vendor_fields import complete_usage

        body["usage"] = complete_usage(encode_usage(response.usage, native=native))
    return body


def encode_answer_part(part: Part, *, native: bool) -> dict[str, Json] | None:
    """Return the block of a part of a response; None if the API has no block for it."""
    if isinstance(part, Thinking):
        return show_thinking(part)
    if isinstance(part, Text):
        return show_text(part)
    if isinstance(part, MEDIA_TYPES) and not native:
        return None
    return encode_part(part, WarningList())


def decode_stop_reason(raw: str | None) -> FinishReason:
    """An unknown reason becomes `other`; `raw` has its name."""
    return FinishReason(reason=_REASONS.get(raw or "", "other"), raw=raw)


def encode_stop_reason(finish: FinishReason, *, native: bool) -> str | None:
    """The provider's own reason if it is one of this API's, else the nearest."""
    if native and (finish.raw is not None or finish.reason == "other"):
        return finish.raw
    is_known = finish.raw is not None and _REASONS.get(finish.raw) == finish.reason
    return finish.raw if is_known else _STOP_REASONS.get(finish.reason, "end_turn")


class _Written(Counts):
    """`cache_creation`."""

    ephemeral_1h_input_tokens: Count = None


class _Made(Counts):
    """`output_tokens_details`."""

    thinking_tokens: Count = None


class _Hosted(Counts):
    """`server_tool_use`."""

    web_search_requests: Count = None


class _Tokens(Counts):
    """`usage`."""

    input_tokens: Count = None
    output_tokens: Count = None
    cache_read_input_tokens: Count = None
    cache_creation_input_tokens: Count = None
    cache_creation: _Written | None = None
    output_tokens_details: _Made | None = None
    server_tool_use: _Hosted | None = None


def decode_usage(wire: UncheckedJson, notes: list[Warning] | None = None) -> Usage:
    """
    Return the usage: the sum of the passes that are billed, if the API lists them.

    The API's `input_tokens` excludes cached tokens, ours includes them.

    «Total input tokens in a request is the summation of `input_tokens`,
    `cache_creation_input_tokens`, and `cache_read_input_tokens`» (`Message.usage`). Figures that
    cannot be add warnings to `notes`.
    """
    if not isinstance(wire, dict):
        return Usage()
    tokens = read_counts(wire, _Tokens, notes)
    read, written = tokens.cache_read_input_tokens or 0, tokens.cache_creation_input_tokens or 0
    output, creation = tokens.output_tokens or 0, tokens.cache_creation
    made, hosted = tokens.output_tokens_details, tokens.server_tool_use
    thinking = None if made is None else made.thinking_tokens
    if thinking is not None and thinking > output:
        # `output_tokens` includes thinking; with more thinking than output, it does not.
        output += thinking
    hourly = 0 if creation is None else creation.ephemeral_1h_input_tokens or 0
    passes, tier = wire.get("iterations"), wire.get("service_tier")
    if hourly > written and notes is not None and not passes:  # they have figures of their own
        note_limited("cache_write_1h", hourly, "cache_write", written, notes)
    if isinstance(tier, str):
        # https://platform.claude.com/docs/en/build-with-claude/fast-mode has prices of its own
        tier = "fast" if wire.get("speed") == "fast" else _SERVED.get(tier)
    usage = Usage(
        input_tokens=(tokens.input_tokens or 0) + read + written,
        output_tokens=output,
        reasoning_tokens=thinking,
        cache_read_tokens=tokens.cache_read_input_tokens,
        cache_write_tokens=tokens.cache_creation_input_tokens,
        cache_write_1h_tokens=min(hourly, written) or None,
        web_searches=None if hosted is None else hosted.web_search_requests or None,
        service_tier=tier if isinstance(tier, str) else None,
        reported_cost=own_cost(wire) if "cost" in wire else None,
        raw=wire,
    )
    return _add_passes(usage, passes) if passes else usage


def _add_passes(usage: Usage, iterations: UncheckedJson) -> Usage:
    """
    Return the usage with the sum of the passes that are billed.

    «A `compaction` entry's tokens are not included in the top-level `usage` fields»
    (`BetaUsage.iterations`). Seen in recordings: nor are those of an advisor.
    """
    passes = _billed_passes(iterations)
    if not passes:
        return usage
    total = reduce(add, [each.usage for each in passes])
    return replace(
        usage,
        input_tokens=total.input_tokens,
        output_tokens=max(total.output_tokens, usage.reasoning_tokens or 0),
        cache_read_tokens=total.cache_read_tokens,
        cache_write_tokens=total.cache_write_tokens,
        cache_write_1h_tokens=total.cache_write_1h_tokens,
        passes=passes if len(passes) > 1 or passes[0].model else (),
    )


def _billed_passes(iterations: UncheckedJson) -> tuple[UsagePass, ...]:
    """
    Return the passes that are billed; none if no entry has counts.

    An attempt that generated output is billed at the rates of its model, also if it declined in
    the middle; one that declined before any output is not:
    https://platform.claude.com/docs/en/build-with-claude/refusals-and-fallback
    """
    entries = iterations if isinstance(iterations, list) else []
    entries = [each for each in entries if isinstance(each, dict) and "output_tokens" in each]
    passes: list[UsagePass] = []
    later: set[str] = set()  # models of the attempts that follow
    for entry in reversed(entries):
        figures = {name: value for name, value in entry.items() if name != "iterations"}
        usage, kind = replace(decode_usage(figures), raw=None), entry.get("type")
        model = text_of(entry.get("model"))
        if usage.output_tokens or kind != "message" or later <= {model}:
            passes.append(UsagePass(model=model, usage=usage))
        if kind in _ATTEMPTS:
            later.add(model)
    return tuple(reversed(passes))


def encode_usage(usage: Usage, *, native: bool) -> dict[str, Json]:
    """The provider's own figures if they still match, else figures made from ours."""
    if native and usage.raw is not None and decode_usage(usage.raw) == usage:
        return usage.raw  # type: ignore[no-any-return]
    read, written = usage.cache_read_tokens, usage.cache_write_tokens
    wire: dict[str, Json] = {
        "input_tokens": max(0, usage.input_tokens - (read or 0) - (written or 0)),
        "output_tokens": usage.output_tokens,
    }
    if written is not None:
        wire[_CACHE_WRITE] = written
        if usage.cache_write_1h_tokens is not None:
            hourly = usage.cache_write_1h_tokens
            wire[_CREATION] = {"ephemeral_5m_input_tokens": written - hourly, _HOUR: hourly}
    if read is not None:
        wire[_CACHE_READ] = read
    if usage.reasoning_tokens is not None:
        wire["output_tokens_details"] = {"thinking_tokens": usage.reasoning_tokens}
    return wire


def take_constants(fields: dict[str, Json]) -> None:
    """Removes the fields that have their usual value: encoding adds them again."""
    # So that `extra` of the usual answer is empty.
    if fields.get("type") == "message":
        del fields["type"]
    if fields.get("role") == "assistant":
        del fields["role"]
    if "stop_sequence" in fields and fields["stop_sequence"] is None:
        del fields["stop_sequence"]
