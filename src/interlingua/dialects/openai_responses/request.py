"""Request <-> body."""

from __future__ import annotations

from typing import Any

from interlingua.dialects.openai_responses.content import INPUT_TEXT, OUTPUT_TEXT, decode_content
from interlingua.dialects.openai_responses.items import (
    ItemEncoder,
    decode_result,
    decode_turn,
    is_turn,
    shorten,
)
from interlingua.dialects.openai_responses.tools import decode_tools, encode_tools
from interlingua.dialects.openai_responses.wire import ITEM, NAME, PATH
from interlingua.spec.content import Json, Opaque, Part, Refusal, Text, ToolCall
from interlingua.spec.contracts import DEFAULT, Profile, WireCall
from interlingua.spec.messages import Message, Role
from interlingua.spec.request import Request, ResponseFormat
from interlingua.wire.carry import Losses
from interlingua.wire.options import foreign_options, merge, options_for
from interlingua.wire.shape import Fields, extra_of, request_errors, wrong_type

_ENDPOINT = "/responses"
_INLINE = "inline"  # a system message that was an item, where ours would be `instructions`
_SETTINGS = {  # ours: theirs
    "max_tokens": "max_output_tokens",
    "temperature": "temperature",
    "top_p": "top_p",
    "metadata": "metadata",
    "user": "user",
}
_UNSAYABLE = (
    "stop_sequences",
    "seed",
    "frequency_penalty",
    "presence_penalty",
    "top_k",
    "thinking_budget",
)
_FORMATS = {"text": "text", "json_object": "json", "json_schema": "json_schema"}
_FORMAT_NAMES = {ours: theirs for theirs, ours in _FORMATS.items()}
_RESULTS = ("function_call_output", "custom_tool_call_output")
_SAID_BY_DEVELOPER = ("additional_tools", "configuration_update", "compaction_trigger")


def encode_request(
    request: Request,
    profile: Profile = DEFAULT,  # noqa: ARG001 -- the neutral mapping; profiles clamp elsewhere
    *,
    stream: bool = False,
) -> WireCall:
    """What a client sends."""
    losses = Losses()
    options = options_for(request, NAME)
    path = str(options.pop("path", PATH))
    body: dict[str, Any] = {"model": request.model} if request.model else {}
    _encode_messages(request, body, losses)
    if not body["input"] and "prompt" in options:
        del body["input"]  # the stored prompt is all the input there is
    encode_tools(request, body, losses)
    _encode_settings(request, body, losses)
    if stream:
        body["stream"] = True
    return WireCall(
        path=path,
        body=merge(body, options),
        stream=stream,
        warnings=(*losses.warnings, *foreign_options(request, NAME)),
    )


def decode_request(call: WireCall) -> Request:
    """What a server received."""
    with request_errors():
        fields = Fields(call.body)
        fields.take("stream")
        model = fields.text("model")
        settings = _decode_settings(fields)
        tools = decode_tools(fields)
        messages = _decode_messages(fields)
        options = {**_decode_path(call.path), **fields.left}
        return Request(
            model=model or "",
            messages=tuple(messages),
            provider_options={NAME: options} if options else {},
            **settings,
            **tools,
        )


def _decode_path(path: str) -> dict[str, Any]:
    """What follows the endpoint is an operation of its own: count, compact, cancel."""
    address = path.partition("?")[0].rstrip("/")
    operation = address.rpartition(_ENDPOINT)[2] if _ENDPOINT in address else ""
    return {"path": PATH + operation} if operation else {}


# Messages. A leading system message is `instructions`; a later one stays in place.


def _encode_messages(request: Request, body: dict[str, Any], losses: Losses) -> None:
    messages = request.messages
    first = 0
    if messages and _is_instructions(messages[0]):
        body["instructions"] = messages[0].text
        first = 1
    calls = (part for message in messages for part in message.content if isinstance(part, ToolCall))
    custom = frozenset(call.id for call in calls if call.type == "custom")
    encoder = ItemEncoder(losses, custom=custom)
    for i, message in enumerate(messages[first:], first):
        _encode_message(message, encoder, f"messages[{i}]")
        if message.name is not None:
            losses.dropped("name", NAME, f"messages[{i}].name")
    for item in encoder.messages:
        _shorten(item)
    body["input"] = encoder.items


def _is_instructions(message: Message) -> bool:
    """A string can say it: one text, without fields of this API's own."""
    match message.content:
        case (Text(extra=extra),):
            return message.role == "system" and not (NAME in extra or NAME in message.extra)
    return False


def _encode_message(message: Message, encoder: ItemEncoder, path: str) -> None:
    own = dict(extra_of(message, NAME))
    if own.pop(ITEM, False):
        encoder.items += [part.data for part in message.content if isinstance(part, Opaque)]
        return
    own.pop(_INLINE, None)
    encoder.message(message.role, message.content, path, own or None)


def _shorten(item: dict[str, Any]) -> None:
    """The short form of a message, unless it has what only the long one may have."""
    if "id" not in item and "status" not in item:
        kind = OUTPUT_TEXT if item["role"] == "assistant" else INPUT_TEXT
        item["content"] = shorten(item["content"], kind)


def _decode_messages(fields: Fields) -> list[Message]:
    messages: list[Message] = []
    instructions = fields.left.get("instructions")
    if isinstance(instructions, str):
        fields.take("instructions")
        messages.append(Message.system(instructions))
    elif instructions is not None and not isinstance(instructions, list):
        raise wrong_type("instructions", "text", instructions)
    given = fields.take("input")
    if isinstance(given, str):
        return [*messages, Message.user(given)]
    if given is not None and not isinstance(given, list):
        raise wrong_type("input", "text or an array of items", given)
    turn: list[Part] = []  # what the model made since the last message of others
    for i, item in enumerate(given or ()):
        message = _decode_item(item, f"input[{i}]", turn, leading=not messages)
        if message is not None:
            if turn:
                messages.append(Message(role="assistant", content=tuple(turn)))
                turn.clear()
            messages.append(message)
    if turn:
        messages.append(Message(role="assistant", content=tuple(turn)))
    return messages


def _decode_item(item: Json, path: str, turn: list[Part], *, leading: bool) -> Message | None:
    """The message an item is; None if it went on with the model's turn."""
    if isinstance(item, str):  # no item at all, but nothing we should lose
        return _opaque("user", item)
    if not isinstance(item, dict):
        raise wrong_type(path, "an item", item)
    kind = item.get("type")
    if is_turn(item):
        marked = bool(turn) and isinstance(turn[-1], (Text, Refusal))
        turn += decode_turn(item, path, marked=marked)
        return None
    if kind in _RESULTS:
        return Message(role="tool", content=(decode_result(item, path),))
    if kind in (None, "message"):
        return _decode_message(item, path, leading=leading and not turn)
    role = _role_of(kind, item)
    if role != "assistant":
        return _opaque(role, item)
    turn.append(Opaque(dialect=NAME, data=item))
    return None


def _decode_message(item: dict[str, Any], path: str, *, leading: bool) -> Message:
    fields = Fields(item, path)
    role = fields.text("role")
    if role is None:
        raise wrong_type(fields.at("role"), "user, assistant, system or developer", role)
    if role not in ("user", "system", "developer"):
        return _opaque("user", item)
    fields.take("type")
    content = decode_content(fields.take("content"), fields.at("content"), INPUT_TEXT)
    extra = fields.left
    if role == "system" and leading:
        extra[_INLINE] = True
    return Message(
        role=role,  # type: ignore[arg-type]
        content=content,
        extra={NAME: extra} if extra else {},
    )


def _opaque(role: Role, item: Json) -> Message:
    extra = {} if role == "tool" else {NAME: {ITEM: True}}
    return Message(role=role, content=(Opaque(dialect=NAME, data=item),), extra=extra)


def _role_of(kind: Any, item: dict[str, Any]) -> Role:
    """Who would say an item that has no canonical form."""
    if not isinstance(kind, str):
        return "user"
    if kind in _SAID_BY_DEVELOPER:
        return "developer"
    if kind.endswith(("_output", "_response")) and item.get("execution") != "server":
        return "tool"
    return "assistant"


# Settings.


def _encode_settings(request: Request, body: dict[str, Any], losses: Losses) -> None:
    for ours, theirs in _SETTINGS.items():
        value = getattr(request, ours)
        if value is not None:
            body[theirs] = value
    if request.reasoning_effort is not None:
        body["reasoning"] = {"effort": request.reasoning_effort}
    text: dict[str, Any] = {}
    if request.response_format is not None:
        text["format"] = _encode_format(request.response_format)
    if request.verbosity is not None:
        text["verbosity"] = request.verbosity
    if text:
        body["text"] = text
    for name in _UNSAYABLE:
        if getattr(request, name) is not None:
            losses.dropped(name, NAME, name)
    if request.n is not None and request.n != 1:
        losses.dropped("n", NAME, "n")


def _encode_format(form: ResponseFormat) -> dict[str, Any]:
    wire: dict[str, Any] = {"type": _FORMAT_NAMES[form.type]}
    if form.type == "json_schema":
        wire["name"] = form.name or "response"  # the API wants one
        wire["schema"] = {} if form.json_schema is None else form.json_schema
        if form.strict is not None:
            wire["strict"] = form.strict
        if form.description is not None:
            wire["description"] = form.description
    return {**extra_of(form, NAME), **wire}


def _decode_settings(fields: Fields) -> dict[str, Any]:
    settings: dict[str, Any] = {
        "max_tokens": fields.integer("max_output_tokens"),
        "temperature": fields.number("temperature"),
        "top_p": fields.number("top_p"),
        "metadata": fields.object("metadata"),
        "user": fields.text("user"),
    }
    text = fields.fields("text")
    if text is not None:
        settings["verbosity"] = text.text("verbosity")
        settings["response_format"] = _decode_format(text)
        _put_back(fields, "text", text, settings["verbosity"] or settings["response_format"])
    reasoning = fields.fields("reasoning")
    if reasoning is not None:
        settings["reasoning_effort"] = reasoning.text("effort")
        _put_back(fields, "reasoning", reasoning, settings["reasoning_effort"])
    return settings


def _put_back(fields: Fields, key: str, inner: Fields, taken: object) -> None:
    """Keep what was not read of a nested object where it was; an empty one too."""
    if inner.left or not taken:
        fields.left[key] = inner.left


def _decode_format(fields: Fields) -> ResponseFormat | None:
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
                extra={NAME: inner.left} if inner.left else {},
            )
        case {"type": "text" | "json_object" as kind, **rest}:
            fields.take("format")
            return ResponseFormat(
                type=_FORMATS[kind],  # type: ignore[arg-type]
                extra={NAME: rest} if rest else {},
            )
    return None
