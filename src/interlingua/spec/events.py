"""
A response as it comes: events.

The legal order is a table in `streams/grammar.py`; in words: `StreamStart` first, one
`Finish` last. Every segment (text, reasoning, tool call) has one start, any number of
deltas and one end, all with the same `id` and `index`; segments may interleave, and
`index` is the part's place in the message.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar, Literal, TypeAlias

import msgspec

from interlingua.spec.content import Extra, Json, Part, Text, Thinking, ToolCall, ToolType
from interlingua.spec.errors import SDKError
from interlingua.spec.response import FinishReason, RateLimit, Response, Usage, Warning


class _Event(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    tag_field="type",
    omit_defaults=True,
    repr_omit_defaults=True,
):
    pass


class StreamStart(_Event, frozen=True, kw_only=True, tag="stream_start"):
    """The provider has begun to answer."""

    type: ClassVar[Literal["stream_start"]] = "stream_start"
    id: str = ""
    model: str = ""
    provider: str = ""
    request_id: str | None = None
    warnings: tuple[Warning, ...] = ()
    usage: Usage | None = None
    """What is known of the usage before the first word."""
    rate_limit: RateLimit | None = None
    """What the head of the reply says about limits."""
    extra: Extra = {}
    """Fields of the envelope that have no canonical place, by dialect name."""

    if TYPE_CHECKING:  # what `__post_init__` takes besides; at run time msgspec's own stays

        def __init__(
            self,
            *,
            id: str = "",  # noqa: A002 -- the field's name
            model: str = "",
            provider: str = "",
            request_id: str | None = None,
            warnings: Iterable[Warning] = (),
            usage: Usage | None = None,
            rate_limit: RateLimit | None = None,
            extra: Extra = ...,
        ) -> None: ...

    def __post_init__(self) -> None:
        if type(self.warnings) is not tuple:
            msgspec.structs.force_setattr(self, "warnings", tuple(self.warnings))


class TextStart(_Event, frozen=True, kw_only=True, tag="text_start"):
    """A text part begins."""

    type: ClassVar[Literal["text_start"]] = "text_start"
    id: str
    index: int
    extra: Extra = {}


class TextDelta(_Event, frozen=True, kw_only=True, tag="text_delta", gc=False):
    """More of a text part."""

    type: ClassVar[Literal["text_delta"]] = "text_delta"
    id: str
    index: int
    delta: str


class TextEnd(_Event, frozen=True, kw_only=True, tag="text_end"):
    """A text part, whole."""

    type: ClassVar[Literal["text_end"]] = "text_end"
    id: str
    index: int
    part: Text


class ReasoningStart(_Event, frozen=True, kw_only=True, tag="reasoning_start"):
    """A thinking part begins."""

    type: ClassVar[Literal["reasoning_start"]] = "reasoning_start"
    id: str
    index: int
    extra: Extra = {}


class ReasoningDelta(_Event, frozen=True, kw_only=True, tag="reasoning_delta", gc=False):
    """More of a thinking part."""

    type: ClassVar[Literal["reasoning_delta"]] = "reasoning_delta"
    id: str
    index: int
    delta: str


class ReasoningEnd(_Event, frozen=True, kw_only=True, tag="reasoning_end"):
    """A thinking part, whole, with its signature."""

    type: ClassVar[Literal["reasoning_end"]] = "reasoning_end"
    id: str
    index: int
    part: Thinking


class ToolCallStart(_Event, frozen=True, kw_only=True, tag="tool_call_start"):
    """A tool call begins; `tool_call_id` is what its result will name."""

    type: ClassVar[Literal["tool_call_start"]] = "tool_call_start"
    id: str
    index: int
    tool_call_id: str
    name: str
    tool_type: ToolType = "function"
    extra: Extra = {}


class ToolCallDelta(_Event, frozen=True, kw_only=True, tag="tool_call_delta", gc=False):
    """A fragment of the argument text, as it came."""

    type: ClassVar[Literal["tool_call_delta"]] = "tool_call_delta"
    id: str
    index: int
    delta: str


class ToolCallEnd(_Event, frozen=True, kw_only=True, tag="tool_call_end"):
    """A tool call, whole. Its `is_valid` is False if the argument text was not an object."""

    type: ClassVar[Literal["tool_call_end"]] = "tool_call_end"
    id: str
    index: int
    tool_call: ToolCall


class ProviderEvent(_Event, frozen=True, kw_only=True, tag="provider_event"):
    """
    A wire event with no canonical form, verbatim.

    With `part` set it also adds that part, at `index`: this is how parts without
    segments (opaque blocks, refusals, images) arrive.
    """

    type: ClassVar[Literal["provider_event"]] = "provider_event"
    dialect: str = ""
    data: Json = None
    name: str | None = None
    part: Part | None = None
    index: int | None = None


class StepFinish(_Event, frozen=True, kw_only=True, tag="step_finish"):
    """One model call of a tool loop is over; more may follow."""

    type: ClassVar[Literal["step_finish"]] = "step_finish"
    step: int
    response: Response


class ErrorEvent(_Event, frozen=True, kw_only=True, tag="error"):
    """The stream failed; the error is raised after `Finish`."""

    type: ClassVar[Literal["error"]] = "error"
    error: SDKError
    response: Response | None = None


class Finish(_Event, frozen=True, kw_only=True, tag="finish"):
    """
    The end.

    A decoder sets `response` only where the wire itself ends with the whole response. Readers
    and middleware always have it.
    """

    type: ClassVar[Literal["finish"]] = "finish"
    finish_reason: FinishReason
    usage: Usage = Usage()
    response: Response | None = None
    latency_ms: float | None = None
    """From the sending of the request to here."""
    extra: Extra = {}
    """Fields of the envelope known only at the end, by dialect name."""
    message_extra: Extra = {}
    """The same for the message."""


StreamEvent: TypeAlias = (
    StreamStart
    | TextStart
    | TextDelta
    | TextEnd
    | ReasoningStart
    | ReasoningDelta
    | ReasoningEnd
    | ToolCallStart
    | ToolCallDelta
    | ToolCallEnd
    | ProviderEvent
    | StepFinish
    | ErrorEvent
    | Finish
)
