"""
What a user's type checker sees.

Checked by mypy, never run.
"""

from collections.abc import Coroutine, Mapping
from dataclasses import dataclass
from typing import Any, TypedDict, assert_type

from interlingua import (
    DEFAULT,
    Dialect,
    Finish,
    Frame,
    Image,
    Message,
    Part,
    Profile,
    ProviderError,
    Request,
    Response,
    SSEDecoder,
    StreamAccumulator,
    StreamDecoder,
    StreamEvent,
    TextDelta,
    ToolCall,
    ToolChoice,
    ToolDefinition,
    Usage,
    WireCall,
    dialects,
    from_json,
    replay,
    to_json,
)
from interlingua.api.hints import convert, schema_of
from interlingua.api.object_stream import ObjectStream
from interlingua.api.objects import generate_object, stream_object
from interlingua.api.results import GenerateResult
from interlingua.api.tools import Tool, ToolAnnotations, check_tools, tool
from interlingua.dialects import (
    anthropic_messages,
    gemini_generate,
    openai_chat,
    openai_responses,
)

# A module satisfies the contract.
all_four: tuple[Dialect, ...] = (
    anthropic_messages,
    gemini_generate,
    openai_chat,
    openai_responses,
)
dialect = dialects.get("openai_chat")
assert_type(dialect, Dialect)

message = Message.user(["What is this?", Image(url="https://example.com/cat.png")])
assert_type(message.content, tuple[Part, ...])
assert_type(message.text, str)
assert_type(message.tool_calls, tuple[ToolCall, ...])
assert_type(message.reasoning, str | None)

request = Request(
    model="m",
    messages=(message,),
    tools=(ToolDefinition(name="f"),),
    tool_choice=ToolChoice(mode="named", tool_name="f"),
    temperature=0,
)
call = dialect.encode_request(request, Profile(max_output_tokens=5), stream=True)
assert_type(call, WireCall)
assert_type(call.headers, Mapping[str, str])
assert_type(dialect.decode_request(call), Request)

response = dialect.decode_response({}, headers={}, profile=DEFAULT)
assert_type(response, Response)
assert_type(response.usage + response.usage, Usage)
assert_type(dialect.encode_response(response), Any)

decoder = dialect.stream_decoder()
assert_type(decoder, StreamDecoder)
assert_type(SSEDecoder().feed(b""), list[Frame])
for event in decoder.feed(Frame(data="{}")):
    assert_type(event, StreamEvent)
    if isinstance(event, TextDelta):
        assert_type(event.delta, str)
    elif isinstance(event, Finish):
        assert_type(event.usage, Usage)
assert_type(StreamAccumulator().response(), Response)
assert_type(replay(response), list[StreamEvent])

assert_type(dialect.decode_error(500, {}, b""), ProviderError)
assert_type(dialect.encode_error(ValueError()), tuple[int, dict[str, str], Any])

assert_type(to_json(message), bytes)
assert_type(from_json(b"", Message), Message)
assert_type(from_json(b"", StreamEvent), StreamEvent)

# A decorated function is a tool, and still the function.


@tool
def search(query: str, *, limit: int = 5) -> list[str]:
    return [query] * limit


@tool(name="fetch", timeout=3, needs_approval=lambda arguments: "url" in arguments)
async def fetch_page(url: str) -> bytes:
    return url.encode()


class Shelf:
    @tool
    def take(self, title: str) -> int:
        return len(title)


assert_type(search("a", limit=2), list[str])
page: Coroutine[Any, Any, bytes] = fetch_page("https://example.com")
assert_type(Shelf().take("a"), int)
search(3)  # type: ignore[arg-type]
Shelf().take(title=3)  # type: ignore[arg-type]
tools: list[Tool] = [
    search,
    fetch_page,
    Shelf().take,
    Tool(name="passive", annotations=ToolAnnotations(read_only=True)),
    Tool(name="by_hand", parameters={"type": "object"}, execute=lambda: None),
]
assert_type(check_tools([*tools, ToolDefinition(name="g")]), dict[str, Tool])
assert_type(search.definition, ToolDefinition)
assert_type(search.problems({}), list[str])
assert_type(search.bind({}, {}), tuple[tuple[Any, ...], dict[str, Any]])

assert_type(convert({}, Message), Message)
assert_type(convert([], list[int]), list[int])
maybe: int | None = convert(None, int | None)
assert_type(schema_of(int | None), dict[str, Any])

# The object is of the type that was asked for.


class Book(TypedDict):
    title: str


@dataclass
class Author:
    name: str


async def objects() -> None:
    author = await generate_object("openai:gpt-5.2", "Who?", schema=Author, max_reasks=1)
    assert_type(author, GenerateResult[Author])
    assert_type(author.output.name, str)
    assert_type((await generate_object("m", schema=Book)).output["title"], str)
    assert_type((await generate_object("m", schema=Message)).output, Message)
    authors = await generate_object("m", "Who?", schema=list[Author])
    assert_type(authors.output, list[Author])
    assert_type((await generate_object("m", schema=int)).output, int)
    assert_type((await generate_object("m", schema={"type": "array"})).output, Any)
    perhaps: Author | None = (await generate_object("m", schema=Author | None)).output
    del perhaps
    await generate_object("m", schema=3)  # type: ignore[call-overload]
    await generate_object("m", schema=int, max_reask=1)  # type: ignore[call-overload]

    async with stream_object("m", "Who?", schema=Author, temperature=0) as growing:
        assert_type(growing, ObjectStream[Author])
        async for partial in growing:
            assert_type(partial, Any)
        assert_type(growing.partial, Any)
    assert_type(growing.object(), Author)
    assert_type(growing.response(), Response)
    assert_type(growing.result(), GenerateResult[Author])
    assert_type(stream_object("m", schema={"type": "object"}).object(), Any)
