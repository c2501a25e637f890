"""
The JSON as the vendor writes it.

These types are for readers and the type checker; decoding trusts none of them.
API reference: https://ai.google.dev/api/generate-content
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal, NotRequired, TypeAlias, TypedDict

from interlingua.spec.content import Json

NAME = "gemini_generate"
PATH = "/v1beta/models/{model}:generateContent"

ABSENT = "absent"
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
    index: int


class WireResponse(TypedDict, total=False):
    """Also one chunk of a stream."""

    candidates: list[Candidate]
    promptFeedback: dict[str, Any]
    usageMetadata: WireUsage
    modelVersion: str
    responseId: str


# Names. The API reads camelCase and snake_case alike, and one object where an array belongs.
# These are the fields we know; whatever is not named here is free-form or unknown and stays
# as it is, whatever its keys look like.

Shape: TypeAlias = Mapping[str, Any]

_MEDIA: Shape = {"mimeType": None, "data": None, "fileUri": None, "displayName": None}
_MEDIA_PART: Shape = {"inlineData": _MEDIA, "fileData": _MEDIA}
_PARTIAL: Shape = dict.fromkeys(
    ("jsonPath", "stringValue", "numberValue", "boolValue", "nullValue", "willContinue")
)
_PART: Shape = {
    **_MEDIA_PART,
    "text": None,
    "thought": None,
    "thoughtSignature": None,
    "functionCall": {
        "name": None,
        "args": None,
        "id": None,
        "partialArgs": _PARTIAL,
        "willContinue": None,
    },
    "functionResponse": {"name": None, "response": None, "id": None, "parts": _MEDIA_PART},
    "executableCode": None,
    "codeExecutionResult": None,
    "toolCall": None,
    "toolResponse": None,
    "videoMetadata": None,
    "mediaResolution": None,
}
_CONTENT: Shape = {"role": None, "parts": _PART}
_GENERATION: Shape = {
    **dict.fromkeys(
        (
            "temperature",
            "topP",
            "topK",
            "candidateCount",
            "maxOutputTokens",
            "stopSequences",
            "seed",
            "presencePenalty",
            "frequencyPenalty",
            "responseMimeType",
            "responseSchema",
            "responseJsonSchema",
        )
    ),
    "thinkingConfig": dict.fromkeys(("includeThoughts", "thinkingBudget", "thinkingLevel")),
}
REQUEST: Shape = {
    "contents": _CONTENT,
    "systemInstruction": _CONTENT,
    "tools": {
        "functionDeclarations": dict.fromkeys(
            ("name", "description", "parameters", "parametersJsonSchema")
        )
    },
    "toolConfig": {"functionCallingConfig": dict.fromkeys(("mode", "allowedFunctionNames"))},
    "generationConfig": _GENERATION,
    "safetySettings": None,
    "cachedContent": None,
}
RESPONSE: Shape = {
    "candidates": {"content": _CONTENT, "finishReason": None, "finishMessage": None},
    "promptFeedback": {"blockReason": None, "blockReasonMessage": None},
    "usageMetadata": dict.fromkeys(WireUsage.__annotations__),
    "modelVersion": None,
    "responseId": None,
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
