"""Tokens of answers that broke off, or whose provider reported none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlingua import sync
from interlingua.api.execute.execution import execute
from interlingua.api.run.generate import stream
from interlingua.simulator import text
from interlingua.spec.content import Text, Thinking, ToolCall
from interlingua.spec.messages import Message
from interlingua.spec.request import Request
from interlingua.spec.response import Usage
from interlingua.tokens.estimate import estimate_usage
from support.simulated import adapters, run, simulated

REQUEST = Request(model="gpt-5.2", messages="Write a long story about a fox.")


def fill(*parts, **usage):
    """The usage of an answer that broke off, with what was not reported."""
    message = Message.assistant(list(parts))
    return estimate_usage(Usage(**usage), REQUEST, message, "openai")


@given(st.integers(0, 99), st.integers(0, 99), st.text())
def test_never_less_than_what_was_told(went_in, came, words):
    """What the provider said stands, and what differs from it is marked."""
    filled = fill(Text(text=words), input_tokens=went_in, output_tokens=came)

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
    usage = fill(part)

    assert usage.estimated
    assert usage.input_tokens > 5
    assert 40 < usage.output_tokens < 200


def test_the_rest_stays():
    """Only the totals change."""
    assert fill(Text(text="once"), cache_read_tokens=3).cache_read_tokens == 3


@pytest.mark.parametrize("way", ["stream", "execute", "sync"])
def test_an_estimate_reaches_the_result(way):
    """A server that was not asked for usage: every way of asking has an estimate that says so."""
    model = "openai_compatible:house-model"
    silent = {"openai_compatible": {"stream_options": {"include_usage": False}}}
    options = {"provider_options": silent}

    async def work(client):
        if way == "execute":
            return (await execute(model, "Weather in Oslo?", client=client, **options)).usage
        result = stream(model, "Weather in Oslo?", client=client, **options)
        async for event in result:
            last = event
        assert last.usage == last.response.usage
        return result.result()

    with simulated(text("It is cold in Oslo. " * 20)) as peer:
        if way == "sync":
            with sync.Client(adapters(peer.server.url)) as client:
                events = sync.stream(model, "Weather?", client=client, **options)
                list(events)
            result = events.result()
        else:
            result = run(peer, work)
    if way == "execute":
        assert result.prompt_tokens > 5
        assert result.completion_tokens > 50
        return
    assert result.total_usage.estimated
    assert result.total_usage.input_tokens > 2
    assert result.total_usage.output_tokens > 50
    codes = [warning.code for warning in result.warnings]
    assert codes == ["usage_estimated", "price_unknown"]
