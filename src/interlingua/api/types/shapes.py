"""
The forms a value can have: each says its JSON Schema, and reads JSON of that form.

`decode` gives the Python value; what is wrong goes to the findings, and the value is then of no
use. `schema` gives a new dict each time, for its caller to add to.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any, Protocol

import msgspec

from interlingua.api.tools.result_content import dump_foreign
from interlingua.api.types.problems import Findings, Path, add_limits, show
from interlingua.api.types.records import Field
from interlingua.spec.content import Json


class Shape(Protocol):
    """One form."""

    @property
    def label(self) -> str:
        """What it is called where a value is not of it."""

    def schema(self, definitions: Definitions) -> dict[str, Json]:
        """Its JSON Schema."""

    def decode(self, value: Json, path: Path, findings: Findings) -> Any:
        """The Python value that the JSON one stands for."""


class Anything:
    """Any JSON value, as it is."""

    label = "any value"

    def schema(self, definitions: Definitions) -> dict[str, Json]:
        """No condition."""
        del definitions
        return {}

    def decode(self, value: Json, path: Path, findings: Findings) -> Any:
        """The value itself."""
        del path, findings
        return value


class Scalar:
    """A value without parts: null, boolean, number, or something written as text."""

    def __init__(
        self, type_: Any, schema: Mapping[str, Json], read: Callable[[str], Any] | None = None
    ) -> None:
        self.type = type_
        self._schema = schema
        self._read = read
        self.label = str(schema.get("format", schema["type"]))

    def schema(self, definitions: Definitions) -> dict[str, Json]:
        """Its type and format."""
        del definitions
        return dict(self._schema)

    def decode(self, value: Json, path: Path, findings: Findings) -> Any:
        """A whole number may be written with a point, as JSON Schema has it."""
        if self.type is int and isinstance(value, float) and value.is_integer():
            return int(value)
        if self._read is not None and isinstance(value, str):
            try:
                return self._read(value)
            except (ValueError, ArithmeticError):
                findings.add(path, f"expected {self.label}, got {show(value)}")
                return None
        try:
            return msgspec.convert(value, self.type)
        except (msgspec.ValidationError, TypeError, OverflowError):
            findings.add(path, f"expected {self.label}, got {show(value)}")
            return None


class Choice:
    """One of some values: a `Literal` or an `Enum`."""

    def __init__(self, values: Iterable[tuple[Json, Any]], description: str = "") -> None:
        # True equals 1, so that which of them it is belongs to the key
        self._values = {(isinstance(said, bool), said): value for said, value in values}
        self._said = [said for _, said in self._values]
        self._description = description
        self.label = " | ".join(repr(said) for said in self._said)

    def schema(self, definitions: Definitions) -> dict[str, Json]:
        """An enumeration, with the type if it is the same for all."""
        del definitions
        names = {str: "string", bool: "boolean", int: "integer", float: "number"}
        kinds = {names.get(type(said)) for said in self._said}
        schema: dict[str, Json] = {} if len(kinds) > 1 or None in kinds else {"type": kinds.pop()}
        if self._description:
            schema["description"] = self._description
        return schema | {"enum": list(self._said)}

    def decode(self, value: Json, path: Path, findings: Findings) -> Any:
        """The member or literal."""
        key = (isinstance(value, bool), value)
        if not isinstance(value, (list, dict)) and key in self._values:
            return self._values[key]
        findings.add(path, f"expected {self.label}, got {show(value)}")
        return None


class Array:
    """Any number of values of one form."""

    label = "array"

    def __init__(self, items: Shape, build: Callable[[list[Any]], Any], *, unique: bool) -> None:
        self._items = items
        self._build = build
        self._unique = unique

    def schema(self, definitions: Definitions) -> dict[str, Json]:
        """`items`, also where they may be anything: some providers ask for it."""
        schema = {"type": "array", "items": self._items.schema(definitions)}
        return schema | {"uniqueItems": True} if self._unique else schema

    def decode(self, value: Json, path: Path, findings: Findings) -> Any:
        """A list, tuple, set, …"""
        if not isinstance(value, (list, tuple)):
            findings.add(path, f"expected array, got {show(value)}")
            return None
        before = len(findings.problems)
        items = [self._items.decode(item, (path, at), findings) for at, item in enumerate(value)]
        return (
            None if len(findings.problems) > before else _built(self._build, items, path, findings)
        )


class FixedArray:
    """So many values, each of its own form."""

    label = "array"

    def __init__(self, items: tuple[Shape, ...]) -> None:
        self._items = items

    def schema(self, definitions: Definitions) -> dict[str, Json]:
        """`prefixItems` and no other length."""
        size = len(self._items)
        schema: dict[str, Json] = {"type": "array", "minItems": size, "maxItems": size}
        if self._items:
            schema["prefixItems"] = [item.schema(definitions) for item in self._items]
        return schema | {"items": False} if self._items else schema | {"items": {}}

    def decode(self, value: Json, path: Path, findings: Findings) -> Any:
        """A tuple."""
        if not isinstance(value, (list, tuple)) or len(value) != len(self._items):
            got = f"{len(value)}" if isinstance(value, (list, tuple)) else show(value)
            findings.add(path, f"expected array of {len(self._items)}, got {got}")
            return None
        pairs = enumerate(zip(self._items, value, strict=True))
        return tuple(shape.decode(item, (path, at), findings) for at, (shape, item) in pairs)


class Mapped:
    """An object whose keys are data."""

    label = "object"

    def __init__(self, keys: Shape, values: Shape, build: Callable[[dict[Any, Any]], Any]) -> None:
        self._keys = keys
        self._values = values
        self._build = build

    def schema(self, definitions: Definitions) -> dict[str, Json]:
        """What each value is; and each name, if not any text will do."""
        schema: dict[str, Json] = {
            "type": "object",
            "additionalProperties": self._values.schema(definitions) or True,
        }
        names = self._keys.schema(definitions)
        if names.get("type") == "integer":  # in JSON a name is text
            names = {"pattern": "^-?[0-9]+$"}
        return schema if names == {"type": "string"} else schema | {"propertyNames": names}

    def decode(self, value: Json, path: Path, findings: Findings) -> Any:
        """A dict."""
        if not isinstance(value, Mapping):
            findings.add(path, f"expected object, got {show(value)}")
            return None
        before = len(findings.problems)
        found = {}
        for name, item in value.items():
            key = self._keys.decode(self._name(name), (path, name), findings)
            decoded = self._values.decode(item, (path, name), findings)
            if len(findings.problems) == before:
                found[key] = decoded
        return None if len(findings.problems) > before else self._build(found)

    def _name(self, name: str) -> Json:
        if isinstance(self._keys, Scalar) and self._keys.type is int:
            return int(name) if name.removeprefix("-").isdecimal() else name
        return name


class Record:
    """An object with known fields. What they are is filled in later, as they may lead back."""

    def __init__(self, label: str) -> None:
        self.label = label
        self.fields: tuple[tuple[Field, Shape], ...] = ()
        self.build: Callable[..., Any] = dict
        self.description = ""
        self.closed = False
        self.rest: Shape | None = None
        """The form of all other keys, where they are taken by name."""
        self.tag: tuple[str, str | int] | None = None

    def schema(self, definitions: Definitions) -> dict[str, Json]:
        """A reference; it is replaced by the object itself if it is the only one."""
        return definitions.refer(self, self.label, self.write)

    def write(self, definitions: Definitions) -> dict[str, Json]:
        """The object itself."""
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
        """What the type's own constructor makes of the fields."""
        if not isinstance(value, Mapping):
            findings.add(path, f"expected object, got {show(value)}")
            return None
        before = len(findings.problems)
        given = self.read(value, path, findings)
        if len(findings.problems) > before:
            return None
        return _built(lambda fields: self.build(**fields), given, path, findings)

    def read(self, value: Mapping[str, Json], path: Path, findings: Findings) -> dict[str, Any]:
        """The fields, by their Python names."""
        if self.tag is not None and value.get(self.tag[0]) != self.tag[1]:
            findings.add((path, self.tag[0]), f"expected {self.tag[1]!r}")
        given = {}
        for field, shape in self.fields:
            if field.key in value:
                given[field.name] = shape.decode(value[field.key], (path, field.key), findings)
            elif field.required:
                findings.add((path, field.key), "is missing")
        if self.rest is not None or self.closed:
            known = {field.key for field, _ in self.fields}
            known.update(self.tag[:1] if self.tag else ())
            for name in (name for name in value if name not in known):
                if self.rest is not None:
                    given[name] = self.rest.decode(value[name], (path, name), findings)
                else:
                    findings.add((path, name), "is not known")
        return given


class Noted:
    """A form with words about it, and perhaps limits."""

    def __init__(
        self, inner: Shape, notes: Mapping[str, Json], limits: tuple[msgspec.Meta, ...]
    ) -> None:
        self._inner = inner
        self._notes = notes
        self._limits = limits
        self.label = inner.label

    def schema(self, definitions: Definitions) -> dict[str, Json]:
        """The inner one with the notes."""
        schema = self._inner.schema(definitions)
        for limit in self._limits:
            add_limits(schema, limit)
        schema.update(self._notes)
        return schema

    def decode(self, value: Json, path: Path, findings: Findings) -> Any:
        """The inner value, if it keeps the limits."""
        before = len(findings.problems)
        found = self._inner.decode(value, path, findings)
        if len(findings.problems) > before:
            return None
        for limit in self._limits:
            try:
                msgspec.convert(found, Annotated[type(found), limit])
            except msgspec.ValidationError as error:
                said = str(error).replace("Expected", "expected").replace("`", "")
                findings.add(path, said, is_of_kind=True)
            except TypeError:  # the limit is not about values of this type
                continue
        return found


def _property(field: Field, shape: Shape, definitions: Definitions) -> dict[str, Json]:
    schema = shape.schema(definitions)
    if field.description and not (isinstance(shape, Noted) and "description" in schema):
        schema["description"] = field.description
    if field.default is not msgspec.UNSET:
        default = say_default(field.default)
        if default is not msgspec.UNSET:
            schema["default"] = default
    return schema


def say_default(value: Any) -> Json:
    """A default as JSON; UNSET if JSON cannot say it."""
    try:
        said = msgspec.to_builtins(value, str_keys=True, enc_hook=dump_foreign)
        return msgspec.json.decode(msgspec.json.encode(said))
    except (TypeError, ValueError, RecursionError):
        return msgspec.UNSET


def _built(build: Callable[[Any], Any], given: Any, path: Path, findings: Findings) -> Any:
    """What a constructor makes; its complaint is a problem like any other."""
    try:
        return build(given)
    except (ValueError, TypeError, ArithmeticError, AssertionError) as error:
        findings.add(path, str(error) or type(error).__name__, is_of_kind=True)
        return None


# The `$defs` of a schema: each type once, and none that is used in one place only.


_PREFIX = "#/$defs/"


class Definitions:
    """
    Collects the definitions while a schema is written.

    A type that is used once is written where it is used: fewer references, and words beside one
    (`description`) are not lost on readers that look at `$ref` alone.
    """

    def __init__(self) -> None:
        self._names: dict[int, str] = {}
        self._kept: list[object] = []  # so that no id is given to another object meanwhile
        self._bodies: dict[str, dict[str, Json]] = {}
        self._references: dict[str, list[dict[str, Json]]] = {}

    def refer(
        self, owner: object, label: str, write: Callable[[Definitions], dict[str, Json]]
    ) -> dict[str, Json]:
        """A reference to the owner's definition, which is written if it was not yet."""
        name = self._names.get(id(owner))
        if name is None:
            name = self._names[id(owner)] = self._free_name(label)
            self._kept.append(owner)
            self._references[name] = []
            self._bodies[name] = {}  # taken, while what it holds is written
            self._bodies[name] = write(self)
        reference: dict[str, Json] = {"$ref": _PREFIX + name}
        self._references[name].append(reference)
        return reference

    def adopt(self, write: Callable[[str], dict[str, Json]]) -> dict[str, Json]:
        """
        A schema made elsewhere, whose own `$defs` are moved here.

        `write` is given the template of its references, with `{model}` for the name.
        """
        schema = write(_PREFIX + "{model}")
        if any(self._bodies.get(name, body) != body for name, body in _inner(schema)):
            suffix = f"_{len(self._bodies) + 1}"
            schema = write(_PREFIX + "{model}" + suffix)
            self._bodies |= {name + suffix: body for name, body in _inner(schema)}
        else:
            self._bodies |= dict(_inner(schema))
        return {key: value for key, value in schema.items() if key != "$defs"}

    def finish(self, root: dict[str, Json]) -> dict[str, Json]:
        """The root with the definitions that are still referred to."""
        for name, references in reversed(self._references.items()):  # the innermost first
            if len(references) == 1:
                _write_in_place(references[0], self._bodies.pop(name))
        if "$ref" in root and root["$ref"].removeprefix(_PREFIX) in self._bodies:
            # a root that is only a reference is refused by most
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


def _inner(schema: dict[str, Json]) -> list[tuple[str, dict[str, Json]]]:
    return list(schema.get("$defs", {}).items())


def _write_in_place(reference: dict[str, Json], body: dict[str, Json]) -> None:
    notes = {key: value for key, value in reference.items() if key != "$ref"}
    reference.clear()
    reference.update({**body, **notes})
