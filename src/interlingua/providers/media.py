"""The bytes that a request's parts name, before it is encoded."""

from __future__ import annotations

from interlingua.spec.content import Document
from interlingua.spec.contracts import Profile
from interlingua.spec.request import Request
from interlingua.transport.media_files import Media, find_media, load_media, load_media_async
from interlingua.transport.media_urls import BYTES_ONLY, fetch_media


async def gather_media(request: Request, profile: Profile) -> Request:
    """The request with the bytes of its files, and of the URLs that its target cannot take."""
    request = await load_media_async(request)
    return await fetch_media(request, profile.dialect, kinds=bytes_only(profile))


def load_files(request: Request, profile: Profile) -> tuple[Request, tuple[str, ...]]:
    """The same without a network: where the parts stand whose URL is left to fetch."""
    request = load_media(request)
    kinds = bytes_only(profile)

    def wanted(part: Media) -> bool:
        return isinstance(part, kinds) and (part.url or "")[:4].lower() == "http"

    return request, tuple(where for where, _ in find_media(request, wanted))


def bytes_only(profile: Profile) -> tuple[type[Media], ...]:
    """The parts of which it takes no URL."""
    kinds = BYTES_ONLY.get(profile.dialect, ())
    if getattr(profile.quirks, "document_url", False):
        return tuple(kind for kind in kinds if kind is not Document)
    return kinds
