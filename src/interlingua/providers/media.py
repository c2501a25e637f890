"""Reads the files and URLs in a request, before it is encoded."""

from __future__ import annotations

from datetime import UTC, datetime
from time import time
from typing import Any, TypeVar

from msgspec.structs import replace

from interlingua.prepare.history.target import kinds_without_urls
from interlingua.providers.provider import find_dialect
from interlingua.spec.content import LOST, MEDIA_TYPES, STORED, Audio, Document, Image
from interlingua.spec.contracts import NEUTRAL_PROFILE, Profile
from interlingua.spec.errors import SDKError, UnsupportedError
from interlingua.spec.messages import Message
from interlingua.spec.operations import OperationInput
from interlingua.spec.request import Request
from interlingua.spec.request_check import check_part
from interlingua.transport.media import (
    Media,
    fetch_media,
    find_media,
    load_media,
    load_media_async,
    refuse_files,
    replace_media,
)
from interlingua.wire.files import seconds_of

OperationInputType = TypeVar("OperationInputType", bound=OperationInput)


async def gather_media(request: Request, profile: Profile, *, reads_files: bool = True) -> Request:
    """The request with the bytes of its files, and of the URLs that the target does not accept."""
    if not reads_files:
        refuse_files(request)
        return request
    request = await load_media_async(request)
    return await fetch_media(request, bytes_only(profile))


async def gather_parts(
    value: OperationInputType, dialect: str, names: tuple[str, ...], *, reads_files: bool = True
) -> OperationInputType:
    """
    The value of an operation with the bytes of the files that its fields name by `path`.

    `names` are those of the provider, which must store the files that are named by their ids.
    """
    fields = ((name, getattr(value, name)) for name in value.__struct_fields__)
    found = {
        name: field
        for name, field in fields
        if isinstance(field, (tuple, *MEDIA_TYPES)) and _has_media(field)
    }
    if not found:
        return value
    profile = replace(NEUTRAL_PROFILE, dialect=dialect)

    async def gather(field: Any, where: str) -> Any:
        if not _has_media(field):
            return field
        if isinstance(field, tuple) and any(isinstance(item, (str, tuple)) for item in field):
            return tuple([await gather(item, f"{where}[{i}]") for i, item in enumerate(field)])
        parts = field if isinstance(field, tuple) else (field,)
        for i, part in enumerate(parts):
            check_part(part, f"{where}[{i}]" if isinstance(field, tuple) else where)
        request = Request(messages=(Message.user(parts),))
        try:
            request = await gather_media(request, profile, reads_files=reads_files)
            refuse_lost_files(request, names, time())
        except SDKError as error:
            place = _PLACE if isinstance(field, tuple) else f"{_PLACE}[0]"
            error.rename(place, where)
            raise
        content = request.messages[0].content
        return content if isinstance(field, tuple) else content[0]

    return replace(value, **{name: await gather(field, name) for name, field in found.items()})


_PLACE = "messages[0].content"  # where a part is in the request that is made of a field


def _has_media(field: object) -> bool:
    """Whether a field is media, or a tuple with media, also in inner tuples."""
    if isinstance(field, tuple):
        if field and type(field[0]) is int:  # the ids of tokens, perhaps many
            return False
        return any(not isinstance(item, str) and _has_media(item) for item in field)
    return isinstance(field, MEDIA_TYPES)


def load_files(
    request: Request, profile: Profile, *, reads_files: bool = True
) -> tuple[Request, tuple[str, ...]]:
    """The request with the bytes of its files, and the paths of parts whose URL must be fetched."""
    if not reads_files:
        refuse_files(request)
        return request, ()
    request = load_media(request)
    kinds = bytes_only(profile)

    def wanted(part: Media) -> bool:
        return isinstance(part, kinds) and (part.url or "")[:4].lower() == "http"

    return request, tuple(where for where, _ in find_media(request, wanted))


def bytes_only(profile: Profile) -> tuple[type[Media], ...]:
    """The types of parts that the server accepts as bytes but not as a URL."""
    kinds = kinds_without_urls(find_dialect(profile.dialect).FACTS, profile)
    return tuple(part for part in MEDIA_TYPES if part.kind in kinds)


# Parts that refer to stored files: which of them a provider cannot use, and why.


def mark_lost_files(request: Request, names: tuple[str, ...], now: float) -> Request:
    """
    The request with a mark on each part whose file is elsewhere or has expired.

    `names` are the names of the provider, `now` is in seconds since 1970. `prepare` drops these
    parts, and the loss policy decides what follows.
    """

    def is_lost(part: Media) -> bool:
        return _loss(part, names, now) is not None

    def mark(part: Media, _where: str) -> Media:
        known = {**part.extra[STORED], LOST: _loss(part, names, now)}
        return replace(part, extra={**part.extra, STORED: known})

    return replace_media(request, is_lost, mark)


def refuse_lost_files(request: Request, names: tuple[str, ...], now: float) -> None:
    """Raise `UnsupportedError` if a part refers to a file that is elsewhere or has expired."""
    for _, part in find_media(request, lambda each: _loss(each, names, now) is not None):
        raise UnsupportedError(f"{names[0]} does not support {_loss(part, names, now)}.")


def _loss(part: Image | Audio | Document, names: tuple[str, ...], now: float) -> str | None:
    """What the provider cannot use; None if it can, or if nothing is known of the file."""
    known = part.extra.get(STORED) if part.file_id is not None else None
    if not isinstance(known, dict):
        return None
    owner, expires = known.get("provider"), known.get("expires_at")
    if isinstance(owner, str) and owner not in names:
        return f"a file that {owner} stores (upload it to {names[0]})"
    expires = seconds_of(expires)
    if expires is not None and expires <= now:
        moment = datetime.fromtimestamp(expires, UTC)
        return f"a file that expired at {moment:%Y-%m-%d %H:%M} UTC (upload it again)"
    return None
