"""
Prompt caching: what a provider must be told to keep a prompt for the next call.

Some keep what stands before a mark, and some keep every prompt but want a key that leads the
calls of one conversation to the machine that has it. A dialect's `CacheRules` say which.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, TypeAlias

from msgspec.structs import replace

from interlingua.spec.content import Json
from interlingua.spec.contracts import Profile
from interlingua.spec.facts import CacheRules
from interlingua.spec.request import Request, ToolDefinition
from interlingua.wire.json_text import dumps

_LONG = "1h"
_OURS = 3  # the most marks that are ever added: at the end, on the system text, on the tools
_MarkOne: TypeAlias = Callable[[dict[str, Any]], dict[str, Any] | None]


def add_marks(body: dict[str, Any], rules: CacheRules, profile: Profile) -> dict[str, Any]:
    """
    The body with marks at its end, on its last system block and on its last tool.

    A place that the caller marked stays as it is, and those marks count among the ones that a
    request may carry. «1h entries must precede 5m ones»: a mark lives as long as the longest
    after it. A new turn moves the mark at the end and changes nothing before it.
    """
    if not profile.caching:
        return body
    name = rules.mark
    lives = {place: _lives(body[place], name) for place in rules.marked_places if place in body}
    if name in body:
        lives.setdefault("messages", []).extend(_lives([{name: body[name]}], name))
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
            added[name] = mark
        elif (marked := _Marker(rules, mark).place(body, place)) is not None:
            added[place] = marked
    return {**body, **added}


def add_cache_key(
    body: dict[str, Any], request: Request, rules: CacheRules, profile: Profile
) -> dict[str, Any]:
    """The body with a key for its conversation, unless the caller gave one."""
    if not profile.cache_key or rules.key in body:
        return body
    if any(body.get(name) for name in rules.stored):
        return body  # the beginning of the conversation is at the provider
    key = conversation_key(request)
    return body if key is None else {**body, rules.key: key}


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


def _lives(items: Json, name: str) -> list[str]:
    """How long the marks on tools, blocks or messages live, and on the blocks within them."""
    found: list[str] = []
    if not isinstance(items, list):
        return found
    waiting = [*items]
    for item in waiting:
        if not isinstance(item, dict):
            continue
        if name in item and isinstance(mark := item[name], Mapping):
            found.append(str(mark.get("ttl") or ""))
        if isinstance(inner := item.get("content"), list):
            waiting += inner  # this loop comes to them too
        if isinstance(source := item.get("source"), dict):  # a document may be of blocks
            waiting += _blocks(source.get("content"))
    return found


def _blocks(content: Json) -> list[Any]:
    return content if isinstance(content, list) else []


class _Marker:
    """Puts one mark on the last item of a place that can carry it."""

    __slots__ = ("_blocks", "_mark")

    def __init__(self, rules: CacheRules, mark: dict[str, str]) -> None:
        self._blocks = rules.marked_blocks
        self._mark = {rules.mark: mark}

    def place(self, body: dict[str, Any], place: str) -> Json:
        """The messages, system text or tools with the mark; None if nothing can carry it."""
        if place == "tools":
            return _mark_last(body.get(place), self._tool)
        if place == "system":
            return self._content(body.get(place))
        return _mark_last(body.get(place), self._message)

    def _content(self, content: Json) -> list[Any] | None:
        # text becomes a block, as only a block can be marked
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        return _mark_last(blocks, self._block)

    def _message(self, message: dict[str, Any]) -> dict[str, Any] | None:
        content = self._content(message.get("content"))
        return None if content is None else {**message, "content": content}

    def _block(self, block: dict[str, Any]) -> dict[str, Any] | None:
        kind = block.get("type")
        is_blank = kind == "text" and not str(block.get("text") or "").strip()
        return None if is_blank or kind not in self._blocks else {**block, **self._mark}

    def _tool(self, tool: dict[str, Any]) -> dict[str, Any] | None:
        # a tool that is loaded later is not in the prompt
        return None if tool.get("defer_loading") else {**tool, **self._mark}


def _mark_last(items: Json, mark_one: _MarkOne) -> list[Any] | None:
    if not isinstance(items, list):
        return None
    for i in reversed(range(len(items))):
        marked = mark_one(items[i]) if isinstance(items[i], dict) else None
        if marked is not None:
            return [*items[:i], marked, *items[i + 1 :]]
    return None
