"""A run is cancelled by its id, whatever it does at that moment."""

import asyncio

import pytest

from interlingua.api.execute.execution import execute
from interlingua.api.run.generate import generate, stream
from interlingua.api.tools.tool import Tool
from interlingua.client.client import Client
from interlingua.simulator import latency, text, tool_call
from interlingua.spec.content import ToolCall
from interlingua.spec.errors import AbortError, RateLimitError
from interlingua.spec.messages import Message
from interlingua.spec.response import FinishReason, Response
from interlingua.streams.accumulate import events_from_response
from interlingua.streams.grammar import Grammar
from support.patience import PATIENCE
from support.runs import named
from support.simulated import SLOW, run, settled, simulated

CALL = Response(
    message=Message.assistant([ToolCall(id="c", name="look", arguments={})]),
    finish_reason=FinishReason(reason="tool_calls"),
)
both = pytest.mark.parametrize("whole", [True, False], ids=["whole", "streamed"])


class Adapter:
    """Raises or gives this."""

    name = "here"

    def __init__(self, answer):
        self.answer = answer

    async def complete(self, _):
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    async def stream(self, request):
        for event in events_from_response(await self.complete(request)):
            yield event

    async def close(self):
        pass


async def ask(client, whole, events, model="here:m", **options):
    """To the end of a run with the id `r`."""
    options |= {"client": client, "request_id": "r"}
    if whole:
        return await generate(model, "?", **options)
    async for event in stream(model, "?", **options):
        events.append(event)
    return None


async def cancelled(client, whole, begun, model="here:m", **options):
    """The partial answer and the events of a run that is cancelled as soon as `begun` holds."""
    events = []
    task = asyncio.ensure_future(ask(client, whole, events, model, **options))
    await settled(lambda: begun(events))
    assert await client.cancel("r")
    if whole:
        with pytest.raises(AbortError, match="The call was cancelled") as caught:
            await asyncio.wait_for(task, PATIENCE)
        assert not await client.cancel("r")
        return caught.value.partial, events
    await asyncio.wait_for(task, PATIENCE)  # a stream just ends
    assert not await client.cancel("r")
    grammar = Grammar()
    for event in events:
        grammar.feed(event)
    grammar.finish()
    assert events[-1].finish_reason.reason == "cancelled"
    return events[-1].response, events


@both
def test_in_a_tool(whole):
    """The tool is cancelled; the answer that called it is kept."""
    begun, ended = [], []

    async def look() -> str:
        begun.append(1)
        try:
            await asyncio.sleep(60)
        finally:
            ended.append(1)
        return "never"

    client = Client({"here": Adapter(CALL)})
    tools = [Tool(name="look", execute=look)]
    partial, _ = asyncio.run(cancelled(client, whole, lambda _: begun, tools=tools))

    assert ended == [1]
    assert partial.tool_calls == CALL.tool_calls


@both
def test_in_a_wait_between_attempts(whole):
    """The next attempt is never made."""
    failed = []
    client = Client({"here": Adapter(RateLimitError("slow down", retry_after=30))})
    client.subscribe(lambda event: failed.append(event.type))
    _, events = asyncio.run(cancelled(client, whole, lambda _: "call_failed" in failed))

    assert failed == ["call_started", "call_failed"]
    assert [event.type for event in events] == (
        [] if whole else ["stream_start", "step_start", "finish"]
    )


@both
def test_in_a_queue(whole):
    """As of a middleware that limits the rate."""
    waiting = []

    async def queue(request, following):
        waiting.append(1)
        await asyncio.sleep(60)
        return await following(request)

    client = Client({"here": Adapter(CALL)}, middleware=[queue])
    asyncio.run(cancelled(client, whole, lambda _: waiting))


@both
def test_before_the_first_byte(whole):
    """The server sees the connection closed."""

    async def work(client):
        await cancelled(client, whole, lambda _: peer.app.script.received, named("openai"))
        (exchange,) = peer.app.script.received
        await settled(lambda: exchange.disconnected is not None)

    with simulated(text("never") + latency(first=60)) as peer:
        run(peer, work)


@pytest.mark.parametrize("provider", ["anthropic", "openai", "gemini"])
def test_in_a_stream(provider):
    """What had come is in the last event."""

    async def work(client):
        def begun(events):
            return any(event.type == "text_delta" for event in events)

        return await cancelled(client, False, begun, named(provider))

    with simulated(SLOW) as peer:
        partial, _ = run(peer, work)

    assert partial.text.startswith("wor")


def test_the_steps_of_a_run_have_one_id():
    """Each call of the model is told with its step."""

    async def work(client):
        events = []
        client.subscribe(events.append)
        tool = Tool(name="look", execute=lambda: "x")
        await generate(named("openai"), "?", client=client, tools=[tool], request_id="r")
        return [(event.type, event.request_id, event.step, event.attempt) for event in events]

    with simulated(tool_call("look"), text("done")) as peer:
        told = run(peer, work)

    assert told == [
        ("call_started", "r", 0, 0),
        ("call_completed", "r", 0, 0),
        ("call_started", "r", 1, 0),
        ("call_completed", "r", 1, 0),
    ]


def test_an_execution():
    """By the client, as by its own `cancel`."""

    async def work():
        client, events = Client({"here": Adapter(CALL)}), []
        client.subscribe(events.append)

        async def look() -> str:
            assert await client.cancel(events[0].request_id)
            await asyncio.sleep(60)
            return "never"

        tools = [Tool(name="look", execute=look)]
        return await execute("here:m", "?", client=client, tools=tools)

    result = asyncio.run(asyncio.wait_for(work(), PATIENCE))

    assert result.error.code == "cancelled"
