"""Fields of record types."""

from __future__ import annotations

import dataclasses
import uuid
from typing import (
    TYPE_CHECKING,
    Annotated,
    ClassVar,
    Generic,
    NamedTuple,
    NotRequired,
    Required,
    TypedDict,
    TypeVar,
)

import msgspec
import pytest
from typing_extensions import ReadOnly

from interlingua.api.types.records import is_record, record_type
from interlingua.spec.errors import ConfigurationError

if TYPE_CHECKING:
    from decimal import Decimal as OnlyForTheChecker

T = TypeVar("T")


@dataclasses.dataclass
class Base(Generic[T]):
    """
    A base.

    Attributes:
        value: What it holds.
    """

    value: T


@dataclasses.dataclass
class Whole(Base[int]):
    count: ClassVar[int] = 0
    tags: list[str] = dataclasses.field(default_factory=list)
    id: uuid.UUID = dataclasses.field(default_factory=uuid.uuid4)
    note: str = dataclasses.field(default="", metadata={"description": "Free words."})
    hidden: int = dataclasses.field(init=False, default=1)


class Part(TypedDict, total=False):
    a: Required[int]
    b: str


class More(Part):
    c: NotRequired[int]
    d: Annotated[NotRequired[ReadOnly[int]], "words"]
    e: int


class Point(NamedTuple):
    x: int
    y: int = 0


class Pet(msgspec.Struct, rename="camel", tag="pet", tag_field="kind", forbid_unknown_fields=True):
    """A pet."""

    pet_name: str
    friends: list[Pet] = []


def test_dataclass_fields():
    """Inherited and generic ones are resolved; a factory gives no constant default."""
    fields = {field.name: field for field in record_type(Whole).fields}

    assert list(fields) == ["value", "tags", "id", "note"]
    assert fields["value"].type is int
    assert fields["value"].description == "What it holds."
    assert [field.required for field in fields.values()] == [True, False, False, False]
    assert fields["tags"].default == []
    assert fields["id"].default is msgspec.UNSET
    assert fields["note"].description == "Free words."


def test_generic_arguments_replace_the_variables():
    """`Base[str]` holds a str."""
    assert record_type(Base[str]).fields[0].type is str
    assert record_type(Base[list[str]]).fields[0].type == list[str]


def test_typed_dict_qualifiers_in_string_annotations():
    """They mean the same as in other annotations."""
    fields = {field.name: field for field in record_type(More).fields}

    required = {name: field.required for name, field in fields.items()}
    assert required == {"a": True, "b": False, "c": False, "d": False, "e": True}
    assert fields["d"].type == Annotated[int, "words"]


def test_struct_fields():
    """Names, tag and strictness are as msgspec has them."""
    record = record_type(Pet)

    assert [field.key for field in record.fields] == ["petName", "friends"]
    assert (record.tag, record.closed, record.description) == (("kind", "pet"), True, "A pet.")


def test_generated_signatures_are_not_descriptions():
    """`dataclass` and `NamedTuple` write them as docstrings."""
    assert record_type(Whole).description == ""
    assert record_type(Point).description == ""
    assert [field.required for field in record_type(Point).fields] == [True, False]


def test_other_types_are_not_records():
    """Plain classes and containers are not."""
    assert not any(is_record(type_) for type_ in (int, list[int], dict, tuple, object(), "Point"))
    assert all(is_record(type_) for type_ in (Whole, Base[int], More, Point, Pet))


def test_an_unresolvable_name_is_in_the_message():
    """A name that is imported only under TYPE_CHECKING is an error that says so."""

    @dataclasses.dataclass
    class Bad:
        price: OnlyForTheChecker

    with pytest.raises(ConfigurationError, match=r"Bad.*OnlyForTheChecker"):
        record_type(Bad)


def test_a_local_class_may_refer_to_itself():
    """A class that is defined in a function may be recursive."""

    @dataclasses.dataclass
    class Node:
        next: Node | None = None

    class Link(msgspec.Struct):
        next: Link | None = None

    assert record_type(Node).fields[0].type == Node | None
    assert record_type(Link).fields[0].type == Link | None


def test_struct_defaults():
    """Constants are in the schema; the results of a factory only if they are empty."""

    class Made(msgspec.Struct, kw_only=True):
        a: int = 1
        b: str
        c: list[int] = []
        d: uuid.UUID = msgspec.field(default_factory=uuid.uuid4)

    fields = record_type(Made).fields
    assert [field.required for field in fields] == [False, True, False, False]
    assert [field.default for field in fields] == [1, msgspec.NODEFAULT, [], msgspec.UNSET]
