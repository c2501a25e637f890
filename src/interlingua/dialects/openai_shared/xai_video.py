"""
Video at xAI: `/v1/videos/generations`. Both sides.

https://docs.x.ai/developers/model-capabilities/video/generation
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from interlingua.prepare.options import body_with_options
from interlingua.prepare.video import VideoRules, check_variant, find_rules, shape_video
from interlingua.spec.content import Image, Json
from interlingua.spec.contracts import Profile, WireCall
from interlingua.spec.errors import (
    ContentFilterError,
    DecodeError,
    InvalidRequestError,
    SDKError,
    UnsupportedError,
)
from interlingua.spec.modalities.video import (
    CreateVideoInput,
    VideoJob,
    VideoQuery,
    VideoState,
)
from interlingua.spec.operations import Operation, Script, ServedReply
from interlingua.spec.response import Usage
from interlingua.wire.classify import Fault, make_error
from interlingua.wire.fields import Fields
from interlingua.wire.files import download, failed_text, video_file
from interlingua.wire.json_text import loads
from interlingua.wire.media import make_data_url, media_type_for, parse_data_url
from interlingua.wire.resources import by_name, resource_path, serve
from interlingua.wire.usage import own_cost

OWNER = "xai"
"""The key of other fields in `VideoJob.extra`."""
_PATH = "/v1/videos"


def _grok(models: str, *resolutions: str) -> VideoRules:
    # The values of the page above: 1 to 15 seconds, 8 and 480p by default.
    return VideoRules(
        models=models,
        seconds=tuple(range(1, 16)),
        default_seconds=8,
        ratios=("16:9", "9:16", "1:1", "4:3", "3:4", "3:2", "2:3"),
        resolutions=resolutions,
        default_resolution="480p",
        max_count=1,
    )


_RULES = (
    _grok("grok-imagine-video-1.5", "480p", "720p", "1080p"),
    _grok("grok-imagine-video", "480p", "720p"),
)
_STATES: dict[str, VideoState] = {
    "pending": "in_progress",  # xAI does not tell a job that waits from one that runs
    "done": "completed",
    "failed": "failed",
    "expired": "failed",
    # of servers that have copied the endpoint
    "success": "completed",
    "succeeded": "completed",
    "completed": "completed",
    "rejected": "failed",
}
_WORDS: dict[VideoState, str] = {
    "queued": "pending",
    "in_progress": "pending",
    "completed": "done",
    "failed": "failed",
    "cancelled": "failed",
}


def video_operations(name: str) -> dict[str, Operation]:
    """The operations on videos for a dialect of this name."""

    def create(value: CreateVideoInput, _profile: Profile) -> Script:
        rules = find_rules(value.model, _RULES)
        shape = shape_video(value, rules)
        reply = yield _encode_create(value, name)
        body = loads(reply.body)
        return VideoJob(
            id=Fields(body).need("request_id"),
            model=value.model,
            prompt=value.prompt,
            seconds=rules.default_seconds if value.seconds is None else value.seconds,
            size=shape.size or shape.resolution or rules.default_resolution,
            aspect_ratio=shape.ratio,
            raw=body,
        ).with_usage()

    return by_name(
        Operation(name="create_video", error_is_data=True, script=create),
        Operation(name="retrieve_video", error_is_data=True, script=_retrieve),
        download("download_video", _encode_download),
    )


def _encode_create(value: CreateVideoInput, name: str) -> WireCall:
    shape = shape_video(value, find_rules(value.model, _RULES))
    seconds = value.seconds
    is_whole = seconds is not None and seconds == int(seconds)
    fields = {
        "model": value.model,
        "prompt": value.prompt,
        "duration": int(seconds or 0) if is_whole else seconds,
        "aspect_ratio": shape.ratio,
        "resolution": shape.resolution,
        "image": None if value.image is None else {"url": _image_url(value.image)},
    }
    body = {field: given for field, given in fields.items() if given is not None}
    body = body_with_options(body, value, name)
    return WireCall(path=f"{_PATH}/generations", body=body, starts_job=True)


def _image_url(image: Image) -> str:
    if image.data is not None:
        return make_data_url(image.data, image.media_type or media_type_for(image.data))
    if image.url is None:
        raise UnsupportedError(
            "An image for xAI must be given as bytes or by its URL.", setting="image"
        )
    return image.url


def _retrieve(value: VideoQuery, _profile: Profile) -> Script:
    reply = yield WireCall(method="GET", path=resource_path(_PATH, value.id))
    return read_job(loads(reply.body), value.id).with_known(value.job).with_usage()


def read_job(value: Json, job_id: str) -> VideoJob:
    """A job as the provider describes it: without its id."""
    fields = Fields(value, strict=False)
    raw_state = fields.text("status") or ""
    video = dict(fields.object("video") or {})
    # While the job runs there is no `video`; a finished one may have no `status`.
    url, seconds = video.pop("url", None), video.pop("duration", None)
    has_video = isinstance(url, str) and bool(url)
    state = _STATES.get(raw_state, "completed" if has_video else "in_progress")
    job = VideoJob(
        id=job_id,
        model=fields.text("model") or "",
        state=state,
        raw_state=raw_state,
        progress=fields.number("progress"),
        seconds=seconds if isinstance(seconds, (int, float)) else None,
        files=(video_file(url),) if has_video else (),
        usage=_read_usage(fields.left.get("usage")),
        raw=value,
    )
    fault = fields.take("error")
    # A video that moderation withheld is `done`, without an address.
    if state == "failed" or (state == "completed" and video.get("respect_moderation") is False):
        error = _read_error(fault, raw_state, is_blocked=state == "completed")
        job = replace(job, state="failed", error=error, files=())
    elif state == "completed" and not has_video:
        raise DecodeError("The job is done, but it has no video.")
    extra = {**fields.left, **({"video": video} if video else {})}
    return replace(job, extra={OWNER: extra} if extra else {})


def _read_error(fault: Json, state: str, *, is_blocked: bool) -> SDKError:
    if is_blocked:
        return ContentFilterError("The video was withheld by moderation.", raw=fault)
    fields = fault if isinstance(fault, dict) else {"message": fault}
    code, message = fields.get("code"), fields.get("message")
    text = message if isinstance(message, str) and message else failed_text(state)
    return make_error(None, {}, Fault(text, None, None if code is None else str(code)), raw=fault)


def _read_usage(wire: Json) -> Usage:
    """The cost, in ten-billionths of a dollar."""
    cost = own_cost(wire) if isinstance(wire, dict) else None
    return Usage() if cost is None else Usage(reported_cost=cost, raw=wire)


def _encode_download(value: VideoQuery, _profile: Profile) -> WireCall:
    check_variant(value.variant, "xAI")
    # The video is at an address of its own, outside of the API.
    url = value.job.files[value.index].url if value.job is not None else None
    return WireCall(method="GET", path=url or "", headers={"accept": "*/*"})


# The server side.


def write_job(job: VideoJob, address: str) -> dict[str, Json]:
    """A job as the provider describes it."""
    body: dict[str, Json] = {"status": _WORDS[job.state], "model": job.model}
    if isinstance(job.error, ContentFilterError):
        return {**body, "status": "done", "video": {"url": "", "respect_moderation": False}}
    if job.error is not None:
        return {**body, "error": {"code": job.error.error_code, "message": job.error.message}}
    if job.state != "completed":
        return body | {"progress": int(job.progress or 0)}
    url = job.files[0].url if job.files else ""
    video = {
        "url": f"{address}{_PATH.removesuffix('/videos')}/files/{url}/content",
        "duration": job.seconds,
        "respect_moderation": True,
    }
    return body | {"video": video, "progress": 100}


def _served_create(call: WireCall, _params: Mapping[str, str]) -> CreateVideoInput:
    fields = Fields(call.body if isinstance(call.body, dict) else {}, strict=False)
    prompt, image = fields.text("prompt"), fields.object("image")
    if not prompt:
        raise InvalidRequestError("'prompt' is required.", status_code=400)
    return CreateVideoInput(
        model=fields.text("model") or "",
        prompt=prompt,
        image=None if image is None else _served_image(image.get("url")),
        seconds=fields.number("duration") or 8,  # the default of `_RULES`
        size=fields.text("resolution"),
        aspect_ratio=fields.text("aspect_ratio"),
        extra={OWNER: {}},
    )


def _served_image(url: Json) -> Image:
    parsed = parse_data_url(url) if isinstance(url, str) else None
    if parsed is not None:
        return Image(data=parsed[0], media_type=parsed[1])
    if not isinstance(url, str):
        raise InvalidRequestError("'image.url' is required.", status_code=400)
    return Image(url=url)


SERVED = (
    serve(
        "create_video",
        "POST",
        r".*/videos/generations",
        _served_create,
        lambda job, _value: ServedReply(body={"request_id": job.id}),
    ),
)
