"""Images, sounds and documents <-> `inlineData` and `fileData`."""

from __future__ import annotations

from typing import Any

from interlingua.dialects.gemini_generate.facts import ABSENT, NAME, keep, take_nested, take_text
from interlingua.spec.content import Audio, Document, Image, Opaque, Part
from interlingua.spec.warnings import WarningList
from interlingua.wire.fields import Fields, extra_of
from interlingua.wire.media import decode_base64, encode_base64, media_type_for, parse_data_url

_PLAIN = "text/plain"
_FALLBACK = {"image": "image/png", "audio": "audio/wav", "document": "application/pdf"}


def decode_media(part: dict[str, Any], path: str = "") -> Part:
    """Media by their type; what could not be written back exactly is kept as it is."""
    fields = Fields(part, path)
    inline, file = part.get("inlineData"), part.get("fileData")
    is_draft = bool(part.get("thought"))  # one the model made for itself
    whole = Opaque(dialect=NAME, data=part)
    if is_draft or ABSENT in part or None not in (inline, file):
        return whole
    return (_decode_file(fields) if inline is None else _decode_inline(fields)) or whole


def _decode_inline(fields: Fields) -> Part | None:
    blob = fields.fields("inlineData")
    if blob is None:
        return None
    media_type, coded = blob.text("mimeType"), blob.text("data")
    data = None if coded is None else decode_base64(coded)
    if not media_type or data is None:
        return None
    if encode_base64(data) != coded:  # the URL-safe alphabet, or no padding
        blob.left["data"] = coded
    if blob.left:
        fields.left["inlineData"] = blob.left
    source: dict[str, Any] = {"data": data}
    if media_type == _PLAIN and (text := _decode_text(data)) is not None:
        source = {"text": text}
    return _make(media_type, source, fields.left)


def _decode_file(fields: Fields) -> Part | None:
    file = fields.fields("fileData")
    if file is None:
        return None
    url, media_type = file.text("fileUri"), take_text(file, "mimeType")
    if not url or url[:5].lower() == "data:":
        return None
    if file.left or media_type is None:  # kept even if empty: no type is to be guessed for it
        fields.left["fileData"] = file.left
    return _make(media_type, {"url": url}, fields.left)


def _make(media_type: str | None, source: dict[str, Any], left: dict[str, Any]) -> Part:
    kind = (media_type or "").partition("/")[0].lower()
    make: Any = {"image": Image, "audio": Audio}.get(kind, Document)
    part: Part = make(media_type=media_type, **source, extra=keep(left))
    return part


def _decode_text(data: bytes) -> str | None:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


def encode_media(part: Image | Audio | Document, warnings: WarningList) -> dict[str, Any] | None:
    """The part that shows it; None, and a warning, if it has no source this API can reach."""
    kept = dict(extra_of(part, NAME))
    _warn_of_details(part, warnings)
    data, media_type = part.data, part.media_type
    if part.url is not None:
        inline = parse_data_url(part.url)
        if inline is None:
            return _encode_file(part.url, part, warnings)
        data, media_type = inline[0], media_type or inline[1]
    elif part.file_id is not None:
        if "://" in part.file_id or part.file_id.startswith("files/"):
            return _encode_file(part.file_id, part, warnings)
        warnings.media_dropped(part.kind, "files of another provider")
        return None
    elif isinstance(part, Document) and part.text is not None:
        data, media_type = part.text.encode("utf-8", "replace"), media_type or _PLAIN
    if data is None:
        warnings.media_dropped(part.kind, f"{part.kind} without a source")
        return None
    media_type = media_type or media_type_for(data, getattr(part, "file_name", None))
    blob = {"mimeType": media_type or _FALLBACK[part.kind], "data": encode_base64(data)}
    inner = take_nested(kept, "inlineData")
    coded = inner.pop("data", None)
    if isinstance(coded, str) and decode_base64(coded) == data:
        blob["data"] = coded
    return {"inlineData": {**inner, **blob}, **kept}


def _encode_file(url: str, part: Image | Audio | Document, warnings: WarningList) -> dict[str, Any]:
    kept = dict(extra_of(part, NAME))
    is_exact = "fileData" in kept
    file: dict[str, Any] = {**take_nested(kept, "fileData"), "fileUri": url}
    media_type = part.media_type
    if media_type is None and not is_exact:
        media_type = _guess(url, part)
        if media_type is not None:
            warnings.add_here("media_type_guessed", media_type=media_type)
    if media_type is not None:
        file["mimeType"] = media_type
    return {"fileData": file, **kept}


def _guess(url: str, part: Image | Audio | Document) -> str | None:
    found = media_type_for(b"", url.partition("?")[0].partition("#")[0])
    if isinstance(part, Document) or (found or "").startswith(part.kind):
        return found
    return _FALLBACK[part.kind]


def _warn_of_details(part: Image | Audio | Document, warnings: WarningList) -> None:
    if isinstance(part, Document) and part.file_name is not None:
        warnings.add_here("file_name_dropped")
    if isinstance(part, Image) and part.detail not in (None, "auto"):
        warnings.add_here("detail_dropped")
