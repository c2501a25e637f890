"""The fields of a type that is an object in JSON: dataclass, NamedTuple, TypedDict, Struct."""

from __future__ import annotations

import dataclasses
import inspect
import sys
import typing
from collections.abc import Callable, Iterator, Mapping
from typing import (
    Annotated,
    Any,
    NotRequired,
    Required,
    TypeVar,
    get_args,
    get_origin,
    get_type_hints,
)

import msgspec

from interlingua.api.types.docstrings import parse_docstring
from interlingua.spec.errors import ConfigurationError

_EMPTY = (list, dict, set, frozenset, tuple)
# msgspec does not name this type
_FACTORY = type(msgspec.defstruct("_", [("a", list[int], [])]).__struct_defaults__[0])


class Field(msgspec.Struct, frozen=True, kw_only=True):
    """One field of a record or parameter of a function."""

    name: str
    """In Python."""
    key: str
    """In JSON."""
    type: Any
    required: bool
    default: Any = msgspec.UNSET
    """What it is when left out, if it is always the same."""
    description: str | None = None


class RecordType(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of such a type."""

    name: str
    fields: tuple[Field, ...]
    build: Callable[..., Any]
    """Takes the fields by their Python names."""
    description: str = ""
    closed: bool = False
    """Other keys are an error."""
    tag: tuple[str, str | int] | None = None
    """The key and value by which Structs of a union are told apart."""


def is_record(type_: Any) -> bool:
    """Whether `record_type` can read it."""
    origin = get_origin(type_) or type_
    return isinstance(origin, type) and (
        dataclasses.is_dataclass(origin)
        or typing.is_typeddict(origin)
        or issubclass(origin, msgspec.Struct)
        or (issubclass(origin, tuple) and hasattr(origin, "_field_defaults"))
    )


def is_local(cls: type) -> bool:
    """Whether it is defined in a function."""
    return "<locals>" in cls.__qualname__


def record_type(type_: Any, names: Mapping[str, Any] | None = None) -> RecordType:
    """
    Its fields in order, with resolved types.

    `names` are those that it may use besides its module's, if it is defined in a function.
    """
    cls = get_origin(type_) or type_
    hints = _hints(type_, cls, names or {})
    documented, description = _documentation(cls)
    fields = tuple(
        msgspec.structs.replace(field, description=field.description or documented.get(field.name))
        for field in _fields(cls, hints)
    )
    config = getattr(cls, "__struct_config__", None)
    tag = None if config is None or config.tag is None else (config.tag_field, config.tag)
    return RecordType(
        name=cls.__name__,
        fields=fields,
        build=dict if typing.is_typeddict(cls) else cls,
        description=description,
        closed=config is not None and config.forbid_unknown_fields,
        tag=tag,
    )


def resolve_hints(
    annotations: Mapping[str, Any], globals_: dict[str, Any], locals_: Mapping[str, Any], what: str
) -> dict[str, Any]:
    """The types that annotations, perhaps written as text, stand for."""
    # a class, because only there may text say `ClassVar` or `Final`
    holder = type("Holder", (), {"__annotations__": dict(annotations)})
    try:
        return get_type_hints(holder, globals_, dict(locals_), include_extras=True)
    except (NameError, AttributeError, TypeError, SyntaxError) as error:
        raise ConfigurationError(
            f"the type hints of {what} cannot be read: {error}; what they name must be there when "
            "the program runs, not only for the type checker"
        ) from error


def substitute(type_: Any, variables: Mapping[Any, Any]) -> Any:
    """The type with its type variables replaced."""
    if isinstance(type_, TypeVar):
        return variables.get(type_, type_)
    inner = getattr(type_, "__parameters__", ())
    if isinstance(type_, type) or not inner or not variables:
        return type_
    return type_[tuple(variables.get(variable, variable) for variable in inner)]


def _hints(type_: Any, cls: type, names: Mapping[str, Any]) -> dict[str, Any]:
    hints: dict[str, Any] = {}
    variables = _variables(type_)
    for base in reversed(cls.__mro__):
        own = inspect.get_annotations(base)
        if not own:
            continue
        module = sys.modules.get(base.__module__)
        known = {**(names if is_local(base) else {}), cls.__name__: cls}
        resolved = resolve_hints(own, getattr(module, "__dict__", {}), known, base.__qualname__)
        hints |= {name: substitute(hint, variables) for name, hint in resolved.items()}
    return hints


def _variables(type_: Any) -> dict[Any, Any]:
    """What each type variable of a generic class and of its bases stands for."""
    cls = get_origin(type_) or type_
    found = dict(zip(getattr(cls, "__parameters__", ()), get_args(type_), strict=False))
    for base in getattr(cls, "__orig_bases__", ()):
        inner = {name: substitute(given, found) for name, given in _variables(base).items()}
        found = {**inner, **found}
    return found


def _documentation(cls: type) -> tuple[dict[str, str], str]:
    parameters: dict[str, str] = {}
    description = ""
    for base in reversed(cls.__mro__):
        text = base.__dict__.get("__doc__")
        made = isinstance(text, str) and text.startswith(f"{base.__name__}(")
        if made or base.__module__ in {"builtins", "typing", "msgspec"}:
            text = None  # the signature that `dataclass` and `NamedTuple` write is no description
        read = parse_docstring(text)
        parameters |= read.parameters
        description = read.description
    return parameters, description


def _fields(cls: Any, hints: Mapping[str, Any]) -> Iterator[Field]:
    if dataclasses.is_dataclass(cls):
        yield from _dataclass_fields(cls, hints)
    elif typing.is_typeddict(cls):
        yield from _typed_dict_fields(cls, hints)
    elif issubclass(cls, msgspec.Struct):
        yield from _struct_fields(cls, hints)
    else:
        for name in cls._fields:
            default = cls._field_defaults.get(name, msgspec.UNSET)
            yield Field(
                name=name,
                key=name,
                type=hints.get(name, Any),
                required=default is msgspec.UNSET,
                default=default,
            )


def _dataclass_fields(cls: Any, hints: Mapping[str, Any]) -> Iterator[Field]:
    missing = dataclasses.MISSING
    for field in dataclasses.fields(cls):
        if not field.init:
            continue
        described = field.metadata.get("description")
        yield Field(
            name=field.name,
            key=field.name,
            type=hints[field.name],
            required=field.default is missing and field.default_factory is missing,
            default=_default(field.default, field.default_factory, missing),
            description=described if isinstance(described, str) else None,
        )


def _struct_fields(cls: Any, hints: Mapping[str, Any]) -> Iterator[Field]:
    # not `msgspec.structs.fields`: that resolves the hints too, and knows no local names
    missing = msgspec.NODEFAULT
    names, keys = cls.__struct_fields__, cls.__struct_encode_fields__
    defaults = (missing,) * (len(names) - len(cls.__struct_defaults__)) + cls.__struct_defaults__
    for name, key, default in zip(names, keys, defaults, strict=True):
        factory = default.factory if isinstance(default, _FACTORY) else missing
        yield Field(
            name=name,
            key=key,
            type=hints[name],
            required=default is missing,
            default=_default(missing if factory is not missing else default, factory, missing),
        )


def _typed_dict_fields(cls: Any, hints: Mapping[str, Any]) -> Iterator[Field]:
    for name, hint in hints.items():
        # annotations kept as text hide `NotRequired` from `__required_keys__`
        type_, required = _unmarked(hint, required=name in cls.__required_keys__)
        yield Field(name=name, key=name, type=type_, required=required)


def _unmarked(hint: Any, *, required: bool) -> tuple[Any, bool]:
    """A type without `Required` and its like, and whether it is required after all."""
    mark = get_origin(hint)
    if mark is Annotated:
        inner, *notes = get_args(hint)
        inner, required = _unmarked(inner, required=required)
        return Annotated[(inner, *notes)], required
    if mark is Required or mark is NotRequired:
        return _unmarked(get_args(hint)[0], required=mark is Required)
    if str(mark).endswith(".ReadOnly"):
        return _unmarked(get_args(hint)[0], required=required)
    return hint, required


def _default(default: Any, factory: Any, missing: Any) -> Any:
    """A default that is the same each time; what a factory makes may not be."""
    if default is not missing:
        return default
    return factory() if factory in _EMPTY else msgspec.UNSET  # also where there is neither
