"""
Keys that `interlingua keys set` stored, by the variable that they stand for.

They are in the keyring of the system if the package `keyring` is installed and has one, else in a
file that only its owner can read. The library itself never reads them: only the command line does.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import click

from interlingua.cli.places import config_folder, private_file

_SERVICE = "interlingua"


def stored_keys() -> dict[str, str]:
    """All stored keys by variable."""
    known = _read()
    ring = _keyring() if None in known.values() else None
    keys = {name: ring.get_password(_SERVICE, name) if key is None and ring else key
            for name, key in known.items()}  # fmt: skip
    return {name: key for name, key in keys.items() if key}


def stored_names() -> dict[str, str]:
    """The variables that have a stored key, and where it is."""
    return {name: "keyring" if key is None else "file" for name, key in _read().items()}


def store_key(variable: str, key: str) -> str:
    """Store a key; returns where: `keyring` or `file`."""
    known, ring = _read(), _keyring()
    if ring is not None:
        ring.set_password(_SERVICE, variable, key)
    _write({**known, variable: None if ring is not None else key})
    return "file" if ring is None else "keyring"


def remove_key(variable: str) -> bool:
    """Remove a key; whether there was one."""
    known = _read()
    if variable not in known:
        return False
    ring = _keyring() if known[variable] is None else None
    if ring is not None:
        ring.delete_password(_SERVICE, variable)
    del known[variable]
    _write(known)
    return True


def _path() -> Path:
    return config_folder() / "keys.json"


def _read() -> dict[str, str | None]:
    """The keys in the file; None for those in the keyring."""
    try:
        value = json.loads(_path().read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise click.ClickException(f"{_path()} is damaged; delete it and set the keys again")
    return value


def _write(keys: dict[str, str | None]) -> None:
    """Replace the file; it is private from its first byte on."""
    path = _path()
    scratch = private_file(path.with_name(f".keys-{os.getpid()}.json"))
    scratch.write_text(json.dumps(keys, indent=2, sort_keys=True) + "\n", encoding="utf-8")
    scratch.replace(path)


def _keyring() -> Any:
    """The module `keyring`, if it is installed and has a place for keys."""
    try:
        import keyring  # type: ignore[import-not-found]
    except ImportError:
        return None
    return keyring if keyring.get_keyring().priority >= 1 else None
