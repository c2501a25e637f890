"""Images in replies: from base64, with their size, and out of the answer of a chat model."""

from __future__ import annotations

from collections.abc import Callable

from interlingua.spec.content import Image, Refusal
from interlingua.spec.errors import ContentFilterError, DecodeError, SDKError
from interlingua.spec.modalities.images import GeneratedImage, ImageInput, ImageResult, PartialImage
from interlingua.spec.response import Response
from interlingua.wire.image_size import read_image_size
from interlingua.wire.media import decode_base64, media_type_for

_SHOWN = 200  # characters of what a model said instead of making an image


def read_image(text: str, media_type: str | None = None) -> Image:
    """The image in a base64 text; where the bytes tell its type, they win over `media_type`."""
    data = decode_base64(text)
    if data is None:
        raise DecodeError("An image of the reply is not valid base64.")
    return Image(data=data, media_type=media_type_for(data) or media_type or "image/png")


def measured(image: Image, revised_prompt: str | None = None) -> GeneratedImage:
    """The image with the size that its bytes show."""
    pixels = read_image_size(image.data or b"")
    return GeneratedImage(
        image=image,
        width=pixels.width if pixels else None,
        height=pixels.height if pixels else None,
        revised_prompt=revised_prompt,
    )


def unfinished(image: Image, index: int) -> PartialImage:
    """An unfinished image with the size that its bytes show."""
    sized = measured(image)
    return PartialImage(image=image, index=index, width=sized.width, height=sized.height)


def images_of_chat(
    response: Response,
    value: ImageInput,
    revised_prompt: Callable[[Image], str | None] = lambda _image: None,
) -> ImageResult:
    """The images in the answer of a chat model; an error that says why there are none."""
    images = [part for part in response.message.content if isinstance(part, Image)]
    if not images:
        raise _no_image(response)
    return ImageResult(
        items=tuple(measured(image, revised_prompt(image)) for image in images),
        operation=value.operation,
        text=response.text,
        model=response.model,
        usage=response.usage,
        warnings=response.warnings,
        raw=response.raw,
    )


def _no_image(response: Response) -> SDKError:
    finish = response.finish_reason
    refused = [part.text for part in response.message.content if isinstance(part, Refusal)]
    text = (refused[0] if refused else response.text).strip()
    cause = f": {text[:_SHOWN]}" if text else f" (finish reason {finish.raw or 'unknown'})."
    if refused or finish.reason == "content_filter":
        message = f"The provider refused to make the image{cause}"
        return ContentFilterError(message, partial=response)
    return DecodeError(f"The model made no image{cause}", partial=response)
