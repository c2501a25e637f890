"""Tools that run: at once, in order, within their time."""

import asyncio
import contextvars
import functools
import gc
import sys
import threading
import time

import pytest

from interlingua.api.tools.check import ReadyCall, prepare
from interlingua.api.tools.context import ToolContext
from interlingua.api.tools.runner import ToolRunner
from interlingua.api.tools.tool import Tool, tool
from interlingua.runtime.cancel import AbortController, AbortSignal
from interlingua.spec.content import Image, ToolCall, ToolResult
from interlingua.spec.errors import ConfigurationError, RequestTimeoutError, SDKError
from interlingua.spec.messages import Message
from support import virtual_time
from support.patience import PATIENCE
from support.runs import run_tools
from support.simulated import settled

HOW = {"type": "object", "properties": {"how": {"type": "string"}}}
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


async def run_async(*calls, tools=(double, wait), signal=None, **settings):
    ready = await prepare(calls, {tool.name: tool for tool in tools})
    return await run_tools(ready, HISTORY, signal, **settings)


def run(*calls, **settings):
    return asyncio.run(run_async(*calls, **settings))


def test_results_are_in_the_order_of_the_calls():
    """Even if the first takes longest; a failure does not stop the others."""
    results = run(
        call("wait", "1", seconds=0.05),
        call("double", "2", number=21),
        call("missing", "3"),
        call("double", "4", number="many"),
    )

    assert [result.tool_call_id for result in results] == ["1", "2", "3", "4"]
    assert [result.content for result in results][:2] == ["waited 0.05", 42]
    assert [result.is_error for result in results] == [False, False, True, True]
    assert "Unknown tool 'missing'. Available tools: double, wait." in results[2].content
    assert "number" in results[3].content


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_calls_run_concurrently(kind):
    """All are running before any has ended."""
    gate = threading.Barrier(5, timeout=PATIENCE)
    seen = []

    def meet() -> str:
        gate.wait()  # passes only when five are here
        return "met"

    async def meet_async() -> str:
        seen.append(1)
        while len(seen) < 5:  # noqa: ASYNC110 -- that is the point
            await asyncio.sleep(0)
        return "met"

    handler = meet if kind == "sync" else meet_async
    results = run(
        *[call("meet", str(n)) for n in range(5)], tools=[Tool(name="meet", execute=handler)]
    )

    assert [result.content for result in results] == ["met"] * 5


def test_max_concurrent():
    """The other calls wait."""
    now, most = [0], [0]

    async def work() -> None:
        now[0] += 1
        most[0] = max(most[0], now[0])
        await asyncio.sleep(0.01)
        now[0] -= 1

    tools = [Tool(name="work", execute=work)]
    run(*[call("work", str(n)) for n in range(6)], tools=tools, max_concurrent=2)

    assert most == [2]


@pytest.mark.parametrize("settings", [{"max_concurrent": 0}, {"timeout": 0}, {"timeout": -1.0}])
def test_a_limit_of_zero_is_rejected(settings):
    """0 is rejected (field bug 76)."""
    with pytest.raises(ConfigurationError):
        ToolRunner(**settings)


def test_a_tool_that_hangs():
    """Neither a thread nor a task that ignores cancellation blocks the caller."""
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

    async def work():
        tools = [
            Tool(name="hang", execute=hang),
            Tool(name="stubborn", execute=stubborn, timeout=0.05),
        ]
        results = await run_async(
            call("hang", "1"), call("stubborn", "2"), tools=tools, timeout=0.05
        )
        held = not release.is_set()  # both are still at it
        release.set()
        return results, held

    results, held = asyncio.run(work())

    assert held
    assert [result.is_error for result in results] == [True, True]
    assert "The tool hang timed out after 0.05 s" in results[0].content
    assert "The tool stubborn timed out after 0.05 s" in results[1].content


def test_the_error_of_a_tool_that_hangs():
    """It is a timeout, not an invalid call."""
    told = []

    class Observer:
        def on_tool_start(self, _):
            pass

        def on_tool_error(self, _, error):
            told.append(error)

    run(call("wait", seconds=60), timeout=0.01, observer=Observer())

    assert [(type(error), error.retryable) for error in told] == [(RequestTimeoutError, False)]


def _exit():
    sys.exit("wrong option")


def _run_dry():
    return next(iter(()))


def _cancel():
    raise asyncio.CancelledError


@pytest.mark.parametrize("way", ["thread", "inline", "async"])
@pytest.mark.parametrize(
    ("fail", "words"),
    [(_exit, "wrong option"), (_run_dry, "StopIteration"), (_cancel, "cancelled itself")],
)
def test_a_tool_that_exits_stops_iteration_or_cancels_itself(fail, words, way):
    """Neither the program nor the run ends, and the other tools continue."""

    async def fail_async() -> None:
        fail()

    handler = fail_async if way == "async" else fail
    tools = [double, Tool(name="fail", execute=handler, inline=way == "inline")]
    failed, other = run(call("fail", "1"), call("double", "2", number=1), tools=tools)

    assert failed.is_error
    assert words in failed.content
    assert other.content == 2


def test_context_is_passed_to_parameters_that_declare_it():
    """Context variables of the caller are set, in a thread too."""

    @tool
    def look(city: str, history: tuple[Message, ...], stop: AbortSignal, run: ToolContext) -> str:
        """Look."""
        assert not stop.aborted
        assert run.abort_signal is stop
        assert run.messages == history
        return f"{city} {len(history)} {run.tool_call_id} {WHO.get()}"

    async def work():
        WHO.set("me")
        return await run_async(call("look", city="Oslo"), tools=[look])

    (result,) = asyncio.run(work())

    assert result.content == "Oslo 1 a me"


@pytest.mark.parametrize("how", ["signal", "time", "cancel"])
@pytest.mark.parametrize("is_async", [False, True])
def test_every_tool_has_its_own_signal(how, is_async):
    """It is set by the signal of the run, by the timeout, and when the run is cancelled."""
    controller, begun, told = AbortController(), threading.Event(), []

    def look(abort_signal: AbortSignal) -> None:
        begun.set()
        while not abort_signal.aborted:
            time.sleep(0.001)
        told.append(abort_signal.reason)

    async def look_async(abort_signal: AbortSignal) -> None:
        abort_signal.add_callback(lambda: told.append(abort_signal.reason))
        begun.set()
        await asyncio.sleep(60)

    async def work():
        tools = [Tool(name="look", execute=look_async if is_async else look)]
        timeout = 0.05 if how == "time" else None
        asked = run_async(call("look"), tools=tools, signal=controller.signal, timeout=timeout)
        task = asyncio.ensure_future(asked)
        await settled(begun.is_set)
        if how == "signal":
            controller.abort("enough")
        if how != "time":
            task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await settled(lambda: told)

    asyncio.run(work())

    words = {"signal": "enough", "time": "The tool look timed out after 0.05 s."}
    assert told == [words.get(how, "the run was cancelled")]
    assert controller.signal._callbacks == []


def test_return_values_of_handlers():
    """Text, JSON, media, a `ToolResult`, or an exception."""

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
    assert (results[3].content, results[3].is_error) == ("RuntimeError: no power", True)


def test_a_failure_has_the_class_of_the_exception():
    """The message of a KeyError is only the key; our own errors are sentences."""

    def fail(how: str) -> None:
        if how == "key":
            raise KeyError("city")
        raise SDKError("no such city") if how == "ours" else ValueError

    tools = [Tool(name="fail", parameters=HOW, execute=fail)]
    results = run(*[call("fail", how=how) for how in ("key", "ours", "bare")], tools=tools)

    assert [result.content for result in results] == [
        "KeyError: 'city'",
        "no such city",
        "ValueError",
    ]


def test_arguments_that_are_not_json_go_back_to_the_model():
    """The raw text goes back to the model, which may try again (field bug 11)."""
    broken = ToolCall(id="a", name="double", raw_arguments='{"number": 2')
    (result,) = run(broken)

    assert result.is_error
    assert '{"number": 2' in result.content


def test_empty_arguments_are_an_empty_object():
    """Empty text is an empty object (field bug 10)."""
    (result,) = run(
        ToolCall(id="a", name="now", raw_arguments=""), tools=[Tool(name="now", execute=lambda: 7)]
    )

    assert (result.content, result.is_error) == (7, False)


def test_a_call_that_is_not_ready_is_not_run():
    """An error goes to the model; a call that waits for approval is never run."""
    ran = []
    made = Tool(name="pay", execute=lambda: ran.append(1))
    ready = [
        ReadyCall(call=call("pay", "1"), tool=made, error=SDKError("not allowed")),
        ReadyCall(call=call("pay", "2"), tool=made, waits=True),
    ]
    results = asyncio.run(run_tools(ready, HISTORY))

    assert ran == []
    assert [result.content for result in results] == [
        "not allowed",
        "The tool call has not been approved.",
    ]


@pytest.mark.parametrize("is_inline", [None, False, True])
def test_only_an_inline_function_runs_on_the_event_loop(is_inline):
    """A plain function runs in a thread by default; an inline one sees the loop and its context."""
    here, seen = threading.current_thread(), []
    decorate = tool if is_inline is None else tool(inline=is_inline)

    @decorate
    def look() -> str:
        """Look."""
        seen.append(threading.current_thread())
        return WHO.get()

    async def work():
        WHO.set("me")
        return await run_async(call("look", "1"), call("look", "2"), tools=[look])

    results = asyncio.run(work())

    assert [result.content for result in results] == ["me", "me"]
    assert [thread is here for thread in seen] == [bool(is_inline)] * 2


def test_inline_functions_keep_variables_to_themselves():
    """What one sets in its context, the others and the caller do not see."""

    @tool(inline=True)
    def rename(who: str) -> str:
        """Rename."""
        before = WHO.get()
        WHO.set(who)
        return before

    async def work():
        calls = [call("rename", "1", who="a"), call("rename", "2", who="b")]
        results = await run_async(*calls, tools=[rename])
        return [result.content for result in results], WHO.get()

    assert asyncio.run(work()) == (["nobody", "nobody"], "nobody")


def test_an_inline_function_may_return_something_to_await():
    """As one in a thread may."""

    @tool(inline=True)
    def later() -> object:
        """Later."""
        return asyncio.sleep(0, "done")

    assert run(call("later"), tools=[later])[0].content == "done"


def test_a_plain_wrapper_of_an_async_function_runs_in_a_thread():
    """It may block before it calls the async function."""
    here, seen = threading.current_thread(), []

    async def inner() -> str:
        seen.append(threading.current_thread())
        return "done"

    @functools.wraps(inner)
    def outer() -> object:
        seen.append(threading.current_thread())
        return inner()

    (result,) = run(call("outer"), tools=[Tool(name="outer", execute=outer)])

    assert result.content == "done"
    assert seen[0] is not here
    assert seen[1] is here


def test_a_tool_that_fails_while_it_is_cancelled(capfd, caplog):
    """Nothing waits for it, and asyncio logs no unretrieved exception."""

    async def fail() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            raise RuntimeError("while closing")

    def fail_told(abort_signal: AbortSignal) -> None:
        def told():
            raise RuntimeError("on being told")

        abort_signal.add_callback(told)
        released.wait(30)

    async def work():
        tools = [Tool(name="fail", execute=fail), Tool(name="told", execute=fail_told)]
        results = await run_async(call("fail"), call("told", "b"), tools=tools, timeout=0.5)
        released.set()
        await settled(lambda: "on being told" in caplog.text)
        gc.collect()
        return results

    released = threading.Event()
    results = asyncio.run(work())

    assert [result.content for result in results] == [
        "The tool fail timed out after 0.5 s.",
        "The tool told timed out after 0.5 s.",
    ]
    assert "never retrieved" not in capfd.readouterr().err + caplog.text
    assert "on being told" in caplog.text


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


def test_cancelling_the_run_cancels_the_tools():
    """No task is left running."""
    stopped = []

    async def long() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            stopped.append(1)

    async def work():
        tools = [Tool(name="long", execute=long)]
        asked = run_async(call("long"), call("long", "b"), tools=tools)
        task = asyncio.ensure_future(asked)
        await asyncio.sleep(0.02)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await asyncio.sleep(0.02)

    virtual_time.run(work())

    assert stopped == [1, 1]
