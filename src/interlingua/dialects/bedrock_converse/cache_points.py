"""
Cache points: blocks that end a cached prefix, after the block that they are for.

https://docs.aws.amazon.com/bedrock/latest/userguide/prompt-caching.html
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from interlingua.dialects.bedrock_converse.facts import POINT, ConverseQuirks
from interlingua.spec.content import Json
from interlingua.spec.contracts import Profile

_OURS = 3  # points that are added at most: at the end, after the system text, after the tools
_LONG = "1h"
_UNMARKED = frozenset(("reasoningContent", POINT))
"""Blocks that no point may follow: the models of Anthropic refuse one after thinking."""


def add_points(body: dict[str, Json], profile: Profile, quirks: ConverseQuirks) -> dict[str, Json]:
    """
    Return the body with a cache point at its end, after its system text and after its tools.

    A place with a point of the caller stays as it is, and those points count towards the limit. A
    point lives as long as the longest after it, because points of 1 h must precede those of 5 m.
    """
    config = body.get("toolConfig")
    tools: Any = config.get("tools") if isinstance(config, Mapping) else None
    messages: Any = body.get("messages")
    last: Any = messages[-1] if isinstance(messages, list) and messages else None
    places: list[tuple[str, list[Json], list[Json]]] = []  # last of the prompt first
    if isinstance(last, Mapping) and isinstance(last.get("content"), list):
        every = [block for message in messages for block in _content(message)]
        places.append(("messages", last["content"], every))
    if isinstance(body.get("system"), list):
        system: Any = body["system"]
        places.append(("system", system, system))
    if isinstance(tools, list) and quirks.cached_tools:
        places.append(("tools", tools, tools))
    used = sum(_count(every) for _, _, every in places)
    room = _OURS if profile.cache_breakpoints is None else profile.cache_breakpoints - used
    point: dict[str, Json] = {"type": "default"}
    added: dict[str, list[Json]] = {}
    for name, blocks, every in places:
        if any(_is_long(block) for block in every):
            point = {"type": "default", "ttl": _LONG}
        if _count(every) or len(added) >= room or not _can_end(blocks):
            continue
        added[name] = [*blocks, {POINT: point}]
    return _with_points(body, added)


def _with_points(body: dict[str, Json], added: dict[str, list[Json]]) -> dict[str, Json]:
    marked = dict(body)
    if "messages" in added:
        messages: Any = body["messages"]
        marked["messages"] = [*messages[:-1], {**messages[-1], "content": added["messages"]}]
    if "system" in added:
        marked["system"] = added["system"]
    if "tools" in added:
        config: Any = body["toolConfig"]
        marked["toolConfig"] = {**config, "tools": added["tools"]}
    return marked


def _content(message: Any) -> list[Json]:
    content = message.get("content") if isinstance(message, Mapping) else None
    return content if isinstance(content, list) else []


def _count(blocks: list[Json]) -> int:
    return sum(isinstance(block, Mapping) and POINT in block for block in blocks)


def _is_long(block: Json) -> bool:
    point = block.get(POINT) if isinstance(block, Mapping) else None
    return isinstance(point, Mapping) and point.get("ttl") == _LONG


def _can_end(blocks: list[Json]) -> bool:
    last = blocks[-1] if blocks else None
    return isinstance(last, Mapping) and bool(last) and _UNMARKED.isdisjoint(last)
