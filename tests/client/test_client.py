"""The client: routes, middleware, call events, life."""

import asyncio
import multiprocessing
import threading

import pytest

from interlingua.client.client import Client
from interlingua.client.events import CallCompleted, CallFailed, CallStarted
from interlingua.client.registry import ModelEntry, Registry
from interlingua.simulator import Simulator, error, latency, serve_in_thread, text
from interlingua.spec.contracts import DEFAULT
from interlingua.spec.errors import (
    ConfigurationError,
    ErrorClass,
    ServerError,
    UnsupportedError,
)
from interlingua.spec.request import Request
from simulated import DIALECTS, KEY, adapters, complete, run, settled, simulated, stream

HELLO = text("Hello from here.")


@pytest.mark.parametrize("provider", sorted(DIALECTS))
def test_by_prefix(provider):
    """`provider:model`, with the model's own name on the wire."""
    with simulated(HELLO) as peer:
        request = Request(model=f"{provider}:some-model", messages="hi")
        assert complete(peer, request).text == "Hello from here."
        assert stream(peer, request)[0][-1].response.text == "Hello from here."

        exchange = peer.app.script.received[0]
        assert exchange.dialect == DIALECTS[provider]
        assert exchange.request.model == "some-model"


def test_by_alias_and_default():
    """A registry's names, and who takes the rest."""
    entry = ModelEntry(id="deep", adapter="anthropic", wire_name="claude-x", aliases=("best",))
    with serve_in_thread(Simulator(HELLO)) as server:
        client = Client(adapters(server.url), default_provider="openai", registry=Registry([entry]))

        async def work():
            async with client:
                return [
                    (await client.complete(Request(model=name, messages="hi"))).provider
                    for name in ("best", "anything")
                ]

        assert asyncio.run(work()) == ["anthropic", "openai"]


def test_middleware_sees_both_modes():
    """With the provider and an id on the request; it may send it elsewhere."""
    seen = []

    class Watch:
        async def complete(self, request, call_next):
            seen.append((request.provider, bool(request.request_id)))
            return await call_next(request)

        async def stream(self, request, call_next):
            seen.append((request.provider, bool(request.request_id)))
            async for event in call_next(request):
                yield event

    with serve_in_thread(Simulator(HELLO)) as server:
        client = Client(adapters(server.url), default_provider="gemini", middleware=[Watch()])

        async def work():
            async with client:
                await client.complete(Request(model="m", messages="hi"))
                return [event async for event in client.stream(Request(model="m", messages="hi"))]

        assert asyncio.run(work())[-1].response.text == "Hello from here."
    assert seen == [("gemini", True), ("gemini", True)]


def test_call_events():
    """Started, then completed or failed, each attempt numbered."""
    told = []
    with simulated(error(500), HELLO, max_retries=1) as peer:
        end = peer.client.subscribe(told.append)
        complete(peer, peer.ask("openai", request_id="a"))
        end()
        complete(peer, peer.ask("openai"))

    assert [(type(event), event.attempt) for event in told] == [
        (CallStarted, 0),
        (CallFailed, 0),
        (CallStarted, 1),
        (CallCompleted, 1),
    ]
    assert {event.request_id for event in told} == {"a"}
    assert (told[1].error_class, told[1].retryable) == (ErrorClass.SERVER_ERROR, True)
    assert told[3].usage.output_tokens > 0


def test_call_events_of_streams():
    """A stream that is left is told as such."""
    told = []

    async def leave(client):
        events = client.stream(peer.ask("anthropic"))
        async for _ in events:
            break
        await events.aclose()

    with simulated(HELLO) as peer:
        peer.client.subscribe(told.append)
        stream(peer, peer.ask("anthropic"))
        run(peer, leave)

    assert [type(event) for event in told] == [CallStarted, CallCompleted, CallStarted, CallFailed]
    assert told[-1].error_class is ErrorClass.CANCELLED


@pytest.mark.parametrize("mode", [complete, stream])
def test_n_retries_are_n_plus_1_requests(mode):
    """Counted by the server; without the setting there is one."""
    for retries, requests in ((0, 1), (2, 3)):
        with simulated(error(503, retry_after=0), max_retries=retries) as peer:
            if mode is stream:
                assert isinstance(mode(peer, peer.ask("openai"))[1], ServerError)
            else:
                with pytest.raises(ServerError):
                    mode(peer, peer.ask("openai"))

            assert len(peer.app.script.received) == requests


def test_cancel_between_attempts():
    """A call that waits for its next attempt is stopped too."""

    async def work(client):
        events = []

        async def read():
            async for event in client.stream(peer.ask("openai", request_id="s")):
                events.append(event)  # noqa: PERF401 -- looked at while it runs

        reading = asyncio.ensure_future(read())
        await settled(lambda: peer.app.script.received and peer.app.script.received[0].ended)
        await asyncio.sleep(0.05)
        assert await client.cancel("s")
        await reading
        assert not await client.cancel("s")
        return events

    with simulated(error(503, retry_after=30), max_retries=3) as peer:
        events = run(peer, work)

        assert len(peer.app.script.received) == 1
    assert [event.type for event in events] == ["stream_start", "finish"]
    assert events[-1].finish_reason.reason == "cancelled"


def test_strict_clients_refuse_losses():
    """Before anything is sent."""
    with serve_in_thread(app := Simulator(HELLO)) as server:
        client = Client(adapters(server.url), strict=True)

        async def work():
            async with client:
                with pytest.raises(UnsupportedError):
                    await client.complete(Request(model="anthropic:m", messages="hi", seed=1))

        asyncio.run(work())
    assert app.script.received == ()


def test_from_env_and_from_file(tmp_path):
    """The same client from either; its repr names providers, not keys."""
    path = tmp_path / "models.yaml"
    path.write_text(
        f"adapters: {{openai: {{api_key: {KEY}}}}}\nmodels: {{openai:m: {{aliases: [a]}}}}\n",
        encoding="utf-8",
    )
    one = Client.from_env({"OPENAI_API_KEY": KEY})
    other = Client.from_file(path, {})

    assert (repr(one), repr(other)) == ("Client(openai, local)", "Client(openai)")
    assert one.explain(Request(model="x", messages="hi")).model == "x"
    assert other.explain(Request(model="a", messages="hi")).model == "m"


def test_profiles():
    """By whatever name the model is called; the neutral one of an adapter that tells nothing."""

    class Plain:
        name = "plain"

    registry = Registry([ModelEntry(id="big", adapter="anthropic", wire_name="claude-opus-4-8")])
    known = adapters("http://127.0.0.1", profile={"max_output_tokens": 5})
    client = Client({**known, "plain": Plain()}, registry=registry)

    assert not client.profile_for(Request(model="big")).sampling
    assert client.profile_for(Request(model="anthropic:claude-3")).sampling
    assert client.profile_for(Request(model="big")).max_output_tokens == 5
    assert client.profile_for(Request(model="plain:m")) is DEFAULT


def test_mistakes():
    """A default that is not there, an adapter that cannot explain."""
    with pytest.raises(ConfigurationError, match="default provider 'x' is not among"):
        Client({}, default_provider="x")

    class Bare:
        name = "bare"

    client = Client({"bare": Bare()}, default_provider="bare")
    with pytest.raises(ConfigurationError, match="'bare' cannot tell"):
        client.explain(Request(model="m", messages="hi"))


# One client, many loops.


def test_field_bug_83_repeated_runs_and_threads():
    """A loop a call, a loop a thread: nothing is closed under anyone's feet."""
    with serve_in_thread(Simulator(HELLO)) as server:
        client = Client(adapters(server.url))
        answers = []

        def ask():
            request = Request(model="openai:m", messages="hi")
            answers.append(asyncio.run(client.complete(request)).text)

        for _ in range(3):
            ask()
        threads = [threading.Thread(target=ask) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        asyncio.run(client.close())

    assert answers == ["Hello from here."] * 7


def _ask_in_child(client, answers):
    request = Request(model="openai:m", messages="hi")
    answers.put(asyncio.run(client.complete(request)).text)


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="no fork here")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_fork():
    """The child opens its own connections, and the parent's go on."""
    with serve_in_thread(Simulator(HELLO)) as server:
        client = Client(adapters(server.url))
        context = multiprocessing.get_context("fork")

        async def work():
            first = (await client.complete(Request(model="openai:m", messages="hi"))).text
            answers = context.Queue()
            child = context.Process(target=_ask_in_child, args=(client, answers))
            child.start()
            second = await asyncio.to_thread(answers.get, timeout=30)
            await asyncio.to_thread(child.join)
            third = (await client.complete(Request(model="openai:m", messages="hi"))).text
            await client.close()
            return first, second, third

        assert asyncio.run(work()) == ("Hello from here.",) * 3


def test_many_at_once():
    """A hundred calls and streams share one client."""

    async def work(client):
        asked = [peer.ask(name) for name in DIALECTS for _ in range(25)]
        return await asyncio.gather(*(client.complete(request) for request in asked))

    with simulated(HELLO + latency(first=0.01)) as peer:
        answers = run(peer, work)

    assert [answer.text for answer in answers] == ["Hello from here."] * 100
    assert len({answer.request_id for answer in answers}) == 100
