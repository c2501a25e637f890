"""The canonical language as versioned JSON documents."""

from __future__ import annotations

import json
from array import array
from collections.abc import Sequence
from functools import partial
from types import UnionType
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, Union, get_origin

import msgspec

from interlingua.spec import errors
from interlingua.spec.content import FilePath, Record, parse_json
from interlingua.spec.errors import ConfigurationError, DecodeError, ProviderError, SDKError
from interlingua.spec.events import StreamEvent
from interlingua.spec.messages import Message
from interlingua.spec.modalities.embeddings import Vector, decode_vector, encode_vector
from interlingua.spec.operations import OperationResult
from interlingua.spec.request import Request
from interlingua.spec.response import Response

FORMAT_VERSION = 1
"""Incremented when an older reader could misread a newer document."""

_VERSION_KEY = "interlingua"


class _ErrorDocument(msgspec.Struct, kw_only=True, omit_defaults=True, rename={"kind": "class"}):
    kind: str
    message: str
    retryable: bool | None = None
    request_id: str | None = None
    provider_request_id: str | None = None
    provider: str | None = None
    model: str | None = None
    status_code: int | None = None
    error_code: str | None = None
    retry_after: float | None = None
    job: str | None = None
    raw: Any = None
    path: str | None = None


_ERROR_FIELDS = tuple(
    name for name in _ErrorDocument.__struct_fields__ if name not in ("kind", "message", "path")
)

if TYPE_CHECKING:
    from typing_extensions import TypeForm

T = TypeVar("T")


Document: TypeAlias = Message | Request | Response | StreamEvent | OperationResult


def to_document(value: Document) -> dict[str, Any]:
    """Return the value as plain JSON data, with the format version."""
    document = _encode(value)
    _tuples_to_lists(document)
    return document


def from_document(document: Any, kind: TypeForm[T], *, trust_paths: bool = False) -> T:
    """
    Read the value in a document; `kind` is `Message`, `Request`, `Response`, `StreamEvent`, or the
    class of a result, such as `VideoJob`.

    A document may come from a stranger, so the `path` of a part, which names a file to read, is
    refused. `trust_paths=True` accepts it in documents that the program wrote itself.
    """
    for item in document if isinstance(document, list) else (document,):
        if not isinstance(item, dict):
            continue
        version = item.get(_VERSION_KEY, FORMAT_VERSION)
        if type(version) is not int or version > FORMAT_VERSION:
            raise DecodeError(
                f"The document has version {version!r}, and this library reads up to "
                f"{FORMAT_VERSION}. Upgrade interlingua.",
                path=_VERSION_KEY,
            )
    try:
        hook = partial(_decode_hook, trust_paths=trust_paths)
        value: T = msgspec.convert(document, kind, dec_hook=hook)
        return value
    except msgspec.ValidationError as error:
        raise DecodeError(f"This is not a {_name(kind)} document: {error}.") from error
    except RecursionError as error:
        raise DecodeError(
            f"This is not a {_name(kind)} document: it is nested too deeply."
        ) from error
    except UnicodeEncodeError as error:  # names and tags are compared as UTF-8
        raise DecodeError(
            f"This is not a {_name(kind)} document: a name has a lone surrogate."
        ) from error


def to_json(value: Document | Sequence[Message]) -> bytes:
    """Write a value as UTF-8 JSON text; a list of messages as a list of documents."""
    document = [*map(_encode, value)] if isinstance(value, Sequence) else _encode(value)
    try:
        try:
            return msgspec.json.encode(document)
        except UnicodeEncodeError:  # a lone surrogate: only its escaped form is valid JSON
            text = json.dumps(document)
            plain = json.loads(text, parse_constant=lambda _: None)  # NaN is null, as above
            return json.dumps(plain, separators=(",", ":")).encode()
    except (TypeError, ValueError, OverflowError) as error:
        raise DecodeError(f"A {_type(value)} has no JSON form: {error}.") from error


def from_json(
    data: bytes | str | dict[str, Any] | list[Any], kind: TypeForm[T], *, trust_paths: bool = False
) -> T:
    """
    Read what `to_json` wrote, as `from_document` does; parsed JSON may be passed too.

    A list of messages is read with the kind `list[Message]`.
    """
    if isinstance(data, (dict, list)):
        return from_document(data, kind, trust_paths=trust_paths)
    if not isinstance(data, (bytes, bytearray, memoryview, str)):
        raise ConfigurationError(f"`from_json` takes JSON text or a dict, not a {_type(data)}.")
    try:
        document = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeError):
        try:
            document = parse_json(data)
        except (ValueError, RecursionError) as error:
            raise DecodeError(f"This is not a {_name(kind)} document: {error}.") from error
    except RecursionError as error:
        raise DecodeError(
            f"This is not a {_name(kind)} document: it is nested too deeply."
        ) from error
    return from_document(document, kind, trust_paths=trust_paths)


def _encode(value: Document) -> dict[str, Any]:
    if not _is_document(value):
        raise ConfigurationError(f"A {_type(value)} is no document.{_advice(value)}")
    if isinstance(value, Request) and value.context is not None:  # a program's own object
        value = msgspec.structs.replace(value, context=None)
    try:
        document = msgspec.to_builtins(value, str_keys=True, enc_hook=_encode_hook)
    except RecursionError as error:
        raise DecodeError(f"A {_type(value)} is nested too deeply for JSON.") from error
    except (TypeError, ValueError) as error:
        raise DecodeError(f"A {_type(value)} has no JSON form: {error}.") from error
    if isinstance(value, Response):
        _omit_unknown_limits(document)
    elif isinstance(getattr(value, "response", None), Response):  # an event that carries one
        _omit_unknown_limits(document["response"])
    return {_VERSION_KEY: FORMAT_VERSION, **document}


def _is_document(value: object) -> bool:
    """A step of a run is a document too; a result has `messages`, and values of the program."""
    if isinstance(value, Record):
        return True
    return isinstance(value, msgspec.Struct) and not _has(value, "messages")


def _advice(value: object) -> str:
    """Which of its values are documents."""
    names = [name for name in ("response", "messages") if _has(value, name)]
    if not names:
        return " Documents are messages, requests, responses, events, and results of operations."
    return f" Write {' or '.join(f'to_json(result.{name})' for name in names)}."


def _has(value: object, name: str) -> bool:
    return getattr(value, name, None) is not None


def _omit_unknown_limits(response: dict[str, Any]) -> None:
    """In place: msgspec does not omit the defaults of a dataclass."""
    limits = response.get("rate_limit")
    if limits is not None:
        known = {name: value for name, value in limits.items() if value not in (None, {})}
        response["rate_limit"] = known


def _tuples_to_lists(document: dict[str, Any]) -> None:
    """In place (every container is new), and without recursion: a document may be deeply nested."""
    waiting: list[Any] = [document]
    while waiting:
        holder = waiting.pop()
        for key, value in holder.items() if type(holder) is dict else enumerate(holder):
            item = value
            if type(value) is tuple:
                item = holder[key] = list(value)
            if type(item) in (list, dict):
                waiting.append(item)


def _encode_hook(value: object) -> object:
    if isinstance(value, str):  # a path, or a string of another subclass
        return str.__str__(value)
    if isinstance(value, array):
        return encode_vector(value) if value.typecode == "f" else value.tolist()
    if isinstance(value, Exception) and not isinstance(value, SDKError):  # raised by a tool
        value = SDKError(f"{type(value).__name__}: {value}")
    if not isinstance(value, SDKError):
        raise DecodeError(f"A {_type(value)} has no JSON form.")
    # A class that the application derived is written as its nearest base class here.
    known = (kind.__name__ for kind in type(value).__mro__ if _error_kind(kind.__name__) is kind)
    fields = {name: getattr(value, name) for name in _error_fields(type(value))}
    return _ErrorDocument(kind=next(known), message=value.message, **fields)


def _decode_hook(kind: type, value: Any, *, trust_paths: bool) -> SDKError | FilePath | Vector:
    if kind is array:
        return decode_vector(value)
    if kind is not FilePath:
        return _decode_error(value)
    if not trust_paths:
        raise ValueError(
            "A document cannot name files to read. Pass trust_paths=True if you wrote it."
        )
    return FilePath(value)


def _decode_error(value: Any) -> SDKError:
    document = msgspec.convert(value, _ErrorDocument)
    kind = _error_kind(document.kind)
    if kind is None:  # written by a newer version of the library
        kind = SDKError if document.status_code is None else ProviderError
    fields = {name: getattr(document, name) for name in _error_fields(kind)}
    return kind(document.message, **fields)


def _error_kind(name: str) -> type[SDKError] | None:
    kind = getattr(errors, name, None)
    return kind if isinstance(kind, type) and issubclass(kind, SDKError) else None


def _error_fields(kind: type[SDKError]) -> tuple[str, ...]:
    return (*_ERROR_FIELDS, "path") if issubclass(kind, DecodeError) else _ERROR_FIELDS


def _type(value: object) -> str:
    return type(value).__name__


def _name(kind: Any) -> str:
    is_union = get_origin(kind) in (Union, UnionType)
    return "StreamEvent" if is_union else kind.__name__
