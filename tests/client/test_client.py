"""The client: routes, middleware, call events, life."""

import asyncio
import multiprocessing
import threading

import pytest
from msgspec.structs import replace

from interlingua import sync
from interlingua.client.call_events import CallCompleted, CallFailed, CallStarted
from interlingua.client.client import Client
from interlingua.client.registry import ModelEntry, Registry
from interlingua.client.retry_policy import RetryPolicy
from interlingua.providers.adapter import HttpAdapter, OpenAICompatibleAdapter
from interlingua.simulator import Simulator, error, latency, serve_in_thread, text
from interlingua.spec.contracts import NEUTRAL_PROFILE
from interlingua.spec.errors import (
    AbortError,
    ConfigurationError,
    ErrorClass,
    ServerError,
    UnsupportedError,
)
from interlingua.spec.events import StreamStart
from interlingua.spec.request import Request
from interlingua.transport.canned import CannedReply, CannedTransport
from support import virtual_time
from support.patience import PATIENCE
from support.scripted_adapter import ScriptedAdapter, says
from support.simulated import DIALECTS, KEY, adapters, complete, run, settled, simulated, stream
from support.warning_codes import codes

HELLO = text("Hello from here.")


class Silent:
    """The least that is an adapter; it is never asked."""

    async def complete(self, _):
        raise AssertionError

    def stream(self, _):
        raise AssertionError


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


@pytest.mark.parametrize("mode", ["complete", "stream"])
def test_an_adapter_that_cannot_cancel_is_cancelled_too(mode):
    """The scope of the call ends, whatever the adapter knows."""

    class Plain:
        name = "plain"

        async def complete(self, _):
            await asyncio.sleep(60)

        async def stream(self, _):
            yield StreamStart()
            await asyncio.sleep(60)

    async def work():
        client = Client({"plain": Plain()})
        request = Request(model="plain:m", messages="hi", request_id="r")
        loop = asyncio.get_running_loop()
        loop.call_later(0.02, lambda: asyncio.run_coroutine_threadsafe(client.cancel("r"), loop))
        if mode == "complete":
            with pytest.raises(AbortError):
                await client.complete(request)
            return "cancelled"
        return [event async for event in client.stream(request)][-1].finish_reason.reason

    assert asyncio.run(asyncio.wait_for(work(), PATIENCE)) == "cancelled"


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, ("openai", "wire")),
        ({"provider": None, "model": "gemini:wire2"}, ("gemini", "wire2")),
        ({"provider": None, "model": "best"}, ("anthropic", "claude-x")),
        ({"provider": "anthropic", "model": "deep"}, ("anthropic", "claude-x")),
        ({"provider": "gemini"}, ("gemini", "wire")),
        ({"provider": "gemini", "model": "gemini:wire2"}, ("gemini", "wire2")),
        ({"provider": None, "model": "house"}, ("openai", "wire")),  # and `openai:wire` is not it
    ],
)
def test_middleware_may_send_it_elsewhere(changes, expected):
    """By any name that a request may have; what was found once is not looked up again."""
    entries = [
        ModelEntry(
            id="anthropic:deep", adapter="anthropic", wire_name="claude-x", aliases=("best",)
        ),
        ModelEntry(id="house", adapter="openai", wire_name="wire"),
        ModelEntry(id="openai:wire", adapter="openai", wire_name="another"),
    ]

    class Reroute:
        async def complete(self, request, call_next):
            return await call_next(replace(request, **changes))

        async def stream(self, request, call_next):
            async for event in call_next(replace(request, **changes)):
                yield event

    with serve_in_thread(app := Simulator(HELLO)) as server:
        client = Client(adapters(server.url), middleware=[Reroute()], registry=Registry(entries))

        async def work():
            async with client:
                whole = await client.complete(Request(model="house", messages="hi"))
                request = Request(model="house", messages="hi")
                *_, last = [event async for event in client.stream(request)]
                return whole.provider, last.response.provider

        assert asyncio.run(work()) == (expected[0],) * 2
        assert [seen.request.model for seen in app.script.received] == [expected[1]] * 2


@pytest.mark.usefixtures("no_backoff")
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

    assert [type(event) for event in told] == [CallStarted, CallCompleted] * 2
    assert told[-1].finish_reason == "cancelled"


def test_leaving_at_the_end_is_no_failure():
    """An attempt has one end, also for who leaves the loop at the last event."""
    told = []

    async def leave(client):
        events = client.stream(peer.ask("anthropic"))
        async for event in events:
            if event.type == "finish":
                break
        await events.aclose()

    with simulated(HELLO) as peer:
        peer.client.subscribe(told.append)
        run(peer, leave)

    assert [type(event) for event in told] == [CallStarted, CallCompleted]


def test_who_tries_again_itself_makes_one_request():
    """The policy of the call goes before what the adapter is set to, in both modes."""
    once = RetryPolicy(max_retries=0)

    async def work(client):
        with pytest.raises(ServerError):
            await client.complete(peer.ask("openai"), retry=once)
        with pytest.raises(ServerError):
            await anext(client.stream(peer.ask("openai"), retry=once))

    with simulated(error(503, retry_after=0), max_retries=2) as peer:
        run(peer, work)

        assert len(peer.app.script.received) == 2


def test_closing_ends_the_waits():
    """A call that waits for its next attempt does not outlive its client."""

    async def work(client):
        waiting = asyncio.ensure_future(client.complete(peer.ask("openai")))
        await settled(lambda: peer.app.script.received and peer.app.script.received[0].ended)
        await asyncio.sleep(0.05)
        await client.close()
        with pytest.raises(AbortError):
            await asyncio.wait_for(waiting, PATIENCE)

    with simulated(error(503, retry_after=30), max_retries=3) as peer:
        run(peer, work)

        assert len(peer.app.script.received) == 1


def test_all_adapters_are_closed():
    """One without `close`, and one that fails, do not keep the others from it."""

    class Bare(Silent):
        name = "bare"

    class Held(Bare):
        is_closed = False

        async def close(self):
            self.is_closed = True
            raise OSError("stuck")

    class Plain(Bare):
        is_closed = False

        def close(self):  # not async
            self.is_closed = True

    class Broken(Bare):
        def close(self):
            raise ValueError("broken")

    closing = [Held(), Plain(), Held()]
    adapters = dict(zip("abc", closing, strict=True))
    client = Client({"bare": Bare(), "held": closing[0], "broken": Broken(), **adapters})
    with pytest.raises(OSError, match="stuck"):
        asyncio.run(client.close())

    assert all(adapter.is_closed for adapter in closing)
    asyncio.run(Client({"bare": Bare()}).close())


# The beginning of adapters.


class Starting(HttpAdapter):
    """Counts how often it is initialized; fails as often as it is told."""

    def __init__(self, *args, failures=0, **settings):
        super().__init__(*args, **settings)
        self.log = []
        self.failures = failures

    async def initialize(self):
        self.log.append("begin")
        await asyncio.sleep(0.01)
        if self.failures:
            self.failures -= 1
            raise OSError("not yet")
        self.log.append("end")


class StartingCustom:
    """An adapter that is no `HttpAdapter`, and whose `initialize` is not async."""

    name = "custom"

    def __init__(self, inner):
        self.inner = inner
        self.log = []

    def initialize(self):
        self.log += ["begin", "end"]

    async def complete(self, request):
        return await self.inner.complete(request)

    def stream(self, request):
        return self.inner.stream(request)

    async def list_models(self):
        return []


def starting(kind, **settings):
    house = {"base_url": "http://house.example/v1", "transport": CannedTransport(lambda _: CHAT)}
    if kind == "custom":
        return StartingCustom(HttpAdapter("openai_compatible", **house))
    return Starting("openai_compatible", **house, **settings)


async def use(client, mode):
    request = Request(model="house:m", messages="hi")
    if mode == "complete":
        return await client.complete(request)
    if mode == "stream":
        return [event async for event in client.stream(request)]
    return await client.perform("house", "list_models")


@pytest.mark.parametrize("kind", ["row", "custom"])
@pytest.mark.parametrize("modes", [["complete"] * 5, ["stream"] * 5, ["complete", "stream"]])
def test_initialize_is_called_once(kind, modes):
    """Before the first call, also if many calls begin at once, and never again."""
    adapter = starting(kind)
    client = Client({"house": adapter})

    async def work():
        await asyncio.gather(*(use(client, mode) for mode in modes))
        for mode in modes:
            await use(client, mode)

    asyncio.run(work())
    assert adapter.log == ["begin", "end"]
    asyncio.run(work())
    assert adapter.log == ["begin", "end"]


def test_initialize_is_called_before_an_operation():
    """An operation is a call too."""
    adapter = starting("custom")
    asyncio.run(use(Client({"house": adapter}), "list_models"))

    assert adapter.log == ["begin", "end"]


def test_one_of_many_threads_initializes_the_adapter():
    """Each thread has its own event loop, and one of them initializes the adapter."""
    adapter = starting("row")
    client = Client({"house": adapter})
    threads = [
        threading.Thread(target=lambda: asyncio.run(use(client, "complete"))) for _ in "abcd"
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert adapter.log == ["begin", "end"]


def test_initialize_that_fails_is_tried_again():
    """The call fails, and the next one tries again; so do calls that waited."""
    adapter = starting("row", failures=1)
    client = Client({"house": adapter})

    async def work():
        return await asyncio.gather(
            *(use(client, "complete") for _ in "ab"), return_exceptions=True
        )

    first, second = asyncio.run(work())
    assert isinstance(first, OSError)
    assert second.text == "hi"
    assert adapter.log == ["begin", "begin", "end"]


def test_a_call_that_waits_for_initialize_may_be_cancelled():
    """The others, and the one who initializes, go on."""
    adapter = starting("row")
    client = Client({"house": adapter})

    async def work():
        first, second = (asyncio.ensure_future(use(client, "complete")) for _ in "ab")
        await asyncio.sleep(0.005)
        second.cancel()
        return await asyncio.gather(first, second, return_exceptions=True)

    first, second = virtual_time.run(work())
    assert first.text == "hi"
    assert isinstance(second, asyncio.CancelledError)
    assert adapter.log == ["begin", "end"]


@pytest.mark.parametrize("mode", [complete, stream])
@pytest.mark.usefixtures("no_backoff")
def test_n_retries_are_n_plus_one_requests(mode):
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


@pytest.mark.parametrize("on_loss", ["content", "warn", "strict"])
def test_on_loss_of_a_client(on_loss):
    """The client's setting holds for requests that have none; the request's own wins."""
    request = Request(model="anthropic:m", messages="hi", seed=1)
    with serve_in_thread(Simulator(HELLO)) as server:
        client = Client(adapters(server.url), on_loss=on_loss)

        async def work():
            async with client:
                if on_loss == "strict":
                    with pytest.raises(UnsupportedError, match="seed_dropped"):
                        await client.complete(request)
                return await client.complete(replace(request, on_loss="content"))

        response = asyncio.run(work())
    assert codes(response) == ["seed_dropped"]


def test_strict_clients_need_strict_adapters():
    """One that does not know strictness is told of when the client is made."""

    class Plain:
        name = "plain"

        async def complete(self, request): ...

        def stream(self, request): ...

    class Knowing(Plain):
        async def complete(self, request, *, strict=False): ...

        def stream(self, request, **settings): ...

    with pytest.raises(
        ConfigurationError, match="`complete` has a parameter `strict`; the adapter 'p' has none"
    ):
        Client({"p": Plain()}, strict=True)
    Client({"p": Plain()})
    Client({"p": Knowing()}, strict=True)


def test_models_of_all_providers(caplog):
    """One that fails is logged and left out; if all do, the first error is raised."""

    def client(**statuses):
        return Client(
            {
                name: HttpAdapter("openai", KEY, name=name, transport=CannedTransport([reply]))
                for name, status in statuses.items()
                for reply in [CannedReply(status=status, body=b'{"data": [{"id": "m"}]}')]
            }
        )

    found = asyncio.run(client(a=500, b=200, c=401).list_models())

    assert [(model.provider, model.id) for model in found] == [("b", "m")]
    assert "Cannot list the models of a" in caplog.text
    assert "Cannot list the models of c" in caplog.text
    with pytest.raises(ServerError) as caught:
        asyncio.run(client(a=500, b=401).list_models())
    assert caught.value.provider == "a"
    with pytest.raises(ConfigurationError, match="'x' is not configured"):
        asyncio.run(client(a=200).list_models("x"))
    assert asyncio.run(Client({}).list_models()) == []


def test_the_registry_can_be_read(tmp_path):
    """Tiers and which models may be delegated to are for those who route."""
    path = tmp_path / "models.yaml"
    path.write_text(
        "adapters: {openai: {}}\n"
        "models: {openai:m: {aliases: [a], tier: deep, can_delegate: true}, openai:n: {}}\n",
        encoding="utf-8",
    )
    registry = Client.from_file(path, {}).registry

    assert registry.find("a").can_delegate
    delegates = [entry.id for entry in registry.models.values() if entry.can_delegate]
    assert delegates == ["openai:m"]
    assert registry.models["openai:m"].tier == "deep"
    assert Client({}).registry.models == {}


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


def test_the_model_on_this_machine_answers_only_to_its_name():
    """Else it would answer for whatever model was asked for, and nobody would know."""
    client = Client.from_env({})

    assert client.explain(Request(model="local:smollm2", messages="hi")).model == "smollm2"
    with pytest.raises(ConfigurationError, match="'gpt-x' is a model of openai"):
        client.explain(Request(model="gpt-x", messages="hi"))


def test_profiles():
    """By whatever name the model is called; the neutral one of an adapter that tells nothing."""

    class Plain(Silent):
        name = "plain"

    registry = Registry([ModelEntry(id="big", adapter="anthropic", wire_name="claude-opus-4-8")])
    known = adapters("http://127.0.0.1", profile={"max_output_tokens": 5})
    client = Client({**known, "plain": Plain()}, registry=registry)

    assert not client.profile_for(Request(model="big")).sampling
    assert client.profile_for(Request(model="anthropic:claude-3")).sampling
    assert client.profile_for(Request(model="big")).max_output_tokens == 5
    assert client.profile_for(Request(model="plain:m")) is NEUTRAL_PROFILE


@pytest.mark.parametrize("is_list", [True, False])
def test_more_middleware_may_be_a_list(is_list):
    """`with_middleware` takes layers one by one or as a list, also in the blocking client."""
    seen = []

    def layer(name):
        async def note(request, call_next):
            seen.append(name)
            return await call_next(request)

        return note

    layers = [layer("first"), layer("second")]
    more = [layers] if is_list else layers
    client = Client({"a": ScriptedAdapter(says("Hi."))})
    asyncio.run(client.with_middleware(*more).complete(Request(model="m", messages="?")))
    blocking = sync.Client({"a": ScriptedAdapter(says("Hi."))})
    with blocking.with_middleware(*more) as twin:
        twin.complete(Request(model="m", messages="?"))

    assert seen == ["first", "second"] * 2
    with pytest.raises(ConfigurationError, match="'logging'"):
        client.with_middleware("logging")


def test_a_default_that_is_not_there_is_an_error():
    """The error names it."""
    with pytest.raises(ConfigurationError, match="Provider 'x' is not configured"):
        Client({}, default_provider="x")


# One client, many loops.


def test_one_client_serves_repeated_loops_and_threads():
    """A loop a call, a loop a thread: nothing is closed under anyone's feet (field bug 83)."""
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
    """More than a hundred calls share one client."""

    async def work(client):
        asked = [peer.ask(name) for name in DIALECTS for _ in range(25)]
        return await asyncio.gather(*(client.complete(request) for request in asked))

    with simulated(HELLO + latency(first=0.01)) as peer:
        answers = run(peer, work)

    assert [answer.text for answer in answers] == ["Hello from here."] * 25 * len(DIALECTS)
    assert len({answer.request_id for answer in answers}) == len(answers)


# Names of adapters.


def named_by_key(reply):
    """Two adapters in a client, neither under its own name: a row and a custom adapter."""

    class Custom:
        name = "other"
        provider = "not a row"

        async def complete(self, request):
            return await row.complete(replace(request, provider=None))

        def stream(self, request):
            return row.stream(replace(request, provider=None))

    row = OpenAICompatibleAdapter(
        base_url="http://house.example/v1", transport=CannedTransport(lambda _: reply)
    )
    return row, Client({"house": row, "mine": Custom()})


CHAT = CannedReply(
    headers={"content-type": "application/json"},
    body=b'{"id": "c", "model": "m", "choices": [{"index": 0, "finish_reason": "stop", '
    b'"message": {"role": "assistant", "content": "hi"}}]}',
)


@pytest.mark.parametrize("key", ["house", "mine"])
def test_an_adapter_is_known_by_its_key(key):
    """In responses of both modes, attempts, call events and plans; its own name stays."""
    row, client = named_by_key(CHAT)
    told = []
    client.subscribe(told.append)

    async def work():
        request = Request(model=f"{key}:m", messages="hi")
        whole = await client.complete(request)
        events = [event async for event in client.stream(request)]
        return whole, events

    whole, events = asyncio.run(work())

    assert (whole.provider, whole.attempts[0].provider) == (key, key)
    assert (events[0].provider, events[-1].response.provider) == (key, key)
    assert {event.provider for event in told} == {key}
    assert row.name == "openai_compatible"
    assert client.explain(Request(model="house:m", messages="hi")).provider == "house"


@pytest.mark.parametrize("mode", ["complete", "stream", "list_models"])
def test_errors_name_an_adapter_by_its_key(mode):
    """What an error names is what the caller wrote."""
    _, client = named_by_key(CannedReply(status=500, body=b'{"error": {"message": "no"}}'))

    async def work():
        request = Request(model="house:m", messages="hi")
        if mode == "stream":
            return [event async for event in client.stream(request)]
        if mode == "list_models":
            return await client.list_models("house")
        return await client.complete(request)

    with pytest.raises(ServerError, match=r"^house") as caught:
        asyncio.run(work())

    assert caught.value.provider == "house"
