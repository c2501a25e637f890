"""
Images: `generateContent` with images out, and `:predict` of the earlier Imagen models.

An edit is a prompt with images. The API takes an aspect ratio and one of the sizes 1K, 2K, 4K.
https://ai.google.dev/gemini-api/docs/image-generation
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import get_args

from msgspec.structs import replace

from interlingua.dialects.gemini_generate.facts import MODEL_PATH, NAME
from interlingua.dialects.gemini_generate.media_calls import decode_reply, encode_media_call
from interlingua.prepare.images import ImageLimits, check_image, in_ratio, sent_value
from interlingua.prepare.options import body_with_options
from interlingua.spec.content import Image, Json, Part, Text
from interlingua.spec.contracts import Profile, WireCall
from interlingua.spec.errors import ContentFilterError, DecodeError, InvalidRequestError
from interlingua.spec.modalities.images import FORMAT_TYPES, ImageFormat, ImageInput, ImageResult
from interlingua.spec.operations import (
    Operation,
    OperationReply,
    Script,
    ServedReply,
)
from interlingua.spec.request import Request
from interlingua.spec.response import Usage
from interlingua.wire.fields import text_or_none
from interlingua.wire.images import images_of_chat, measured, read_image
from interlingua.wire.json_text import loads
from interlingua.wire.media import encode_base64
from interlingua.wire.resources import serve

_RATIOS = ("1:1", "2:3", "3:2", "3:4", "4:3", "4:5", "5:4", "9:16", "16:9", "21:9")
_CHAT = ImageLimits(
    qualities=(), formats=(), backgrounds=(), tiers=("1K", "2K", "4K"), max_count=1, masks=False
)
_LIMITS: Mapping[str, ImageLimits] = {
    "": _CHAT,
    "gemini-2.5-flash-image": replace(_CHAT, ratios=_RATIOS, tiers=()),
    "gemini-3-pro-image": replace(_CHAT, ratios=_RATIOS),
    "imagen-": ImageLimits(
        ratios=("1:1", "3:4", "4:3", "9:16", "16:9"),
        tiers=("1K", "2K"),
        qualities=(),
        formats=("png", "jpeg"),
        backgrounds=(),
        max_count=4,
        max_images=0,
        masks=False,
    ),
}
"""By the start of a model's name; the longest one counts."""
_IMAGEN = "imagen-"
_FORMATS = {media_type: form for form, media_type in FORMAT_TYPES.items()}


def _make(value: ImageInput, profile: Profile) -> Script:
    reply: OperationReply
    if value.model.startswith(_IMAGEN):
        reply = yield _encode_predict(value)
        return _read_predictions(loads(reply.body), value)
    reply = yield _encode(value, profile)
    return images_of_chat(decode_reply(reply), value)


def _limits(model: str) -> ImageLimits:
    return _LIMITS[max((start for start in _LIMITS if model.startswith(start)), key=len)]


def _encode(value: ImageInput, profile: Profile) -> WireCall:
    limits = _limits(value.model)
    warnings = check_image(value, limits)
    form = in_ratio(value, limits)
    fields = {"aspectRatio": form.ratio, "imageSize": form.size}
    image = {name: item for name, item in fields.items() if item is not None}
    # The models may answer in words, such as a refusal, which would be lost with IMAGE alone.
    config: dict[str, Json] = {"responseModalities": ["TEXT", "IMAGE"]}
    if image:
        config["imageConfig"] = image
    parts: tuple[Part, ...] = (*value.images, Text(value.prompt))
    return encode_media_call(value, parts, config, profile, warnings=(*warnings, *form.warnings))


def wanted_image(request: Request) -> ImageInput | None:
    """The image that a request for an answer asks for; None if it asks for none."""
    options = request.provider_options.get(NAME, {})
    config = options.get("generationConfig")
    config = config if isinstance(config, Mapping) else {}
    modalities = config.get("responseModalities")
    if not isinstance(modalities, list) or "IMAGE" not in modalities:
        return None
    image = config.get("imageConfig")
    image = image if isinstance(image, Mapping) else {}
    last = request.messages[-1] if request.messages else None
    return ImageInput(
        model=request.model,
        prompt=last.text if last else "",
        images=tuple(part for part in last.content if isinstance(part, Image)) if last else (),
        size=text_or_none(image.get("imageSize")),
        aspect_ratio=text_or_none(image.get("aspectRatio")),
    )


# Imagen.


def _encode_predict(value: ImageInput) -> WireCall:
    limits = _limits(value.model)
    warnings = check_image(value, limits)
    form = in_ratio(value, limits)
    output = {
        "mimeType": FORMAT_TYPES.get(sent_value(value.format, limits.formats) or ""),
        "compressionQuality": value.compression,
    }
    output = {name: item for name, item in output.items() if item is not None}
    fields = {
        "sampleCount": value.count or 1,
        "aspectRatio": form.ratio,
        "sampleImageSize": form.size,
        "outputOptions": output or None,
    }
    parameters = {name: item for name, item in fields.items() if item is not None}
    body = {"instances": [{"prompt": value.prompt}], "parameters": parameters}
    return WireCall(
        path=f"/v1beta/models/{value.model}:predict",
        body=body_with_options(body, value, NAME),
        warnings=(*warnings, *form.warnings),
    )


def _read_predictions(body: Json, value: ImageInput) -> ImageResult:
    predictions = body.get("predictions") if isinstance(body, dict) else None
    rows = (
        [row for row in predictions if isinstance(row, dict)]
        if isinstance(predictions, list)
        else []
    )
    pictures = [row for row in rows if isinstance(row.get("bytesBase64Encoded"), str)]
    if not pictures:
        # A filter takes out images, and leaves its reason in their place.
        reasons = [text for row in rows if (text := text_or_none(row.get("raiFilteredReason")))]
        if reasons:
            raise ContentFilterError(f"The provider refused to make the image: {reasons[0]}")
        raise DecodeError("The reply has no images.")
    items = tuple(
        measured(
            read_image(row["bytesBase64Encoded"], text_or_none(row.get("mimeType"))),
            text_or_none(row.get("prompt")),
        )
        for row in pictures
    )
    return ImageResult(
        items=items, operation=value.operation, usage=Usage(images=len(items)), raw=body
    )


def _decode_served(call: WireCall, params: Mapping[str, str]) -> ImageInput:
    match call.body:
        case {"instances": [{"prompt": str(prompt)}, *_]} if prompt:
            pass
        case _:
            raise InvalidRequestError("Request contains an invalid argument.")
    parameters = call.body.get("parameters")
    settings = parameters if isinstance(parameters, dict) else {}
    options = settings.get("outputOptions")
    output = options if isinstance(options, dict) else {}
    count, form = settings.get("sampleCount"), _FORMATS.get(str(output.get("mimeType")))
    return ImageInput(
        model=params["model"],
        prompt=prompt,
        count=count if type(count) is int else None,
        aspect_ratio=text_or_none(settings.get("aspectRatio")),
        size=text_or_none(settings.get("sampleImageSize")),
        format=form if form in get_args(ImageFormat) else None,  # type: ignore[arg-type]
    )


def _encode_served(result: ImageResult, _value: ImageInput) -> ServedReply:
    rows = [
        {
            "bytesBase64Encoded": encode_base64(image.data or b""),
            "mimeType": image.media_type or "image/png",
        }
        for image in result.images
    ]
    return ServedReply(body={"predictions": rows})


OPERATIONS: Mapping[str, Operation] = {
    name: Operation(name=name, script=_make, chat_models="output")
    for name in ("generate_image", "edit_image")
}
SERVED = (
    serve(
        "generate_image",
        "POST",
        f"{MODEL_PATH}:predict",
        _decode_served,
        _encode_served,
    ),
)
