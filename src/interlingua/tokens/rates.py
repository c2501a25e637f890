"""
The tokens that each vendor's models count, besides those of the text itself.

The numbers are fitted to recorded requests, so they are averages and not documented prices.
`request` and `tools` include the hidden instructions that a provider puts before the caller's.
"""

from __future__ import annotations

from functools import lru_cache

import msgspec
from msgspec.structs import replace


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
_ROWS = {
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


@lru_cache(maxsize=256)
def rates_for(*names: str) -> Rates:
    """The rates of the first known name; OpenAI's if none is known."""
    for name in names:
        plain = name.lower().replace(".", "-")
        best = max((key for key in _ROWS if key in plain), key=len, default=None)
        if best is not None:
            return _ROWS[best]
    return _OPENAI


IMAGE_TOKENS = {"low": 272, "medium": 1056, "standard": 1056, "high": 4160}
"""The tokens of a square image of 1024 pixels that is made, by quality, as recorded."""
MOST_IMAGE_TOKENS = 4 * IMAGE_TOKENS["high"]
"""For qualities above `high`, of which there are no recordings."""
