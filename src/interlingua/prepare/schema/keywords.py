"""The keywords of JSON Schema, by what they do."""

from __future__ import annotations

ANNOTATIONS = frozenset(
    {
        *("title", "description", "default", "examples", "example"),
        *("deprecated", "readOnly", "writeOnly", "discriminator"),
    }
)
"""Keywords that describe values and do not constrain them."""

STRUCTURE = frozenset({"$schema", "$id", "$comment", "$defs", "definitions"})
"""Keywords that organise the schema and do not constrain values."""

DATES = frozenset({"date-time", "time", "date", "duration"})
"""The date and time formats that every strict target accepts."""

SILENT = frozenset({"$id", "$comment", "$vocabulary", "discriminator", "propertyOrdering"})
"""Keywords that have no meaning for a model."""

DYNAMIC = frozenset({"$dynamicRef", "$dynamicAnchor", "$recursiveRef", "$recursiveAnchor"})
"""References whose target depends on the referring schema, so that they cannot be resolved."""


def words(text: str) -> frozenset[str]:
    """The words of a text, which spaces separate."""
    return frozenset(text.split())


def is_foreign(key: str) -> bool:
    """Whether a key is of a schema library, not of JSON Schema: it tells a model nothing."""
    return key.startswith(("x-", "~")) or key in FOREIGN


FOREIGN = frozenset({"~standard", "def"})
"""The keys that Standard Schema and Zod leave in the root of a schema."""

VOCABULARY = (
    ANNOTATIONS
    | STRUCTURE
    | SILENT
    | DYNAMIC
    | words(
        "type enum const format nullable $ref $anchor allOf anyOf oneOf not if then else "
        "properties required additionalProperties patternProperties propertyNames "
        "unevaluatedProperties minProperties maxProperties dependencies dependentRequired "
        "dependentSchemas items prefixItems additionalItems unevaluatedItems contains minContains "
        "maxContains minItems maxItems uniqueItems minLength maxLength pattern contentEncoding "
        "contentMediaType contentSchema minimum maximum exclusiveMinimum exclusiveMaximum "
        "multipleOf"
    )
)
"""The keywords of all versions of JSON Schema and of OpenAPI. Any other is unknown."""
