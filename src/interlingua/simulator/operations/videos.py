"""Simulated video jobs: they go on with each question about them, and end as their script says."""

from __future__ import annotations

import struct
import time
import zlib
from collections.abc import Callable, Iterable
from hashlib import shake_128
from itertools import count

import msgspec
from msgspec.structs import replace

from interlingua.serving.application import RefusedError
from interlingua.simulator.operations.files import SimulatedFiles
from interlingua.spec.content import Record
from interlingua.spec.errors import (
    ContentFilterError,
    InvalidRequestError,
    NotFoundError,
    ProviderError,
    SDKError,
)
from interlingua.spec.modalities.files import UploadInput
from interlingua.spec.modalities.images import pixels_of, size_of
from interlingua.spec.modalities.video import CreateVideoInput, VideoFile, VideoJob, VideoQuery
from interlingua.spec.operations import Failure

DAY = 86_400.0
_SECONDS = 8.0
_SIZE = "1280x720"
_BYTES_PER_SECOND = 20_000


class VideoScript(Record, frozen=True, kw_only=True):
    """How a simulated video job goes on, and how it ends."""

    polls: int = 2
    """How many polls find it in progress before it ends."""
    error: tuple[str, str] | None = None
    """The code and the message of the error with which it fails."""
    filtered: tuple[str, ...] = ()
    """The reasons for which a safety filter withholds the video."""
    refusal: Failure | None = None
    """The error with which the job is not accepted at all."""


class _Entry(msgspec.Struct):
    job: VideoJob
    script: VideoScript
    asked: int = 0


class SimulatedVideos:
    """The jobs, newest first. Each job takes the next of the scripts; the last one is repeated."""

    def __init__(
        self,
        files: SimulatedFiles,
        scripts: Iterable[VideoScript] = (),
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._files = files
        self._scripts = tuple(scripts) or (VideoScript(),)
        self._clock = clock
        self._numbers = count(1)
        self._requests = count()
        self._entries: dict[str, _Entry] = {}

    def create_video(self, value: CreateVideoInput) -> VideoJob:
        """A new job, which is queued."""
        script = self._scripts[min(next(self._requests), len(self._scripts) - 1)]
        if script.refusal is not None:
            raise RefusedError(script.refusal)
        job = VideoJob(
            id=f"video_{next(self._numbers):012d}",
            model=value.model,
            state="queued",
            progress=0.0,
            prompt=value.prompt,
            seconds=_SECONDS if value.seconds is None else value.seconds,
            size=_pixels(value),
            count=value.count,
            created_at=float(int(self._clock())),
            extra=value.extra,
        )
        self._entries[job.id] = _Entry(job, script)
        return job

    def remix_video(self, value: CreateVideoInput) -> VideoJob:
        """A new job with the shape of an earlier one."""
        source = self._find(value.source_id or "").job
        if source.state != "completed":
            raise InvalidRequestError("Only completed videos can be remixed.", status_code=400)
        made = self.create_video(
            replace(value, model=source.model, seconds=source.seconds, size=source.size)
        )
        entry = self._entries[made.id]
        entry.job = replace(made, remixed_from=source.id)
        return entry.job

    def retrieve_video(self, value: VideoQuery) -> VideoJob:
        """The job, one step further than at the last request for it."""
        entry = self._find(value.id)
        if not entry.job.is_ended:
            entry.asked += 1
            entry.job = self._advance(entry)
        return entry.job

    def list_videos(self, _value: VideoQuery) -> list[VideoJob]:
        """All jobs."""
        return [entry.job for entry in reversed(self._entries.values())]

    def cancel_video(self, value: VideoQuery) -> VideoJob:
        """The job, which is cancelled unless it has ended."""
        entry = self._find(value.id)
        if not entry.job.is_ended:
            error = ProviderError("The job was cancelled.", status_code=499)
            entry.job = replace(entry.job, state="cancelled", error=error)
        return entry.job

    def delete_video(self, value: VideoQuery) -> None:
        """The job no longer exists."""
        entry = self._find(value.id)
        if not entry.job.is_ended:
            raise InvalidRequestError("The video is still being made.", status_code=400)
        del self._entries[value.id]

    def download_video(self, value: VideoQuery) -> bytes:
        """The video, or a picture of it."""
        job = self._find(value.id).job
        if job.state != "completed":
            raise NotFoundError(f"Video {job.id} is not ready.", status_code=404)
        if value.variant == "video":
            return job.files[0].data or b""
        side = 16 if value.variant == "thumbnail" else 64
        return _png(side, side)

    def _find(self, job_id: str) -> _Entry:
        entry = self._entries.get(job_id)
        if entry is None:
            raise NotFoundError(f"Video with id '{job_id}' not found.", status_code=404)
        return entry

    def _advance(self, entry: _Entry) -> VideoJob:
        job, script = entry.job, entry.script
        if entry.asked <= script.polls:
            progress = round(100 * entry.asked / (script.polls + 1))
            return replace(job, state="in_progress", progress=float(progress))
        if script.error is not None or script.filtered:
            return replace(job, state="failed", error=_error(script), filtered=script.filtered)
        now = float(int(self._clock()))
        return replace(
            job,
            state="completed",
            progress=100.0,
            completed_at=now,
            expires_at=now + DAY,
            files=tuple(self._make(job, index) for index in range(job.count or 1)),
        )

    def _make(self, job: VideoJob, index: int) -> VideoFile:
        data = make_mp4(job.seconds or _SECONDS, f"{job.prompt}{index}")
        stored = self._files.add_generated(
            UploadInput(
                content=data, file_name=f"{job.id}.mp4", media_type="video/mp4", purpose="video"
            )
        )
        return VideoFile(url=stored.id, data=data, media_type="video/mp4")


def _error(script: VideoScript) -> SDKError:
    if script.filtered:
        return ContentFilterError(" ".join(script.filtered), error_code="moderation_blocked")
    code, message = script.error or ("", "")
    return ProviderError(message, error_code=code)


def _pixels(value: CreateVideoInput) -> str:
    size = value.size or _SIZE
    if pixels_of(size) is not None:
        return size
    return size_of(value.aspect_ratio or "16:9", size) or _SIZE


def make_mp4(seconds: float, seed: str) -> bytes:
    """An MP4 file of this length: its header is valid, its only track is noise from the seed."""
    media = shake_128(seed.encode("utf-8", "replace")).digest(int(seconds * _BYTES_PER_SECOND))
    header = struct.pack(">4sI4s4s", b"isom", 512, b"isom", b"mp41")
    times = struct.pack(">IIIII", 0, 0, 0, 1000, int(seconds * 1000))
    rest = struct.pack(">IHH8x9I24xI", 0x10000, 0x100, 0, *_MATRIX, 2)
    movie = _box(b"moov", _box(b"mvhd", times + rest))
    return _box(b"ftyp", header) + movie + _box(b"mdat", media)


_MATRIX = (0x10000, 0, 0, 0, 0x10000, 0, 0, 0, 0x40000000)


def _box(name: bytes, content: bytes) -> bytes:
    return struct.pack(">I4s", 8 + len(content), name) + content


def _png(width: int, height: int) -> bytes:
    rows = b"".join(b"\0" + bytes(3 * width) for _ in range(height))
    chunks = (
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)),
        (b"IDAT", zlib.compress(rows)),
        (b"IEND", b""),
    )
    parts = (
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in chunks
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)
