"""The `$defs` of a schema."""

from interlingua.api.types.schema import Definitions


def test_a_type_used_once_is_inlined():
    """No reference remains, and keywords beside it win over those of the type."""
    definitions = Definitions()
    reference = definitions.refer(1, "A", lambda _: {"type": "object", "description": "own"})
    reference["description"] = "here"

    assert definitions.finish({"items": reference}) == {
        "items": {"type": "object", "description": "here"}
    }


def test_a_type_used_twice_is_a_definition():
    """There is one definition, however often the type is used."""
    definitions, owner = Definitions(), object()
    both = [definitions.refer(owner, "A", lambda _: {"type": "object"}) for _ in range(2)]

    assert definitions.finish({"anyOf": both}) == {
        "anyOf": [{"$ref": "#/$defs/A"}] * 2,
        "$defs": {"A": {"type": "object"}},
    }


def test_a_definition_that_is_only_a_reference_is_inlined():
    """An alias of a type that is used once leaves no dangling reference."""
    definitions, alias, owner = Definitions(), object(), object()
    root = definitions.refer(
        alias, "Alias", lambda defs: defs.refer(owner, "A", lambda _: {"type": "object"})
    )

    assert definitions.finish(root) == {"type": "object"}


def test_a_recursive_root_is_an_object_and_a_definition():
    """The root is never only a reference."""
    definitions, owner = Definitions(), object()

    def write(defs):
        return {"type": "object", "properties": {"next": defs.refer(owner, "A", write)}}

    schema = definitions.finish(definitions.refer(owner, "A", write))

    assert schema["type"] == "object"
    assert schema["$defs"]["A"]["properties"] == {"next": {"$ref": "#/$defs/A"}}


def test_types_with_the_same_name_get_a_number():
    """The second definition has a numbered name."""
    definitions, first, second = Definitions(), object(), object()
    for owner in (first, first, second, second):
        definitions.refer(owner, "A [b]", lambda _: {"type": "object"})

    assert list(definitions.finish({})["$defs"]) == ["A_b", "A_b_2"]


def test_adopted_definitions_do_not_clash():
    """A schema from another library keeps its meaning beside a type of the same name."""
    definitions, owner = Definitions(), object()
    for _ in range(2):
        definitions.refer(owner, "A", lambda _: {"type": "object"})

    def foreign(template):
        return {"$ref": template.format(model="A"), "$defs": {"A": {"type": "string"}}}

    adopted = definitions.adopt(foreign)
    schema = definitions.finish({"items": adopted})

    assert schema["$defs"][adopted["$ref"].rpartition("/")[2]] == {"type": "string"}
    assert schema["$defs"]["A"] == {"type": "object"}
