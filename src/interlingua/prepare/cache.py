"""
Prompt caching: marks and keys that make a provider reuse a prompt, and what breaks the reuse.

Some providers cache what stands before a mark. Others cache every prompt, and need a key that
routes the calls of one conversation to the same machine. A dialect's `CacheRules` say which.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias, TypeVar

from msgspec.structs import replace

from interlingua.spec.content import Json, Part, Text
from interlingua.spec.contracts import Profile, WireCall
from interlingua.spec.errors import DecodeError
from interlingua.spec.facts import CacheRules, CacheStep, Facts
from interlingua.spec.request import Request, ToolDefinition
from interlingua.spec.response import Warning
from interlingua.spec.warnings import make_warning
from interlingua.wire.fields import whole_object
from interlingua.wire.json_text import dumps

# Of the two lives in the SDK's `CacheControlEphemeralParam`, 5 minutes is the default.
_LONG = "1h"
_OURS = 3  # marks that are added at most: at the end, on the system text, on the tools
Holder = TypeVar("Holder", bound=Part | ToolDefinition)
_MarkOne: TypeAlias = Callable[[dict[str, Json]], dict[str, Json] | None]


def add_marks(body: dict[str, Json], rules: CacheRules, profile: Profile) -> dict[str, Json]:
    """
    The body with marks at its end, on its last system block and on its last tool.

    A place that the caller marked stays as it is, and the caller's marks count towards the limit
    of marks per request. 1h entries must precede 5m ones, so a mark lives as long as the longest
    after it. A new turn moves the mark at the end and changes nothing before it.
    """
    # https://platform.claude.com/docs/en/build-with-claude/prompt-caching
    if not profile.caching:
        return body
    name = rules.mark
    lives = {place: _lives(body[place], name) for place in rules.marked_places if place in body}
    if name in body:
        lives.setdefault("messages", []).extend(_lives([{name: body[name]}], name))
    most = profile.cache_breakpoints
    room = _OURS if most is None else most - sum(map(len, lives.values()))
    mark = {"type": "ephemeral"}
    added: dict[str, Json] = {}
    for place, living in lives.items():
        if _LONG in living:
            mark = {"type": "ephemeral", "ttl": _LONG}
        if living or len(added) >= room:
            continue
        # At the top of the body «applies a marker to the last cacheable block» (the SDK's docstring
        # of `cache_control`): the server finds the block.
        if place == "messages" and profile.automatic_cache_mark and body.get(place):
            added[name] = mark
        elif (marked := _mark_place(body, place, rules, mark)) is not None:
            added[place] = marked
    return {**body, **added}


def is_cacheable(request: Request, profile: Profile) -> bool:
    """
    Whether the prompt may be as long as the shortest prefix that the provider caches.

    A token is rarely less than a character, so only a prompt of fewer characters is too short.
    """
    # A mark on a shorter prompt does nothing, without an error; but a text becomes a block for it.
    least = profile.min_cache_tokens
    if least is None or request.tools:
        return True
    size = 0
    for message in request.messages:
        for part in message.content:
            size += len(part.text) if type(part) is Text else least
            if size >= least:
                return True
    return False


def add_cache_key(
    body: dict[str, Json], request: Request, rules: CacheRules, profile: Profile
) -> dict[str, Json]:
    """The body with a key for its conversation, unless the caller set one."""
    # The key leads calls with the same beginning to one cache:
    # https://developers.openai.com/api/docs/guides/prompt-caching
    if not profile.cache_key or not profile.caching or rules.key in body:
        return body
    if any(map(body.get, rules.stored)):
        return body  # the provider stores the beginning of the conversation
    key = conversation_key(request)
    return body if key is None else {**body, rules.key: key}


def conversation_key(request: Request) -> str | None:
    """
    A key that is the same in each turn of a conversation; None before the first user message.

    It is a digest of what does not change between turns: the tools, and the messages up to the
    first of the user. Extra fields of parts are excluded, because cache marks move.
    """
    # A digest, so that the key is short and tells nothing of the prompt.
    opening: list[object] = []
    for message in request.messages:
        parts = message.content
        opening.append((message.role, [part if not part.extra else _bare(part) for part in parts]))
        if message.role == "user":
            break
    else:
        return None
    tools = [_bare(tool) if isinstance(tool, ToolDefinition) else tool for tool in request.tools]
    from hashlib import blake2b  # loads OpenSSL

    return blake2b(dumps([tools, opening]), digest_size=16).hexdigest()


def _bare(holder: Holder) -> Holder:
    return replace(holder, extra={}) if holder.extra else holder


def _lives(items: Json, name: str) -> list[str]:
    """How long the marks on tools, blocks or messages live, and on the blocks inside them."""
    lives: list[str] = []
    waiting: list[Json] = [*items] if isinstance(items, list) else []
    for item in waiting:
        if not isinstance(item, dict):
            continue
        if name in item and isinstance(mark := item[name], Mapping):
            lives.append(str(mark.get("ttl") or ""))
        if "content" in item and isinstance(content := item["content"], list):
            waiting += content  # the loop reaches them too
        if "source" in item and isinstance(source := item["source"], dict):
            blocks = source.get("content")
            waiting += blocks if isinstance(blocks, list) else ()  # a document made of blocks
    return lives


def _mark_place(body: dict[str, Json], place: str, rules: CacheRules, mark: Json) -> Json:
    """A place of the body with a mark on the last item that can carry it; None if none can."""

    def mark_content(content: Json) -> list[Json] | None:
        # Text becomes a block, because only a block can be marked.
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        return _mark_last(blocks, mark_block)

    def mark_message(message: dict[str, Json]) -> dict[str, Json] | None:
        content = mark_content(message.get("content"))
        return None if content is None else {**message, "content": content}

    def mark_block(block: dict[str, Json]) -> dict[str, Json] | None:
        kind = block.get("type")
        # Anthropic: «cache_control cannot be set for empty text blocks»
        # (https://github.com/anthropics/claude-code/issues/55302).
        is_blank = kind == "text" and not str(block.get("text") or "").strip()
        can_carry = kind in rules.marked_blocks and not is_blank
        return {**block, rules.mark: mark} if can_carry else None

    def mark_tool(tool: dict[str, Json]) -> dict[str, Json] | None:
        # A tool that is loaded later is not in the prompt.
        return None if tool.get("defer_loading") else {**tool, rules.mark: mark}

    if place == "system":
        return mark_content(body.get(place))
    return _mark_last(body.get(place), mark_tool if place == "tools" else mark_message)


def _mark_last(items: Json, mark_one: _MarkOne) -> list[Json] | None:
    if not isinstance(items, list):
        return None
    for i in reversed(range(len(items))):
        marked = mark_one(items[i]) if isinstance(items[i], dict) else None
        if marked is not None:
            return [*items[:i], marked, *items[i + 1 :]]
    return None


_Break: TypeAlias = tuple[str, str]
"""A JSON path, and what changed there."""

ALL = "the whole prompt is processed again"
AFTER_SYSTEM = "all messages are processed again"
_AFTER_MESSAGE = "what follows it is processed again"
MODEL = CacheStep(
    fields=("model",), code="model_changed", cost=f"each model has its own cache: {ALL}"
)
TOOLS = CacheStep(fields=("tools",), code="tools_changed", cost=f"tools are read first: {ALL}")
"""Steps and costs that several dialects use in their rules."""

_MODEL_IN_PATH = re.compile(r"(?<=/models/)[^/:?]+|(?<=/model/)[^/?]+")
_MARKS = ("cache_control", "prompt_cache_breakpoint", "cachePoint")
_CONTENT = ("content", "parts")
# Of its own types the server knows the fields, whatever their order; a schema, or the arguments of
# a tool call, are text of the prompt.
_CALLERS_OWN = frozenset(
    (
        *("args", "input", "response", "parameters", "schema", "input_schema", "json_schema"),
        *("parametersJsonSchema", "parameters_json_schema"),
    )
)
"""Fields whose value is copied into the prompt, so that the order of keys counts."""


def cache_prefix_diff(
    previous: WireCall | Json, following: WireCall | Json, facts: Facts
) -> Warning | None:
    """
    Find the first change by which `following` does not extend `previous`; None if it does.

    Both are calls that an encoder made, or their JSON bodies from a log, in the dialect with
    these facts: compared is what is sent, after the request was prepared. The warning has the
    path of the field, a code such as `tools_changed`, and a message that says what it costs.
    Fields are compared in the order in which the provider reads them. Cache marks may move, and
    a text may become a block.
    """
    try:
        return _diff(_fields(previous), _fields(following), facts.cache)
    except RecursionError as error:
        raise DecodeError("A body is nested too deeply.") from error


def _diff(before: dict[str, Json], after: dict[str, Json], rules: CacheRules) -> Warning | None:
    for step in rules.order:
        for field in step.fields:
            old, new = _at(before, field), _at(after, field)
            # A field that is left out and its default are the same prompt.
            if step.default is not None:
                old, new = old or step.default, new or step.default
            change = _compare(old, new, field)
            if change is not None:
                return make_warning(step.code, change[0], change=change[1], effect=step.cost)
    # With `previous_response_id` the beginning of the prompt is not in either body.
    if any(after.get(name) for name in rules.stored):
        return None  # the server stores the earlier messages
    change = _first_image(before, after) if rules.first_image else None
    field = rules.messages
    change = change or _compare_messages(before.get(field), after.get(field), field)
    if change is None:
        return None
    return make_warning("messages_changed", change[0], change=change[1], effect=_AFTER_MESSAGE)


def _fields(call: WireCall | Json) -> dict[str, Json]:
    """The body, with the model that the path may hold."""
    if not isinstance(call, WireCall):
        return whole_object(call)
    body = whole_object(call.body)
    match = _MODEL_IN_PATH.search(call.path) if "model" not in body else None
    return {**body, "model": match.group()} if match else body


def _at(body: Json, field: str) -> Json:
    for name in field.split("."):
        body = body.get(name) if isinstance(body, Mapping) else None
    return body


def _first_image(before: dict[str, Json], after: dict[str, Json]) -> _Break | None:
    """The first image of a conversation, or its only image, which was removed."""
    old, new = (next(_images(body.get("messages"), "messages"), None) for body in (before, after))
    if not before.get("messages") or (old is None) == (new is None):
        return None
    return (new, "is the first image") if new else (old or "", "was the only image")


def _images(value: Json, path: str) -> Iterator[str]:
    if isinstance(value, list):
        for i, item in enumerate(value):
            yield from _images(item, f"{path}[{i}]")
    elif isinstance(value, dict):
        if value.get("type") == "image":
            yield path
        yield from _images(value.get("content"), f"{path}.content")


def _compare_messages(old: Json, new: Json, path: str) -> _Break | None:
    """Messages may be added at the end, and parts to the last of the old ones."""
    old, new = _alike(old or [], new or [])
    if not isinstance(old, list) or not isinstance(new, list):
        return _compare(old, new, path)
    for i, (one, other) in enumerate(zip(old, new, strict=False)):
        change = _compare(one, other, f"{path}[{i}]", grows=i == len(old) - 1)
        if change is not None:
            return change
    return (f"{path}[{len(new)}]", "was removed") if len(new) < len(old) else None


def _compare(
    old: Json, new: Json, path: str, *, typed: bool = True, grows: bool = False
) -> _Break | None:
    """
    The first difference of two values.

    `typed` means that the server knows the fields: their order does not count, null means absent,
    and cache marks are ignored. `grows` allows more parts at the end.
    """
    if typed:
        old, new = _alike(old, new)
    if isinstance(old, dict) and isinstance(new, dict):
        return _compare_objects(old, new, path, typed=typed, grows=grows)
    if isinstance(old, list) and isinstance(new, list):
        return _compare_lists(old, new, path, typed=typed, grows=grows)
    if old is None or new is None:
        return None if old is new else (path, "was added" if old is None else "was removed")
    return None if type(old) is type(new) and old == new else (path, "differs")


def _compare_objects(
    old: dict[str, Json], new: dict[str, Json], path: str, *, typed: bool, grows: bool
) -> _Break | None:
    if typed:
        old, new = _plain(old), _plain(new)
    for name in old | new:
        where = f"{path}.{name}"
        if name not in new or name not in old:
            return where, "was added" if name in new else "was removed"
        is_typed = typed and name not in _CALLERS_OWN
        is_growing = grows and name in _CONTENT
        change = _compare(old[name], new[name], where, typed=is_typed, grows=is_growing)
        if change is not None:
            return change
    return None if typed or list(old) == list(new) else (path, "has its keys in another order")


def _compare_lists(
    old: list[Json], new: list[Json], path: str, *, typed: bool, grows: bool
) -> _Break | None:
    if typed:  # a mark may also be a block of its own
        old, new = ([item for item in items if not _is_mark(item)] for items in (old, new))
    for i, (one, other) in enumerate(zip(old, new, strict=False)):
        change = _compare(one, other, f"{path}[{i}]", typed=typed)
        if change is not None:
            return change
    if len(new) < len(old):
        return f"{path}[{len(new)}]", "was removed"
    return None if grows or len(new) == len(old) else (f"{path}[{len(old)}]", "was added")


def _is_mark(item: Json) -> bool:
    return isinstance(item, dict) and len(item) == 1 and not item.keys().isdisjoint(_MARKS)


def _plain(fields: dict[str, Json]) -> dict[str, Json]:
    return {
        name: value for name, value in fields.items() if value is not None and name not in _MARKS
    }


def _alike(old: Json, new: Json) -> tuple[Json, Json]:
    """The two values; if one is text and the other blocks, the text becomes a block."""
    if isinstance(old, str) and isinstance(new, list):
        return _as_blocks(old, new), new
    if isinstance(new, str) and isinstance(old, list):
        return old, _as_blocks(new, old)
    return old, new


def _as_blocks(text: str, others: list[Json]) -> list[Json]:
    other = others[0] if others and isinstance(others[0], dict) else {"type": "text"}
    if "role" in other:  # the whole input of a Responses call
        return [{**_plain(other), "role": "user", "content": text}]
    return [{"type": other.get("type"), "text": text}]
