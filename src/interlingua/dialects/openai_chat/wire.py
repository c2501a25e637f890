"""
The JSON as the vendor writes it, and what compatible servers add.

These types are for readers and the type checker; decoding trusts none of them.
API reference: https://platform.openai.com/docs/api-reference/chat
"""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict

NAME = "openai_chat"
PATH = "/chat/completions"  # the version is part of a server's base URL

WHOLE = "chat.completion"
CHUNK = "chat.completion.chunk"

REASONING_FIELDS = ("reasoning_content", "reasoning")
"""Where servers put the text of a thought; OpenAI itself shows none."""


class ContentPart(TypedDict, total=False):
    """
    Any content part; which fields it has follows from `type`.

    `video_url`, `document_url` and `thinking` are of compatible servers.
    """

    type: str
    text: str
    refusal: str
    image_url: dict[str, str] | str
    input_audio: dict[str, str] | str
    file: dict[str, str]
    video_url: dict[str, str]
    document_url: str
    thinking: list[dict[str, Any]]


class WireFunction(TypedDict, total=False):
    """Arguments are JSON text; some servers send the object itself."""

    name: str
    arguments: str


class WireToolCall(TypedDict, total=False):
    id: str
    type: Literal["function", "custom"]
    function: WireFunction
    custom: dict[str, str]


class WireMessage(TypedDict, total=False):
    """`reasoning…` fields are of compatible servers, `function_call` is the older form."""

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: str | list[ContentPart] | None
    name: str
    refusal: str | None
    tool_calls: list[WireToolCall]
    function_call: WireFunction
    tool_call_id: str
    reasoning_content: str
    reasoning: str
    reasoning_details: list[dict[str, Any]]


class WireTool(TypedDict, total=False):
    type: str
    function: dict[str, Any]
    custom: dict[str, Any]


class WireUsage(TypedDict, total=False):
    """`prompt_tokens` includes cached ones, `completion_tokens` reasoning, except at some hosts."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    prompt_tokens_details: dict[str, int]
    completion_tokens_details: dict[str, int]


class WireRequest(TypedDict, total=False):
    model: str
    messages: list[WireMessage]
    tools: list[WireTool]
    tool_choice: str | dict[str, Any]
    parallel_tool_calls: bool
    response_format: dict[str, Any]
    temperature: float
    top_p: float
    max_completion_tokens: int
    max_tokens: int
    stop: str | list[str]
    seed: int
    frequency_penalty: float
    presence_penalty: float
    n: int
    reasoning_effort: str
    verbosity: str
    user: str
    metadata: dict[str, str]
    stream: bool
    stream_options: dict[str, bool]


class Choice(TypedDict):
    """Of a whole answer with `message`, of a chunk with `delta`."""

    index: int
    message: NotRequired[WireMessage]
    delta: NotRequired[WireMessage]
    finish_reason: str | None


class WireResponse(TypedDict, total=False):
    id: str
    object: str
    created: int
    model: str
    choices: list[Choice]
    usage: WireUsage | None
