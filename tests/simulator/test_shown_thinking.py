"""The simulator shows thoughts only to those who ask for them, as each vendor does."""

import pytest

from interlingua import Request
from interlingua.simulator import Simulator, text, thinking
from support.simulator_calls import ask, call, read

TURN = thinking("They want facts.") + text("Rain.")
# Seen in recordings: 131 answers of OpenAI, 372 of Gemini, and those of Claude Opus 4.7, Opus 4.8
# and Sonnet 5 had hidden thoughts where nothing was asked for.
HIDING = {
    "openai_responses": "gpt-5.2",
    "anthropic_messages": "claude-sonnet-5",
    "gemini_generate": "gemini-3-pro",
}
SHOWING = {
    "openai_chat": "deepseek-v4",
    "anthropic_messages": "claude-sonnet-4-5",
    "openai_responses": "grok-4",
}


def answer(dialect, model, *, stream=False, **fields):
    """The answer to a question without an effort, as a client reads it."""
    request = Request(model=model, messages="Weather?", **fields)
    return read(dialect, ask(Simulator(TURN), dialect, request, stream=stream), stream=stream)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("dialect", HIDING)
def test_thoughts_that_nobody_asked_for_are_hidden(dialect, stream):
    """Their tokens are counted all the same."""
    response = answer(dialect, HIDING[dialect], stream=stream)

    assert (response.reasoning or "", response.text) == ("", "Rain.")
    assert response.usage.output_tokens == 6


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("dialect", HIDING)
def test_thoughts_that_were_asked_for_are_shown(dialect, stream):
    """By the field that each vendor has for it."""
    response = answer(dialect, HIDING[dialect], stream=stream, include_thinking=True)

    assert (response.reasoning, response.text) == ("They want facts.", "Rain.")


@pytest.mark.parametrize("dialect", SHOWING)
def test_models_that_always_show_thoughts_show_them(dialect):
    """Claude until 4.6, the models of xAI, and the servers of Chat Completions."""
    assert answer(dialect, SHOWING[dialect]).reasoning == "They want facts."


@pytest.mark.parametrize(
    ("thinking_field", "shown"),
    [({"display": "omitted"}, ""), ({"display": "summarized"}, "They want facts."), ({}, "")],
)
def test_the_field_of_anthropic_decides(thinking_field, shown):
    """A hidden thought is empty, and has its signature."""
    body = {
        "model": "claude-opus-4-8",
        "max_tokens": 4000,
        "messages": [{"role": "user", "content": "Weather?"}],
        "thinking": {"type": "adaptive", **thinking_field},
    }
    block = call(Simulator(TURN), "/v1/messages", body, {"anthropic-version": "2023-06-01"})

    assert block.json["content"][0]["thinking"] == shown
    assert block.json["content"][0]["signature"]


@pytest.mark.parametrize("word", ["auto", "concise", "detailed"])
def test_every_kind_of_summary_shows_thoughts(word):
    """OpenAI has three words for it."""
    body = {"model": "gpt-5.2", "input": "Weather?", "reasoning": {"summary": word}}
    reply = call(Simulator(TURN), "/v1/responses", body)

    summary = [{"type": "summary_text", "text": "They want facts."}]
    assert reply.json["output"][0]["summary"] == summary
