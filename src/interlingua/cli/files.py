"""
The folders and files of the command line.

What it keeps, only its owner may read. What a command writes for the user is checked before
anything is sent, and not lost if writing fails.
"""

from __future__ import annotations

import os
from pathlib import Path

import click

HOME = "INTERLINGUA_HOME"
"""The variable that names one folder for everything."""


def config_folder() -> Path:
    """Keys, templates and fragments: `~/.config/interlingua`."""
    return _folder("XDG_CONFIG_HOME", Path(".config"))


def data_folder() -> Path:
    """The log, sessions and the history of prompts: `~/.local/share/interlingua`."""
    return _folder("XDG_DATA_HOME", Path(".local") / "share")


def _folder(variable: str, default: Path) -> Path:
    if home := os.environ.get(HOME):
        return Path(home)
    base = os.environ.get(variable)
    return (Path(base) if base else Path.home() / default) / "interlingua"


def private_file(path: Path) -> Path:
    """Make the file, if there is none, so that only its owner can read and write it."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    return path


def private_folder(path: Path) -> Path:
    """Make the folder, if there is none, so that only its owner can look into it."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    path.mkdir(exist_ok=True, mode=0o700)
    return path


output_option = click.option(
    "-o",
    "--output",
    required=True,
    type=click.Path(dir_okay=False, path_type=Path),
    help="The file to write.",
)


def check_writable(path: Path) -> None:
    """Raise an error if the file could not be written: what is made costs money."""
    folder = path.parent
    if not folder.is_dir():
        raise click.BadParameter(f"there is no folder {folder}", param_hint="-o")
    target = path if path.exists() else folder
    if not os.access(target, os.W_OK):
        raise click.BadParameter(f"{target} cannot be written", param_hint="-o")


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
