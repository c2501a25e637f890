"""The width and height of an image in pixels, read from the first bytes of its file."""

from __future__ import annotations

import struct
from typing import NamedTuple

_PNG = b"\x89PNG\r\n\x1a\n"
_BOXES = 65_536  # bytes in which the boxes of an AVIF or HEIC file are searched
_WITHOUT_LENGTH = (0x01, *range(0xD0, 0xD8))  # JPEG markers that have no segment
_NO_FRAME = (0xC4, 0xC8, 0xCC)  # markers among those of frames that begin something else


class ImageSize(NamedTuple):
    """Width and height in pixels."""

    width: int
    height: int

    def __str__(self) -> str:
        return f"{self.width}x{self.height}"


def read_image_size(data: bytes) -> ImageSize | None:
    """
    The size of a PNG, JPEG, GIF, WebP, BMP, AVIF or HEIC image; None for anything else.

    It is the size of the stored pixels: a rotation that the metadata ask for is not applied.
    """
    try:
        size = _read(data)
    except struct.error:  # the file is cut short
        return None
    return size if size is not None and min(size) > 0 else None


def _read(data: bytes) -> ImageSize | None:
    if data.startswith(_PNG):
        return ImageSize(*struct.unpack_from(">II", data, 16))
    if data[:6] in (b"GIF87a", b"GIF89a"):
        return ImageSize(*struct.unpack_from("<HH", data, 6))
    if data.startswith(b"\xff\xd8\xff"):
        return _read_jpeg(data)
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return _read_webp(data)
    if data[:2] == b"BM" and data[6:10] == b"\0\0\0\0":
        width, height = struct.unpack_from("<ii", data, 18)
        return ImageSize(width, abs(height))  # a negative height means top to bottom
    return _read_boxes(data) if data[4:8] == b"ftyp" else None


def _read_jpeg(data: bytes) -> ImageSize | None:
    """The size in the frame header; the segments before it are skipped by their lengths."""
    place = 2
    while place + 4 <= len(data):
        if data[place] != 0xFF:
            return None
        marker = data[place + 1]
        if marker == 0xFF:  # padding
            place += 1
        elif marker in _WITHOUT_LENGTH:
            place += 2
        elif 0xC0 <= marker <= 0xCF and marker not in _NO_FRAME:
            height, width = struct.unpack_from(">HH", data, place + 5)
            return ImageSize(width, height)
        else:
            place += 2 + int.from_bytes(data[place + 2 : place + 4], "big")
    return None


def _read_webp(data: bytes) -> ImageSize | None:
    kind = data[12:16]
    if kind == b"VP8X":
        width = int.from_bytes(data[24:27], "little") + 1
        height = int.from_bytes(data[27:30], "little") + 1
        return ImageSize(width, height) if len(data) >= 30 else None
    if kind == b"VP8L":
        bits = struct.unpack_from("<I", data, 21)[0]
        return ImageSize((bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1)
    if kind == b"VP8 ":
        width, height = struct.unpack_from("<HH", data, 26)
        return ImageSize(width & 0x3FFF, height & 0x3FFF)
    return None


def _read_boxes(data: bytes) -> ImageSize | None:
    """The largest `ispe` property: an image may consist of smaller tiles."""
    largest: ImageSize | None = None
    place = data.find(b"ispe", 0, _BOXES)
    while place >= 0:
        size = ImageSize(*struct.unpack_from(">II", data, place + 8))
        if largest is None or size.width * size.height > largest.width * largest.height:
            largest = size
        place = data.find(b"ispe", place + 4, _BOXES)
    return largest
