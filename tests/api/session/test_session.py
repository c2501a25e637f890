"""A session: what it sends, what it keeps, and how turns end."""

import asyncio
import json
import logging

import pytest
from msgspec.structs import replace

from interlingua import sync
from interlingua.api.session.document import SESSION_VERSION
from interlingua.api.session.session import Session
from interlingua.api.session.store import SessionStore
from interlingua.api.tools.tool import Tool, tool
from interlingua.client.client import Client
from interlingua.providers.adapter import HttpAdapter
from interlingua.simulator import (
    error,
    error_event,
    latency,
    pieces,
    stall,
    text,
    thinking,
    tool_call,
    usage,
)
from interlingua.spec.content import Image, ToolCall
from interlingua.spec.errors import (
    AbortError,
    ConfigurationError,
    ContextLengthError,
    DecodeError,
    ServerError,
    StoreError,
    StreamError,
)
from interlingua.spec.messages import Message
from support.files import after_stat
from support.patience import PATIENCE
from support.runs import named
from support.sessions import calls_in, in_words, look, results_in, sent_ids, session_of
from support.simulated import DIALECTS, in_virtual_time, run, settled, simulated
from support.warning_codes import codes

PNG = b"\x89PNG\r\n\x1a\n" + bytes(24)
every_provider = pytest.mark.parametrize("provider", sorted(DIALECTS))
both_ways = pytest.mark.parametrize("whole", [True, False], ids=["whole", "streamed"])
ROLES = ["user", "assistant"]


def roles(messages):
    return [message.role for message in messages]


def texts_sent(peer, at=-1):
    return [message.text for message in peer.app.script.received[at].request.messages]


async def turn(session, prompt="?", whole=True, **options):
    if whole:
        return await session.send(prompt, **options)
    events = session.stream(prompt, **options)
    async for _ in events:
        pass
    return events.result()


# Turns.


@both_ways
def test_a_turn_is_sent_with_what_was_said(whole):
    """The history grows by the prompt and the answer; the system prompt is sent each time."""
    with simulated(text("Hello Ada."), text("Ada.")) as peer:

        async def work(client):
            session = session_of(client, "anthropic", system="Be brief.")
            await turn(session, "I am Ada.", whole)
            result = await turn(session, "Who am I?", whole)
            return session, result

        session, result = run(peer, work)

    assert texts_sent(peer) == ["Be brief.", "I am Ada.", "Hello Ada.", "Who am I?"]
    assert [message.text for message in session.messages] == [*texts_sent(peer)[1:], "Ada."]
    assert roles(session.messages) == ROLES * 2
    assert result.messages[-1].text == "Ada."
    assert session.title == "I am Ada."


def test_options():
    """Those of the session are defaults; those of a turn are for that turn."""
    with simulated(text("Yes.")) as peer:

        async def work(client):
            session = session_of(client, "anthropic", temperature=0.1, max_tokens=50, system="A")
            await session.send("?")
            await session.send("?", temperature=0.9, system="B", tools=())
            await session.send("?", model=named("openai_compatible"))
            return session

        session = run(peer, work)
        bodies = [exchange.call.body for exchange in peer.app.script.received]

    assert [body["temperature"] for body in bodies] == [0.1, 0.9, 0.1]
    assert [body["max_tokens"] for body in bodies[:2]] == [50] * 2
    assert ["tools" in body for body in bodies] == [True, False, True]
    assert [texts_sent(peer, at)[0] for at in range(3)] == ["A", "B", "A"]
    answers = [message.metadata for message in session.messages if message.role == "assistant"]
    chosen = [(each["provider"], each["chosen_because"]) for each in answers]
    assert chosen == [
        *[("anthropic", "session model")] * 2,
        ("openai_compatible", "turn option"),
    ]


def test_bad_options_are_told_at_once():
    """A misspelt option, a mode that does not exist, an option of a turn."""
    for options in (
        {"temprature": 1},
        {"history": "some"},
        {"resume": object()},
        {"request_id": "r"},
        {"on_overflow": "explode"},
    ):
        with pytest.raises(ConfigurationError, match=next(iter(options))):
            Session("a:b", **options)
    with pytest.raises(ConfigurationError, match="model"):
        Session("")
    session = Session("a:b")
    with pytest.raises(ConfigurationError, match="messages"):
        session.stream("?", messages=["x"])
    with pytest.raises(ConfigurationError, match="prompt"):
        session.stream()


def test_twenty_rounds_of_tools():
    """A session runs tools for twenty rounds, not one."""
    with simulated(*[tool_call("look", city="Oslo")] * 25) as peer:

        async def work(client):
            session = session_of(client, "anthropic")
            return session, await session.send("?")

        session, result = run(peer, work)

    assert len(results_in(session.messages)) == 20
    assert "tool_rounds_exhausted" in {warning.code for warning in result.warnings}
    assert len(session.open_calls) == 1


@both_ways
def test_calls_that_are_left_open_are_answered_by_the_next_prompt(whole):
    """A turn may end with open calls; a new prompt closes them, `send()` runs them."""
    answers = tool_call("look", city="Oslo"), text("Yes."), tool_call("look", city="Rome")
    with simulated(*answers, text("No.")) as peer:

        async def work(client):
            session = session_of(client, "anthropic", max_tool_rounds=0)
            await turn(session, "?", whole)
            assert len(session.open_calls) == 1
            await turn(session, "Never mind.", whole)
            assert session.open_calls == ()
            await turn(session, "And Rome?", whole)
            await turn(session, None, whole, max_tool_rounds=3)
            return session

        session = run(peer, work)

    contents = [result.content for result in results_in(session.messages)]
    assert "not run" in contents[0]
    assert contents[1] == "Rome: 4 C, rain"
    assert [exchange.status for exchange in peer.app.script.received] == [200] * 4


def test_approvals():
    """A call that needs approval waits in the session, by our id, also through a file."""

    @tool(needs_approval=True)
    def wipe() -> str:
        """Wipe it."""
        return "wiped"

    with simulated(tool_call("wipe"), text("Done.")) as peer:

        async def work(client):
            session = session_of(client, "openai", tools=[wipe])
            paused = await session.send("Wipe it.")
            (call,) = paused.pending_approvals
            assert session.open_calls == (call,)
            return session, await session.send(approvals={call.id: True})

        session, result = run(peer, work)

    assert result.text == "Done."
    assert [part.content for part in results_in(session.messages)] == ["wiped"]
    assert roles(session.messages) == ["user", "assistant", "tool", "assistant"]


def test_results_of_the_caller():
    """A tool without a function: its result is the next prompt, and belongs to the same turn."""
    ask = Tool(name="ask", description="Ask.", parameters={"type": "object", "properties": {}})
    with simulated(tool_call("ask"), text("Blue.")) as peer:

        async def work(client):
            session = session_of(client, "anthropic", tools=[ask])
            asked = await session.send("Colour?")
            await session.send(Message.tool_result(asked.tool_calls[0].id, "blue"))
            removed = session.undo()
            return session, removed

        session, removed = run(peer, work)
        calls, results = sent_ids(peer.app.script.received[1])

    assert calls == results == ["toolu_simulated000100"]
    assert session.messages == ()
    assert roles(removed) == ["user", "assistant", "tool", "assistant"]


def test_one_turn_at_a_time():
    """A second turn is refused while one is active; afterwards it is not."""

    async def work(client):
        session = session_of(client, "anthropic")
        first = asyncio.ensure_future(session.send("One?"))
        await settled(lambda: session.is_active)
        for act in (session.send("Two?"), anext(session.stream("Two?").__aiter__())):
            with pytest.raises(ConfigurationError, match="active"):
                await act
        with pytest.raises(ConfigurationError, match="active"):
            session.undo()
        await first
        await session.send("Two?")
        return session

    peer = in_virtual_time(text("Yes.") + latency(first=60), text("No."))
    assert roles(run(peer, work).messages) == ROLES * 2


def test_an_object():
    """The object, and a history that can be continued, also if the object is a forced call."""
    schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}

    def answer(request):
        if request.tools and not request.response_format:
            return tool_call(request.tools[0].name, city="Oslo")
        return text('{"city": "Oslo"}')

    for ways in (("native",), ("tool",), ("prompt",)):
        with simulated(answer, text("Yes."), profile={"structured_output": ways}) as peer:

            async def work(client):
                session = session_of(client, "openai_compatible", tools=())
                result = await session.send_object("Where?", schema=schema)
                await session.send("Sure?")
                return session, result

            session, result = run(peer, work)

        assert result.output == {"city": "Oslo"}
        assert len(calls_in(session.messages)) == len(results_in(session.messages))


# How turns end.


@every_provider
@both_ways
def test_an_error_leaves_the_session_as_it_was(provider, whole):
    """A turn that failed before anything was done is not in the history; it can be repeated."""
    with simulated(text("Yes."), error(500), text("No.")) as peer:

        async def work(client):
            session = session_of(client, provider, max_retries=0)
            await turn(session, "One?", whole)
            before = session.saved()
            with pytest.raises(ServerError):
                await turn(session, "Two?", whole)
            assert session.saved() == before
            await turn(session, "Two?", whole)
            return session

        assert roles(run(peer, work).messages) == ROLES * 2


@every_provider
def test_a_stream_that_breaks_leaves_nothing(provider):
    """The partial answer is in the error; its tokens count."""
    with simulated(text("One two three. ") + error_event(500), text("Yes.")) as peer:

        async def work(client):
            session = session_of(client, provider, max_retries=0)
            with pytest.raises((ServerError, StreamError)) as caught:
                await turn(session, "?", whole=False)
            return session, caught.value

        session, caught = run(peer, work)

    assert session.messages == ()
    assert caught.partial.text == "One two three. "
    assert session.usage.output_tokens > 0


@both_ways
def test_tools_that_have_run_stay(whole):
    """A failure after a round of tools keeps the round; `send()` goes on with it."""
    answers = tool_call("look", city="Oslo"), error(500), text("Rain."), text("Yes.")
    with simulated(*answers) as peer:

        async def work(client):
            session = session_of(client, "openai", max_retries=0)
            with pytest.raises(ServerError):
                await turn(session, "?", whole)
            assert roles(session.messages) == ["user", "assistant", "tool"]
            await turn(session, None, whole)
            await turn(session, "Sure?", whole)
            return session

        session = run(peer, work)

    assert len(results_in(session.messages)) == 1
    assert roles(session.messages) == ["user", "assistant", "tool", "assistant", *ROLES]


@every_provider
def test_interrupt_keeps_what_has_arrived(provider):
    """The partial text is in the history at once, every provider takes it, and its usage counts."""
    slow = text("one two three four five six seven eight") + latency(between=0.01) + pieces(4)
    with simulated(slow, text("Yes.")) as peer:

        async def work(client):
            session = session_of(client, provider)
            stream = session.stream("Count.")
            reader = asyncio.ensure_future(anext_all(stream))
            await settled(lambda: bool(stream.partial_response and stream.partial_response.text))
            assert session.interrupt()
            messages = session.messages
            assert not session.is_active
            assert not session.interrupt()
            events = await reader
            assert session.messages == messages
            for target in sorted(DIALECTS):
                session.swap(named(target))
                result = await session.send("Go on.")
                assert codes(result) == []
            return messages, events, session

        messages, events, session = run(peer, work)

    assert roles(messages) == ROLES
    assert "one two three four five six seven eight".startswith(messages[1].text)
    assert messages[1].text
    assert messages[1].metadata["finish_reason"] == "cancelled"
    assert events[-1].finish_reason.reason == "cancelled"
    assert session.usage.output_tokens > 0


async def anext_all(stream):
    return [event async for event in stream]


@both_ways
def test_interrupt_during_a_tool(whole):
    """The tool that runs and the one that has not begun both get a result."""
    begun = asyncio.Event()

    async def wait() -> str:
        """Wait."""
        begun.set()
        await asyncio.sleep(60)
        return "never"

    waits = tool(wait)
    calls = tool_call("wait") + tool_call("wait")
    with simulated(calls, text("Yes.")) as peer:

        async def work(client):
            session = session_of(client, "anthropic", tools=[waits], max_concurrent_tools=1)
            task = asyncio.ensure_future(turn(session, "?", whole))
            await asyncio.wait_for(begun.wait(), PATIENCE)
            assert session.interrupt()
            if whole:
                with pytest.raises(AbortError):
                    await task
            else:
                await task
            await turn(session, "Go on.", whole)
            return session

        session = run(peer, work)

    contents = [result.content for result in results_in(session.messages)]
    assert len(contents) == 2
    assert "while this tool was running" in contents[0]
    assert "not run" in contents[1]


def test_a_stream_that_is_left():
    """Closing it keeps what has arrived, and ends the turn; one never read does nothing."""
    with simulated(text("one two three") + latency(between=0.01) + pieces(2), text("Yes.")) as peer:

        async def work(client):
            session = session_of(client, "openai")
            session.stream("never read")
            async with session.stream("Count.") as stream:
                async for event in stream:
                    if event.type == "text_delta":
                        break
            assert not session.is_active
            await session.send("Go on.")
            return session

        session = run(peer, work)

    assert roles(session.messages) == ROLES * 2
    assert session.messages[1].text == "on"


def test_a_cancelled_task():
    """As an interruption: complete rounds stay, and the session can go on."""
    with simulated(tool_call("look", city="Oslo"), text("no") + stall(), text("Yes.")) as peer:

        async def work(client):
            session = session_of(client, "gemini")
            task = asyncio.ensure_future(session.send("?"))
            await settled(lambda: len(peer.app.script.received) == 2)
            task.cancel()
            await asyncio.wait({task})
            assert task.cancelled()
            assert not session.is_active
            await session.send("Go on.")
            return session

        session = run(peer, work)

    assert roles(session.messages) == ["user", "assistant", "tool", *ROLES]


# History.


def test_stateless():
    """Only the turn itself is sent; the session keeps all of it."""
    with simulated(tool_call("look", city="Oslo"), text("A."), text("B.")) as peer:

        async def work(client):
            session = session_of(client, "anthropic", history="stateless", system="S")
            await session.send("One?")
            result = await session.send("Two?")
            return session, result

        session, result = run(peer, work)

    assert texts_sent(peer) == ["S", "Two?"]
    assert len(texts_sent(peer, 1)) == 4
    assert len(session.messages) == 6
    assert codes(result) == []


def test_dynamic():
    """What fits is sent, in whole turns; a model with a larger window gets more."""
    with simulated(text("word " * 50)) as peer:
        small = HttpAdapter("openai_compatible", base_url=f"{peer.server.url}/v1",
                            profile={"context_window": 400})  # fmt: skip
        large = HttpAdapter("openai_compatible", base_url=f"{peer.server.url}/v1")

        async def work():
            async with Client({"small": small, "large": large}) as client:
                session = Session("small:m", client=client, history="dynamic", system="S")
                results = [await session.send(f"Number {number}?") for number in range(10)]
                session.swap("large:m")
                await session.send("All?")
                return session, results

        session, results = asyncio.run(work())
        counts = [len(each.request.messages) for each in peer.app.script.received]

    assert counts[:3] == [2, 4, 6]
    assert max(counts[:10]) == counts[9] < 20
    assert texts_sent(peer, 9)[0] == "S"
    assert texts_sent(peer, 9)[1].startswith("Number")
    assert counts[10] == 22
    assert len(session.messages) == 22
    assert codes(results[9]) == ["history_truncated"]


def overflow(request):
    if sum(len(message.text) for message in request.messages) > 300:
        return error(400, "prompt is too long: 900 tokens > 300 maximum")
    return text("x" * 60)


@both_ways
def test_truncation(whole):
    """The oldest turns are left out of the request, and stay in the session."""
    with simulated(overflow) as peer:

        async def work(client):
            session = session_of(client, "anthropic", on_overflow="truncate")
            for number in range(8):
                await turn(session, f"Number {number}?" + "y" * 30, whole)
            return session

        session = run(peer, work)

    assert len(session.messages) == 16
    assert texts_sent(peer)[0].startswith("Number")
    assert not texts_sent(peer)[0].startswith("Number 0")


@both_ways
@pytest.mark.parametrize("is_async", [True, False], ids=["async", "plain"])
def test_a_summary(whole, is_async, tmp_path):
    """What would be dropped is summed up once, and the summary is sent from then on."""
    asked = []

    def plain(messages):
        asked.append([message.text for message in messages])
        return f"summary {len(asked)}"

    async def late(messages):
        await asyncio.sleep(0)
        return plain(messages)

    with simulated(overflow) as peer:

        async def work(client):
            session = session_of(
                client, "anthropic", on_overflow=late if is_async else plain, system="S"
            )
            seen = []
            for number in range(4):
                result = await turn(session, f"Number {number}?" + "y" * 60, whole)
                seen.append(codes(result))
            session.save(tmp_path / "s.json")
            loaded = Session.load(tmp_path / "s.json", client=client)
            assert loaded.summary == session.summary == f"summary {len(asked)}"
            return session, seen

        session, seen = run(peer, work)

    assert asked
    assert asked[0][0].startswith("Number 0")
    assert seen[2] == ["history_summarized"]
    assert seen[0] == []
    first = texts_sent(peer)[1]
    assert f"summary {len(asked)}" in first
    assert "Number" in first
    assert not any("summary" in message.text for message in session.messages)
    assert len(session.messages) == 8


def test_a_summary_that_does_not_help():
    """It is tried once; then the error is raised and the session is as it was."""
    with simulated(lambda _: error(400, "prompt is too long: 900 tokens > 300 maximum")) as peer:

        async def work(client):
            session = session_of(client, "anthropic", messages=["a", Message.assistant("b")],
                                 on_overflow=lambda _: "short")  # fmt: skip
            with pytest.raises(ContextLengthError):
                await session.send("?")
            return session

        session = run(peer, work)
        assert len(peer.app.script.received) == 2

    assert len(session.messages) == 2


def test_instructions_in_the_history_stay():
    """System messages of a given history are sent in every mode, also after a summary."""
    given = (Message.system("Be kind."), Message.user("a" * 200), Message.assistant("b" * 200))
    for options in ({"history": "stateless"}, {"on_overflow": lambda _: "short"}):
        with simulated(overflow) as peer:

            async def work(client, options=options):
                session = session_of(client, "anthropic", tools=(), messages=given, **options)
                await session.send("One?")
                await session.send("Two?")
                return session

            session = run(peer, work)

        assert texts_sent(peer)[0] == "Be kind."
        assert not any("a" * 200 in each for each in texts_sent(peer))
        assert len(session.messages) == 7


def test_interrupt_before_anything_is_sent(tmp_path):
    """A turn that is still writing to its store ends at once, and sends nothing."""
    with simulated(text("Yes.")) as peer:

        async def work(client):
            store = SessionStore(tmp_path / "s.db")
            session = session_of(client, "anthropic", store=store)
            task = asyncio.ensure_future(session.send("?"))
            await asyncio.sleep(0)
            assert session.interrupt()
            assert not session.is_active
            with pytest.raises(AbortError):
                await task
            assert peer.app.script.received == ()
            await session.send("?")
            await store.close()
            return session

        assert len(run(peer, work).messages) == 2


def test_undo_and_fork():
    """Undo removes a whole turn; a fork goes its own way with its own id."""
    answers = tool_call("look", city="Oslo"), *[text(f"{number}.") for number in range(5)]
    with simulated(*answers) as peer:

        async def work(client):
            session = session_of(client, "anthropic")
            await session.send("One?")
            fork = session.fork()
            await session.send("Two?")
            await fork.send("Three?")
            spent = session.usage
            removed = session.undo()
            assert session.usage == spent
            assert [message.text for message in removed] == ["Two?", "1."]
            assert session.messages == fork.messages[:4]
            assert len(session.undo()) == 4
            assert session.undo() == ()
            return session, fork

        session, fork = run(peer, work)

    assert session.messages == ()
    assert session.saved().tool_ids == {}
    assert fork.parent == session.session_id
    assert fork.session_id != session.session_id
    assert [message.text for message in fork.messages[-2:]] == ["Three?", "2."]
    assert fork.usage.output_tokens < session.usage.output_tokens


def test_forks_at_once():
    """Two forks whose calls have the same ids on the wire do not mix them up."""
    calls = tool_call("look", {"city": "Oslo"}, id="call_0")

    def answer(request):
        return text("Yes.") if request.messages[-1].role == "tool" else calls

    with simulated(answer, strict=False) as peer:

        async def work(client):
            session = session_of(client, "openai_compatible")
            await session.send("One?")
            forks = [session.fork() for _ in range(4)]
            await asyncio.gather(*[fork.send("Two?") for fork in forks])
            await asyncio.gather(*[fork.send("Three?") for fork in forks])
            return forks

        forks = run(peer, work)
        last = [sent_ids(exchange) for exchange in peer.app.script.received][-4:]

    ids = [[call.id for call in calls_in(fork.messages)] for fork in forks]
    assert len({each[0] for each in ids}) == 1
    assert len({name for each in ids for name in each}) == 1 + 4 * 2
    assert last == [(["call_0", "call_0_2", "call_0_3"],) * 2] * 4


def test_messages_from_elsewhere():
    """A history may be given; its calls get our ids, and their makers their own back."""
    before = (
        Message.user("Weather?"),
        replace(
            Message.assistant([ToolCall(id="toolu_9", name="look", arguments={"city": "Oslo"})]),
            metadata={"provider": "anthropic", "model": "claude-haiku-4-5"},
        ),
        Message.tool_result("toolu_9", "rain", name="look"),
        Message.assistant("Rain."),
    )
    with simulated(text("Yes.")) as peer:

        async def work(client):
            session = session_of(client, "anthropic", messages=before)
            await session.send("Sure?")
            session.swap(named("openai"))
            await session.send("Sure?")
            return session

        session = run(peer, work)
        own, other = [sent_ids(exchange) for exchange in peer.app.script.received]

    (call,) = calls_in(session.messages)
    assert own == (["toolu_9"], ["toolu_9"])
    assert other == ([f"call_{call.id[3:]}"],) * 2
    assert in_words(session.messages)[:4] == in_words(before)


def test_usage_and_cost():
    """The sums of all turns, also of those that failed, were interrupted or undone."""
    tokens = usage(1_000_000, 100_000)
    cut = text("one two three") + latency(between=0.01) + pieces(2)
    answers = text("A.") + tokens, tool_call("look", city="Oslo") + tokens, error(500), cut
    with simulated(*answers, text("B.") + tokens) as peer:

        async def work(client):
            session = session_of(client, "anthropic", max_retries=0)
            assert session.cost is None
            first = await session.send("?")
            assert session.cost == first.total_cost
            with pytest.raises(ServerError):
                await session.send("?")
            assert session.usage.input_tokens == 2_000_000
            assert session.cost.total == pytest.approx(2 * first.total_cost.total)
            async for event in session.stream("?"):
                if event.type == "text_delta":
                    session.interrupt()
            assert session.usage.estimated
            assert session.cost.total > 2 * first.total_cost.total
            before = session.cost
            session.undo()
            assert session.cost == before
            session.swap(named("openai_compatible"))
            await session.send("?")
            assert session.cost is None  # there is no price: the sum would be too small
            assert session.usage.output_tokens > 300_000
            return session

        run(peer, work)


# Files.


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5])
def test_a_saved_file_may_be_removed_while_it_is_saved_again(tmp_path, monkeypatch, count):
    """Another process removes it while it is looked at; then a new one is made."""
    path = tmp_path / "s.json"
    session = Session("openai:gpt-5.2", client=Client({}))
    session.save(path)
    after_stat(monkeypatch, path, lambda: path.unlink(missing_ok=True), count)

    session.save(path)
    monkeypatch.undo()

    assert Session.load(path, client=session.client).session_id == session.session_id


def test_save_and_load(tmp_path):
    """All that a session keeps; files that were named by path are bytes."""
    (tmp_path / "cat.png").write_bytes(PNG)

    @tool
    def draw() -> Image:
        """Draw."""
        return Image(path=str(tmp_path / "cat.png"))

    with simulated(tool_call("draw"), text("A cat."), text("Yes.")) as peer:

        async def work(client):
            session = session_of(
                client, "anthropic", tools=[draw], system="S", history="dynamic", temperature=0.5,
                api_key="sk-secret-of-a-test", on_overflow="truncate",
            )  # fmt: skip
            session.data["user"] = "ada"
            await session.send(["What is this? \ud800", Image(path=str(tmp_path / "cat.png"))])
            session.save(tmp_path / "s.json")
            (tmp_path / "cat.png").unlink()
            loaded = Session.load(tmp_path / "s.json", client=client, tools=[draw])
            assert loaded.saved() == session.saved()
            await loaded.send("Sure?")
            return loaded

        loaded = run(peer, work)
        body = peer.app.script.received[2].call.body

    assert "sk-secret" not in (tmp_path / "s.json").read_text(encoding="utf-8")
    assert loaded.data == {"user": "ada"}
    assert loaded.history == "dynamic"
    assert body["temperature"] == 0.5
    images = [part for message in loaded.messages for part in message.content
              if isinstance(part, Image)]  # fmt: skip
    assert [(part.path, part.data) for part in images] == [(None, PNG)]
    (result,) = results_in(loaded.messages)
    assert result.content[0].data == PNG
    assert [each.name for each in tmp_path.iterdir()] == ["s.json"]


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[:-20],
        lambda _: b"",
        lambda _: b"[]",
        lambda _: b"[" * 100_000,
        lambda _: b'{"session_id": "x"}',
        lambda data: data.replace(
            b'"interlingua_session":%d' % SESSION_VERSION,
            b'"interlingua_session":%d' % (SESSION_VERSION + 1),
        ),
        lambda data: data.replace(b'"role":"user"', b'"role":"nobody"'),
        lambda data: data.replace(b'"turns":', b'"turns":3,"x":'),
    ],
    ids=["cut", "empty", "list", "deep", "other", "newer", "role", "turns"],
)
def test_damaged_files(damage, tmp_path):
    """A clear error with the path; the file stays as it is, also if one saves over it."""
    path = tmp_path / "s.json"
    session = Session("a:b", messages=["Hello?", Message.assistant("Yes.")])
    session.save(path)
    assert Session.load(path).saved() == session.saved()
    path.write_bytes(damage(path.read_bytes()))
    before = path.read_bytes()
    with pytest.raises(DecodeError, match=r"s\.json"):
        Session.load(path)
    is_ours = before.startswith(
        b'{"interlingua_session":%d,' % SESSION_VERSION
    ) and before.endswith(b"}")
    if not is_ours:
        with pytest.raises(DecodeError, match="not replaced"):
            session.save(path)
    assert path.read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == ["s.json"]


def test_values_that_are_not_json(tmp_path):
    """NaN is saved as null, also next to a lone surrogate; anything else is refused."""
    path = tmp_path / "s.json"
    values = {"\ud800": [float("inf"), float("nan"), 1.5]}
    call = Message.assistant([ToolCall(id="c", name="look")])
    session = Session("a:b", messages=["?", call, Message.tool_result("c", values)])
    session.data = values
    session.save(path)
    loaded = Session.load(path)
    assert loaded.data == {"\ud800": [None, None, 1.5]}
    assert results_in(loaded.messages)[0].content == loaded.data
    session.data = {"x": object()}
    with pytest.raises(ConfigurationError, match="cannot be saved"):
        session.save(path)
    for session_id in (5, "\ud800"):
        with pytest.raises(ConfigurationError, match="session_id"):
            Session("a:b", session_id=session_id)


def test_files_that_are_not_there(tmp_path):
    """Missing files and folders are errors of ours."""
    for name in ("nul\0", "nothing"):
        with pytest.raises(ConfigurationError, match="Cannot read"):
            Session.load(tmp_path / name)
    with pytest.raises(ConfigurationError, match="Cannot save"):
        Session("a:b").save(tmp_path / "nul\0")
    with pytest.raises(ConfigurationError, match="nothing"):
        Session.load(tmp_path / "nothing.json")
    with pytest.raises(ConfigurationError, match="missing"):
        Session("a:b").save(tmp_path / "missing" / "s.json")


# Stores.


def test_a_store(tmp_path):
    """Each turn is there when `send` returns; undo and forks too; another process goes on."""
    with simulated(tool_call("look", city="Oslo"), *[text(f"{n}.") for n in range(9)]) as peer:

        async def work(client):
            store, other = SessionStore(tmp_path / "s.db"), SessionStore(tmp_path / "s.db")
            session = session_of(client, "anthropic", store=store)
            for act in (
                lambda: session.send("One?"),
                lambda: anext_all(session.stream("Two?")),
                lambda: session.send("Three?"),
            ):
                await act()
                again = await Session.resume(session.session_id, store=other, client=client)
                assert again.saved() == session.saved()
            session.undo()
            fork = session.fork()
            await session.flush()
            again = await Session.resume(
                session.session_id, store=other, client=client, tools=[look]
            )
            assert again.saved() == session.saved()
            await fork.send("Four?")
            await again.send("Five?")
            listed = {info.session_id: info for info in await other.list()}
            assert set(listed) == {session.session_id, fork.session_id}
            assert listed[fork.session_id].title == "One?"
            found = [info.session_id for info in await other.search("Four")]
            assert found == [fork.session_id]
            for prompt in ("Six?", "Seven?"):  # the turn of the other one is never replaced
                with pytest.raises(StoreError, match=r"nother\s+program"):
                    await session.send(prompt)
                last = await Session.resume(session.session_id, store=other, client=client)
                assert last.saved() == again.saved()
            await store.close()
            await other.close()

        run(peer, work)


def test_a_store_and_an_id_that_is_taken(tmp_path):
    """The model is not asked if the turn could not be kept."""
    with simulated(text("Yes.")) as peer:

        async def work(client):
            store = SessionStore(tmp_path / "s.db")
            session = session_of(client, "anthropic", store=store, session_id="s")
            await session.send("One?")
            second = session_of(client, "anthropic", store=store, session_id="s")
            for _ in range(2):
                with pytest.raises(ConfigurationError, match="'s'"):
                    await second.send("One?")
                assert not second.is_active
            await store.close()

        run(peer, work)
        assert len(peer.app.script.received) == 1


def test_a_store_and_an_interruption(tmp_path):
    """What an interrupted turn leaves is in the store when the turn's own task has ended."""
    with simulated(text("one two three") + latency(between=0.01) + pieces(2)) as peer:

        async def work(client):
            store = SessionStore(tmp_path / "s.db")
            session = session_of(client, "anthropic", store=store)
            async for event in session.stream("Count."):
                if event.type == "text_delta":
                    session.interrupt()
            again = await Session.resume(session.session_id, store=store, client=client)
            assert again.saved() == session.saved()
            assert again.messages[1].text
            await store.close()

        run(peer, work)


# Logs, and the blocking form.


def test_the_session_is_in_log_records(caplog):
    """A loss is logged once for its message, a lost setting in each turn, with the session's id."""
    with simulated(thinking("I think.") + text("Yes."), text("No.")) as peer:

        async def work(client):
            session = session_of(client, "anthropic", tools=())
            await session.send("?")
            session.swap(named("openai"))
            for _ in range(3):
                await session.send("?", verbosity="low", top_k=3)
            return session

        with caplog.at_level(logging.WARNING, logger="interlingua"):
            session = run(peer, work)
    records = [record for record in caplog.records if record.name == "interlingua"]
    reasons = [record.reason for record in records]

    assert {record.session_id for record in records} == {session.session_id}
    assert reasons.count("foreign_thinking_dropped") == 1
    assert reasons.count("top_k_dropped") == 3
    (dropped,) = [record for record in records if record.reason == "foreign_thinking_dropped"]
    assert dropped.message_id == session.messages[1].id


def test_blocking(tmp_path):
    """The same conversation, blocking; both forms are one session."""
    answers = tool_call("look", city="Oslo"), *[text(f"{n}.") for n in range(9)]
    with simulated(*answers) as peer, sync.Client.wrap(peer.client) as client:
        store = SessionStore(tmp_path / "s.db")
        session = sync.Session(named("anthropic"), tools=[look], client=client, store=store)
        assert session.send("One?").text == "0."
        stream = session.stream("Two?")
        assert "".join(stream.text_stream) == "1."
        assert stream.result().text == "1."
        session.save(tmp_path / "s.json")
        loaded = sync.Session.load(tmp_path / "s.json", client=client, tools=[look])
        assert loaded.messages == session.messages
        fork = session.fork()
        fork.swap(named("openai"))
        fork.send("Three?")
        assert roles(session.undo()) == ROLES
        resumed = sync.Session.resume(session.session_id, store=store, client=client)
        assert resumed.messages == session.messages
        assert not session.interrupt()
        schema = {"type": "object"}
        assert session.asynchronous.messages == session.messages
        assert (fork.parent, fork.model) == (session.session_id, named("openai"))
        with pytest.raises(Exception, match="no JSON"):
            fork.send_object("What?", schema={**schema, "required": ["a"]})
        assert session.usage.output_tokens > 0
        assert session.open_calls == ()
        assert session.session_id in repr(session)

    assert json.loads((tmp_path / "s.json").read_text(encoding="utf-8"))["model"]
