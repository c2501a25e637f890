"""
`/v1/videos`, as OpenAI had it until 2026-09-24 and compatible servers have it. Both sides.

Servers differ in the words of states, in whether `seconds` is a text, and in how they write times.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from msgspec.structs import replace

from interlingua.dialects.openai_shared import xai_video
from interlingua.dialects.openai_shared.models import list_body
from interlingua.prepare.options import body_with_options, form_with_options
from interlingua.prepare.video import VideoRules, find_rules, shape_video
from interlingua.spec.content import Image, Json
from interlingua.spec.contracts import FormPart, Profile, WireCall
from interlingua.spec.errors import InvalidRequestError, ProviderError, SDKError
from interlingua.spec.modalities.video import (
    CreateVideoInput,
    VideoFile,
    VideoJob,
    VideoQuery,
    VideoState,
    VideoVariant,
)
from interlingua.spec.operations import Operation, Script, ServedReply
from interlingua.spec.response import Usage
from interlingua.wire.classify import Fault, make_error
from interlingua.wire.fields import Fields, restore
from interlingua.wire.files import download, failed_text, seconds_of, video_file
from interlingua.wire.json_text import loads
from interlingua.wire.media import media_type_for, parse_data_url
from interlingua.wire.operations import page_after_last, page_size, read_page
from interlingua.wire.resources import (
    by_name,
    decode_list,
    page_of,
    resource_path,
    serve,
    write_body,
)
from interlingua.wire.usage import own_cost

PATH = "/v1/videos"
OWNER = "openai"
"""The key of other fields in `VideoJob.extra`."""
# The SDK's `Video.status` has `queued`, `in_progress`, `completed` and `failed`; the other words
# are those of gateways that have copied the endpoint.
_STATES: dict[str, VideoState] = {
    "queued": "queued",
    "pending": "queued",
    "submitted": "queued",
    "in_progress": "in_progress",
    "processing": "in_progress",
    "running": "in_progress",
    "completed": "completed",
    "succeeded": "completed",
    "success": "completed",
    "done": "completed",
    "failed": "failed",
    "rejected": "failed",
    "error": "failed",
    "expired": "failed",
    "cancelled": "cancelled",
    "canceled": "cancelled",
}
# The SDK's `VideoCreateParams`: 4, 8 or 12 seconds, 4 by default, and four sizes, 720x1280 by
# default. The two larger ones are of the pro model.
_RULES = (
    VideoRules(
        models="sora-2-pro",
        seconds=(4, 8, 12),
        default_seconds=4,
        sizes=("720x1280", "1280x720", "1024x1792", "1792x1024"),
        default_resolution="720p",
        max_count=1,
    ),
    VideoRules(
        models="sora-2",
        seconds=(4, 8, 12),
        default_seconds=4,
        sizes=("720x1280", "1280x720"),
        default_resolution="720p",
        max_count=1,
    ),
)
_SUFFIXES = {"image/png": "png", "image/jpeg": "jpg", "image/webp": "webp"}
_MEDIA_TYPES: dict[VideoVariant, str] = {
    "video": "video/mp4",
    "thumbnail": "image/png",
    "spritesheet": "image/png",
}
_is_number = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,9})?").fullmatch
_PAGE = 20  # as in OpenAI's other lists
_MAX_PAGE = 100


def video_operations(name: str) -> dict[str, Operation]:
    """The operations on videos for a dialect of this name."""

    def create(value: CreateVideoInput, _profile: Profile) -> Script:
        reply = yield _encode_create(value, name)
        job = read_job(loads(reply.body))
        asked = VideoJob(prompt=value.prompt, seconds=value.seconds, size=value.size)
        return job.with_known(replace(asked, count=value.count)).with_usage()

    def remix(value: CreateVideoInput, _profile: Profile) -> Script:
        path = f"{_path(value.source_id or '')}/remix"
        body = body_with_options({"prompt": value.prompt}, value, name)
        reply = yield WireCall(path=path, body=body, starts_job=True)
        return read_job(loads(reply.body)).with_usage()

    return by_name(
        Operation(name="create_video", error_is_data=True, script=create),
        Operation(name="remix_video", error_is_data=True, script=remix),
        Operation(name="retrieve_video", error_is_data=True, script=_retrieve),
        Operation(name="cancel_video", error_is_data=True, script=_cancel),
        Operation(name="delete_video", script=_delete),
        Operation(
            name="list_videos",
            error_is_data=True,
            encode=_encode_list,
            decode=decode_list(read_job, "data"),
            next_page=page_after_last("after"),
        ),
        download("download_video", _encode_download),
    )


def _path(video_id: str) -> str:
    return resource_path(PATH, video_id)


# Creating a job.


def _encode_create(value: CreateVideoInput, name: str) -> WireCall:
    """JSON; a form if an image is sent as a file."""
    # The SDK's `InputReference`: a file, or an object with `file_id` or `image_url`.
    shape = shape_video(value, find_rules(value.model, _RULES))
    fields = {
        "model": value.model,
        "prompt": value.prompt,
        "seconds": None if value.seconds is None else f"{value.seconds:g}",  # a text in the SDK
        "size": shape.size or shape.resolution,
        "n": value.count if value.count not in {None, 1} else None,
    }
    body: dict[str, Json] = {field: given for field, given in fields.items() if given is not None}
    image = value.image
    if image is not None and image.data is not None:
        return _encode_form(body, value, image.data, name)
    if image is not None:
        body["input_reference"] = _reference(image)
    return WireCall(path=PATH, body=body_with_options(body, value, name), starts_job=True)


def _encode_form(
    body: dict[str, Json], value: CreateVideoInput, data: bytes, name: str
) -> WireCall:
    declared = None if value.image is None else value.image.media_type
    media_type = declared or media_type_for(data) or "application/octet-stream"
    file_name = f"image.{_SUFFIXES.get(media_type, 'bin')}"
    fields = tuple(FormPart(name=field, content=str(given)) for field, given in body.items())
    file = FormPart(
        name="input_reference", content=data, file_name=file_name, media_type=media_type
    )
    form = form_with_options((*fields, file), value, name)
    return WireCall(path=PATH, form=form, starts_job=True)


def _reference(image: Image) -> dict[str, Json]:
    return {"file_id": image.file_id} if image.file_id is not None else {"image_url": image.url}


# Reading a job.


def read_job(value: Json) -> VideoJob:
    """A job as the provider describes it."""
    fields = Fields(value, strict=False)
    fields.take("object")
    raw_state = fields.text("status") or ""
    state = _STATES.get(raw_state.lower(), "in_progress")
    job = VideoJob(
        id=fields.need("id"),
        state=state,
        raw_state=raw_state,
        model=fields.text("model") or "",
        progress=fields.number("progress"),
        prompt=fields.text("prompt"),
        seconds=_take_seconds(fields),
        size=fields.text("size"),
        created_at=_take_time(fields, "created_at"),
        completed_at=_take_time(fields, "completed_at"),
        expires_at=_take_time(fields, "expires_at"),
        remixed_from=fields.text("remixed_from_video_id"),
        files=_read_files(fields.left.get("url")),
        usage=_read_usage(fields.left.get("usage")),
        raw=value,
    )
    fault = fields.take("error")
    if state == "failed" or fault:
        job = replace(job, error=_read_error(fault, raw_state))
    return replace(job, extra={OWNER: fields.left} if fields.left else {})


def _read_files(url: Json) -> tuple[VideoFile, ...]:
    """A video that comes with the job; any other is downloaded by the id of the job."""
    file = video_file(url) if isinstance(url, str) else None
    return () if file is None or file.data is None else (file,)


def _take_seconds(fields: Fields) -> float | None:
    value = fields.left.get("seconds")
    if isinstance(value, str) and _is_number(value):  # as the SDK has it; others send a number
        fields.take("seconds")
        return float(value)
    return fields.number("seconds")


def _take_time(fields: Fields, name: str) -> float | None:
    seconds = seconds_of(fields.left.get(name))
    if seconds is not None or name in fields.left:
        fields.take(name)
    return seconds


def _read_usage(wire: Json) -> Usage:
    """Gateways report what a job has cost."""
    cost = own_cost(wire) if isinstance(wire, dict) else None
    return Usage() if cost is None else Usage(reported_cost=cost, raw=wire)


def _read_error(fault: Json, state: str) -> ProviderError:
    if isinstance(fault, str):
        return make_error(None, {}, Fault(fault), raw=fault)
    fields = fault if isinstance(fault, dict) else {}
    code, message, headers = (fields.get(name) for name in ("code", "message", "headers"))
    text = message if isinstance(message, str) and message else failed_text(state)
    return make_error(
        None,
        headers if isinstance(headers, dict) else {},
        Fault(text, None, str(code) if code is not None else None),
        raw=fault,
    )


# The operations on a job.


def _retrieve(value: VideoQuery, _profile: Profile) -> Script:
    reply = yield WireCall(method="GET", path=_path(value.id))
    return read_job(loads(reply.body)).with_known(value.job).with_usage()


def _cancel(value: VideoQuery, _profile: Profile) -> Script:
    """Some servers have it; OpenAI's own API had not."""
    reply = yield WireCall(path=f"{_path(value.id)}/cancel", body={})
    job = read_job({"id": value.id, **read_page(reply.body)}).with_known(value.job)
    return job if job.is_ended else replace(job, state="cancelled")


def _delete(value: VideoQuery, _profile: Profile) -> Script:
    yield WireCall(method="DELETE", path=_path(value.id))
    return None


def _encode_list(value: VideoQuery, _profile: Profile) -> WireCall:
    query = {} if value.limit is None else {"limit": str(value.limit)}
    return WireCall(method="GET", path=PATH, query=query)


def _encode_download(value: VideoQuery, _profile: Profile) -> WireCall:
    query: dict[str, str] = {} if value.variant == "video" else {"variant": value.variant}
    if value.index:
        query["index"] = str(value.index)
    headers = {"accept": "*/*"}
    return WireCall(method="GET", path=f"{_path(value.id)}/content", query=query, headers=headers)


# The server side.


def write_job(job: VideoJob) -> dict[str, Json]:
    """A job as the provider describes it."""
    times = {
        name: None if seconds is None else int(seconds)
        for name, seconds in (
            ("completed_at", job.completed_at),
            ("expires_at", job.expires_at),
        )
    }
    body = {
        "id": job.id,
        "object": "video",
        "model": job.model,
        "status": job.raw_state or job.state,
        "progress": int(job.progress or 0),
        "prompt": job.prompt,
        "seconds": f"{4 if job.seconds is None else job.seconds:g}",
        "size": job.size or "720x1280",
        "created_at": int(job.created_at or 0),
        **times,
        "remixed_from_video_id": job.remixed_from,
        "error": None if job.error is None else _write_error(job.error),
    }
    return restore(body, job, OWNER)


def _write_error(error: SDKError) -> dict[str, Json]:
    return {"code": error.error_code or "video_generation_failed", "message": error.message}


def _served_create(call: WireCall, _params: Mapping[str, str]) -> CreateVideoInput:
    fields = dict(call.body) if isinstance(call.body, dict) else {}
    image: Image | None = None
    for part in call.form:
        if isinstance(part.content, bytes):
            image = Image(data=part.content, media_type=part.media_type)
        elif isinstance(part.content, str):
            fields[part.name] = part.content
    reader = Fields(fields, strict=False)
    prompt = reader.text("prompt")
    if not prompt:
        raise InvalidRequestError("Missing required parameter: 'prompt'.", status_code=400)
    return CreateVideoInput(
        model=reader.text("model") or "sora-2",
        prompt=prompt,
        image=image or _served_image(reader.left.get("input_reference")),
        seconds=_take_seconds(reader),
        size=reader.text("size"),
    )


def _served_image(reference: Json) -> Image | None:
    if not isinstance(reference, dict):
        return None
    url, file_id = reference.get("image_url"), reference.get("file_id")
    if isinstance(file_id, str):
        return Image(file_id=file_id)
    parsed = parse_data_url(url) if isinstance(url, str) else None
    if parsed is not None:
        return Image(data=parsed[0], media_type=parsed[1])
    return Image(url=url) if isinstance(url, str) else None


def _served_remix(call: WireCall, params: Mapping[str, str]) -> CreateVideoInput:
    return replace(_served_create(call, params), model="", source_id=params["id"])


def _served_id(call: WireCall, params: Mapping[str, str]) -> VideoQuery:
    given = call.query.get("variant", "video")
    variant = next((each for each in _MEDIA_TYPES if each == given), None)
    if variant is None:
        raise InvalidRequestError(f"Invalid value: {given!r} for 'variant'.", status_code=400)
    host = call.headers.get("host", "")
    address = f"http://{host}" if host else ""
    return VideoQuery(id=params["id"], variant=variant, address=address)


def _served_list(call: WireCall, _params: Mapping[str, str]) -> VideoQuery:
    return VideoQuery(
        limit=page_size(call.query, "limit", default=_PAGE, highest=_MAX_PAGE),
        after=call.query.get("after") or None,
        order="asc" if call.query.get("order") == "asc" else "desc",
    )


def _write_list(jobs: list[VideoJob], value: VideoQuery) -> ServedReply:
    rows = jobs if value.order == "desc" else jobs[::-1]
    page, has_more = page_of(
        rows, lambda job: job.id, value.after, value.limit or _PAGE, kind="video"
    )
    return ServedReply(body=list_body([write_job(job) for job in page], has_more=has_more))


def _write_deleted(_result: None, value: VideoQuery) -> ServedReply:
    return ServedReply(body={"id": value.id, "object": "video.deleted", "deleted": True})


def _write_retrieved(job: VideoJob, value: VideoQuery) -> ServedReply:
    """Both forms have this path; a job is described in the form in which it was requested."""
    if xai_video.OWNER in job.extra:
        return ServedReply(body=xai_video.write_job(job, value.address))
    return ServedReply(body=write_job(job))


def _write_content(data: bytes, value: VideoQuery) -> ServedReply:
    return ServedReply(content=data, content_type=_MEDIA_TYPES[value.variant])


_ALL = r".*/videos"
_ONE = r".*/videos/(?P<id>[^/]+)"


SERVED = (
    *xai_video.SERVED,  # first: `generations` is not the id of a video
    serve("create_video", "POST", _ALL, _served_create, write_body(write_job)),
    serve("list_videos", "GET", _ALL, _served_list, _write_list),
    serve("retrieve_video", "GET", _ONE, _served_id, _write_retrieved),
    serve("delete_video", "DELETE", _ONE, _served_id, _write_deleted),
    serve("download_video", "GET", f"{_ONE}/content", _served_id, _write_content),
    serve("remix_video", "POST", f"{_ONE}/remix", _served_remix, write_body(write_job)),
    serve("cancel_video", "POST", f"{_ONE}/cancel", _served_id, write_body(write_job)),
)
