"""
The JSON as the vendor writes it.

These types are for readers and the type checker; decoding trusts none of them.
API reference: https://platform.openai.com/docs/api-reference/responses
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NotRequired, TypedDict

from interlingua.spec.content import Extra, Json, ToolType

NAME = "openai_responses"
PATH = "/v1/responses"
INPUT_TEXT = "input_text"
OUTPUT_TEXT = "output_text"
CALLS: dict[ToolType, str] = {"function": "function_call", "custom": "custom_tool_call"}
RESULTS: dict[ToolType, str] = {tool: f"{call}_output" for tool, call in CALLS.items()}
ARGUMENTS: dict[ToolType, str] = {"function": "arguments", "custom": "input"}
"""The field of a call that holds its argument text."""
TOOL_TYPES: dict[str, ToolType] = {call: tool for tool, call in CALLS.items()}
ITEM = "~item"
"""
Our own key in `extra`.

On the first part of an assistant message item: that item's own fields (id, status, phase).
On a message: it stands for an item that is no message.
"""
SECTIONS = {"summary": "summary_text", "content": "reasoning_text"}
"""The lists of texts a reasoning item has, and the type of their parts."""
PARAGRAPH = "\n\n"
"""Joins those texts."""
LIST = "~list"
"""Our mark: an assistant item that had a list of parts, though no id."""
BARE = "~bare"
"""Our mark: an item that came without its type."""
PREFIXES = {
    "message": "msg",
    "reasoning": "rs",
    "function_call": "fc",
    "custom_tool_call": "ctc",
}
"""How the ids of the model's items begin."""


def extra_for(left: Mapping[Any, Any]) -> Extra:
    """What was not read of an object, for a part that has no mark otherwise."""
    return {NAME: left} if left else {}


def shorten(blocks: list[Any], text_kind: str) -> Json:
    """One plain text part may be written as a string."""
    if len(blocks) == 1 and blocks[0] == {"type": text_kind, "text": blocks[0].get("text")}:
        return blocks[0]["text"]
    return blocks


def item_id(response_id: str, kind: str, index: int) -> str:
    """An id for an item of ours: the same wherever the item is written."""
    return f"{PREFIXES[kind]}_{response_id.removeprefix('resp_')}_{index}"


def message_item(role: str, own: Mapping[str, Any], content: Json) -> dict[str, Any]:
    """A message item; the model's own says its type: some servers do not know it without."""
    item: dict[str, Any] = {"type": "message"} if role == "assistant" and BARE not in own else {}
    if own:
        item |= own
        item.pop(BARE, None)
        item.pop(LIST, None)
    item["role"] = role
    item["content"] = content
    return item


class ContentPart(TypedDict, total=False):
    """Any part of a message item; which fields it has follows from `type`."""

    type: str
    text: str
    refusal: str
    annotations: list[dict[str, Any]]
    logprobs: list[dict[str, Any]]
    image_url: str | None
    file_id: str | None
    file_url: str
    file_data: str
    filename: str
    detail: str
    input_audio: dict[str, str]


class Item(TypedDict, total=False):
    """Any item of `input` or `output`; an input message may leave `type` out."""

    type: str
    id: str
    status: Literal["in_progress", "completed", "incomplete"]
    role: Literal["user", "assistant", "system", "developer"]
    content: str | list[ContentPart] | None
    phase: Literal["commentary", "final_answer"]
    call_id: str
    name: str
    arguments: str
    input: str
    output: str | list[ContentPart]
    summary: list[ContentPart]
    encrypted_content: str | None


class Tool(TypedDict, total=False):
    """A function tool is flat: its name and schema are not nested."""

    type: str
    name: str
    description: str | None
    parameters: dict[str, Any] | None
    strict: bool | None
    format: dict[str, Any]


class TextSettings(TypedDict, total=False):
    format: dict[str, Any]
    verbosity: Literal["low", "medium", "high"]


class WireUsage(TypedDict):
    """`input_tokens` and `output_tokens` include what the details count."""

    input_tokens: int
    input_tokens_details: NotRequired[dict[str, int]]
    output_tokens: int
    output_tokens_details: NotRequired[dict[str, int]]
    total_tokens: int


class WireRequest(TypedDict, total=False):
    model: str
    input: str | list[Item]
    instructions: str | None
    max_output_tokens: int
    temperature: float
    top_p: float
    tools: list[Tool]
    tool_choice: str | dict[str, Any]
    parallel_tool_calls: bool
    text: TextSettings
    reasoning: dict[str, Any]
    metadata: dict[str, str]
    user: str
    stream: bool


class WireResponse(TypedDict, total=False):
    id: str
    object: Literal["response"]
    created_at: float
    status: str
    error: dict[str, Any] | None
    incomplete_details: dict[str, str] | None
    model: str
    output: list[Item]
    usage: WireUsage | None
