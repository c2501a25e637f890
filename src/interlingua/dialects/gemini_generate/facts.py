"""
The facts of Gemini `generateContent`, each with its reason, and the names of its fields.

API reference: https://ai.google.dev/api/generate-content. Texts in «» are the vendor's: error
messages, or descriptions of fields in its Python SDK (`google.genai.types`).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from interlingua.prepare.cache import AFTER_SYSTEM, ALL, MODEL, TOOLS
from interlingua.prepare.schema.keywords import SILENT, words
from interlingua.spec.content import Extra, Json, Part, Thinking, UncheckedJson
from interlingua.spec.facts import (
    CacheRules,
    CacheStep,
    Carrier,
    Continuation,
    Facts,
    HistoryRules,
    SchemaRules,
    SealedField,
)
from interlingua.wire.fields import Fields

NAME = "gemini_generate"
PATH = "/v1beta/models/{model}:generateContent"
MODEL_PATH = r"(?:(?!/models/).)*/models/(?P<model>.+)"
"""
A pattern for the beginning of a path, before the colon and the verb.

The vendor's names have no colon and no slash; those of a gateway may: `openrouter:maker/name:free`.
"""
FINISH = "finishReason"
SIGNATURE = "thoughtSignature"

# Private keys in `extra`, which only encoding for this API reads.
ABSENT = "~absent"
"""In a message, tool call, result or candidate: the fields that the wire left out."""
SCHEMA = "~schema"
"""The schema in the OpenAPI form; it is sent again while the canonical schema is unchanged."""
TOOL = "~tool"
"""In a tool definition: a new wire tool starts here, with these fields beside its declarations."""

NO_REASON = {"candidates": [{"finishReason": None}]}
"""The last frame of a stream whose answer has no finish reason."""

UNCHECKED_SIGNATURE = "c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I="
"""
Base64 of `skip_thought_signature_validator`, the documented substitute for a signature.

https://ai.google.dev/gemini-api/docs/thought-signatures
"""

# Field names. The API accepts camelCase and snake_case (https://protobuf.dev/programming-guides/json;
# recorded: `inline_data`, `function_call`), and a single object where an array is expected. Only
# the fields listed here are renamed: all others are unknown or free-form (tool arguments, schemas),
# so their keys must not change.


class Shape:
    """The known fields of an object; `inner` are the fields that hold such objects themselves."""

    __slots__ = ("inner", "names", "snake_names")

    def __init__(self, *names: str, **inner: Shape) -> None:
        self.names: frozenset[str] = frozenset((*names, *inner))
        self.snake_names: frozenset[str] = frozenset(map(_to_snake, self.names)) - self.names
        self.inner: dict[str, Shape] = inner


def _to_snake(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)


_MEDIA = Shape("mimeType", "data", "fileUri", "displayName")
_PARTIAL = Shape("jsonPath", "stringValue", "numberValue", "boolValue", "nullValue", "willContinue")
_PART = Shape(
    *("text", "executableCode", "codeExecutionResult", "toolCall", "toolResponse"),
    *("thought", SIGNATURE, "videoMetadata", "mediaResolution"),
    inlineData=_MEDIA,
    fileData=_MEDIA,
    functionCall=Shape("name", "args", "id", "willContinue", partialArgs=_PARTIAL),
    functionResponse=Shape(
        *("name", "response", "id"), parts=Shape(inlineData=_MEDIA, fileData=_MEDIA)
    ),
)
DATA = _PART.names - {"thought", SIGNATURE, "videoMetadata", "mediaResolution"}
"""The fields that hold a part's data; a part has exactly one of them."""
_CONTENT = Shape("role", parts=_PART)
_GENERATION = Shape(
    *("temperature", "topP", "topK", "candidateCount", "maxOutputTokens", "stopSequences"),
    *("seed", "presencePenalty", "frequencyPenalty", "responseLogprobs", "logprobs"),
    *("responseMimeType", "responseSchema", "responseJsonSchema"),
    thinkingConfig=Shape("includeThoughts", "thinkingBudget", "thinkingLevel"),
)
REQUEST = Shape(
    *("safetySettings", "cachedContent"),
    contents=_CONTENT,
    systemInstruction=_CONTENT,
    tools=Shape(
        functionDeclarations=Shape("name", "description", "parameters", "parametersJsonSchema")
    ),
    toolConfig=Shape(functionCallingConfig=Shape("mode", "allowedFunctionNames")),
    generationConfig=_GENERATION,
)
_TOKEN = Shape("logProbability", "tokenId")
RESPONSE = Shape(
    *("modelVersion", "responseId"),
    candidates=Shape(
        *(FINISH, "finishMessage", "index"),
        content=_CONTENT,
        logprobsResult=Shape(chosenCandidates=_TOKEN, topCandidates=Shape(candidates=_TOKEN)),
    ),
    promptFeedback=Shape("blockReason", "blockReasonMessage"),
    usageMetadata=Shape(
        *("promptTokenCount", "toolUsePromptTokenCount", "cachedContentTokenCount"),
        *("candidatesTokenCount", "thoughtsTokenCount", "totalTokenCount"),
        *("promptTokensDetails", "candidatesTokensDetails", "cacheTokensDetails"),
        *("serviceTier", "trafficType"),
    ),
)

_ARRAYS = frozenset(("contents", "parts", "tools", "functionDeclarations"))
_replace_underscores = re.compile(r"_([a-z0-9])").sub


def to_camel(value: UncheckedJson, shape: Shape) -> UncheckedJson:
    """
    The value with its known fields in camelCase; the same object if nothing changes.

    It looks only as deep as the shape.
    """
    if isinstance(value, dict) and _is_camel(value, shape):  # the usual body
        return value
    return _rename(value, shape)


def _is_camel(value: dict[str, Json], shape: Shape) -> bool:
    if not shape.snake_names.isdisjoint(value):
        return False
    for name, inner in shape.inner.items():
        if name not in value:
            continue
        item = value[name]
        if isinstance(item, dict) and (name in _ARRAYS or not _is_camel(item, inner)):
            return False
        for each in item if isinstance(item, list) else ():
            if isinstance(each, dict) and not _is_camel(each, inner):
                return False
    return True


def _rename(value: Json, shape: Shape) -> Json:
    if isinstance(value, list):
        return [_rename(item, shape) if isinstance(item, dict) else item for item in value]
    if not isinstance(value, dict):
        return value
    renamed: dict[str, Json] = {}
    for key, item in value.items():
        name = _replace_underscores(lambda match: match[1].upper(), key) if "_" in key else key
        if name not in shape.names or name in value:  # unknown, or sent in both spellings
            name = key
        if name in shape.inner:
            item = _rename(item, shape.inner[name])  # noqa: PLW2901 -- the same item, renamed
            if name in _ARRAYS and isinstance(item, dict):
                item = [item]  # noqa: PLW2901
        renamed[name] = item
    return renamed


def _normal_request(body: Json) -> UncheckedJson:
    """A request in camelCase; a string as `systemInstruction` stands for one text part."""
    normal = to_camel(body, REQUEST)
    if isinstance(normal, dict) and isinstance(normal.get("systemInstruction"), str):
        instruction = {"parts": [{"text": normal["systemInstruction"]}]}
        return {**normal, "systemInstruction": instruction}
    return normal


def _sign_thought(carrier: Carrier) -> Thinking:
    return Thinking(text=carrier.text, signature=carrier.value, extra={NAME: {}})


def _signature_of(part: Part) -> tuple[str, ...]:
    fields = part.extra.get(NAME, {})
    signature = part.signature if isinstance(part, Thinking) else fields.get(SIGNATURE)
    return (signature,) if isinstance(signature, str) else ()


# https://ai.google.dev/gemini-api/docs/function-calling
HISTORY = HistoryRules(
    dialect=NAME,
    # tool calls
    tool_types=("function",),  # `FunctionDeclaration` has parameters: no free text, no search
    namespaces=False,  # `FunctionDeclaration` has no namespace
    # «the number of function response parts is equal to the number of function call parts»
    paired_calls=True,
    stored_options=("cachedContent",),  # its `contents` may hold the tool calls
    call_id=r"[\s\S]+",  # «Optional.» Any text; recorded requests have ids of other vendors
    # «a-z, A-Z, 0-9, or contain underscores, dots, colons and dashes, … maximum length of 128»
    call_name=r"[A-Za-z0-9_.:-]{1,128}",
    unique_call_ids="turn",  # `FunctionResponse.id` names one of the tool calls of a turn
    valid_arguments=True,  # `FunctionCall.args` is an object
    # A signature belongs to its part and is returned in it, exactly as it was received.
    # https://ai.google.dev/gemini-api/docs/thought-signatures
    signature_field=SIGNATURE,
    unchecked_signature=UNCHECKED_SIGNATURE,
    bound=(SIGNATURE,),
    # results
    results="next",  # «of the function call turn»: the turn after the tool calls
    # Recorded: two contents of the model with one tool call each, then both results: accepted.
    joins_roles=True,
    ordered_results=True,  # a result without an id is found by its name and its place
    results_first=True,  # our caution: no recorded content has other parts beside results
    gather_results=True,  # recorded too: results in several contents; one is the documented form
    results_as_user=True,  # recorded: «Please use a valid role: user, model.»
    # messages and parts
    inline_system=False,  # the same message: `contents` has no role for it
    media_roles=("user", "assistant", "tool"),  # `systemInstruction` is «currently, text only»
    least="turn",  # «GenerateContentRequest.contents: contents is not specified»
    empty_messages=False,  # «contents[1].parts: contents.parts must not be empty»
    empty_prompt=False,  # `systemInstruction` is a content as well
    # A string of protobuf is valid UTF-8: https://protobuf.dev/programming-guides/proto3
    lone_surrogates=False,
    foreign_blocks=False,  # «required oneof field 'data' must have one initialized field»
    # thinking
    thinking="native",  # a signature is valid only where it was made
    unmarked_thinking=("signed", "plain"),  # thoughts of this API may have no signature
)

JSON_SCHEMA = SchemaRules(
    name="Gemini JSON Schema",
    root_references=True,  # `$ref` is in the list below, for any place of a schema
    optional_cycles=True,  # cyclic references are allowed only «within non-required properties»
    # https://ai.google.dev/api/generate-content#v1beta.GenerationConfig; recorded requests with
    # `$schema`, `default`, `pattern`, lengths and `uniqueItems` were accepted too.
    keywords=words(
        "$id $defs $ref $anchor type format title description enum items prefixItems minItems "
        "maxItems minimum maximum anyOf oneOf properties additionalProperties required "
        "propertyOrdering $schema default pattern minLength maxLength uniqueItems"
    ),
    silent=(SILENT - {"$id", "propertyOrdering"}) | {"definitions"},
    enum_types=frozenset({"string", "number", "integer"}),  # «`enum` (for strings and numbers)»
)
"""`parametersJsonSchema` and `responseJsonSchema`."""

# Prompts are cached without being asked; a cache that is made beforehand is named in the request.
# https://ai.google.dev/gemini-api/docs/caching
CACHE = CacheRules(
    fields=("cachedContent",),
    order=(
        MODEL,
        CacheStep(
            fields=("cachedContent", "cached_content"), code="cached_content_changed", cost=ALL
        ),
        TOOLS,
        CacheStep(
            fields=("systemInstruction", "system_instruction"),
            code="system_changed",
            cost=AFTER_SYSTEM,
        ),
    ),
    messages="contents",  # the name of the field here
)

FACTS = Facts(
    name=NAME,
    paths=("/models/{model}:generateContent", "/models/{model}:streamGenerateContent"),
    history=HISTORY,
    schema=JSON_SCHEMA,
    cache=CACHE,
    framings=("sse", "json-array"),  # recorded: without `alt=sse`, a stream is one JSON array
    # «Used to resume generation from a previous response that stopped with … `CONTINUATION`»
    continuation=Continuation(
        reason="CONTINUATION",
        token=("candidate", "continuationToken"),
        option="continuationToken",
    ),
    # Both spellings: provider options are sent as they are. `path` is ours.
    options=words(
        "path contents systemInstruction system_instruction tools toolConfig tool_config "
        "safetySettings safety_settings generationConfig generation_config cachedContent "
        "cached_content serviceTier service_tier store labels continuationToken model "
        "modelArmorConfig continuation_token generateContentRequest generate_content_request"
    ),
    token_family="gemini",  # noqa: S106 -- not a password
    # Clients must return signatures, also on texts and tool calls. Gemini CLI and others drop
    # thoughts, and return the signatures of the other parts.
    sealed_field=SealedField(name=SIGNATURE, make=_sign_thought, read=_signature_of, on_parts=True),
    normal_request=_normal_request,
    normal_response=lambda body: to_camel(body, RESPONSE),
)


# Unread fields are carried in `extra`.


def extra_for(unread: dict[str, Json]) -> Extra:
    """The `extra` that carries these fields."""
    return {NAME: unread} if unread else {}


def take_nested(fields: dict[str, Json], key: str) -> dict[str, Json]:
    """Removes an object and returns a copy of it; `{}` if there is none."""
    value = fields.pop(key, None)
    return dict(value) if isinstance(value, dict) else {}


def mark_absent(extra: dict[str, Json], wire: Mapping[str, Json], *names: str) -> None:
    """Notes in `extra` which of the fields `wire` does not have."""
    for name in names:
        if name not in wire:
            extra[ABSENT] = [each for each in names if each not in wire]
            return


def take_absent(extra: dict[str, Json]) -> Collection[str]:
    """Removes the list that `mark_absent` made, and returns it."""
    absent = extra.pop(ABSENT, ())
    return absent if isinstance(absent, (list, tuple)) else ()


def take_text(fields: Fields, key: str) -> str | None:
    """A string that is not empty; an empty one means None and stays unread."""
    text = fields.text(key)
    if text == "":
        fields.left[key] = ""
    return text or None
