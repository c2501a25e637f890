"""Thinking and caching, by every dialect."""

import json

import pytest

from interlingua.api.run.generate import generate
from interlingua.simulator import Turn, text, thinking, usage
from interlingua.spec.content import Text, Thinking
from interlingua.spec.messages import Message
from support.requests import ask, every_provider, get_weather, named
from support.simulated import run, simulated


@every_provider
def test_thinking_and_its_tokens(provider):
    """Told apart from the text, and sent back whole to its maker."""
    answer = thinking("Oslo is north.") + text("Cold.") + usage(9, 8, reasoning=5)
    with simulated(answer) as peer:
        result = ask(peer, provider, reasoning_effort="low", include_thinking=True)
        ask(peer, provider, None, messages=[*result.messages, Message.user("Sure?")])
        second = peer.app.script.requests[1]

    assert result.reasoning == "Oslo is north."
    assert result.text == "Cold."
    # `TokenUsage` of Converse does not tell how many of its tokens are reasoning.
    reasoning = None if provider == "bedrock_converse" else 5
    assert (result.usage.reasoning_tokens, result.usage.output_tokens) == (reasoning, 8)
    thoughts = [p for m in second.messages for p in m.content if isinstance(p, Thinking)]
    own = [p for p in result.response.message.content if isinstance(p, Thinking)]
    assert thoughts == own


def cached_shares(provider, **options):
    """For each turn of a conversation: the share of the input that was read from the cache."""

    async def work(client):
        # Long enough for every model: shorter prompts are not cached, so they are not marked.
        history = [Message.system("You are a careful assistant. " * 1000)]
        shares = []
        for number in range(5):
            history.append(Message.user(f"Question {number}: " + "please explain. " * 10))
            result = await generate(named(provider), messages=history, client=client, **options)
            history = list(result.messages)
            read = result.usage.cache_read_tokens or 0
            shares.append(read / result.usage.input_tokens)
        return shares

    with simulated(text("An answer. " * 5)) as peer:
        return run(peer, work)


@every_provider
def test_cached_tokens(provider):
    """From the second turn on most of the input is read from the cache."""
    shares = cached_shares(provider)

    assert shares[0] == 0
    assert all(share > 0.5 for share in shares[1:])


def test_nothing_is_cached_without_marks():
    """Where the vendor needs marks, and the caller switched them off."""
    shares = cached_shares("anthropic", provider_options={"anthropic": {"auto_cache": False}})

    assert shares == [0] * 5


@every_provider
def test_thinking_that_is_hidden(provider):
    """What a provider gives instead of its thoughts is sent back as it came."""
    hidden = Turn(parts=(Thinking(redacted=True, data="Y2lwaGVy"), Text(text="Cold.")))
    with simulated(hidden) as peer:
        result = ask(peer, provider, reasoning_effort="low")
        after = ask(peer, provider, None, messages=[*result.messages, Message.user("Sure?")])
        second = peer.app.script.requests[1]

    own = [p for p in result.response.message.content if isinstance(p, Thinking)]
    if provider == "openai":  # an id without content, which is not stored, is not sent back
        own = [p for p in own if p.data]
    assert [p for m in second.messages for p in m.content if isinstance(p, Thinking)] == own
    assert result.text == after.text == "Cold."
    if provider == "anthropic":  # the only one that has it
        assert [(p.redacted, p.data) for p in own] == [(True, "Y2lwaGVy")]


@every_provider
def test_how_much_to_think(provider):
    """The effort reaches the provider in its words, or as a budget, which is told."""
    with simulated(text("ok")) as peer:
        result = ask(peer, provider, reasoning_effort="low")
        (request,) = peer.app.script.requests

    if request.reasoning_effort is None:
        assert request.thinking_budget > 0
        assert [warning.code for warning in result.warnings] == ["effort_as_budget"]
    else:
        assert request.reasoning_effort == "low"


@pytest.mark.parametrize("is_on", [True, False])
def test_cache_marks(is_on):
    """Where they are needed, they are set on the prompt, the tools and the history, unless off."""
    options = {} if is_on else {"anthropic": {"auto_cache": False}}
    with simulated(text("ok")) as peer:
        history = [Message.system("Long. " * 2000), Message.user("a"), Message.assistant("b")]
        ask(
            peer,
            "anthropic",
            None,
            messages=[*history, Message.user("c")],
            tools=[get_weather],
            provider_options=options,
        )
        (exchange,) = peer.app.script.received
    body = exchange.call.body

    assert ("cache_control" in body) == is_on  # a mark at the end of the history
    for place in ("system", "tools"):
        assert ("cache_control" in json.dumps(body[place])) == is_on
    assert "auto_cache" not in json.dumps(body)
    assert "anthropic-beta" not in exchange.call.headers  # as was needed once
