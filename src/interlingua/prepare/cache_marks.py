"""
Prompt caching: what a server must be told to keep a prompt for the next call.

Anthropic keeps what stands before a mark; OpenAI keeps every prompt, and a key leads the calls
of one conversation to the machine that has it; Gemini keeps prompts untold.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, TypeAlias

from msgspec.structs import replace

from interlingua.spec.content import Json
from interlingua.spec.contracts import Profile
from interlingua.spec.request import Request, ToolDefinition
from interlingua.wire.json_text import dumps

MARK = "cache_control"
_LONG = "1h"
_OURS = 3  # the most marks that are ever added: at the end, on the system text, on the tools
_PLACES = ("messages", "system", "tools")  # the last first, as they are read the other way round
_MARKABLE = ("text", "image", "document", "search_result", "tool_use", "tool_result")
# with these, what begins the conversation is elsewhere
_STORED = frozenset(("previous_response_id", "conversation"))
_KEY = "prompt_cache_key"
_MarkOne: TypeAlias = Callable[[dict[str, Any], dict[str, str]], dict[str, Any] | None]


def add_marks(body: dict[str, Any], profile: Profile) -> dict[str, Any]:
    """
    An Anthropic body with marks at its end, on its last system block and on its last tool.

    A place the caller marked stays as he wants it, and his marks count among those that a
    request may carry. «1h entries must precede 5m ones»: a mark lives as long as the longest
    after it. A new turn moves the mark at the end and changes nothing before it.
    """
    if not profile.caching:
        return body
    lives = {place: _lives(body[place]) for place in _PLACES if place in body}
    if MARK in body:
        lives.setdefault("messages", []).extend(_lives([{MARK: body[MARK]}]))
    most = profile.cache_breakpoints
    room = _OURS if most is None else most - sum(map(len, lives.values()))
    mark = {"type": "ephemeral"}
    added: dict[str, Any] = {}
    for place, living in lives.items():
        if _LONG in living:
            mark = {"type": "ephemeral", "ttl": _LONG}
        if living or len(added) >= room:
            continue
        if place == "messages" and profile.automatic_cache_mark and body.get(place):
            added[MARK] = mark
        elif (marked := _mark_place(body, place, mark)) is not None:
            added[place] = marked
    return {**body, **added}


def add_cache_key(body: dict[str, Any], request: Request, profile: Profile) -> dict[str, Any]:
    """An OpenAI body with a key for its conversation, unless the caller gave one."""
    if not profile.cache_key or _KEY in body:
        return body
    if not _STORED.isdisjoint(body) and any(body.get(name) for name in _STORED):
        return body
    key = conversation_key(request)
    return body if key is None else {**body, _KEY: key}


def conversation_key(request: Request) -> str | None:
    """
    A name of the conversation that each of its turns finds again; None before it has begun.

    Made of what stays while it grows: the tools, and the messages up to the user's first. The
    model and the settings are no part of it, nor what dialects left on parts: marks move.
    """
    opening: list[Any] = []
    for message in request.messages:
        opening.append((message.role, [_bare(part) for part in message.content]))
        if message.role == "user":
            break
    else:
        return None
    tools = [
        _bare(tool) if isinstance(tool, ToolDefinition) else tool for tool in request.tools or ()
    ]
    key: str = _digest()(dumps([tools, opening]), digest_size=16).hexdigest()
    return key


@cache
def _digest() -> Callable[..., Any]:
    from hashlib import blake2b  # slow to load, and few calls need it

    return blake2b


def _bare(holder: Any) -> Any:
    return replace(holder, extra={}) if holder.extra else holder


def _lives(items: Json) -> list[str]:
    """How long the marks on tools, blocks or messages live, and on the blocks within them."""
    found: list[str] = []
    if not isinstance(items, list):
        return found
    waiting = [*items]
    for item in waiting:
        if not isinstance(item, dict):
            continue
        if MARK in item and isinstance(mark := item[MARK], Mapping):
            found.append(str(mark.get("ttl") or ""))
        if isinstance(inner := item.get("content"), list):
            waiting += inner  # this loop comes to them too
        if isinstance(source := item.get("source"), dict):  # a document may be of blocks
            waiting += _blocks(source.get("content"))
    return found


def _blocks(content: Json) -> list[Any]:
    return content if isinstance(content, list) else []


def _mark_place(body: dict[str, Any], place: str, mark: dict[str, str]) -> Json:
    """The messages, system text or tools with a mark on the last that can bear it, else None."""
    if place == "tools":
        return _mark_last(body.get(place), mark, _mark_tool)
    if place == "system":
        return _mark_content(body.get(place), mark)
    return _mark_last(body.get(place), mark, _mark_message)


def _mark_last(items: Json, mark: dict[str, str], mark_one: _MarkOne) -> list[Any] | None:
    if not isinstance(items, list):
        return None
    for i in reversed(range(len(items))):
        marked = mark_one(items[i], mark) if isinstance(items[i], dict) else None
        if marked is not None:
            return [*items[:i], marked, *items[i + 1 :]]
    return None


def _mark_content(content: Json, mark: dict[str, str]) -> list[Any] | None:
    """Text becomes a block, as only a block can be marked."""
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    return _mark_last(blocks, mark, _mark_block)


def _mark_message(message: dict[str, Any], mark: dict[str, str]) -> dict[str, Any] | None:
    content = _mark_content(message.get("content"), mark)
    return None if content is None else {**message, "content": content}


def _mark_block(block: dict[str, Any], mark: dict[str, str]) -> dict[str, Any] | None:
    kind = block.get("type")
    if kind not in _MARKABLE or (kind == "text" and not str(block.get("text") or "").strip()):
        return None
    return {**block, MARK: mark}


def _mark_tool(tool: dict[str, Any], mark: dict[str, str]) -> dict[str, Any] | None:
    return None if tool.get("defer_loading") else {**tool, MARK: mark}  # it is not in the prompt
