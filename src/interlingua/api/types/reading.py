"""Reads Python types and functions into shapes, which write schemas and decode JSON values."""

from __future__ import annotations

import collections
import collections.abc as abstract
import datetime as dt
import decimal
import enum
import functools
import inspect
import pathlib
import types
import typing
import uuid
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_args, get_origin

import msgspec

from interlingua.api.types import shapes
from interlingua.api.types.records import (
    Field,
    RecordType,
    is_local,
    is_record,
    parse_docstring,
    record_type,
    resolve_hints,
    type_parameters,
)
from interlingua.api.types.schema import Definitions, Findings, Path, schema_annotations
from interlingua.runtime.callbacks import signature_of
from interlingua.spec.content import UncheckedJson
from interlingua.spec.errors import ConfigurationError, MismatchError

if TYPE_CHECKING:
    from typing_extensions import TypeForm

T = TypeVar("T")


def _string(format_: str) -> dict[str, UncheckedJson]:
    return {"type": "string", "format": format_}


_SCALARS: Mapping[Any, shapes.Scalar] = {
    type_: shapes.Scalar(type_, schema, read)
    for type_, schema, read in (
        (bool, {"type": "boolean"}, None),
        (int, {"type": "integer"}, None),
        (float, {"type": "number"}, None),
        (str, {"type": "string"}, None),
        (dt.datetime, _string("date-time"), dt.datetime.fromisoformat),
        (dt.date, _string("date"), dt.date.fromisoformat),
        (dt.time, _string("time"), dt.time.fromisoformat),
        (dt.timedelta, _string("duration"), None),
        (decimal.Decimal, _string("decimal"), None),
        (uuid.UUID, _string("uuid"), uuid.UUID),
        (pathlib.Path, {"type": "string"}, pathlib.Path),
    )
}
_NULL = shapes.Scalar(None, {"type": "null"})
_ARRAYS: Mapping[Any, Callable[[list[Any]], Any]] = {
    **dict.fromkeys((list, abstract.Sequence, abstract.MutableSequence), list),
    **dict.fromkeys((abstract.Collection, abstract.Iterable), list),
    **dict.fromkeys((set, abstract.Set, abstract.MutableSet), set),
    frozenset: frozenset,
    collections.deque: collections.deque,
}
_MAPS: Mapping[Any, Callable[[dict[Any, Any]], Any]] = {
    dict: dict,
    abstract.Mapping: dict,
    abstract.MutableMapping: dict,
    collections.OrderedDict: collections.OrderedDict,
}
_WRAPPERS = (typing.Final, typing.ClassVar, typing.Required, typing.NotRequired)


def schema_of(type_: object) -> dict[str, UncheckedJson]:
    """
    Return the JSON Schema of a Python type.

    Raises `ConfigurationError` for a type without a JSON Schema, with the path to it.
    """
    definitions = Definitions()
    return definitions.finish(shape_of(type_).schema(definitions))


def convert(value: UncheckedJson, type_: TypeForm[T]) -> T:
    """
    Convert a JSON value to a Python type.

    Raises `MismatchError`, which lists every problem with its path. Unknown keys are ignored,
    unless the type forbids them.
    """
    converted: T = decode(shape_of(type_).decode, value)
    return converted


def decode(
    read: Callable[[Any, Path, Findings], object], value: UncheckedJson, what: str = "The value"
) -> Any:
    """Decode a value; `MismatchError` lists every problem."""
    findings = Findings()
    try:
        decoded = read(value, None, findings)
    except RecursionError as error:
        raise MismatchError(f"{what} is nested too deeply.") from error
    findings.raise_if_any()
    return decoded


def shape_of(
    type_: object, where: str = "", names: Mapping[str, object] | None = None
) -> shapes.Shape:
    """
    The shape of a type; `where` begins the error message if the type has none.

    `names` are the local names that a class defined in a function may use in its hints.
    """
    if isinstance(type_, type) and not (names and is_local(type_)):
        # Only classes are cached: `int | str` equals `str | int`, but decodes in another order.
        return _class_shape(type_, where)
    return ShapeBuilder(names).read(type_, where)


@functools.lru_cache(maxsize=1024)
def _class_shape(type_: object, where: str) -> shapes.Shape:
    return ShapeBuilder().read(type_, where)


class ShapeBuilder:
    """Reads one type and all types that it refers to."""

    def __init__(self, names: Mapping[str, Any] | None = None) -> None:
        self._names = names or {}
        self._shapes: dict[Any, shapes.Shape] = {}
        """The shapes of records and aliases, which may refer to themselves."""

    def read(self, type_: object, where: str) -> shapes.Shape:
        """The shape of a type; `where` says in error messages where the type is used."""
        if type_ is Any or type_ is object:
            return shapes.Shape()
        if type_ is None or type_ is types.NoneType:
            return _NULL
        if isinstance(type_, type) and type_ in _SCALARS:
            return _SCALARS[type_]
        if shapes.is_pydantic(type_):
            return shapes.Pydantic(type_, where)
        if is_record(type_):
            return self._record(type_, where)
        if isinstance(type_, type) and issubclass(type_, enum.Enum):
            return _enum(type_, where)
        return self._special(type_, where) or self._container(type_, where)

    def _special(self, type_: object, where: str) -> shapes.Shape | None:
        origin = get_origin(type_)
        if origin is Annotated:
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

    def _container(self, type_: object, where: str) -> shapes.Shape:
        origin, args = get_origin(type_) or type_, get_args(type_)
        if not isinstance(origin, type):
            raise _unsupported(type_, where)
        if origin is tuple and args[-1:] != (...,) and type_ is not tuple:
            return shapes.FixedArray(tuple(self.read(item, where) for item in args))
        if origin in _ARRAYS or origin is tuple:
            build = _ARRAYS.get(origin, tuple)
            items = self.read(args[0], _inside(where, "its items")) if args else shapes.Shape()
            return shapes.Array(items, build, unique=build in (set, frozenset))
        if origin in _MAPS:
            keys, values = args or (str, Any)
            value_shape = self.read(values, _inside(where, "its values"))
            return shapes.Dictionary(self._keys(keys, where), value_shape, _MAPS[origin])
        raise _unsupported(type_, where)

    def _keys(self, type_: object, where: str) -> shapes.Shape:
        shape = self.read(str if type_ is Any else type_, _inside(where, "its keys"))
        if not isinstance(shape, (shapes.Scalar, shapes.Choice, shapes.Constrained)):
            raise _unsupported(type_, _inside(where, "its keys"))
        return shape

    def _union(self, members: tuple[object, ...], where: str) -> shapes.Shape:
        # msgspec.UNSET marks an absent field; it has no JSON form.
        present = [member for member in members if member is not msgspec.UnsetType]
        read = tuple(self.read(member, where) for member in present)
        return read[0] if len(read) == 1 else shapes.Union(read)

    def _annotated(self, type_: object, where: str) -> shapes.Shape:
        inner, *metadata = get_args(type_)
        if any(shapes.is_constraint(item) for item in metadata):
            constraints = [item for item in metadata if not isinstance(item, str)]
            shape: shapes.Shape = shapes.Pydantic(Annotated[(inner, *constraints)], where)
        else:
            shape = self.read(inner, where)
        annotations: dict[str, UncheckedJson] = {}
        for item in metadata:
            annotations |= _annotations(item)
        limits = tuple(item for item in metadata if isinstance(item, msgspec.Meta))
        return shapes.Constrained(shape, annotations, limits) if annotations or limits else shape

    def _alias(self, type_: Any, where: str) -> shapes.Shape:
        if type_ not in self._shapes:
            self._shapes[type_] = alias = shapes.Alias(type_.__name__)
            alias.inner = self.read(type_.__value__, where)
        return self._shapes[type_]

    def _record(self, type_: object, where: str) -> shapes.Shape:
        if type_ in self._shapes:
            return self._shapes[type_]
        info = record_type(type_, self._names)
        record = self._shapes[type_] = shapes.Record(info)
        record.fields = tuple(
            (field, self.read(field.type, _inside(where, f"field {field.name!r} of {info.name}")))
            for field in info.fields
        )
        return record


def _literal(values: tuple[object, ...], where: str) -> shapes.Shape:
    pairs = [(value.value if isinstance(value, enum.Enum) else value, value) for value in values]
    if not all(isinstance(json_value, (str, int, types.NoneType)) for json_value, _ in pairs):
        raise _unsupported(typing.Literal[values], where)
    return shapes.Choice(pairs)


def _enum(type_: type[enum.Enum], where: str) -> shapes.Shape:
    members = list(type_)
    has_json_values = all(isinstance(member.value, (str, int, float)) for member in members)
    if not has_json_values or not members or issubclass(type_, enum.Flag):
        raise _unsupported(type_, where)
    docstring = type_.__dict__.get("__doc__")
    if docstring == "An enumeration.":  # Python 3.11 gives it to an Enum without a docstring
        docstring = None
    description = parse_docstring(docstring).description
    return shapes.Choice(((member.value, member) for member in members), description)


def _annotations(metadata: Any) -> dict[str, UncheckedJson]:
    """The schema keywords for one item of `Annotated`."""
    if isinstance(metadata, str):
        return {"description": metadata}
    if isinstance(metadata, msgspec.Meta):
        return schema_annotations(metadata)
    if shapes.is_field(metadata):
        return {"description": metadata.description} if metadata.description else {}
    description = getattr(metadata, "documentation", None)  # typing_extensions.Doc
    return {"description": description} if isinstance(description, str) else {}


def _inside(where: str, what: str) -> str:
    return f"{where}, {what}" if where else what


def _unsupported(type_: object, where: str) -> ConfigurationError:
    name = getattr(type_, "__qualname__", None) or repr(type_)
    alternative = (
        "use str (base64)"
        if type_ in (bytes, bytearray, memoryview)  # a tuple, as a type may not be hashable
        else "use a dataclass, TypedDict, msgspec Struct or pydantic model"
    )
    return ConfigurationError(f"{where or 'the type'}: {name} has no JSON Schema; {alternative}")


# Functions.

_UNSUPPORTED_KINDS = {
    inspect.Parameter.VAR_POSITIONAL: "is variadic (*)",
    inspect.Parameter.POSITIONAL_ONLY: "is positional-only",
}


class FunctionHints(msgspec.Struct, frozen=True, kw_only=True):
    """The name, description, schema and argument types of a function."""

    name: str
    description: str
    schema: dict[str, UncheckedJson]
    record: shapes.Record
    takes_self: bool
    """Whether it is a method that is not bound to an object yet."""

    def read(self, arguments: Mapping[str, UncheckedJson]) -> dict[str, Any]:
        """Convert JSON arguments to the hinted types; `MismatchError` lists every problem."""
        converted: dict[str, Any] = decode(self.record.read, arguments, "An argument")
        return converted


def read_function(
    function: Callable[..., object],
    *,
    leave_out: frozenset[str] = frozenset(),
    names: Mapping[str, object] | None = None,
) -> FunctionHints:
    """
    Read a function whose arguments will be passed by name.

    The schema has no properties for the parameters in `leave_out`. `names` are extra names that
    the hints may use, such as the local variables of the scope that defines the function.
    """
    inner: object = function
    bound: set[str] = set()  # by `functools.partial`; the model must not see these arguments
    while isinstance(inner, functools.partial):
        bound |= inner.keywords.keys()
        inner = inner.func
    name = getattr(inner, "__name__", type(inner).__name__)
    try:
        signature = signature_of(function).parameters.values()
    except (TypeError, ValueError) as error:
        raise ConfigurationError(f"{inner!r} has no readable signature: {error}") from error
    parameters = [parameter for parameter in signature if parameter.name not in bound]
    takes_self = any(
        parameter.name in {"self", "cls"} and parameter.annotation is parameter.empty
        for parameter in parameters[:1]
    )
    visible = [item for item in parameters[takes_self:] if item.name not in leave_out]
    _check_parameters(visible, name)
    names = names or {}
    docstring = parse_docstring(_docstring(inner))
    hints = parameter_hints(inner, visible, names)
    record = _record(name, visible, hints, docstring.parameters, names)
    definitions = Definitions()
    return FunctionHints(
        name=name,
        description=docstring.description,
        schema=definitions.finish(record.write(definitions)),
        record=record,
        takes_self=takes_self,
    )


def _docstring(inner: object) -> str | None:
    """The docstring of a function. For a callable object, `__call__` comes before the class."""
    call = getattr(type(inner), "__call__", None)  # noqa: B004 -- its docstring is read
    return (inspect.getdoc(call) if inspect.isfunction(call) else None) or inspect.getdoc(inner)


def _check_parameters(parameters: list[inspect.Parameter], name: str) -> None:
    for parameter in parameters:
        if parameter.kind in _UNSUPPORTED_KINDS:
            raise ConfigurationError(
                f"The parameter {parameter.name!r} of {name} {_UNSUPPORTED_KINDS[parameter.kind]}. "
                "A model passes arguments by name."
            )
        if shapes.is_field(parameter.default):
            raise ConfigurationError(
                f"The parameter {parameter.name!r} of {name} has a pydantic Field as its default. "
                "Write Annotated[..., Field(...)] and a plain default."
            )


def parameter_hints(
    inner: Any, parameters: list[inspect.Parameter], names: Mapping[str, Any]
) -> dict[str, Any]:
    """The type hints of some parameters of a function; strings are resolved."""
    while isinstance(inner, functools.partial):
        inner = inner.func
    function = inner if hasattr(inner, "__code__") or inspect.ismethod(inner) else inner.__call__
    function = inspect.unwrap(function)
    globals_ = getattr(function, "__globals__", {})
    # Other parameters are not resolved: they may use names imported under TYPE_CHECKING.
    annotations = {
        parameter.name: parameter.annotation
        for parameter in parameters
        if parameter.annotation is not inspect.Parameter.empty
    }
    locals_ = {**names, **type_parameters(function)}
    return resolve_hints(annotations, globals_, locals_, getattr(inner, "__name__", repr(inner)))


def _nullable(hint: Any) -> Any:
    if hint is Any:
        return hint
    if get_origin(hint) is Annotated:  # the metadata must stay outermost to be found
        inner, *metadata = get_args(hint)
        return Annotated[(_nullable(inner), *metadata)]
    return hint | None


def _record(
    name: str,
    parameters: list[inspect.Parameter],
    hints: Mapping[str, object],
    descriptions: Mapping[str, str],
    names: Mapping[str, object],
) -> shapes.Record:
    record = shapes.Record(RecordType(name=name, closed=True))
    fields = []
    for parameter in parameters:
        hint = hints.get(parameter.name, Any)
        has_default = parameter.default is not inspect.Parameter.empty
        if parameter.default is None:
            hint = _nullable(hint)  # `x: int = None` accepts None, so the schema must too
        shape = shape_of(hint, f"parameter {parameter.name!r} of {name}", names)
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            record.rest = shape
            continue
        key = parameter.name
        default = parameter.default if has_default else msgspec.NODEFAULT
        text = descriptions.get(key)
        field = Field(name=key, key=key, type=hint, default=default, description=text)
        fields.append((field, shape))
    record.fields = tuple(fields)
    return record
