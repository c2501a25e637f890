"""Operations on what a provider stores, such as files and batches, in the forms many APIs share."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar
from urllib.parse import quote

from interlingua.spec.content import Json
from interlingua.spec.contracts import Profile, WireCall
from interlingua.spec.errors import ConfigurationError, DecodeError, InvalidRequestError
from interlingua.spec.operations import Operation, ServedOperation, ServedReply
from interlingua.wire.fields import Fields
from interlingua.wire.json_text import loads

T = TypeVar("T")
Decode: TypeAlias = Callable[[int, Mapping[str, str], bytes], T]
"""As in `Operation`."""
MakeHeaders: TypeAlias = Callable[[Profile], dict[str, str]]
"""The headers of the calls to an API, such as that with its version."""


def no_headers(_profile: Profile) -> dict[str, str]:
    """No headers, for an API whose operations need none."""
    return {}


def by_name(*operations: Operation) -> dict[str, Operation]:
    """The operations of a dialect, each by its name."""
    return {operation.name: operation for operation in operations}


def resource_path(base: str, resource_id: str) -> str:
    """The path of one file, batch or job."""
    try:
        return f"{base}/{quote(resource_id, safe='')}"
    except UnicodeEncodeError:
        text = f"The id {resource_id!r:.60} contains a lone surrogate."
        raise ConfigurationError(text) from None


def served_address(headers: Mapping[str, str], default: str = "") -> str:
    """The beginning of the addresses at the server that got a call, as its client wrote it."""
    host = headers.get("host", default)
    return f"{headers.get('x-forwarded-proto', 'http')}://{host}" if host else ""


def decode_one(read: Callable[[Json], T]) -> Decode[T]:
    """Decodes a reply that describes one resource."""
    return lambda _status, _headers, body: read(loads(body))


def decode_list(
    read: Callable[[Json], T], field: str, *, required: str | None = None
) -> Decode[list[T]]:
    """
    Decodes a reply that lists resources in this field.

    A reply without the field is an empty list, unless `required` says what it should list.
    """

    def decode(_status: int, _headers: Mapping[str, str], body: bytes) -> list[T]:
        rows = Fields(loads(body), strict=False).array(field)
        if rows is None and required is not None:
            raise DecodeError(f"The reply has no list of {required}.")
        return [read(row) for row in rows or ()]

    return decode


# The server side.


def serve(
    name: str,
    method: str,
    pattern: str,
    decode: Callable[[WireCall, Mapping[str, str]], Any],
    encode: Callable[[Any, Any], ServedReply],
    *,
    is_shared: bool = False,
) -> ServedOperation:
    """The server side of one endpoint; `pattern` is a regular expression."""
    return ServedOperation(
        name=name,
        method=method,
        pattern=re.compile(pattern),
        decode=decode,
        encode=encode,
        is_shared=is_shared,
    )


def write_body(write: Callable[[T], Json]) -> Callable[[T, Any], ServedReply]:
    """Encodes a result as JSON."""
    return lambda result, _value: ServedReply(body=write(result))


def page_of(
    rows: Sequence[T],
    id_of: Callable[[T], str],
    after: str | None,
    size: int,
    *,
    kind: str,
) -> tuple[list[T], bool]:
    """The page after this id of a list that a server sends, and whether more follow."""
    ids = [id_of(row) for row in rows]
    if after is not None and after not in ids:
        raise InvalidRequestError(f"No such {kind}: {after}.", status_code=400)
    start = 0 if after is None else ids.index(after) + 1
    end = start + size
    return list(rows[start:end]), end < len(rows)
