"""What an adapter can do, in the words of a router: a view of its profile."""

from __future__ import annotations

from typing import Literal

import msgspec

from interlingua.spec.contracts import NEUTRAL_PROFILE, Profile


class ToolCallCapabilities(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, repr_omit_defaults=True
):
    """How far tool calls go."""

    non_streaming: bool = True
    """In whole answers."""
    streaming_mode: Literal["none", "deltas"] = "deltas"
    """In streamed answers: not at all, or in fragments."""
    parallel: bool = True
    """Several in one answer."""


class AdapterCapabilities(msgspec.Struct, frozen=True):
    """
    A profile, read by a router before it sends anything.

    It holds nothing but the profile. None means that no limit is known.
    """

    profile: Profile = NEUTRAL_PROFILE

    @property
    def supports_images(self) -> bool:
        """Whether any type of image is accepted."""
        return self.profile.image_types != ()

    @property
    def accepted_image_media_types(self) -> tuple[str, ...] | None:
        """The types of images that are accepted."""
        return self.profile.image_types

    @property
    def supports_thinking(self) -> bool:
        """Whether the model can be asked to think."""
        return self.profile.thinking

    @property
    def supports_tools(self) -> bool:
        """Whether tools can be declared."""
        return self.profile.tools

    @property
    def supports_system_prompt(self) -> bool:
        """Whether system messages are accepted."""
        return self.profile.system_prompt

    @property
    def supports_structured_output(self) -> bool:
        """Whether the provider itself enforces a schema."""
        return "native" in self.profile.structured_output

    @property
    def supports_streaming(self) -> bool:
        """Whether answers can be streamed."""
        return self.profile.streaming

    @property
    def supports_streaming_tool_calls(self) -> bool:
        """Whether tool calls can be streamed."""
        profile = self.profile
        return profile.tools and profile.streaming and profile.streaming_tool_calls

    @property
    def supports_parallel_tool_calls(self) -> bool:
        """Whether one answer may have several tool calls."""
        return self.profile.tools and self.profile.parallel_tool_calls

    @property
    def supports_prompt_caching(self) -> bool:
        """Whether cache marks can be set."""
        return self.profile.caching

    @property
    def max_context_tokens(self) -> int | None:
        """The size of the context window."""
        return self.profile.context_window

    @property
    def max_output_tokens(self) -> int | None:
        """The most tokens of one answer."""
        return self.profile.max_output_tokens

    @property
    def tool_calls(self) -> ToolCallCapabilities:
        """What is said above about tool calls, as one record."""
        return ToolCallCapabilities(
            non_streaming=self.supports_tools,
            streaming_mode="deltas" if self.supports_streaming_tool_calls else "none",
            parallel=self.supports_parallel_tool_calls,
        )
