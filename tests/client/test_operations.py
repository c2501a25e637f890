"""Operations through a client: attempts, call events, middleware, refusal."""

import asyncio

import pytest

from interlingua.client.call_events import CallCompleted, CallFailed, CallStarted
from interlingua.client.client import Client
from interlingua.client.retry_policy import RetryPolicy
from interlingua.providers.adapter import HttpAdapter
from interlingua.simulator import Simulator, serve_in_thread
from interlingua.spec.contracts import WireCall
from interlingua.spec.errors import (
    AbortError,
    ConfigurationError,
    RateLimitError,
    ServerError,
    UnsupportedError,
)
from interlingua.spec.operations import Operation, ServedModel
from interlingua.spec.request import Request
from interlingua.sync import Client as SyncClient
from interlingua.transport.canned import CannedReply, CannedTransport
from support.simulated import KEY, adapters, settled

MODELS = [f"model-{number:03}" for number in range(60)]
ECHO = Operation(
    name="echo",
    encode=lambda value, _: WireCall(path="/v1/echo", body={"text": value}),
    decode=lambda _, __, body: body,
)
BUSY = CannedReply(status=529, headers={"retry-after": "0"}, body=b"{}")
DONE = CannedReply(body=b"done")


def canned_client(*replies, max_retries=2, **settings):
    transport = CannedTransport(replies)
    adapter = HttpAdapter("anthropic", KEY, transport=transport, max_retries=max_retries)
    return Client({"a": adapter}, **settings), transport


@pytest.mark.parametrize("provider", ["openai", "openai_compatible", "anthropic", "gemini"])
def test_models_over_real_http(provider):
    """All of them, page by page where the vendor has pages; asynchronous and blocking."""
    app = Simulator(models=MODELS, key=KEY)
    pages = {"anthropic": 3, "gemini": 2}.get(provider, 1)

    async def work(url):
        async with Client(adapters(url)) as client:
            return await client.list_models(provider)

    with serve_in_thread(app) as server:
        models = asyncio.run(work(server.url))
        assert len(app.script.received) == pages
        with SyncClient(adapters(server.url)) as client:
            assert client.list_models(provider) == models
            assert len(client.perform(provider, "list_models")) == len(MODELS)

    assert [model.id for model in models] == MODELS
    assert {model.provider for model in models} == {provider}


@pytest.mark.usefixtures("no_backoff")
def test_a_failure_is_retried_as_that_of_an_answer_is():
    """529, 529, 200: three attempts of one id, each told."""
    client, transport = canned_client(BUSY, BUSY, DONE)
    events = []
    client.subscribe(events.append)

    assert asyncio.run(client.perform("a", ECHO, "hi")) == b"done"
    assert len(transport.requests) == 3
    assert [(type(event), event.attempt) for event in events] == [
        (CallStarted, 0),
        (CallFailed, 0),
        (CallStarted, 1),
        (CallFailed, 1),
        (CallStarted, 2),
        (CallCompleted, 2),
    ]
    assert len({event.request_id for event in events}) == 1


def test_retries_can_be_left_out():
    """By the caller, or because none are set."""
    client, transport = canned_client(BUSY, DONE)
    with pytest.raises(ServerError):
        asyncio.run(client.perform("a", ECHO, "hi", retry=RetryPolicy(max_retries=0)))
    assert len(transport.requests) == 1
    client, transport = canned_client(BUSY, DONE, max_retries=0)
    with pytest.raises(ServerError):
        asyncio.run(client.perform("a", ECHO, "hi"))
    assert len(transport.requests) == 1


class Layer:
    """Notes what passes, and may change it."""

    def __init__(self, name, log, edit=lambda value: value):
        self.name = name
        self.log = log
        self.edit = edit

    async def perform(self, operation, value, call_next):
        self.log.append((self.name, operation.name, operation.provider, value))
        result = await call_next(self.edit(value))
        self.log.append((self.name, result))
        return result


@pytest.mark.usefixtures("no_backoff")
def test_middleware_wraps_operations():
    """In the order of registration, once for all attempts; it may change the value."""
    log = []
    client, transport = canned_client(
        BUSY, DONE, middleware=[Layer("outer", log, str.upper), Layer("inner", log)]
    )
    asyncio.run(client.perform("a", ECHO, "hi"))

    assert log == [
        ("outer", "echo", "a", "hi"),
        ("inner", "echo", "a", "HI"),
        ("inner", b"done"),
        ("outer", b"done"),
    ]
    assert [request.body for request in transport.requests] == [b'{"text":"HI"}'] * 2


def test_middleware_sees_counts():
    """The prompt goes to the provider there too: it can be changed, or stopped."""

    class Redact:
        guard = True

        async def complete(self, request, call_next):
            return await call_next(request)

        async def perform(self, operation, value, call_next):
            if operation.name == "list_models":
                raise RateLimitError("not today")
            return await call_next(Request(model=value.model, messages="[redacted]"))

    client, transport = canned_client(
        CannedReply(body=b'{"input_tokens":3}'), middleware=[Redact()]
    )
    request = Request(model="a:m", messages="my secret")

    assert asyncio.run(client.count_tokens(request)) == 3
    assert b"secret" not in transport.requests[0].body
    with pytest.raises(RateLimitError, match="not today"):
        asyncio.run(client.list_models("a"))


def test_a_guard_is_not_passed_by():
    """A client whose guard knows no operations refuses them; other middleware lets them pass."""

    class Guard:
        guard = True

        async def complete(self, request, call_next):
            return await call_next(request)

    async def guard(request, call_next):
        return await call_next(request)

    async def observer(request, call_next):
        return await call_next(request)

    guard.guard = True
    for layer in (Guard(), guard):
        client, transport = canned_client(DONE, middleware=[layer])
        with pytest.raises(ConfigurationError, match="has no `perform"):
            asyncio.run(client.perform("a", ECHO, "hi"))
        with pytest.raises(ConfigurationError, match="has no `perform"):
            asyncio.run(client.count_tokens(Request(model="a:m", messages="hi")))
        assert transport.requests == []
    client, _ = canned_client(DONE, middleware=[observer])
    assert asyncio.run(client.perform("a", ECHO, "hi")) == b"done"


def test_an_operation_is_cancelled_by_its_id():
    """While it waits for its next attempt."""
    slow = CannedReply(status=529, headers={"retry-after": "30"}, body=b"{}")
    client, transport = canned_client(slow, DONE)
    request = Request(model="a:m", messages="hi", request_id="r")

    async def work():
        task = asyncio.ensure_future(client.count_tokens(request))
        await settled(lambda: transport.requests)
        await asyncio.sleep(0.01)
        assert await client.cancel("r")
        with pytest.raises(AbortError):
            await task
        return await client.cancel("r")

    assert asyncio.run(work()) is False
    assert len(transport.requests) == 1


class Own:
    """An adapter of one's own that knows two operations, and no `perform`."""

    name = "own"

    async def complete(self, request):
        raise NotImplementedError

    def stream(self, request):
        raise NotImplementedError

    async def list_models(self):
        return [ServedModel(id="mine")]

    async def count_tokens(self, request):
        return len(request.messages)

    async def close(self):
        pass


def test_an_adapter_of_ones_own():
    """Methods with the names of operations are enough for these."""
    client = Client({"own": Own()})

    assert asyncio.run(client.list_models()) == [ServedModel(id="mine", provider="own")]
    assert asyncio.run(client.count_tokens(Request(model="own:m", messages="hi"))) == 1
    for operation in ("close", "sing", ECHO):
        with pytest.raises(UnsupportedError, match="has no `perform`"):
            asyncio.run(client.perform("own", operation))
    with pytest.raises(ConfigurationError, match="'x' is not configured"):
        asyncio.run(client.perform("x", "list_models"))


@pytest.mark.usefixtures("no_backoff")
def test_a_streamed_operation_is_retried_until_its_reply_begins():
    """The items then come through the client as they are."""

    class Whole:
        def feed(self, chunk):
            return [chunk]

        def finish(self):
            return [b"end"]

    streamed = Operation(
        name="streamed",
        encode=lambda *_: WireCall(path="/v1/s", body={}),
        decode=lambda *_: None,
        stream_decoder=lambda _value: Whole(),
    )
    client, transport = canned_client(BUSY, DONE)

    async def work():
        return [item async for item in await client.perform("a", streamed)]

    assert asyncio.run(work()) == [b"done", b"end"]
    assert len(transport.requests) == 2
