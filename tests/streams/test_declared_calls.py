"""Calls of functions that were sent for other tools come back as calls of the declared tools."""

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai.types.responses import Response as OpenAIResponse
from openai.types.responses import ResponseStreamEvent
from pydantic import TypeAdapter

from interlingua import dialects
from interlingua.dialects import WireCall
from interlingua.spec.content import ToolCall
from interlingua.spec.events import ToolCallDelta
from interlingua.spec.messages import Message
from interlingua.spec.request import Request, ToolDefinition
from interlingua.spec.response import FinishReason, Response
from interlingua.streams.accumulate import events_from_response
from interlingua.streams.declared_calls import declared_encoder, declared_response
from interlingua.wire.json_text import dump_text
from interlingua.wire.tool_calls import TextArgument, text_argument

PATCH = '*** Begin Patch\n+"é" \\ 😀\n*** End Patch'
BODY = {
    "model": "m",
    "input": "Fix it.",
    "tools": [
        {"type": "custom", "name": "apply_patch", "description": "Edits files."},
        {
            "type": "namespace",
            "name": "mail",
            "description": "Mail.",
            "tools": [
                {"type": "function", "name": "send", "parameters": {"type": "object"}},
                {"type": "custom", "name": "draft"},
            ],
        },
        {"type": "function", "name": "mail__send", "parameters": {"type": "object"}},
        {"type": "tool_search", "execution": "client", "parameters": {"type": "object"}},
    ],
}
RESPONSES = dialects.get("openai_responses")
REQUEST = RESPONSES.decode_request(WireCall(body=BODY))
OTHERS = ("anthropic_messages", "gemini_generate", "openai_chat")


def names_sent(dialect):
    """The names that a dialect gets for the tools, in their order."""
    back = dialects.get(dialect).decode_request(dialects.get(dialect).encode_request(REQUEST))
    return [tool.name for tool in back.tools]


def answer(dialect):
    """What a model of this dialect answers: one call of each tool."""
    patch, send, draft, plain, search = names_sent(dialect)
    calls = (
        ToolCall(id="c1", name=patch, arguments={"input": PATCH}),
        ToolCall(id="c2", name=send, arguments={"to": "ada"}),
        ToolCall(id="c3", name=draft, arguments={"input": "Dear Ada"}),
        ToolCall(id="c4", name=plain, arguments={}),
        ToolCall(id="c5", name=search, arguments={"query": "mail"}),
    )
    response = Response(
        id="r",
        model="m",
        message=Message(role="assistant", content=calls),
        finish_reason=FinishReason(reason="tool_calls"),
    )
    whole = dialects.get(dialect)
    return whole.decode_response(whole.encode_response(response))


def shapes(output):
    return [
        {key: item[key] for key in item if key not in ("id", "status", "call_id")}
        for item in output
    ]


EXPECTED = [
    {"type": "custom_tool_call", "name": "apply_patch", "input": PATCH},
    {
        "type": "function_call",
        "name": "send",
        "namespace": "mail",
        "arguments": '{"to":"ada"}',
    },
    {"type": "custom_tool_call", "name": "draft", "namespace": "mail", "input": "Dear Ada"},
    {"type": "function_call", "name": "mail__send", "arguments": "{}"},
    {"type": "tool_search_call", "execution": "client", "arguments": {"query": "mail"}},
]


@pytest.mark.parametrize("dialect", OTHERS)
def test_the_client_gets_the_calls_that_it_declared(dialect):
    """The client gets the calls that it declared; the vendor's SDK reads them (field bug 98)."""
    body = RESPONSES.encode_response(answer(dialect), REQUEST)

    assert shapes(body["output"]) == EXPECTED
    assert [item.type for item in OpenAIResponse.model_validate(body).output] == [
        item["type"] for item in EXPECTED
    ]


@pytest.mark.parametrize("dialect", OTHERS)
def test_a_stream_has_the_declared_calls_of_the_whole_answer(dialect):
    """A stream says the same as the whole answer, whatever the deltas were; the SDK reads it.

    Field bug 98.
    """
    encoder = RESPONSES.stream_encoder(REQUEST)
    decoder = RESPONSES.stream_decoder()
    events, pieces = [], []
    for event in split_arguments(events_from_response(answer(dialect))):
        for frame in encoder.feed(event):
            data = json.loads(frame.data)
            TypeAdapter(ResponseStreamEvent).validate_python(data)
            if data["type"] == "response.custom_tool_call_input.delta":
                pieces.append(data["delta"])
            events += decoder.feed(frame)
    decoder.finish()

    assert shapes(RESPONSES.encode_response(events[-1].response)["output"]) == EXPECTED
    assert "".join(pieces) == PATCH + "Dear Ada"
    assert len(pieces) > len(PATCH) / 2


def split_arguments(events):
    """The events, with one delta for each character of the arguments."""
    for event in events:
        if isinstance(event, ToolCallDelta):
            for letter in event.delta:
                yield ToolCallDelta(id=event.id, index=event.index, delta=letter)
        else:
            yield event


@pytest.mark.parametrize("dialect", OTHERS)
def test_names_are_valid_and_unique(dialect):
    """A tool of a namespace gets a name that no other tool has."""
    names = names_sent(dialect)

    assert len(set(names)) == len(names) == 5
    assert names[3] == "mail__send"  # a tool keeps its own name
    assert names[1].startswith("mail__send_")


def test_the_next_turn():
    """The calls and results that the client sends back reach the other dialect as functions."""
    turn = RESPONSES.encode_response(answer("anthropic_messages"), REQUEST)["output"]
    outputs = [
        {"type": "custom_tool_call_output", "call_id": "c1", "output": "done"},
        {"type": "function_call_output", "call_id": "c2", "output": "sent"},
        {"type": "custom_tool_call_output", "call_id": "c3", "output": "drafted"},
        {"type": "function_call_output", "call_id": "c4", "output": "sent"},
        {"type": "tool_search_output", "call_id": "c5", "execution": "client",
         "status": "completed", "tools": []},
    ]  # fmt: skip
    items = [{"role": "user", "content": "Fix it."}, *turn, *outputs]
    request = RESPONSES.decode_request(WireCall(body={**BODY, "input": items}))
    anthropic = dialects.get("anthropic_messages")
    body = anthropic.encode_request(request).body
    blocks = [block for block in body["messages"][1]["content"] if block["type"] == "tool_use"]

    assert [block["name"] for block in blocks] == names_sent("anthropic_messages")
    assert blocks[0]["input"] == {"input": PATCH}
    assert [block["tool_use_id"] for block in body["messages"][2]["content"]] == [
        "c1", "c2", "c3", "c4", "c5",
    ]  # fmt: skip
    assert RESPONSES.encode_request(request).body["input"] == items


def test_calls_of_its_own_are_left_alone():
    """A model that has custom tools calls them itself; other calls are not touched."""
    call = ToolCall(id="c", name="apply_patch", raw_arguments="x", type="custom")
    other = ToolCall(id="d", name="else", arguments={"input": "x"})
    message = Message(role="assistant", content=(call, other))
    response = Response(id="r", message=message)

    assert declared_response(response, REQUEST).message.content == (call, other)
    assert declared_response(response, None) is response
    encoder = RESPONSES.stream_encoder()
    assert declared_encoder(encoder, Request(model="m")) is encoder


@given(st.text(), st.data())
def test_the_text_of_a_stream_is_that_of_the_whole_call(text, data):
    """Cut anywhere, the pieces are the text; a lone surrogate and an escape are not split."""
    raw = json.dumps({"input": text}, ensure_ascii=data.draw(st.booleans()))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(raw)), max_size=6)))
    argument = TextArgument()
    places = [0, *cuts, len(raw)]
    pieces = [argument.feed(raw[a:b]) for a, b in pairwise(places)]
    call = ToolCall(id="c", name="f", arguments={"input": text}, raw_arguments=raw)
    pieces.append(argument.end(call))

    assert "".join(pieces) == argument.text == text


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ('{"input": "a"}', "a"),
        ('{"why": "x", "input": "a"}', "a"),
        ('{"patch": "a"}', "a"),
        ('{"a": "x", "b": "y"}', '{"a": "x", "b": "y"}'),
        ('{"input": "cut sho', "cut sho"),
        ('{"input": "one\nline"}', "one"),
        ("free text", "free text"),
        ('{"input": 5}', '{"input": 5}'),
    ],
)
def test_arguments_that_ignore_the_schema(raw, text):
    """A model may send anything: what can be read of it is the text, whole and streamed."""
    call = ToolCall(id="c", name="f", raw_arguments=raw, arguments={})
    try:
        parsed = json.loads(raw)
    except ValueError:
        parsed = None
    if isinstance(parsed, dict):
        call = ToolCall(id="c", name="f", raw_arguments=raw, arguments=parsed)
    argument = TextArgument()
    pieces = [argument.feed(letter) for letter in raw]

    assert text_argument(call) == text
    assert "".join([*pieces, argument.end(call)]) == text


def test_the_cost_of_a_long_text_is_linear():
    """Each fragment is read once."""
    raw = dump_text({"input": "x" * 200_000})
    argument = TextArgument()
    for start in range(0, len(raw), 7):
        argument.feed(raw[start : start + 7])

    assert len(argument.text) == 200_000


def test_no_special_tools():
    """Most requests have only functions; nothing is looked at then."""
    tools = (ToolDefinition(name="f"),)
    encoder = RESPONSES.stream_encoder(Request(model="m", tools=tools))

    assert type(encoder).__name__ == "Encoder"
