"""
The facts of Anthropic Messages, each with its reason.

API reference: https://platform.claude.com/docs/en/api/messages. Texts in «» are error messages of
the API; names such as `ToolParam` are types of the vendor's Python SDK, which is generated from the
specification of the API.
"""

from __future__ import annotations

from interlingua.prepare.cache import AFTER_SYSTEM, MODEL, TOOLS
from interlingua.prepare.schema.keywords import DATES, DYNAMIC, SILENT, words
from interlingua.spec.content import Extra, Json, Part, Thinking
from interlingua.spec.facts import (
    CacheRules,
    CacheStep,
    Carrier,
    Facts,
    HistoryRules,
    SchemaRules,
    SealedField,
)

NAME = "anthropic_messages"
PATH = "/v1/messages"
# The newest version. It refuses sampling settings, documents in messages of the assistant, and
# citations in messages of the user. Recordings name 2023-06-01, which is still served.
# https://platform.claude.com/docs/en/api/versioning
VERSION = "2026-10-21"
VERSION_HEADER = "anthropic-version"
BETAS = ("betas", "beta_headers", "beta_features")
"""The options that hold beta flags: a list, or a string for one flag."""


def extra_for(unread: dict[str, Json]) -> Extra:
    """The fields of an object that were not read, as the `extra` of what was decoded from it."""
    return {NAME: unread} if unread else {}


# The normal form: two bodies with the same meaning have the same one.


def normal_request(body: Json) -> Json:
    """`stream` is false by default; a string stands for one text block."""
    if not isinstance(body, dict):
        return body
    normal = dict(body)
    if normal.get("stream") is False:
        del normal["stream"]
    if "system" in normal:
        normal["system"] = _normal_content(normal["system"])
    if isinstance(normal.get("messages"), list):
        normal["messages"] = [
            {**message, "content": _normal_content(message["content"])}
            if isinstance(message, dict) and "content" in message
            else message
            for message in normal["messages"]
        ]
    return normal


def normal_response(body: Json) -> Json:
    """`stop_sequence` is null by default."""
    if isinstance(body, dict) and body.get("type") == "message":
        return {"stop_sequence": None, **body}
    return body


def _normal_content(content: Json) -> Json:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    if not isinstance(content, list):
        return content
    return [
        {
            **block,
            "content": _normal_content([] if (inner := block.get("content")) is None else inner),
        }
        if isinstance(block, dict) and block.get("type") == "tool_result"
        else block
        for block in content
    ]


def _sign_thinking(carrier: Carrier) -> Thinking:
    return Thinking(text=carrier.text, signature=carrier.value)


def _signature_of(part: Part) -> tuple[str, ...]:
    return (part.signature,) if isinstance(part, Thinking) and part.signature else ()


# https://platform.claude.com/docs/en/agents-and-tools/tool-use/handle-tool-calls has the rules for
# tool calls and results.
HISTORY = HistoryRules(
    # `Message.stop_reason`: «you may provide the response back as-is … to let the model continue»
    paused=("pause_turn",),
    dialect=NAME,
    # tool calls
    tool_types=("function",),  # `ToolParam` requires `input_schema`: no free text, no search
    namespaces=False,  # `ToolParam` has no namespace
    paired_calls=True,  # «`tool_use` ids were found without `tool_result` blocks immediately after»
    # «tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'». The message names no length;
    # the longest recorded id has 54 characters, and Bedrock documents 64.
    call_id=r"[A-Za-z0-9_-]{1,64}",
    call_name=r"[A-Za-z0-9_-]{1,128}",  # «String should match pattern '^[a-zA-Z0-9_-]{1,128}$'»
    # «messages.1.content.1: `tool_use` ids must be unique». Seen in recordings: a request whose
    # later message repeats the id of an earlier one was accepted.
    unique_call_ids="turn",
    valid_arguments=True,  # `ToolUseBlockParam.input` is an object
    # results
    results="next",  # no message may stand between a tool call and its result
    joins_roles=True,  # «consecutive `user` or `assistant` turns … will be combined»
    results_first=True,  # text before a `tool_result` in its message is a 400
    gather_results=True,  # the results of parallel tool calls are in one message
    results_as_user=True,  # `MessageParam` has the roles user, assistant and system
    # messages and parts
    empty_text=False,  # «text content blocks must be non-empty», «… contain non-whitespace text»
    least="turn",  # «messages: at least one message is required»; `system` is not one of them
    empty_messages=False,  # recorded: «messages.0: all messages must have non-empty content»
    lone_surrogates=False,  # «The request body is not valid JSON: no low surrogate in string»
    foreign_blocks=False,  # `ContentBlockParam` is a closed union
    media={"audio": ()},  # `ContentBlockParam` has no audio
    # `system` takes only text; the version above refuses documents of the assistant.
    media_roles=("user", "tool"),
    # thinking
    thinking="native",  # the signature shows «that the block was generated by Claude»
    unmarked_thinking=("signed", "redacted"),  # what was not signed has no signature to check
    trailing_thinking=False,  # «the final block in an assistant message cannot be `thinking`»
)

STRICT_SCHEMA = SchemaRules(
    name="Anthropic strict",
    strict=True,  # the SDK's `transform_schema` closes every object
    max_min_items=1,  # `transform_schema` keeps only 0 and 1
    pointed=frozenset({"$defs", "definitions"}),  # recorded: `definitions` was accepted
    # https://platform.claude.com/docs/en/build-with-claude/structured-outputs, and the last three,
    # which recorded requests have.
    keywords=words(
        "type description title properties required additionalProperties items anyOf allOf "
        "enum const $defs $ref format minItems $schema default definitions"
    ),
    silent=SILENT | {"$anchor"},  # a `$ref` to an anchor is refused itself
    blocking=DYNAMIC | {"patternProperties", "unevaluatedProperties"},  # an object must be closed
    formats=DATES | {"email", "hostname", "uri", "ipv4", "ipv6", "uuid"},  # `transform_schema`
)
"""Tools with `strict: true`, and `output_config.format`, which is always strict."""

# The prompt is built from tools, system and messages, in this order, and a change invalidates its
# level and all that follow it. https://platform.claude.com/docs/en/build-with-claude/prompt-caching
CACHE = CacheRules(
    mark="cache_control",
    marked_places=("messages", "system", "tools"),
    # those that we write and that have the field in the SDK; thinking has none
    marked_blocks=("text", "image", "document", "search_result", "tool_use", "tool_result"),
    fields=("cache_control",),  # at the top: «applies a marker to the last cacheable block»
    order=(
        MODEL,
        TOOLS,
        CacheStep(fields=("system",), code="system_changed", cost=AFTER_SYSTEM),
        # A change of the tool choice or of thinking costs only the cached messages.
        CacheStep(
            fields=("tool_choice",),
            code="tool_choice_changed",
            cost=AFTER_SYSTEM,
            default={"type": "auto"},
        ),
        CacheStep(fields=("thinking",), code="thinking_changed", cost=AFTER_SYSTEM),
    ),
    first_image=True,  # adding or removing images costs the cached messages
)

# The fields of `MessageCreateParamsBase` and of its beta. `path` and `version` are ours; the last
# two are fields of the body on Vertex AI and Bedrock.
OPTIONS = words(
    "path version model max_tokens messages system stop_sequences stream tools tool_choice "
    "thinking output_config output_format cache_control metadata service_tier speed inference_geo "
    "container diagnostics mcp_servers context_management compaction fallbacks "
    "fallback_credit_token thread temperature top_p top_k anthropic_version "
    "anthropic_beta"
)

FACTS = Facts(
    name=NAME,
    paths=("/messages",),
    history=HISTORY,
    options=OPTIONS.union(BETAS),
    schema=STRICT_SCHEMA,
    defers="defer_loading",  # `ToolParam`: «tool will not be included in initial system prompt»
    json_mode=False,  # `JSONOutputFormatParam` has only `json_schema`
    only_strict_formats=True,  # it has no flag: every format is enforced
    cache=CACHE,
    # `max_tokens` is required, and «thinking tokens count toward your `max_tokens` limit»
    # (`MessageCreateParamsBase`); the figure itself is our choice.
    default_max_tokens=16_384,
    length_options=("max_tokens",),
    token_family="claude",  # noqa: S106 -- no password
    # Clients must return thinking unmodified (`ThinkingBlockParam`), so they return its signature.
    sealed_field=SealedField(
        name="signature",
        make=_sign_thinking,
        read=_signature_of,
        # pi drops thinking without text; every client returns the ids of calls.
        id_length=512,
        ids_if_hidden=True,
    ),
    normal_request=normal_request,
    normal_response=normal_response,
)
