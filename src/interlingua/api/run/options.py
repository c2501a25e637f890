"""The parameters that the high-level functions share."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from math import isfinite
from typing import Any, Literal, TypeAlias, TypedDict, get_args

import msgspec

from interlingua.api.run.loop import StopCondition
from interlingua.api.tools.check import RepairToolCall
from interlingua.api.tools.runner import ToolObserver
from interlingua.api.tools.tool import Tool
from interlingua.client.client import Client
from interlingua.client.retry_policy import DEFAULT_POLICY, RetryPolicy
from interlingua.providers.cancel import AbortSignal
from interlingua.spec.errors import ConfigurationError
from interlingua.spec.messages import Message
from interlingua.spec.request import OnLoss, ResponseFormat, ToolChoice, ToolChoiceMode, ToolSpec

AnyTool: TypeAlias = Tool | ToolSpec


class TimeoutConfig(msgspec.Struct, frozen=True, kw_only=True):
    """
    Seconds: for everything, retries and tools included, and for one call of the model.

    The time that the reader of a stream takes between two events is not counted.
    """

    total: float | None = None
    per_step: float | None = None


class RequestOptions(TypedDict, total=False):
    """What is said to the model. Left out is not said; 0, 0.0 and "" are values."""

    system: str | None
    messages: Iterable[Message | str | Mapping[str, Any]] | None
    """Ours, what the user says, or the JSON form of a `Message`."""
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
    on_loss: OnLoss | None
    """Which losses raise `UnsupportedError`; see `Request.on_loss`."""
    request_id: str | None
    """The id of the run, for `client.cancel(id)`; made if it is not given."""


class RunOptions(RequestOptions, total=False):
    """And how it is done."""

    max_tool_rounds: int
    """How often the calls of an answer are run and sent back; 1 unless said."""
    stop_when: StopCondition | None
    repair_tool_call: RepairToolCall | None
    tool_timeout: float | None
    max_concurrent_tools: int | None
    approvals: Mapping[str, bool] | None
    """
    Decisions about `result.pending_approvals`, by the id of the call.

    They hold for the calls that `messages` end with, and for no later one.
    """
    tool_observer: ToolObserver | None
    on_overflow: Literal["raise", "truncate"]
    """
    What to do when the history is too long: raise, or leave out its oldest turns, once.

    They are only not sent: the result has them, and a warning.
    """
    max_retries: int
    """Retries of each call of the model; 2 unless said."""
    retry_policy: RetryPolicy | None
    """How to try again, instead of `max_retries`."""
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
    """Refuse what is no option, and values that cannot be one; not everybody has a checker."""
    for name, value in options.items():
        if name not in _WANTED:
            raise ConfigurationError(f"unknown option {name!r}")
        fits, wanted = _WANTED[name]
        if not fits(value):
            raise ConfigurationError(f"{name} must be {wanted}, not {_shown(value)}")
    if options.get("retry_policy") is not None and "max_retries" in options:
        raise ConfigurationError("pass either max_retries or retry_policy, and not both")


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
    if "max_retries" in options:
        return RetryPolicy(max_retries=options["max_retries"])
    return DEFAULT_POLICY


_Check: TypeAlias = tuple[Callable[[Any], bool], str]


def _maybe(check: _Check) -> _Check:
    fits, wanted = check
    return (lambda value: value is None or fits(value)), wanted


def _a(kind: type | tuple[type, ...], wanted: str) -> _Check:
    return (lambda value: isinstance(value, kind)), wanted


def _is_number(value: Any) -> bool:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return is_number and isfinite(value)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_time(value: Any) -> bool:
    if isinstance(value, TimeoutConfig):
        return all(given is None or _is_time(given) for given in (value.total, value.per_step))
    return _is_number(value) and value >= 0


def _is_list(value: Any) -> bool:
    # a mapping or a text can be walked, but is no list of anything
    return isinstance(value, Iterable) and not isinstance(value, (str, bytes, Mapping, Tool))


def _are_texts(value: Any) -> bool:
    if not isinstance(value, Collection):
        return _is_list(value)  # looked at, it would be used up
    return _is_list(value) and all(isinstance(item, str) for item in value)


def _are_decisions(value: Any) -> bool:
    return isinstance(value, Mapping) and all(
        isinstance(name, str) and isinstance(said, bool) for name, said in value.items()
    )


def _is_choice(value: Any) -> bool:
    modes = get_args(ToolChoiceMode)
    return isinstance(value, str) or (isinstance(value, ToolChoice) and value.mode in modes)


def _is_observer(value: Any) -> bool:
    return callable(getattr(value, "on_tool_start", None))


def _shown(value: Any) -> str:
    said = repr(value)
    return said if len(said) <= _LONGEST else f"a {type(value).__name__}"


_LONGEST = 60
_TEXT = _a(str, "text")
_NUMBER: _Check = (_is_number, "a number")
_WHOLE: _Check = (lambda value: _is_number(value) and isinstance(value, int), "a whole number")
_COUNT: _Check = (_is_count, "a whole number from 0 up")
_MAPPING = _a(Mapping, "a mapping")
_FUNCTION: _Check = (callable, "a function")
_ANYTHING: _Check = (lambda _: True, "")

_WANTED: dict[str, _Check] = {
    "system": _maybe(_TEXT),
    "messages": _ANYTHING,  # prompt.py says which one is wrong
    "tools": _maybe((_is_list, "a list of tools, such as [it]")),
    "tool_choice": _maybe(
        (_is_choice, "'auto', 'none', 'required', a tool's name or a ToolChoice")
    ),
    "parallel_tool_calls": _maybe(_a(bool, "True or False")),
    "response_format": _maybe(_a(ResponseFormat, "a ResponseFormat")),
    "temperature": _maybe(_NUMBER),
    "top_p": _maybe(_NUMBER),
    "top_k": _maybe(_WHOLE),
    "max_tokens": _maybe(_WHOLE),
    "stop_sequences": _maybe((_are_texts, "a list of texts")),
    "seed": _maybe(_WHOLE),
    "frequency_penalty": _maybe(_NUMBER),
    "presence_penalty": _maybe(_NUMBER),
    "reasoning_effort": _maybe(_TEXT),
    "thinking_budget": _maybe(_WHOLE),
    "verbosity": _maybe(_TEXT),
    "user": _maybe(_TEXT),
    "on_loss": _maybe((lambda value: value in get_args(OnLoss), "'content', 'strict' or 'warn'")),
    "metadata": _maybe(_MAPPING),
    "provider": _maybe(_TEXT),
    "provider_options": _maybe(_MAPPING),
    "request_id": _maybe(_TEXT),
    "max_tool_rounds": _COUNT,
    "stop_when": _maybe(_FUNCTION),
    "repair_tool_call": _maybe(_FUNCTION),
    "tool_timeout": _maybe(_NUMBER),
    "max_concurrent_tools": _maybe(_WHOLE),
    "approvals": _maybe((_are_decisions, "a mapping of ids to True or False")),
    "tool_observer": _maybe((_is_observer, "a ToolObserver")),
    "on_overflow": ((lambda value: value in ("raise", "truncate")), "'raise' or 'truncate'"),
    "max_retries": _COUNT,
    "retry_policy": _maybe(_a(RetryPolicy, "a RetryPolicy")),
    "timeout": _maybe((_is_time, "seconds from 0 up or a TimeoutConfig")),
    "abort_signal": _maybe(_a(AbortSignal, "an AbortSignal (of a controller, its `.signal`)")),
    "client": _maybe(_a(Client, "an interlingua.Client (of a blocking one, its `.asynchronous`)")),
}
