"""What the high-level functions give back."""

from __future__ import annotations

from functools import reduce
from operator import add
from typing import Generic, TypeVar

import msgspec

from interlingua.spec.content import ToolCall, ToolResult
from interlingua.spec.messages import Message
from interlingua.spec.response import FinishReason, Response, Usage, Warning

Output = TypeVar("Output")


class StepResult(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, repr_omit_defaults=True
):
    """One call of the model, and what its tools gave."""

    response: Response
    tool_results: tuple[ToolResult, ...] = ()

    @property
    def text(self) -> str:
        """What it said."""
        return self.response.text

    @property
    def reasoning(self) -> str | None:
        """What it thought."""
        return self.response.reasoning

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """What it called."""
        return tuple(self.response.tool_calls)

    @property
    def finish_reason(self) -> FinishReason:
        """Why it ended."""
        return self.response.finish_reason

    @property
    def usage(self) -> Usage:
        """Its tokens."""
        return self.response.usage

    @property
    def warnings(self) -> tuple[Warning, ...]:
        """What could not be said to it."""
        return self.response.warnings


class GenerateResult(
    msgspec.Struct,
    Generic[Output],
    frozen=True,
    kw_only=True,
    omit_defaults=True,
    repr_omit_defaults=True,
):
    """The last step, and all steps that led to it."""

    steps: tuple[StepResult, ...]
    messages: tuple[Message, ...] = ()
    """The whole conversation, the answer and the tools' results included: ready to go on."""
    pending_approvals: tuple[ToolCall, ...] = ()
    """Calls that wait for approval: go on with `messages` and `approvals={call.id: True}`."""
    output: Output = None  # type: ignore[assignment]
    """The object, of `generate_object`."""

    @property
    def response(self) -> Response:
        """The last response."""
        return self.steps[-1].response

    @property
    def text(self) -> str:
        """What the model said last."""
        return self.steps[-1].text

    @property
    def reasoning(self) -> str | None:
        """What it thought last."""
        return self.steps[-1].reasoning

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The calls of the last step."""
        return self.steps[-1].tool_calls

    @property
    def tool_results(self) -> tuple[ToolResult, ...]:
        """The results of the last step."""
        return self.steps[-1].tool_results

    @property
    def finish_reason(self) -> FinishReason:
        """Why the last step ended."""
        return self.steps[-1].finish_reason

    @property
    def usage(self) -> Usage:
        """The tokens of the last step."""
        return self.steps[-1].usage

    @property
    def total_usage(self) -> Usage:
        """The tokens of all steps."""
        return reduce(add, (step.usage for step in self.steps))

    @property
    def warnings(self) -> tuple[Warning, ...]:
        """What could not be said, in any step."""
        return tuple(warning for step in self.steps for warning in step.warnings)
