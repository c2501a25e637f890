"""
`POST /v1/images/generations` and `/v1/images/edits`: the client side.

Images that are sent as bytes go in a form; images by URL or file id need the JSON form of the
endpoint.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial

from msgspec.structs import replace

from interlingua.dialects.openai_shared.events import EventItems
from interlingua.dialects.openai_shared.image_rules import OPENAI, RULES, ImageRules
from interlingua.prepare.images import (
    Form,
    ImageLimits,
    check_image,
    in_pixels,
    in_ratio,
    parse_pixels,
    sent_value,
)
from interlingua.prepare.options import body_with_options, form_with_options
from interlingua.spec.content import Image, Json
from interlingua.spec.contracts import FormPart, Profile, WireCall
from interlingua.spec.errors import DecodeError, UnsupportedError
from interlingua.spec.modalities.images import (
    FORMAT_TYPES,
    GeneratedImage,
    ImageInput,
    ImageResult,
    PartialImage,
)
from interlingua.spec.operations import Operation, OperationReply, Script
from interlingua.spec.response import Usage, Warning
from interlingua.wire.fields import Fields, count
from interlingua.wire.images import measured, read_image, unfinished
from interlingua.wire.json_text import dump_text, loads
from interlingua.wire.media import make_data_url, media_type_for
from interlingua.wire.usage import own_cost

GENERATIONS = "/v1/images/generations"
EDITS = "/v1/images/edits"
OWNER = "openai"
"""The key of other fields in `extra`."""
_PARTIAL, _COMPLETED = "partial_image", "completed"


def image_operations(name: str) -> dict[str, Operation]:
    """The operations on images for a dialect of this name, in all variants."""
    operations: dict[str, Operation] = {}
    for variant, rules in RULES.items():
        for operation in ("generate_image", "edit_image"):
            key = f"{operation}.{variant}".rstrip(".")
            operations[key] = Operation(name=operation, script=partial(make_images, name, rules))
    return operations | {"stream_image": stream_image(name)}


def stream_image(name: str) -> Operation:
    """The streamed operation for a dialect of this name."""
    return Operation(
        name="stream_image",
        encode=lambda value, _profile: encode_image_call(value, name, OPENAI),
        stream_decoder=ImageEvents,
    )


def make_images(
    name: str, rules: ImageRules, value: ImageInput, _profile: Profile | None = None
) -> Script:
    """The images that an endpoint makes."""
    reply: OperationReply = yield encode_image_call(value, name, rules)
    return read_images(loads(reply.body), value)


# Requests.


def encode_image_call(value: ImageInput, name: str, rules: ImageRules) -> WireCall:
    """The call that makes or edits images; the value of a stream has `partial_images`."""
    body, warnings = _encode_options(value, rules)
    is_stream = value.partial_images is not None
    if is_stream:
        body |= {"stream": True, "partial_images": value.partial_images}
    call = partial(WireCall, warnings=warnings, stream=is_stream)
    if not value.images:
        return call(path=GENERATIONS, body=body_with_options(body, value, name))
    if rules.json_edits:  # xAI: images are objects with an address or a data URL
        body |= _linked_images(value)
        return call(path=EDITS, body=body_with_options(body, value, name))
    parts = (*value.images, *(() if value.mask is None else (value.mask,)))
    # OpenAI's endpoint takes a form with files or JSON with references, not both.
    if any(part.data is None for part in parts):
        body["images"] = [image_reference(part) for part in value.images]
        if value.mask is not None:
            body["mask"] = image_reference(value.mask)
        return call(path=EDITS, body=body_with_options(body, value, name))
    form = (*_form_fields(body), *_form_images(value))
    return call(path=EDITS, form=form_with_options(form, value, name))


def _encode_options(
    value: ImageInput, rules: ImageRules
) -> tuple[dict[str, Json], tuple[Warning, ...]]:
    limits = rules.limits(value.model)
    warnings = check_image(value, limits)
    form = in_ratio(value, limits) if rules.sizing == "ratio" else in_pixels(value, limits)
    fields = {
        "model": value.model or None,
        "prompt": value.prompt,
        "n": value.count,
        **_size_fields(form, rules),
        **_format_fields(value, limits),
        "response_format": rules.response_format,
        "user": value.user,
    }
    body: dict[str, Json] = {field: given for field, given in fields.items() if given is not None}
    return body, (*warnings, *form.warnings)


def _size_fields(form: Form, rules: ImageRules) -> dict[str, Json]:
    if rules.sizing == "ratio":
        return {"aspect_ratio": form.ratio, "resolution": form.size and form.size.lower()}
    if rules.sizing == "size":
        return {"size": form.size}
    size = parse_pixels(form.size)
    return {} if size is None else {"width": size.width, "height": size.height}


def _format_fields(value: ImageInput, limits: ImageLimits) -> dict[str, Json]:
    return {
        "quality": sent_value(value.quality, limits.qualities),
        "background": sent_value(value.background, limits.backgrounds),
        "output_format": sent_value(value.format, limits.formats),
        "output_compression": value.compression,
    }


def _linked_images(value: ImageInput) -> dict[str, Json]:
    """One image as `image`, several as `images`, each by its URL or as a data URL."""
    links = [{"type": "image_url", "url": _url(part)} for part in value.images]
    return {"image": links[0]} if len(links) == 1 else {"images": links}


def image_reference(part: Image) -> dict[str, str]:
    """An image in JSON: by its URL, by its file id, or as a data URL."""
    return {"image_url": _url(part)} if part.file_id is None else {"file_id": part.file_id}


def _url(part: Image) -> str:
    if part.data is not None:
        return make_data_url(part.data, _media_type(part.data, part.media_type))
    if part.url is None:
        raise UnsupportedError(
            "This provider edits images that are given as bytes or by URL, not by file id."
        )
    return part.url


def _form_fields(body: Mapping[str, Json]) -> Iterator[FormPart]:
    for name, given in body.items():
        text = given if isinstance(given, str) else dump_text(given)
        yield FormPart(name=name, content=text)


def _form_images(value: ImageInput) -> Iterator[FormPart]:
    # OpenAI takes both names; servers that know only one image know only the first.
    name = "image" if len(value.images) == 1 else "image[]"
    for index, part in enumerate(value.images):
        yield _form_image(name, part, f"image-{index}")
    if value.mask is not None:
        yield _form_image("mask", value.mask, "mask")


def _form_image(name: str, part: Image, stem: str) -> FormPart:
    data = part.data or b""
    media_type = _media_type(data, part.media_type)
    suffix = media_type.rpartition("/")[2].partition("+")[0]
    return FormPart(name=name, content=data, file_name=f"{stem}.{suffix}", media_type=media_type)


def _media_type(data: bytes, named: str | None) -> str:
    return named or media_type_for(data) or "image/png"


# Results.


def read_images(body: Json, value: ImageInput) -> ImageResult:
    """The images in a body."""
    if not isinstance(body, dict) or not isinstance(body.get("data"), list):
        raise DecodeError("The reply has no images.")
    fields = Fields(body, strict=False)
    data = [item for item in fields.take("data") if isinstance(item, dict)]
    if not data:
        raise DecodeError("The reply has no images.")
    form, size = fields.text("output_format"), fields.text("size")
    items = tuple(_read_item(item, form, size) for item in data)
    # xAI's replies have no time (recorded).
    created = fields.left.get("created")
    if type(created) is int:
        del fields.left["created"]
    usage = fields.object("usage")
    model = fields.text("model")
    quality = fields.text("quality")
    return ImageResult(
        items=items,
        operation=value.operation,
        model=model or "",
        size=size,
        quality=quality,
        background=fields.text("background"),
        format=form,
        created_at=created if type(created) is int else None,
        usage=read_image_usage(usage, _made(value, len(items), size, quality)),
        extra={OWNER: fields.left} if fields.left else {},
        raw=body,
    )


def _read_item(item: dict[str, Json], form: str | None, size: str | None) -> GeneratedImage:
    fields = Fields(item, strict=False)
    text, url, named = fields.text("b64_json"), fields.text("url"), fields.text("mime_type")
    prompt = fields.text("revised_prompt")
    media_type = named or FORMAT_TYPES.get(form or "")
    if text is not None:
        made = measured(read_image(text, media_type), prompt)
        if url is not None:
            fields.left["url"] = url
    elif url is not None:
        pixels = parse_pixels(size)
        made = GeneratedImage(
            image=Image(url=url, media_type=media_type),
            width=pixels.width if pixels else None,
            height=pixels.height if pixels else None,
            revised_prompt=prompt,
        )
    else:
        raise DecodeError("An image of the reply has neither bytes nor a URL.")
    if named is not None:  # xAI names the type of each image; it is sent back by a server
        fields.left["mime_type"] = named
    return replace(made, extra={OWNER: fields.left}) if fields.left else made


def _made(value: ImageInput, count: int, size: str | None, quality: str | None) -> Usage:
    """What was made, for a price by the image: as the provider says, else as it was asked for."""
    return Usage(
        images=count, media_size=size or value.size, media_quality=quality or value.quality
    )


def read_image_usage(wire: Json, made: Usage) -> Usage:
    """Tokens where they are reported, else the images that were made; xAI reports the cost."""
    if not isinstance(wire, dict):
        return made
    cost = own_cost(wire)
    total = count(wire.get("output_tokens"))
    if total is None:
        return replace(made, reported_cost=cost, raw=wire)
    seen, drawn_details = (
        details if isinstance(details := wire.get(f"{side}_tokens_details"), dict) else {}
        for side in ("input", "output")
    )
    # Earlier replies had no details of the output: 4,160 tokens in a recording, all of an image.
    drawn = count(drawn_details.get("image_tokens")) if drawn_details else total
    return Usage(
        input_tokens=count(wire.get("input_tokens")) or 0,
        output_tokens=total,
        input_image_tokens=count(seen.get("image_tokens")) or None,
        output_image_tokens=drawn or None,
        reported_cost=cost,
        raw=wire,
    )


class ImageEvents(EventItems[PartialImage | ImageResult]):
    """A stream of unfinished images; its last item is the result with the finished ones."""

    def __init__(self, value: ImageInput) -> None:
        prefix = "image_edit" if value.images else "image_generation"
        super().__init__(self._item, f"{prefix}.{_COMPLETED}")
        self._value = value
        self._finished: list[ImageResult] = []

    def _item(self, event: dict[str, Json]) -> Iterator[PartialImage]:
        kind, text = str(event.get("type")).rpartition(".")[2], event.get("b64_json")
        if kind == _PARTIAL and isinstance(text, str):
            image = read_image(text, FORMAT_TYPES.get(str(event.get("output_format"))))
            yield unfinished(image, count(event.get("partial_image_index")) or 0)
        elif kind == _COMPLETED:
            fields = {name: event[name] for name in event if name not in ("type", "b64_json")}
            fields["created"] = fields.pop("created_at", None)  # its name in a whole reply
            body = {**fields, "data": [{"b64_json": text}]}
            self._finished.append(read_images(body, self._value))

    def finish(self) -> list[PartialImage | ImageResult]:
        """The last items, and the result; `StreamError` if the stream is incomplete."""
        items = super().finish()
        # Each finished image has an event and a usage of its own.
        first, *others = self._finished
        usage, images = first.usage, list(first.items)
        for other in others:
            usage += other.usage
            images += other.items
        return [*items, replace(first, items=tuple(images), usage=usage)]
