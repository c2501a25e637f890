"""`execute`, in every dialect, over real HTTP."""

import asyncio
import threading

import msgspec
import pytest

from interlingua.api.execute.execution import ExecuteUsage, execute
from interlingua.api.run.clients import set_default_client
from interlingua.api.tools.tool import Tool, tool
from interlingua.runtime.cancel import AbortController
from interlingua.simulator import (
    error,
    error_event,
    text,
    thinking,
    tool_call,
    tool_loop,
    usage,
)
from interlingua.spec.content import Image, ToolResult
from interlingua.spec.errors import ConfigurationError
from interlingua.spec.messages import Message
from interlingua.spec.response import Usage
from support.blocking import until
from support.simulated import DIALECTS, KEY, MODELS, SLOW, in_virtual_time, run, settled, simulated
from support.warning_codes import codes

every_provider = pytest.mark.parametrize("provider", sorted(DIALECTS))
PNG = "data:image/png;base64,iVBORw0KGgo="


@tool
def get_weather(city: str) -> dict[str, str]:
    """The weather in a city now."""
    if city == "Atlantis":
        raise KeyError(city)
    return {"city": city, "weather": "rain"}


def named(provider):
    return f"{provider}:{MODELS[provider]}"


def executed(peer, provider, messages="Hi", **options):
    """The result, and all that the callbacks were told."""
    told = []
    callbacks = {
        name: lambda *given, name=name: told.append((name, *given))
        for name in ("on_chunk", "on_reasoning", "on_tool_start", "on_tool_end", "on_tool_error")
    }

    async def work(client):
        return await execute(named(provider), messages, **{"client": client} | callbacks | options)

    return run(peer, work), told


@every_provider
def test_basic_text(provider):
    """Told piece by piece, and whole at the end, with its tokens."""
    with simulated(text("It rains in Oslo.")) as peer:
        result, told = executed(
            peer, provider, system="Be brief.", temperature=0.0, max_tokens=99, max_retries=0
        )
        (asked,) = peer.app.script.requests

    assert result.text == "It rains in Oslo."
    assert len(told) > 1
    assert {chunk["type"] for _, chunk in told} == {"text-delta"}
    assert "".join(chunk["text"] for _, chunk in told) == result.text
    assert (result.error, result.reasoning, result.finish_reason) == (None, None, "stop")
    usage = result.usage
    assert usage.prompt_tokens + usage.cached_tokens > 0
    assert usage.completion_tokens > 0
    assert [message.role for message in result.messages][-1] == "assistant"
    assert asked.messages[0].text == "Be brief."
    assert asked.max_tokens == 99
    assert provider == "anthropic" or asked.temperature == 0.0  # it no longer takes one
    assert asked.tool_choice is None


REASONING_MODELS = {
    "openai:gpt-5.2": {"reasoning": {"summary": "auto"}},
    "anthropic:claude-opus-5-5": {"thinking": {"type": "adaptive", "display": "summarized"}},
    "gemini:gemini-2.5-flash": {"generationConfig": {"thinkingConfig": {"includeThoughts": True}}},
}


@pytest.mark.parametrize("model", REASONING_MODELS)
def test_reasoning_models_are_asked_for_what_is_returned(model):
    """A callback for thinking asks for it in the provider's own field: test 4 of document 001."""
    told = []
    with simulated(thinking("Oslo is north.") + text("Cold.")) as peer:
        result = run(
            peer,
            lambda client: execute(model, "Hi", client=client, on_reasoning=told.append),
        )
        (exchange,) = peer.app.script.received

    assert REASONING_MODELS[model].items() <= exchange.call.body.items()
    assert "".join(told) == result.reasoning == "Oslo is north."
    assert (result.text, result.warnings) == ("Cold.", ())


def test_thinking_that_the_caller_does_not_want_is_not_asked_for():
    """`include_thinking=False` counts more than the callback."""
    told = []
    with simulated(thinking("Hm.") + text("Cold.")) as peer:
        result = run(
            peer,
            lambda client: execute(
                "openai:gpt-5.2",
                "Hi",
                client=client,
                on_reasoning=told.append,
                include_thinking=False,
            ),
        )
        (exchange,) = peer.app.script.received

    assert "reasoning" not in exchange.call.body
    assert (told, result.reasoning) == ([], None)


@every_provider
def test_tools_and_reasoning(provider):
    """Thoughts, calls, results and text, in the order in which they happen."""
    calls = thinking("Let me look.") + tool_call("get_weather", city="Oslo")
    with simulated(tool_loop(calls, text("Rain."))) as peer:
        result, told = executed(peer, provider, tools=[get_weather], thinking_budget=2048)

    rain = {"city": "Oslo", "weather": "rain"}
    kinds = [name if name != "on_chunk" else given[0]["type"] for name, *given in told]
    assert list(dict.fromkeys(kinds)) == [
        "on_reasoning",
        "tool-call",
        "on_tool_start",
        "on_tool_end",
        "tool-result",
        "text-delta",
    ]
    assert ("on_tool_start", "get_weather", {"city": "Oslo"}) in told
    assert ("on_tool_end", "get_weather", rain) in told
    assert ("on_chunk", {"type": "tool-result", "name": "get_weather", "result": rain}) in told
    assert result.reasoning == "".join(t for name, t, *_ in told if name == "on_reasoning")
    assert result.reasoning == "Let me look."
    assert result.text == "Rain."
    assert len(result.messages) == 4
    # `TokenUsage` of Converse does not tell how many of its tokens are reasoning.
    assert (result.usage.reasoning_tokens > 0) == (provider != "bedrock_converse")


@every_provider
def test_a_tool_that_fails(provider):
    """It is told of, the model is told, and the run goes on."""
    calls = tool_call("get_weather", city="Atlantis") + tool_call("get_weather", city="Oslo")
    with simulated(tool_loop(calls, text("Half of it."))) as peer:
        result, told = executed(peer, provider, tools=[get_weather])

    ((_, name, failure),) = [each for each in told if each[0] == "on_tool_error"]
    assert (name, type(failure)) == ("get_weather", KeyError)
    assert {"type": "tool-error", "name": "get_weather", "error": failure} in [
        chunk for _, chunk, *_ in told
    ]
    assert (result.text, result.error) == ("Half of it.", None)


def test_many_rounds():
    """Tools are run round after round, unless it is said how often."""

    def answer(request):
        given = [p for m in request.messages for p in m.content if isinstance(p, ToolResult)]
        return text("done") if len(given) == 4 else tool_call("get_weather", city="Oslo")

    with simulated(answer) as peer:
        whole, _ = executed(peer, "anthropic", tools=[get_weather])
    with simulated(answer) as peer:
        short, _ = executed(peer, "anthropic", tools=[get_weather], max_tool_rounds=1)

    assert whole.text == "done"
    assert (short.text, short.finish_reason) == ("", "tool_calls")


def test_a_passive_tool():
    """Its call is told and returned; nothing is run."""
    with simulated(tool_call("look")) as peer:
        result, told = executed(peer, "openai", tools=[Tool(name="look")])

    assert [chunk["type"] for _, chunk in told] == ["tool-call"]
    assert result.messages[-1].tool_calls[0].name == "look"


@pytest.mark.parametrize(("choice", "mode"), [("auto", "auto"), ("none", "none"), (None, None)])
def test_tool_choice(choice, mode):
    """As it is said; without tools it is not said at all."""
    with simulated(text("x")) as peer:
        executed(peer, "openai", tools=[get_weather], tool_choice=choice)
        executed(peer, "openai", tools=[], tool_choice=choice)
        first, second = peer.app.script.requests

    assert (first.tool_choice.mode if first.tool_choice else None) == mode
    assert second.tool_choice is None


@every_provider
def test_plain_messages(provider):
    """A conversation of dicts, with an image and a tool's answer, reaches the provider."""
    messages = [
        {"role": "user", "content": [{"type": "text", "text": "What is this?"}]},
        {
            "role": "assistant",
            "content": None,
            "toolCalls": [{"id": "call_1", "name": "get_weather", "args": {"city": "Oslo"}}],
        },
        {"role": "tool", "toolCallId": "call_1", "content": "rain"},
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": PNG}}]},
    ]
    with simulated(text("A picture.")) as peer:
        result, _ = executed(peer, provider, messages, tools=[get_weather])
        (asked,) = peer.app.script.requests

    assert result.error is None
    assert len(result.messages) == 5
    parts = [part for message in asked.messages for part in message.content]
    assert [part.content for part in parts if isinstance(part, ToolResult)] == ["rain"]
    assert [part for part in parts if isinstance(part, Image)]


@every_provider
def test_errors_are_returned(provider):
    """With the status, a code, and what else is known; no key in any of it."""
    with simulated(error(403)) as peer:
        result, told = executed(peer, provider)

    assert result.error.status_code == 403
    assert result.error.debug["type"] == "AccessDeniedError"
    assert result.error.debug["provider"] == provider
    assert (result.text, told) == ("", [])
    assert KEY not in f"{result!r}{result.to_dict()}"


@every_provider
def test_an_error_in_the_middle(provider):
    """What came before it is kept."""
    with simulated(text("Half of") + error_event(500)) as peer:
        result, told = executed(peer, provider, max_retries=0)

    assert result.error is not None
    assert result.error.debug["error_class"] == "server_error"
    assert result.text == "".join(chunk["text"] for _, chunk in told) == "Half of"


def test_mistakes_are_returned():
    """Whatever was wrong with the call itself."""
    mistakes = [
        {"messages": []},
        {"messages": [{"role": "robot"}]},
        {"temprature": 1},
        {"tools": [5]},
        {"timeout": "soon"},
        {"api_key": 5},
    ]
    with simulated(text("x")) as peer:
        for mistake in mistakes:
            result, _ = executed(peer, "openai", **mistake)
            assert result.error.debug["type"] == "ConfigurationError", mistake
        assert peer.app.script.received == ()


@every_provider
def test_cancel(provider):
    """The server sees it, at whatever moment; the result has what came, and says why it ended."""

    async def at_once(client):
        execution = execute(named(provider), "Hi", client=client)
        execution.cancel()
        return await execution

    async def in_the_middle(client):
        told = []

        def on_chunk(chunk):
            told.append(chunk["text"])
            if len(told) == 3:
                execution.cancel()
                execution.cancel()

        execution = execute(named(provider), "Hi", client=client, on_chunk=on_chunk)
        result = await execution
        assert execution.is_done
        execution.cancel()
        assert result.text == "".join(told)
        (exchange,) = peer.app.script.received
        await settled(lambda: exchange.disconnected is not None)
        return result

    with simulated(SLOW) as peer:
        result = run(peer, at_once)
        assert (result.error.code, result.text) == ("cancelled", "")
        assert peer.app.script.received == ()
    with simulated(SLOW) as peer:
        result = run(peer, in_the_middle)
    assert result.error.code == "cancelled"
    assert result.finish_reason == "cancelled"
    assert result.text.startswith("word ")


def test_cancel_while_a_tool_runs():
    """The tool is cancelled too, and the answer that called it is counted."""
    ended = []

    @tool
    async def wait() -> str:
        """Wait."""
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            ended.append(True)
            raise
        return "never"

    async def work(client):
        execution = execute(
            named("openai"),
            "Hi",
            client=client,
            tools=[wait],
            on_tool_start=lambda *_: threading.Timer(0.01, execution.cancel).start(),
        )
        result = await execution
        await settled(lambda: ended)
        return result

    with simulated(tool_loop(tool_call("wait") + usage(20, 5), text("x"))) as peer:
        result = run(peer, work)

    assert result.error.code == "cancelled"
    assert (result.usage.total_tokens, result.finish_reason) == (25, "tool_calls")
    assert result.messages[-2].tool_calls[0].name == "wait"
    (kept,) = result.messages[-1].content  # so that a run that goes on does not run it again
    assert kept.is_error


def test_cancel_while_a_callback_hangs():
    """It is not waited for."""

    async def work(client):
        async def on_chunk(_):
            asyncio.get_running_loop().call_later(0.01, execution.cancel)
            await asyncio.sleep(60)

        execution = execute(named("openai"), "Hi", client=client, on_chunk=on_chunk)
        return await execution

    with simulated(SLOW) as peer:
        assert run(peer, work).error.code == "cancelled"


@pytest.mark.parametrize("heeds", [True, False], ids=["ends", "takes no notice"])
@pytest.mark.parametrize("answer", [SLOW, text("all")], ids=["in the middle", "at the end"])
def test_a_callback_that_hangs_has_its_time(answer, heeds):
    """The time for everything is also its own, whatever it does when it is cancelled."""
    let_go = asyncio.Event()

    async def on_chunk(_):
        try:
            await let_go.wait()
        except asyncio.CancelledError:
            if heeds:
                raise
            await let_go.wait()

    async def work(client):
        execution = execute(named("openai"), "Hi", client=client, on_chunk=on_chunk, timeout=30)
        result = await execution
        let_go.set()
        return result

    result = run(in_virtual_time(answer), work)

    assert (result.error.code, result.error.message) == (
        "timeout",
        "openai:gpt-5.2: Timed out after 30 s (total timeout).",
    )


@every_provider
@pytest.mark.parametrize("decision", [True, False], ids=["allowed", "refused"])
def test_approval(provider, decision):
    """Calls that need it are in the result, plain JSON too; with a decision it goes on."""
    ran = []

    @tool(needs_approval=True)
    def remove(path: str) -> str:
        """Remove a file."""
        ran.append(path)
        return "removed"

    options = {"tools": [remove]}
    with simulated(tool_loop(tool_call("remove", path="a"), text("Done."))) as peer:
        paused, _ = executed(peer, provider, **options)
        (call,) = paused.pending_approvals
        assert (paused.error, ran, paused.finish_reason) == (None, [], "tool_calls")
        assert paused.to_dict()["pendingApprovals"] == [
            {"id": call.id, "name": "remove", "args": {"path": "a"}}
        ]

        kept = msgspec.json.decode(msgspec.json.encode(paused.messages))
        result, told = executed(peer, provider, kept, approvals={call.id: decision}, **options)

    assert (result.text, result.pending_approvals, result.error) == ("Done.", (), None)
    assert ran == (["a"] if decision else [])
    assert ("on_tool_end", "remove", "removed") in told or not decision


def test_ways_to_end_it():
    """An abort signal, a time limit, and cancelling the task that awaits it."""
    controller = AbortController()

    async def work(client):
        def start(**options):
            return execute(named("openai"), "Hi", client=client, **options)

        aborted = start(abort_signal=controller.signal, on_chunk=lambda _: controller.abort("no"))
        found = [(await aborted).error, (await start(timeout=0.1)).error]
        before = len(peer.app.script.received)  # the time may be over before anything is sent
        execution = start()

        async def wait():
            return await execution

        task = asyncio.ensure_future(wait())
        await settled(lambda: len(peer.app.script.received) > before)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert execution.is_done
        for exchange in peer.app.script.received:
            await settled(lambda exchange=exchange: exchange.disconnected is not None)
        return found

    with simulated(SLOW) as peer:
        aborted, late = run(peer, work)

    assert (aborted.code, aborted.message) == ("cancelled", "no")
    assert late.code == "timeout"


@pytest.mark.parametrize("name", ["on_chunk", "on_tool_start", "on_tool_end"])
@pytest.mark.parametrize("is_async", [False, True])
def test_a_callback_that_fails(name, is_async):
    """The run ends, the connection is closed, and the result says whose fault it was."""
    failure = ZeroDivisionError("ours")

    def fails(*_):
        raise failure

    async def fails_later(*_):
        raise failure

    async def work(client):
        result = await execute(
            named("openai"),
            "Hi",
            client=client,
            tools=[get_weather],
            **{name: fails_later if is_async else fails},
        )
        await settled(lambda: all(each.over.is_set() for each in peer.app.script.received))
        return result

    loop = tool_loop(text("First ") + tool_call("get_weather", city="Oslo"), SLOW)
    with simulated(loop) as peer:
        result = run(peer, work)
        assert len(peer.app.script.received) == 1

    assert (result.error.code, result.error.exception) == ("callback_failed", failure)
    assert result.text == "First "


def test_async_callbacks_hold_up_the_stream():
    """A slow listener is waited for, so nothing gathers."""
    running = []

    async def on_chunk(_):
        running.append(len(running))
        await asyncio.sleep(0.001)
        assert running.pop() == 0

    with simulated(text("word " * 30)) as peer:
        result, _ = executed(peer, "anthropic", on_chunk=on_chunk)

    assert result.error is None


def test_a_key_of_ones_own():
    """Instead of a client; the provider is known by the prefix, by name, or by the model."""
    with simulated(text("x"), key="mine") as peer:
        options = {"client": None, "base_url": peer.server.url, "max_retries": 0}
        right, _ = executed(peer, "anthropic", api_key="mine", **options)
        wrong, _ = executed(peer, "anthropic", api_key="other", **options)

        async def by_model(_):
            given = {**options, "api_key": "mine"}
            return [
                await execute("claude-haiku-4-5", "Hi", provider="anthropic", **given),
                await execute("claude-haiku-4-5", "Hi", **given),
                await execute("house-model", "Hi", **given),
            ]

        named_, found, unknown = run(peer, by_model)
        until(lambda: peer.server.open_connections == 0)

    assert right.text == named_.text == found.text == "x"
    assert wrong.error.status_code == 401
    assert "house-model" in unknown.error.message


def test_awaiting():
    """The default client serves; it may be awaited twice, or never; a loop must run."""

    async def work(client):
        set_default_client(client)
        try:
            execution = execute(named("gemini"), [Message.user("Hi")])
            forgotten = execute(named("gemini"), "Hi")
            first, second = await execution, await execution
            await settled(lambda: forgotten.is_done)
        finally:
            set_default_client(None)
        return first, second

    with simulated(text("x")) as peer:
        first, second = run(peer, work)

    assert first is second
    assert first.text == "x"
    with pytest.raises(ConfigurationError, match=r"sync\.execute"):
        execute("openai:m", "Hi")


@every_provider
def test_the_result_has_the_warnings_and_keeps_the_texts_of_steps_apart(provider):
    """What was lost is in the result, also as JSON; texts of steps do not run together."""
    with simulated(text("Looking.") + tool_call("get_weather", city="Oslo"), text("Rain.")) as peer:
        result, _ = executed(peer, provider, tools=[get_weather], provider_options={"nobody": {}})

    assert result.error is None
    assert result.text == "Looking.\n\nRain."
    assert codes(result) == ["options_unknown"]
    assert result.to_dict()["warnings"][0]["code"] == "options_unknown"


@every_provider
@pytest.mark.parametrize("way", ["cancel", "client", "signal", "timeout"])
def test_a_cancelled_run_ends_with_what_had_arrived(provider, way):
    """The conversation ends with what had arrived, however the run was ended."""

    async def work(client):
        controller = AbortController()

        async def on_chunk(_):
            if way == "cancel":
                execution.cancel()
            elif way == "client":
                assert await client.cancel("r")
            elif way == "signal":
                controller.abort()
            else:
                await asyncio.sleep(60)

        execution = execute(
            named(provider),
            "Hi",
            client=client,
            on_chunk=on_chunk,
            request_id="r",
            abort_signal=controller.signal,
            timeout=30 if way == "timeout" else None,
        )
        return await execution

    result = run(in_virtual_time(SLOW), work)

    assert result.error.code == ("timeout" if way == "timeout" else "cancelled")
    assert [message.role for message in result.messages] == ["user", "assistant"]
    assert result.messages[-1].text == result.text
    assert result.text.startswith("wor")


@every_provider
def test_the_chunks_together_are_the_text(provider):
    """Answers are separated in the chunks as they are in the text, and so are thoughts."""

    @tool
    def look() -> str:
        """Look."""
        return "rain"

    turns = [
        thinking("First.") + text("I look.") + tool_call("look"),
        tool_call("look"),
        thinking("Then.") + text("It rains."),
    ]
    settings = {"reasoning_effort": "low", "include_thinking": True, "tools": [look]}
    with simulated(*turns) as peer:
        result, told = executed(peer, provider, **settings)
    chunks = [given[0] for name, *given in told if name == "on_chunk"]
    texts = [chunk["text"] for chunk in chunks if chunk["type"] == "text-delta"]
    assert "".join(texts) == result.text == "I look.\n\nIt rains."
    thoughts = [given[0] for name, *given in told if name == "on_reasoning"]
    assert "".join(thoughts) == (result.reasoning or "")


def test_usage_that_is_estimated_is_marked():
    """A server that reports no usage gives an estimate; a report is not marked."""
    assert ExecuteUsage.of(Usage(input_tokens=3)).to_dict() == {
        "promptTokens": 3,
        "completionTokens": 0,
        "totalTokens": 3,
        "cachedTokens": 0,
        "reasoningTokens": 0,
    }
    guessed = ExecuteUsage.of(Usage(input_tokens=3, estimated=True))
    assert guessed.estimated
    assert guessed.to_dict()["estimated"] is True
    assert guessed.to_dict(camel=False)["estimated"] is True
    with simulated(SLOW) as peer:
        controller = AbortController()
        abort = {"abort_signal": controller.signal, "on_chunk": lambda _: controller.abort("no")}
        result, _ = executed(peer, "openai_compatible", **abort)
    assert result.usage.estimated
    with simulated(text("Hi")) as peer:
        result, _ = executed(peer, "openai_compatible")
    assert not result.usage.estimated
