"""A tool call that is cut before the first byte of its arguments is not valid."""

import pytest

from interlingua import dialects
from interlingua.conformance.laws import encode_events
from interlingua.spec.content import Text, ToolCall
from interlingua.spec.events import StreamStart
from interlingua.spec.json_form import from_json, to_json
from interlingua.spec.messages import Message
from interlingua.spec.response import FinishReason, Response, Usage
from interlingua.streams.accumulate import StreamAccumulator, events_from_response
from interlingua.streams.segments import ToolCallSegment
from support.facts import NAMES

TEXT_DIALECTS = [name for name in NAMES if name != "gemini_generate"]  # it sends calls whole
CUT = {
    "openai_responses": {
        "id": "r",
        "status": "incomplete",
        "incomplete_details": {"reason": "max_output_tokens"},
        "output": [{"type": "function_call", "call_id": "c", "name": "look", "arguments": ""}],
    },
    "openai_chat": {
        "choices": [
            {
                "index": 0,
                "finish_reason": "length",
                "message": {
                    "role": "assistant",
                    "content": None,
                    "tool_calls": [
                        {
                            "id": "c",
                            "type": "function",
                            "function": {"name": "look", "arguments": ""},
                        }
                    ],
                },
            }
        ]
    },
    "anthropic_messages": {
        "type": "message",
        "role": "assistant",
        "content": [{"type": "tool_use", "id": "c", "name": "look", "input": {}}],
        "stop_reason": "max_tokens",
    },
    "bedrock_converse": {
        "output": {
            "message": {
                "role": "assistant",
                "content": [{"toolUse": {"toolUseId": "c", "name": "look", "input": {}}}],
            }
        },
        "stopReason": "max_tokens",
    },
}


def stream_of(name, reason):
    """The frames of a stream whose call has no arguments."""
    call = ToolCall(id="c", name="look", raw_arguments="", extra={name: {}})
    message = Message(role="assistant", content=(Text(text="I look."), call))
    finish = FinishReason(reason=reason)
    response = Response(id="r", model="m", message=message, finish_reason=finish, usage=Usage())
    events = events_from_response(response)
    start = events[0]
    assert isinstance(start, StreamStart)
    return encode_events(
        dialects.get(name), [StreamStart(id="r", model="m", extra={name: {}}), *events[1:]]
    )


@pytest.mark.parametrize("name", TEXT_DIALECTS)
def test_a_whole_answer_that_a_limit_cut(name):
    """The limit came before the arguments: the call must not run without them."""
    (call,) = dialects.get(name).decode_response(CUT[name]).tool_calls

    assert (call.is_valid, call.arguments) == (False, {})


@pytest.mark.parametrize("segment_type", ["function", "custom", "search"])
def test_a_stream_that_breaks_off(segment_type):
    """A call that was begun is in the partial answer, and not valid."""
    segment = ToolCallSegment(0, call_id="c", name="look", tool_type=segment_type)
    accumulator = StreamAccumulator()
    accumulator.feed(StreamStart(id="r"))
    accumulator.feed(segment.start())

    (call,) = accumulator.partial().tool_calls
    assert not call.is_valid
    (end,) = accumulator.end_segments()
    assert not end.tool_call.is_valid
    assert not accumulator.partial().tool_calls[0].is_valid


@pytest.mark.parametrize("name", TEXT_DIALECTS)
def test_a_stream_that_is_cut_on_the_wire(name):
    """Wherever it is cut after the start of the call and before its end."""
    frames = stream_of(name, "tool_calls")
    seen = 0
    for count in range(len(frames)):
        decoder, accumulator = dialects.get(name).stream_decoder(), StreamAccumulator()
        for event in (event for frame in frames[:count] for event in decoder.feed(frame)):
            accumulator.feed(event)
        open_calls = [
            each for each in accumulator.open.values() if isinstance(each, ToolCallSegment)
        ]
        if open_calls:
            seen += 1
            assert not accumulator.partial().tool_calls[0].is_valid
    assert seen


def test_a_finished_call_without_arguments_is_valid():
    """No arguments are not the same as arguments that did not come."""
    call = ToolCall(id="c", name="look", raw_arguments="")

    assert call.is_valid
    assert (
        from_json(to_json(ToolCall(id="c", name="look", is_cut=True)), ToolCall).is_valid is False
    )


@pytest.mark.parametrize("name", NAMES)
def test_a_cut_call_is_sent_on_without_invented_arguments(name):
    """In a history its arguments are an empty object."""
    call = ToolCall(id="c", name="look", raw_arguments="", is_cut=True)
    wire = dialects.get(name).encode_response(
        Response(
            id="r",
            model="m",
            message=Message(role="assistant", content=(call,)),
            finish_reason=FinishReason(reason="stop"),
            usage=Usage(),
        )
    )
    (back,) = dialects.get(name).decode_response(wire).tool_calls

    assert back.arguments == {}
