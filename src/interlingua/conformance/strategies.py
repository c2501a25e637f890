"""
Hypothesis strategies for canonical values and JSON (`hypothesis` must be installed).

Strategies that others draw from are built once, here: building one costs more than drawing.
"""

from __future__ import annotations

from typing import Any, get_args

import msgspec

try:
    from hypothesis import strategies as st
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "`interlingua.conformance.strategies` needs hypothesis. Install it with "
        "`pip install hypothesis`.",
        name=error.name,
    ) from error

from interlingua.spec.content import (
    Audio,
    Document,
    Image,
    Part,
    Refusal,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from interlingua.spec.messages import Message
from interlingua.spec.request import (
    NEVER_SENT,
    NOT_SETTINGS,
    Grammar,
    Request,
    ResponseFormat,
    ToolChoice,
    ToolDefinition,
)
from interlingua.spec.response import FinishReason, Response, Usage

_PNG = b"\x89PNG\r\n\x1a\n"
_PDF = b"%PDF-1.7\n"
_WAV = b"RIFF\x00\x00\x00\x00WAVE"

words: st.SearchStrategy[str] = st.text(
    st.characters(codec="utf-8", exclude_characters="\x00"), min_size=1, max_size=12
)
"""Short texts of any characters, not empty."""
names: st.SearchStrategy[str] = st.from_regex(r"[a-z][a-z0-9_]{0,10}", fullmatch=True)
"""Names of tools."""
numbers: st.SearchStrategy[int | float] = st.integers(-(2**53), 2**53) | st.floats(
    allow_nan=False, allow_infinity=False, width=32
)
"""Numbers that every JSON parser can represent."""
json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | numbers | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=8,
)
"""Any JSON value."""
json_objects: st.SearchStrategy[dict[str, Any]] = st.dictionaries(words, json_values, max_size=3)
"""Any JSON object."""
schemas: st.SearchStrategy[dict[str, Any]] = st.just(
    {"type": "object", "properties": {"city": {"type": "string"}}}
)
"""The JSON Schema of the input of a tool."""


_booleans = st.booleans()
_texts = st.builds(lambda text: Text(text=text), words)
_media: st.SearchStrategy[Part] = st.one_of(
    st.just(Image(url="https://example.com/cat.png")),
    st.binary(max_size=8).map(lambda b: Image(data=_PNG + b, media_type="image/png")),
    st.binary(max_size=8).map(
        lambda b: Document(data=_PDF + b, media_type="application/pdf", file_name="a.pdf")
    ),
    st.binary(max_size=8).map(lambda b: Audio(data=_WAV + b, media_type="audio/wav")),
)
_result_contents = (
    words
    | json_objects.filter(lambda value: "kind" not in value)
    | _texts.map(lambda text: (text,))
)
_one_to_three = st.integers(1, 3)
_zero_or_one_text = st.lists(_texts, max_size=1)


def texts() -> st.SearchStrategy[Text]:
    """Generate text parts that are not empty."""
    return _texts


def media() -> st.SearchStrategy[Part]:
    """Generate images, audio and documents, by URL and by bytes."""
    return _media


def results(tool_call_id: str) -> st.SearchStrategy[ToolResult]:
    """Generate results of one tool call: text, JSON or parts."""
    return st.builds(
        lambda body, failed: ToolResult(tool_call_id=tool_call_id, content=body, is_error=failed),
        _result_contents,
        _booleans,
    )


_namespaces = st.sampled_from([None, None, "crm", "mail"])
_cut_arguments = st.sampled_from(['{"city": "Os', '{"', "{", "no JSON", '["a"]'])
_empty_arguments = st.sampled_from(["", " ", "null", "[]", "{}"])
_SEARCH = "tool_search"


def tool_calls(tool_call_id: str) -> st.SearchStrategy[ToolCall]:
    """Generate tool calls of every type: with an object, free text, no text, or text cut off."""
    common = {"id": st.just(tool_call_id), "name": names, "namespace": _namespaces}
    return st.one_of(
        st.builds(ToolCall, **common, arguments=json_objects),
        st.builds(ToolCall, **common, raw_arguments=_empty_arguments | _cut_arguments),
        st.builds(ToolCall, **common, type=st.just("custom"), raw_arguments=words | st.just("")),
        st.builds(
            ToolCall,
            id=st.just(tool_call_id),
            name=st.just(_SEARCH),
            type=st.just("search"),
            arguments=json_objects,
        ),
    )


@st.composite
def tool_rounds(draw: st.DrawFn, start: int = 0) -> list[Message]:
    """Generate an assistant message with tool calls, and the tool message with their results."""
    count = draw(_one_to_three)
    calls = [
        ToolCall(id=f"call_{start + i}", name=draw(names), arguments=draw(json_objects))
        for i in range(count)
    ]
    before = draw(_zero_or_one_text)
    answers = [
        ToolResult(tool_call_id=call.id, content=draw(_result_contents), is_error=draw(_booleans))
        for call in calls
    ]
    return [
        Message(role="assistant", content=(*before, *calls)),
        Message(role="tool", content=tuple(answers)),
    ]


_system_texts = st.lists(words, max_size=1)
_user_contents = st.lists(_texts | _media, min_size=1, max_size=3)
_tool_rounds = [tool_rounds(start=10 * turn) for turn in range(3)]


@st.composite
def conversations(draw: st.DrawFn) -> tuple[Message, ...]:
    """Generate a history that any provider accepts."""
    messages = [Message.system(text) for text in draw(_system_texts)]
    for turn in range(draw(_one_to_three)):
        messages.append(Message(role="user", content=tuple(draw(_user_contents))))
        if draw(_booleans):
            messages += draw(_tool_rounds[turn])
        messages.append(Message.assistant(draw(words)))
    return (*messages, Message.user(draw(words)))


_conversations = conversations()
_tool_names = st.lists(names, max_size=3, unique=True)
_tool_modes = st.sampled_from(["auto", "none", "required"])
_maybe_boolean = st.none() | _booleans
_APART = frozenset(("provider", "tool_choice", "parallel_tool_calls", "include_thinking"))
"""Settings that `requests` draws in its own way, or not at all."""
_LIKELY: dict[str, st.SearchStrategy[Any]] = {
    "response_format": st.just(
        ResponseFormat(type="json_schema", json_schema={"type": "object"}, name="out")
    ),
    "temperature": st.floats(0, 2, width=16),
    "top_p": st.floats(0, 1, width=16),
    "top_k": st.integers(0, 100),
    "max_tokens": st.integers(1, 9999),
    "stop_sequences": st.lists(words, min_size=1, max_size=3).map(tuple),
    "frequency_penalty": st.just(0.0),
    "presence_penalty": st.just(0.5),
    "logprobs": st.integers(0, 5),
    "reasoning_effort": st.sampled_from(["low", "medium", "high"]),
    "thinking_budget": st.just(2048),
    "verbosity": st.just("low"),
    "metadata": st.just({"team": "blue"}),
}
"""Values that some provider accepts, where the type of a setting allows many that none does."""
_BY_TYPE: dict[Any, st.SearchStrategy[Any]] = {
    bool: _booleans,
    int: st.integers(0, 2**31),
    float: st.floats(0, 1, width=16),
    str: words,
}


def _values_of(field: msgspec.structs.FieldInfo) -> st.SearchStrategy[Any]:
    if field.name in _LIKELY:
        return _LIKELY[field.name]
    kind, *_ = get_args(field.type)
    return _BY_TYPE[getattr(kind, "__origin__", kind)]  # of `Annotated`


_settings: dict[str, st.SearchStrategy[Any]] = {
    field.name: st.none() | _values_of(field)
    for field in msgspec.structs.fields(Request)
    if field.name not in NOT_SETTINGS | NEVER_SENT | _APART
}


_rarely = st.sampled_from([False, False, False, True])
_grammars = st.none() | st.builds(
    Grammar, syntax=st.sampled_from(["lark", "regex"]), definition=words
)


def _custom_tools(name: str) -> st.SearchStrategy[ToolDefinition]:
    return st.builds(
        ToolDefinition,
        name=st.just(name),
        description=words,
        type=st.just("custom"),
        grammar=_grammars,
        namespace=_namespaces,
    )


@st.composite
def requests(draw: st.DrawFn) -> Request:
    """Generate any request, with settings that not every provider supports."""
    tools = draw(_tool_names)
    mode = draw(_tool_modes)
    return Request(
        model=draw(names),
        messages=draw(_conversations),
        tools=tuple(
            draw(_custom_tools(name))
            if draw(_rarely)
            else ToolDefinition(
                name=name,
                description=draw(words),
                parameters=draw(schemas),
                namespace=draw(_namespaces),
            )
            for name in tools
        )
        or None,
        tool_choice=ToolChoice(mode=mode) if tools else None,  # type: ignore[arg-type]
        parallel_tool_calls=draw(_maybe_boolean) if tools else None,
        **{name: draw(values) for name, values in _settings.items()},
    )


_thoughts = st.lists(words.map(lambda text: Thinking(text=text)), max_size=1)
_answer_texts = st.lists(_texts, max_size=2)
_zero_to_two = st.integers(0, 2)
_token_counts = st.integers(0, 1000)
_maybe_tokens = st.none() | st.integers(0, 50)


@st.composite
def responses(draw: st.DrawFn) -> Response:
    """Generate any response."""
    thinking = draw(_thoughts)
    answer: list[Part] = list(draw(_answer_texts))
    if draw(_booleans) and not answer:
        answer = [Refusal(text=draw(words))]
    calls = [
        ToolCall(id=f"call_{i}", name=draw(names), arguments=draw(json_objects))
        for i in range(draw(_zero_to_two))
    ]
    read = draw(_maybe_tokens)
    return Response(
        id=draw(names),
        model=draw(names),
        message=Message(role="assistant", content=(*thinking, *answer, *calls)),
        finish_reason=FinishReason(reason="tool_calls" if calls else "stop"),
        usage=Usage(
            input_tokens=100 + draw(_token_counts),
            output_tokens=50 + draw(_token_counts),
            reasoning_tokens=draw(_maybe_tokens),
            cache_read_tokens=read,
        ),
    )
