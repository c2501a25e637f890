"""
The client, the default model and the stored keys of the command line.

Keys that `interlingua keys set` stored are found by the variable that they stand for. They are in
the keyring of the system if the package `keyring` is installed and has one, else in a file that
only its owner can read. The library itself never reads them: only the command line does.
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from interlingua.cli.configuration import read_settings, used_files
from interlingua.cli.output import Output
from interlingua.runtime.files import config_folder, private_file, write_private

if TYPE_CHECKING:
    from interlingua import Client as AsyncClient
    from interlingua import HttpAdapter
    from interlingua.cli.prompts import Question
    from interlingua.sync import Client

MODEL = "INTERLINGUA_MODEL"
"""The variable that names the model to use when none is named."""
LOCAL_MODEL = "local:smollm2"
LOCAL_SETTINGS: Mapping[str, Any] = {"max_tokens": 400, "temperature": 0.2}
"""How `LOCAL_MODEL` answers if nobody named it: it is tiny, wanders off, and repeats itself."""
_SERVICE = "interlingua"  # the name in the keyring
_PATIENCE = (
    60.0  # seconds to wait for a process that changes the keys: its keyring may ask the user
)


def environment() -> Mapping[str, str]:
    """The variables of the environment that are set, over the stored keys."""
    return {**stored_keys(), **{name: value for name, value in os.environ.items() if value}}


def open_client() -> Client:
    """A blocking client for every provider with a key."""
    import logging

    from interlingua.sync import Client

    # What the library logs as a warning is part of the result, and printed from there.
    logging.getLogger("interlingua").addHandler(logging.NullHandler())
    messages: list[str] = []
    with collected_logs(messages):  # these are about the environment, and part of no result
        client = Client.from_env(environment(), config=used_files() or None)
    for message in messages:
        Output().warn(message)
    return client


def open_async_client() -> AsyncClient:
    """The same for commands that make several calls at once."""
    from interlingua import Client

    return Client.from_env(environment(), config=used_files() or None)


def usable_adapters() -> dict[str, HttpAdapter]:
    """The adapters of the configuration, and those of the providers with a key."""
    from interlingua.client.config_files import read_config
    from interlingua.client.environment_adapters import adapters_from_env

    environ = environment()
    adapters, _, _ = read_config(used_files(), environ)
    return {**adapters_from_env(environ, known=adapters), **adapters}


@contextmanager
def collected_logs(messages: list[str]) -> Iterator[None]:
    """Add what the library logs as a warning, where it is not part of a result."""
    import logging

    class Collector(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            messages.append(record.getMessage())

    collector = Collector(logging.WARNING)
    logger = logging.getLogger("interlingua")
    logger.addHandler(collector)
    try:
        yield
    finally:
        logger.removeHandler(collector)


def choose_model() -> tuple[str, str]:
    """The model for a question that names none, and why it was chosen."""
    from interlingua.catalog import get_latest_model

    if named := os.environ.get(MODEL):
        return named, f"{MODEL} is set"
    settings = read_settings()
    if settings.default_model:
        return settings.default_model, f"default_model of {settings.places['default_model']}"
    for name, adapter in usable_adapters().items():
        if adapter.provider.is_local or adapter.provider.is_embedded:
            continue
        model = get_latest_model(name, tier="small") or get_latest_model(name)
        if model is not None:
            return f"{name}:{model.id}", f"there is a key for {name}"
    return LOCAL_MODEL, "no key is configured: a small model on this machine answers"


def embedding_model() -> str:
    """The model for vectors if none is named; an error says how to name one."""
    model = read_settings().default_embedding_model
    if not model:
        raise click.UsageError(
            "-m is missing. Name a model for embeddings, or set one with "
            "`interlingua default --embedding MODEL`."
        )
    return model


def find_access(model: str | None, base_url: str | None, key: str | None) -> dict[str, Any]:
    """The model and the access to a server at hand, from `--base-url` and `--key`."""
    from interlingua.providers.rows import row_name

    if not model:
        raise click.UsageError("--base-url and --key need -m, the model to ask.")
    access: dict[str, str] = {}
    if base_url:
        access["base_url"] = base_url
        prefix, colon, _ = model.partition(":")
        is_named = colon and row_name(prefix) is not None
        if not is_named and model not in read_settings().aliases:
            model = f"openai_compatible:{model}"
    if key:
        access["api_key"] = _find_key(key)
    return {"model": model, "access": access}


def _find_key(name: str) -> str:
    """The key that a provider or a variable names; the error does not repeat what was given."""
    from interlingua.providers.rows import providers, row_name

    row = providers().get(row_name(name) or "")
    names = (name,) if row is None else row.key_env
    environ = environment()
    found = next((environ[each] for each in names if environ.get(each)), None)
    if found is None:
        raise click.BadParameter(
            "no key has this name; `interlingua keys list` lists the names.",
            param_hint="--key",
        )
    return found


def at_server(client: Client, model: str | None, access: Mapping[str, Any]) -> Client:
    """The client with the access to a server at hand, if there is one."""
    return client.with_access(model or "", **access) if access else client


def configured_providers() -> set[str]:
    """The providers that have a key."""
    return {name for name, each in usable_adapters().items() if not each.provider.is_local}


def chosen_settings(question: Question, model: str | None) -> dict[str, Any]:
    """The settings of the local model that the user has not set, if no model was named."""
    if question.model is not None or model != LOCAL_MODEL:
        return {}
    return {k: value for k, value in LOCAL_SETTINGS.items() if k not in question.options}


def stored_keys() -> dict[str, str]:
    """All stored keys by variable."""
    known = _read_keys()
    ring = _keyring() if None in known.values() else None
    keys = {name: ring.get_password(_SERVICE, name) if key is None and ring else key
            for name, key in known.items()}  # fmt: skip
    return {name: key for name, key in keys.items() if key}


def stored_names() -> dict[str, str]:
    """The variables that have a stored key, and where it is."""
    return {name: "keyring" if key is None else "file" for name, key in _read_keys().items()}


def store_key(variable: str, key: str) -> str:
    """Store a key; returns where: `keyring` or `file`."""
    with _changing_keys() as known:
        ring = _keyring()
        if ring is not None:
            ring.set_password(_SERVICE, variable, key)
        known[variable] = None if ring is not None else key
    return "file" if ring is None else "keyring"


def remove_key(variable: str) -> bool:
    """Remove a key; whether there was one."""
    with _changing_keys() as known:
        if variable not in known:
            return False
        ring = _keyring() if known[variable] is None else None
        if ring is not None:
            ring.delete_password(_SERVICE, variable)
        del known[variable]
    return True


@contextmanager
def _changing_keys() -> Iterator[dict[str, str | None]]:
    """The keys in the file, to be changed; another process that changes them waits."""
    import sqlite3

    from interlingua.client.stores.sqlite_thread import locked

    lock = private_file(_keys_path().with_name("keys.json-lock"))
    try:
        with locked(lock, _PATIENCE):
            keys = _read_keys()
            before = dict(keys)
            yield keys
            if keys != before:
                _write_keys(keys)
    except sqlite3.OperationalError as error:
        text = f"{lock}: {error}. Another process changes the keys; end it and try again."
        raise click.ClickException(text) from None


def _keys_path() -> Path:
    return config_folder() / "keys.json"


def _read_keys() -> dict[str, str | None]:
    """The keys in the file; None for a key in the keyring."""
    try:
        value = json.loads(_keys_path().read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise click.ClickException(f"{_keys_path()} is damaged; delete it and set the keys again")
    if any(value.values()):
        _warn_if_readable(_keys_path())
    return value


@cache
def _warn_if_readable(path: Path) -> None:
    """Write a warning, once, if others can read the file with the keys."""
    from interlingua.transport.downloads import others_can_read

    if others_can_read(path):
        Output().warn(
            f"Other users of this machine can read your keys in {path}. "
            f"Run `chmod 600 {shlex.quote(str(path))}`."
        )


def _write_keys(keys: dict[str, str | None]) -> None:
    write_private(_keys_path(), json.dumps(keys, indent=2, sort_keys=True) + "\n")


def _keyring() -> Any:
    """The module `keyring`, if it is installed and has a place for keys."""
    try:
        import keyring  # type: ignore[import-not-found]
    except ImportError:
        return None
    return keyring if keyring.get_keyring().priority >= 1 else None
