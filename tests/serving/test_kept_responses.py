"""`KeptResponses` itself: every store, broken stores, streams that are not whole."""

import asyncio
import json
import zlib

import pytest

from interlingua import AnthropicAdapter, Client
from interlingua.serving import ClientApplication
from interlingua.serving.application import RefusedError
from interlingua.serving.kept_responses import KeptResponses, kept_form
from interlingua.simulator import Simulator, cut, latency, text
from interlingua.spec.contracts import HttpRequest, WireCall
from interlingua.spec.errors import StoreError
from interlingua.spec.kept import KeptQuery
from interlingua.stores import MemoryStore
from interlingua.transport import AsgiTransport
from support.patience import PATIENCE
from support.stores import KINDS, Blocking, Clock

FORM = kept_form("openai_responses")
ODD = "half of a pair: \ud800, and the whole: \N{GRINNING FACE}"


@pytest.fixture(params=KINDS)
def store(request, tmp_path):
    """One store of each kind, empty."""
    clock = Clock()
    blocking = Blocking(KINDS[request.param](clock, tmp_path), clock)
    yield blocking
    blocking.stop()


def call(body):
    return WireCall(path="/v1/responses", body=body)


def run(store, work):
    return store._runner.run(work)


def test_every_store_keeps_a_response(store):
    """With any text in it, until its time is over."""
    shelf = KeptResponses(store.store, seconds=60, clock=store.clock).of_caller("a/b c")
    body, draft = run(store, shelf.resolve(call({"input": ODD}), FORM))
    said = {"type": "message", "id": "msg_1", "role": "assistant", "content": ODD}
    run(store, shelf.keep(draft, {"id": draft.id, "output": [said]}, FORM))
    next_body, _ = run(
        store, shelf.resolve(call({"input": "Go on", "previous_response_id": draft.id}), FORM)
    )
    reference = {"input": [{"type": "item_reference", "id": "msg_1"}]}

    assert body["input"] == ODD
    assert next_body["input"][:2] == [{"role": "user", "content": ODD}, said]
    assert run(store, shelf.resolve(call(reference), FORM))[0]["input"] == [said]
    store.pass_ttl(61)
    for late in ({"previous_response_id": draft.id}, reference):
        with pytest.raises(RefusedError):
            run(store, shelf.resolve(call(late), FORM))


def test_every_store_keeps_a_conversation(store):
    """Additions of several processes at once are all there."""
    shelf = KeptResponses(store.store, seconds=60, clock=store.clock).of_caller("a")
    made = run(store, shelf.perform("create_conversation", KeptQuery(), FORM))
    texts = [f"Text {i}" for i in range(8)]

    async def add_all():
        queries = [
            KeptQuery(id=made.id, items=({"role": "user", "content": each},)) for each in texts
        ]
        adding = [shelf.perform("add_conversation_items", each, FORM) for each in queries]
        await asyncio.gather(*adding)
        return await shelf.perform("list_conversation_items", KeptQuery(id=made.id), FORM)

    assert sorted(item["content"] for _, item in run(store, add_all())) == texts
    store.pass_ttl(62)
    with pytest.raises(RefusedError):
        run(store, shelf.perform("get_conversation", KeptQuery(id=made.id), FORM))


def test_a_summary_stands_for_what_is_before_it():
    """A history begins with the last compaction in it."""
    items = ["a", {"type": "compaction", "id": "1"}, "b", {"type": "compaction", "id": "2"}, "c"]

    assert FORM.history(items) == items[3:]
    assert FORM.history(["a", "b"]) == ["a", "b"]


def test_damage_is_told():
    """As an error of the store, not of the request."""
    store = MemoryStore()
    shelf = KeptResponses(store).of_caller("a")
    for damaged in (b"x", zlib.compress(b"{")):
        for kind in ("response", "turn"):
            asyncio.run(store.put(f"{kind}/a/resp_1", damaged))
        with pytest.raises(StoreError, match="damaged"):
            asyncio.run(shelf.resolve(call({"previous_response_id": "resp_1"}), FORM))
        with pytest.raises(StoreError, match="damaged"):
            asyncio.run(shelf.perform("get_response", KeptQuery(id="resp_1"), FORM))


class Watched(MemoryStore):
    """Notes the keys that are put; may be unable to."""

    def __init__(self, *, is_broken=False):
        super().__init__()
        self.keys = []
        self.is_broken = is_broken

    async def put(self, key, value, **options):
        if self.is_broken:
            raise StoreError("/secret/place cannot be written")
        self.keys.append(key)
        return await super().put(key, value, **options)


def post(place, answer, **fields):
    """The status and the text of the reply of an application that keeps responses in this store."""

    async def ask():
        adapter = AnthropicAdapter(
            api_key="k", transport=AsgiTransport(Simulator(answer)), max_retries=0
        )
        client = Client({"anthropic": adapter})
        app = ClientApplication(
            client, {"default": "anthropic:claude-haiku-4-5"}, kept=KeptResponses(place)
        )
        body = json.dumps({"model": "any", "input": "Hi", **fields}).encode()
        request = HttpRequest(
            url="http://gateway/v1/responses",
            headers={"content-type": "application/json"},
            body=body,
        )
        async with AsgiTransport(app).send(request) as reply:
            got = reply.status, (await reply.read()).decode()
        await client.close()
        return got

    return asyncio.run(ask())


def test_a_broken_store_fails_the_request():
    """A response that says it is stored must be; the message has no path of the server."""
    status, answer = post(Watched(is_broken=True), text("Hello."))

    assert status == 503
    assert "cannot reach its store" in answer
    assert "secret" not in answer


def test_a_broken_store_fails_a_stream():
    """At its end, in an event: `response.completed` would say that the response is stored."""
    status, answer = post(Watched(is_broken=True), text("Hello."), stream=True)

    assert status == 200
    assert "response.completed" not in answer
    assert "response.failed" in answer
    assert "secret" not in answer


def test_a_broken_store_does_not_matter_to_what_is_not_stored():
    """`store` as false needs no store."""
    assert post(Watched(is_broken=True), text("Hello."), store=False)[0] == 200


@pytest.mark.parametrize("stream", [False, True])
def test_a_whole_answer_is_kept_and_a_cut_one_is_not(stream):
    """Neither a stream that the model did not end."""
    whole, part = Watched(), Watched()
    post(whole, text("Hello."), stream=stream)
    post(part, text("Hello. " * 50) + cut(300), stream=stream)

    assert [key for key in whole.keys if key.startswith("response/")]
    assert part.keys == []


def test_a_stream_that_a_client_left_is_not_kept():
    """Nobody has seen its end, nor an id that would be of use."""
    store = Watched()

    async def leave():
        simulator = Simulator(text("word " * 50) + latency(between=0.02))
        client = Client({"anthropic": AnthropicAdapter("k", transport=AsgiTransport(simulator))})
        routes = {"default": "anthropic:claude-haiku-4-5"}
        app = ClientApplication(client, routes, kept=KeptResponses(store))
        body = json.dumps({"model": "any", "input": "Hi", "stream": True}).encode()
        request = HttpRequest(url="http://gateway/v1/responses", body=body)
        async with AsgiTransport(app).send(request) as reply:
            async for _ in reply.chunks():
                break
        (exchange,) = simulator.script.received
        await asyncio.to_thread(exchange.over.wait, PATIENCE)
        await client.close()
        return exchange

    exchange = asyncio.run(leave())

    assert exchange.disconnected is not None
    assert store.keys == []
