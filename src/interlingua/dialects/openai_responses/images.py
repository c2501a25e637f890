"""
Images of image models by their endpoints, images of chat models by the hosted tool.

A chat model is made to call the tool `image_generation`, which has the options of the endpoints.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from interlingua.dialects.openai_responses.decoder import stream_decoder
from interlingua.dialects.openai_responses.facts import IMAGE_CALL, MADE, NAME
from interlingua.dialects.openai_responses.request import encode_request
from interlingua.dialects.openai_responses.response import decode_response
from interlingua.dialects.openai_shared.image_rules import OPENAI
from interlingua.dialects.openai_shared.images import (
    ImageEvents,
    encode_image_call,
    image_reference,
    make_images,
)
from interlingua.prepare.images import ImageLimits, check_image, in_pixels
from interlingua.prepare.options import merge_options
from interlingua.spec.content import Image, Json, Text
from interlingua.spec.contracts import Frame, Profile, WireCall
from interlingua.spec.events import Finish, ProviderEvent, StreamEvent
from interlingua.spec.messages import Message
from interlingua.spec.modalities.images import FORMAT_TYPES, ImageInput, ImageResult, PartialImage
from interlingua.spec.operations import Operation, OperationReply, Script
from interlingua.spec.request import BuiltinTool, Request
from interlingua.spec.response import Response
from interlingua.wire.fields import count, extra_of
from interlingua.wire.images import images_of_chat, read_image, unfinished
from interlingua.wire.json_text import loads
from interlingua.wire.sse import SSEDecoder

_TOOL = "image_generation"
_PARTIAL = f"response.{IMAGE_CALL}.partial_image"
# https://developers.openai.com/api/docs/guides/image-generation; one tool call makes one image.
_LIMITS = ImageLimits(step=16, max_count=1)
"""The limits of the tool, whichever image model it uses."""


def _make(value: ImageInput, profile: Profile) -> Script:
    if profile.kind == "image":
        return (yield from make_images(NAME, OPENAI, value))
    reply: OperationReply = yield _encode_chat(value, profile, stream=False)
    return _read(decode_response(loads(reply.body), headers=reply.headers), value)


def _encode_stream(value: ImageInput, profile: Profile) -> WireCall:
    if profile.kind == "image":
        return encode_image_call(value, NAME, OPENAI)
    return _encode_chat(value, profile, stream=True)


def _encode_chat(value: ImageInput, profile: Profile, *, stream: bool) -> WireCall:
    warnings = check_image(value, _LIMITS)
    form = in_pixels(value, _LIMITS)
    settings = {
        "action": "edit" if value.images else "generate",
        "size": form.size,
        "quality": value.quality,
        "background": value.background,
        "output_format": value.format,
        "output_compression": value.compression,
        "partial_images": value.partial_images,
        "input_image_mask": None if value.mask is None else image_reference(value.mask),
    }
    tool = {name: given for name, given in settings.items() if given is not None}
    # The choice makes the model draw at once; otherwise it may answer in words.
    options = {"tools": [{"type": _TOOL, **tool}], "tool_choice": {"type": _TOOL}}
    request = Request(
        model=value.model,
        messages=(Message.user((*value.images, Text(value.prompt))),),
        user=value.user,
        provider_options={NAME: merge_options(options, value.provider_options.get(NAME, {}))},
        on_loss=value.on_loss,
    )
    call = encode_request(request, profile, stream=stream)
    return replace(call, warnings=(*warnings, *form.warnings, *call.warnings))


def wanted_image(request: Request) -> ImageInput | None:
    """The image that a request for an answer asks for; None if it asks for none."""
    tools = [tool.data for tool in request.tools if isinstance(tool, BuiltinTool)]
    tool = next((tool for tool in tools if isinstance(tool, dict) and _is_tool(tool)), None)
    if tool is None or (request.tool_choice is not None and request.tool_choice.mode == "none"):
        return None
    last = request.messages[-1] if request.messages else None
    images, size = (part for part in last.content if isinstance(part, Image)) if last else (), None
    if isinstance(tool.get("size"), str):
        size = tool["size"]
    return ImageInput(
        model=request.model, prompt=last.text if last else "", images=tuple(images), size=size
    )


def _is_tool(tool: dict[str, Json]) -> bool:
    return tool.get("type") == _TOOL


def _read(response: Response, value: ImageInput) -> ImageResult:
    return images_of_chat(response, value, _revised_prompt)


def _revised_prompt(image: Image) -> str | None:
    fields = extra_of(image, NAME).get(MADE)
    text = fields.get("revised_prompt") if isinstance(fields, Mapping) else None
    return text if isinstance(text, str) else None


class _ChatImages:
    """The unfinished images of a chat, and the result at its end."""

    def __init__(self, value: ImageInput) -> None:
        self._events = stream_decoder()
        self._value = value
        self._response: Response | None = None

    def feed_frame(self, frame: Frame) -> list[PartialImage | ImageResult]:
        """The images of one event."""
        return [image for event in self._events.feed(frame) for image in self._read(event)]

    def finish(self) -> list[PartialImage | ImageResult]:
        """The result; `StreamError` if the stream is incomplete."""
        items = [image for event in self._events.finish() for image in self._read(event)]
        return items if self._response is None else [*items, _read(self._response, self._value)]

    def _read(self, event: StreamEvent) -> list[PartialImage | ImageResult]:
        if isinstance(event, Finish):
            self._response = event.response
        if not isinstance(event, ProviderEvent) or event.name != _PARTIAL:
            return []
        text, form = event.data.get("partial_image_b64"), event.data.get("output_format")
        if not isinstance(text, str):
            return []
        index = count(event.data.get("partial_image_index")) or 0
        return [unfinished(read_image(text, FORMAT_TYPES.get(str(form))), index)]


class _Images:
    """The stream of an image model or of a chat model: its first event shows which."""

    def __init__(self, value: ImageInput) -> None:
        self._frames = SSEDecoder()
        self._value = value
        self._decoder: ImageEvents | _ChatImages = ImageEvents(value)
        self._has_begun = False

    def feed(self, chunk: bytes) -> list[PartialImage | ImageResult]:
        """The images of the events that this chunk completes."""
        return [item for frame in self._frames.feed(chunk) for item in self._feed(frame)]

    def finish(self) -> list[PartialImage | ImageResult]:
        """The last image, and the result; `StreamError` if the stream is incomplete."""
        items = [item for frame in self._frames.finish() for item in self._feed(frame)]
        return [*items, *self._decoder.finish()]

    def _feed(self, frame: Frame) -> Iterable[PartialImage | ImageResult]:
        if not self._has_begun and frame.data:
            self._has_begun = True
            event = loads(frame.data)
            kind = event.get("type") if isinstance(event, dict) else None
            if str(kind or frame.event).startswith("response."):
                self._decoder = _ChatImages(self._value)
        return self._decoder.feed_frame(frame)


OPERATIONS: Mapping[str, Operation] = {
    **{
        name: Operation(name=name, script=_make, chat_models="all")
        for name in ("generate_image", "edit_image")
    },
    "stream_image": Operation(
        name="stream_image", encode=_encode_stream, stream_decoder=_Images, chat_models="all"
    ),
}
