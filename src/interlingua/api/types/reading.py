"""From a Python type to its form."""

from __future__ import annotations

import collections
import collections.abc as abstract
import datetime as dt
import decimal
import enum
import pathlib
import types
import typing
import uuid
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, TypeVar, get_args, get_origin, overload

import msgspec

from interlingua.api.types.docstrings import parse_docstring
from interlingua.api.types.foreign import Foreign, is_constraint, is_field, is_pydantic
from interlingua.api.types.problems import Findings, mismatch, notes_of
from interlingua.api.types.records import is_local, is_record, record_type
from interlingua.api.types.shapes import (
    Anything,
    Array,
    Choice,
    Definitions,
    FixedArray,
    Mapped,
    Noted,
    Record,
    Scalar,
    Shape,
)
from interlingua.api.types.unions import OneOf
from interlingua.spec.content import Json
from interlingua.spec.errors import ConfigurationError, MismatchError

T = TypeVar("T")


def _text(format_: str) -> dict[str, Json]:
    return {"type": "string", "format": format_}


_SCALARS: Mapping[Any, Scalar] = {
    type_: Scalar(type_, schema, read)
    for type_, schema, read in (
        (bool, {"type": "boolean"}, None),
        (int, {"type": "integer"}, None),
        (float, {"type": "number"}, None),
        (str, {"type": "string"}, None),
        (dt.datetime, _text("date-time"), dt.datetime.fromisoformat),
        (dt.date, _text("date"), dt.date.fromisoformat),
        (dt.time, _text("time"), dt.time.fromisoformat),
        (dt.timedelta, _text("duration"), None),
        (decimal.Decimal, _text("decimal"), None),
        (uuid.UUID, _text("uuid"), uuid.UUID),
        (pathlib.Path, {"type": "string"}, pathlib.Path),
    )
}
_NULL = Scalar(None, {"type": "null"})
_ARRAYS: Mapping[Any, Callable[[list[Any]], Any]] = {
    list: list,
    abstract.Sequence: list,
    abstract.MutableSequence: list,
    abstract.Collection: list,
    abstract.Iterable: list,
    collections.deque: collections.deque,
    set: set,
    abstract.Set: set,
    abstract.MutableSet: set,
    frozenset: frozenset,
}
_SETS = (set, frozenset)
_MAPS: Mapping[Any, Callable[[dict[Any, Any]], Any]] = {
    dict: dict,
    abstract.Mapping: dict,
    abstract.MutableMapping: dict,
    collections.OrderedDict: collections.OrderedDict,
}
_WRAPPERS = (typing.Final, typing.ClassVar, typing.Required, typing.NotRequired)


def schema_of(type_: Any) -> dict[str, Json]:
    """
    The JSON Schema of a Python type.

    `ConfigurationError` names what JSON Schema cannot say, and where it stands.
    """
    definitions = Definitions()
    return definitions.finish(shape_of(type_).schema(definitions))


@overload
def convert(value: Json, type_: type[T]) -> T: ...
@overload
def convert(value: Json, type_: Any) -> Any: ...  # unions and the like are no `type`
def convert(value: Json, type_: Any) -> Any:
    """
    The value of that type which a JSON value stands for.

    `MismatchError` lists all that does not fit, each with its path. Keys that a type does not
    have are passed over, unless the type forbids them.
    """
    return decode(shape_of(type_), value)


def decode(shape: Shape, value: Json) -> Any:
    """As `convert`, for a form that was read before."""
    findings = Findings()
    try:
        found = shape.decode(value, None, findings)
    except RecursionError as error:
        raise MismatchError("the value is nested too deeply") from error
    if findings.problems:
        raise mismatch(findings.problems)
    return found


def shape_of(type_: Any, where: str = "", names: Mapping[str, Any] | None = None) -> Shape:
    """
    The form of a type; `where` begins the message if it has none.

    `names` are those that a class which is defined in a function may use there.
    """
    if isinstance(type_, type) and not (names and is_local(type_)):
        # only classes are remembered: `int | str` equals `str | int`, but reads in another order
        return _remembered(type_, where)
    return Reading(names).read(type_, where)


@lru_cache(maxsize=1024)
def _remembered(type_: Any, where: str) -> Shape:
    return Reading().read(type_, where)


class Reading:
    """Reads one type and all it leads to."""

    def __init__(self, names: Mapping[str, Any] | None = None) -> None:
        self._names = names or {}
        self._named: dict[Any, Shape] = {}

    def read(self, type_: Any, where: str) -> Shape:
        """The form of a type that stands at `where`."""
        if type_ is Any or type_ is object:
            return Anything()
        if type_ is None or type_ is types.NoneType:
            return _NULL
        if isinstance(type_, type) and type_ in _SCALARS:
            return _SCALARS[type_]
        if is_pydantic(type_):
            return Foreign(type_, where)
        if is_record(type_):
            return self._record(type_, where)
        if isinstance(type_, type) and issubclass(type_, enum.Enum):
            return _enum(type_, where)
        return self._special(type_, where) or self._container(type_, where)

    def _special(self, type_: Any, where: str) -> Shape | None:
        origin = get_origin(type_)
        if origin is typing.Annotated:
            return self._annotated(type_, where)
        if origin is typing.Literal:
            return _literal(get_args(type_), where)
        if origin in {typing.Union, types.UnionType}:
            return self._union(get_args(type_), where)
        if origin in _WRAPPERS:
            return self.read(get_args(type_)[0], where)
        if isinstance(type_, TypeVar):
            bound = type_.__constraints__ or (type_.__bound__ or Any,)
            return self._union(bound, where)
        if hasattr(type_, "__supertype__"):
            return self.read(type_.__supertype__, where)
        return self._alias(type_, where) if hasattr(type_, "__value__") else None

    def _container(self, type_: Any, where: str) -> Shape:
        origin, args = get_origin(type_) or type_, get_args(type_)
        if not isinstance(origin, type):
            raise ConfigurationError(_refusal(type_, where))
        if origin is tuple and args[-1:] != (...,) and type_ is not tuple:
            return FixedArray(tuple(self.read(item, where) for item in args))
        if origin in _ARRAYS or origin is tuple:
            build = _ARRAYS.get(origin, tuple)
            items = self.read(args[0], _inside(where, "its items")) if args else Anything()
            return Array(items, build, unique=build in _SETS)
        if origin in _MAPS:
            keys, values = args or (str, Any)
            return Mapped(
                self._keys(keys, where),
                self.read(values, _inside(where, "its values")),
                _MAPS[origin],
            )
        raise ConfigurationError(_refusal(type_, where))

    def _keys(self, type_: Any, where: str) -> Shape:
        shape = self.read(str if type_ is Any else type_, _inside(where, "its keys"))
        if not isinstance(shape, (Scalar, Choice, Noted)):
            raise ConfigurationError(_refusal(type_, _inside(where, "its keys")))
        return shape

    def _union(self, members: tuple[Any, ...], where: str) -> Shape:
        said = [member for member in members if member is not msgspec.UnsetType]
        shapes = tuple(self.read(member, where) for member in said)
        return shapes[0] if len(shapes) == 1 else OneOf(shapes)

    def _annotated(self, type_: Any, where: str) -> Shape:
        inner, *metadata = get_args(type_)
        if any(is_constraint(note) for note in metadata):
            kept = [note for note in metadata if not isinstance(note, str)]
            shape: Shape = Foreign(typing.Annotated[(inner, *kept)], where)
        else:
            shape = self.read(inner, where)
        notes: dict[str, Json] = {}
        for note in metadata:
            notes |= _notes(note)
        limits = tuple(note for note in metadata if isinstance(note, msgspec.Meta))
        return Noted(shape, notes, limits) if notes or limits else shape

    def _alias(self, type_: Any, where: str) -> Shape:
        if type_ not in self._named:
            self._named[type_] = named = Named(type_.__name__)
            named.inner = self.read(type_.__value__, where)
        return self._named[type_]

    def _record(self, type_: Any, where: str) -> Shape:
        known = self._named.get(type_)
        if known is not None:
            return known
        read = record_type(type_, self._names)
        record = self._named[type_] = Record(_label(type_, read.name))
        record.build, record.description = read.build, read.description
        record.closed, record.tag = read.closed, read.tag
        record.fields = tuple(
            (field, self.read(field.type, _inside(where, f"field {field.name!r} of {read.name}")))
            for field in read.fields
        )
        return record


class Named:
    """A named alias (`type X = ...`), which may lead back to itself."""

    def __init__(self, label: str) -> None:
        self.label = label
        self.inner: Shape = Anything()

    def schema(self, definitions: Definitions) -> dict[str, Json]:
        """A reference."""
        return definitions.refer(self, self.label, self.inner.schema)

    def decode(self, value: Json, path: Any, findings: Findings) -> Any:
        """As what it stands for."""
        return self.inner.decode(value, path, findings)


def _literal(values: tuple[Any, ...], where: str) -> Shape:
    said = [(value.value if isinstance(value, enum.Enum) else value, value) for value in values]
    if not all(isinstance(name, (str, int, types.NoneType)) for name, _ in said):
        raise ConfigurationError(_refusal(typing.Literal[values], where))
    return Choice(said)


def _enum(type_: type[enum.Enum], where: str) -> Shape:
    members = list(type_)
    sayable = all(isinstance(member.value, (str, int, float)) for member in members)
    if not sayable or not members or issubclass(type_, enum.Flag):
        raise ConfigurationError(_refusal(type_, where))
    own = type_.__dict__.get("__doc__")
    described = parse_docstring(own if own != "An enumeration." else None).description
    return Choice(((member.value, member) for member in members), described)


def _notes(note: Any) -> dict[str, Json]:
    if isinstance(note, str):
        return {"description": note}
    if isinstance(note, msgspec.Meta):
        return notes_of(note)
    if is_field(note):
        return {"description": note.description} if note.description else {}
    described = getattr(note, "documentation", None)  # typing_extensions.Doc
    return {"description": described} if isinstance(described, str) else {}


def _label(type_: Any, name: str) -> str:
    given = (getattr(item, "__name__", str(item)) for item in get_args(type_))
    return "_".join((name, *given))


def _inside(where: str, what: str) -> str:
    return f"{where}, {what}" if where else what


def _refusal(type_: Any, where: str) -> str:
    name = getattr(type_, "__qualname__", None) or repr(type_)
    instead = (
        "take text (base64) instead"
        if type_ in (bytes, bytearray, memoryview)  # a type may not be hashable
        else "use a dataclass, TypedDict, msgspec Struct or pydantic model"
    )
    return f"{where or 'the type'}: {name} cannot be said in JSON Schema; {instead}"
