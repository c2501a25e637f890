"""A session through the client's middleware: ids are those of the provider that is asked."""

import asyncio

import pytest

from interlingua.api.session.session import Session
from interlingua.api.session.store import SessionStore
from interlingua.client.client import Client
from interlingua.middleware import Cache, Fallback, Hedge
from interlingua.providers.adapter import HttpAdapter
from interlingua.simulator import Simulator, error, latency, serve_in_thread, stall, text, tool_call
from interlingua.spec.content import Image
from interlingua.spec.errors import AbortError, ServerError
from interlingua.stores import MemoryStore
from support.patience import PATIENCE
from support.runs import named
from support.sessions import calls_in, look, results_in, sent_ids, session_of
from support.simulated import adapters, run, settled, simulated

both_ways = pytest.mark.parametrize("whole", [True, False], ids=["whole", "streamed"])
PNG = b"\x89PNG\r\n\x1a\n" + bytes(24)


async def turn(session, prompt="?", whole=True, **options):
    if whole:
        return await session.send(prompt, **options)
    events = session.stream(prompt, **options)
    async for _ in events:
        pass
    return events.result()


def with_layers(peer, *layers):
    return Client(adapters(peer.server.url), middleware=layers)


@both_ways
def test_fallback_within_a_turn(whole):
    """The second provider gets its own ids, in the middle of a tool round."""
    answers = (
        tool_call("look", city="Oslo"),  # anthropic
        error(500),  # anthropic
        tool_call("look", city="Rome"),  # openai
        text("Rain."),  # anthropic again
    )
    with simulated(*answers) as peer:
        layer = Fallback(named("openai"))

        async def work():
            async with with_layers(peer, layer) as client:
                session = session_of(client, "anthropic", max_retries=0)
                await turn(session, "?", whole)
                return session

        session = asyncio.run(work())
        exchanges = peer.app.script.received
    sent = [sent_ids(exchange) for exchange in exchanges]
    oslo, rome = calls_in(session.messages)

    assert [each.dialect for each in exchanges] == [
        *("anthropic_messages", "anthropic_messages"),
        *("openai_responses", "anthropic_messages"),
    ]
    assert sent[1] == (["toolu_simulated000100"],) * 2
    assert sent[2] == ([f"call_{oslo.id[3:]}"],) * 2
    assert sent[3] == (["toolu_simulated000100", f"call_{rome.id[3:]}"],) * 2
    assert session.saved().tool_ids["openai"][rome.id].startswith("call_simulated")
    assert len(results_in(session.messages)) == 2


@both_ways
def test_a_cached_answer(whole):
    """A call in an answer from a cache, of another session, works and has its ids."""

    def answer(request):
        return text("Rain.") if request.messages[-1].role == "tool" else tool_call("look", city="A")

    with simulated(answer) as peer:

        async def work():
            async with with_layers(peer, Cache(store=MemoryStore(), ttl=60)) as client:
                sessions = [session_of(client, "anthropic", session_id="s") for _ in range(2)]
                for session in sessions:
                    await turn(session, "?", whole)
                    await turn(session, "And?", whole)
                return sessions

        sessions = asyncio.run(work())
        statuses = {exchange.status for exchange in peer.app.script.received}

    assert statuses == {200}
    for session in sessions:
        ids = [call.id for call in calls_in(session.messages)]
        assert ids == [result.tool_call_id for result in results_in(session.messages)]
        assert all(each.startswith("tu_") for each in ids)


@both_ways
def test_hedging(whole):
    """Two attempts at once: the session has the calls of one of them."""
    slow = tool_call("look", city="Slow") + latency(first=PATIENCE)
    with simulated(slow, tool_call("look", city="Fast"), text("Rain.")) as peer:

        async def work():
            async with with_layers(peer, Hedge(after=0.05)) as client:
                session = session_of(client, "anthropic")
                await turn(session, "?", whole)
                return session

        session = asyncio.run(work())
    (call,) = calls_in(session.messages)

    assert session.saved().tool_ids == {"anthropic": {call.id: "toolu_simulated000200"}}


def test_several_loops(tmp_path):
    """One session and one store in several runs of asyncio."""
    with serve_in_thread(Simulator(text("Yes."))) as server:
        client = Client(adapters(server.url))
        store = SessionStore(tmp_path / "s.db")
        session = session_of(client, "anthropic", store=store)
        for _ in range(3):
            asyncio.run(session.send("?"))
        again = asyncio.run(Session.resume(session.session_id, store=store, client=client))
        asyncio.run(client.close())
        asyncio.run(store.close())

    assert again.saved() == session.saved()
    assert len(session.messages) == 6


def test_a_write_that_is_cancelled(tmp_path):
    """The store has all or nothing of the turn, and the session goes on."""
    with simulated(text("Yes.")) as peer:

        async def work(client):
            store = SessionStore(tmp_path / "s.db")
            session = session_of(client, "anthropic", store=store)
            for number in range(12):
                task = asyncio.ensure_future(session.send("?"))
                await asyncio.sleep(number / 2_000)
                task.cancel()
                await asyncio.wait([task])
            await session.send("!")
            again = await Session.resume(session.session_id, store=store, client=client)
            await store.close()
            return session, again

        session, again = run(peer, work)

    assert again.saved() == session.saved()


def test_urls_that_are_paths(tmp_path):
    """A client that reads them: the session keeps the bytes."""
    (tmp_path / "cat.png").write_bytes(PNG)
    with simulated(text("A cat.")) as peer:
        client = Client(adapters(peer.server.url), read_path_urls=True)

        async def work():
            async with client:
                session = session_of(client, "anthropic", tools=())
                await session.send(["What?", Image(url=str(tmp_path / "cat.png"))])
                return session

        session = asyncio.run(work())

    assert session.messages[0].content[1].data == PNG
    assert session.messages[0].content[1].url is None


def test_a_custom_adapter():
    """An adapter of one's own gets the ids that it made."""

    class Adapter:
        name = "mine"

        def __init__(self, inner):
            self.inner, self.requests = inner, []

        async def complete(self, request):
            self.requests.append(request)
            return await self.inner.complete(request)

        async def stream(self, request):
            self.requests.append(request)
            async for event in self.inner.stream(request):
                yield event

    for whole in (True, False):
        with simulated(tool_call("look", city="Oslo"), text("Rain.")) as peer:
            inner = HttpAdapter("anthropic", "key", base_url=peer.server.url)
            mine = Adapter(inner)

            async def work(mine=mine, inner=inner, whole=whole):
                session = Session("mine:claude-haiku-4-5", tools=[look],
                                  client=Client({"mine": mine}))  # fmt: skip
                await turn(session, "?", whole)
                await inner.close()
                return session

            session = asyncio.run(work())
        (call,) = calls_in(session.messages)
        (sent,) = calls_in(mine.requests[1].messages)

        assert call.id.startswith("tu_")
        assert sent.id == "toolu_simulated000100"


def test_the_system_prompt_as_a_function():
    """It is asked in each turn; modes and positions are right with it."""
    with simulated(text("Yes.")) as peer:

        async def work(client):
            numbers = iter(range(9))
            session = session_of(
                client, "anthropic", history="stateless", tools=(),
                system=lambda _: f"Turn {next(numbers)}.",
            )  # fmt: skip
            for _ in range(3):
                await session.send("?")
            return session

        session = run(peer, work)
        last = peer.app.script.received[-1].request

    assert [message.text for message in last.messages] == ["Turn 2.", "?"]
    assert [message.role for message in session.messages] == ["user", "assistant"] * 3


@both_ways
def test_cancelled_by_its_id(whole):
    """`client.cancel` with the id of the turn's run is an interruption too."""
    slow = latency(first=PATIENCE) if whole else stall(at=2_000)
    with simulated(text("one two three four " * 100) + slow, text("Yes.")) as peer:

        async def work(client):
            session = session_of(client, "anthropic")
            begun = asyncio.Event()

            async def streamed():
                async for event in session.stream("?", request_id="r"):
                    if event.type == "text_delta":
                        begun.set()

            work = session.send("?", request_id="r") if whole else streamed()
            task = asyncio.ensure_future(work)
            if whole:
                await settled(lambda: bool(peer.app.script.received))
            else:
                await begun.wait()
            assert await client.cancel("r")
            if whole:
                with pytest.raises(AbortError):
                    await task
            else:
                await task
            assert not session.is_active
            await session.send("Go on.")
            return session

        session = run(peer, work)

    assert [message.role for message in session.messages][-2:] == ["user", "assistant"]
    assert len(session.messages) == (2 if whole else 4)


def test_an_error_of_the_store_leaves_the_answer(tmp_path):
    """The error is raised; the session has the turn, and its next turn is free."""
    with simulated(text("Yes.")) as peer:

        async def work(client):
            store = SessionStore(tmp_path / "s.db")
            session = session_of(client, "anthropic", store=store)
            await session.send("?")
            other = await Session.resume(session.session_id, store=store, client=client)
            await other.send("?")
            with pytest.raises(Exception, match="another program") as caught:
                await session.send("?")
            assert not isinstance(caught.value, ServerError)
            assert not session.is_active
            await store.close()

        run(peer, work)
