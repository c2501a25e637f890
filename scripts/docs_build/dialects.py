"""The tables at the end of docs/explanation/dialects.md, made by encoding examples."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, get_args

from msgspec.structs import replace

from docs_build import pages
from interlingua import dialects, errors
from interlingua.spec import content as parts
from interlingua.spec.messages import Message
from interlingua.spec.request import (
    BuiltinTool,
    Request,
    ResponseFormat,
    ToolChoice,
    ToolDefinition,
)
from interlingua.spec.response import FinishReason, Reason, Response, Usage

PAGE = pages.DOCS / "explanation" / "dialects.md"
_SHOWN = ("type", "role", "mode")
_FINISH = ("finish_reason", "finishReason", "stop_reason", "status", "details.reason")
_TOOL = ToolDefinition(name="f", parameters={"type": "object", "properties": {}})
_CALL = parts.ToolCall(id="c1", name="f", arguments={"x": 1})
_SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
_HI = Message.user("Hi.")

SETTINGS: dict[str, dict[str, Any]] = {
    "max_tokens": {"max_tokens": 9},
    "temperature": {"temperature": 0.5},
    "top_p": {"top_p": 0.5},
    "top_k": {"top_k": 5},
    "stop_sequences": {"stop_sequences": ["END"]},
    "seed": {"seed": 1},
    "frequency_penalty": {"frequency_penalty": 0.5},
    "presence_penalty": {"presence_penalty": 0.5},
    "logprobs": {"logprobs": 2},
    "reasoning_effort": {"reasoning_effort": "low"},
    "thinking_budget": {"thinking_budget": 2048},
    "include_thinking": {"include_thinking": True},
    "verbosity": {"verbosity": "low"},
    "user": {"user": "u1"},
    "metadata": {"metadata": {"k": "v"}},
    "response_format": {
        "response_format": ResponseFormat(type="json_schema", json_schema=_SCHEMA, name="a")
    },
}
PARTS: dict[str, tuple[Message, ...]] = {
    "system message": (Message.system("Be brief."), _HI),
    "developer message": (Message(role="developer", content="Be brief."), _HI),
    "Text": (Message.user("Bye."),),
    "Image": (Message.user([parts.Image(b"\x89PNG", media_type="image/png")]),),
    "Audio": (Message.user([parts.Audio(b"RIFF", media_type="audio/wav")]),),
    "Document": (Message.user([parts.Document(b"%PDF", media_type="application/pdf")]),),
    "ToolCall and ToolResult": (
        _HI,
        Message(role="assistant", content=(_CALL,)),
        Message(role="tool", content=(parts.ToolResult(tool_call_id="c1", content="ok"),)),
    ),
}
TOOLS: dict[str, dict[str, Any]] = {
    "function": {"tools": [_TOOL]},
    "function, strict": {
        "tools": [
            ToolDefinition(
                name="f", strict=True, parameters={**_SCHEMA, "additionalProperties": False}
            )
        ]
    },
    "custom": {"tools": [ToolDefinition(name="f", type="custom")]},
    "tool_choice required": {"tools": [_TOOL], "tool_choice": "required"},
    "tool_choice named": {"tools": [_TOOL], "tool_choice": "f"},
    "tool_choice.allowed": {
        "tools": [_TOOL],
        "tool_choice": ToolChoice(mode="auto", allowed=["f"]),
    },
    "parallel_tool_calls": {"tools": [_TOOL], "parallel_tool_calls": False},
    "web_search": {"tools": [BuiltinTool.web_search()]},
    "code_execution": {"tools": [BuiltinTool.code_execution()]},
    "file_search": {"tools": [BuiltinTool.file_search("store")]},
    "url_context": {"tools": [BuiltinTool.url_context()]},
    "computer": {"tools": [BuiltinTool.computer()]},
}
_TOKENS = (parts.TokenLogprob(token="Hi", logprob=-0.5),)  # noqa: S106 -- not a password
_PAGE = parts.Citation(url="https://a.example", title="A page", start=0, end=2)
_SHEET = parts.Citation(document=0, title="A sheet", quote="It is so.")
ANSWERS: dict[str, tuple[parts.Part, ...]] = {
    "Text": (parts.Text("Bye."),),
    "citation of a page": (parts.Text("Hi.", citations=(_PAGE,)),),
    "citation of a document": (parts.Text("Hi.", citations=(_SHEET,)),),
    "Text.logprobs": (parts.Text("Hi.", logprobs=_TOKENS),),
    "Thinking": (parts.Thinking("Hm."), parts.Text("Hi.")),
    "Refusal": (parts.Refusal(text="No."),),
    "Refusal.logprobs": (parts.Refusal(text="No.", logprobs=_TOKENS),),
    "ToolCall": (parts.Text("Hi."), _CALL),
    "Image": (parts.Text("Hi."), parts.Image(b"\x89PNG", media_type="image/png")),
}
_USAGE = Usage(input_tokens=90, output_tokens=50)
USAGE: dict[str, dict[str, int]] = {
    "input_tokens": {"input_tokens": 91},
    "output_tokens": {"output_tokens": 51},
    "reasoning_tokens": {"reasoning_tokens": 7},
    "cache_read_tokens": {"cache_read_tokens": 7},
    "cache_write_tokens": {"cache_write_tokens": 7},
    "input_audio_tokens": {"input_audio_tokens": 7},
    "input_image_tokens": {"input_image_tokens": 7},
    "output_audio_tokens": {"output_audio_tokens": 7},
    "output_image_tokens": {"output_image_tokens": 7},
}
ERRORS = (
    *("InvalidRequestError", "AuthenticationError", "AccessDeniedError", "NotFoundError"),
    *("RateLimitError", "QuotaExceededError", "ContextLengthError", "ContentFilterError"),
    *("ServerError", "ProviderTimeoutError"),
)


def texts() -> dict[Path, str]:
    """The page with its tables."""
    return {PAGE: pages.fill(PAGE, _table)}


def _table(name: str) -> str:
    """The tables of one dialect."""
    rows = ["| canonical | wire |", "|---|---|"]
    groups = {
        **{f"`{each}`": {"messages": [_HI], **given} for each, given in SETTINGS.items()},
        **{_title(each): {"messages": [*given]} for each, given in PARTS.items()},
        **{f"tool: {each}": {"messages": [_HI], **given} for each, given in TOOLS.items()},
    }
    for title, fields in groups.items():
        rows.append(f"| {title} | {_difference(name, fields)} |")
    rows += [f"| `{each}` | {_error(name, each)} |" for each in ERRORS]
    rows += ["", f"Answers in `{name}`:", "", "| canonical | wire |", "|---|---|", *_answers(name)]
    return "\n".join(rows)


def _answers(name: str) -> Iterator[str]:
    """The rows of what an answer has: parts, finish reasons, usage."""
    for title, content in ANSWERS.items():
        base = _answer(content=ANSWERS["Refusal"]) if title == "Refusal.logprobs" else _answer()
        changed = _changed(name, _answer(content=content), base)
        yield f"| {_title(title)} | {changed or 'not sent'} |"
    module = import_module(f"interlingua.dialects.{name}.response")
    for reason in get_args(Reason):
        content = (_CALL,) if reason == "tool_calls" else (parts.Text("Hi."),)
        answer = _answer(content=content, reason=reason)
        words = ", ".join(f"`{word}`" for word in _words(module, reason))
        read = f"; read from {words}" if words else ""
        yield f"| finish reason `{reason}` | sent as {_finish(name, answer)}{read} |"
    for title, counts in USAGE.items():
        answer = _answer(usage=replace(_USAGE, **counts))
        yield f"| `Usage.{title}` | {_changed(name, answer, _answer()) or 'not sent'} |"


def _answer(
    content: tuple[parts.Part, ...] = (parts.Text("Hi."),),
    reason: Reason = "stop",
    usage: Usage = _USAGE,
) -> Response:
    return Response(
        id="r",
        model="m",
        message=Message(role="assistant", content=content),
        finish_reason=FinishReason(reason=reason),
        usage=usage,
    )


def _changed(name: str, answer: Response, other: Response) -> str:
    """The places of an answer that the other has not, or has with another value."""
    encode = dialects.get(name).encode_response
    base = [*_leaves(encode(other), "")]
    places = [place for place, value in _leaves(encode(answer), "") if (place, value) not in base]
    groups: dict[str, list[str]] = {}
    for place in dict.fromkeys(places):
        path, colon, value = place.partition(": ")
        parent, _, field = path.rpartition(".")
        groups.setdefault(parent, []).append(f"{field}{colon}{value}")
    return ", ".join(f"`{_joined(parent, fields)}`" for parent, fields in groups.items())


def _joined(parent: str, fields: list[str]) -> str:
    """The fields of one object as one place."""
    inner = fields[0] if len(fields) == 1 else f"{{{', '.join(fields)}}}"
    return f"{parent}.{inner}" if parent else inner


def _finish(name: str, answer: Response) -> str:
    """The fields that say how an answer ended, with their values."""
    leaves = _leaves(dialects.get(name).encode_response(answer), "")
    found = [
        f"`{place}: {value}`"
        for place, value in leaves
        if place.endswith(_FINISH) and not place.startswith("output") and value is not None
    ]
    return ", ".join(found)


def _words(module: ModuleType, reason: Reason) -> list[str]:
    """The words of the wire that mean a finish reason, from the tables of the dialect."""
    tables = [table for table in vars(module).values() if isinstance(table, dict)]
    read = [table for table in tables if all(each in get_args(Reason) for each in table.values())]
    return [str(word) for table in read for word, meant in table.items() if meant == reason]


def _title(name: str) -> str:
    return f"`{name}`" if name.replace(".", "").isidentifier() else name


def _body(name: str, fields: dict[str, Any]) -> list[tuple[str, Any]]:
    call = dialects.get(name).encode_request(Request(model="m", **fields))
    return [*_leaves(call.body, "")]


def _difference(name: str, fields: dict[str, Any]) -> str:
    """What the example adds or changes, and the codes of its warnings."""
    plain: dict[str, Any] = {"messages": [_HI]}
    if len(fields) > 2:  # a setting beside a tool
        plain["tools"] = fields["tools"]
    base = _body(name, plain)
    changed = [place for place, value in _body(name, fields) if (place, value) not in base]
    warnings = dialects.get(name).encode_request(Request(model="m", **fields)).warnings
    shown = [f"`{place}`" for place in dict.fromkeys(changed)]
    notes = [f"warning `{code}`" for code in dict.fromkeys(each.code for each in warnings)]
    return ", ".join(shown + notes) or "nothing is needed"


def _leaves(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    """The places of the values in a body; the inside of a schema is left out."""
    key = path.rpartition(".")[2]
    if isinstance(value, dict) and value and key not in ("parameters", "input_schema", "schema"):
        if not key.endswith(("Schema", "arguments", "args", "metadata")):
            for name, inner in value.items():
                yield from _leaves(inner, f"{path}.{name}" if path else name)
            return
    elif isinstance(value, list) and value and not isinstance(value[0], str):
        for inner in value:
            yield from _leaves(inner, f"{path}[]")
        return
    yield f"{path}: {value}" if key in _SHOWN and isinstance(value, str) else path, value


def _error(name: str, kind: str) -> str:
    error = getattr(errors, kind)("The message.")
    status, _, body = dialects.get(name).encode_error(error)
    inner = body.get("error", body) if isinstance(body, dict) else {}
    words = [inner.get(key) for key in ("type", "code", "status")]
    shown = ", ".join(f"`{word}`" for word in words if isinstance(word, str))
    return f"{status}, {shown}" if shown else str(status)
