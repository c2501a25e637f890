"""Response <-> body; the tables of finish reasons and usage."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from interlingua.dialects.openai_chat.annotations import (
    ANNOTATIONS,
    LOGPROBS,
    read_citations,
    set_logprobs,
    with_citations,
    with_logprobs,
    write_annotations,
)
from interlingua.dialects.openai_chat.content import encode_image, split_tags
from interlingua.dialects.openai_chat.facts import (
    CHOICE,
    CHOICES,
    IMAGES,
    NAME,
    RECEIVED,
    SENT_AS,
    WHOLE,
    ChatQuirks,
    absent,
    drop_absent,
    extra_for,
    mark_of,
    quirks_of,
    take_usual,
)
from interlingua.dialects.openai_chat.messages import decode_assistant, encode_assistant
from interlingua.dialects.openai_shared.rules import without_none
from interlingua.spec.content import MEDIA_TYPES, Json, Refusal, Text, ToolCall
from interlingua.spec.contracts import NEUTRAL_PROFILE, NewId, Profile
from interlingua.spec.messages import Message
from interlingua.spec.request import Request
from interlingua.spec.response import FinishReason, Reason, Response, Usage, Warning
from interlingua.spec.warnings import WarningList
from interlingua.wire.fields import (
    Fields,
    carried_body,
    carry_body,
    extra_of,
    take_text,
    whole_object,
)
from interlingua.wire.ratelimit_headers import parse_rate_limit
from interlingua.wire.tool_calls import call_ids, counting_ids, mark_cut, plain_calls
from interlingua.wire.usage import Count, Counts, make_usage, read_counts, served_tier

_REASONS: dict[str, Reason] = {
    "stop": "stop",
    "length": "length",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "content_filter": "content_filter",
    "eos": "stop",  # Together, and servers of open models
    "end_turn": "stop",  # Anthropic's words, which proxies to its models pass on
    "stop_sequence": "stop",
    "model_length": "length",  # Mistral, where the context is full
    "max_tokens": "length",  # Anthropic's word again
    "error": "error",  # Mistral and OpenRouter
}
_OWN_REASONS = ("stop", "length", "tool_calls", "content_filter", "function_call")
_WITHOUT_REASON = ("other", "error", "tool_calls")  # what a response without a reason can mean
_ENVELOPE = frozenset(("id", "object", "model"))
_USUAL_CHOICE: Mapping[str, Json] = {"index": 0, "finish_reason": None}
_USUAL_MESSAGE: Mapping[str, Json] = {"role": "assistant", "content": None}


def decode_response(
    body: Json,
    *,
    headers: Mapping[str, str] | None = None,
    new_id: NewId | None = None,
    profile: Profile = NEUTRAL_PROFILE,
    request: Request | None = None,  # noqa: ARG001
) -> Response:
    """The response that a client received: the first choice; `extra` keeps the other choices."""
    whole = whole_object(body)
    choices = whole.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    if not isinstance(first, dict) or not isinstance(first.get("message"), dict):
        return carry_body(NAME, body)
    quirks = quirks_of(profile)
    unread = dict(whole)
    others = unread.pop("choices")[1:]
    usage = find_usage(whole)
    missing = _take_envelope(unread, has_usage=usage is not None)
    message = _decode_message(first, whole, new_id, quirks)
    finish_reason, choice_extra = _decode_choice(first, message, failed=bool(whole.get("error")))
    if finish_reason.reason == "length":
        message = msgspec.structs.replace(message, content=mark_cut(message.content, "length"))
    notes: list[Warning] = []
    return Response(
        id=take_text(unread, "id") or "",
        model=take_text(unread, "model") or "",
        message=message,
        finish_reason=finish_reason,
        usage=decode_usage(
            usage,
            notes,
            whole.get("service_tier"),
            reasoning_inside=quirks.reasoning_in_output,
        ),
        warnings=notes,
        rate_limit=parse_rate_limit(headers or {}),
        raw=body,
        extra=extra_for(unread, missing, choice=choice_extra, choices=others) or {NAME: {}},
    )


def _take_envelope(unread: dict[str, Json], *, has_usage: bool) -> list[str]:
    """Remove the usual fields of a body; returns the names that were absent."""
    missing = [] if unread.keys() >= _ENVELOPE else absent(unread, "id", "object", "model")
    if unread.get("object") == WHOLE:
        del unread["object"]
    if isinstance(unread.get("usage"), dict):  # null, which some servers send, is kept
        del unread["usage"]
    elif has_usage:
        missing += absent(unread, "usage")
    return missing


def _decode_choice(
    choice: Mapping[str, Json], message: Message, *, failed: bool
) -> tuple[FinishReason, Json]:
    """The finish reason of a choice, and its unread fields and marks."""
    unread = dict(choice)
    del unread["message"]
    missing = take_usual(unread, _USUAL_CHOICE)
    kinds = set(map(type, message.content))
    finish_reason = decode_finish(
        take_text(unread, "finish_reason"),
        has_tool_calls=ToolCall in kinds,
        has_refusal=Refusal in kinds,
        failed=failed,
    )
    return finish_reason, extra_for(unread, missing).get(NAME)


def _decode_message(
    choice: Mapping[str, Json], body: Mapping[str, Json], new_id: NewId | None, quirks: ChatQuirks
) -> Message:
    fields = Fields(choice["message"], strict=False)
    citations = read_citations(fields.left, body)
    missing = take_usual(fields.left, _USUAL_MESSAGE)
    content = decode_assistant(fields, call_ids(new_id or counting_ids()), RECEIVED)
    # Text after thinking is not searched: there the server has split them itself.
    first = content[0] if content and quirks.think_tags else None
    if isinstance(first, Text) and not first.extra:
        content = (*split_tags(first.text), *content[1:])
    if citations:
        content = with_citations(content, citations)
    if choice.get(LOGPROBS):
        content = with_logprobs(content, choice)
    return Message(role="assistant", content=content, extra=extra_for(fields.left, missing))


def encode_response(response: Response, request: Request | None = None) -> Json:
    """
    The body that a server sends.

    With the request that it answers, tool calls name the tools that the request declares.
    """
    carried = carried_body(response, NAME)
    if carried is not None:
        return carried
    from interlingua.streams.declared_calls import declared_response  # of the server side

    response = declared_response(response, request)
    extra = dict(extra_of(response, NAME))
    native = NAME in response.extra
    choice_extra, others = extra.pop(CHOICE, None), extra.pop(CHOICES, None)
    if not isinstance(choice_extra, Mapping):
        choice_extra = {}
    choices = [_encode_choice(response, choice_extra, native=native)]
    choices += others if isinstance(others, list) else ()
    usage = encode_usage(response.usage, native=native)
    if "usage" in extra and usage is response.usage.raw:
        usage = None  # it was decoded from another place, which `extra` restores
    # The SDK's `ChatCompletion` requires `created`; a server knows the time.
    usual = {"id": "", "object": WHOLE, "model": ""} | ({} if native else {"created": 0})
    own = without_none(id=response.id or None, model=response.model or None, usage=usage)
    body = drop_absent({**usual, **extra, **own, "choices": choices}, extra)
    if response.created_at is None:
        return body
    from interlingua.dialects.openai_chat.vendor_fields import complete_answer

    return complete_answer(body, response.created_at, response.usage)


def _encode_choice(
    response: Response, extra: Mapping[str, Json], *, native: bool
) -> dict[str, Json]:
    message, images = (response.message, []) if native else _separate_images(response.message)
    # clients expect one string as content, unless the server itself sent a list
    quirks = ChatQuirks(flat_content=mark_of(message, SENT_AS) != "list")
    wire = encode_assistant(message, WarningList(), answer=True, quirks=quirks)
    if images:
        wire[IMAGES] = images
    texts = [part for part in message.content if isinstance(part, Text)]
    if not native and any(text.citations for text in texts):
        wire[ANNOTATIONS] = write_annotations(texts)
    usual = {"index": 0, "finish_reason": encode_finish(response.finish_reason, native=native)}
    choice = {**usual, **extra, "message": wire}
    set_logprobs(choice, message.content)
    return drop_absent(choice, extra)


def _separate_images(message: Message) -> tuple[Message, list[Json]]:
    """
    Another dialect's message without media, and its images.

    Clients expect only text in the content of a response. Other media cannot be encoded.
    """
    message = plain_calls(message)
    media = [part for part in message.content if isinstance(part, MEDIA_TYPES)]
    if not media:
        return message, []
    content = tuple(part for part in message.content if not isinstance(part, MEDIA_TYPES))
    images: list[Json] = [image for part in media if (image := encode_image(part)) is not None]
    return msgspec.structs.replace(message, content=content), images


def decode_finish(
    raw: str | None, *, has_tool_calls: bool, has_refusal: bool = False, failed: bool = False
) -> FinishReason:
    """
    The finish reason; an unknown one is `other`, with the server's word in `raw`.

    Some servers send `stop`, or nothing, with tool calls, and `stop` with a refusal: there the
    parts decide.
    """
    # Seen in recordings: `stop` with tool calls of OpenAI, where the tool choice named the tool,
    # and an empty finish reason of Snowflake.
    reason = _REASONS.get(raw or "", "other")
    if failed and reason == "other":
        reason = "error"
    if has_tool_calls and reason in ("stop", "other"):
        reason = "tool_calls"
    if has_refusal and reason == "stop":
        reason = "content_filter"
    return FinishReason(reason=reason, raw=raw)


def encode_finish(finish: FinishReason, *, native: bool) -> str | None:
    """The server's own word if it spoke this dialect, otherwise the nearest of OpenAI's."""
    raw, reason = finish.raw, finish.reason
    if native and (raw is not None or reason in _WITHOUT_REASON):
        return raw
    if raw in _OWN_REASONS and _REASONS[raw] == reason:
        return raw
    return reason if reason in _OWN_REASONS else "stop"


def find_usage(body: Mapping[str, Json]) -> dict[str, Json] | None:
    """The usage in a response or chunk: at the top, in the first choice, or in Groq's field."""
    # Four of twelve recorded streams of Groq have it only in `x_groq`, the others in both places.
    usage = body.get("usage")
    if isinstance(usage, dict):  # the usual place first: a match statement takes longer
        return usage
    match body:
        case {"choices": [{"usage": dict(usage)}, *_]} | {"x_groq": {"usage": dict(usage)}}:
            return usage
    return None


class _Cached(Counts):
    """`cached_tokens_details` of `prompt_tokens_details`."""

    audio_tokens: Count = None


class _Given(Counts):
    """`prompt_tokens_details`."""

    cached_tokens: Count = None
    cache_write_tokens: Count = None
    audio_tokens: Count = None
    image_tokens: Count = None
    cached_tokens_details: _Cached | None = None


class _Made(Counts):
    """`completion_tokens_details`."""

    reasoning_tokens: Count = None
    audio_tokens: Count = None
    image_tokens: Count = None


class _Tokens(Counts):
    """`usage`, with the names that servers other than OpenAI's have for the details."""

    prompt_tokens: Count = None
    completion_tokens: Count = None
    total_tokens: Count = None
    prompt_tokens_details: _Given | None = None
    completion_tokens_details: _Made | None = None
    reasoning_tokens: Count = None
    prompt_cache_hit_tokens: Count = None
    num_cached_tokens: Count = None
    cached_tokens: Count = None
    cache_read_input_tokens: Count = None
    cache_creation_input_tokens: Count = None


_NOTHING_GIVEN, _NOTHING_MADE = _Given(), _Made()


def decode_usage(
    wire: Json,
    notes: list[Warning] | None = None,
    tier: Json = None,
    *,
    reasoning_inside: bool = False,
) -> Usage:
    """
    Our counts: input includes cached tokens, output includes reasoning. `tier` served it.

    `reasoning_inside`: as the quirk `reasoning_in_output` says.
    """
    if not isinstance(wire, dict):
        return Usage()
    tokens = read_counts(wire, _Tokens, notes)
    given = tokens.prompt_tokens_details or _NOTHING_GIVEN
    made = tokens.completion_tokens_details or _NOTHING_MADE
    read = given.cached_tokens if given.cached_tokens is not None else _read_from_cache(tokens)
    written, reasoning = given.cache_write_tokens, made.reasoning_tokens
    if written is None:
        written = tokens.cache_creation_input_tokens
    if reasoning is None:
        reasoning = tokens.reasoning_tokens
    prompt, completion = tokens.prompt_tokens or 0, tokens.completion_tokens or 0
    # What the total shows to be counted beside a figure is added to it, and nothing else is:
    # reasoning at xAI (165 + 2 + 125 of reasoning = 292), audio at Mistral (11 + 15 + 375 of audio
    # = 401), both recorded, and cached tokens at hosts that count as Anthropic does.
    beside = (tokens.total_tokens or 0) - prompt - completion
    if reasoning and beside == reasoning:
        completion += reasoning
    elif beside > 0 and beside in (
        *(given.audio_tokens, read, written),
        (read or 0) + (written or 0),
    ):
        prompt += beside
    cached = given.cached_tokens_details
    return make_usage(
        input_tokens=prompt,
        output_tokens=completion,
        reasoning=reasoning,
        reasoning_inside=reasoning_inside,
        cache_read=read,
        cache_write=written,
        cache_read_audio=None if cached is None else cached.audio_tokens,
        input_audio=given.audio_tokens,
        input_image=given.image_tokens,
        output_audio=made.audio_tokens,
        output_image=made.image_tokens,
        service_tier=served_tier(tier),
        raw=wire,
        notes=notes,
    )


def _is_meant(usage: Usage, raw: dict[str, Json]) -> bool:
    """Whether the object means these counts, at whichever server."""
    return any(
        usage == decode_usage(raw, tier=usage.service_tier, reasoning_inside=inside)
        for inside in (False, True)
    )


def _read_from_cache(tokens: _Tokens) -> int | None:
    """The other names of servers for `cached_tokens` of the details."""
    # In this order of DeepSeek, Mistral, Together and Hugging Face, and those that count as
    # Anthropic does (Databricks, Venice, Doubleword), all seen in recordings.
    for read in (
        tokens.prompt_cache_hit_tokens,
        tokens.num_cached_tokens,
        tokens.cached_tokens,
        tokens.cache_read_input_tokens,
    ):
        if read is not None:
            return read
    return None


def encode_usage(usage: Usage, *, native: bool) -> dict[str, Json] | None:
    """The server's own object if it means these counts, otherwise a new one; None if unknown."""
    raw = usage.raw
    if native and isinstance(raw, dict) and _is_meant(usage, raw):
        return raw
    if usage == Usage():
        return None
    read, written = usage.cache_read_tokens, usage.cache_write_tokens
    input_details = without_none(
        cached_tokens=read,
        cache_write_tokens=written,
        audio_tokens=usage.input_audio_tokens,
        image_tokens=usage.input_image_tokens,
    )
    output_details = without_none(
        reasoning_tokens=usage.reasoning_tokens,
        audio_tokens=usage.output_audio_tokens,
    )
    wire: dict[str, Json] = {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.total_tokens,
    }
    if input_details:
        wire["prompt_tokens_details"] = input_details
    if output_details:
        wire["completion_tokens_details"] = output_details
    return wire
