"""Where the user's configuration is: a registry file that programs and the command line share."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from interlingua.runtime.files import config_folder

if TYPE_CHECKING:
    from interlingua.client.registry import Registry
    from interlingua.providers.adapter import HttpAdapter

CONFIG = "INTERLINGUA_CONFIG"
"""The variable that names the file."""
FILE = "interlingua.yaml"
"""Its usual name."""


def user_config(environ: Mapping[str, str] | None = None) -> Path | None:
    """
    The file that the variable names, or that of the user's configuration folder, if it is there.

    The working folder is not searched: what a program does must not depend on where it runs.
    """
    environ = os.environ if environ is None else environ
    if named := environ.get(CONFIG):
        return Path(named).expanduser()
    try:
        path = config_folder(environ) / FILE
        return path if path.is_file() else None
    except (OSError, RuntimeError):  # the second where nobody has a home
        return None


def read_config(
    config: str | Path | Mapping[Path, str], environ: Mapping[str, str]
) -> tuple[dict[str, HttpAdapter], Registry, str | None]:
    """The adapters, models and default provider of a file, or of several with their contents."""
    from interlingua.client.config import build_registry, read_file

    if isinstance(config, Mapping):
        files = [read_file(path, text) for path, text in config.items()]
    else:
        files = [read_file(Path(config).expanduser())]
    return build_registry(files, environ, takes_providers=True)
