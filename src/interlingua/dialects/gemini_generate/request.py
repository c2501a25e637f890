"""Request <-> path and body."""

from __future__ import annotations

import re
from functools import lru_cache
from urllib.parse import quote, unquote

from interlingua import dialects
from interlingua.dialects.gemini_generate.facts import (
    FACTS,
    JSON_SCHEMA,
    NAME,
    PATH,
    REQUEST,
    SCHEMA,
    to_camel,
)
from interlingua.dialects.gemini_generate.messages import decode_messages, encode_messages
from interlingua.dialects.gemini_generate.tools import decode_tools, encode_tools
from interlingua.prepare.options import AUTO_CACHE, Settings, foreign_options, merge_options
from interlingua.prepare.prepare import start_encoding
from interlingua.prepare.schema import encode_schema, from_openapi
from interlingua.spec.content import UncheckedJson
from interlingua.spec.contracts import NEUTRAL_PROFILE, Prepared, Profile, WireCall
from interlingua.spec.request import Request, ResponseFormat
from interlingua.spec.warnings import WarningList
from interlingua.wire.fields import Fields, extra_of, request_errors

_match_path = re.compile(r"(.*/models/)([^/:]+)(:\w+)").fullmatch
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
_INTEGERS = {
    "top_k": "topK",
    "max_tokens": "maxOutputTokens",
    "seed": "seed",
}
_SETTINGS = _NUMBERS | _INTEGERS
_supported = Settings(*_SETTINGS)
_unsupported = Settings("verbosity", "user", "metadata")
_JSON = "application/json"
_PLAIN = "text/plain"
_OPENAPI = "responseSchema"
_JSON_SCHEMA = "responseJsonSchema"
_HIGHEST = "HIGH"
_ABOVE_HIGHEST = ("xhigh", "max")
_WITH_LOGPROBS, _LOGPROBS = "responseLogprobs", "logprobs"


def encode_request(
    request: Request | Prepared, profile: Profile = NEUTRAL_PROFILE, *, stream: bool = False
) -> WireCall:
    """What a client sends."""
    request, options, warnings = start_encoding(request, profile, FACTS)
    path = _encode_path(str(options.pop("path", PATH)), request.model, stream=stream)
    options.pop(AUTO_CACHE, None)  # the vendor caches prompts by default
    body: dict[str, UncheckedJson] = {}
    encode_messages(request, body, warnings)
    encode_tools(request, body, warnings)
    _encode_settings(request, body, warnings)
    return WireCall(
        path=path,
        body=merge_options(body, options) if options else body,
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


# The path holds the model and the method. A path with another prefix, operation or query is
# kept as a template; `stream` chooses the method, so the template does not.


@lru_cache(maxsize=256)
def _encode_path(template: str, model: str, *, stream: bool) -> str:
    path, _, query = template.partition("?")
    method = ":streamGenerateContent" if stream else ":generateContent"
    path, generates = _generate.subn(method, path)
    path = path.replace("{model}", quote(model.removeprefix("models/"), "@", errors="replace"))
    if stream and generates and "alt=" not in query:
        query = f"{query}&alt=sse" if query else "alt=sse"
    return f"{path}?{query}" if query else path


def _decode_path(path: str) -> tuple[str, dict[str, UncheckedJson]]:
    path, _, query = path.partition("?")
    items = [item for item in query.split("&") if item and item != "alt=sse"]
    query = "&".join(item for item in items if not item.startswith(_SECRETS))
    match = _match_path(path)
    model = unquote(match[2]) if match else ""
    template = f"{match[1]}{{model}}{match[3]}" if match else path
    template = _generate.sub(":generateContent", template)
    if query:
        template = f"{template}?{query}"
    return model, {} if template in ("", PATH) else {"path": template}


# `generationConfig`. Unread fields stay where they were.


def _encode_settings(
    request: Request, body: dict[str, UncheckedJson], warnings: WarningList
) -> None:
    config: dict[str, UncheckedJson] = {}
    for name, value in _supported.said(request):
        config[_SETTINGS[name]] = value
    if request.stop_sequences is not None:
        config["stopSequences"] = list(request.stop_sequences)
    if request.response_format is not None:
        _encode_format(request.response_format, config, warnings)
    if request.logprobs is not None:
        config[_WITH_LOGPROBS] = True
        if request.logprobs:
            config[_LOGPROBS] = request.logprobs
    thinking = _encode_thinking(request, warnings)
    if request.include_thinking is not None:
        thinking["includeThoughts"] = request.include_thinking
    if thinking:
        config[_THINKING] = thinking
    if config:
        body[_CONFIG] = config
    for name, _ in _unsupported.said(request):
        warnings.setting_dropped(name)


def _decode_settings(fields: Fields) -> dict[str, UncheckedJson]:
    config = fields.fields(_CONFIG)
    if config is None:
        return {}
    was_empty = not config.left
    settings: dict[str, UncheckedJson] = {
        name: config.number(key) for name, key in _NUMBERS.items()
    }
    for name, key in _INTEGERS.items():
        settings[name] = _decode_integer(config, key)
    settings["stop_sequences"] = config.texts("stopSequences")
    settings["response_format"] = _decode_format(config)
    settings["logprobs"] = _decode_logprobs(config)
    _decode_thinking(config, settings)
    if config.left or was_empty:
        fields.left[_CONFIG] = config.left
    return settings


def _decode_integer(config: Fields, key: str) -> int | None:
    """An integer, which some clients write as a float; a fraction stays unread."""
    value = config.number(key)
    if isinstance(value, float) and not value.is_integer():
        config.left[key] = value
        return None
    return None if value is None else int(value)


def _decode_logprobs(config: Fields) -> int | None:
    """The number of alternatives; other values, such as an explicit 0, stay unread."""
    if config.left.get(_WITH_LOGPROBS) is not True:
        return None
    config.take(_WITH_LOGPROBS)
    return _decode_integer(config, _LOGPROBS) if config.left.get(_LOGPROBS) else 0


def _encode_format(
    form: ResponseFormat, config: dict[str, UncheckedJson], warnings: WarningList
) -> None:
    if form.type == "text":
        config["responseMimeType"] = _PLAIN
        return
    config["responseMimeType"] = _JSON
    openapi = extra_of(form, NAME).get(SCHEMA)
    if openapi is not None and from_openapi(openapi) == form.json_schema:
        config[_OPENAPI] = openapi
    elif form.json_schema is not None:
        path = "response_format.json_schema"
        config[_JSON_SCHEMA], _ = encode_schema(
            form.json_schema, JSON_SCHEMA, warnings, path, strict=form.strict
        )


def _decode_format(config: Fields) -> ResponseFormat | None:
    media_type = config.text("responseMimeType")
    if media_type == _JSON:
        if isinstance(config.left.get(_JSON_SCHEMA), dict):
            return ResponseFormat(type="json_schema", json_schema=config.take(_JSON_SCHEMA))
        if isinstance(config.left.get(_OPENAPI), dict):
            openapi = config.take(_OPENAPI)
            extra = {NAME: {SCHEMA: openapi}}
            schema = from_openapi(openapi)
            return ResponseFormat(type="json_schema", json_schema=schema, extra=extra)
        return ResponseFormat(type="json")
    if media_type == _PLAIN:
        return ResponseFormat(type="text")
    if media_type is not None:
        config.left["responseMimeType"] = media_type
    return None


# Thinking. The API rejects a level together with a budget: the level wins.


def _encode_thinking(request: Request, warnings: WarningList) -> dict[str, UncheckedJson]:
    effort, budget = request.reasoning_effort, request.thinking_budget
    if budget is None and effort == "none":
        budget = 0
    if effort is None or effort == "none":
        return {} if budget is None else {"thinkingBudget": budget}
    if budget is not None:
        warnings.setting_dropped("thinking_budget", " beside `reasoning_effort`")
    if effort in _ABOVE_HIGHEST:
        sent = repr(_HIGHEST.lower())
        warnings.add("effort_lowered", "reasoning_effort", effort=effort, sent=sent)
        return {"thinkingLevel": _HIGHEST}
    return {"thinkingLevel": effort.upper()}


def _decode_thinking(config: Fields, settings: dict[str, UncheckedJson]) -> None:
    thinking = config.fields(_THINKING)
    if thinking is None:
        return
    was_empty = not thinking.left
    settings["include_thinking"] = thinking.flag("includeThoughts")
    level = thinking.left.get("thinkingLevel")
    word = level if isinstance(level, str) and level.isalpha() else "none"
    if word.lower() not in ("none", *_ABOVE_HIGHEST):
        settings["reasoning_effort"] = word.lower()
        if word.isupper():  # otherwise the exact spelling stays unread
            thinking.take("thinkingLevel")
    else:
        settings["thinking_budget"] = thinking.integer("thinkingBudget")
    if thinking.left or was_empty:
        config.left[_THINKING] = thinking.left
