"""The vendors' own clients make videos with the simulator, over HTTP on loopback."""

import io
import warnings

import openai
import pytest
from google import genai
from google.genai import types as genai_types
from google.oauth2.credentials import Credentials

from interlingua.simulator import Simulator, VideoScript, serve_in_thread
from interlingua.simulator.operations.videos import make_mp4
from interlingua.spec.operations import Failure

PNG = b"\x89PNG\r\n\x1a\n" + bytes(64)


@pytest.fixture
def url():
    with serve_in_thread(Simulator()) as server:
        yield server.url


def openai_videos(url, closed):
    client = closed(openai.OpenAI(api_key="k", base_url=f"{url}/v1", max_retries=0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return client.videos


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
class TestOpenAI:
    """The methods of `client.videos` are deprecated, but still there."""

    def test_all_operations(self, url, closed):
        """Create with a file, poll, download each variant, remix, list in pages, delete."""
        videos = openai_videos(url, closed)
        frame = ("frame.png", io.BytesIO(PNG), "image/png")
        made = videos.create(
            model="sora-2", prompt="Sea.", seconds="8", size="1280x720", input_reference=frame
        )
        assert (made.status, made.seconds, made.size) == ("queued", "8", "1280x720")
        done = videos.poll(made.id, poll_interval_ms=1)
        assert (done.status, done.progress) == ("completed", 100)
        assert videos.download_content(made.id).read() == make_mp4(8, "Sea.0")
        picture = videos.download_content(made.id, variant="thumbnail").read()
        assert picture.startswith(b"\x89PNG")
        again = videos.remix(made.id, prompt="At night.")
        assert again.remixed_from_video_id == made.id
        listed = list(videos.list(limit=1))
        assert [each.id for each in listed] == [again.id, made.id]
        assert [each.id for each in videos.list(order="asc")] == [made.id, again.id]
        assert videos.delete(made.id).deleted
        with pytest.raises(openai.NotFoundError):
            videos.retrieve(made.id)

    def test_a_failed_job(self, closed):
        """A failed job is described with its error."""
        script = VideoScript(polls=0, error=("moderation_blocked", "No."))
        with serve_in_thread(Simulator(videos=[script])) as server:
            job = openai_videos(server.url, closed).create_and_poll(
                prompt="Sea.", poll_interval_ms=1
            )
        assert job.status == "failed"
        assert (job.error.code, job.error.message) == ("moderation_blocked", "No.")

    def test_a_refused_job(self, closed):
        """A job that is not accepted is an HTTP error."""
        script = VideoScript(refusal=Failure(status=429))
        with (
            serve_in_thread(Simulator(videos=[script])) as server,
            pytest.raises(openai.RateLimitError),
        ):
            openai_videos(server.url, closed).create(prompt="Sea.")


def finish(client, operation):
    for _ in range(10):
        if operation.done:
            break
        operation = client.operations.get(operation)
    return operation


def vertex_client(url):
    return genai.Client(
        vertexai=True,
        project="p",
        location="l",
        credentials=Credentials(token="t"),
        http_options=genai_types.HttpOptions(base_url=url),
    )


def test_google_creates_in_vertex_mode(url, closed):
    """This client creates videos only at Vertex AI, which sends the bytes with the operation."""
    client = closed(vertex_client(url))
    operation = client.models.generate_videos(
        model="veo-3.1-generate-001",
        source=genai_types.GenerateVideosSource(
            prompt="Sea.",
            image=genai_types.Image(image_bytes=PNG, mime_type="image/png"),
        ),
        config=genai_types.GenerateVideosConfig(number_of_videos=2, duration_seconds=6),
    )
    assert not operation.done
    done = finish(client, operation)
    found = [each.video.video_bytes for each in done.response.generated_videos]
    assert found == [make_mp4(6, "Sea.0"), make_mp4(6, "Sea.1")]


def test_google_follows_and_downloads_in_developer_mode(url, closed):
    """Operations of the Gemini API are read, and their files downloaded."""
    client = closed(genai.Client(api_key="k", http_options=genai_types.HttpOptions(base_url=url)))
    raw = client._api_client.request(
        "post",
        "models/veo-3.1-generate-001:predictLongRunning",
        {"instances": [{"prompt": "Sea."}], "parameters": {"durationSeconds": 4}},
    )
    assert '"name"' in raw.body
    name = "models/veo-3.1-generate-001/operations/video_000000000001"
    assert name in raw.body
    done = finish(client, genai_types.GenerateVideosOperation(name=name))
    sample = done.response.generated_videos[0]
    assert client.files.download(file=sample) == make_mp4(4, "Sea.0")


def test_google_sees_a_filter(closed):
    """The reasons of a safety filter arrive."""
    script = VideoScript(polls=0, filtered=("Blocked by the safety filter.",))
    with serve_in_thread(Simulator(videos=[script])) as server:
        client = closed(vertex_client(server.url))
        operation = client.models.generate_videos(
            model="veo-3.1-generate-001",
            source=genai_types.GenerateVideosSource(prompt="Sea."),
        )
        done = finish(client, operation)
    assert done.response.rai_media_filtered_reasons == ["Blocked by the safety filter."]
    assert done.response.rai_media_filtered_count == 1
