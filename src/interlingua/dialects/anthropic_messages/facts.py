"""
The facts of Anthropic Messages.

API reference: https://docs.claude.com/en/api/messages
"""

from __future__ import annotations

from typing import Any

from interlingua.dialects.anthropic_messages.normal import normal_request, normal_response
from interlingua.prepare.cache import AFTER_SYSTEM, MODEL, TOOLS
from interlingua.prepare.schema.read import DATES, DYNAMIC, SILENT, words
from interlingua.spec.content import Extra
from interlingua.spec.facts import CacheRules, CacheStep, Facts, HistoryRules, SchemaRules

NAME = "anthropic_messages"
PATH = "/v1/messages"
VERSION = "2026-10-21"
VERSION_HEADER = "anthropic-version"
DEFAULT_MAX_TOKENS = 16_384  # the API has no default of its own; thinking counts in it


def extra_for(left: dict[str, Any]) -> Extra:
    """What is left of an object, as the `extra` of what was made of it."""
    return {NAME: left} if left else {}


HISTORY = HistoryRules(
    dialect=NAME,
    paired_calls=True,
    call_id=r"[A-Za-z0-9_-]{1,64}",
    call_name=r"[A-Za-z0-9_-]{1,128}",
    unique_call_ids="turn",
    valid_arguments=True,
    results="next",
    joins_roles=True,
    ordered_results=True,
    results_first=True,
    gather_results=True,
    results_as_user=True,
    empty_text=False,
    least="turn",
    empty_messages=False,
    lone_surrogates=False,
    foreign_blocks=False,
    media={"audio": ()},
    thinking="native",
    unmarked_thinking=("signed", "redacted"),
    signed_thinking=True,
    trailing_thinking=False,  # «the final block in an assistant message cannot be thinking»
)

# https://platform.claude.com/docs/en/build-with-claude/structured-outputs; recorded requests with
# `$schema`, `default` and `definitions` were accepted besides.
STRICT_SCHEMA = SchemaRules(
    name="Anthropic strict",
    strict=True,
    inline_root=True,  # `input_schema.type: Field required`
    max_min_items=1,
    keywords=words(
        "type description title properties required additionalProperties items anyOf allOf "
        "enum const $defs $ref format minItems $schema default definitions"
    ),
    silent=SILENT,
    blocking=DYNAMIC | {"patternProperties", "unevaluatedProperties", "$anchor"},
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

FACTS = Facts(
    name=NAME,
    history=HISTORY,
    schema=STRICT_SCHEMA,
    json_mode=False,
    cache=CACHE,
    paused=("pause_turn",),
    token_family="claude",  # noqa: S106 -- no password
    sealed_field="signature",
    normal_request=normal_request,
    normal_response=normal_response,
)
