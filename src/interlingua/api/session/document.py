"""A session as a JSON document, in a file that is replaced as a whole."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from interlingua.api.run.limits import RunLimits
from interlingua.api.run.options import TimeoutConfig
from interlingua.api.session.saved import SAVED, SavedSession
from interlingua.api.session.turns import Turn
from interlingua.client.retry_policy import RetryPolicy
from interlingua.runtime.files import replace_file
from interlingua.spec.check import plain_fields
from interlingua.spec.content import parse_json
from interlingua.spec.errors import ConfigurationError, DecodeError
from interlingua.spec.json_form import from_document, to_document
from interlingua.spec.messages import Message
from interlingua.spec.request import ResponseFormat, ToolChoice
from interlingua.transport.downloads import as_path
from interlingua.wire.json_text import dumps

SESSION_VERSION = 2
"""Incremented when an older reader could misread a newer session. 2: options that are records."""
_VERSION_KEY = "interlingua_session"
_RECORDS: Mapping[str, Any] = {
    "limits": RunLimits,
    "response_format": ResponseFormat,
    "retry_policy": RetryPolicy,
    "timeout": float | TimeoutConfig,
    "tool_choice": ToolChoice | str,
}
"""The types of the saved options that are more than plain values."""


def session_to_document(session: SavedSession) -> dict[str, Any]:
    """The session as plain JSON data, with the version of its format."""
    return {**header_document(session), "turns": [turn_document(turn) for turn in session.turns]}


def header_document(session: SavedSession) -> dict[str, Any]:
    """The same without the turns."""
    try:
        header = plain_fields(msgspec.structs.replace(session, turns=()))
        fields: dict[str, Any] = msgspec.to_builtins(header)
        msgspec.convert(fields, SavedSession)  # what cannot be loaded must not be written
    except (TypeError, ValueError, RecursionError) as error:
        raise ConfigurationError(
            f"The session cannot be saved: {error}. Its `data` and options must be JSON values, "
            "and its `title` a string."
        ) from error
    return {_VERSION_KEY: SESSION_VERSION, **fields}


def turn_document(turn: Turn) -> list[dict[str, Any]]:
    """The messages of a turn as plain JSON data."""
    return [to_document(message) for message in turn.messages]


def session_from_document(document: Any) -> SavedSession:
    """The session in a document; `DecodeError` says what is wrong with it."""
    check_version(document)
    try:
        session = msgspec.convert({**document, "turns": ()}, SavedSession)
        documents = msgspec.convert(document.get("turns", ()), tuple[list[Any], ...])
        options = {name: _read_option(name, value) for name, value in session.options.items()}
    except UnicodeEncodeError as error:  # names are compared as UTF-8
        raise DecodeError("This is not a saved session: a name has a lone surrogate.") from error
    except (msgspec.ValidationError, ConfigurationError, RecursionError) as error:
        raise DecodeError(f"This is not a saved session: {str(error).rstrip('.')}.") from error
    turns = tuple(
        Turn(messages=tuple(from_document(each, Message) for each in turn)) for turn in documents
    )
    return msgspec.structs.replace(session, turns=turns, options=options)


def _read_option(name: str, value: Any) -> Any:
    if name not in SAVED:
        raise DecodeError(f"A session has no option {name!r}.", path="options")
    kind = _RECORDS.get(name)
    return value if kind is None or value is None else msgspec.convert(value, kind)


def check_version(document: object) -> None:
    """Raise `DecodeError` for what is no session, or one of a newer library."""
    version = document.get(_VERSION_KEY) if isinstance(document, dict) else None
    if type(version) is not int:
        raise DecodeError("This is not a saved session.", path=_VERSION_KEY)
    if version > SESSION_VERSION:
        raise DecodeError(
            f"The session has version {version}, and this library reads up to {SESSION_VERSION}. "
            "Upgrade interlingua.",
            path=_VERSION_KEY,
        )


def dump_session(session: SavedSession) -> bytes:
    """The document as UTF-8 JSON text."""
    return dumps(session_to_document(session))


# Files.


def read_session(path: str | os.PathLike[str]) -> SavedSession:
    """The session in a file."""
    source = as_path(path)
    try:
        return session_from_document(_read_json(source))
    except DecodeError as error:
        raise DecodeError(f"Cannot load {os.fspath(path)!r}: {error.message}") from error


def write_session(path: str | os.PathLike[str], session: SavedSession) -> None:
    """
    Write a session to a file, all of it or nothing.

    A file that is there and is not a session that this library can read is not replaced.
    """
    target = as_path(path)
    if target.exists():
        _check_replaceable(target)
    data = dump_session(session)
    try:
        replace_file(target.resolve(), data)  # not the link to it
    except (OSError, ValueError) as error:  # a path with a null byte is a ValueError
        raise ConfigurationError(f"Cannot save {os.fspath(path)!r}: {error}") from error


def _check_replaceable(target: Path) -> None:
    """Raise an error if a file is not a session; another process may have removed it meanwhile."""
    name = os.fspath(target)
    if not target.is_file() and target.exists():  # a device may have no end
        raise ConfigurationError(f"Cannot save {name!r}: it is not a file.")
    try:
        check_version(_read_json(target))
    except DecodeError as error:
        raise DecodeError(
            f"{name!r} was not replaced. {error.message} Choose another path, or remove the file."
        ) from error
    except ConfigurationError as error:
        if not isinstance(error.__cause__, FileNotFoundError):
            raise


def _read_json(path: Path) -> Any:
    try:
        data = path.read_bytes()
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"Cannot read {os.fspath(path)!r}: {error}") from error
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        try:
            return parse_json(data)
        except (ValueError, RecursionError) as error:
            raise DecodeError(f"The file is damaged or not JSON ({error}).") from error
