"""The vendors' SDKs use the simulator for embeddings, moderation and lists of models."""

import asyncio

import anthropic
import openai
import pytest
from google import genai
from google.genai import types as genai_types

from interlingua import Client, HttpAdapter, embed, embed_many
from interlingua.simulator import Simulator, serve_in_thread

PNG = b"\x89PNG\r\n\x1a\n" + bytes(30)
TEXTS = ["a red bicycle", "a blue car", "a red bicycle"]


@pytest.fixture(scope="module")
def url():
    with serve_in_thread(Simulator()) as server:
        yield server.url


@pytest.fixture(scope="module")
def client(url):
    with openai.OpenAI(api_key="k", base_url=f"{url}/v1", max_retries=0) as client:
        yield client


@pytest.fixture(scope="module")
def gemini(url):
    client = genai.Client(api_key="k", http_options={"base_url": url})
    yield client
    client.close()


def ours(url, provider, model, texts, **options):
    async def work():
        base = f"{url}/v1" if provider == "openai" else url
        async with Client({provider: HttpAdapter(provider, "k", base_url=base)}) as client:
            return await embed_many(f"{provider}:{model}", texts, client=client, **options)

    return asyncio.run(work())


@pytest.mark.parametrize("encoding", ["float", "base64", None])
def test_openai_embeddings(client, url, encoding):
    """The vendor's client and ours read the same vectors and counts."""
    options = {} if encoding is None else {"encoding_format": encoding}
    reply = client.embeddings.create(model="m", input=TEXTS, dimensions=9, **options)
    result = ours(url, "openai", "m", TEXTS, dimensions=9, encoding=encoding)

    theirs = [row.embedding for row in reply.data]
    if encoding == "base64":
        assert all(isinstance(text, str) for text in theirs)
    else:
        assert [*map(list, result.embeddings)] == [pytest.approx(row, rel=1e-6) for row in theirs]
    assert [row.index for row in reply.data] == [0, 1, 2]
    assert reply.usage.prompt_tokens == result.usage.input_tokens > 0


def test_gemini_embeddings(gemini, url):
    """One content, several, and a content of text and image."""
    config = genai_types.EmbedContentConfig(output_dimensionality=9, task_type="CLUSTERING")
    reply = gemini.models.embed_content(model="m", contents=TEXTS, config=config)
    result = ours(url, "gemini", "m", TEXTS, dimensions=9, task="clustering")
    image = genai_types.Part.from_bytes(data=PNG, mime_type="image/png")
    mixed = gemini.models.embed_content(
        model="m", contents=genai_types.Content(parts=[genai_types.Part(text="a"), image])
    )

    assert [row.values for row in reply.embeddings] == [*map(list, result.embeddings)]
    assert len(mixed.embeddings) == 1


def test_vertex_embeddings(url):
    """`predict` for the older models, `embedContent` for the newer ones."""
    client = genai.Client(
        vertexai=True, api_key="k", http_options={"base_url": url, "api_version": "v1beta1"}
    )
    old = client.models.embed_content(model="text-embedding-005", contents=["a"])
    new = client.models.embed_content(model="gemini-embedding-2", contents=["a"])
    client.close()

    assert old.embeddings[0].values == new.embeddings[0].values
    assert old.embeddings[0].statistics.token_count == 1


def test_openai_moderation(client):
    """Texts one by one, and text with an image as one."""
    reply = client.moderations.create(model="omni-moderation-latest", input=["I kill you", "hello"])
    link = {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}
    mixed = client.moderations.create(
        model="omni-moderation-latest", input=[{"type": "text", "text": "murder"}, link]
    )

    assert [each.flagged for each in reply.results] == [True, False]
    assert reply.results[0].categories.violence
    assert [each.flagged for each in mixed.results] == [True]


def test_lists_of_models(client, gemini, url):
    """All vendors list the model and its limits, and describe it alone in the same words."""
    (model,) = client.models.list()
    (listed,) = gemini.models.list()
    with anthropic.Anthropic(api_key="k", base_url=url) as claude:
        (claude_model,) = claude.models.list()
        assert claude.models.retrieve(claude_model.id) == claude_model

    assert model.id == claude_model.id == listed.name.removeprefix("models/")
    assert listed.input_token_limit == claude_model.max_input_tokens > 0
    assert client.models.retrieve(model.id) == model
    assert gemini.models.get(model=listed.name) == listed


def test_an_unknown_model():
    """The vendor's own errors."""
    with serve_in_thread(Simulator(models=["known"])) as server:
        with (
            openai.OpenAI(api_key="k", base_url=f"{server.url}/v1", max_retries=0) as client,
            pytest.raises(openai.NotFoundError),
        ):
            client.embeddings.create(model="other", input="a")
        with openai.OpenAI(api_key="k", base_url=f"{server.url}/v1", max_retries=0) as client:
            assert client.models.retrieve("known").id == "known"
            with pytest.raises(openai.NotFoundError):
                client.models.retrieve("maker/other")
        gemini = genai.Client(api_key="k", http_options={"base_url": server.url})
        with pytest.raises(genai.errors.ClientError, match="404"):
            gemini.models.embed_content(model="other", contents="a")
        gemini.close()


def test_one_text_is_one_call_of_ours(url):
    """`embedContent`, not a batch of one."""

    async def work():
        async with Client({"gemini": HttpAdapter("gemini", "k", base_url=url)}) as client:
            return await embed("gemini:m", "a", client=client)

    assert asyncio.run(work()).embedding
