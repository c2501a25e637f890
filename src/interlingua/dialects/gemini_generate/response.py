"""Response <-> body; the tables of finish reasons and usage."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from interlingua.dialects.gemini_generate.content import encode_answer_part, read_part
from interlingua.dialects.gemini_generate.links import response_links
from interlingua.dialects.gemini_generate.wire import ABSENT, NAME, RESPONSE, to_camel
from interlingua.spec.content import Json, ToolCall
from interlingua.spec.contracts import DEFAULT, NewId, Profile
from interlingua.spec.messages import Message
from interlingua.spec.response import FinishReason, Reason, Response, Usage
from interlingua.wire.carry import carried_body, carry_body, whole_object
from interlingua.wire.limits import parse_rate_limit
from interlingua.wire.shape import Fields, count, extra_of, known_int

_REASONS: dict[str, Reason] = {
    "STOP": "stop",
    "MAX_TOKENS": "length",
    "CONTINUATION": "length",
    "SAFETY": "content_filter",
    "RECITATION": "content_filter",
    "BLOCKLIST": "content_filter",
    "PROHIBITED_CONTENT": "content_filter",
    "SPII": "content_filter",
    "IMAGE_SAFETY": "content_filter",
    "IMAGE_PROHIBITED_CONTENT": "content_filter",
    "IMAGE_RECITATION": "content_filter",
    "MODEL_ARMOR": "content_filter",
    "MALFORMED_FUNCTION_CALL": "error",
    "UNEXPECTED_TOOL_CALL": "error",
    "TOO_MANY_TOOL_CALLS": "error",
    "MALFORMED_RESPONSE": "error",
    "LANGUAGE": "error",
    "NO_IMAGE": "error",
    "OTHER": "other",
    "IMAGE_OTHER": "other",
    "FINISH_REASON_UNSPECIFIED": "other",
}
# Enums as integers, where a client asked for them. Only the numbers on which the vendor's two
# APIs agree; the rest are `other`.
_NUMBERED: dict[str, Reason] = {
    "1": "stop",
    "2": "length",
    "3": "content_filter",
    "4": "content_filter",
    "7": "content_filter",
    "8": "content_filter",
}
_FINISH_REASONS: dict[Reason, str] = {
    "stop": "STOP",
    "length": "MAX_TOKENS",
    "tool_calls": "STOP",
    "content_filter": "SAFETY",
    "cancelled": "OTHER",
    "error": "OTHER",
    "other": "OTHER",
}
_ANSWER = ("candidates", "promptFeedback", "modelVersion", "responseId")
_FINISH = "finishReason"


class Envelope(NamedTuple):
    """An answer, read but for its parts."""

    id: str
    model: str
    parts: list[Any]
    finish: str | None
    block: str | None
    usage: Usage
    extra: dict[str, Any]


def decode_response(
    body: Json,
    *,
    headers: Mapping[str, str] | None = None,
    new_id: NewId | None = None,
    profile: Profile = DEFAULT,  # noqa: ARG001
) -> Response:
    """What a client received."""
    whole = to_camel(whole_object(body), RESPONSE)
    if not is_answer(whole):
        return carry_body(NAME, body)
    envelope = read_envelope(whole)
    links = response_links(new_id)
    content = tuple(read_part(part, links) for part in envelope.parts)
    has_calls = any(isinstance(part, ToolCall) for part in content)
    return Response(
        id=envelope.id,
        model=envelope.model,
        message=Message(role="assistant", content=content),
        finish_reason=decode_finish(envelope, has_calls=has_calls),
        usage=envelope.usage,
        rate_limit=parse_rate_limit(headers or {}),
        raw=body,
        extra={NAME: envelope.extra},
    )


def encode_response(response: Response) -> Json:
    """What a server sends."""
    carried = carried_body(response, NAME)
    if carried is not None:
        return carried
    parts = [wire for part in response.message.content for wire in encode_answer_part(part)]
    return write_envelope(response, extra_of(response, NAME), parts)


def is_answer(whole: dict[str, Any]) -> bool:
    """Whether it is an answer, and not a token count, an embedding or some other body."""
    return any(name in whole for name in _ANSWER)


# The first candidate is the answer. What is not read of it is kept under `candidate`, and the
# others, whole, under `candidates`.


def read_envelope(whole: dict[str, Any]) -> Envelope:
    """The fields of an answer, each kept in its place if it has no other."""
    fields = Fields(whole, strict=False)
    left = fields.left
    parts: list[Any] = []
    finish = None
    candidates = left.get("candidates")
    if isinstance(candidates, list) and candidates and isinstance(candidates[0], dict):
        del left["candidates"]
        parts, finish, left["candidate"] = _read_candidate(candidates[0])
        if len(candidates) > 1:
            left["candidates"] = candidates[1:]
    feedback = left.get("promptFeedback")
    block = feedback.get("blockReason") if isinstance(feedback, dict) else None
    return Envelope(
        id=_take_name(fields, "responseId"),
        model=_take_name(fields, "modelVersion"),
        parts=parts,
        finish=finish,
        block=_word(block),
        usage=decode_usage(fields.object("usageMetadata")),
        extra=left,
    )


def _read_candidate(candidate: dict[str, Any]) -> tuple[list[Any], str | None, dict[str, Any]]:
    fields = Fields(candidate, strict=False)
    absent = [name for name in ("content", _FINISH) if name not in candidate]
    finish = _word(fields.left.get(_FINISH))
    if finish is not None:
        del fields.left[_FINISH]
    parts: list[Any] = []
    content = fields.fields("content")
    if content is not None:
        missing = [name for name in ("parts", "role") if name not in content.left]
        parts = content.array("parts") or []
        if content.left.get("role") == "model":
            del content.left["role"]
        if missing:
            content.left[ABSENT] = missing
        if content.left:
            fields.left["content"] = content.left
    if absent:
        fields.left[ABSENT] = absent
    return parts, finish, fields.left


def write_envelope(
    response: Response, extra: Mapping[str, Any], parts: list[Any] | None
) -> dict[str, Any]:
    """The body of an answer; `parts` is None if they have been sent before it."""
    native = NAME in response.extra
    kept = dict(extra)
    candidate = kept.pop("candidate", None)
    body: dict[str, Any] = {}
    if candidate is not None or parts is None or parts or not native:
        first = candidate if isinstance(candidate, Mapping) else {"index": 0}
        finish = encode_finish(response.finish_reason, native=native)
        others = kept.pop("candidates", None)
        body["candidates"] = [
            _write_candidate(first, parts, finish),
            *(others if isinstance(others, list) else ()),
        ]
    if response.usage != Usage():
        body["usageMetadata"] = encode_usage(response.usage)
    if response.model:
        body["modelVersion"] = response.model
    if response.id:
        body["responseId"] = response.id
    return {**kept, **body}


def _write_candidate(
    candidate: Mapping[str, Any], parts: list[Any] | None, finish: str | int | None
) -> dict[str, Any]:
    kept = dict(candidate)
    absent = kept.pop(ABSENT, ())
    content = kept.pop("content", {} if parts is not None and "content" not in absent else None)
    wire: dict[str, Any] = {}
    if isinstance(content, Mapping) or parts:
        wire["content"] = write_content(content if isinstance(content, Mapping) else {}, parts)
    elif "content" in candidate:
        wire["content"] = content
    if finish is not None and _FINISH not in absent:
        wire[_FINISH] = finish
    return {**wire, **kept}


def write_content(kept: Mapping[str, Any], parts: list[Any] | None) -> dict[str, Any]:
    """A model's content, with what it had beside its parts."""
    content = dict(kept)
    absent = content.pop(ABSENT, ())
    if parts or (parts is not None and not ("parts" in absent or "parts" in content)):
        content["parts"] = parts
    if "role" not in absent:
        content.setdefault("role", "model")
    return content


def decode_finish(envelope: Envelope, *, has_calls: bool) -> FinishReason:
    """`STOP` after a call is `tool_calls`; a refused prompt has no candidate but a block."""
    finish = envelope.finish
    if finish is None and envelope.block is not None:
        return FinishReason(reason="content_filter", raw=envelope.block)
    reason = _REASONS.get(finish or "") or _NUMBERED.get(finish or "", "other")
    if reason == "stop" and has_calls:
        reason = "tool_calls"
    return FinishReason(reason=reason, raw=finish)


def encode_finish(finish: FinishReason, *, native: bool) -> str | int | None:
    """The provider's own word if it was this one's, else the nearest."""
    raw = finish.raw
    if native and (raw is not None or finish.reason == "other"):
        return int(raw) if raw is not None and raw in _ALL_NUMBERS else raw
    return raw if raw in _REASONS else _FINISH_REASONS[finish.reason]


_ALL_NUMBERS = frozenset(str(number) for number in range(100))


def decode_usage(wire: Any) -> Usage:
    """Thoughts are no part of the candidates' count here; in ours they are output."""
    if not isinstance(wire, dict):
        return Usage()
    thoughts = count(wire.get("thoughtsTokenCount"))
    prompt = known_int(wire.get("promptTokenCount"))
    return Usage(
        input_tokens=prompt + known_int(wire.get("toolUsePromptTokenCount")),
        output_tokens=known_int(wire.get("candidatesTokenCount")) + (thoughts or 0),
        reasoning_tokens=thoughts,
        cache_read_tokens=count(wire.get("cachedContentTokenCount")),
        raw=wire,
    )


def encode_usage(usage: Usage) -> dict[str, Any]:
    """The provider's own figures if they say the same, else made from ours."""
    if usage.raw is not None and decode_usage(usage.raw) == usage:
        return usage.raw  # type: ignore[no-any-return]
    thoughts = usage.reasoning_tokens
    wire: dict[str, Any] = {
        "promptTokenCount": usage.input_tokens,
        "candidatesTokenCount": max(0, usage.output_tokens - (thoughts or 0)),
        "totalTokenCount": usage.total_tokens,
    }
    if thoughts is not None:
        wire["thoughtsTokenCount"] = thoughts
    if usage.cache_read_tokens is not None:
        wire["cachedContentTokenCount"] = usage.cache_read_tokens
    return wire


def _word(value: Any) -> str | None:
    """An enum's value: a word, or the number it goes by."""
    if type(value) is int and 0 <= value < len(_ALL_NUMBERS):
        return str(value)
    return value if isinstance(value, str) else None


def _take_name(fields: Fields, key: str) -> str:
    found = fields.text(key)
    if found == "":
        fields.left[key] = ""
    return found or ""
