"""
The facts of OpenAI Responses.

API reference: https://platform.openai.com/docs/api-reference/responses
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from interlingua.dialects.openai_responses.normal import normal_request, normal_response
from interlingua.dialects.openai_shared import CACHE_KEY_STEPS, STRICT_SCHEMA
from interlingua.prepare.cache import AFTER_SYSTEM, ALL, MODEL, TOOLS
from interlingua.spec.content import Extra, ToolType
from interlingua.spec.facts import CacheRules, CacheStep, Facts, HistoryRules

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


HISTORY = HistoryRules(
    dialect=NAME,
    paired_calls=True,
    stored_options=("previous_response_id", "conversation", "prompt"),
    call_id=r"[\s\S]{1,64}",
    call_name=r"[A-Za-z0-9_-]{1,128}",
    unique_call_ids="history",  # results find their call by id alone
    ordered_results=True,
    least="message",
    empty_messages=False,
    empty_prompt=False,
    lone_surrogates=False,
    foreign_blocks=False,
    media={"audio": ()},
    thinking="native",
    unmarked_thinking=("encrypted",),
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

FACTS = Facts(
    name=NAME,
    history=HISTORY,
    schema=STRICT_SCHEMA,
    cache=CACHE,
    sealed_field="encrypted_content",
    normal_request=normal_request,
    normal_response=normal_response,
)
