"""Facts that both of OpenAI's dialects share."""

from __future__ import annotations

from interlingua.prepare.cache import ALL
from interlingua.prepare.schema.read import DATES, DYNAMIC, SILENT, words
from interlingua.spec.facts import CacheStep, SchemaRules

# https://platform.openai.com/docs/guides/structured-outputs; beyond that page, recorded requests
# with `$schema`, `title`, `default` and any format of a number were accepted.
STRICT_SCHEMA = SchemaRules(
    name="OpenAI strict",
    strict=True,
    all_required=True,
    typed_values=True,
    typed_items=True,
    inline_root=True,
    object_root=True,
    lookaround=False,
    keywords=words(
        "type description properties required additionalProperties items anyOf enum const "
        "$defs definitions $ref pattern format minimum maximum exclusiveMinimum "
        "exclusiveMaximum multipleOf minItems maxItems minLength maxLength title default $schema"
    ),
    silent=SILENT,
    pointed=frozenset({"$defs", "definitions"}),
    blocking=DYNAMIC
    | words(
        "allOf not if then else patternProperties propertyNames unevaluatedProperties "
        "dependentRequired dependentSchemas dependencies prefixItems $anchor"
    ),
    formats=DATES | {"email", "hostname", "ipv4", "ipv6", "uuid"},
)
"""Tools with `strict: true`, and `json_schema` formats with `strict: true`."""

CACHE_KEY_STEPS = (
    CacheStep(fields=("prompt_cache_key",), code="prompt_cache_key_changed", cost=ALL),
    CacheStep(fields=("service_tier",), code="service_tier_changed", cost=ALL),
)
"""What leads a call to the machine that has its prompt."""
