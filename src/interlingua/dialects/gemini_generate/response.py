"""Response <-> body; finish reasons and usage."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from interlingua.dialects.gemini_generate.calls import response_links
from interlingua.dialects.gemini_generate.content import encode_answer_part, read_part
from interlingua.dialects.gemini_generate.facts import (
    ABSENT,
    FINISH,
    FINISH_REASONS,
    NAME,
    NUMBERED,
    REASONS,
    SIGNATURE,
    take_text,
)
from interlingua.dialects.gemini_generate.names import (
    CANDIDATE,
    CONTENT,
    FEEDBACK,
    PART,
    RESPONSE,
    USAGE,
    camel_names,
    to_camel,
)
from interlingua.spec.content import Json, ToolCall
from interlingua.spec.contracts import NEUTRAL_PROFILE, NewId, Profile
from interlingua.spec.messages import Message
from interlingua.spec.response import FinishReason, Response, Usage
from interlingua.wire.fields import Fields, carried_body, carry_body, counts, extra_of, whole_object
from interlingua.wire.ratelimit_headers import parse_rate_limit

_COUNTED = ("prompt", "toolUsePrompt", "candidates", "thoughts", "cachedContent")
_COUNTS = tuple(f"{name}TokenCount" for name in _COUNTED)
_ANSWER = frozenset(("candidates", "promptFeedback", "modelVersion", "responseId"))


_USUAL_CANDIDATE = frozenset(("content", FINISH))
_USUAL_CONTENT = frozenset(("parts", "role"))


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
    profile: Profile = NEUTRAL_PROFILE,  # noqa: ARG001
) -> Response:
    """What a client received."""
    whole = camel_names(whole_object(body), RESPONSE)
    if not is_answer(whole):
        return carry_body(NAME, body)
    envelope = read_envelope(whole)
    links = response_links(new_id)
    content = tuple([read_part(to_camel(part, PART), links) for part in envelope.parts])
    has_calls = ToolCall in map(type, content)
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
    return not _ANSWER.isdisjoint(whole)


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
        parts, finish, left["candidate"] = _read_candidate(camel_names(candidates[0], CANDIDATE))
        if len(candidates) > 1:
            left["candidates"] = candidates[1:]
    block = None
    if isinstance(feedback := left.get("promptFeedback"), dict):
        left["promptFeedback"] = feedback = camel_names(feedback, FEEDBACK)
        block = feedback.get("blockReason")
    return Envelope(
        id=take_text(fields, "responseId") or "",
        model=take_text(fields, "modelVersion") or "",
        parts=parts,
        finish=finish,
        block=_word(block),
        usage=decode_usage(fields.object("usageMetadata")),
        extra=left,
    )


def _read_candidate(candidate: dict[str, Any]) -> tuple[list[Any], str | None, dict[str, Any]]:
    left = dict(candidate)
    if not candidate.keys() >= _USUAL_CANDIDATE:
        left[ABSENT] = [name for name in ("content", FINISH) if name not in candidate]
    finish = _word(left.get(FINISH))
    if finish is not None:
        del left[FINISH]
    parts: list[Any] = []
    if isinstance(content := left.get("content"), dict):
        parts, left["content"] = _read_content(camel_names(content, CONTENT))
        if not left["content"]:
            del left["content"]
    return parts, finish, left


def _read_content(content: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    left = dict(content)
    if not content.keys() >= _USUAL_CONTENT:
        left[ABSENT] = [name for name in ("parts", "role") if name not in content]
    if left.get("role") == "model":
        del left["role"]
    parts = left.get("parts")
    if isinstance(parts, dict):  # one object may stand for an array of one
        parts = [parts]
    if not isinstance(parts, list):
        return [], left
    del left["parts"]
    return parts, left


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
        body["usageMetadata"] = encode_usage(response.usage, native=native)
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
    if finish is not None and FINISH not in absent:
        wire[FINISH] = finish
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
    reason = REASONS.get(finish or "") or NUMBERED.get(finish or "", "other")
    if reason == "stop" and has_calls:
        reason = "tool_calls"
    return FinishReason(reason=reason, raw=finish)


def encode_finish(finish: FinishReason, *, native: bool) -> str | int | None:
    """The provider's own word if it was this one's, else the nearest."""
    raw = finish.raw
    if native and (raw is not None or finish.reason == "other"):
        return int(raw) if raw is not None and raw in _ALL_NUMBERS else raw
    is_known = raw is not None and REASONS.get(raw) == finish.reason
    return raw if is_known else FINISH_REASONS[finish.reason]


_ALL_NUMBERS = frozenset(str(number) for number in range(100))


def decode_usage(wire: Any) -> Usage:
    """Thoughts are no part of the candidates' count here; in ours they are output."""
    if not isinstance(wire, dict):
        return Usage()
    wire = camel_names(wire, USAGE)
    prompt, tools, answer, thoughts, cached = counts(wire, *_COUNTS)
    return Usage(
        input_tokens=(prompt or 0) + (tools or 0),
        output_tokens=(answer or 0) + (thoughts or 0),
        reasoning_tokens=thoughts,
        cache_read_tokens=cached,
        raw=wire,
    )


def encode_usage(usage: Usage, *, native: bool) -> dict[str, Any]:
    """The provider's own figures if they say the same, else made from ours."""
    if native and usage.raw is not None and decode_usage(usage.raw) == usage:
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


# A stream's frames are answers too, each with more of the parts.


class Frames:
    """Put together as one body, but for the parts of the answer."""

    def __init__(self) -> None:
        self._usage: dict[str, Any] = {}
        self._top: dict[str, Any] = {}
        self._main: int | None = None  # the index of the candidate that is the answer
        self._candidates: dict[int, _Candidate] = {}
        self._odd: list[Any] = []

    def feed(self, frame: dict[str, Any]) -> list[dict[str, Any]]:
        """Take one in; what it has of the answer."""
        fold(self._top, frame)
        self.feed_usage(frame.get("usageMetadata"))
        candidates = frame.get("candidates")
        told = enumerate(candidates if isinstance(candidates, list) else ())
        return [candidate for place, candidate in told if self._is_main(candidate, place)]

    def feed_usage(self, usage: Any) -> None:
        """Figures are cumulative, but later ones may leave fields out."""
        if isinstance(usage, dict):
            fold(self._usage, usage)

    def whole(self) -> dict[str, Any]:
        """The body so far."""
        body = dict(self._top)
        if self._usage or isinstance(body.get("usageMetadata"), dict):
            body["usageMetadata"] = self._usage
        if self._main is not None:
            main, *others = [candidate.whole() for candidate in self._candidates.values()]
            body["candidates"] = [main, *self._odd, *others]
        return body

    def _is_main(self, candidate: Any, place: int) -> bool:
        """Whether it is the answer; the others have no canonical form, and are kept."""
        if not isinstance(candidate, dict):
            self._odd.append(candidate)
            return False
        index = candidate.get("index")
        if type(index) is not int:  # 0 is often left out
            index = place
        if self._main is None:
            self._main = index
        known = self._candidates.setdefault(index, _Candidate())
        known.feed(candidate)
        if index != self._main:
            known.feed_parts(candidate)
        return index == self._main


class _Candidate:
    def __init__(self) -> None:
        self._fields: dict[str, Any] = {}
        self._content: dict[str, Any] = {}
        self._parts: list[tuple[dict[str, Any], list[str]]] = []  # each with its pieces of text

    def feed(self, candidate: dict[str, Any]) -> None:
        fold(self._fields, candidate)
        if isinstance(candidate.get("content"), dict):
            fold(self._content, candidate["content"])

    def feed_parts(self, candidate: dict[str, Any]) -> None:
        content = candidate.get("content")
        parts = content.get("parts") if isinstance(content, dict) else None
        for place, part in enumerate(parts if isinstance(parts, list) else ()):
            text = part.get("text") if isinstance(part, dict) else None
            if not isinstance(text, str) or SIGNATURE in part:
                self._parts.append((part, []))
                continue
            left = {name: value for name, value in part.items() if name != "text"}
            known, pieces = self._parts[-1] if self._parts else (None, [])
            if place == 0 and pieces and known == left:
                pieces.append(text)
            else:
                self._parts.append((left, [text]))

    def whole(self) -> dict[str, Any]:
        candidate = dict(self._fields)
        if self._content or isinstance(candidate.get("content"), dict):
            content = candidate["content"] = dict(self._content)
            if self._parts or isinstance(content.get("parts"), list):
                content["parts"] = [
                    {"text": "".join(pieces), **part} if pieces else part
                    for part, pieces in self._parts
                ]
        return candidate


def fold(known: dict[str, Any], more: dict[str, Any]) -> None:
    """The later value counts, unless it is null."""
    if None in more.values():
        more = {
            name: value
            for name, value in more.items()
            if value is not None or known.get(name) is None
        }
    known.update(more)
