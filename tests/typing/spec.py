"""
What a user's type checker sees of the canonical language.

Checked by mypy, never run.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import assert_never, assert_type

import interlingua
from interlingua import (
    BuiltinTool,
    Document,
    GenerateResult,
    Image,
    Message,
    Part,
    Request,
    Response,
    Text,
    ToolCall,
    ToolChoice,
    ToolDefinition,
    ToolResult,
    Warning,
)
from interlingua.events import StreamStart

# What is loaded on use is there, and nothing else.

assert_type(interlingua.sync.generate("m", "Hi"), GenerateResult[None])
interlingua.genrate  # type: ignore[attr-defined] # noqa: B018 -- misspelt

# Constructors take text, one value or any iterable; fields are tuples.

tools = [ToolDefinition(name="look")]
warnings = [Warning(code="seed_dropped", message="no seed")]


def said() -> Iterator[Message]:
    yield Message.user("Hi")


request = Request(messages="Hi", tools=tools, stop_sequences="END")
assert_type(request.messages, tuple[Message, ...])
assert_type(request.messages[0].content, tuple[Part, ...])
assert_type(request.tools, tuple[ToolDefinition | BuiltinTool, ...])
assert_type(request.stop_sequences, tuple[str, ...] | None)
Request(messages=Message.user("Hi"), stop_sequences=["END"])
Request(messages=["Hi", Message.assistant("Hello")], tools=())
Request(messages=[Message.user("Hi")], tools=[*tools, BuiltinTool(dialect="gemini_generate")])
Request(messages=said(), tools=(made for made in tools))
Request(messages=(), tools=None, stop_sequences=None)

Message(role="user", content="Hi")
Message(role="user", content=Text(text="Hi"))
Message(role="user", content=["What is this?", Image(url="https://example.com/cat.png")])
assert_type(Message(role="user", content=[Text(text="Hi")]).content, tuple[Part, ...])
Message(role="user", content=[Text("What is this?"), Image(Path("cat.png")), Image(b"GIF89a")])
Message(role="user", content=[Image("https://example.com/cat.png"), Document(path="paper.pdf")])
Image("a", b"b")  # type: ignore[call-arg] # only one value by position
ToolResult(tool_call_id="1", content=["A picture:", Image(file_id="f")])
assert_type(ToolChoice(allowed=["look"]).allowed, tuple[str, ...] | None)
ToolChoice(allowed="look")
assert_type(Response(warnings=warnings).warnings, tuple[Warning, ...])
assert_type(StreamStart(warnings=warnings).warnings, tuple[Warning, ...])

Request(messages=5)  # type: ignore[arg-type]
Request(messages=[5])  # type: ignore[list-item]
Request(messages=[{"role": "user", "content": "Hi"}], tool_choice="auto")
Request(tools=[{"name": "look"}])
Request(tools=["look"])  # type: ignore[list-item]
Request(stop_sequences=5)  # type: ignore[arg-type]
Request(temprature=0)  # type: ignore[call-arg] # misspelt
Request("m")  # type: ignore[call-arg]
Message()  # type: ignore[call-arg]
Message(role="nobody")  # type: ignore[arg-type]
Message(role="user", content=5)  # type: ignore[arg-type]
ToolChoice(allowed=[1])  # type: ignore[list-item]
Response(warnings=["seed_dropped"])  # type: ignore[list-item]
request.messages = ()  # type: ignore[misc]

# A part is known by its kind.


def tell(part: Part) -> str:
    if part.kind == "text":
        assert_type(part, Text)
        return part.text
    if part.kind == "tool_call":
        assert_type(part, ToolCall)
        return part.name
    if part.kind == "tool_result":
        assert_type(part, ToolResult)
        return part.tool_call_id
    part.name  # type: ignore[union-attr] # noqa: B018 -- the others have none
    return part.kind


def misspelt(part: Part) -> bool:
    return part.kind == "txet"  # type: ignore[comparison-overlap]


def tell_all(part: Part) -> str:
    match part.kind:
        case "text" | "thinking" | "refusal":
            return part.text
        case "tool_call":
            return part.name
        case "tool_result":
            return part.tool_call_id
        case "image" | "audio" | "document":
            return part.media_type or ""
        case "opaque":
            return part.dialect
        case _:
            assert_never(part.kind)
