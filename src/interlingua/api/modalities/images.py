"""`generate_image`, `edit_image`, and the stream of unfinished images."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from os import PathLike
from typing import Any, TypedDict, Unpack

from msgspec.structs import replace

from interlingua.api.modalities.perform import MediaCall, MediaOptions
from interlingua.api.modalities.sources import ImageSource, media_part
from interlingua.api.modalities.streams import ItemStream
from interlingua.prepare.images import AUTO, parse_pixels, parse_ratio, parse_tier
from interlingua.spec.check import check_literal, describe
from interlingua.spec.content import Image
from interlingua.spec.errors import ConfigurationError
from interlingua.spec.modalities.images import (
    GeneratedImage,
    ImageBackground,
    ImageFormat,
    ImageInput,
    ImageResult,
    PartialImage,
)
from interlingua.transport.downloads import save
from interlingua.transport.media import fetch, is_public, with_bytes
from interlingua.wire.images import measured

MAX_PARTIAL_IMAGES = 3
_CLOSE = 0.01  # by how much a size may differ from a ratio, as a part of it


class ImageSettings(TypedDict, total=False):
    """How an image shall be; what a model does not take is an error or a warning."""

    count: int | None
    """How many images to make. Defaults to 1."""
    size: str | None
    """Pixels such as `1536x1024`, or one of `1K`, `2K`, `4K`, or `auto`."""
    aspect_ratio: str | None
    """The shape, such as `16:9`."""
    quality: str | None
    """The quality, such as `low`, `medium` or `high`; its values are the model's."""
    background: ImageBackground | None
    """`transparent`, `opaque` or `auto`."""
    format: ImageFormat | None
    """The file format of the image."""
    compression: int | None
    """How much it is compressed, from 0 to 100; for `jpeg` and `webp`."""
    user: str | None
    """An id of the end user, for the provider."""


class ImageOptions(ImageSettings, MediaOptions, total=False):
    """The options of the functions that make images."""


async def generate_image(
    model: str, prompt: str, *, download: bool = False, **options: Unpack[ImageOptions]
) -> ImageResult:
    """
    Make an image of what the prompt describes.

        result = await generate_image("openai:gpt-image-2", "A lighthouse.", size="1536x1024")
        Path("lighthouse.png").write_bytes(result.items[0].data)

    Image models and chat models that draw are called alike. Where a provider returns the URL of an
    image, `download=True` fetches it, without the API key.
    """
    return await _make("generate_image", model, prompt, (), None, download, options)


async def edit_image(
    model: str,
    prompt: str,
    images: ImageSource | Iterable[ImageSource],
    *,
    mask: ImageSource | None = None,
    download: bool = False,
    **options: Unpack[ImageOptions],
) -> ImageResult:
    """
    Make an image from one or more images.

        result = await edit_image("openai:gpt-image-2", "Make it night.", Path("lighthouse.png"))

    Several images are combined. Where the `mask` is transparent, the first image is changed.
    """
    parts = _image_parts(images)
    area = None if mask is None else media_part(mask, Image, "mask")
    return await _make("edit_image", model, prompt, parts, area, download, options)


def stream_image(
    model: str,
    prompt: str,
    images: ImageSource | Iterable[ImageSource] = (),
    *,
    mask: ImageSource | None = None,
    partial_images: int = 2,
    **options: Unpack[ImageOptions],
) -> ImageStream:
    """
    Make an image and return it on the way: unfinished forms of it, then the result.

        async with stream_image("openai:gpt-image-2", "A lighthouse.") as stream:
            async for partial in stream:
                show(partial.image)
            final = stream.result().image

    With `images` it is an edit. There may be fewer unfinished forms than `partial_images`.
    """
    if partial_images not in range(MAX_PARTIAL_IMAGES + 1):
        raise ConfigurationError(
            f"`partial_images` must be a number from 0 to {MAX_PARTIAL_IMAGES}, "
            f"not {describe(partial_images)}."
        )
    parts = _image_parts(images, is_edit=False)
    area = None if mask is None else media_part(mask, Image, "mask")
    call, value = _open(model, prompt, parts, area, options)
    value = replace(value, partial_images=partial_images)
    return ImageStream(call.stream("stream_image", value))


class ImageStream(ItemStream[PartialImage, ImageResult]):
    """
    Unfinished images, which can be read once.

    At the end, `result()` has the finished image, the usage and the cost.
    """


async def save_image(image: GeneratedImage | Image, path: str | PathLike[str]) -> int:
    """
    Write an image to a file; returns the number of bytes.

    An image that has only a URL is fetched, without the API key.
    """
    part = image.image if isinstance(image, GeneratedImage) else image
    part = await _with_bytes(part)
    if part.data is None:
        raise ConfigurationError("The image has neither bytes nor a URL.")
    return await save(_chunks(part.data), path)


async def _chunks(data: bytes) -> Any:
    yield data


async def _make(
    operation: str,
    model: str,
    prompt: str,
    images: tuple[Image, ...],
    mask: Image | None,
    download: bool,
    options: Mapping[str, object],
) -> ImageResult:
    call, value = _open(model, prompt, images, mask, options)

    async def work() -> ImageResult:
        result: ImageResult = await call.perform(operation, value)
        return await fetch_images(result) if download else result

    return await call.run(work())


def _open(
    model: str,
    prompt: str,
    images: tuple[Image, ...],
    mask: Image | None,
    options: Mapping[str, Any],
) -> tuple[MediaCall, ImageInput]:
    """The call, and its value after the checks that do not depend on the model."""
    given: Any = prompt  # a caller without a type checker may pass anything
    if not isinstance(given, str) or not given.strip():
        raise ConfigurationError(
            f"`prompt` must be a text that is not blank, not {describe(given)}."
        )
    settings = {name: options[name] for name in options if name in ImageSettings.__annotations__}
    rest = {name: options[name] for name in options if name not in settings}
    _check(settings)
    call = MediaCall(model, rest)
    value = ImageInput(prompt=prompt, images=images, mask=mask, **settings, **call.fields())
    return call, value


def _check(settings: dict[str, Any]) -> None:
    count, compression = settings.get("count"), settings.get("compression")
    if count is not None and (type(count) is not int or count < 1):
        raise ConfigurationError(f"`count` must be a number from 1, not {describe(count)}.")
    if compression is not None and compression not in range(101):
        raise ConfigurationError(
            f"`compression` must be a number from 0 to 100, not {describe(compression)}."
        )
    for name, kind in (("background", ImageBackground), ("format", ImageFormat)):
        if settings.get(name) is not None:
            check_literal(name, settings[name], kind)
    _check_size(settings.get("size"), settings.get("aspect_ratio"))


def _check_size(size: Any, ratio: Any) -> None:
    is_known = isinstance(size, str) and (size == AUTO or parse_pixels(size) or parse_tier(size))
    if size is not None and not is_known:
        raise ConfigurationError(
            "`size` must be pixels such as '1536x1024', or one of 1K, 2K, 4K, auto, "
            f"not {describe(size)}."
        )
    terms = parse_ratio(ratio) if isinstance(ratio, str) else None
    if ratio is not None and terms is None:
        raise ConfigurationError(
            f"`aspect_ratio` must be a text such as '16:9', not {describe(ratio)}."
        )
    pixels = parse_pixels(size)
    if pixels is None or terms is None:
        return
    if abs(pixels.width * terms[1] / (pixels.height * terms[0]) - 1) > _CLOSE:
        raise ConfigurationError(
            f"The size {size} has not the aspect_ratio {ratio}. Give one of the two."
        )


def _image_parts(images: object, *, is_edit: bool = True) -> tuple[Image, ...]:
    is_one = isinstance(images, (Image, bytes, PathLike))
    given = (images,) if is_one else tuple(images) if isinstance(images, Iterable) else (images,)
    if isinstance(images, str):
        given = (images,)  # refused with a hint
    if is_edit and not given:
        raise ConfigurationError("`edit_image` needs at least one image in `images`.")
    return tuple(media_part(each, Image, "images") for each in given)


async def fetch_images(
    result: ImageResult, allowed: Callable[[str], bool] = is_public
) -> ImageResult:
    """The result with bytes in place of URLs; `allowed` says which addresses are read."""
    items = []
    for item in result.items:
        image = await _with_bytes(item.image, allowed)
        if image is not item.image:
            sized = measured(image)
            item = replace(item, image=image, width=sized.width, height=sized.height)  # noqa: PLW2901
        items.append(item)
    return replace(result, items=tuple(items))


async def _with_bytes(image: Image, allowed: Callable[[str], bool] = is_public) -> Image:
    if image.data is not None or image.url is None:
        return image
    fetched = with_bytes(image, *await fetch(image.url, allowed=allowed))
    return fetched if isinstance(fetched, Image) else image
