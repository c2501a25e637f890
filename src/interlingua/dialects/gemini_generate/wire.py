"""
The JSON as the vendor writes it.

These types are for readers and the type checker; decoding trusts none of them.
API reference: https://ai.google.dev/api/generate-content
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, NotRequired, TypedDict

from interlingua.spec.content import Extra, Json
from interlingua.spec.response import Reason
from interlingua.wire.fields import Fields

NAME = "gemini_generate"
PATH = "/v1beta/models/{model}:generateContent"
FINISH = "finishReason"
SIGNATURE = "thoughtSignature"

ABSENT = "~absent"
"""Our mark in `extra`: fields the wire left out that we would otherwise write."""

NO_REASON = {"candidates": [{"finishReason": None}]}
"""The frame with which we end a stream whose answer has no finish reason."""


class Blob(TypedDict):
    mimeType: str
    data: str


class FileData(TypedDict):
    fileUri: str
    mimeType: NotRequired[str]


class FunctionCall(TypedDict):
    """`partialArgs` and `willContinue` come only in streams that were asked for them."""

    name: str
    args: NotRequired[dict[str, Any]]
    id: NotRequired[str]
    partialArgs: NotRequired[list[dict[str, Any]]]
    willContinue: NotRequired[bool]


class FunctionResponse(TypedDict):
    name: str
    response: dict[str, Any]
    id: NotRequired[str]
    parts: NotRequired[list[dict[str, Any]]]


class WirePart(TypedDict, total=False):
    """One data field, and what may stand beside any of them."""

    text: str
    inlineData: Blob
    fileData: FileData
    functionCall: FunctionCall
    functionResponse: FunctionResponse
    executableCode: dict[str, Any]
    codeExecutionResult: dict[str, Any]
    toolCall: dict[str, Any]
    toolResponse: dict[str, Any]
    thought: bool
    thoughtSignature: str


class WireContent(TypedDict, total=False):
    role: Literal["user", "model", "function"]
    parts: list[WirePart]


class WireRequest(TypedDict, total=False):
    contents: list[WireContent]
    systemInstruction: WireContent
    tools: list[dict[str, Any]]
    toolConfig: dict[str, Any]
    safetySettings: list[dict[str, str]]
    generationConfig: dict[str, Any]
    cachedContent: str


class WireUsage(TypedDict, total=False):
    """`candidatesTokenCount` leaves the thoughts out; the prompt count has the cached ones."""

    promptTokenCount: int
    toolUsePromptTokenCount: int
    cachedContentTokenCount: int
    candidatesTokenCount: int
    thoughtsTokenCount: int
    totalTokenCount: int


class Candidate(TypedDict, total=False):
    content: WireContent
    finishReason: str | int
    finishMessage: str
    index: int


class WireResponse(TypedDict, total=False):
    """Also one chunk of a stream."""

    candidates: list[Candidate]
    promptFeedback: dict[str, Any]
    usageMetadata: WireUsage
    modelVersion: str
    responseId: str


DATA = frozenset(WirePart.__annotations__) - {"thought", SIGNATURE}
"""Of these fields a part has one; the others stand beside it."""


# Finish reasons.

REASONS: dict[str, Reason] = {
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
NUMBERED: dict[str, Reason] = {
    "1": "stop",
    "2": "length",
    "3": "content_filter",
    "4": "content_filter",
    "7": "content_filter",
    "8": "content_filter",
}
FINISH_REASONS: dict[Reason, str] = {
    "stop": "STOP",
    "length": "MAX_TOKENS",
    "tool_calls": "STOP",
    "content_filter": "SAFETY",
    "cancelled": "OTHER",
    "error": "OTHER",
    "other": "OTHER",
}


# Names. The API reads camelCase and snake_case alike, and one object where an array belongs.
# These are the fields we know; whatever is not named here is free-form or unknown and stays
# as it is, whatever its keys look like.


class Shape(NamedTuple):
    """The fields of an object, and the shape of those that are objects or arrays of them."""

    names: frozenset[str]
    inner: Mapping[str, Shape]


def shape_of(*names: str, **inner: Shape) -> Shape:
    """The shape with these fields, some with shapes of their own."""
    return Shape(frozenset((*names, *inner)), inner)


_MEDIA = shape_of("mimeType", "data", "fileUri", "displayName")
PART = shape_of(
    *WirePart.__annotations__,
    "videoMetadata",
    "mediaResolution",
    inlineData=_MEDIA,
    fileData=_MEDIA,
    functionCall=shape_of(
        *FunctionCall.__annotations__,
        partialArgs=shape_of(
            "jsonPath", "stringValue", "numberValue", "boolValue", "nullValue", "willContinue"
        ),
    ),
    functionResponse=shape_of(
        *FunctionResponse.__annotations__, parts=shape_of(inlineData=_MEDIA, fileData=_MEDIA)
    ),
)
CONTENT = shape_of("role", parts=PART)
_GENERATION = shape_of(
    *("temperature", "topP", "topK", "candidateCount", "maxOutputTokens", "stopSequences"),
    *("seed", "presencePenalty", "frequencyPenalty"),
    *("responseMimeType", "responseSchema", "responseJsonSchema"),
    thinkingConfig=shape_of("includeThoughts", "thinkingBudget", "thinkingLevel"),
)
REQUEST = shape_of(
    *WireRequest.__annotations__,
    contents=CONTENT,
    systemInstruction=CONTENT,
    tools=shape_of(
        functionDeclarations=shape_of("name", "description", "parameters", "parametersJsonSchema")
    ),
    toolConfig=shape_of(functionCallingConfig=shape_of("mode", "allowedFunctionNames")),
    generationConfig=_GENERATION,
)
CANDIDATE = shape_of(*Candidate.__annotations__, content=CONTENT)
FEEDBACK = shape_of("blockReason", "blockReasonMessage")
USAGE = shape_of(*WireUsage.__annotations__)
RESPONSE = shape_of(
    *WireResponse.__annotations__,
    candidates=CANDIDATE,
    promptFeedback=FEEDBACK,
    usageMetadata=USAGE,
)

_ARRAYS = frozenset(("contents", "parts", "tools", "functionDeclarations"))
_capitals = re.compile(r"_([a-z0-9])").sub


def to_camel(value: Json, shape: Shape) -> Json:
    """
    The value with its known fields in camelCase; the same object if they are already.

    The depth is that of the shape.
    """
    return value if _is_camel(value, shape) else _rename(value, shape)


def camel_names(value: dict[str, Any], shape: Shape) -> dict[str, Any]:
    """One object, nothing in it looked at, with its known fields in camelCase."""
    if "_" not in "".join(value):
        return value
    return {_camel(key, value, shape): item for key, item in value.items()}


def _camel(key: str, value: dict[str, Any], shape: Shape) -> str:
    camel = _capitals(lambda found: found[1].upper(), key) if "_" in key else key
    return camel if camel in shape.names and camel not in value else key


def _is_camel(value: Json, shape: Shape) -> bool:
    pending = [(value, shape)]
    for item, known in pending:
        if isinstance(item, dict):
            if "_" in "".join(item):
                return False
            for name in known.inner.keys() & item.keys() if known.inner else ():
                if name in _ARRAYS and isinstance(item[name], dict):
                    return False
                pending.append((item[name], known.inner[name]))  # this loop comes to it too
        elif isinstance(item, list):
            pending += [(each, known) for each in item]
    return True


def _rename(value: Json, shape: Shape) -> Json:
    if isinstance(value, list):
        return [_rename(item, shape) if isinstance(item, dict) else item for item in value]
    if not isinstance(value, dict):
        return value
    named: dict[str, Any] = {}
    for key, item in value.items():
        name = _camel(key, value, shape)
        if name in shape.inner:
            item = _rename(item, shape.inner[name])  # noqa: PLW2901 -- the same item, renamed
            if name in _ARRAYS and isinstance(item, dict):
                item = [item]  # noqa: PLW2901
        named[name] = item
    return named


# What is kept beside the language.


def keep(left: dict[str, Any]) -> Extra:
    """The `extra` that holds what was not read."""
    return {NAME: left} if left else {}


def take_nested(kept: dict[str, Any], key: str) -> dict[str, Any]:
    """What was kept of an inner object, taken out."""
    found: Json = kept.pop(key, None)
    return dict(found) if isinstance(found, dict) else {}


def take_text(fields: Fields, key: str) -> str | None:
    """A string; an empty one says nothing, and is kept."""
    found = fields.text(key)
    if found == "":
        fields.left[key] = ""
    return found or None
