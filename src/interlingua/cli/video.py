"""`interlingua video`: videos from prompts, which a provider makes in minutes, as jobs."""

from __future__ import annotations

import functools
import os
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from interlingua.cli.files import check_writable, numbered
from interlingua.cli.output import Column, Output, with_output
from interlingua.cli.progress import poll_option, resumable, timeout_option
from interlingua.cli.prompts import loss_option
from interlingua.runtime.files import data_folder, private_file, private_folder

if TYPE_CHECKING:
    from interlingua.sync import Client
    from interlingua.video import VideoJob

F = TypeVar("F", bound=Callable[..., Any])
_COLUMNS = (
    Column("job", "job"),
    Column("state", "state"),
    Column("progress", "%", right=True),
    Column("model", "model"),
    Column("seconds", "seconds", right=True, rank=1),
    Column("size", "size", rank=2),
    Column("cost", "$", right=True),
    Column("error", "error"),
)
_VARIANTS = ("video", "thumbnail", "spritesheet")


@click.group("video")
def command() -> None:
    r"""
    Make videos. A provider works on one for minutes, as a job.

    \b
    interlingua video create -m gemini:veo-3.1-generate-001 -o sea.mp4 "A calm sea"
    interlingua video get gemini:models/veo-3.1-generate-001/operations/x1 -o sea.mp4
    """


def _file_option(*, required: bool, text: str) -> Callable[[F], F]:
    return click.option(
        "-o", "--output", required=required,
        type=click.Path(dir_okay=False, path_type=Path), help=text,
    )  # fmt: skip


def _server_options(function: F) -> F:
    """The address and key of a server; the command gets them as `server`, for the library."""

    def add_server(*arguments: Any, base_url: str | None, key_env: str | None, **more: Any) -> Any:
        key = os.environ.get(key_env) if key_env else None
        if key_env and not key:
            raise click.UsageError(f"{key_env} is not set. Set it to the key of the server.")
        server = {"base_url": base_url, "api_key": key}
        words = ["--base-url", base_url] if base_url else []
        words += ["--key-env", key_env] if key_env else []
        return function(*arguments, server=Server(server, words), **more)

    options = (
        click.option(
            "--base-url", metavar="URL", help="The address of the server, for `openai_compatible`."
        ),
        click.option(
            "--key-env", metavar="NAME", help="The variable that holds the key of the server."
        ),
    )
    wrapped: Any = functools.wraps(function)(add_server)
    for option in reversed(options):
        wrapped = option(wrapped)
    return wrapped  # type: ignore[no-any-return] # it has the parameters of the command


class Server(NamedTuple):
    """The server that the options name, if they do."""

    options: dict[str, Any]
    """For functions of the library."""
    words: list[str]
    """For the command that goes on with a job."""


_variant_option = click.option(
    "--variant", type=click.Choice(_VARIANTS), default="video", show_default=True,
    help="What to download; most providers have only the video.",
)  # fmt: skip


@command.command("create")
@click.argument("prompt", nargs=-1, required=True)
@click.option(
    "-m", "--model", required=True, help="The model, such as `gemini:veo-3.1-generate-001`."
)
@click.option(
    "--image", metavar="FILE", type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The image with which the video begins.",
)  # fmt: skip
@click.option(
    "--seconds", type=click.FloatRange(min=0, min_open=True), help="The length of the video."
)
@click.option("--size", help="The size, such as `1280x720`, `720p` or `4k`.")
@click.option("--aspect-ratio", metavar="W:H", help="The shape, such as `16:9`.")
@click.option("-n", "--count", type=click.IntRange(min=1), help="How many videos to make.")
@click.option(
    "--no-wait", is_flag=True, help="Print the job and end; `video get` fetches it later."
)
@_file_option(required=False, text="The file to write; needed unless --no-wait is given.")
@_variant_option
@poll_option
@timeout_option
@loss_option
@_server_options
@with_output
def create(
    out: Output,
    prompt: tuple[str, ...],
    *,
    model: str,
    output: Path | None,
    no_wait: bool,
    variant: str,
    poll: float | None,
    timeout: float | None,
    server: Server,
    **settings: Any,
) -> None:
    r"""
    Make a video of PROMPT, wait for it, and write it to a file.

    Ctrl-C and --timeout end the waiting, not the job. With -n, the second and further files have
    a number in their names.

    \b
    interlingua video create -m gemini:veo-3.1-generate-001 --seconds 8 -o sea.mp4 "A calm sea"
    """
    from interlingua.cli.clients import open_client
    from interlingua.sync import video

    if (output is None) != no_wait:
        raise click.UsageError("Give -o FILE, or --no-wait: one of them.")
    if output is not None:
        check_writable(output)
    with open_client() as client:
        with out.progress("Starting"):
            given = {**settings, **server.options}
            job = video.create(model, " ".join(prompt), client=client, **given)
        keep_video(job)
        if output is None:
            _show(out, job)
            return
        out.note(f"The job is {job.reference}.")
        options: Any = {"variant": variant, "poll": poll, "timeout": timeout, "server": server}
        _finish(out, client, job, output, **options)


@command.command("get")
@click.argument("job")
@_file_option(required=False, text="Wait for the video and write it to this file.")
@_variant_option
@poll_option
@timeout_option
@_server_options
@with_output
def get(out: Output, job: str, *, output: Path | None, **options: Any) -> None:
    r"""
    Print the state of JOB; with -o, wait for it and write the video to a file.

    JOB is what `video create` printed: the provider and the id.

    \b
    interlingua video get xai:4b2c9d10 -o sea.mp4
    """
    from interlingua.cli.clients import open_client
    from interlingua.sync import video

    if output is not None:
        check_writable(output)
    with open_client() as client:
        if output is not None:
            _finish(out, client, kept_video(job), output, **options)
            return
        found = video.retrieve(kept_video(job), client=client, **options["server"].options)
    _show(out, found)


@command.command("remix")
@click.argument("job")
@click.argument("prompt", nargs=-1, required=True)
@_server_options
@with_output
def remix(out: Output, job: str, prompt: tuple[str, ...], *, server: Server) -> None:
    r"""
    Start a job that changes the video of JOB as PROMPT says.

    \b
    interlingua video remix openai_compatible:video_68f1 --base-url http://host/v1 "At night"
    """
    from interlingua.cli.clients import open_client
    from interlingua.sync import video

    with open_client() as client, out.progress("Starting"):
        made = video.remix(kept_video(job), " ".join(prompt), client=client, **server.options)
    keep_video(made)
    _show(out, made)


@command.command("list")
@click.argument("model")
@click.option("-n", "--limit", type=click.IntRange(min=1), help="How many to fetch at once.")
@_server_options
@with_output
def list_jobs(out: Output, model: str, *, limit: int | None, server: Server) -> None:
    r"""
    List the jobs of a provider, newest first.

    MODEL is a provider, or a provider and a model; Gemini needs the model.

    \b
    interlingua video list gemini:veo-3.1-generate-001
    """
    from interlingua.cli.clients import open_client
    from interlingua.sync import video

    with open_client() as client, out.progress("Listing"):
        jobs = video.list(model, limit=limit, client=client, **server.options)
    out.table(_COLUMNS, [_row(job) for job in jobs], empty="There are no jobs.")


@command.command("cancel")
@click.argument("job")
@_server_options
@with_output
def cancel(out: Output, job: str, *, server: Server) -> None:
    r"""
    Cancel JOB, at providers that can.

    \b
    interlingua video cancel gemini:models/veo-3.1-generate-001/operations/x1
    """
    from interlingua.cli.clients import open_client
    from interlingua.sync import video

    with open_client() as client:
        found = video.cancel(kept_video(job), client=client, **server.options)
    keep_video(found)
    _show(out, found)


@command.command("delete")
@click.argument("job")
@_server_options
@with_output
def delete(out: Output, job: str, *, server: Server) -> None:
    r"""
    Delete JOB, which has ended, and its files, at providers that keep them.

    \b
    interlingua video delete openai_compatible:video_68f1 --base-url http://127.0.0.1:8000/v1
    """
    from interlingua.cli.clients import open_client
    from interlingua.sync import video

    with open_client() as client:
        video.delete(kept_video(job), client=client, **server.options)
    forget_video(job)
    if out.json:
        out.data({"job": job, "deleted": True})
    else:
        out.line(f"Deleted {job}.")


def _finish(
    out: Output,
    client: Client,
    job: VideoJob | str,
    output: Path,
    *,
    variant: Any,
    poll: float | None,
    timeout: float | None,
    server: Server,
) -> None:
    """Wait for a job and write its videos."""
    from interlingua.cli.conversation import show_warnings
    from interlingua.sync import video

    reference = job if isinstance(job, str) else job.reference
    words = ["interlingua", "video", "get", reference, "-o", str(output), *server.words]
    with resumable(out, "job", shlex.join(words)):
        with out.progress("Making the video", unit="percent") as progress:

            def show(state: VideoJob) -> None:
                title = f"Making the video ({state.state.replace('_', ' ')})"
                total = None if state.progress is None else 100
                progress(state.progress, total=total, title=title)

            common: Any = {"client": client, "timeout": timeout, **server.options}
            done = video.wait(job, poll_interval=poll, on_progress=show, **common)
        keep_video(done)
        files = [numbered(output, number) for number in range(max(1, len(done.files)))]
        for number, path in enumerate(files):
            with out.progress(f"Downloading {path.name}", unit="bytes") as progress:

                def show_bytes(size: int, total: int | None) -> None:
                    progress(size, total=total)

                video.download(
                    done, path, variant=variant, index=number, on_progress=show_bytes, **common
                )
    show_warnings(out, done.warnings)
    if out.json:
        out.data({**_row(done), "files": [str(path) for path in files]})
    else:
        out.line("\n".join(map(str, files)))


def _show(out: Output, job: VideoJob) -> None:
    if out.json:
        out.data(_row(job))
    else:
        out.table(_COLUMNS, [_row(job)])


def _row(job: VideoJob) -> dict[str, object]:
    return {
        "job": job.reference,
        "state": job.state,
        "progress": job.progress,
        "model": job.model,
        "seconds": job.seconds,
        "size": job.size,
        "cost": None if job.cost is None else job.cost.total,
        "error": None if job.error is None else job.error.message,
    }


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
