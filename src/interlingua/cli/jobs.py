"""What `video` and `batch` share: jobs that a provider works on for minutes or hours."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from interlingua.cli.output import Output
from interlingua.cli.places import data_folder, private_file, private_folder

if TYPE_CHECKING:
    from interlingua.video import VideoJob

poll_option = click.option(
    "--poll",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="Seconds between the first two questions about it; later they are less frequent.",
)
timeout_option = click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="How long to wait. The job goes on afterwards.",
)


@contextmanager
def resumable(out: Output, what: str, command: str) -> Iterator[None]:
    """Say how to go on with a job if the wait for it is interrupted or fails."""
    from interlingua.errors import NetworkError, RateLimitError, RequestTimeoutError

    hint = f"the {what} goes on: {command}"
    try:
        yield
    except KeyboardInterrupt:
        raise KeyboardInterrupt(hint) from None
    except (NetworkError, RateLimitError, RequestTimeoutError):
        out.note(f"T{hint[1:]}")
        raise


def keep_video(job: VideoJob) -> None:
    """Keep what some providers do not repeat, such as the length, from which the cost follows."""
    from interlingua import to_json

    private_folder(data_folder())
    private_file(_path(job.reference)).write_bytes(to_json(job))


def kept_video(reference: str) -> VideoJob | str:
    """The job as it was kept; only its reference if it was not, or cannot be read."""
    from interlingua import from_json
    from interlingua.errors import SDKError
    from interlingua.video import VideoJob

    try:
        return from_json(_path(reference).read_bytes(), VideoJob)
    except (OSError, SDKError):
        return reference


def forget_video(reference: str) -> None:
    """Remove what was kept."""
    _path(reference).unlink(missing_ok=True)


def _path(reference: str) -> Path:
    from hashlib import sha256

    name = sha256(reference.encode("utf-8", "replace")).hexdigest()[:24]
    return data_folder() / "videos" / f"{name}.json"
