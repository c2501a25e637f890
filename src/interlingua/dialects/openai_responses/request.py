"""Request <-> body."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from interlingua import dialects
from interlingua.dialects.openai_responses.facts import CACHE, FACTS, NAME, PATH, extra_for
from interlingua.dialects.openai_responses.messages import (
    decode_messages,
    encode_messages,
    is_instructions,
)
from interlingua.dialects.openai_shared.rules import STRICT_SCHEMA
from interlingua.prepare.cache import add_cache_key
from interlingua.prepare.options import AUTO_CACHE, Settings, foreign_options, merge_options
from interlingua.prepare.prepare import start_encoding
from interlingua.spec.content import Json
from interlingua.spec.contracts import NEUTRAL_PROFILE, Prepared, Profile, WireCall
from interlingua.spec.request import Request, ResponseFormat
from interlingua.spec.warnings import WarningList
from interlingua.wire.fields import Fields, extra_of, request_errors, wrong_type

# Our name: the API's name, and the reader of the field.
_SETTINGS: dict[str, tuple[str, Callable[[Fields, str], Json]]] = {
    "max_tokens": ("max_output_tokens", Fields.integer),
    "temperature": ("temperature", Fields.number),
    "top_p": ("top_p", Fields.number),
    "metadata": ("metadata", Fields.object),
    "user": ("user", Fields.text),
}
_supported = Settings(*_SETTINGS)
# `ResponseCreateParams` has none of these, although responses echo the penalties (recorded).
_unsupported = Settings(
    "stop_sequences", "seed", "frequency_penalty", "presence_penalty", "top_k", "thinking_budget"
)
# A stored response can be referred to, and a background response is fetched later by its id:
# https://developers.openai.com/api/docs/guides/background
_NEED_STORE = ("previous_response_id", "conversation", "background")
# The SDK's docstring says that it comes by default; other servers may send it only when asked.
_ENCRYPTED = "reasoning.encrypted_content"
_INCLUDE, _TOP_LOGPROBS = "include", "top_logprobs"
_LOGPROBS = "message.output_text.logprobs"


def encode_request(
    request: Request | Prepared, profile: Profile = NEUTRAL_PROFILE, *, stream: bool = False
) -> WireCall:
    """The call that a client sends."""
    request, options, warnings = start_encoding(request, profile, FACTS)
    path = str(options.pop("path", PATH))
    keyed = options.pop(AUTO_CACHE, None) is not False and path == PATH
    body: dict[str, Json] = {"model": request.model} if request.model else {}
    encode_messages(request, body, warnings)
    if not body["input"] and "prompt" in options:
        del body["input"]  # the stored prompt is the whole input
    if request.tools or request.tool_choice or request.parallel_tool_calls is not None:
        from interlingua.dialects.openai_responses.tools import encode_tools

        encode_tools(request, body, warnings)
    _encode_settings(request, body, warnings)
    if request.logprobs is not None:
        _ask_for_logprobs(request.logprobs, body, options)
    if stream:
        body["stream"] = True
    if profile.stateless and path == PATH:
        _ask_not_to_store(body, options, profile)
    body = merge_options(body, options) if options else body
    return WireCall(
        path=path,
        body=add_cache_key(body, request, CACHE, profile) if keyed else body,
        stream=stream,
        warnings=(*warnings.warnings, *foreign_options(request, NAME, dialects.names)),
    )


def _ask_for_logprobs(alternatives: int, body: dict[str, Json], options: dict[str, Json]) -> None:
    if alternatives:
        body[_TOP_LOGPROBS] = alternatives
    asked = options.get(_INCLUDE) or []
    if isinstance(asked, list) and _LOGPROBS not in asked:
        options[_INCLUDE] = [*asked, _LOGPROBS]


def _decode_logprobs(fields: Fields) -> int | None:
    """The number of alternatives; what else is included stays unread, with the word for them."""
    included = fields.left.get(_INCLUDE)
    if not isinstance(included, list) or _LOGPROBS not in included:
        return None
    if included == [_LOGPROBS]:
        fields.take(_INCLUDE)
    return fields.integer(_TOP_LOGPROBS) if fields.left.get(_TOP_LOGPROBS) else 0


def _ask_not_to_store(body: dict[str, Json], options: dict[str, Json], profile: Profile) -> None:
    """
    Ask for an answer that is not stored, unless the caller stores it or refers to a stored one.

    Then the encrypted thinking comes with the answer, and the history can be sent to any server.
    """
    store = options.get("store")
    if store is None and not (options and any(map(options.get, _NEED_STORE))):
        options.pop("store", None)
        body["store"] = False  # «Defaults to true when omitted» (the SDK)
    elif store is not False:
        return
    # Models that do not think reject it: «Encrypted content is not supported with this model».
    asked = options.get(_INCLUDE)
    if profile.thinking is False or (asked and not isinstance(asked, list)):
        return
    options.pop(_INCLUDE, None)
    asked = asked if isinstance(asked, list) else []
    body[_INCLUDE] = [*dict.fromkeys((*asked, _ENCRYPTED))]


# The fields of `ResponseCreateParams` that the SDK's `Response` has too; LangChain reads the format
# of a structured answer from them.
_REPEATED = (
    *("background", "conversation", "instructions", "max_output_tokens", "max_tool_calls"),
    *("metadata", "parallel_tool_calls", "previous_response_id", "prompt_cache_key"),
    *("prompt_cache_retention", "reasoning", "safety_identifier", "service_tier", "store"),
    *("temperature", "text", "tool_choice", "tools", "top_logprobs", "top_p", "truncation", "user"),
)


def repeated_fields(request: Request) -> dict[str, Json]:
    """The fields of a request that its response repeats."""
    from interlingua.dialects.openai_responses.tools import encode_tools

    body: dict[str, Json] = {}
    warnings = WarningList()
    if request.messages and is_instructions(request.messages[0]):
        body["instructions"] = request.messages[0].text
    encode_tools(request, body, warnings)
    _encode_settings(request, body, warnings)
    body = merge_options(body, dict(request.provider_options.get(NAME, {})))
    return {name: body[name] for name in _REPEATED if body.get(name) is not None}


def decode_request(call: WireCall) -> Request:
    """The request that a server received."""
    from interlingua.dialects.openai_responses.tools import decode_tools, found_tools

    with request_errors():
        fields = Fields(call.body)
        fields.take("stream")
        model = fields.text("model")
        settings = {**_decode_settings(fields), **decode_tools(fields)}
        messages = decode_messages(fields)
        tools = settings.get("tools", ())
        if found := found_tools(messages, tools):
            settings["tools"] = (*tools, *found)
        options = {**_decode_path(call.path), **fields.left}
        return Request(
            model=model or "",
            messages=messages,
            provider_options={NAME: options} if options else {},
            **settings,
        )


def _decode_path(path: str) -> dict[str, Json]:
    """The path as an option if another operation (count, compact, cancel) follows the endpoint."""
    _, endpoint, operation = path.partition("?")[0].rstrip("/").rpartition("/responses")
    return {"path": PATH + operation} if endpoint and operation else {}


def _encode_settings(request: Request, body: dict[str, Json], warnings: WarningList) -> None:
    for name, value in _supported.values_in(request):
        body[_SETTINGS[name][0]] = value
    reasoning: dict[str, Json] = {}
    if request.reasoning_effort is not None:
        reasoning["effort"] = request.reasoning_effort
    # The thoughts themselves are never sent, only a summary, and only when asked:
    # https://developers.openai.com/api/docs/guides/reasoning
    if request.include_thinking:
        reasoning["summary"] = "auto"
    elif request.include_thinking is not None:
        warnings.setting_implied("include_thinking")
    if reasoning:
        body["reasoning"] = reasoning
    text: dict[str, Json] = {}
    if request.response_format is not None:
        text["format"] = _encode_format(request.response_format, warnings)
    if request.verbosity is not None:
        text["verbosity"] = request.verbosity
    if text:
        body["text"] = text
    for name, _ in _unsupported.values_in(request):
        warnings.setting_dropped(name)


def _encode_format(form: ResponseFormat, warnings: WarningList) -> dict[str, Json]:
    wire: dict[str, Json] = {"type": "json_object" if form.type == "json" else form.type}
    if form.type == "json_schema":
        from interlingua.prepare.schema.narrow import encode_schema

        # Required in the SDK's `ResponseFormatTextJSONSchemaConfigParam`.
        wire["name"] = form.name or "response"
        schema = {} if form.json_schema is None else form.json_schema
        wire["schema"], strict = encode_schema(
            schema, STRICT_SCHEMA, warnings, "response_format.json_schema", strict=form.strict
        )
        if strict is not None:
            wire["strict"] = strict
        if form.description is not None:
            wire["description"] = form.description
    return {**extra_of(form, NAME), **wire}


def _decode_settings(fields: Fields) -> dict[str, Any]:
    settings: dict[str, Any] = {
        name: read(fields, wire_name) for name, (wire_name, read) in _SETTINGS.items()
    }
    settings["logprobs"] = _decode_logprobs(fields)
    text = fields.fields("text")
    if text is not None:
        verbosity, form = text.text("verbosity"), _decode_format(text)
        settings |= {"verbosity": verbosity, "response_format": form}
        if text.left or not (verbosity or form):  # an empty object is kept too
            fields.left["text"] = text.left
    reasoning = fields.fields("reasoning")
    if reasoning is not None:
        effort = settings["reasoning_effort"] = reasoning.text("effort")
        summary = reasoning.left.get("summary")
        if isinstance(summary, str):  # `concise` and `detailed` ask too, and stay unread
            settings["include_thinking"] = True
        if summary == "auto":
            reasoning.take("summary")
        if reasoning.left or not (effort or summary):
            fields.left["reasoning"] = reasoning.left
    return settings


def _decode_format(fields: Fields) -> ResponseFormat | None:
    """The format; one without a canonical form is left in `fields`."""
    wire = fields.left.get("format")
    if wire is not None and not isinstance(wire, dict):
        raise wrong_type(fields.at("format"), "an object", wire)
    match wire:
        case {"type": "json_schema", "name": str(), "schema": dict()}:
            inner = Fields(fields.take("format"), fields.at("format"))
            inner.take("type")
            return ResponseFormat(
                type="json_schema",
                name=inner.text("name"),
                json_schema=inner.object("schema"),
                strict=inner.flag("strict"),
                description=inner.text("description"),
                extra=extra_for(inner.left),
            )
        case {"type": "text" | "json_object" as kind, **rest}:
            fields.take("format")
            extra = {NAME: rest} if rest else {}
            return ResponseFormat(type="text" if kind == "text" else "json", extra=extra)
    return None
