"""
What a command writes for the user.

It is checked before anything is sent, and not lost if writing fails.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import click

from interlingua.cli.output import Output, is_terminal
from interlingua.spec.errors import ConfigurationError

output_option = click.option(
    "-o",
    "--output",
    required=True,
    type=click.Path(dir_okay=False, path_type=Path),
    help="The file to write.",
)


def check_writable(path: Path, flag: str = "-o") -> None:
    """Raise an error if the file could not be written: what is made costs money."""
    folder = path.parent
    if not folder.is_dir():
        raise click.BadParameter(f"there is no folder {folder}", param_hint=flag)
    target = path if path.exists() else folder
    if not os.access(target, os.W_OK):
        raise click.BadParameter(f"{target} cannot be written", param_hint=flag)


def numbered(path: Path, number: int) -> Path:
    """The file for one of several results: the first has the name that was given."""
    return path.with_stem(f"{path.stem}-{number + 1}") if number else path


def write_result(path: Path, data: bytes) -> None:
    """
    Write what a provider has made.

    If that fails, for instance because the disk is full, it goes to the folder for temporary
    files, and the error says where.
    """
    try:
        path.write_bytes(data)
    except OSError as error:
        import tempfile

        try:
            descriptor, other = tempfile.mkstemp(prefix=f"{path.stem}-", suffix=path.suffix)
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
        except OSError:
            raise error from None
        text = f"{path}: {error.strerror}; it was written to {other} instead"
        raise click.ClickException(text) from None


def edit_file(out: Output, path: Path, first: str, check: Callable[[str], object]) -> str | None:
    """
    What the user writes in an editor, beginning with the file, or with a first text for it.

    It is checked; after an error the user may go on editing. None if nothing is to be saved.
    """
    if not is_terminal(sys.stdin):
        raise click.UsageError(f"This needs a terminal. The file is {path}.")
    before = path.read_text(encoding="utf-8") if path.is_file() else ""
    text: str | None = before or first
    while True:
        text = click.edit(text, extension=path.suffix)
        if text is None or text == before:
            out.note("Nothing was saved.")
            return None
        try:
            check(text)
        except (click.ClickException, ConfigurationError) as error:
            out.error(error)
            if not click.confirm("Edit it again? If not, the changes are dropped.", err=True):
                return None
        else:
            return text
