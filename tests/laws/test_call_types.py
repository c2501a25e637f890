"""
Every type of tool call reaches the client of every dialect, whole and streamed.

A dialect without custom tools, searches or namespaces has a function in their place.
"""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interlingua import dialects
from interlingua.conformance import strategies
from interlingua.conformance.canonical import crosses
from interlingua.conformance.laws import decode_frames, encode_events, fold
from interlingua.spec.content import ToolCall, ToolResult
from interlingua.spec.messages import Message
from interlingua.spec.request import Request, ToolDefinition
from interlingua.spec.response import FinishReason, Response, Usage
from interlingua.streams.accumulate import events_from_response
from support.exceptions import NEWER
from support.facts import NAMES
from support.oracles_clients import oracle
from support.run_profile import examples

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}
every_dialect = pytest.mark.parametrize("name", NAMES)
every_mode = pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
calls = st.integers(1, 3).flatmap(
    lambda count: st.tuples(*(strategies.tool_calls(f"call_{i}") for i in range(count)))
)


def answer(parts):
    return Response(
        id="r",
        model="m",
        message=Message(role="assistant", content=parts),
        finish_reason=FinishReason(reason="tool_calls"),
        usage=Usage(input_tokens=3, output_tokens=5),
    )


def encoded(name, response, *, stream):
    """What a server sends: frames, or a body."""
    spoken = dialects.get(name)
    return (
        encode_events(spoken, events_from_response(response))
        if stream
        else spoken.encode_response(response)
    )


def decoded(name, wire, *, stream):
    spoken = dialects.get(name)
    return fold(decode_frames(spoken, wire)) if stream else spoken.decode_response(wire)


def expected(name, call):
    """The forms in which a client of the dialect may get a call."""
    rules = dialects.get(name).FACTS.history
    place = (call.namespace, call.name) if rules.namespaces else (None, call.name)
    if call.type == "custom":
        if "custom" in rules.tool_types:
            return [(call.id, *place, "custom", call.raw_arguments)]
        return [(call.id, *place, "function", {"input": call.raw_arguments})]
    kind = call.type if call.type in rules.tool_types else "function"
    if call.is_valid:
        return [(call.id, *place, kind, call.arguments)]
    # A dialect whose arguments are an object has nothing else for text that does not parse, unless
    # the text has been passed on already.
    return [
        (call.id, *place, kind, call.raw_arguments),
        (call.id, *place, kind, {"input": call.raw_arguments}),
    ]


def received(call):
    arguments = call.arguments if call.is_valid and call.type != "custom" else call.raw_arguments
    return (call.id, call.namespace, call.name, call.type, arguments)


@every_mode
@every_dialect
@settings(max_examples=examples(60))
@given(parts=calls)
def test_a_client_gets_every_call(name, stream, parts):
    """With its id, name and arguments, and nothing else."""
    back = decoded(name, encoded(name, answer(parts), stream=stream), stream=stream)

    found = [received(call) for call in back.tool_calls]
    assert len(found) == len(parts) == len(back.message.content)
    for call, each in zip(parts, found, strict=True):
        assert each in expected(name, call)


@every_mode
@every_dialect
@settings(max_examples=examples(15))
@given(parts=calls)
def test_the_types_of_the_vendor_accept_every_call(name, stream, parts):
    """The vendor's own client can read what we send."""
    reader, wire = oracle(name), encoded(name, answer(parts), stream=stream)
    faults = reader.validate_stream(wire) if stream else reader.validate(wire)

    assert [fault for fault in faults if fault not in NEWER] == []


@every_dialect
@settings(max_examples=examples(40))
@given(parts=calls, failed=st.booleans())
def test_every_call_crosses_in_a_history(name, parts, failed):
    """A call and its result reach the model of another dialect, or a warning says what changed."""
    results = tuple(
        ToolResult(tool_call_id=call.id, content="done", is_error=failed) for call in parts
    )
    tools = {
        (call.namespace, call.name): ToolDefinition(
            name=call.name,
            namespace=call.namespace,
            type=call.type,
            parameters=None if call.type == "custom" else SCHEMA,
        )
        for call in parts
    }
    history = (
        Message.user("Go."),
        Message(role="assistant", content=parts),
        Message(role="tool", content=results),
    )

    request = Request(model="m", messages=history, tools=tuple(tools.values()))
    assert crosses(dialects.get(name), request) == []


@every_mode
def test_a_search_of_the_program_reaches_a_chat_client(stream):
    """A search for tools that the program runs is a function for clients that have no searches."""
    call = ToolCall(id="c", name="tool_search", type="search", arguments={"query": "mail"})
    wire = encoded("openai_chat", answer((call,)), stream=stream)
    (back,) = decoded("openai_chat", wire, stream=stream).tool_calls

    assert received(back) == ("c", None, "tool_search", "function", {"query": "mail"})
