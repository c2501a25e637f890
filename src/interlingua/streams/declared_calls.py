"""
Calls as calls of the declared tools.

A target that has no custom tools, namespaces or searches was sent functions in their place
(`prepare/tool_forms.py`). Their calls become calls of the tools that the request declares.
"""

from __future__ import annotations

from typing import assert_never

from msgspec.structs import replace

from interlingua.spec.content import ToolCall
from interlingua.spec.contracts import StreamEncoder
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
from interlingua.spec.messages import Message
from interlingua.spec.request import Request, ToolDefinition, tool_key
from interlingua.spec.response import Response
from interlingua.streams.grammar import RewritingEncoder
from interlingua.wire.tool_calls import TextArgument, text_argument
from interlingua.wire.tool_names import may_change_form, sent_names


def declared_response(response: Response, request: Request | None) -> Response:
    """The response with calls of the tools that the request declares."""
    tools = _special_tools(request)
    return _declare(response, tools) if tools else response


def declared_encoder(encoder: StreamEncoder, request: Request | None) -> StreamEncoder:
    """An encoder of calls of the tools that the request declares; the same one if it can."""
    tools = _special_tools(request)
    return _DeclaredEncoder(encoder, tools) if tools else encoder


def _special_tools(request: Request | None) -> dict[str, ToolDefinition]:
    """The tools that may have been sent in another form, by the names that were sent."""
    if request is None or not request.tools:
        return {}
    special = [tool for tool in request.tools if may_change_form(tool)]
    if not special:
        return {}
    names = sent_names(request.tools)
    return {names[tool_key(tool)]: tool for tool in special}


def _declare(response: Response, tools: dict[str, ToolDefinition]) -> Response:
    content = response.message.content
    if not any(isinstance(part, ToolCall) for part in content):
        return response
    parts = tuple(
        _declared(part, tools) if isinstance(part, ToolCall) else part for part in content
    )
    message: Message = replace(response.message, content=parts)
    return replace(response, message=message)


def _find(
    call: ToolCall | ToolCallStart, tools: dict[str, ToolDefinition]
) -> ToolDefinition | None:
    """The tool that was called as a function, or, if it is custom, by the name that was sent."""
    tool = tools.get(call.name) if call.namespace is None else None
    tool_type = call.type if isinstance(call, ToolCall) else call.tool_type
    return tool if tool is not None and tool_type in ("function", tool.type) else None


def _declared(
    call: ToolCall, tools: dict[str, ToolDefinition], text: str | None = None
) -> ToolCall:
    """The call of the declared tool; `text` is that of a custom tool, if it is known."""
    tool = _find(call, tools)
    if tool is None:
        return call
    was_custom = call.type == "custom"
    call = replace(call, name=tool.name, namespace=tool.namespace, type=tool.type)
    if tool.type != "custom" or was_custom:
        return call
    return replace(call, arguments={}, raw_arguments=text_argument(call) if text is None else text)


_WITHOUT_CALLS = (
    *(TextDelta, TextStart, TextEnd, ReasoningDelta, ReasoningStart, ReasoningEnd, ProviderEvent),
    *(StreamStart, StreamRestart, StepStart, StepFinish, ToolResultEvent),
)


class _DeclaredEncoder(RewritingEncoder):
    """Gives an encoder events of the declared tools."""

    def __init__(self, encoder: StreamEncoder, tools: dict[str, ToolDefinition]) -> None:
        super().__init__(encoder)
        self._tools = tools
        self._texts: dict[str, TextArgument] = {}  # of open calls of custom tools

    def _events(self, event: StreamEvent) -> list[StreamEvent]:
        if isinstance(event, ToolCallDelta):
            text = self._texts.get(event.id)
            if text is None:
                return [event]
            piece = text.feed(event.delta)
            return [replace(event, delta=piece)] if piece else []
        if isinstance(event, ToolCallStart):
            return [self._start(event)]
        if isinstance(event, ToolCallEnd):
            return self._end(event)
        if isinstance(event, (Finish, ErrorEvent)):
            if event.response is None:
                return [event]
            return [replace(event, response=_declare(event.response, self._tools))]
        if isinstance(event, _WITHOUT_CALLS):
            return [event]
        assert_never(event)

    def _start(self, event: ToolCallStart) -> ToolCallStart:
        tool = _find(event, self._tools)
        if tool is None:
            return event
        if tool.type == "custom" and event.tool_type != "custom":
            self._texts[event.id] = TextArgument()
        return replace(event, name=tool.name, namespace=tool.namespace, tool_type=tool.type)

    def _end(self, event: ToolCallEnd) -> list[StreamEvent]:
        text = self._texts.pop(event.id, None)
        rest = "" if text is None else text.end(event.tool_call)
        call = _declared(event.tool_call, self._tools, None if text is None else text.text)
        end = replace(event, tool_call=call)
        if not rest:
            return [end]
        return [ToolCallDelta(id=event.id, index=event.index, delta=rest), end]
