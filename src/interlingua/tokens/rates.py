"""
The tokens that each vendor's models count, besides those of the text itself.

The numbers are averages and not documented prices. Those of `fitted.py` are fitted to recorded
requests; `START` has the values from which the fit starts, which also count for models without
recordings. `request` and `tools` include the hidden instructions that a provider puts before the
caller's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TypeAlias

import msgspec
from msgspec.structs import replace

from interlingua.tokens.fitted import FITTED


class Rates(msgspec.Struct, frozen=True, kw_only=True):
    """The tokens that a provider counts for each item; the defaults are OpenAI's."""

    text: float = 1.0
    """Factor for the estimated tokens of text."""
    request: float = 4
    """For each request."""
    message: float = 3.8
    """For each message."""
    call: float = 5.3
    """For each tool call, and for each tool result."""
    tools: float = 15
    """Once, if the request has tools."""
    forced: float = 2
    """Added to `tools` if the tool choice forces a call."""
    tool: float = 0
    """For each tool."""
    node: float = 4.9
    """For each schema in the parameters of a tool, besides its text."""
    format: float = 9
    """Once, if the response format has a schema."""
    format_node: float = 10.6
    """For each schema in the response format; 0 if the model does not read it."""
    thinking: float = 1.0
    """Factor for the estimated tokens of thinking that is sent back."""
    signature: float = 0.1
    """For each character of encrypted or signed thinking."""
    keeps_thinking: bool = False
    """Whether thinking from before the user's last message is read too."""
    image: float = 425
    """For each image."""
    low_image: float = 85
    """For each image of low detail."""
    page: float = 500
    """For each page of a PDF."""
    second: float = 10
    """For each second of audio."""


_CLAUDE = Rates(
    text=1.13,
    request=7,
    call=28.4,
    tools=313,
    forced=-32,
    tool=14.5,
    node=20.8,
    format=54,
    format_node=40.7,
    thinking=1.2,
    signature=0,
    image=1000,
    page=1600,
)
_CLAUDE_4_5 = replace(_CLAUDE, tools=481, forced=98)
_CLAUDE_5 = replace(_CLAUDE, text=1.5, tools=340, forced=115, thinking=1.5, image=2500)
_GEMINI = Rates(
    text=1.1,
    request=0,
    message=0.9,
    call=1.4,
    tools=2,
    forced=0,
    tool=3,
    node=13.2,
    format=0,
    format_node=0,
    thinking=1.1,
    signature=0.18,
    keeps_thinking=True,
    image=1090,
    page=520,
    second=25,
)
_GEMINI_2 = replace(
    _GEMINI, call=11.4, tool=5.9, node=10.4, signature=0, image=258, page=258, second=32
)
_OPEN = Rates(request=5, message=6, call=7.5, tools=68, tool=20, node=15, format=0, format_node=0)

_OPENAI = Rates()
START = {
    "": _OPENAI,
    "gpt-3-5": _OPENAI,
    "gpt-4": _OPENAI,
    "gpt-4o": _OPENAI,
    "gpt-4-1": _OPENAI,
    "gpt-5": _OPENAI,
    "gpt-4o-mini": replace(_OPENAI, image=14_000),
    "gpt-oss": replace(_OPENAI, request=66, node=12),
    "claude": _CLAUDE_5,
    "anthropic": _CLAUDE_5,
    "claude-3": _CLAUDE,
    "claude-opus-4": _CLAUDE,
    "claude-sonnet-4": _CLAUDE,
    "claude-haiku-4": _CLAUDE_4_5,
    "claude-opus-4-5": _CLAUDE_4_5,
    "claude-opus-4-6": _CLAUDE_4_5,
    "claude-opus-4-7": replace(_CLAUDE_5, tools=640, forced=130),
    "claude-opus-4-8": _CLAUDE_5,
    "claude-sonnet-4-5": _CLAUDE_4_5,
    "claude-sonnet-4-6": _CLAUDE_4_5,
    "gemini": _GEMINI,
    "gemini-1": _GEMINI_2,
    "gemini-2": _GEMINI_2,
    "gemini-2-0": replace(_GEMINI_2, call=1.5, tool=1, node=0, image=1290),
    "grok": replace(_OPENAI, request=160, tools=24, node=9.5),
    "xai": replace(_OPENAI, request=160, tools=24, node=9.5),
    "stral": replace(_OPENAI, message=2.3, tools=14, tool=7, node=17, format=0, format_node=0),
    "deepseek": replace(_OPEN, tools=220, tool=9, node=18.7, call=10),
    "qwen": _OPEN,
    "llama": replace(_OPEN, request=30, message=4, tools=180),
    "llama-4": replace(_OPEN, request=30, message=4, tools=640),
    "glm": _OPEN,
    "kimi": _OPEN,
}
"""
Keyed by a part of a model id or provider name, with dots written as dashes.

The longest key that occurs in the name is used. "stral" matches Mistral, Ministral and Codestral.
"""

Rows: TypeAlias = Mapping[tuple[str, str], Rates]
"""Rates by a part of the name of a host, a format or both ("" for all), and of a model."""
ROWS: Rows = {("", key): rates for key, rates in START.items()} | {
    place: replace(Rates(), **values) for place, values in FITTED.items()
}


@lru_cache(maxsize=256)
def rates_for(*names: str) -> Rates:
    """The rates of the first known name; OpenAI's if none is known. The others are its hosts."""
    return find_rates(names, ROWS)


def find_rates(names: Sequence[str], rows: Rows) -> Rates:
    """As `rates_for`, of other rows. The more of the names a row needs, the better it is."""
    plain = [name.lower().replace(".", "-") for name in names]
    for name in plain:
        found = [
            (place.count("/") + bool(place), len(key), place, key)
            for place, key in rows
            if key and key in name and _is_at(place, plain[1:])
        ]
        if found:
            *_, place, key = max(found)
            return rows[place, key]
    return rows["", ""]


def _is_at(place: str, names: list[str]) -> bool:
    """Whether the names have the host and the format of a row."""
    return not place or all(any(part in name for name in names) for part in place.split("/"))


IMAGE_TOKENS = {"low": 272, "medium": 1056, "standard": 1056, "high": 4160}
"""The tokens of a square image of 1024 pixels that is made, by quality, as recorded."""
MOST_IMAGE_TOKENS = 4 * IMAGE_TOKENS["high"]
"""For qualities above `high`, of which there are no recordings."""
