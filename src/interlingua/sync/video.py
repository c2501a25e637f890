"""
The functions of `interlingua.video`, blocking.

Each has the parameters and results of the async function it names.
"""

from __future__ import annotations

import builtins
from os import PathLike
from typing import Unpack

from interlingua.api.modalities import video as async_video
from interlingua.api.modalities.sources import ImageSource
from interlingua.api.modalities.video import JobReference
from interlingua.spec.modalities.files import ByteProgress
from interlingua.spec.modalities.video import VideoJob, VideoProgress, VideoVariant
from interlingua.sync.client import unwrap
from interlingua.sync.loop_thread import background
from interlingua.sync.media import MediaOptions

__all__ = ["cancel", "create", "delete", "download", "list", "remix", "retrieve", "wait"]


def create(
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
    """Like `interlingua.video.create`, blocking."""
    return background.run(
        async_video.create(
            model,
            prompt,
            image=image,
            seconds=seconds,
            size=size,
            aspect_ratio=aspect_ratio,
            count=count,
            **unwrap(options),
        )
    )


def remix(job: JobReference, prompt: str, **options: Unpack[MediaOptions]) -> VideoJob:
    """Like `interlingua.video.remix`, blocking."""
    return background.run(async_video.remix(job, prompt, **unwrap(options)))


def retrieve(job: JobReference, **options: Unpack[MediaOptions]) -> VideoJob:
    """Like `interlingua.video.retrieve`, blocking."""
    return background.run(async_video.retrieve(job, **unwrap(options)))


def wait(
    job: JobReference,
    *,
    poll_interval: float | None = None,
    on_progress: VideoProgress | None = None,
    **options: Unpack[MediaOptions],
) -> VideoJob:
    """Like `interlingua.video.wait`, blocking."""
    return background.run(
        async_video.wait(
            job, poll_interval=poll_interval, on_progress=on_progress, **unwrap(options)
        )
    )


def download(
    job: JobReference,
    path: str | PathLike[str],
    *,
    variant: VideoVariant = "video",
    index: int = 0,
    on_progress: ByteProgress | None = None,
    **options: Unpack[MediaOptions],
) -> int:
    """Like `interlingua.video.download`, blocking."""
    return background.run(
        async_video.download(
            job, path, variant=variant, index=index, on_progress=on_progress, **unwrap(options)
        )
    )


def cancel(job: JobReference, **options: Unpack[MediaOptions]) -> VideoJob:
    """Like `interlingua.video.cancel`, blocking."""
    return background.run(async_video.cancel(job, **unwrap(options)))


def delete(job: JobReference, **options: Unpack[MediaOptions]) -> None:
    """Like `interlingua.video.delete`, blocking."""
    background.run(async_video.delete(job, **unwrap(options)))


def list(
    model: str, *, limit: int | None = None, **options: Unpack[MediaOptions]
) -> builtins.list[VideoJob]:
    """Like `interlingua.video.list`, blocking."""
    return background.run(async_video.list_jobs(model, limit=limit, **unwrap(options)))
