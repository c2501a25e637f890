"""Made-up canonical values and JSON, for `hypothesis` (which must be installed)."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

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
from interlingua.spec.request import Request, ResponseFormat, ToolChoice, ToolDefinition
from interlingua.spec.response import FinishReason, Response, Usage

_PNG = b"\x89PNG\r\n\x1a\n"
_PDF = b"%PDF-1.7\n"
_WAV = b"RIFF\x00\x00\x00\x00WAVE"

words = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), min_size=1, max_size=12)
names = st.from_regex(r"[a-z][a-z0-9_]{0,10}", fullmatch=True)
numbers = st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False, width=32)
json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | numbers | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=8,
)
json_objects = st.dictionaries(words, json_values, max_size=3)
schemas = st.just({"type": "object", "properties": {"city": {"type": "string"}}})


def texts() -> st.SearchStrategy[Text]:
    """Text that is there."""
    return st.builds(lambda text: Text(text=text), words)


def media() -> st.SearchStrategy[Part]:
    """Images, sounds and documents, by address and by bytes."""
    return st.one_of(
        st.just(Image(url="https://example.com/cat.png")),
        st.binary(max_size=8).map(lambda b: Image(data=_PNG + b, media_type="image/png")),
        st.binary(max_size=8).map(
            lambda b: Document(data=_PDF + b, media_type="application/pdf", file_name="a.pdf")
        ),
        st.binary(max_size=8).map(lambda b: Audio(data=_WAV + b, media_type="audio/wav")),
    )


def results(tool_call_id: str) -> st.SearchStrategy[ToolResult]:
    """Text, JSON or parts as the answer to one call."""
    content = (
        words
        | json_objects.filter(lambda value: "kind" not in value)
        | texts().map(lambda text: (text,))
    )
    return st.builds(
        lambda body, failed: ToolResult(tool_call_id=tool_call_id, content=body, is_error=failed),
        content,
        st.booleans(),
    )


@st.composite
def tool_rounds(draw: st.DrawFn, start: int = 0) -> list[Message]:
    """An assistant message with calls, and the tool message that answers each."""
    count = draw(st.integers(1, 3))
    calls = [
        ToolCall(id=f"call_{start + i}", name=draw(names), arguments=draw(json_objects))
        for i in range(count)
    ]
    said = draw(st.lists(texts(), max_size=1))
    answers = [draw(results(call.id)) for call in calls]
    return [
        Message(role="assistant", content=(*said, *calls)),
        Message(role="tool", content=tuple(answers)),
    ]


@st.composite
def conversations(draw: st.DrawFn) -> tuple[Message, ...]:
    """A history any provider could have had."""
    messages = [Message.system(text) for text in draw(st.lists(words, max_size=1))]
    for turn in range(draw(st.integers(1, 3))):
        content = draw(st.lists(texts() | media(), min_size=1, max_size=3))
        messages.append(Message(role="user", content=tuple(content)))
        if draw(st.booleans()):
            messages += draw(tool_rounds(start=10 * turn))
        messages.append(Message.assistant(draw(words)))
    return (*messages, Message.user(draw(words)))


@st.composite
def requests(draw: st.DrawFn) -> Request:
    """Any request, with settings that not every provider has."""

    def maybe(values: st.SearchStrategy[Any]) -> Any:
        return draw(st.none() | values)

    tools = draw(st.lists(names, max_size=3, unique=True))
    mode = draw(st.sampled_from(["auto", "none", "required"]))
    return Request(
        model=draw(names),
        messages=draw(conversations()),
        tools=tuple(
            ToolDefinition(name=name, description=draw(words), parameters=draw(schemas))
            for name in tools
        )
        or None,
        tool_choice=ToolChoice(mode=mode) if tools else None,  # type: ignore[arg-type]
        parallel_tool_calls=maybe(st.booleans()) if tools else None,
        response_format=maybe(
            st.just(ResponseFormat(type="json_schema", json_schema={"type": "object"}, name="out"))
        ),
        temperature=maybe(st.floats(0, 2, width=16)),
        top_p=maybe(st.floats(0, 1, width=16)),
        top_k=maybe(st.integers(0, 100)),
        max_tokens=maybe(st.integers(1, 9999)),
        stop_sequences=maybe(st.lists(words, min_size=1, max_size=3).map(tuple)),
        seed=maybe(st.integers(0, 2**31)),
        frequency_penalty=maybe(st.just(0.0)),
        presence_penalty=maybe(st.just(0.5)),
        n=maybe(st.just(2)),
        reasoning_effort=maybe(st.sampled_from(["low", "medium", "high"])),
        thinking_budget=maybe(st.just(2048)),
        verbosity=maybe(st.just("low")),
        user=maybe(words),
        metadata=maybe(st.just({"team": "blue"})),
    )


@st.composite
def responses(draw: st.DrawFn) -> Response:
    """Any answer."""
    thinking = draw(st.lists(words.map(lambda text: Thinking(text=text)), max_size=1))
    said: list[Part] = list(draw(st.lists(texts(), max_size=2)))
    if draw(st.booleans()) and not said:
        said = [Refusal(text=draw(words))]
    calls = [
        ToolCall(id=f"call_{i}", name=draw(names), arguments=draw(json_objects))
        for i in range(draw(st.integers(0, 2)))
    ]
    read = draw(st.none() | st.integers(0, 50))
    return Response(
        id=draw(names),
        model=draw(names),
        message=Message(role="assistant", content=(*thinking, *said, *calls)),
        finish_reason=FinishReason(reason="tool_calls" if calls else "stop"),
        usage=Usage(
            input_tokens=100 + draw(st.integers(0, 1000)),
            output_tokens=50 + draw(st.integers(0, 1000)),
            reasoning_tokens=draw(st.none() | st.integers(0, 50)),
            cache_read_tokens=read,
        ),
    )
