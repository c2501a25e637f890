"""Makes the calls of an answer ready to be run: checked, mended if need be, and allowed."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeAlias

import msgspec

from interlingua.api.tools.binding import copied
from interlingua.api.tools.tool import Tool
from interlingua.api.types.problems import list_problems
from interlingua.spec.content import ToolCall
from interlingua.spec.errors import ConfigurationError, InvalidToolCallError, SDKError

RepairToolCall: TypeAlias = Callable[
    [ToolCall, InvalidToolCallError], "ToolCall | Awaitable[ToolCall | None] | None"
]
"""Mends a call whose arguments do not fit; None if it cannot."""

_LONGEST = 2_000  # characters of broken arguments that the model is shown
_LOG = logging.getLogger("interlingua")


class ReadyCall(msgspec.Struct, frozen=True, kw_only=True):
    """A call as it would be run."""

    call: ToolCall
    """With the arguments that its tool will be given."""
    tool: Tool | None = None
    values: Mapping[str, Any] | None = None
    """Those arguments as the types of its function, if it has any."""
    error: Exception | None = None
    """Why it cannot be run, for the model."""
    waits: bool = False
    """It needs approval first."""


async def prepare(
    calls: Sequence[ToolCall], tools: Mapping[str, Tool], repair: RepairToolCall | None = None
) -> tuple[ReadyCall, ...]:
    """
    Each call, in its place, as it would be run.

    Whether it needs approval is asked last, of the arguments that will be executed; one that
    does not fit its tool never does, as it goes back to the model.
    """
    return tuple(await asyncio.gather(*(_prepare(call, tools, repair) for call in calls)))


def decide(ready: Sequence[ReadyCall], decisions: Mapping[str, bool]) -> tuple[ReadyCall, ...]:
    """The calls with the decisions about them; each that waits needs one of its own."""
    times = Counter(item.call.id for item in ready)
    for item in ready:
        if item.call.id in decisions and times[item.call.id] > 1:
            raise ConfigurationError(
                f"two calls have the id {item.call.id!r}: approvals cannot tell them apart"
            )
    undecided = [item.call.id for item in ready if item.waits and item.call.id not in decisions]
    if undecided:
        known = ", ".join(undecided)
        raise ConfigurationError(
            f"approvals say nothing about {known}: pass approvals={{id: True or False}} for each"
        )
    return tuple(_decided(item, decisions) for item in ready)


def _decided(item: ReadyCall, decisions: Mapping[str, bool]) -> ReadyCall:
    error = item.error
    if decisions.get(item.call.id) is False:
        error = SDKError("the user did not allow this call")
    return msgspec.structs.replace(item, error=error, waits=False)


async def _prepare(
    call: ToolCall, tools: Mapping[str, Tool], repair: RepairToolCall | None
) -> ReadyCall:
    tool = tools.get(call.name)
    if tool is None or tool.execute is None:
        known = ", ".join(tools) or "none"
        error = InvalidToolCallError(f"unknown tool {call.name!r}; there are: {known}")
        return ReadyCall(call=call, error=error)
    try:
        values, problem = _read(call, tool)
        if problem is not None:
            mended = None if repair is None else await _mended(call, problem, tool, repair)
            if mended is None:
                return ReadyCall(call=call, tool=tool, error=problem)
            call, values = mended
    except Exception as error:  # noqa: BLE001 -- whatever a type's own checks raise
        return ReadyCall(call=call, tool=tool, error=error)
    waits = await _needs_approval(call, tool)
    return ReadyCall(call=call, tool=tool, values=values, waits=waits)


def _read(
    call: ToolCall, tool: Tool
) -> tuple[Mapping[str, Any] | None, InvalidToolCallError | None]:
    """The arguments as the types of the function, and why they do not fit."""
    if not call.is_valid:
        raw = call.raw_arguments or ""
        shown = raw if len(raw) <= _LONGEST else f"{raw[:_LONGEST]} …"
        return None, InvalidToolCallError(f"the arguments are not a JSON object: {shown}")
    values, problems = tool.read(call.arguments)
    if not problems:
        return values, None
    text = f"the arguments do not fit the schema: {list_problems(problems)}"
    return None, InvalidToolCallError(text)


async def _mended(
    call: ToolCall, problem: InvalidToolCallError, tool: Tool, repair: RepairToolCall
) -> tuple[ToolCall, Mapping[str, Any] | None] | None:
    """The call with other arguments, if the program's own function makes any that fit."""
    try:
        mended: Any = repair(call, problem)  # a program without a type checker gives anything
        if inspect.isawaitable(mended):
            mended = await mended
    except Exception:  # noqa: BLE001 -- the model has no part in it: who wrote it is told
        _LOG.warning("repair_tool_call failed on a call of %r", call.name, exc_info=True)
        return None
    if mended is None:
        return None
    if not isinstance(mended, ToolCall):
        kind = type(mended).__name__
        _LOG.warning("repair_tool_call gave a %s for a call of %r", kind, call.name)
        return None
    fitting = msgspec.structs.replace(call, arguments=mended.arguments, raw_arguments=None)
    values, remaining = _read(fitting, tool)
    if remaining is not None:
        _LOG.warning("repair_tool_call gave a call of %r that does not fit either", call.name)
        return None
    return fitting, values


async def _needs_approval(call: ToolCall, tool: Tool) -> bool:
    needs = tool.needs_approval
    if not callable(needs):
        return bool(needs)
    try:
        said = needs(copied(call.arguments))
        return bool(await said if inspect.isawaitable(said) else said)
    except Exception:  # noqa: BLE001 -- nobody knows, so somebody has to look
        _LOG.warning("needs_approval of the tool %r failed", tool.name, exc_info=True)
        return True
