"""Request <-> path, headers and body."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import quote, unquote

from interlingua import dialects
from interlingua.dialects.anthropic_messages.content import Block, decode_content, encode_part
from interlingua.dialects.anthropic_messages.facts import (
    BETAS,
    CACHE,
    FACTS,
    NAME,
    PATH,
    STRICT_SCHEMA,
    VERSION,
    VERSION_HEADER,
    extra_for,
)
from interlingua.prepare.cache import add_marks, is_cacheable
from interlingua.prepare.options import AUTO_CACHE, Settings, foreign_options, merge_options
from interlingua.prepare.prepare import start_encoding
from interlingua.prepare.settings import max_tokens_sent
from interlingua.prepare.thinking import thinking_mode
from interlingua.spec.content import Json, Opaque, Text, ToolResult
from interlingua.spec.contracts import NEUTRAL_PROFILE, Prepared, Profile, WireCall
from interlingua.spec.messages import Message, Role
from interlingua.spec.request import Request, ResponseFormat
from interlingua.spec.warnings import WarningList
from interlingua.wire.fields import Fields, extra_of, request_errors, restore, shorten, wrong_type

_BETA_HEADER = "anthropic-beta"
# The clouds have the model in the path, and their version in the body (`anthropic_version`).
# Vertex AI: `/models/<model>:rawPredict`. Bedrock: `/model/<model>/invoke`.
_MODEL_IN_PATH = re.compile(r"(?<=/models/)[^/:]+(?=:)|(?<=/model/)[^/]+(?=/invoke)")
_COUNT = "/count_tokens"
_sampling = Settings("temperature", "top_p", "top_k")
_thinking = Settings("reasoning_effort", "thinking_budget", "include_thinking")
# The API has no field at all for these.
_unsupported = Settings("seed", "frequency_penalty", "presence_penalty", "verbosity", "logprobs")
_DEPRECATED = "~output_format"
"""Our own key in `extra`: the format was in `output_format`, not in `output_config`."""
_SHOWABLE = ("adaptive", "enabled")
"""The modes of thinking that have the field `display`."""
_DISPLAYS = {"summarized": True, "omitted": False}
_EFFORTS = {"minimal": "low"}  # `OutputConfigParam.effort` begins with `low`
_INLINE = "~inline"
"""Our own key in `extra`: the system message was in `messages`, not in `system`."""
_ROLES: dict[Role, str] = {"tool": "user", "developer": "system"}  # the others have our names


def encode_request(
    request: Request | Prepared, profile: Profile = NEUTRAL_PROFILE, *, stream: bool = False
) -> WireCall:
    """Return the call that a client sends."""
    request, options, warnings = start_encoding(request, profile, FACTS)
    path = str(options.pop("path", PATH))
    cached = options.pop(AUTO_CACHE, None) is not False and not path.endswith(_COUNT)
    betas: list[str] = []
    if request.tools:
        from interlingua.dialects.anthropic_messages.tools import betas_of

        betas = betas_of(request)
    headers = _headers(options, profile, betas)
    body: dict[str, Json] = {}
    if "{model}" in path:
        path = path.replace("{model}", quote(request.model, safe=":@", errors="replace"))
    elif request.model:
        body["model"] = request.model
    if request.max_tokens is not None or not path.endswith(_COUNT):  # a count refuses the field
        body["max_tokens"] = max_tokens_sent(request, profile, FACTS)
    encode_messages(request, body, warnings)
    if request.tools or request.tool_choice or request.parallel_tool_calls is not None:
        from interlingua.dialects.anthropic_messages.tools import encode_tools

        encode_tools(request, body, warnings)
    if options or _thinking.values_in(request):
        _encode_thinking(request, profile, body, options, warnings)
    _encode_settings(request, body, warnings)
    if stream:
        body["stream"] = True
    body = merge_options(body, options) if options else body
    return WireCall(
        path=path,
        body=add_marks(body, CACHE, profile) if cached and is_cacheable(request, profile) else body,
        headers=headers,
        stream=stream,
        warnings=(*warnings.warnings, *foreign_options(request, NAME, dialects.names)),
    )


def _headers(options: dict[str, Json], profile: Profile, betas: list[str]) -> dict[str, str]:
    """The version and beta headers; removes their options from `options`."""
    version = profile.api_version or VERSION
    headers = {VERSION_HEADER: str(options.pop("version", version))}
    for name in BETAS if options else ():
        flags = options.pop(name, None) or ()
        if isinstance(flags, Iterable) and not isinstance(flags, str):
            betas += map(str, flags)
        else:
            betas.append(str(flags))
    if betas:
        headers[_BETA_HEADER] = ",".join(dict.fromkeys(betas))
    return headers


def decode_request(call: WireCall) -> Request:
    """Return the request that a server received."""
    from interlingua.dialects.anthropic_messages.tools import decode_tools

    with request_errors():
        fields = Fields(call.body)
        fields.take("stream")
        model = fields.text("model")
        options = _decode_address(call, model)
        if model is None and "{model}" in str(options.get("path")):
            match = _MODEL_IN_PATH.search(call.path)
            model = unquote(match.group()) if match else None
        settings = {**_decode_settings(fields), **decode_tools(fields)}
        messages = decode_messages(fields)
        options.update(fields.left)
        return Request(
            model=model or "",
            messages=messages,
            provider_options={NAME: options} if options else {},
            **settings,
        )


def _decode_address(call: WireCall, model: str | None) -> dict[str, Json]:
    """The options that the path and the headers hold."""
    options: dict[str, Json] = {}
    path = call.path.partition("?")[0]
    if path.endswith(_COUNT):
        options["path"] = PATH + _COUNT
    elif model is None and _MODEL_IN_PATH.search(path):
        options["path"] = _MODEL_IN_PATH.sub("{model}", path)
    headers = {name.lower(): value for name, value in call.headers.items()}
    betas = [beta.strip() for beta in headers.get(_BETA_HEADER, "").split(",") if beta.strip()]
    if betas:
        options["betas"] = betas
    if headers.get(VERSION_HEADER, VERSION) != VERSION:
        options["version"] = headers[VERSION_HEADER]
    return options


def _encode_settings(request: Request, body: dict[str, Json], warnings: WarningList) -> None:
    body.update(_sampling.values_in(request))
    if request.stop_sequences is not None:
        body["stop_sequences"] = list(request.stop_sequences)
    if request.user is not None or request.metadata is not None:
        _encode_user(request, body, warnings)
    if request.response_format is not None:
        _encode_format(request.response_format, body, warnings)
    for name, _ in _unsupported.values_in(request):
        warnings.setting_dropped(name)


def _encode_user(request: Request, body: dict[str, Json], warnings: WarningList) -> None:
    # `metadata` of the API holds only `user_id` (`MetadataParam`), which is also our `user`.
    labels = dict(request.metadata or {})
    user = labels.get("user_id") if request.user is None else request.user
    if isinstance(user, str):
        body["metadata"] = {"user_id": user}
        if labels.get("user_id") == user:
            del labels["user_id"]
    if labels:
        warnings.setting_dropped("metadata")


def _encode_thinking(
    request: Request,
    profile: Profile,
    body: dict[str, Json],
    options: Mapping[str, Json],
    warnings: WarningList,
) -> None:
    effort = request.reasoning_effort
    # Which of adaptive, enabled, disabled and between_tools a model takes is in its profile.
    # https://platform.claude.com/docs/en/build-with-claude/thinking#configuring-thinking
    mode = thinking_mode(request, profile) or ("disabled" if effort == "none" else None)
    if request.thinking_budget is not None:
        body["thinking"] = {"type": "enabled", "budget_tokens": request.thinking_budget}
    elif mode is not None:
        body["thinking"] = {"type": mode}
    own = options.get("thinking")
    if request.include_thinking is not None and not (isinstance(own, Mapping) and "display" in own):
        _encode_display(request, profile, body, warnings)
    if effort in _EFFORTS:
        sent = _EFFORTS[effort]
        warnings.add("effort_raised", "reasoning_effort", effort=effort, sent=repr(sent))
        effort = sent
    if effort is not None and effort != "none":
        body["output_config"] = {"effort": effort}


def _encode_display(
    request: Request, profile: Profile, body: dict[str, Json], warnings: WarningList
) -> None:
    """
    Encode whether thinking is shown: older models always show it, newer ones if they are asked.

    https://platform.claude.com/docs/en/build-with-claude/thinking#controlling-thinking-display
    """
    # `display` has its place only in an explicit `thinking`.
    is_adaptive = "adaptive" in (profile.thinking_modes or ())
    default: Json = {"type": "adaptive"} if is_adaptive and profile.thinks_by_default else None
    thinking = body.get("thinking") or default
    if isinstance(thinking, Mapping) and thinking.get("type") not in _SHOWABLE:
        warnings.setting_implied("include_thinking")  # the model does not think
    elif profile.thinking_shown == "always" and not is_adaptive:
        warnings.setting_dropped("include_thinking")
    elif isinstance(thinking, Mapping):
        display = "summarized" if request.include_thinking else "omitted"
        body["thinking"] = {**thinking, "display": display}
    else:
        warnings.setting_implied("include_thinking")


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
    wire: dict[str, Json] = {"type": "json_schema", "schema": schema, **extra_of(form, NAME)}
    if wire.pop(_DEPRECATED, False):
        body["output_format"] = wire
    else:
        config = body.get("output_config")  # `_encode_thinking` may have set the effort
        body["output_config"] = {**(config if isinstance(config, dict) else {}), "format": wire}


def _decode_settings(fields: Fields) -> dict[str, Any]:
    settings: dict[str, Any] = {
        "max_tokens": fields.integer("max_tokens"),
        "temperature": fields.number("temperature"),
        "top_p": fields.number("top_p"),
        "top_k": fields.integer("top_k"),
        "stop_sequences": fields.texts("stop_sequences"),
    }
    # Fields that ours do not cover go back to their place, so that encoding merges them in again.
    metadata = fields.fields("metadata")
    if metadata is not None:
        settings["user"] = metadata.text("user_id")
        _keep_unread(fields, "metadata", metadata.left)
    config = fields.fields("output_config")
    form = None
    if config is not None:
        settings["reasoning_effort"] = config.text("effort")
        form = _decode_format(config, "format")
        _keep_unread(fields, "output_config", config.left)
    settings["response_format"] = form or _decode_format(fields, "output_format")
    _decode_thinking(fields, settings)
    return settings


def _decode_thinking(fields: Fields, settings: dict[str, Any]) -> None:
    thinking = fields.object("thinking")
    # The field itself stays unread, in its place beside the mode.
    if thinking is not None and thinking.get("type") in _SHOWABLE:
        settings["include_thinking"] = _DISPLAYS.get(str(thinking.get("display")))
    match thinking:
        case {"type": "enabled", "budget_tokens": int(budget), **rest}:
            settings["thinking_budget"] = budget
            _keep_unread(fields, "thinking", rest)
        # An effort beside it would be lost: the canonical setting has one value for both.
        case {"type": "disabled", **rest} if not rest and not settings.get("reasoning_effort"):
            settings["reasoning_effort"] = "none"
        case {"type": _}:
            fields.left["thinking"] = thinking


def _decode_format(fields: Fields, key: str) -> ResponseFormat | None:
    form = fields.left.get(key)
    if not isinstance(form, dict) or form.get("type") != "json_schema":
        return None
    inner = Fields(fields.take(key), fields.at(key))
    inner.take("type")
    schema = inner.object("schema")
    if key == "output_format":
        inner.left[_DEPRECATED] = True
    return ResponseFormat(type="json_schema", json_schema=schema, extra=extra_for(inner.left))


def _keep_unread(fields: Fields, key: str, unread: object) -> None:
    if unread:
        fields.left[key] = unread


# Messages. Leading system messages are `system`; a later one stays in its place in `messages`.


def encode_messages(request: Request, body: dict[str, Json], warnings: WarningList) -> None:
    """Add `system` and `messages` to the body."""
    messages = request.messages
    leading = 0  # how many messages go to `system`
    for message in messages:
        if message.role not in ("system", "developer") or extra_of(message, NAME).get(_INLINE):
            break
        leading += 1
    if leading:
        system: list[Block] = []
        for warnings.message in range(leading):
            system += _encode_parts(messages[warnings.message], warnings)
        body["system"] = shorten(system)
    encoded: list[Json] = []
    body["messages"] = encoded
    for warnings.message in range(leading, len(messages)):
        message = messages[warnings.message]
        wire = _encode_text(message) or _encode_message(message, warnings)
        if wire is not None:
            encoded.append(wire)


def _encode_text(message: Message) -> Json:
    """Return the usual message, which is one plain text; None for any other."""
    content = message.content
    if len(content) != 1 or type(content[0]) is not Text or content[0].extra or message.extra:
        return None
    if message.role not in ("user", "assistant") or message.name is not None:
        return None
    return {"role": message.role, "content": content[0].text}


def _encode_message(message: Message, warnings: WarningList) -> Json:
    content = message.content
    if len(content) == 1 and type(content[0]) is Opaque:
        part = content[0]
        if part.dialect == NAME and isinstance(part.data, str):
            return part.data  # `_decode_message` read it from a string
    blocks = _encode_parts(message, warnings)
    if not blocks and content:
        warnings.add("emptied_message_dropped", warnings.message_path())
        return None
    wire: dict[str, Json] = {
        "role": _ROLES.get(message.role, message.role),
        "content": shorten(blocks),
    }
    if message.extra:
        restore(wire, message, NAME).pop(_INLINE, None)
    return wire


def _encode_parts(message: Message, warnings: WarningList) -> list[Block]:
    if message.role == "developer":
        warnings.add("developer_as_system", warnings.message_path())
    if message.name is not None:
        warnings.add("name_dropped", f"{warnings.message_path()}.name")
    blocks: list[Block] = []
    for warnings.part, part in enumerate(message.content):
        block = encode_part(part, warnings)
        if block is not None:
            blocks.append(block)
    return blocks


def decode_messages(fields: Fields) -> tuple[Message, ...]:
    """Return the messages of a request, with its `system` as the first."""
    messages: list[Message] = []
    system = fields.take("system")
    if system is not None:
        messages.append(Message(role="system", content=decode_content(system, "system")))
    items = fields.array("messages")
    if items is None:
        raise wrong_type("messages", "an array", None)
    messages += [_decode_message(item, f"messages[{i}]") for i, item in enumerate(items)]
    return tuple(messages)


def _decode_message(item: Json, path: str) -> Message:
    if isinstance(item, str):  # not a valid message, but it must survive the round trip
        return Message(role="user", content=(Opaque(dialect=NAME, data=item),))
    fields = Fields(item, path)
    role = fields.text("role")
    if role not in ("user", "assistant", "system"):
        raise wrong_type(f"{path}.role", "user, assistant or system", role)
    content = decode_content(fields.take("content"), f"{path}.content")
    if role == "system":
        fields.left[_INLINE] = True
    elif role == "user" and content and all(isinstance(part, ToolResult) for part in content):
        role = "tool"  # results have no role of their own here
    return Message(role=role, content=content, extra=extra_for(fields.left))  # type: ignore[arg-type]
