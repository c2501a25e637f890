"""Request <-> body."""

from __future__ import annotations

import re
from copy import deepcopy
from typing import Any
from urllib.parse import quote, unquote

from interlingua import dialects
from interlingua.dialects.openai_chat.facts import (
    CACHE,
    FACTS,
    NAME,
    PATH,
    WITHOUT,
    ChatQuirks,
    absent,
    complete,
    extra_for,
    mark_of,
    quirks_of,
)
from interlingua.dialects.openai_chat.messages import decode_messages, encode_messages
from interlingua.dialects.openai_shared.rules import STRICT_SCHEMA, without_none
from interlingua.prepare.cache import add_cache_key
from interlingua.prepare.options import AUTO_CACHE, Settings, foreign_options, merge_options
from interlingua.prepare.prepare import start_encoding
from interlingua.spec.content import Json
from interlingua.spec.contracts import NEUTRAL_PROFILE, Prepared, Profile, WireCall
from interlingua.spec.request import FormatType, Request, ResponseFormat
from interlingua.spec.warnings import WarningList
from interlingua.wire.fields import Fields, request_errors, wrong_type

# Azure's older addresses name the model, as a deployment, in the path and not in the body:
# https://learn.microsoft.com/azure/ai-services/openai/reference
_MODEL_IN_PATH = re.compile(r"(?<=/deployments/)[^/?]+(?=/)")
_FIELD_NAMES = "field_names"  # an option beside the body's fields: the names in `_RENAMED`
_NUMBERS = ("temperature", "top_p", "frequency_penalty", "presence_penalty")
_TEXTS = ("verbosity", "user")
_LOGPROBS, _TOP = "logprobs", "top_logprobs"
_RENAMED = (  # our name, OpenAI's, and that of other servers
    ("max_tokens", "max_completion_tokens", "max_tokens"),
    ("seed", "seed", "random_seed"),
    ("top_k", "", "top_k"),
)
_same_names = Settings(*_NUMBERS, *_TEXTS)
_other_names = Settings("max_tokens", "seed", "top_k")


def encode_request(
    request: Request | Prepared, profile: Profile = NEUTRAL_PROFILE, *, stream: bool = False
) -> WireCall:
    """The call that a client sends."""
    quirks = quirks_of(profile)
    request, options, warnings = start_encoding(request, profile, FACTS)
    path = str(options.pop("path", PATH))
    has_cache_key = options.pop(AUTO_CACHE, None) is not False
    field_names = options.pop(_FIELD_NAMES, None)
    body: dict[str, Json] = {}
    if "{model}" in path:
        path = path.replace("{model}", quote(request.model, "", errors="replace"))
    elif request.model:
        body["model"] = request.model
    body["messages"] = encode_messages(request.messages, quirks, warnings)
    if request.tools or request.tool_choice or request.parallel_tool_calls is not None:
        from interlingua.dialects.openai_chat.tools import encode_tools

        encode_tools(request, body, quirks, warnings)
    _encode_renamed(request, body, quirks, field_names, warnings)
    _encode_settings(request, body, quirks, warnings)
    if request.include_thinking is not None:
        # No field for it is common to the servers: those that can show thinking do so.
        is_done = request.include_thinking and profile.thinking_shown != "never"
        warn = warnings.setting_implied if is_done else warnings.setting_dropped
        warn("include_thinking")
    if request.logprobs is not None:
        body |= _encode_logprobs(request.logprobs, quirks)
    if stream:
        body["stream"] = True
        if quirks.stream_usage:
            body["stream_options"] = {"include_usage": True}
    body = merge_options(body, options) if options else body
    return WireCall(
        path=path,
        body=add_cache_key(body, request, CACHE, profile) if has_cache_key else body,
        stream=stream,
        warnings=(*warnings.warnings, *foreign_options(request, NAME, dialects.names)),
    )


def decode_request(call: WireCall) -> Request:
    """The request that a server received."""
    from interlingua.dialects.openai_chat.tools import decode_tools

    with request_errors():
        fields = Fields(call.body)
        fields.flag("stream")
        fields.take("stream")  # null
        model = fields.text("model")
        options: dict[str, Json] = {}
        deployment = _MODEL_IN_PATH.search(call.path) if model is None else None
        if deployment is not None:
            model = unquote(deployment.group())
            options["path"] = _MODEL_IN_PATH.sub("{model}", call.path)
        settings = _decode_settings(fields, options)
        tools = decode_tools(fields)
        items = fields.array("messages")
        if items is None:
            raise wrong_type("messages", "an array", None)
        messages = decode_messages(items)
        options.update(fields.left)
        return Request(
            model=model or "",
            messages=messages,
            provider_options={NAME: options} if options else {},
            **settings,
            **tools,
        )


def _encode_settings(
    request: Request, body: dict[str, Json], quirks: ChatQuirks, warnings: WarningList
) -> None:
    body |= _same_names.values_in(request)
    if request.stop_sequences is not None:
        body["stop"] = list(request.stop_sequences)
    if request.metadata is not None:
        body["metadata"] = dict(request.metadata)
    if request.response_format is not None:
        body["response_format"] = _encode_format(request.response_format, quirks, warnings)
    effort, budget = request.reasoning_effort, request.thinking_budget
    if quirks.reasoning_object:
        reasoning = without_none(effort=effort, max_tokens=budget)
        if reasoning:
            body["reasoning"] = reasoning
        return
    if effort == "none" and quirks.thinking_off:
        body |= deepcopy(dict(quirks.thinking_off))  # the provider's row must not be changed
    elif effort is not None:
        body["reasoning_effort"] = effort
    if budget is not None:
        warnings.setting_dropped("thinking_budget")


def _encode_logprobs(alternatives: int, quirks: ChatQuirks) -> dict[str, Json]:
    if quirks.logprobs_number:
        return {_LOGPROBS: max(1, alternatives)}  # 0 would mean none at all
    return {_LOGPROBS: True, _TOP: alternatives} if alternatives else {_LOGPROBS: True}


def _decode_logprobs(fields: Fields) -> int | None:
    """The number of alternatives; other values, such as an explicit 0, stay unread."""
    if fields.left.get(_LOGPROBS) is not True:
        return None
    fields.take(_LOGPROBS)
    return fields.integer(_TOP) if fields.left.get(_TOP) else 0


def _encode_renamed(
    request: Request,
    body: dict[str, Json],
    quirks: ChatQuirks,
    field_names: Json,
    warnings: WarningList,
) -> None:
    """Write the settings whose field has different names at different servers."""
    settings = _other_names.values_in(request)
    if not settings:
        return
    top_k = "top_k" if quirks.top_k else ""
    names = {"max_tokens": quirks.max_tokens_field, "seed": quirks.seed_field, "top_k": top_k}
    if isinstance(field_names, dict):
        names |= field_names
    for name, value in settings:
        if names[name]:
            body[names[name]] = value
        else:
            warnings.setting_dropped(name)


def _encode_format(
    form: ResponseFormat, quirks: ChatQuirks, warnings: WarningList
) -> dict[str, Json]:
    if form.type != "json_schema":
        return complete({"type": "json_object" if form.type == "json" else "text"}, form)
    schema, strict = form.json_schema, form.strict
    if schema is not None:
        from interlingua.prepare.schema.narrow import encode_schema

        checked = None if quirks.any_schema else strict
        schema, sent = encode_schema(
            schema, STRICT_SCHEMA, warnings, "response_format.json_schema", strict=checked
        )
        strict = strict if quirks.any_schema else sent
    inner = without_none(name=form.name, description=form.description, schema=schema, strict=strict)
    wire = complete({"type": "json_schema", "json_schema": inner}, form)
    written = wire["json_schema"]
    if isinstance(written, dict) and not mark_of(form, WITHOUT):
        written.setdefault("name", "response")  # required by the SDK's `JSONSchema`
    return wire


def _decode_settings(fields: Fields, options: dict[str, Json]) -> dict[str, Any]:
    settings: dict[str, Any] = {name: fields.number(name) for name in _NUMBERS}
    settings |= {name: fields.text(name) for name in _TEXTS}
    settings["metadata"] = fields.object("metadata")
    settings["logprobs"] = _decode_logprobs(fields)
    # Fireworks takes a number (a budget) and a boolean too; they stay options.
    if isinstance(fields.left.get("reasoning_effort"), str):
        settings["reasoning_effort"] = fields.take("reasoning_effort")
    if isinstance(fields.left.get("stop"), str):
        settings["stop_sequences"] = (fields.take("stop"),)
    else:
        settings["stop_sequences"] = fields.texts("stop")
    settings["response_format"] = _decode_format(fields)
    field_names: dict[str, Json] = {}
    for name, usual, other in _RENAMED:
        settings[name] = fields.integer(usual)
        if settings[name] is None:
            settings[name] = fields.integer(other)
            field_names |= {} if settings[name] is None else {name: other}
    if field_names:
        options[_FIELD_NAMES] = field_names
    return settings


def _decode_format(fields: Fields) -> ResponseFormat | None:
    wire = fields.left.get("response_format")
    outer = fields.fields("response_format")
    if outer is None:
        return None
    kind = outer.take("type")
    if kind in ("text", "json_object"):
        form: FormatType = "json" if kind == "json_object" else "text"
        return ResponseFormat(type=form, extra=extra_for(outer.left))
    inner = outer.fields("json_schema") if kind == "json_schema" else None
    if inner is None:  # a server's own form, carried verbatim
        fields.left["response_format"] = wire
        return None
    missing = absent(inner.left, "name", inside="json_schema")
    return ResponseFormat(
        type="json_schema",
        name=inner.text("name"),
        description=inner.text("description"),
        strict=inner.flag("strict"),
        json_schema=inner.object("schema"),
        extra=extra_for(outer.left, missing, json_schema=inner.left),
    )
