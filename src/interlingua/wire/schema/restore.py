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

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from interlingua.spec.content import Part, ToolCall
from interlingua.spec.events import ErrorEvent, Finish, StepFinish, StreamEvent, ToolCallEnd
from interlingua.spec.request import Request, ToolDefinition
from interlingua.spec.response import Response
from interlingua.wire.schema.nulls import drop_added_nulls


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
