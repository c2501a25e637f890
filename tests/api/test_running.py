"""Tools that run: at once, in order, within their time."""

import asyncio
import contextvars
import threading
import time

import pytest

from interlingua.api.abort import AbortController
from interlingua.api.running import ToolRunner
from interlingua.api.tools import Tool, tool
from interlingua.spec.content import Image, ToolCall, ToolResult
from interlingua.spec.messages import Message

HISTORY = (Message.user("hi"),)
WHO = contextvars.ContextVar("WHO", default="nobody")


@tool
def double(number: int) -> int:
    """Twice the number."""
    return 2 * number


@tool
async def wait(seconds: float) -> str:
    """Wait a little."""
    await asyncio.sleep(seconds)
    return f"waited {seconds}"


def call(name, id="a", **arguments):  # noqa: A002 -- the part's word
    return ToolCall(id=id, name=name, arguments=arguments)


def run(*calls, tools=(double, wait), **settings):
    runner = ToolRunner(tools={tool.name: tool for tool in tools}, **settings)
    return asyncio.run(runner.run(calls, HISTORY))


def test_results_in_the_order_of_calls():
    """Though the first takes longest; one failure stops nobody."""
    results = run(
        call("wait", "1", seconds=0.05),
        call("double", "2", number=21),
        call("missing", "3"),
        call("double", "4", number="many"),
    )

    assert [result.tool_call_id for result in results] == ["1", "2", "3", "4"]
    assert [result.content for result in results][:2] == ["waited 0.05", 42]
    assert [result.is_error for result in results] == [False, False, True, True]
    assert "unknown tool 'missing'; there are: double, wait" in results[2].content
    assert "number" in results[3].content


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_five_at_once_take_as_long_as_one(kind):
    """They overlap: all are running before any has ended."""
    gate = threading.Barrier(5, timeout=10)
    running = asyncio.Event
    seen = []

    def meet() -> str:
        gate.wait()  # passes only when five are here
        return "met"

    async def meet_async() -> str:
        seen.append(1)
        while len(seen) < 5:  # noqa: ASYNC110 -- that is the point
            await asyncio.sleep(0)
        return "met"

    assert running
    handler = meet if kind == "sync" else meet_async
    results = run(
        *[call("meet", str(n)) for n in range(5)], tools=[Tool(name="meet", execute=handler)]
    )

    assert [result.content for result in results] == ["met"] * 5


def test_not_more_at_once_than_allowed():
    """The others wait for their turn."""
    now, most = [0], [0]

    async def work() -> None:
        now[0] += 1
        most[0] = max(most[0], now[0])
        await asyncio.sleep(0.01)
        now[0] -= 1

    tools = [Tool(name="work", execute=work)]
    run(*[call("work", str(n)) for n in range(6)], tools=tools, max_concurrent=2)

    assert most == [2]


def test_a_tool_that_hangs():
    """Neither a thread nor a task that ignores cancellation holds up the caller."""
    release = threading.Event()

    def hang() -> None:
        release.wait(30)

    async def stubborn() -> None:
        for _ in range(300):
            try:
                await asyncio.sleep(0.1)
            except asyncio.CancelledError:
                if release.is_set():
                    raise

    began = time.monotonic()

    async def work():
        runner = ToolRunner(
            tools={
                "hang": Tool(name="hang", execute=hang),
                "stubborn": Tool(name="stubborn", execute=stubborn, timeout=0.05),
            },
            timeout=0.05,
        )
        results = await runner.run([call("hang", "1"), call("stubborn", "2")], HISTORY)
        release.set()
        return results, time.monotonic() - began

    results, took = asyncio.run(work())

    assert [result.is_error for result in results] == [True, True]
    assert "took longer than 0.05 s" in results[0].content
    assert took < 5


def test_context_is_given_where_it_is_asked_for():
    """And the variables of the caller are there, in a thread too."""
    signal = AbortController().signal

    @tool
    def look(city: str, messages: tuple, abort_signal: object, tool_call_id: str) -> str:
        """Look."""
        assert abort_signal is signal
        return f"{city} {len(messages)} {tool_call_id} {WHO.get()}"

    async def work():
        WHO.set("me")
        runner = ToolRunner(tools={"look": look}, abort_signal=signal)
        return await runner.run([call("look", city="Oslo")], HISTORY)

    (result,) = asyncio.run(work())

    assert result.content == "Oslo 1 a me"


def test_what_a_handler_may_give():
    """Text, JSON, media, a result of its own, or an exception."""

    def fail() -> None:
        raise RuntimeError("no power")

    picture = Image(data=b"\x89PNG\r\n\x1a\n", media_type="image/png")
    tools = [
        Tool(name="json", execute=lambda: {"a": [1, None]}),
        Tool(name="picture", execute=lambda: picture),
        Tool(name="own", execute=lambda: ToolResult(tool_call_id="", content="x", is_error=True)),
        Tool(name="fail", execute=fail),
    ]
    results = run(*[call(tool.name, tool.name) for tool in tools], tools=tools)

    assert results[0].content == {"a": [1, None]}
    assert results[1].parts == (picture,)
    assert results[2] == ToolResult(tool_call_id="own", content="x", is_error=True)
    assert (results[3].content, results[3].is_error) == ("no power", True)


def test_field_bug_11_arguments_that_are_no_json():
    """The raw text goes back to the model, which may try again."""
    broken = ToolCall(id="a", name="double", raw_arguments='{"number": 2')
    (result,) = run(broken)

    assert result.is_error
    assert '{"number": 2' in result.content


def test_field_bug_10_no_arguments_at_all():
    """The empty text is an empty object."""
    (result,) = run(
        ToolCall(id="a", name="now", raw_arguments=""), tools=[Tool(name="now", execute=lambda: 7)]
    )

    assert (result.content, result.is_error) == (7, False)


@pytest.mark.parametrize("is_async", [False, True])
def test_a_call_can_be_mended(is_async):
    """By a function, once; what still does not fit goes to the model as before."""

    def mend(call, error):
        assert "number" in error.message
        return ToolCall(id="other", name=call.name, arguments={"number": 4})

    async def mend_async(call, error):
        return mend(call, error)

    (result,) = run(call("double", number="four"), repair=mend_async if is_async else mend)
    assert (result.tool_call_id, result.content) == ("a", 8)
    for useless in (lambda *_: None, lambda call, _: call):
        (result,) = run(call("double", number="four"), repair=useless)
        assert result.is_error


def test_a_call_that_was_not_allowed():
    """The model is told so."""
    (result,) = run(call("double", number=1), approvals={"a": False})

    assert result.is_error
    assert "did not allow" in result.content


def test_observers():
    """Start, then end or error, of each."""
    told = []

    class Observer:
        def on_tool_start(self, call):
            told.append(("start", call.id))

        def on_tool_end(self, call, result):
            told.append(("end", call.id, result.content))

        def on_tool_error(self, call, error):
            told.append(("error", call.id, type(error).__name__))

    run(call("double", "1", number=1), observer=Observer())
    run(call("double", "2"), observer=Observer())

    assert told == [
        ("start", "1"),
        ("end", "1", 2),
        ("start", "2"),
        ("error", "2", "InvalidToolCallError"),
    ]


def test_giving_up_stops_the_tools():
    """A cancelled run cancels what it started."""
    stopped = []

    async def long() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            stopped.append(1)

    async def work():
        runner = ToolRunner(tools={"long": Tool(name="long", execute=long)})
        task = asyncio.ensure_future(runner.run([call("long"), call("long", "b")], HISTORY))
        await asyncio.sleep(0.02)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await asyncio.sleep(0.02)

    asyncio.run(work())

    assert stopped == [1, 1]
