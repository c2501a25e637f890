"""What a run returns: its steps, and the sums over them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import reduce
from operator import add
from typing import Any, Generic, TypeVar

import msgspec

from interlingua.spec.content import ToolCall, ToolResult
from interlingua.spec.errors import SDKError
from interlingua.spec.messages import Message
from interlingua.spec.response import (
    Cost,
    FinishReason,
    Response,
    Usage,
    Warning,
    sum_costs,
    summarize,
)

Output = TypeVar("Output")
_CUT = ("cancelled", "error")


class StepResult(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, repr_omit_defaults=True
):
    """One model call and the results of its tool calls."""

    response: Response
    """The answer of the model."""
    tool_results: tuple[ToolResult, ...] = ()
    """The results of its tool calls, in the order of the calls."""
    tool_errors: Mapping[str, Exception] = {}
    """Why tool calls failed, by call id: the exceptions themselves."""

    def __repr__(self) -> str:
        return summarize(
            self,
            text=self.text,
            reasoning=self.reasoning,
            tool_calls=[call.name for call in self.tool_calls],
            tool_results=[result.content for result in self.tool_results],
            tool_errors=[type(error).__name__ for error in self.tool_errors.values()],
            finish_reason=self.finish_reason.reason,
            input_tokens=self.usage.input_tokens,
            output_tokens=self.usage.output_tokens,
            warnings=[warning.code for warning in self.warnings],
        )

    @property
    def text(self) -> str:
        """The text of the answer."""
        return self.response.text

    @property
    def reasoning(self) -> str | None:
        """The visible reasoning of the answer."""
        return self.response.reasoning

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The tool calls of the answer."""
        return tuple(self.response.tool_calls)

    @property
    def finish_reason(self) -> FinishReason:
        """Why the answer ended."""
        return self.response.finish_reason

    @property
    def usage(self) -> Usage:
        """The tokens of the call."""
        return self.response.usage

    @property
    def cost(self) -> Cost | None:
        """The cost of the call and of its failed attempts; None if the price of one is unknown."""
        return sum_costs(costs_of(self.response))

    @property
    def warnings(self) -> tuple[Warning, ...]:
        """What was changed or lost in the request."""
        return self.response.warnings


class GenerateResult(
    msgspec.Struct,
    Generic[Output],
    frozen=True,
    kw_only=True,
    omit_defaults=True,
    repr_omit_defaults=True,
):
    """
    The result of a run: all its steps; the properties are those of the last one.

    `print(result)` shows the text, and the tokens and the cost of the run on a line of their own.
    """

    steps: tuple[StepResult, ...]
    """The calls of the model, each with the results of its tools."""
    messages: tuple[Message, ...] = ()
    """The whole conversation with the answer and the tool results, to continue with."""
    pending_approvals: tuple[ToolCall, ...] = ()
    """Calls that need approval: continue with `resume=` and `approvals={call.id: True}`."""
    failed_usage: Usage | None = None
    """The tokens of answers that failed before the run was resumed; they are in no step."""
    failed_costs: tuple[Cost | None, ...] = ()
    """The costs of these answers; None for an unknown price."""
    output: Output = None  # type: ignore[assignment]
    """The object of `generate_object`."""

    def __repr__(self) -> str:
        usage = self.total_usage if self.steps else Usage()
        return summarize(
            self,
            text=self.text if self.steps else "",
            output=self.output,
            tool_calls=[call.name for call in self.tool_calls] if self.steps else (),
            finish_reason=self.finish_reason.reason if self.steps else None,
            steps=len(self.steps),
            messages=len(self.messages),
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            pending_approvals=[call.name for call in self.pending_approvals],
            warnings=list(dict.fromkeys(warning.code for warning in self.warnings)),
        )

    def __str__(self) -> str:
        if not self.steps:
            return ""
        usage, cost = self.total_usage, self.total_cost
        about = "about " if usage.estimated else ""
        tokens = f"{about}{usage.input_tokens} tokens in, {usage.output_tokens} out"
        return f"{self.text}\n[{tokens}; {'cost unknown' if cost is None else cost}]"

    @property
    def response(self) -> Response:
        """The last response."""
        return self.steps[-1].response

    @property
    def text(self) -> str:
        """The text of the last step."""
        return self.steps[-1].text

    @property
    def reasoning(self) -> str | None:
        """The reasoning of the last step."""
        return self.steps[-1].reasoning

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The tool calls of the last step."""
        return self.steps[-1].tool_calls

    @property
    def tool_results(self) -> tuple[ToolResult, ...]:
        """The tool results of the last step."""
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
        """The tokens of all steps, and of answers that failed before the run was resumed."""
        return sum_usage(self.steps, self.failed_usage)

    @property
    def cost(self) -> Cost | None:
        """The cost of the last step."""
        return self.steps[-1].cost

    @property
    def total_cost(self) -> Cost | None:
        """
        What the run cost: all steps, failed attempts, and answers that failed before.

        None if the price of any of them is unknown, because the sum would be too small.
        """
        costs = [cost for step in self.steps for cost in costs_of(step.response)]
        return sum_costs((*costs, *self.failed_costs))

    @property
    def warnings(self) -> tuple[Warning, ...]:
        """The warnings of all steps."""
        return tuple(warning for step in self.steps for warning in step.warnings)


def sum_usage(answers: Iterable[StepResult | Response], failed: Usage | None) -> Usage:
    """The tokens of these answers, and of failed ones."""
    usages = [answer.usage for answer in answers]
    return reduce(add, usages if failed is None else [*usages, failed])


def costs_of(response: Response) -> list[Cost | None]:
    """What a call was paid for: its answer, and other attempts that reported usage."""
    cost, others = response.cost, response.attempts
    if cost is None or cost.source != "cache":
        others = others[:-1]  # the last one made the answer
    costs = [each.cost for each in others if each.usage is not None]
    # A call that was cancelled before anything arrived has used nothing, at any price.
    has_used = response.usage.total_tokens or response.finish_reason.reason not in _CUT
    return [cost, *costs] if has_used or cost is not None else costs


def failed_costs_of(resumed: object, failed: Usage | None) -> tuple[Cost | None, ...]:
    """The costs of a run that are in none of its steps; `failed` is its usage of that kind."""
    if not isinstance(resumed, SDKError):
        costs: tuple[Cost | None, ...] = getattr(resumed, "failed_costs", ())
        return costs
    steps = resumed.steps or ()
    known = sum_costs(cost for step in steps for cost in costs_of(step.response))
    total = resumed.total_cost
    if total is None or (known is None and steps):
        return (None,) if failed is not None else ()
    rest = total if known is None else total - known
    return (rest,) if rest.total else ()


def failed_usage_of(resumed: object) -> Usage | None:
    """The tokens of a run that are in none of its steps."""
    if not isinstance(resumed, SDKError):
        usage: Usage | None = getattr(resumed, "failed_usage", None)
        return usage
    total, steps = resumed.total_usage, resumed.steps
    if total is None or not steps:
        return total
    known = sum_usage(steps, None)
    rest: dict[str, Any] = {
        name: value - (getattr(known, name) or 0)
        for name, value in msgspec.structs.asdict(total).items()
        if type(value) is int
    }
    return Usage(**rest, estimated=total.estimated) if any(rest.values()) else None
