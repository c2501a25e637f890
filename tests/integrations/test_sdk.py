"""The vendors' own SDKs in the process of the models: any SDK, any upstream, async and blocking."""

import asyncio
import gc
import threading

import openai
import pytest

from interlingua import Client, set_default_client, sync
from interlingua.integrations import sdk
from interlingua.simulator import Simulator, error, error_event, latency, scripted, text
from interlingua.transport import AsgiTransport
from support import virtual_time
from support.blocking import interrupted, until
from support.oracles_errors import VENDORS as VENDOR_ERRORS
from support.oracles_errors import raised_for
from support.simulated import DIALECTS, MODELS, SLOW, adapters, settled
from support.vendor_clients import VENDORS, in_process, in_process_async
from support.vendor_loops import RESULTS, check_loop, looping

WAYS = ("complete", "stream")
KINDS = ("async", "blocking")
SECRET = b"a secret of this test only"
NEVER = text("never") + latency(first=3600)
HELLO = [{"role": "user", "content": "Hello"}]


def models(app):
    """A client whose providers are this simulator, in this process."""
    return Client(adapters("http://simulator.invalid", transport=AsgiTransport(app)))


def to(provider):
    """Routes that send every name to a model of this provider."""
    return {"*": f"{provider}:{MODELS[provider]}"}


def agent_of(kind, vendor, app, provider="anthropic", **settings):
    """A vendor's client with this simulator behind it."""
    make, connect = {
        "async": (sdk.http_client, in_process_async),
        "blocking": (sdk.blocking_http_client, in_process),
    }[kind]
    return VENDORS[vendor](connect(vendor, make(models(app), to(provider), **settings)))


def call(agent, kind, way):
    """What the agent says, asked in one of four ways."""
    if kind == "blocking":
        return getattr(agent, way)()
    return asyncio.run(getattr(agent, f"{way}_async")())


def gone(app):
    """Whether the upstream has seen its only client go away."""
    (exchange,) = app.script.received
    return exchange.disconnected is not None


def gone_at_last(app):
    """The same, after the garbage was collected: some generators of the SDKs are in cycles."""
    gc.collect()
    return gone(app)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("upstream", DIALECTS)
@pytest.mark.parametrize("vendor", VENDORS)
def test_a_tool_loop(vendor, upstream, way, kind):
    """Two calls at once, their results, the answer; the upstream gets its own thinking back."""
    simulator = looping(strict=True)
    agent = agent_of(kind, vendor, simulator, upstream, secret=SECRET)
    asked = call(agent, kind, way)
    agent.give(RESULTS)
    answer = call(agent, kind, way)

    check_loop(simulator, vendor, DIALECTS[upstream], asked, answer)


@pytest.mark.parametrize("upstream", DIALECTS)
@pytest.mark.parametrize("vendor", VENDORS)
def test_events_arrive_as_they_come_and_leaving_early_ends_the_call(vendor, upstream):
    """The first event is there although the upstream never ends; closing reaches the upstream."""
    app = Simulator(SLOW)

    async def leave():
        stream = await agent_of("async", vendor, app, upstream).open()
        await anext(aiter(stream))
        assert not gone(app)
        if vendor == "gemini_generate":  # whose generator leaves what is inside to the collector
            await stream.aclose()
            await settled(lambda: gone_at_last(app))
        else:
            await stream.close()
            assert gone(app)

    asyncio.run(leave())


@pytest.mark.parametrize("upstream", DIALECTS)
@pytest.mark.parametrize("vendor", VENDORS)
def test_the_same_in_a_thread_that_waits(vendor, upstream):
    """A blocking stream gives its first event before the last one, and closing it is noticed."""
    app = Simulator(SLOW)
    stream = agent_of("blocking", vendor, app, upstream).open()
    next(iter(stream))

    assert not gone(app)
    stream.close()
    until(lambda: gone_at_last(app))


@pytest.mark.parametrize("vendor", VENDORS)
def test_a_lost_stream_ends_the_call(vendor):
    """A program that breaks out of a loop and forgets the stream pays for no more words."""
    app = Simulator(SLOW)

    async def lose():
        async for _ in await agent_of("async", vendor, app).open():
            break
        await settled(lambda: gone_at_last(app))

    asyncio.run(lose())


@pytest.mark.parametrize("vendor", VENDORS)
def test_a_lost_blocking_stream_ends_the_call(vendor):
    """The same where no event loop would collect it."""
    app = Simulator(SLOW)
    for _ in agent_of("blocking", vendor, app).open():
        break
    until(lambda: gone_at_last(app))


@pytest.mark.parametrize("turn", [NEVER, SLOW], ids=["before its first byte", "in the middle"])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("vendor", VENDORS)
def test_cancelling_ends_the_call(vendor, way, turn):
    """A task that is cancelled closes the connection to the upstream, whenever that is."""
    app = Simulator(turn)

    async def cancel():
        agent = agent_of("async", vendor, app)
        task = asyncio.ensure_future(getattr(agent, f"{way}_async")())
        await settled(lambda: app.script.received)
        await asyncio.sleep(0.02)  # anywhere: what follows must hold at every moment
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await settled(lambda: gone(app))

    asyncio.run(cancel())


@pytest.mark.parametrize("way", WAYS)
def test_an_interrupt_ends_a_blocking_call(way):
    """Ctrl-C is raised at once, and reaches the upstream."""
    app = Simulator(NEVER)
    agent = agent_of("blocking", "openai_chat", app)
    with interrupted() as interrupt:
        interrupt()
        getattr(agent, way)()
    until(lambda: not app.script.received or gone(app))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("status", [400, 404, 429])
@pytest.mark.parametrize("vendor", VENDORS)
def test_errors_are_those_of_the_sdk(vendor, status, way, kind):
    """
    An error of the upstream has the class that the SDK has for it, and the upstream's words.

    A refused key is another matter: it is not the key that the SDK was given.
    """
    app = Simulator(error(status, message="That did not work.", retry_after=3600))
    with pytest.raises(raised_for(vendor, status), match="That did not work"):
        call(agent_of(kind, vendor, app), kind, way)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("vendor", VENDORS)
def test_an_error_in_the_middle_of_a_stream(vendor, kind):
    """It is told in the stream, and the SDK raises it."""
    app = Simulator(text("Some words. ") + error_event(400, "It broke."))
    with pytest.raises(VENDOR_ERRORS, match=r"It broke"):
        call(agent_of(kind, vendor, app), kind, "stream")


@pytest.mark.parametrize("vendor", ["openai_chat", "openai_responses", "anthropic_messages"])
def test_the_timeout_of_an_async_sdk(vendor):
    """`timeout=` counts as over a network, in the SDK's own class."""
    app = Simulator(NEVER)

    async def wait():
        agent = agent_of("async", vendor, app)
        agent.client = agent.client.with_options(timeout=7)
        began = asyncio.get_running_loop().time()
        with pytest.raises(VENDOR_ERRORS, match=r"(?i)timed out"):
            await agent.complete_async()
        assert asyncio.get_running_loop().time() - began == pytest.approx(7, abs=0.1)
        await settled(lambda: gone(app))

    virtual_time.run(wait())


def test_the_timeout_of_a_blocking_sdk():
    """It ends the wait for a model that never answers."""
    app = Simulator(NEVER)
    agent = agent_of("blocking", "openai_chat", app)
    agent.client = agent.client.with_options(timeout=0.05)
    with pytest.raises(openai.APITimeoutError):
        agent.complete()
    until(lambda: not app.script.received or gone(app))


@pytest.mark.parametrize("vendor", VENDORS)
def test_fifty_at_once(vendor):
    """Fifty answers that take a second each take a second together."""
    app = Simulator(text("Hello.") + latency(first=1))

    async def all_at_once():
        loop = asyncio.get_running_loop()
        client = agent_of("async", vendor, app).client
        agents = [VENDORS[vendor](client) for _ in range(50)]
        await agents.pop().complete_async()  # loads what the first call loads
        began = loop.time()
        ways = ("complete_async", "stream_async")
        calls = [getattr(agent, ways[n % 2])() for n, agent in enumerate(agents)]
        answers = await asyncio.gather(*calls)
        return [answer.text for answer in answers], loop.time() - began

    answers, seconds = virtual_time.run(all_at_once())
    assert answers == ["Hello."] * 49
    assert seconds < 2


@pytest.mark.parametrize("vendor", VENDORS)
def test_fifty_threads(vendor):
    """Fifty threads read streams at the same time through one blocking client."""
    app = Simulator(SLOW)
    client = agent_of("blocking", vendor, app).client
    all_here, ended = threading.Barrier(50, timeout=50), []

    def read():
        stream = VENDORS[vendor](client).open()
        next(iter(stream))
        all_here.wait()
        stream.close()
        ended.append(True)

    threads = [threading.Thread(target=read) for _ in range(50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(ended) == 50
    until(lambda: all(each.disconnected is not None for each in app.script.received))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("vendor", VENDORS)
def test_one_async_client_in_many_event_loops(vendor, way):
    """It works in repeated `asyncio.run`, also in threads at the same time."""
    client = agent_of("async", vendor, Simulator(text("Hello."))).client
    said = []

    def ask():
        for _ in range(3):
            agent = VENDORS[vendor](client)
            said.append(asyncio.run(getattr(agent, f"{way}_async")()).text)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert said == ["Hello."] * 12


def test_closing_the_sdk_ends_its_open_streams():
    """As a pool closes its connections."""
    app = Simulator(SLOW)

    async def close():
        agent = agent_of("async", "openai_chat", app)
        stream = await agent.open()
        await anext(aiter(stream))
        await agent.client.close()
        await settled(lambda: gone(app))

    asyncio.run(close())


def test_closing_a_blocking_sdk_ends_its_open_streams():
    """The same for threads."""
    app = Simulator(SLOW)
    agent = agent_of("blocking", "openai_chat", app)
    stream = agent.open()
    next(iter(stream))
    agent.client.close()
    until(lambda: gone(app))


def test_without_routes_the_sdk_names_models_of_the_client():
    """`provider:model` reaches any model; a name that no route has is the SDK's own 404."""
    client = openai.OpenAI(
        api_key="any", max_retries=0, http_client=sdk.blocking_http_client(scripted("Hello."))
    )
    create = client.chat.completions.create
    answer = create(model="anthropic:claude-haiku-4-5", messages=HELLO)

    assert answer.choices[0].message.content == "Hello."
    with pytest.raises(openai.NotFoundError, match="gpt-5"):
        create(model="gpt-5.2", messages=HELLO)


def test_the_client_may_be_blocking_or_the_default_one():
    """What `client=` accepts elsewhere is accepted here."""
    routes = {"*": "openai:gpt-5.2"}
    set_default_client(scripted("Hello from the default."))
    try:
        default = sdk.blocking_http_client(routes=routes)
    finally:
        set_default_client(None)
    given = sdk.blocking_http_client(sync.Client.wrap(scripted("Hello.")), routes)

    said = []
    for http in (default, given):
        client = openai.OpenAI(api_key="any", http_client=http)
        answer = client.chat.completions.create(model="m", messages=HELLO)
        said.append(answer.choices[0].message.content)
    assert said == ["Hello from the default.", "Hello."]


def test_other_requests_of_the_sdk_are_answered_too():
    """The list of models has the names of the routes."""
    http = sdk.blocking_http_client(scripted(), {"house-model": "openai:gpt-5.2"})
    listed = openai.OpenAI(api_key="any", http_client=http).models.list()

    assert [model.id for model in listed] == ["house-model"]
