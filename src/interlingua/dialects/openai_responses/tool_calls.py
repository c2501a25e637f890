"""Tool calls and results <-> their items."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial

from interlingua.dialects.openai_responses.content import decode_content, encode_part
from interlingua.dialects.openai_responses.facts import (
    ARGUMENTS,
    INPUT_TEXT,
    NAME,
    RESULTS,
    SEARCH,
    TOOL_CALLS,
    extra_for,
)
from interlingua.prepare.media import encode_result_parts
from interlingua.spec.content import (
    Json,
    Opaque,
    Part,
    ToolCall,
    ToolResult,
    ToolType,
)
from interlingua.spec.contracts import NewId
from interlingua.spec.warnings import WarningList
from interlingua.wire.fields import Fields, extra_of, restore, shorten, text_of
from interlingua.wire.json_text import dump_text, loads_object
from interlingua.wire.tool_names import flat_name


def decode_tool_call(fields: Fields, tool_type: ToolType, new_id: NewId | None) -> Part:
    """
    A tool call.

    With `new_id`, the tool call of a response, which may lack an id and always has `extra`.
    """
    key = ARGUMENTS[tool_type]
    if new_id is None and tool_type != "search":
        call_id, raw = fields.need("call_id"), fields.need(key)
    else:
        # The call of a search that the provider itself made has `call_id: null` (recorded).
        call_id = tool_call_id_of(fields.left) or (new_id() if new_id else "")
        value = fields.take(key)
        raw = value if isinstance(value, str) else dump_text({} if value is None else value)
        if fields.left.get("call_id", "") in (call_id, ""):
            fields.take("call_id")
    return ToolCall(
        id=call_id,
        name=SEARCH if tool_type == "search" else fields.need("name"),
        arguments={} if tool_type == "custom" else loads_object(raw) or {},
        raw_arguments=raw,
        type=tool_type,
        namespace=fields.text("namespace"),
        extra={NAME: fields.left} if new_id else extra_for(fields.left),
    )


def tool_call_id_of(item: Mapping[str, Json]) -> str | None:
    """The id of a tool call, else the id of its item."""
    ids = (item.get(key) for key in ("call_id", "id"))
    return next((text for text in ids if isinstance(text, str) and text), None)


def encode_tool_call(tool_call: ToolCall, new_id: str | None = None) -> dict[str, Json]:
    """The item of a tool call; `new_id` is the id of an item of a response that has no id."""
    raw = tool_call.raw_arguments
    item: dict[str, Json] = {"type": TOOL_CALLS[tool_call.type], "call_id": tool_call.id}
    if tool_call.type == "search":  # its arguments are an object, those of functions are text
        item |= {"arguments": tool_call.arguments, "execution": "client"}
    else:
        item["name"] = tool_call.name
        item[ARGUMENTS[tool_call.type]] = dump_text(tool_call.arguments) if raw is None else raw
    if tool_call.namespace is not None:
        item["namespace"] = tool_call.namespace
    if new_id is not None:
        item |= {"id": new_id, "status": "completed"}
    return restore(item, tool_call, NAME)


def decode_result(item: dict[str, Json], path: str) -> Part:
    """A tool's output: text, or content parts; of a search, the tools that it has found."""
    fields = Fields(item, path)
    if fields.left["type"] == RESULTS["search"]:
        return _decode_found(fields)
    if fields.left["type"] == RESULTS["function"]:
        fields.take("type")
    call_id = fields.need("call_id")
    output = fields.take("output")
    is_text = isinstance(output, str)
    content = output if is_text else decode_content(output, fields.at("output"), INPUT_TEXT)
    name = fields.left.get("name")
    return ToolResult(
        tool_call_id=call_id,
        content=content,
        name=name if isinstance(name, str) else None,
        # With an empty `extra`, an empty output is encoded as `[]`, without one as a string.
        extra={NAME: fields.left} if content == () else extra_for(fields.left),
    )


def _decode_found(fields: Fields) -> Part:
    tools: Json = fields.take("tools")
    found = Opaque(dialect=NAME, data=tools, loaded_tools=tuple(_names_of(tools)))
    call_id = fields.need("call_id")
    return ToolResult(tool_call_id=call_id, content=(found,), extra={NAME: fields.left})


def _names_of(tools: Json, namespace: str | None = None) -> Iterator[str]:
    """The names of tools, as other dialects get them."""
    for tool in tools if isinstance(tools, list) else ():
        match tool:
            case {"type": "namespace", "name": str(name), "tools": list(inner)}:
                yield from _names_of(inner, name)
            case {"name": str(name)}:
                yield flat_name(namespace, name)


def encode_result(
    result: ToolResult, tool_type: ToolType, warnings: WarningList
) -> dict[str, Json]:
    """
    The output of a tool call to a tool of this type; a type in `extra` has precedence.

    The tools that a search has found are an output of its own type.
    """
    match result.parts:
        case (Opaque(dialect=dialect, data=list(tools)),) if dialect == NAME:
            fields = {"execution": "client", "status": "completed", **extra_of(result, NAME)}
            call_id = result.tool_call_id
            return {**fields, "type": RESULTS["search"], "call_id": call_id, "tools": tools}
    output = _encode_output(result, warnings)
    item: dict[str, Json] = {"call_id": result.tool_call_id, "output": output}
    if result.extra:
        restore(item, result, NAME)
    return {"type": RESULTS[tool_type], **item}


def _encode_output(result: ToolResult, warnings: WarningList) -> Json:
    content = result.content
    if type(content) is str and not result.is_error:
        return content
    parts = result.parts
    if parts is None:
        text = content if isinstance(content, str) else dump_text(content)
        return _error_text(text, warnings) if result.is_error else text
    if not parts and NAME in result.extra:  # decoded from an empty list, see `decode_result`
        return []
    encode = partial(encode_part, text_kind=INPUT_TEXT, warnings=warnings)
    blocks = encode_result_parts(parts, encode, warnings)
    if result.is_error:
        text = text_of(blocks[0].get("text")) if blocks else ""
        if not text:
            blocks = [{"type": INPUT_TEXT}, *blocks]
        blocks[0] = {**blocks[0], "text": _error_text(text, warnings)}
    return shorten(blocks, INPUT_TEXT) if blocks else ""


def _error_text(text: str, warnings: WarningList) -> str:
    """The API has no error flag for results: the text has to say that it is an error."""
    warnings.add_here("tool_error_as_text")
    if text[:5].lower() == "error":  # the text says it already
        return text
    return f"Error: {text}" if text else "Error"
