"""Capabilities, read from a profile."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlingua.spec.contracts import (
    AdapterCapabilities,
    Profile,
    ToolCallCapabilities,
)

profiles = st.builds(
    Profile,
    tools=st.sampled_from([None, True, False]),
    parallel_tool_calls=st.sampled_from([None, True, False]),
    streaming=st.sampled_from([None, True, False]),
    whole_tool_calls=st.sampled_from([None, True, False]),
    streaming_tool_calls=st.sampled_from([None, True, False]),
    thinking=st.sampled_from([None, True, False]),
    image_types=st.sampled_from([None, (), ("image/png",)]),
)


@given(profiles)
def test_the_two_grains_agree(profile):
    """The flags and the finer record of tool calls never contradict each other."""
    found = AdapterCapabilities(profile)

    if profile.whole_tool_calls:
        assert found.tool_calls.non_streaming == found.supports_tools
    modes = {True: "deltas", False: "none", None: None}
    assert found.tool_calls.streaming_mode == modes[found.supports_streaming_tool_calls]
    assert found.tool_calls.parallel == found.supports_parallel_tool_calls


@given(profiles)
def test_nothing_of_tools_without_tools(profile):
    """A model without tools has neither streamed nor parallel calls."""
    found = AdapterCapabilities(msgspec.structs.replace(profile, tools=False))

    assert found.tool_calls == ToolCallCapabilities(
        non_streaming=False, streaming_mode="none", parallel=False
    )


@given(profiles)
def test_capabilities_are_json(profile):
    """What is declared can be stored and sent."""
    found = AdapterCapabilities(profile)

    assert msgspec.json.decode(msgspec.json.encode(found), type=AdapterCapabilities) == found


def test_a_neutral_profile_declares_nothing():
    """What is unknown is None: a search by capability takes it as no."""
    assert AdapterCapabilities(Profile()) == AdapterCapabilities()
    assert AdapterCapabilities().supports_tools is None
    assert AdapterCapabilities().supports_images is None
    assert AdapterCapabilities().tool_calls == ToolCallCapabilities(
        non_streaming=None, streaming_mode=None, parallel=None
    )
    assert not AdapterCapabilities().supports_prompt_caching
    assert AdapterCapabilities().max_context_tokens is None


@pytest.mark.parametrize(
    ("profile", "field", "value"),
    [
        (Profile(image_types=()), "supports_images", False),
        (Profile(image_types=("image/png",)), "accepted_image_media_types", ("image/png",)),
        (Profile(thinking=False), "supports_thinking", False),
        (Profile(system_prompt=False), "supports_system_prompt", False),
        (Profile(structured_output=("tool", "prompt")), "supports_structured_output", False),
        (Profile(streaming=False), "supports_streaming_tool_calls", False),
        (Profile(caching=True), "supports_prompt_caching", True),
        (Profile(context_window=8), "max_context_tokens", 8),
        (Profile(max_output_tokens=8), "max_output_tokens", 8),
    ],
)
def test_each_is_read_from_the_profile(profile, field, value):
    """Each capability is what the profile says."""
    assert getattr(AdapterCapabilities(profile), field) == value
