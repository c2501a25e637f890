"""Made-up JSON Schemas, values that keep to them, and readers that check both."""

import copy
import gc
import json
import sys

from hypothesis import strategies as st

from interlingua.conformance.strategies import json_values

NAMES = ["a", "b", "kind", "next", "list of"]
KEYWORDS = [
    *("type", "description", "title", "default", "examples", "enum", "const", "format", "nullable"),
    *("properties", "required", "additionalProperties", "patternProperties", "propertyNames"),
    *("unevaluatedProperties", "items", "prefixItems", "additionalItems", "minItems", "maxItems"),
    *("uniqueItems", "anyOf", "oneOf", "allOf", "not", "if", "then", "else", "$ref", "$defs"),
    *("definitions", "$schema", "$id", "$anchor", "minLength", "pattern", "minimum", "multipleOf"),
    *("discriminator", "x-note", "defs", "ref", "any_of", "min_items", "dependentRequired"),
]
TYPES = ["string", "number", "integer", "boolean", "null", "array", "object"]
REFERENCES = ["#", "#/$defs/a", "#/$defs/b", "#/definitions/a", "#/properties/a", "#/anyOf/0", "x"]

_leaves = st.one_of(
    json_values,
    st.sampled_from(TYPES),
    st.sampled_from([*REFERENCES, "STRING", "date", "(?=a)"]),
    st.lists(st.sampled_from([*TYPES, *NAMES, None]), max_size=3),
)
soup = st.recursive(
    _leaves,
    lambda inner: st.one_of(
        st.dictionaries(st.sampled_from(KEYWORDS), inner, max_size=5),
        st.dictionaries(st.sampled_from(NAMES), inner, max_size=3),
        st.lists(inner, max_size=3),
    ),
    max_leaves=20,
)
"""Any JSON, mostly made of the words of JSON Schema in the wrong places."""


@st.composite
def schemas(draw, *, unions: bool = True, hinted: bool = False):
    """A plausible schema of an object, with definitions, some of them recursive."""
    maker = _Maker(draw, unions=unions, hinted=hinted)
    root = maker.object(2)
    maker.targets = ["a", "node"]  # a `b` that must hold a `b` has no values
    root["$defs"] = {
        "a": maker.scalar(),
        "b": {**maker.object(1), "type": "object"},
        "node": {
            "type": "object",
            "properties": {
                "value": maker.scalar(),
                "next": {"$ref": "#/$defs/node"},
                "all": {"type": "array", "items": {"$ref": "#/$defs/node"}},
            },
            "required": draw(st.sampled_from([["value"], ["all"], [], ["value", "all"]])),
        },
    }
    return root


_small = st.sampled_from(
    [
        *({}, True, False, {"type": "string"}, {"type": "null"}, {"$ref": "#"}, {"const": None}),
        *({"$ref": "#/$defs/a"}, {"$ref": "#/properties/a"}, {"required": ["a"]}, {"minLength": 2}),
        {"type": "object", "properties": {"a": {"type": "integer"}}},
        {"type": ["object", "null"], "properties": {"b": {}}, "required": ["b"]},
        {"type": "object", "additionalProperties": False},
        {"type": "array", "prefixItems": [{"type": "string"}]},
        {"anyOf": [{"type": "string"}, {"type": "null"}], "description": "D"},
        {"enum": ["x", None, True]},
    ]
).map(copy.deepcopy)
_smalls = st.lists(_small, min_size=1, max_size=3)
_grafts = {
    "type": st.sampled_from(TYPES) | st.lists(st.sampled_from(TYPES), min_size=1, unique=True),
    "enum": st.lists(st.sampled_from(["x", 1, None, True, 1.5, [], {}]), min_size=1),
    "const": st.sampled_from(["x", 1, None, True, [1]]),
    "required": st.lists(st.sampled_from(NAMES), max_size=2, unique=True),
    "properties": st.dictionaries(st.sampled_from(NAMES), _small, max_size=3),
    "patternProperties": st.dictionaries(st.sampled_from(["^a", "b"]), _small, max_size=2),
    "$ref": st.sampled_from(["#", "#/$defs/a", "#/$defs/node", "#/properties/a", "#/$defs/b"]),
    "prefixItems": _smalls,
    "minItems": st.integers(0, 2),
    "maxItems": st.integers(0, 2),
    "minProperties": st.integers(0, 2),
    "multipleOf": st.sampled_from([1, 2]),
    "exclusiveMinimum": st.integers(-1, 3),
    "pattern": st.sampled_from(["^a", "b(?=a)"]),
    "uniqueItems": st.booleans(),
    "title": st.just("T"),
    "default": json_values,
    **dict.fromkeys(("anyOf", "oneOf", "allOf"), _smalls),
    **dict.fromkeys(("not", "if", "then", "else", "items", "additionalProperties"), _small),
    **dict.fromkeys(("contains", "propertyNames", "unevaluatedProperties"), _small),
}


_typed = st.sampled_from(
    [
        *({"type": "string"}, {"type": "null"}, {"enum": ["x", None]}, {"const": 1}, {"$ref": "#"}),
        *({"$ref": "#/$defs/a"}, {"$ref": "#/$defs/b"}, {"type": ["integer", "null"]}),
        {"type": "object", "properties": {"a": {"type": "integer"}}},
        {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "null"}}},
        {"type": "object", "properties": {"b": {"type": "string"}}, "required": ["b"]},
        {"type": "object", "properties": {"b": {"type": ["string", "null"]}}, "required": ["b"]},
        {"type": "object", "properties": {"a": {"$ref": "#"}, "b": {"$ref": "#/$defs/b"}}},
        {"type": "object", "additionalProperties": False},
        {"type": "array", "items": {"$ref": "#/$defs/b"}},
        {"properties": {"a": {"$ref": "#/properties/b"}}},
    ]
).map(copy.deepcopy)
_typeds = st.lists(_typed, min_size=1, max_size=3)
_beside = st.sampled_from(
    [
        *({"required": ["a"]}, {"additionalProperties": False}, {"unevaluatedProperties": False}),
        {"items": {"type": "object", "properties": {"b": {"type": "string"}}}},
        *({"enum": ["x", 1]}, {"type": ["string", "null"]}, {"minimum": 2}),
    ]
).map(copy.deepcopy)
_exact = st.one_of(
    st.builds(lambda first, branches: {**first, "anyOf": branches}, _beside, _typeds),
    _typed,
    st.builds(lambda branches: {"anyOf": branches}, _typeds),
    st.builds(lambda branches: {"anyOf": branches, "type": "object"}, _typeds),
    st.builds(lambda branches: {"oneOf": branches}, _typeds),
    st.builds(lambda first, branches: {**first, "allOf": branches}, _typed, _typeds),
    st.builds(lambda first, other: {**first, **other}, _typed, _typed),
)


@st.composite
def grafted(draw):
    """A plausible schema with any valid keywords put into any of its places."""
    whole = draw(schemas(hinted=True))
    for _ in range(draw(st.integers(1, 3))):
        places = [node for _, node in inner_schemas(whole) if isinstance(node, dict)]
        place = draw(st.sampled_from(places))
        for key in draw(st.lists(st.sampled_from(sorted(_grafts)), min_size=1, max_size=3)):
            place[key] = draw(_grafts[key])
    return whole


@st.composite
def small_schemas(draw, *, exact: bool = False):
    """An object of `a` and `b` with any valid keywords, or those that strict schemas know."""
    keys = st.lists(st.sampled_from(sorted(_grafts)), max_size=3)
    inner = []
    for _ in range(3):
        made = draw(_exact if exact else _small)
        if exact or not isinstance(made, dict):
            inner.append(made)
        else:
            inner.append({**made, **{key: draw(_grafts[key]) for key in draw(keys)}})
    if exact and "$ref" in json.dumps(inner[2]):  # what is only itself has no meaning
        inner[2] = {"type": "object", "properties": {"a": {"$ref": "#/$defs/b"}}}
    return {
        "type": "object",
        "properties": {"a": inner[0], "b": inner[1]},
        "required": draw(st.sampled_from([[], ["a"], ["a", "b"]])),
        "$defs": {"a": {"type": "string"}, "b": inner[2], "node": {"$ref": "#/$defs/b"}},
    }


_inner = ["x", "a", 1, 3, True, [], ["x"], [None], {}, {"a": None}, {"a": 1}, {"b": None}]
_inner += [{"a": 1, "b": None}, {"a": {"a": None, "b": None}, "b": None}]
UNIVERSE = [
    {**({} if a == "" else {"a": a}), **({} if b == "" else {"b": b})}
    for a in ["", None, *_inner]
    for b in ["", None, *_inner]
]
"""Objects to try on small schemas."""


class _Maker:
    def __init__(self, draw, *, unions, hinted):
        self.draw = draw
        self.unions = unions
        self.hinted = hinted
        self.targets = ["a", "b", "node"]

    def pick(self, *choices):
        return self.draw(st.sampled_from(choices))

    def schema(self, depth):
        kinds = ["scalar", "scalar", "reference"]
        if depth:
            kinds += ["object", "array", "wrapped", "nullable"] + ["union"] * self.unions
        made = getattr(self, self.pick(*kinds))(*([depth - 1] if depth else []))
        return self.annotated(made)

    def annotated(self, made):
        extra = self.pick({}, {}, {"description": "Of it."}, {"title": "It"}, {"default": 1})
        return {**extra, **made}

    def scalar(self, _depth=0):
        made = dict(
            self.pick(
                {"type": "string"},
                {"type": "integer", "minimum": 3},
                {"type": "number", "maximum": 2.5},
                {"type": "boolean"},
                {"type": ["string", "null"]},
                {"type": ["integer", "string"]},
                {"type": "string", "enum": ["x", "y"]},
                {"enum": ["x", 3, None]},
                {"const": "x"},
                {"type": "null"},
                {"allOf": [{"type": "string"}]},
            )
        )
        hints = [{}, {"minLength": 1}, {"uniqueItems": True}, {"x-a": 1}]
        hints += [{"format": "uri"}, {"format": "x"}] if made == {"type": "string"} else []
        return {**made, **(self.pick(*hints) if self.hinted else {})}

    def reference(self, _depth=0):
        return {"$ref": f"#/$defs/{self.pick(*self.targets)}"}

    def wrapped(self, _depth=0):
        return {"allOf": [self.reference()]}

    def object(self, depth=0):
        names = self.draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=3, unique=True))
        closed = self.pick({}, {"additionalProperties": False})
        required = [name for name in names if self.pick(True, False)]
        return {
            "type": "object",
            "properties": {name: self.schema(depth) for name in names},
            **({"required": required} if required else {}),
            **closed,
        }

    def array(self, depth=0):
        return {"type": "array", "items": self.schema(depth), **self.pick({}, {"minItems": 1})}

    def nullable(self, depth=0):
        return {"anyOf": [self.schema(depth), {"type": "null"}]}

    def union(self, depth=0):
        return {"anyOf": [self.schema(depth) for _ in range(self.pick(1, 2, 3))]}


def example(draw, node, root, depth=0):
    """A value of a plausible schema, and the same as an answer to its strict form."""
    if "$ref" in node:
        return example(draw, root["$defs"][node["$ref"].split("/")[-1]], root, depth)
    if "allOf" in node:
        return example(draw, node["allOf"][0], root, depth)
    if "anyOf" in node:
        branches = [b for b in node["anyOf"] if depth < 5 or b == {"type": "null"}]
        return example(draw, draw(st.sampled_from(branches or node["anyOf"])), root, depth)
    if "enum" in node or "const" in node:
        chosen = draw(st.sampled_from(node.get("enum") or [node["const"]]))
        return chosen, chosen
    named = node["type"] if isinstance(node["type"], list) else [node["type"]]
    kind = draw(st.sampled_from(named))
    if depth > 5 and "null" in named:
        kind = "null"
    if kind == "array":
        fewest = node.get("minItems", 0)
        count = fewest if depth > 3 else draw(st.integers(fewest, 2))
        pairs = [example(draw, node["items"], root, depth + 1) for _ in range(count)]
        return [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    if kind == "object":
        return _example_object(draw, node, root, depth)
    value = {
        "string": st.text(max_size=3),
        "integer": st.integers(3, 9),
        "number": st.floats(-3, 2.5),
        "boolean": st.booleans(),
        "null": st.none(),
    }[kind]
    drawn = draw(value)
    return drawn, drawn


def _example_object(draw, node, root, depth):
    original, strict = {}, {}
    for name, inner in node["properties"].items():
        required = name in node.get("required", [])
        if not required and (depth > 3 or draw(st.booleans())):
            strict[name] = None
            if is_nullable(inner, root):
                original[name] = None  # it is declared, so it comes back as what it is
        else:
            original[name], strict[name] = example(draw, inner, root, depth + 1)
    return original, strict


def is_nullable(node, root):
    if "$ref" in node:
        return is_nullable(root["$defs"][node["$ref"].split("/")[-1]], root)
    if "allOf" in node:
        return all(is_nullable(inner, root) for inner in node["allOf"])
    if "anyOf" in node:
        return any(is_nullable(inner, root) for inner in node["anyOf"])
    if "enum" in node or "const" in node:
        return None in node.get("enum", [node.get("const")])
    return "null" in node["type"]


def count_calls(function, *arguments):
    """How many calls it takes, which says more of the work than a clock does."""
    count = 0

    def step(_frame, event, _argument):
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    gc.disable()  # what the collector finds may have finalizers, whose calls would count too
    sys.setprofile(step)
    try:
        function(*arguments)
    finally:
        sys.setprofile(before)
        gc.enable()
    return count


def inner_schemas(node, path="schema"):
    """Every schema in a schema, itself first."""
    yield path, node
    if not isinstance(node, dict):
        return
    for key in ("properties", "$defs", "definitions"):
        for name, inner in node.get(key, {}).items() if isinstance(node.get(key), dict) else ():
            yield from inner_schemas(inner, f"{path}.{key}.{name}")
    for key in ("anyOf", "oneOf", "allOf", "prefixItems"):
        for at, inner in enumerate(node[key] if isinstance(node.get(key), list) else ()):
            yield from inner_schemas(inner, f"{path}.{key}[{at}]")
    for key in ("items", "additionalProperties"):
        if key in node and not (key == "additionalProperties" and isinstance(node[key], bool)):
            yield from inner_schemas(node[key], f"{path}.{key}")
