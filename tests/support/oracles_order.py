"""What the vendors' streams promise beyond their types: the order of frames."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from interlingua.spec.contracts import Frame

_ENDS = ("response.completed", "response.incomplete", "response.failed")


def disorder(dialect: str, frames: Iterable[Frame]) -> list[str]:
    """Where a stream breaks its vendor's order; empty if it does not."""
    frames = list(frames)
    if dialect == "openai_chat":
        if frames[-1].data != "[DONE]":
            return ["the last frame is not [DONE]"]
        frames = frames[:-1]
    if dialect == "bedrock_converse":  # the types of its events are not in their data
        names = [frame.event for frame in frames]
        return _converse([json.loads(frame.data) for frame in frames], names)
    return _ORDERS[dialect]([json.loads(frame.data) for frame in frames])


def _anthropic(events: list[Any]) -> list[str]:
    """One message; its blocks are numbered from 0, and one is open at a time."""
    kinds = [event["type"] for event in events]
    ends = [kinds[0], *kinds[-2:]]
    found = [] if ends == ["message_start", "message_delta", "message_stop"] else [f"ends: {ends}"]
    known, is_open = -1, False
    for kind, event in zip(kinds[1:-2], events[1:-2], strict=True):
        if kind == "content_block_start":
            known += 1
            found += ["a block began in another"] if is_open else []
            is_open = True
        elif kind not in ("content_block_delta", "content_block_stop") or not is_open:
            found.append(f"{kind} out of place")
        if event.get("index") != known:
            found.append(f"{kind} of block {event.get('index')} in block {known}")
        is_open = is_open and kind != "content_block_stop"
    return [*found, "a block is open at the end"] if is_open else found


def _responses(events: list[Any]) -> list[str]:
    """Frames are counted; items are numbered from 0, and one is open at a time."""
    found = [] if events[0]["type"] == "response.created" else ["not created first"]
    if [event["type"] in _ENDS for event in events] != [False] * (len(events) - 1) + [True]:
        found.append("not one end, last")
    if [event["sequence_number"] for event in events] != list(range(len(events))):
        found.append("frames are counted wrong")
    known, is_open = -1, False
    for event in events:
        kind = event["type"]
        if kind == "response.output_item.added":
            known += 1
            found += ["an item began in another"] if is_open else []
            is_open = True
        if event.get("output_index", known) != known:
            found.append(f"{kind} of item {event['output_index']} in item {known}")
        if kind == "response.output_item.done":
            is_open = False
    return [*found, "an item is open at the end"] if is_open else found


def _chat(chunks: list[Any]) -> list[str]:
    """One finish reason; calls are numbered from 0 as they begin."""
    choices = [choice for chunk in chunks for choice in chunk["choices"]]
    reasons = [choice["finish_reason"] for choice in choices if choice["finish_reason"]]
    found = [] if len(reasons) == 1 else [f"{len(reasons)} finish reasons"]
    calls = [call for choice in choices for call in choice["delta"].get("tool_calls") or ()]
    numbers = [call["index"] for call in calls if "id" in call]
    return found if numbers == list(range(len(numbers))) else [*found, f"calls {numbers}"]


def _gemini(bodies: list[Any]) -> list[str]:
    """One finish reason, in the last frame that has a candidate."""
    candidates = [candidate for body in bodies for candidate in body.get("candidates", ())]
    has_reason = ["finishReason" in candidate for candidate in candidates]
    last = [*[False] * (len(candidates) - 1), True]
    return [] if has_reason == last else [f"finish reasons: {has_reason}"]


def _converse(events: list[Any], names: list[str | None]) -> list[str]:
    """One message; its blocks are numbered from 0, and each ends before the next begins."""
    ends = [names[0], *names[-2:]]
    found = [] if ends == ["messageStart", "messageStop", "metadata"] else [f"ends: {ends}"]
    known, is_open = -1, False
    for name, event in zip(names[1:-2], events[1:-2], strict=True):
        if name == "contentBlockStart" or (name == "contentBlockDelta" and not is_open):
            known += 1
            found += ["a block began in another"] if is_open else []
            is_open = True
        elif name not in ("contentBlockDelta", "contentBlockStop") or not is_open:
            found.append(f"{name} out of place")
        if event.get("contentBlockIndex") != known:
            found.append(f"{name} of block {event.get('contentBlockIndex')} in block {known}")
        is_open = is_open and name != "contentBlockStop"
    return [*found, "a block is open at the end"] if is_open else found


_ORDERS = {
    "anthropic_messages": _anthropic,
    "openai_responses": _responses,
    "openai_chat": _chat,
    "gemini_generate": _gemini,
}
