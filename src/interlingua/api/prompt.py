"""What people pass -> a request."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from interlingua.api.tools import Tool
from interlingua.spec.errors import ConfigurationError
from interlingua.spec.messages import Message
from interlingua.spec.request import Request, ToolChoice, ToolChoiceMode

_MODES: tuple[ToolChoiceMode, ...] = ("auto", "none", "required")


def make_messages(
    prompt: str | Message | None,
    messages: Iterable[Message | str] | None,
    system: str | None,
) -> tuple[Message, ...]:
    """The conversation: a prompt or messages, not both, after the system's words."""
    if (prompt is None) == (messages is None):
        raise ConfigurationError("pass either prompt or messages, and not both")
    said = Request(messages=prompt if messages is None else messages).messages  # type: ignore[arg-type]
    if not said:
        raise ConfigurationError("there is nothing to answer: messages is empty")
    return said if system is None else (Message.system(system), *said)


def make_tool_choice(choice: ToolChoice | str | None) -> ToolChoice | None:
    """A choice by its mode, or by the name of the tool that must be called."""
    if choice is None or isinstance(choice, ToolChoice):
        return choice
    for mode in _MODES:
        if choice == mode:
            return ToolChoice(mode=mode)
    return ToolChoice(mode="named", tool_name=choice)


def make_request(
    model: str,
    conversation: tuple[Message, ...],
    tools: Iterable[Any] | None,
    fields: Mapping[str, Any],
) -> Request:
    """The request of the first step."""
    definitions = None
    if tools is not None:
        definitions = tuple(tool.definition if isinstance(tool, Tool) else tool for tool in tools)
    choice = make_tool_choice(fields.get("tool_choice"))
    settings = {name: value for name, value in fields.items() if name != "tool_choice"}
    return Request(
        model=model,
        messages=conversation,
        tools=definitions or None,
        tool_choice=choice,
        **settings,
    )
