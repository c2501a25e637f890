"""The application base, as a gateway would use it."""

import asyncio
import json

import pytest

from interlingua import dialects
from interlingua.client.client import Client
from interlingua.providers.adapter import HttpAdapter
from interlingua.serving.application import (
    Application,
    RefusedError,
    check_form,
    check_key,
    count_body,
    error_reply,
    failure_reply,
    frames_reply,
    json_reply,
    serve_of,
)
from interlingua.serving.asgi import Delivery, Reply
from interlingua.serving.server import serve_in_thread
from interlingua.simulator import Simulator, text
from interlingua.spec.contracts import Frame, HttpRequest
from interlingua.spec.errors import (
    AuthenticationError,
    ConfigurationError,
    InvalidRequestError,
    NotFoundError,
    RateLimitError,
    SDKError,
)
from interlingua.spec.operations import Failure, ServedModel
from interlingua.spec.request import Request
from interlingua.transport import AsgiTransport
from support.patience import PATIENCE
from support.simulated import DIALECTS, KEY, MODELS, adapters, settled
from support.simulator_calls import call, call_async

UPSTREAM = "openai"


class Gateway(Application):
    """Any dialect in, one provider out."""

    def __init__(self, client):
        self.client = client

    async def handle(self, incoming, receive, send):
        try:
            check_key(incoming, KEY)
            check_form(incoming)
            reply = await self.respond(incoming)
        except RefusedError as refused:
            reply = failure_reply(incoming, refused.failure)
        except SDKError as error:
            reply = error_reply(incoming, error)
        await Delivery(receive, send).send(reply)

    async def respond(self, incoming):
        if incoming.route.kind == "models":
            models = [ServedModel(id=model) for model in MODELS.values()]
            body = serve_of(incoming.dialect).list_models(models, incoming.query)
            return json_reply(incoming, body)
        if incoming.route.kind == "count":
            count = self.client.estimate_input_tokens
            return json_reply(incoming, count_body(incoming, lambda r: count(self.routed(r))))
        if incoming.route.kind != "answer":
            raise RefusedError(Failure(status=404, message="no such thing here"))
        dialect = dialects.get(incoming.dialect)
        request = dialect.decode_request(incoming.call)
        if request.model == "busy":
            raise RateLimitError("later", retry_after=7)
        if not incoming.call.stream:
            response = await self.client.complete(self.routed(request))
            return json_reply(incoming, dialect.encode_response(response))
        return frames_reply(incoming, self.frames(request, dialect))

    def routed(self, request):
        return Request(provider=UPSTREAM, model="up", messages=request.messages)

    async def frames(self, request, dialect):
        encoder = dialect.stream_encoder(request)
        async for event in self.client.stream(self.routed(request)):
            for frame in encoder.feed(event):
                yield frame
        for frame in encoder.finish():
            yield frame


@pytest.fixture
def gateway():
    upstream = AsgiTransport(Simulator(text("From upstream.")))
    return Gateway(Client({UPSTREAM: HttpAdapter(UPSTREAM, "k", transport=upstream)}))


@pytest.mark.parametrize("provider", DIALECTS)
def test_every_dialect_is_served_over_http(gateway, provider):
    """Answers whole and streamed, models, counts; the upstream speaks another dialect."""
    request = Request(provider=provider, model=MODELS[provider], messages="Hi.")

    async def work(url):
        async with Client(adapters(url)) as client:
            whole = await client.complete(request)
            *_, last = [event async for event in client.stream(request)]
            models = []
            if provider != "bedrock_converse":  # its lists are of another service
                models = await client.list_models(provider)
            if provider != "openai_compatible":
                assert await client.count_tokens(request) > 0
            return whole.text, last.response.text, [model.id for model in models]

    with serve_in_thread(gateway) as server:
        whole, streamed, models = asyncio.run(work(server.url))

    assert whole == streamed == "From upstream."
    assert models == ([] if provider == "bedrock_converse" else list(MODELS.values()))


@pytest.mark.parametrize("provider", DIALECTS)
def test_errors_are_told_in_the_clients_words(gateway, provider):
    """Wrong keys, bad bodies, unknown addresses, and errors of our own."""

    def error(model="m", key=KEY, **fields):
        async def work():
            adapter = HttpAdapter(
                provider, key, base_url="http://a/v1", transport=AsgiTransport(gateway)
            )
            await adapter.complete(Request(model=model, messages="Hi.", **fields))

        with pytest.raises(SDKError) as caught:
            asyncio.run(work())
        return caught.value

    # A cloud's row has the paths of its addresses, so that no option changes them.
    path = {DIALECTS[provider]: {"path": "/v1/nowhere"}}
    assert isinstance(error(key="sk-a-wrong-one"), AuthenticationError)
    if provider != "bedrock_converse":
        assert isinstance(error(provider_options=path), NotFoundError)
    busy = error(model="busy")
    assert isinstance(busy, RateLimitError)
    assert busy.retry_after == 7


def test_a_body_that_is_no_json(gateway):
    """It is a bad request, before anything looks into it."""
    headers = {"authorization": f"Bearer {KEY}"}
    reply = call(gateway, "/v1/chat/completions", b"{", headers)

    assert reply.status == 400
    error = dialects.get("openai_chat").decode_error(400, {}, reply.body)
    assert isinstance(error, InvalidRequestError)


class Endless(Application):
    """Streams for ever, and knows how far it got."""

    def __init__(self):
        self.made = 0
        self.is_closed = False

    async def handle(self, _incoming, receive, send):
        self.source = self.chunks()  # held, so that it is closed and not merely collected
        await Delivery(receive, send).send(Reply(200, {}, self.source, is_stream=True))

    async def chunks(self):
        try:
            while True:
                self.made += 1
                await asyncio.sleep(0)  # as whoever waits for an upstream does
                yield b"x" * 65536
        finally:
            self.is_closed = True


def test_a_slow_client_slows_the_source_and_one_that_leaves_ends_it():
    """Nothing is made that nobody takes; what makes it is closed."""
    app = Endless()

    async def work():
        transport = AsgiTransport(app)
        async with transport.send(HttpRequest(url="http://a/x", body=b"{}")) as reply:
            chunks = reply.chunks()
            await anext(chunks)
            for _ in range(100):
                await asyncio.sleep(0)
            made = app.made
        await settled(lambda: app.is_closed)
        return made

    assert asyncio.run(work()) < 30


def test_a_client_that_leaves_before_it_has_said_all(gateway):
    """It gets no answer, and nothing is asked."""

    async def work():
        sent = []

        async def receive():
            return {"type": "http.disconnect"}

        async def send(message):
            sent.append(message)

        scope = {"type": "http", "method": "POST", "path": "/x", "headers": []}
        await gateway(scope, receive, send)
        return sent

    assert asyncio.run(work()) == []


def test_a_client_that_leaves_while_it_is_answered():
    """The delivery ends, and says when that was."""

    async def work():
        gone = asyncio.Event()
        app = Endless()
        task = asyncio.ensure_future(call_async(app, "/x", {}, gone=gone))
        await settled(lambda: app.made > 3)
        gone.set()
        await asyncio.wait_for(task, PATIENCE)
        return app.is_closed

    assert asyncio.run(work())


def test_a_whole_reply_tells_its_length():
    """Also if it is made of chunks that come one by one."""

    class Chunked(Application):
        async def handle(self, _incoming, receive, send):
            async def chunks():
                yield b'{"a":'
                yield b"1}"

            await Delivery(receive, send).send(Reply(200, {}, chunks()))

    reply = call(Chunked(), "/x", {})
    assert (reply.headers["content-length"], json.loads(reply.body)) == ("7", {"a": 1})


def test_a_dialect_without_a_server_side(monkeypatch):
    """It is not served, and whoever asks for it is told."""
    chat = dialects.get("openai_chat")
    monkeypatch.setattr(chat, "serve", None)  # it is loaded on use, and so cannot be deleted

    with pytest.raises(ConfigurationError, match="no module `serve`"):
        serve_of("openai_chat")
    assert call(Simulator(), "/v1/chat/completions", {"messages": []}).status == 404


@pytest.mark.parametrize("query", ["", "?alt=sse"], ids=["array", "sse"])
def test_an_object_of_a_stream_is_sent_before_the_next_one_exists(query):
    """Each object leaves as soon as it exists, in an array as in SSE."""
    path = f"/v1beta/models/m:streamGenerateContent{query}"
    body = {"contents": [{"role": "user", "parts": [{"text": "Hi."}]}]}

    async def work():
        sent, received = asyncio.Event(), []

        async def frames():
            yield Frame(data='{"number": 1}')
            await asyncio.wait_for(sent.wait(), PATIENCE)
            yield Frame(data='{"number": 2}')

        class Server(Application):
            async def handle(self, incoming, receive, send):
                async def note(message):
                    received.append(message.get("body", b""))
                    if b'"number": 1' in received[-1]:
                        sent.set()
                    await send(message)

                await Delivery(receive, note).send(frames_reply(incoming, frames()))

        reply = await call_async(Server(), path, body)
        return reply, received

    reply, received = asyncio.run(work())
    assert sum(b"number" in chunk for chunk in received) == 2
    if not query:
        assert reply.json == [{"number": 1}, {"number": 2}]
