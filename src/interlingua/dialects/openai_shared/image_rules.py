"""What the image models of OpenAI take, and how other hosts' image endpoints differ."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal

import msgspec

from interlingua.prepare.images import ANYTHING, AUTO, ImageLimits

# The SDK's `ImageGenerateParams`, field by field, is the source of the values below:
# https://developers.openai.com/api/docs/guides/image-generation
# «Supported sizes are 1024x1024, 1024x1536, 1536x1024, and auto» (recorded, of gpt-image-1-mini).
_STANDARD = ("1024x1024", "1536x1024", "1024x1536", AUTO)
_QUALITIES = ("low", "medium", "high")
_BACKGROUNDS = ("transparent", "opaque")
_FIXED = ImageLimits(
    sizes=_STANDARD,
    qualities=_QUALITIES,
    formats=("png", "jpeg", "webp"),
    backgrounds=_BACKGROUNDS,
    max_count=10,  # «Must be between 1 and 10»
    max_images=16,  # «You can provide up to 16 images»
    masks=True,
)
# «Width and height must both be divisible by 16» (recorded), the ratio «between 1:3 and 3:1», «the
# maximum supported resolution is 3840x2160».
_FLEXIBLE = ImageLimits(
    step=16,
    max_edge=3840,
    max_area=3840 * 2160,
    max_ratio=3,
    qualities=_QUALITIES,
    formats=("png", "jpeg", "webp", "gif", "svg"),
    backgrounds=_BACKGROUNDS,
    max_count=10,
    max_images=16,
    masks=True,
)
# «gpt-image-2.5-sunburst and gpt-image-2.5-flare […] also support `xhigh` and `max`».
_NEWEST = msgspec.structs.replace(_FLEXIBLE, qualities=(*_QUALITIES, "xhigh", "max"))
_OPENAI: Mapping[str, ImageLimits] = {
    "gpt-image-1": _FIXED,
    "gpt-image-2": _FLEXIBLE,
    "gpt-image-2.5": _NEWEST,
    "gpt-image-2.6": _NEWEST,
    "chatgpt-image-": ImageLimits(max_count=10, max_images=16, masks=True),
    # retired in May 2026; compatible servers still have models of these names
    "dall-e-2": ImageLimits(
        sizes=("256x256", "512x512", "1024x1024"),
        qualities=("standard",),
        formats=(),
        backgrounds=(),
        max_count=10,
        max_images=1,
    ),
    "dall-e-3": ImageLimits(
        sizes=("1024x1024", "1792x1024", "1024x1792"),
        qualities=("standard", "hd"),
        formats=(),
        backgrounds=(),
        max_count=1,
        max_images=0,
    ),
}
"""By the start of a model's name; the longest one counts."""

# As xAI's documentation of its image models has them. `resolution` is written in lower case, as in
# the recorded request with `2k`.
_XAI = ImageLimits(
    ratios=(
        *("1:1", "16:9", "9:16", "4:3", "3:4", "3:2", "2:3", "2:1", "1:2"),
        *("19.5:9", "9:19.5", "20:9", "9:20"),
    ),
    tiers=("1K", "2K"),
    qualities=None,
    formats=(),
    backgrounds=(),
    max_count=10,
    max_images=3,
    masks=False,
)


class ImageRules(msgspec.Struct, frozen=True, kw_only=True):
    """How a host takes images."""

    limits: Callable[[str], ImageLimits] = lambda _model: ANYTHING
    """What a model of this name takes."""
    sizing: Literal["size", "edges", "ratio"] = "size"
    """`size`, or `width` and `height`, or `aspect_ratio` and `resolution`."""
    response_format: str | None = None
    """The value that asks for bytes; None if the host refuses the field."""
    json_edits: bool = False
    """An edit is JSON with `image` or `images`, not a form."""


def openai_limits(model: str) -> ImageLimits:
    """What is known of a model of OpenAI."""
    starts = [start for start in _OPENAI if model.startswith(start)]
    return _OPENAI[max(starts, key=len)] if starts else ANYTHING


OPENAI = ImageRules(limits=openai_limits)
RULES: Mapping[str, ImageRules] = {
    "": OPENAI,
    # Hosts that return addresses unless asked for bytes. OpenAI's models always return bytes, and
    # refuse the field: «Unknown parameter: 'response_format'.» (recorded).
    "b64": ImageRules(response_format="b64_json"),
    "together": ImageRules(sizing="edges", response_format="base64"),  # its own word for bytes
    "xai": ImageRules(
        limits=lambda _model: _XAI, sizing="ratio", response_format="b64_json", json_edits=True
    ),
}
"""By the variant that the rows of providers name."""
