"""
The shapes of a request, for a server that refuses what AWS refuses.

The names are those of the service model of `bedrock-runtime`; a test compares the table with it.
"""

from __future__ import annotations

from collections.abc import Mapping

from interlingua.spec.content import UncheckedJson
from interlingua.wire.media import decode_base64

_ENABLED = {"enabled": "flag!"}
_SOURCE = {"bytes": "blob", "s3Location": "S3Location"}
_SPAN = {"start": "integer", "end": "integer"}
_REFERENCE = {"tool": "ToolReference!"}

SHAPES: Mapping[str, Mapping[str, str]] = {
    "Request": {
        "messages": "[Message]",
        "system": "[SystemContentBlock]",
        "inferenceConfig": "InferenceConfiguration",
        "toolConfig": "ToolConfiguration",
        "guardrailConfig": "GuardrailStreamConfiguration",
        "additionalModelRequestFields": "any",
        "promptVariables": "{PromptVariableValues}",
        "additionalModelResponseFieldPaths": "[text]",
        "requestMetadata": "{text}",
        "performanceConfig": "PerformanceConfiguration",
        "serviceTier": "ServiceTier",
        "outputConfig": "OutputConfig",
    },
    "Message": {"role": "=user|assistant|system!", "content": "[ContentBlock]!"},
    "ContentBlock": {
        "text": "text",
        "image": "ImageBlock",
        "document": "DocumentBlock",
        "video": "VideoBlock",
        "audio": "AudioBlock",
        "toolUse": "ToolUseBlock",
        "toolResult": "ToolResultBlock",
        "guardContent": "GuardrailConverseContentBlock",
        "cachePoint": "CachePointBlock",
        "reasoningContent": "ReasoningContentBlock",
        "citationsContent": "CitationsContentBlock",
        "searchResult": "SearchResultBlock",
        "toolAddition": "ToolAdditionBlock",
        "toolRemoval": "ToolRemovalBlock",
    },
    "SystemContentBlock": {
        "text": "text",
        "guardContent": "GuardrailConverseContentBlock",
        "cachePoint": "CachePointBlock",
    },
    # media
    "ImageBlock": {
        "format": "=png|jpeg|gif|webp!",
        "source": "ImageSource!",
        "error": "ErrorBlock",
    },
    "ImageSource": _SOURCE,
    "ErrorBlock": {"message": "text"},
    "S3Location": {"uri": "text!", "bucketOwner": "text"},
    "DocumentBlock": {
        "format": "=pdf|csv|doc|docx|xls|xlsx|html|txt|md",
        "name": "text!",
        "source": "DocumentSource!",
        "context": "text",
        "citations": "CitationsConfig",
    },
    "DocumentSource": {**_SOURCE, "text": "text", "content": "[DocumentContentBlock]"},
    "DocumentContentBlock": {"text": "text"},
    "VideoBlock": {
        "format": "=mkv|mov|mp4|webm|flv|mpeg|mpg|wmv|three_gp!",
        "source": "VideoSource!",
    },
    "VideoSource": _SOURCE,
    "AudioBlock": {
        "format": "=mp3|opus|wav|aac|flac|mp4|ogg|mkv|mka|x-aac|m4a|mpeg|mpga|pcm|webm!",
        "source": "AudioSource!",
        "error": "ErrorBlock",
    },
    "AudioSource": _SOURCE,
    "GuardrailConverseContentBlock": {
        "text": "GuardrailConverseTextBlock",
        "image": "GuardrailConverseImageBlock",
    },
    "GuardrailConverseTextBlock": {
        "text": "text!",
        "qualifiers": "[=grounding_source|query|guard_content]",
    },
    "GuardrailConverseImageBlock": {
        "format": "=png|jpeg!",
        "source": "GuardrailConverseImageSource!",
    },
    "GuardrailConverseImageSource": {"bytes": "blob"},
    # tools
    "ToolUseBlock": {
        "toolUseId": "text!",
        "name": "text!",
        "input": "any!",
        "type": "=server_tool_use",
    },
    "ToolResultBlock": {
        "toolUseId": "text!",
        "content": "[ToolResultContentBlock]!",
        "status": "=success|error",
        "type": "text",
    },
    "ToolResultContentBlock": {
        "json": "any",
        "text": "text",
        "image": "ImageBlock",
        "document": "DocumentBlock",
        "video": "VideoBlock",
        "searchResult": "SearchResultBlock",
    },
    "ToolAdditionBlock": _REFERENCE,
    "ToolRemovalBlock": _REFERENCE,
    "ToolReference": {"type": "text", "name": "text", "serverName": "text"},
    "ToolConfiguration": {"tools": "[Tool]!", "toolChoice": "ToolChoice"},
    "Tool": {
        "toolSpec": "ToolSpecification",
        "systemTool": "SystemTool",
        "cachePoint": "CachePointBlock",
    },
    "ToolSpecification": {
        "name": "text!",
        "description": "text",
        "inputSchema": "ToolInputSchema!",
        "strict": "flag",
    },
    "ToolInputSchema": {"json": "any"},
    "SystemTool": {"name": "text!"},
    "ToolChoice": {"auto": "AutoToolChoice", "any": "AnyToolChoice", "tool": "SpecificToolChoice"},
    "AutoToolChoice": {},
    "AnyToolChoice": {},
    "SpecificToolChoice": {"name": "text!"},
    # reasoning, citations and marks
    "CachePointBlock": {"type": "=default!", "ttl": "=5m|1h"},
    "ReasoningContentBlock": {"reasoningText": "ReasoningTextBlock", "redactedContent": "blob"},
    "ReasoningTextBlock": {"text": "text!", "signature": "text"},
    "SearchResultBlock": {
        "source": "text!",
        "title": "text!",
        "content": "[SearchResultContentBlock]!",
        "citations": "CitationsConfig",
    },
    "SearchResultContentBlock": {"text": "text!"},
    "CitationsConfig": _ENABLED,
    "CitationsContentBlock": {"content": "[CitationGeneratedContent]", "citations": "[Citation]"},
    "CitationGeneratedContent": {"text": "text"},
    "Citation": {
        "title": "text",
        "source": "text",
        "sourceContent": "[CitationSourceContent]",
        "location": "CitationLocation",
    },
    "CitationSourceContent": {"text": "text"},
    "CitationLocation": {
        "web": "WebLocation",
        "documentChar": "DocumentCharLocation",
        "documentPage": "DocumentPageLocation",
        "documentChunk": "DocumentChunkLocation",
        "searchResultLocation": "SearchResultLocation",
    },
    "WebLocation": {"url": "text", "domain": "text"},
    "DocumentCharLocation": {"documentIndex": "integer", **_SPAN},
    "DocumentPageLocation": {"documentIndex": "integer", **_SPAN},
    "DocumentChunkLocation": {"documentIndex": "integer", **_SPAN},
    "SearchResultLocation": {"searchResultIndex": "integer", **_SPAN},
    # settings
    "InferenceConfiguration": {
        "maxTokens": "integer",
        "temperature": "number",
        "topP": "number",
        "stopSequences": "[text]",
    },
    "GuardrailStreamConfiguration": {
        "guardrailIdentifier": "text",
        "guardrailVersion": "text",
        "trace": "=enabled|disabled|enabled_full",
        "streamProcessingMode": "=sync|async",
    },
    "PromptVariableValues": {"text": "text"},
    "PerformanceConfiguration": {"latency": "=standard|optimized"},
    "ServiceTier": {"type": "=priority|default|flex|reserved!"},
    "OutputConfig": {"textFormat": "OutputFormat", "effort": "text"},
    "OutputFormat": {"type": "=json_schema!", "structure": "OutputFormatStructure!"},
    "OutputFormatStructure": {"jsonSchema": "JsonSchemaDefinition"},
    "JsonSchemaDefinition": {"schema": "text!", "name": "text", "description": "text"},
}
"""
The members of each shape, with their types.

`[X]` is a list, `{X}` an object with any keys, `=a|b` one of these words; `!` is a required member.
"""
UNIONS = frozenset(
    (
        *("ContentBlock", "SystemContentBlock", "ToolResultContentBlock", "ReasoningContentBlock"),
        *("ImageSource", "DocumentSource", "VideoSource", "AudioSource", "DocumentContentBlock"),
        *("GuardrailConverseContentBlock", "GuardrailConverseImageSource"),
        *("CitationGeneratedContent", "CitationSourceContent", "CitationLocation"),
        *("Tool", "ToolInputSchema", "ToolChoice", "PromptVariableValues"),
        "OutputFormatStructure",
    )
)
"""The shapes that have exactly one of their members."""


def body_problem(body: Mapping[str, UncheckedJson]) -> str | None:
    """Return what AWS has against the body of a request; None if its shape is right."""
    return _shape_problem(body, "Request", "")


def _shape_problem(value: UncheckedJson, name: str, path: str) -> str | None:
    if not isinstance(value, Mapping):
        return f"{path}: Expected an object"
    members = SHAPES[name]
    present = {key: item for key, item in value.items() if item is not None}  # null is absent
    if name in UNIONS and len(present) != 1:
        return f"{path}: Must set one of the following keys: {', '.join(members)}"
    for member, kind in members.items():
        if kind.endswith("!") and member not in present:
            return f"{_inside(path, member)}: Field required"
    for key, item in present.items():
        if key not in members:
            return f"{_inside(path, key)}: Unknown parameter"
        problem = _problem(item, members[key].removesuffix("!"), _inside(path, key))
        if problem is not None:
            return problem
    return None


def _inside(path: str, member: str) -> str:
    return f"{path}.{member}" if path else member


def _problem(value: UncheckedJson, kind: str, path: str) -> str | None:
    """What is wrong with a value of this type."""
    if kind in SHAPES:
        return _shape_problem(value, kind, path)
    if kind[0] == "[":
        if not isinstance(value, list):
            return f"{path}: Expected a list"
        problems = (_problem(item, kind[1:-1], f"{path}[{i}]") for i, item in enumerate(value))
        return next((problem for problem in problems if problem is not None), None)
    if kind[0] == "{":
        if not isinstance(value, Mapping):
            return f"{path}: Expected an object"
        problems = (_problem(item, kind[1:-1], f"{path}.{key}") for key, item in value.items())
        return next((problem for problem in problems if problem is not None), None)
    if kind[0] == "=":
        words = kind[1:].split("|")
        return None if value in words else f"{path}: Must be one of {', '.join(words)}"
    return None if _is_a(value, kind) else f"{path}: Expected {_NAMES[kind]}"


_NAMES = {
    "text": "a string",
    "blob": "bytes in base64",
    "flag": "true or false",
    "integer": "an integer",
    "number": "a number",
}


def _is_a(value: UncheckedJson, kind: str) -> bool:
    match kind:
        case "any":
            return True
        case "blob":
            return isinstance(value, str) and decode_base64(value) is not None
        case "text":
            return isinstance(value, str)
        case "flag":
            return isinstance(value, bool)
    is_number = isinstance(value, int) or (kind == "number" and isinstance(value, float))
    return is_number and not isinstance(value, bool)
