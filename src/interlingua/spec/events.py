"""
The events of a streamed response.

`StreamStart` is first, and exactly one `Finish` is last. Every segment (text, reasoning, tool call)
has one start, any number of deltas and one end, all with the same `id` and `index`; segments may
interleave. After `StreamRestart` they begin anew. `streams/grammar.py` has the valid orders as a
table.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, ClassVar, Literal, TypeAlias

import msgspec

from interlingua.spec.content import (
    Citation,
    Extra,
    Part,
    Record,
    Text,
    Thinking,
    TokenLogprob,
    ToolCall,
    ToolResult,
    ToolType,
    UncheckedJson,
)
from interlingua.spec.errors import SDKError
from interlingua.spec.response import Cost, FinishReason, RateLimitInfo, Response, Usage, Warning


class _Event(Record, frozen=True, kw_only=True, tag_field="type"):
    pass


class _SegmentEvent(_Event, frozen=True, kw_only=True):
    id: str
    """The same for all events of one segment."""
    index: int
    """The position of the part in the message; in a run of several steps, among all their parts."""


class StreamStart(_Event, frozen=True, kw_only=True, tag="stream_start"):
    """The response begins."""

    type: ClassVar[Literal["stream_start"]] = "stream_start"
    id: str = ""
    """The provider's id of the answer."""
    model: str = ""
    """The model that answers, as the provider names it."""
    provider: str = ""
    """The adapter that was called."""
    request_id: str | None = None
    """The id of our request."""
    provider_request_id: str | None = None
    """The provider's id of the request, for its support, if it sent one."""
    created_at: float | None = None
    """When a server began the answer: as `Response.created_at`."""
    warnings: tuple[Warning, ...] = ()
    """What was changed or lost in the request."""
    usage: Usage | None = None
    """The usage that is known before the first delta."""
    rate_limit: RateLimitInfo | None = None
    """The rate limits in the headers of the reply."""
    extra: Extra = {}
    """Fields of the response without a canonical place, by dialect name."""

    if TYPE_CHECKING:  # `__post_init__` accepts more types than the fields declare

        def __init__(
            self,
            *,
            id: str = "",  # noqa: A002 -- the field's name
            model: str = "",
            provider: str = "",
            request_id: str | None = None,
            provider_request_id: str | None = None,
            created_at: float | None = None,
            warnings: Iterable[Warning] = (),
            usage: Usage | None = None,
            rate_limit: RateLimitInfo | None = None,
            extra: Extra = ...,
        ) -> None: ...

    def __post_init__(self) -> None:
        if type(self.warnings) is not tuple:
            msgspec.structs.force_setattr(self, "warnings", tuple(self.warnings))


class StreamRestart(_Event, frozen=True, kw_only=True, tag="stream_restart"):
    """
    The answer begins again, from another model: what was delivered of it so far is void.

    Only a fallback with `midstream="restart-marked"` sends it, and never after a tool call.
    """

    type: ClassVar[Literal["stream_restart"]] = "stream_restart"
    start: StreamStart
    """The start of the new answer."""
    reason: str = ""
    """Why the first answer was given up."""


class TextStart(_SegmentEvent, frozen=True, kw_only=True, tag="text_start"):
    """A text part begins."""

    type: ClassVar[Literal["text_start"]] = "text_start"
    extra: Extra = {}
    """Fields of the wire without a canonical place, by dialect."""


class TextDelta(_SegmentEvent, frozen=True, kw_only=True, tag="text_delta", gc=False):
    """More of a text part."""

    type: ClassVar[Literal["text_delta"]] = "text_delta"
    delta: str
    """The next piece of the text."""


class TextEnd(_SegmentEvent, frozen=True, kw_only=True, tag="text_end"):
    """A complete text part."""

    type: ClassVar[Literal["text_end"]] = "text_end"
    part: Text
    """The whole part."""


class ReasoningStart(_SegmentEvent, frozen=True, kw_only=True, tag="reasoning_start"):
    """A thinking part begins."""

    type: ClassVar[Literal["reasoning_start"]] = "reasoning_start"
    extra: Extra = {}
    """Fields of the wire without a canonical place, by dialect."""


class ReasoningDelta(_SegmentEvent, frozen=True, kw_only=True, tag="reasoning_delta", gc=False):
    """More of a thinking part."""

    type: ClassVar[Literal["reasoning_delta"]] = "reasoning_delta"
    delta: str
    """The next piece of the visible thinking."""


class ReasoningEnd(_SegmentEvent, frozen=True, kw_only=True, tag="reasoning_end"):
    """A complete thinking part, with its signature."""

    type: ClassVar[Literal["reasoning_end"]] = "reasoning_end"
    part: Thinking
    """The whole part, with its signature."""


class ToolCallStart(_SegmentEvent, frozen=True, kw_only=True, tag="tool_call_start"):
    """A tool call begins."""

    type: ClassVar[Literal["tool_call_start"]] = "tool_call_start"
    tool_call_id: str
    """The id of the call, which its result must have too."""
    name: str
    """The name of the tool."""
    tool_type: ToolType = "function"
    """The type of the tool, as in `ToolDefinition.type`."""
    namespace: str | None = None
    """The group of tools that the called one belongs to."""
    extra: Extra = {}
    """Fields of the wire without a canonical place, by dialect."""


class ToolCallDelta(_SegmentEvent, frozen=True, kw_only=True, tag="tool_call_delta", gc=False):
    """A fragment of the argument text, unchanged."""

    type: ClassVar[Literal["tool_call_delta"]] = "tool_call_delta"
    delta: str
    """The next piece of the text of the arguments."""


class ToolCallEnd(_SegmentEvent, frozen=True, kw_only=True, tag="tool_call_end"):
    """A complete tool call; `is_valid` is False if the argument text is not a JSON object."""

    type: ClassVar[Literal["tool_call_end"]] = "tool_call_end"
    tool_call: ToolCall
    """The whole call."""


class ProviderEvent(_Event, frozen=True, kw_only=True, tag="provider_event"):
    """A wire event without a canonical form, verbatim; it may also add a part to the answer."""

    type: ClassVar[Literal["provider_event"]] = "provider_event"
    dialect: str = ""
    """The dialect of the stream."""
    data: UncheckedJson = None
    """The event, unchanged."""
    name: str | None = None
    """The name of the event, if it has one."""
    part: Part | None = None
    """The part that it adds: one without deltas, such as an opaque block, a refusal, an image."""
    index: int | None = None
    """The place of that part in the answer."""


class ToolResultEvent(_Event, frozen=True, kw_only=True, tag="tool_result"):
    """A tool that the run called has ended; sent as each one ends, before `StepFinish`."""

    type: ClassVar[Literal["tool_result"]] = "tool_result"
    result: ToolResult
    """The result, as it is sent to the model."""


class StepStart(_Event, frozen=True, kw_only=True, tag="step_start"):
    """A step of a run begins: the model is asked, and the tools that it calls are run."""

    type: ClassVar[Literal["step_start"]] = "step_start"
    step: int
    """The number of the step, from 0."""


class StepFinish(_Event, frozen=True, kw_only=True, tag="step_finish"):
    """A step of a run has ended, and another follows; the last step ends with `Finish`."""

    type: ClassVar[Literal["step_finish"]] = "step_finish"
    step: int
    """The number of the step, from 0."""
    response: Response
    """The answer of the step."""


class ErrorEvent(_Event, frozen=True, kw_only=True, tag="error"):
    """The stream failed; the error is raised after `Finish`."""

    type: ClassVar[Literal["error"]] = "error"
    error: SDKError
    """The error, which is raised after `Finish`."""
    response: Response | None = None
    """What had arrived before."""


class Finish(_Event, frozen=True, kw_only=True, tag="finish"):
    """The stream has ended."""

    type: ClassVar[Literal["finish"]] = "finish"
    finish_reason: FinishReason
    """Why generation ended."""
    usage: Usage = Usage()
    """The tokens of the call; of a run, those of all its steps."""
    cost: Cost | None = None
    """What the call or the run cost; None if a price is unknown."""
    warnings: tuple[Warning, ...] = ()
    """The warnings about the end of the answer; those about the request are in `StreamStart`."""
    response: Response | None = None
    """
    The whole response; callers and middleware always get it.

    A decoder sets it only if the last wire event contains it.
    """
    latency_ms: float | None = None
    """The time since the request was sent."""
    extra: Extra = {}
    """Fields of the response that are known only at the end, by dialect name."""
    citations: Mapping[int, tuple[Citation, ...]] = {}
    """Citations that are known only at the end, by the index of their text."""
    logprobs: Mapping[int, tuple[TokenLogprob, ...]] = {}
    """Probabilities of tokens that are known only at the end, by the index of their part."""
    message_extra: Extra = {}
    """Fields of the message that are known only at the end."""
    raw: UncheckedJson = None
    """The data of all wire events, if the request asked for it with `keep_raw`."""


StreamEvent: TypeAlias = (
    StreamStart
    | StreamRestart
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
    | ToolResultEvent
    | StepStart
    | StepFinish
    | ErrorEvent
    | Finish
)
"""Any event of a stream; `event.type` says which one it is."""
