"""
Removes the nulls that strict mode added to the arguments of tool calls.

Strict mode can require every property. Optional properties were therefore made nullable, and the
model writes null where it would have left one out. These nulls are removed before a tool runs:

    response = restore_arguments(response, request)

Only `arguments` change: `raw_arguments` stays the model's own text, which is sent back to it. The
text of a structured answer stays too; its reader calls `drop_added_nulls(value, json_schema)`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, assert_never

from msgspec.structs import replace

from interlingua.prepare.schema.read import (
    MAX_DEPTH,
    Reader,
    Schema,
    is_deep,
    is_names,
    type_of,
    types_of,
)
from interlingua.spec.content import Part, ToolCall, UncheckedJson
from interlingua.spec.events import (
    ErrorEvent,
    Finish,
    ProviderEvent,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    StepFinish,
    StepStart,
    StreamEvent,
    StreamRestart,
    StreamStart,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
    ToolResultEvent,
)
from interlingua.spec.request import Request, ToolDefinition
from interlingua.spec.response import Response


def restore_arguments(response: Response, request: Request) -> Response:
    """Return the response without the nulls that strict tools added; itself if there are none."""
    return _restore_response(response, _strict_schemas(request))


def restore_event(event: StreamEvent, request: Request) -> StreamEvent:
    """Return an event without the nulls in the tool call or response that it carries."""
    schemas = _strict_schemas(request)
    match event:
        case ToolCallEnd():
            call = _restore_call(event.tool_call, schemas)
            return event if call is event.tool_call else replace(event, tool_call=call)
        case Finish() | StepFinish() | ErrorEvent():
            if event.response is None:
                return event
            response = _restore_response(event.response, schemas)
            return event if response is event.response else replace(event, response=response)
        case (
            TextDelta()
            | ReasoningDelta()
            | ToolCallDelta()
            | TextStart()
            | TextEnd()
            | ReasoningStart()
            | ReasoningEnd()
            | ToolCallStart()
            | StreamStart()
            | StreamRestart()
            | StepStart()
            | ProviderEvent()
            | ToolResultEvent()
        ):
            return event
        case _:
            assert_never(event)


def _strict_schemas(request: Request) -> Schema:
    """The schemas of strict tools, by name: only these were given nulls."""
    return {
        tool.name: tool.parameters
        for tool in request.tools
        if isinstance(tool, ToolDefinition) and tool.strict and tool.parameters is not None
    }


def _restore_response(response: Response, schemas: Mapping[str, object]) -> Response:
    if not schemas:
        return response
    before = response.message.content
    after: tuple[Part, ...] = tuple(
        _restore_call(part, schemas) if isinstance(part, ToolCall) else part for part in before
    )
    if all(new is old for new, old in zip(after, before, strict=True)):
        return response
    return replace(response, message=replace(response.message, content=after))


def _restore_call(call: ToolCall, schemas: Mapping[str, object]) -> ToolCall:
    if call.name not in schemas or not call.is_valid:
        return call
    arguments = drop_added_nulls(call.arguments, schemas[call.name])
    return call if arguments is call.arguments else replace(call, arguments=arguments)


# A schema may refer to itself; both limits end a walk that would not end.
_MAX_STEPS = 150  # nesting of values and unions together
_MAX_REFERENCES = 30  # nested schemas that are looked at before one is used

_BOUNDS: dict[str, Callable[[float, float], bool]] = {
    "minimum": operator.ge,
    "maximum": operator.le,
    "exclusiveMinimum": operator.gt,
    "exclusiveMaximum": operator.lt,
    "minLength": operator.ge,
    "maxLength": operator.le,
    "minItems": operator.ge,
    "maxItems": operator.le,
}


def drop_added_nulls(arguments: object, original_schema: object) -> UncheckedJson:
    """
    Return `arguments` without the nulls that stand for an absent property.

    A null is dropped if its property is optional in the original schema and may not be null
    there. In a union, the branch that the value fits decides. Never raises and never changes its
    input; returns the same object if there is nothing to drop, or if it is nested too deeply.
    """
    return AddedNulls(original_schema).drop(arguments)


class _Shape(NamedTuple):
    """The places where a value of one schema may hold added nulls."""

    optional: tuple[str, ...] = ()
    """Properties whose null is dropped."""
    members: Mapping[str, object] = {}
    """Properties whose values may hold added nulls, with their schemas."""
    first: Sequence[object] = ()
    """The schemas of an array's first items."""
    rest: object = None
    """The schema of its other items; None if they cannot hold added nulls."""
    branches: Sequence[object] = ()
    """The branches of a union."""


class AddedNulls:
    """
    Drops the nulls that stand for an absent property, from any number of values of one schema.

    It visits only the parts of a value that may hold such nulls, and compares values with schemas
    only in unions.
    """

    def __init__(self, schema: object) -> None:
        self._schema = schema
        self._reader = Reader(schema)
        self._shapes: dict[int, tuple[object, _Shape | None]] = {}
        self._is_readable = not is_deep(schema)

    def drop(self, value: object) -> UncheckedJson:
        """The value without added nulls; the same object if there are none."""
        return self._drop(value, self._schema, 0) if self._is_readable else value

    def _drop(self, value: object, schema: object, depth: int) -> object:
        if not isinstance(value, (dict, list)):
            return value
        shape = self._shape(schema)
        return value if shape is None else self._drop_by_shape(value, shape, depth)

    def _drop_by_shape(self, value: object, shape: _Shape, depth: int) -> object:
        if depth > MAX_DEPTH:
            return value
        if shape.branches:
            return self._drop_in_union(value, shape.branches, depth)
        if isinstance(value, dict):
            return self._drop_in_object(value, shape, depth)
        return self._drop_in_array(value, shape, depth) if isinstance(value, list) else value

    def _drop_in_object(self, value: Schema, shape: _Shape, depth: int) -> object:
        out = value
        for name in shape.optional:
            if name in value and value[name] is None:
                out = dict(value) if out is value else out
                del out[name]
        for name, schema in shape.members.items():
            if name in value:
                inner = self._drop(value[name], schema, depth + 1)
                if inner is not value[name]:
                    out = dict(value) if out is value else out
                    out[name] = inner
        return out

    def _drop_in_array(self, value: list[object], shape: _Shape, depth: int) -> object:
        out = [self._drop(*pair, depth + 1) for pair in zip(value, shape.first, strict=False)]
        others = value[len(out) :]
        inner = None if shape.rest is None else self._shape(shape.rest)
        if inner is not None:  # looked up once, because a long answer is often one array
            others = [self._drop_by_shape(item, inner, depth + 1) for item in others]
        out += others
        return value if all(map(operator.is_, out, value)) else out

    def _drop_in_union(self, value: object, branches: Sequence[object], depth: int) -> object:
        plain = [self._reader.plain(branch) for branch in branches]
        others = [node for node in plain if not _is_null(node)]
        if len(others) == 1 and isinstance(others[0], dict):  # `X | null`: only X can fit
            node = others[0]
            return self._drop(value, node, depth + 1) if _has_type(value, node) else value
        return _Cleaner(self._reader, depth).choose(value, branches)[1]

    def _shape(self, schema: object, hops: int = 0) -> _Shape | None:
        """None if no value of this schema holds an added null."""
        node = self._reader.plain(schema)
        if not isinstance(node, dict):
            return None
        known = self._shapes.get(id(node))
        if known is None:
            self._shapes[id(node)] = (node, _Shape())  # for a circular reference: unknown
            known = self._shapes[id(node)] = (node, self._find_shape(node, hops))
        return known[1]

    def _find_shape(self, node: Schema, hops: int) -> _Shape | None:
        for key in ("anyOf", "oneOf"):
            branches = node.get(key)
            if isinstance(branches, list):
                is_needed = any(self._may_hold(branch, hops) for branch in branches)
                return _Shape(branches=branches) if is_needed else None
        properties, needed = _properties_of(node)
        first, rest = _items_of(node)
        shape = _Shape(
            optional=tuple(
                name
                for name, inner in properties.items()
                if name not in needed and not self._reader.allows_null(inner)
            ),
            members={n: inner for n, inner in properties.items() if self._may_hold(inner, hops)},
            first=first if any(self._may_hold(item, hops) for item in first) else (),
            rest=rest if self._may_hold(rest, hops) else None,
        )
        return shape if any(shape) else None

    def _may_hold(self, schema: object, hops: int) -> bool:
        return hops > _MAX_REFERENCES or self._shape(schema, hops + 1) is not None


class _Cleaner:
    """Compares values with schemas, each pair once."""

    def __init__(self, reader: Reader, depth: int) -> None:
        self.reader = reader
        self.done: dict[tuple[int, int], tuple[bool, object]] = {}
        self.depth = depth

    def clean(self, value: object, schema: object) -> tuple[bool, object]:
        """Whether the value fits, and the value without added nulls."""
        node = self.reader.plain(schema)
        if not isinstance(node, dict):
            return node is not False, value
        key = (id(value), id(node))
        if self.depth > _MAX_STEPS:
            return True, value
        if key not in self.done:
            self.done[key] = (False, value)  # for a union that refers to itself
            self.depth += 1
            self.done[key] = self._clean(value, node)
            self.depth -= 1
        return self.done[key]

    def _clean(self, value: object, node: Schema) -> tuple[bool, object]:
        fits = _fits(value, node)
        for key in ("anyOf", "oneOf"):
            branches = node.get(key)
            if isinstance(branches, list):
                chosen, value = self.choose(value, branches)
                return fits and chosen, value
        if isinstance(value, dict):
            inner, value = self._clean_object(value, node)
        elif isinstance(value, list):
            inner, value = self._clean_array(value, node)
        else:
            inner = True
        return fits and inner, value

    def choose(self, value: object, branches: Sequence[object]) -> tuple[bool, object]:
        """Whether the value fits a branch, and the value cleaned by the best branch."""
        best: tuple[bool, object] | None = None
        likely = []
        for branch in branches:
            fits, cleaned = self.clean(value, branch)
            node = self.reader.plain(branch)
            if fits and self._is_complete(value, node):
                return True, cleaned
            if fits and best is None:
                best = True, cleaned
            if isinstance(node, dict) and _has_type(value, node):
                likely.append(cleaned)
        if best is None:  # the model did not follow the schema
            best = False, likely[0] if len(likely) == 1 else value
        return best

    def _is_complete(self, value: object, node: object) -> bool:
        """Whether every property is present, as in an answer to a strict schema."""
        properties = node.get("properties") if isinstance(node, dict) else None
        if not isinstance(value, dict) or not isinstance(properties, dict):
            return True
        return properties.keys() <= value.keys()

    def _clean_object(self, value: Schema, node: Schema) -> tuple[bool, object]:
        properties, needed = _properties_of(node)
        # An object that names properties is closed in strict mode.
        is_open = node.get("additionalProperties", not properties) is not False
        fits, out = True, {}
        for name, item in value.items():
            if name not in properties:
                out[name] = item
                fits = fits and is_open
            elif item is None and name not in needed:
                if self.reader.allows_null(properties[name]):
                    out[name] = item
            else:
                inner, out[name] = self.clean(item, properties[name])
                fits = fits and inner
        same = len(out) == len(value) and all(out[name] is value[name] for name in out)
        return fits and needed <= out.keys(), value if same else out

    def _clean_array(self, value: list[object], node: Schema) -> tuple[bool, object]:
        schemas, rest = _items_of(node)
        pairs = [
            self.clean(item, schemas[i] if i < len(schemas) else rest)
            for i, item in enumerate(value)
        ]
        out = [cleaned for _, cleaned in pairs]
        same = all(new is old for new, old in zip(out, value, strict=True))
        return all(fits for fits, _ in pairs), value if same else out


def _properties_of(node: Schema) -> tuple[Schema, set[str]]:
    """The properties of an object, and the names of the required properties."""
    named, required = node.get("properties"), node.get("required")
    properties = named if isinstance(named, dict) else {}
    return properties, set(required) if is_names(required) else set()


def _items_of(node: Schema) -> tuple[list[object], object]:
    """The schemas of an array's first items, and that of the others."""
    first, rest = node.get("prefixItems"), node.get("items", True)
    if isinstance(rest, list):  # the older form of a tuple
        first, rest = rest, node.get("additionalItems", True)
    return first if isinstance(first, list) else [], rest


def _is_null(node: object) -> bool:
    return isinstance(node, dict) and types_of(node) == ("null",)


def _fits(value: object, node: Schema) -> bool:
    """Whether type, values and bounds allow it; patterns and formats are not checked."""
    if not _has_type(value, node):
        return False
    values = node.get("enum")
    if isinstance(values, list) and not any(_is_same(value, item) for item in values):
        return False
    if "const" in node and not _is_same(value, node["const"]):
        return False
    return all(_is_within(value, key, node[key]) for key in _BOUNDS.keys() & node.keys())


def _has_type(value: object, node: Schema) -> bool:
    types = types_of(node)
    if not types:
        return True
    kind = type_of(value)
    if kind == "integer":
        return "integer" in types or "number" in types
    whole = isinstance(value, float) and value.is_integer()
    return kind in types or (whole and "integer" in types)


def _is_same(left: object, right: object) -> bool:
    # In Python, True == 1.
    return bool(left == right) and isinstance(left, bool) is isinstance(right, bool)


def _is_within(value: object, key: str, bound: object) -> bool:
    size: float | None = None
    if key.endswith("imum"):
        size = value if isinstance(value, (int, float)) and not isinstance(value, bool) else None
    elif isinstance(value, str if key.endswith("Length") else list):
        size = len(value)
    if size is None or isinstance(bound, bool) or not isinstance(bound, (int, float)):
        return True
    return _BOUNDS[key](size, bound)
