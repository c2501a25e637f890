"""
The facts of Chat Completions, as OpenAI documents it and compatible servers extend it.

Also here, because every other file needs them: the quirks of compatible servers, and the marks
by which encoding gives back the wire form that was decoded.

API reference: https://platform.openai.com/docs/api-reference/chat
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from interlingua.dialects.openai_shared import CACHE_KEY_STEPS, STRICT_SCHEMA
from interlingua.prepare.cache import ALL, MODEL, TOOLS
from interlingua.prepare.schema.read import words
from interlingua.spec.content import Extra, Json, Part, Thinking
from interlingua.spec.contracts import Profile
from interlingua.spec.facts import CacheRules, CacheStep, Facts, HistoryRules, SealedField
from interlingua.wire.fields import extra_of, merge

NAME = "openai_chat"
PATH = "/chat/completions"  # the version is part of a server's base URL

WHOLE = "chat.completion"
CHUNK = "chat.completion.chunk"
LEGACY = "function_call"  # the deprecated field for one tool call, and for the tool choice
ARGUMENTS = {"function": "arguments", "custom": "input"}  # the field, by the type of a tool call
# Thinking as text; OpenAI has none of them, and the last one is that of GitHub Copilot.
REASONING_FIELDS = ("reasoning_content", "reasoning", "reasoning_text")
DETAILS = "reasoning_details"  # OpenRouter's list of thinking of any form
THINKING_FIELDS = frozenset((*REASONING_FIELDS, DETAILS))
IMAGES = "images"  # where OpenRouter and other gateways put images that a model made
CHOICE = "choice"  # key in `extra`: unread fields of the first choice
CHOICES = "choices"  # key in `extra`: the other choices, verbatim


class ChatQuirks(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, repr_omit_defaults=True
):
    """How a compatible server differs from OpenAI's own, which the defaults describe."""

    max_tokens_field: Literal["max_completion_tokens", "max_tokens"] = "max_completion_tokens"
    """The field for the output limit: many servers only know the older `max_tokens`."""
    seed_field: Literal["seed", "random_seed"] = "seed"
    """The field for the seed: Mistral's is `random_seed`."""
    top_k: bool = False
    """It accepts `top_k`, which OpenAI does not know."""
    logprobs_number: bool = False
    """Its `logprobs` is the number of alternatives, as at Together."""
    reasoning_object: bool = False
    """It takes effort and budget as `reasoning: {effort, max_tokens}`, as OpenRouter does."""
    thinking_off: Mapping[str, Json] = {}
    """Fields that turn thinking off where effort `none` does not: DeepSeek's `thinking` switch."""
    required_word: Literal["required", "any"] = "required"
    """The `tool_choice` that makes the model call some tool: older Mistral models use `any`."""
    developer_role: bool = True
    """It knows the developer role; if not, such messages are sent as system messages."""
    flat_content: bool = False
    """It wants content that is all text as one string, never as a list of parts."""
    tool_result_media: bool = False
    """It accepts media in tool messages; if not, they follow in a user message."""
    json_arguments: bool = False
    """It parses the arguments of tool calls in the history, for its chat template."""
    any_schema: bool = False
    """It accepts any JSON Schema as strict, as most hosts behind OpenRouter do."""
    document_url: bool = False
    """It accepts `document_url` parts, as Mistral does."""
    audio_formats: tuple[str, ...] = ("wav", "mp3")
    """The audio formats it accepts."""
    stream_usage: bool = False
    """It reports the usage of a stream only if `stream_options.include_usage` asks for it."""
    done_sentinel: bool = True
    """It ends a stream with `[DONE]`; if not, a finish reason is enough."""
    reasoning_in_output: bool = False
    """
    Its completion tokens include those of reasoning, of which it reports only an estimate.

    Where the estimate is larger than the output, the output stands. Of other servers such figures
    mean that reasoning is counted beside the output.
    """
    message_images: bool = True
    """
    It takes back the images that its models made, in `images` of their messages.

    If not, they are sent in a user message after them.
    """
    think_tags: bool = True
    """
    Thinking may be in the text, between `<think>` and `</think>` at its start.

    False for a server that sends thinking only in a field of its own.
    """


DEFAULT_QUIRKS = ChatQuirks()


def quirks_of(profile: Profile) -> ChatQuirks:
    """The profile's quirks if they are of this dialect, otherwise OpenAI's behaviour."""
    return profile.quirks if isinstance(profile.quirks, ChatQuirks) else DEFAULT_QUIRKS


def history_quirks(quirks: ChatQuirks) -> dict[str, Json]:
    """The history rules that the quirks change."""
    rules: dict[str, Json] = {}
    if quirks.tool_result_media:
        rules["result_media"] = True
    if quirks.json_arguments:
        rules["valid_arguments"] = True
    if quirks.document_url:
        rules["media"] = {"image": ("url", "data"), "audio": ("data",)}
    return rules


def normal_request(body: Json) -> Json:
    """`stream` is false by default; a string stands for one text part, or one stop sequence."""
    if not isinstance(body, dict):
        return body
    normal = dict(body)
    if normal.get("stream", 0) in (None, False):
        normal.pop("stream", None)
    if isinstance(normal.get("stop"), str):
        normal["stop"] = [normal["stop"]]
    if isinstance(normal.get("messages"), list):
        normal["messages"] = [_normal_message(message) for message in normal["messages"]]
    return normal


def normal_response(body: Json) -> Json:
    """Content may be a string or one text part here too."""
    if not isinstance(body, dict) or not isinstance(body.get("choices"), list):
        return body
    choices = [
        {**choice, "message": _normal_message(choice["message"])}
        if isinstance(choice, dict) and "message" in choice
        else choice
        for choice in body["choices"]
    ]
    return {**body, "choices": choices}


def _normal_message(message: Json) -> Json:
    if not isinstance(message, dict) or not isinstance(message.get("content"), str):
        return message
    return {**message, "content": [{"type": "text", "text": message["content"]}]}


def _detail(text: str, data: str) -> Thinking:
    detail = {"type": "reasoning.encrypted", "data": data}
    return Thinking(text=text, extra={NAME: {DETAILS: [detail]}})


def _details_of(part: Part) -> tuple[str, ...]:
    details = part.extra.get(NAME, {}).get(DETAILS) if isinstance(part, Thinking) else None
    items = [item.get("data") for item in details or () if isinstance(item, dict)]
    return tuple(data for data in items if isinstance(data, str))


HISTORY = HistoryRules(
    dialect=NAME,
    tool_types=("function", "custom"),
    namespaces=False,
    paired_calls=True,
    call_id=r"[\s\S]{1,64}",  # 40 at OpenAI itself
    call_name=r"[A-Za-z0-9_.:/-]{1,128}",
    unique_call_ids="turn",
    calls_last=True,  # a field beside the content
    results="next",
    result_media=False,
    least="message",
    empty_messages=False,
    empty_prompt=False,
    lone_surrogates=False,
    foreign_blocks=False,
    media={"image": ("url", "data"), "audio": ("data",), "document": ("data", "file_id", "text")},
    media_roles=("user", "tool"),
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

_OPENAI = words(
    "path field_names model messages max_completion_tokens max_tokens temperature top_p "
    "frequency_penalty presence_penalty logit_bias logprobs top_logprobs seed n stop tools "
    "tool_choice parallel_tool_calls functions function_call response_format reasoning_effort "
    "verbosity stream stream_options store metadata user safety_identifier prompt_cache_key "
    "prompt_cache_options prompt_cache_retention service_tier moderation prediction modalities "
    "audio web_search_options"
)
_COMPATIBLE = words(
    "top_k min_p top_a typical_p repetition_penalty repeat_penalty length_penalty thinking "
    "image_config reasoning include_reasoning reasoning_format enable_thinking thinking_budget "
    "chat_template chat_template_kwargs provider models route transforms plugins usage "
    "search_parameters deferred random_seed safe_prompt prompt_mode document_image_limit "
    "document_page_limit disable_tool_validation citation_options documents search_settings "
    "context_length_exceeded_behavior prompt_truncate_len perf_metrics_in_response raw_output "
    "echo ignore_eos min_tokens stop_token_ids bad_words best_of use_beam_search "
    "skip_special_tokens structured_outputs guided_json guided_regex guided_choice "
    "guided_grammar priority mm_processor_kwargs add_generation_prompt continue_final_message "
    "options keep_alive think num_ctx format mirostat mirostat_tau mirostat_eta grammar "
    "json_schema cache_prompt n_probs n_predict n_keep samplers id_slot timings_per_token "
    "data_sources request_id do_sample web_search safety_model compute_setting extra_body "
    "venice_parameters search_context_size clear_thinking"
)

FACTS = Facts(
    name=NAME,
    history=HISTORY,
    options=_OPENAI | _COMPATIBLE,
    schema=STRICT_SCHEMA,
    cache=CACHE,
    quirks=ChatQuirks,
    history_quirks=history_quirks,
    sealed_field=SealedField(name=DETAILS, make=_detail, read=_details_of, is_placed=False),
    normal_request=normal_request,
    normal_response=normal_response,
)


# Marks. The same value can have several wire forms. A mark, a key in `extra` beside the unread
# fields of the wire, says which one was decoded, so that encoding returns it. The `~` tells marks
# from fields.
SENT_AS = "~sent_as"  # the name of the form, where there are several
WITHOUT = "~without"  # usual fields that were absent; `function.name` is a nested one
FIELDS = "~fields"  # the fields that held the text of a thinking part
TAGS = "~tags"  # <think> tags: the white space before them, and whether they were closed
IN_PLACE = "~in_place"  # media where OpenAI accepts none, but the server did
POSITION = (
    "~position"  # the `index` of a tool call in a whole response; streams use the field itself
)
RECEIVED = "~received"  # the id field of a tool call in a response, where an id had to be made
SENT = "~sent"  # the same in a request: restored when the request is encoded again
MADE = "~made"  # an image of `images`
_MARKS = frozenset((SENT_AS, WITHOUT, FIELDS, TAGS, IN_PLACE, POSITION, RECEIVED, SENT, MADE))
_ABSENT = object()


def extra_for(
    unread: Mapping[str, object],
    missing: list[str] | None = None,
    *,
    sent_as: str | None = None,
    **nested: object,
) -> Extra:
    """The `extra` that keeps unread fields, those of nested objects, and marks."""
    extra = {name: fields for name, fields in nested.items() if fields}
    if sent_as:
        extra[SENT_AS] = sent_as
    if missing:
        extra[WITHOUT] = missing
    return {NAME: {**unread, **extra}} if unread or extra else {}


def mark_of(holder: Any, name: str) -> Json:
    """A mark on a part, message or tool; None if it is absent."""
    return extra_of(holder, NAME).get(name)


def fields_of(extra: Mapping[str, Json]) -> dict[str, Json]:
    """The fields of the wire in `extra`, without the marks."""
    return {name: extra[name] for name in extra if name not in _MARKS}


def absent(fields: Mapping[str, Json], *names: str, inside: str = "") -> list[str]:
    """The names that are not in `fields`, with the name of the object that `fields` is inside."""
    prefix = f"{inside}." if inside else ""
    return [prefix + name for name in names if name not in fields]


def take_usual(fields: dict[str, Json], **usual: Json) -> list[str]:
    """Remove the fields that have their usual value; returns the names that were absent."""
    missing = [] if fields.keys() >= usual.keys() else absent(fields, *usual)
    for name, value in usual.items():
        actual = fields.get(name, _ABSENT)
        if actual == value and type(actual) is type(value):
            del fields[name]
    return missing


def complete(block: dict[str, Json], holder: Any) -> dict[str, Json]:
    """`block` with the fields in the holder's `extra`; the block's own values win."""
    extra = extra_of(holder, NAME)
    if not extra:
        return block
    return drop_absent({**block, **merge(fields_of(extra), block)}, extra)


def drop_absent(block: dict[str, Json], extra: Mapping[str, Json]) -> dict[str, Json]:
    """`block` without the usual fields that were absent when it was decoded."""
    block.pop(WITHOUT, None)
    names = extra.get(WITHOUT)
    for name in names if isinstance(names, list) else ():
        outer, _, inner = str(name).partition(".")
        nested = block.get(outer)
        if not inner:
            block.pop(outer, None)
        elif isinstance(nested, dict):
            block[outer] = {key: value for key, value in nested.items() if key != inner}
    return block


def append_items(fields: dict[str, Json], name: str, *items: Json) -> None:
    """Add items to a list that `fields` may not have yet."""
    present = fields.setdefault(name, [])
    if isinstance(present, list):
        present.extend(items)
