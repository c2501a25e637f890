"""`generate_video`, and the steps that it consists of: create, wait, download."""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import AsyncIterator, Awaitable, Mapping
from contextlib import aclosing
from os import PathLike, fspath
from typing import Any, Literal, TypeAlias, TypeVar, Unpack

from msgspec.structs import replace

from interlingua.api.modalities.perform import MediaCall, MediaOptions
from interlingua.api.modalities.polling import check_interval, poll
from interlingua.api.modalities.references import split_reference
from interlingua.api.modalities.sources import ImageSource, media_part
from interlingua.runtime.callbacks import settle
from interlingua.spec.check import check_literal, describe
from interlingua.spec.content import Image
from interlingua.spec.errors import AbortError, ConfigurationError, ProviderError, SDKError
from interlingua.spec.modalities.files import ByteProgress
from interlingua.spec.modalities.images import is_size, ratio_of, ratio_value
from interlingua.spec.modalities.video import (
    CreateVideoInput,
    VideoJob,
    VideoProgress,
    VideoQuery,
    VideoVariant,
)
from interlingua.transport.downloads import check_target, save

JobReference: TypeAlias = VideoJob | str
"""A `VideoJob`, or its `reference`: `provider:id`."""
Result = TypeVar("Result")


async def generate_video(  # noqa: PLR0913 -- options, all but two by name
    model: str,
    prompt: str,
    *,
    image: ImageSource | None = None,
    seconds: float | None = None,
    size: str | None = None,
    aspect_ratio: str | None = None,
    count: int | None = None,
    wait: Literal["poll", "none"] = "poll",
    output_path: str | PathLike[str] | None = None,
    variant: VideoVariant = "video",
    poll_interval: float | None = None,
    on_progress: VideoProgress | None = None,
    **options: Unpack[MediaOptions],
) -> VideoJob:
    """
    Make a video, wait until it is complete, and write it to a file.

        job = await generate_video(
            "gemini:veo-3.1-generate-001", "A calm sea.", seconds=8, output_path="sea.mp4"
        )
        print(job.usage.video_seconds, job.cost)

    It takes minutes. `on_progress` is called with the `VideoJob` when it was created and after
    each question about it. With `wait="none"` the job is returned at once; `video.wait` and
    `video.download` go on, also in another process. A cancellation or a timeout leaves the job
    running: `error.job` names it. A job that fails raises the error of the provider.
    """
    if wait not in {"poll", "none"}:
        raise ConfigurationError(f"`wait` must be 'poll' or 'none', not {describe(wait)}.")
    if wait == "none" and output_path is not None:
        raise ConfigurationError(
            "`output_path` needs wait='poll'. With wait='none', call video.wait and video.download."
        )
    check_interval(poll_interval)
    check_literal("variant", variant, VideoVariant)
    if output_path is not None:
        check_target(output_path)  # now: a video that cannot be written is paid for, too
    value = _create_input(prompt, image, seconds, size, aspect_ratio, count)
    steps = _Steps(MediaCall(model, options))

    async def work() -> VideoJob:
        job = await steps.create("create_video", value)
        if wait == "none":
            return job
        await steps.report(job, on_progress)
        job = await steps.wait(job, poll_interval, on_progress)
        if output_path is None:
            return job
        await steps.download(job, output_path, variant, 0, None)
        return replace(job, saved_path=fspath(output_path))

    return await steps.run(work())


async def create(
    model: str,
    prompt: str,
    *,
    image: ImageSource | None = None,
    seconds: float | None = None,
    size: str | None = None,
    aspect_ratio: str | None = None,
    count: int | None = None,
    **options: Unpack[MediaOptions],
) -> VideoJob:
    """
    Start a job. Its usage and cost are estimates until it is complete.

    `size` is in pixels (`1280x720`) or the name of a resolution (`720p`, `1080p`, `4k`); it is
    converted to what the provider takes. A length or shape that the model does not have raises
    `UnsupportedError` before anything is sent. The request is retried only if the provider has
    certainly not accepted it: no connection, or status 429, 503 or 529.
    """
    value = _create_input(prompt, image, seconds, size, aspect_ratio, count)
    steps = _Steps(MediaCall(model, options))
    return await steps.run(steps.create("create_video", value))


async def remix(job: JobReference, prompt: str, **options: Unpack[MediaOptions]) -> VideoJob:
    """Start a job that changes the video of a completed job as the prompt says."""
    steps, query = _steps(job, options)
    value = replace(
        _create_input(prompt, None, None, None, None, None),
        source_id=query.id,
        seconds=None if query.job is None else query.job.seconds,
        size=None if query.job is None else query.job.size,
    )
    return await steps.run(steps.create("remix_video", value))


async def retrieve(job: JobReference, **options: Unpack[MediaOptions]) -> VideoJob:
    """
    Ask the provider about a job; one that has failed is returned with its `error`.

    A reference is enough. With the `VideoJob`, what the provider does not repeat is kept.
    """
    steps, query = _steps(job, options)
    return await steps.run(steps.retrieve(query))


async def wait(
    job: JobReference,
    *,
    poll_interval: float | None = None,
    on_progress: VideoProgress | None = None,
    **options: Unpack[MediaOptions],
) -> VideoJob:
    """
    Wait until a job is complete, also one of another process.

    The delays between two questions begin with `poll_interval` (3 seconds) and grow to ten times
    that, with jitter. `timeout` bounds the whole function; then, or if it is cancelled, the job
    goes on at the provider and can be waited for again. A failed job raises the provider's error,
    with the job in `error.job`; a cancelled job raises `AbortError`.
    """
    check_interval(poll_interval)
    if isinstance(job, VideoJob) and job.state == "completed":
        return job
    steps, query = _steps(job, options)
    known = query.job or VideoJob(id=query.id, provider=query.provider or "")
    return await steps.run(steps.wait(known, poll_interval, on_progress))


async def download(
    job: JobReference,
    path: str | PathLike[str],
    *,
    variant: VideoVariant = "video",
    index: int = 0,
    on_progress: ByteProgress | None = None,
    **options: Unpack[MediaOptions],
) -> int:
    """
    Write a video to a file; returns its size in bytes.

    The file appears when it is complete. `variant` may ask for a picture of the video instead,
    where the provider has one; `index` chooses between several videos of a job. The API key is sent
    only to the provider's own host.
    """
    check_literal("variant", variant, VideoVariant)
    steps, query = _steps(job, options)

    async def work() -> int:
        known = query.job
        if known is None or known.state != "completed":
            known = await steps.retrieve(query)
            _check_completed(known)
        return await steps.download(known, path, variant, index, on_progress)

    return await steps.run(work())


async def cancel(job: JobReference, **options: Unpack[MediaOptions]) -> VideoJob:
    """Cancel a job, at providers that can; a job that has ended is returned as it is."""
    if isinstance(job, VideoJob) and job.is_ended:
        return job
    steps, query = _steps(job, options)
    return await steps.run(steps.query("cancel_video", query))


async def delete(job: JobReference, **options: Unpack[MediaOptions]) -> None:
    """Delete a job that has ended, and its files, at providers that keep them."""
    steps, query = _steps(job, options)
    await steps.run(steps.call.perform_at("delete_video", query))


async def list_jobs(
    model: str, *, limit: int | None = None, **options: Unpack[MediaOptions]
) -> list[VideoJob]:
    """
    List the jobs of a provider, newest first: `video.list("openai_compatible")`.

    `model` is a provider, or `provider:model`. Gemini needs the model; others list the jobs of all
    models. `limit` is how many are fetched at once.
    """
    provider, name = split_reference(model, options.get("provider"))
    steps = _Steps(MediaCall(name, {**options, "provider": provider}))
    value = VideoQuery(limit=limit, **steps.call.fields())
    jobs = await steps.run(steps.call.perform_at("list_videos", value))
    return [replace(job, provider=job.provider or value.provider or "") for job in jobs]


class _Steps:
    """The steps of one call, and the job that they are about, for its errors."""

    def __init__(self, call: MediaCall) -> None:
        self.call = call
        self._job: str | None = None

    async def run(self, work: Awaitable[Result]) -> Result:
        """The result of the whole function; an error names the job."""
        try:
            return await self.call.run(work)
        except SDKError as error:
            error.add_facts(job=self._job)
            raise
        except CancelledError as error:
            # The same object, because `asyncio.timeout` knows only this class.
            vars(error)["job"] = self._job
            raise

    async def create(self, operation: str, value: CreateVideoInput) -> VideoJob:
        value = replace(value, **self.call.fields())
        perform = self.call.perform if value.source_id is None else self.call.perform_at
        job: VideoJob = await perform(operation, value)
        return self._remember(job)

    async def retrieve(self, query: VideoQuery) -> VideoJob:
        return await self.query("retrieve_video", query)

    async def query(self, operation: str, query: VideoQuery) -> VideoJob:
        self._job = f"{query.provider}:{query.id}"
        job: VideoJob = await self.call.perform_at(operation, query)
        return self._remember(job)

    async def wait(
        self, job: VideoJob, interval: float | None, on_progress: VideoProgress | None
    ) -> VideoJob:
        latest = job

        async def ask() -> VideoJob:
            nonlocal latest
            query = VideoQuery(
                **{**self.call.fields(), "provider": job.provider, "model": latest.model},
                id=job.id,
                job=latest,
            )
            latest = await self.retrieve(query)
            return latest

        ended = await poll(
            ask, lambda each: each.is_ended, interval=interval, on_progress=on_progress
        )
        _check_completed(ended)
        return ended

    async def download(
        self,
        job: VideoJob,
        path: str | PathLike[str],
        variant: VideoVariant,
        index: int,
        on_progress: ByteProgress | None,
    ) -> int:
        self._job = job.reference
        if index < 0 or index >= max(1, len(job.files)):
            raise ConfigurationError(
                f"The job has {len(job.files)} videos, and no video with the index {index}."
            )
        data = job.files[index].data if job.files else None
        if data is not None and variant == "video":
            return await save(_once(data), path, total=len(data), on_progress=on_progress)
        fields = {**self.call.fields(), "provider": job.provider, "model": job.model}
        value = VideoQuery(id=job.id, job=job, variant=variant, index=index, **fields)
        chunks = await self.call.perform_at("download_video", value)
        async with aclosing(chunks):
            return await save(chunks, path, on_progress=on_progress)

    async def report(self, job: VideoJob, on_progress: VideoProgress | None) -> None:
        if on_progress is not None:
            await settle(on_progress(job))

    def _remember(self, job: VideoJob) -> VideoJob:
        self._job = job.reference
        return job


async def _once(data: bytes) -> AsyncIterator[bytes]:
    yield data


def _steps(job: object, options: Mapping[str, Any]) -> tuple[_Steps, VideoQuery]:
    """The steps and the query for a job that the caller names."""
    known = job if isinstance(job, VideoJob) else None
    if known is not None:
        provider, job_id = known.provider, known.id
    elif isinstance(job, str):
        provider, job_id = split_reference(job, options.get("provider"))
    else:
        raise ConfigurationError(
            f"`job` must be a VideoJob or its reference, 'provider:id', not {describe(job)}."
        )
    if not provider or not job_id:
        raise ConfigurationError(f"{job!r} does not name a job. It looks like 'provider:id'.")
    settings: dict[str, Any] = {**options, "provider": provider}
    if known is not None and known.is_final:
        settings.pop("on_usage", None)  # the usage was reported when the job was completed
    steps = _Steps(MediaCall("" if known is None else known.model, settings))
    return steps, VideoQuery(id=job_id, job=known, **steps.call.fields())


def _check_completed(job: VideoJob) -> None:
    """Raise the error of a job that has not made a video."""
    if job.state == "completed":
        return
    facts: dict[str, Any] = {
        "provider": job.provider or None,
        "model": job.model or None,
        "request_id": job.request_id,
        "job": job.reference,
    }
    if job.state == "cancelled":
        raise AbortError("The job was cancelled at the provider.", **facts)
    if job.state != "failed":
        raise ConfigurationError(
            f"The job is {job.state.replace('_', ' ')}. Wait for it first: video.wait.", **facts
        )
    error = job.error or ProviderError("The job has failed; the provider does not say why.")
    raise error.add_facts(**facts)


def _create_input(
    prompt: Any,
    image: Any,
    seconds: Any,
    size: Any,
    aspect_ratio: Any,
    count: Any,
) -> CreateVideoInput:
    """The checked arguments; what a model accepts is checked by its dialect."""
    if not isinstance(prompt, str) or not prompt.strip():
        raise ConfigurationError(
            f"`prompt` must be a text that is not blank, not {describe(prompt)}."
        )
    _check_number("seconds", seconds, (int, float))
    _check_number("count", count, int)
    if size is not None and not (isinstance(size, str) and is_size(size)):
        raise ConfigurationError(
            f"`size` must be like '1280x720', '720p' or '4k', not {describe(size)}.", setting="size"
        )
    ratio = None if aspect_ratio is None else ratio_value(str(aspect_ratio))
    if aspect_ratio is not None and ratio is None:
        raise ConfigurationError(
            f"`aspect_ratio` must be like '16:9', not {describe(aspect_ratio)}.",
            setting="aspect_ratio",
        )
    exact = None if size is None or ratio is None else ratio_of(size, (aspect_ratio,))
    if exact not in {None, aspect_ratio}:
        raise ConfigurationError(
            f"The size {size} has not the aspect_ratio {aspect_ratio}. Give one of the two.",
            setting="aspect_ratio",
        )
    return CreateVideoInput(
        prompt=prompt,
        image=None if image is None else media_part(image, Image, "image"),
        seconds=None if seconds is None else float(seconds),
        size=size,
        aspect_ratio=aspect_ratio,
        count=count,
    )


def _check_number(name: str, value: Any, kinds: type | tuple[type, ...]) -> None:
    is_number = isinstance(value, kinds) and not isinstance(value, bool)
    if value is not None and not (is_number and 0 < value < float("inf")):
        raise ConfigurationError(
            f"{name} must be a number above 0, not {describe(value)}.", setting=name
        )
