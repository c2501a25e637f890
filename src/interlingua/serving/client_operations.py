"""How a `ClientApplication` performs operations: embeddings, images, speech, files, videos, …"""

from __future__ import annotations

import re
from collections.abc import AsyncIterable
from typing import Any

from msgspec.structs import replace

from interlingua.api.modalities.embeddings import embed_many
from interlingua.client.client import Client
from interlingua.client.configured import find_adapter
from interlingua.client.registry import Route as Place
from interlingua.providers.operation_check import KIND_OF_OPERATION
from interlingua.serving.holdings import HeldJob, Holding
from interlingua.spec.errors import NotFoundError
from interlingua.spec.modalities.embeddings import EmbedInput
from interlingua.spec.modalities.files import (
    FileInput,
    ListFilesInput,
    UploadChunk,
    UploadInput,
)
from interlingua.spec.modalities.images import ImageInput
from interlingua.spec.modalities.video import CreateVideoInput, VideoJob, VideoQuery
from interlingua.spec.operations import OperationInput, OperationResult

_STORED = (UploadInput, FileInput, ListFilesInput, VideoQuery, CreateVideoInput)
"""The values of operations on what a provider has stored, which no model performs."""
_VIDEO = "video"
_find_video = re.compile(r"(\d{1,3})-video_[0-9A-Z]{26}").fullmatch
"""The name of a video as a file: its number, and the id of its job."""
_NO_HOLDER = (
    "This server does not know which provider stores that. Name the provider in the header "
    "x-interlingua-provider, if this key may use all models."
)


def needs_model(name: str, value: OperationInput) -> bool:
    """Whether a model performs an operation, and not the provider that stores something."""
    return name in KIND_OF_OPERATION and getattr(value, "source_id", None) is None


def makes_job(value: OperationInput) -> bool:
    """Whether an operation makes a job whose place is kept for the caller."""
    return isinstance(value, CreateVideoInput)


def find_holder(client: Client, value: Any, named: str) -> tuple[str, Any] | None:
    """
    The provider that stores what an operation is about, and the value as it knows it.

    It is named by a header, or by the beginning of the id: `openai:file-1`. None if it is not.
    """
    if not isinstance(value, _STORED):
        return None
    for field in ("file_id", "source_id", "id"):
        prefix, colon, rest = (getattr(value, field, None) or "").partition(":")
        if colon and find_adapter(prefix, client.calls.adapters) is not None:
            return prefix, replace(value, **{field: rest})
    if find_adapter(named, client.calls.adapters) is None:
        return None
    return named, value


async def keep_job(held: Holding, result: Any, dialect: str) -> Any:
    """The result; of a video, with an id by which this caller finds it again."""
    if not isinstance(result, VideoJob):
        return result
    place = HeldJob(provider=result.provider, id=result.id, dialect=dialect, shown_id="video_")
    return _shown(await held.add_job(_VIDEO, place), result)


async def is_held(held: Holding, value: Any) -> bool:
    """Whether an operation is about a video whose id this caller got from here."""
    is_video = isinstance(value, VideoQuery)
    return is_video and await held.find_job(_VIDEO, value.id) is not None


async def perform_here(client: Client, held: Holding, name: str, value: Any) -> Any:
    """The result of an operation on what is kept for a caller: its files and its videos."""
    match value:
        case UploadInput():
            return await held.upload(value)
        case UploadChunk():
            return await held.receive(value)
        case ListFilesInput():
            return await held.files()
        case FileInput() if name == "download_file":
            return await held.content(value.file_id)
        case FileInput() if name == "delete_file":
            return await held.delete_file(value)
        case FileInput():
            return await held.file(value)
    return await _perform_on_video(client, held, name, value)


async def _perform_on_video(client: Client, held: Holding, name: str, value: Any) -> Any:
    """The result of an operation on a video whose id this caller got from here."""
    field = "source_id" if isinstance(value, CreateVideoInput) else "id"
    job = await held.find_job(_VIDEO, getattr(value, field, None) or "")
    if job is None:
        raise NotFoundError(_NO_HOLDER, status_code=404)
    asked = replace(value, **{field: job.id})
    if name == "download_video":
        return await _download(client, job, asked)
    result = await perform_at_holder(client, job.provider, name, asked)
    if name == "delete_video":
        await held.forget_job(_VIDEO, job.shown_id)
    if isinstance(result, VideoJob) and result.id == job.id:
        return _shown(job, result)
    return await keep_job(held, result, job.dialect)


async def read_video(client: Client, held: Holding, value: FileInput) -> bytes | None:
    """A video that is downloaded as a file; None if the id is not that of one."""
    named = _find_video(value.file_id)
    job = None if named is None else await held.find_job(_VIDEO, value.file_id)
    if named is None or job is None:
        return None
    query = VideoQuery(id=job.id, index=int(named[1]), request_id=value.request_id)
    return await _download(client, job, query)


def _shown(job: HeldJob, found: VideoJob) -> VideoJob:
    """The job of a caller, without the words and addresses of the provider."""
    files = tuple(
        replace(file, url=f"{number}-{job.shown_id}") for number, file in enumerate(found.files)
    )
    return replace(found, id=job.shown_id, files=files, raw_state="", raw=None, extra={})


async def _download(client: Client, job: HeldJob, query: VideoQuery) -> bytes:
    """A video of a job, wherever its provider has it."""
    asked = VideoQuery(id=job.id, request_id=query.request_id)
    found: VideoJob = await perform_at_holder(client, job.provider, "retrieve_video", asked)
    if query.index >= len(found.files):
        raise NotFoundError(f"The job {job.shown_id} has no such video.", status_code=404)
    data = found.files[query.index].data
    if data is not None:
        return data
    video: bytes = await perform_at_holder(
        client, job.provider, "download_video", replace(query, job=found)
    )
    return video


async def perform_by_model(client: Client, name: str, value: Any, place: Place) -> OperationResult:
    """The result of an operation, as the model at this place performs it."""
    options = value.provider_options
    if not {place.provider, getattr(client.adapter(place.provider), "dialect", "")} & {*options}:
        options = {}
    value = replace(
        value,
        provider=place.provider,
        model=place.model,
        provider_options=options,
        on_loss=value.on_loss or "warn",
    )
    if isinstance(value, EmbedInput):
        result: OperationResult = await _embed(client, value)
    else:
        if isinstance(value, ImageInput):  # the stream that the client gets is made of the result
            value = replace(value, partial_images=None)
        result = await client.perform(place.provider, name, value)
    # The raw usage of another vendor is not in the words of the client's.
    return replace(result, usage=replace(result.usage, raw=None))


async def _embed(client: Client, value: EmbedInput) -> OperationResult:
    """All vectors, in as many calls as the provider needs; their encoding there is its own."""
    return await embed_many(
        value.model,
        value.inputs,
        task=value.task,
        dimensions=value.dimensions,
        user=value.user,
        provider=value.provider,
        provider_options=value.provider_options,
        on_loss=value.on_loss,
        request_id=value.request_id,
        max_retries=0,
        client=client,
    )


def as_asked(result: Any, value: Any) -> Any:
    """The result as a request asks for it: one that asks for a stream gets a stream of one item."""
    is_stream = isinstance(value, ImageInput) and value.partial_images is not None
    return (result,) if is_stream else result


async def perform_at_holder(client: Client, provider: str, name: str, value: Any) -> Any:
    """The result of an operation on what a provider has stored."""
    if isinstance(value, (ListFilesInput, VideoQuery)):  # the reply is cut into pages here
        value = replace(value, limit=None, after=None)
    result = await client.perform(provider, name, value)
    if isinstance(result, AsyncIterable):  # a file
        return b"".join([chunk async for chunk in result])
    return result
