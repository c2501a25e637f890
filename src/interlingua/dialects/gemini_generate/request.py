"""Request <-> path and body."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any
from urllib.parse import quote, unquote

from interlingua import dialects
from interlingua.dialects.gemini_generate.content import decode_part, encode_part
from interlingua.dialects.gemini_generate.facts import (
    FACTS,
    JSON_SCHEMA,
    MODEL_PATH,
    NAME,
    PATH,
    REQUEST,
    SCHEMA,
    extra_for,
    mark_absent,
    take_absent,
    to_camel,
)
from interlingua.dialects.gemini_generate.tool_calls import Links, request_links
from interlingua.prepare.options import AUTO_CACHE, Settings, foreign_options, merge_options
from interlingua.prepare.prepare import start_encoding
from interlingua.spec.content import Json, Opaque, Part, Text, ToolCall, ToolResult, UncheckedJson
from interlingua.spec.contracts import NEUTRAL_PROFILE, Prepared, Profile, WireCall
from interlingua.spec.messages import Message, Role
from interlingua.spec.request import Request, ResponseFormat
from interlingua.spec.warnings import WarningList
from interlingua.wire.fields import Fields, extra_of, request_errors

_match_path = re.compile(rf"{MODEL_PATH}(?P<verb>:\w+)").fullmatch
_generate = re.compile(r":(?:g|streamG)enerateContent$")
_SECRETS = ("key=", "access_token=")  # the API takes a key in the query; it must not be kept
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
_HIGHEST = "HIGH"  # of `ThinkingLevel`
_ABOVE_HIGHEST = ("xhigh", "max")
_WITH_LOGPROBS, _LOGPROBS = "responseLogprobs", "logprobs"


def encode_request(
    request: Request | Prepared, profile: Profile = NEUTRAL_PROFILE, *, stream: bool = False
) -> WireCall:
    """Return the call that a client sends."""
    request, options, warnings = start_encoding(request, profile, FACTS)
    path = _encode_path(str(options.pop("path", PATH)), request.model, stream=stream)
    options.pop(AUTO_CACHE, None)  # the vendor caches prompts by default
    body: dict[str, Json] = {}
    encode_messages(request, body, warnings)
    if request.tools or request.tool_choice or request.parallel_tool_calls is not None:
        from interlingua.dialects.gemini_generate.tools import encode_tools

        encode_tools(request, body, warnings)
    _encode_settings(request, body, warnings)
    return WireCall(
        path=path,
        body=merge_options(body, options) if options else body,
        stream=stream,
        warnings=(*warnings.warnings, *foreign_options(request, NAME, dialects.names)),
    )


def decode_request(call: WireCall) -> Request:
    """Return the request that a server received."""
    from interlingua.dialects.gemini_generate.tools import decode_tools

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


def _decode_path(path: str) -> tuple[str, dict[str, Json]]:
    path, _, query = path.partition("?")
    items = [item for item in query.split("&") if item and item != "alt=sse"]
    query = "&".join(item for item in items if not item.startswith(_SECRETS))
    match = _match_path(path)
    model = unquote(match["model"]) if match else ""
    template = f"{path[: match.start('model')]}{{model}}{match['verb']}" if match else path
    template = _generate.sub(":generateContent", template)
    if query:
        template = f"{template}?{query}"
    return model, {} if template in ("", PATH) else {"path": template}


# `generationConfig`. Unread fields stay where they were.


def _encode_settings(request: Request, body: dict[str, Json], warnings: WarningList) -> None:
    config: dict[str, Json] = {}
    for name, value in _supported.values_in(request):
        config[_SETTINGS[name]] = value
    if request.stop_sequences is not None:
        config["stopSequences"] = list(request.stop_sequences)
    if request.response_format is not None:
        _encode_format(request.response_format, config, warnings)
    if request.logprobs is not None:  # `logprobs` is «only valid if responseLogprobs=True»
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
    for name, _ in _unsupported.values_in(request):
        warnings.setting_dropped(name)


def _decode_settings(fields: Fields) -> dict[str, Any]:
    config = fields.fields(_CONFIG)
    if config is None:
        return {}
    was_empty = not config.left
    settings: dict[str, Any] = {name: config.number(key) for name, key in _NUMBERS.items()}
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


def _encode_format(form: ResponseFormat, config: dict[str, Json], warnings: WarningList) -> None:
    if form.type == "text":
        config["responseMimeType"] = _PLAIN
        return
    from interlingua.prepare.schema.narrow import encode_schema
    from interlingua.prepare.schema.openapi import from_openapi

    config["responseMimeType"] = _JSON
    openapi = extra_of(form, NAME).get(SCHEMA)
    if openapi is not None and from_openapi(openapi) == form.json_schema:
        config[_OPENAPI] = openapi
    elif form.json_schema is not None:  # the API takes one of both, and needs the JSON type
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
            from interlingua.prepare.schema.openapi import from_openapi

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


def _encode_thinking(request: Request, warnings: WarningList) -> dict[str, Json]:
    effort, budget = request.reasoning_effort, request.thinking_budget
    if budget is None and effort == "none":
        budget = 0  # «0 is DISABLED»; whether a model can be without thinking is in its profile
    if effort is None or effort == "none":
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


# Messages. The leading system messages are `systemInstruction`; `contents` has no system role.


def encode_messages(request: Request, body: dict[str, Json], warnings: WarningList) -> None:
    """Adds `systemInstruction` and `contents` to the body."""
    calls: dict[str, ToolCall] = {}
    system: UncheckedJson = None
    contents: list[Json] = []
    leading = True
    for warnings.message, message in enumerate(request.messages):
        leading = leading and message.role in ("system", "developer")
        content = _encode_message(message, calls, warnings, leading=leading)
        if content is None:
            warnings.add("emptied_message_dropped", warnings.message_path())
        elif not leading:
            contents.append(content)
        elif system is None:  # several prompts become one, which is all that the API takes
            system = content
        else:
            system = {**system, "parts": [*system.get("parts", ()), *content.get("parts", ())]}
        if leading and message.role == "developer":
            warnings.add("developer_as_system", warnings.message_path())
    if system is not None:
        body["systemInstruction"] = system
    if contents:
        body["contents"] = contents


def _encode_message(
    message: Message, calls: dict[str, ToolCall], warnings: WarningList, *, leading: bool
) -> UncheckedJson:
    content = message.content
    only = content[0] if len(content) == 1 else None
    if type(only) is Text and not only.extra:  # the usual message
        parts: list[Json] = [{"text": only.text}]
    elif type(only) is Opaque and only.dialect == NAME and isinstance(only.data, str):
        return only.data  # see `_decode_content`
    else:
        parts = _encode_parts(content, calls, warnings)
    if message.name is not None:
        warnings.add("name_dropped", f"{warnings.message_path()}.name")
    if content and not parts:
        return None
    role = "model" if message.role == "assistant" else "user"
    if not message.extra and not leading:  # fast path
        return {"role": role, "parts": parts}
    return _restore_content(message, role, parts, leading=leading)


def _encode_parts(
    content: tuple[Part, ...], calls: dict[str, ToolCall], warnings: WarningList
) -> list[Json]:
    parts: list[Json] = []
    for warnings.part, part in enumerate(content):
        if type(part) is Text and not part.extra:
            parts.append({"text": part.text})
            continue
        if type(part) is ToolCall:
            calls[part.id] = part
        wire = encode_part(part, warnings, calls)
        if wire is not None:
            parts.append(wire)
    return parts


def _restore_content(
    message: Message, role: str, parts: list[Json], *, leading: bool
) -> dict[str, Json]:
    """The content of a leading system message, or of a message that was decoded from one."""
    extra = dict(extra_of(message, NAME))
    absent = take_absent(extra)
    if not leading and message.role not in ("user", "tool"):
        extra["role"] = role
    elif not leading and "role" not in absent:  # `systemInstruction` needs no role
        extra.setdefault("role", role)
    if parts or not ("parts" in absent or "parts" in extra):
        extra["parts"] = parts
    return extra


def decode_messages(fields: Fields) -> tuple[Message, ...]:
    """The messages of a request, one for each content."""
    messages: list[Message] = []
    links = request_links()
    system = fields.left.get("systemInstruction")
    if isinstance(system, str):
        fields.take("systemInstruction")
        messages.append(Message.system(system))
    elif (content := fields.fields("systemInstruction")) is not None:
        mark_absent(content.left, content.left, "parts")
        parts = _decode_parts(content, links)
        messages.append(Message(role="system", content=parts, extra=extra_for(content.left)))
    contents = fields.array("contents")
    if contents:
        messages += [_decode_content(item, i, links) for i, item in enumerate(contents)]
    elif contents is not None:
        fields.left["contents"] = contents
    return tuple(messages)


def _decode_content(item: Json, index: int, links: Links) -> Message:
    if isinstance(item, str):  # not a valid content, but it must not be lost
        return Message(role="user", content=(Opaque(dialect=NAME, data=item),))
    fields = Fields(item, f"contents[{index}]")
    links.turn()
    mark_absent(fields.left, fields.left, "parts", "role")
    content = _decode_parts(fields, links)
    wire_role = fields.text("role")
    role: Role = "assistant" if wire_role == "model" else "user"
    is_all_results = bool(content) and all(isinstance(part, ToolResult) for part in content)
    if wire_role == "function" or (role == "user" and is_all_results):
        role = "tool"
    if wire_role not in ("user", "model", None):
        fields.left["role"] = wire_role
    return Message(role=role, content=content, extra=extra_for(fields.left))


def _decode_parts(fields: Fields, links: Links) -> tuple[Part, ...]:
    parts, path = fields.array("parts") or [], fields.at("parts")
    decoded: dict[int, Part] = {}
    # Results whose name no tool call has come last: then only their tool calls still wait.
    for i in sorted(range(len(parts)), key=lambda i: _is_stray(parts[i], links)):
        decoded[i] = decode_part(parts[i], links, f"{path}[{i}]")
    return tuple(decoded[i] for i in range(len(parts)))


def _is_stray(part: Json, links: Links) -> bool:
    match part:
        case {"functionResponse": {"name": name}}:
            return not links.waits_for(name)
    return False
