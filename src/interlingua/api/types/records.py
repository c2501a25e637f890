"""Reads the fields of types that are JSON objects: dataclass, NamedTuple, TypedDict, Struct."""

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

from interlingua.api.types.docstrings import Docstring, parse_docstring
from interlingua.spec.errors import ConfigurationError

_EMPTY_FACTORIES = (list, dict, set, frozenset, tuple)
# The type of a default factory in `__struct_defaults__`, which msgspec does not export.
_FACTORY = type(msgspec.defstruct("_", [("a", list[int], [])]).__struct_defaults__[0])


class Field(msgspec.Struct, frozen=True, kw_only=True):
    """One field of a record, or one parameter of a function."""

    name: str
    """The name in Python."""
    key: str
    """The name in JSON."""
    type: Any
    required: bool
    default: Any = msgspec.UNSET
    """The default, if it is a constant."""
    description: str | None = None


class RecordType(msgspec.Struct, frozen=True, kw_only=True):
    """The fields and the constructor of a record type."""

    name: str
    fields: tuple[Field, ...]
    build: Callable[..., Any]
    """The constructor; it takes the fields by their Python names."""
    description: str = ""
    closed: bool = False
    """Whether unknown keys are an error."""
    tag: tuple[str, str | int] | None = None
    """The key and value that identify a tagged Struct in a union."""


def is_record(type_: Any) -> bool:
    """Whether `record_type` can read the type."""
    origin = get_origin(type_) or type_
    return isinstance(origin, type) and (
        dataclasses.is_dataclass(origin)
        or typing.is_typeddict(origin)
        or issubclass(origin, msgspec.Struct)
        or (issubclass(origin, tuple) and hasattr(origin, "_field_defaults"))
    )


def is_local(cls: type) -> bool:
    """Whether the class is defined in a function."""
    return "<locals>" in cls.__qualname__


def record_type(type_: Any, names: Mapping[str, Any] | None = None) -> RecordType:
    """
    Read the fields of a record type, with resolved hints.

    `names` are the local names that a class defined in a function may use in its hints.
    """
    cls = get_origin(type_) or type_
    hints = _hints(type_, cls, names or {})
    docstring = _docstring(cls)
    fields = tuple(
        msgspec.structs.replace(
            field, description=field.description or docstring.parameters.get(field.name)
        )
        for field in _fields(cls, hints)
    )
    config = getattr(cls, "__struct_config__", None)
    tag = None if config is None or config.tag is None else (config.tag_field, config.tag)
    return RecordType(
        name=cls.__name__,
        fields=fields,
        build=dict if typing.is_typeddict(cls) else cls,
        description=docstring.description,
        closed=config is not None and config.forbid_unknown_fields,
        tag=tag,
    )


def resolve_hints(
    annotations: Mapping[str, Any], globals_: dict[str, Any], locals_: Mapping[str, Any], what: str
) -> dict[str, Any]:
    """Resolve annotations, which may be strings; `what` names their owner in an error message."""
    # A class, because `get_type_hints` accepts "ClassVar" and "Final" in strings only there.
    holder = type("Holder", (), {"__annotations__": dict(annotations)})
    try:
        return get_type_hints(holder, globals_, dict(locals_), include_extras=True)
    except (NameError, AttributeError, TypeError, SyntaxError) as error:
        raise ConfigurationError(
            f"the type hints of {what} cannot be resolved: {error}; import the names they use at "
            "run time, not only under TYPE_CHECKING"
        ) from error


def substitute(type_: Any, variables: Mapping[Any, Any]) -> Any:
    """Replace the type variables in a type."""
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
        locals_ = {**(names if is_local(base) else {}), cls.__name__: cls}
        resolved = resolve_hints(own, getattr(module, "__dict__", {}), locals_, base.__qualname__)
        hints |= {name: substitute(hint, variables) for name, hint in resolved.items()}
    return hints


def _variables(type_: Any) -> dict[Any, Any]:
    """The arguments for the type variables of a generic class and of its bases."""
    cls = get_origin(type_) or type_
    arguments = dict(zip(getattr(cls, "__parameters__", ()), get_args(type_), strict=False))
    for base in getattr(cls, "__orig_bases__", ()):
        inherited = {name: substitute(arg, arguments) for name, arg in _variables(base).items()}
        arguments = {**inherited, **arguments}
    return arguments


def _docstring(cls: type) -> Docstring:
    """The description of the class, and the field texts of the class and its bases."""
    parameters: dict[str, str] = {}
    description = ""
    for base in reversed(cls.__mro__):
        text = base.__dict__.get("__doc__")
        # `dataclass` and `NamedTuple` write the signature as the docstring if there is none.
        is_signature = isinstance(text, str) and text.startswith(f"{base.__name__}(")
        if is_signature or base.__module__ in {"builtins", "typing", "msgspec"}:
            text = None
        docstring = parse_docstring(text)
        parameters |= docstring.parameters
        description = docstring.description
    return Docstring(description=description, parameters=parameters)


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
        description = field.metadata.get("description")
        yield Field(
            name=field.name,
            key=field.name,
            type=hints[field.name],
            required=field.default is missing and field.default_factory is missing,
            default=_default(field.default, field.default_factory, missing),
            description=description if isinstance(description, str) else None,
        )


def _struct_fields(cls: Any, hints: Mapping[str, Any]) -> Iterator[Field]:
    # `msgspec.structs.fields` would resolve the hints again, without the local names.
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
        # `__required_keys__` does not see `NotRequired` in an annotation that is a string.
        type_, required = _strip_qualifiers(hint, required=name in cls.__required_keys__)
        yield Field(name=name, key=name, type=type_, required=required)


def _strip_qualifiers(hint: Any, *, required: bool) -> tuple[Any, bool]:
    """The type without `Required`, `NotRequired` and `ReadOnly`, and whether it is required."""
    origin = get_origin(hint)
    if origin is Annotated:
        inner, *metadata = get_args(hint)
        inner, required = _strip_qualifiers(inner, required=required)
        return Annotated[(inner, *metadata)], required
    if origin is Required or origin is NotRequired:
        return _strip_qualifiers(get_args(hint)[0], required=origin is Required)
    if str(origin).endswith(".ReadOnly"):
        return _strip_qualifiers(get_args(hint)[0], required=required)
    return hint, required


def _default(default: Any, factory: Any, missing: Any) -> Any:
    """The default if it is a constant, else UNSET: a factory may return another value each time."""
    if default is not missing:
        return default
    return factory() if factory in _EMPTY_FACTORIES else msgspec.UNSET
