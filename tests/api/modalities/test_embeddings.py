"""`embed` and `embed_many`: every row that has them, splitting, retries, cancelling."""

import asyncio
import contextlib
import json
import math
import threading
from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlingua import (
    Client,
    HttpAdapter,
    Image,
    Text,
    embed,
    embed_many,
    from_json,
    sync,
    to_json,
)
from interlingua.api.modalities.chunks import Splitter
from interlingua.errors import (
    AbortError,
    BudgetExceededError,
    ConfigurationError,
    DecodeError,
    NotFoundError,
    RateLimitError,
    UnsupportedError,
)
from interlingua.media import EmbedResult, moderate, rank, rerank, similarity
from interlingua.middleware import Budget, Cache, Redact
from interlingua.providers.operations import offers
from interlingua.providers.rows import ROWS, find_provider
from interlingua.simulator import Simulator, serve_in_thread
from interlingua.spec.operations import InputLimits
from interlingua.transport.canned import CannedReply, CannedTransport
from support.simulated import settled

KEY = "sk-planted-key-of-a-test"
ABLE = [row for row in ROWS if offers(row, "embed") is not False and not row.is_embedded]
PNG = b"\x89PNG\r\n\x1a\n" + bytes(30)
MULTIMODAL = {
    "cohere": "embed-v4.0",
    "gemini": "gemini-embedding-2",
    "jina": "jina-clip-v2",
    "voyage": "voyage-multimodal-3.5",
}


class Faulty:
    """The simulator behind a server that refuses some requests and notes how many run at once."""

    def __init__(self, **settings):
        self.app = Simulator(**settings)
        self.refused = []  # statuses for the next requests
        self.gate = None
        self.running = self.most = self.count = 0
        self.lock = threading.Lock()

    async def __call__(self, scope, receive, send):
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        with self.lock:
            self.running += 1
            self.count += 1
            self.most = max(self.most, self.running)
            status = self.refused.pop(0) if self.refused else None
        try:
            if self.gate is not None:
                await self.gate()
            if status is None:
                await self.app(scope, receive, send)
                return
            await receive()
            await send({"type": "http.response.start", "status": status, "headers": []})
            await send({"type": "http.response.body", "body": b"{}"})
        finally:
            with self.lock:
                self.running -= 1


@pytest.fixture
def server():
    """One for each test: a request that was cancelled may arrive when its test is over."""
    app = Faulty()
    with serve_in_thread(app) as server:
        server.app = app
        yield server


def client_of(server, *names, **settings):
    bases = {"cohere": "/compatibility/v1", "gemini": ""}
    return Client(
        {
            name: HttpAdapter(name, KEY, base_url=server.url + bases.get(name, "/v1"), **settings)
            for name in names
        }
    )


def run(client, work):
    async def whole():
        async with client:
            return await work

    return asyncio.run(whole())


@pytest.mark.parametrize("row", ABLE, ids=lambda row: row.name)
def test_every_row_with_embeddings(server, row):
    """One text and several, with dimensions: the same vectors from all, with tokens and a price."""
    client = client_of(server, row.name)

    async def work():
        one = await embed(
            f"{row.name}:text-embedding-m", "a red bicycle", dimensions=12, client=client
        )
        many = await embed_many(
            f"{row.name}:text-embedding-m",
            ["blue", "a red bicycle", "ü"],
            dimensions=12,
            client=client,
        )
        return one, many

    one, many = run(client, work())

    assert len(one.embedding) == 12
    assert len(many.embeddings) == 3
    assert many.embeddings[1] == one.embedding
    assert one.usage.input_tokens > 0
    assert one.provider == many.provider == row.name
    assert (one.cost is not None and one.cost.total == 0) if row.is_local else True
    assert KEY not in repr((one, many))
    assert (one.cost is None) == ("price_unknown" in [warning.code for warning in one.warnings])


def test_a_provider_without_embeddings_names_those_that_have_them(server):
    """Nothing is sent."""
    for function, content in ((embed, "x"), (embed_many, ["x"])):
        client = client_of(server, "anthropic")
        with pytest.raises(
            UnsupportedError, match=r"These providers have it: openai, gemini.*jina"
        ):
            run(client, function("anthropic:claude-haiku-4-5", content, client=client))
    assert server.app.count == 0


@pytest.mark.parametrize(
    ("model", "items", "calls"),
    [
        ("gemini:gemini-embedding-001", 201, 3),
        ("cohere:embed-v4.0", 192, 2),
        ("mistral:mistral-embed", 257, 2),
        ("openai:text-embedding-3-small", 2049, 2),
        ("jina:jina-embeddings-v3", 512, 1),
    ],
)
def test_inputs_are_split_at_the_limits_of_the_provider(server, model, items, calls):
    """The order is kept, and usage and cost are those of all calls."""
    client = client_of(server, model.partition(":")[0])
    texts = [f"text number {i}" for i in range(items)]
    seen = []

    async def work():
        result = await embed_many(model, texts, client=client, on_progress=seen.append)
        count = server.app.count
        single = [await embed(model, text, client=client) for text in (texts[0], texts[-1])]
        return result, count, single

    result, count, single = run(client, work())

    assert count == calls
    assert [result.embeddings[0], result.embeddings[-1]] == [one.embedding for one in single]
    assert len({vector.tobytes() for vector in result.embeddings}) == items
    assert max(each.done for each in seen) == items == seen[-1].total
    assert seen[-1].usage.input_tokens == result.usage.input_tokens
    if single[0].cost is not None:
        per_token = single[0].cost.total / single[0].usage.input_tokens
        assert math.isclose(result.cost.total, per_token * result.usage.input_tokens)
    else:
        assert [warning.code for warning in result.warnings] == ["price_unknown"]


def test_inputs_are_split_by_their_tokens(server):
    """As they are estimated: Mistral takes 16,000 tokens in a call."""
    client = client_of(server, "mistral")
    texts = ["word " * 6000] * 5

    result = run(client, embed_many("mistral:mistral-embed", texts, client=client))

    assert server.app.count == 3
    assert len(result.embeddings) == 5


@given(
    st.lists(st.integers(1, 40), max_size=60),
    st.integers(1, 9),
    st.integers(20, 90),
    st.integers(5, 60),
)
def test_splitting_keeps_every_item_in_order_and_every_limit(sizes, items, size, tokens):
    """Unless one item alone is above a limit: then it is alone in its call."""
    limits = InputLimits(items=items, bytes=size, tokens=tokens)
    splitter = Splitter(limits, lambda item: item, lambda item: item / 3)
    chunks = [chunk for item in sizes if (chunk := splitter.add(item))]
    chunks += [splitter.rest()] if splitter.rest() else []

    assert [item for chunk in chunks for item in chunk] == sizes
    for chunk in chunks:
        assert len(chunk) <= items
        assert len(chunk) == 1 or sum(chunk) <= size
        assert len(chunk) == 1 or sum(chunk) <= tokens or sum(chunk) / 3 * 1.15 <= tokens + 1e-6


def test_at_most_so_many_calls_run_at_once(server):
    """And more than one."""
    client = client_of(server, "gemini")

    async def gate():
        await settled(lambda: server.app.most >= 3)
        await asyncio.sleep(0.02)

    server.app.gate = gate
    texts = [f"t{i}" for i in range(1000)]

    run(client, embed_many("gemini:gemini-embedding-001", texts, client=client, concurrency=3))

    assert server.app.count == 10
    assert server.app.most == 3


@pytest.mark.usefixtures("no_backoff")
def test_each_call_is_retried_alone(server):
    """Only the calls that failed are repeated."""
    client = client_of(server, "gemini")
    server.app.refused = [429, 503, 500]
    texts = [f"t{i}" for i in range(500)]

    result = run(client, embed_many("gemini:gemini-embedding-001", texts, client=client))

    assert len(result.embeddings) == 500
    assert server.app.count == 5 + 3


@pytest.mark.usefixtures("no_backoff")
def test_a_call_that_still_fails_ends_all(server):
    """With its own error, and the calls that have not begun are not made."""
    client = client_of(server, "gemini")
    server.app.refused = [429] * 3
    texts = [f"t{i}" for i in range(1000)]
    work = embed_many("gemini:gemini-embedding-001", texts, client=client, concurrency=1)

    with pytest.raises(RateLimitError) as caught:
        run(client, work)

    assert caught.value.provider == "gemini"
    assert server.app.count == 3


@pytest.mark.parametrize("how", ["signal", "id", "task"])
def test_cancelled(server, how):
    """By a signal, by the id, or by the task: the calls under way are closed, and no more begin."""
    from interlingua import AbortController

    client = client_of(server, "gemini")
    begun = threading.Event()

    async def wait():
        begun.set()
        await asyncio.sleep(30)

    server.app.gate = wait
    controller = AbortController()

    async def work():
        options = {"abort_signal": controller.signal, "request_id": "mine", "client": client}
        texts = [f"t{i}" for i in range(1000)]
        task = asyncio.create_task(embed_many("gemini:gemini-embedding-001", texts, **options))
        await settled(begun.is_set)
        if how == "signal":
            controller.abort("enough")
        elif how == "id":
            assert await client.cancel("mine")
        else:
            task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task

    if how == "task":
        run(client, work())
    else:
        with pytest.raises(AbortError):
            run(client, work())
    assert server.app.count <= 4


@pytest.mark.parametrize("provider", MULTIMODAL)
def test_images(server, provider, tmp_path):
    """By bytes, by path and beside a text; equal images have equal vectors."""
    client = client_of(server, provider)
    model = f"{provider}:{MULTIMODAL[provider]}"
    path = tmp_path / "a.png"
    path.write_bytes(PNG)

    async def work():
        result = await embed_many(
            model, [Image(data=PNG), "a text", Image(path), Image(data=PNG + b"1")], client=client
        )
        url = await embed(model, Image("https://example.com/a.png"), client=client)
        return result, url

    result, url = run(client, work())

    first, text, second, other = result.embeddings
    assert first == second
    assert len({vector.tobytes() for vector in (first, text, other, url.embedding)}) == 4


@pytest.mark.parametrize("provider", ["cohere", "gemini", "voyage"])
def test_text_and_image_together(server, provider):
    """Several parts have one vector."""
    client = client_of(server, provider)
    parts = ["a cat", Image(data=PNG)]

    result = run(client, embed(f"{provider}:{MULTIMODAL[provider]}", parts, client=client))

    assert len(result.embeddings) == 1


@pytest.mark.parametrize(
    "model", ["openai:text-embedding-3-small", "gemini:gemini-embedding-001", "mistral:m"]
)
def test_a_model_for_texts_refuses_images(server, model):
    """Before anything is sent, with the name of one that takes them."""
    client = client_of(server, model.partition(":")[0])

    with pytest.raises(UnsupportedError, match=r"image.*gemini|gemini-embedding-2"):
        run(client, embed(model, Image(data=PNG), client=client))

    assert server.app.count == 0


def test_tokens_instead_of_text(server):
    """Where the provider takes them."""
    client = client_of(server, "openai", "gemini")

    async def work():
        one = await embed("openai:text-embedding-3-small", [1, 2, 3], client=client)
        two = await embed_many("openai:text-embedding-3-small", [[1, 2, 3], [4]], client=client)
        with pytest.raises(UnsupportedError, match="not the ids of tokens"):
            await embed("gemini:gemini-embedding-001", [1, 2], client=client)
        return one, two

    one, two = run(client, work())

    assert two.embeddings[0] == one.embedding
    assert len(two.embeddings) == 2


@pytest.mark.parametrize(
    ("given_content", "match"),
    [
        ("", "empty text"),
        ([], "must be a text"),
        (["a", "b"], "use `embed_many`"),
        (None, "must be a text"),
        (b"bytes", "must be a text"),
        ([Text(text="a"), 3], "must be a text"),
    ],
)
def test_a_content_that_cannot_be_embedded(server, given_content, match):
    """A typed error before anything is sent."""
    client = client_of(server, "openai")

    with pytest.raises(ConfigurationError, match=match):
        run(client, embed("openai:m", given_content, client=client))

    assert server.app.count == 0


@pytest.mark.parametrize(
    ("contents", "match"),
    [
        ([], "nothing to embed"),
        (iter([]), "nothing to embed"),
        ("a text", "use `embed`"),
        (["a", ""], r"contents\[1\] is an empty text"),
        (Text(text="a"), "use `embed`"),
        (3, "must be a list"),
    ],
)
def test_contents_that_cannot_be_embedded(server, contents, match):
    """A typed error with the place, before anything is sent."""
    client = client_of(server, "openai")

    with pytest.raises(ConfigurationError, match=match):
        run(client, embed_many("openai:m", contents, client=client))

    assert server.app.count == 0


@pytest.mark.parametrize(
    ("name", "value"),
    [("task", "search"), ("dimensions", 0), ("encoding", "hex"), ("concurrency", 0), ("tesk", 1)],
)
def test_options_are_checked(server, name, value):
    """Each error names the option."""
    client = client_of(server, "openai")

    with pytest.raises(ConfigurationError, match=name):
        run(client, embed_many("openai:m", ["a"], client=client, **{name: value}))


def test_contents_may_come_from_iterators(server):
    """Plain and async ones, which are read as calls are made."""
    client = client_of(server, "openai")

    async def words():
        for word in ("a", "b"):
            yield word

    async def work():
        plain = await embed_many("openai:m", (word for word in ("a", "b")), client=client)
        return plain, await embed_many("openai:m", words(), client=client)

    plain, later = run(client, work())

    assert plain.embeddings == later.embeddings
    assert len(plain.embeddings) == 2


def test_float_and_base64_give_the_same_vectors(server):
    """32-bit numbers as base64; lists are not rounded."""
    client = client_of(server, "openai", "voyage", "cohere", "jina")

    async def work(model):
        return [
            (await embed(model, "a text", encoding=encoding, client=client)).embedding
            for encoding in (None, "base64", "float")
        ]

    async def whole():
        return [await work(f"{name}:m") for name in ("openai", "voyage", "cohere", "jina")]

    for default, packed, plain in run(client, whole()):
        assert (default.typecode, packed.typecode, plain.typecode) == ("f", "f", "d")
        assert default == packed == array("f", plain)


def test_a_host_that_returns_too_few_vectors_is_an_error():
    """The vectors could not be assigned to the texts."""
    body = b'{"data": [{"index": 0, "embedding": [0.5]}], "usage": {"prompt_tokens": 1}}'

    async def work(function, given):
        canned = CannedTransport([CannedReply(body=body)])
        async with Client({"openai": HttpAdapter("openai", KEY, transport=canned)}) as client:
            return await function("openai:m", given, client=client)

    assert list(asyncio.run(work(embed, "a")).embedding) == [0.5]
    with pytest.raises(DecodeError, match="1 embeddings for 2 inputs"):
        asyncio.run(work(embed_many, ["a", "b"]))


def test_tokens_that_are_not_reported_are_estimated():
    """With a warning, and priced as such."""
    body = b'{"embedding": {"values": [0.5]}}'

    async def work():
        canned = CannedTransport([CannedReply(body=body)])
        async with Client({"gemini": HttpAdapter("gemini", KEY, transport=canned)}) as client:
            return await embed("gemini:gemini-embedding-001", "one two three", client=client)

    result = asyncio.run(work())

    assert result.usage.estimated
    assert 2 <= result.usage.input_tokens <= 5
    assert result.cost.total > 0
    assert [warning.code for warning in result.warnings] == ["usage_estimated"]


def test_an_unknown_model_is_the_error_of_the_provider():
    """As for a chat."""
    with serve_in_thread(Simulator(models=["known"])) as server:
        for name in ("openai", "gemini"):
            client = client_of(server, name)
            with pytest.raises(NotFoundError):
                run(client, embed(f"{name}:unknown", "a", client=client))


def test_blocking(server):
    """The same functions in `interlingua.sync`, with progress."""
    with sync.Client({"gemini": HttpAdapter("gemini", KEY, base_url=server.url)}) as client:
        seen = []
        texts = [f"t{i}" for i in range(150)]
        model = "gemini:gemini-embedding-001"
        many = sync.embed_many(model, texts, client=client, on_progress=seen.append)
        one = sync.embed(model, "t149", client=client, task="query")

    assert many.embeddings[149] == one.embedding
    assert len(seen) == 2


def test_reports_and_events_have_the_usage(server):
    """`on_usage` is called once for each call."""
    client = client_of(server, "gemini")
    reports = []
    texts = [f"t{i}" for i in range(150)]

    result = run(
        client,
        embed_many("gemini:gemini-embedding-001", texts, client=client, on_usage=reports.append),
    )

    assert len(reports) == 2
    assert sum(each.usage.input_tokens for each in reports) == result.usage.input_tokens


vectors = st.lists(st.floats(-100, 100), min_size=3, max_size=3)


@given(vectors, vectors)
def test_similarity_is_a_cosine(a, b):
    """Symmetric, between -1 and 1, and 1 for a vector and its multiple."""
    assert -1 <= similarity(a, b) <= 1
    assert similarity(a, b) == similarity(b, a)
    if sum(x * x for x in a) > 1e-3:
        assert similarity(a, [2 * x for x in a]) == pytest.approx(1)
        assert similarity(a, [-x for x in a]) == pytest.approx(-1)


def test_vectors_that_cannot_be_compared():
    """Different sizes are an error; a vector of zeros is similar to nothing."""
    with pytest.raises(ConfigurationError, match="3 and 2 dimensions"):
        similarity([1, 2, 3], [1, 2])
    assert similarity([0, 0], [1, 2]) == 0


def test_ranked_by_similarity(server):
    """Texts with words in common come first, in the simulator too."""
    client = client_of(server, "openai")
    texts = ["a green house", "the red bicycle", "a red car"]

    async def work():
        documents = await embed_many("openai:m", texts, dimensions=64, client=client)
        query = await embed("openai:m", "red bicycle", dimensions=64, client=client)
        return rank(query.embedding, documents.embeddings, top_n=2)

    matches = run(client, work())

    assert [texts[match.index] for match in matches] == ["the red bicycle", "a red car"]
    assert matches[0].score > matches[1].score


def test_the_rows_say_who_has_embeddings():
    """So that no host is left out by mistake."""
    names = {row.name for row in ABLE}

    assert {"openai", "gemini", "mistral", "voyage", "cohere", "jina", "ollama", "azure"} <= names
    assert not names & {"anthropic", "groq", "deepseek", "xai"}
    assert find_provider("voyage").operations["embed"] == "voyage"


MAIL = "alice@example.com"


def test_a_guard_sees_every_text(server):
    """Redaction reaches texts, parts of several, documents and what is judged."""
    jina = HttpAdapter("jina", KEY, base_url=f"{server.url}/v1")
    openai = HttpAdapter("openai", KEY, base_url=f"{server.url}/v1")
    gemini = HttpAdapter("gemini", KEY, base_url=server.url)
    adapters = {"openai": openai, "gemini": gemini, "jina": jina}
    client = Client(adapters, middleware=[Redact("email")])
    start = len(server.app.app.script.received)

    async def work():
        texts = ["plain", f"I am {MAIL}"]
        mixed = [f"I am {MAIL}", Image(data=PNG)]
        await embed_many("openai:m", texts, client=client)
        await embed("gemini:gemini-embedding-2", mixed, client=client)
        await moderate("openai:m", mixed, client=client)
        await rerank("jina:m", f"Who is {MAIL}?", texts, client=client)

    run(client, work())

    bodies = [json.dumps(each.call.body) for each in server.app.app.script.received[start:]]
    assert len(bodies) == 4
    assert not any(MAIL in body for body in bodies)
    assert all("I am" in body for body in bodies)


@pytest.mark.parametrize(
    "content",
    ["word " * 4000, (Text(text="word " * 4000),), [7] * 4000],
    ids=["text", "part", "ids"],
)
def test_a_budget_reserves_what_the_texts_cost(server, content):
    """A call that would exceed it is not sent."""
    client = client_of(server, "openai").with_middleware(Budget(usd=0.00005))
    model = "openai:text-embedding-3-small"

    with pytest.raises(BudgetExceededError):
        run(client, embed(model, content, client=client))

    assert server.app.count == 0


def test_equal_texts_are_answered_from_a_cache(server):
    """For nothing, with the same vectors; another task or another text is another call."""
    client = client_of(server, "gemini").with_middleware(Cache())
    model = "gemini:gemini-embedding-001"

    async def work():
        first = await embed(model, "a text", client=client)
        again = await embed(model, "a text", client=client, request_id="mine")
        await embed(model, "a text", client=client, task="query")
        await embed(model, "another text", client=client)
        return first, again

    first, again = run(client, work())

    assert server.app.count == 3
    assert again.embedding == first.embedding
    assert (again.usage, again.request_id) == (first.usage, "mine")
    assert first.cost.total > again.cost.total == 0
    assert again.cost.source == "cache"


@pytest.mark.parametrize("encoding", ["float", "base64"])
def test_a_result_is_stored_as_json(server, encoding):
    """And read again without a change, with the precision that it has."""
    client = client_of(server, "openai")
    result = run(client, embed_many("openai:m", ["a", "b"], encoding=encoding, client=client))

    again = from_json(to_json(result), EmbedResult)

    assert again == result
    assert again.embeddings[0].typecode == result.embeddings[0].typecode
    with pytest.raises(DecodeError):
        from_json(b'{"embeddings": [{"a": 1}]}', EmbedResult)


@pytest.mark.parametrize("model", ["openai:text-embedding-3-small", "gemini:gemini-embedding-001"])
def test_a_dict_keeps_its_keys(server, model):
    """Its values are embedded; the vectors are those of a list of them, by key."""
    texts = {"sea": "The sea.", "sky": "The sky."}
    provider = model.partition(":")[0]

    async def work(client):
        given = await embed_many(model, texts, client=client)
        listed = await embed_many(model, list(texts.values()), client=client)
        return given, listed

    client = client_of(server, provider)
    given, listed = run(client, work(client))
    assert given.keys == ("sea", "sky")
    assert given.embeddings == listed.embeddings
    assert given.by_key == dict(zip(texts, listed.embeddings, strict=True))
    assert listed.keys == ()
    assert listed.by_key == {}
    assert from_json(to_json(given), EmbedResult).by_key == given.by_key


def test_a_dict_needs_strings_as_keys(server):
    """As a batch does."""
    client = client_of(server, "openai")
    with pytest.raises(ConfigurationError, match="A key of `contents` must be a string, not 1"):
        run(client, embed_many("openai:text-embedding-3-small", {1: "a"}, client=client))


@pytest.mark.parametrize("vector", [[], ""])
def test_an_empty_vector_is_an_error(vector):
    """It says which input has none."""
    data = [{"embedding": [0.5], "index": 0}, {"embedding": vector, "index": 1}]
    body = json.dumps({"data": data, "model": "m", "usage": {"prompt_tokens": 1}}).encode()
    canned = CannedTransport([CannedReply(body=body)])
    client = Client({"openai": HttpAdapter("openai", KEY, transport=canned)})
    with pytest.raises(DecodeError, match="empty vector for input 1"):
        run(client, embed_many("openai:text-embedding-3-small", ["a", "b"], client=client))
