"""
The facts of Gemini `generateContent`.

API reference: https://ai.google.dev/api/generate-content
"""

from __future__ import annotations

from typing import Any

from interlingua.dialects.gemini_generate.normal import normal_request, normal_response
from interlingua.prepare.cache_diff import AFTER_SYSTEM, ALL, MODEL, TOOLS
from interlingua.prepare.schema.rules import SILENT, words
from interlingua.spec.content import Extra, Json
from interlingua.spec.facts import (
    CacheRules,
    CacheStep,
    Continuation,
    Facts,
    HistoryRules,
    SchemaRules,
)
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

UNCHECKED_SIGNATURE = "c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I="
"""`skip_thought_signature_validator` in base64: the documented stand-in for a signature."""


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


HISTORY = HistoryRules(
    dialect=NAME,
    paired_calls=True,
    stored_options=("cachedContent",),
    call_id=r"[\s\S]+",
    call_name=r"[A-Za-z0-9_.:-]{1,128}",
    unique_call_ids="turn",
    valid_arguments=True,
    signature_field=SIGNATURE,
    unchecked_signature=UNCHECKED_SIGNATURE,
    results="next",
    joins_roles=True,
    ordered_results=True,
    results_first=True,
    gather_results=True,
    results_as_user=True,
    inline_system=False,
    least="turn",
    empty_messages=False,
    empty_prompt=False,
    lone_surrogates=False,
    foreign_blocks=False,
    thinking="native",
    unmarked_thinking=("signed", "plain"),
    bound=(SIGNATURE,),
)

# https://ai.google.dev/api/generate-content#v1beta.GenerationConfig; recorded requests with
# `$schema`, `default`, `pattern`, lengths and `uniqueItems` were accepted besides.
JSON_SCHEMA = SchemaRules(
    name="Gemini JSON Schema",
    optional_cycles=True,
    keywords=words(
        "$id $defs $ref $anchor type format title description enum items prefixItems minItems "
        "maxItems minimum maximum anyOf oneOf properties additionalProperties required "
        "propertyOrdering $schema default pattern minLength maxLength uniqueItems"
    ),
    silent=(SILENT - {"$id", "propertyOrdering"}) | {"definitions"},
    enum_types=frozenset({"string", "number", "integer"}),
)
"""`parametersJsonSchema` and `responseJsonSchema`."""

CACHE = CacheRules(  # prompts are kept without being asked for
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
    messages="contents",
)

FACTS = Facts(
    name=NAME,
    history=HISTORY,
    schema=JSON_SCHEMA,
    cache=CACHE,
    framings=("sse", "json-array"),
    continuation=Continuation(
        reason="CONTINUATION",
        token=("candidate", "continuationToken"),
        option="continuationToken",
    ),
    token_family="gemini",  # noqa: S106 -- no password
    sealed_field=SIGNATURE,
    normal_request=normal_request,
    normal_response=normal_response,
)


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
