"""
Applies a `Behaviour` to a request: what is sent to one provider differs from what the caller gave.

The caller's messages are not changed, so nothing of one provider's behaviour is in a history that
goes to another.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec.structs import replace

from interlingua.prepare.history.messages import end_of_prompts, is_blank
from interlingua.prepare.settings import other_modes
from interlingua.prepare.tool_selection import select_tools
from interlingua.spec.behaviour import Behaviour
from interlingua.spec.content import Text
from interlingua.spec.contracts import Profile
from interlingua.spec.messages import Message
from interlingua.spec.request import Request, ToolChoice, ToolDefinition
from interlingua.spec.response import Warning
from interlingua.spec.warnings import make_warning, target_name

_match_place = re.compile(r"(messages|tools)\[(\d+)\](.*)", re.DOTALL).fullmatch


class Behaved(msgspec.Struct, frozen=True, kw_only=True):
    """A request as the behaviour of its provider makes it."""

    request: Request
    warnings: tuple[Warning, ...] = ()
    addendum: str = ""
    """What was added to the system prompt."""
    left_out: tuple[str, ...] = ()
    """The names of the tools that are not sent."""
    tools: tuple[int, ...] | None = None
    """The indexes of the tools that are sent; None if that is all."""
    has_new_prompt: bool = False
    """Whether the first message was added."""

    def add_warnings(self, later: Iterable[Warning]) -> tuple[Warning, ...]:
        """All warnings; the paths of the later ones are mapped to the caller's request."""
        return (*self.warnings, *map(self._mapped, later))

    def _mapped(self, warning: Warning) -> Warning:
        match = _match_place(warning.path or "")
        if match is None:
            return warning
        index = int(match[2])
        place: int | None = index
        if match[1] == "tools":
            place = index if self.tools is None else self.tools[index]
        elif self.has_new_prompt:
            place = index - 1 if index else None
        if place == index:
            return warning
        path = None if place is None else f"{match[1]}[{place}]{match[3]}"
        return replace(warning, path=path)


def behave(request: Request, behaviour: Behaviour, profile: Profile) -> Behaved:
    """The request as it is sent to a provider with this behaviour, and what was changed."""
    warnings: list[Warning] = []
    tools = select_tools(request, behaviour)
    left_out = _names_left_out(request, tools)
    if left_out:
        warnings.append(
            make_warning(
                "tools_over_limit",
                "tools",
                target=target_name(request, profile.dialect),
                count=len(left_out),
                total=len(request.tools),
                limit=behaviour.max_tools,
                names=", ".join(left_out),
            )
        )
    fields = _defaults(request, behaviour)
    if tools is not None:
        fields["tools"] = tuple(fields.get("tools", request.tools)[index] for index in tools)
    if behaviour.force_first_turn and _is_first_turn(request, profile):
        if other_modes(request, profile, "required") is None:
            fields["tool_choice"] = ToolChoice(mode="required")
        else:
            target = target_name(request, profile.dialect)
            warnings.append(make_warning("first_turn_not_forced", "tool_choice", target=target))
    messages = _with_addendum(request.messages, behaviour.prompt_addendum, profile)
    return Behaved(
        request=replace(request, messages=messages, **fields),
        warnings=tuple(warnings),
        addendum=behaviour.prompt_addendum if messages is not request.messages else "",
        left_out=left_out,
        tools=tools,
        has_new_prompt=len(messages) > len(request.messages),
    )


def _defaults(request: Request, behaviour: Behaviour) -> dict[str, Any]:
    """The settings that the request leaves open and the behaviour sets."""
    fields: dict[str, Any] = {}
    for name in ("max_tokens", "temperature"):
        value = getattr(behaviour, name)
        if value is not None and getattr(request, name) is None:
            fields[name] = value
    if not request.tools:
        return fields
    if behaviour.parallel_tool_calls is not None and request.parallel_tool_calls is None:
        fields["parallel_tool_calls"] = behaviour.parallel_tool_calls
    if behaviour.strict_tools is not None:
        fields["tools"] = tuple(
            replace(tool, strict=behaviour.strict_tools)
            if isinstance(tool, ToolDefinition) and tool.type == "function" and tool.strict is None
            else tool
            for tool in request.tools
        )
    return fields


def tools_left_out(request: Request, behaviour: Behaviour) -> tuple[str, ...]:
    """The names of the tools that are not sent to a provider with this behaviour."""
    return _names_left_out(request, select_tools(request, behaviour))


def _names_left_out(request: Request, selected: Iterable[int] | None) -> tuple[str, ...]:
    if selected is None:
        return ()
    sent = {*selected}
    return tuple(
        tool.name
        for index, tool in enumerate(request.tools)
        if index not in sent and isinstance(tool, ToolDefinition)
    )


def _is_first_turn(request: Request, profile: Profile) -> bool:
    """Whether nothing was answered yet, and the caller left open whether tools are called."""
    # Later it would never end: a model that must call a tool cannot answer.
    if request.tool_choice is not None or not request.tools or profile.tools is False:
        return False
    return all(message.role != "assistant" for message in request.messages)


def _with_addendum(
    messages: tuple[Message, ...], addendum: str, profile: Profile
) -> tuple[Message, ...]:
    """The messages with the addendum at the end of the system prompt; the same if it is there."""
    if not addendum.strip():
        return messages
    end = end_of_prompts(messages)
    # The caller may have written the same text, or the prompt may be one that had it already.
    if any(addendum.strip() in message.text for message in messages[:end]):
        return messages
    last = end - 1
    if last < 0 and profile.system_prompt is False and messages and messages[0].role == "user":
        last = 0
    text = Text(text=addendum)
    if last < 0:
        return (Message(role="system", content=(text,)), *messages)
    content = tuple(part for part in messages[last].content if not is_blank(part))
    prompt = replace(messages[last], content=(*content, text))
    return (*messages[:last], prompt, *messages[last + 1 :])
