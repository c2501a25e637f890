"""
The facts of OpenAI Responses.

API reference: https://platform.openai.com/docs/api-reference/responses
"""

from __future__ import annotations

from interlingua.dialects.openai_shared import CACHE_KEY_STEPS, STRICT_SCHEMA
from interlingua.prepare.cache import AFTER_SYSTEM, ALL, MODEL, TOOLS
from interlingua.prepare.schema.read import words
from interlingua.spec.content import Extra, Json, Part, Thinking, ToolType
from interlingua.spec.facts import CacheRules, CacheStep, Facts, HistoryRules, SealedField

NAME = "openai_responses"
PATH = "/v1/responses"
INPUT_TEXT = "input_text"
OUTPUT_TEXT = "output_text"
TOOL_CALLS: dict[ToolType, str] = {
    "function": "function_call",
    "custom": "custom_tool_call",
    "search": "tool_search_call",
}
SEARCH = "tool_search"
"""The type of a tool that searches for tools, and its name in tool calls."""
RESULTS: dict[ToolType, str] = {
    "function": "function_call_output",
    "custom": "custom_tool_call_output",
    "search": "tool_search_output",
}
ARGUMENTS: dict[ToolType, str] = {
    "function": "arguments",
    "custom": "input",
    "search": "arguments",
}
"""The field of a tool call that holds its argument text; that of a search holds an object."""
TOOL_TYPES: dict[str, ToolType] = {call: tool for tool, call in TOOL_CALLS.items()}
SECTIONS = {"summary": "summary_text", "content": "reasoning_text"}
"""The lists of texts in a reasoning item, and the type of their parts."""
PARAGRAPH = "\n\n"
"""The separator between those texts."""
IMAGE_CALL = "image_generation_call"
PREFIXES = {
    "message": "msg",
    "reasoning": "rs",
    "function_call": "fc",
    "custom_tool_call": "ctc",
    "tool_search_call": "tsc",
    IMAGE_CALL: "ig",
}
"""The prefixes of item ids, by item type; also the types that the model's own items have."""

# Our own keys in `extra`. They hold what the canonical types have no field for, so that a
# decoded request or response can be encoded to the same body.
ITEM = "~item"
"""On the first part of an assistant message item: its other fields. On a message: it is an item."""
LIST = "~list"
"""In `ITEM`: the item had an array of parts, although it had no id."""
WIRE = "~wire"
"""On media: the content part itself, where encoding the part would give another one."""
GROUP = "~namespace"
"""On the first tool of a namespace: the other fields of the namespace."""
LOADED = "~loaded"
"""On a tool: its definition is in the result of a search, not among the tools."""
MADE = "~made"
"""On an image that the model made: the other fields of its item."""
OWN_KEYS = frozenset((ITEM, LIST, WIRE, MADE))


def extra_for(unread: dict[str, Json]) -> Extra:
    """The fields of an object that were not read, as the `extra` of what was decoded from it."""
    return {NAME: unread} if unread else {}


# The normal form: two bodies with the same meaning have the same one.


def normal_request(body: Json) -> Json:
    """
    `stream` is false by default; a string as input is a user message; no input is an empty one.

    A message item may leave out its type, and a function its `parameters` or set them to null.
    """
    if not isinstance(body, dict):
        return body
    normal = dict(body)
    if not normal.get("stream", True):
        del normal["stream"]
    items = normal.pop("input", None)
    if isinstance(items, str):
        items = [{"role": "user", "content": items}]
    if items not in (None, []):
        normal["input"] = list(map(_normal_item, items)) if isinstance(items, list) else items
    if isinstance(normal.get("tools"), list):
        normal["tools"] = [
            {"parameters": None, **tool}
            if isinstance(tool, dict) and tool.get("type") == "function" and "name" in tool
            else tool
            for tool in normal["tools"]
        ]
    return normal


def _normal_item(item: Json) -> Json:
    """Content and output may be a string, which is one text part."""
    if not isinstance(item, dict):
        return item
    kind = item.get("type", "message")
    key = "content" if kind == "message" else "output"
    if key not in item or kind not in ("message", *RESULTS.values()):
        return item
    content = item[key]
    if isinstance(content, str):
        is_output = kind == "message" and item.get("role") == "assistant"
        content = [{"type": OUTPUT_TEXT if is_output else INPUT_TEXT, "text": content}]
    return {**item, "type": kind, key: content}


def _encrypted(text: str, data: str) -> Thinking:
    return Thinking(text=text, data=data)  # without `extra`, its item gets a new id


def _encrypted_of(part: Part) -> tuple[str, ...]:
    return (part.data,) if isinstance(part, Thinking) and part.data else ()


HISTORY = HistoryRules(
    dialect=NAME,
    paired_calls=True,
    stored_options=("previous_response_id", "conversation", "prompt"),
    call_id=r"[\s\S]{1,64}",
    call_name=r"[A-Za-z0-9_-]{1,128}",
    unique_call_ids="history",  # a result refers to its tool call by id alone
    least="message",
    empty_messages=False,
    empty_prompt=False,
    lone_surrogates=False,
    foreign_blocks=False,
    media={"audio": ()},
    media_roles=("system", "developer", "user", "tool"),
    thinking="native",
    unmarked_thinking=("encrypted",),
    thinking_content="content",
    trailing_thinking=False,  # «provided without its required following item»
    paired_thinking=True,
    bound=("id", "status"),  # «provided without its required 'reasoning' item»
)

CACHE = CacheRules(
    key="prompt_cache_key",
    fields=("prompt_cache_key",),
    order=(
        MODEL,
        *CACHE_KEY_STEPS,
        TOOLS,
        CacheStep(fields=("text.format",), code="text_format_changed", cost=ALL),
        CacheStep(fields=("reasoning.effort",), code="reasoning_effort_changed", cost=ALL),
        CacheStep(fields=("text.verbosity",), code="verbosity_changed", cost=ALL),
        CacheStep(fields=("instructions",), code="system_changed", cost=AFTER_SYSTEM),
    ),
    messages="input",
    stored=("previous_response_id", "conversation"),
)

OPTIONS = words(
    "path model input instructions max_output_tokens temperature top_p top_logprobs tools "
    "tool_choice parallel_tool_calls max_tool_calls text reasoning include store "
    "previous_response_id conversation stream stream_options background metadata "
    "prompt_cache_key prompt_cache_options prompt_cache_retention safety_identifier service_tier "
    "truncation context_management moderation prompt image access_programs user provider"
)

FACTS = Facts(
    name=NAME,
    history=HISTORY,
    options=OPTIONS,
    schema=STRICT_SCHEMA,
    defers="defer_loading",
    cache=CACHE,
    sealed_field=SealedField(name="encrypted_content", make=_encrypted, read=_encrypted_of),
    normal_request=normal_request,
)
