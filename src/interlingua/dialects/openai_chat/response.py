"""Response <-> body; the tables of finish reasons and usage."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from interlingua.dialects.openai_chat.content import MEDIA, encode_part
from interlingua.dialects.openai_chat.facts import CHOICE, CHOICES, NAME, WHOLE
from interlingua.dialects.openai_chat.marks import (
    RECEIVED,
    SENT_AS,
    drop_absent,
    extra_for,
    given,
    mark_of,
    note_absent,
    take_usual,
)
from interlingua.dialects.openai_chat.messages import decode_assistant, encode_assistant
from interlingua.dialects.openai_chat.quirks import ChatQuirks, quirks_of
from interlingua.dialects.openai_chat.thinking import split_tags
from interlingua.spec.content import Image, Json, Part, Refusal, Text, ToolCall
from interlingua.spec.contracts import NEUTRAL_PROFILE, NewId, Profile
from interlingua.spec.messages import Message
from interlingua.spec.response import FinishReason, Reason, Response, Usage
from interlingua.spec.warnings import WarningList
from interlingua.wire.fields import (
    Fields,
    carried_body,
    carry_body,
    count,
    extra_of,
    known_int,
    whole_object,
)
from interlingua.wire.ratelimit_headers import parse_rate_limit
from interlingua.wire.tool_calls import call_ids, counting_ids, plain_calls

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
_ENVELOPE = frozenset(("id", "object", "model"))
IMAGES = "images"
_OWN_REASONS = ("stop", "length", "tool_calls", "content_filter", "function_call")
_UNSAID = ("other", "error", "tool_calls")  # what an answer without a reason can mean
# Beside `prompt_tokens_details`: the names other servers have for the same count.
_READ = ("prompt_cache_hit_tokens", "num_cached_tokens", "cached_tokens", "cache_read_input_tokens")


def decode_response(
    body: Json,
    *,
    headers: Mapping[str, str] | None = None,
    new_id: NewId | None = None,
    profile: Profile = NEUTRAL_PROFILE,
) -> Response:
    """What a client received: the first choice; others are kept beside it."""
    whole = whole_object(body)
    choices = whole.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    if not isinstance(first, dict) or not isinstance(first.get("message"), dict):
        return carry_body(NAME, body)
    fields = Fields(whole, strict=False)
    left = fields.left
    others = left.pop("choices")[1:]
    missing = [] if left.keys() >= _ENVELOPE else note_absent(left, "id", "object", "model")
    if left.get("object") == WHOLE:
        del left["object"]
    usage = find_usage(whole)
    if isinstance(left.get("usage"), dict):
        del left["usage"]
    elif usage is not None:
        missing += note_absent(left, "usage")
    choice = Fields(first, strict=False)
    message = _decode_message(Fields(choice.take("message"), strict=False), new_id, profile)
    kinds = set(map(type, message.content))
    unsaid = take_usual(choice.left, index=0, finish_reason=None)
    reason = choice.text("finish_reason")
    about = extra_for(choice.left, unsaid).get(NAME)
    return Response(
        id=fields.text("id") or "",
        model=fields.text("model") or "",
        message=message,
        finish_reason=decode_finish(
            reason,
            has_calls=ToolCall in kinds,
            has_refusal=Refusal in kinds,
            failed=bool(left.get("error")),
        ),
        usage=decode_usage(usage),
        rate_limit=parse_rate_limit(headers or {}),
        raw=body,
        extra=extra_for(left, missing, choice=about, choices=others) or {NAME: {}},
    )


def _decode_message(fields: Fields, new_id: NewId | None, profile: Profile) -> Message:
    missing = take_usual(fields.left, role="assistant", content=None)
    content = decode_assistant(fields, call_ids(new_id or counting_ids()), RECEIVED)
    if quirks_of(profile).think_tags:
        content = _without_tags(content)
    return Message(role="assistant", content=content, extra=extra_for(fields.left, missing))


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
    about, others = kept.pop(CHOICE, None), kept.pop(CHOICES, None)
    choice = _encode_choice(response, about if isinstance(about, Mapping) else {}, native=native)
    usage = encode_usage(response.usage, native=native)
    if "usage" in kept and usage is response.usage.raw:
        usage = None  # it stands elsewhere
    usual = {"id": "", "object": WHOLE, "model": ""} | ({} if native else {"created": 0})
    own = given(id=response.id or None, model=response.model or None, usage=usage)
    choices = [choice, *(others if isinstance(others, list) else ())]
    return drop_absent({**usual, **kept, **own, "choices": choices}, kept)


def _encode_choice(response: Response, kept: Mapping[str, Any], *, native: bool) -> dict[str, Any]:
    # an answer's content is one string, unless the server itself wrote a list
    quirks = ChatQuirks(flat_content=mark_of(response.message, SENT_AS) != "list")
    said, images = (response.message, []) if native else _without_media(response.message)
    message = encode_assistant(said, WarningList(), answer=True, quirks=quirks)
    if images:
        message[IMAGES] = images
    usual = {"index": 0, "finish_reason": encode_finish(response.finish_reason, native=native)}
    return drop_absent({**usual, **kept, "message": message}, kept)


def _without_media(message: Message) -> tuple[Message, list[Json]]:
    """
    Another's answer for clients that read text alone, and its images.

    Those go beside the content, where routers put what a model has drawn; other media
    cannot be said.
    """
    message = plain_calls(message)
    media = [part for part in message.content if isinstance(part, MEDIA)]
    if not media:
        return message, []
    content = tuple(part for part in message.content if not isinstance(part, MEDIA))
    images = [image for part in media if (image := show_image(part)) is not None]
    return msgspec.structs.replace(message, content=content), images


def show_image(part: Part) -> Json | None:
    """An image as an answer has it; None if it is no image, or cannot be said."""
    return encode_part(part, WarningList()) if isinstance(part, Image) else None


def decode_finish(
    raw: str | None, *, has_calls: bool, has_refusal: bool = False, failed: bool = False
) -> FinishReason:
    """
    An unknown reason is `other`, with its own name kept.

    Servers say `stop`, or nothing, of an answer that asks for calls, and `stop` of one that
    declines: the parts say more.
    """
    reason = _REASONS.get(raw or "", "other")
    if failed and reason == "other":
        reason = "error"
    if has_calls and reason in ("stop", "other"):
        reason = "tool_calls"
    if has_refusal and reason == "stop":
        reason = "content_filter"
    return FinishReason(reason=reason, raw=raw)


def encode_finish(finish: FinishReason, *, native: bool) -> str | None:
    """The provider's own word if it was this one's, else the nearest."""
    raw, reason = finish.raw, finish.reason
    if native and (raw is not None or reason in _UNSAID):
        return raw
    if raw in _OWN_REASONS and _REASONS[raw] == reason:
        return raw
    return reason if reason in _OWN_REASONS else "stop"


def find_usage(body: Mapping[str, Any]) -> dict[str, Any] | None:
    """The usage of an answer or chunk: its own, else its choice's, else the host's own place."""
    own = body.get("usage")
    if isinstance(own, dict):  # as mostly
        return own
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
    going_in, going_out = wire.get("prompt_tokens_details"), wire.get("completion_tokens_details")
    read = _count(going_in, "cached_tokens", wire, *_READ)
    written = _count(going_in, "cache_write_tokens", wire, "cache_creation_input_tokens")
    reasoning = _count(going_out, "reasoning_tokens", wire, "reasoning_tokens")
    prompt = known_int(wire.get("prompt_tokens"))
    completion = known_int(wire.get("completion_tokens"))
    if reasoning and count(wire.get("total_tokens")) == prompt + completion + reasoning:
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


def _count(details: Any, name: str, usage: dict[str, Any], *others: str) -> int | None:
    """A count from the details, else from the first of the other names that has it."""
    if isinstance(details, dict) and (found := count(details.get(name))) is not None:
        return found
    for other in others:
        if other in usage and (found := count(usage[other])) is not None:
            return found
    return None


def encode_usage(usage: Usage, *, native: bool) -> dict[str, Any] | None:
    """The provider's own figures if they say the same, else made from ours; None if unknown."""
    raw = usage.raw
    if native and isinstance(raw, dict) and decode_usage(raw) == usage:
        return raw
    if usage == Usage():
        return None
    read, written = usage.cache_read_tokens, usage.cache_write_tokens
    going_in = given(cached_tokens=read, cache_write_tokens=written)
    going_out = given(reasoning_tokens=usage.reasoning_tokens)
    return {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.total_tokens,
        **given(
            prompt_tokens_details=going_in or None, completion_tokens_details=going_out or None
        ),
    }
