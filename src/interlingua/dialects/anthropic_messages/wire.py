"""
The JSON as the vendor writes it.

These types are for readers and the type checker; decoding trusts none of them.
API reference: https://docs.claude.com/en/api/messages
"""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict

from interlingua.spec.content import Extra

NAME = "anthropic_messages"
PATH = "/v1/messages"
VERSION = "2026-10-21"
VERSION_HEADER = "anthropic-version"
DEFAULT_MAX_TOKENS = 16_384  # the API has no default of its own; thinking counts in it


def extra_for(left: dict[str, Any]) -> Extra:
    """What is left of an object, as the `extra` of what was made of it."""
    return {NAME: left} if left else {}


class CacheControl(TypedDict):
    type: Literal["ephemeral"]
    ttl: NotRequired[Literal["5m", "1h"]]


class Source(TypedDict, total=False):
    """`base64` has media_type and data, `url` url, `file` file_id, `text` data."""

    type: str
    media_type: str
    data: str
    url: str
    file_id: str


class Block(TypedDict, total=False):
    """Any content block; which fields it has follows from `type`."""

    type: str
    text: str
    citations: list[dict[str, Any]] | None
    source: Source
    title: str
    id: str
    name: str
    input: dict[str, Any]
    tool_use_id: str
    content: Any
    is_error: bool
    thinking: str
    signature: str
    data: str
    cache_control: CacheControl


class WireMessage(TypedDict):
    role: Literal["user", "assistant", "system"]
    content: str | list[Block]


class Tool(TypedDict, total=False):
    """A client tool has `input_schema`; a server tool has a dated `type` instead."""

    type: str
    name: str
    description: str
    input_schema: dict[str, Any]
    strict: bool
    cache_control: CacheControl


class WireToolChoice(TypedDict, total=False):
    type: Literal["auto", "any", "tool", "none"]
    name: str
    disable_parallel_tool_use: bool


class WireUsage(TypedDict, total=False):
    """`input_tokens` leaves out what the two cache counts hold."""

    input_tokens: int
    cache_creation_input_tokens: int | None
    cache_read_input_tokens: int | None
    output_tokens: int
    output_tokens_details: dict[str, int]


class WireRequest(TypedDict, total=False):
    model: str
    max_tokens: int
    messages: list[WireMessage]
    system: str | list[Block]
    stop_sequences: list[str]
    stream: bool
    tools: list[Tool]
    tool_choice: WireToolChoice
    thinking: dict[str, Any]
    output_config: dict[str, Any]
    cache_control: CacheControl
    metadata: dict[str, str]


class WireResponse(TypedDict, total=False):
    id: str
    type: Literal["message"]
    role: Literal["assistant"]
    model: str
    content: list[Block]
    stop_reason: str | None
    stop_sequence: str | None
    usage: WireUsage
