"""
Shapes: each kind of type has one, which writes its JSON Schema and decodes its JSON values.

Pydantic is never imported here. A program that uses pydantic types has imported it already, so it
is looked up in `sys.modules`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import Annotated, Any

import msgspec

from interlingua.api.types.records import Field, RecordType
from interlingua.api.types.schema import Definitions, Findings, Path, add_limits
from interlingua.spec.content import UncheckedJson
from interlingua.spec.errors import ConfigurationError, Problem
from interlingua.wire.integers import ANY_LIMIT, read_integer
from interlingua.wire.json_text import dumps


class Shape:
    """The base class of the shapes. It accepts any JSON value and does not change it."""

    label: str = "any value"
    """The name of the expected type in error messages."""

    def schema(self, _: Definitions) -> dict[str, UncheckedJson]:
        """The JSON Schema; a new dict each time, which the caller may change."""
        return {}

    def decode(self, value: UncheckedJson, _path: Path, _findings: Findings) -> Any:
        """
        The Python value for a JSON value.

        Problems are added to the findings; if there are any, the returned value must not be used.
        """
        return value


class Scalar(Shape):
    """A null, boolean, number or string, or a type that is a string in JSON, such as a date."""

    def __init__(
        self,
        type_: object,
        schema: Mapping[str, UncheckedJson],
        parse: Callable[[str], object] | None = None,
    ) -> None:
        self.type = type_
        self._schema = schema
        self._parse = parse
        self.label: str = str(schema.get("format", schema["type"]))

    def schema(self, _: Definitions) -> dict[str, UncheckedJson]:
        return dict(self._schema)

    def decode(self, value: UncheckedJson, path: Path, findings: Findings) -> Any:
        # JSON Schema: 1.0 is an integer.
        if self.type is int and isinstance(value, float) and value.is_integer():
            return int(value)
        try:
            if self._parse is not None and isinstance(value, str):
                return self._parse(value)
            return msgspec.convert(value, self.type)
        except (ValueError, TypeError, ArithmeticError):
            return findings.reject(path, self.label, value)


class Choice(Shape):
    """One of several constants: a `Literal` or an `Enum`."""

    def __init__(
        self, values: Iterable[tuple[UncheckedJson, object]], description: str = ""
    ) -> None:
        # The key says whether it is a boolean, because True equals 1.
        self._values = {(isinstance(option, bool), option): value for option, value in values}
        self._options = [option for _, option in self._values]
        self._description = description
        self.label: str = " | ".join(repr(option) for option in self._options)

    def schema(self, _: Definitions) -> dict[str, UncheckedJson]:
        """An `enum`, with the type if all options have the same one."""
        names = {str: "string", bool: "boolean", int: "integer", float: "number"}
        kinds = {names.get(type(option)) for option in self._options}
        schema: dict[str, UncheckedJson] = (
            {} if len(kinds) > 1 or None in kinds else {"type": kinds.pop()}
        )
        if self._description:
            schema["description"] = self._description
        return schema | {"enum": list(self._options)}

    def decode(self, value: UncheckedJson, path: Path, findings: Findings) -> Any:
        key = (isinstance(value, bool), value)
        if not isinstance(value, (list, dict)) and key in self._values:
            return self._values[key]
        return findings.reject(path, self.label, value)


class Array(Shape):
    """Any number of values of one type."""

    label = "array"

    def __init__(self, items: Shape, build: Callable[[list[Any]], object], *, unique: bool) -> None:
        self._items = items
        self._build = build
        self._unique = unique

    def schema(self, definitions: Definitions) -> dict[str, UncheckedJson]:
        """An array; `items` is always present, because some providers require it."""
        schema = {"type": "array", "items": self._items.schema(definitions)}
        return schema | {"uniqueItems": True} if self._unique else schema

    def decode(self, value: UncheckedJson, path: Path, findings: Findings) -> Any:
        if not isinstance(value, (list, tuple)):
            return findings.reject(path, self.label, value)
        before = len(findings.problems)
        items = [self._items.decode(item, (path, i), findings) for i, item in enumerate(value)]
        return _build(self._build, items, path, findings, before)


class FixedArray(Shape):
    """A tuple of fixed length, each item with its own type."""

    label = "array"

    def __init__(self, items: tuple[Shape, ...]) -> None:
        self._items = items

    def schema(self, definitions: Definitions) -> dict[str, UncheckedJson]:
        size = len(self._items)
        schema: dict[str, UncheckedJson] = {"type": "array", "minItems": size, "maxItems": size}
        if not self._items:
            return schema | {"items": {}}
        items = [item.schema(definitions) for item in self._items]
        return schema | {"prefixItems": items, "items": False}

    def decode(self, value: UncheckedJson, path: Path, findings: Findings) -> Any:
        size = len(self._items)
        if not isinstance(value, (list, tuple)):
            return findings.reject(path, f"array of {size}", value)
        if len(value) != size:
            return findings.add(path, f"expected array of {size}, got {len(value)}")
        pairs = enumerate(zip(self._items, value, strict=True))
        return tuple(shape.decode(item, (path, i), findings) for i, (shape, item) in pairs)


class Dictionary(Shape):
    """An object whose keys are data."""

    label = "object"

    def __init__(
        self, keys: Shape, values: Shape, build: Callable[[dict[Any, Any]], object]
    ) -> None:
        self._keys = keys
        self._values = values
        self._build = build

    def schema(self, definitions: Definitions) -> dict[str, UncheckedJson]:
        """The schema of the values, and of the keys unless any string is allowed."""
        values = self._values.schema(definitions)
        schema: dict[str, UncheckedJson] = {
            "type": "object",
            "additionalProperties": values or True,
        }
        names = self._keys.schema(definitions)
        if names.get("type") == "integer":  # property names are strings in JSON
            names = {"pattern": "^-?[0-9]+$"}
        return schema if names == {"type": "string"} else schema | {"propertyNames": names}

    def decode(self, value: UncheckedJson, path: Path, findings: Findings) -> Any:
        if not isinstance(value, Mapping):
            return findings.reject(path, self.label, value)
        before = len(findings.problems)
        items = {}
        for name, item in value.items():
            key = self._keys.decode(self._parse_key(name), (path, name), findings)
            decoded = self._values.decode(item, (path, name), findings)
            if len(findings.problems) == before:  # else the key may not be hashable
                items[key] = decoded
        return _build(self._build, items, path, findings, before)

    def _parse_key(self, name: str) -> UncheckedJson:
        if isinstance(self._keys, Scalar) and self._keys.type is int:
            number = read_integer(name, least=-(10**ANY_LIMIT), digits=ANY_LIMIT)
            return name if number is None else number
        return name


class Record(Shape):
    """An object with known fields, which are set later because a record may contain itself."""

    def __init__(self, type_: RecordType) -> None:
        self.label: str = type_.name
        self.type = type_
        self.fields: tuple[tuple[Field, Shape], ...] = ()
        self.rest: Shape | None = None
        """The shape of all other keys, if the function has `**kwargs`."""

    def schema(self, definitions: Definitions) -> dict[str, UncheckedJson]:
        """A reference; `Definitions` replaces it by the object if it is the only one."""
        return definitions.refer(self, self.label, self.write)

    def write(self, definitions: Definitions) -> dict[str, UncheckedJson]:
        """The object schema itself."""
        schema: dict[str, UncheckedJson] = {"type": "object"}
        if self.type.description:
            schema["description"] = self.type.description
        properties = {
            field.key: _property(field, shape, definitions) for field, shape in self.fields
        }
        required = [field.key for field, _ in self.fields if field.required]
        if self.type.tag is not None:
            key, tag = self.type.tag
            properties = {key: Choice([(tag, None)]).schema(definitions), **properties}
            required = [key, *required]
        schema["properties"] = properties
        if required:
            schema["required"] = required
        if self.rest is not None:
            schema["additionalProperties"] = self.rest.schema(definitions) or True
        elif self.type.closed:
            schema["additionalProperties"] = False
        return schema

    def decode(self, value: UncheckedJson, path: Path, findings: Findings) -> Any:
        if not isinstance(value, Mapping):
            return findings.reject(path, "object", value)
        before = len(findings.problems)
        fields = self.read(value, path, findings)
        return _build(lambda fields: self.type.build(**fields), fields, path, findings, before)

    def read(
        self, value: Mapping[str, UncheckedJson], path: Path, findings: Findings
    ) -> dict[str, Any]:
        """The decoded fields, by their Python names."""
        tag = self.type.tag
        if tag is not None and value.get(tag[0]) != tag[1]:
            findings.add((path, tag[0]), f"expected {tag[1]!r}")
        decoded = {}
        for field, shape in self.fields:
            if field.key in value:
                decoded[field.name] = shape.decode(value[field.key], (path, field.key), findings)
            elif field.required:
                findings.add((path, field.key), "is missing")
        if self.rest is not None or self.type.closed:
            known = {*(field.key for field, _ in self.fields), *(tag or ())[:1]}
            for name in (name for name in value if name not in known):
                if self.rest is not None:
                    decoded[name] = self.rest.decode(value[name], (path, name), findings)
                else:
                    findings.add((path, name), "is not known")
        return decoded


class Alias(Shape):
    """A named alias (`type X = ...`); `inner` is set later because it may contain itself."""

    def __init__(self, label: str) -> None:
        self.label: str = label
        self.inner: Shape = Shape()

    def schema(self, definitions: Definitions) -> dict[str, UncheckedJson]:
        return definitions.refer(self, self.label, self.inner.schema)

    def decode(self, value: UncheckedJson, path: Path, findings: Findings) -> Any:
        return self.inner.decode(value, path, findings)


class Union(Shape):
    """A union; a value is decoded by the first member that accepts it."""

    def __init__(self, members: tuple[Shape, ...]) -> None:
        self._members = members
        self.label: str = " or ".join(dict.fromkeys(member.label for member in members))

    def schema(self, definitions: Definitions) -> dict[str, UncheckedJson]:
        """`anyOf`, without duplicates."""
        members: list[dict[str, UncheckedJson]] = []
        for member in self._members:
            schema = member.schema(definitions)
            if schema not in members:
                members.append(schema)
        return {"anyOf": members}

    def decode(self, value: UncheckedJson, path: Path, findings: Findings) -> Any:
        if not isinstance(value, (list, dict)):
            decoded, problems = self._try_members(value, path, findings)
        else:
            # Results are cached: nested recursive unions would otherwise take exponential time.
            key = (id(self), id(value))
            if key not in findings.union_results:
                findings.union_results[key] = self._try_members(value, path, findings)
            decoded, problems = findings.union_results[key]
        findings.problems.extend(problems)
        return decoded

    def _try_members(
        self, value: UncheckedJson, path: Path, findings: Findings
    ) -> tuple[Any, list[Problem]]:
        failures: list[list[Problem]] = []
        for member in self._ordered(value):
            inner = Findings(findings.union_results)
            decoded = member.decode(value, path, inner)
            if not inner.problems:
                return decoded, []
            failures.append(inner.problems)
        return None, self._closest(value, path, failures)

    def _closest(
        self, value: UncheckedJson, path: Path, failures: list[list[Problem]]
    ) -> list[Problem]:
        """The problems of the member with the value's tag, or else of the closest member."""
        findings = Findings()
        if isinstance(value, dict):
            pairs = zip(self._tags, failures, strict=True)
            tagged = [(tags, problems) for tags, problems in pairs if tags.keys() & value.keys()]
            matching = [problems for tags, problems in tagged if {**value, **tags} == value]
            if tagged and not matching:
                key = next(name for name in tagged[0][0] if name in value)
                options = dict.fromkeys(repr(tags[key]) for tags, _ in tagged if key in tags)
                findings.reject((path, key), " | ".join(options), value[key])
                return findings.problems
            failures = matching or failures
        findings.reject(path, self.label, value)
        # Problems inside a member of the right type say more than "no member accepts it".
        union_path = findings.problems[0].path
        same_type = [
            problems
            for problems in failures
            if all(problem.path != union_path or problem.is_right_type for problem in problems)
        ]
        return min(same_type, key=len, default=findings.problems)

    @cached_property
    def _tags(self) -> list[dict[str, UncheckedJson]]:
        """The fields of each member that allow only one value."""
        return [_tags_of(member) for member in self._members]

    def _ordered(self, value: UncheckedJson) -> Iterable[Shape]:
        """For a number, the member of its exact type first: 3 in `float | int` is an int."""
        if type(value) not in {int, float}:
            return self._members
        return sorted(
            self._members,
            key=lambda shape: not (isinstance(shape, Scalar) and shape.type is type(value)),
        )


class Constrained(Shape):
    """A shape with annotations (`description`, …) and limits, from `typing.Annotated`."""

    def __init__(
        self,
        inner: Shape,
        annotations: Mapping[str, UncheckedJson],
        limits: tuple[msgspec.Meta, ...],
    ) -> None:
        self._inner = inner
        self._annotations = annotations
        self._limits = limits
        self.label: str = inner.label

    def schema(self, definitions: Definitions) -> dict[str, UncheckedJson]:
        schema = self._inner.schema(definitions)
        for limit in self._limits:
            add_limits(schema, limit)
        schema.update(self._annotations)  # in place: it may be a reference that is inlined later
        return schema

    def decode(self, value: UncheckedJson, path: Path, findings: Findings) -> Any:
        before = len(findings.problems)
        decoded = self._inner.decode(value, path, findings)
        if len(findings.problems) > before:
            return None
        for limit in self._limits:
            try:
                msgspec.convert(decoded, Annotated[type(decoded), limit])
            except msgspec.ValidationError as error:
                message = str(error).replace("Expected", "expected").replace("`", "")
                findings.add(path, message, is_right_type=True)
            except TypeError:  # the limit does not apply to values of this type
                continue
        return decoded


class Pydantic(Shape):
    """A type whose schema and validation come from pydantic."""

    def __init__(self, type_: Any, where: str) -> None:
        pydantic = sys.modules["pydantic"]
        self._validation_error: type[Exception] = pydantic.ValidationError
        try:
            self._adapter = pydantic.TypeAdapter(type_)
            schema = self._adapter.json_schema()
        except (pydantic.PydanticUserError, NameError) as error:
            raise ConfigurationError(
                f"{where}: pydantic cannot make a JSON Schema of {type_!r}: {error}"
            ) from error
        is_class = isinstance(type_, type)
        self.label: str = type_.__name__ if is_class else str(schema.get("type", "value"))

    def schema(self, definitions: Definitions) -> dict[str, UncheckedJson]:
        return definitions.adopt(lambda template: self._adapter.json_schema(ref_template=template))

    def decode(self, value: UncheckedJson, path: Path, findings: Findings) -> Any:
        try:
            # JSON text, because a strict model accepts a date as a string only from JSON.
            return self._adapter.validate_json(dumps(value))
        except self._validation_error as error:
            for problem in error.errors(include_url=False):  # type: ignore[attr-defined]
                problem_path = path
                for step in problem["loc"]:
                    problem_path = (problem_path, step)
                is_right_type = not problem["type"].endswith(("_type", "_parsing", "none_required"))
                findings.add(problem_path, problem["msg"], is_right_type=is_right_type)
            return None


def is_pydantic(type_: object) -> bool:
    """Whether the type is a pydantic model, dataclass or custom type."""
    names = ("__pydantic_core_schema__", "__get_pydantic_core_schema__")
    is_class = "pydantic" in sys.modules and isinstance(type_, type)
    return is_class and any(hasattr(type_, name) for name in names)


def is_field(metadata: object) -> bool:
    """Whether the object was made by `pydantic.Field(...)`."""
    fields = sys.modules.get("pydantic.fields")
    return fields is not None and isinstance(metadata, fields.FieldInfo)


def is_constraint(metadata: Any) -> bool:
    """Whether an item of `Annotated` is a constraint that pydantic enforces."""
    if "pydantic" not in sys.modules:
        return False
    if is_field(metadata):
        return bool(metadata.metadata)
    return type(metadata).__module__.partition(".")[0] in {"annotated_types", "pydantic"}


def to_json(value: object) -> UncheckedJson:
    """A Python value as JSON; `TypeError`, `ValueError` or `RecursionError` if it has no form."""
    return msgspec.to_builtins(value, str_keys=True, enc_hook=_dump_foreign)


def _dump_foreign(value: object) -> UncheckedJson:
    """The JSON form of a value that msgspec cannot encode."""
    if isinstance(value, str):  # of a subclass
        return str.__str__(value)
    if hasattr(value, "model_dump"):  # pydantic
        return value.model_dump(mode="json")
    if hasattr(value, "tolist"):  # numpy and similar
        return value.tolist()
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    raise TypeError(f"A {type(value).__name__} has no JSON form.")


def default_to_json(value: object) -> UncheckedJson:
    """A default as JSON; UNSET if it has no JSON form."""
    try:
        return msgspec.json.decode(msgspec.json.encode(to_json(value)))
    except (TypeError, ValueError, RecursionError):
        return msgspec.UNSET


def _property(field: Field, shape: Shape, definitions: Definitions) -> dict[str, UncheckedJson]:
    schema = shape.schema(definitions)
    if field.description and not (isinstance(shape, Constrained) and "description" in schema):
        schema["description"] = field.description
    default = default_to_json(field.default)
    if default is not msgspec.UNSET:
        schema["default"] = default
    return schema


def _build(
    build: Callable[[Any], object], value: object, path: Path, findings: Findings, before: int
) -> Any:
    """
    Call a constructor; an error that it raises becomes a problem.

    `before` is the number of problems before its values were decoded; if there are more now, it is
    not called.
    """
    if len(findings.problems) > before:
        return None
    try:
        return build(value)
    except (ValueError, TypeError, ArithmeticError, AssertionError) as error:
        return findings.add(path, str(error) or type(error).__name__, is_right_type=True)


def _tags_of(shape: Shape) -> dict[str, UncheckedJson]:
    definitions = Definitions()
    schema = definitions.finish(shape.schema(definitions))
    tags: dict[str, UncheckedJson] = {}
    for name, field in schema.get("properties", {}).items():
        options = [field["const"]] if "const" in field else field.get("enum", ())
        if len(options) == 1:
            tags[name] = options[0]
    return tags
