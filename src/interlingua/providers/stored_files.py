"""Parts that refer to stored files: which of them a provider cannot use, and why."""

from __future__ import annotations

from datetime import UTC, datetime

from msgspec.structs import replace

from interlingua.spec.content import Audio, Document, Image
from interlingua.spec.errors import UnsupportedError
from interlingua.spec.modalities.files import LOST, STORED
from interlingua.spec.request import Request
from interlingua.transport.media import Media, find_media, replace_media


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
    if isinstance(expires, (int, float)) and expires <= now:
        moment = datetime.fromtimestamp(expires, UTC)
        return f"a file that expired at {moment:%Y-%m-%d %H:%M} UTC (upload it again)"
    return None
