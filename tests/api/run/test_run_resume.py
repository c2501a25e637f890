"""Runs that failed or stopped, and how they go on: no tool runs twice, nothing is forgotten."""

import asyncio

import pytest

from interlingua.api.objects.functions import generate_object, stream_object
from interlingua.api.run.generate import generate, stream
from interlingua.api.tools.tool import tool
from interlingua.client.client import Client
from interlingua.client.retry_policy import RetryPolicy
from interlingua.providers.adapter import HttpAdapter
from interlingua.runtime.cancel import AbortController
from interlingua.simulator import error, text, tool_call, usage
from interlingua.spec.content import ToolResult
from interlingua.spec.errors import (
    AbortError,
    ConfigurationError,
    NetworkError,
    RateLimitError,
    RequestTimeoutError,
    SDKError,
    ServerError,
)
from interlingua.spec.messages import Message
from interlingua.streams.grammar import Grammar
from interlingua.transport import HttpTransport, HttpxTransport
from support.runs import MODES, collect, named, run_in
from support.simulated import DIALECTS, KEY, MODELS, run, settled, simulated

every_provider = pytest.mark.parametrize("provider", sorted(DIALECTS))
every_mode = pytest.mark.parametrize("mode", MODES)


class Shop:
    """Two tools, and what they have done."""

    def __init__(self):
        self.done = []
        self.gate = asyncio.Event()

        @tool
        def buy(what: str) -> str:
            """Buy something."""
            self.done.append(what)
            return f"bought {what}"

        @tool
        async def wait() -> str:
            """Wait."""
            self.done.append("wait")
            await self.gate.wait()
            return "waited"

        self.tools = [buy, wait]


def results_of(messages):
    parts = (part for message in messages for part in message.content)
    return [part for part in parts if isinstance(part, ToolResult)]


@every_provider
@every_mode
def test_a_failed_run_is_resumed_from_its_error(provider, mode):
    """The error has the messages, the steps and the usage; the tool that ran is not run again."""
    shop = Shop()
    with simulated(
        tool_call("buy", what="milk") + usage(input_tokens=10, output_tokens=5),
        error(500, "broken"),
        tool_call("buy", what="bread") + usage(input_tokens=20, output_tokens=5),
        text("Done.") + usage(input_tokens=30, output_tokens=5),
    ) as peer:
        options = {"tools": shop.tools, "max_tool_rounds": 5}
        with pytest.raises(ServerError) as caught:
            run_in(mode, peer, provider, max_retries=0, **options)
        failure = caught.value
        assert [message.role for message in failure.messages] == ["user", "assistant", "tool"]
        assert len(failure.steps) == 1
        assert failure.total_usage.total_tokens == 15
        result = run_in(mode, peer, provider, None, resume=failure, **options)

    assert shop.done == ["milk", "bread"]
    assert result.text.endswith("Done.")
    roles = [message.role for message in result.messages]
    assert roles == ["user", "assistant", "tool", "assistant", "tool", "assistant"]
    if mode != "execute":
        assert len(result.steps) == 3
        assert result.total_usage.total_tokens == 15 + 25 + 35


@every_provider
@pytest.mark.parametrize("whole", [True, False], ids=["whole", "streamed"])
def test_a_run_that_ends_during_its_tools_is_resumed(provider, whole):
    """Results that exist are kept, a tool that had begun is not run again, the others are run."""
    shop, controller = Shop(), AbortController()
    calls = tool_call("buy", what="milk") + tool_call("wait") + tool_call("buy", what="bread")

    async def ask(client, prompt, **options):
        options = {"tools": shop.tools, "client": client, "max_concurrent_tools": 1, **options}
        if whole:
            return await generate(named(provider), prompt, **options)
        events = stream(named(provider), prompt, **options)
        seen = await collect(events)
        grammar = Grammar()
        for event in seen:
            grammar.feed(event)
        assert len([event for event in seen if event.type == "tool_result"]) == 1
        return events.result()

    async def work(client):
        task = asyncio.ensure_future(ask(client, "?", abort_signal=controller.signal))
        await settled(lambda: "wait" in shop.done)
        controller.abort("enough")
        with pytest.raises(AbortError) as caught:
            await task
        return caught.value, await ask(client, None, resume=caught.value)

    with simulated(calls, text("Done.")) as peer:
        failure, result = run(peer, work)

    assert shop.done == ["milk", "wait", "bread"]
    kept = results_of(failure.messages)
    assert [entry.is_error for entry in kept] == [False, True]
    assert "not known whether it took effect" in kept[1].content
    assert failure.steps[-1].tool_results == tuple(kept)
    results = results_of(result.messages)
    assert [entry.tool_call_id for entry in results] == [
        call.id for call in result.messages[1].tool_calls
    ]
    assert [message.role for message in result.messages] == [
        "user",
        "assistant",
        "tool",
        "assistant",
    ]
    assert len(result.steps) == 2
    assert result.text == "Done."


@every_provider
@every_mode
def test_a_run_out_of_rounds_says_so_and_is_resumed(provider, mode):
    """The open calls are run first, once; the steps and the usage of both runs are there."""
    shop = Shop()
    with simulated(
        tool_call("buy", what="milk"), tool_call("buy", what="bread"), text("Done.")
    ) as peer:
        first = run_in(mode, peer, provider, tools=shop.tools, max_tool_rounds=1)
        assert shop.done == ["milk"]
        result = run_in(mode, peer, provider, None, resume=first, tools=shop.tools)

    assert shop.done == ["milk", "bread"]
    assert result.text.endswith("Done.")
    assert len(results_of(result.messages)) == 2
    if mode != "execute":
        (warning,) = [each for each in first.warnings if each.code == "tool_rounds_exhausted"]
        assert "after 1 tool round," in warning.message
        assert "buy" in warning.message
        assert len(result.steps) == 3
        assert result.total_usage.input_tokens > first.total_usage.input_tokens


@pytest.mark.parametrize("rounds", [0, 2])
def test_there_is_no_warning_if_no_tool_was_left_open(rounds):
    """If no tool was to run, or none was left open."""
    with simulated(tool_call("buy", what="milk"), text("Done.")) as peer:
        result = run_in("whole", peer, "openai", tools=Shop().tools, max_tool_rounds=rounds)

    assert [warning.code for warning in result.warnings] == []


@every_provider
@every_mode
def test_approvals_are_given_to_a_resumed_run(provider, mode):
    """What waits is run if it was approved, and what did not wait is run too."""
    done = []

    @tool(needs_approval=True)
    def pay(euros: int) -> str:
        """Pay."""
        done.append(euros)
        return "paid"

    with simulated(tool_call("pay", euros=5, id="call_1"), text("Done.")) as peer:
        first = run_in(mode, peer, provider, tools=[pay])
        (waiting,) = first.pending_approvals
        with pytest.raises(ConfigurationError, match="No approval was given"):
            run_in(mode, peer, provider, None, resume=first, tools=[pay])
        result = run_in(
            mode, peer, provider, None, resume=first, tools=[pay], approvals={waiting.id: True}
        )

    assert done == [5]
    assert result.text.endswith("Done.")


def test_what_cannot_be_resumed_is_refused():
    """A run that has ended, an error without a conversation, a call without a function."""
    with simulated(text("Done."), tool_call("ask")) as peer:
        first = run_in("whole", peer, "openai")
        with pytest.raises(ConfigurationError, match=r"nothing to resume.*'stop'.*messages="):
            run_in("whole", peer, "openai", None, resume=first)
        with pytest.raises(ConfigurationError, match="this one has no messages"):
            run_in("whole", peer, "openai", None, resume=SDKError("no"))
        with pytest.raises(ConfigurationError, match="or else resume"):
            run_in("whole", peer, "openai", "Hi", resume=first)


@every_provider
@pytest.mark.parametrize("whole", [True, False], ids=["whole", "streamed"])
def test_an_error_names_provider_model_and_attempts(provider, whole):
    """In its text and as fields."""

    async def work(client):
        options = {"client": client, "retry_policy": RetryPolicy(max_retries=2, base_delay=0)}
        if whole:
            return await generate(named(provider), "?", **options)
        return await collect(stream(named(provider), "?", **options))

    with simulated(error(503, "overloaded")) as peer, pytest.raises(ServerError) as caught:
        run(peer, work)

    failure = caught.value
    assert (failure.provider, failure.model) == (provider, MODELS[provider])
    assert [attempt.number for attempt in failure.attempts] == [0, 1, 2]
    assert str(failure).startswith(f"{provider}:{MODELS[provider]}: ")
    assert "(3 attempts)" in str(failure)
    assert failure.messages == (Message.user("?"),)
    assert failure.steps == ()


@every_provider
@pytest.mark.parametrize("whole", [True, False], ids=["whole", "streamed"])
@pytest.mark.parametrize("how", ["timeout", "abort"])
def test_the_cause_of_a_wait_that_was_cut_short_is_kept(provider, whole, how):
    """A timeout during the backoff says what failed before it."""
    controller = AbortController()

    async def work(client):
        options = {
            "client": client,
            "retry_policy": RetryPolicy(
                base_delay=60, on_retry=lambda *_: how == "abort" and controller.abort()
            ),
            "abort_signal": controller.signal,
            "timeout": 0.2 if how == "timeout" else None,
        }
        if whole:
            return await generate(named(provider), "?", **options)
        return await collect(stream(named(provider), "?", **options))

    kind = RequestTimeoutError if how == "timeout" else AbortError
    with simulated(error(503, "overloaded")) as peer, pytest.raises(kind) as caught:
        run(peer, work)

    failure = caught.value
    assert isinstance(failure.cause, ServerError)
    assert "overloaded" in str(failure.cause)
    assert len(failure.attempts) == 1
    if how == "timeout":
        assert (failure.provider, failure.model) == (provider, MODELS[provider])


@pytest.mark.parametrize("whole", [True, False], ids=["whole", "streamed"])
@pytest.mark.parametrize("transport", [HttpTransport, HttpxTransport])
def test_a_refused_connection_keeps_its_cause(whole, transport):
    """The error of the system is behind ours."""
    url = "http://127.0.0.1:9"
    adapter = HttpAdapter("openai", KEY, base_url=url, transport=transport())

    async def work():
        async with Client({"openai": adapter}) as client:
            options = {"client": client, "max_retries": 0}
            if whole:
                return await generate("openai:gpt-5.2", "?", **options)
            return await collect(stream("openai:gpt-5.2", "?", **options))

    with pytest.raises(NetworkError) as caught:
        asyncio.run(work())

    assert isinstance(caught.value.cause, ConnectionRefusedError)
    assert str(caught.value).startswith("openai:gpt-5.2: ")


@every_provider
def test_a_long_wait_is_explained(provider):
    """How long the provider asked to wait, and the setting that forbids it."""
    turn = error(429, "slow down", retry_after=120)
    with simulated(turn) as peer, pytest.raises(RateLimitError) as caught:
        run_in("whole", peer, provider)

    assert "asked to wait 120 s, more than max_delay 60 s" in str(caught.value)


@every_provider
@pytest.mark.parametrize("whole", [True, False], ids=["whole", "streamed"])
def test_a_failed_run_for_an_object_is_resumed(provider, whole):
    """Its tool is not run again, and the object comes."""
    shop = Shop()
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}

    async def ask(client, prompt, **options):
        options = {"schema": schema, "tools": shop.tools, "client": client, **options}
        if whole:
            return (await generate_object(named(provider), prompt, **options)).output
        objects = stream_object(named(provider), prompt, **options)
        await collect(objects)
        return objects.object()

    async def work(client):
        with pytest.raises(ServerError) as caught:
            await ask(client, "?", max_retries=0)
        return await ask(client, None, resume=caught.value)

    turns = tool_call("buy", what="milk"), error(500, "broken"), text('{"n": 1}')
    with simulated(*turns, profile={"structured_output": ("prompt",)}) as peer:
        assert run(peer, work) == {"n": 1}
    assert shop.done == ["milk"]


@every_provider
def test_a_stream_cancelled_by_its_id_is_resumed(provider):
    """During its tools: the result has each message once, and goes on without a second run."""
    shop = Shop()

    async def work(client):
        options = {"tools": shop.tools, "client": client}
        events = stream(named(provider), "?", request_id="r", **options)
        task = asyncio.ensure_future(collect(events))
        await settled(lambda: "wait" in shop.done)
        assert await client.cancel("r")
        seen = await task
        assert seen[-1].finish_reason.reason == "cancelled"
        first = events.result()
        return first, await generate(named(provider), resume=first, **options)

    with simulated(tool_call("wait"), text("Done.")) as peer:
        first, result = run(peer, work)

    assert shop.done == ["wait"]
    assert [message.role for message in first.messages] == ["user", "assistant", "tool"]
    assert len(first.steps) == 1
    assert result.text == "Done."
    assert [message.role for message in result.messages] == [
        "user", "assistant", "tool", "assistant",
    ]  # fmt: skip
