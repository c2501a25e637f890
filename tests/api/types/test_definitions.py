"""The `$defs` of a schema."""

from interlingua.api.types.shapes import Definitions


def test_what_is_used_once_stands_where_it_is_used():
    """No reference is left, and words beside it win over the type's own."""
    definitions = Definitions()
    reference = definitions.refer(1, "A", lambda _: {"type": "object", "description": "own"})
    reference["description"] = "here"

    assert definitions.finish({"items": reference}) == {
        "items": {"type": "object", "description": "here"}
    }


def test_what_is_used_twice_is_defined():
    """Each type once, however often it is used."""
    definitions, owner = Definitions(), object()
    both = [definitions.refer(owner, "A", lambda _: {"type": "object"}) for _ in range(2)]

    assert definitions.finish({"anyOf": both}) == {
        "anyOf": [{"$ref": "#/$defs/A"}] * 2,
        "$defs": {"A": {"type": "object"}},
    }


def test_a_definition_that_is_only_a_reference_is_followed():
    """An alias of a type that is used once leaves no reference to nothing."""
    definitions, alias, owner = Definitions(), object(), object()
    root = definitions.refer(
        alias, "Alias", lambda defs: defs.refer(owner, "A", lambda _: {"type": "object"})
    )

    assert definitions.finish(root) == {"type": "object"}


def test_a_root_that_leads_back_is_written_out():
    """The root is an object, and a definition too."""
    definitions, owner = Definitions(), object()

    def write(defs):
        return {"type": "object", "properties": {"next": defs.refer(owner, "A", write)}}

    schema = definitions.finish(definitions.refer(owner, "A", write))

    assert schema["type"] == "object"
    assert schema["$defs"]["A"]["properties"] == {"next": {"$ref": "#/$defs/A"}}


def test_two_types_of_one_name_are_told_apart():
    """The second is given a number."""
    definitions, first, second = Definitions(), object(), object()
    for owner in (first, first, second, second):
        definitions.refer(owner, "A [b]", lambda _: {"type": "object"})

    assert list(definitions.finish({})["$defs"]) == ["A_b", "A_b_2"]


def test_adopted_definitions_do_not_clash():
    """A schema made elsewhere keeps its meaning beside a type of the same name."""
    definitions, owner = Definitions(), object()
    for _ in range(2):
        definitions.refer(owner, "A", lambda _: {"type": "object"})

    def foreign(template):
        return {"$ref": template.format(model="A"), "$defs": {"A": {"type": "string"}}}

    adopted = definitions.adopt(foreign)
    schema = definitions.finish({"items": adopted})

    assert schema["$defs"][adopted["$ref"].rpartition("/")[2]] == {"type": "string"}
    assert schema["$defs"]["A"] == {"type": "object"}
