"""Stream frames -> events."""

import json

import pytest

from interlingua.dialects.anthropic_messages import stream_decoder
from interlingua.spec.content import Opaque, Text, Thinking, ToolCall
from interlingua.spec.contracts import Frame
from interlingua.spec.errors import ServerError, StreamError
from interlingua.spec.events import (
    Finish,
    ProviderEvent,
    StreamStart,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCallEnd,
)
from interlingua.spec.response import FinishReason, Usage
from support.anthropic_frames import NAME, START, STOP, block, decode, delta, end, fold, told


def test_text():
    """A text block is a start, its deltas and an end; the counts of the end are final."""
    events = decode(
        START,
        block(0, type="text", text=""),
        {"type": "ping"},
        delta(0, type="text_delta", text="H"),
        delta(0, type="text_delta", text="i\n"),
        end(0),
        told("end_turn", output_tokens=7),
        STOP,
    )

    usage = Usage(input_tokens=12, output_tokens=7, raw={"input_tokens": 12, "output_tokens": 7})
    assert events == [
        StreamStart(
            id="m",
            model="c",
            usage=Usage(input_tokens=12, raw={"input_tokens": 12}),
            extra={NAME: {}},
        ),
        TextStart(id="text_0", index=0),
        TextDelta(id="text_0", index=0, delta="H"),
        TextDelta(id="text_0", index=0, delta="i\n"),
        TextEnd(id="text_0", index=0, part=Text(text="Hi\n")),
        Finish(
            finish_reason=FinishReason(reason="stop", raw="end_turn"),
            usage=usage,
            extra={NAME: {}},
        ),
    ]


def test_thinking_with_its_signature():
    """The signature comes just before the end of its block."""
    response = fold(
        decode(
            START,
            block(0, type="thinking", thinking="", signature=""),
            delta(0, type="thinking_delta", thinking="Hm."),
            delta(0, type="signature_delta", signature="c2ln"),
            end(0),
            STOP,
        )
    )

    assert response.message.content == (Thinking(text="Hm.", signature="c2ln", extra={NAME: {}}),)


def test_interleaved_arguments_go_by_index():
    """Fragments of two open calls go each to its own (field bug 3)."""
    response = fold(
        decode(
            START,
            block(0, type="tool_use", id="a", name="f", input={}),
            block(1, type="tool_use", id="b", name="g", input={}),
            delta(0, type="input_json_delta", partial_json='{"x":'),
            delta(1, type="input_json_delta", partial_json='{"y":2}'),
            delta(0, type="input_json_delta", partial_json="1}"),
            end(0),
            end(1),
            STOP,
        )
    )

    assert [(call.id, call.arguments) for call in response.tool_calls] == [
        ("a", {"x": 1}),
        ("b", {"y": 2}),
    ]


def test_empty_arguments_are_an_empty_object():
    """No text at all is an empty object (field bug 10)."""
    events = decode(
        START,
        block(0, type="tool_use", id="a", name="f", input={}),
        delta(0, type="input_json_delta", partial_json=""),
        end(0),
        STOP,
    )

    assert events[3] == ToolCallEnd(
        id="tool_call_0",
        index=0,
        tool_call=ToolCall(id="a", name="f", arguments={}, raw_arguments=""),
    )


def test_cut_arguments_are_marked():
    """Arguments that a length stop cut off stay text, and the call is not valid (field bug 88)."""
    response = fold(
        decode(
            START,
            block(0, type="tool_use", id="a", name="f", input={}),
            delta(0, type="input_json_delta", partial_json='{"x": "abc'),
            end(0),
            told("max_tokens"),
            STOP,
        )
    )

    (call,) = response.tool_calls
    assert (call.arguments, call.raw_arguments, call.is_valid) == ({}, '{"x": "abc', False)


def test_input_that_comes_whole():
    """A server that sends no fragments has its input in the block's start."""
    response = fold(
        decode(START, block(0, type="tool_use", id="a", name="f", input={"x": 1}), end(0), STOP)
    )

    assert response.tool_calls[0].arguments == {"x": 1}


def test_server_tool_blocks_arrive_whole():
    """What the provider ran becomes one part when it is complete."""
    events = decode(
        START,
        block(0, type="server_tool_use", id="s", name="web_search", input={}),
        delta(0, type="input_json_delta", partial_json='{"query":"x"}'),
        end(0),
        STOP,
    )

    data = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "x"}}
    part = Opaque(
        dialect=NAME, data=data, tool="web_search", tool_call_id="s", input={"query": "x"}
    )
    assert events[1] == ProviderEvent(dialect=NAME, part=part, index=0)


def test_cache_counts_may_come_in_a_message_delta():
    """They may arrive only there; a null does not erase what was known (field bug 64)."""
    response = fold(
        decode(
            START,
            told("end_turn", output_tokens=3, cache_read_input_tokens=4),
            told("end_turn", output_tokens=9, cache_read_input_tokens=None),
            STOP,
        )
    )

    assert (response.usage.input_tokens, response.usage.output_tokens) == (16, 9)
    assert response.usage.cache_read_tokens == 4


def test_counts_are_replaced_not_added():
    """Usage is cumulative: the last figure of a stream counts (field bug 65)."""
    deltas = [told("end_turn", output_tokens=count) for count in (3, 9, 9)]

    assert fold(decode(START, *deltas, STOP)).usage.output_tokens == 9


def test_a_second_message_start_is_ignored():
    """A proxy's second start is ignored (field bug 48)."""
    events = decode(START, START, STOP)

    assert [event.type for event in events] == ["stream_start", "finish"]


def test_a_done_of_a_gateway_is_ignored():
    """A gateway's `[DONE]`, before or after the end, says nothing (field bug 93)."""
    decoder = stream_decoder()
    decoder.feed(Frame(data=json.dumps(START)))

    assert decoder.feed(Frame(data="[DONE]")) == []


def test_an_error_after_the_end_is_ignored():
    """After `message_stop` the answer is complete, whatever follows (field bug 55)."""
    events = decode(START, STOP, {"type": "error", "error": {"type": "api_error"}})

    assert events[-1].type == "finish"


@pytest.mark.parametrize("kind", [{"type": "error"}, {}])
def test_an_error_event_is_raised_as_its_own_class(kind):
    """An error inside the stream is raised as its own class, also as a bare body of one.

    Field bug 54.
    """
    with pytest.raises(ServerError, match="Overloaded"):
        decode(START, {**kind, "error": {"type": "overloaded_error", "message": "Overloaded"}})


@pytest.mark.parametrize("count", [0, 1, 2, 3])
def test_an_early_end_is_an_error(count):
    """A body without `message_stop` is not an answer (field bug 52)."""
    payloads = [START, block(0, type="text", text=""), delta(0, type="text_delta", text="H")]

    with pytest.raises(StreamError, match="before message_stop"):
        decode(*payloads[:count])


@pytest.mark.parametrize(
    "payload",
    [
        delta(7, type="text_delta", text="x"),
        delta(0, type="text_delta"),
        {"type": "content_block_start"},
    ],
)
def test_events_that_make_no_sense(payload):
    """A delta to nowhere, or without its text, is a stream error."""
    with pytest.raises(StreamError):
        decode(START, block(0, type="text", text=""), payload)
