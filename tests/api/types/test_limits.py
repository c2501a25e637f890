"""Limits as keywords."""

from msgspec import Meta

from interlingua.api.types.schema import add_limits, schema_annotations


def limited(schema, **limits):
    add_limits(schema, Meta(**limits))
    return schema


def test_the_keyword_of_a_limit_depends_on_the_type():
    """A length counts characters, items or properties."""
    assert limited({"type": "string"}, min_length=1) == {"type": "string", "minLength": 1}
    assert limited({"type": "array"}, max_length=2) == {"type": "array", "maxItems": 2}
    assert limited({"type": "object"}, min_length=1) == {"type": "object", "minProperties": 1}
    assert limited({"type": "integer"}, gt=0, le=9) == {
        "type": "integer",
        "exclusiveMinimum": 0,
        "maximum": 9,
    }


def test_zero_is_a_limit():
    """A limit of 0 is not absent."""
    assert limited({"type": "number"}, ge=0)["minimum"] == 0


def test_in_a_union_a_limit_goes_to_the_members_it_applies_to():
    """The limit of a number does not apply to null."""
    schema = limited({"anyOf": [{"type": "integer"}, {"type": "null"}]}, ge=1)

    assert schema == {"anyOf": [{"type": "integer", "minimum": 1}, {"type": "null"}]}


def test_annotations_are_keywords():
    """They are title, description, examples and the user's own."""
    meta = Meta(description="d", examples=[1], extra_json_schema={"x-y": 1})

    assert schema_annotations(meta) == {"description": "d", "examples": [1], "x-y": 1}
