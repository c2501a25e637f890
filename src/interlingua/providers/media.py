"""Reads the files and URLs in a request, before it is encoded."""

from __future__ import annotations

from interlingua.prepare.history import kinds_without_urls
from interlingua.providers.provider import find_dialect
from interlingua.spec.content import MEDIA_TYPES
from interlingua.spec.contracts import Profile
from interlingua.spec.request import Request
from interlingua.transport.media import (
    Media,
    fetch_media,
    find_media,
    load_media,
    load_media_async,
    refuse_files,
)


async def gather_media(request: Request, profile: Profile, *, reads_files: bool = True) -> Request:
    """The request with the bytes of its files, and of the URLs that the target does not accept."""
    if not reads_files:
        refuse_files(request)
        return request
    request = await load_media_async(request)
    return await fetch_media(request, bytes_only(profile))


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
