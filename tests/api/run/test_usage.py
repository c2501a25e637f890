"""Tokens of answers that broke off."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from interlingua.api.run.run import fill_usage
from interlingua.spec.content import Text, Thinking, ToolCall
from interlingua.spec.messages import Message
from interlingua.spec.request import Request
from interlingua.spec.response import FinishReason, Response, Usage

REQUEST = Request(model="gpt-5.2", messages="Write a long story about a fox.")


def broken(*parts, reason="cancelled", **usage):
    return Response(
        provider="openai",
        message=Message.assistant(list(parts)),
        finish_reason=FinishReason(reason=reason),
        usage=Usage(**usage),
    )


@given(st.integers(0, 99), st.integers(0, 99), st.text())
def test_never_less_than_what_was_told(went_in, came, words):
    """What the provider said stands, and what differs from it is marked."""
    partial = broken(Text(text=words), input_tokens=went_in, output_tokens=came)
    filled = fill_usage(partial, REQUEST).usage

    assert filled.input_tokens >= went_in
    assert filled.output_tokens >= came
    assert filled.estimated is (filled.total_tokens != went_in + came)
    assert went_in in (filled.input_tokens, 0)


@pytest.mark.parametrize(
    "part",
    [
        Text(text="once upon a time " * 20),
        Thinking(text="once upon a time " * 20),
        ToolCall(id="a", name="tell", arguments={"story": "once upon a time " * 20}),
    ],
    ids=lambda part: part.kind,
)
def test_whatever_came_counts(part):
    """Text, thoughts, and the arguments of calls."""
    usage = fill_usage(broken(part), REQUEST).usage

    assert usage.estimated
    assert usage.input_tokens > 5
    assert 40 < usage.output_tokens < 200


def test_what_is_whole_or_never_came_is_left():
    """There is nothing to estimate."""
    for partial in (broken(), broken(Text(text="x"), reason="stop"), broken(reason="error")):
        assert fill_usage(partial, REQUEST) is partial


def test_the_rest_stays():
    """Only the tokens change."""
    partial = broken(Text(text="once"), cache_read_tokens=3)
    filled = fill_usage(partial, REQUEST)

    assert replace(filled, usage=partial.usage) == partial
    assert filled.usage.cache_read_tokens == 3
