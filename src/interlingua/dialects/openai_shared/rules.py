"""Schema and cache rules of both of OpenAI's dialects."""

from __future__ import annotations

from interlingua.prepare.cache import ALL
from interlingua.prepare.schema.keywords import DATES, DYNAMIC, SILENT, words
from interlingua.spec.content import Json
from interlingua.spec.facts import CacheStep, SchemaRules

# https://developers.openai.com/api/docs/guides/structured-outputs; beyond that page, recorded
# requests with `$schema`, `title`, `default` and any format of a number were accepted.
STRICT_SCHEMA = SchemaRules(
    name="OpenAI strict",
    # «'additionalProperties' is required to be supplied and to be false» (recorded, of a function).
    strict=True,
    # «'required' is required to be supplied and to be an array including every key in properties»
    # (recorded).
    all_required=True,
    # OpenAI's errors: «schema must have a 'type' key», «array schema missing items».
    typed_values=True,
    typed_items=True,
    object_root=True,  # the guide: «Root objects must not be `anyOf` and must be an object»
    lookaround=False,  # the guide does not promise it, and a refused schema fails the request
    keywords=words(
        "type description properties required additionalProperties items anyOf enum const "
        "$defs definitions $ref pattern format minimum maximum exclusiveMinimum "
        "exclusiveMaximum multipleOf minItems maxItems minLength maxLength title default $schema"
    ),
    silent=SILENT | {"$anchor"},  # a `$ref` to one is refused itself
    # The guide has the first name; older drafts of JSON Schema have the second.
    pointed=frozenset({"$defs", "definitions"}),
    # The guide lists `allOf`, `not`, `if`, `then`, `else` and the keywords of dependencies as not
    # supported. Without them, an answer could be valid that the schema forbids.
    blocking=DYNAMIC
    | words(
        "allOf not if then else patternProperties propertyNames unevaluatedProperties "
        "dependentRequired dependentSchemas dependencies prefixItems"
    ),
    # The guide's list of supported values of `format`.
    formats=DATES | {"email", "hostname", "ipv4", "ipv6", "uuid"},
)
"""Tools with `strict: true`, and `json_schema` formats with `strict: true`."""

# https://developers.openai.com/api/docs/guides/prompt-caching: requests are routed by their prefix
# and the key. A change of either field is among the reasons for a miss in the SDK's
# `PromptCacheDiagnosticsCacheMiss`.
CACHE_KEY_STEPS = (
    CacheStep(fields=("prompt_cache_key",), code="prompt_cache_key_changed", cost=ALL),
    CacheStep(fields=("service_tier",), code="service_tier_changed", cost=ALL),
)
"""What leads a call to the machine that has its prompt."""


def without_none(**fields: Json) -> dict[str, Json]:
    """The fields that have a value."""
    return {name: value for name, value in fields.items() if value is not None}
