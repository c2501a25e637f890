"""Tests of video jobs, end to end: our client against the simulator, over loopback HTTP."""

import asyncio
import json
import struct
import subprocess
import sys

import pytest
from msgspec.structs import replace

from interlingua import (
    AbortController,
    Client,
    HttpAdapter,
    Image,
    RetryPolicy,
    from_json,
    generate_video,
    simulator,
    to_json,
    video,
)
from interlingua.errors import (
    AbortError,
    BudgetExceededError,
    ConfigurationError,
    ContentFilterError,
    InvalidRequestError,
    NetworkError,
    NotFoundError,
    ProviderError,
    RateLimitError,
    RequestTimeoutError,
    ServerError,
    StreamError,
    UnsupportedError,
)
from interlingua.middleware import Budget, Logging, RateLimit, Redact
from interlingua.simulator import Simulator, VideoScript
from interlingua.spec.operations import Failure
from interlingua.transport import AsgiTransport, CannedReply, CannedTransport
from interlingua.video import VideoJob
from support import virtual_time
from support.videos import FAST, KEY, MODELS, adapters, video_peer

every_provider = pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010806000000"
    "1f15c4890000000a49444154789c63000100000500010d0a2db40000000049454e44ae426082"
)
QUICK = RetryPolicy(max_retries=2, base_delay=0.001, jitter=False)


def seconds_of_mp4(data: bytes) -> float:
    """The length that the header of an MP4 file states."""
    place = data.index(b"mvhd") + 4
    scale, length = struct.unpack(">II", data[place + 12 : place + 20])
    return length / scale


@every_provider
def test_a_video_is_made_and_written(model, tmp_path):
    """One call creates the job, asks until it is complete, and writes the file."""
    states, reports, target = [], [], tmp_path / "sea.mp4"
    with video_peer() as peer:
        job = asyncio.run(
            generate_video(
                model,
                "A calm sea.",
                seconds=8,
                size="1280x720",
                output_path=target,
                poll_interval=FAST,
                on_progress=lambda job: states.append(job.state),
                on_usage=reports.append,
                client=peer.client,
            )
        )
    assert states == ["queued", "in_progress", "in_progress", "completed"]
    assert job.state == "completed"
    assert job.saved_path == str(target)
    assert job.usage.video_seconds == 8
    assert seconds_of_mp4(target.read_bytes()) == 8
    assert [each.name for each in tmp_path.iterdir()] == ["sea.mp4"]
    assert [report.usage.video_seconds for report in reports] == [8]
    assert reports[0].is_final
    assert reports[0].cost == job.cost


def test_the_price_of_a_second_depends_on_the_resolution():
    """The cost is the length times the catalog's rate for the resolution."""

    async def costs(client):
        for size in ("720p", "1080p", "4k"):
            job = await video.create(
                "gemini:veo-3.1-fast-generate-001", "Sea.", size=size, client=client
            )
            yield job.cost.total

    async def collect(client):
        return [cost async for cost in costs(client)]

    with video_peer() as peer:
        assert asyncio.run(collect(peer.client)) == pytest.approx([0.8, 0.96, 2.4])


@pytest.mark.parametrize(
    ("model", "replies"),
    [
        (
            "openai_compatible:sora-2",
            [
                {"id": "v1", "model": "backend-7", "status": "queued", "seconds": "4"},
                {"id": "v1", "model": "backend-8", "status": "completed", "seconds": "4"},
            ],
        ),
        (
            "xai:grok-imagine-video",
            [
                {"request_id": "v1"},
                {
                    "status": "done",
                    "model": "backend-8",
                    "video": {"url": "https://host.test/a.mp4", "duration": 4},
                },
            ],
        ),
    ],
)
def test_own_prices_count_whatever_name_the_server_echoes(model, replies):
    """`prices=` names the model that was asked for, when a job begins and when it is complete."""
    provider, _, name = model.partition(":")
    transport = CannedTransport([CannedReply(body=json.dumps(reply).encode()) for reply in replies])
    prices = {name: {"per_video_second": 1.0}}

    async def ask():
        base = "https://host.test/v1"
        adapter = HttpAdapter(provider, KEY, base_url=base, transport=transport)
        client = Client({provider: adapter}, prices=prices)
        job = await video.create(model, "a cat", seconds=4, client=client)
        again = from_json(to_json(job), VideoJob)
        return job, await video.retrieve(again, client=client)

    job, done = asyncio.run(ask())

    assert (job.cost.total, job.cost.source) == (4.0, "prices")
    assert (done.state, done.model) == ("completed", "backend-8")
    assert (done.cost.total, done.cost.source) == (4.0, "prices")


def test_own_prices_count_for_every_resolution():
    """`prices=` replaces the catalog's rates of all resolutions."""
    prices = {"gemini:veo-3.1-fast-generate-001": {"outputPricePerSecond": 1.0}}
    with video_peer() as peer:
        job = asyncio.run(
            video.create(
                "gemini:veo-3.1-fast-generate-001",
                "Sea.",
                size="4k",
                seconds=8,
                prices=prices,
                client=peer.client,
            )
        )
    assert job.cost.total == 8.0
    assert job.cost.source == "prices"


def test_an_unknown_price_is_none_with_a_warning():
    """A model without a price has no cost, and one warning says so after all polls."""
    with video_peer() as peer:
        job = asyncio.run(
            generate_video(
                "openai_compatible:sora-2", "Sea.", poll_interval=FAST, client=peer.client
            )
        )
    assert job.cost is None
    assert [warning.code for warning in job.warnings] == ["price_unknown"]


@every_provider
def test_usage_is_reported_once_at_the_end_also_in_another_call(model):
    """Creation reports no usage; the call that sees the job complete reports it, once."""
    reports = []

    async def work(client):
        settings = {"client": client, "on_usage": reports.append}
        job = await generate_video(model, "Sea.", seconds=8, wait="none", **settings)
        assert job.state == "queued"
        assert job.usage.video_seconds == 8
        assert job.usage.estimated
        assert reports == []
        job = await video.wait(job, poll_interval=FAST, **settings)
        assert len(reports) == 1
        assert not reports[0].usage.estimated
        assert await video.wait(job, **settings) is job
        await video.retrieve(job, **settings)
        assert len(reports) == 1

    with video_peer() as peer:
        asyncio.run(work(peer.client))


PROGRAM = """
import asyncio, json, sys
from interlingua import Client, HttpAdapter, from_json, video

url, reference, text, path = sys.argv[1:]
name = reference.partition(":")[0]
paths = {"gemini": "", "vertex": "/v1/projects/p/locations/l/publishers/google"}
base = url + paths.get(name, "/v1")
client = Client({name: HttpAdapter(name, "KEY", base_url=base)})

async def main():
    for job in (reference, from_json(text, video.VideoJob)):
        done = await video.wait(job, poll_interval=0.001, client=client)
        size = await video.download(done, path, client=client)
        print(json.dumps([done.state, done.usage.video_seconds, size]))

asyncio.run(main())
""".replace("KEY", KEY)


@every_provider
def test_another_process_goes_on(model, tmp_path):
    """A second process waits for a job and downloads it, from its reference or its JSON alone."""
    target = tmp_path / "sea.mp4"

    async def create():
        async with peer.client as client:
            first = await video.create(model, "Sea.", seconds=8, client=client)
            second = await video.create(model, "Sea.", seconds=8, client=client)
            return first.reference, to_json(second).decode()

    with video_peer() as peer:
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, peer.server.url, *asyncio.run(create()), str(target)],
            capture_output=True,
            check=True,
            timeout=60,
        )
    size = target.stat().st_size
    # Google does not repeat the length of a video.
    is_google = model.startswith(("gemini", "vertex"))
    assert [json.loads(line) for line in done.stdout.splitlines()] == [
        ["completed", None if is_google else 8, size],
        ["completed", 8, size],
    ]


def test_an_unknown_length_is_said():
    """A job that is known by its reference alone may have no length, and a warning says so."""

    async def work(client):
        job = await video.create(MODELS["gemini"], "Sea.", client=client)
        return await video.wait(job.reference, poll_interval=FAST, client=client)

    with video_peer() as peer:
        job = asyncio.run(work(peer.client))
    assert job.usage.video_seconds is None
    assert job.cost is None
    assert [warning.code for warning in job.warnings] == ["video_length_unknown"]


@every_provider
def test_a_failed_job_raises_the_error_of_the_provider(model):
    """`wait` raises it with the job; `retrieve` returns the job with its error."""
    script = VideoScript(polls=1, error=("internal_error", "The renderer has failed."))

    async def work(client):
        with pytest.raises(ProviderError, match=r"The renderer has failed\.") as caught:
            await generate_video(model, "Sea.", poll_interval=FAST, client=client)
        job = await video.retrieve(caught.value.job, client=client)
        return caught.value, job

    with video_peer(script) as peer:
        error, job = asyncio.run(work(peer.client))
    assert error.job == job.reference
    assert error.job in str(error)
    assert error.provider == model.partition(":")[0]
    assert job.state == "failed"
    assert type(job.error) is type(error)
    assert job.usage.video_seconds is None


@every_provider
def test_a_filtered_video_is_a_content_filter_error(model, tmp_path):
    """A video that a safety filter withholds is a typed error, and nothing is written."""
    script = VideoScript(polls=0, filtered=("The prompt was blocked by our safety filters.",))
    target = tmp_path / "sea.mp4"
    with video_peer(script) as peer, pytest.raises(ContentFilterError) as caught:
        asyncio.run(
            generate_video(
                model, "Sea.", poll_interval=FAST, output_path=target, client=peer.client
            )
        )
    assert caught.value.job is not None
    assert list(tmp_path.iterdir()) == []


def test_a_timeout_leaves_the_job_running():
    """A timeout names the job, which another call waits for."""

    async def work(client):
        with pytest.raises(RequestTimeoutError) as caught:
            await generate_video(
                MODELS["gemini"], "Sea.", poll_interval=30, timeout=0.3, client=client
            )
        return await video.wait(caught.value.job, poll_interval=FAST, client=client)

    app = Simulator(key=KEY, videos=[VideoScript(polls=3)])
    client = Client({"gemini": HttpAdapter("gemini", KEY, transport=AsgiTransport(app))})
    assert virtual_time.run(work(client)).state == "completed"


def test_an_abort_leaves_the_job_running():
    """An abort signal ends the wait between two questions and names the job."""
    controller = AbortController()

    async def work(client):
        with pytest.raises(AbortError) as caught:
            await generate_video(
                MODELS["xai"],
                "Sea.",
                poll_interval=30,
                on_progress=lambda job: job.state == "in_progress" and controller.abort("enough"),
                abort_signal=controller.signal,
                client=client,
            )
        return await video.wait(caught.value.job, poll_interval=FAST, client=client)

    with video_peer() as peer:
        assert asyncio.run(work(peer.client)).state == "completed"


def test_a_cancelled_task_leaves_the_job_running():
    """The error has the job, which `on_progress` got before anything was waited for."""
    jobs = []

    async def work(client):
        created = asyncio.Event()

        def progress(job):
            jobs.append(job)
            created.set()

        task = asyncio.create_task(
            generate_video(
                MODELS["openai_compatible"],
                "Sea.",
                poll_interval=30,
                on_progress=progress,
                client=client,
            )
        )
        await created.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError) as caught:
            await task
        assert caught.value.job == jobs[0].reference
        return await video.wait(caught.value.job, poll_interval=FAST, client=client)

    with video_peer() as peer:
        assert asyncio.run(work(peer.client)).state == "completed"


@pytest.mark.parametrize("status", [429, 503])
def test_a_refused_creation_is_retried(status):
    """A provider that has no room has not started a job, so the request is sent again."""
    refused = VideoScript(refusal=Failure(status=status))
    with video_peer(refused, refused, VideoScript()) as peer:
        job = asyncio.run(
            video.create(MODELS["gemini"], "Sea.", retry_policy=QUICK, client=peer.client)
        )
        assert job.state == "queued"
        assert len(peer.calls) == 3


@pytest.mark.parametrize("status", [500, 502, 504])
def test_a_creation_that_may_have_begun_is_not_retried(status):
    """After a server error a job may exist, and a second request would be paid for, too."""
    with video_peer(VideoScript(refusal=Failure(status=status)), VideoScript()) as peer:
        with pytest.raises(ServerError) as caught:
            asyncio.run(
                video.create(MODELS["gemini"], "Sea.", retry_policy=QUICK, client=peer.client)
            )
        assert len(peer.calls) == 1
    assert not caught.value.retryable


def test_a_creation_whose_connection_was_lost_is_not_retried():
    """A request whose reply was lost is not sent again, neither by retries nor by the transport."""
    received = 0

    async def reset(reader, writer):
        nonlocal received
        await reader.readuntil(b"\r\n\r\n")
        received += 1
        writer.close()

    async def work():
        server = await asyncio.start_server(reset, "127.0.0.1", 0)
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        async with server:
            with pytest.raises(NetworkError) as caught:
                await video.create(
                    MODELS["gemini"], "Sea.", retry_policy=QUICK, client=Client(adapters(url))
                )
        return caught.value

    error = asyncio.run(work())
    assert received == 1
    assert not error.retryable


def test_a_creation_without_a_connection_is_retried():
    """Where nobody listens nothing was sent, so all attempts are made."""
    with simulator.serve_in_thread(simulator.Simulator()) as server:
        url = server.url
    with pytest.raises(NetworkError) as caught:
        asyncio.run(
            video.create(MODELS["gemini"], "Sea.", retry_policy=QUICK, client=Client(adapters(url)))
        )
    assert caught.value.phase == "connect"
    assert len(caught.value.attempts) == 3


def test_questions_are_retried():
    """A question that fails is asked again: it starts nothing."""
    failing = 2

    class Flaky(simulator.Simulator):
        async def handle(self, incoming, receive, send):
            nonlocal failing
            if incoming.call.method == "GET" and failing:
                failing -= 1
                raise simulator.SimulatedResetError
            await super().handle(incoming, receive, send)

    with simulator.serve_in_thread(Flaky()) as server:
        job = asyncio.run(
            generate_video(
                MODELS["gemini"],
                "Sea.",
                poll_interval=FAST,
                retry_policy=QUICK,
                client=Client(adapters(server.url)),
            )
        )
    assert job.state == "completed"
    assert failing == 0


@pytest.mark.parametrize(
    ("model", "settings", "sentence"),
    [
        ("openai:sora-2", {}, r"gemini, xai, vertex\. For a server that has /v1/videos"),
        (MODELS["gemini"], {"seconds": 5}, r"seconds 5\. Allowed: 4, 6, 8"),
        (MODELS["gemini"], {"size": "1024x1024"}, r"size 1024x1024\. Allowed: 720p, 1080p, 4k"),
        (MODELS["gemini"], {"aspect_ratio": "1:1"}, r"aspect_ratio 1:1\. Allowed: 16:9, 9:16"),
        (MODELS["gemini"], {"size": "1080p", "seconds": 4}, r"Allowed: 8 in 1080p"),
        (MODELS["gemini"], {"count": 5}, r"at most 4"),
        (MODELS["xai"], {"seconds": 16}, r"Allowed: 1 to 15"),
        (MODELS["xai"], {"size": "4k"}, r"Allowed: 480p, 720p"),
        (MODELS["openai_compatible"], {"seconds": 5}, r"Allowed: 4, 8, 12"),
        (MODELS["openai_compatible"], {"size": "1920x1080"}, r"Allowed: 720x1280, 1280x720"),
        (MODELS["openai_compatible"], {"aspect_ratio": "1:1"}, r"Allowed: 720x1280, 1280x720"),
    ],
)
def test_what_a_model_does_not_have_is_refused_before_it_is_sent(model, settings, sentence):
    """The error names the allowed values or who can do it, and nothing was sent."""
    with video_peer() as peer:
        with pytest.raises(UnsupportedError, match=sentence):
            asyncio.run(generate_video(model, "Sea.", client=peer.client, **settings))
        assert peer.calls == []


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"prompt": " "}, "prompt"),
        ({"seconds": 0}, "seconds"),
        ({"seconds": True}, "seconds"),
        ({"seconds": float("nan")}, "seconds"),
        ({"size": "large"}, "1280x720"),
        ({"aspect_ratio": "wide"}, "16:9"),
        ({"size": "1280x720", "aspect_ratio": "9:16"}, "Give one of the two"),
        ({"count": 1.5}, "count"),
        ({"image": "cat.png"}, "pathlib"),
        ({"wait": "forever"}, "'poll' or 'none'"),
        ({"wait": "none", "output_path": "x.mp4"}, "`output_path` needs"),
        ({"output_path": "missing/x.mp4"}, "there is no folder missing"),
        ({"variant": "gif"}, "spritesheet"),
        ({"poll_interval": -1}, "poll_interval"),
        ({"lenght": 3}, "Unknown option"),
    ],
)
def test_wrong_arguments_are_refused(settings, sentence):
    """Each wrong argument is named, with what to pass instead."""
    settings = {"prompt": "Sea.", **settings}
    with video_peer() as peer:
        with pytest.raises(ConfigurationError, match=sentence):
            asyncio.run(generate_video(MODELS["gemini"], client=peer.client, **settings))
        assert peer.calls == []


@pytest.mark.parametrize("job", ["", "gemini:", "video_1", 7, None])
def test_what_names_no_job_is_refused(job):
    """A job is a `VideoJob` or a reference with its provider."""
    with video_peer() as peer, pytest.raises(ConfigurationError):
        asyncio.run(video.retrieve(job, client=peer.client))


@pytest.mark.parametrize("name", ["models/x/operations/../../files/y", "files/a", "operations/1?x"])
def test_an_id_cannot_lead_elsewhere(name):
    """An id that is not one of an operation is refused before it becomes a path."""
    with video_peer() as peer:
        with pytest.raises(ConfigurationError, match="not the id of a video job"):
            asyncio.run(video.retrieve(f"gemini:{name}", client=peer.client))
        assert peer.calls == []


@every_provider
@pytest.mark.parametrize("source", ["bytes", "path"])
def test_the_first_frame_arrives(model, source, tmp_path):
    """An image is sent as bytes, whatever form the provider takes."""
    path = tmp_path / "frame.png"
    path.write_bytes(PNG)
    with video_peer() as peer:
        image = PNG if source == "bytes" else path
        asyncio.run(video.create(model, "Sea.", image=image, client=peer.client))
        call = peer.app.script.received[0].call
    sent = [part.content for part in call.form if part.file_name] or [json.dumps(call.body)]
    assert sent == [PNG] or "iVBORw0KGgo" in sent[0]


@pytest.mark.parametrize(
    ("model", "sent"),
    [
        (MODELS["gemini"], {"aspectRatio": "9:16", "resolution": "720p", "durationSeconds": 8}),
        (MODELS["xai"], {"aspect_ratio": "9:16", "resolution": "720p", "duration": 8}),
        (MODELS["openai_compatible"], {"size": "720x1280", "seconds": "8"}),
    ],
)
@pytest.mark.parametrize(
    "shape", [{"size": "720x1280"}, {"size": "720p", "aspect_ratio": "9:16"}], ids=str
)
def test_one_shape_in_each_form(model, sent, shape):
    """Pixels, or a resolution with a ratio, are sent in the provider's own terms."""
    with video_peer() as peer:
        job = asyncio.run(video.create(model, "Sea.", seconds=8, client=peer.client, **shape))
        body = peer.app.script.received[0].call.body
    assert sent.items() <= {**body, **body.get("parameters", {})}.items()
    assert job.size == "720x1280"


def test_several_videos_of_a_prompt(tmp_path):
    """Each of several samples can be downloaded, and all of them are counted."""

    async def work(client):
        job = await generate_video(
            MODELS["gemini"], "Sea.", count=2, poll_interval=FAST, client=client
        )
        for index in (0, 1):
            await video.download(job, tmp_path / f"{index}.mp4", index=index, client=client)
        with pytest.raises(ConfigurationError, match="The job has 2 videos"):
            await video.download(job, tmp_path / "2.mp4", index=2, client=client)
        return job

    with video_peer() as peer:
        job = asyncio.run(work(peer.client))
    assert job.usage.video_seconds == 16
    assert (tmp_path / "0.mp4").read_bytes() != (tmp_path / "1.mp4").read_bytes()


def test_pictures_of_a_video(tmp_path):
    """The OpenAI-shaped API also has a thumbnail and a spritesheet; the others refuse."""

    async def work(client):
        job = await generate_video(
            MODELS["openai_compatible"], "Sea.", poll_interval=FAST, client=client
        )
        for variant in ("thumbnail", "spritesheet"):
            await video.download(job, tmp_path / variant, variant=variant, client=client)
        other = await generate_video(MODELS["gemini"], "Sea.", poll_interval=FAST, client=client)
        with pytest.raises(UnsupportedError, match="no thumbnail"):
            await video.download(other, tmp_path / "x", variant="thumbnail", client=client)

    with video_peer() as peer:
        asyncio.run(work(peer.client))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["spritesheet", "thumbnail"]
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in tmp_path.iterdir())


def test_a_job_that_is_not_complete_is_not_downloaded(tmp_path):
    """The error says to wait first."""

    async def work(client):
        job = await video.create(MODELS["gemini"], "Sea.", client=client)
        await video.download(job.reference, tmp_path / "x.mp4", client=client)

    with video_peer() as peer, pytest.raises(ConfigurationError, match="Wait for it first"):
        asyncio.run(work(peer.client))


def test_jobs_are_listed_cancelled_deleted_and_remixed():
    """The OpenAI-shaped API has all operations."""

    async def work(client):
        model = MODELS["openai_compatible"]
        first = await generate_video(model, "Sea.", poll_interval=FAST, client=client)
        second = await video.remix(first, "At night.", client=client)
        assert second.remixed_from == first.id
        assert second.seconds == first.seconds
        for _ in range(25):
            last = await video.create(model, "Sea.", client=client)
        jobs = await video.list("openai_compatible:", limit=10, client=client)
        assert len(jobs) == 27
        assert jobs[0].id == last.id
        assert jobs[0].reference == last.reference
        cancelled = await video.cancel(last, client=client)
        assert cancelled.state == "cancelled"
        with pytest.raises(AbortError) as caught:
            await video.wait(last, client=client)
        assert caught.value.job == last.reference
        await video.delete(first, client=client)
        with pytest.raises(NotFoundError):
            await video.retrieve(first, client=client)
        with pytest.raises(InvalidRequestError):
            await video.delete(second, client=client)

    with video_peer() as peer:
        asyncio.run(work(peer.client))


def test_jobs_of_google_are_listed_by_model_and_cancelled():
    """Google lists the jobs of one model, page by page."""

    async def work(client):
        for _ in range(5):
            job = await video.create(MODELS["gemini"], "Sea.", client=client)
        jobs = await video.list(MODELS["gemini"], limit=2, client=client)
        assert len(jobs) == 5
        assert jobs[0].id == job.id
        assert (await video.cancel(job, client=client)).state == "cancelled"
        assert (await video.retrieve(job, client=client)).state == "cancelled"
        with pytest.raises(ConfigurationError, match="of one model"):
            await video.list("gemini:", client=client)

    with video_peer() as peer:
        asyncio.run(work(peer.client))


def test_what_xai_does_not_have_is_refused():
    """The error names who can."""
    with video_peer() as peer:
        for call in (
            lambda: video.cancel("xai:1", client=peer.client),
            lambda: video.list("xai:", client=peer.client),
            lambda: video.remix("xai:1", "More.", client=peer.client),
        ):
            with pytest.raises(UnsupportedError, match="xai has no operation"):
                asyncio.run(call())
        assert peer.calls == []


# Where the bytes come from.


def moved_server(handler):
    """A server that answers with `handler(path, headers) -> (status, headers, body)`."""

    async def answer(reader, writer):
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        lines = head.split("\r\n")
        headers = {k.lower(): v for k, _, v in (line.partition(": ") for line in lines[1:]) if k}
        status, more, body = handler(lines[0].split()[1], headers)
        fields = {"content-length": str(len(body)), "connection": "close", **more}
        text = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
        writer.write(f"HTTP/1.1 {status} X\r\n{text}\r\n".encode() + body)
        await writer.drain()
        writer.close()

    return asyncio.start_server(answer, "127.0.0.1", 0)


def url_of(server):
    return f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


def completed(provider, url):
    return VideoJob(
        id="models/veo-3.1-generate-001/operations/1" if provider == "gemini" else "1",
        provider=provider,
        state="completed",
        seconds=8.0,
        files=(video.VideoFile(url=url),),
    )


@pytest.mark.parametrize("way", ["named", "redirected"])
def test_the_key_is_not_sent_to_another_host(way, tmp_path):
    """A file at another host is fetched without the key, named by the reply or by a redirect."""
    seen = []

    async def work():
        def elsewhere(_path, headers):
            seen.append(("elsewhere", headers))
            return 200, {}, b"video bytes"

        async with await moved_server(elsewhere) as other:

            def own(_path, headers):
                seen.append(("own", headers))
                return 302, {"location": f"{url_of(other)}/signed"}, b""

            async with await moved_server(own) as provider:
                client = Client(adapters(url_of(provider)))
                start = url_of(other if way == "named" else provider)
                job = completed("xai", f"{start}/video.mp4")
                return await video.download(job, tmp_path / "x.mp4", client=client)

    assert asyncio.run(work()) == 11
    assert (tmp_path / "x.mp4").read_bytes() == b"video bytes"
    assert [place for place, _ in seen][-1] == "elsewhere"
    for place, headers in seen:
        assert any(KEY in value for value in headers.values()) is (place == "own")


def test_a_public_provider_cannot_name_a_private_address(tmp_path):
    """A provider on the internet cannot make the program call its own network."""
    client = Client({"xai": HttpAdapter("xai", KEY)})
    job = completed("xai", "http://127.0.0.1:9/video.mp4")
    with pytest.raises(ConfigurationError, match="not a public address"):
        asyncio.run(video.download(job, tmp_path / "x.mp4", client=client))


def test_endless_redirects_end(tmp_path):
    """A download that is redirected for ever is an error."""

    async def work():
        def own(path, _headers):
            return 302, {"location": f"{path}x"}, b""

        async with await moved_server(own) as provider:
            client = Client(adapters(url_of(provider)))
            job = completed("xai", f"{url_of(provider)}/video.mp4")
            await video.download(job, tmp_path / "x.mp4", client=client)

    with pytest.raises(Exception, match="redirects a download more than"):
        asyncio.run(work())


@pytest.mark.parametrize("host", ["own", "other"])
def test_a_download_that_is_cut_leaves_nothing(host, tmp_path):
    """A file that did not arrive whole does not appear, and an older one stays."""
    target = tmp_path / "x.mp4"
    target.write_bytes(b"older")

    async def work():
        def cut(_path, _headers):
            return 200, {"content-length": "1000"}, b"half"

        async with await moved_server(cut) as server:
            base = url_of(server) if host == "own" else "http://127.0.0.1:9"
            job = completed("xai", f"{url_of(server)}/video.mp4")
            await video.download(job, target, client=Client(adapters(base)))

    with pytest.raises((NetworkError, StreamError), match=r"ended too early|Cannot fetch"):
        asyncio.run(work())
    assert target.read_bytes() == b"older"
    assert [path.name for path in tmp_path.iterdir()] == ["x.mp4"]


def test_a_proxy_is_asked_for_the_file_of_the_vendor(tmp_path):
    """The vendor names its own host; with another base URL the file is asked for there."""
    asked = []

    async def work():
        def proxy(path, headers):
            asked.append((path, headers["x-goog-api-key"]))
            return 200, {}, b"bytes"

        async with await moved_server(proxy) as server:
            vendor = "https://generativelanguage.googleapis.com/v1beta/files/a:download?alt=media"
            client = Client(adapters(url_of(server)))
            await video.download(completed("gemini", vendor), tmp_path / "x.mp4", client=client)

    asyncio.run(work())
    assert asked == [("/v1beta/files/a:download?alt=media", KEY)]


# Middleware and records.


def test_a_budget_counts_a_job_when_it_is_created():
    """An estimate is reserved before the request; questions and downloads cost nothing."""
    budget = Budget(usd=5)

    async def work(client):
        job = await generate_video(
            MODELS["gemini"], "Sea.", seconds=8, poll_interval=FAST, client=client
        )
        assert await budget.used() == pytest.approx(job.cost.total) == pytest.approx(3.2)
        with pytest.raises(BudgetExceededError) as caught:
            await video.create(MODELS["gemini"], "Sea.", seconds=8, client=client)
        assert await budget.used() == pytest.approx(3.2)
        return caught.value

    with video_peer(middleware=[budget]) as peer:
        asyncio.run(work(peer.client))
        assert sum(call.startswith("POST") for call in peer.calls) == 1


def test_middleware_and_call_events_cover_each_call(caplog):
    """Logging, limits and subscribers see the creation, each question and the download."""
    events = []
    with video_peer(middleware=[Logging(), RateLimit(requests_per_minute=600)]) as peer:
        peer.client.subscribe(events.append)
        with caplog.at_level("INFO"):
            asyncio.run(
                generate_video(MODELS["gemini"], "Sea.", poll_interval=FAST, client=peer.client)
            )
    names = [record.operation for record in caplog.records if hasattr(record, "operation")]
    assert names.count("create_video") >= 1
    assert names.count("retrieve_video") >= 3
    assert [event.type for event in events] == ["call_started", "call_completed"] * 4


def test_redaction_leaves_the_names_of_jobs():
    """Personal data of a prompt is not sent; an id that looks like a telephone number is."""

    async def work(client):
        job = await video.create(MODELS["xai"], "Call +1 415 555 0132.", client=client)
        assert "555" not in json.dumps(peer.app.script.received[0].call.body)
        return await video.wait(job.reference, poll_interval=FAST, client=client)

    with video_peer(middleware=[Redact("phone", answers=True)]) as peer:
        jobs = peer.app._operations.videos
        jobs._numbers = iter([14155550132])
        job = asyncio.run(work(peer.client))
    assert job.id == "video_014155550132"
    assert job.files[0].url.startswith("http://127.0.0.1:")


@pytest.mark.parametrize(
    "job",
    [
        VideoJob(id="a", provider="xai"),
        VideoJob(
            id="a",
            provider="x",
            state="failed",
            error=RateLimitError("busy", status_code=429, job="x:a"),
        ),
        replace(
            completed("gemini", "https://example.com/x"),
            progress=12.5,
            filtered=("why",),
            extra={"openai": {"x": [1]}},
        ),
    ],
)
def test_a_job_has_a_json_form(job):
    """A job survives the way through JSON; of an error its fields."""
    copy = from_json(to_json(job), VideoJob)
    assert replace(copy, error=None) == replace(job, error=None)
    assert type(copy.error) is type(job.error)
    assert str(copy.error) == str(job.error)


def test_an_image_by_url_is_refused_where_bytes_are_needed():
    """Veo takes bytes; nothing is sent."""
    image = Image(url="https://example.com/cat.png")
    with video_peer() as peer:
        with pytest.raises(UnsupportedError, match="as bytes"):
            asyncio.run(video.create(MODELS["gemini"], "Sea.", image=image, client=peer.client))
        assert peer.calls == []


def test_a_path_is_read_only_from_path_objects():
    """The name of a file as a text is refused."""
    with video_peer() as peer, pytest.raises(ConfigurationError, match="pathlib"):
        asyncio.run(video.create(MODELS["gemini"], "Sea.", image="/etc/passwd", client=peer.client))


def test_a_run_that_is_cancelled_by_its_id_keeps_its_job():
    """`client.cancel` ends the waiting; the error has the job."""

    async def work(client):
        async def cancel(_):
            assert await client.cancel("video-1")

        with pytest.raises(AbortError) as caught:
            await generate_video(
                MODELS["xai"],
                "Sea.",
                poll_interval=30,
                on_progress=cancel,
                request_id="video-1",
                client=client,
            )
        return await video.wait(caught.value.job, poll_interval=FAST, client=client)

    with video_peer() as peer:
        assert asyncio.run(work(peer.client)).state == "completed"


def replied(model, *bodies, path):
    """What `generate_video` makes of replies: the job, the file and the addresses asked for."""
    replies = [
        CannedReply(body=body if isinstance(body, bytes) else json.dumps(body).encode())
        for body in bodies
    ]
    canned = CannedTransport(replies)
    name = model.partition(":")[0]
    client = Client(
        {name: HttpAdapter(name, KEY, base_url="https://h.example/v1", transport=canned)}
    )

    async def work():
        async with client:
            return await generate_video(
                model, "Sea.", poll_interval=FAST, output_path=path, client=client
            )

    job = asyncio.run(work())
    return job, path.read_bytes(), [request.url for request in canned.requests]


DATA = "data:video/mp4;base64,AAAB"


@pytest.mark.parametrize("word", ["success", "done", "SUCCESS", "completed"])
def test_words_of_compatible_servers_for_a_job_that_is_complete(word, tmp_path):
    """In the form of OpenAI's API."""
    created, done = {"id": "v1", "status": "queued"}, {"id": "v1", "status": word}
    job, data, _ = replied(MODELS["openai_compatible"], created, done, b"film", path=tmp_path / "v")
    assert (job.state, job.raw_state, data) == ("completed", word, b"film")


@pytest.mark.parametrize("provider", ["openai_compatible", "xai"])
def test_a_job_that_was_rejected_has_failed(provider, tmp_path):
    """It raises the error at once, instead of asking for ever."""
    created = {"id": "v1", "status": "queued", "request_id": "v1"}
    with pytest.raises(ProviderError, match=r"The job was rejected\."):
        replied(MODELS[provider], created, {"id": "v1", "status": "rejected"}, path=tmp_path / "v")


def test_a_video_may_be_in_its_url(tmp_path):
    """A `data:` URL is decoded, and nothing is downloaded."""
    created = {"id": "v1", "request_id": "v1", "status": "pending"}
    bodies = {
        "openai_compatible": {"id": "v1", "status": "completed", "url": DATA},
        "xai": {"status": "done", "video": {"url": DATA, "duration": 4}},
    }
    for provider, done in bodies.items():
        _, data, urls = replied(MODELS[provider], created, done, path=tmp_path / provider)
        assert data == b"\x00\x00\x01"
        assert len(urls) == 2


@pytest.mark.parametrize("url", ["/v1/files/a.mp4", "files/a.mp4", "/files/a.mp4"])
def test_a_relative_url_is_at_the_address_of_the_provider(url, tmp_path):
    """It is downloaded from there."""
    created = {"request_id": "v1"}
    done = {"status": "done", "video": {"url": url, "duration": 4}}
    _, data, urls = replied(MODELS["xai"], created, done, b"film", path=tmp_path / "v")
    assert data == b"film"
    assert urls[-1] == "https://h.example/v1/files/a.mp4"
