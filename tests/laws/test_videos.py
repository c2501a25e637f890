"""Every recorded exchange about videos decodes, and encodes to the same meaning, on both sides."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from openai.types import Video

from interlingua import dialects
from interlingua.dialects.gemini_generate import video as gemini_video
from interlingua.dialects.openai_shared import video as openai_video
from interlingua.dialects.openai_shared import xai_video
from interlingua.errors import (
    ContentFilterError,
    DecodeError,
    InvalidRequestError,
    ProviderError,
    SDKError,
    UnsupportedError,
)
from interlingua.serving.application import find_route
from interlingua.spec.content import Image
from interlingua.spec.contracts import NEUTRAL_PROFILE, WireCall
from interlingua.spec.modalities.images import (
    pixels_of,
    ratio_of,
    ratio_value,
    resolution_of,
    size_of,
)
from interlingua.spec.modalities.video import CreateVideoInput, VideoFile, VideoJob, VideoQuery
from interlingua.spec.operations import OperationReply
from interlingua.wire.json_text import dumps, loads
from support.corpus import file_records

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


RECORDS = file_records("videos")
every_record = pytest.mark.parametrize("record", RECORDS, ids=lambda record: record["id"][-12:])
NAME = "models/veo-3.1-lite-generate-preview/operations/umz7sqimep69"


def perform(dialect, name, value, *replies):
    """The calls and the result of an operation whose replies are these."""
    script = dialects.get(dialect).OPERATIONS[name].script(value, NEUTRAL_PROFILE)
    calls = [next(script)]
    for reply in replies:
        try:
            calls.append(script.send(OperationReply(200, {}, dumps(reply))))
        except StopIteration as end:
            return calls, end.value
    raise AssertionError("the operation has not ended")


@every_record
def test_a_recorded_call_is_the_one_that_we_send(record):
    """Decoded by the server side and encoded by the client side, a request is the same."""
    route = find_route(record["method"], record["path"], {})
    assert (route.dialect, route.kind) == ("gemini_generate", "operation")
    call = WireCall(method=record["method"], path=record["path"], body=record["request_body"])
    value = route.operation.decode(call, route.params)
    if isinstance(value, VideoQuery):
        value = replace(value, id=NAME)
    sent, _ = perform(route.dialect, route.operation.name, value, record["response_body"])
    assert (sent[0].method, sent[0].path) == (record["method"], record["path"])
    assert sent[0].body == record["request_body"]


@every_record
def test_a_recorded_reply_is_the_one_that_we_would_send(record):
    """Decoded by the client side and encoded by the server side, a reply is the same."""
    route = find_route(record["method"], record["path"], {})
    value = VideoQuery(id=NAME)
    if record["method"] == "POST":
        value = CreateVideoInput(prompt="x", model="veo-3.1-lite-generate-preview", seconds=4)
    _, job = perform("gemini_generate", route.operation.name, value, record["response_body"])
    assert job.id == NAME
    assert job.model == "veo-3.1-lite-generate-preview"
    assert gemini_video.write_job(job, VideoQuery()) == record["response_body"]


def test_the_recorded_job_is_complete():
    """The last recorded reply has one video, whose download needs the key."""
    if not RECORDS:
        pytest.skip("no recordings here")
    value = VideoQuery(id=NAME, job=VideoJob(id=NAME, seconds=4.0, size="720p"))
    _, job = perform("gemini_generate", "retrieve_video", value, RECORDS[-1]["response_body"])
    assert job.state == "completed"
    assert job.usage.video_seconds == 4
    download = dialects.get("gemini_generate").OPERATIONS["download_video"]
    call = download.encode(VideoQuery(id=NAME, job=job), NEUTRAL_PROFILE)
    assert call.path == "/v1beta/files/zqw12cp8qc38:download?alt=media"


# Jobs in each form.

texts = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=20)
ids = st.text("abcdefghijklmnopqrstuvwxyz0123456789_-", min_size=1, max_size=20)
seconds = st.sampled_from([4.0, 8.0, 12.0])
errors = st.builds(
    lambda kind, message, code: kind(message or "x", error_code=code),
    st.sampled_from([ProviderError, ContentFilterError]),
    texts,
    st.sampled_from([None, "internal_error", "moderation_blocked"]),
)


@st.composite
def jobs(draw):
    state = draw(st.sampled_from(["queued", "in_progress", "completed", "failed"]))
    return VideoJob(
        id=draw(ids),
        model=draw(st.sampled_from(["sora-2", "veo-3.1-generate-001"])),
        state=state,
        progress=float(draw(st.integers(0, 100))),
        prompt=draw(texts),
        seconds=draw(seconds),
        size=draw(st.sampled_from(["1280x720", "720x1280"])),
        created_at=float(draw(st.integers(0, 2**31))),
        files=(VideoFile(url="file-1"),) if state == "completed" else (),
        error=draw(errors) if state == "failed" else None,
    )


@given(jobs())
def test_openai_s_own_types_accept_our_jobs(job):
    """What the server side writes is a valid `Video`, and the client side reads it back."""
    body = openai_video.write_job(job)
    parsed = Video.model_validate(body, strict=True)
    assert (parsed.id, parsed.status, parsed.seconds) == (job.id, job.state, f"{job.seconds:g}")
    again = openai_video.read_job(loads(dumps(body)))
    kept = ("id", "model", "state", "progress", "prompt", "seconds", "size", "created_at")
    assert [getattr(again, name) for name in kept] == [getattr(job, name) for name in kept]
    assert openai_video.write_job(again) == body


@given(jobs())
def test_xai_s_form_keeps_state_length_and_file(job):
    """What the server side writes, the client side reads."""
    again = xai_video.read_job(xai_video.write_job(job, "http://h"), job.id)
    expected = "in_progress" if job.state == "queued" else job.state
    assert (again.state, again.model) == (expected, job.model)
    assert (again.error is None) is (job.error is None)
    if job.state == "completed":
        assert again.seconds == job.seconds
        assert again.files[0].url == "http://h/v1/files/file-1/content"


@given(jobs())
def test_google_s_form_keeps_state_and_error(job):
    """What the server side writes, the client side reads."""
    body = loads(dumps(gemini_video.write_job(job, VideoQuery(address="http://h"))))
    _, again = perform("gemini_generate", "retrieve_video", VideoQuery(id=body["name"]), body)
    expected = "in_progress" if job.state == "queued" else job.state
    assert again.state == expected
    assert (again.error is None) is (job.error is None)
    if job.error is not None and job.error.message.strip():
        assert job.error.message.strip() in again.error.message


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | texts,
        lambda inner: st.lists(inner) | st.dictionaries(texts, inner),
        max_leaves=8,
    ),
    st.sampled_from(
        [
            "id",
            "name",
            "status",
            "video",
            "error",
            "response",
            "done",
            "metadata",
            "seconds",
            "usage",
        ]
    ),
)
def test_any_reply_is_a_job_or_one_of_our_errors(value, field):
    """A reply of any shape raises nothing but errors of the library."""
    for wire in (value, {"id": "a", "name": NAME, "done": True, field: value}):
        for read in (
            openai_video.read_job,
            lambda body: xai_video.read_job(body, "a"),
            lambda body: perform("gemini_generate", "retrieve_video", VideoQuery(id=NAME), body),
        ):
            try:
                read(loads(dumps(wire)))
            except SDKError:
                continue


def test_unknown_fields_survive():
    """Fields that we do not know are kept and written again."""
    body = openai_video.write_job(VideoJob(id="a", model="m", seconds=4.0, size="1280x720"))
    body |= {"quality": "high", "nested": {"x": [1, None]}}
    job = openai_video.read_job(body)
    assert job.extra["openai"].items() >= {"quality": "high", "nested": {"x": [1, None]}}.items()
    assert openai_video.write_job(job) == body


@pytest.mark.parametrize(
    ("wire", "state", "seconds", "cost"),
    [
        ({"status": "pending"}, "queued", None, None),
        ({"status": "processing", "seconds": 6}, "in_progress", 6, None),
        ({"status": "SUCCEEDED", "seconds": "6.5"}, "completed", 6.5, None),
        ({"status": "completed", "usage": {"cost": 0.5}}, "completed", None, 0.5),
        ({"status": "expired"}, "failed", None, None),
        ({"status": "canceled"}, "cancelled", None, None),
        ({"status": "dreaming"}, "in_progress", None, None),
        ({"created_at": "2026-01-01T00:00:00Z", "error": "no"}, "in_progress", None, None),
    ],
)
def test_the_words_of_other_servers(wire, state, seconds, cost):
    """Servers of this form have other words for states, and other forms of numbers and times."""
    job = openai_video.read_job({"id": "a", **wire})
    assert (job.state, job.seconds, job.usage.reported_cost) == (state, seconds, cost)
    if "created_at" in wire:
        assert job.created_at == 1767225600.0
        assert job.error.message == "no"


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (3, "InvalidRequestError"),
        (5, "NotFoundError"),
        (7, "AccessDeniedError"),
        (8, "RateLimitError"),
        (13, "ServerError"),
        (14, "ServerError"),
        (16, "AuthenticationError"),
        (99, "ServerError"),
    ],
)
def test_the_codes_of_google_s_jobs(code, kind):
    """The error of an operation has a number of gRPC, not of HTTP."""
    body = {"name": NAME, "done": True, "error": {"code": code, "message": "No."}}
    _, job = perform("gemini_generate", "retrieve_video", VideoQuery(id=NAME), body)
    assert job.state == "failed"
    assert type(job.error).__name__ == kind


def test_some_videos_were_filtered():
    """If only some samples are withheld, the job is complete and says why."""
    response = {
        "generateVideoResponse": {
            "generatedSamples": [{"video": {"uri": "https://h/v1beta/files/a:download"}}],
            "raiMediaFilteredCount": 1,
            "raiMediaFilteredReasons": ["Why."],
        }
    }
    body = {"name": NAME, "done": True, "response": response}
    known = VideoJob(id=NAME, seconds=8.0, count=2)
    _, job = perform("gemini_generate", "retrieve_video", VideoQuery(id=NAME, job=known), body)
    assert (job.state, job.filtered, len(job.files)) == ("completed", ("Why.",), 1)
    assert job.usage.video_seconds == 8  # a video that is withheld is not paid for


def test_vertex_asks_the_model_about_its_job():
    """At Vertex AI the paths are relative to the project, and the bytes are in the reply."""
    value = CreateVideoInput(model="veo-3.1-generate-001", prompt="Sea.", image=Image(data=b"x"))
    name = "projects/p/locations/l/publishers/google/models/veo-3.1-generate-001/operations/1"
    calls, job = perform("gemini_generate", "create_video.vertex", value, {"name": name})
    assert calls[0].path == "/models/veo-3.1-generate-001:predictLongRunning"
    assert job.id == name
    body = {"name": name, "done": True, "response": {"videos": [{"bytesBase64Encoded": "AAAA"}]}}
    query = VideoQuery(id=name, job=job)
    calls, job = perform("gemini_generate", "retrieve_video.vertex", query, body)
    assert calls[0].path == "/models/veo-3.1-generate-001:fetchPredictOperation"
    assert calls[0].body == {"operationName": name}
    assert job.files[0].data == b"\0\0\0"
    assert job.usage.video_seconds == 8


# Sizes.


@given(st.integers(1, 99999), st.integers(1, 99999))
def test_the_ratio_of_a_size_is_exact(width, height):
    """The exact ratio has the proportions of the pixels."""
    ratio = ratio_of(f"{width}x{height}")
    left, right = map(int, ratio.split(":"))
    assert left * height == right * width


@given(
    st.sampled_from(["16:9", "9:16", "1:1", "4:3", "3:4", "3:2", "2:3"]),
    st.sampled_from(["480p", "720p", "1080p", "4k"]),
)
def test_a_ratio_and_a_resolution_make_a_size_and_back(ratio, resolution):
    """The pixels have the resolution and, as near as even numbers allow, the ratio."""
    size = size_of(ratio, resolution)
    assert resolution_of(size) == resolution
    assert ratio_of(size, [ratio]) == ratio
    assert all(side % 2 == 0 for side in pixels_of(size))


@pytest.mark.parametrize("text", ["", "x", "0x0", "1280 x 720", "16/9", "1:0", "9" * 99 + ":1"])
def test_what_is_no_size(text):
    """Other texts are neither pixels nor ratios."""
    assert pixels_of(text) is None
    assert ratio_value(text) is None


def test_a_wrong_value_names_the_setting():
    """The error has the name of the setting in a field."""
    value = CreateVideoInput(model="veo-2.0-generate-001", prompt="Sea.", seconds=4.0)
    with pytest.raises(UnsupportedError) as caught:
        perform("gemini_generate", "create_video", value)
    assert caught.value.setting == "seconds"


# The server side, and inputs that providers take in other ways.


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/videos", {"model": "sora-2"}),
        ("/v1/videos/generations", {"model": "grok-imagine-video"}),
        ("/v1/videos/generations", {"prompt": "x", "image": {}}),
        ("/v1beta/models/veo-3:predictLongRunning", {"instances": []}),
        ("/v1beta/models/veo-3:predictLongRunning", {"instances": [{"image": {}}]}),
        ("/v1/projects/p/locations/l/publishers/google/models/veo:fetchPredictOperation", {}),
    ],
)
def test_the_server_side_refuses_what_is_incomplete(path, body):
    """A body without what the vendor requires is an error of the sender."""
    route = find_route("POST", path, {})
    with pytest.raises(InvalidRequestError):
        route.operation.decode(WireCall(path=path, body=body), route.params)


def test_a_wrong_variant_or_page_is_refused():
    """A server names the parameter that is wrong."""
    route = find_route("GET", "/v1/videos/a/content", {})
    with pytest.raises(InvalidRequestError, match="variant"):
        route.operation.decode(WireCall(query={"variant": "gif"}), route.params)
    for path in ("/v1/videos", "/v1beta/models/veo/operations"):
        route = find_route("GET", path, {})
        value = route.operation.decode(
            WireCall(query={"after": "x", "pageToken": "x"}), route.params
        )
        with pytest.raises(ProviderError):
            route.operation.encode([], value)


@pytest.mark.parametrize(
    "image",
    [
        Image(url="https://example.com/a.png"),
        Image(file_id="file-1"),
        Image(data=b"\x89PNG\r\n\x1a\n", media_type="image/png"),
    ],
)
def test_openai_s_form_of_an_image_comes_back(image):
    """By URL and by id it is JSON; as bytes it is a form. The server side reads all of them."""
    value = CreateVideoInput(model="m", prompt="Sea.", image=image, seconds=4.0)
    operation = dialects.get("openai_chat").OPERATIONS["create_video"]
    call = next(operation.script(value, NEUTRAL_PROFILE))
    assert call.starts_job
    again = find_route("POST", "/v1/videos", {}).operation.decode(call, {})
    assert again == replace(value, extra=again.extra)


@pytest.mark.parametrize(
    "image",
    [Image(url="https://example.com/a.png"), Image(data=b"\x89PNG", media_type="image/png")],
)
def test_xai_s_form_of_an_image_comes_back(image):
    """An image is a URL; bytes are a data URL."""
    value = CreateVideoInput(model="grok-imagine-video", prompt="Sea.", image=image, seconds=4.0)
    operation = dialects.get("openai_chat").OPERATIONS["create_video.xai"]
    call = next(operation.script(value, NEUTRAL_PROFILE))
    again = find_route("POST", "/v1/videos/generations", {}).operation.decode(call, {})
    assert again == replace(value, extra=again.extra)


def test_an_image_that_xai_does_not_take_is_refused():
    """A stored file of another API is not an image here."""
    value = CreateVideoInput(model="m", prompt="Sea.", image=Image(file_id="file-1"))
    operation = dialects.get("openai_chat").OPERATIONS["create_video.xai"]
    with pytest.raises(UnsupportedError):
        next(operation.script(value, NEUTRAL_PROFILE))


def test_the_cost_that_xai_reports_counts():
    """It is in ten-billionths of a dollar."""
    body = {
        "status": "done",
        "video": {"url": "https://h/v.mp4", "duration": 5},
        "usage": {"cost_in_usd_ticks": 2_500_000_000},
    }
    job = xai_video.read_job(body, "a").with_usage()
    assert (job.usage.reported_cost, job.usage.video_seconds) == (0.25, 5)


def test_a_job_that_says_done_without_a_video_is_malformed():
    """It is not a short success."""
    with pytest.raises(DecodeError):
        xai_video.read_job({"status": "done"}, "a")
    for response in (None, {}, {"generateVideoResponse": {}}):
        body = {"name": NAME, "done": True, "response": response}
        with pytest.raises(DecodeError):
            perform("gemini_generate", "retrieve_video", VideoQuery(id=NAME), body)


def test_a_video_in_a_bucket_is_not_downloaded():
    """The error says where it is."""
    job = VideoJob(id=NAME, state="completed", files=(VideoFile(url="gs://bucket/v.mp4"),))
    download = dialects.get("gemini_generate").OPERATIONS["download_video"]
    with pytest.raises(UnsupportedError, match="gs://bucket"):
        download.encode(VideoQuery(id=NAME, job=job), NEUTRAL_PROFILE)
