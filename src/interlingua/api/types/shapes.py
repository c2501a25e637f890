"""
Shapes: each kind of type has one, which writes its JSON Schema and decodes its JSON values.

`decode` returns the Python value and adds problems to the findings; if it added any, the caller
must not use the returned value. `schema` returns a new dict each time, which the caller may change.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any, Protocol

import msgspec

from interlingua.api.types.problems import Findings, Path, add_limits, describe
from interlingua.api.types.pydantic_support import dump_foreign
from interlingua.api.types.records import Field
from interlingua.spec.content import Json


class Shape(Protocol):
    """The interface of all shapes."""

    @property
    def label(self) -> str:
        """The name of the expected type in error messages."""

    def schema(self, definitions: Definitions) -> dict[str, Json]:
        """The JSON Schema."""

    def decode(self, value: Json, path: Path, findings: Findings) -> Any:
        """The Python value for a JSON value."""


class Anything:
    """Any JSON value, unchanged."""

    label = "any value"

    def schema(self, definitions: Definitions) -> dict[str, Json]:
        """The empty schema, which accepts everything."""
        del definitions
        return {}

    def decode(self, value: Json, path: Path, findings: Findings) -> Any:
        """The value, unchanged."""
        del path, findings
        return value


class Scalar:
    """A null, boolean, number or string, or a type that is a string in JSON, such as a date."""

    def __init__(
        self, type_: Any, schema: Mapping[str, Json], parse: Callable[[str], Any] | None = None
    ) -> None:
        self.type = type_
        self._schema = schema
        self._parse = parse
        self.label: str = str(schema.get("format", schema["type"]))

    def schema(self, definitions: Definitions) -> dict[str, Json]:
        """The type and format."""
        del definitions
        return dict(self._schema)

    def decode(self, value: Json, path: Path, findings: Findings) -> Any:
        """The value, parsed if it is a string in JSON."""
        # JSON Schema: 1.0 is an integer.
        if self.type is int and isinstance(value, float) and value.is_integer():
            return int(value)
        if self._parse is not None and isinstance(value, str):
            try:
                return self._parse(value)
            except (ValueError, ArithmeticError):
                findings.add(path, f"expected {self.label}, got {describe(value)}")
                return None
        try:
            return msgspec.convert(value, self.type)
        except (msgspec.ValidationError, TypeError, OverflowError):
            findings.add(path, f"expected {self.label}, got {describe(value)}")
            return None


class Choice:
    """One of several constants: a `Literal` or an `Enum`."""

    def __init__(self, values: Iterable[tuple[Json, Any]], description: str = "") -> None:
        # The key says whether it is a boolean, because True equals 1.
        self._values = {(isinstance(option, bool), option): value for option, value in values}
        self._options = [option for _, option in self._values]
        self._description = description
        self.label: str = " | ".join(repr(option) for option in self._options)

    def schema(self, definitions: Definitions) -> dict[str, Json]:
        """An `enum`, with the type if all options have the same one."""
        del definitions
        names = {str: "string", bool: "boolean", int: "integer", float: "number"}
        kinds = {names.get(type(option)) for option in self._options}
        schema: dict[str, Json] = {} if len(kinds) > 1 or None in kinds else {"type": kinds.pop()}
        if self._description:
            schema["description"] = self._description
        return schema | {"enum": list(self._options)}

    def decode(self, value: Json, path: Path, findings: Findings) -> Any:
        """The enum member or the literal."""
        key = (isinstance(value, bool), value)
        if not isinstance(value, (list, dict)) and key in self._values:
            return self._values[key]
        findings.add(path, f"expected {self.label}, got {describe(value)}")
        return None


class Array:
    """Any number of values of one type."""

    label = "array"

    def __init__(self, items: Shape, build: Callable[[list[Any]], Any], *, unique: bool) -> None:
        self._items = items
        self._build = build
        self._unique = unique

    def schema(self, definitions: Definitions) -> dict[str, Json]:
        """An array; `items` is always present, because some providers require it."""
        schema = {"type": "array", "items": self._items.schema(definitions)}
        return schema | {"uniqueItems": True} if self._unique else schema

    def decode(self, value: Json, path: Path, findings: Findings) -> Any:
        """The collection that `build` makes of the items."""
        if not isinstance(value, (list, tuple)):
            findings.add(path, f"expected array, got {describe(value)}")
            return None
        before = len(findings.problems)
        items = [self._items.decode(item, (path, i), findings) for i, item in enumerate(value)]
        return (
            None if len(findings.problems) > before else _call(self._build, items, path, findings)
        )


class FixedArray:
    """A tuple of fixed length, each item with its own type."""

    label = "array"

    def __init__(self, items: tuple[Shape, ...]) -> None:
        self._items = items

    def schema(self, definitions: Definitions) -> dict[str, Json]:
        """`prefixItems` with a fixed length."""
        size = len(self._items)
        schema: dict[str, Json] = {"type": "array", "minItems": size, "maxItems": size}
        if self._items:
            schema["prefixItems"] = [item.schema(definitions) for item in self._items]
        return schema | {"items": False} if self._items else schema | {"items": {}}

    def decode(self, value: Json, path: Path, findings: Findings) -> Any:
        """A tuple."""
        if not isinstance(value, (list, tuple)) or len(value) != len(self._items):
            got = f"{len(value)}" if isinstance(value, (list, tuple)) else describe(value)
            findings.add(path, f"expected array of {len(self._items)}, got {got}")
            return None
        pairs = enumerate(zip(self._items, value, strict=True))
        return tuple(shape.decode(item, (path, i), findings) for i, (shape, item) in pairs)


class Dictionary:
    """An object whose keys are data."""

    label = "object"

    def __init__(self, keys: Shape, values: Shape, build: Callable[[dict[Any, Any]], Any]) -> None:
        self._keys = keys
        self._values = values
        self._build = build

    def schema(self, definitions: Definitions) -> dict[str, Json]:
        """The schema of the values, and of the keys unless any string is allowed."""
        schema: dict[str, Json] = {
            "type": "object",
            "additionalProperties": self._values.schema(definitions) or True,
        }
        names = self._keys.schema(definitions)
        if names.get("type") == "integer":  # property names are strings in JSON
            names = {"pattern": "^-?[0-9]+$"}
        return schema if names == {"type": "string"} else schema | {"propertyNames": names}

    def decode(self, value: Json, path: Path, findings: Findings) -> Any:
        """The mapping that `build` makes of the items."""
        if not isinstance(value, Mapping):
            findings.add(path, f"expected object, got {describe(value)}")
            return None
        before = len(findings.problems)
        items = {}
        for name, item in value.items():
            key = self._keys.decode(self._parse_key(name), (path, name), findings)
            decoded = self._values.decode(item, (path, name), findings)
            if len(findings.problems) == before:  # else the key may not be hashable
                items[key] = decoded
        return None if len(findings.problems) > before else self._build(items)

    def _parse_key(self, name: str) -> Json:
        if isinstance(self._keys, Scalar) and self._keys.type is int:
            return int(name) if name.removeprefix("-").isdecimal() else name
        return name


class Record:
    """An object with known fields, which are set later because a record may contain itself."""

    def __init__(self, label: str) -> None:
        self.label = label
        self.fields: tuple[tuple[Field, Shape], ...] = ()
        self.build: Callable[..., Any] = dict
        self.description = ""
        self.closed = False
        self.rest: Shape | None = None
        """The shape of all other keys, if the function has `**kwargs`."""
        self.tag: tuple[str, str | int] | None = None

    def schema(self, definitions: Definitions) -> dict[str, Json]:
        """A reference; `Definitions` replaces it by the object if it is the only one."""
        return definitions.refer(self, self.label, self.write)

    def write(self, definitions: Definitions) -> dict[str, Json]:
        """The object schema itself."""
        schema: dict[str, Json] = {"type": "object"}
        if self.description:
            schema["description"] = self.description
        required = []
        properties: dict[str, Json] = {}
        if self.tag is not None:
            properties[self.tag[0]] = Choice([(self.tag[1], None)]).schema(definitions)
            required.append(self.tag[0])
        for field, shape in self.fields:
            properties[field.key] = _property(field, shape, definitions)
            if field.required:
                required.append(field.key)
        schema["properties"] = properties
        if required:
            schema["required"] = required
        if self.rest is not None:
            schema["additionalProperties"] = self.rest.schema(definitions) or True
        elif self.closed:
            schema["additionalProperties"] = False
        return schema

    def decode(self, value: Json, path: Path, findings: Findings) -> Any:
        """The object that the type's constructor makes of the fields."""
        if not isinstance(value, Mapping):
            findings.add(path, f"expected object, got {describe(value)}")
            return None
        before = len(findings.problems)
        fields = self.read(value, path, findings)
        if len(findings.problems) > before:
            return None
        return _call(lambda fields: self.build(**fields), fields, path, findings)

    def read(self, value: Mapping[str, Json], path: Path, findings: Findings) -> dict[str, Any]:
        """The decoded fields, by their Python names."""
        if self.tag is not None and value.get(self.tag[0]) != self.tag[1]:
            findings.add((path, self.tag[0]), f"expected {self.tag[1]!r}")
        decoded = {}
        for field, shape in self.fields:
            if field.key in value:
                decoded[field.name] = shape.decode(value[field.key], (path, field.key), findings)
            elif field.required:
                findings.add((path, field.key), "is missing")
        if self.rest is not None or self.closed:
            known = {field.key for field, _ in self.fields}
            known.update(self.tag[:1] if self.tag else ())
            for name in (name for name in value if name not in known):
                if self.rest is not None:
                    decoded[name] = self.rest.decode(value[name], (path, name), findings)
                else:
                    findings.add((path, name), "is not known")
        return decoded


class Constrained:
    """A shape with annotations (`description`, …) and limits, from `typing.Annotated`."""

    def __init__(
        self, inner: Shape, annotations: Mapping[str, Json], limits: tuple[msgspec.Meta, ...]
    ) -> None:
        self._inner = inner
        self._annotations = annotations
        self._limits = limits
        self.label: str = inner.label

    def schema(self, definitions: Definitions) -> dict[str, Json]:
        """The inner schema with the limits and annotations."""
        schema = self._inner.schema(definitions)
        for limit in self._limits:
            add_limits(schema, limit)
        schema.update(self._annotations)
        return schema

    def decode(self, value: Json, path: Path, findings: Findings) -> Any:
        """The inner value, if it is within the limits."""
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


class Alias:
    """A named alias (`type X = ...`); `inner` is set later because it may contain itself."""

    def __init__(self, label: str) -> None:
        self.label = label
        self.inner: Shape = Anything()

    def schema(self, definitions: Definitions) -> dict[str, Json]:
        """A reference."""
        return definitions.refer(self, self.label, self.inner.schema)

    def decode(self, value: Json, path: Path, findings: Findings) -> Any:
        """The value of the aliased type."""
        return self.inner.decode(value, path, findings)


def _property(field: Field, shape: Shape, definitions: Definitions) -> dict[str, Json]:
    schema = shape.schema(definitions)
    if field.description and not (isinstance(shape, Constrained) and "description" in schema):
        schema["description"] = field.description
    if field.default is not msgspec.UNSET:
        default = default_to_json(field.default)
        if default is not msgspec.UNSET:
            schema["default"] = default
    return schema


def default_to_json(value: Any) -> Json:
    """A default as JSON; UNSET if it has no JSON form."""
    try:
        builtins = msgspec.to_builtins(value, str_keys=True, enc_hook=dump_foreign)
        return msgspec.json.decode(msgspec.json.encode(builtins))
    except (TypeError, ValueError, RecursionError):
        return msgspec.UNSET


def _call(build: Callable[[Any], Any], value: Any, path: Path, findings: Findings) -> Any:
    """Call a constructor; an error that it raises becomes a problem."""
    try:
        return build(value)
    except (ValueError, TypeError, ArithmeticError, AssertionError) as error:
        findings.add(path, str(error) or type(error).__name__, is_right_type=True)
        return None


# The `$defs` of a schema: each type that is used more than once.


_PREFIX = "#/$defs/"


class Definitions:
    """
    Collects definitions while a schema is written.

    A type that is used once is written inline. That keeps references few, and some providers
    ignore a `description` beside a `$ref`.
    """

    def __init__(self) -> None:
        self._names: dict[int, str] = {}
        self._owners: list[object] = []  # keeps the owners alive, so that their ids stay unique
        self._bodies: dict[str, dict[str, Json]] = {}
        self._references: dict[str, list[dict[str, Json]]] = {}

    def refer(
        self, owner: object, label: str, write: Callable[[Definitions], dict[str, Json]]
    ) -> dict[str, Json]:
        """A reference to the owner's definition, which `write` makes at the first reference."""
        name = self._names.get(id(owner))
        if name is None:
            name = self._names[id(owner)] = self._free_name(label)
            self._owners.append(owner)
            self._references[name] = []
            self._bodies[name] = {}  # reserves the name while `write` runs, which may recurse
            self._bodies[name] = write(self)
        reference: dict[str, Json] = {"$ref": _PREFIX + name}
        self._references[name].append(reference)
        return reference

    def adopt(self, write: Callable[[str], dict[str, Json]]) -> dict[str, Json]:
        """
        A schema from another library, with its `$defs` moved here.

        `write` takes the template for references, in which `{model}` stands for the name.
        """
        schema = write(_PREFIX + "{model}")
        if any(self._bodies.get(name, body) != body for name, body in _nested_definitions(schema)):
            suffix = f"_{len(self._bodies) + 1}"
            schema = write(_PREFIX + "{model}" + suffix)
            self._bodies |= {name + suffix: body for name, body in _nested_definitions(schema)}
        else:
            self._bodies |= dict(_nested_definitions(schema))
        return {key: value for key, value in schema.items() if key != "$defs"}

    def finish(self, root: dict[str, Json]) -> dict[str, Json]:
        """The root schema with the definitions that are used more than once."""
        for name, references in reversed(self._references.items()):  # innermost first
            if len(references) == 1:
                _inline(references[0], self._bodies.pop(name))
        if "$ref" in root and root["$ref"].removeprefix(_PREFIX) in self._bodies:
            # Most providers reject a root that is only a reference.
            body = self._bodies[root["$ref"].removeprefix(_PREFIX)]
            root = {**body, **{key: value for key, value in root.items() if key != "$ref"}}
        return {**root, "$defs": self._bodies} if self._bodies else root

    def _free_name(self, label: str) -> str:
        base = re.sub(r"\W+", "_", label, flags=re.ASCII).strip("_") or "Type"
        name, number = base, 1
        while name in self._bodies:
            number += 1
            name = f"{base}_{number}"
        return name


def _nested_definitions(schema: dict[str, Json]) -> list[tuple[str, dict[str, Json]]]:
    return list(schema.get("$defs", {}).items())


def _inline(reference: dict[str, Json], body: dict[str, Json]) -> None:
    """Replace a reference by the definition; keywords beside the reference win."""
    siblings = {key: value for key, value in reference.items() if key != "$ref"}
    reference.clear()
    reference.update({**body, **siblings})
