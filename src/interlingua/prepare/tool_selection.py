"""
Which tools are sent where a `Behaviour` limits their number.

Tiers: tools that are always sent (core tools, those of active skills, built-in ones, those that the
tool choice names); tools of active connectors that have to do with the user's message; all others.
The last two fill the room that is left, the most relevant first. The tools that are sent are in
the order of the tiers, and within a tier in the caller's order: what is cached of a prompt begins
with the tiers that change least.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from itertools import chain
from math import fsum

from interlingua.spec.behaviour import Behaviour
from interlingua.spec.content import Text, ToolCall
from interlingua.spec.messages import Message
from interlingua.spec.request import Request, ToolDefinition, ToolSpec

_split_case = re.compile(r"(?<=[a-z0-9])(?=[A-Z])").sub
_find_words = re.compile(r"[^\W_]+").findall
_NAME_WEIGHT = 3
"""A word in the name of a tool says more than one in its description."""


def select_tools(request: Request, behaviour: Behaviour) -> tuple[int, ...] | None:
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
