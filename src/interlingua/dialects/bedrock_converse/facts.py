"""
The facts of Bedrock's Converse, each with its reason.

API reference: https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html.
Names such as `ToolUseBlock` are shapes of the service model of `bedrock-runtime`, which botocore
has; texts in «» are of its documentation, or error messages of the API as people report them. No
recording of the API was at hand: the messages, the keywords of strict schemas and what single
families take beside the common fields are unverified.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from interlingua.prepare.cache import AFTER_SYSTEM, MODEL, TOOLS
from interlingua.prepare.schema.keywords import DATES, DYNAMIC, SILENT, words
from interlingua.spec.content import Extra, Json, Part, Thinking, UncheckedJson
from interlingua.spec.errors import DecodeError
from interlingua.spec.facts import (
    CacheRules,
    CacheStep,
    Carrier,
    Facts,
    HistoryRules,
    SchemaRules,
    SealedField,
)
from interlingua.wire.json_text import loads

NAME = "bedrock_converse"
PATH = "/model/{model}/converse"
STREAM = "-stream"
"""What the path of a stream has at its end."""
COUNT = "/model/{model}/count-tokens"
POINT = "cachePoint"
MARK = "~cache_point"
"""Our own key in `extra`: a cache point follows this block."""
BESIDE = "~beside"
"""Our own key in `extra`: unknown fields beside the one field of a union."""
MODEL_FIELDS = "additionalModelRequestFields"


class ConverseQuirks(msgspec.Struct, frozen=True, kw_only=True):
    """How the models behind Converse differ in what they take beside the common fields."""

    top_k_field: str = "top_k"
    """The field of `additionalModelRequestFields` for `top_k`, a dot inside; empty if none."""
    effort_field: Literal["", "reasoningConfig", "reasoning_effort"] = ""
    """The field of `additionalModelRequestFields` for an effort; empty for `outputConfig`."""
    cached_tools: bool = True
    """A cache point may follow the tools."""


def extra_for(unread: dict[Any, Any]) -> Extra:
    """The fields of an object that were not read, as the `extra` of what was decoded from it."""
    return {NAME: unread} if unread else {}


# The normal form: two bodies with the same meaning have the same one.


def normal_request(body: UncheckedJson) -> Json:
    """The schema of a format is JSON text, in which spaces and the order of keys do not count."""
    match body:
        case {
            "outputConfig": {
                "textFormat": {"structure": {"jsonSchema": {"schema": str(text)} as definition}}
            }
        }:
            try:
                schema = loads(text)
            except DecodeError:
                return body  # type: ignore[no-any-return]
            config = body["outputConfig"]
            form = config["textFormat"]
            structure = {**form["structure"], "jsonSchema": {**definition, "schema": schema}}
            form = {**form, "structure": structure}
            return {**body, "outputConfig": {**config, "textFormat": form}}
    return body  # type: ignore[no-any-return]


def _sign_thinking(carrier: Carrier) -> Thinking:
    return Thinking(text=carrier.text, signature=carrier.value, extra={NAME: {}})


def _signature_of(part: Part) -> tuple[str, ...]:
    return (part.signature,) if isinstance(part, Thinking) and part.signature else ()


HISTORY = HistoryRules(
    dialect=NAME,
    # tool calls
    tool_types=("function",),  # `ToolSpecification` requires `inputSchema`
    namespaces=False,  # `ToolSpecification` has no namespace
    paired_calls=True,  # «Expected toolResult blocks at messages.2.content for the following Ids»
    # «The toolConfig field must be defined when using toolUse and toolResult content blocks.»
    undeclared_calls=False,
    call_id=r"[a-zA-Z0-9_.:-]{1,64}",  # `ToolUseId`
    call_name=r"[a-zA-Z0-9_-]{1,64}",  # `ToolName`
    unique_call_ids="turn",  # «contains duplicate Ids»
    valid_arguments=True,  # `ToolUseBlock.input` is a document, and models take an object
    # results
    results="next",  # results are in the user message right after the tool calls
    results_first=True,  # the models of Anthropic refuse text before a result
    gather_results=True,  # «The number of toolResult blocks … exceeds … of previous turn»
    results_as_user=True,  # `ConversationRole` has no role for results
    # messages and parts
    merge_roles=True,  # «A conversation must alternate between user and assistant roles.»
    user_first=True,  # «A conversation must start with a user message.»
    empty_text=False,  # «The text field in the ContentBlock object … is blank.»
    blank_prompts=False,  # `SystemContentBlock.text` has at least one character
    empty_prompt=False,
    least="turn",  # «A conversation must start with a user message.»
    empty_messages=False,  # «The content field in the Message object … is empty.»
    lone_surrogates=False,  # the body is JSON in UTF-8
    # «If you include a ContentBlock with a document field in the array, you must also include a
    # ContentBlock with a text field» (`Message.content`)
    lone_documents=False,
    foreign_blocks=False,  # `ContentBlock` is a closed union
    # `ImageSource`, `AudioSource`, `VideoSource` and `DocumentSource` have bytes or a place in S3,
    # which is our `file_id`; none has a URL.
    media={
        "image": ("data", "file_id"),
        "audio": ("data", "file_id"),
        "document": ("data", "file_id", "text"),
    },
    media_roles=("user", "tool"),  # «You can only include images and documents if the role is user»
    # thinking
    thinking="native",  # «include the text and its signature unmodified» (`ReasoningTextBlock`)
    unmarked_thinking=("signed", "redacted"),  # what was not signed has no signature to check
    trailing_thinking=False,  # the models of Anthropic refuse it, see their own dialect
)

STRICT_SCHEMA = SchemaRules(
    name="Bedrock strict",
    strict=True,  # `additionalProperties` must be false
    max_min_items=1,
    # https://docs.aws.amazon.com/bedrock/latest/userguide/structured-output.html
    keywords=words(
        "type description title properties required additionalProperties items anyOf allOf "
        "enum const $defs $ref format minItems $schema default definitions"
    ),
    pointed=frozenset({"$defs", "definitions"}),
    silent=SILENT | {"$anchor"},
    blocking=DYNAMIC | {"patternProperties", "unevaluatedProperties"},
    formats=DATES | {"email", "hostname", "uri", "ipv4", "ipv6", "uuid"},
)
"""Tools with `strict: true`, and `outputConfig.textFormat`, which is always strict."""

# https://docs.aws.amazon.com/bedrock/latest/userguide/prompt-caching.html: tools, system and
# messages are cached in this order.
CACHE = CacheRules(
    mark=POINT,
    carried_mark=MARK,  # a block of its own, which is read into the part before it
    order=(
        MODEL,
        CacheStep(fields=("toolConfig.tools",), code=TOOLS.code, cost=TOOLS.cost),
        CacheStep(fields=("system",), code="system_changed", cost=AFTER_SYSTEM),
        CacheStep(
            fields=("toolConfig.toolChoice",),
            code="tool_choice_changed",
            cost=AFTER_SYSTEM,
            default={"auto": {}},
        ),
        CacheStep(fields=(f"{MODEL_FIELDS}.thinking",), code="thinking_changed", cost=AFTER_SYSTEM),
    ),
)

# The fields of `ConverseStreamRequest`; `path` is ours.
OPTIONS = words(
    "path messages system inferenceConfig toolConfig guardrailConfig promptVariables "
    "additionalModelRequestFields additionalModelResponseFieldPaths requestMetadata "
    "performanceConfig serviceTier outputConfig"
)

FACTS = Facts(
    name=NAME,
    paths=("/converse", "/converse-stream"),
    history=HISTORY,
    options=OPTIONS,
    schema=STRICT_SCHEMA,
    json_mode=False,  # `OutputFormatType` has only `json_schema`
    only_strict_formats=True,  # it has no flag: every format is enforced
    cache=CACHE,
    framings=("aws-event-stream",),  # `ConverseStreamOutput` is an event stream
    names_model=False,  # `ConverseResponse` has neither a model nor an id
    quirks=ConverseQuirks,
    # Clients return reasoning with its signature unmodified (`ReasoningTextBlock.signature`).
    sealed_field=SealedField(name="signature", make=_sign_thinking, read=_signature_of),
    normal_request=normal_request,
)
