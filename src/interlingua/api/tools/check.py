"""Prepares the tool calls of a response: validation, repair and approval."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeAlias

import msgspec

from interlingua.api.tools.binding import copied
from interlingua.api.tools.limits import describe_unknown
from interlingua.api.tools.tool import Tool
from interlingua.api.types.schema import list_problems
from interlingua.spec.content import ToolCall, argument_problem
from interlingua.spec.errors import ConfigurationError, InvalidToolCallError, SDKError

RepairToolCall: TypeAlias = Callable[
    [ToolCall, InvalidToolCallError], ToolCall | Awaitable[ToolCall | None] | None
]
"""Repairs a tool call with invalid arguments; returns None if it cannot."""

_MAX_QUOTED = 2_000  # characters of invalid arguments in the message to the model
_LOG = logging.getLogger("interlingua")


class ReadyCall(msgspec.Struct, frozen=True, kw_only=True):
    """A tool call that is ready to run, or the reason why it cannot."""

    call: ToolCall
    """The tool call, with the arguments that the tool will get."""
    tool: Tool | None = None
    values: Mapping[str, Any] | None = None
    """The arguments converted to the types of the function, if it has any."""
    error: Exception | None = None
    """Why the tool call cannot run; it is sent to the model."""
    waits: bool = False
    """Whether the tool call needs an approval before it runs."""


async def prepare(
    calls: Sequence[ToolCall], tools: Mapping[str, Tool], repair: RepairToolCall | None = None
) -> tuple[ReadyCall, ...]:
    """
    Validate and repair the calls, and find out which of them need approval.

    `needs_approval` gets the arguments that will be used. It is not asked about an invalid call,
    which goes back to the model.
    """
    return tuple(await asyncio.gather(*(_prepare(call, tools, repair) for call in calls)))


def decide(ready: Sequence[ReadyCall], decisions: Mapping[str, bool]) -> tuple[ReadyCall, ...]:
    """Apply the decisions; every call that waits for approval needs one."""
    counts = Counter(item.call.id for item in ready)
    for item in ready:
        if item.call.id in decisions and counts[item.call.id] > 1:
            raise ConfigurationError(
                f"Two tool calls have the id {item.call.id!r}, so an approval of it is ambiguous."
            )
    undecided = [item.call.id for item in ready if item.waits and item.call.id not in decisions]
    if undecided:
        raise ConfigurationError(
            f"No approval was given for {', '.join(undecided)}. Pass "
            "approvals={id: True or False} with every id."
        )
    return tuple(_decided(item, decisions) for item in ready)


def _decided(item: ReadyCall, decisions: Mapping[str, bool]) -> ReadyCall:
    error = item.error
    if decisions.get(item.call.id) is False:
        error = SDKError("The user did not approve this tool call.")
    return msgspec.structs.replace(item, error=error, waits=False)


async def _prepare(
    call: ToolCall, tools: Mapping[str, Tool], repair: RepairToolCall | None
) -> ReadyCall:
    tool = tools.get(call.name)
    if tool is None or tool.execute is None:
        error = InvalidToolCallError(describe_unknown(call.name, list(tools)))
        return ReadyCall(call=call, error=error)
    try:
        values, problem = _read(call, tool)
        if problem is not None:
            repaired = None if repair is None else await _repair(call, problem, tool, repair)
            if repaired is None:
                return ReadyCall(call=call, tool=tool, error=problem)
            call, values = repaired
    except Exception as error:  # noqa: BLE001 -- a type's own validation may raise anything
        return ReadyCall(call=call, tool=tool, error=error)
    waits = await _needs_approval(call, tool)
    return ReadyCall(call=call, tool=tool, values=values, waits=waits)


def _read(
    call: ToolCall, tool: Tool
) -> tuple[Mapping[str, Any] | None, InvalidToolCallError | None]:
    """The arguments as the types of the function, and why they do not fit."""
    if not call.is_valid:
        raw = call.raw_arguments or ""
        if not raw:
            return None, InvalidToolCallError("The answer ended before the arguments of the call.")
        quoted = raw if len(raw) <= _MAX_QUOTED else f"{raw[:_MAX_QUOTED]} …"
        reason = argument_problem(raw)
        return None, InvalidToolCallError(f"The arguments are {reason}: {quoted}")
    values, problems = tool.read(call.arguments)
    if not problems:
        return values, None
    text = f"The arguments do not match the schema: {list_problems(problems)}."
    return None, InvalidToolCallError(text)


async def _repair(
    call: ToolCall, problem: InvalidToolCallError, tool: Tool, repair: RepairToolCall
) -> tuple[ToolCall, Mapping[str, Any] | None] | None:
    """The call with arguments from the caller's repair function, if they are valid."""
    try:
        repaired: object = repair(call, problem)  # untyped programs may return anything
        if inspect.isawaitable(repaired):
            repaired = await repaired
    except Exception:  # noqa: BLE001 -- logged for the programmer; the model cannot fix it
        _LOG.warning("repair_tool_call failed for a call of %r", call.name, exc_info=True)
        return None
    if repaired is None:
        return None
    if not isinstance(repaired, ToolCall):
        kind = type(repaired).__name__
        _LOG.warning("repair_tool_call returned a %s for a call of %r", kind, call.name)
        return None
    call = msgspec.structs.replace(call, arguments=repaired.arguments, raw_arguments=None)
    values, remaining = _read(call, tool)
    if remaining is not None:
        _LOG.warning("repair_tool_call returned invalid arguments for a call of %r", call.name)
        return None
    return call, values


async def _needs_approval(call: ToolCall, tool: Tool) -> bool:
    needs = tool.needs_approval
    if not callable(needs):
        return bool(needs)
    try:
        answer = needs(copied(call.arguments))
        return bool(await answer if inspect.isawaitable(answer) else answer)
    except Exception:  # noqa: BLE001 -- if unknown, ask for approval
        _LOG.warning("needs_approval of the tool %r failed", tool.name, exc_info=True)
        return True
