"""Response <-> body."""

import pytest

from interlingua.dialects.anthropic_messages import decode_response, encode_response
from interlingua.spec.content import Image, Text, Thinking, ToolCall
from interlingua.spec.errors import DecodeError
from interlingua.spec.messages import Message
from interlingua.spec.response import FinishReason, Response, Usage

NAME = "anthropic_messages"


def body(**fields):
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [{"type": "text", "text": "Hi."}],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 3, "output_tokens": 5},
        **fields,
    }


def test_plain_answer():
    """Text, reason and counts."""
    response = decode_response(body(), headers={"anthropic-ratelimit-requests-remaining": "7"})

    assert (response.id, response.model, response.text) == ("msg_1", "m", "Hi.")
    assert response.finish_reason == FinishReason(reason="stop", raw="end_turn")
    assert response.rate_limit.requests_remaining == 7
    assert encode_response(response) == body()


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("tool_use", "tool_calls"),
        ("refusal", "content_filter"),
        ("pause_turn", "other"),
        ("a_new_one", "other"),
        (None, "other"),
    ],
)
def test_stop_reasons(raw, reason):
    """Each word of theirs, and any new one, keeps its raw form."""
    response = decode_response(body(stop_reason=raw))

    assert response.finish_reason == FinishReason(reason=reason, raw=raw)
    assert encode_response(response)["stop_reason"] == raw


@pytest.mark.parametrize(
    ("reason", "raw"),
    [
        ("stop", "end_turn"),
        ("length", "max_tokens"),
        ("tool_calls", "tool_use"),
        ("other", "end_turn"),
    ],
)
def test_foreign_reasons(reason, raw):
    """An answer from elsewhere ends with the nearest word of theirs."""
    response = Response(finish_reason=FinishReason(reason=reason, raw="STOP"))

    assert encode_response(response)["stop_reason"] == raw


def test_disjoint_counts_are_summed_once():
    """Their input leaves out the cached tokens; ours has them, once (field bug 63)."""
    wire = {
        "input_tokens": 3,
        "cache_creation_input_tokens": 418,
        "cache_read_input_tokens": 1111,
        "output_tokens": 44,
        "output_tokens_details": {"thinking_tokens": 33},
    }
    usage = decode_response(body(usage=wire)).usage

    assert (usage.input_tokens, usage.output_tokens, usage.total_tokens) == (1532, 44, 1576)
    assert (usage.reasoning_tokens, usage.cache_read_tokens, usage.cache_write_tokens) == (
        33,
        1111,
        418,
    )
    assert encode_response(Response(usage=usage))["usage"] == wire


def test_foreign_usage_is_split_again():
    """Counts from elsewhere are written in their way."""
    usage = Usage(input_tokens=100, output_tokens=5, cache_read_tokens=60, reasoning_tokens=2)

    assert encode_response(Response(usage=usage))["usage"] == {
        "input_tokens": 40,
        "output_tokens": 5,
        "cache_read_input_tokens": 60,
        "output_tokens_details": {"thinking_tokens": 2},
    }


def test_no_reasoning_figure_is_made_up():
    """Without a figure on the wire there is none (field bug 90)."""
    assert decode_response(body()).usage.reasoning_tokens is None


def test_negative_counts_are_clamped():
    """A negative count is none (field bug 70)."""
    assert (
        decode_response(body(usage={"input_tokens": -5, "output_tokens": 1})).usage.input_tokens
        == 0
    )


def test_server_tools_are_no_calls_for_the_caller():
    """What the provider ran is kept, but not listed as a call to make (field bug 89)."""
    blocks = [
        {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "x"}},
        {"type": "tool_use", "id": "t", "name": "f", "input": {}},
    ]
    response = decode_response(body(content=blocks, stop_reason="tool_use"))

    assert response.tool_calls == (ToolCall(id="t", name="f", arguments={}),)
    assert encode_response(response)["content"] == blocks


def test_unknown_fields_come_back():
    """Fields nobody knows yet are kept beside their neighbours."""
    wire = body(container={"id": "c"}, new={"a": 1})

    assert encode_response(decode_response(wire)) == wire


def test_foreign_answer_is_a_whole_message():
    """An answer from elsewhere has every field this API promises."""
    response = Response(id="r", model="m", message=Message.assistant([Text(text="x")]))

    assert encode_response(response) == {
        "id": "r",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [{"type": "text", "text": "x"}],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 0, "output_tokens": 0},
    }


def test_bodies_that_are_no_answer_are_carried():
    """A token count is kept whole; an error in a 200 ends with reason error."""
    count, failed = {"input_tokens": 9}, {"type": "error", "error": {"type": "api_error"}}

    assert encode_response(decode_response(count)) == count
    assert decode_response(failed).finish_reason.reason == "error"


@pytest.mark.parametrize("value", [None, [], "text", 5])
def test_a_body_that_is_no_object(value):
    """Anything but an object cannot be an answer."""
    with pytest.raises(DecodeError, match="Expected a JSON object"):
        decode_response(value)


def test_answers_of_others():
    """A thought is shown without proof, figures are our own, and only our words are reasons."""
    content = (
        Thinking(text="Hm.", signature="S", extra={"gemini_generate": {}}),
        Thinking(data="x", extra={"openai_responses": {}}),
        Image(data=b"x", media_type="image/png"),
        Text(text="Hi"),
    )
    response = Response(
        message=Message(role="assistant", content=content),
        finish_reason=FinishReason(reason="tool_calls", raw="end_turn"),
        usage=Usage(input_tokens=1, raw={"input_tokens": 1, "total_tokens": 1}),
        extra={"openai_chat": {}},
    )

    wire = encode_response(response)

    assert wire["content"] == [
        {"type": "thinking", "thinking": "Hm.", "signature": ""},
        {"type": "text", "text": "Hi"},
    ]
    assert wire["stop_reason"] == "tool_use"
    assert wire["usage"] == {"input_tokens": 1, "output_tokens": 0}
