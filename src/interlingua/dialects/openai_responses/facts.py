"""
The facts of OpenAI Responses.

API reference: https://platform.openai.com/docs/api-reference/responses
"""

from __future__ import annotations

from interlingua.dialects.openai_shared.rules import CACHE_KEY_STEPS, STRICT_SCHEMA
from interlingua.prepare.cache import AFTER_SYSTEM, ALL, MODEL, TOOLS
from interlingua.prepare.schema.keywords import words
from interlingua.spec.content import Extra, Json, Part, Thinking, ToolType
from interlingua.spec.facts import CacheRules, CacheStep, Carrier, Facts, HistoryRules, SealedField

NAME = "openai_responses"
PATH = "/v1/responses"
# The SDK's types: what goes in is `input_text`, what the model wrote is `output_text`, also when it
# goes in again.
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
"""The field of a tool call that holds its arguments: a text, or the object of a search."""
TOOL_TYPES: dict[str, ToolType] = {call: tool for tool, call in TOOL_CALLS.items()}
SECTIONS = {"summary": "summary_text", "content": "reasoning_text"}
"""The lists of texts in a reasoning item, and the type of their parts."""
# Each part of a summary of OpenAI begins with a heading (in all 47 that were recorded).
PARAGRAPH = "\n\n"
"""The separator between the texts of a reasoning item."""
IMAGE_CALL = "image_generation_call"
# As in recordings of OpenAI; other servers have ids of other forms.
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
        normal["input"] = list(map(normal_item, items)) if isinstance(items, list) else items
    if isinstance(normal.get("tools"), list):
        normal["tools"] = [
            {"parameters": None, **tool}
            if isinstance(tool, dict) and tool.get("type") == "function" and "name" in tool
            else tool
            for tool in normal["tools"]
        ]
    return normal


def normal_item(item: Json) -> Json:
    """An item with its type; content and output may be a string, which is one text part."""
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


def _encrypted(carrier: Carrier) -> Thinking:
    # without `extra`, its item gets a new id
    return Thinking(text=carrier.text, data=carrier.value)


def _encrypted_of(part: Part) -> tuple[str, ...]:
    return (part.data,) if isinstance(part, Thinking) and part.data else ()


HISTORY = HistoryRules(
    dialect=NAME,
    # «No tool output found for tool call call-a.» (recorded of DeepSeek; OpenAI says «for function
    # call»).
    paired_calls=True,
    # With one of these, a call may be in the stored history and only its result in the input:
    # https://developers.openai.com/api/docs/guides/conversation-state
    stored_options=("previous_response_id", "conversation", "prompt"),
    # OpenAI's error: «Invalid 'input[95].call_id': string too long. Expected a string with maximum
    # length 64» (https://github.com/AnswerDotAI/fastllm/issues/45).
    call_id=r"[\s\S]{1,64}",
    # The characters of the SDK's `FunctionDefinition.name`, whose limit of 64 is of Chat
    # Completions. The type of a function here has none: up to 128, the name is left to the API.
    call_name=r"[A-Za-z0-9_-]{1,128}",
    unique_call_ids="history",  # a result refers to its tool call by id alone
    least="message",  # `input`, unless a stored prompt or response is the input
    # `content` is required in the SDK's types of messages.
    empty_messages=False,
    empty_prompt=False,
    # JSON is exchanged in UTF-8, in which a lone surrogate cannot be written:
    # https://www.rfc-editor.org/rfc/rfc8259#section-8.1
    lone_surrogates=False,
    foreign_blocks=False,  # an item or part of an unknown type fails the whole request
    # `input_audio` is not in the SDK's union of message content, and audio as a file is refused:
    # «unsupported MIME type 'audio/mpeg'» (recorded).
    media={"audio": ()},
    # The SDK's `ResponseOutputMessageParam` has text and refusals only. Images and files in the
    # output of tools were accepted in recordings.
    media_roles=("system", "developer", "user", "tool"),
    # `encrypted_content` can be read only by the vendor that made it.
    thinking="native",
    # Of the built-in dialects, only this one fills `data` of thinking that is not redacted.
    unmarked_thinking=("encrypted",),
    thinking_content="content",  # of DeepSeek and open models: `reasoning_text` in plain words
    # «Item 'rs_…' of type 'reasoning' was provided without its required following item.» (recorded)
    trailing_thinking=False,
    paired_thinking=True,
    # The reverse: «Item 'fc_…' of type 'function_call' was provided without its required
    # 'reasoning' item» (https://github.com/omnigent-ai/omnigent/issues/5066). Without its id, an
    # item stands for itself.
    bound=("id", "status"),
)

# https://developers.openai.com/api/docs/guides/prompt-caching; the steps are the reasons for a miss
# that the SDK's `PromptCacheDiagnosticsCacheMiss` lists.
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

# `ResponseCreateParams` of the SDK. `path` is ours, and `provider` is OpenRouter's.
OPTIONS = words(
    "path model input instructions max_output_tokens temperature top_p top_logprobs tools "
    "tool_choice parallel_tool_calls max_tool_calls text reasoning include store "
    "previous_response_id conversation stream stream_options background metadata "
    "prompt_cache_key prompt_cache_options prompt_cache_retention safety_identifier service_tier "
    "truncation context_management moderation prompt image access_programs user provider"
)

FACTS = Facts(
    name=NAME,
    paths=("/responses",),
    history=HISTORY,
    options=OPTIONS,
    schema=STRICT_SCHEMA,
    # The SDK: «Whether this function is deferred and loaded via tool search».
    defers="defer_loading",
    cache=CACHE,
    # «Be sure to include these items in your `input`» (the SDK's `ResponseReasoningItemParam`):
    # clients return encrypted content unread, and an item keeps its place among the others.
    sealed_field=SealedField(name="encrypted_content", make=_encrypted, read=_encrypted_of),
    normal_request=normal_request,
)
