"""Callbacks may be sync or async, everywhere, and are waited for."""

import asyncio

import pytest

from interlingua.api.execute.execution import execute
from interlingua.api.run.generate import generate, stream
from interlingua.api.tools.tool import Tool
from interlingua.client.client import Client
from interlingua.client.retry_policy import RetryPolicy, retry
from interlingua.spec.content import ToolCall
from interlingua.spec.errors import AbortError, ServerError
from interlingua.spec.messages import Message
from interlingua.spec.request import Request
from interlingua.spec.response import FinishReason, Response
from interlingua.streams.accumulate import events_from_response
from support.patience import PATIENCE

CALL = Response(
    message=Message.assistant([ToolCall(id="c", name="look", arguments={})]),
    finish_reason=FinishReason(reason="tool_calls"),
)


class Adapter:
    """Fails as often as it is told to, then calls a tool for ever."""

    name = "here"

    def __init__(self, failures=0):
        self.failures = failures

    async def complete(self, _):
        if self.failures:
            self.failures -= 1
            raise ServerError("down")
        return CALL

    async def stream(self, request):
        for event in events_from_response(await self.complete(request)):
            yield event

    async def close(self):
        pass


def look():
    return Tool(name="look", execute=lambda: "x")


async def ask(way, **options):
    options = {"tools": [look()], "max_tool_rounds": 5, **options}
    if way == "whole":
        return await generate("here:m", "?", **options)
    events = stream("here:m", "?", **options)
    async for _ in events:
        pass
    return events.result()


ways = pytest.mark.parametrize("way", ["whole", "streamed"])
kinds = pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])


def made(function, *, is_async):
    """The function, or a coroutine function that does the same after a while."""
    if not is_async:
        return function

    async def later(*args):
        await asyncio.sleep(0.001)
        return function(*args)

    return later


@ways
@kinds
def test_an_async_stop_when_ends_the_run(way, is_async):
    """The run stops when it says so."""
    stop = made(lambda steps: len(steps) == 2, is_async=is_async)
    result = asyncio.run(ask(way, client=Client({"here": Adapter()}), stop_when=stop))

    assert len(result.steps) == 2


def test_a_stop_when_that_hangs_can_be_cancelled():
    """A cancel by id ends the wait for it."""

    async def work():
        begun = asyncio.Event()

        async def stop(_):
            begun.set()
            await asyncio.sleep(60)

        client = Client({"here": Adapter()})
        task = asyncio.ensure_future(ask("whole", client=client, stop_when=stop, request_id="r"))
        await begun.wait()
        assert await client.cancel("r")
        with pytest.raises(AbortError):
            await asyncio.wait_for(task, PATIENCE)

    asyncio.run(work())


@ways
@kinds
def test_an_async_on_retry_ends_before_the_next_attempt(way, is_async):
    """It is done before the next attempt."""
    log, adapter = [], Adapter(failures=2)
    note = made(lambda error, attempt, _: log.append((str(error), attempt)), is_async=is_async)
    policy = RetryPolicy(base_delay=0.0, on_retry=note)
    asyncio.run(ask(way, client=Client({"here": adapter}), retry_policy=policy, max_tool_rounds=0))

    assert [attempt for _, attempt in log] == [0, 1]


@kinds
def test_the_function_retry_awaits_an_async_on_retry(is_async):
    """Also of the function `retry`."""
    log, adapter = [], Adapter(failures=1)
    note = made(lambda *_: log.append(1), is_async=is_async)
    policy = RetryPolicy(base_delay=0.0, on_retry=note)
    asyncio.run(retry(lambda: adapter.complete(None), policy))

    assert log == [1]


@pytest.mark.parametrize("way", ["complete", "stream", "generate"])
@kinds
def test_a_call_waits_for_async_subscribers(way, is_async):
    """The call waits for them, so that all events are there when it has ended."""

    async def work():
        client, log = Client({"here": Adapter(failures=1)}), []
        client.subscribe(made(lambda event: log.append(event.type), is_async=is_async))
        request, policy = Request(model="here:m", messages="?"), RetryPolicy(base_delay=0.0)
        if way == "complete":
            await client.complete(request, retry=policy)
        elif way == "stream":
            async for _ in client.stream(request, retry=policy):
                pass
        else:
            await generate("here:m", "?", client=client, retry_policy=policy)
        return log

    assert asyncio.run(work()) == ["call_started", "call_failed", "call_started", "call_completed"]


@kinds
def test_a_subscriber_that_fails_is_logged_and_the_call_goes_on(is_async, caplog):
    """It is logged; the call goes on."""

    def fail(_):
        raise LookupError("a bug of the program")

    client = Client({"here": Adapter()})
    client.subscribe(made(fail, is_async=is_async))
    asyncio.run(client.complete(Request(model="here:m", messages="?")))

    assert caplog.text.count("A subscriber raised an exception") == 2


@ways
@kinds
def test_async_observers_of_tools_run_in_order(way, is_async):
    """In order, around each tool."""
    log = []

    class Observer:
        on_tool_start = staticmethod(made(lambda _: log.append("start"), is_async=is_async))
        on_tool_end = staticmethod(made(lambda *_: log.append("end"), is_async=is_async))
        on_tool_error = staticmethod(made(lambda *_: log.append("error"), is_async=is_async))

    client = Client({"here": Adapter()})
    asyncio.run(ask(way, client=client, tool_observer=Observer(), max_tool_rounds=2))

    assert log == ["start", "end"] * 2


@kinds
def test_execute_awaits_all_five_callbacks(is_async):
    """All five."""
    log = []
    names = ("on_chunk", "on_reasoning", "on_tool_start", "on_tool_end", "on_tool_error")

    async def work():
        callbacks = {
            name: made(lambda *_, name=name: log.append(name), is_async=is_async) for name in names
        }
        client = Client({"here": Adapter()})
        await execute("here:m", "?", client=client, tools=[look()], max_tool_rounds=1, **callbacks)

    asyncio.run(work())

    assert log[:4] == ["on_chunk", "on_tool_start", "on_tool_end", "on_chunk"]
