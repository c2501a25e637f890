"""Video: jobs that a provider works on for minutes, and the files that they make."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeAlias

from msgspec.structs import replace

from interlingua.spec.content import Extra, Image, Record
from interlingua.spec.errors import SDKError
from interlingua.spec.operations import OperationInput, OperationResult
from interlingua.spec.response import Usage
from interlingua.spec.warnings import make_warning

VideoState: TypeAlias = Literal["queued", "in_progress", "completed", "failed", "cancelled"]
"""The state of a job: `queued`, `in_progress`, `completed`, `failed` or `cancelled`."""
VideoVariant: TypeAlias = Literal["video", "thumbnail", "spritesheet"]
"""What of a video to download; most providers have only the video."""
VideoProgress: TypeAlias = Callable[["VideoJob"], Any]
"""Called with the job each time the provider was asked about it; may be async."""

ENDED: frozenset[VideoState] = frozenset(("completed", "failed", "cancelled"))
ASSUMED_SECONDS = 15.0
"""What a budget reserves for a video of unknown length; known providers make none longer."""


_OF_COST = frozenset(("price_unknown", "video_length_unknown"))  # made anew for each answer


class VideoFile(Record, frozen=True, kw_only=True):
    """One video that a job has made."""

    url: str | None = None
    """Where the provider keeps it, for a limited time."""
    data: bytes | None = None
    """The video itself, where the provider sends it with the job."""
    media_type: str | None = None
    """The media type, such as `video/mp4`."""


class VideoJob(OperationResult, frozen=True, kw_only=True):
    """
    A video job at a provider, as it was when the provider was asked.

    `job.reference` is all that another process needs to go on. `to_json(job)` also keeps what some
    providers do not repeat, such as the length, from which the cost follows.
    """

    id: str = ""
    """The provider's id of the job."""
    state: VideoState = "queued"
    """Its state, with the same meaning for every provider."""
    raw_state: str = ""
    """The state in the provider's own words."""
    progress: float | None = None
    """How far it is, in percent; None if the provider does not say."""
    prompt: str | None = None
    """What was asked for."""
    seconds: float | None = None
    """The length of each video; None if it is unknown."""
    size: str | None = None
    """The size: `1280x720`, or `720p` where the provider has names for resolutions."""
    aspect_ratio: str | None = None
    """The shape, such as `16:9`."""
    count: int | None = None
    """How many videos were asked for."""
    files: tuple[VideoFile, ...] = ()
    """The videos of a completed job, where the provider lists them."""
    filtered: tuple[str, ...] = ()
    """Why a safety filter has withheld videos of the job."""
    created_at: float | None = None
    """Seconds since 1970."""
    completed_at: float | None = None
    """Seconds since 1970."""
    expires_at: float | None = None
    """Seconds since 1970; the files can be downloaded until then."""
    error: SDKError | None = None
    """Why the job failed; `wait` raises it."""
    remixed_from: str | None = None
    """The id of the job whose video was changed."""
    requested_model: str = ""
    """The model that was asked for; the server may call it by another name in `model`."""
    saved_path: str | None = None
    """The file to which `generate_video` has written the video."""
    extra: Extra = {}
    """Other fields, by dialect, as in parts."""

    @property
    def reference(self) -> str:
        """The provider and the id in one string, such as `openai_compatible:video_68f1…`."""
        return f"{self.provider}:{self.id}"

    @property
    def is_ended(self) -> bool:
        """Whether the state is final."""
        return self.state in ENDED

    @property
    def is_final(self) -> bool:
        """Whether the usage is that of finished work; before, it is what the job will use."""
        return self.state == "completed"

    def with_known(self, known: VideoJob | None) -> VideoJob:
        """Return the job with what an earlier answer said, where this one says nothing."""
        if known is None:
            return self
        names = ("prompt", "seconds", "size", "aspect_ratio", "count", "remixed_from", "created_at")
        missing = {
            name: getattr(known, name)
            for name in (*names, "completed_at", "expires_at", "saved_path")
            if getattr(self, name) is None
        }
        earlier = (each for each in known.warnings if each.code not in _OF_COST)
        return replace(
            self,
            model=self.model or known.model,
            requested_model=self.requested_model or known.requested_model,
            warnings=(*earlier, *self.warnings),
            **missing,
        )

    def with_usage(self) -> VideoJob:
        """Return the job with the usage that follows from its length, unless it has failed."""
        usage = self.usage
        if usage.video_seconds is not None or self.state in {"failed", "cancelled"}:
            return self
        if self.seconds is None:
            if not self.is_final or usage.reported_cost is not None:
                return self
            warning = make_warning("video_length_unknown", target=self.model or "The provider")
            return replace(self, warnings=(*self.warnings, warning))
        number = len(self.files) or self.count or 1
        return replace(
            self,
            usage=replace(
                usage,
                video_seconds=self.seconds * number,
                media_size=self.size,
                estimated=not self.is_final,
            ),
        )


class CreateVideoInput(OperationInput, frozen=True, kw_only=True):
    """The video to make."""

    prompt: str = ""
    image: Image | None = None
    """The first frame."""
    seconds: float | None = None
    size: str | None = None
    """Such as `1280x720` or `720p`."""
    aspect_ratio: str | None = None
    """The shape, such as `16:9`."""
    count: int | None = None
    """How many videos to make of the prompt."""
    source_id: str | None = None
    """The job whose video is changed, of a remix."""
    extra: Extra = {}
    """Other fields that a server received, by dialect."""

    @property
    def rough_size(self) -> int:
        """As in `OperationInput`."""
        return 0 if self.image is None else len(self.image.data or b"")

    @property
    def expected_usage(self) -> Usage:
        """As in `OperationInput`."""
        seconds = ASSUMED_SECONDS if self.seconds is None else self.seconds
        total = seconds * (self.count or 1)
        return Usage(video_seconds=total, media_size=self.size, estimated=True)


class VideoQuery(OperationInput, frozen=True, kw_only=True):
    """The value of the operations on one job, and of `list_videos`."""

    id: str = ""
    job: VideoJob | None = None
    """What is known of the job."""
    variant: VideoVariant = "video"
    index: int = 0
    """Which of the videos of the job."""
    limit: int | None = None
    """How many jobs are fetched at once; all of them are listed."""
    after: str | None = None
    """The id after which a list starts."""
    order: Literal["asc", "desc"] = "desc"
    address: str = ""
    """The address of the server, for the URLs in its reply."""
