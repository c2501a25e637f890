"""Limits of a run: how many requests, tokens, dollars and tool calls it may take."""

from __future__ import annotations

import msgspec

from interlingua.spec.errors import ConfigurationError, RunLimitError
from interlingua.spec.response import Cost, Usage


class RunLimits(msgspec.Struct, frozen=True, kw_only=True):
    """
    What a run may take before it ends with `RunLimitError`. None is unlimited.

        await generate(model, prompt, tools=tools, limits=RunLimits(max_requests=10, max_cost=0.5))

    The error has the steps and messages so far: `resume=` goes on with other limits. A run that is
    resumed counts what it took before.
    """

    max_requests: int | None = None
    """The number of model calls; attempts of one call count once."""
    max_tokens: int | None = None
    """Input and output tokens of all model calls together."""
    max_cost: float | None = None
    """Dollars. If the price of a model is unknown, the run ends after its first answer."""
    max_tool_calls: int | None = None
    """The number of tool calls. A round of calls that would pass it is not run at all."""

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            limit = getattr(self, name)
            kinds = (int, float) if name == "max_cost" else int
            is_number = isinstance(limit, kinds) and not isinstance(limit, bool)
            if limit is not None and not (is_number and limit >= 0):
                raise ConfigurationError(
                    f"RunLimits: {name} must be a number of 0 or more, not {limit!r:.60}."
                )

    def check_request(self, requests: int) -> None:
        """Raise `RunLimitError` if there may be no request after this many."""
        if self.max_requests is not None and requests >= self.max_requests:
            raise _passed("max_requests", self.max_requests, f"{requests} model calls were made")

    def check_answers(self, usage: Usage, cost: Cost | None, model: str) -> None:
        """Raise `RunLimitError` if the answers took more tokens or dollars than allowed."""
        tokens = usage.total_tokens
        if self.max_tokens is not None and tokens > self.max_tokens:
            raise _passed("max_tokens", self.max_tokens, f"{tokens} tokens were used")
        if self.max_cost is None:
            return
        if cost is None:
            raise RunLimitError(
                f"The limit `max_cost` cannot be kept: the price of {model} is unknown. "
                "Pass prices=, or leave `max_cost` out."
            )
        if cost.total > self.max_cost:
            raise _passed("max_cost", self.max_cost, f"${cost.total:.6f} was spent")

    def check_calls(self, before: int, new: int) -> None:
        """Raise `RunLimitError` if these tool calls are too many."""
        if self.max_tool_calls is not None and before + new > self.max_tool_calls:
            what = f"{before} tools were called, and the model calls {new} more"
            raise _passed("max_tool_calls", self.max_tool_calls, what)


def _passed(name: str, limit: float, what: str) -> RunLimitError:
    return RunLimitError(
        f"The run reached its limit {name}={limit:g}: {what}. To go on, pass higher limits= and "
        "resume= with this error; to the next turn of a Session, only the limits."
    )
