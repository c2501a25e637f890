"""Base64, data URLs and media type detection."""

from __future__ import annotations

import base64
import binascii
import codecs
import re
from collections.abc import Mapping
from urllib.parse import unquote, unquote_to_bytes

_URL_SAFE = bytes.maketrans(b"-_", b"+/")
_WHITE_SPACE = b" \t\r\n\f\v"

_SIGNATURES: tuple[tuple[bytes, str], ...] = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"II*\0", "image/tiff"),
    (b"MM\0*", "image/tiff"),
    (b"%PDF-", "application/pdf"),
    (b"ID3", "audio/mpeg"),
    (b"fLaC", "audio/flac"),
    (b"OggS", "audio/ogg"),
    (b"PK\x03\x04", "application/zip"),
    (b"PK\x05\x06", "application/zip"),  # an empty archive
)
# The brands of the ISO base media file format (`ftyp` box).
_BRANDS: Mapping[bytes, str] = {
    b"avif": "image/avif",
    b"avis": "image/avif",
    b"heic": "image/heic",
    b"heix": "image/heic",
    b"heim": "image/heic",
    b"heis": "image/heic",
    b"hevc": "image/heic",
    b"hevx": "image/heic",
    b"mif1": "image/heif",
    b"msf1": "image/heif",
    b"M4A ": "audio/mp4",
    b"M4B ": "audio/mp4",
    b"M4P ": "audio/mp4",
    b"qt  ": "video/quicktime",
}
_OFFICE = "application/vnd.openxmlformats-officedocument."
_SUFFIXES: Mapping[str, str] = {
    "png": "image/png",
    "jpg": "image/jpeg",
    "jpeg": "image/jpeg",
    "gif": "image/gif",
    "webp": "image/webp",
    "bmp": "image/bmp",
    "tif": "image/tiff",
    "tiff": "image/tiff",
    "heic": "image/heic",
    "heif": "image/heif",
    "avif": "image/avif",
    "svg": "image/svg+xml",
    "wav": "audio/wav",
    "mp3": "audio/mpeg",
    "flac": "audio/flac",
    "ogg": "audio/ogg",
    "opus": "audio/ogg",
    "m4a": "audio/mp4",
    "aac": "audio/aac",
    "weba": "audio/webm",
    "mp4": "video/mp4",
    "mov": "video/quicktime",
    "webm": "video/webm",
    "mkv": "video/x-matroska",
    "pdf": "application/pdf",
    "txt": "text/plain",
    "md": "text/markdown",
    "csv": "text/csv",
    "html": "text/html",
    "htm": "text/html",
    "xml": "text/xml",
    "json": "application/json",
    "zip": "application/zip",
    "epub": "application/epub+zip",
    "docx": f"{_OFFICE}wordprocessingml.document",
    "xlsx": f"{_OFFICE}spreadsheetml.sheet",
    "pptx": f"{_OFFICE}presentationml.presentation",
}
_TEXTS = frozenset(("application/json", "application/xml"))
# Containers whose first bytes do not show their content. These file name suffixes decide it.
_REFINED_BY: Mapping[str, frozenset[str]] = {
    "application/zip": frozenset(("docx", "xlsx", "pptx", "epub")),
    "video/mp4": frozenset(("m4a", "mov")),
    "video/webm": frozenset(("weba",)),
}


def encode_base64(data: bytes) -> str:
    """Standard base64, padded, on one line."""
    return base64.b64encode(data).decode("ascii")


def decode_base64(text: str) -> bytes | None:
    """
    The bytes of a base64 text; None if the text is not base64.

    Accepts the standard and the URL-safe alphabet, missing padding and white space, because
    clients send all of these.
    """
    try:
        encoded = text.encode("ascii").translate(_URL_SAFE, _WHITE_SPACE)
    except UnicodeEncodeError:
        return None
    unpadded = encoded.rstrip(b"=")
    padding = -len(unpadded) % 4
    if padding == 3 or len(encoded) - len(unpadded) > padding:
        return None
    try:
        return binascii.a2b_base64(unpadded + b"=" * padding, strict_mode=True)
    except binascii.Error:
        return None


def make_data_url(data: bytes, media_type: str | None) -> str:
    """A base64 data URL."""
    return f"data:{media_type or ''};base64,{encode_base64(data)}"


def parse_data_url(url: str) -> tuple[bytes, str | None] | None:
    """
    The bytes and the media type of a data URL; None if it is not one or is malformed.

    The media type is in lower case and without parameters, or None if the URL has none.
    """
    head, comma, body = url.partition(",")
    if not comma or head[:5].lower() != "data:":
        return None
    media_type, *parameters = (part.strip().lower() for part in head[5:].split(";"))
    if media_type and "/" not in media_type:
        return None
    data = _decode_body(body, is_base64=bool(parameters) and parameters[-1] == "base64")
    return None if data is None else (data, media_type or None)


def sniff(data: bytes) -> str | None:
    """The media type, detected from the first bytes; None if they match no known format."""
    for signature, media_type in _SIGNATURES:
        if data.startswith(signature):
            return media_type
    if data[:4] == b"RIFF":
        return {b"WEBP": "image/webp", b"WAVE": "audio/wav"}.get(data[8:12])
    if data[4:8] == b"ftyp":
        return _sniff_brands(data)
    if data.startswith(b"\x1aE\xdf\xa3"):  # EBML; its header has the document type
        return "video/webm" if b"webm" in data[:64] else "video/x-matroska"
    # "BM" alone could be the start of a text; a BMP has four reserved zero bytes after its size.
    if data[:2] == b"BM" and data[6:10] == b"\0\0\0\0":
        return "image/bmp"
    return "audio/mpeg" if _is_mp3_frame(data) else None


def media_type_for(data: bytes, name: str | None = None, default: str | None = None) -> str | None:
    """The media type of a file: from its bytes, else from its name's suffix, else `default`."""
    stem, dot, suffix = (name or "").rpartition(".")
    suffix = suffix.lower() if dot and stem else ""
    sniffed = sniff(data)
    if sniffed is None or suffix in _REFINED_BY.get(sniffed, ()):
        return _SUFFIXES.get(suffix, default)
    return sniffed


def is_text_type(media_type: str | None) -> bool:
    """Whether files of this media type are text: `text/…`, JSON or XML."""
    bare = (media_type or "").partition(";")[0].strip().lower()
    return bare.startswith("text/") or bare in _TEXTS or bare.endswith(("+json", "+xml"))


def decode_text(data: bytes) -> str | None:
    """The text of a file in UTF-8, or in UTF-16 with a byte order mark; None for other bytes."""
    is_wide = data[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
    try:
        return data.decode("utf-16" if is_wide else "utf-8-sig")
    except UnicodeDecodeError:
        return None


_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_DRIVE = re.compile(r"[A-Za-z]:[\\/]")
_FILE_URL = re.compile(r"file:(?://(?:localhost)?(?=/))?", re.IGNORECASE)


def local_path(url: str) -> str | None:
    """
    The path on this machine that a URL looks like; None if it looks like no path.

    A URL begins with a scheme (RFC 3986, 3.1), so that `cat.png` is the name of a file.
    """
    if url[:5].lower() == "file:":
        return unquote(_FILE_URL.sub("", url, count=1))
    is_path = url != "" and not url.startswith("//") and _SCHEME.match(url) is None
    return url if is_path or _DRIVE.match(url) else None


def _decode_body(body: str, *, is_base64: bool) -> bytes | None:
    if is_base64 and "%" not in body:
        return decode_base64(body)
    try:
        data = unquote_to_bytes(body)
    except UnicodeEncodeError:  # a lone surrogate
        return None
    return decode_base64(data.decode("latin-1")) if is_base64 else data


def _sniff_brands(data: bytes) -> str:
    # `ftyp` box: the major brand, a version of four bytes, then the compatible brands.
    size = min(int.from_bytes(data[:4], "big"), 256)
    brands = [data[8:12], *(data[i : i + 4] for i in range(16, size - 3, 4))]
    major = _BRANDS.get(brands[0], "video/mp4")
    if major != "image/heif":
        return major
    # `mif1` names only the container (HEIF); a compatible brand names the image codec.
    types = (_BRANDS.get(brand) for brand in brands)
    return next((kind for kind in types if kind in {"image/avif", "image/heic"}), major)


def _is_mp3_frame(data: bytes) -> bool:
    """Eleven sync bits, layer III, and no reserved value for version, bit rate or sample rate."""
    if len(data) < 3 or data[0] != 0xFF or data[1] & 0xE6 != 0xE2:
        return False
    return data[1] & 0x18 != 0x08 and data[2] & 0xF0 != 0xF0 and data[2] & 0x0C != 0x0C
