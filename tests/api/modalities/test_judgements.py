"""`rerank` and `moderate`."""

import asyncio

import pytest

from interlingua import Client, HttpAdapter, Image, sync
from interlingua.errors import ConfigurationError, DecodeError, UnsupportedError
from interlingua.media import moderate, rerank
from interlingua.providers.operations import offers
from interlingua.providers.rows import ROWS
from interlingua.simulator import Simulator, serve_in_thread
from interlingua.transport.canned import CannedReply, CannedTransport

RANKERS = [row.name for row in ROWS if offers(row, "rerank")]
JUDGES = [row.name for row in ROWS if offers(row, "moderate")]
DOCUMENTS = ["a blue car", "the red bicycle", "a red car"]


@pytest.fixture(scope="module")
def server():
    app = Simulator()
    with serve_in_thread(app) as server:
        server.app = app
        yield server


def ask(server, provider, work):
    path = "/compatibility/v1" if provider == "cohere" else "/v1"

    async def whole():
        adapter = HttpAdapter(provider, "k", base_url=f"{server.url}{path}")
        async with Client({provider: adapter}) as client:
            return await work(client)

    return asyncio.run(whole())


def answered(body, work):
    async def whole():
        canned = CannedTransport([CannedReply(body=body)])
        async with Client({"openai_compatible": adapter(canned)}) as client:
            return await work(client)

    def adapter(canned):
        return HttpAdapter(
            "openai_compatible", "k", base_url="https://here.example/v1", transport=canned
        )

    return asyncio.run(whole())


def test_the_rows_say_who_can():
    """And nobody else."""
    assert {*RANKERS} == {"cohere", "voyage", "jina", "together"}
    assert {*JUDGES} == {"openai", "mistral"}


@pytest.mark.parametrize("provider", [*RANKERS, "vllm"])
def test_documents_are_ranked(server, provider):
    """The most relevant first, with their texts; a server of one's own may have it too."""

    async def work(client):
        model = f"{provider}:m"
        every = await rerank(model, "red bicycle", DOCUMENTS, client=client)
        best = await rerank(model, "red bicycle", iter(DOCUMENTS), top_n=1, client=client)
        return every, best

    every, best = ask(server, provider, work)

    assert [each.index for each in every.documents] == [1, 2, 0]
    assert [each.text for each in best.documents] == ["the red bicycle"]
    assert [each.score for each in every.documents] == [1.0, 0.5, 0.0]
    assert best.provider == provider
    assert best.cost is None or provider == "vllm"
    assert provider == "vllm" or "price_unknown" in [each.code for each in best.warnings]


def test_scores_that_are_not_in_order_are_sorted():
    """Some servers rank, others only score."""
    body = b'{"results": [{"index": 0, "score": 0.1}, {"index": 1, "relevance_score": 0.9}]}'
    result = answered(body, lambda client: rerank("m", "q", ["a", "b"], client=client))

    assert [(each.index, each.text) for each in result.documents] == [(1, "b"), (0, "a")]


def test_a_document_that_was_not_given_is_an_error():
    """It could be no text of the caller."""
    body = b'{"results": [{"index": 7, "relevance_score": 0.9}]}'
    with pytest.raises(DecodeError, match="document 7"):
        answered(body, lambda client: rerank("m", "q", ["a", "b"], client=client))


@pytest.mark.parametrize(
    ("query", "documents", "options", "match"),
    [
        ("", ["a"], {}, "query"),
        (None, ["a"], {}, "query"),
        ("q", [], {}, "nothing to rank"),
        ("q", "text", {}, "list of texts"),
        ("q", ["a", ""], {}, r"documents\[1\]"),
        ("q", ["a", 3], {}, r"documents\[1\]"),
        ("q", ["a"], {"top_n": 0}, "top_n"),
    ],
)
def test_what_cannot_be_ranked(server, query, documents, options, match):
    """A typed error before anything is sent."""
    count = len(server.app.script.received)
    with pytest.raises(ConfigurationError, match=match):
        ask(server, "jina", lambda client: rerank("m", query, documents, client=client, **options))
    assert len(server.app.script.received) == count


@pytest.mark.parametrize("provider", JUDGES)
def test_texts_are_judged(server, provider):
    """One, and more than fit into one call, in their order."""

    async def work(client):
        one = await moderate(f"{provider}:m", "I will murder you", client=client)
        many = await moderate(f"{provider}:m", ["hello", "I hate you"] * 40, client=client)
        return one, many

    one, many = ask(server, provider, work)

    assert one.flagged
    assert one.results[0].reasons == ("violence",)
    assert one.results[0].scores["violence"] > 0.5
    assert [each.flagged for each in many.results] == [False, True] * 40
    assert many.results[1].reasons == ("harassment",)


def test_a_judgement_without_a_verdict_has_that_of_its_categories():
    """As Mistral sends it."""
    body = b'{"results": [{"categories": {"pii": true}, "category_scores": {"pii": 0.7}}]}'
    result = answered(body, lambda client: moderate("m", "a", client=client))

    assert result.flagged
    assert result.results[0].reasons == ("pii",)


def test_images_are_judged_with_the_text(server):
    """Where the provider takes them; else it is an error before anything is sent."""
    parts = ["look", Image("https://example.com/a.png")]
    result = ask(server, "openai", lambda client: moderate("openai:m", parts, client=client))

    assert len(result.results) == 1
    with pytest.raises(UnsupportedError, match="omni-moderation"):
        ask(server, "mistral", lambda client: moderate("mistral:m", parts, client=client))


@pytest.mark.parametrize("content", ["", [], None, 3, ["a", ""], [Image("https://a.example"), ""]])
def test_what_cannot_be_judged(server, content):
    """A typed error before anything is sent."""
    with pytest.raises(ConfigurationError, match="`content` must be"):
        ask(server, "openai", lambda client: moderate("openai:m", content, client=client))


@pytest.mark.parametrize("function", [rerank, moderate])
def test_a_provider_without_it_names_those_that_have_it(server, function):
    """Nothing is sent."""
    given = ("q", ["a"]) if function is rerank else ("q",)
    with pytest.raises(UnsupportedError, match="These providers have it"):
        ask(server, "groq", lambda client: function("groq:m", *given, client=client))


def test_blocking(server):
    """The same functions in `interlingua.sync.media`."""
    adapters = {
        "jina": HttpAdapter("jina", "k", base_url=f"{server.url}/v1"),
        "openai": HttpAdapter("openai", "k", base_url=f"{server.url}/v1"),
    }
    with sync.Client(adapters) as client:
        ranked = sync.media.rerank("jina:m", "red bicycle", DOCUMENTS, client=client)
        judged = sync.media.moderate("openai:m", "hello", client=client)

    assert ranked.documents[0].index == 1
    assert not judged.flagged
