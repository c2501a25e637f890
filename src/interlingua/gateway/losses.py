"""What each route would lose of the requests of each dialect, without a key or the network."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from msgspec.structs import replace

from interlingua import dialects
from interlingua.client.client import Client
from interlingua.client.middleware.fallback import Fallback
from interlingua.serving.exchange import ModelRoute, with_settings
from interlingua.spec.content import Audio, Document, Image, Part, Text, ToolCall, ToolResult
from interlingua.spec.errors import ConfigurationError, SDKError
from interlingua.spec.messages import Message
from interlingua.spec.request import BuiltinTool, Request, ResponseFormat, ToolDefinition
from interlingua.spec.warning_table import WARNINGS

_SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}
_TOOL = ToolDefinition(name="weather", description="The weather.", parameters=_SCHEMA)
_PNG = b"\x89PNG\r\n\x1a\n"
_CALL = ToolCall(id="call_1", name="weather", arguments={"city": "Oslo"})


def _said(*content: Part) -> dict[str, Any]:
    return {"messages": (Message(role="user", content=content),)}


def _returned(*content: Part) -> dict[str, Any]:
    history = (
        Message.user("How is it there?"),
        Message(role="assistant", content=(_CALL,)),
        Message(role="tool", content=(ToolResult(tool_call_id=_CALL.id, content=content),)),
    )
    return {"messages": history, "tools": (_TOOL,)}


FEATURES: Mapping[str, Mapping[str, Any]] = {
    "system prompt": {"messages": (Message.system("Be brief."), Message.user("Hi."))},
    "images": _said(Text("What is this?"), Image(_PNG, media_type="image/png")),
    "documents": _said(Text("What is this?"), Document(b"%PDF-1.4", media_type="application/pdf")),
    "audio": _said(Text("What is this?"), Audio(b"RIFF", media_type="audio/wav")),
    "tools": {"tools": (_TOOL,)},
    "strict tools": {"tools": (replace(_TOOL, strict=True),)},
    "custom tools": {"tools": (ToolDefinition(name="patch", type="custom"),)},
    "forced tools": {"tools": (_TOOL,), "tool_choice": "required"},
    "one tool at a time": {"tools": (_TOOL,), "parallel_tool_calls": False},
    "tool results": _returned(Text("Rain.")),
    "images in tool results": _returned(Image(_PNG, media_type="image/png")),
    "web search": {"tools": (BuiltinTool.web_search(),)},
    "code execution": {"tools": (BuiltinTool.code_execution(),)},
    "structured output": {
        "response_format": ResponseFormat(type="json_schema", json_schema=_SCHEMA, name="place")
    },
    "reasoning effort": {"reasoning_effort": "low"},
    "temperature": {"temperature": 0.5},
    "top_p": {"top_p": 0.9},
    "top_k": {"top_k": 5},
    "stop sequences": {"stop_sequences": ("END",)},
    "seed": {"seed": 1},
    "penalties": {"frequency_penalty": 0.1, "presence_penalty": 0.1},
    "logprobs": {"logprobs": 2},
    "verbosity": {"verbosity": "low"},
    "user": {"user": "someone"},
    "metadata": {"metadata": {"purpose": "a test"}},
}
"""What a request may ask for: the fields of a request that asks for it and for nothing else."""


class Loss(NamedTuple):
    """A feature of requests of one dialect that a model of a route changes or loses."""

    model: str
    """As the route names it."""
    dialect: str
    feature: str
    codes: tuple[str, ...]
    """Of the warnings; `invalid_request` if such a request is refused."""
    messages: tuple[str, ...]


def served_dialects() -> tuple[str, ...]:
    """The names of the dialects in which clients may ask."""
    names = dialects.names()
    return tuple(name for name in names if hasattr(dialects.get(name), "serve"))


def models_of(client: Client, route: ModelRoute) -> tuple[str, ...]:
    """The model of a route, and those that are asked after it has failed."""
    layers = (route.client or client).middleware
    others = [each.models for each in layers if isinstance(each, Fallback)]
    return (route.model, *(each.model for models in others for each in models))


def find_losses(client: Client, route: ModelRoute) -> Iterator[Loss]:
    """What each model of a route loses of the requests of each dialect that the gateway serves."""
    answering, models = route.client or client, models_of(client, route)
    for dialect in served_dialects():
        for feature, fields in FEATURES.items():
            asked = as_asked(dialect, fields)
            if asked is not None:
                request = with_settings(asked, route.settings)
                for model in models:
                    lost = _explain(answering, replace(request, model=model))
                    if lost is not None:
                        yield Loss(model, dialect, feature, *lost)


def as_asked(dialect: str, fields: Mapping[str, Any]) -> Request | None:
    """The request as a client of the dialect says it; None if the dialect has no words for it."""
    request = Request(**{"model": "model", "messages": "Hi.", "on_loss": "warn", **fields})
    module = dialects.get(dialect)
    try:
        call = module.encode_request(request)
        if any(WARNINGS[warning.code].kind != "note" for warning in call.warnings):
            return None
        return module.decode_request(call)
    except SDKError:
        return None


def _explain(client: Client, request: Request) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """The codes and the messages of what is lost; None if nothing is."""
    try:
        request = replace(request, provider_options={}, on_loss="warn")
        warnings = client.explain(request).warnings
    except ConfigurationError:
        raise
    except SDKError as error:
        return ("invalid_request",), (error.message,)
    lost = [warning for warning in warnings if WARNINGS[warning.code].kind != "note"]
    if not lost:
        return None
    codes = tuple(dict.fromkeys(warning.code for warning in lost))
    return codes, tuple(warning.message for warning in lost)
