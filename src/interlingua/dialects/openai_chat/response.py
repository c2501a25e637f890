"""Response <-> body; the tables of finish reasons and usage."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from interlingua.dialects.openai_chat.assistant import (
    complete_assistant,
    decode_assistant,
    encode_assistant,
)
from interlingua.dialects.openai_chat.marks import (
    RECEIVED,
    SENT_AS,
    WITHOUT,
    drop_absent,
    keep,
    mark_of,
    note_absent,
)
from interlingua.dialects.openai_chat.quirks import ChatQuirks, quirks_of
from interlingua.dialects.openai_chat.thinking import split_tags
from interlingua.dialects.openai_chat.wire import NAME, WHOLE
from interlingua.spec.content import Json, Part, Text
from interlingua.spec.contracts import DEFAULT, NewId, Profile
from interlingua.spec.messages import Message
from interlingua.spec.response import FinishReason, Reason, Response, Usage
from interlingua.wire.carry import Losses, carried_body, carry_body, counting_ids, whole_object
from interlingua.wire.limits import parse_rate_limit
from interlingua.wire.shape import Fields, count, extra_of, known_int

_REASONS: dict[str, Reason] = {
    "stop": "stop",
    "length": "length",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "content_filter": "content_filter",
    # words of compatible servers
    "eos": "stop",
    "end_turn": "stop",
    "stop_sequence": "stop",
    "model_length": "length",
    "max_tokens": "length",
    "error": "error",
}
_FINISH_REASONS: dict[Reason, str] = {
    "stop": "stop",
    "length": "length",
    "tool_calls": "tool_calls",
    "content_filter": "content_filter",
    "cancelled": "stop",
    "error": "stop",
    "other": "stop",
}
# Beside `prompt_tokens_details`: the names other servers have for the same count.
_READ = ("prompt_cache_hit_tokens", "num_cached_tokens", "cached_tokens", "cache_read_input_tokens")
_OWN = ("prompt_tokens", "completion_tokens", "total_tokens")
_UNSAID = ("other", "error", "tool_calls")  # what an answer without a reason can mean
CHOICE = "choice"
"""Where the fields of the first choice are kept."""
CHOICES = "choices"
"""Where the other choices are kept, whole."""


def decode_response(
    body: Json,
    *,
    headers: Mapping[str, str] | None = None,
    new_id: NewId | None = None,
    profile: Profile = DEFAULT,
) -> Response:
    """What a client received: the first choice; others are kept beside it."""
    whole = whole_object(body)
    first = _first_choice(whole)
    if first is None:
        return carry_body(NAME, body)
    fields = Fields(whole, strict=False)
    left = fields.left
    others = left.pop("choices")[1:]
    missing = note_absent(left, "id", "object", "model")
    if left.get("object") == WHOLE:
        del left["object"]
    usage = find_usage(whole)
    if isinstance(left.get("usage"), dict):
        del left["usage"]
    elif usage is not None and "usage" not in left:
        missing.append("usage")
    message, raw, about = _decode_choice(first, new_id or counting_ids(), profile)
    if about:
        left[CHOICE] = about
    if others:
        left[CHOICES] = others
    response_id, model = fields.text("id"), fields.text("model")
    if missing:
        left[WITHOUT] = missing
    return Response(
        id=response_id or "",
        model=model or "",
        message=message,
        finish_reason=decode_finish(
            raw, has_calls=bool(message.tool_calls), failed=bool(left.get("error"))
        ),
        usage=decode_usage(usage),
        rate_limit=parse_rate_limit(headers or {}),
        raw=body,
        extra={NAME: left},
    )


def _first_choice(whole: dict[str, Any]) -> dict[str, Any] | None:
    choices = whole.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    if isinstance(first, dict) and isinstance(first.get("message"), dict):
        return first
    return None


def _decode_choice(
    choice: dict[str, Any], new_id: NewId, profile: Profile
) -> tuple[Message, str | None, dict[str, Any]]:
    """Its message, its finish reason, and its other fields."""
    fields = Fields(choice, strict=False)
    about = fields.left
    missing = note_absent(about, "index", "finish_reason")
    if about.get("index") == 0 and not isinstance(about["index"], bool):
        del about["index"]
    raw = fields.text("finish_reason")
    if about.get("finish_reason", 0) is None:
        del about["finish_reason"]
    message = Fields(fields.take("message"), strict=False)
    if missing:
        about[WITHOUT] = missing
    return _decode_message(message, new_id, profile), raw, about


def _decode_message(fields: Fields, new_id: NewId, profile: Profile) -> Message:
    missing = note_absent(fields.left, "role", "content")
    if fields.left.get("role") == "assistant":
        del fields.left["role"]
    content = decode_assistant(fields, lambda: call_id(new_id), RECEIVED)
    if quirks_of(profile).think_tags:
        content = _without_tags(content)
    if missing:
        fields.left[WITHOUT] = missing
    return Message(role="assistant", content=content, extra=keep(fields.left))


def call_id(new_id: NewId) -> str:
    """An id for a call that came without one."""
    return f"call_{new_id()}"


def _without_tags(content: tuple[Part, ...]) -> tuple[Part, ...]:
    for i, part in enumerate(content):
        if isinstance(part, Text) and not part.extra:
            return (*content[:i], *split_tags(part.text), *content[i + 1 :])
    return content


def encode_response(response: Response) -> Json:
    """What a server sends."""
    carried = carried_body(response, NAME)
    if carried is not None:
        return carried
    kept = dict(extra_of(response, NAME))
    native = NAME in response.extra
    others = kept.pop(CHOICES, None)
    choice = _encode_choice(response, kept.pop(CHOICE, None), native=native)
    body: dict[str, Any] = {}
    if response.id:
        body["id"] = response.id
    if response.model:
        body["model"] = response.model
    usage = encode_usage(response.usage, native=native)
    is_elsewhere = "usage" in kept and usage is response.usage.raw
    if usage is not None and not is_elsewhere:
        body["usage"] = usage
    usual = {"id": "", "object": WHOLE, "model": ""} | ({} if native else {"created": 0})
    body = {**usual, **kept, **body}
    body["choices"] = [choice, *(others if isinstance(others, list) else ())]
    body.pop(WITHOUT, None)
    return drop_absent(body, kept)


def _encode_choice(response: Response, about: Any, *, native: bool) -> dict[str, Any]:
    kept = about if isinstance(about, Mapping) else {}
    # an answer's content is one string, unless the server itself wrote a list
    quirks = ChatQuirks(flat_content=mark_of(response.message, SENT_AS) != "list")
    wire = encode_assistant(response.message, Losses(), "message", answer=True, quirks=quirks)
    choice: dict[str, Any] = {
        "index": 0,
        "finish_reason": encode_finish(response.finish_reason, native=native),
        **kept,
        "message": complete_assistant(wire, response.message),
    }
    choice.pop(WITHOUT, None)
    return drop_absent(choice, kept)


def decode_finish(raw: str | None, *, has_calls: bool, failed: bool = False) -> FinishReason:
    """
    An unknown reason is `other`, with its own name kept.

    Servers say `stop`, or nothing, of an answer that asks for calls: the calls say more.
    """
    reason = _REASONS.get(raw or "", "other")
    if failed and reason == "other":
        reason = "error"
    if has_calls and reason in ("stop", "other"):
        reason = "tool_calls"
    return FinishReason(reason=reason, raw=raw)


def encode_finish(finish: FinishReason, *, native: bool) -> str | None:
    """The provider's own word if it was this one's, else the nearest."""
    if native and (finish.raw is not None or finish.reason in _UNSAID):
        return finish.raw
    raw = finish.raw
    said = raw in ("stop", "length", "tool_calls", "content_filter", "function_call")
    if said and _REASONS[raw or ""] == finish.reason:
        return raw
    return _FINISH_REASONS[finish.reason]


def find_usage(body: Mapping[str, Any]) -> dict[str, Any] | None:
    """The usage of an answer or chunk: its own, else its choice's, else the host's own place."""
    usage = body.get("usage")
    if isinstance(usage, dict):
        return usage
    match body:
        case {"choices": [{"usage": dict(found)}, *_]}:
            return found
        case {"x_groq": {"usage": dict(found)}}:
            return found
    return None


def decode_usage(wire: Any) -> Usage:
    """Counts in our sense: cached ones are part of the input, reasoning of the output."""
    if not isinstance(wire, dict):
        return Usage()
    going_in = _details(wire, "prompt_tokens_details")
    going_out = _details(wire, "completion_tokens_details")
    read = count(going_in.get("cached_tokens"))
    for name in _READ:
        read = count(wire.get(name)) if read is None else read
    written = count(going_in.get("cache_write_tokens"))
    if written is None:
        written = count(wire.get("cache_creation_input_tokens"))
    reasoning = count(going_out.get("reasoning_tokens"))
    if reasoning is None:
        reasoning = count(wire.get("reasoning_tokens"))
    prompt, completion = (
        known_int(wire.get("prompt_tokens")),
        known_int(wire.get("completion_tokens")),
    )
    total = count(wire.get("total_tokens"))
    if reasoning and total == prompt + completion + reasoning:
        completion += reasoning  # the host counts it beside the completion, as xAI does
    if (read or 0) + (written or 0) > prompt:
        prompt += (read or 0) + (written or 0)  # they cannot be part of it
    return Usage(
        input_tokens=prompt,
        output_tokens=completion,
        reasoning_tokens=None if reasoning is None else min(reasoning, completion),
        cache_read_tokens=read,
        cache_write_tokens=written,
        raw=wire,
    )


def encode_usage(usage: Usage, *, native: bool) -> dict[str, Any] | None:
    """The provider's own figures if they say the same, else made from ours; None if unknown."""
    raw = usage.raw
    if isinstance(raw, dict) and (native or any(name in raw for name in _OWN)):
        if decode_usage(raw) == usage:
            return raw
    elif usage == Usage():
        return None
    wire: dict[str, Any] = {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.total_tokens,
    }
    cached = {
        "cached_tokens": usage.cache_read_tokens,
        "cache_write_tokens": usage.cache_write_tokens,
    }
    told = {name: value for name, value in cached.items() if value is not None}
    if told:
        wire["prompt_tokens_details"] = told
    if usage.reasoning_tokens is not None:
        wire["completion_tokens_details"] = {"reasoning_tokens": usage.reasoning_tokens}
    return wire


def _details(wire: dict[str, Any], name: str) -> dict[str, Any]:
    found = wire.get(name)
    return found if isinstance(found, dict) else {}
