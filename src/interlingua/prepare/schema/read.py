"""Reading JSON Schema: its references, intersections, nulls and circles."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from operator import is_
from typing import Any, TypeAlias, TypeGuard
from urllib.parse import unquote

from interlingua.prepare.schema.keywords import ANNOTATIONS, STRUCTURE
from interlingua.wire.integers import read_integer

Schema: TypeAlias = dict[str, Any]
"""A schema that is an object. What each value is, its keyword tells."""

MAX_DEPTH = 100
"""Schemas and arguments that are nested deeper stay unchanged; no target accepts them."""

TYPES = ("string", "number", "integer", "boolean", "null", "array", "object")
MISSING: object = object()

_MAX_HOPS = 30  # unions and references that are followed from one schema
_MAX_PARTS = 100  # schemas in one intersection

# Keywords that depend on each other: `additionalProperties` means "other than these properties".
_TOGETHER = (
    frozenset({"properties", "patternProperties", "additionalProperties", "unevaluatedProperties"}),
    frozenset({"items", "prefixItems", "additionalItems", "unevaluatedItems"}),
    frozenset({"if", "then", "else"}),
    frozenset({"contains", "minContains", "maxContains"}),
)


def is_deep(value: object) -> bool:
    """Whether a value is nested deeper than `MAX_DEPTH`."""
    level = [value]
    for _ in range(MAX_DEPTH):
        inner = {id(child): child for node in level for child in _children(node)}
        if not inner:
            return False
        level = list(inner.values())
    return True


def map_values(nodes: Schema, change: Callable[[str, object], object]) -> Schema:
    """Each value changed, given its name; the same object if no value changes."""
    changed = {name: change(name, node) for name, node in nodes.items()}
    return nodes if all(map(is_, changed.values(), nodes.values())) else changed


def map_items(nodes: list[object], change: Callable[[int, object], object]) -> list[object]:
    """Each item changed, given its index; the same object if no item changes."""
    changed = [change(i, node) for i, node in enumerate(nodes)]
    return nodes if all(map(is_, changed, nodes)) else changed


def types_of(node: Mapping[str, object]) -> tuple[str, ...] | None:
    """The types that a schema names, or `object` if it has properties; None if malformed."""
    named = node.get("type", MISSING)
    if named is MISSING:
        implied = "properties" in node and "enum" not in node and "const" not in node
        return ("object",) if implied else ()
    listed = named if isinstance(named, list) else [named]
    if not listed or not all(isinstance(item, str) and item in TYPES for item in listed):
        return None
    return tuple(listed)


def type_of(value: object) -> str:
    """The JSON Schema type of a value."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "integer"
    if isinstance(value, float):
        return "number"
    return "string" if isinstance(value, str) else "array" if isinstance(value, list) else "object"


class Reader:
    """Answers questions about the parts of one schema, and caches the answers."""

    def __init__(self, root: object) -> None:
        self.root = root
        self._targets: dict[str, object] = {}
        self._flat: dict[int, tuple[object, Schema | None]] = {}
        self._null: dict[int, tuple[object, bool]] = {}
        self._circles: frozenset[int] | None = None

    def resolve(self, reference: object) -> object:
        """The target of a `$ref`; `MISSING` if it is not in this schema."""
        if not isinstance(reference, str):
            return MISSING
        if reference not in self._targets:
            self._targets[reference] = self._find(reference)
        return self._targets[reference]

    def _find(self, reference: str) -> object:
        names = pointer(reference)
        node = self.root
        for name in names if names is not None else ():
            if isinstance(node, dict) and name in node:
                node = node[name]
            elif isinstance(node, list) and _is_index(name, node):
                node = node[int(name)]
            else:
                return MISSING
        return MISSING if names is None else node

    def flatten(self, node: Schema, *, inline: bool = False) -> Schema | None:
        """
        The schema with its `allOf`, and a `$ref` beside constraints, merged into it.

        None if that would change the meaning. A `$ref` alone stays, unless `inline` is set.
        Returns the node itself if there is nothing to merge.
        """
        if "allOf" not in node and not ("$ref" in node and (inline or len(node) > 1)):
            return node
        if not inline and id(node) in self._flat:
            return self._flat[id(node)][1]
        merged = self._merge(node, inline=inline)
        if merged is not None and merged.keys() == node.keys() and "allOf" not in node:
            merged = node
        self._flat[id(node)] = (node, merged)
        return merged

    def _merge(self, node: Schema, *, inline: bool) -> Schema | None:
        parts = self._parts(node, follow=inline)
        if parts is not None and not inline and sum(map(_constrains, parts)) > 1:
            # A circular reference would expand without end.
            parts = None if self.in_circle(node) else self._parts(node, follow=True)
        return None if parts is None else merge(parts)

    def _parts(self, node: Schema, *, follow: bool) -> list[Schema] | None:
        pending: deque[object] = deque([node])
        parts: list[Schema] = []
        seen: set[int] = set()
        while pending:
            entry = pending.popleft()
            if entry is True or id(entry) in seen:
                continue  # a repeated entry adds nothing
            if not isinstance(entry, dict) or len(parts) > _MAX_PARTS:
                return None
            more = entry.get("allOf", [])
            if not isinstance(more, list):
                return None
            seen.add(id(entry))
            parts.append({key: entry[key] for key in entry if key not in {"allOf", "$ref"}})
            if "$ref" in entry and follow:
                more = [self.resolve(entry["$ref"]), *more]
            elif "$ref" in entry:
                parts.append({"$ref": entry["$ref"]})
            pending.extendleft(reversed(more))
        return parts

    def plain(self, node: object) -> object:
        """The schema behind references and intersections, as far as they can be followed."""
        for _ in range(_MAX_HOPS):
            if not isinstance(node, dict):
                break
            flat = self.flatten(node)
            target = flat.get("$ref", MISSING) if flat is not None else MISSING
            if target is MISSING:
                return node if flat is None else flat
            node = self.resolve(target)
        return node

    def allows_null(self, node: object, hops: int = 0) -> bool:
        """Whether null is a valid value; a schema with `properties` and no type is an object."""
        if not isinstance(node, dict):
            return node is not False
        known = self._null.get(id(node))
        if known is not None:
            return known[1]
        if hops > _MAX_HOPS:
            return False
        self._null[id(node)] = (node, False)  # the answer for a circular reference
        allowed = _says_null(node) and all(
            self._keyword_allows_null(key, node, hops + 1) for key in node
        )
        self._null[id(node)] = (node, allowed)
        return allowed

    def _keyword_allows_null(self, key: str, node: Schema, hops: int) -> bool:
        value = node[key]
        match key:
            case "$ref":
                return self.allows_null(self.resolve(value), hops)
            case "anyOf" | "oneOf" | "allOf" if isinstance(value, list):
                allowed = [self.allows_null(branch, hops) for branch in value]
                if key == "oneOf":
                    return sum(allowed) == 1
                return any(allowed) if key == "anyOf" else all(allowed)
            case "not":
                return not self.allows_null(value, hops)
            case "if":
                branch = "then" if self.allows_null(value, hops) else "else"
                return self.allows_null(node.get(branch, True), hops)
            case _:
                return True

    def in_circle(self, node: object) -> bool:
        """Whether a schema, apart from its properties, refers back to itself."""
        if self._circles is None:
            self._circles = self._find_circles()
        pending = [node] if self._circles else []
        seen: set[int] = set()
        while pending:
            node = pending.pop()
            if id(node) in self._circles:
                return True
            if id(node) not in seen:
                seen.add(id(node))
                named = node.get("properties") if isinstance(node, dict) else None
                pending.extend(child for child in _children(node) if child is not named)
        return False

    def _find_circles(self) -> frozenset[int]:
        """The nodes whose `$ref` leads back to themselves."""
        group = _components(self.root, self._next)
        return frozenset(
            key
            for key, (node, number) in group.items()
            if isinstance(node, dict)
            and "$ref" in node
            and group.get(id(self.resolve(node["$ref"])), (None, -1))[1] == number
        )

    def _next(self, node: object) -> list[object]:
        following = list(_children(node))
        if isinstance(node, dict) and "$ref" in node:
            following += [item for item in [self.resolve(node["$ref"])] if _is_container(item)]
        return following


def pointer(reference: str) -> list[str] | None:
    """The names of a local JSON pointer such as `#/$defs/Node`; None for any other address."""
    if reference in {"", "#"}:
        return []
    if not reference.startswith("#/"):
        return None
    return [
        name.replace("~1", "/").replace("~0", "~") for name in unquote(reference[2:]).split("/")
    ]


def merge(parts: list[Schema]) -> Schema | None:
    """One schema equivalent to all of these together; None if there is none."""
    merged: Schema = {}
    for part in parts:
        if not all(_agree(merged, part, keywords) for keywords in _TOGETHER):
            return None
        for key, value in part.items():
            present = merged.get(key, MISSING)
            if present is MISSING:
                merged[key] = value
            elif key in ANNOTATIONS or key in STRUCTURE or present == value:
                continue  # the outermost one wins
            elif key == "properties":
                merged[key] = {**present, **value}
            elif key == "required" and is_names(present) and is_names(value):
                merged[key] = list(dict.fromkeys([*present, *value]))
            else:
                return None
    return merged


def is_names(value: object) -> TypeGuard[list[str]]:
    """Whether a value is a list of strings."""
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _agree(left: Schema, right: Schema, keywords: frozenset[str]) -> bool:
    ours, theirs = keywords & left.keys(), keywords & right.keys()
    if not ours or not theirs:
        return True
    if ours == theirs and all(left[key] == right[key] for key in ours):
        return True
    mine, other = left.get("properties"), right.get("properties")
    if ours | theirs != {"properties"} or not isinstance(mine, dict) or not isinstance(other, dict):
        return False
    return all(mine[name] == other[name] for name in mine.keys() & other.keys())


def _constrains(part: Schema) -> bool:
    return any(key not in ANNOTATIONS and key not in STRUCTURE for key in part)


def _says_null(node: Schema) -> bool:
    types = types_of(node)
    if types and "null" not in types:
        return False
    values = node.get("enum")
    if isinstance(values, list) and None not in values:
        return False
    return node.get("const") is None


def _is_index(name: str, node: list[object]) -> bool:
    return read_integer(name, most=len(node) - 1) is not None


def _is_container(value: object) -> bool:
    return isinstance(value, (dict, list))


def _children(node: object) -> Iterator[object]:
    if isinstance(node, dict):
        return filter(_is_container, node.values())
    return filter(_is_container, node) if isinstance(node, list) else iter(())


def _components(
    root: object, following: Callable[[object], Iterable[object]]
) -> dict[int, tuple[object, int]]:
    """Nodes in the same circle get the same number (Tarjan's algorithm, without recursion)."""
    order: dict[int, int] = {}
    low: dict[int, int] = {}
    group: dict[int, tuple[object, int]] = {}
    path: list[object] = []
    stack: list[tuple[object, Iterator[object]]] = []

    def enter(node: object) -> None:
        order[id(node)] = low[id(node)] = len(order)
        path.append(node)
        stack.append((node, iter(following(node))))

    enter(root)
    while stack:
        node, rest = stack[-1]
        key = id(node)
        for child in rest:
            if id(child) not in order:
                enter(child)
                break
            if id(child) not in group:
                low[key] = min(low[key], order[id(child)])
        else:
            stack.pop()
            if stack:
                parent = id(stack[-1][0])
                low[parent] = min(low[parent], low[key])
            while low[key] == order[key] and key not in group:
                member = path.pop()
                group[id(member)] = (member, order[key])
    return group


_MAPS = ("properties", "$defs", "definitions", "patternProperties", "dependentSchemas")
_LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")
_ONES = (
    *("additionalProperties", "additionalItems", "contains", "propertyNames", "not", "if", "then"),
    *("else", "unevaluatedProperties", "unevaluatedItems"),
)


def find_unreadable(schema: object, root: str) -> str | None:
    """The first malformed place in a schema, as `path: problem`; None if there is none."""
    reader = Reader(schema)
    pending: list[tuple[object, str]] = [(schema, root)]
    seen: set[int] = set()
    resolved: set[int] = set()
    while pending:
        node, path = pending.pop()
        if isinstance(node, bool) or id(node) in seen:
            continue
        if not isinstance(node, dict):
            return f"{path}: it is not a schema"
        seen.add(id(node))
        wrong = next((key for key in node if not _is_shaped(key, node)), None)
        if wrong is not None:
            return f"{path}: malformed {wrong}"
        pending.extend(_inner(node, path))
        if not _leads_somewhere(node, reader, resolved):
            return f"{path}: its $ref has no target"
        target = reader.resolve(node.get("$ref"))
        if target is not MISSING:
            pending.append((target, f"{path}.$ref"))
    return None


def _leads_somewhere(node: object, reader: Reader, resolved: set[int]) -> bool:
    """Whether a local reference is found, and does not only lead back to itself."""
    visited: dict[int, object] = {}
    while isinstance(node, dict) and isinstance(node.get("$ref"), str):
        if id(node) in visited:
            return False
        if id(node) in resolved:
            break
        visited[id(node)] = node
        reference = node["$ref"]
        node = reader.resolve(reference)
        if node is MISSING and pointer(reference) is not None:
            return False
    resolved.update(visited)
    return True


def _is_shaped(key: str, node: Schema) -> bool:
    value = node[key]
    match key:
        case "type":
            return types_of(node) is not None
        case "enum":
            return isinstance(value, list)
        case "required":
            return is_names(value)
        case "$ref":
            return isinstance(value, str)
        case _ if key in _LISTS:
            return isinstance(value, list) and bool(value)
        case _:
            return key not in _MAPS or isinstance(value, dict)


def _inner(node: Schema, path: str) -> Iterator[tuple[object, str]]:
    for key in node.keys() & {*_MAPS, *_LISTS, *_ONES, "items"}:
        value, where = node[key], f"{path}.{key}"
        if key in _MAPS:
            yield from ((value[name], f"{where}.{name}") for name in value)
        elif isinstance(value, list):
            yield from ((item, f"{where}[{at}]") for at, item in enumerate(value))
        else:
            yield value, where
