"""Where the user's configuration is: a registry file that programs and the command line share."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from interlingua.runtime.folders import config_path

if TYPE_CHECKING:
    from pathlib import Path

    from interlingua.client.registry import Registry
    from interlingua.providers.adapter import HttpAdapter

CONFIG = "INTERLINGUA_CONFIG"
"""The variable that names the file."""
FILE = "interlingua.yaml"
"""Its usual name."""


def user_config(environ: Mapping[str, str] | None = None) -> str | None:
    """
    The file that the variable names, or that of the user's configuration folder, if it is there.

    The working folder is not searched: what a program does must not depend on where it runs.
    `/dev/null` as the variable means that there is none.
    """
    environ = os.environ if environ is None else environ
    if named := environ.get(CONFIG):
        return None if named == os.devnull else named
    path = os.path.join(config_path(environ), FILE)  # noqa: PTH118 -- `pathlib` loads slowly
    return path if os.path.isfile(path) else None  # noqa: PTH113


def read_config(
    config: str | Path | Mapping[Path, str], environ: Mapping[str, str]
) -> tuple[dict[str, HttpAdapter], Registry, str | None]:
    """The adapters, models and default provider of a file, or of several with their contents."""
    from pathlib import Path

    from interlingua.client.config import build_registry, read_file

    if isinstance(config, Mapping):
        files = [read_file(path, text) for path, text in config.items()]
    else:
        files = [read_file(Path(config).expanduser())]
    return build_registry(files, environ, takes_providers=True)
