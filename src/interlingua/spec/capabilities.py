"""What an adapter declares it can do, read from a profile."""

from __future__ import annotations

from typing import Literal

import msgspec

from interlingua.spec.contracts import Profile


class ToolCallCapabilities(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, repr_omit_defaults=True
):
    """How far tool calls go."""

    non_streaming: bool = True
    """In answers that come whole."""
    streaming_mode: Literal["none", "deltas"] = "deltas"
    """In answers that stream: not at all, or piece by piece."""
    parallel: bool = True
    """Several in one answer."""


class AdapterCapabilities(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, repr_omit_defaults=True
):
    """
    What can be asked of a model behind an adapter.

    A router reads this before it sends anything. None means "no limit known".
    """

    supports_images: bool = True
    supports_thinking: bool = True
    supports_tools: bool = True
    supports_system_prompt: bool = True
    supports_structured_output: bool = True
    """Natively: the model is held to the schema, not only asked to keep to it."""
    supports_streaming: bool = True
    supports_streaming_tool_calls: bool = True
    supports_parallel_tool_calls: bool = True
    supports_prompt_caching: bool = False
    max_context_tokens: int | None = None
    max_output_tokens: int | None = None
    accepted_image_media_types: tuple[str, ...] | None = None
    tool_calls: ToolCallCapabilities = ToolCallCapabilities()
    """The same as the flags above, in finer grain."""


def capabilities_of(profile: Profile) -> AdapterCapabilities:
    """What the profile says, in the words of a router."""
    streams_calls = profile.tools and profile.streaming and profile.streaming_tool_calls
    parallel = profile.tools and profile.parallel_tool_calls
    return AdapterCapabilities(
        supports_images=profile.image_types != (),
        supports_thinking=profile.thinking,
        supports_tools=profile.tools,
        supports_system_prompt=profile.system_prompt,
        supports_structured_output="native" in profile.structured_output,
        supports_streaming=profile.streaming,
        supports_streaming_tool_calls=streams_calls,
        supports_parallel_tool_calls=parallel,
        supports_prompt_caching=profile.caching,
        max_context_tokens=profile.context_window,
        max_output_tokens=profile.max_output_tokens,
        accepted_image_media_types=profile.image_types,
        tool_calls=ToolCallCapabilities(
            non_streaming=profile.tools,
            streaming_mode="deltas" if streams_calls else "none",
            parallel=parallel,
        ),
    )
