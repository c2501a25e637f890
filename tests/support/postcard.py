"""
A dialect of another package: a small wire format that none of ours resembles.

    POST /postcard {"to": model, "lines": [{"by": "user", "says": "Hi."}, …], "live": true}

A line says a text, asks for a tool (`asks`) or answers (`answers`). A stream is server-sent events:
`begin`, `more` text, whole lines, `end`.
"""

import sys
from typing import get_args

from interlingua import dialects
from interlingua.prepare.prepare import start_encoding
from interlingua.spec.content import Text, ToolCall, ToolResult
from interlingua.spec.contracts import NEUTRAL_PROFILE, WireCall
from interlingua.spec.errors import StreamError
from interlingua.spec.events import (
    ErrorEvent,
    Finish,
    ProviderEvent,
    StreamStart,
    TextDelta,
    ToolCallEnd,
)
from interlingua.spec.facts import CacheRules, CacheStep, Facts, HistoryRules
from interlingua.spec.messages import Message
from interlingua.spec.request import Request, ToolDefinition
from interlingua.spec.response import FinishReason, Reason, Response, Usage, Warning
from interlingua.streams.frames import json_frame, read_frame
from interlingua.streams.segments import TextSegment, ToolCallSegment
from interlingua.wire.classify import (
    error_text,
    make_error,
    read_body,
    read_fault,
    retry_headers,
    status_of,
)
from interlingua.wire.fields import Fields, extra_of, merge, request_errors
from interlingua.wire.json_text import dump_text
from support import postcard_serve

NAME = "postcard"
serve = postcard_serve
OPERATIONS = serve.OPERATIONS
PATH = "/postcard"
FACTS = Facts(
    name=NAME,
    history=HistoryRules(
        dialect=NAME,
        paired_calls=True,
        call_id="[a-z0-9]{1,8}",
        joins_roles=True,
        ordered_results=True,
        valid_arguments=True,
        empty_messages=False,
        foreign_blocks=False,
        result_media=False,
        media={"image": (), "audio": (), "document": ()},
        thinking="none",
    ),
    cache=CacheRules(
        fields=("keep",),
        order=(CacheStep(fields=("to",), code="model_changed", cost="all is read anew"),),
        messages="lines",
    ),
)
_SAYABLE = ("max_tokens", "temperature")
_UNSAYABLE = ("top_p", "top_k", "seed", "stop_sequences", "reasoning_effort", "response_format")
_REASONS = get_args(Reason)


def _keep(left):
    return {NAME: left} if left else {}


def encode_line(part):
    """One part as a line."""
    if isinstance(part, ToolCall):
        line = {"asks": {"id": part.id, "tool": part.name, "with": part.arguments}}
    elif isinstance(part, ToolResult):
        content = part.content
        if part.parts is not None:
            content = "".join(inner.text for inner in part.parts if isinstance(inner, Text))
        text = content if isinstance(content, str) else dump_text(content)
        line = {"answers": part.tool_call_id, "says": text}
        line |= {"failed": True} if part.is_error else {}
    else:
        line = {"says": part.text}
    return merge(extra_of(part, NAME), line)


def decode_line(fields):
    """The part that a line is; what is not read is kept."""
    call = fields.fields("asks")
    if call is not None:
        names = (call.text("id") or "", call.text("tool") or "", call.object("with") or {})
        left = {**fields.left, **({"asks": call.left} if call.left else {})}
        return ToolCall(id=names[0], name=names[1], arguments=names[2], extra=_keep(left))
    text = fields.text("says") or ""
    answered = fields.text("answers")
    if answered is None:
        return Text(text=text, extra=_keep(fields.left))
    failed = bool(fields.flag("failed"))
    return ToolResult(
        tool_call_id=answered, content=text, is_error=failed, extra=_keep(fields.left)
    )


def encode_request(request, profile=NEUTRAL_PROFILE, *, stream=False):
    """What a client sends."""
    request, options, losses = start_encoding(request, profile, FACTS)
    lines = [
        {"by": message.role, **encode_line(part)}
        for message in request.messages
        for part in message.content
    ]
    body = {"to": request.model, "lines": lines}
    if request.tools:
        body["tools"] = [_encode_tool(tool) for tool in request.tools]
    body |= {n: getattr(request, n) for n in _SAYABLE if getattr(request, n) is not None}
    lost = tuple(
        Warning(code=f"{name}_dropped", message=f"{NAME} has no {name}", path=name)
        for name in _UNSAYABLE
        if getattr(request, name) is not None
    )
    if stream:
        body["live"] = True
    path = options.pop("path", PATH)
    body = merge(body, options)
    return WireCall(path=path, body=body, stream=stream, warnings=(*losses.warnings, *lost))


def decode_request(call):
    """What a server received."""
    with request_errors():
        fields = Fields(call.body)
        fields.take("live")
        messages = []
        for line in fields.array("lines") or ():
            inner = Fields(line)
            messages.append(Message(role=inner.take("by"), content=(decode_line(inner),)))
        tools = [_decode_tool(Fields(tool)) for tool in fields.array("tools") or ()]
        request = Request(
            model=fields.text("to") or "",
            messages=messages,
            tools=tools or None,
            max_tokens=fields.integer("max_tokens"),
            temperature=fields.number("temperature"),
        )
        options = _keep(fields.left)
        return Request(
            **{n: getattr(request, n) for n in ("model", "messages", "tools", *_SAYABLE)},
            provider_options=options,
        )


def _encode_tool(tool):
    wire = {"tool": tool.name, "about": tool.description, "takes": tool.parameters}
    return merge(extra_of(tool, NAME), wire)


def _decode_tool(fields):
    name, about = fields.text("tool") or "", fields.text("about")
    takes = fields.object("takes")
    return ToolDefinition(name=name, description=about, parameters=takes, extra=_keep(fields.left))


def _encode_end(finish_reason, usage):
    return {
        "why": finish_reason.raw or finish_reason.reason,
        "spent": [usage.input_tokens, usage.output_tokens],
    }


def _decode_end(fields):
    why = fields.text("why") or "other"
    spent = fields.array("spent") or [0, 0]
    reason = why if why in _REASONS else "other"
    return FinishReason(reason=reason, raw=why), Usage(
        input_tokens=spent[0], output_tokens=spent[1]
    )


def encode_response(response, request=None):  # noqa: ARG001
    """What a server sends."""
    lines = [encode_line(part) for part in response.message.content]
    body = {"id": response.id, "from": response.model, "lines": lines}
    body |= _encode_end(response.finish_reason, response.usage)
    return merge(extra_of(response, NAME), body)


def decode_response(body, *, headers=None, new_id=None, profile=NEUTRAL_PROFILE):  # noqa: ARG001
    """What a client received."""
    fields = Fields(body)
    parts = tuple(decode_line(Fields(line)) for line in fields.array("lines") or ())
    finish_reason, usage = _decode_end(fields)
    return Response(
        id=fields.text("id") or "",
        model=fields.text("from") or "",
        message=Message(role="assistant", content=parts),
        finish_reason=finish_reason,
        usage=usage,
        extra=_keep(fields.left),
        raw=body,
    )


class Decoder:
    """Frames in, events out."""

    def __init__(self):
        self._text = None
        self._index = 0
        self._is_over = False

    def feed(self, frame):
        data = read_frame(frame)
        match data:
            case None:
                return []
            case {"error": _}:
                raise make_error(None, {}, read_fault(data), raw=data, text="")
            case {"begin": {"id": id_, "from": model}}:
                return [StreamStart(id=id_, model=model)]
            case {"more": str(text)}:
                return [*self._open(), self._text.delta(text)]
            case {"line": {"asks": _} as line}:
                return [*self._close(), *self._call(decode_line(Fields(line)))]
            case {"end": dict(end)}:
                self._is_over = True
                finish_reason, usage = _decode_end(Fields(end))
                return [*self._close(), Finish(finish_reason=finish_reason, usage=usage)]
            case _:
                return [ProviderEvent(dialect=NAME, data=data)]

    def finish(self):
        if not self._is_over:
            raise StreamError("the postcard ends in the middle")
        return []

    def _open(self):
        if self._text is not None:
            return []
        self._text = TextSegment(self._index)
        self._index += 1
        return [self._text.start()]

    def _close(self):
        text, self._text = self._text, None
        return [] if text is None else [text.end()]

    def _call(self, call):
        segment = ToolCallSegment(self._index, call_id=call.id, name=call.name)
        self._index += 1
        return [segment.start(), segment.delta(dump_text(call.arguments)), segment.end()]


class Encoder:
    """Events in, frames out."""

    def feed(self, event):
        match event:
            case StreamStart():
                return [json_frame({"begin": {"id": event.id, "from": event.model}})]
            case TextDelta():
                return [json_frame({"more": event.delta})]
            case ToolCallEnd():
                return [json_frame({"line": encode_line(event.tool_call)})]
            case ProviderEvent(dialect="postcard"):
                return [json_frame(event.data)]
            case ErrorEvent():
                return [json_frame(encode_error(event.error)[2])]
            case Finish():
                return [json_frame({"end": _encode_end(event.finish_reason, event.usage)})]
        return []

    def finish(self):
        return []


def stream_decoder(*, new_id=None, profile=NEUTRAL_PROFILE):  # noqa: ARG001
    """For a stream a client receives."""
    return Decoder()


def stream_encoder(request):  # noqa: ARG001
    """For a stream a server sends."""
    return Encoder()


def decode_error(status, headers, body):
    """Never raises."""
    value, text = read_body(body)
    return make_error(status, headers, read_fault(value), raw=value, text=text)


def encode_error(error):
    """Status, headers and body that say this error."""
    return status_of(error), retry_headers(error), {"error": {"message": error_text(error)}}


def register():
    """Make it known, as an entry point would."""
    dialects.register(sys.modules[__name__])
