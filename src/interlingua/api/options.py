"""The parameters that the high-level functions share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal, TypeAlias, TypedDict

import msgspec

from interlingua.api.abort import AbortSignal
from interlingua.api.loop import StopCondition
from interlingua.api.running import RepairToolCall, ToolObserver
from interlingua.api.tools import Tool
from interlingua.client.client import Client
from interlingua.client.retry import RetryPolicy
from interlingua.spec.errors import ConfigurationError
from interlingua.spec.messages import Message
from interlingua.spec.request import ResponseFormat, ToolChoice, ToolSpec

AnyTool: TypeAlias = Tool | ToolSpec


class TimeoutConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds: for everything, retries and tools included, and for one call of the model."""

    total: float | None = None
    per_step: float | None = None


class RequestOptions(TypedDict, total=False):
    """What is said to the model. Left out is not said; 0, 0.0 and "" are values."""

    system: str | None
    messages: Iterable[Message | str] | None
    tools: Iterable[AnyTool] | None
    tool_choice: ToolChoice | str | None
    parallel_tool_calls: bool | None
    response_format: ResponseFormat | None
    temperature: float | None
    top_p: float | None
    top_k: int | None
    max_tokens: int | None
    stop_sequences: Iterable[str] | None
    seed: int | None
    frequency_penalty: float | None
    presence_penalty: float | None
    reasoning_effort: str | None
    thinking_budget: int | None
    verbosity: str | None
    user: str | None
    metadata: Mapping[str, Any] | None
    provider: str | None
    provider_options: Mapping[str, Any]


class RunOptions(RequestOptions, total=False):
    """And how it is done."""

    max_tool_rounds: int
    """How often the calls of an answer are run and sent back; 1 unless said."""
    stop_when: StopCondition | None
    repair_tool_call: RepairToolCall | None
    tool_timeout: float | None
    max_concurrent_tools: int | None
    approvals: Mapping[str, bool] | None
    """Decisions about `result.pending`, by the id of the call."""
    tool_observer: ToolObserver | None
    on_overflow: Literal["raise", "truncate"]
    """What to do when the history is too long: tell, or leave out its oldest turns, once."""
    max_retries: int
    """Retries of each call of the model; 2 unless said."""
    retry_policy: RetryPolicy | None
    timeout: float | TimeoutConfig | None
    abort_signal: AbortSignal | None


class GenerateOptions(RunOptions, total=False):
    """And by whom."""

    client: Client | None


_DOING = frozenset(GenerateOptions.__annotations__) - frozenset(RequestOptions.__annotations__)
_CONVERSATION = frozenset(("system", "messages", "tools"))


def request_fields(options: Mapping[str, Any]) -> dict[str, Any]:
    """Of the options, those that are fields of a request, as said."""
    return {
        name: value
        for name, value in options.items()
        if name not in _DOING and name not in _CONVERSATION and value is not None
    }


def check_options(options: Mapping[str, Any]) -> None:
    """Refuse what no option is called; a caller without a type checker may mistype one."""
    known = {*GenerateOptions.__annotations__, *RequestOptions.__annotations__}
    for name in options:
        if name not in known:
            raise ConfigurationError(f"unknown option {name!r}")


def timeouts_of(given: float | TimeoutConfig | None) -> TimeoutConfig:
    """A number is the time for everything."""
    if isinstance(given, TimeoutConfig):
        return given
    return TimeoutConfig(total=given)


def policy_of(options: Mapping[str, Any]) -> RetryPolicy:
    """The policy given, or the usual one with as many retries as given."""
    policy: RetryPolicy | None = options.get("retry_policy")
    if policy is not None:
        return policy
    return RetryPolicy(max_retries=options.get("max_retries", 2))
