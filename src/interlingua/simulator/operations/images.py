"""Simulated images: real PNG files of one colour, which depends on the prompt."""

from __future__ import annotations

import hashlib
import struct
import zlib

from interlingua import dialects
from interlingua.prepare.images import ANYTHING, in_pixels, parse_pixels
from interlingua.simulator.answer import count_text
from interlingua.simulator.dsl import Turn, refusal
from interlingua.spec.content import Image, Text
from interlingua.spec.errors import ContentFilterError
from interlingua.spec.modalities.images import GeneratedImage, ImageInput, ImageResult, PartialImage
from interlingua.spec.request import Request
from interlingua.spec.response import Usage
from interlingua.wire.image_size import ImageSize

DEFAULT_SIZE = ImageSize(1024, 1024)
REFUSED = "[refused]"
"""A prompt with this text is refused, as a vendor refuses what its policy forbids."""
_TOKENS = {"low": 272, "medium": 1056, "high": 4160}  # of a square image, as recorded
_TOKENS_SEEN = 194  # of an image that is edited
_MAX_EDGE = 4096


def make_image(value: ImageInput) -> ImageResult | list[PartialImage | ImageResult]:
    """The images; for a stream, the unfinished ones before the result."""
    if REFUSED in value.prompt:
        raise ContentFilterError(
            "Your request was rejected by the safety system.",
            status_code=400,
            error_code="moderation_blocked",
        )
    size = _size(value)
    count = value.count or 1
    items = tuple(_generated(value, size, number) for number in range(count))
    quality = value.quality if value.quality in _TOKENS else "medium"
    drawn = count * max(1, _TOKENS[quality or ""] * size.width * size.height // 1024**2)
    seen = _TOKENS_SEEN * len(value.images)
    result = ImageResult(
        items=items,
        operation=value.operation,
        model=value.model,
        size=str(size),
        quality=quality,
        background="opaque" if value.background in (None, "auto") else value.background,
        format="png",
        created_at=1,
        usage=Usage(
            input_tokens=count_text(value.prompt) + seen,
            output_tokens=drawn,
            input_image_tokens=seen or None,
            output_image_tokens=drawn,
        ),
    )
    if value.partial_images is None:
        return result
    unfinished = range(value.partial_images)
    return [*(_partial(value, size, index) for index in unfinished), result]


def wanted_image(request: Request) -> ImageInput | None:
    """The image that a request asks for, in the terms of any dialect; None if it asks for none."""
    for name in dialects.names():
        find = getattr(getattr(dialects.get(name), "serve", None), "wanted_image", None)
        wanted: ImageInput | None = None if find is None else find(request)
        if wanted is not None:
            return wanted
    return None


def draw(value: ImageInput) -> Turn:
    """The turn of a chat model that makes this image; it refuses as the endpoints do."""
    if REFUSED in value.prompt:
        return refusal("I cannot make this image.")
    image = _image(value.prompt, _size(value))
    return Turn(parts=(Text("Here is the image."), image))


def make_png(size: ImageSize, colour: bytes) -> bytes:
    """A PNG image of one colour, three bytes of red, green and blue."""
    header = struct.pack(">IIBBBBB", *size, 1, 3, 0, 0, 0)  # one bit for each pixel, a palette
    row = bytes(1 + (size.width + 7) // 8)
    chunks = (
        (b"IHDR", header),
        (b"PLTE", colour),
        (b"IDAT", zlib.compress(row * size.height, 1)),
        (b"IEND", b""),
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, data) for kind, data in chunks)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def _size(value: ImageInput) -> ImageSize:
    size = parse_pixels(in_pixels(value, ANYTHING).size) or DEFAULT_SIZE
    return ImageSize(min(size.width, _MAX_EDGE), min(size.height, _MAX_EDGE))


def _generated(value: ImageInput, size: ImageSize, number: int) -> GeneratedImage:
    image = _image(f"{value.prompt} {number}", size)
    return GeneratedImage(image=image, width=size.width, height=size.height)


def _partial(value: ImageInput, size: ImageSize, index: int) -> PartialImage:
    image = _image(f"{value.prompt} part {index}", size)
    return PartialImage(image=image, index=index, width=size.width, height=size.height)


def _image(seed: str, size: ImageSize) -> Image:
    colour = hashlib.shake_128(seed.encode("utf-8", "replace")).digest(3)
    return Image(data=make_png(size, colour), media_type="image/png")
