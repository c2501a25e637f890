"""What each target accepts of JSON Schema, as data."""

from __future__ import annotations

import msgspec

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

_SCALARS = frozenset({"string", "number", "integer", "boolean", "null"})
_DATES = frozenset({"date-time", "time", "date", "duration"})
_SILENT = frozenset({"$id", "$comment", "$vocabulary", "discriminator", "propertyOrdering"})
# a reference whose target depends on who refers to it cannot be followed from here
_DYNAMIC = frozenset({"$dynamicRef", "$dynamicAnchor", "$recursiveRef", "$recursiveAnchor"})


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


VOCABULARY = (
    ANNOTATIONS
    | STRUCTURE
    | _SILENT
    | _DYNAMIC
    | _words(
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


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """
    What one target accepts.

    A keyword of the vocabulary in none of the three sets is moved to the description as a
    hint. What is not of the vocabulary may be newer than this list, and is left alone; only
    extensions (`x-…`) are removed, which tell a model nothing.
    """

    name: str
    keywords: frozenset[str]
    """Accepted, and left alone."""
    silent: frozenset[str]
    """Removed without a hint: they tell a model nothing."""
    blocking: frozenset[str] = frozenset()
    """To remove them would change the meaning: with them, no strict schema is possible."""
    formats: frozenset[str] | None = None
    """The accepted formats of a string; None for any."""
    pointed: frozenset[str] = frozenset({"$defs"})
    """The keywords of the root that a `$ref` may point into."""
    enum_types: frozenset[str] = _SCALARS
    """The types an `enum` may list."""
    max_min_items: int | None = None
    """The largest `minItems` accepted."""
    lookaround: bool = True
    """Whether a `pattern` may look around."""
    strict: bool = False
    """Whether objects must be closed and every schema must say what it is."""
    all_required: bool = False
    """Whether every property must be required, so that optional ones become nullable."""
    typed_values: bool = False
    """Whether an `enum` or `const` needs a `type` beside it."""
    typed_items: bool = False
    """Whether an array must describe its items."""
    inline_root: bool = False
    """Whether the root must say what it is in place, not by `$ref`."""
    object_root: bool = False
    """Whether the root must be an object, and no union."""
    optional_cycles: bool = False
    """Whether a `$ref` that closes a circle may only be in a property that is not required."""


# https://platform.openai.com/docs/guides/structured-outputs; beyond that page, recorded requests
# with `$schema`, `title`, `default` and any format of a number were accepted.
OPENAI_STRICT = Rules(
    name="OpenAI strict",
    strict=True,
    all_required=True,
    typed_values=True,
    typed_items=True,
    inline_root=True,
    object_root=True,
    lookaround=False,
    keywords=_words(
        "type description properties required additionalProperties items anyOf enum const "
        "$defs definitions $ref pattern format minimum maximum exclusiveMinimum "
        "exclusiveMaximum multipleOf minItems maxItems minLength maxLength title default $schema"
    ),
    silent=_SILENT,
    pointed=frozenset({"$defs", "definitions"}),
    blocking=_DYNAMIC
    | _words(
        "allOf not if then else patternProperties propertyNames unevaluatedProperties "
        "dependentRequired dependentSchemas dependencies prefixItems $anchor"
    ),
    formats=_DATES | {"email", "hostname", "ipv4", "ipv6", "uuid"},
)
"""Tools with `strict: true`, and `json_schema` formats with `strict: true`."""

# https://platform.claude.com/docs/en/build-with-claude/structured-outputs; recorded requests with
# `$schema`, `default` and `definitions` were accepted besides.
ANTHROPIC = Rules(
    name="Anthropic strict",
    strict=True,
    inline_root=True,  # `input_schema.type: Field required`
    max_min_items=1,
    keywords=_words(
        "type description title properties required additionalProperties items anyOf allOf "
        "enum const $defs $ref format minItems $schema default definitions"
    ),
    silent=_SILENT,
    blocking=_DYNAMIC | {"patternProperties", "unevaluatedProperties", "$anchor"},
    formats=_DATES | {"email", "hostname", "uri", "ipv4", "ipv6", "uuid"},
)
"""Tools with `strict: true`, and `output_config.format`, which is always strict."""

# https://ai.google.dev/api/generate-content#v1beta.GenerationConfig; recorded requests with
# `$schema`, `default`, `pattern`, lengths and `uniqueItems` were accepted besides.
GEMINI_JSON_SCHEMA = Rules(
    name="Gemini JSON Schema",
    optional_cycles=True,
    keywords=_words(
        "$id $defs $ref $anchor type format title description enum items prefixItems minItems "
        "maxItems minimum maximum anyOf oneOf properties additionalProperties required "
        "propertyOrdering $schema default pattern minLength maxLength uniqueItems"
    ),
    silent=(_SILENT - {"$id", "propertyOrdering"}) | {"definitions"},
    enum_types=frozenset({"string", "number", "integer"}),
)
"""`parametersJsonSchema` and `responseJsonSchema`."""
