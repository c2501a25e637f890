"""
Video with Veo: long-running operations, at the Gemini API and at Vertex AI. Both sides.

https://ai.google.dev/gemini-api/docs/video
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from urllib.parse import quote, urlsplit

from msgspec.structs import replace

from interlingua.dialects.gemini_generate.errors import read_status, write_status
from interlingua.dialects.gemini_generate.facts import NAME
from interlingua.prepare.options import body_with_options
from interlingua.prepare.video import VideoRules, check_variant, find_rules, shape_video
from interlingua.spec.content import Image, Json
from interlingua.spec.contracts import Profile, WireCall
from interlingua.spec.errors import (
    ConfigurationError,
    ContentFilterError,
    DecodeError,
    InvalidRequestError,
    NotFoundError,
    UnsupportedError,
)
from interlingua.spec.modalities.video import CreateVideoInput, VideoFile, VideoJob, VideoQuery
from interlingua.spec.operations import (
    Operation,
    Script,
    ServedReply,
)
from interlingua.wire.fields import Fields, extra_of, merge, restore
from interlingua.wire.files import download, seconds_of, video_file
from interlingua.wire.json_text import loads
from interlingua.wire.media import decode_base64, encode_base64, media_type_for
from interlingua.wire.operations import page_by_token, page_size
from interlingua.wire.resources import serve, served_address


def _veo(models: str, seconds: tuple[int, ...], *resolutions: str) -> VideoRules:
    """All models make 8 seconds in 720p unless asked; higher resolutions have only this length."""
    return VideoRules(
        models=models,
        seconds=seconds,
        default_seconds=8,
        ratios=("16:9", "9:16"),
        resolutions=("720p", *resolutions),
        default_resolution="720p",
        only_longest=resolutions,
        max_count=4,
    )


_RULES = (
    _veo("veo-2", (5, 6, 7, 8)),
    _veo("veo-3.1-lite", (4, 6, 8), "1080p"),
    _veo("veo-3.1", (4, 6, 8), "1080p", "4k"),
    _veo("veo-3", (4, 6, 8), "1080p"),
)
_match_name = re.compile(
    r"(?P<resource>(?:projects/[^/?#]+/locations/[^/?#]+/)?(?:publishers/[^/?#]+/)?"
    r"models/(?P<model>[^/?#]+))/operations/(?P<id>[^/?#]+)"
).fullmatch
_is_file = re.compile(r"/v[0-9a-z]+/files/[^/?#]+:download").fullmatch
_RESPONSE = "type.googleapis.com/google.ai.generativelanguage.v1beta.PredictLongRunningResponse"
_PAGE = 50
_VERTEX = "vertex"
"""The key of the place of a job in `extra`, on the server side."""


# Creating a job.


def _create(value: CreateVideoInput, _profile: Profile, *, prefix: str = "/v1beta") -> Script:
    reply = yield _encode_create(value, prefix)
    rules = find_rules(value.model, _RULES)
    shape = shape_video(value, rules)
    size = shape.size or shape.resolution
    return replace(
        _read_job(loads(reply.body), is_new=True),
        prompt=value.prompt,
        seconds=value.seconds if value.seconds is not None else rules.default_seconds,
        size=rules.default_resolution if size is None else size,
        aspect_ratio=shape.ratio,
        count=value.count,
    ).with_usage()


def _encode_create(value: CreateVideoInput, prefix: str) -> WireCall:
    shape = shape_video(value, find_rules(value.model, _RULES))
    instance: dict[str, Json] = {"prompt": value.prompt}
    if value.image is not None:
        instance["image"] = _encode_image(value.image)
    fields = {
        "sampleCount": value.count,
        "aspectRatio": shape.ratio,
        "resolution": shape.resolution,
        "durationSeconds": _whole(value.seconds),
    }
    parameters = {name: item for name, item in fields.items() if item is not None}
    body: dict[str, Json] = {"instances": [instance]}
    if parameters:
        body["parameters"] = parameters
    model = quote(value.model.removeprefix("models/"), safe="", errors="replace")
    return WireCall(
        path=f"{prefix}/models/{model}:predictLongRunning",
        body=body_with_options(body, value, NAME),
        starts_job=True,
    )


def _whole(seconds: float | None) -> float | None:
    return int(seconds) if seconds is not None and seconds == int(seconds) else seconds


def _encode_image(image: Image) -> dict[str, Json]:
    if image.data is not None:
        media_type = image.media_type or media_type_for(image.data) or "image/png"
        return {"bytesBase64Encoded": encode_base64(image.data), "mimeType": media_type}
    if image.url is not None and image.url.startswith("gs://"):
        return {"gcsUri": image.url, "mimeType": image.media_type or "image/png"}
    raise UnsupportedError(
        "Veo takes an image as bytes: pass Image(path=…) or Image(data=…).", setting="image"
    )


# Reading a job.


def _read_job(value: Json, *, is_new: bool = False) -> VideoJob:
    fields = Fields(value, strict=False)
    name = fields.need("name")
    match = _match_name(name)
    is_done = fields.flag("done") is True
    job = VideoJob(
        id=name,
        model=match["model"] if match else "",
        # An operation says only whether it is done.
        state="completed" if is_done else "queued" if is_new else "in_progress",
        raw_state="done" if is_done else "",
        raw=value,
    )
    metadata = fields.object("metadata") or {}
    job = replace(
        job,
        created_at=seconds_of(metadata.get("createTime")),
        completed_at=seconds_of(metadata.get("endTime")),
        progress=_percent(metadata.get("progressPercent")),
    )
    extra: dict[str, Json] = {"metadata": metadata} if metadata else {}
    if fields.left.get("error"):
        error = read_status(fields.take("error"))
        is_cancelled = error.error_code == "CANCELLED"
        job = replace(job, state="cancelled" if is_cancelled else "failed", error=error)
    elif is_done:
        job = _read_response(job, fields)
    extra.update(fields.left)
    return replace(job, extra={NAME: extra} if extra else {})


def _percent(value: Json) -> float | None:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _read_response(job: VideoJob, fields: Fields) -> VideoJob:
    """The videos; the Gemini API wraps them once more than Vertex AI does."""
    response = fields.left.get("response")
    if not isinstance(response, dict):
        raise DecodeError("The job is done, but it has neither videos nor an error.")
    inner = response.get("generateVideoResponse")
    inner = inner if isinstance(inner, dict) else response
    rows = inner.get("generatedSamples", inner.get("videos"))
    rows = rows if isinstance(rows, list) else []
    files = tuple(_read_file(row) for row in rows if isinstance(row, dict))
    reasons = inner.get("raiMediaFilteredReasons")
    reasons = tuple(map(str, reasons)) if isinstance(reasons, list) else ()
    if any(file.data for file in files):  # not kept twice
        fields.take("response")
        job = replace(job, raw=fields.left)
    if files:
        return replace(job, files=files, filtered=reasons, progress=100.0)
    # A filter that takes out all videos leaves a job that is done and has no error.
    is_filtered = bool(reasons or inner.get("raiMediaFilteredCount"))
    if not is_filtered:
        raise DecodeError("The job is done, but it has no videos.")
    text = " ".join(reasons) or "A safety filter has withheld the video."
    error = ContentFilterError(text, error_code="raiMediaFiltered", raw=response)
    return replace(job, state="failed", filtered=reasons, error=error)


def _read_file(row: dict[str, Json]) -> VideoFile:
    video = row.get("video")
    video = video if isinstance(video, dict) else row
    text = video.get("encodedVideo", video.get("bytesBase64Encoded"))
    data = decode_base64(text) if isinstance(text, str) else None
    url, media_type = video.get("uri", video.get("gcsUri")), video.get("encoding")
    media_type = video.get("mimeType", media_type)
    if data is None and isinstance(url, str) and url.startswith("data:"):
        return video_file(url)
    return VideoFile(
        url=url if isinstance(url, str) else None,
        data=data,
        media_type=media_type if isinstance(media_type, str) else None,
    )


# The operations on a job.


def _retrieve(value: VideoQuery, _profile: Profile) -> Script:
    reply = yield WireCall(method="GET", path=f"/v1beta/{_checked_name(value.id)}")
    return _read_job(loads(reply.body)).with_known(value.job).with_usage()


def _fetch(value: VideoQuery, _profile: Profile) -> Script:
    """At Vertex AI, the model of a job is asked about it."""
    match = _match_name(_checked_name(value.id))
    model = quote(match["model"], safe="") if match else ""
    reply = yield WireCall(
        path=f"/models/{model}:fetchPredictOperation", body={"operationName": value.id}
    )
    return _read_job(loads(reply.body)).with_known(value.job).with_usage()


def _checked_name(name: str) -> str:
    if _match_name(name) is None or ".." in name:
        raise ConfigurationError(
            f"{name!r} is not the id of a video job. It looks like models/MODEL/operations/ID."
        )
    return quote(name, safe="/", errors="replace")


def _cancel(value: VideoQuery, _profile: Profile) -> Script:
    yield WireCall(path=f"/v1beta/{_checked_name(value.id)}:cancel", body={})
    return VideoJob(id=value.id, state="cancelled").with_known(value.job)


def _encode_list(value: VideoQuery, _profile: Profile) -> WireCall:
    if not value.model:
        raise ConfigurationError(
            "This provider lists the jobs of one model: video.list('gemini:veo-…')."
        )
    model = quote(value.model.removeprefix("models/"), safe="", errors="replace")
    query = {} if value.limit is None else {"pageSize": str(value.limit)}
    return WireCall(method="GET", path=f"/v1beta/models/{model}/operations", query=query)


def _decode_list(_status: int, _headers: Mapping[str, str], body: bytes) -> list[VideoJob]:
    rows = Fields(loads(body), strict=False).array("operations") or []
    return [_read_job(row) for row in rows]


def _encode_download(value: VideoQuery, _profile: Profile) -> WireCall:
    check_variant(value.variant, "Veo")
    url = value.job.files[value.index].url if value.job is not None else None
    if url is None or not url.startswith(("http://", "https://")):
        raise UnsupportedError(f"The video is at {url}; download it with the tools of that store.")
    parts = urlsplit(url)
    # The vendor names its own host, also if a proxy was asked.
    path = f"{parts.path}?{parts.query}" if parts.query else parts.path
    is_own = _is_file(parts.path) is not None
    return WireCall(method="GET", path=path if is_own else url, headers={"accept": "*/*"})


OPERATIONS: Mapping[str, Operation] = {
    "create_video": Operation(name="create_video", error_is_data=True, script=_create),
    "retrieve_video": Operation(name="retrieve_video", error_is_data=True, script=_retrieve),
    "cancel_video": Operation(name="cancel_video", error_is_data=True, script=_cancel),
    "list_videos": Operation(
        name="list_videos",
        error_is_data=True,
        encode=_encode_list,
        decode=_decode_list,
        next_page=page_by_token,
    ),
    "download_video": download("download_video", _encode_download),
    "create_video.vertex": Operation(
        name="create_video",
        error_is_data=True,
        script=lambda value, profile: _create(value, profile, prefix=""),
    ),
    "retrieve_video.vertex": Operation(name="retrieve_video", error_is_data=True, script=_fetch),
}


# The server side.


def write_job(job: VideoJob, value: CreateVideoInput | VideoQuery) -> dict[str, Json]:
    """The operation of a job, as the Gemini API describes it."""
    body: dict[str, Json] = {"name": job.id if _match_name(job.id) else _name(job)}
    if job.error is not None and not job.filtered:
        return restore({**body, "done": True, "error": write_status(job.error)}, job, NAME)
    if job.is_ended:
        address = value.address if isinstance(value, VideoQuery) else ""
        samples = [{"video": {"uri": _file_url(file, address)}} for file in job.files]
        made: dict[str, Json] = {
            "@type": _RESPONSE,
            "generateVideoResponse": _written(job, samples),
        }
        other = extra_of(job, NAME).get("response")
        body |= {"done": True, "response": merge(made, other) if other else made}
    return restore(body, job, NAME)


def _write_vertex_job(job: VideoJob) -> dict[str, Json]:
    """The operation of a job, as Vertex AI describes it: without a bucket, the bytes are in it."""
    body: dict[str, Json] = {"name": _name(job)}
    if job.error is not None and not job.filtered:
        return {**body, "done": True, "error": write_status(job.error)}
    if job.is_ended:
        videos = [
            {"bytesBase64Encoded": encode_base64(file.data or b""), "mimeType": "video/mp4"}
            for file in job.files
        ]
        kind = "type.googleapis.com/cloud.ai.large_models.vision.GenerateVideoResponse"
        body |= {"done": True, "response": {"@type": kind, **_written(job, videos, "videos")}}
    return body


def _written(
    job: VideoJob, videos: Sequence[Mapping[str, Json]], name: str = "generatedSamples"
) -> dict[str, Json]:
    body: dict[str, Json] = {name: videos} if videos else {}
    if job.filtered:
        body["raiMediaFilteredCount"] = len(job.filtered)
        body["raiMediaFilteredReasons"] = list(job.filtered)
    return body


def _name(job: VideoJob) -> str:
    resource = job.extra.get(_VERTEX)
    return f"{resource or f'models/{job.model}'}/operations/{job.id}"


def _file_url(file: VideoFile, address: str) -> str:
    url = file.url or ""
    return url if "://" in url else f"{address}/v1beta/files/{url}:download?alt=media"


def _served_create(call: WireCall, params: Mapping[str, str]) -> CreateVideoInput:
    body = call.body if isinstance(call.body, dict) else {}
    instances, parameters = body.get("instances"), body.get("parameters")
    instance = instances[0] if isinstance(instances, list) and instances else None
    if not isinstance(instance, dict):
        raise InvalidRequestError("`instances` must have at least one item.", status_code=400)
    fields = Fields(parameters if isinstance(parameters, dict) else {}, strict=False)
    resource = params.get("resource")
    return CreateVideoInput(
        model=params["model"],
        prompt=Fields(instance, strict=False).text("prompt") or "",
        image=_served_image(instance.get("image")),
        seconds=fields.number("durationSeconds"),
        size=fields.text("resolution"),
        aspect_ratio=fields.text("aspectRatio"),
        count=fields.integer("sampleCount"),
        extra={_VERTEX: resource} if resource else {},
    )


def _served_image(image: Json) -> Image | None:
    if not isinstance(image, dict):
        return None
    text, media_type = image.get("bytesBase64Encoded"), image.get("mimeType")
    data = decode_base64(text) if isinstance(text, str) else None
    if data is None:
        raise InvalidRequestError(
            "`image.bytesBase64Encoded` is not valid base64.", status_code=400
        )
    return Image(data=data, media_type=media_type if isinstance(media_type, str) else None)


def _served_query(call: WireCall, params: Mapping[str, str]) -> VideoQuery:
    return VideoQuery(id=params["id"], address=served_address(call.headers))


def _served_fetch(call: WireCall, _params: Mapping[str, str]) -> VideoQuery:
    name = call.body.get("operationName") if isinstance(call.body, dict) else None
    match = _match_name(name) if isinstance(name, str) else None
    if match is None:
        raise InvalidRequestError(
            "`operationName` is not the name of an operation.", status_code=400
        )
    return VideoQuery(id=match["id"])


def _served_list(call: WireCall, params: Mapping[str, str]) -> VideoQuery:
    return VideoQuery(
        model=params["model"],
        limit=page_size(call.query, "pageSize", default=_PAGE, highest=1000),
        after=call.query.get("pageToken") or None,
        address=_served_query(call, {"id": ""}).address,
    )


def _write_list(jobs: list[VideoJob], value: VideoQuery) -> ServedReply:
    own = [job for job in jobs if job.model == value.model]
    ids = [job.id for job in own]
    if value.after is not None and value.after not in ids:
        raise NotFoundError("`pageToken` is not a token of this list.", status_code=400)
    start = 0 if value.after is None else ids.index(value.after) + 1
    page = own[start : start + (value.limit or _PAGE)]
    body: dict[str, Json] = {"operations": [write_job(job, value) for job in page]}
    if start + len(page) < len(own):
        body["nextPageToken"] = page[-1].id
    return ServedReply(body=body)


def _write_one(job: VideoJob, value: CreateVideoInput | VideoQuery) -> ServedReply:
    return ServedReply(body=write_job(job, value))


_CLOUD = (
    r".*/(?P<resource>projects/[^/]+/locations/[^/]+/publishers/[^/]+/models/(?P<model>[^/:]+))"
)
SERVED = (
    serve(
        "create_video",
        "POST",
        f"{_CLOUD}:predictLongRunning",
        _served_create,
        lambda job, _: ServedReply(body=_write_vertex_job(job)),
    ),
    serve(
        "retrieve_video",
        "POST",
        f"{_CLOUD}:fetchPredictOperation",
        _served_fetch,
        lambda job, _: ServedReply(body=_write_vertex_job(job)),
    ),
    serve(
        "create_video",
        "POST",
        r".*/models/(?P<model>[^/]+):predictLongRunning",
        _served_create,
        _write_one,
    ),
    serve(
        "retrieve_video",
        "GET",
        r".*/models/(?P<model>[^/]+)/operations/(?P<id>[^/:]+)",
        _served_query,
        _write_one,
    ),
    serve(
        "cancel_video",
        "POST",
        r".*/models/(?P<model>[^/]+)/operations/(?P<id>[^/:]+):cancel",
        _served_query,
        lambda _job, _value: ServedReply(body={}),
    ),
    serve(
        "list_videos",
        "GET",
        r".*/models/(?P<model>[^/]+)/operations",
        _served_list,
        _write_list,
    ),
)
