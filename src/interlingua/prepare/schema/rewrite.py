"""The steps that narrow one schema, apart from the schemas inside it."""

from __future__ import annotations

from typing import NoReturn

from interlingua.prepare.schema.keywords import ANNOTATIONS, STRUCTURE, VOCABULARY, is_foreign
from interlingua.prepare.schema.read import MISSING, Reader, Schema, type_of, types_of
from interlingua.spec.facts import SchemaRules
from interlingua.wire.json_text import dump_text

ROOT = "schema"
"""The path of the root; every path begins with it."""

NULL = {"type": "null"}

_HOLDS_OTHERS = frozenset({"properties", "required", "additionalProperties", "items"})
_LOOKAROUND = ("(?=", "(?!", "(?<=", "(?<!")


class ImpossibleError(Exception):
    """The target cannot express the schema without changing its meaning."""


class Log:
    """The changes, and the losses: changes by which the target accepts more than the schema."""

    __slots__ = ("changes", "losses")

    def __init__(self) -> None:
        self.changes: list[str] = []
        self.losses: list[str] = []


class Draft:
    """A copy of one schema to work on, and the hints for its description."""

    __slots__ = ("hints", "log", "out", "path")

    def __init__(self, node: Schema, path: str, log: Log) -> None:
        self.out: Schema = dict(node)
        self.path: str = path
        self.hints: dict[str, object] = {}
        self.log: Log = log

    def note(self, what: str, *, loses: bool = False) -> None:
        """Record a change."""
        self.log.changes.append(f"{self.path}: {what}")
        if loses:
            self.log.losses.append(f"{self.path}: {what}")

    def hint(self, key: str, value: object = MISSING) -> None:
        """Move a keyword, or part of it, to the description."""
        self.hints[key] = self.out.pop(key) if value is MISSING else value
        self.note(f"{key} moved to the description", loses=key not in ANNOTATIONS)

    def drop(self, key: str) -> None:
        """Remove a keyword that does not constrain values."""
        del self.out[key]
        self.note(f"{key} removed")

    def rename(self, old: str, new: str, value: object) -> None:
        """Put `value` under another name, in the same position."""
        self.out = {
            (new if key == old else key): (value if key == old else other)
            for key, other in self.out.items()
        }

    def refuse(self, why: str) -> NoReturn:
        """Raise `ImpossibleError`."""
        raise ImpossibleError(f"{self.path}: {why}")

    def finish(self, node: Schema) -> Schema:
        """The schema with its hints; `node` itself if nothing has changed."""
        out = self.out
        if self.hints:
            hints = "; ".join(f"{key}: {_text(value)}" for key, value in self.hints.items())
            text = out.get("description")
            hints = f"({hints})"
            out["description"] = f"{text} {hints}" if isinstance(text, str) and text else hints
        same = out.keys() == node.keys() and all(out[key] is node[key] for key in out)
        return node if same else out


def _text(value: object) -> str:
    return value if isinstance(value, str) else dump_text(value)


def rewrite_tuples(draft: Draft, rules: SchemaRules) -> None:
    """Replace a list of `items` by `prefixItems`, or by a union where that is not supported."""
    # `prefixItems` is the name since draft 2020-12:
    # https://json-schema.org/draft/2020-12/release-notes
    out = draft.out
    if isinstance(out.get("items"), list):
        draft.rename("items", "prefixItems", out["items"])
        out = draft.out
        if "additionalItems" in out:
            draft.rename("additionalItems", "items", out["additionalItems"])
            out = draft.out
        draft.note("items became prefixItems")
    first = out.get("prefixItems")
    if not isinstance(first, list):
        return
    rest = out.get("items", True)
    if rest is False:  # no further items
        del out["items"]
        most = out.get("maxItems")
        out["maxItems"] = min(most, len(first)) if type(most) is int else len(first)
        draft.note("items became maxItems")
    if "prefixItems" in rules.keywords | rules.blocking:
        return
    draft.hint("prefixItems")
    out.pop("items", None)
    if rest is False or isinstance(rest, dict):
        branches = first if rest is False else [*first, rest]
        distinct = {dump_text(branch): branch for branch in branches}
        out["items"] = {"anyOf": list(distinct.values())}


def rewrite_values(draft: Draft, rules: SchemaRules) -> None:
    """Replace an unsupported `const` by `enum`, and drop values of unsupported types."""
    # Gemini: «`enum` (for strings and numbers)» (the SDK's `response_json_schema`), so null has to
    # become a type of its own.
    out = draft.out
    if "const" in out and "const" not in rules.keywords and "enum" not in out:
        draft.rename("const", "enum", [out["const"]])
        draft.note("const became enum")
    out = draft.out
    if "const" in out and type_of(out["const"]) not in rules.enum_types:
        draft.hint("const")
    values = out.get("enum")
    if not isinstance(values, list) or all(type_of(item) in rules.enum_types for item in values):
        return
    others = [item for item in values if item is not None]
    types = types_of(out) or ()
    cannot = "anyOf" in out and (not types or "null" in types)
    # An enum of only null beside a type without null accepts nothing; `type: null` would.
    cannot = cannot or (not others and bool(types) and "null" not in types)
    if cannot or any(type_of(item) not in rules.enum_types for item in others):
        draft.hint("enum")
        return
    draft.note("null taken out of enum")
    out["enum"] = others
    if not others:
        del out["enum"]
        out["type"] = "null"
    elif not types or "null" in types:
        _add_null(draft, [item for item in types if item != "null"])


def _add_null(draft: Draft, types: list[str]) -> None:
    out = draft.out
    if types:
        out["type"] = types[0] if len(types) == 1 else types
    moved = [key for key in out if key not in ANNOTATIONS and key not in STRUCTURE]
    out["anyOf"] = [{key: out.pop(key) for key in moved}, NULL]


def sort_keywords(draft: Draft, rules: SchemaRules) -> None:
    """Keep each keyword, remove it, move it to the description, or refuse the schema."""
    # As the SDK's `transform_schema` of Anthropic does: what the grammar cannot enforce is written
    # into the description, where the model still reads it.
    out = draft.out
    if "patternProperties" in out and out.get("additionalProperties", True) is not True:
        draft.hint(
            "additionalProperties"
        )  # it would also apply to the names that the patterns allow
    if rules.strict and out.get("unevaluatedProperties") is False:
        draft.drop("unevaluatedProperties")  # every object will be closed
        if "anyOf" not in out:
            out.setdefault("additionalProperties", False)
    if rules.strict and out.get("additionalProperties", False) is not False:
        draft.refuse("additionalProperties makes it a map of any names")
    for key in list(out):
        if key in rules.blocking:
            draft.refuse(f"{key} cannot be removed without changing the meaning")
        if key in rules.silent or is_foreign(key):
            draft.drop(key)
        elif key in VOCABULARY and not _is_accepted(key, out, rules):
            draft.hint(key)


def _is_accepted(key: str, node: Schema, rules: SchemaRules) -> bool:
    if key not in rules.keywords:
        return False
    value = node[key]
    match key:
        case "format" if rules.formats is not None and _may_be_text(node):
            return isinstance(value, str) and value in rules.formats
        case "pattern" if isinstance(value, str):
            return rules.lookaround or not any(group in value for group in _LOOKAROUND)
        case "minItems" if isinstance(value, (int, float)):
            return rules.max_min_items is None or value <= rules.max_min_items
        case _:
            return True


def _may_be_text(node: Schema) -> bool:
    types = types_of(node)
    return not types or "string" in types


def add_types(draft: Draft, rules: SchemaRules, reader: Reader) -> None:
    """Add the type that values or properties imply; a strict schema must have one."""
    # OpenAI: «schema must have a 'type' key», «array schema missing items».
    out = draft.out
    types = types_of(out) or ()
    values = out["enum"] if "enum" in out else [out["const"]] if "const" in out else None
    if "anyOf" in out:
        if rules.strict:
            _split_union(draft, types, reader)
    elif "type" not in out and "allOf" not in out:
        if values:
            if rules.typed_values:
                named = list(dict.fromkeys(type_of(value) for value in values))
                out["type"] = named[0] if len(named) == 1 else named
                draft.note("type added")
        elif rules.strict and not types:
            draft.refuse("it has no type")
        elif rules.strict:
            out["type"] = "object"
            draft.note("type added")
    if rules.typed_items and "array" in (types_of(out) or ()) and "items" not in out:
        draft.refuse("its items have no type")


def _split_union(draft: Draft, types: tuple[str, ...], reader: Reader) -> None:
    """Drop the type beside a union if its branches have it; refuse an object beside a union."""
    out = draft.out
    alone = all(key in ANNOTATIONS or key in STRUCTURE for key in out.keys() - {"type", "anyOf"})
    if "type" in out and alone and isinstance(out["anyOf"], list):
        inner = [reader.plain(branch) for branch in out["anyOf"]]
        if all(_has_type_within(branch, types) for branch in inner):
            draft.drop("type")
            return
    if "object" in types or not _HOLDS_OTHERS.isdisjoint(out):
        draft.refuse("the object or array beside its anyOf cannot be closed")


def _has_type_within(branch: object, types: tuple[str, ...]) -> bool:
    # A union inside the union may be the same one, without a type of its own.
    if not isinstance(branch, dict) or "anyOf" in branch or "oneOf" in branch:
        return False
    own = types_of(branch)
    return bool(own) and set(own or ()) <= set(types)


def close_object(draft: Draft, rules: SchemaRules, reader: Reader, properties: Schema) -> None:
    """Forbid other properties and, if the target needs it, require all properties."""
    # Seen in recordings of OpenAI: «'additionalProperties' is required to be supplied and to be
    # false».
    out = draft.out
    if "object" not in (types_of(out) or ()):
        return
    others = out.get("additionalProperties", MISSING)
    required = out.get("required", [])
    if not properties and others is MISSING and not (draft.path == ROOT and "properties" in out):
        draft.refuse("it names no properties, so it is a map of any names")
    for name in required:
        if name not in properties:
            draft.refuse(f"{name} is required but not described")
    if others is MISSING:
        out["additionalProperties"] = False
        draft.note("additionalProperties: false added")
    if rules.all_required:
        _require_all(draft, required, reader, properties)


def _require_all(draft: Draft, required: list[str], reader: Reader, originals: Schema) -> None:
    # Seen in recordings of OpenAI: «'required' is required to be supplied and to be an array
    # including every key in properties. Missing 'unit'.»
    out = draft.out
    named, properties = set(required), dict(out.get("properties", {}))
    for name, node in properties.items():
        if name not in named:
            draft.note(f"{name} became required and may be null")
            properties[name] = node if reader.allows_null(originals[name]) else add_null(node)
    if len(required) != len(properties) or len(named) != len(properties) or "required" not in out:
        out["properties"] = properties
        out["required"] = list(properties)


def add_null(node: Schema) -> Schema:
    """The schema, accepting null too."""
    types = types_of(node)
    union = node.get("anyOf")
    if "type" in node and types and union is None and "const" not in node and "$ref" not in node:
        both = {**node, "type": [item for item in types if item != "null"] + ["null"]}
        values = node.get("enum")
        if isinstance(values, list):
            both["enum"] = [*(item for item in values if item is not None), None]
        return both
    if isinstance(union, list) and not node.keys() - ANNOTATIONS - {"anyOf"}:
        return {**node, "anyOf": [*union, NULL]}
    return {"anyOf": [node, NULL]}


def relax_circles(draft: Draft, reader: Reader, properties: Schema) -> None:
    """Make properties optional that refer back to their own schema."""
    # Gemini unrolls cyclic references «to a limited degree and, as such, may only be used within
    # non-required properties» (the SDK's `response_json_schema`).
    required = draft.out.get("required", [])
    circular = [name for name in required if reader.in_circle(properties.get(name))]
    if circular:
        others = [name for name in required if name not in circular]
        draft.out["required"] = others
        if not others:
            del draft.out["required"]
        draft.hint("required", circular)


def rewrite_unions(draft: Draft, rules: SchemaRules, reader: Reader) -> None:
    """Replace `oneOf` by `anyOf`, which is the same if the branches exclude each other."""
    # OpenAI and Anthropic list `anyOf` only; for Gemini `oneOf` is «interpreted the same as
    # `anyOf`».
    if "oneOf" not in draft.out or "oneOf" in rules.keywords:
        return
    branches = draft.out["oneOf"]
    if "anyOf" not in draft.out:
        draft.rename("oneOf", "anyOf", branches)
        draft.note("oneOf became anyOf", loses=not exclude_each_other(branches, reader))
    elif rules.strict:
        draft.refuse("oneOf beside anyOf cannot become one union")


def exclude_each_other(branches: list[object], reader: Reader) -> bool:
    """Whether constants, types or a property show that no value fits two branches."""
    if len(branches) == 1:
        return True
    plain = [reader.plain(branch) for branch in branches]
    if _are_apart([_constants_of(node) for node in plain]):
        return True
    objects = [n for n in plain if isinstance(n, dict) and _types_of(n) == {"object"}]
    others = [node for node in plain if _types_of(node) != {"object"}]
    if len(objects) > 1 and not _objects_differ(objects, reader):
        return False
    return _are_apart([_types_of(node) for node in [*objects[:1], *others]])


def _objects_differ(objects: list[Schema], reader: Reader) -> bool:
    """Whether a property that all require has a different constant in each."""
    shared = set(objects[0].get("required", ()))
    for node in objects[1:]:
        shared &= set(node.get("required", ()))
    return any(
        _are_apart(
            [_constants_of(reader.plain(node.get("properties", {}).get(name))) for node in objects]
        )
        for name in shared
    )


def _constants_of(node: object) -> set[str] | None:
    """The plain values that a schema lists, as text; None if it lists none."""
    if not isinstance(node, dict):
        return None
    listed = node.get("enum", [node["const"]] if "const" in node else None)
    if listed is None or any(isinstance(value, (dict, list)) for value in listed):
        return None
    return {_constant_text(value) for value in listed}


def _types_of(node: object) -> set[str] | None:
    """The types that a schema allows; None if it names none."""
    if not isinstance(node, dict):
        return None
    listed = node.get("enum", [node["const"]] if "const" in node else [])
    named = types_of(node) if "type" in node else None  # properties alone imply no type
    types = set(named or map(type_of, listed))
    return ({*types, "integer"} if "number" in types else types) or None


def _constant_text(value: object) -> str:
    if isinstance(value, float) and value.is_integer():
        value = int(value)  # 1 and 1.0 are the same value
    return dump_text(value)


def _are_apart(allowed: list[set[str] | None]) -> bool:
    seen: set[str] = set()
    for values in allowed:
        if values is None or not values.isdisjoint(seen):
            return False
        seen |= values
    return True
