"""
What a user's type checker sees.

Checked by mypy, never run.
"""

from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypedDict, Unpack, assert_type

import msgspec
import pydantic
from anthropic.types import MessageParam
from openai.types.chat import ChatCompletionMessage
from openai.types.responses import ResponseOutputItem

from interlingua import (
    AbortController,
    Client,
    FinishReason,
    GenerateOptions,
    GenerateResult,
    HttpAdapter,
    Image,
    Message,
    ObjectStream,
    Part,
    Profile,
    Request,
    Response,
    RetryPolicy,
    SDKError,
    Session,
    SessionStore,
    StepResult,
    StreamResult,
    TimeoutConfig,
    Tool,
    ToolCall,
    ToolChoice,
    ToolDefinition,
    ToolResult,
    Usage,
    Warning,
    dialects,
    execute,
    from_json,
    generate,
    generate_many,
    generate_object,
    stream,
    stream_object,
    to_json,
    tool,
)
from interlingua.api.tools.tool import check_tools
from interlingua.catalog import NEUTRAL_PROFILE, ApiKey, AwsCredentials
from interlingua.dialects import (
    Dialect,
    Frame,
    SSEDecoder,
    StreamAccumulator,
    StreamDecoder,
    WireCall,
    anthropic_messages,
    events_from_response,
    gemini_generate,
    openai_chat,
    openai_responses,
)
from interlingua.errors import (
    AbortError,
    ErrorClass,
    MismatchError,
    NoObjectGeneratedError,
    ProviderError,
    RateLimitError,
    RequestTimeoutError,
)
from interlingua.events import Finish, StreamEvent, TextDelta
from interlingua.execution import Chunk, ExecuteError, ExecuteResult, ExecuteUsage, Execution
from interlingua.tools import (
    FunctionTool,
    ToolAnnotations,
    ToolContext,
    ToolObserver,
    convert,
    schema_of,
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

response = dialect.decode_response({}, headers={}, profile=NEUTRAL_PROFILE)
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
assert_type(events_from_response(response), list[StreamEvent])

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


also: FunctionTool[Callable[..., list[str]]] = search
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
# Different tools in a list of no declared type, as programs keep them.
TOOLS = [search, fetch_page, Shelf().take]
MORE = [*TOOLS, Tool(name="passive")]
BOTH = (search, fetch_page)


async def ask_with_tools() -> None:
    await generate("openai:gpt-5.2", "Hi", tools=TOOLS)
    await generate("openai:gpt-5.2", "Hi", tools=MORE)
    await generate("openai:gpt-5.2", "Hi", tools=BOTH)
    await generate("openai:gpt-5.2", "Hi", tools=[search])
    await generate_object("openai:gpt-5.2", "Hi", schema=int, tools=TOOLS)
    async with aclosing(stream("openai:gpt-5.2", "Hi", tools=TOOLS)):
        pass
    await generate("openai:gpt-5.2", "Hi", tools=[len])
    await generate("openai:gpt-5.2", "Hi", tools=["len"])  # type: ignore[list-item]


# The results of many runs have the type of the schema.


async def ask_many() -> None:
    items = await generate_many(["1", "2"], "openai:gpt-5.2", schema=int)
    assert_type(items[0].unwrap().output, int)
    async for item in generate_many(["1"], "openai:gpt-5.2", schema=list[str]):
        assert_type(item.unwrap().output, list[str])
    assert_type((await generate_many(["1"], "m"))[0].error, Exception | None)


# A message may be an object or a dict of a vendor's SDK.


async def ask_with_sdk_messages(
    message: ChatCompletionMessage, param: MessageParam, item: ResponseOutputItem
) -> None:
    await generate("openai:gpt-5.2", messages=[message, param, item, "Hi"])
    await generate("openai:gpt-5.2", [message, param, item])
    await generate("openai:gpt-5.2", message)
    await generate("openai:gpt-5.2", messages=[5])  # type: ignore[list-item]
    await generate("openai:gpt-5.2", "Hi", response_format={"type": "json_object"})


# A schema may be any type that an annotation may name.


async def sessions() -> None:
    session = Session("openai:gpt-5.2", system="Hi", tools=TOOLS, history="dynamic", temperature=0)
    assert_type(await session.send("Hi", max_tokens=5, model="m"), GenerateResult[None])
    assert_type(session.stream("Hi"), StreamResult)
    assert_type((await session.send_object("Hi", schema=int | str)).output, int | str)
    assert_type((await session.send_object("Hi", schema={"type": "object"})).output, Any)
    assert_type(session.fork(), Session)
    assert_type(Session.load("s.json", tools=TOOLS), Session)
    assert_type(await Session.resume("id", store=SessionStore("s.db")), Session)
    assert_type(session.messages, tuple[Message, ...])
    Session("m", history="some")  # type: ignore[arg-type]
    Session("m", temprature=1)  # type: ignore[call-arg]


async def objects_of_any_form() -> None:
    model = "openai:gpt-5.2"
    literal = await generate_object(model, "Hi", schema=Literal["red", "blue"])
    assert_type(literal.output, Literal["red", "blue"])
    one = await generate_object(model, "Hi", schema=Literal["red"])
    assert_type(one.output, Literal["red"])
    union = await generate_object(model, "Hi", schema=int | str)
    assert_type(union.output, int | str)
    optional = await generate_object(model, "Hi", schema=list[int] | None)
    assert_type(optional.output, list[int] | None)
    limited = await generate_object(model, "Hi", schema=Annotated[int, msgspec.Meta(ge=1)])
    assert_type(limited.output, int)
    plain = await generate_object(model, "Hi", schema={"type": "object"})
    assert_type(plain.output, Any)
    assert_type(stream_object(model, "Hi", schema=Literal["red"]), ObjectStream[Literal["red"]])
    assert_type(stream_object(model, "Hi", schema=int | None), ObjectStream[int | None])
    await generate_object(model, "Hi", schema=5)  # type: ignore[call-overload]


assert_type(check_tools([*tools, ToolDefinition(name="g")]), dict[str, Tool])
assert_type(search.definition, ToolDefinition)
assert_type(search.problems({}), list[str])


def bind_arguments(context: ToolContext[None]) -> None:
    assert_type(search.bind({}, context), tuple[tuple[Any, ...], dict[str, Any]])


assert_type(convert({}, Message), Message)
assert_type(convert([], list[int]), list[int])
assert_type(convert(None, int | None), int | None)
assert_type(convert("a", Literal["a", "b"]), Literal["a", "b"])
assert_type(schema_of(int | None), dict[str, Any])

# Answers, whole and as they come.


class Watcher:
    def on_tool_start(self, call: ToolCall) -> None: ...
    def on_tool_end(self, call: ToolCall, result: ToolResult) -> None: ...
    def on_tool_error(self, call: ToolCall, error: Exception) -> None: ...


watcher: ToolObserver = Watcher()


def enough(steps: object) -> bool:
    return bool(steps)


async def make_key() -> ApiKey:
    """A key with its end."""
    return ApiKey("key", 5.0)


def make_keys() -> AwsCredentials:
    """The keys of AWS."""
    return AwsCredentials(access_key_id="id", secret_access_key="key")


async def keys_of_any_form() -> None:
    """What `api_key=` takes."""
    HttpAdapter("groq", "key")
    HttpAdapter("groq", make_key)
    HttpAdapter("groq", lambda: "key")
    HttpAdapter("bedrock_invoke", make_keys, places={"region": "us-east-1"})
    HttpAdapter("bedrock_invoke", make_keys())
    await generate("groq:model", "Hi.", api_key=make_key)


async def answers() -> None:
    result = await generate(
        "openai:gpt-5.2",
        "Hi",
        system="Be brief.",
        tools=[*tools, ToolDefinition(name="g")],
        tool_choice="auto",
        max_tool_rounds=3,
        stop_when=enough,
        repair_tool_call=lambda call, error: None if error.retryable else call,
        temperature=0,
        timeout=TimeoutConfig(total=60, per_step=20),
        retry_policy=RetryPolicy(max_retries=1),
        abort_signal=AbortController().signal,
        tool_observer=watcher,
    )
    assert_type(result, GenerateResult[None])
    assert_type(result.text, str)
    assert_type(result.reasoning, str | None)
    assert_type(result.steps, tuple[StepResult, ...])
    assert_type(result.steps[0].tool_results, tuple[ToolResult, ...])
    assert_type(result.tool_calls, tuple[ToolCall, ...])
    assert_type(result.pending_approvals, tuple[ToolCall, ...])
    assert_type(result.finish_reason, FinishReason)
    assert_type(result.total_usage.total_tokens, int)
    assert_type(result.messages, tuple[Message, ...])
    assert_type(result.warnings, tuple[Warning, ...])
    await generate("m", messages=["Hi", Message.assistant("Hello")], timeout=3)
    await generate("m", "Hi", temprature=0.5)  # type: ignore[call-arg] # misspelt
    await generate("m", "Hi", max_tokens="many")  # type: ignore[arg-type]

    async with aclosing(Client.from_env().stream(request)) as told:
        async for event in told:
            assert_type(event, StreamEvent)

    async with stream("m", "Hi", tools=[search]) as events:
        assert_type(events, StreamResult)
        async for event in events:
            assert_type(event, StreamEvent)
            if event.type == "text_delta":
                assert_type(event.delta, str)
            elif event.type == "tool_call_end":
                assert_type(event.tool_call, ToolCall)
            elif event.type == "step_finish":
                assert_type(event.response, Response)
        assert_type(events.text_stream, AsyncIterator[str])
        assert_type(events.partial_response, Response | None)
    assert_type(events.response(), Response)
    assert_type(events.result(), GenerateResult[None])


async def ask_twice(model: str, **options: Unpack[GenerateOptions]) -> str:
    """Options pass through a function of the user's own."""
    return (await generate(model, "Hi", **options)).text + (await ask_twice(model, **options))


# What went wrong.


async def failures() -> None:
    try:
        await generate("m", "Hi")
    except RateLimitError as error:
        assert_type(error.retry_after, float | None)
        assert_type(error.provider, str | None)
        assert_type(error.status_code, int | None)
    except RequestTimeoutError as error:
        assert_type(
            error.phase,
            Literal["connect", "first_byte", "request", "stream_read", "stream_content", "total"]
            | None,
        )
    except AbortError as error:
        assert_type(error.partial, Response | None)
        assert_type(error.total_usage, Usage | None)
    except NoObjectGeneratedError as error:
        assert_type(error.text, str)
        assert_type(error.response, Response | None)
        assert_type(error.problems, tuple[str, ...])
    except MismatchError as error:
        assert_type([str(problem) for problem in error.problems], list[str])
        assert_type(error.path, str | None)
    except SDKError as error:
        assert_type(error.message, str)
        assert_type(error.retryable, bool)
        assert_type(error.error_class, ErrorClass)
        assert_type(error.request_id, str | None)
        assert_type(error.cause, BaseException | None)
        assert_type(error.add_facts(model="m", request_id=None), SDKError)
        error.add_facts(modle="m")  # type: ignore[call-arg]
        SDKError("x", status_code="429")  # type: ignore[arg-type]


# Callbacks.


def show(chunk: Chunk) -> None:
    if chunk["type"] == "text-delta":
        assert_type(chunk["text"], str)
    else:
        assert_type(chunk["name"], str)


async def executions() -> None:
    execution = execute("m", "Hi", on_chunk=show, tools=[search], thinking_budget=1024)
    assert_type(execution, Execution)
    result = await execution
    assert_type(result, ExecuteResult)
    assert_type(result.text, str)
    assert_type(result.usage, ExecuteUsage)
    assert_type(result.usage.prompt_tokens, int)
    assert_type(result.error, ExecuteError | None)
    if result.error is not None:
        assert_type(result.error.code, str)
        assert_type(result.error.status_code, int | None)
        assert_type(result.error.exception, Exception | None)
    execute("m", "Hi", on_chunks=show)  # type: ignore[call-arg] # misspelt


# The object is of the type that was asked for.


class Book(TypedDict):
    title: str


@dataclass
class Author:
    name: str


class Shop(msgspec.Struct):
    city: str


class Order(pydantic.BaseModel):
    number: int


async def objects() -> None:
    author = await generate_object(
        "openai:gpt-5.2", "Who?", schema=Author, max_validation_retries=1
    )
    assert_type(author, GenerateResult[Author])
    assert_type(author.output.name, str)
    assert_type((await generate_object("m", schema=Book)).output["title"], str)
    assert_type((await generate_object("m", schema=Message)).output, Message)
    assert_type((await generate_object("m", schema=Shop)).output.city, str)
    assert_type((await generate_object("m", schema=Order)).output.number, int)
    assert_type((await generate_object("m", schema=dict[str, Order])).output, dict[str, Order])
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
    assert_type(stream_object("m", schema=list[Order]).object(), list[Order])
    assert_type(stream_object("m", schema=Shop).result().output, Shop)
    assert_type(stream_object("m", schema=Book).object()["title"], str)
