"""The paths of the user's folders; `pathlib` is not loaded for them."""

from __future__ import annotations

import os
from collections.abc import Mapping

HOME = "INTERLINGUA_HOME"
"""The variable that names one folder for everything."""


def config_path(environ: Mapping[str, str]) -> str:
    """The configuration, keys, templates and fragments: `~/.config/interlingua`."""
    return _path(environ, "XDG_CONFIG_HOME", "~/.config")


def data_path(environ: Mapping[str, str]) -> str:
    """The log, sessions and the history of prompts: `~/.local/share/interlingua`."""
    return _path(environ, "XDG_DATA_HOME", "~/.local/share")


def _path(environ: Mapping[str, str], variable: str, default: str) -> str:
    if home := environ.get(HOME):
        return home
    base = environ.get(variable) or os.path.expanduser(default)  # noqa: PTH111
    return os.path.join(base, "interlingua")  # noqa: PTH118
