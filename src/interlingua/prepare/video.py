"""The length and the shape of a video, checked and converted for its target."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from interlingua.spec.errors import UnsupportedError
from interlingua.spec.modalities.images import pixels_of, ratio_of, resolution_of, size_of
from interlingua.spec.modalities.video import CreateVideoInput, VideoVariant


class VideoRules(msgspec.Struct, frozen=True, kw_only=True):
    """What the models whose names begin with `models` accept. Empty: unknown, so all is sent."""

    models: str = ""
    seconds: tuple[int, ...] = ()
    default_seconds: float | None = None
    ratios: tuple[str, ...] = ()
    resolutions: tuple[str, ...] = ()
    default_resolution: str | None = None
    sizes: tuple[str, ...] = ()
    """Sizes in pixels, of targets that have no ratios and no names of resolutions."""
    # Veo makes 1080p only in 8 seconds: https://ai.google.dev/gemini-api/docs/video
    only_longest: tuple[str, ...] = ()
    """The resolutions in which only the longest videos are made."""
    max_count: int | None = None


ANY = VideoRules()


class VideoShape(NamedTuple):
    """The length and the shape of a video, in each of the ways in which targets state them."""

    seconds: float | None
    ratio: str | None
    resolution: str | None
    size: str | None
    """In pixels."""


def find_rules(model: str, table: Iterable[VideoRules]) -> VideoRules:
    """The first rules whose prefix the name of the model has."""
    name = model.removeprefix("models/")
    return next((rules for rules in table if name.startswith(rules.models)), ANY)


def shape_video(value: CreateVideoInput, rules: VideoRules) -> VideoShape:
    """
    What was asked for, in the terms of the target.

    `UnsupportedError` names the allowed values if the target does not have what is asked for.
    """
    _check(value, "seconds", value.seconds, rules.seconds)
    if value.count is not None and value.count > (rules.max_count or value.count):
        raise _refusal(value, "count", value.count, f"at most {rules.max_count}")
    if rules.sizes:
        return _choose_size(value, rules)
    resolution = None if value.size is None else resolution_of(value.size)
    ratio = value.aspect_ratio
    if ratio is None and value.size is not None:
        ratio = ratio_of(value.size, rules.ratios)
    _check(value, "size", resolution, rules.resolutions)
    _check(value, "aspect_ratio", ratio, rules.ratios)
    longest = max(rules.seconds, default=None)
    if resolution in rules.only_longest and value.seconds not in {None, longest}:
        raise _refusal(value, "seconds", value.seconds, f"{longest} in {resolution}")
    return VideoShape(value.seconds, ratio, resolution, _pixels(value, ratio, resolution))


def check_variant(variant: VideoVariant, target: str) -> None:
    """Raise `UnsupportedError` for a variant, at a target that has only the videos themselves."""
    if variant != "video":
        raise UnsupportedError(
            f"{target} has no {variant} of a video, only the video itself. Use variant='video'.",
            setting="variant",
        )


def _choose_size(value: CreateVideoInput, rules: VideoRules) -> VideoShape:
    """One of the sizes that the target has."""
    wanted, size = value.size, None
    if wanted is not None and pixels_of(wanted) is not None:
        size = wanted
    elif wanted is not None or value.aspect_ratio is not None:
        resolution = wanted or rules.default_resolution or "720p"
        ratios = (value.aspect_ratio,) if value.aspect_ratio else ("16:9",)
        size = next(
            (
                each
                for each in rules.sizes
                if resolution_of(each) == resolution and ratio_of(each, ratios) in ratios
            ),
            None,
        )
        if size is None:
            asked = " ".join(filter(None, (wanted, value.aspect_ratio)))
            raise _refusal(value, "size", asked, ", ".join(rules.sizes))
    _check(value, "size", size, rules.sizes)
    return VideoShape(value.seconds, value.aspect_ratio, wanted, size)


def _pixels(value: CreateVideoInput, ratio: str | None, resolution: str | None) -> str | None:
    if value.size is not None and pixels_of(value.size) is not None:
        return value.size
    if ratio is None and resolution is None:
        return None
    return size_of(ratio or "16:9", resolution or "720p")


def _check(value: CreateVideoInput, name: str, given: object, allowed: tuple[object, ...]) -> None:
    if given is not None and allowed and given not in allowed:
        raise _refusal(value, name, given, listed(allowed))


def listed(allowed: tuple[object, ...]) -> str:
    """The values in words: a long row of numbers by its first and its last."""
    numbers = [each for each in allowed if isinstance(each, int)]
    if len(numbers) > 8 and numbers == list(range(numbers[0], numbers[-1] + 1)):
        return f"{numbers[0]} to {numbers[-1]}"
    return ", ".join(map(str, allowed))


def _refusal(value: CreateVideoInput, name: str, given: object, allowed: str) -> UnsupportedError:
    shown = f"{given:g}" if isinstance(given, float) else str(given)
    return UnsupportedError(
        f"{value.model} makes no video with {name} {shown}. Allowed: {allowed}.", setting=name
    )
