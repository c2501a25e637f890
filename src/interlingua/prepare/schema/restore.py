"""
Answers to strict tools, read by the schemas the caller gave.

OpenAI's strict mode wants every property required, so optional ones were made nullable, and
the model says null where it would have said nothing. Here those nulls go, before a tool runs:

    response = restore_arguments(response, request)

Only `arguments` change: `raw_arguments` stays the text as it came, which is what the model
said and what is sent back to it. The text of a structured answer is left alone, too; whoever
parses it calls `drop_added_nulls(value, format.json_schema)`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

from msgspec.structs import replace

from interlingua.prepare.schema.read import MISSING, Reader, is_deep, is_names, type_of, types_of
from interlingua.spec.content import Json, Part, ToolCall
from interlingua.spec.events import ErrorEvent, Finish, StepFinish, StreamEvent, ToolCallEnd
from interlingua.spec.request import Request, ToolDefinition
from interlingua.spec.response import Response


def restore_arguments(response: Response, request: Request) -> Response:
    """The response without the nulls that strict tools added; the same object if there are none."""
    return _restore_response(response, _strict_schemas(request))


def restore_event(event: StreamEvent, request: Request) -> StreamEvent:
    """The same for an event that carries a whole call or response; any other is returned as is."""
    schemas = _strict_schemas(request)
    match event:
        case ToolCallEnd():
            call = _restore_call(event.tool_call, schemas)
            return event if call is event.tool_call else replace(event, tool_call=call)
        case Finish() | StepFinish() | ErrorEvent() if event.response is not None:
            response = _restore_response(event.response, schemas)
            return event if response is event.response else replace(event, response=response)
        case _:
            return event


def _strict_schemas(request: Request) -> dict[str, Any]:
    """Only a strict tool was given nulls that it did not have."""
    return {
        tool.name: tool.parameters
        for tool in request.tools or ()
        if isinstance(tool, ToolDefinition) and tool.strict and tool.parameters is not None
    }


def _restore_response(response: Response, schemas: Mapping[str, Any]) -> Response:
    if not schemas:
        return response
    before = response.message.content
    after: tuple[Part, ...] = tuple(
        _restore_call(part, schemas) if isinstance(part, ToolCall) else part for part in before
    )
    if all(new is old for new, old in zip(after, before, strict=True)):
        return response
    return replace(response, message=replace(response.message, content=after))


def _restore_call(call: ToolCall, schemas: Mapping[str, Any]) -> ToolCall:
    if call.name not in schemas or not call.is_valid:
        return call
    arguments = drop_added_nulls(call.arguments, schemas[call.name])
    return call if arguments is call.arguments else replace(call, arguments=arguments)


# Arguments that answer a strict schema, read back by the original.


_MAX_STEPS = 150  # into values and unions together

_BOUNDS: dict[str, Callable[[Any, Any], bool]] = {
    "minimum": operator.ge,
    "maximum": operator.le,
    "exclusiveMinimum": operator.gt,
    "exclusiveMaximum": operator.lt,
    "minLength": operator.ge,
    "maxLength": operator.le,
    "minItems": operator.ge,
    "maxItems": operator.le,
}


def drop_added_nulls(arguments: Json, original_schema: Json) -> Json:
    """
    `arguments` without the nulls that stand for an absent property.

    A null goes if its property is optional in the original schema and may not be null there.
    Of a union, the branch that the value fits is followed. Never raises and never changes its
    input; the object itself is returned if there is nothing to drop.
    """
    if is_deep(arguments) or is_deep(original_schema):
        return arguments
    return _Cleaner(original_schema).clean(arguments, original_schema)[1]


class _Cleaner:
    """Compares values with schemas, each pair once."""

    def __init__(self, root: Json) -> None:
        self.reader = Reader(root)
        self.done: dict[tuple[int, int], tuple[bool, Any]] = {}
        self.depth = 0

    def clean(self, value: Json, schema: Json) -> tuple[bool, Json]:
        """Whether the value fits, and the value without added nulls."""
        node = self.reader.plain(schema)
        if not isinstance(node, dict):
            return node is not False, value
        key = (id(value), id(node))
        if self.depth > _MAX_STEPS:
            return True, value
        if key not in self.done:
            self.done[key] = (False, value)  # a union that leads back to itself
            self.depth += 1
            self.done[key] = self._clean(value, node)
            self.depth -= 1
        return self.done[key]

    def _clean(self, value: Json, node: dict[str, Any]) -> tuple[bool, Json]:
        fits = _fits(value, node)
        for key in ("anyOf", "oneOf"):
            branches = node.get(key)
            if isinstance(branches, list):
                chosen, value = self._choose(value, branches)
                return fits and chosen, value
        if isinstance(value, dict):
            inner, value = self._clean_object(value, node)
        elif isinstance(value, list):
            inner, value = self._clean_array(value, node)
        else:
            inner = True
        return fits and inner, value

    def _choose(self, value: Json, branches: list[Any]) -> tuple[bool, Json]:
        found: tuple[bool, Json] | None = None
        likely = []
        for branch in branches:
            fits, cleaned = self.clean(value, branch)
            node = self.reader.plain(branch)
            if fits and self._is_complete(value, node):
                return True, cleaned
            if fits and found is None:
                found = True, cleaned
            if isinstance(node, dict) and _has_type(value, node):
                likely.append(cleaned)
        if found is None:  # the model did not keep to the schema
            found = False, likely[0] if len(likely) == 1 else value
        return found

    def _is_complete(self, value: Json, node: Json) -> bool:
        """Whether every property is there, as in an answer to a strict schema."""
        properties = node.get("properties") if isinstance(node, dict) else None
        if not isinstance(value, dict) or not isinstance(properties, dict):
            return True
        return properties.keys() <= value.keys()

    def _clean_object(self, value: dict[str, Any], node: dict[str, Any]) -> tuple[bool, Json]:
        named, required = node.get("properties"), node.get("required")
        properties = named if isinstance(named, dict) else {}
        needed = set(required) if is_names(required) else set()
        # an object that names properties is closed in its strict form
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

    def _clean_array(self, value: list[Any], node: dict[str, Any]) -> tuple[bool, Json]:
        first, rest = node.get("prefixItems"), node.get("items", True)
        if isinstance(rest, list):  # the older way to say a tuple
            first, rest = rest, node.get("additionalItems", True)
        schemas = first if isinstance(first, list) else []
        pairs = [
            self.clean(item, schemas[at] if at < len(schemas) else rest)
            for at, item in enumerate(value)
        ]
        out = [cleaned for _, cleaned in pairs]
        same = all(new is old for new, old in zip(out, value, strict=True))
        return all(fits for fits, _ in pairs), value if same else out


def _fits(value: Json, node: dict[str, Any]) -> bool:
    """Whether type, values and bounds allow it; patterns and formats are not looked at."""
    if not _has_type(value, node):
        return False
    values = node.get("enum")
    if isinstance(values, list) and not any(_is_same(value, item) for item in values):
        return False
    if "const" in node and not _is_same(value, node["const"]):
        return False
    return all(_is_within(value, key, node[key]) for key in _BOUNDS.keys() & node.keys())


def _has_type(value: Json, node: dict[str, Any]) -> bool:
    types = types_of(node)
    if not types:
        return True
    found = type_of(value)
    if found == "integer":
        return "integer" in types or "number" in types
    whole = isinstance(value, float) and value.is_integer()
    return found in types or (whole and "integer" in types)


def _is_same(left: Json, right: Json) -> bool:
    # in Python, true is 1
    return bool(left == right) and isinstance(left, bool) is isinstance(right, bool)


def _is_within(value: Json, key: str, bound: Json) -> bool:
    size: Any = MISSING
    if key.endswith("imum"):
        size = value if isinstance(value, (int, float)) and not isinstance(value, bool) else MISSING
    elif isinstance(value, str if key.endswith("Length") else list):
        size = len(value)
    if size is MISSING or isinstance(bound, bool) or not isinstance(bound, (int, float)):
        return True
    return _BOUNDS[key](size, bound)
