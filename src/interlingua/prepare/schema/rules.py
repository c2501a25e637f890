"""The keywords of JSON Schema, in the groups that the rules of targets are made of."""

from __future__ import annotations

ANNOTATIONS = frozenset(
    {
        "title",
        "description",
        "default",
        "examples",
        "example",
        "deprecated",
        "readOnly",
        "writeOnly",
        "discriminator",
    }
)
"""Keywords that say something about a value and forbid none."""

STRUCTURE = frozenset({"$schema", "$id", "$comment", "$defs", "definitions"})
"""Keywords that hold the schema together and constrain no value."""

DATES = frozenset({"date-time", "time", "date", "duration"})
"""The formats of dates and times that every strict target accepts."""

SILENT = frozenset({"$id", "$comment", "$vocabulary", "discriminator", "propertyOrdering"})
"""Keywords that tell a model nothing."""

DYNAMIC = frozenset({"$dynamicRef", "$dynamicAnchor", "$recursiveRef", "$recursiveAnchor"})
"""References whose target depends on who refers to it: they cannot be followed from here."""


def words(text: str) -> frozenset[str]:
    """The words of a text that are separated by spaces."""
    return frozenset(text.split())


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
"""The keywords of JSON Schema in any version, and OpenAPI's; any other is a stranger."""
