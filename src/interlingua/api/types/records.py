"""Reads docstrings, and the fields of dataclasses, NamedTuples, TypedDicts and Structs."""

from __future__ import annotations

import dataclasses
import inspect
import re
import sys
import typing
from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, TypeVar, get_args, get_origin, get_type_hints

import msgspec

from interlingua.spec.errors import ConfigurationError

if sys.version_info >= (3, 14):
    from annotationlib import Format

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
    default: Any
    """NODEFAULT if the field is required, UNSET if its default is not a constant."""
    description: str | None = None

    @property
    def required(self) -> bool:
        """Whether it has no default."""
        return self.default is msgspec.NODEFAULT


class RecordType(msgspec.Struct, frozen=True, kw_only=True):
    """The fields and the constructor of a record type."""

    name: str
    fields: tuple[Field, ...] = ()
    build: Callable[..., Any] = dict
    """The constructor; it takes the fields by their Python names."""
    description: str = ""
    closed: bool = False
    """Whether unknown keys are an error."""
    tag: tuple[str, str | int] | None = None
    """The key and value that identify a tagged Struct in a union."""


def is_record(type_: object) -> bool:
    """Whether `record_type` can read the type."""
    origin = get_origin(type_) or type_
    return isinstance(origin, type) and (
        dataclasses.is_dataclass(origin)
        or _is_typed_dict(origin)
        or issubclass(origin, msgspec.Struct)
        or (issubclass(origin, tuple) and hasattr(origin, "_field_defaults"))
    )


def _is_typed_dict(cls: type) -> bool:
    """Whether it is a TypedDict; `typing.is_typeddict` does not know those of typing_extensions."""
    return issubclass(cls, dict) and hasattr(cls, "__required_keys__")


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
    arguments = (getattr(item, "__name__", str(item)) for item in get_args(type_))
    return RecordType(
        name="_".join((cls.__name__, *arguments)),
        fields=fields,
        build=dict if _is_typed_dict(cls) else cls,
        description=docstring.description,
        closed=config is not None and config.forbid_unknown_fields,
        tag=tag,
    )


def resolve_hints(
    annotations: Mapping[str, object],
    globals_: dict[str, Any],
    locals_: Mapping[str, object],
    what: str,
) -> dict[str, Any]:
    """Resolve annotations, which may be strings; `what` names their owner in an error message."""
    # A class, because `get_type_hints` accepts "ClassVar" and "Final" in strings only there.
    holder = type("Holder", (), {"__annotations__": dict(annotations)})
    try:
        return get_type_hints(holder, globals_, dict(locals_), include_extras=True)
    except (NameError, AttributeError, TypeError, SyntaxError) as error:
        raise ConfigurationError(
            f"The type hints of {what} cannot be resolved: {error}. Import the names they use at "
            "run time, not only under TYPE_CHECKING."
        ) from error


def annotations_of(cls: type) -> Mapping[str, Any]:
    """The annotations of a class itself; unknown names in them are no error here."""
    if sys.version_info >= (3, 14):  # annotations are evaluated when they are asked for
        return inspect.get_annotations(cls, format=Format.FORWARDREF)
    return inspect.get_annotations(cls)


def type_parameters(owner: object) -> dict[str, Any]:
    """The names in the brackets of `class Box[T]` or `def first[T]`, for hints that are strings."""
    return {parameter.__name__: parameter for parameter in getattr(owner, "__type_params__", ())}


def substitute(type_: Any, variables: Mapping[Any, Any]) -> Any:
    """Replace the type variables in a type."""
    if isinstance(type_, TypeVar):
        return variables.get(type_, type_)
    inner = getattr(type_, "__parameters__", ())
    if isinstance(type_, type) or not inner or not variables:
        return type_
    return type_[tuple(variables.get(variable, variable) for variable in inner)]


def _hints(type_: object, cls: type, names: Mapping[str, object]) -> dict[str, Any]:
    hints: dict[str, Any] = {}
    variables = _variables(type_)
    for base in reversed(cls.__mro__):
        own = annotations_of(base)
        if not own:
            continue
        module = sys.modules.get(base.__module__)
        locals_ = {
            **(names if is_local(base) else {}),
            cls.__name__: cls,
            **type_parameters(base),
        }
        resolved = resolve_hints(own, getattr(module, "__dict__", {}), locals_, base.__qualname__)
        hints |= {name: substitute(hint, variables) for name, hint in resolved.items()}
    return hints


def _variables(type_: object) -> dict[Any, Any]:
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
        for field in dataclasses.fields(cls):
            if field.init:
                text = field.metadata.get("description")
                yield Field(
                    name=field.name,
                    key=field.name,
                    type=hints[field.name],
                    default=_default(field.default, field.default_factory),
                    description=text if isinstance(text, str) else None,
                )
    elif _is_typed_dict(cls):
        for name, hint in hints.items():
            # `__required_keys__` does not see `NotRequired` in an annotation that is a string.
            type_, required = _strip_qualifiers(hint, required=name in cls.__required_keys__)
            default = msgspec.NODEFAULT if required else msgspec.UNSET
            yield Field(name=name, key=name, type=type_, default=default)
    elif issubclass(cls, msgspec.Struct):
        # `msgspec.structs.fields` would resolve the hints again, without the local names.
        names, keys, defaults = (
            cls.__struct_fields__,
            cls.__struct_encode_fields__,
            cls.__struct_defaults__,
        )
        defaults = (msgspec.NODEFAULT,) * (len(names) - len(defaults)) + defaults
        for name, key, default in zip(names, keys, defaults, strict=True):
            factory = default.factory if isinstance(default, _FACTORY) else dataclasses.MISSING
            yield Field(name=name, key=key, type=hints[name], default=_default(default, factory))
    else:
        for name in cls._fields:
            default = cls._field_defaults.get(name, msgspec.NODEFAULT)
            yield Field(name=name, key=name, type=hints.get(name, Any), default=default)


def _strip_qualifiers(hint: object, *, required: bool) -> tuple[Any, bool]:
    """The type without `Required`, `NotRequired` and `ReadOnly`, and whether it is required."""
    origin = get_origin(hint)
    if origin is Annotated:
        inner, *metadata = get_args(hint)
        inner, required = _strip_qualifiers(inner, required=required)
        return Annotated[(inner, *metadata)], required
    if origin is typing.Required or origin is typing.NotRequired:
        return _strip_qualifiers(get_args(hint)[0], required=origin is typing.Required)
    if str(origin).endswith(".ReadOnly"):
        return _strip_qualifiers(get_args(hint)[0], required=required)
    return hint, required


def _default(default: object, factory: object) -> Any:
    if factory in _EMPTY_FACTORIES:
        return factory()
    if factory is not dataclasses.MISSING:  # it may return another value each time
        return msgspec.UNSET
    return msgspec.NODEFAULT if default is dataclasses.MISSING else default


# Docstrings in Google, reST and numpy style.

_PARAMETERS = (
    "args|arguments|parameters|params|other parameters|keyword args|keyword arguments|attributes"
)
_OUTCOMES = "returns?|yields?|raises|warns|receives"
_HEADING = re.compile(rf"(?:(?P<names>{_PARAMETERS})|{_OUTCOMES})\s*(?P<colon>:?)", re.IGNORECASE)
_ITEM = re.compile(r"(?P<name>\*{0,2}\w+)\s*+(?:\([^()]*(?:\([^()]*\)[^()]*)*\))?\s*+:(?:\s+|$)")
_NUMPY_ITEM = re.compile(r"(?P<name>\*{0,2}\w+(?:\s*,\s*\*{0,2}\w+)*)\s*(?::.*)?")
_REST_FIELD = re.compile(r":(?P<kind>\w+)(?:\s++(?P<about>[^:]*))?:(?:\s+|$)")
_REST_PARAMETERS = frozenset(
    ("param", "parameter", "arg", "argument", "key", "keyword", "ivar", "var", "cvar")
)
_REST_OTHERS = frozenset(
    ("type", "vartype", "return", "returns", "rtype", "raise", "raises", "yield", "yields")
)


class Docstring(msgspec.Struct, frozen=True, kw_only=True):
    """A parsed docstring."""

    description: str = ""
    """The text outside the sections for parameters, results and errors."""
    parameters: dict[str, str] = {}


def parse_docstring(text: str | None) -> Docstring:
    """Split a docstring. Lines in none of the known styles belong to the description."""
    lines = inspect.cleandoc(text or "").splitlines()
    description: list[str] = []
    parameters: dict[str, str] = {}
    position = 0
    while position < len(lines):
        for read_section in (_google, _numpy, _rest):
            end = read_section(lines, position, parameters)
            if end > position:
                position = end
                break
        else:
            description.append(lines[position])
            position += 1
    return Docstring(description=_tidy(description), parameters=parameters)


def _google(lines: list[str], start: int, parameters: dict[str, str]) -> int:
    """
    Read `Args:` and its indented items into `parameters`.

    Returns the line after the section, or `start` if no section begins there.
    """
    heading = _HEADING.fullmatch(lines[start])
    if heading is None or not heading["colon"]:
        return start
    end = _end_of_block(lines, start + 1)
    if end == start + 1:
        return start
    if heading["names"]:
        block = inspect.cleandoc("\n" + "\n".join(lines[start + 1 : end])).splitlines()
        for item in _items(block):
            match = _ITEM.match(item[0])
            if match is not None:
                _add(parameters, match["name"], [item[0][match.end() :], *item[1:]])
    return end


def _numpy(lines: list[str], start: int, parameters: dict[str, str]) -> int:
    """Read `Parameters`, its underline, and the items up to the next underlined heading."""
    heading = _HEADING.fullmatch(lines[start])
    if heading is None or not _is_underlined(lines, start):
        return start
    end = start + 2
    while end < len(lines) and not _is_underlined(lines, end):
        end += 1
    if heading["names"]:
        for item in _items(lines[start + 2 : end]):
            match = _NUMPY_ITEM.fullmatch(item[0])
            for name in match["name"].split(",") if match else ():
                _add(parameters, name.strip(), item[1:])
    return end


def _rest(lines: list[str], start: int, parameters: dict[str, str]) -> int:
    """Read `:param name: text` and the lines indented under it."""
    field = _REST_FIELD.match(lines[start])
    if field is None or field["kind"] not in _REST_PARAMETERS | _REST_OTHERS:
        return start
    end = _end_of_block(lines, start + 1)
    if field["kind"] in _REST_PARAMETERS and field["about"]:
        name = field["about"].split()[-1]  # `:param int count:` has the type before the name
        _add(parameters, name, [lines[start][field.end() :], *lines[start + 1 : end]])
    return end


def _is_underlined(lines: list[str], start: int) -> bool:
    underline = lines[start + 1].strip() if start + 1 < len(lines) else ""
    return len(underline) >= 3 and not underline.strip("-=") and bool(lines[start].strip())


def _end_of_block(lines: list[str], start: int) -> int:
    """The line after the indented block. Blank lines count only if indented lines follow them."""
    end = position = start
    while position < len(lines) and (not lines[position].strip() or lines[position][0].isspace()):
        position += 1
        if lines[position - 1].strip():
            end = position
    return end


def _items(block: list[str]) -> Iterator[list[str]]:
    """Split the block before each line that is not indented."""
    item: list[str] = []
    for line in block:
        if line.strip() and not line[0].isspace() and item:
            yield item
            item = []
        if line.strip() or item:
            item.append(line)
    if item:
        yield item


def _add(parameters: dict[str, str], name: str, lines: list[str]) -> None:
    text = " ".join(line.strip() for line in lines if line.strip())
    if text:
        parameters[name.lstrip("*")] = text


def _tidy(lines: list[str]) -> str:
    """Join the lines, with at most one blank line between paragraphs."""
    return re.sub(r"\n{3,}", "\n\n", "\n".join(line.rstrip() for line in lines)).strip()
