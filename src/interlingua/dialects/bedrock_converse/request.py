"""Request <-> path and body."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

from interlingua import dialects
from interlingua.dialects.bedrock_converse.cache_points import add_points
from interlingua.dialects.bedrock_converse.content import ContentEncoder, decode_blocks
from interlingua.dialects.bedrock_converse.facts import (
    FACTS,
    MODEL_FIELDS,
    NAME,
    PATH,
    STREAM,
    STRICT_SCHEMA,
    ConverseQuirks,
    extra_for,
)
from interlingua.prepare.cache import is_cacheable
from interlingua.prepare.options import (
    AUTO_CACHE,
    Settings,
    declares_tools,
    foreign_options,
    merge_options,
)
from interlingua.prepare.prepare import start_encoding
from interlingua.prepare.thinking import thinking_mode
from interlingua.spec.content import Json, Text, ToolResult, UncheckedJson
from interlingua.spec.contracts import NEUTRAL_PROFILE, Prepared, Profile, WireCall
from interlingua.spec.errors import DecodeError
from interlingua.spec.messages import Message, Role
from interlingua.spec.request import Request, ResponseFormat
from interlingua.spec.warnings import WarningList
from interlingua.wire.fields import Fields, extra_of, request_errors, take_text, wrong_type
from interlingua.wire.json_text import dump_text, loads
from interlingua.wire.model_path import quote_model

_match_path = re.compile(r"(?P<before>.*)/model/(?P<model>[^/]+)(?P<after>/[a-z-]+)").fullmatch
_CONVERSE = "/converse"
_NO_MODEL = "{model}"  # what the path of a request without a model has in its place
_INFERENCE = "inferenceConfig"
_INFERENCE_FIELDS = {"max_tokens": "maxTokens", "temperature": "temperature", "top_p": "topP"}
_OUTPUT = "outputConfig"
_FORMAT = "textFormat"
_METADATA = "requestMetadata"
_supported = Settings(*_INFERENCE_FIELDS)
_thinking = Settings("reasoning_effort", "thinking_budget", "include_thinking")
# Converse has no field for these, and no family of models documents one that all of it takes.
_unsupported = Settings(
    "seed", "frequency_penalty", "presence_penalty", "verbosity", "logprobs", "user"
)
# `RequestMetadata`: at most 16 pairs of these characters.
_MOST_LABELS = 16
_is_label = re.compile(r"[a-zA-Z0-9\s:_@$#=/+,.-]{0,256}").fullmatch
_EFFORTS = {"minimal": "low"}  # `OutputConfig.effort`: «low, medium, high, xhigh, and max»
_SHOWABLE = ("adaptive", "enabled")
_DISPLAYS = {"summarized": True, "omitted": False}
_INLINE = "~inline"
"""Our own key in `extra`: the system message was in `messages`, not in `system`."""
_ROLES: dict[Role, str] = {"tool": "user", "developer": "system"}  # the others have our names
_DEFAULT_QUIRKS = ConverseQuirks()


def encode_request(
    request: Request | Prepared, profile: Profile = NEUTRAL_PROFILE, *, stream: bool = False
) -> WireCall:
    """Return the call that a client sends."""
    request, options, warnings = start_encoding(request, profile, FACTS)
    path = str(options.pop("path", PATH))
    cached = options.pop(AUTO_CACHE, None) is not False and is_cacheable(request, profile)
    body: dict[str, Json] = {}
    _encode_messages(request, body, warnings)
    _encode_inference(request, body)
    if request.tools or request.tool_choice or request.parallel_tool_calls is not None:
        from interlingua.dialects.bedrock_converse.tools import encode_tools

        encode_tools(request, profile, body, warnings, has_more=declares_tools(options))
    _encode_model_fields(request, profile, body, warnings)
    _encode_settings(request, body, warnings)
    body = merge_options(body, options) if options else body
    return WireCall(
        path=_encode_path(path, request.model, stream=stream),
        body=add_points(body, profile, _quirks(profile)) if cached and profile.caching else body,
        stream=stream,
        warnings=(*warnings.warnings, *foreign_options(request, NAME, dialects.names)),
    )


def decode_request(call: WireCall) -> Request:
    """Return the request that a server received."""
    from interlingua.dialects.bedrock_converse.tools import decode_tools

    with request_errors():
        fields = Fields(call.body)
        model, options = _decode_path(call.path)
        settings = {**_decode_settings(fields), **decode_tools(fields)}
        messages = _decode_messages(fields)
        options.update(fields.left)
        return Request(
            model=model,
            messages=messages,
            provider_options={NAME: options} if options else {},
            **settings,
        )


def _quirks(profile: Profile) -> ConverseQuirks:
    return profile.quirks if isinstance(profile.quirks, ConverseQuirks) else _DEFAULT_QUIRKS


# The path has the model, and says whether the answer is a stream.


def _encode_path(template: str, model: str, *, stream: bool) -> str:
    path = template.removesuffix(STREAM)
    if stream and path.endswith(_CONVERSE):
        path += STREAM
    return path.replace("{model}", quote_model(model)) if "{model}" in path and model else path


def _decode_path(path: str) -> tuple[str, dict[str, Json]]:
    match = _match_path(path.partition("?")[0])
    if match is None:
        return "", {}
    template = f"{match['before']}/model/{{model}}{match['after'].removesuffix(STREAM)}"
    options: dict[str, Json] = {} if template == PATH else {"path": template}
    model = unquote(match["model"])
    return "" if model == _NO_MODEL else model, options


# Settings. Unread fields stay where they were.


def _encode_inference(request: Request, body: dict[str, Json]) -> None:
    config: dict[str, Json] = {}
    for name, value in _supported.values_in(request):
        config[_INFERENCE_FIELDS[name]] = value
    if request.stop_sequences is not None:
        config["stopSequences"] = list(request.stop_sequences)
    if config:
        body[_INFERENCE] = config


def _encode_settings(request: Request, body: dict[str, Json], warnings: WarningList) -> None:
    if request.metadata is not None:
        _encode_metadata(request.metadata, body, warnings)
    if request.response_format is not None:
        _encode_format(request.response_format, body, warnings)
    for name, _ in _unsupported.values_in(request):
        warnings.setting_dropped(name)


def _encode_metadata(
    labels: Mapping[str, Any], body: dict[str, Json], warnings: WarningList
) -> None:
    fitting = {
        key: value
        for key, value in labels.items()
        if key and _is_label(key) and isinstance(value, str) and _is_label(value)
    }
    if len(fitting) != len(labels) or len(fitting) > _MOST_LABELS:
        warnings.setting_dropped("metadata")
        fitting = dict(list(fitting.items())[:_MOST_LABELS])
    if fitting:  # `RequestMetadata` has at least one pair
        body[_METADATA] = fitting


def _encode_format(form: ResponseFormat, body: dict[str, Json], warnings: WarningList) -> None:
    if form.type != "json_schema":
        return  # `prepare` has asked for JSON in words
    from interlingua.prepare.schema.narrow import encode_schema

    schema, is_strict = encode_schema(
        form.json_schema, STRICT_SCHEMA, warnings, "response_format.json_schema", strict=True
    )
    if not is_strict:  # the API enforces every schema
        warnings.add("response_format_dropped", "response_format")
        return
    definition: dict[str, Json] = {"schema": dump_text(schema)}
    for name in ("name", "description"):
        if getattr(form, name) is not None:
            definition[name] = getattr(form, name)
    wire: dict[str, Json] = {
        "type": "json_schema",
        "structure": {"jsonSchema": {**definition, **extra_of(form, NAME)}},
    }
    body[_OUTPUT] = {**_object(body, _OUTPUT), _FORMAT: wire}


def _object(body: dict[str, Json], key: str) -> Mapping[str, Json]:
    value = body.get(key)
    return value if isinstance(value, Mapping) else {}


def _encode_model_fields(
    request: Request, profile: Profile, body: dict[str, Json], warnings: WarningList
) -> None:
    """What only some models take, in `additionalModelRequestFields`, and the effort."""
    quirks = _quirks(profile)
    fields: dict[str, Json] = {}
    if request.top_k is not None:
        if quirks.top_k_field:
            outer, _, inner = quirks.top_k_field.partition(".")
            fields[outer] = {inner: request.top_k} if inner else request.top_k
        else:
            warnings.setting_dropped("top_k")
    if _thinking.values_in(request):
        _encode_thinking(request, profile, body, fields, warnings)
    if fields:
        body[MODEL_FIELDS] = fields


def _encode_thinking(
    request: Request,
    profile: Profile,
    body: dict[str, Json],
    fields: dict[str, Json],
    warnings: WarningList,
) -> None:
    effort, kind = request.reasoning_effort, _quirks(profile).effort_field
    if kind:
        _encode_other_thinking(request, kind, fields, warnings)
        return
    # The models of Anthropic take the `thinking` of their own API:
    # https://docs.aws.amazon.com/bedrock/latest/userguide/claude-messages-extended-thinking.html
    mode = thinking_mode(request, profile) or ("disabled" if effort == "none" else None)
    thinking: dict[str, Json] = {} if mode is None else {"type": mode}
    if request.thinking_budget is not None:
        thinking = {"type": "enabled", "budget_tokens": request.thinking_budget}
    if request.include_thinking is not None:
        if thinking.get("type") in _SHOWABLE and profile.thinking_shown != "always":
            thinking["display"] = "summarized" if request.include_thinking else "omitted"
        else:
            warnings.setting_implied("include_thinking")
    if thinking:
        fields["thinking"] = thinking
    if effort in _EFFORTS:
        warnings.add("effort_raised", "reasoning_effort", effort=effort, sent=repr("low"))
        effort = _EFFORTS[effort]
    if effort is not None and effort != "none":
        body[_OUTPUT] = {"effort": effort}


def _encode_other_thinking(
    request: Request, kind: str, fields: dict[str, Json], warnings: WarningList
) -> None:
    """The effort of models that have a field of their own for it: Nova 2 and gpt-oss."""
    effort = request.reasoning_effort
    if kind == "reasoning_effort":
        if effort is not None:
            fields[kind] = effort
    elif effort == "none":
        fields[kind] = {"type": "disabled"}
    elif effort is not None:
        fields[kind] = {"type": "enabled", "maxReasoningEffort": effort}
    if request.thinking_budget is not None:
        warnings.setting_dropped("thinking_budget")
    if request.include_thinking is not None:
        warnings.setting_implied("include_thinking")


def _decode_settings(fields: Fields) -> dict[str, Any]:
    settings: dict[str, Any] = {}
    config = fields.fields(_INFERENCE)
    if config is not None:
        was_empty = not config.left
        settings["max_tokens"] = config.integer("maxTokens")
        settings["temperature"] = config.number("temperature")
        settings["top_p"] = config.number("topP")
        settings["stop_sequences"] = config.texts("stopSequences")
        if config.left or was_empty:
            fields.left[_INFERENCE] = config.left
    labels = fields.left.get(_METADATA)
    if isinstance(labels, dict) and labels and all(isinstance(v, str) for v in labels.values()):
        settings["metadata"] = fields.take(_METADATA)
    _decode_output(fields, settings)
    _decode_model_fields(fields, settings)
    return settings


def _decode_output(fields: Fields, settings: dict[str, Any]) -> None:
    config = fields.fields(_OUTPUT)
    if config is None:
        return
    settings["reasoning_effort"] = config.text("effort")
    form = _decode_format(config.left.get(_FORMAT))
    if form is not None:
        config.take(_FORMAT)
        settings["response_format"] = form
    if config.left:
        fields.left[_OUTPUT] = config.left


def _decode_format(wire: UncheckedJson) -> ResponseFormat | None:
    """The format; None for one with unknown fields beside the definition, which stays unread."""
    match wire:
        case {
            "type": "json_schema",
            "structure": {"jsonSchema": {"schema": str(text), **unread}, **more},
            **rest,
        } if not more and not rest:
            try:
                schema = loads(text)
            except DecodeError:
                return None
            if not isinstance(schema, dict):
                return None
            fields: dict[str, Any] = {str(key): value for key, value in unread.items()}
            name, description = take_text(fields, "name"), take_text(fields, "description")
            return ResponseFormat(
                type="json_schema",
                json_schema=schema,
                name=name,
                description=description,
                extra=extra_for(fields),
            )
    return None


def _decode_model_fields(fields: Fields, settings: dict[str, Any]) -> None:
    model_fields = fields.left.get(MODEL_FIELDS)
    if not isinstance(model_fields, dict):
        return
    left = dict(model_fields)
    if type(left.get("top_k")) is int:
        settings["top_k"] = left.pop("top_k")
    match left.get("thinking"):
        case {"type": "enabled", "budget_tokens": int(budget), **rest} if budget >= 0:
            settings["thinking_budget"] = budget
            _decode_display(rest, settings)
            _keep(left, rest)
        case {"type": "disabled", **rest} if not rest and not settings.get("reasoning_effort"):
            settings["reasoning_effort"] = "none"
            del left["thinking"]
        case {"type": "adaptive", **rest}:
            _decode_display({**rest}, settings)  # it stays unread, beside the mode
    if left:
        fields.left[MODEL_FIELDS] = left
    else:
        del fields.left[MODEL_FIELDS]


def _decode_display(rest: dict[Any, Any], settings: dict[str, Any]) -> None:
    display = rest.get("display")
    if isinstance(display, str) and display in _DISPLAYS:
        settings["include_thinking"] = _DISPLAYS[display]
        del rest["display"]


def _keep(left: dict[str, Any], rest: dict[Any, Any]) -> None:
    if rest:
        left["thinking"] = rest
    else:
        del left["thinking"]


# Messages. Leading system messages are `system`; a later one stays in its place in `messages`.


def _encode_messages(request: Request, body: dict[str, Json], warnings: WarningList) -> None:
    messages, encoder = request.messages, ContentEncoder(warnings)
    leading = 0  # how many messages go to `system`
    for message in messages:
        if message.role not in ("system", "developer") or extra_of(message, NAME).get(_INLINE):
            break
        leading += 1
    encoded: list[Json] = []
    body["messages"] = encoded
    if leading:
        system: list[Json] = []
        for warnings.message in range(leading):
            system += _encode_parts(messages[warnings.message], encoder)
        if system:
            body["system"] = system
    for warnings.message in range(leading, len(messages)):
        wire = _encode_message(messages[warnings.message], encoder)
        if wire is not None:
            encoded.append(wire)


def _encode_message(message: Message, encoder: ContentEncoder) -> Json:
    content = message.content
    if len(content) == 1 and type(content[0]) is Text and not content[0].extra:
        blocks: list[dict[str, Json]] = [{"text": content[0].text}]  # the usual message
        _warn_of_names(message, encoder.warnings)
    else:
        blocks = _encode_parts(message, encoder)
    if not blocks and content:
        encoder.warnings.add("emptied_message_dropped", encoder.warnings.message_path())
        return None
    wire: dict[str, Json] = {"role": _ROLES.get(message.role, message.role), "content": blocks}
    for key, value in extra_of(message, NAME).items():
        if key != _INLINE:
            wire.setdefault(key, value)
    return wire


def _encode_parts(message: Message, encoder: ContentEncoder) -> list[dict[str, Json]]:
    _warn_of_names(message, encoder.warnings)
    return encoder.blocks(message.content)


def _warn_of_names(message: Message, warnings: WarningList) -> None:
    if message.role == "developer":
        warnings.add("developer_as_system", warnings.message_path())
    if message.name is not None:
        warnings.add("name_dropped", f"{warnings.message_path()}.name")


def _decode_messages(fields: Fields) -> tuple[Message, ...]:
    messages: list[Message] = []
    system = fields.take("system")
    if system is not None:
        messages.append(Message(role="system", content=decode_blocks(system, "system")))
    items = fields.array("messages")
    if items is None:
        raise wrong_type("messages", "an array", None)
    messages += [_decode_message(item, f"messages[{i}]") for i, item in enumerate(items)]
    return tuple(messages)


def _decode_message(item: UncheckedJson, path: str) -> Message:
    fields = Fields(item, path)
    role = fields.text("role")
    if role not in ("user", "assistant", "system"):
        raise wrong_type(f"{path}.role", "user, assistant or system", role)
    content = decode_blocks(fields.take("content"), f"{path}.content")
    if role == "system":
        fields.left[_INLINE] = True
    elif role == "user" and content and all(isinstance(part, ToolResult) for part in content):
        role = "tool"  # results have no role of their own here
    return Message(role=role, content=content, extra=extra_for(fields.left))  # type: ignore[arg-type]
