"""Narrowing schemas, target by target."""

import pytest

from interlingua.prepare.schema.narrow import narrow
from support.facts import ANTHROPIC, GEMINI_JSON_SCHEMA, OPENAI_STRICT

MAP = "additionalProperties makes it a map of any names"
ANY = "it names no properties, so it is a map of any names"
UNTYPED = "it has no type"
NOWHERE = "its $ref does not point into this schema"
NOT_OBJECT = "schema: it is not an object"
NULL = {"type": "null"}
STRING = {"type": "string"}


def strict(schema):
    narrowed = narrow(
        {"type": "object", "properties": {"p": schema}, "required": ["p"]}, OPENAI_STRICT
    )
    assert narrowed.strict_possible, narrowed.reason
    return narrowed.schema["properties"]["p"]


def optional(schema):
    narrowed = narrow({"type": "object", "properties": {"p": schema}}, OPENAI_STRICT)
    assert narrowed.strict_possible, narrowed.reason
    return narrowed.schema["properties"]["p"]


def test_a_tool_for_openai():
    """Optional properties become nullable, objects closed, constraints hints."""
    narrowed = narrow(
        {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "properties": {
                "path": {"type": "string", "format": "uri", "pattern": "^a(?=b)", "title": "Path"},
                "limit": {"type": "integer", "description": "How many.", "default": 5},
            },
            "required": ["path"],
        },
        OPENAI_STRICT,
    )

    assert narrowed.schema == {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {
            "path": {
                "type": "string",
                "title": "Path",
                "description": "(format: uri; pattern: ^a(?=b))",
            },
            "limit": {"type": ["integer", "null"], "description": "How many.", "default": 5},
        },
        "required": ["path", "limit"],
        "additionalProperties": False,
    }
    assert narrowed.losses == (
        "schema.properties.path: format moved to the description",
        "schema.properties.path: pattern moved to the description",
    )
    assert narrowed.changes == (
        "schema.properties.path: format moved to the description",
        "schema.properties.path: pattern moved to the description",
        "schema: additionalProperties: false added",
        "schema: limit became required and may be null",
    )


@pytest.mark.parametrize(
    ("schema", "nullable"),
    [
        (STRING, {"type": ["string", "null"]}),
        ({"type": ["string", "null"]}, {"type": ["string", "null"]}),
        ({"type": "string", "enum": ["a"]}, {"type": ["string", "null"], "enum": ["a", None]}),
        ({"const": "a"}, {"anyOf": [{"const": "a", "type": "string"}, NULL]}),
        ({"enum": [1, None]}, {"enum": [1, None], "type": ["integer", "null"]}),
        ({"anyOf": [STRING, {"type": "integer"}]}, {"anyOf": [STRING, {"type": "integer"}, NULL]}),
        ({"$ref": "#"}, {"anyOf": [{"$ref": "#"}, NULL]}),
        (
            {"$ref": "#", "description": "More."},
            {"anyOf": [{"$ref": "#"}, NULL], "description": "More."},
        ),
        ({"allOf": [{"$ref": "#"}]}, {"anyOf": [{"$ref": "#"}, NULL]}),
        ({"type": "array", "items": STRING}, {"type": ["array", "null"], "items": STRING}),
    ],
)
def test_optional_properties(schema, nullable):
    """Each kind of schema has its way to allow null; one that allows it is left."""
    assert optional(schema) == nullable


@pytest.mark.parametrize(
    ("schema", "same"),
    [
        ({"oneOf": [STRING, NULL]}, {"anyOf": [STRING, NULL]}),
        ({"$ref": "#", "$comment": "It"}, {"$ref": "#"}),
        ({"allOf": [STRING], "description": "D"}, {"type": "string", "description": "D"}),
        ({"allOf": [{"type": "integer"}, {"minimum": 1}]}, {"type": "integer", "minimum": 1}),
        ({"type": "object", "anyOf": [{"$ref": "#"}]}, {"anyOf": [{"$ref": "#"}]}),
        ({"type": "string", "discriminator": {"propertyName": "x"}}, STRING),
        (
            {"type": "object", "properties": {}, "unevaluatedProperties": False},
            {"type": "object", "properties": {}, "required": [], "additionalProperties": False},
        ),
        (
            {"properties": {"a": STRING}, "required": ["a"]},
            {
                "properties": {"a": STRING},
                "required": ["a"],
                "type": "object",
                "additionalProperties": False,
            },
        ),
        ({"enum": ["a", 1]}, {"enum": ["a", 1], "type": ["string", "integer"]}),
        ({"type": "string", "format": "uri"}, {"type": "string", "description": "(format: uri)"}),
        ({"type": "string", "format": "uuid"}, {"type": "string", "format": "uuid"}),
    ],
)
def test_strict_rewrites(schema, same):
    """The other words of OpenAI for the same."""
    assert strict(schema) == same


def test_inherited_properties_are_merged():
    """An `allOf` of a base and an extension is one object."""
    schema = {
        "type": "object",
        "properties": {
            "p": {
                "allOf": [
                    {"$ref": "#/$defs/base"},
                    {"type": "object", "properties": {"b": NULL}, "required": ["b"]},
                ]
            }
        },
        "required": ["p"],
        "$defs": {
            "base": {
                "type": "object",
                "properties": {"a": STRING},
                "required": ["a"],
            }
        },
    }

    assert narrow(schema, OPENAI_STRICT).schema["properties"]["p"] == {
        "type": "object",
        "properties": {"a": STRING, "b": NULL},
        "required": ["a", "b"],
        "additionalProperties": False,
    }


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ({"type": "object", "additionalProperties": True}, MAP),
        ({"type": "object", "additionalProperties": STRING}, MAP),
        ({"type": "object"}, ANY),
        ({"type": "object", "properties": {}}, ANY),
        (
            {"type": "object", "properties": {}, "patternProperties": {}},
            "patternProperties cannot be removed",
        ),
        (
            {"type": "object", "properties": {}, "propertyNames": {}},
            "propertyNames cannot be removed",
        ),
        (
            {"type": "object", "properties": {}, "required": ["x"], "additionalProperties": False},
            "x is required but not described",
        ),
        ({"type": "string", "not": {"const": "a"}}, "not cannot be removed"),
        ({"type": "string", "if": {}, "then": {}}, "if cannot be removed"),
        (
            {"allOf": [STRING, {"type": "integer"}]},
            "allOf, or the keywords beside $ref, cannot be merged",
        ),
        ({"type": "array"}, "its items have no type"),
        ({"type": "array", "items": [STRING]}, "prefixItems cannot be removed"),
        ({}, UNTYPED),
        (True, UNTYPED),
        ({"$ref": "https://example.com/schema"}, NOWHERE),
        (
            {
                "type": "object",
                "properties": {"a": NULL},
                "anyOf": [{"required": ["a"]}],
            },
            "the object or array beside its anyOf cannot be closed",
        ),
        ({"anyOf": [NULL], "oneOf": [NULL]}, "oneOf beside anyOf cannot become one union"),
    ],
)
def test_what_cannot_be_strict(schema, reason):
    """A schema that would change its meaning is returned as it is, with path and reason."""
    whole = {"type": "object", "properties": {"p": schema}, "required": ["p"]}

    narrowed = narrow(whole, OPENAI_STRICT)

    assert narrowed.schema is whole
    assert not narrowed.strict_possible
    assert narrowed.reason.startswith(f"schema.properties.p: {reason}")


def test_untyped_items_cannot_be_strict():
    """`items: {}` and `items: true` accept anything, and say so at their own path."""
    for items in ({}, True):
        schema = {"type": "object", "properties": {"p": {"type": "array", "items": items}}}

        assert narrow(schema, OPENAI_STRICT).reason == ("schema.properties.p.items: it has no type")


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        (STRING, NOT_OBJECT),
        ({"type": ["object", "null"], "properties": {"a": NULL}}, NOT_OBJECT),
        (
            {"anyOf": [{"type": "object", "properties": {"a": NULL}}]},
            "schema: the root cannot be a union",
        ),
        ({"type": "object"}, "schema: it names no properties, so it is a map of any names"),
        (True, "schema: it has no type"),
    ],
)
def test_roots_that_cannot_be_strict(schema, reason):
    """The root must be an object, and be one in place."""
    assert narrow(schema, OPENAI_STRICT).reason == reason


def test_roots():
    """A root that refers to a definition stays so; one without properties takes none."""
    node = {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}}
    whole = narrow({"$ref": "#/$defs/node", "$defs": {"node": node}}, OPENAI_STRICT).schema
    closed = {
        "type": "object",
        "properties": {"next": {"anyOf": [{"$ref": "#/$defs/node"}, NULL]}},
        "additionalProperties": False,
        "required": ["next"],
    }

    assert whole == {"$ref": "#/$defs/node", "$defs": {"node": closed}}
    assert narrow({"type": "object", "properties": {}}, OPENAI_STRICT).schema == {
        "type": "object",
        "properties": {},
        "additionalProperties": False,
        "required": [],
    }


def test_untouched_subtrees_are_the_same_objects():
    """Only the way to what must change is copied."""
    kept = {"type": "object", "properties": {}, "required": [], "additionalProperties": False}
    schema = {
        "type": "object",
        "properties": {"kept": kept, "long": {"type": "string", "format": "uri"}},
        "required": ["kept", "long"],
        "additionalProperties": False,
    }

    narrowed = narrow(schema, OPENAI_STRICT).schema

    assert narrowed["properties"]["kept"] is kept
    assert narrowed["required"] is schema["required"]
    assert narrow(kept, OPENAI_STRICT).schema is kept


def test_references_into_the_middle_are_moved_to_the_definitions():
    """`#/properties/a` would become nullable with `a`; its own copy in `$defs` does not."""
    schema = {
        "type": "object",
        "properties": {
            "a": {"type": "object", "properties": {"x": STRING}, "required": ["x"]},
            "b": {"$ref": "#/properties/a"},
        },
        "required": ["b"],
    }

    narrowed = narrow(schema, OPENAI_STRICT).schema

    assert narrowed["properties"]["b"] == {"$ref": "#/$defs/a"}
    assert narrowed["$defs"]["a"]["type"] == "object"
    assert narrowed["properties"]["a"]["type"] == ["object", "null"]


def test_anthropic():
    """Optional properties stay optional, objects are closed, most constraints are hints."""
    schema = {
        "type": "object",
        "properties": {
            "a": {"type": "integer", "minimum": 1, "maximum": 9, "description": "Count."},
            "b": {
                "oneOf": [{"type": "string", "format": "uri"}, {"type": "string", "format": "x"}]
            },
            "c": {"type": "array", "items": STRING, "minItems": 1, "maxItems": 3},
            "d": {"type": "array", "items": {"$ref": "#/definitions/d"}, "minItems": 2},
            "e": {"allOf": [STRING, {"enum": ["alpha"]}]},
        },
        "required": ["a"],
        "definitions": {"d": {"type": "object", "properties": {"d": {"const": "d"}}}},
    }

    narrowed = narrow(schema, ANTHROPIC)

    assert narrowed.schema == {
        "type": "object",
        "properties": {
            "a": {"type": "integer", "description": "Count. (minimum: 1; maximum: 9)"},
            "b": {
                "anyOf": [
                    {"type": "string", "format": "uri"},
                    {"type": "string", "description": "(format: x)"},
                ]
            },
            "c": {
                "type": "array",
                "items": STRING,
                "minItems": 1,
                "description": "(maxItems: 3)",
            },
            "d": {
                "type": "array",
                "items": {"$ref": "#/definitions/d"},
                "description": "(minItems: 2)",
            },
            "e": {"allOf": [STRING, {"enum": ["alpha"]}]},
        },
        "required": ["a"],
        "additionalProperties": False,
        "definitions": {
            "d": {
                "type": "object",
                "properties": {"d": {"const": "d"}},
                "additionalProperties": False,
            }
        },
    }
    assert narrowed.schema["properties"]["e"] is schema["properties"]["e"]


@pytest.mark.parametrize("others", [True, {}, STRING])
def test_anthropic_does_not_forbid_maps(others):
    """A map of any names cannot be strict, and is said so."""
    schema = {"type": "object", "additionalProperties": others}

    narrowed = narrow(schema, ANTHROPIC)

    assert narrowed.schema is schema
    assert narrowed.reason == "schema: additionalProperties makes it a map of any names"


def test_gemini_json_schema():
    """What is not among its keywords becomes a hint; maps, tuples and one-of stay."""
    narrowed = narrow(
        {
            "$schema": "x",
            "type": "object",
            "properties": {
                "a": {"const": "x", "default": "x"},
                "b": {"type": "number", "multipleOf": 2, "minimum": 0, "description": "B."},
                "c": {"type": "object", "additionalProperties": STRING},
                "d": {"oneOf": [STRING, {"type": "number", "exclusiveMinimum": 0}]},
                "e": {"type": "array", "items": [STRING], "additionalItems": False},
                "f": {"type": ["string", "null"], "enum": ["x", None]},
                "g": {"enum": [True]},
                "h": True,
                "i": {
                    "type": "object",
                    "patternProperties": {"^x": {}},
                    "additionalProperties": False,
                },
                "j": {"$ref": "#/$defs/j", "description": "J."},
                "k": {"const": None},
            },
            "$defs": {"j": STRING},
        },
        GEMINI_JSON_SCHEMA,
    )

    assert narrowed.schema["properties"] == {
        "a": {"enum": ["x"], "default": "x"},
        "b": {"type": "number", "minimum": 0, "description": "B. (multipleOf: 2)"},
        "c": {"type": "object", "additionalProperties": STRING},
        "d": {
            "oneOf": [
                STRING,
                {"type": "number", "description": "(exclusiveMinimum: 0)"},
            ]
        },
        "e": {"type": "array", "prefixItems": [STRING], "maxItems": 1},
        "f": {"anyOf": [{"type": "string", "enum": ["x"]}, NULL]},
        "g": {"description": "(enum: [true])"},
        "h": {},
        "i": {
            "type": "object",
            "description": '(additionalProperties: false; patternProperties: {"^x":{}})',
        },
        "j": {"anyOf": [{"$ref": "#/$defs/j"}], "description": "J."},
        "k": NULL,
    }
    assert narrowed.schema["$schema"] == "x"
    assert narrowed.strict_possible


def test_references_reach_gemini():
    """Definitions, unions and circles are sent as they are, never emptied (field bug 84)."""
    node = {
        "type": "object",
        "properties": {
            "value": {"anyOf": [STRING, {"$ref": "#/$defs/leaf"}]},
            "next": {"$ref": "#/$defs/node"},
        },
        "required": ["value"],
    }
    schema = {
        "type": "object",
        "properties": {"first": {"$ref": "#/$defs/node"}, "leaf": {"$ref": "#/$defs/leaf"}},
        "$defs": {"node": node, "leaf": {"type": "integer"}},
    }

    assert narrow(schema, GEMINI_JSON_SCHEMA).schema is schema


def test_gemini_does_not_require_a_circle():
    """A property that leads back to its own object may not be required."""
    schema = {
        "type": "object",
        "properties": {
            "name": STRING,
            "children": {"type": "array", "items": {"$ref": "#"}},
        },
        "required": ["name", "children"],
    }

    narrowed = narrow(schema, GEMINI_JSON_SCHEMA)

    assert narrowed.schema["required"] == ["name"]
    assert narrowed.schema["description"] == '(required: ["children"])'
    assert narrowed.losses == ("schema: required moved to the description",)
