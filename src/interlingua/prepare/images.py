"""
The options of an image, as a model takes them.

A host takes either a size in pixels, or an aspect ratio and one of the sizes `1K`, `2K` and `4K`,
which is about that many thousand pixels squared. Each form is converted to the other, with a
warning where that is not exact. An option that a model cannot take is an error that names what it
takes; where nothing is known of a model, everything is sent.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import NamedTuple, TypeAlias, TypeVar

from interlingua.spec.content import Record
from interlingua.spec.errors import UnsupportedError
from interlingua.spec.modalities.images import ImageInput, pixels_of, ratio_terms
from interlingua.spec.response import Warning
from interlingua.spec.warnings import make_warning
from interlingua.wire.image_size import ImageSize

AUTO = "auto"
# Gemini's sizes `1K`, `2K` and `4K`: https://ai.google.dev/gemini-api/docs/image-generation
THOUSAND = 1024
"""The edge of a square image of the size `1K`."""
Value = TypeVar("Value")
_tier = re.compile(r"([124])K", re.IGNORECASE).fullmatch
_COMMON_RATIOS = ("1:1", "2:3", "3:2", "3:4", "4:3", "9:16", "16:9", "21:9")
"""The ratios to choose from where those of a model are unknown."""
_CLOSE = 0.01
"""Two ratios whose logarithms differ by less are the same."""
Choices: TypeAlias = tuple[str, ...] | None
"""What is taken; None if it is unknown."""


class ImageLimits(Record, frozen=True, kw_only=True):
    """What a model takes. None means unknown: the provider decides."""

    sizes: Choices = None
    """The only sizes in pixels."""
    step: int | None = None
    """Both edges must be multiples of it."""
    max_edge: int | None = None
    max_area: int | None = None
    max_ratio: float | None = None
    """How much longer one edge may be than the other."""
    ratios: Choices = None
    """The only aspect ratios."""
    tiers: Choices = None
    """Which of `1K`, `2K` and `4K`; empty if the size cannot be chosen."""
    qualities: Choices = None
    """Empty if there is no such option; so for the next ones."""
    formats: Choices = None
    backgrounds: Choices = None
    max_count: int | None = None
    max_images: int | None = None
    """How many images can be combined; 0 if the model cannot edit."""
    masks: bool | None = None


ANYTHING = ImageLimits()


class Form(NamedTuple):
    """The size of an image in the terms of a host, with the warnings about it."""

    size: str | None = None
    """Pixels, or one of `1K`, `2K`, `4K`."""
    ratio: str | None = None
    warnings: tuple[Warning, ...] = ()


def parse_pixels(text: str | None) -> ImageSize | None:
    """The size in a text such as `1536x1024`; None for any other text."""
    pixels = pixels_of(text or "")
    return None if pixels is None else ImageSize(*pixels)


def parse_ratio(text: str | None) -> tuple[int, int] | None:
    """The terms of a ratio such as `16:9` or `19.5:9`, reduced; None for any other text."""
    return ratio_terms(text or "")


def parse_tier(text: str | None) -> int | None:
    """1, 2 or 4 for `1K`, `2K` or `4K`; None for any other text."""
    match = _tier(text or "")
    return int(match[1]) if match else None


# Checks.


def check_image(value: ImageInput, limits: ImageLimits) -> tuple[Warning, ...]:
    """
    The warnings about options that the model does not have.

    `UnsupportedError` if it has an option but not this value, or cannot make the image from what is
    given.
    """
    _check_images(value, limits)
    if value.count is not None and limits.max_count is not None and value.count > limits.max_count:
        raise UnsupportedError(
            f"{value.model} makes at most {limits.max_count} images per call, not {value.count}. "
            "Make several calls."
        )
    settings = {
        "quality": (value.quality, limits.qualities),
        "format": (value.format, limits.formats),
        "background": (value.background, limits.backgrounds),
    }
    dropped: list[Warning] = []
    for name, (given, known) in settings.items():
        if given in (None, AUTO) or known is None or given in known:
            continue
        if known:
            raise UnsupportedError(
                f"{value.model} has no {name} {given!r}. It takes: {', '.join(known)}."
            )
        dropped.append(drop_setting(value, name))
    return tuple(dropped)


def _check_images(value: ImageInput, limits: ImageLimits) -> None:
    given, most = len(value.images), limits.max_images
    if given and most == 0:
        raise UnsupportedError(f"{value.model} cannot edit images. Use another model.")
    if most is not None and given > most:
        raise UnsupportedError(f"{value.model} combines at most {most} images, not {given}.")
    if value.mask is not None and limits.masks is False:
        raise UnsupportedError(
            f"{value.model} takes no mask. Say in the prompt what to change, or use a model with "
            "masks, such as OpenAI's gpt-image-2."
        )


def sent_value(given: Value, known: Choices) -> Value | None:
    """An option as it is sent: None if the model does not have it."""
    return None if known == () else given


def drop_setting(value: ImageInput, name: str) -> Warning:
    """The warning that a setting is not sent."""
    return make_warning("setting_dropped", path=name, target=value.model, setting=name, when="")


# Sizes.


def in_pixels(value: ImageInput, limits: ImageLimits) -> Form:
    """The size in pixels, for a host that takes no ratio."""
    if value.size == AUTO and value.aspect_ratio is None:
        return Form(AUTO)
    size = parse_pixels(value.size)
    if size is not None:
        _check_pixels(value, size, limits)
        return Form(str(size))
    ratio, tier = parse_ratio(value.aspect_ratio), parse_tier(value.size)
    if ratio is None and tier is None:
        return Form(value.size)
    width, height = ratio or (1, 1)
    if limits.sizes is not None:
        chosen = _nearest(limits.sizes, width / height)
        is_exact = _is_close(chosen, width / height) and tier in (None, 1)
        return Form(chosen, None, () if is_exact else _changed(value, chosen))
    chosen_size = _fit(width, height, tier or 1, limits)
    if chosen_size is None:
        raise UnsupportedError(
            f"{value.model} makes no image of the ratio {value.aspect_ratio}: one edge may be at "
            f"most {limits.max_ratio:g} times the other."
        )
    area = (THOUSAND * (tier or 1)) ** 2
    is_exact = abs(math.log(chosen_size.width * chosen_size.height / area)) < _CLOSE or tier is None
    warnings = () if is_exact else _changed(value, str(chosen_size))
    return Form(str(chosen_size), None, warnings)


def in_ratio(value: ImageInput, limits: ImageLimits) -> Form:
    """The ratio and one of `1K`, `2K`, `4K`, for a host that takes no pixels."""
    known, ratio, tiers = limits.ratios, value.aspect_ratio, limits.tiers
    if ratio is not None and known is not None and ratio not in known:
        raise UnsupportedError(
            f"{value.model} has no aspect ratio {ratio!r}. It takes: {', '.join(known)}."
        )
    size = parse_pixels(value.size)
    if size is None:
        tier = None if value.size in (None, AUTO) else str(value.size).upper()
        if tier is not None and tiers is not None and tier not in (tiers or ("1K",)):
            raise UnsupportedError(
                f"{value.model} makes no image of the size {tier}. It takes: "
                f"{', '.join(tiers) or '1K'}."
            )
        return Form(None if tiers == () else tier, ratio)
    if ratio is None:
        ratio = _nearest(known or _COMMON_RATIOS, size.width / size.height)
    edge = math.sqrt(size.width * size.height) / THOUSAND
    offered = ("1K", "2K", "4K") if tiers is None else tiers or ("1K",)
    tier = min(offered, key=lambda each: abs(math.log(edge / (parse_tier(each) or 1))))
    made = THOUSAND * (parse_tier(tier) or 1)
    is_exact = size == (made, made) and ratio == "1:1"
    warnings = () if is_exact else _changed(value, f"the ratio {ratio} in the size {tier}")
    return Form(None if tiers == () else tier, ratio, warnings)


def _check_pixels(value: ImageInput, size: ImageSize, limits: ImageLimits) -> None:
    # Seen in recordings of OpenAI: «Invalid size '3x3'. Supported sizes are 1024x1024, 1024x1536,
    # 1536x1024, and auto.»
    if limits.sizes is not None and str(size) not in limits.sizes:
        raise UnsupportedError(
            f"{value.model} makes no image of {size} pixels. It takes: {', '.join(limits.sizes)}."
        )
    width, height = size
    step, edge, area = limits.step or 1, limits.max_edge, limits.max_area
    # Seen in recordings of OpenAI: «Invalid size '3x3'. Width and height must both be divisible by
    # 16.»
    if width % step or height % step:
        raise UnsupportedError(
            f"{value.model} makes no image of {size} pixels: width and height must be multiples "
            f"of {step}."
        )
    if limits.max_ratio is not None and max(size) > limits.max_ratio * min(size):
        raise UnsupportedError(
            f"{value.model} makes no image of {size} pixels: one edge may be at most "
            f"{limits.max_ratio:g} times the other."
        )
    if (edge is not None and max(size) > edge) or (area is not None and width * height > area):
        raise UnsupportedError(
            f"{value.model} makes no image of {size} pixels: it has at most {edge} pixels at an "
            f"edge and {area} in all."
        )


def _fit(width: int, height: int, tier: int, limits: ImageLimits) -> ImageSize | None:
    """The size with exactly this ratio, within limits, whose area is nearest to the tier's."""
    if limits.max_ratio is not None and max(width, height) > limits.max_ratio * min(width, height):
        return None
    # 16 is OpenAI's step, and suits models of which none is known.
    step = limits.step or 16
    width, height = width * step, height * step
    area = (THOUSAND * tier) ** 2
    if limits.max_area is not None:
        area = min(area, limits.max_area)
    factor = max(1, round(math.sqrt(area / (width * height))))
    while factor > 1 and (
        (limits.max_area is not None and width * height * factor**2 > limits.max_area)
        or (limits.max_edge is not None and max(width, height) * factor > limits.max_edge)
    ):
        factor -= 1
    return ImageSize(width * factor, height * factor)


def _nearest(choices: Sequence[str], shape: float) -> str:
    """The size or ratio whose shape is nearest; the earlier one if two are."""
    able = [choice for choice in choices if choice != AUTO]
    return min(able, key=lambda choice: abs(math.log(_shape(choice) / shape)))


def _is_close(choice: str, shape: float) -> bool:
    return abs(math.log(_shape(choice) / shape)) < _CLOSE


def _shape(choice: str) -> float:
    width, height = parse_pixels(choice) or parse_ratio(choice) or (1, 1)
    return width / height


def _changed(value: ImageInput, sent: str) -> tuple[Warning, ...]:
    asked = " in the ratio ".join(filter(None, (value.size, value.aspect_ratio)))
    if value.size is None:
        asked = f"the ratio {value.aspect_ratio}"
    fields = {"target": value.model, "asked": asked, "sent": sent}
    return (make_warning("image_size_changed", path="size", **fields),)
