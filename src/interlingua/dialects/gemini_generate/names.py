"""
The names of fields.

The API reads camelCase and snake_case alike, and one object where an array belongs. These are the
fields we know; whatever is not named here is free-form or unknown and stays as it is, whatever
its keys look like.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from interlingua.spec.content import Json


class Shape(NamedTuple):
    """The fields of an object, and the shape of those that are objects or arrays of them."""

    names: frozenset[str]
    inner: Mapping[str, Shape]


def shape_of(*names: str, **inner: Shape) -> Shape:
    """The shape with these fields, some with shapes of their own."""
    return Shape(frozenset((*names, *inner)), inner)


_MEDIA = shape_of("mimeType", "data", "fileUri", "displayName")
PART = shape_of(
    "text",
    *("executableCode", "codeExecutionResult", "toolCall", "toolResponse"),
    *("thought", "thoughtSignature"),
    "videoMetadata",
    "mediaResolution",
    inlineData=_MEDIA,
    fileData=_MEDIA,
    functionCall=shape_of(
        *("name", "args", "id", "willContinue"),
        partialArgs=shape_of(
            "jsonPath", "stringValue", "numberValue", "boolValue", "nullValue", "willContinue"
        ),
    ),
    functionResponse=shape_of(
        *("name", "response", "id"), parts=shape_of(inlineData=_MEDIA, fileData=_MEDIA)
    ),
)
DATA = PART.names - {"thought", "thoughtSignature", "videoMetadata", "mediaResolution"}
"""Of these fields a part has one; the others stand beside it."""
CONTENT = shape_of("role", parts=PART)
_GENERATION = shape_of(
    *("temperature", "topP", "topK", "candidateCount", "maxOutputTokens", "stopSequences"),
    *("seed", "presencePenalty", "frequencyPenalty"),
    *("responseMimeType", "responseSchema", "responseJsonSchema"),
    thinkingConfig=shape_of("includeThoughts", "thinkingBudget", "thinkingLevel"),
)
REQUEST = shape_of(
    "safetySettings",
    "cachedContent",
    contents=CONTENT,
    systemInstruction=CONTENT,
    tools=shape_of(
        functionDeclarations=shape_of("name", "description", "parameters", "parametersJsonSchema")
    ),
    toolConfig=shape_of(functionCallingConfig=shape_of("mode", "allowedFunctionNames")),
    generationConfig=_GENERATION,
)
CANDIDATE = shape_of("finishReason", "finishMessage", "index", content=CONTENT)
FEEDBACK = shape_of("blockReason", "blockReasonMessage")
# `candidatesTokenCount` leaves the thoughts out; `promptTokenCount` includes the cached tokens.
USAGE = shape_of(
    *("promptTokenCount", "toolUsePromptTokenCount", "cachedContentTokenCount"),
    *("candidatesTokenCount", "thoughtsTokenCount", "totalTokenCount"),
)
RESPONSE = shape_of(
    "modelVersion",
    "responseId",
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
