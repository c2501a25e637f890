"""The folders of the command line, and files that only their owner may read."""

from __future__ import annotations

import os
from pathlib import Path

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
