"""
Schemas narrowed to what a target accepts.

A program sends the same tools with every request, and narrowing costs far more than encoding, so
results are cached. The key is the exact content: a caller may change a schema between requests.
"""

from __future__ import annotations

import marshal
import re
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from interlingua.prepare.schema.keywords import ANNOTATIONS, FOREIGN, STRUCTURE
from interlingua.prepare.schema.read import (
    MAX_DEPTH,
    MISSING,
    Reader,
    Schema,
    find_unreadable,
    is_deep,
    map_items,
    map_values,
    pointer,
    types_of,
)
from interlingua.prepare.schema.rewrite import (
    ROOT,
    Draft,
    ImpossibleError,
    Log,
    add_types,
    close_object,
    relax_circles,
    rewrite_tuples,
    rewrite_unions,
    rewrite_values,
    sort_keywords,
)
from interlingua.spec.content import Json, UncheckedJson
from interlingua.spec.facts import SchemaRules
from interlingua.spec.warnings import WarningList
from interlingua.wire.json_text import dump_text

_MAX_BYTES = 8 << 20  # of one generation: 100 tools of 27 kB are 6 MB with their results
_ENTRY_BYTES = 500  # the size of an entry besides its texts
# The format without back references and interned strings gives equal bytes for equal content.
# Unlike JSON text it distinguishes a tuple from a list and NaN from null, as narrowing does.
_PLAIN_FORMAT = 0


class Narrowed(msgspec.Struct, frozen=True, kw_only=True):
    """A schema as one target accepts it."""

    schema: UncheckedJson
    """The same object if nothing had to change, or if `strict_possible` is false."""
    changes: tuple[str, ...] = ()
    """Each change, as `path: change`."""
    losses: tuple[str, ...] = ()
    """The changes by which the target accepts more than the schema does."""
    strict_possible: bool = True
    """False if the target cannot express the schema exactly: it must be sent non-strict."""
    reason: str | None = None
    """
    Why the schema stayed unchanged, as `path: problem`: it cannot be strict, or it is not a valid
    JSON Schema. In the second case `strict_possible` is true, and the target reports the error.
    """


class _Entry(NamedTuple):
    schema: bytes | None
    """None if the schema was not changed."""
    rest: Narrowed
    """Everything but the schema."""

    @property
    def size(self) -> int:
        """The approximate number of bytes."""
        texts = (*self.rest.changes, *self.rest.losses)
        return _ENTRY_BYTES + len(self.schema or b"") + sum(map(len, texts))


_Key = tuple[Callable[[object, SchemaRules], Narrowed], SchemaRules, bytes]


class _Cache:
    """
    A cache bounded by bytes, in two generations: when the younger is full, the older is dropped.

    It needs no lock: each step is one operation on a dict, and a lost entry is computed again.
    """

    def __init__(self) -> None:
        self._younger: dict[_Key, _Entry] = {}
        self._older: dict[_Key, _Entry] = {}
        self._bytes = 0

    def get(self, key: _Key) -> _Entry | None:
        entry = self._younger.get(key)
        if entry is None:
            entry = self._older.get(key)
            if entry is not None:
                self.put(key, entry)
        return entry

    def put(self, key: _Key, entry: _Entry) -> None:
        size = len(key[-1]) + entry.size
        if size > _MAX_BYTES:
            return
        if self._bytes + size > _MAX_BYTES:
            self._older, self._younger, self._bytes = self._younger, {}, 0
        self._younger[key] = entry
        self._bytes += size


_cache = _Cache()


def remembered(
    schema: UncheckedJson,
    rules: SchemaRules,
    make: Callable[[object, SchemaRules], Narrowed],
) -> Narrowed:
    """The result of `make`, which is called once for each content."""
    try:
        content = marshal.dumps(schema, _PLAIN_FORMAT)
    except ValueError:  # nested too deeply, or no plain JSON value
        return make(schema, rules)
    key = (make, rules, content)
    entry = _cache.get(key)
    if entry is None:
        narrowed = make(schema, rules)
        changed = None if narrowed.schema is schema else marshal.dumps(narrowed.schema)
        _cache.put(key, _Entry(changed, replace(narrowed, schema=None)))
        return narrowed
    # Each caller gets its own copy, so that changing it does not change the cached one.
    copy = schema if entry.schema is None else marshal.loads(entry.schema)  # noqa: S302 -- ours
    return replace(entry.rest, schema=copy)


_MAPS = ("properties", "$defs", "definitions")
_LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")

_unsafe = re.compile(r"[^A-Za-z0-9_-]+").sub


def narrow(schema: object, rules: SchemaRules) -> Narrowed:
    """
    `schema`, changed only where the target rejects it.

    Never raises and never changes its input. Narrowing twice changes nothing more.
    """
    if is_deep(schema):
        reason = f"{ROOT}: nested deeper than {MAX_DEPTH} levels"
        return Narrowed(schema=schema, strict_possible=not rules.strict, reason=reason)
    problem = find_unreadable(schema, ROOT)
    if problem is not None:
        return Narrowed(schema=schema, reason=problem)
    narrower = Narrower(schema, rules)
    try:
        narrowed = narrower.narrow_root()
    except ImpossibleError as error:
        return Narrowed(schema=schema, strict_possible=False, reason=str(error))
    return _with_log(narrowed, narrower.log)


def _with_log(schema: object, log: Log) -> Narrowed:
    return Narrowed(schema=schema, changes=tuple(log.changes), losses=tuple(log.losses))


class Narrower:
    """Walks one schema, and narrows each schema inside it once."""

    def __init__(self, root: object, rules: SchemaRules) -> None:
        self.root = root
        self.rules = rules
        self.reader: Reader = Reader(root)
        self.log: Log = Log()
        self.done: dict[int, tuple[object, object]] = {}
        self.moved: dict[str, str] = {}
        self.taken: set[str] = set(root.get("$defs", ())) if isinstance(root, dict) else set()
        self.pending: deque[tuple[str, object]] = deque()

    def narrow_root(self) -> UncheckedJson:
        """The narrowed schema; raises `ImpossibleError` if the target cannot express it."""
        narrowed = self.narrow_node(self.root, ROOT)
        moved = {}
        while self.pending:  # narrowing one may move others
            name, target = self.pending.popleft()
            moved[name] = self.narrow_node(target, f"{ROOT}.$defs.{name}")
        if not moved:
            return narrowed
        both = {**narrowed, "$defs": {**narrowed.get("$defs", {}), **moved}}
        # The older name, of JSON Schema before 2019-09.
        if "definitions" not in self.rules.pointed:
            both.pop("definitions", None)  # nothing points into them any more
        return both

    def narrow_node(self, node: object, path: str) -> UncheckedJson:
        """One schema inside the root, or the root itself."""
        if not isinstance(node, dict):
            return self._narrow_bare(node, path)
        done = self.done.get(id(node))
        if done is None:
            done = self.done[id(node)] = (node, self._narrow_object(node, path))
        return done[1]

    def _narrow_bare(self, node: object, path: str) -> object:
        # OpenAI: «schema must have a 'type' key».
        draft = Draft({}, path, self.log)
        if self.rules.strict:
            draft.refuse("it has no type")
        if node is True:
            draft.note("true became {}")
            return {}
        draft.note("false is not supported", loses=True)
        return {"description": "(no value is valid)"}

    def _narrow_object(self, node: Schema, path: str) -> Schema:
        rules = self.rules
        draft = self._merge(node, path)
        properties = draft.out.get("properties", {})
        rewrite_tuples(draft, rules)
        rewrite_unions(draft, rules, self.reader)
        rewrite_values(draft, rules)
        sort_keywords(draft, rules)
        if "$ref" not in draft.out:
            add_types(draft, rules, self.reader)
        if rules.object_root and path == ROOT:
            # OpenAI: «Root objects must not be `anyOf` and must be an object»
            # (https://developers.openai.com/api/docs/guides/structured-outputs).
            _check_root(draft, self.reader)
        for key in draft.out:
            draft.out[key] = self._narrow_inner(draft, key)
        if "$ref" in draft.out:
            self._point(draft)
        elif rules.strict:
            close_object(draft, rules, self.reader, properties)
        elif rules.optional_cycles:
            relax_circles(draft, self.reader, properties)
        return draft.finish(node)

    def _merge(self, node: Schema, path: str) -> Draft:
        """A draft of the schema, without `allOf` where the target does not accept it."""
        draft = Draft(node, path, self.log)
        if "allOf" in self.rules.keywords and _is_plain_intersection(node):
            return draft
        # Strict targets accept nothing beside a `$ref`, and no union as the root.
        inline = self.rules.strict and path == ROOT and not node.keys() <= {"$ref", *STRUCTURE}
        flat = self.reader.flatten(node, inline=inline)
        if flat is None:
            if self.rules.strict:
                draft.refuse("allOf, or the keywords beside $ref, cannot be merged")
            for key in [key for key in node if "$ref" in node and _constrains(key)]:
                draft.hint(key)
        elif flat is not node:
            draft.out = dict(flat)
            draft.note("allOf merged" if "allOf" in node else "$ref written out")
        return draft

    def _narrow_inner(self, draft: Draft, key: str) -> object:
        value, path = draft.out[key], f"{draft.path}.{key}"
        if key in _MAPS:
            return map_values(value, lambda name, node: self.narrow_node(node, f"{path}.{name}"))
        if key in _LISTS:
            return map_items(value, lambda i, node: self.narrow_node(node, f"{path}[{i}]"))
        if key == "items" or (key == "additionalProperties" and not isinstance(value, bool)):
            return self.narrow_node(value, path)
        return value

    def _point(self, draft: Draft) -> None:
        """Make a `$ref` that the target can resolve, with nothing beside it."""
        # Gemini: «If `$ref` is set on a sub-schema, no other properties, except for than those
        # starting as a `$`, may be set» (the SDK's `response_json_schema`). Inside an `anyOf` of
        # one branch it stands alone.
        out = draft.out
        address = self._address(draft, out["$ref"])
        if address != out["$ref"]:
            draft.note(f"$ref {out['$ref']} became {address}")
            out["$ref"] = address
        if draft.hints or any(key[0] != "$" and key != "definitions" for key in out):
            draft.note("$ref put into anyOf")
            draft.rename("$ref", "anyOf", [{"$ref": out["$ref"]}])

    def _address(self, draft: Draft, reference: str) -> str:
        names = pointer(reference)
        target = self.reader.resolve(reference)
        if target is MISSING or names is None:
            if self.rules.strict:
                draft.refuse("its $ref does not point into this schema")
            return reference
        if not names or (len(names) == 2 and names[0] in self.rules.pointed):
            return reference
        return f"#/$defs/{self._move(reference, names, target)}"

    def _move(self, reference: str, names: list[str], target: object) -> str:
        """The name among the definitions of a schema that stood elsewhere."""
        if reference not in self.moved:
            name = _unsafe("_", names[-1] if names else "root") or "schema"
            if name in self.taken:
                name = f"{name}_{len(self.taken)}"
            while name in self.taken:
                name += "_"
            self.taken.add(name)
            self.moved[reference] = name
            self.pending.append((name, target))
        return self.moved[reference]


def _constrains(key: str) -> bool:
    return key not in ANNOTATIONS and key not in STRUCTURE and key != "$ref"


def _check_root(draft: Draft, reader: Reader) -> None:
    root = reader.plain(draft.out)
    if not isinstance(root, dict) or "anyOf" in root:
        draft.refuse("the root cannot be a union")
    elif types_of(root) != ("object",):
        draft.refuse("it is not an object")


def _is_plain_intersection(node: Schema) -> bool:
    """Whether it intersects only plain values, so that there are no objects to close."""
    # The SDK's `transform_schema` of Anthropic keeps `allOf`, but closes the objects inside it one
    # by one: an object closed in one branch forbids the properties of the others.
    entries = node.get("allOf")
    if not isinstance(entries, list) or not entries or "$ref" in node:
        return False
    kinds = [types_of(entry) if isinstance(entry, dict) else None for entry in (node, *entries)]
    if not any(kinds) or any(types is None or {"object", "array"} & {*types} for types in kinds):
        return False
    return all(entry.keys() & {"type", "enum", "const"} for entry in entries)


# The root of a tool's schema, which every target requires to be an explicit object.

_UNIONS = ("anyOf", "oneOf")
_INDIRECT = frozenset({"$ref", "allOf", *_UNIONS})


def object_root(schema: object, _: SchemaRules | None = None) -> Narrowed:
    """
    `schema` with a root of type object that is not a reference, intersection or union.

    The arguments of a call are always an object, so this type changes nothing. The properties of
    all branches of a union stay; the union becomes a hint, which is a loss. A schema that cannot
    be an object stays unchanged: the target rejects it.
    """
    # Seen in recordings of Anthropic: «tools.0.custom.input_schema.type: Field required» and «Input
    # should be 'object'».
    if not isinstance(schema, dict) or _is_plain(schema):
        return Narrowed(schema=schema)
    if is_deep(schema) or find_unreadable(schema, ROOT):
        return Narrowed(schema=schema)
    reader = Reader(schema)
    flat = reader.flatten(schema, inline=True)
    types = () if flat is None else types_of(flat)
    if flat is None or (types and "object" not in types):
        return Narrowed(schema=schema)
    draft = Draft(flat, ROOT, Log())
    if flat is not schema:
        draft.note("allOf merged" if "allOf" in schema else "$ref written out")
    for key in _UNIONS:
        if key in flat:
            _spread(draft, key, reader)
    if draft.out.get("type") != "object":
        others = {key: value for key, value in draft.out.items() if key != "type"}
        draft.out = {"type": "object", **others}
        draft.note("it became an object")
    return _with_log(draft.finish(schema), draft.log)


def _is_plain(schema: Schema) -> bool:
    return schema.get("type") == "object" and _INDIRECT.isdisjoint(schema)


def _spread(draft: Draft, key: str, reader: Reader) -> None:
    """Add the properties of all branches, and require what every branch requires."""
    branches = [reader.plain(branch) for branch in draft.out[key]]
    objects = [branch for branch in branches if isinstance(branch, dict) and _is_object(branch)]
    draft.hint(key)
    out = draft.out
    if not objects or True in branches:
        return
    if out.get("additionalProperties", True) is True:
        out["properties"] = {**_properties(objects), **out.get("properties", {})}
        if all(branch.get("additionalProperties") is False for branch in objects):
            out["additionalProperties"] = False
    first, *others = ([*branch.get("required", ())] for branch in objects)
    needed = [name for name in first if all(name in names for names in others)]
    required = list(dict.fromkeys([*out.get("required", ()), *needed]))
    if required:
        out["required"] = required


def _is_object(branch: Schema) -> bool:
    types = types_of(branch)
    return not types or "object" in types


def _properties(objects: list[Schema]) -> Schema:
    """The properties of all branches; where their schemas differ, a union of them."""
    variants: dict[str, Schema] = {}
    for branch in objects:
        for name, node in branch.get("properties", {}).items():
            variants.setdefault(name, {})[dump_text(node)] = node
    return {
        name: next(iter(nodes.values())) if len(nodes) == 1 else {"anyOf": list(nodes.values())}
        for name, nodes in variants.items()
    }


# The schemas of tools and formats, for encoders.

_MOST_LISTED = 5  # losses in one warning


def encode_schema(
    schema: UncheckedJson,
    rules: SchemaRules,
    warnings: WarningList,
    path: str,
    *,
    strict: bool | None,
) -> tuple[Json, bool | None]:
    """
    The schema as the target accepts it, and the value of `strict` to send.

    The rules of strict mode apply only if `strict` is asked for. A schema that cannot be strict
    without changing its meaning is sent unchanged and not strict, with a warning. Constraints
    that the target does not check move to descriptions, with a warning.
    """
    if rules.strict and not strict:
        # Not strict, the schema is only shown to the model. Keys of a schema library are not part
        # of it.
        if isinstance(schema, dict) and not FOREIGN.isdisjoint(schema):
            schema = {key: value for key, value in schema.items() if key not in FOREIGN}
        return schema, strict
    narrowed = remembered(schema, rules, narrow)
    if not narrowed.strict_possible:
        # Seen in recordings: a strict schema that breaks a rule fails the whole request with
        # «Invalid schema for function».
        warnings.add("schema_not_strict", path, rules=rules.name, reason=narrowed.reason)
        return schema, False
    _warn(narrowed.losses, rules, warnings, path)
    return narrowed.schema, strict


def encode_parameters(
    schema: UncheckedJson,
    rules: SchemaRules,
    warnings: WarningList,
    path: str,
    *,
    strict: bool | None,
) -> tuple[Json, bool | None]:
    """`encode_schema` for a tool, whose schema must have an object as its root, or refer to one."""
    is_reference = rules.root_references and isinstance(schema, dict) and "$ref" in schema
    if isinstance(schema, dict) and not is_reference and not _is_plain(schema):
        narrowed = remembered(schema, rules, object_root)
        _warn(narrowed.losses, rules, warnings, path)
        schema = narrowed.schema
    return encode_schema(schema, rules, warnings, path, strict=strict)


def _warn(lost: tuple[str, ...], rules: SchemaRules, warnings: WarningList, path: str) -> None:
    if lost:
        more = f" and {len(lost) - _MOST_LISTED} more" if len(lost) > _MOST_LISTED else ""
        listed = "; ".join(lost[:_MOST_LISTED])
        warnings.add("schema_narrowed", path, rules=rules.name, losses=f"{listed}{more}")
