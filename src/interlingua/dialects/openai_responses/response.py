"""Response <-> body; the tables of statuses and usage."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from interlingua.dialects.openai_responses.facts import NAME
from interlingua.dialects.openai_responses.messages import ItemEncoder, read_item
from interlingua.spec.content import Json, Opaque, Part, Refusal, ToolCall
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
    extra_of,
    restore,
    whole_object,
)
from interlingua.wire.ratelimit_headers import parse_rate_limit
from interlingua.wire.tool_calls import call_ids, counting_ids, plain_calls

_STATUSES: dict[str, Reason] = {
    "completed": "stop",
    "incomplete": "other",
    "failed": "error",
    "cancelled": "cancelled",
    "in_progress": "other",
    "queued": "other",
}
_INCOMPLETE: dict[str, Reason] = {
    "max_output_tokens": "length",
    "content_filter": "content_filter",
    "max_messages": "other",
    "steered": "other",
}
# The status, and why it is incomplete.
_SAID_AS: dict[Reason, tuple[str, str | None]] = {
    "stop": ("completed", None),
    "tool_calls": ("completed", None),
    "length": ("incomplete", "max_output_tokens"),
    "content_filter": ("incomplete", "content_filter"),
    "cancelled": ("cancelled", None),
    "error": ("failed", None),
    "other": ("completed", None),
}
# Items with which the model waits for the caller, as it does with a call.
_CACHED = ("cached_tokens", "cache_write_tokens")
_WAITING = ("computer_call", "local_shell_call", "apply_patch_call", "mcp_approval_request")

# What the vendor's own types require of an answer, for one that came from elsewhere.
_ENVELOPE: dict[str, Any] = {
    "object": "response",
    "created_at": 0,
    "error": None,
    "incomplete_details": None,
    "instructions": None,
    "metadata": {},
    "parallel_tool_calls": True,
    "temperature": None,
    "tool_choice": "auto",
    "tools": [],
    "top_p": None,
}


def decode_response(
    body: Json,
    *,
    headers: Mapping[str, str] | None = None,
    new_id: NewId | None = None,
    profile: Profile = NEUTRAL_PROFILE,  # noqa: ARG001
) -> Response:
    """What a client received."""
    whole = whole_object(body)
    if not isinstance(whole.get("output"), list):
        return carry_body(NAME, body)
    fields = Fields(whole, strict=False)
    make_id = call_ids(new_id or counting_ids())
    content = tuple([part for item in fields.take("output") for part in read_item(item, make_id)])
    return Response(
        id=fields.text("id") or "",
        model=fields.text("model") or "",
        message=Message(role="assistant", content=content),
        finish_reason=_decode_status(fields, content),
        usage=decode_usage(fields.object("usage")),
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
    message = response.message if native else plain_calls(response.message)
    encoder = ItemEncoder(WarningList(), response_id=response.id)
    encoder.message("assistant", message.content)
    body = open_envelope(response.id, response.model, native=native)
    body.update(_encode_status(response, native=native))
    body["output"] = encoder.items
    if not native or response.usage.raw is not None or response.usage != Usage():
        body["usage"] = encode_usage(response.usage, native=native)
    return close_envelope(body, response, native=native)


def open_envelope(response_id: str, model: str, *, native: bool) -> dict[str, Any]:
    """The first fields; those that are empty are written only where they are required."""
    body: dict[str, Any] = {"id": response_id} if response_id or not native else {}
    if model or not native:
        body["model"] = model
    return body


def close_envelope(body: dict[str, Any], holder: Any, *, native: bool) -> dict[str, Any]:
    """The fields that were kept, or else those that must be there."""
    return restore(body, holder, NAME) if native else {**_ENVELOPE, **body}


def _decode_status(fields: Fields, content: tuple[Part, ...]) -> FinishReason:
    status = fields.left.get("status")
    if not isinstance(status, str):
        return FinishReason(reason="other")
    if status not in _STATUSES:
        return FinishReason(reason="other", raw=status)  # it stays among the fields kept
    fields.take("status")
    if status == "incomplete":
        details = fields.left.get("incomplete_details")
        why = details.get("reason") if isinstance(details, dict) else None
        if isinstance(why, str):
            return FinishReason(reason=_INCOMPLETE.get(why, "other"), raw=why)
    if status != "completed":
        return FinishReason(reason=_STATUSES[status], raw=status)
    kinds = set(map(type, content))
    if ToolCall in kinds or (Opaque in kinds and _waits(content)):
        return FinishReason(reason="tool_calls", raw=status)
    return FinishReason(reason="content_filter" if Refusal in kinds else "stop", raw=status)


def _waits(content: tuple[Part, ...]) -> bool:
    """Whether a built-in tool is the caller's to run."""
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


def _encode_status(response: Response, *, native: bool) -> dict[str, Any]:
    kept = extra_of(response, NAME)
    finish = response.finish_reason
    if "status" in kept or (native and finish.raw is None and finish.reason == "other"):
        return {}  # a word we do not know, or none: as it came
    details = kept.get("incomplete_details")
    told = details.get("reason") if isinstance(details, Mapping) else None
    raw = finish.raw if native else None
    why: str | None = None
    if raw in _STATUSES:
        status = raw
    elif raw is not None and (raw in _INCOMPLETE or raw == told):
        status, why = "incomplete", raw
    else:
        status, why = _SAID_AS[finish.reason]
    said: dict[str, Any] = {"status": status}
    if why is not None and why != told:
        said["incomplete_details"] = {"reason": why}
    if status == "failed" and not native:
        said["error"] = {"code": "server_error", "message": "the model failed to answer"}
    return said


def decode_usage(wire: Any) -> Usage:
    """The totals include what the details count, as ours do."""
    if not isinstance(wire, dict):
        return Usage()
    into = wire.get("input_tokens_details")
    out = wire.get("output_tokens_details")
    read, written = counts(into if isinstance(into, dict) else {}, *_CACHED)
    going_in, going_out = counts(wire, "input_tokens", "output_tokens")
    return Usage(
        input_tokens=going_in or 0,
        output_tokens=going_out or 0,
        reasoning_tokens=count(out.get("reasoning_tokens")) if isinstance(out, dict) else None,
        cache_read_tokens=read,
        cache_write_tokens=written,
        raw=wire,
    )


def encode_usage(usage: Usage, *, native: bool) -> dict[str, Any]:
    """The provider's own figures if they say the same, else made from ours."""
    raw = usage.raw
    if native and isinstance(raw, dict) and decode_usage(raw) == usage:
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
