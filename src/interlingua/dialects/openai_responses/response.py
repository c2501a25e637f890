"""Response <-> body; the tables of statuses and usage."""

from __future__ import annotations

from collections.abc import Mapping

from interlingua.dialects.openai_responses.facts import NAME
from interlingua.dialects.openai_responses.hosted_uses import OwnCalls
from interlingua.dialects.openai_responses.messages import ItemEncoder, read_item
from interlingua.dialects.openai_responses.request import repeated_fields
from interlingua.spec.content import Image, Json, Opaque, Part, Refusal, ToolCall
from interlingua.spec.contracts import NEUTRAL_PROFILE, NewId, Profile
from interlingua.spec.events import StreamStart
from interlingua.spec.messages import Message
from interlingua.spec.request import Request
from interlingua.spec.response import FinishReason, Reason, Response, Usage, Warning
from interlingua.spec.warnings import WarningList, make_warning
from interlingua.wire.fields import (
    carried_body,
    carry_body,
    extra_of,
    restore,
    take_object,
    take_text,
    whole_object,
)
from interlingua.wire.ratelimit_headers import parse_rate_limit
from interlingua.wire.tool_calls import call_ids, counting_ids, mark_cut, plain_calls
from interlingua.wire.usage import Count, Counts, make_usage, read_counts, served_tier

_STATUSES: dict[str, Reason] = {
    "completed": "stop",
    "incomplete": "other",
    "failed": "error",
    "cancelled": "cancelled",
    "in_progress": "other",
    "queued": "other",
}
# The SDK's `IncompleteDetails.reason`; there is no finish reason besides.
_INCOMPLETE: dict[str, Reason] = {
    "max_output_tokens": "length",
    "content_filter": "content_filter",
    "max_messages": "other",
    "steered": "other",
}
_STATUS_OF: dict[Reason, str] = {  # `completed` for the others
    "length": "incomplete",
    "content_filter": "incomplete",
    "cancelled": "cancelled",
    "error": "failed",
}
_INCOMPLETE_OF: dict[Reason, str] = {
    "length": "max_output_tokens",
    "content_filter": "content_filter",
}
# Items of built-in tools that the caller has to run: the turn ends with them, as with a function.
_WAITING = ("computer_call", "local_shell_call", "apply_patch_call", "mcp_approval_request")


def decode_response(
    body: Json,
    *,
    headers: Mapping[str, str] | None = None,
    new_id: NewId | None = None,
    profile: Profile = NEUTRAL_PROFILE,
    request: Request | None = None,
) -> Response:
    """The response that a client received."""
    whole = whole_object(body)
    if not isinstance(whole.get("output"), list):
        return carry_body(NAME, body)
    unread = dict(whole)
    make_id = call_ids(new_id or counting_ids())
    own_calls = OwnCalls(profile, request) if profile.hosted_call_types else None
    items = unread.pop("output")
    content = tuple([part for item in items for part in read_item(item, make_id, own_calls)])
    model, finish = take_text(unread, "model") or "", _decode_status(unread, content)
    notes: list[Warning] = []
    # An image is billed by its own model, in `tool_usage`, and not in the tokens of `usage`.
    if Image in map(type, content):
        target = model or "the model"
        notes.append(make_warning("image_price_apart", "cost", target=target))
    return Response(
        id=take_text(unread, "id") or "",
        model=model,
        message=Message(role="assistant", content=mark_cut(content, finish.reason)),
        finish_reason=finish,
        usage=decode_usage(
            take_object(unread, "usage"), notes, whole.get("service_tier"), _searches(whole)
        ),
        warnings=notes,
        rate_limit=parse_rate_limit(headers or {}),
        raw=body,
        extra={NAME: unread},
    )


def encode_response(response: Response, request: Request | None = None) -> dict[str, Json]:
    """
    The body that a server sends.

    With the request that it answers, tool calls name the tools that the request declares.
    """
    from interlingua.streams.declared_calls import declared_response  # of the server side

    is_repeated = request is not None and (NAME not in response.extra or response.created_at)
    repeated = repeated_fields(request) if request is not None and is_repeated else {}
    return write_response(declared_response(response, request), repeated)


def write_response(response: Response, repeated: Mapping[str, Json]) -> dict[str, Json]:
    """The body of a response whose tool calls are as declared, with these fields of the request."""
    carried = carried_body(response, NAME)
    if isinstance(carried, dict):
        return carried
    native = NAME in response.extra
    message = response.message if native else plain_calls(response.message)
    encoder = ItemEncoder(WarningList(), response_id=response.id)
    encoder.message("assistant", message.content)
    body = open_envelope(response.id, response.model, native=native)
    body.update(_encode_status(response, native=native))
    body["output"] = encoder.items
    if not native or response.usage.raw is not None or response.usage != Usage():
        body["usage"] = encode_usage(response.usage, native=native)
    if response.created_at is not None:
        repeated = {**repeated, "service_tier": response.usage.service_tier or "default"}
    return close_envelope(body, response, native=native, repeated=repeated)


def open_envelope(response_id: str, model: str, *, native: bool) -> dict[str, Json]:
    """The first fields; empty ones only where the API requires them."""
    fields: dict[str, Json] = {"id": response_id, "model": model}
    return {name: value for name, value in fields.items() if value or not native}


def close_envelope(
    body: dict[str, Json],
    holder: Response | StreamStart,
    *,
    native: bool,
    repeated: Mapping[str, Json],
) -> dict[str, Json]:
    """The body with its other fields, which `extra` has, or the request, or the API requires."""
    from interlingua.dialects.openai_responses.vendor_fields import REQUIRED, complete_answer

    if native:
        body = restore(body, holder, NAME)
    if holder.created_at is not None:
        return complete_answer(body, repeated, holder.created_at)
    return body if native else {**REQUIRED, **repeated, **body}


def _decode_status(unread: dict[str, Json], content: tuple[Part, ...]) -> FinishReason:
    status = unread.get("status")
    if not isinstance(status, str):
        return FinishReason(reason="other")
    if status not in _STATUSES:
        return FinishReason(reason="other", raw=status)  # `extra` keeps it too
    del unread["status"]
    if status == "incomplete":
        reason = _incomplete_reason(unread)
        if isinstance(reason, str):
            return FinishReason(reason=_INCOMPLETE.get(reason, "other"), raw=reason)
    if status != "completed":
        return FinishReason(reason=_STATUSES[status], raw=status)
    kinds = set(map(type, content))
    if ToolCall in kinds or (Opaque in kinds and _waits(content)):
        return FinishReason(reason="tool_calls", raw=status)
    return FinishReason(reason="content_filter" if Refusal in kinds else "stop", raw=status)


def _incomplete_reason(fields: Mapping[str, Json]) -> Json:
    details = fields.get("incomplete_details")
    return details.get("reason") if isinstance(details, Mapping) else None


def _waits(content: tuple[Part, ...]) -> bool:
    """Whether the caller has to run a built-in tool."""
    items = [
        part.data for part in content if isinstance(part, Opaque) and isinstance(part.data, dict)
    ]
    answered = [item.get("call_id") for item in items if item.get("type") == "shell_call_output"]
    return any(
        item.get("type") in _WAITING
        or (item.get("type") == "tool_search_call" and item.get("execution") == "client")
        or (item.get("type") == "shell_call" and item.get("call_id") not in answered)
        for item in items
    )


def _encode_status(response: Response, *, native: bool) -> dict[str, Json]:
    extra = extra_of(response, NAME)
    finish = response.finish_reason
    if "status" in extra or (native and finish.raw is None and finish.reason == "other"):
        return {}  # an unknown status is in `extra`, or there was none
    known = _incomplete_reason(extra)
    raw = finish.raw if native else None
    reason: str | None = None
    if raw in _STATUSES:
        status = raw
    elif raw is not None and (raw in _INCOMPLETE or raw == known):
        status, reason = "incomplete", raw
    else:
        status = _STATUS_OF.get(finish.reason, "completed")
        reason = _INCOMPLETE_OF.get(finish.reason)
    fields: dict[str, Json] = {"status": status}
    if reason is not None and reason != known:
        fields["incomplete_details"] = {"reason": reason}
    if status == "failed" and not native:
        fields["error"] = {"code": "server_error", "message": "The model failed to answer."}
    return fields


def _searches(whole: dict[str, Json]) -> int | None:
    """How many web searches the response says that the provider made."""
    if "tool_usage" not in whole:  # the usual case: a match statement takes longer
        return None
    match whole["tool_usage"]:
        case {"web_search": {"num_requests": int(searches)}} if searches > 0:
            return searches
    return None


class _Given(Counts):
    """`input_tokens_details`."""

    cached_tokens: Count = None
    cache_write_tokens: Count = None
    audio_tokens: Count = None
    image_tokens: Count = None


class _Made(Counts):
    """`output_tokens_details`."""

    reasoning_tokens: Count = None
    audio_tokens: Count = None
    image_tokens: Count = None


class _Tokens(Counts):
    """`usage`."""

    input_tokens: Count = None
    output_tokens: Count = None
    total_tokens: Count = None
    input_tokens_details: _Given | None = None
    output_tokens_details: _Made | None = None


_NOTHING_GIVEN, _NOTHING_MADE = _Given(), _Made()


def decode_usage(
    wire: Json,
    notes: list[Warning] | None = None,
    tier: Json = None,
    searches: int | None = None,
) -> Usage:
    """
    The totals include the tokens of the details, as ours do.

    `tier` is the served one, and `searches` the number of web searches: the response has them
    outside of its usage.
    """
    if not isinstance(wire, dict):
        return Usage()
    tokens = read_counts(wire, _Tokens, notes)
    given = tokens.input_tokens_details or _NOTHING_GIVEN
    made = tokens.output_tokens_details or _NOTHING_MADE
    return make_usage(
        input_tokens=tokens.input_tokens or 0,
        output_tokens=tokens.output_tokens or 0,
        reasoning=made.reasoning_tokens,
        cache_read=given.cached_tokens,
        cache_write=given.cache_write_tokens,
        input_audio=given.audio_tokens,
        input_image=given.image_tokens,
        output_audio=made.audio_tokens,
        output_image=made.image_tokens,
        web_searches=searches,
        service_tier=served_tier(tier),
        raw=wire,
        notes=notes,
    )


def encode_usage(usage: Usage, *, native: bool) -> dict[str, Json]:
    """The provider's own figures if they still match, else figures made from ours."""
    raw = usage.raw
    tier, searches = usage.service_tier, usage.web_searches
    if native and isinstance(raw, dict) and decode_usage(raw, None, tier, searches) == usage:
        return raw
    return {
        "input_tokens": usage.input_tokens,
        "input_tokens_details": {
            "cached_tokens": usage.cache_read_tokens or 0,
            "cache_write_tokens": usage.cache_write_tokens or 0,
        },
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens or 0},
        "total_tokens": usage.total_tokens,
    }
