"""
The facts of Anthropic Messages.

API reference: https://docs.claude.com/en/api/messages
"""

from __future__ import annotations

from interlingua.prepare.cache import AFTER_SYSTEM, MODEL, TOOLS
from interlingua.prepare.schema.read import DATES, DYNAMIC, SILENT, words
from interlingua.spec.content import Extra, Json, Part, Thinking
from interlingua.spec.facts import (
    CacheRules,
    CacheStep,
    Facts,
    HistoryRules,
    SchemaRules,
    SealedField,
)

NAME = "anthropic_messages"
PATH = "/v1/messages"
VERSION = "2026-10-21"
VERSION_HEADER = "anthropic-version"
BETAS = ("betas", "beta_headers", "beta_features")
"""The options that hold beta flags: a list, or a string for one flag."""
DEFAULT_MAX_TOKENS = 16_384  # the API requires a value; it includes thinking tokens


def extra_for(unread: dict[str, Json]) -> Extra:
    """The fields of an object that were not read, as the `extra` of what was decoded from it."""
    return {NAME: unread} if unread else {}


# The normal form: two bodies with the same meaning have the same one.


def normal_request(body: Json) -> Json:
    """`stream` is false by default; a string stands for one text block."""
    if not isinstance(body, dict):
        return body
    normal = dict(body)
    if normal.get("stream") is False:
        del normal["stream"]
    if "system" in normal:
        normal["system"] = _normal_content(normal["system"])
    if isinstance(normal.get("messages"), list):
        normal["messages"] = [
            {**message, "content": _normal_content(message["content"])}
            if isinstance(message, dict) and "content" in message
            else message
            for message in normal["messages"]
        ]
    return normal


def normal_response(body: Json) -> Json:
    """`stop_sequence` is null by default."""
    if isinstance(body, dict) and body.get("type") == "message":
        return {"stop_sequence": None, **body}
    return body


def _normal_content(content: Json) -> Json:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    if not isinstance(content, list):
        return content
    return [
        {
            **block,
            "content": _normal_content([] if (inner := block.get("content")) is None else inner),
        }
        if isinstance(block, dict) and block.get("type") == "tool_result"
        else block
        for block in content
    ]


def _sign_thinking(text: str, signature: str) -> Thinking:
    return Thinking(text=text, signature=signature)


def _signature_of(part: Part) -> tuple[str, ...]:
    return (part.signature,) if isinstance(part, Thinking) and part.signature else ()


HISTORY = HistoryRules(
    dialect=NAME,
    tool_types=("function",),
    namespaces=False,
    paired_calls=True,
    call_id=r"[A-Za-z0-9_-]{1,64}",
    call_name=r"[A-Za-z0-9_-]{1,128}",
    unique_call_ids="turn",
    valid_arguments=True,
    results="next",
    joins_roles=True,
    results_first=True,
    gather_results=True,
    results_as_user=True,
    empty_text=False,
    least="turn",
    empty_messages=False,
    lone_surrogates=False,
    foreign_blocks=False,
    media={"audio": ()},
    media_roles=("user", "tool"),
    thinking="native",
    unmarked_thinking=("signed", "redacted"),
    trailing_thinking=False,  # «the final block in an assistant message cannot be thinking»
)

# https://platform.claude.com/docs/en/build-with-claude/structured-outputs; recorded requests with
# `$schema`, `default` and `definitions` were also accepted.
STRICT_SCHEMA = SchemaRules(
    name="Anthropic strict",
    strict=True,
    max_min_items=1,
    pointed=frozenset({"$defs", "definitions"}),
    keywords=words(
        "type description title properties required additionalProperties items anyOf allOf "
        "enum const $defs $ref format minItems $schema default definitions"
    ),
    silent=SILENT | {"$anchor"},  # a `$ref` to one is refused itself
    blocking=DYNAMIC | {"patternProperties", "unevaluatedProperties"},
    formats=DATES | {"email", "hostname", "uri", "ipv4", "ipv6", "uuid"},
)
"""Tools with `strict: true`, and `output_config.format`, which is always strict."""

CACHE = CacheRules(
    mark="cache_control",
    marked_places=("messages", "system", "tools"),
    marked_blocks=("text", "image", "document", "search_result", "tool_use", "tool_result"),
    fields=("cache_control",),
    order=(
        MODEL,
        TOOLS,
        CacheStep(fields=("system",), code="system_changed", cost=AFTER_SYSTEM),
        CacheStep(
            fields=("tool_choice",),
            code="tool_choice_changed",
            cost=AFTER_SYSTEM,
            default={"type": "auto"},
        ),
        CacheStep(fields=("thinking",), code="thinking_changed", cost=AFTER_SYSTEM),
    ),
    first_image=True,
)

OPTIONS = words(
    "path version model max_tokens messages system stop_sequences stream tools tool_choice "
    "thinking output_config output_format cache_control metadata service_tier speed inference_geo "
    "container diagnostics mcp_servers context_management compaction fallbacks "
    "fallback_credit_token thread temperature top_p top_k anthropic_version "
    "anthropic_beta"
)

FACTS = Facts(
    name=NAME,
    history=HISTORY,
    options=OPTIONS.union(BETAS),
    schema=STRICT_SCHEMA,
    defers="defer_loading",
    json_mode=False,
    only_strict_formats=True,
    cache=CACHE,
    paused=("pause_turn",),
    token_family="claude",  # noqa: S106 -- no password
    sealed_field=SealedField(name="signature", make=_sign_thinking, read=_signature_of),
    normal_request=normal_request,
    normal_response=normal_response,
)
