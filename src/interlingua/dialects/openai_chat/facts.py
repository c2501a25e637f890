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

from interlingua.dialects.openai_shared.rules import CACHE_KEY_STEPS, STRICT_SCHEMA
from interlingua.prepare.cache import ALL, MODEL, TOOLS
from interlingua.prepare.schema.keywords import words
from interlingua.spec.content import Extra, Json, Part, Thinking, ToolType
from interlingua.spec.contracts import Profile
from interlingua.spec.facts import CacheRules, CacheStep, Carrier, Facts, HistoryRules, SealedField
from interlingua.wire.fields import extra_of, merge

NAME = "openai_chat"
PATH = "/chat/completions"  # the version is part of a server's base URL

WHOLE = "chat.completion"
CHUNK = "chat.completion.chunk"
LEGACY = "function_call"  # the deprecated field for one tool call, and for the tool choice
ARGUMENTS = {"function": "arguments", "custom": "input"}  # the field, by the type of a tool call


def wire_type(tool_type: ToolType) -> str:
    """The type of a tool call; a search for tools is a function, as in the tools of a request."""
    return tool_type if tool_type in ARGUMENTS else "function"


# Thinking as text, of which OpenAI's own API returns none. Seen in recordings:
# `reasoning_content` of DeepSeek, Z.ai, xAI, Venice, llama.cpp, Mistral.rs and GPUStack,
# `reasoning` of OpenRouter, Ollama, Groq, Crusoe and Hugging Face; Doubleword has both names,
# and vLLM changed from the first to the second
# (https://docs.vllm.ai/en/latest/features/reasoning_outputs/). GitHub Copilot has the last one.
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

    # OpenAI deprecated `max_tokens`, and its o-series refuses it (the SDK's docstring of
    # `max_tokens`). Most other hosts document only `max_tokens`: in recordings Mistral, DeepSeek,
    # llama.cpp, Doubleword, Venice and eleven more were never sent the newer name.
    max_tokens_field: Literal["max_completion_tokens", "max_tokens"] = "max_completion_tokens"
    """The field for the output limit."""
    # https://docs.mistral.ai/api: `random_seed`, as in recorded requests to Mistral. DeepSeek,
    # OpenRouter, Cloudflare and llama.cpp take OpenAI's `seed`.
    seed_field: Literal["seed", "random_seed"] = "seed"
    """The field for the seed."""
    # OpenAI's request type has no `top_k`; vLLM lists it among its extra parameters:
    # https://docs.vllm.ai/en/latest/serving/openai_compatible_server.html
    top_k: bool = False
    """Whether the server accepts `top_k`."""
    # OpenAI: `logprobs: true` with `top_logprobs`. In the request type of Together's SDK,
    # `logprobs` itself is an integer.
    logprobs_number: bool = False
    """Whether `logprobs` is the number of alternatives."""
    # https://openrouter.ai/docs/use-cases/reasoning-tokens. Recorded requests to OpenRouter and to
    # Snowflake have this object.
    reasoning_object: bool = False
    """Whether effort and budget are sent as `reasoning: {effort, max_tokens}`."""
    # DeepSeek: `thinking: {"type": "disabled"}`, https://api-docs.deepseek.com/guides/thinking_mode;
    # Z.ai and Moonshot have the same switch. Qwen 3 on vLLM is switched by a variable of its chat
    # template: https://docs.vllm.ai/en/latest/features/reasoning_outputs/
    thinking_off: Mapping[str, Json] = {}
    """The fields that turn thinking off, where the effort `none` does not."""
    # Mistral's SDK has both words for the same choice; 29 recorded requests to it say `any`, the
    # only word that earlier versions of its API had. One to OpenRouter was accepted with it too.
    required_word: Literal["required", "any"] = "required"
    """The `tool_choice` that makes the model call some tool."""
    # Seen in recordings: «'messages[0].role' does not support 'developer' with this model», of
    # OpenAI's o1-mini. OpenAI's newer models, Azure, OpenRouter and Ollama accept the role.
    developer_role: bool = True
    """Whether the server knows the developer role; if not, it gets system messages."""
    # Servers whose chat template expects a string fail on a list, or print its Python form into
    # the prompt. No row needs it today: it is for servers that a caller describes.
    flat_content: bool = False
    """Whether content that is all text must be one string, never a list of parts."""
    # The SDK's `ChatCompletionToolMessageParam` takes text only. llama.cpp accepted an image in a
    # tool message (recorded).
    tool_result_media: bool = False
    """Whether tool messages may contain media; if not, the media follow in a user message."""
    # OpenAI keeps the arguments as the text that the model wrote, valid or not (the SDK's docstring
    # of `arguments`). Servers that render a chat template, such as vLLM, load them as JSON for it
    # and fail if they are none; so the quirk is on for every host but OpenAI and Azure.
    json_arguments: bool = False
    """Whether the server parses the arguments of tool calls in the history."""
    # The rules of a strict schema are those of OpenAI's own check: «'additionalProperties' is
    # required to be supplied and to be false» (recorded). They hold for OpenAI's models wherever
    # they are served, and at Groq (https://console.groq.com/docs/structured-outputs), Cerebras
    # (https://inference-docs.cerebras.ai/capabilities/structured-outputs) and DeepSeek
    # (https://api-docs.deepseek.com/guides/tool_calls). What other hosts refuse is not known: the
    # schema is sent as it is, and they decide.
    any_schema: bool = False
    """Whether any JSON Schema is accepted as strict."""
    # https://docs.mistral.ai/api; recorded requests to Mistral were accepted with `document_url`.
    # OpenAI's parts for documents have data or a file id, never an address.
    document_url: bool = False
    """Whether `document_url` parts are accepted."""
    # The SDK's `InputAudio.format`: «Currently supports "wav" and "mp3"».
    audio_formats: tuple[str, ...] = ("wav", "mp3")
    """The accepted formats of audio."""
    # The SDK's `stream_options.include_usage`. In recordings, 50 of 52 streams of OpenAI without it
    # had no usage; Mistral, Databricks and Perplexity report usage without being asked.
    stream_usage: bool = False
    """Whether the usage of a stream must be asked for with `stream_options.include_usage`."""
    # Perplexity and Hugging Face's router ended recorded streams without it.
    done_sentinel: bool = True
    """Whether a stream ends with `[DONE]`; if not, a finish reason is enough."""
    # Of a host that no row knows, it is not known how it ends a stream.
    end_optional: bool = False
    """Whether a stream may end after its finish reason, without usage and `[DONE]`."""
    # Seen in recordings of Doubleword: 2,298 completion tokens, of which 2,948 for reasoning, and a
    # total that is prompt and completion. At other servers such figures mean that reasoning is
    # counted beside the output, as at xAI.
    reasoning_in_output: bool = False
    """
    Whether completion tokens include the tokens of reasoning, whose number is an estimate.

    Where the estimate is larger than the output, the output stands.
    """
    # `images` is the field of OpenRouter and of Vercel's gateway; other hosts do not know it.
    message_images: bool = True
    """
    Whether the images that a model made are sent back, in `images` of its message.

    If not, they are sent in a user message after it.
    """
    # Seen in recordings of vLLM, Hugging Face's router and Groq (with `reasoning_format: raw`).
    # Hosts that split thinking themselves (OpenAI, OpenRouter, xAI, Mistral, DeepSeek, Moonshot,
    # Z.ai) may have such a tag in an answer about tags.
    think_tags: bool = True
    """
    Whether thinking may be in the text, between `<think>` and `</think>` at its start.

    False for a server that sends thinking only in a field of its own.
    """


DEFAULT_QUIRKS = ChatQuirks()


def quirks_of(profile: Profile) -> ChatQuirks:
    """The profile's quirks if they are of this dialect, otherwise OpenAI's behaviour."""
    return profile.quirks if isinstance(profile.quirks, ChatQuirks) else DEFAULT_QUIRKS


def history_quirks(quirks: ChatQuirks) -> dict[str, Json]:
    """The history rules that the quirks change."""
    rules: dict[str, Json] = {}
    # Each is a rule of `HISTORY` that holds for OpenAI and not for such a server.
    if quirks.tool_result_media:
        rules["result_media"] = True
    if quirks.json_arguments:
        rules["valid_arguments"] = True
    if quirks.document_url:  # then every source of a document can be sent
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


def _detail(carrier: Carrier) -> Thinking:
    # The stream helper of OpenAI's SDK joins the items of a list by `index`, and fails on a second
    # item without it. A client may keep only items with the id of a call.
    detail: dict[str, Json] = {
        "type": "reasoning.encrypted",
        "index": carrier.number,
        "id": carrier.call_id or f"sealed_{carrier.number}",
        "data": carrier.value,
    }
    own: dict[str, Json] = {DETAILS: [detail]}
    if not carrier.text:  # no server sends an empty text after its answer
        own[FIELDS] = []
    return Thinking(text=carrier.text, extra={NAME: own})


def _details_of(part: Part) -> tuple[str, ...]:
    details = part.extra.get(NAME, {}).get(DETAILS) if isinstance(part, Thinking) else None
    items = [item for item in details or () if isinstance(item, dict)]
    values = [item.get(name) for item in items for name in ("data", "signature")]
    return tuple(value for value in values if isinstance(value, str))


HISTORY = HistoryRules(
    dialect=NAME,
    # The SDK's `ChatCompletionToolUnionParam`: functions and custom tools. Namespaces and the
    # search for tools exist in Responses only.
    tool_types=("function", "custom"),
    namespaces=False,
    # OpenAI's error: «An assistant message with 'tool_calls' must be followed by tool messages
    # responding to each 'tool_call_id'».
    paired_calls=True,
    # No limit is documented. OpenAI has refused ids above 40 characters («string too long. Expected
    # a string with maximum length 40», https://github.com/vercel/ai/issues/8132) and later accepted
    # 51 (https://github.com/vercel/ai/pull/17233); Responses refuses those above 64. The longest
    # accepted in recordings, of OpenRouter, has 47.
    call_id=r"[\s\S]{1,64}",
    # OpenAI: «Must be a-z, A-Z, 0-9, or contain underscores and dashes, with a maximum length of
    # 64» (the SDK's `FunctionDefinition.name`). Other hosts document no limit, and what they accept
    # is left as it is; no name in recordings has one of the further characters.
    call_name=r"[A-Za-z0-9_.:/-]{1,128}",
    # Results follow their tool calls at once, so an id has to be unique only within its turn.
    unique_call_ids="turn",
    calls_last=True,  # `tool_calls` is a field beside the content
    results="next",  # the error above: before any other message
    result_media=False,  # the SDK's `ChatCompletionToolMessageParam`: text only
    least="message",  # `messages` is required
    # Content is required in the SDK's types; of an assistant message «unless `tool_calls` or
    # `function_call` is specified».
    empty_messages=False,
    empty_prompt=False,
    # JSON is exchanged in UTF-8, in which a lone surrogate cannot be written:
    # https://www.rfc-editor.org/rfc/rfc8259#section-8.1
    lone_surrogates=False,
    # «Content blocks are expected to be either text or image_url type» (recorded): a part of
    # another API's type fails the whole request.
    foreign_blocks=False,
    # The SDK's content parts: `image_url` (an address or a data URL), `input_audio` (base64) and
    # `file` (data or an id). A document that is text is sent as a text part.
    media={"image": ("url", "data"), "audio": ("data",), "document": ("data", "file_id", "text")},
    # By the SDK, messages of the system and of the assistant have text (and refusals) only. Media
    # in tool messages are decided by `result_media`.
    media_roles=("user", "tool"),
    # DeepSeek, Doubleword, llama.cpp, Ollama, OpenRouter and Z.ai got their own thinking back in
    # recordings, DeepSeek even requires it after tool calls
    # (https://api-docs.deepseek.com/guides/thinking_mode). None documents that it takes another's.
    thinking="native",
    unmarked_thinking=(),  # the text alone does not say whose field it belongs to
    thinking_only=False,  # without content or tool calls, the message is empty for the server
)

# https://developers.openai.com/api/docs/guides/prompt-caching: the cache holds the exact prefix, in
# which tools and the schema of the output come before the messages, and the key leads the calls of
# one conversation to one cache. The other steps are the reasons for a miss that the SDK's
# `PromptCacheDiagnosticsCacheMiss` lists.
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
        # the switch of DeepSeek and others, see `thinking_off`
        CacheStep(fields=("thinking",), code="thinking_changed", cost=ALL),
        CacheStep(fields=("verbosity",), code="verbosity_changed", cost=ALL),
    ),
)

# `CompletionCreateParams` of the SDK. `path` and `field_names` are ours.
_OPENAI = words(
    "path field_names model messages max_completion_tokens max_tokens temperature top_p "
    "frequency_penalty presence_penalty logit_bias logprobs top_logprobs seed n stop tools "
    "tool_choice parallel_tool_calls functions function_call response_format reasoning_effort "
    "verbosity stream stream_options store metadata user safety_identifier prompt_cache_key "
    "prompt_cache_options prompt_cache_retention service_tier moderation prediction modalities "
    "audio web_search_options"
)
# What other hosts document besides: an option in this list is sent without a warning, any other one
# with a warning, since a typing error would have no effect.
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
    # OpenAI's models from gpt-5 on count more for tools here than in Responses (recorded).
    token_family="chat",  # noqa: S106 -- not a password
    name=NAME,
    paths=(PATH,),
    history=HISTORY,
    options=_OPENAI | _COMPATIBLE,
    schema=STRICT_SCHEMA,
    cache=CACHE,
    length_options=("max_tokens", "max_completion_tokens"),
    quirks=ChatQuirks,
    history_quirks=history_quirks,
    # OpenRouter wants the list back unmodified, so clients return entries that they do not know:
    # https://openrouter.ai/docs/use-cases/reasoning-tokens. A message has one list, beside its
    # content, so that the place of thinking among the parts is lost. Few clients return the list.
    # Some return the field in which Google's compatible endpoint has the signature of a call
    # (https://ai.google.dev/gemini-api/docs/openai), and all of them return the ids of calls.
    sealed_field=SealedField(
        name=DETAILS,
        make=_detail,
        read=_details_of,
        is_placed=False,
        call_path=("extra_content", "google", "thought_signature"),
        id_length=512,
    ),
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
    """The `extra` that keeps unread fields, unread fields of nested objects, and marks."""
    if not (unread or missing or sent_as or nested):  # the usual part or message
        return {}
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


def take_usual(fields: dict[str, Json], usual: Mapping[str, Json]) -> list[str]:
    """Remove the fields that have their usual value; returns the names that were absent."""
    missing: list[str] = []
    for name, value in usual.items():
        actual = fields.get(name, _ABSENT)
        if actual is _ABSENT:
            missing.append(name)
        elif actual == value and type(actual) is type(value):
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
