"""
The JSON as the vendor writes it.

These types are for readers and the type checker; decoding trusts none of them.
API reference: https://ai.google.dev/api/generate-content
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal, NotRequired, TypeAlias, TypedDict

from interlingua.spec.content import Extra, Json
from interlingua.wire.shape import Fields

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


# Names. The API reads camelCase and snake_case alike, and one object where an array belongs.
# These are the fields we know; whatever is not named here is free-form or unknown and stays
# as it is, whatever its keys look like.

Shape: TypeAlias = Mapping[str, Any]


def _flat(*names: str) -> Shape:
    return dict.fromkeys(names)


_MEDIA = _flat("mimeType", "data", "fileUri", "displayName")
_MEDIA_PART: Shape = {"inlineData": _MEDIA, "fileData": _MEDIA}
_PART: Shape = {
    **_flat(*WirePart.__annotations__, "videoMetadata", "mediaResolution"),
    **_MEDIA_PART,
    "functionCall": {
        **_flat(*FunctionCall.__annotations__),
        "partialArgs": _flat(
            "jsonPath", "stringValue", "numberValue", "boolValue", "nullValue", "willContinue"
        ),
    },
    "functionResponse": {**_flat(*FunctionResponse.__annotations__), "parts": _MEDIA_PART},
}
_CONTENT: Shape = {"role": None, "parts": _PART}
_GENERATION: Shape = {
    **_flat("temperature", "topP", "topK", "candidateCount", "maxOutputTokens", "stopSequences"),
    **_flat("seed", "presencePenalty", "frequencyPenalty"),
    **_flat("responseMimeType", "responseSchema", "responseJsonSchema"),
    "thinkingConfig": _flat("includeThoughts", "thinkingBudget", "thinkingLevel"),
}
REQUEST: Shape = {
    **_flat(*WireRequest.__annotations__),
    "contents": _CONTENT,
    "systemInstruction": _CONTENT,
    "tools": {
        "functionDeclarations": _flat("name", "description", "parameters", "parametersJsonSchema")
    },
    "toolConfig": {"functionCallingConfig": _flat("mode", "allowedFunctionNames")},
    "generationConfig": _GENERATION,
}
RESPONSE: Shape = {
    **_flat(*WireResponse.__annotations__),
    "candidates": {**_flat(*Candidate.__annotations__), "content": _CONTENT},
    "promptFeedback": _flat("blockReason", "blockReasonMessage"),
    "usageMetadata": _flat(*WireUsage.__annotations__),
}

_ARRAYS = frozenset(("contents", "parts", "tools", "functionDeclarations"))
_capitals = re.compile(r"_([a-z0-9])").sub


def to_camel(value: Json, shape: Shape) -> Json:
    """The value with its known fields in camelCase; the depth is that of the shape."""
    if isinstance(value, list):
        return [to_camel(item, shape) if isinstance(item, dict) else item for item in value]
    if not isinstance(value, dict):
        return value
    named: dict[str, Any] = {}
    for key, item in value.items():
        name = key
        if "_" in key:
            camel = _capitals(lambda found: found[1].upper(), key)
            name = camel if camel in shape and camel not in value else key
        inner = shape.get(name)
        if inner:
            item = to_camel(item, inner)  # noqa: PLW2901 -- the same item, renamed
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
