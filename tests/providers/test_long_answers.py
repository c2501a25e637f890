"""Whole answers that may take longer than a provider answers without streaming."""

import pytest
from msgspec.structs import replace

from interlingua import Client, batch, sync
from interlingua.api.run.generate import generate
from interlingua.errors import ServerError, StreamError
from interlingua.providers.adapter import HttpAdapter
from interlingua.simulator import cut, error, latency, text, thinking, tool_call, usage
from interlingua.spec.request import Request, ToolDefinition
from support.simulated import KEY, complete, in_virtual_time, run, simulated

# Anthropic's SDK: at 128,000 tokens an hour, ten minutes are this many tokens.
MOST = 128_000 // 6
TURN = thinking("Hm.") + text("Here it is.") + tool_call("look", at="cat", id="toolu_1")
TOOL = ToolDefinition(name="look", parameters={"type": "object"})


def dry_run(provider, model, **fields):
    adapter = HttpAdapter(provider, "k", base_url="https://host.test")
    return adapter.dry_run(Request(model=model, messages="hi", **fields))


@pytest.mark.parametrize(
    ("model", "max_tokens", "is_streamed"),
    [
        ("claude-haiku-4-5", MOST, False),
        ("claude-haiku-4-5", MOST + 1, True),
        ("claude-haiku-4-5", None, True),  # 64,000 are sent, which the catalog knows
        ("claude-3-haiku-20240307", None, False),  # 4,096
        ("claude-unknown", None, False),  # 16,384
        ("claude-unknown", 100_000, True),
        ("claude-opus-4-1-20250805", 8_192, False),
        ("claude-opus-4-1-20250805", 8_193, True),
        ("claude-opus-4-20250514", 8_193, True),
        ("claude-opus-4@20250514", 8_193, True),
        ("claude-opus-4-6", 8_193, False),
    ],
)
def test_a_long_answer_is_streamed_underneath(model, max_tokens, is_streamed):
    """From the figure on that the provider answers without streaming."""
    call = dry_run("anthropic", model, max_tokens=max_tokens)

    assert call.body.get("stream", False) is is_streamed


@pytest.mark.parametrize(
    ("fields", "is_streamed"),
    [
        ({"thinking_budget": 4_000}, False),
        ({"thinking_budget": 5_000}, True),
        ({"thinking_budget": 5_000, "max_tokens": MOST}, False),
        ({"provider_options": {"anthropic": {"max_tokens": MOST + 1}}}, True),
        ({"provider_options": {"anthropic": {"max_tokens": MOST}}, "max_tokens": 60_000}, False),
    ],
)
def test_what_counts_is_what_is_sent(fields, is_streamed):
    """A budget for thinking is part of it, and provider options have the last word."""
    body = dry_run("anthropic", "claude-unknown", **fields).body

    assert (body["max_tokens"] > MOST, body.get("stream", False)) == (is_streamed, is_streamed)


def test_an_option_of_the_adapter_counts():
    """It is the default of its requests."""
    adapter = HttpAdapter("anthropic", "k", options={"max_tokens": MOST + 1})
    bodies = [
        adapter.dry_run(Request(model="claude-unknown", messages="hi", max_tokens=tokens)).body
        for tokens in (None, 100)
    ]

    assert [body.get("stream", False) for body in bodies] == [True, False]


def test_another_endpoint_is_not_streamed_by_default():
    """One that the caller names may take no `max_tokens` at all."""
    options = {"anthropic": {"path": "/messages/count_tokens"}}
    call = dry_run("anthropic", "claude-haiku-4-5", provider_options=options)

    assert "stream" not in call.body


def test_no_request_of_a_batch_is_streamed():
    """Whatever its length: a batch is answered by a file."""
    with simulated(text("Hi.")) as peer:
        client = Client({"anthropic": HttpAdapter("anthropic", KEY, base_url=peer.server.url)})
        model = "anthropic:claude-haiku-4-5"
        run(peer, lambda _: batch.submit(["Hi", "Ho"], model, client=client, max_tokens=60_000))
        (exchange,) = peer.app.script.received

    assert all("stream" not in each["params"] for each in exchange.call.body["requests"])


@pytest.mark.parametrize("provider", ["openai", "gemini", "openai_compatible"])
def test_other_providers_are_not_asked_for_streams(provider):
    """They have no such figure."""
    assert "stream" not in dry_run(provider, "m", max_tokens=100_000).body
    assert "stream" not in dry_run(provider, "m", max_tokens=100_000).url


def test_the_clouds_have_the_same_figure():
    """Their paths of streams are used."""
    adapter = HttpAdapter("bedrock_invoke", "k", base_url="https://host.test")
    name = "us.anthropic.claude-sonnet-5-v1:0"
    urls = [
        adapter.dry_run(Request(model=name, messages="hi", max_tokens=tokens)).url
        for tokens in (MOST, MOST + 1)
    ]

    assert [url.rpartition("/")[2] for url in urls] == ["invoke", "invoke-with-response-stream"]


def test_a_profile_may_say_otherwise():
    """The figure is a field like any other."""
    adapter = HttpAdapter("anthropic", "k", profile={"max_whole_tokens": None})
    call = adapter.dry_run(Request(model="claude-haiku-4-5", messages="hi", max_tokens=60_000))

    assert "stream" not in call.body


def test_the_joined_answer_is_the_whole_answer():
    """The message, the usage, the cost, and `raw`: the body that a whole answer has."""
    with simulated(TURN + usage(9, 8)) as peer:
        request = peer.ask("anthropic", tools=(TOOL,), max_tokens=MOST)
        whole = complete(peer, request)
        joined = complete(peer, peer.ask("anthropic", tools=(TOOL,), max_tokens=MOST + 1))
        first, second = peer.app.script.received

    assert (first.call.stream, second.call.stream) == (False, True)
    call = replace(joined.message.content[-1], raw_arguments=None)  # only a stream has the text
    assert (*joined.message.content[:-1], call) == whole.message.content
    assert (joined.usage, joined.cost) == (whole.usage, whole.cost)
    assert joined.rate_limit == whole.rate_limit
    assert {**joined.raw, "id": ""} == {**whole.raw, "id": ""}


@pytest.mark.parametrize("way", ["generate", "sync"])
def test_every_function_gets_the_joined_answer(way):
    """Its caller sees no difference."""
    model = "anthropic:claude-haiku-4-5"
    with simulated(text("Long.")) as peer:
        if way == "generate":
            result = run(peer, lambda c: generate(model, "Hi", max_tokens=60_000, client=c))
        else:
            adapter = HttpAdapter("anthropic", KEY, base_url=peer.server.url)
            with sync.Client({"anthropic": adapter}) as client:
                result = sync.generate(model, "Hi", max_tokens=60_000, client=client)
        (exchange,) = peer.app.script.received

    assert exchange.call.stream
    assert (result.text, result.response.raw["content"][0]["text"]) == ("Long.", "Long.")


def test_a_joined_answer_may_take_longer_than_a_whole_one():
    """The timeout of a whole answer does not end it; that between two pieces does."""
    slow = text("word " * 10) + latency(between=100)
    peer = in_virtual_time(slow)

    assert complete(peer, peer.ask("anthropic", max_tokens=60_000)).text == "word " * 10


def test_a_joined_answer_that_is_cut_is_an_error():
    """With what had arrived, never a short success."""
    with simulated(text("word " * 100) + cut(1500, clean=True)) as peer:
        request = peer.ask("anthropic", max_tokens=60_000)
        with pytest.raises(StreamError) as caught:
            complete(peer, request)

    assert caught.value.partial.text.startswith("word word")
    usage = caught.value.attempts[0].usage
    assert usage == caught.value.partial.usage
    assert usage.estimated
    assert usage.output_tokens >= len(caught.value.partial.text.split())


def test_an_error_before_a_joined_answer_has_no_partial():
    """As that of a whole answer."""
    with simulated(error(529)) as peer, pytest.raises(ServerError) as caught:
        complete(peer, peer.ask("anthropic", max_tokens=60_000))

    assert caught.value.partial is None
