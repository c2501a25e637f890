"""Request <-> path and body."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any
from urllib.parse import quote, unquote

from interlingua import dialects
from interlingua.dialects.gemini_generate.facts import FACTS, JSON_SCHEMA, NAME, PATH
from interlingua.dialects.gemini_generate.messages import decode_messages, encode_messages
from interlingua.dialects.gemini_generate.names import REQUEST, to_camel
from interlingua.dialects.gemini_generate.tools import decode_tools, encode_tools
from interlingua.prepare.options import AUTO_CACHE, Settings, foreign_options
from interlingua.prepare.prepare import start_encoding
from interlingua.prepare.schema import encode_schema, from_openapi
from interlingua.spec.contracts import NEUTRAL_PROFILE, Prepared, Profile, WireCall
from interlingua.spec.request import Request, ResponseFormat
from interlingua.spec.warnings import WarningList
from interlingua.wire.fields import Fields, extra_of, merge, request_errors

_find_address = re.compile(r"(.*/models/)([^/:]+)(:\w+)").fullmatch
_generate = re.compile(r":(?:g|streamG)enerateContent$")
_SECRETS = ("key=", "access_token=")
_CONFIG = "generationConfig"
_THINKING = "thinkingConfig"
_NUMBERS = {
    "temperature": "temperature",
    "top_p": "topP",
    "presence_penalty": "presencePenalty",
    "frequency_penalty": "frequencyPenalty",
}
_WHOLE_NUMBERS = {
    "top_k": "topK",
    "n": "candidateCount",
    "max_tokens": "maxOutputTokens",
    "seed": "seed",
}
_SETTINGS = _NUMBERS | _WHOLE_NUMBERS
_sayable = Settings(*_SETTINGS)
_unsayable = Settings("verbosity", "user", "metadata")
_JSON = "application/json"
_PLAIN = "text/plain"
_OPENAPI = "responseSchema"
_JSON_SCHEMA = "responseJsonSchema"
_SCHEMA = "~schema"  # our mark in `extra`: the schema as it was in the OpenAPI form
_HIGHEST = "HIGH"
_ABOVE_HIGHEST = ("xhigh", "max")
_UNSAYABLE = ("none", *_ABOVE_HIGHEST)


def encode_request(
    request: Request | Prepared, profile: Profile = NEUTRAL_PROFILE, *, stream: bool = False
) -> WireCall:
    """What a client sends."""
    request, options, warnings = start_encoding(request, profile, FACTS)
    path = _encode_path(str(options.pop("path", PATH)), request.model, stream=stream)
    options.pop(AUTO_CACHE, None)  # prompts are kept here untold
    body: dict[str, Any] = {}
    encode_messages(request, body, warnings)
    encode_tools(request, body, warnings)
    _encode_settings(request, body, warnings)
    return WireCall(
        path=path,
        body=merge(body, options) if options else body,
        stream=stream,
        warnings=(*warnings.warnings, *foreign_options(request, NAME, dialects.names)),
    )


def decode_request(call: WireCall) -> Request:
    """What a server received."""
    with request_errors():
        fields = Fields(to_camel(call.body, REQUEST))
        model, options = _decode_path(call.path)
        settings = _decode_settings(fields)
        tools = decode_tools(fields)
        messages = decode_messages(fields)
        options.update(fields.left)
        return Request(
            model=model,
            messages=messages,
            provider_options={NAME: options} if options else {},
            **settings,
            **tools,
        )


# The path names the model and the method. Another prefix, operation or query is kept as a
# template; whether the method streams is said by `stream` each time.


@lru_cache(maxsize=256)
def _encode_path(template: str, model: str, *, stream: bool) -> str:
    path, _, query = template.partition("?")
    method = ":streamGenerateContent" if stream else ":generateContent"
    generates = _generate.search(path) is not None
    path = _generate.sub(method, path)
    path = path.replace("{model}", quote(model.removeprefix("models/"), safe="@"))
    if stream and generates and "alt=" not in query:
        query = f"{query}&alt=sse" if query else "alt=sse"
    return f"{path}?{query}" if query else path


def _decode_path(given: str) -> tuple[str, dict[str, Any]]:
    path, _, query = given.partition("?")
    kept = [item for item in query.split("&") if item and item != "alt=sse"]
    query = "&".join(item for item in kept if not item.startswith(_SECRETS))
    found = _find_address(path)
    model = unquote(found[2]) if found else ""
    template = f"{found[1]}{{model}}{found[3]}" if found else path
    template = _generate.sub(":generateContent", template)
    if query:
        template = f"{template}?{query}"
    return model, {} if template in ("", PATH) else {"path": template}


# `generationConfig`. What is not read stays where it was.


def _encode_settings(request: Request, body: dict[str, Any], warnings: WarningList) -> None:
    config: dict[str, Any] = {}
    for name, value in _sayable.said(request):
        config[_SETTINGS[name]] = value
    if request.stop_sequences is not None:
        config["stopSequences"] = list(request.stop_sequences)
    if request.response_format is not None:
        _encode_format(request.response_format, config, warnings)
    thinking = _encode_thinking(request, warnings)
    if thinking:
        config[_THINKING] = thinking
    if config:
        body[_CONFIG] = config
    for name, _ in _unsayable.said(request):
        warnings.setting_dropped(name)


def _decode_settings(fields: Fields) -> dict[str, Any]:
    config = fields.fields(_CONFIG)
    if config is None:
        return {}
    was_empty = not config.left
    settings: dict[str, Any] = {ours: config.number(theirs) for ours, theirs in _NUMBERS.items()}
    for ours, theirs in _WHOLE_NUMBERS.items():
        settings[ours] = _decode_whole(config, theirs)
    settings["stop_sequences"] = config.texts("stopSequences")
    settings["response_format"] = _decode_format(config)
    _decode_thinking(config, settings)
    if config.left or was_empty:
        fields.left[_CONFIG] = config.left
    return settings


def _decode_whole(config: Fields, key: str) -> int | None:
    """Some clients write whole numbers as floats; a real fraction is kept as it is."""
    value = config.number(key)
    if isinstance(value, float) and not value.is_integer():
        config.left[key] = value
        return None
    return None if value is None else int(value)


def _encode_format(form: ResponseFormat, config: dict[str, Any], warnings: WarningList) -> None:
    if form.type == "text":
        config["responseMimeType"] = _PLAIN
        return
    config["responseMimeType"] = _JSON
    theirs = extra_of(form, NAME).get(_SCHEMA)
    if theirs is not None and from_openapi(theirs) == form.json_schema:
        config[_OPENAPI] = theirs
    elif form.json_schema is not None:
        config[_JSON_SCHEMA], _ = encode_schema(
            form.json_schema,
            JSON_SCHEMA,
            warnings,
            "response_format.json_schema",
            strict=form.strict,
        )


def _decode_format(config: Fields) -> ResponseFormat | None:
    media_type = config.text("responseMimeType")
    if media_type == _JSON:
        if isinstance(config.left.get(_JSON_SCHEMA), dict):
            return ResponseFormat(type="json_schema", json_schema=config.take(_JSON_SCHEMA))
        if isinstance(config.left.get(_OPENAPI), dict):
            theirs = config.take(_OPENAPI)
            return ResponseFormat(
                type="json_schema",
                json_schema=from_openapi(theirs),
                extra={NAME: {_SCHEMA: theirs}},
            )
        return ResponseFormat(type="json")
    if media_type == _PLAIN:
        return ResponseFormat(type="text")
    if media_type is not None:
        config.left["responseMimeType"] = media_type
    return None


# Thinking. A level and a budget together are refused by the API: the level wins.


def _encode_thinking(request: Request, warnings: WarningList) -> dict[str, Any]:
    effort, budget = request.reasoning_effort, request.thinking_budget
    if effort is None or effort == "none":
        if budget is None and effort == "none":
            budget = 0
        return {} if budget is None else {"thinkingBudget": budget}
    if budget is not None:
        warnings.setting_dropped("thinking_budget", " beside `reasoning_effort`")
    if effort in _ABOVE_HIGHEST:
        sent = repr(_HIGHEST.lower())
        warnings.add("effort_lowered", "reasoning_effort", effort=effort, sent=sent)
        return {"thinkingLevel": _HIGHEST}
    return {"thinkingLevel": effort.upper()}


def _decode_thinking(config: Fields, settings: dict[str, Any]) -> None:
    thinking = config.fields(_THINKING)
    if thinking is None:
        return
    was_empty = not thinking.left
    level = thinking.left.get("thinkingLevel")
    if isinstance(level, str) and level.isalpha() and level.lower() not in _UNSAYABLE:
        settings["reasoning_effort"] = level.lower()
        if level.isupper():  # else the exact word stays
            thinking.take("thinkingLevel")
    else:
        settings["thinking_budget"] = thinking.integer("thinkingBudget")
    if thinking.left or was_empty:
        config.left[_THINKING] = thinking.left
