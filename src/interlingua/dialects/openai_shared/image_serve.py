"""`/v1/images/generations` and `/v1/images/edits`: the server side, in the forms of all hosts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from interlingua.dialects.openai_shared.images import OWNER
from interlingua.spec.content import Image, Json
from interlingua.spec.contracts import FormPart, Frame, WireCall
from interlingua.spec.errors import InvalidRequestError
from interlingua.spec.modalities.images import (
    FORMAT_TYPES,
    GeneratedImage,
    ImageInput,
    ImageResult,
    PartialImage,
)
from interlingua.spec.operations import ServedOperation, ServedReply
from interlingua.spec.response import Usage
from interlingua.wire.fields import Fields, extra_of
from interlingua.wire.integers import read_integer
from interlingua.wire.json_text import dump_text
from interlingua.wire.media import encode_base64, parse_data_url
from interlingua.wire.resources import serve
from interlingua.wire.sse import encode_sse

# In a form every value is text; these are numbers.
_NUMBERS = ("n", "output_compression", "partial_images", "width", "height")
_BACKGROUNDS = ("transparent", "opaque", "auto")


def image_served(name: str) -> tuple[ServedOperation, ...]:
    """The endpoints for a dialect of this name, whose options carry the other fields."""

    def decode_generate(call: WireCall, _params: Mapping[str, str]) -> ImageInput:
        return _read_input(_object(call.body), name)

    def decode_edit(call: WireCall, _params: Mapping[str, str]) -> ImageInput:
        if not call.form:
            body = _object(call.body)
            return _read_input(body, name, _linked(body), _mask(body.pop("mask", None)))
        fields, images, mask = _read_form(call.form)
        return _read_input(fields, name, images, mask)

    return tuple(
        serve(operation, "POST", rf".*/images/{path}", decode, _encode_served)
        for operation, path, decode in (
            ("generate_image", "generations", decode_generate),
            ("edit_image", "edits", decode_edit),
        )
    )


# Requests.


def _object(body: Json) -> dict[str, Json]:
    if not isinstance(body, dict):
        raise InvalidRequestError("We could not parse the JSON body of your request.")
    return dict(body)


def _read_input(
    body: dict[str, Json],
    name: str,
    images: tuple[Image, ...] | None = None,
    mask: Image | None = None,
) -> ImageInput:
    """The value; fields without a place in it are options of the dialect."""
    fields = Fields(body)
    prompt = _take_prompt(fields)
    if images is not None and not images:
        raise InvalidRequestError("Missing required parameter: 'image'.", error_code=None)
    is_stream = fields.flag("stream") is True
    partial_images = fields.integer("partial_images")
    known = {
        "count": fields.integer("n"),
        "size": _take_size(fields),
        "aspect_ratio": fields.text("aspect_ratio"),
        "quality": fields.text("quality"),
        "background": _choice(fields, "background", _BACKGROUNDS),
        "format": _choice(fields, "output_format", tuple(FORMAT_TYPES)),
        "compression": fields.integer("output_compression"),
        "user": fields.text("user"),
        "partial_images": (partial_images or 0) if is_stream else None,
    }
    model = fields.text("model")
    return ImageInput(
        prompt=prompt,
        model=model or "",
        images=images or (),
        mask=mask,
        provider_options={name: fields.left} if fields.left else {},
        **known,  # type: ignore[arg-type]  # `_choice` checks the two with fixed values
    )


def _take_prompt(fields: Fields) -> str:
    prompt = fields.text("prompt")
    # The texts of these errors are OpenAI's.
    if prompt is None:
        raise InvalidRequestError("Missing required parameter: 'prompt'.", error_code=None)
    if not prompt:
        raise InvalidRequestError(
            "Invalid 'prompt': empty string. Expected a string with minimum length 1, but got an "
            "empty string instead.",
            error_code="empty_string",
        )
    return prompt


def _take_size(fields: Fields) -> str | None:
    """The size: `size`, two edges (Together), or a resolution beside the ratio (xAI)."""
    width, height = fields.integer("width"), fields.integer("height")
    size, resolution = fields.text("size"), fields.text("resolution")
    if width is not None and height is not None:
        return f"{width}x{height}"
    return size or (resolution and resolution.upper())


def _choice(fields: Fields, name: str, known: tuple[str, ...]) -> str | None:
    given = fields.text(name)
    if given is not None and given not in known:
        listed = ", ".join(f"'{each}'" for each in known)
        raise InvalidRequestError(
            f"Invalid value: '{given}'. Supported values are: {listed}.", error_code="invalid_value"
        )
    return given


def _linked(body: dict[str, Json]) -> tuple[Image, ...]:
    """The images of a JSON body: `images`, or one as `image`."""
    images, image = body.pop("images", None), body.pop("image", None)
    listed = images if isinstance(images, list) else [image] if image is not None else []
    return tuple(_link(each) for each in listed)


def _mask(link: Json) -> Image | None:
    return None if link is None else _link(link)


def _link(link: Json) -> Image:
    match link:
        case {"image_url": str(url)} | {"url": str(url)}:
            inline = parse_data_url(url)
            if inline is None:
                return Image(url=url)
            return Image(data=inline[0], media_type=inline[1])
        case {"file_id": str(file_id)}:
            return Image(file_id=file_id)
    raise InvalidRequestError("An image must have an 'image_url' or a 'file_id'.", error_code=None)


def _read_form(form: Iterable[FormPart]) -> tuple[dict[str, Json], tuple[Image, ...], Image | None]:
    fields: dict[str, Json] = {}
    images: list[Image] = []
    mask: Image | None = None
    for part in form:
        content = part.content
        if isinstance(content, bytes):
            image = Image(data=content, media_type=part.media_type)
            if part.name == "mask":
                mask = image
            else:
                images.append(image)
        elif isinstance(content, str):
            fields[part.name] = _form_value(part.name, content)
    return fields, tuple(images), mask


def _form_value(name: str, text: str) -> Json:
    if name == "stream":
        return text == "true"
    if name in _NUMBERS:
        number = read_integer(text, digits=6)  # no number of this API has more
        if number is None:
            raise InvalidRequestError(
                f"Invalid type for '{name}': expected an integer.", error_code="invalid_type"
            )
        return number
    return text


# Results.


def _encode_served(
    result: ImageResult | Iterable[PartialImage | ImageResult], value: ImageInput
) -> ServedReply:
    """One result, or the items of a stream, of which the last one is the result."""
    if isinstance(result, ImageResult):
        return ServedReply(body=write_images(result))
    return ServedReply(content=_events(result, value), content_type="text/event-stream")


def write_images(result: ImageResult) -> dict[str, Json]:
    """The body of a result."""
    usage = _write_usage(result.usage)
    fields = {
        "created": None if result.created_at is None else int(result.created_at),
        "background": result.background,
        "data": [_write_item(item) for item in result.items],
        "output_format": result.format,
        "quality": result.quality,
        "size": result.size,
        "usage": usage,
    }
    own = {name: given for name, given in fields.items() if given is not None}
    return {**own, **extra_of(result, OWNER)}


def _write_item(item: GeneratedImage) -> dict[str, Json]:
    data = item.image.data
    wire = {"url": item.image.url} if data is None else {"b64_json": encode_base64(data)}
    if item.revised_prompt is not None:
        wire["revised_prompt"] = item.revised_prompt
    return {**wire, **extra_of(item, OWNER)}


def _write_usage(usage: Usage) -> Json:
    if isinstance(usage.raw, dict):
        return usage.raw
    if not usage.total_tokens:
        return None
    seen, drawn = usage.input_image_tokens or 0, usage.output_image_tokens or 0
    return {
        "input_tokens": usage.input_tokens,
        "input_tokens_details": {
            "image_tokens": seen,
            "text_tokens": usage.input_tokens - seen,
        },
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {
            "image_tokens": drawn,
            "text_tokens": usage.output_tokens - drawn,
        },
        "total_tokens": usage.total_tokens,
    }


def _events(items: Iterable[PartialImage | ImageResult], value: ImageInput) -> Iterator[bytes]:
    prefix = "image_edit" if value.images else "image_generation"
    settings = {
        "size": value.size or "auto",
        "quality": value.quality or "auto",
        "background": value.background or "auto",
        "output_format": value.format or "png",
    }
    for item in items:
        if isinstance(item, PartialImage):
            yield _event(
                f"{prefix}.partial_image",
                {
                    "b64_json": encode_base64(item.image.data or b""),
                    "created_at": 0,
                    "partial_image_index": item.index,
                    **settings,
                },
            )
            continue
        body = write_images(item)
        created = body.pop("created", 0)
        del body["data"]
        for image in item.items:
            yield _event(
                f"{prefix}.completed",
                {"created_at": created, **settings, **body, **_write_item(image)},
            )


def _event(kind: str, body: dict[str, Json]) -> bytes:
    return encode_sse(Frame(event=kind, data=dump_text({"type": kind, **body})))
