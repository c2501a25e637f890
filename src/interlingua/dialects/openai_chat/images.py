"""Images out of a chat: `modalities`, as OpenRouter and other gateways have it."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from interlingua.dialects.openai_chat.facts import NAME
from interlingua.dialects.openai_chat.request import encode_request
from interlingua.dialects.openai_chat.response import decode_response
from interlingua.prepare.images import ImageLimits, check_image, in_ratio
from interlingua.prepare.options import merge_options
from interlingua.spec.content import Image, Json, Text
from interlingua.spec.contracts import Profile, WireCall
from interlingua.spec.messages import Message
from interlingua.spec.modalities.images import ImageInput
from interlingua.spec.operations import Operation, OperationReply, Script
from interlingua.spec.request import Request
from interlingua.wire.fields import text_or_none
from interlingua.wire.images import images_of_chat
from interlingua.wire.json_text import loads

# `image_config` of OpenRouter has the ratio and the size; what else can be asked for is decided by
# the model behind it.
_LIMITS = ImageLimits(qualities=(), formats=(), backgrounds=(), max_count=1, masks=False)


def _make(value: ImageInput, profile: Profile) -> Script:
    reply: OperationReply = yield _encode(value, profile)
    response = decode_response(loads(reply.body), headers=reply.headers, profile=profile)
    return images_of_chat(response, value)


def _encode(value: ImageInput, profile: Profile) -> WireCall:
    warnings = check_image(value, _LIMITS)
    form = in_ratio(value, _LIMITS)
    fields = {"aspect_ratio": form.ratio, "image_size": form.size}
    config = {name: given for name, given in fields.items() if given is not None}
    options: dict[str, Json] = {"modalities": ["image", "text"]}
    if config:
        options["image_config"] = config
    request = Request(
        model=value.model,
        messages=(Message.user((*value.images, Text(value.prompt))),),
        user=value.user,
        provider_options={NAME: merge_options(options, value.provider_options.get(NAME, {}))},
        on_loss=value.on_loss,
    )
    call = encode_request(request, profile)
    return replace(call, warnings=(*call.warnings, *warnings, *form.warnings))


def wanted_image(request: Request) -> ImageInput | None:
    """The image that a request for an answer asks for; None if it asks for none."""
    options = request.provider_options.get(NAME, {})
    modalities, config = options.get("modalities"), options.get("image_config")
    if not isinstance(modalities, list) or "image" not in modalities:
        return None
    config = config if isinstance(config, Mapping) else {}
    last = request.messages[-1] if request.messages else None
    return ImageInput(
        model=request.model,
        prompt=last.text if last else "",
        images=tuple(part for part in last.content if isinstance(part, Image)) if last else (),
        size=text_or_none(config.get("image_size")),
        aspect_ratio=text_or_none(config.get("aspect_ratio")),
    )


OPERATIONS: Mapping[str, Operation] = {
    f"{name}.modalities": Operation(name=name, script=_make, chat_models="output")
    for name in ("generate_image", "edit_image")
}
