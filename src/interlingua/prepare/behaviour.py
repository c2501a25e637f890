"""
Applies a `Behaviour` to a request: what is sent to one provider differs from what the caller gave.

The caller's messages are not changed, so nothing of one provider's behaviour is in a history that
goes to another.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from itertools import chain
from math import fsum
from typing import Any

import msgspec
from msgspec.structs import replace

from interlingua.prepare.history.messages import end_of_prompts, is_blank
from interlingua.prepare.settings import other_modes
from interlingua.spec.behaviour import Behaviour
from interlingua.spec.content import Text, ToolCall
from interlingua.spec.contracts import Profile
from interlingua.spec.messages import Message
from interlingua.spec.request import Request, ToolChoice, ToolDefinition, ToolSpec
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
    tools = _select_tools(request, behaviour)
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
    return _names_left_out(request, _select_tools(request, behaviour))


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


# Which tools are sent where a `Behaviour` limits their number.
#
# The first tier is always sent: core tools, tools of active skills, built-in tools, and tools that
# the tool choice names. The second has the tools of active connectors that have to do with the
# user's message, the third all others. These two fill the rest of the limit, the most relevant
# first. Tools are sent in the order of the tiers, and within a tier in the caller's order: what is
# cached of a prompt begins with the tiers that change least.

_split_case = re.compile(r"(?<=[a-z0-9])(?=[A-Z])").sub
_find_words = re.compile(r"[^\W_]+").findall
_NAME_WEIGHT = 3
"""A word in the name of a tool says more than one in its description."""


def _select_tools(request: Request, behaviour: Behaviour) -> tuple[int, ...] | None:
    """The indexes of the tools to send, in the order to send them; None for all of them."""
    tools, limit = request.tools, behaviour.max_tools
    if limit is None or len(tools) <= limit:
        return None
    always, connectors, others = _tiers(request, behaviour)
    room = max(limit - len(always), 0)
    scores = _relevance(request)
    called = {
        part.name
        for message in request.messages
        for part in message.content
        if isinstance(part, ToolCall)
    }

    def rank(index: int) -> tuple[bool, float, int]:
        return _name(tools[index]) not in called, -scores[index], index

    related: list[int] = []
    for index in connectors:
        is_related = scores[index] > 0 or _name(tools[index]) in called
        (related if is_related else others).append(index)
    second = sorted(sorted(related, key=rank)[:room])
    third = sorted(sorted(others, key=rank)[: room - len(second)])
    return (*always, *second, *third)


def _tiers(request: Request, behaviour: Behaviour) -> tuple[list[int], list[int], list[int]]:
    """The indexes of the tools of each tier, in the caller's order."""
    choice = request.tool_choice
    named = () if choice is None else (choice.tool_name, *(choice.allowed or ()))
    core = {*behaviour.core_tools, *filter(None, named)}
    skills = tuple(filter(None, request.active_skills))  # every name begins with ""
    active = tuple(filter(None, request.active_connectors))
    first: list[int] = []
    skilled: list[int] = []
    connectors: list[int] = []
    others: list[int] = []
    for index, tool in enumerate(request.tools):
        name = _name(tool)
        if name is None or name in core:
            first.append(index)
        elif name.startswith(skills):
            skilled.append(index)
        else:
            (connectors if name.startswith(active) else others).append(index)
    return [*first, *skilled], connectors, others


def _name(tool: ToolSpec) -> str | None:
    return tool.name if isinstance(tool, ToolDefinition) else None


def _relevance(request: Request) -> list[float]:
    """How much each tool shares with the last user message; a rare word counts for more."""
    asked = _words_of(_last_question(request.messages))
    names = [asked & _tool_words(_name(tool) or "") for tool in request.tools]
    texts = [
        asked & _tool_words(tool.description or "" if isinstance(tool, ToolDefinition) else "")
        for tool in request.tools
    ]
    shared = [name | text for name, text in zip(names, texts, strict=True)]
    counts = Counter(chain.from_iterable(shared))
    # `fsum` does not depend on the order of the words, which differs between processes.
    return [
        fsum((_NAME_WEIGHT if word in name else 1) / counts[word] for word in words)
        for name, words in zip(names, shared, strict=True)
    ]


def _last_question(messages: Iterable[Message]) -> str:
    """The text of the last user message that has one."""
    for message in reversed(tuple(messages)):
        if message.role == "user":
            text = " ".join(part.text for part in message.content if isinstance(part, Text))
            if text.strip():
                return text
    return ""


def _words_of(text: str) -> frozenset[str]:
    words = _find_words(_split_case(" ", text).casefold())
    # A plural is the same word.
    return frozenset(word[:-1] if len(word) > 3 and word.endswith("s") else word for word in words)


_tool_words = lru_cache(4096)(_words_of)
"""`_words_of` for names and descriptions of tools, which most requests of a program share."""
