"""What people pass -> a request."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from interlingua.api.tools.tool import Tool
from interlingua.providers.ulid import new_ulid
from interlingua.spec.errors import ConfigurationError
from interlingua.spec.messages import Message
from interlingua.spec.request import BuiltinTool, Request, ToolChoice, ToolChoiceMode

_MODES: tuple[ToolChoiceMode, ...] = ("auto", "none", "required")


def make_messages(
    prompt: str | Message | None,
    messages: Iterable[Message | str | Mapping[str, Any]] | None,
    system: str | None,
) -> tuple[Message, ...]:
    """The conversation: a prompt or messages, not both, after the system's words."""
    if (prompt is None) == (messages is None):
        raise ConfigurationError("pass either prompt or messages, and not both")
    if messages is None:
        if not isinstance(prompt, (str, Message)):
            kind = type(prompt).__name__
            raise ConfigurationError(f"prompt must be text or a Message, not a {kind}")
        said: tuple[Message, ...] = (
            prompt if isinstance(prompt, Message) else Message.user(prompt),
        )
    else:
        said = _read(messages)
    if not said:
        raise ConfigurationError("there is nothing to answer: messages is empty")
    return said if system is None else (Message.system(system), *said)


def _read(given: Any) -> tuple[Message, ...]:
    if isinstance(given, (str, Message)):
        return Request(messages=given).messages
    if isinstance(given, Mapping) or not isinstance(given, Iterable):
        kind = type(given).__name__
        raise ConfigurationError(f"messages must be a list of messages, not a {kind}")
    items = tuple(
        _from_json(item, place) if isinstance(item, Mapping) else item
        for place, item in enumerate(given)
    )
    return Request(messages=items).messages


def _from_json(given: Mapping[str, Any], place: int) -> Message:
    """A message of a conversation that was kept as JSON."""
    try:
        return msgspec.convert(dict(given), Message)
    except (msgspec.ValidationError, ConfigurationError) as error:
        raise ConfigurationError(
            f"messages[{place}] is a dict, and not the JSON form of a Message: {error}. "
            "Use Message.user(...) and its like"
        ) from None


def make_tool_choice(choice: ToolChoice | str) -> ToolChoice:
    """A choice by its mode, or by the name of the tool that must be called."""
    if isinstance(choice, ToolChoice):
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
    if not isinstance(model, str):
        raise ConfigurationError(f"model must be text, not a {type(model).__name__}")
    settings = dict(fields)
    choice = settings.pop("tool_choice", None)
    if choice is not None:
        choice = make_tool_choice(choice)
        _check_choice(choice, definitions or ())
    if "request_id" not in settings:
        settings["request_id"] = new_ulid()
    return Request(
        model=model,
        messages=conversation,
        tools=definitions or None,
        tool_choice=choice,
        **settings,
    )


def _check_choice(choice: ToolChoice, tools: tuple[Any, ...]) -> None:
    """Refuse to insist on a tool that is not there; what a provider has itself is not known."""
    if choice.mode == "required" and not tools:
        raise ConfigurationError("tool_choice is 'required', and there are no tools")
    asked = [*(choice.allowed or ())]
    if choice.mode == "named":
        asked.append(choice.tool_name or "")
    if not asked or any(isinstance(tool, BuiltinTool) for tool in tools):
        return
    names = [tool.name for tool in tools]
    for name in asked:
        if name not in names:
            known = ", ".join(names) or "none"
            raise ConfigurationError(
                f"tool_choice names {name!r}, which is no mode and no tool; there are: {known}"
            )
