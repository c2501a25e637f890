"""
Video jobs, step by step: start them, ask about them, wait, download.

`interlingua.generate_video` does all of it in one call. Import from here to go on with a job in
another process, or to name a `VideoJob` in an annotation.
"""

from interlingua.api.modalities.video import (
    cancel,
    create,
    delete,
    download,
    remix,
    retrieve,
    wait,
)
from interlingua.api.modalities.video import list_jobs as list
from interlingua.spec.modalities.video import VideoFile, VideoJob, VideoState, VideoVariant

__all__ = [
    "VideoFile",
    "VideoJob",
    "VideoState",
    "VideoVariant",
    "cancel",
    "create",
    "delete",
    "download",
    "list",
    "remix",
    "retrieve",
    "wait",
]
