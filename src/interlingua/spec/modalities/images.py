"""
Images that are made from a text, or from other images.

The sizes of images and videos are pixels, names of resolutions, or aspect ratios.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from math import gcd
from typing import Literal, TypeAlias

from interlingua.spec.content import Extra, Image, Record
from interlingua.spec.errors import ConfigurationError
from interlingua.spec.operations import OperationInput, OperationResult

ImageFormat: TypeAlias = Literal["png", "jpeg", "webp", "gif", "svg"]
ImageBackground: TypeAlias = Literal["transparent", "opaque", "auto"]
ImageOperation: TypeAlias = Literal["generate", "edit", "edit_masked", "composite"]
"""How an image was made: from a text, from one image, with a mask, or from several images."""

FORMAT_TYPES: dict[str, str] = {
    "png": "image/png",
    "jpeg": "image/jpeg",
    "webp": "image/webp",
    "gif": "image/gif",
    "svg": "image/svg+xml",
}
"""The media types of the formats."""

_match_pixels = re.compile(r"([1-9][0-9]{0,4})x([1-9][0-9]{0,4})").fullmatch
_match_ratio = re.compile(
    r"([1-9][0-9]{0,3})(?:\.([0-9]{1,2}))?:([1-9][0-9]{0,3})(?:\.([0-9]{1,2}))?"
).fullmatch
_is_resolution = re.compile(r"[1-9][0-9]{2,3}p|[2-8]k").fullmatch
_LINES = {"2k": 1440, "4k": 2160, "8k": 4320}
_RESOLUTIONS = {lines: name for name, lines in _LINES.items()}
_NEAR = 0.01  # ratios that differ by less are the same: 854x480 is 16:9


class ImageInput(OperationInput, frozen=True, kw_only=True):
    """What an image shall show, and in which form."""

    prompt: str = ""
    images: tuple[Image, ...] = ()
    """The images to edit or to combine; empty to make a new one."""
    mask: Image | None = None
    """Where it is transparent, the first image is changed."""
    count: int | None = None
    """How many images to make."""
    size: str | None = None
    """Pixels such as `1536x1024`, or one of `1K`, `2K`, `4K`, or `auto`."""
    aspect_ratio: str | None = None
    """The shape, such as `16:9`."""
    quality: str | None = None
    """The quality, such as `low`, `medium` or `high`; its values are the model's."""
    background: ImageBackground | None = None
    format: ImageFormat | None = None
    compression: int | None = None
    """How much it is compressed, from 0 to 100; for `jpeg` and `webp`."""
    partial_images: int | None = None
    """How many unfinished images a stream shows."""
    user: str | None = None
    """An id of the end user, for the provider."""

    @property
    def operation(self) -> ImageOperation:
        """How the images are made."""
        if self.mask is not None:
            return "edit_masked"
        if len(self.images) > 1:
            return "composite"
        return "edit" if self.images else "generate"

    @property
    def rough_size(self) -> int:
        """As in `OperationInput`."""
        return sum(len(part.data or b"") for part in self.images)


class GeneratedImage(Record, frozen=True, kw_only=True):
    """An image that a model made, and its size in pixels."""

    image: Image
    """Its bytes, or a URL at which it is for a short time."""
    width: int | None = None
    """Read from the bytes; for a URL, as the provider says. None if it is unknown."""
    height: int | None = None
    """The height in pixels, as `width`."""
    revised_prompt: str | None = None
    """The prompt that was used, if the provider has changed it and says so."""
    extra: Extra = {}
    """Other fields, by dialect, as in parts."""

    @property
    def data(self) -> bytes:
        """The bytes of the image; `ConfigurationError` if it has only a URL."""
        if self.image.data is None:
            raise ConfigurationError(
                "The image has only a URL. Use download=True, or save_image(image, path)."
            )
        return self.image.data


class PartialImage(Record, frozen=True, kw_only=True):
    """An image that is not finished yet."""

    image: Image
    """The image so far."""
    index: int = 0
    """Its number, from 0."""
    width: int | None = None
    """The width in pixels, if it is known."""
    height: int | None = None
    """The height in pixels, if it is known."""


class ImageResult(OperationResult, frozen=True, kw_only=True):
    """
    The images that a model made.

        result.image  # the first one, as a part of a message
        result.images  # all of them, as parts
        result.items  # all of them, with their size in pixels
    """

    items: tuple[GeneratedImage, ...] = ()
    """The images with their sizes."""
    operation: ImageOperation = "generate"
    """`generate`, `edit`, `edit_masked` (with a mask) or `composite` (of several images)."""
    text: str = ""
    """What the model said besides, if it also writes."""
    size: str | None = None
    """The size, as the provider reports it."""
    quality: str | None = None
    """The quality, as the provider reports it."""
    background: str | None = None
    """The background, as the provider reports it."""
    format: str | None = None
    """The format, as the provider reports it."""
    created_at: float | None = None
    """Seconds since 1970, if the provider says so."""
    extra: Extra = {}
    """Other fields, by dialect, as in parts."""

    @property
    def images(self) -> tuple[Image, ...]:
        """The images as parts of a message."""
        return tuple(item.image for item in self.items)

    @property
    def image(self) -> Image:
        """The first image; every result has one."""
        return self.items[0].image

    @property
    def revised_prompt(self) -> str | None:
        """The prompt that was used for the first image, if the provider has changed it."""
        return self.items[0].revised_prompt if self.items else None

    def __repr__(self) -> str:
        sizes = ", ".join(f"{item.width or '?'}x{item.height or '?'}" for item in self.items)
        return f"ImageResult({self.operation}, {sizes or 'no images'}, model={self.model!r})"


def is_size(text: str) -> bool:
    """Whether this is a size in pixels, such as `1280x720`, or the name of a resolution."""
    return _match_pixels(text) is not None or _is_resolution(text) is not None


def pixels_of(size: str) -> tuple[int, int] | None:
    """The width and the height of a size in pixels."""
    match = _match_pixels(size)
    return None if match is None else (int(match[1]), int(match[2]))


def resolution_of(size: str) -> str:
    """The name of the resolution of a size: `720p` for `1280x720`; a name is returned as it is."""
    pixels = pixels_of(size)
    return size if pixels is None else _RESOLUTIONS.get(min(pixels), f"{min(pixels)}p")


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
    if value is None or _is_resolution(resolution) is None:
        return None
    short = _LINES.get(resolution) or int(resolution.removesuffix("p"))
    long = 2 * round(short * max(value, 1 / value) / 2)
    return f"{long}x{short}" if value >= 1 else f"{short}x{long}"
