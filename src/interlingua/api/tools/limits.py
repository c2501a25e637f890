"""Limits on the work and the output of tools."""

from __future__ import annotations

import asyncio
from contextvars import ContextVar
from weakref import WeakKeyDictionary

from interlingua.spec.content import MEDIA_TYPES, Json, Text, ToolCall, ToolResult
from interlingua.wire.json_text import dump_text

MAX_CONCURRENT = 64
"""How many tools of a run, and how many tool threads of the program, run at the same time."""
MAX_OUTPUT = 1_000_000
"""The default limit of a tool's output, in characters of text or JSON."""
MAX_MEDIA = 50_000_000
"""The limit of the images, audio and documents in a tool's output, in bytes."""
MAX_NAMES = 2_000
"""The limit of the text that names the tools for a model that called an unknown one."""

_SHOWN = 2_000  # characters of an output that is too large
_NAME = 100  # characters of the name of an unknown tool

_depth: ContextVar[int] = ContextVar("interlingua_tool_depth", default=0)
_slots: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[int, asyncio.Semaphore]] = (
    WeakKeyDictionary()
)


def thread_slots() -> asyncio.Semaphore:
    """
    The slots for tool threads of the running loop.

    A tool that itself runs a model with tools waits for their threads. These have slots of their
    own, so that tools which hold all the slots do not wait for each other for ever.
    """
    by_depth = _slots.setdefault(asyncio.get_running_loop(), {})
    return by_depth.setdefault(_depth.get(), asyncio.Semaphore(MAX_CONCURRENT))


def enter_thread() -> None:
    """Called in the context of a tool thread."""
    _depth.set(_depth.get() + 1)


def limit_output(result: ToolResult, call: ToolCall, limit: int | None) -> ToolResult:
    """The result; an error that says so if it is too large."""
    if limit is None:
        return result
    text, media = _measure(result.content)
    if len(text) <= limit and media <= MAX_MEDIA:
        return result
    if media > MAX_MEDIA:
        excess = f"{media} bytes of media, and the limit is {MAX_MEDIA}"
    else:
        excess = f"{len(text)} characters, and the limit is {limit} (`max_tool_output`)"
    message = f"The tool ran, but its output is too large: {excess}. Ask for less."
    shown = f"{message} It begins with:\n{text[:_SHOWN]}" if text else message
    return ToolResult(tool_call_id=call.id, name=call.name, content=shown, is_error=True)


def describe_unknown(name: str, tools: list[str]) -> str:
    """The message to a model that called an unknown tool; short, whatever it called."""
    known = ", ".join(tools) or "none"
    if len(known) > MAX_NAMES:
        known = f"{known[:MAX_NAMES]} … ({len(tools)} tools)"
    called = name if len(name) <= _NAME else f"{name[:_NAME]}…"
    return f"Unknown tool {called!r}. Available tools: {known}."


def _measure(content: Json) -> tuple[str, int]:
    """The text of an output, and the bytes of its media."""
    if isinstance(content, str):
        return content, 0
    if not isinstance(content, tuple):
        return dump_text(content), 0
    texts = [part.text for part in content if isinstance(part, Text)]
    media = [part for part in content if isinstance(part, MEDIA_TYPES)]
    return "".join(texts), sum(len(part.data or b"") for part in media)
