"""Files that `interlingua connect` has written: with a backup, whole or not at all, and undone."""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from interlingua.gateway.connect import Edit
from interlingua.runtime.files import write_private
from interlingua.spec.errors import ConfigurationError

_SUFFIX = ".before-interlingua"


class Change(NamedTuple):
    """What a file will have in place of what it has."""

    path: Path
    before: str | None
    """None if there is no file."""
    after: str | None
    """None if the file is removed."""

    @property
    def is_needed(self) -> bool:
        """Whether there is anything to write."""
        return self.before != self.after


def plan(edits: Sequence[Edit]) -> list[Change]:
    """What each edit would change; `ConfigurationError` with the file that cannot be changed."""
    changes = []
    for edit in edits:
        path = edit.path.resolve()  # a link to a file stays a link
        before = _read(path)
        try:
            changes.append(Change(path, before, edit.change(before or "")))
        except ConfigurationError as error:
            raise ConfigurationError(f"{path}: {error.message}") from None
    return changes


def _read(path: Path) -> str | None:
    try:
        return path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{path} cannot be read: {error}.") from None


class ConnectedFiles:
    """The files that were written for each program, as a file of the command line knows them."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            self._known: dict[str, dict[str, Any]] = json.loads(_read(path) or "{}")
        except ValueError:
            raise ConfigurationError(
                f"{path} is damaged: what was written before cannot be undone. Remove it to go on."
            ) from None

    def write(self, program: str, changes: Sequence[Change]) -> None:
        """Write the files, each with a backup of what was there before the first time."""
        known = self._known.setdefault(program, {})
        for change in changes:
            if change.after is None or not change.is_needed:
                continue
            name = str(change.path)
            if name not in known:
                known[name] = _back_up(change)
            known[name]["written"] = _digest(change.after)
            self._save()  # first: what is written can always be undone
            write_private(change.path, change.after)

    def undo(self, program: str) -> tuple[list[Change], bool]:
        """What would be restored, and whether the files are still as they were written."""
        changes, is_same = [], True
        for name, entry in self._known.get(program, {}).items():
            path = Path(name)
            before = _read(path)
            backup = entry.get("backup")
            after = None if backup is None else _read(Path(backup))
            if backup is not None and after is None:
                raise ConfigurationError(f"{backup} is gone: {path} cannot be restored.")
            is_same = is_same and before is not None and _digest(before) == entry["written"]
            changes.append(Change(path, before, after))
        return changes, is_same

    def restore(self, program: str, changes: Sequence[Change]) -> None:
        """Put back what was there, with its permissions, and forget it."""
        for change in changes:
            entry = self._known[program].pop(str(change.path))
            if change.after is None:
                change.path.unlink(missing_ok=True)
            else:
                write_private(change.path, change.after)
                change.path.chmod(entry["mode"])
                Path(entry["backup"]).unlink(missing_ok=True)
            self._save()
        self._known.pop(program, None)
        self._save()

    def _save(self) -> None:
        write_private(self._path, json.dumps(self._known, indent=2))


def _back_up(change: Change) -> dict[str, Any]:
    """A copy of a file beside it; nothing if there is no file."""
    if change.before is None:
        return {"backup": None}
    backup = change.path.with_name(change.path.name + _SUFFIX)
    if backup.exists():  # of another program, or older
        backup = backup.with_name(f"{backup.name}-{secrets.token_hex(4)}")
    write_private(backup, change.before)
    return {"backup": str(backup), "mode": change.path.stat().st_mode & 0o777}


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8")).hexdigest()
