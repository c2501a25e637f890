"""Whether a value is a JSON Schema at all."""

import jsonschema_rs
import pytest
from hypothesis import given

from interlingua.conformance.strategies import json_values
from interlingua.prepare.schema.read import find_unreadable
from support.schemas import count_calls, grafted, schemas, small_schemas, soup


def is_schema(value):
    """Whether a validator takes it for one; one of a language it does not know is none to it."""
    try:
        return isinstance(value, (dict, bool)) and jsonschema_rs.meta.is_valid(value)
    except jsonschema_rs.ReferencingError:
        return False


@given(soup | json_values)
def test_what_is_readable_is_a_schema(value):
    """Any JSON is looked at; what a validator takes for a schema can be read."""
    found = find_unreadable(value, "schema") or ""

    if found and is_schema(value):
        # the validator looks neither behind references nor at the words of older drafts
        assert "$ref" in found or ".additionalItems" in found


@given(schemas(hinted=True) | small_schemas() | grafted())
def test_plausible_schemas_can_be_read(schema):
    """Nothing that is a schema is taken for something else, but for references to themselves."""
    found = find_unreadable(schema, "schema")

    assert found is None or found.endswith("its $ref has no target")


@pytest.mark.parametrize(
    ("value", "place"),
    [
        ({}, None),
        (True, None),
        (False, None),
        (None, "schema: it is not a schema"),
        ([], "schema: it is not a schema"),
        ({"type": "text"}, "schema: malformed type"),
        ({"type": []}, "schema: malformed type"),
        ({"enum": "a"}, "schema: malformed enum"),
        ({"required": [1]}, "schema: malformed required"),
        ({"$ref": 5}, "schema: malformed $ref"),
        ({"anyOf": []}, "schema: malformed anyOf"),
        ({"properties": []}, "schema: malformed properties"),
        ({"properties": {"a": [1]}}, "schema.properties.a: it is not a schema"),
        ({"items": {"not": 5}}, "schema.items.not: it is not a schema"),
        ({"items": [{}, 5]}, "schema.items[1]: it is not a schema"),
        ({"$ref": "#/default", "default": 5}, "schema.$ref: it is not a schema"),
        ({"$ref": "#/$defs/none"}, "schema: its $ref has no target"),
        ({"$ref": "#"}, "schema: its $ref has no target"),
        ({"items": {"$ref": "#"}}, None),
        ({"$ref": "https://example.com/schema"}, None),
        (
            {
                "$ref": "#/$defs/a",
                "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}},
            },
            "schema: its $ref has no target",
        ),
        ({"default": [1], "unknown": 5, "const": {"type": 5}}, None),
        ({"properties": {"type": {}, "required": {}}}, None),
    ],
)
def test_unreadable_places(value, place):
    """Each shape a keyword may not have, by its path; names and values are no keywords."""
    assert find_unreadable(value, "schema") == place


def test_each_part_is_looked_at_once():
    """Circles end, and what is shared costs no more for it."""

    def chain(levels):
        node = {"$ref": "#"}
        for _ in range(levels):
            node = {"anyOf": [node, node]}
        return node

    def aliases(length):
        links = {f"d{at}": {"$ref": f"#/$defs/d{at + 1}"} for at in range(length)}
        return {"$defs": {**links, f"d{length}": {}}, "$ref": "#/$defs/d0"}

    for make in (chain, aliases):
        once = count_calls(find_unreadable, make(20), "schema")
        assert count_calls(find_unreadable, make(40), "schema") < 2.2 * once
