"""Sizes of images and video: pixels, names of resolutions, and aspect ratios."""

from __future__ import annotations

import re
from collections.abc import Iterable
from math import gcd

_match_pixels = re.compile(r"([1-9][0-9]{0,4})x([1-9][0-9]{0,4})").fullmatch
_match_ratio = re.compile(
    r"([1-9][0-9]{0,3})(?:\.([0-9]{1,2}))?:([1-9][0-9]{0,3})(?:\.([0-9]{1,2}))?"
).fullmatch
_is_name = re.compile(r"[1-9][0-9]{2,3}p|[2-8]k").fullmatch
_LINES = {"2k": 1440, "4k": 2160, "8k": 4320}
_NAMES = {lines: name for name, lines in _LINES.items()}
_NEAR = 0.01  # ratios that differ by less are the same: 854x480 is 16:9


def is_size(text: str) -> bool:
    """Whether this is a size in pixels, such as `1280x720`, or the name of a resolution."""
    return _match_pixels(text) is not None or _is_name(text) is not None


def pixels_of(size: str) -> tuple[int, int] | None:
    """The width and the height of a size in pixels."""
    match = _match_pixels(size)
    return None if match is None else (int(match[1]), int(match[2]))


def resolution_of(size: str) -> str:
    """The name of the resolution of a size: `720p` for `1280x720`; a name is returned as it is."""
    pixels = pixels_of(size)
    return size if pixels is None else _NAMES.get(min(pixels), f"{min(pixels)}p")


def ratio_of(size: str, known: Iterable[str] = ()) -> str | None:
    """The aspect ratio of a size in pixels: one of the known ones if it is near, else exact."""
    pixels = pixels_of(size)
    if pixels is None:
        return None
    width, height = pixels
    for ratio in known:
        value = ratio_value(ratio)
        if value is not None and abs(width / height / value - 1) < _NEAR:
            return ratio
    width, height = _reduced(width, height)
    return f"{width}:{height}"


def _reduced(width: int, height: int) -> tuple[int, int]:
    divisor = gcd(width, height)
    return width // divisor, height // divisor


def ratio_terms(ratio: str) -> tuple[int, int] | None:
    """The terms of a ratio such as `16:9` or `19.5:9`, reduced; None if this is no ratio."""
    match = _match_ratio(ratio)
    if match is None:
        return None
    width, height = (int(f"{match[i]}{match[i + 1] or '':0<2}") for i in (1, 3))
    return _reduced(width, height)


def ratio_value(ratio: str) -> float | None:
    """Width divided by height; None if this is no aspect ratio."""
    terms = ratio_terms(ratio)
    return None if terms is None else terms[0] / terms[1]


def size_of(ratio: str, resolution: str) -> str | None:
    """The size in pixels of a ratio in a resolution: `1280x720` for `16:9` and `720p`."""
    value = ratio_value(ratio)
    if value is None or _is_name(resolution) is None:
        return None
    short = _LINES.get(resolution) or int(resolution.removesuffix("p"))
    long = 2 * round(short * max(value, 1 / value) / 2)
    return f"{long}x{short}" if value >= 1 else f"{short}x{long}"
