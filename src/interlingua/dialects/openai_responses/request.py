"""Request <-> body."""

from __future__ import annotations

from typing import Any

from interlingua import dialects
from interlingua.dialects.openai_responses.facts import CACHE, FACTS, NAME, PATH, extra_for
from interlingua.dialects.openai_responses.messages import decode_messages, encode_messages
from interlingua.dialects.openai_responses.tools import decode_tools, encode_tools
from interlingua.dialects.openai_shared import STRICT_SCHEMA
from interlingua.prepare.cache import add_cache_key
from interlingua.prepare.options import AUTO_CACHE, Settings, foreign_options
from interlingua.prepare.prepare import start_encoding
from interlingua.prepare.schema import encode_schema
from interlingua.spec.contracts import NEUTRAL_PROFILE, Prepared, Profile, WireCall
from interlingua.spec.request import Request, ResponseFormat
from interlingua.spec.warnings import WarningList
from interlingua.wire.fields import Fields, extra_of, merge, request_errors, wrong_type

_ENDPOINT = "/responses"
_SETTINGS = {  # ours: theirs
    "max_tokens": "max_output_tokens",
    "temperature": "temperature",
    "top_p": "top_p",
    "metadata": "metadata",
    "user": "user",
}
_sayable = Settings(*_SETTINGS)
_unsayable = Settings(
    "stop_sequences", "seed", "frequency_penalty", "presence_penalty", "top_k", "thinking_budget"
)
_FORMATS = {"text": "text", "json_object": "json", "json_schema": "json_schema"}
_FORMAT_NAMES = {ours: theirs for theirs, ours in _FORMATS.items()}


def encode_request(
    request: Request | Prepared, profile: Profile = NEUTRAL_PROFILE, *, stream: bool = False
) -> WireCall:
    """What a client sends."""
    request, options, warnings = start_encoding(request, profile, FACTS)
    path = str(options.pop("path", PATH))
    keyed = options.pop(AUTO_CACHE, None) is not False and path == PATH
    body: dict[str, Any] = {"model": request.model} if request.model else {}
    encode_messages(request, body, warnings)
    if not body["input"] and "prompt" in options:
        del body["input"]  # the stored prompt is all the input there is
    encode_tools(request, body, warnings)
    _encode_settings(request, body, warnings)
    if stream:
        body["stream"] = True
    body = merge(body, options) if options else body
    return WireCall(
        path=path,
        body=add_cache_key(body, request, CACHE, profile) if keyed else body,
        stream=stream,
        warnings=(*warnings.warnings, *foreign_options(request, NAME, dialects.names)),
    )


def decode_request(call: WireCall) -> Request:
    """What a server received."""
    with request_errors():
        fields = Fields(call.body)
        fields.take("stream")
        model = fields.text("model")
        settings = _decode_settings(fields)
        tools = decode_tools(fields)
        messages = decode_messages(fields)
        options = {**_decode_path(call.path), **fields.left}
        return Request(
            model=model or "",
            messages=messages,
            provider_options={NAME: options} if options else {},
            **settings,
            **tools,
        )


def _decode_path(path: str) -> dict[str, Any]:
    """What follows the endpoint is an operation of its own: count, compact, cancel."""
    address = path.partition("?")[0].rstrip("/")
    operation = address.rpartition(_ENDPOINT)[2] if _ENDPOINT in address else ""
    return {"path": PATH + operation} if operation else {}


def _encode_settings(request: Request, body: dict[str, Any], warnings: WarningList) -> None:
    for name, value in _sayable.said(request):
        body[_SETTINGS[name]] = value
    if request.reasoning_effort is not None:
        body["reasoning"] = {"effort": request.reasoning_effort}
    text: dict[str, Any] = {}
    if request.response_format is not None:
        text["format"] = _encode_format(request.response_format, warnings)
    if request.verbosity is not None:
        text["verbosity"] = request.verbosity
    if text:
        body["text"] = text
    for name, _ in _unsayable.said(request):
        warnings.setting_dropped(name)
    if request.n is not None and request.n != 1:
        warnings.setting_dropped("n")


def _encode_format(form: ResponseFormat, warnings: WarningList) -> dict[str, Any]:
    wire: dict[str, Any] = {"type": _FORMAT_NAMES[form.type]}
    if form.type == "json_schema":
        wire["name"] = form.name or "response"  # the API wants one
        given = {} if form.json_schema is None else form.json_schema
        wire["schema"], strict = encode_schema(
            given, STRICT_SCHEMA, warnings, "response_format.json_schema", strict=form.strict
        )
        if strict is not None:
            wire["strict"] = strict
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
                extra=extra_for(inner.left),
            )
        case {"type": "text" | "json_object" as kind, **rest}:
            fields.take("format")
            return ResponseFormat(
                type=_FORMATS[kind],  # type: ignore[arg-type]
                extra=extra_for(rest),
            )
    return None
