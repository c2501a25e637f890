"""Operations other than answers: the vendors' clients ask, any provider performs them."""

import base64
from urllib.request import Request, urlopen

import pytest

from interlingua.providers.adapter import HttpAdapter
from interlingua.simulator import Simulator, serve_in_thread
from support.gateways import gateway
from support.simulated import adapters
from support.wire_requests import ask

WAV = b"RIFF$\x00\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00@\x1f\x00\x00\x80>\x00\x00\x02\x00\x10\x00data\x00\x00\x00\x00"  # noqa: E501
TEXTS = ["A red bicycle", "A blue car", "Bread"]


@pytest.fixture(scope="module")
def stage():
    app = Simulator()
    with serve_in_thread(app) as upstream:
        cohere = HttpAdapter("cohere", "k", base_url=upstream.url)
        with gateway({**adapters(upstream.url), "cohere": cohere}) as front:
            yield app, front


@pytest.mark.parametrize(
    "model",
    ["openai:text-embedding-3-small", "gemini:gemini-embedding-001", "cohere:embed-v4.0"],
)
def test_embeddings_of_any_provider(stage, model):
    """For OpenAI's client, which asks for base64, and for Google's."""
    _, front = stage
    google = front.gemini()
    ours = front.openai().embeddings.create(model=model, input=TEXTS)
    theirs = google.models.embed_content(model=model, contents=TEXTS)

    assert [row.index for row in ours.data] == [0, 1, 2]
    assert ours.usage.prompt_tokens > 0
    for mine, other in zip(ours.data, theirs.embeddings, strict=True):
        assert mine.embedding == pytest.approx(other.values, abs=1e-6)


def test_more_inputs_than_the_provider_takes(stage):
    """They are sent in several calls, and come back as one list."""
    app, front = stage
    before = len(app.script.received)
    inputs = [f"text {index}" for index in range(250)]
    found = front.openai().embeddings.create(model="gemini:gemini-embedding-001", input=inputs)

    assert [row.index for row in found.data] == list(range(250))
    assert len(app.script.received) - before == 3


@pytest.mark.parametrize("model", ["openai:gpt-image-2", "gemini:imagen-4.0-generate-001"])
def test_an_image(stage, model):
    """Of a model of either vendor."""
    _, front = stage
    made = front.openai().images.generate(model=model, prompt="A lighthouse.")

    assert base64.b64decode(made.data[0].b64_json).startswith(b"\x89PNG")


def test_an_image_on_the_way(stage):
    """A stream has the events that the client waits for."""
    _, front = stage
    events = list(
        front.openai().images.generate(
            model="openai:gpt-image-2", prompt="A lighthouse.", stream=True, partial_images=1
        )
    )

    assert events[-1].type == "image_generation.completed"


def test_speech_and_its_transcript(stage):
    """As bytes, and as text."""
    _, front = stage
    client = front.openai()
    spoken = client.audio.speech.create(
        model="gemini:gemini-2.5-flash-preview-tts",
        voice="Kore",
        input="Hello",
        response_format="wav",
    )
    heard = client.audio.transcriptions.create(model="openai:whisper-1", file=("a.wav", WAV))

    assert spoken.read()[:4] == b"RIFF"
    assert heard.text


def test_moderation(stage):
    """Each text is judged."""
    _, front = stage
    judged = front.openai().moderations.create(
        model="openai:omni-moderation-latest", input=["I will kill you.", "Bread"]
    )

    assert [each.flagged for each in judged.results] == [True, False]


def test_reranking(stage):
    """In the form that most hosts have."""
    _, front = stage
    body = {"model": "cohere:rerank-v3.5", "query": "red bicycle", "documents": TEXTS, "top_n": 1}
    found = front.openai().post("/rerank", body=body, cast_to=object)

    assert [row["index"] for row in found["results"]] == [0]


def test_an_unknown_model_is_404(stage):
    """As for an answer."""
    _, front = stage
    with pytest.raises(Exception, match="does not exist, or this key may not use it") as caught:
        front.openai().embeddings.create(model="nothing", input="x")
    assert caught.value.status_code == 404


def test_a_provider_without_the_operation_is_400(stage):
    """The client's request cannot be performed there, now or later."""
    _, front = stage
    with pytest.raises(Exception, match="no operation 'embed'") as caught:
        front.openai().embeddings.create(model="anthropic:claude-haiku-4-5", input="x")
    assert caught.value.status_code == 400


NAMED = {"x-interlingua-provider": "openai"}


def test_files_are_at_the_provider_that_a_header_names(stage):
    """Uploaded, listed, described and deleted; an id may name the provider too."""
    _, front = stage
    files = front.openai().files
    made = files.create(file=("a.txt", b"abc"), purpose="user_data", extra_headers=NAMED)
    listed = [each.id for each in files.list(extra_headers=NAMED)]
    found = files.retrieve(f"openai:{made.id}")
    deleted = files.delete(made.id, extra_headers=NAMED)

    assert made.id in listed
    assert found.bytes == 3
    assert deleted.deleted


def test_a_video_in_googles_form_is_downloaded_from_here(stage):
    """The job names no address of the provider, which would get the key of the gateway."""
    _, front = stage
    path = "/v1beta/models/gemini:veo-3.1-generate-preview:predictLongRunning"
    job = ask(front, path, {"instances": [{"prompt": "Waves."}]}).json
    while not job.get("done"):
        job = ask(front, f"/v1beta/{job['name']}", method="GET").json
    (sample,) = job["response"]["generateVideoResponse"]["generatedSamples"]
    address = sample["video"]["uri"]

    assert address.startswith(f"{front.url}/v1beta/files/")
    request = Request(address, headers={"x-goog-api-key": front.key})  # noqa: S310 -- on loopback
    with urlopen(request) as reply:  # noqa: S310
        assert reply.read()[4:8] == b"ftyp"


def test_a_key_for_some_models_cannot_read_what_others_have_stored():
    """All keys of a gateway share one account at the provider."""
    with (
        serve_in_thread(Simulator()) as upstream,
        gateway(adapters(upstream.url), models=["openai:*"]) as front,
        pytest.raises(Exception, match="A key that may use only some models") as caught,
    ):
        front.openai().files.list(extra_headers=NAMED)
    assert caught.value.status_code == 404


def test_a_video_is_made_and_found_again(stage):
    """By the id that the client got, which leads to the provider that makes it."""
    _, front = stage
    client = front.openai()
    body = {"model": "gemini:veo-3.1-generate-preview", "prompt": "Waves."}
    job = client.post("/videos", body=body, cast_to=object)
    found = client.get(f"/videos/{job['id']}", cast_to=object)
    while found["status"] != "completed":
        found = client.get(f"/videos/{job['id']}", cast_to=object)

    assert found["id"] == job["id"]
    assert client.get(f"/videos/{job['id']}/content", cast_to=bytes)[4:8] == b"ftyp"
    with pytest.raises(Exception, match="Name the provider in the header") as caught:
        client.get("/videos/video_none", cast_to=object)
    assert caught.value.status_code == 404
