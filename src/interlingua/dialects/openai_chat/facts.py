"""
The facts of Chat Completions, as OpenAI documents it and compatible servers extend it.

API reference: https://platform.openai.com/docs/api-reference/chat
"""

from __future__ import annotations

from interlingua.dialects.openai_chat.normal import normal_request, normal_response
from interlingua.dialects.openai_chat.quirks import ChatQuirks, history_quirks
from interlingua.dialects.openai_shared import CACHE_KEY_STEPS, STRICT_SCHEMA
from interlingua.prepare.cache import ALL, MODEL, TOOLS
from interlingua.spec.facts import CacheRules, CacheStep, Facts, HistoryRules

NAME = "openai_chat"
PATH = "/chat/completions"  # the version is part of a server's base URL

WHOLE = "chat.completion"
CHUNK = "chat.completion.chunk"
LEGACY = "function_call"  # the older form of one call, and of the choice of a tool
ARGUMENTS = {"function": "arguments", "custom": "input"}  # the field, by the type of a call
REASONING_FIELDS = ("reasoning_content", "reasoning")  # the text of a thought; OpenAI shows none
DETAILS = "reasoning_details"  # where a router puts thoughts of any form
THOUGHTS = frozenset((*REASONING_FIELDS, DETAILS))
CHOICE = "choice"  # where the fields of the first choice are kept
CHOICES = "choices"  # where the other choices are kept, whole

HISTORY = HistoryRules(
    dialect=NAME,
    paired_calls=True,
    call_id=r"[\s\S]{1,64}",  # 40 at OpenAI itself
    call_name=r"[A-Za-z0-9_.:/-]{1,128}",
    unique_call_ids="turn",
    valid_arguments=True,  # it is text, but many servers parse it for their templates
    calls_last=True,  # they are a field beside the content
    results="next",
    ordered_results=True,
    result_media=False,
    least="message",
    empty_messages=False,
    empty_prompt=False,
    lone_surrogates=False,
    foreign_blocks=False,
    media={
        "image": ("url", "data"),
        "audio": ("data",),
        "document": ("data", "file_id", "text"),
    },
    thinking="native",
    unmarked_thinking=(),
    thinking_only=False,
)

CACHE = CacheRules(
    key="prompt_cache_key",
    fields=("prompt_cache_key",),
    order=(
        MODEL,
        *CACHE_KEY_STEPS,
        TOOLS,
        CacheStep(fields=("response_format",), code="text_format_changed", cost=ALL),
        CacheStep(
            fields=("reasoning_effort", "reasoning.effort"),
            code="reasoning_effort_changed",
            cost=ALL,
        ),
        CacheStep(fields=("thinking",), code="thinking_changed", cost=ALL),
        CacheStep(fields=("verbosity",), code="verbosity_changed", cost=ALL),
    ),
)

FACTS = Facts(
    name=NAME,
    history=HISTORY,
    schema=STRICT_SCHEMA,
    cache=CACHE,
    quirks=ChatQuirks,
    history_quirks=history_quirks,
    sealed_field=DETAILS,
    normal_request=normal_request,
    normal_response=normal_response,
)
