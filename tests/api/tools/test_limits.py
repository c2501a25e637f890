"""How much a model may make us do, and how much a tool may return."""

import asyncio
import threading
import time

import pytest

from interlingua import sync
from interlingua.api.execute.execution import execute
from interlingua.api.run.generate import generate, stream
from interlingua.api.tools.check import prepare
from interlingua.api.tools.limits import MAX_CONCURRENT, MAX_MEDIA, MAX_OUTPUT
from interlingua.api.tools.tool import Tool
from interlingua.client.client import Client
from interlingua.spec.content import Image, ToolCall
from interlingua.spec.errors import ConfigurationError
from interlingua.spec.messages import Message
from interlingua.spec.response import FinishReason, Response
from interlingua.streams.accumulate import events_from_response
from support.patience import PATIENCE
from support.runs import run_tools


class Counting:
    """A tool that notes how many of it run at once, and in threads waits for the least number."""

    def __init__(self, *, least=0, seconds=0.0):
        self.lock = threading.Lock()
        self.least = least
        self.reached = threading.Event()
        self.seconds = seconds
        self.running = self.most = self.total = 0

    def enter(self):
        with self.lock:
            self.running += 1
            self.total += 1
            self.most = max(self.most, self.running)
            if self.most >= self.least:
                self.reached.set()

    def leave(self):
        with self.lock:
            self.running -= 1

    def in_thread(self) -> str:
        self.enter()
        self.reached.wait(PATIENCE)
        time.sleep(self.seconds)  # in which more of it would start
        self.leave()
        return "x"

    async def on_loop(self) -> str:
        self.enter()
        await asyncio.sleep(self.seconds)
        self.leave()
        return "x"


class Calling:
    """An adapter that first answers with these calls."""

    name = "here"

    def __init__(self, calls):
        self.calls = calls
        self.asked = []

    async def complete(self, request):
        self.asked.append(request)
        if request.messages[-1].role == "tool":
            return Response(message=Message.assistant("done"))
        reason = FinishReason(reason="tool_calls")
        return Response(message=Message.assistant(self.calls), finish_reason=reason)

    async def stream(self, request):
        for event in events_from_response(await self.complete(request)):
            yield event

    async def close(self):
        pass


def calls(number, name="count"):
    return [ToolCall(id=f"c{index}", name=name, arguments={}) for index in range(number)]


async def ask(way, adapter, tool, **options):
    options |= {"client": Client({"here": adapter}), "tools": [tool]}
    if way == "whole":
        return await generate("here:m", "?", **options)
    if way == "executed":
        return await execute("here:m", "?", **options)
    events = stream("here:m", "?", **options)
    async for _ in events:
        pass
    return events.result()


def result_of(adapter):
    """The content of the first tool result that was sent back."""
    (message,) = [m for m in adapter.asked[-1].messages if m.role == "tool"]
    return message.content[0]


ways = pytest.mark.parametrize("way", ["whole", "streamed", "executed"])


@pytest.mark.parametrize(
    ("way", "kind", "number"),
    [
        ("whole", "in_thread", 1_000),  # it takes four times as long
        ("whole", "on_loop", 10_000),
        ("streamed", "on_loop", 10_000),
        ("executed", "on_loop", 10_000),
    ],
)
def test_ten_thousand_tool_calls_of_one_answer_are_all_run(way, kind, number):
    """All are run, 64 at a time."""
    counting, adapter = Counting(), Calling(calls(number))
    tool = Tool(name="count", execute=getattr(counting, kind))
    asyncio.run(ask(way, adapter, tool))

    assert counting.total == number
    assert counting.most <= MAX_CONCURRENT == 64


def test_all_runs_together_have_a_limit_of_threads():
    """Five runs with 30 calls each have at most 64 threads."""
    counting = Counting(least=31, seconds=0.02)
    tool = Tool(name="count", execute=counting.in_thread)

    async def work():
        adapters = [Calling(calls(30)) for _ in range(5)]
        await asyncio.gather(*(ask("whole", adapter, tool) for adapter in adapters))

    asyncio.run(work())

    assert counting.total == 150
    assert 30 < counting.most <= 64


def test_the_limit_of_concurrent_tools_can_be_set():
    """`max_concurrent_tools` replaces the default, upwards and downwards."""
    for limit, number, least in ((3, 9, 2), (100, 120, 65)):
        counting = Counting(least=least, seconds=0.1)
        tool = Tool(name="count", execute=counting.in_thread)
        asyncio.run(ask("whole", Calling(calls(number)), tool, max_concurrent_tools=limit))

        assert least <= counting.most <= limit


def test_tools_that_wait_for_tools_do_not_block_each_other():
    """64 tools that all wait for tools of their own do not block each other."""
    counting = Counting()
    inner = Tool(name="count", execute=counting.in_thread)
    barrier = threading.Barrier(64, timeout=PATIENCE)

    def outer() -> str:
        barrier.wait()
        with sync.Client({"here": Calling(calls(2))}) as client:
            return sync.generate("here:m", "?", client=client, tools=[inner]).text

    tool = Tool(name="outer", execute=outer)
    client = sync.Client({"here": Calling(calls(64, "outer"))})
    result = sync.generate("here:m", "?", client=client, tools=[tool], tool_timeout=60)

    assert [item.content for item in result.steps[0].tool_results] == ["done"] * 64
    assert counting.total == 128


def test_a_tool_that_hangs_keeps_its_thread():
    """Its slot is free when the thread ends, not when it was abandoned."""
    release, counting = threading.Event(), Counting()

    def hang() -> str:
        counting.enter()
        release.wait(20)
        counting.leave()
        return "late"

    async def work():
        tools = {"hang": Tool(name="hang", execute=hang)}
        ready = await prepare(calls(80, "hang"), tools)
        results = []
        while counting.most < 64:  # a slow machine starts fewer threads in the time
            results += await run_tools(ready, (), None, timeout=0.3)
        results += await run_tools(ready, (), None, timeout=0.05)
        most = counting.most
        release.set()
        again = await run_tools(ready[:1], (), None, timeout=20)
        return results, most, again

    results, most, again = asyncio.run(work())

    assert most == 64
    assert all(result.is_error for result in results)
    assert [result.content for result in again] == ["late"]


@ways
def test_the_text_about_an_unknown_tool_is_short(way):
    """It is short, however long the name is and however many tools there are."""
    adapter = Calling([ToolCall(id="c", name="x" * 100_000, arguments={})])
    tools = [Tool(name=f"tool_{number}", execute=lambda: "x") for number in range(1_000)]

    async def work():
        options = {"client": Client({"here": adapter}), "tools": tools}
        if way == "whole":
            return await generate("here:m", "?", **options)
        if way == "executed":
            return await execute("here:m", "?", **options)
        return [event async for event in stream("here:m", "?", **options)]

    asyncio.run(work())
    text = result_of(adapter).content

    assert "Unknown tool" in text
    assert "1000 tools" in text
    assert len(text) < 2_500


@ways
@pytest.mark.parametrize(
    "output",
    ["x" * (MAX_OUTPUT + 1), ["x" * 1000] * 1001, Image(data=b"\x89PNG" + b"0" * MAX_MEDIA)],
    ids=["text", "json", "media"],
)
def test_the_model_is_told_that_the_output_is_too_large(way, output):
    """The model is told that the tool ran and how much it may return."""
    adapter = Calling(calls(1, "look"))
    asyncio.run(ask(way, adapter, Tool(name="look", execute=lambda: output)))
    result = result_of(adapter)

    assert result.is_error
    assert "The tool ran, but its output is too large" in result.content
    assert len(result.content) < 3_000


def test_the_limit_of_output_can_be_set():
    """`max_tool_output` is a number of characters, or None."""
    for limit, is_error in ((10, True), (20, False), (None, False)):
        adapter = Calling(calls(1, "look"))
        tool = Tool(name="look", execute=lambda: "x" * 15)
        asyncio.run(ask("whole", adapter, tool, max_tool_output=limit))
        assert bool(result_of(adapter).is_error) is is_error
    with pytest.raises(ConfigurationError, match="max_tool_output"):
        asyncio.run(ask("whole", adapter, tool, max_tool_output=0))
