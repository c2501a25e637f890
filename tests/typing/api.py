"""
What a user's type checker sees.

Checked by mypy, never run.
"""

from collections.abc import Mapping
from typing import Any, assert_type

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
