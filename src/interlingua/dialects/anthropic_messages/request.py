"""Request <-> body."""

from __future__ import annotations

import re
from typing import Any

from interlingua.dialects.anthropic_messages.content import decode_content, encode_part
from interlingua.dialects.anthropic_messages.tools import decode_tools, encode_tools
from interlingua.dialects.anthropic_messages.wire import DEFAULT_MAX_TOKENS, NAME, PATH, VERSION
from interlingua.spec.content import Json, Opaque, ToolResult
from interlingua.spec.contracts import DEFAULT, Profile, WireCall
from interlingua.spec.messages import Message, Role
from interlingua.spec.request import Request, ResponseFormat
from interlingua.wire.carry import Losses
from interlingua.wire.options import foreign_options, merge, options_for
from interlingua.wire.shape import Fields, extra_of, request_errors, restore, wrong_type

_BETA_HEADER = "anthropic-beta"
_VERSION_HEADER = "anthropic-version"
_MODEL_IN_PATH = re.compile(r"(?<=/models/)[^/:]+(?=:)")
_COUNT = "/count_tokens"
_EFFORT = {"minimal": "low"}  # the one word of ours that is not also theirs


def encode_request(
    request: Request, profile: Profile = DEFAULT, *, stream: bool = False
) -> WireCall:
    """What a client sends."""
    losses = Losses()
    options = options_for(request, NAME)
    path = str(options.pop("path", PATH))
    headers = {_VERSION_HEADER: str(options.pop("version", VERSION))}
    betas = options.pop("betas", None)
    if betas:
        headers[_BETA_HEADER] = ",".join(dict.fromkeys(betas))
    body: dict[str, Any] = {}
    if "{model}" in path:
        path = path.replace("{model}", request.model)
    elif request.model:
        body["model"] = request.model
    if request.max_tokens is not None:
        body["max_tokens"] = request.max_tokens
    elif not path.endswith(_COUNT):
        body["max_tokens"] = profile.max_output_tokens or DEFAULT_MAX_TOKENS
    _encode_messages(request, body, losses)
    encode_tools(request, body, losses)
    _encode_settings(request, body, losses)
    if stream:
        body["stream"] = True
    return WireCall(
        path=path,
        body=merge(body, options),
        headers=headers,
        stream=stream,
        warnings=(*losses.warnings, *foreign_options(request, NAME)),
    )


def decode_request(call: WireCall) -> Request:
    """What a server received."""
    with request_errors():
        fields = Fields(call.body)
        fields.take("stream")
        model = fields.text("model")
        options = _decode_address(call, model)
        if model is None and "{model}" in options.get("path", ""):
            found = _MODEL_IN_PATH.search(call.path)
            model = found.group() if found else None
        settings = _decode_settings(fields)
        tools = decode_tools(fields)
        messages = _decode_messages(fields)
        options.update(fields.left)
        return Request(
            model=model or "",
            messages=messages,
            provider_options={NAME: options} if options else {},
            **settings,
            **tools,
        )


def _decode_address(call: WireCall, model: str | None) -> dict[str, Any]:
    options: dict[str, Any] = {}
    path = call.path.partition("?")[0]
    if path.endswith(_COUNT):
        options["path"] = PATH + _COUNT
    elif model is None and _MODEL_IN_PATH.search(path):
        options["path"] = _MODEL_IN_PATH.sub("{model}", path)
    headers = {name.lower(): value for name, value in call.headers.items()}
    betas = [beta.strip() for beta in headers.get(_BETA_HEADER, "").split(",") if beta.strip()]
    if betas:
        options["betas"] = betas
    if headers.get(_VERSION_HEADER, VERSION) != VERSION:
        options["version"] = headers[_VERSION_HEADER]
    return options


# Messages. A leading system message is the `system` field; a later one stays in place.


def _encode_messages(request: Request, body: dict[str, Any], losses: Losses) -> None:
    hoisted = 0
    for message in request.messages:
        if message.role not in ("system", "developer") or extra_of(message, NAME).get("inline"):
            break
        hoisted += 1
    system = [
        block
        for i, message in enumerate(request.messages[:hoisted])
        for block in _encode_parts(message, losses, f"messages[{i}]")
    ]
    if hoisted:
        body["system"] = _shorten(system)
    body["messages"] = [
        _encode_message(message, losses, f"messages[{i}]")
        for i, message in enumerate(request.messages[hoisted:], hoisted)
    ]
    for i, message in enumerate(request.messages):
        if message.role == "developer":
            losses.add("developer_as_system", f"{NAME} has no developer role", f"messages[{i}]")


def _encode_message(message: Message, losses: Losses, path: str) -> Json:
    if len(message.content) == 1 and isinstance(message.content[0], Opaque):
        part = message.content[0]
        if part.dialect == NAME and isinstance(part.data, str):
            return part.data  # a message that was no object to begin with
    role = _ROLES[message.role]
    blocks = _encode_parts(message, losses, path)
    wire = restore({"role": role, "content": _shorten(blocks)}, message, NAME)
    wire.pop("inline", None)
    if message.name is not None:
        losses.dropped("name", NAME, f"{path}.name")
    return wire


_ROLES: dict[Role, str] = {
    "user": "user",
    "tool": "user",
    "assistant": "assistant",
    "system": "system",
    "developer": "system",
}


def _encode_parts(message: Message, losses: Losses, path: str) -> list[dict[str, Any]]:
    blocks = (
        encode_part(part, losses, f"{path}.content[{i}]") for i, part in enumerate(message.content)
    )
    return [block for block in blocks if block is not None]


def _shorten(blocks: list[dict[str, Any]]) -> Json:
    """One plain text block may be written as a string."""
    if len(blocks) == 1 and blocks[0].keys() == {"type", "text"} and blocks[0]["type"] == "text":
        return blocks[0]["text"]
    return blocks


def _decode_messages(fields: Fields) -> tuple[Message, ...]:
    messages: list[Message] = []
    system = fields.take("system")
    if system is not None:
        messages.append(Message(role="system", content=decode_content(system, "system")))
    items = fields.array("messages")
    if items is None:
        raise wrong_type("messages", "an array", None)
    messages += [_decode_message(item, i) for i, item in enumerate(items)]
    return tuple(messages)


def _decode_message(item: Json, index: int) -> Message:
    path = f"messages[{index}]"
    if isinstance(item, str):  # no message at all, but nothing we should lose
        return Message(role="user", content=(Opaque(dialect=NAME, data=item),))
    fields = Fields(item, path)
    role = fields.text("role")
    if role not in ("user", "assistant", "system"):
        raise wrong_type(f"{path}.role", "user, assistant or system", role)
    content = decode_content(fields.take("content"), f"{path}.content")
    extra: dict[str, Any] = dict(fields.left)
    if role == "system":
        extra["inline"] = True
    elif role == "user" and content and all(isinstance(part, ToolResult) for part in content):
        role = "tool"
    return Message(
        role=role,  # type: ignore[arg-type]
        content=content,
        extra={NAME: extra} if extra else {},
    )


# Settings.


def _encode_settings(request: Request, body: dict[str, Any], losses: Losses) -> None:
    for name in ("temperature", "top_p", "top_k"):
        value = getattr(request, name)
        if value is not None:
            body[name] = value
    if request.stop_sequences is not None:
        body["stop_sequences"] = list(request.stop_sequences)
    if request.user is not None:
        body["metadata"] = {"user_id": request.user}
    _encode_thinking(request, body)
    if request.response_format is not None:
        _encode_format(request.response_format, body, losses)
    for name in ("seed", "frequency_penalty", "presence_penalty", "n", "verbosity", "metadata"):
        if getattr(request, name) is not None:
            losses.dropped(name, NAME, name)


def _encode_thinking(request: Request, body: dict[str, Any]) -> None:
    effort = request.reasoning_effort
    if request.thinking_budget is not None:
        body["thinking"] = {"type": "enabled", "budget_tokens": request.thinking_budget}
    elif effort == "none":
        body["thinking"] = {"type": "disabled"}
    if effort is not None and effort != "none":
        body["output_config"] = {"effort": _EFFORT.get(effort, effort)}


def _encode_format(form: ResponseFormat, body: dict[str, Any], losses: Losses) -> None:
    if form.type == "json_schema":
        wire = {"type": "json_schema", "schema": form.json_schema}
        kept = dict(extra_of(form, NAME))
        if kept.pop("deprecated", False):
            body["output_format"] = {**wire, **kept}
        else:
            body.setdefault("output_config", {})["format"] = {**wire, **kept}
    elif form.type == "json":
        losses.dropped("json mode", NAME, "response_format")


def _decode_settings(fields: Fields) -> dict[str, Any]:
    settings: dict[str, Any] = {
        "max_tokens": fields.integer("max_tokens"),
        "temperature": fields.number("temperature"),
        "top_p": fields.number("top_p"),
        "top_k": fields.integer("top_k"),
        "stop_sequences": fields.texts("stop_sequences"),
    }
    metadata = fields.fields("metadata")
    if metadata is not None:
        settings["user"] = metadata.text("user_id")
        _put_back(fields, "metadata", metadata.left)
    config = fields.fields("output_config")
    if config is not None:
        settings["reasoning_effort"] = config.text("effort")
        settings["response_format"] = _decode_format(config, "format")
        _put_back(fields, "output_config", config.left)
    settings["response_format"] = settings.get("response_format") or _decode_format(
        fields, "output_format"
    )
    _decode_thinking(fields, settings)
    return settings


def _decode_thinking(fields: Fields, settings: dict[str, Any]) -> None:
    thinking = fields.object("thinking") or {}
    match thinking:
        case {"type": "enabled", "budget_tokens": int(budget)}:
            settings["thinking_budget"] = budget
            known = ("type", "budget_tokens")
            left = {name: value for name, value in thinking.items() if name not in known}
            _put_back(fields, "thinking", left)
        case {"type": "disabled", **rest} if not rest and not settings.get("reasoning_effort"):
            settings["reasoning_effort"] = "none"
        case {"type": _}:
            fields.left["thinking"] = thinking


def _decode_format(fields: Fields, key: str) -> ResponseFormat | None:
    match fields.left.get(key):
        case {"type": "json_schema", "schema": dict(schema), **rest}:
            fields.take(key)
            if key == "output_format":
                rest["deprecated"] = True
            return ResponseFormat(
                type="json_schema", json_schema=schema, extra={NAME: rest} if rest else {}
            )
    return None


def _put_back(fields: Fields, key: str, left: dict[str, Any]) -> None:
    """Keep what was not read of a nested object where it was."""
    if left:
        fields.left[key] = left
