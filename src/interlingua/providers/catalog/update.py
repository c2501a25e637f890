"""Models and prices of the user's own, merged over the catalog."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

import msgspec

from interlingua.providers.catalog.models import ModelInfo, Table, change_table
from interlingua.providers.rows import row_name
from interlingua.spec.errors import ConfigurationError

_YAML = (".yaml", ".yml")


def update(path: str | PathLike[str]) -> None:
    """
    Merge a file of models and prices over the catalog, for all clients of this process.

    The file is JSON or YAML: `models` is a list of models with `id`, `provider` and the fields of
    `ModelInfo` that are new or different. Everything is checked before anything is changed, and
    `ConfigurationError` names the file and the key. A second `update` goes over the first one.
    """
    from hashlib import sha256  # loads OpenSSL

    text = _text(Path(path))
    rows = _rows(_parse(text, Path(path)), Path(path))
    tag = sha256(text).hexdigest()[:8]
    change_table(lambda table: merge_rows(table, rows, Path(path), tag))


def merge_rows(table: Table, rows: list[dict[str, Any]], path: Path, tag: str) -> Table:
    """The table with these rows merged over it."""
    models: dict[str, list[ModelInfo]] = {}
    for number, row in enumerate(rows):
        listed = models.setdefault(row["provider"], [*table.models.get(row["provider"], ())])
        ids = {row["id"], *(known.id for known in listed)}
        info = _without_aliases(_merged(row, listed, f"{path}: models[{number}]"), ids)
        places = [place for place, known in enumerate(listed) if known.id == info.id]
        place = places[0] if places else len(listed)
        listed[place : place + 1] = [info]
        taken = {info.id, *info.aliases}
        models[info.provider] = [
            known if known is info else _without_aliases(known, taken) for known in listed
        ]
    tags = [part for part in table.version.split("+") if part != tag]
    version = "+".join([*tags, tag])
    changed = {name: tuple(listed) for name, listed in models.items()}
    read = {**table.models.read, **changed}
    return Table(version, table.models.index, table.routed | changed.keys(), read)


def _without_aliases(model: ModelInfo, taken: set[str]) -> ModelInfo:
    if taken.isdisjoint(model.aliases):
        return model
    left = {
        field: tuple(name for name in getattr(model, field) if name not in taken)
        for field in ("aliases", "short_names")
    }
    return msgspec.structs.replace(model, **left)


def _merged(row: dict[str, Any], listed: list[ModelInfo], where: str) -> ModelInfo:
    known = next((model for model in listed if model.id == row["id"]), None)
    base = {"display_name": row["id"]} if known is None else msgspec.to_builtins(known)
    try:
        info = msgspec.convert({**base, **row}, ModelInfo)
    except msgspec.ValidationError as error:
        raise ConfigurationError(f"{where} ({row['provider']}:{row['id']}): {error}.") from error
    aliases = tuple(dict.fromkeys((*info.aliases, *info.short_names)))
    return info if aliases == info.aliases else msgspec.structs.replace(info, aliases=aliases)


def _text(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be read: {error}.") from error


def _parse(text: bytes, path: Path) -> object:
    try:
        if path.suffix.lower() in _YAML:
            import yaml

            return yaml.safe_load(text)
        return msgspec.json.decode(text)
    except Exception as error:
        raise ConfigurationError(f"{path}: {' '.join(str(error).split()).rstrip('.')}.") from error


def _rows(data: object, path: Path) -> list[dict[str, Any]]:
    """The rows with the names of our providers; each has an id and a provider."""
    if not isinstance(data, Mapping) or not isinstance(data.get("models"), list):
        raise ConfigurationError(f"{path}: 'models' must be a list of models.")
    for key in data.keys() - {"models"}:
        raise ConfigurationError(f"{path}: There is no key {key!r}, only 'models'.")
    rows = []
    for number, row in enumerate(data["models"]):
        for key in ("id", "provider"):
            name = row.get(key) if isinstance(row, Mapping) else None
            if not isinstance(name, str) or not name:
                what = "a string (in YAML, a number in quotes is one)."
                raise ConfigurationError(f"{path}: models[{number}] must have {key!r}, {what}")
        provider = row["provider"]
        rows.append({**row, "provider": row_name(provider) or provider})
    return rows
