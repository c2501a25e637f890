"""
The configuration of the command line: which files hold, and what they set.

A file in the working folder may have come with somebody else's repository. It counts only if the
user has accepted exactly this content (`interlingua config trust`).
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from interlingua.cli.output import BadInput, Output
from interlingua.client.config_files import CONFIG, FILE, user_config
from interlingua.runtime.files import config_folder, write_private

if TYPE_CHECKING:
    from interlingua.client.config import Section

OPTION = "--config"
HERE = "the working folder"
"""The origin of a file that must be trusted."""


class ConfigFile(NamedTuple):
    """A configuration file that was found."""

    path: Path
    text: str
    origin: str
    """Why it was found: an option, a variable, or a folder."""
    is_trusted: bool = True


class Settings(NamedTuple):
    """What the files set for the command line."""

    default_model: str | None = None
    default_embedding_model: str | None = None
    log: bool = True
    aliases: Mapping[str, str] = {}
    templates: Mapping[str, Any] = {}
    mcp_servers: Mapping[str, Any] = {}
    places: Mapping[str, str] = {}
    """The file and line of each setting."""


def edited_file() -> Path:
    """The file that commands change: the one that is named, or that of the user's folder."""
    named = _option() or os.environ.get(CONFIG)
    return Path(named).expanduser() if named else config_folder() / FILE


def find_files() -> list[ConfigFile]:
    """
    The files that were found, the strongest first.

    A file that --config or the variable names is the only one. Else that of the working folder
    comes before that of the user's folder.
    """
    if option := _option():
        return [_read(Path(option).expanduser(), OPTION)]
    found = user_config()
    own = None if found is None else Path(found).expanduser()
    if os.environ.get(CONFIG):
        return [] if own is None else [_read(own, CONFIG)]
    files = [] if own is None else [_read(own, "your configuration folder")]
    here = file_here()
    if here is not None and not (own is not None and here.samefile(own)):
        file = _read(here, HERE)
        files.insert(0, file._replace(is_trusted=is_trusted(file)))
    return files


def file_here() -> Path | None:
    """The file of the working folder, if there is one."""
    try:
        here = Path(FILE).absolute()
    except OSError:  # the working folder was removed
        return None
    return here if here.is_file() else None


def used_files() -> dict[Path, str]:
    """The files that hold, with their contents; a warning names one that is not trusted."""
    files = find_files()
    for file in files:
        if not file.is_trusted:
            _warn(file.path)
    return {file.path: file.text for file in files if file.is_trusted}


def read_settings() -> Settings:
    """What the files that hold set for the command line."""
    contents = used_files()
    return _parse(tuple(contents.items())) if contents else Settings()


@cache
def _parse(contents: tuple[tuple[Path, str], ...]) -> Settings:
    from interlingua.client.config import read_aliases, read_file

    files = [read_file(path, text) for path, text in contents]
    values: dict[str, Any] = {}
    places: dict[str, str] = {}
    for file in reversed(files):
        for key in ("default_model", "default_embedding_model", "log"):
            if file.get(key) is not None:
                values[key], places[key] = file.get(key), file.place(key)
        for key in ("templates", "mcp_servers"):
            values[key] = {**values.get(key, {}), **_entries(file, key, places)}
    values["aliases"], owners = read_aliases(files)
    places |= {f"aliases.{name}": section.place(name) for name, section in owners.items()}
    return Settings(**values, places=places)


def _entries(file: Section, key: str, places: dict[str, str]) -> dict[str, Any]:
    section = file.section(key, key)
    places |= {f"{key}.{name}": section.place(name) for name in section}
    return {name: section.get(name) for name in section}


def _option() -> str | None:
    """The file of --config, if the command has it."""
    context = click.get_current_context(silent=True)
    out = None if context is None else context.find_object(Output)
    return None if out is None else out.config


def _read(path: Path, origin: str) -> ConfigFile:
    try:
        return ConfigFile(path, path.read_text(encoding="utf-8"), origin)
    except OSError as error:
        raise BadInput(f"{origin}: {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise BadInput(f"{origin}: {path} is not text in UTF-8") from None


@cache
def _warn(path: Path) -> None:
    """Write once that a file is not used."""
    Output().warn(
        f"{path} is not used: it may be somebody else's. "
        "`interlingua config trust` shows it and accepts it."
    )


# Trust: the hash of the content that was accepted, by path.


def is_trusted(file: ConfigFile) -> bool:
    """Whether the user has accepted this content of the file."""
    return _accepted().get(str(file.path)) == _digest(file.text)


def trust(file: ConfigFile) -> None:
    """Accept this content of the file."""
    values = {**_accepted(), str(file.path): _digest(file.text)}
    write_private(_trust_path(), json.dumps(values, indent=2))


def distrust(path: Path) -> bool:
    """Use the file no longer, whatever it contains; whether it was accepted before."""
    values = _accepted()
    if values.pop(str(path), None) is None:
        return False
    write_private(_trust_path(), json.dumps(values, indent=2))
    return True


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _trust_path() -> Path:
    return config_folder() / "trusted.json"


def _accepted() -> dict[str, str]:
    try:
        values = json.loads(_trust_path().read_text(encoding="utf-8"))
    except (OSError, ValueError):  # what cannot be read was not accepted
        return {}
    return values if isinstance(values, dict) else {}
