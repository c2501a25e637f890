"""Tool calls that the provider has run itself, in the form of calls for the program."""

import json

import pytest

from interlingua.dialects.openai_responses import decode_response, encode_response, stream_decoder
from interlingua.spec.content import Opaque, ToolCall
from interlingua.spec.contracts import Frame, Profile
from interlingua.spec.request import BuiltinTool, Request, ToolDefinition
from interlingua.streams.accumulate import StreamAccumulator

XAI = Profile(hosted_call_types=("custom",))
SEARCH = {
    "type": "custom_tool_call",
    "id": "ctc_1",
    "call_id": "xs_1",
    "name": "x_keyword_search",
    "input": '{"query":"grok","limit":10}',
    "status": "completed",
}
TEXT = {
    "type": "message",
    "id": "msg_1",
    "role": "assistant",
    "status": "completed",
    "content": [{"type": "output_text", "text": "Found.", "annotations": []}],
}
X_SEARCH = BuiltinTool(dialect="openai_responses", data={"type": "x_search"})


def ask(*tools, **fields):
    return Request(model="grok-4.7", messages="Search X.", tools=tools, **fields)


def body(*items):
    usage = {"input_tokens": 9, "output_tokens": 3, "total_tokens": 12}
    return {
        "id": "r",
        "object": "response",
        "model": "grok-4.7",
        "status": "completed",
        "output": list(items),
        "usage": usage,
    }


def whole(*items, **options):
    return decode_response(body(*items), **options)


def streamed(*items, **options):
    decoder, accumulator = stream_decoder(**options), StreamAccumulator()
    frames = [{"type": "response.created", "response": {**body(), "status": "in_progress"}}]
    for index, item in enumerate(items):
        place = {"output_index": index, "item_id": item["id"]}
        start = {**item, "status": "in_progress", "content": [], "input": ""}
        frames.append({"type": "response.output_item.added", **place, "item": start})
        if "input" in item:
            delta = {"type": "response.custom_tool_call_input.delta", "delta": item["input"]}
            done = {"type": "response.custom_tool_call_input.done", "input": item["input"]}
            frames += [{**delta, **place}, {**done, **place}]
        frames.append({"type": "response.output_item.done", **place, "item": item})
    frames.append({"type": "response.completed", "response": body(*items)})
    for frame in frames:
        for event in decoder.feed(Frame(data=json.dumps(frame))):
            accumulator.feed(event)
    return accumulator.response()


@pytest.fixture(params=[whole, streamed])
def decode(request):
    """Decodes items as a whole answer, or as a stream."""
    return request.param


def test_a_call_that_the_request_does_not_declare_is_the_providers_own(decode):
    """It is kept for the history, described for readers, and never handed to the program."""
    response = decode(SEARCH, TEXT, profile=XAI, request=ask(X_SEARCH))

    assert (response.tool_calls, response.finish_reason.reason) == ((), "stop")
    (part, _) = response.message.content
    assert part == Opaque(
        dialect="openai_responses",
        data=SEARCH,
        tool="x_keyword_search",
        tool_call_id="xs_1",
        input={"query": "grok", "limit": 10},
    )
    assert encode_response(response)["output"] == [SEARCH, TEXT]


@pytest.mark.parametrize(
    "request_",
    [
        ask(ToolDefinition(name="x_keyword_search", type="custom")),
        ask(ToolDefinition(name="x_keyword_search", parameters={"type": "object"})),
        ask(provider_options={"xai": {"tools": [{"type": "custom", "name": "x_keyword_search"}]}}),
    ],
    ids=["custom", "function", "option"],
)
def test_a_call_of_a_declared_tool_is_for_the_program(decode, request_):
    """The word «completed» says nothing: calls for the program have it too."""
    response = decode(SEARCH, profile=XAI, request=request_)

    assert [call.name for call in response.tool_calls] == ["x_keyword_search"]
    assert response.finish_reason.reason == "tool_calls"


def test_other_providers_have_no_such_calls(decode):
    """A model may call a tool that nobody declared; the run answers that there is none."""
    response = decode(SEARCH, request=ask())

    assert [type(part) for part in response.message.content] == [ToolCall]


def test_a_function_call_is_for_the_program(decode):
    """Only the types of calls that the row names are the provider's own."""
    call = {**SEARCH, "type": "function_call", "arguments": "{}"}
    del call["input"]
    response = decode(call, profile=XAI, request=ask())

    assert [each.name for each in response.tool_calls] == ["x_keyword_search"]


def test_without_the_request_a_call_stays_one(decode):
    """Nobody knows which tools were declared."""
    assert [call.name for call in decode(SEARCH, profile=XAI).tool_calls] == ["x_keyword_search"]


def test_text_that_is_no_json_is_shown_as_it_is(decode):
    """The input of a custom tool is free text."""
    response = decode({**SEARCH, "input": "grok"}, profile=XAI, request=ask())

    assert response.message.content[0].input == "grok"
