"""Adapters that are registered and unregistered while calls are under way."""

import asyncio
import threading

import pytest

from interlingua import sync
from interlingua.api.run.generate import generate
from interlingua.api.tools.tool import tool
from interlingua.client.client import Client
from interlingua.client.retry_policy import RetryPolicy
from interlingua.providers.adapter import HttpAdapter
from interlingua.spec.behaviour import Behaviour
from interlingua.spec.content import Text, ToolCall
from interlingua.spec.errors import ConfigurationError, ServerError
from interlingua.spec.events import Finish, StreamStart, TextDelta, TextEnd, TextStart
from interlingua.spec.messages import Message
from interlingua.spec.request import Request
from interlingua.spec.response import FinishReason, Response
from interlingua.transport.canned import CannedTransport
from support.patience import PATIENCE
from support.simulated import KEY, settled

ASK = Request(model="m", messages="?")


class Worker:
    """An adapter that answers with its name, when it is allowed to, and says when it is closed."""

    name = "worker"

    def __init__(self, answer, failures=0):
        self.answer = answer
        self.failures = failures
        self.gate = threading.Event()
        self.gate.set()
        self.begun = 0
        self.initialized = 0
        self.closed = 0

    async def initialize(self):
        await asyncio.sleep(0)
        self.initialized += 1

    async def close(self):
        self.closed += 1

    async def _work(self):
        self.begun += 1
        await settled(self.gate.is_set)
        if self.failures:
            self.failures -= 1
            raise ServerError("busy")
        assert not self.closed, "it was closed during a call"

    async def complete(self, request):
        await self._work()
        message = Message.assistant(self.answer)
        if request.tools and request.messages[-1].role == "user":
            message = Message(role="assistant", content=(ToolCall(id="1", name="look"),))
        return Response(message=message, finish_reason=FinishReason(reason="stop"))

    async def stream(self, _):
        await self._work()
        yield StreamStart(model="m")
        yield TextStart(id="1", index=0)
        yield TextDelta(id="1", index=0, delta=self.answer)
        await settled(self.gate.is_set)
        yield TextEnd(id="1", index=0, part=Text(self.answer))
        yield Finish(finish_reason=FinishReason(reason="stop"))


async def answer_of(client, request=ASK):
    return (await client.complete(request)).text


def test_it_is_initialized_before_its_first_call():
    """Once, by `register`; if that fails, nothing changes."""

    class Broken(Worker):
        async def initialize(self):
            raise ConfigurationError("no licence")

    async def work():
        new = Worker("new")
        client = Client({"x": Worker("old")})
        await client.register("y", new)
        assert new.initialized == 1
        assert await answer_of(client, Request(model="y:m", messages="?")) == "new"
        with pytest.raises(ConfigurationError, match="no licence"):
            await client.register("x", Broken("broken"))
        with pytest.raises(ConfigurationError, match="No API key"):
            await client.register("openai", HttpAdapter("openai"))
        assert await answer_of(client, Request(model="x:m", messages="?")) == "old"
        assert new.initialized == 1
        await client.close()
        assert new.closed == 1

    asyncio.run(work())


@pytest.mark.parametrize("is_stream", [False, True])
@pytest.mark.parametrize("replaces", [True, False])
def test_a_call_ends_on_the_adapter_it_began_with(is_stream, replaces):
    """Also its retries; later calls are routed anew; the old adapter is closed after the call."""

    async def ask(client):
        policy = RetryPolicy(max_retries=2, base_delay=0)
        if not is_stream:
            return (await client.complete(ASK, retry=policy)).text
        events = [event async for event in client.stream(ASK, retry=policy)]
        return events[-1].response.text

    async def work():
        old, new, other = Worker("old", failures=2), Worker("new"), Worker("other")
        old.gate.clear()
        client = Client({"x": old, "z": other, "w": Worker("w")}, default_provider="x")
        call = asyncio.create_task(ask(client))
        await settled(lambda: old.begun)
        if replaces:
            await client.register("x", new)
            assert await ask(client) == "new"
        else:
            await client.unregister("x")
            with pytest.raises(ConfigurationError):
                await ask(client)
            assert await answer_of(client, Request(model="z:m", messages="?")) == "other"
        assert old.closed == 0
        old.gate.set()
        assert await call == "old"
        assert old.begun == 3
        await settled(lambda: old.closed)
        await client.close()
        assert (old.closed, other.closed) == (1, 1)

    asyncio.run(work())


def test_without_calls_it_is_closed_at_once():
    """When `unregister` returns."""

    async def work():
        worker = Worker("a")
        client = Client({"x": worker})
        assert await answer_of(client) == "a"
        await client.unregister("x")
        assert worker.closed == 1
        with pytest.raises(ConfigurationError, match="it was unregistered"):
            await answer_of(client, Request(model="x:m", messages="?"))
        with pytest.raises(ConfigurationError, match="'x' is not configured"):
            await client.unregister("x")
        await client.close()
        assert worker.closed == 1

    asyncio.run(work())


def test_a_client_that_closes_does_not_wait_for_them():
    """It ends their calls and closes them, once."""

    async def work():
        old = Worker("old")
        old.gate.clear()
        client = Client({"x": old})
        call = asyncio.create_task(answer_of(client))
        await settled(lambda: old.begun)
        await client.unregister("x")
        await client.close()
        with pytest.raises(Exception, match="closed"):
            await call
        await asyncio.sleep(0)
        assert old.closed == 1

    asyncio.run(work())


def test_a_tool_may_unregister_its_own_provider():
    """It does not wait for its own run, whose next step is routed anew."""

    async def work():
        old, new = Worker("old"), Worker("new")
        client = Client({"x": old}, default_provider="x")

        @tool
        async def look() -> str:
            """Look."""
            await client.register("x", new)
            return "seen"

        result = await generate("m", "?", tools=[look], client=client)
        assert result.text == "new"
        await settled(lambda: old.closed)
        await client.close()

    asyncio.run(asyncio.wait_for(work(), PATIENCE))


def test_clients_made_from_it_follow():
    """Those of `with_middleware` and `with_access`, except for what they have of their own."""

    async def pass_on(request, call_next):
        return await call_next(request)

    async def work():
        house = HttpAdapter("openai", KEY, transport=CannedTransport([]))
        client = Client({"x": Worker("old"), "openai": house})
        layered = client.with_middleware(pass_on)
        own = client.with_access("openai:gpt-5.2", api_key="sk-of-a-customer")
        twins = (layered, own, own.with_middleware(pass_on))
        x = Request(model="x:m", messages="?")
        for twin in twins:
            assert await answer_of(twin, x) == "old"
        await client.register("x", Worker("new"))
        for twin in twins:
            assert await answer_of(twin, x) == "new"
        await layered.register("y", Worker("more"))
        assert await answer_of(client, Request(model="y:m", messages="?")) == "more"
        await client.unregister("openai")
        with pytest.raises(ConfigurationError):
            layered.adapter("openai")
        assert own.config("openai").api_key
        client.default_provider = "y"
        for twin in (client, *twins):
            assert await answer_of(twin) == "more"
        await client.close()

    asyncio.run(work())


def test_connections_that_another_adapter_uses_stay_open():
    """Two adapters may share a transport; it is closed with the client."""

    class Counted(CannedTransport):
        closed = 0

        async def close(self):
            Counted.closed += 1

    async def work():
        shared = Counted([])
        client = Client({
            "a": HttpAdapter("openai", KEY, transport=shared),
            "b": HttpAdapter("openai", KEY, transport=shared),
        })  # fmt: skip
        await client.register("a", HttpAdapter("anthropic", KEY))
        assert Counted.closed == 0
        await client.unregister("b")
        assert Counted.closed == 1
        await client.close()
        assert Counted.closed == 2  # the first of the two

    asyncio.run(work())


def test_the_default_provider_may_be_switched():
    """Later calls without another route go there; None for no default."""

    async def work():
        client = Client({"a": Worker("of a"), "b": Worker("of b")}, default_provider="a")
        assert (client.default_provider, await answer_of(client)) == ("a", "of a")
        client.default_provider = "b"
        assert (client.default_provider, await answer_of(client)) == ("b", "of b")
        client.default_provider = None
        with pytest.raises(ConfigurationError, match="Unknown provider for 'm'"):
            await answer_of(client)
        with pytest.raises(ConfigurationError, match="'c' is not configured"):
            client.default_provider = "c"
        await client.unregister("b")
        assert client.default_provider is None

    asyncio.run(work())


def test_the_environment_does_not_bring_it_back():
    """What was unregistered stays so until it is registered again."""

    async def work():
        client = Client.from_env({"OPENAI_API_KEY": "k"})
        assert client.profile_for(Request(model="openai:gpt-5.2", messages="?"))
        await client.unregister("openai")
        with pytest.raises(ConfigurationError, match="'openai' is not configured"):
            client.profile_for(Request(model="openai:gpt-5.2", messages="?"))
        await client.register(
            "openai", HttpAdapter("openai", KEY), behaviour=Behaviour(max_tools=5)
        )
        assert client.config("openai").behaviour.max_tools == 5

    asyncio.run(work())


@pytest.mark.parametrize("is_stream", [False, True])
@pytest.mark.parametrize("others", [("b",), ("b", "c")])
def test_what_an_unregistered_adapter_served_is_refused(others, is_stream):
    """Its prefix, and the names that it served as the default, go to no adapter that is left."""

    async def ask(client, model):
        request = Request(model=model, messages="?")
        if is_stream:
            return [event async for event in client.stream(request)]
        return await client.complete(request)

    async def work():
        adapters = {name: Worker(f"of {name}") for name in ("mine", *others)}
        client = Client(adapters, default_provider="mine")
        twin = client.with_middleware()
        await client.unregister("mine")
        for each in (client, twin):
            for model in ("mine:x", "x", "gpt-5.2", "mine:"):
                with pytest.raises(ConfigurationError, match="was unregistered"):
                    await ask(each, model)
            await ask(each, "b:x")
        client.default_provider = "b"
        await ask(client, "x")
        with pytest.raises(ConfigurationError, match="was unregistered"):
            await ask(client, "mine:x")
        await client.register("mine", Worker("again"))
        await ask(client, "mine:x")

    asyncio.run(work())


def test_the_last_adapter_of_several_is_no_default():
    """Without a choice, names that none of several adapters had are not for the one left."""

    async def work():
        keys = {"OPENAI_API_KEY": "k", "ANTHROPIC_API_KEY": "k"}
        by_hand = Client({"a": Worker("of a"), "b": Worker("of b")})
        for client, name in ((by_hand, "a"), (Client.from_env(keys), "anthropic")):
            await client.unregister(name)
            with pytest.raises(ConfigurationError, match="Unknown provider for 'my-model'"):
                client.address(Request(model="my-model"))
        replaced = Client.from_env({"OPENAI_API_KEY": "k"})
        await replaced.unregister("openai")
        await replaced.register("groq", HttpAdapter("groq", "k"))
        with pytest.raises(ConfigurationError, match="Unknown provider for 'my-model'"):
            replaced.address(Request(model="my-model"))

    asyncio.run(work())


def test_a_default_that_is_registered_again_is_the_default():
    """The caller chose a name; an adapter of that name serves the same requests again."""

    async def work():
        client = Client({"x": Worker("old"), "y": Worker("y")}, default_provider="x")
        await client.unregister("x")
        await client.register("x", Worker("new"))
        assert (client.default_provider, await answer_of(client)) == ("x", "new")

    asyncio.run(work())


def test_many_at_once():
    """Calls and changes in any order: each call is answered by one that was registered."""

    async def work():
        client = Client({"x": Worker("0")}, default_provider="x")
        workers = [Worker(str(number)) for number in range(1, 30)]

        async def change():
            for worker in workers:
                await client.register("x", worker)
                await asyncio.sleep(0)

        calls = [asyncio.create_task(answer_of(client)) for _ in range(20)]
        changing = asyncio.create_task(change())
        for _ in range(200):
            calls.append(asyncio.create_task(answer_of(client)))
            await asyncio.sleep(0)
        await changing
        answers = await asyncio.gather(*calls)
        assert set(answers) <= {str(number) for number in range(30)}
        assert await answer_of(client) == "29"
        await settled(lambda: all(worker.closed == 1 for worker in workers[:-1]))
        await client.close()
        assert workers[-1].closed == 1

    asyncio.run(work())


def test_from_blocking_code_and_another_thread():
    """A call that another thread waits for ends on its adapter."""
    old, new = Worker("old"), Worker("new")
    old.gate.clear()
    answers = []
    with sync.Client({"x": old}) as client:
        thread = threading.Thread(target=lambda: answers.append(client.complete(ASK).text))
        thread.start()
        asyncio.run(settled(lambda: old.begun))
        client.register("x", new)
        assert client.complete(ASK).text == "new"
        assert old.closed == 0
        old.gate.set()
        thread.join()
        assert answers == ["old"]
        asyncio.run(settled(lambda: old.closed))
        client.unregister("x")
        assert client.default_provider is None
        with pytest.raises(ConfigurationError):
            client.adapter("x")
    assert new.closed == 1


def test_calls_of_another_event_loop():
    """A loop that ends first leaves the adapter to `close`."""
    old = Worker("old")
    old.gate.clear()
    client = Client({"x": old})
    answers = []
    thread = threading.Thread(target=lambda: answers.append(asyncio.run(answer_of(client))))
    thread.start()

    async def remove():
        await settled(lambda: old.begun)
        await client.unregister("x")

    asyncio.run(remove())
    assert old.closed == 0
    old.gate.set()
    thread.join()
    asyncio.run(client.close())
    assert (answers, old.closed) == (["old"], 1)
