"""The bytes that a request's parts name, before it is encoded."""

from __future__ import annotations

from interlingua.prepare.history import kinds_without_urls
from interlingua.providers.installed_dialects import find_dialect
from interlingua.spec.content import MEDIA_TYPES
from interlingua.spec.contracts import Profile
from interlingua.spec.request import Request
from interlingua.transport.media_files import Media, find_media, load_media, load_media_async
from interlingua.transport.media_urls import fetch_media


async def gather_media(request: Request, profile: Profile) -> Request:
    """The request with the bytes of its files, and of the URLs that its target cannot take."""
    request = await load_media_async(request)
    return await fetch_media(request, bytes_only(profile))


def load_files(request: Request, profile: Profile) -> tuple[Request, tuple[str, ...]]:
    """The same without a network: where the parts stand whose URL is left to fetch."""
    request = load_media(request)
    kinds = bytes_only(profile)

    def wanted(part: Media) -> bool:
        return isinstance(part, kinds) and (part.url or "")[:4].lower() == "http"

    return request, tuple(where for where, _ in find_media(request, wanted))


def bytes_only(profile: Profile) -> tuple[type[Media], ...]:
    """The parts of which the server takes bytes but no URL."""
    kinds = kinds_without_urls(find_dialect(profile.dialect).FACTS, profile)
    return tuple(part for part in MEDIA_TYPES if part.kind in kinds)
