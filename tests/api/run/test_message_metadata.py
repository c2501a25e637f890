"""The id and metadata of answers, and the history rules that depend on them, on real histories."""

import asyncio

import pytest

from interlingua import sync
from interlingua.api.run.generate import generate, stream
from interlingua.api.tools.tool import tool
from interlingua.client.client import Client
from interlingua.client.registry import ModelEntry, Registry
from interlingua.providers.adapter import HttpAdapter
from interlingua.runtime.cancel import AbortController
from interlingua.simulator import latency, text, thinking, tool_call, tool_loop
from interlingua.spec.content import Thinking, ToolCall
from interlingua.spec.errors import AbortError
from interlingua.spec.json_form import from_json, to_json
from interlingua.spec.messages import Message
from interlingua.spec.request import Request
from support.runs import MODES, collect, named, run_in
from support.simulated import DIALECTS, KEY, MODELS, run, simulated

every_provider = pytest.mark.parametrize("provider", sorted(DIALECTS))
stored = pytest.mark.parametrize("is_stored", [False, True], ids=["kept", "stored"])


def kept(messages, is_stored):
    """A history as a program keeps it: as it is, or as JSON."""
    return [from_json(to_json(each), Message) if is_stored else each for each in messages]


@every_provider
@pytest.mark.parametrize("mode", MODES)
def test_answers_say_who_made_them(provider, mode):
    """Model, provider, finish reason and usage, and an id of their own, in every step."""

    @tool
    def look() -> str:
        """Look outside."""
        return "rain"

    with simulated(tool_loop(tool_call("look"), text("Rain."))) as peer:
        result = run_in(mode, peer, provider, tools=[look])

    answers = [message for message in result.messages if message.role == "assistant"]
    assert len({message.id for message in answers} - {None}) == 2
    assert [each.metadata["finish_reason"] for each in answers] == ["tool_calls", "stop"]
    for message in answers:
        assert message.metadata["model"] == MODELS[provider]
        assert message.metadata["provider"] == provider
        assert message.metadata["usage"]["input_tokens"] > 0
        assert from_json(to_json(message), Message) == message


@every_provider
def test_every_way_of_a_call_says_who_answered(provider):
    """A client and an adapter alone, whole and streamed."""

    async def work(client):
        request = Request(model=MODELS[provider], provider=provider, messages="?")
        adapter = client._adapters[provider]
        return [
            await client.complete(request),
            (await collect(client.stream(request)))[-1].response,
            await adapter.complete(request),
            (await collect(adapter.stream(request)))[-1].response,
        ]

    with simulated(text("Rain.")) as peer:
        responses = run(peer, work)

    for response in responses:
        usage = response.message.metadata["usage"]
        cost = response.cost
        priced = {} if cost is None else {"cost": response.message.metadata["cost"]}
        if cost is not None:
            assert priced["cost"]["total"] == cost.total
            assert priced["cost"]["pricing_version"] == cost.pricing_version
        assert response.message.metadata == {
            "model": MODELS[provider],
            "provider": provider,
            "finish_reason": "stop",
            "usage": usage,
            **priced,
        }
        assert usage["output_tokens"] == response.usage.output_tokens
    assert all(response.message.id for response in responses)


def test_the_id_of_the_registry_is_named():
    """If the model is one of a registry file."""
    entry = ModelEntry(id="house:fast", adapter="openai", wire_name="gpt-5.2", aliases=("fast",))
    with simulated(text("Rain.")) as peer:
        adapter = HttpAdapter("openai", KEY, base_url=peer.server.url)
        client = Client({"openai": adapter}, registry=Registry([entry]))

        async def work():
            async with client:
                whole = await generate("fast", "?", client=client)
                events = stream("fast", "?", client=client)
                await collect(events)
                return whole, events.result()

        for result in asyncio.run(work()):
            metadata = result.messages[-1].metadata
            assert (metadata["registry_id"], metadata["model"]) == ("house:fast", "gpt-5.2")


@every_provider
@stored
@pytest.mark.parametrize("mode", MODES)
def test_stale_thinking_is_dropped_after_a_change_of_model(provider, mode, is_stored):
    """Where a model accepts only its own; the same model gets it back."""
    profile = {"thinking_bound_to_model": True}
    with simulated(thinking("Hm.") + text("Rain."), profile=profile) as peer:
        first = run_in(mode, peer, provider, include_thinking=True)
        history = kept([*first.messages, Message.user("Sure?")], is_stored)
        same = run(peer, lambda client: client.complete(
            Request(model=MODELS[provider], provider=provider, messages=history)
        ))  # fmt: skip
        other = run(peer, lambda client: client.complete(
            Request(model="another-model", provider=provider, messages=history)
        ))  # fmt: skip
        sent = [
            [part for each in request.messages for part in each.content if type(part) is Thinking]
            for request in peer.app.script.requests
        ]

    codes = {warning.code for warning in other.warnings}
    assert not codes.isdisjoint({"stale_thinking_dropped", "foreign_thinking_dropped"})
    assert "stale_thinking_dropped" not in {warning.code for warning in same.warnings}
    assert sent[2] == []
    assert provider not in {"anthropic", "gemini"} or sent[1] != []


@every_provider
@stored
@pytest.mark.parametrize("source", ["error", "finish", "partial"])
def test_partial_calls_of_a_cut_turn_are_repaired(provider, source, is_stored):
    """The call that was cut short is not sent again, wherever the caller took the message from."""

    controller = AbortController()

    async def work(client):
        events = stream(named(provider), "?", client=client, abort_signal=controller.signal)
        finish = None
        try:
            async for event in events:
                finish = event
                if event.type == "tool_call_start":
                    controller.abort()
        except AbortError as error:
            messages = {
                "error": error.partial.message,
                "finish": finish.response.message,
                "partial": events.partial_response.message,
            }
            history = kept([Message.user("?"), messages[source], Message.user("Go on")], is_stored)
            return history, await generate(named(provider), messages=history, client=client)
        raise AssertionError("it did not fail")

    slow = latency(between=0.005)
    with simulated(text("I look.") + tool_call("look", place="Oslo") + slow, text("Rain.")) as peer:
        history, result = run(peer, work)
        sent = peer.app.script.requests[1].messages

    assert history[1].metadata["finish_reason"] == "cancelled"
    assert [call.name for call in history[1].tool_calls] == ["look"]
    assert [part for each in sent for part in each.content if isinstance(part, ToolCall)] == []
    assert "aborted_call_dropped" in {warning.code for warning in result.warnings}


@every_provider
@pytest.mark.parametrize("blocking", [False, True], ids=["async", "sync"])
def test_a_reader_that_leaves_early_has_a_labelled_partial(provider, blocking):
    """Its message says that it was cut short, so that its calls are repaired."""
    slow = latency(between=0.005)

    async def work(client):
        async with stream(named(provider), "?", client=client) as events:
            async for event in events:
                if event.type == "tool_call_start":
                    break
            return events.partial_response

    with simulated(text("I look.") + tool_call("look", place="Oslo") + slow) as peer:
        if blocking:
            client = sync.Client.wrap(peer.client)
            with client, sync.stream(named(provider), "?", client=client) as events:
                next(event for event in events if event.type == "tool_call_start")
                partial = events.partial_response
        else:
            partial = run(peer, work)

    assert partial.message.metadata["finish_reason"] == "cancelled"
    assert partial.message.metadata["model"] == MODELS[provider]
    assert [call.name for call in partial.message.tool_calls] == ["look"]
