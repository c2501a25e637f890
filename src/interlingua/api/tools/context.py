"""What a tool may ask for besides its arguments, by the annotation of a parameter."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import UnionType
from typing import Annotated, Any, Generic, TypeAlias, TypeVar, Union, get_args, get_origin

from interlingua.api.types.reading import parameter_hints
from interlingua.runtime.callbacks import signature_of
from interlingua.runtime.cancel import AbortSignal
from interlingua.spec.content import ToolResult
from interlingua.spec.errors import ConfigurationError
from interlingua.spec.messages import Message

Deps = TypeVar("Deps")


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolContext(Generic[Deps]):
    """
    The run in which a tool is called: annotate a parameter with `ToolContext[Deps]` to get it.

    The model does not see that parameter. `Deps` is the type of the option `deps=`. A function
    for `system=` and an output validator get it too, without a tool; for middleware it is
    `request.context` if the run has `deps=`.
    """

    tool_call_id: str = ""
    """The id of the tool call; empty without a tool."""
    tool_name: str = ""
    """The name of the tool; empty without one."""
    messages: tuple[Message, ...]
    """The conversation up to the tool call."""
    abort_signal: AbortSignal
    """Set when the run is cancelled or the tool times out."""
    deps: Deps
    """The value of the option `deps=`; None by default."""

    @property
    def retry_count(self) -> int:
        """How many calls of this tool have failed one after another before this one."""
        failures = 0
        for message in reversed(self.messages):
            if message.role == "user":
                break
            results = (part for part in message.content if isinstance(part, ToolResult))
            outcomes = [part.is_error for part in results if part.name == self.tool_name]
            failures += sum(outcomes)
            if not all(outcomes):
                break
        return failures


class Retry(Exception):  # noqa: N818 -- it is a request to the model, not a failure
    """
    Raised by an output validator, or by a tool, to send the model back with a reason.

        def check(text: str) -> None:
            if "Oslo" not in text:
                raise Retry("Name the capital of Norway.")
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason: str = reason


ContextValue: TypeAlias = Callable[[ToolContext[Any]], Any]
"""Takes the value of one parameter from the context."""

_VALUES: Mapping[Any, ContextValue] = {
    ToolContext: lambda context: context,
    AbortSignal: lambda context: context.abort_signal,
    list[Message]: lambda context: list(context.messages),
    tuple[Message, ...]: lambda context: context.messages,
}


def find_context(
    function: Callable[..., object], names: Mapping[str, object] | None = None
) -> dict[str, ContextValue]:
    """
    The parameters that get their value from the context, found by their annotations.

    `names` are extra names that the annotations may use. An annotation that cannot be resolved
    is not one of ours.
    """
    try:
        parameters = signature_of(function).parameters.values()
    except (TypeError, ValueError):  # some functions written in C have no signature
        return {}
    values: dict[str, ContextValue] = {}
    for parameter in parameters:
        try:
            hint = parameter_hints(function, [parameter], names or {}).get(parameter.name)
        except ConfigurationError:
            continue
        value = _value_for(hint)
        if value is not None:
            values[parameter.name] = value
    return values


_NAMES = ("messages", "abort_signal", "tool_call_id")
"""Names under which other libraries inject context."""


def check_names(parameters: Iterable[inspect.Parameter], tool: str) -> None:
    """
    Raise `ConfigurationError` if the handler expects context by the name of a parameter.

    It would never get it. `parameters` are those that are not arguments of the tool by their type
    or by its schema.
    """
    for parameter in parameters:
        if parameter.name in _NAMES and parameter.default is None:
            raise ConfigurationError(
                f"The function of the tool {tool!r} has the parameter `{parameter.name}=None`, "
                "which would always be None: context is injected by annotation, not by name. Write "
                "`messages: list[Message]` or `abort_signal: AbortSignal`, or annotate a parameter "
                "with `ToolContext`, which has both and the `tool_call_id`."
            )


def _value_for(hint: object) -> ContextValue | None:
    origin = get_origin(hint)
    if origin is Annotated:
        return _value_for(get_args(hint)[0])
    if origin in (Union, UnionType):  # `AbortSignal | None = None`
        members = [member for member in get_args(hint) if member is not type(None)]
        return _value_for(members[0]) if len(members) == 1 else None
    try:
        return _VALUES.get(ToolContext if origin is ToolContext else hint)
    except TypeError:  # not hashable
        return None
