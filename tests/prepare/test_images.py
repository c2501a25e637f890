"""The options of an image, as a model takes them."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from interlingua.dialects.openai_shared.image_rules import RULES, openai_limits
from interlingua.prepare.images import (
    ANYTHING,
    ImageLimits,
    check_image,
    in_pixels,
    in_ratio,
    parse_pixels,
    parse_ratio,
)
from interlingua.spec.errors import UnsupportedError
from interlingua.spec.modalities.images import ImageInput

XAI = RULES["xai"].limits("grok-imagine-image")
MODELS = ("gpt-image-1-mini", "gpt-image-2", "gpt-image-2.5-flare", "dall-e-3", "flux")
RATIOS = st.builds("{}:{}".format, st.integers(1, 64), st.integers(1, 64))
PIXELS = st.builds("{}x{}".format, st.integers(1, 5000), st.integers(1, 5000))
TIERS = st.sampled_from(["1K", "2K", "4K"])


def asked(model="m", **fields):
    return ImageInput(model=model, prompt="A cat.", **fields)


@pytest.mark.parametrize("model", MODELS)
@given(ratio=st.none() | RATIOS, size=st.none() | TIERS)
def test_a_converted_size_is_one_that_the_model_takes(model, ratio, size):
    """What a ratio becomes is accepted as a size of its own, unless the ratio is refused."""
    assume(ratio or size)
    limits = openai_limits(model)
    try:
        form = in_pixels(asked(model, aspect_ratio=ratio, size=size), limits)
    except UnsupportedError:
        width, height = parse_ratio(ratio)
        assert limits.max_ratio
        assert max(width, height) > limits.max_ratio * min(width, height)
        return

    assert in_pixels(asked(model, size=form.size), limits) == (form.size, None, ())


@pytest.mark.parametrize("model", MODELS)
@given(ratio=RATIOS)
def test_a_ratio_is_exact_or_a_warning_says_so(model, ratio):
    """Without a warning the pixels have the ratio that was asked for."""
    try:
        form = in_pixels(asked(model, aspect_ratio=ratio), openai_limits(model))
    except UnsupportedError:
        return
    width, height = parse_ratio(ratio)
    size = parse_pixels(form.size)

    if not form.warnings:
        assert size.width * height == pytest.approx(size.height * width, rel=0.011)
    else:
        assert [warning.code for warning in form.warnings] == ["image_size_changed"]


@given(size=PIXELS)
def test_pixels_become_a_known_ratio(size):
    """A host that takes no pixels gets one of its ratios and sizes, with a warning if need be."""
    form = in_ratio(asked(size=size), XAI)

    assert form.ratio in XAI.ratios
    assert form.size in XAI.tiers
    assert bool(form.warnings) == (size not in ("1024x1024", "2048x2048"))


@pytest.mark.parametrize(
    ("ratio", "size", "pixels"),
    [
        ("16:9", None, "1280x720"),
        ("1:1", None, "1024x1024"),
        ("1:1", "2K", "2048x2048"),
        ("3:2", None, "1248x832"),
        ("19.5:9", None, "1456x672"),
        (None, "2K", "2048x2048"),
    ],
)
def test_ratios_in_pixels(ratio, size, pixels):
    """A ratio is kept exactly, with about a million pixels for each `1K` squared."""
    form = in_pixels(asked(aspect_ratio=ratio, size=size), openai_limits("gpt-image-2"))

    assert form == (pixels, None, ())


def test_a_size_above_the_limits_is_lowered_with_a_warning():
    """4K has more pixels than OpenAI's models make."""
    form = in_pixels(asked(aspect_ratio="16:9", size="4K"), openai_limits("gpt-image-2"))

    assert form.size == "3840x2160"
    assert [warning.code for warning in form.warnings] == ["image_size_changed"]


REFUSED = [
    ({"size": "3x3"}, "gpt-image-1-mini", "1024x1024, 1536x1024, 1024x1536, auto"),
    ({"size": "3x3"}, "gpt-image-2", "multiples of 16"),
    ({"size": "4096x4096"}, "gpt-image-2", "at most 3840"),
    ({"size": "1600x160"}, "gpt-image-2", "3 times"),
    ({"aspect_ratio": "10:1"}, "gpt-image-2", "3 times"),
    ({"quality": "max"}, "gpt-image-2", "low, medium, high"),
    ({"format": "gif"}, "gpt-image-1.5", "png, jpeg, webp"),
    ({"count": 2}, "dall-e-3", "at most 1"),
]


@pytest.mark.parametrize(("fields", "model", "hint"), REFUSED)
def test_what_a_model_cannot_take_is_named(fields, model, hint):
    """The error says what the model takes."""
    value = asked(model, **fields)

    with pytest.raises(UnsupportedError, match=hint):
        (check_image(value, openai_limits(model)), in_pixels(value, openai_limits(model)))


@pytest.mark.parametrize("fields", [fields for fields, *_ in REFUSED])
def test_of_an_unknown_model_nothing_is_refused(fields):
    """The provider decides about what is not known here."""
    value = asked(**fields)

    assert check_image(value, ANYTHING) == ()
    assert in_pixels(value, ANYTHING).warnings == ()


def test_an_option_that_the_host_does_not_have_is_dropped_with_a_warning():
    """`auto` is what happens anyway, so there is nothing to drop."""
    limits = ImageLimits(qualities=(), backgrounds=())

    dropped = check_image(asked(quality="high", background="auto"), limits)

    assert [(warning.code, warning.path) for warning in dropped] == [("setting_dropped", "quality")]


@pytest.mark.parametrize(
    ("ratio", "size", "hint"), [("5:4", None, "1:1, 16:9"), (None, "4K", "1K, 2K")]
)
def test_ratios_and_sizes_that_a_host_does_not_have_are_refused(ratio, size, hint):
    """The error lists those that it has."""
    with pytest.raises(UnsupportedError, match=hint):
        in_ratio(asked(aspect_ratio=ratio, size=size), XAI)
