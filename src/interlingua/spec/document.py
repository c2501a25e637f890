"""The canonical language as JSON documents: stable, versioned."""

from __future__ import annotations

import json
from typing import Any, TypeVar

import msgspec

from interlingua.spec import errors
from interlingua.spec.errors import DecodeError, ProviderError, SDKError
from interlingua.spec.events import StreamEvent
from interlingua.spec.messages import Message
from interlingua.spec.request import Request
from interlingua.spec.response import Response

VERSION = 1
"""Grows when an older reader could misread a newer document."""

_VERSION_KEY = "interlingua"

T = TypeVar("T")


def to_document(value: Message | Request | Response | StreamEvent) -> dict[str, Any]:
    """The value as plain JSON data, marked with the version."""
    return {_VERSION_KEY: VERSION, **msgspec.to_builtins(value, enc_hook=_encode_error)}


def from_document(document: Any, kind: type[T]) -> T:
    """The value a document holds; `kind` is `Message`, `Request`, `Response` or `StreamEvent`."""
    if isinstance(document, dict):
        version = document.get(_VERSION_KEY, VERSION)
        if type(version) is not int or version > VERSION:
            raise DecodeError(
                f"document has version {version!r}, this library reads up to {VERSION}; "
                "upgrade interlingua",
                path=_VERSION_KEY,
            )
    try:
        return msgspec.convert(document, kind, dec_hook=_decode_error)
    except msgspec.ValidationError as error:
        raise DecodeError(f"not a {_name(kind)} document: {error}") from error
    except RecursionError as error:
        raise DecodeError(f"not a {_name(kind)} document: nested too deeply") from error


def to_json(value: Message | Request | Response | StreamEvent) -> bytes:
    """The document as UTF-8 JSON text."""
    document = to_document(value)
    try:
        return msgspec.json.encode(document)
    except UnicodeEncodeError:  # a lone surrogate: only its escaped form is valid JSON
        return json.dumps(document, separators=(",", ":")).encode()


def from_json(data: bytes | str, kind: type[T]) -> T:
    """The reverse of `to_json`."""
    try:
        document = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError):
        try:
            document = json.loads(data)
        except (ValueError, RecursionError) as error:
            raise DecodeError(f"not a {_name(kind)} document: {error}") from error
    except RecursionError as error:
        raise DecodeError(f"not a {_name(kind)} document: nested too deeply") from error
    return from_document(document, kind)


def _encode_error(value: Any) -> Any:
    if not isinstance(value, SDKError):
        raise DecodeError(f"a {type(value).__name__} has no JSON form")
    names = ["retryable", "request_id"]
    if isinstance(value, ProviderError):
        names += ["provider", "status_code", "error_code", "retry_after", "raw"]
    if isinstance(value, DecodeError):
        names += ["path"]
    fields = {name: getattr(value, name) for name in names}
    kept = {name: field for name, field in fields.items() if field not in (None, "")}
    return {"class": type(value).__name__, "message": value.message, **kept}


def _decode_error(_: type, value: Any) -> SDKError:
    if not isinstance(value, dict) or not isinstance(value.get("message"), str):
        raise DecodeError("an error document needs `class` and `message`", path="error")
    fields = dict(value)
    found = getattr(errors, str(fields.pop("class", "")), None)
    make = found if isinstance(found, type) and issubclass(found, SDKError) else SDKError
    try:
        return make(fields.pop("message"), **fields)
    except TypeError as problem:
        raise DecodeError(f"an error document of wrong shape: {problem}") from problem


def _name(kind: Any) -> str:
    return getattr(kind, "__name__", "StreamEvent")
