"""`generate` and `stream`, in every dialect, over real HTTP."""

import asyncio

import pytest

from interlingua.api.run.clients import set_default_client
from interlingua.api.run.generate import generate, stream
from interlingua.api.run.options import TimeoutConfig
from interlingua.api.tools.tool import Tool, tool
from interlingua.client.retry_policy import RetryPolicy
from interlingua.runtime.cancel import AbortController
from interlingua.simulator import error, latency, reset, text, tool_call
from interlingua.spec.content import ToolResult
from interlingua.spec.errors import (
    AbortError,
    AuthenticationError,
    ConfigurationError,
    RequestTimeoutError,
    ServerError,
    StreamError,
)
from interlingua.spec.messages import Message
from interlingua.streams.grammar import Grammar
from support import virtual_time
from support.simulated import DIALECTS, MODELS, SLOW, in_virtual_time, run, settled, simulated

every_provider = pytest.mark.parametrize("provider", sorted(DIALECTS))
QUICK = RetryPolicy(base_delay=0.0)


@tool
def get_weather(city: str) -> str:
    """
    The weather in a city now.

    Args:
        city: The city's name.
    """
    return f"{city}: rain"


def weather_loop(request):
    """The model asks about two cities, then says what it was told."""
    given = [p for m in request.messages for p in m.content if isinstance(p, ToolResult)]
    if given:
        return text("So: " + "; ".join(str(result.content) for result in given))
    return tool_call("get_weather", city="Oslo") + tool_call("get_weather", city="Rome")


def named(provider):
    return f"{provider}:{MODELS[provider]}"


async def collect(result):
    events = []
    grammar = Grammar()
    async for event in result:
        grammar.feed(event)
        events.append(event)
    grammar.finish()
    return events


async def drain(result, seen, look=lambda _: None):
    """Read it all into `seen`, which has what came before an error too."""
    async for event in result:
        seen.append(event)
        look(event)


@every_provider
def test_generate_with_tools(provider):
    """Two calls at once, both results in one request, then the answer."""
    with simulated(weather_loop) as peer:
        result = run(
            peer,
            lambda client: generate(
                named(provider), "Weather?", system="Be brief.", tools=[get_weather], client=client
            ),
        )
        asked = peer.app.script.requests

    assert result.text == "So: Oslo: rain; Rome: rain"
    assert len(result.steps) == len(asked) == 2
    assert [call.arguments["city"] for call in result.steps[0].tool_calls] == ["Oslo", "Rome"]
    assert [entry.content for entry in result.steps[0].tool_results] == ["Oslo: rain", "Rome: rain"]
    assert result.total_usage.input_tokens == sum(s.usage.input_tokens for s in result.steps)
    assert [message.role for message in result.messages] == [
        "system",
        "user",
        "assistant",
        "tool",
        "assistant",
    ]


@every_provider
def test_stream_with_tools(provider):
    """One start, one end, a `step_finish` between; the same answer as whole."""

    async def work(client):
        result = stream(named(provider), "Weather?", tools=[get_weather], client=client)
        assert result.partial_response is None
        with pytest.raises(ConfigurationError):
            result.response()
        events = await collect(result)
        return result, events

    with simulated(weather_loop) as peer:
        result, events = run(peer, work)

    kinds = [event.type for event in events]
    assert (kinds.count("stream_start"), kinds.count("step_finish"), kinds.count("finish")) == (
        1,
        1,
        1,
    )
    assert result.response().text == "So: Oslo: rain; Rome: rain"
    assert result.response() is events[-1].response
    assert result.partial_response.text == result.response().text
    assert len(result.result().steps) == 2
    spoken = "".join(event.delta for event in events if event.type == "text_delta")
    assert spoken == result.response().text


def test_text_stream():
    """Only the words."""

    async def work(client):
        result = stream(named("openai"), "hi", client=client)
        return [piece async for piece in result.text_stream], result.response().text

    with simulated(text("one two three")) as peer:
        pieces, whole = run(peer, work)

    assert len(pieces) > 1
    assert "".join(pieces) == whole == "one two three"


def test_the_default_client():
    """Where none is given."""

    async def work(client):
        set_default_client(client)
        try:
            return await generate(named("anthropic"), messages=[Message.user("hi")])
        finally:
            set_default_client(None)

    with simulated(text("hello")) as peer:
        assert run(peer, work).text == "hello"


@pytest.mark.parametrize("rounds", [0, 1, 3])
def test_rounds(rounds):
    """0 leaves the calls to the caller; N are at most N + 1 requests."""
    with simulated(tool_call("get_weather", city="Oslo")) as peer:
        result = run(
            peer,
            lambda client: generate(
                named("openai"), "?", tools=[get_weather], max_tool_rounds=rounds, client=client
            ),
        )
        assert len(peer.app.script.received) == rounds + 1

    assert len(result.tool_calls) == 1
    assert result.tool_results == ()


@pytest.mark.parametrize("whole", [True, False])
def test_retries_are_per_step(whole):
    """A failure in the second step does not repeat the first, nor its tools."""
    runs = []

    @tool
    def count() -> str:
        """Count."""
        runs.append(1)
        return "counted"

    script = [tool_call("count"), error(503), error(429, retry_after=0), text("done")]

    async def work(client):
        options = {"tools": [count], "client": client, "retry_policy": QUICK}
        if whole:
            return (await generate(named("openai"), "?", **options)).text
        result = stream(named("openai"), "?", **options)
        await collect(result)
        return result.response().text

    with simulated(*script) as peer:
        assert run(peer, work) == "done"
        assert len(peer.app.script.received) == 4
    assert runs == [1]


@pytest.mark.parametrize(
    ("options", "requests"), [({"max_retries": 0}, 1), ({"retry_policy": QUICK}, 3)]
)
def test_n_retries_are_n_plus_one_requests(options, requests):
    """N retries are N + 1 requests; 0 is a value (field bug 74)."""
    with simulated(error(500, retry_after=0)) as peer:
        with pytest.raises(ServerError):
            run(peer, lambda client: generate(named("openai"), "?", client=client, **options))
        assert len(peer.app.script.received) == requests


@pytest.mark.usefixtures("no_backoff")
def test_an_adapter_that_retries_is_not_retried_from_above():
    """An adapter that retries by itself is not retried from above (field bug 74)."""
    with simulated(error(500, retry_after=0), max_retries=1) as peer:
        with pytest.raises(ServerError):
            run(peer, lambda client: generate(named("openai"), "?", client=client))
        assert len(peer.app.script.received) == 2


def test_what_cannot_pass_is_not_tried_again():
    """A wrong key stays wrong."""
    with simulated(error(401)) as peer:
        with pytest.raises(AuthenticationError):
            run(peer, lambda client: generate(named("gemini"), "?", client=client))
        assert len(peer.app.script.received) == 1


@every_provider
@pytest.mark.parametrize("whole", [True, False])
def test_abort(provider, whole):
    """The server sees the connection closed; the error has what had come."""

    async def work(client):
        controller = AbortController()
        options = {"client": client, "abort_signal": controller.signal}
        if whole:
            task = asyncio.ensure_future(generate(named(provider), "?", **options))
            await settled(lambda: peer.app.script.received)
            controller.abort("enough")
            with pytest.raises(AbortError, match="enough"):
                await task
            seen = []
        else:
            seen = []
            events = stream(named(provider), "?", **options)

            def give_up(event):
                if event.type == "text_delta":
                    controller.abort("enough")

            with pytest.raises(AbortError, match="enough") as caught:
                await drain(events, seen, give_up)
            assert caught.value.partial.text.startswith("wor")
        (exchange,) = peer.app.script.received
        await settled(lambda: exchange.disconnected is not None)
        return seen

    with simulated(SLOW) as peer:
        seen = run(peer, work)

    if not whole:
        assert seen[-1].finish_reason.reason == "cancelled"


def test_abort_while_a_tool_runs():
    """Its task is cancelled, and the loop ends."""
    controller, stopped = AbortController(), []

    async def long() -> None:
        try:
            controller.abort()
            await asyncio.sleep(60)
        finally:
            stopped.append(1)

    with simulated(tool_call("long")) as peer:
        with pytest.raises(AbortError) as caught:
            run(
                peer,
                lambda client: generate(
                    named("openai"),
                    "?",
                    tools=[Tool(name="long", execute=long)],
                    client=client,
                    abort_signal=controller.signal,
                ),
            )
        assert len(peer.app.script.received) == 1
    assert stopped == [1]
    assert [call.name for call in caught.value.partial.tool_calls] == ["long"]


@pytest.mark.parametrize(
    "timeout", [0.05, TimeoutConfig(total=0.05), TimeoutConfig(per_step=0.05)], ids=str
)
@pytest.mark.parametrize("whole", [True, False])
def test_timeouts(timeout, whole):
    """Of everything, and of one call; they cover waits between retries, too."""

    async def work(client):
        options = {"client": client, "timeout": timeout}
        if whole:
            await generate(named("openai"), "?", **options)
        else:
            await collect(stream(named("openai"), "?", **options))

    async def timed(client):
        began = virtual_time.now()
        with pytest.raises(RequestTimeoutError):
            await work(client)
        return virtual_time.now() - began

    for script in (text("never") + latency(first=60), error(503, retry_after=50)):
        assert run(in_virtual_time(script), timed) == pytest.approx(0.05, abs=0.01)


def test_a_stream_that_is_left():
    """Nothing more is read, and the connection is closed."""

    async def work(client):
        async with stream(named("anthropic"), "?", client=client) as events:
            async for event in events:
                if event.type == "text_delta":
                    break
        (exchange,) = peer.app.script.received
        await settled(lambda: exchange.disconnected is not None)

    with simulated(SLOW) as peer:
        run(peer, work)


def test_approval_in_two_calls():
    """The first gives what is pending; the second goes on with the decision."""
    done = []

    @tool(needs_approval=True)
    def delete(name: str) -> str:
        """Delete a file."""
        done.append(name)
        return "deleted"

    def script(request):
        given = [p for m in request.messages for p in m.content if isinstance(p, ToolResult)]
        return text(str(given[-1].content)) if given else tool_call("delete", name="a.txt")

    async def work(client):
        first = await generate(named("anthropic"), "?", tools=[delete], client=client)
        (waiting,) = first.pending_approvals
        assert done == []
        answers = []
        for decision in (True, False):
            again = await generate(
                named("anthropic"),
                messages=first.messages,
                tools=[delete],
                approvals={waiting.id: decision},
                client=client,
            )
            answers.append(again.text)
        return answers

    with simulated(script) as peer:
        allowed, refused = run(peer, work)

    assert (allowed, done) == ("deleted", ["a.txt"])
    assert "did not approve" in refused


def test_wrong_use():
    """Before anything is sent."""
    with simulated(text("x")) as peer:
        for options in ({"prompt": "a", "messages": ["b"]}, {}, {"prompt": "a", "temprature": 1}):
            with pytest.raises(ConfigurationError):
                run(
                    peer,
                    lambda client, given=options: generate("openai:m", client=client, **given),
                )
        assert peer.app.script.received == ()


@every_provider
def test_a_reset_in_the_middle_is_an_error_with_what_had_come(provider):
    """An error event and an error with what had come, not a short answer; nobody asks again.

    Field bug 53.
    """
    with simulated(text("word " * 200) + reset(5_000), text("again")) as peer:

        async def work(client):
            events = []
            with pytest.raises(StreamError) as caught:
                await drain(stream(named(provider), "?", client=client), events)
            return events, caught.value

        events, failure = run(peer, work)
        assert len(peer.app.script.received) == 1
    assert failure.partial.text.startswith("wor")
    assert [event.type for event in events[-2:]] == ["error", "finish"]
