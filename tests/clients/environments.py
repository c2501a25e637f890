"""
Environments for the clients: a virtual environment or a folder of npm packages for each group.

They are made once, with the exact versions in the folder of the group, and kept in the user's cache
folder, or in the one that INTERLINGUA_CLIENTS names.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

CACHE = "INTERLINGUA_CLIENTS"
"""The variable that names the folder of the environments."""


class NotInstalledError(Exception):
    """An environment cannot be made here; the message says why."""


def python_environment(group: Path) -> Path:
    """The interpreter of an environment with the packages in `requirements.txt` of the group."""
    pins = group / "requirements.txt"

    def install(folder: Path) -> None:
        if uv := shutil.which("uv"):
            _run([uv, "venv", "--quiet", "--python", sys.executable, str(folder)])
            python = str(folder / "bin" / "python")
            _run([uv, "pip", "install", "--quiet", "--python", python, "-r", str(pins)])
            return
        _run([sys.executable, "-m", "venv", str(folder)])
        pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet"]
        _run([*pip, "--disable-pip-version-check", "--requirement", str(pins)])

    return _environment(group.name, [pins], sys.version, install) / "bin" / "python"


def node_environment(group: Path) -> Path:
    """A folder with the packages in `package.json` of the group, in `node_modules`."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        raise NotInstalledError("There is no Node.js with npm.")
    files = [group / "package.json", group / "package-lock.json"]

    def install(folder: Path) -> None:
        folder.mkdir()
        for file in files:
            shutil.copy(file, folder)
        _run([npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--silent"], folder)

    version = subprocess.run([node, "--version"], capture_output=True, text=True, check=True).stdout
    return _environment(group.name, files, version, install)


def _environment(
    name: str, pins: list[Path], version: str, install: Callable[[Path], None]
) -> Path:
    """The folder of an environment; it is made if there is none with these pins."""
    digest = hashlib.sha256(version.encode())
    for file in pins:
        digest.update(file.read_bytes())
    folder = cache_folder() / f"{name}-{digest.hexdigest()[:12]}"
    ready = folder / ".ready"
    if not ready.exists():
        print(f"{name}: installing into {folder} …", flush=True)
        shutil.rmtree(folder, ignore_errors=True)
        folder.parent.mkdir(parents=True, exist_ok=True)
        install(folder)
        ready.touch()
    return folder


def cache_folder() -> Path:
    """Where the environments are."""
    if named := os.environ.get(CACHE):
        return Path(named).resolve()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "interlingua" / "clients"


def _run(command: list[str], folder: Path | None = None) -> None:
    done = subprocess.run(
        command,
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        lines = done.stdout.strip().splitlines() or ["no output"]
        raise NotInstalledError(f"{Path(command[0]).name} failed: {lines[-1]}")
