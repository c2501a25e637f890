"""Response <-> body; finish reasons, usage, and the frames of a stream as one body."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from interlingua.dialects.gemini_generate.annotations import (
    GROUNDING,
    LOGPROBS,
    join_logprobs,
    set_logprobs,
    with_citations,
    with_logprobs,
    write_grounding,
)
from interlingua.dialects.gemini_generate.content import encode_answer_part, read_part
from interlingua.dialects.gemini_generate.facts import (
    ABSENT,
    FINISH,
    NAME,
    RESPONSE,
    SIGNATURE,
    mark_absent,
    take_absent,
    to_camel,
)
from interlingua.dialects.gemini_generate.tool_calls import response_links
from interlingua.spec.content import Json, Text, ToolCall, UncheckedJson
from interlingua.spec.contracts import NEUTRAL_PROFILE, NewId, Profile
from interlingua.spec.messages import Message
from interlingua.spec.request import Request
from interlingua.spec.response import FinishReason, Reason, Response, Usage, Warning
from interlingua.wire.fields import (
    carried_body,
    carry_body,
    extra_of,
    known_int,
    whole_object,
)
from interlingua.wire.ratelimit_headers import parse_rate_limit
from interlingua.wire.usage import Count, Counts, make_usage, read_counts, served_tier

# The words of `FinishReason`; MODEL_ARMOR is only in recordings of Vertex AI. A client may ask for
# enums as numbers: those on which the vendor's two APIs agree are listed, the others are `other`.
_VENDOR_REASONS: dict[Reason, str] = {
    "stop": "STOP 1",
    "length": "MAX_TOKENS CONTINUATION 2",
    "content_filter": (
        "SAFETY RECITATION BLOCKLIST PROHIBITED_CONTENT SPII IMAGE_SAFETY "
        "IMAGE_PROHIBITED_CONTENT IMAGE_RECITATION MODEL_ARMOR 3 4 7 8"
    ),
    "error": (
        "MALFORMED_FUNCTION_CALL UNEXPECTED_TOOL_CALL TOO_MANY_TOOL_CALLS MALFORMED_RESPONSE "
        "LANGUAGE NO_IMAGE"
    ),
    "other": "OTHER IMAGE_OTHER FINISH_REASON_UNSPECIFIED",
}
_REASONS = {word: reason for reason, words in _VENDOR_REASONS.items() for word in words.split()}
_FINISH_REASONS: dict[Reason, str] = {
    "stop": "STOP",
    "tool_calls": "STOP",  # the API has no reason of its own for it
    "length": "MAX_TOKENS",
    "content_filter": "SAFETY",
}
_NUMBERS = frozenset(str(number) for number in range(100))
_DETAILS = ("promptTokensDetails", "candidatesTokensDetails", "cacheTokensDetails")
_ANSWER = frozenset(("candidates", "promptFeedback", "modelVersion", "responseId"))


class Envelope(msgspec.Struct, frozen=True, kw_only=True):
    """An answer whose parts have not been decoded yet."""

    id: str
    model: str
    parts: list[Json]
    finish: str | None
    block: str | None
    usage: Usage
    notes: list[Warning]
    extra: dict[str, UncheckedJson]


def decode_response(
    body: UncheckedJson,
    *,
    headers: Mapping[str, str] | None = None,
    new_id: NewId | None = None,
    profile: Profile = NEUTRAL_PROFILE,  # noqa: ARG001
    request: Request | None = None,  # noqa: ARG001
) -> Response:
    """Return the response that a client received."""
    whole = to_camel(whole_object(body), RESPONSE)
    if not is_answer(whole):
        return carry_body(NAME, body)
    envelope = read_envelope(whole)
    links = response_links(new_id)
    content = tuple([read_part(part, links) for part in envelope.parts])
    candidate = envelope.extra.get("candidate") or {}
    content = with_citations(candidate, content)
    if LOGPROBS in candidate:
        content = with_logprobs(candidate, content)
    has_calls = ToolCall in map(type, content)
    return Response(
        id=envelope.id,
        model=envelope.model,
        message=Message(role="assistant", content=content),
        finish_reason=decode_finish(envelope, has_calls=has_calls),
        usage=envelope.usage,
        warnings=envelope.notes,
        rate_limit=parse_rate_limit(headers or {}),
        raw=body,
        extra={NAME: envelope.extra},
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
    parts: list[Json] = []
    cited: list[tuple[int, Text]] = []
    for part in response.message.content:
        if isinstance(part, Text):
            cited.append((len(parts), part))
        parts += encode_answer_part(part)
    return ground(write_envelope(response, parts), response, cited)


def ground(
    body: dict[str, Json], response: Response, texts: Sequence[tuple[int, Text]]
) -> dict[str, Json]:
    """The body with the citations and tokens of these texts, unless it has the API's own."""
    candidates = body.get("candidates")
    if not isinstance(candidates, list) or not candidates or not isinstance(candidates[0], dict):
        return body
    first = dict(candidates[0])
    if NAME not in response.extra and any(text.citations for _, text in texts):
        first[GROUNDING] = write_grounding(texts)
    set_logprobs(first, [text for _, text in texts])
    return {**body, "candidates": [first, *candidates[1:]]}


def is_answer(whole: dict[str, Json]) -> bool:
    """Whether it is an answer, not a token count, an embedding or some other body."""
    return not _ANSWER.isdisjoint(whole)


# The first candidate is the answer. `extra` carries its unread fields under `candidate`, and the
# other candidates under `candidates`.


def read_envelope(whole: dict[str, Json]) -> Envelope:
    """The fields of an answer; `extra` holds the fields without a canonical form."""
    unread = dict(whole)
    parts: list[Json] = []
    notes: list[Warning] = []
    finish = None
    candidates = unread.get("candidates")
    if isinstance(candidates, list) and candidates and isinstance(candidates[0], dict):
        del unread["candidates"]
        parts, finish, unread["candidate"] = _read_candidate(candidates[0])
        if len(candidates) > 1:
            unread["candidates"] = candidates[1:]
    feedback, usage = unread.get("promptFeedback"), unread.get("usageMetadata")
    if isinstance(usage, dict):
        del unread["usageMetadata"]
    return Envelope(
        id=_take_word(unread, "responseId"),
        model=_take_word(unread, "modelVersion"),
        parts=parts,
        finish=finish,
        block=_enum_word(feedback.get("blockReason")) if isinstance(feedback, dict) else None,
        usage=decode_usage(usage, notes),
        notes=notes,
        extra=unread,
    )


def _take_word(unread: dict[str, UncheckedJson], name: str) -> str:
    """Remove a text; an empty one stays unread."""
    word = unread.get(name)
    if not isinstance(word, str) or not word:
        return ""
    del unread[name]
    return word


def _read_candidate(
    candidate: dict[str, UncheckedJson],
) -> tuple[list[Json], str | None, dict[str, Json]]:
    """The parts, the finish reason and the unread fields."""
    unread = dict(candidate)
    mark_absent(unread, candidate, "content", FINISH)
    finish = _enum_word(candidate.get(FINISH))
    if finish is not None:
        del unread[FINISH]
    if not isinstance(candidate.get("content"), dict):  # a filtered answer may have none
        return [], finish, unread
    content = unread["content"] = dict(candidate["content"])
    mark_absent(content, content, "parts", "role")
    if content.get("role") == "model":
        del content["role"]
    parts: list[Json] = content.pop("parts") if isinstance(content.get("parts"), list) else []
    if not content:
        del unread["content"]
    return parts, finish, unread


def write_envelope(response: Response, parts: list[Json] | None) -> dict[str, Json]:
    """The body of an answer; `parts` is None if earlier frames have sent them."""
    native = NAME in response.extra
    fields = dict(extra_of(response, NAME))
    candidate = fields.pop("candidate", None)
    body: dict[str, Json] = {}
    if candidate is not None or parts is None or parts or not native:
        first = candidate if isinstance(candidate, Mapping) else {"index": 0}
        finish = encode_finish(response.finish_reason, native=native)
        others = fields.pop("candidates", None)
        body["candidates"] = [
            _write_candidate(first, parts, finish),
            *(others if isinstance(others, list) else ()),
        ]
    if response.usage != Usage():
        body["usageMetadata"] = encode_usage(response.usage, native=native)
    if response.model:
        body["modelVersion"] = response.model
    if response.id:
        body["responseId"] = response.id
    if response.created_at is not None:
        from interlingua.dialects.gemini_generate.vendor_fields import complete_usage

        body = complete_usage(body, response.usage)
    return {**fields, **body}


def _write_candidate(
    candidate: Mapping[str, Json],
    parts: list[Json] | None,
    finish: str | int | None,
) -> dict[str, Json]:
    fields = dict(candidate)
    absent = take_absent(fields)
    content = fields.pop("content", {} if parts is not None and "content" not in absent else None)
    wire: dict[str, Json] = {}
    if isinstance(content, Mapping) or parts:
        wire["content"] = write_content(content if isinstance(content, Mapping) else {}, parts)
    elif "content" in candidate:
        wire["content"] = content
    if finish is not None and FINISH not in absent:
        wire[FINISH] = finish
    return {**wire, **fields}


def write_content(extra: Mapping[str, Json], parts: Sequence[Json] | None) -> dict[str, Json]:
    """The content of a candidate; `extra` are its other fields."""
    content = dict(extra)
    absent = take_absent(content)
    if parts or (parts is not None and not ("parts" in absent or "parts" in content)):
        content["parts"] = parts
    if "role" not in absent:
        content.setdefault("role", "model")
    return content


def decode_finish(envelope: Envelope, *, has_calls: bool) -> FinishReason:
    """
    `STOP` after a tool call is `tool_calls`; a blocked prompt has a block reason but no candidate.

    Seen in recordings: status 200 with `promptFeedback.blockReason` MODEL_ARMOR and no candidates.
    """
    finish = envelope.finish
    if finish is None and envelope.block is not None:
        return FinishReason(reason="content_filter", raw=envelope.block)
    reason = _REASONS.get(finish or "", "other")
    if reason == "stop" and has_calls:
        reason = "tool_calls"
    return FinishReason(reason=reason, raw=finish)


def encode_finish(finish: FinishReason, *, native: bool) -> str | int | None:
    """The vendor's own word if the answer came from it, otherwise the nearest."""
    raw = finish.raw
    if native and (raw is not None or finish.reason == "other"):
        return int(raw) if raw is not None and raw in _NUMBERS else raw
    is_known = raw is not None and _REASONS.get(raw) == finish.reason
    return raw if is_known else _FINISH_REASONS.get(finish.reason, "OTHER")


class _Tokens(Counts, rename="camel"):
    """`usageMetadata`."""

    prompt_token_count: Count = None
    tool_use_prompt_token_count: Count = None
    candidates_token_count: Count = None
    thoughts_token_count: Count = None
    cached_content_token_count: Count = None
    total_token_count: Count = None


_TOTAL = "totalTokenCount"
_COUNTS = frozenset(_Tokens.__struct_encode_fields__) - {_TOTAL}


def decode_usage(wire: UncheckedJson, notes: list[Warning] | None = None) -> Usage:
    """
    The vendor's `candidatesTokenCount` leaves out the thoughts; our output includes them.

    `total_token_count` is «the sum of `prompt_token_count`, `candidates_token_count`,
    `tool_use_prompt_token_count`, and `thoughts_token_count`».
    """
    if not isinstance(wire, dict):
        return Usage()
    tokens = read_counts(wire, _Tokens, notes)
    thoughts = tokens.thoughts_token_count
    # The tokens by modality: those of audio and images have prices of their own.
    input_details, output_details, cache_details = map(wire.get, _DETAILS)
    return make_usage(
        input_tokens=(tokens.prompt_token_count or 0) + (tokens.tool_use_prompt_token_count or 0),
        output_tokens=(tokens.candidates_token_count or 0) + (thoughts or 0),
        reasoning=thoughts,
        cache_read=tokens.cached_content_token_count,
        cache_read_audio=cache_details and _by_modality(cache_details, "AUDIO"),
        input_audio=input_details and _by_modality(input_details, "AUDIO"),
        input_image=input_details and _by_modality(input_details, "IMAGE"),
        output_audio=output_details and _by_modality(output_details, "AUDIO"),
        output_image=output_details and _by_modality(output_details, "IMAGE"),
        service_tier=served_tier(wire.get("serviceTier") or wire.get("trafficType")),
        raw=wire,
        notes=notes,
    )


def _by_modality(details: Json, modality: str) -> int:
    """The tokens of a modality in a list of details."""
    return sum(
        known_int(detail.get("tokenCount", detail.get("token_count")))
        for detail in (details if isinstance(details, list) else ())
        if isinstance(detail, dict) and detail.get("modality") == modality
    )


def encode_usage(usage: Usage, *, native: bool) -> dict[str, Json]:
    """The vendor's own figures if they are still the same, otherwise made from ours."""
    if native and isinstance(usage.raw, dict) and decode_usage(usage.raw) == usage:
        return usage.raw
    thoughts = usage.reasoning_tokens
    wire: dict[str, Json] = {
        "promptTokenCount": usage.input_tokens,
        "candidatesTokenCount": max(0, usage.output_tokens - (thoughts or 0)),
        _TOTAL: usage.total_tokens,
    }
    if thoughts is not None:
        wire["thoughtsTokenCount"] = thoughts
    if usage.cache_read_tokens is not None:
        wire["cachedContentTokenCount"] = usage.cache_read_tokens
    return wire


def _enum_word(value: Json) -> str | None:
    """The word of an enum value; a number is written as text."""
    if type(value) is int and 0 <= value < len(_NUMBERS):
        return str(value)
    return value if isinstance(value, str) else None


def frame_fields(extra: Mapping[str, Json]) -> dict[str, Json]:
    """The unusual fields of the candidate that every frame of a stream repeats."""
    candidate = extra.get("candidate")
    fields: dict[str, Json] = {}
    if isinstance(candidate, Mapping):
        if candidate.get("index", 0) != 0:
            fields["index"] = candidate["index"]
        content = candidate.get("content")
        if isinstance(content, Mapping) and "role" in take_absent(dict(content)):
            fields["content"] = {ABSENT: ["role"]}
    return fields


class Frames:
    """
    The frames of a stream as one body, without the parts of the answer.

    Each frame is an answer that adds parts. The decoder reads those of the first candidate; the
    other candidates have no canonical form and are collected here with their parts.
    """

    def __init__(self) -> None:
        self._top: dict[str, Json] = {}
        self._usage: dict[str, Json] = {}
        self._agreed: dict[str, Json] = {}  # the last figures that agree with their own total
        self._main: int | None = None  # the index of the candidate that is the answer
        self._candidates: dict[int, _Candidate] = {}
        self._malformed: list[Json] = []  # candidates that are not objects

    def feed(self, frame: dict[str, Json]) -> list[dict[str, Json]]:
        """Adds a frame; returns its candidates that belong to the answer."""
        fold(self._top, frame)
        self.feed_usage(frame.get("usageMetadata"))
        candidates = frame.get("candidates")
        places = enumerate(candidates if isinstance(candidates, list) else ())
        return [candidate for place, candidate in places if self._is_main(candidate, place)]

    def feed_usage(self, usage: Json) -> None:
        """Adds figures: they are cumulative, but later frames may leave some out."""
        if isinstance(usage, dict):
            fold(self._usage, usage)
            if _beside_total(usage) == 0:
                self._agreed = usage

    def whole(self) -> dict[str, Json]:
        """The body so far."""
        body = dict(self._top)
        if self._usage or isinstance(body.get("usageMetadata"), dict):
            body["usageMetadata"] = self._whole_usage()
        if self._main is not None:
            main, *others = [candidate.whole() for candidate in self._candidates.values()]
            body["candidates"] = [main, *self._malformed, *others]
        return body

    def _whole_usage(self) -> dict[str, Json]:
        """
        The figures together, unless an earlier one in them makes them contradict the total.

        Then they are those that last agreed with their own total, if they are nearer to it.
        """
        usage, agreed = self._usage, self._agreed
        beside = _beside_total(usage)
        if not beside or not agreed:
            return usage
        total, agreed_total = _total_of(usage), _total_of(agreed)
        if abs(total - agreed_total) >= abs(beside):
            return usage
        others = {name: value for name, value in usage.items() if name not in _COUNTS}
        return {**others, **agreed}

    def _is_main(self, candidate: Json, place: int) -> bool:
        if not isinstance(candidate, dict):
            self._malformed.append(candidate)
            return False
        index = candidate.get("index")
        if type(index) is not int:  # the vendor often leaves out 0
            index = place
        if self._main is None:
            self._main = index
        is_main = index == self._main
        self._candidates.setdefault(index, _Candidate()).feed(candidate, with_parts=not is_main)
        return is_main


def _total_of(usage: dict[str, Json]) -> int:
    return read_counts(usage, _Tokens).total_token_count or 0


def _beside_total(usage: dict[str, Json]) -> int | None:
    """How many tokens of the total the other figures leave out; None if there is no total."""
    tokens = read_counts(usage, _Tokens)
    if tokens.total_token_count is None:
        return None
    input_tokens = (tokens.prompt_token_count or 0) + (tokens.tool_use_prompt_token_count or 0)
    output_tokens = (tokens.candidates_token_count or 0) + (tokens.thoughts_token_count or 0)
    return tokens.total_token_count - input_tokens - output_tokens


class _Candidate:
    def __init__(self) -> None:
        self._fields: dict[str, Json] = {}
        self._content: dict[str, Json] = {}
        self._parts: list[tuple[UncheckedJson, list[str]]] = []  # each with the pieces of its text
        self._logprobs: dict[str, Json] = {}

    def feed(self, candidate: dict[str, Json], *, with_parts: bool) -> None:
        fold(self._fields, candidate)
        if LOGPROBS in candidate:
            join_logprobs(self._logprobs, candidate[LOGPROBS])
        content = candidate.get("content")
        if not isinstance(content, dict):
            return
        fold(self._content, content)
        parts = content.get("parts") if with_parts else None
        for place, part in enumerate(parts if isinstance(parts, list) else ()):
            text = part.get("text") if isinstance(part, dict) else None
            if not isinstance(text, str) or SIGNATURE in part:
                self._parts.append((part, []))
                continue
            others = {name: value for name, value in part.items() if name != "text"}
            last, pieces = self._parts[-1] if self._parts else (None, [])
            if place == 0 and pieces and last == others:
                pieces.append(text)
            else:
                self._parts.append((others, [text]))

    def whole(self) -> dict[str, Json]:
        candidate = dict(self._fields)
        if self._logprobs:
            candidate[LOGPROBS] = self._logprobs
        if self._content or isinstance(candidate.get("content"), dict):
            content = candidate["content"] = dict(self._content)
            if self._parts or isinstance(content.get("parts"), list):
                content["parts"] = [
                    {"text": "".join(pieces), **part} if pieces else part
                    for part, pieces in self._parts
                ]
        return candidate


def fold(known: dict[str, Json], update: dict[str, Json]) -> None:
    """Updates `known`; a null does not replace a value."""
    if None in update.values():
        update = {
            name: value
            for name, value in update.items()
            if value is not None or known.get(name) is None
        }
    known.update(update)
