"""Tools: what a model may call, and what answers."""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import cached_property
from typing import (
    Any,
    Concatenate,
    Generic,
    ParamSpec,
    Self,
    TypeAlias,
    TypeVar,
    cast,
    overload,
)

import msgspec

from interlingua.api.tools.binding import CONTEXT, Calling, copied, read_handler
from interlingua.api.tools.result_content import to_result_content
from interlingua.api.tools.validator import Validator
from interlingua.api.types import read_function
from interlingua.prepare.schema.check import find_unreadable
from interlingua.spec.content import Json
from interlingua.spec.errors import ConfigurationError, MismatchError
from interlingua.spec.request import BuiltinTool, ToolDefinition

__all__ = [
    "FunctionTool",
    "NeedsApproval",
    "Tool",
    "ToolAnnotations",
    "check_tools",
    "to_result_content",
    "tool",
]

P = ParamSpec("P")
Q = ParamSpec("Q")
R = TypeVar("R")
S = TypeVar("S")

NeedsApproval: TypeAlias = "bool | Callable[[Mapping[str, Any]], bool | Awaitable[bool]]"
"""
Whether someone has to allow a call, perhaps depending on its arguments.

A function, sync or async, is only asked about arguments that fit; if it fails, the call waits.
"""

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")


def _no_input() -> dict[str, Json]:
    return {"type": "object", "properties": {}}


class ToolAnnotations(msgspec.Struct, frozen=True, kw_only=True, repr_omit_defaults=True):
    """What a tool does to the world, for those who allow calls; None where it is not said."""

    read_only: bool | None = None
    """It changes nothing."""
    destructive: bool | None = None
    """What it changes may be lost."""
    idempotent: bool | None = None
    """Calling it again with the same arguments changes nothing more."""
    open_world: bool | None = None
    """It deals with things outside, such as the web."""


class Tool(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """
    Something a model may call.

    With `execute` it is active: the library calls that, sync or async, with the arguments by
    name, or all of them as one dict if its only needed parameter is not among those declared.
    Of `messages`, `abort_signal` and `tool_call_id` it is given what its signature names. Without
    `execute` it is passive: calls of it are left to the caller.
    """

    name: str
    description: str | None = None
    parameters: Mapping[str, Json] = msgspec.field(default_factory=_no_input)
    """A JSON Schema of type object."""
    execute: Callable[..., Any] | None = None
    annotations: ToolAnnotations = ToolAnnotations()
    strict: bool | None = None
    """Whether the provider holds the model to the schema; None leaves it to the provider."""
    timeout: float | None = None
    """Seconds it may take."""
    needs_approval: NeedsApproval = False
    inline: bool = False
    """
    Whether a plain function runs on the event loop, not in a thread of its own.

    For quick functions only, which neither block nor take long: nothing else runs meanwhile, and
    no time limit can interrupt one. An async function runs on the event loop in any case.
    """
    calling: Calling | None = None
    """How `execute` is called; read from its signature unless given."""

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise ConfigurationError(
                f"a tool cannot be called {self.name!r}: a letter, then up to 63 letters, digits, "
                "_ or -"
            )
        _check_parameters(self.parameters, self.name)
        if self.timeout is not None and not self.timeout > 0:
            raise ConfigurationError(f"the timeout of the tool {self.name!r} must be above 0")
        calling = self.calling
        if self.execute is None:
            calling = None
        elif calling is None or calling.handler != self.execute:
            calling = read_handler(self.execute, self.parameters, self.name)
        msgspec.structs.force_setattr(self, "calling", calling)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function itself, as if it were no tool."""
        if self.execute is None:
            raise ConfigurationError(f"the tool {self.name!r} is passive: it has no function")
        return self.execute(*args, **kwargs)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    @property
    def is_active(self) -> bool:
        """Whether the library can run it."""
        return self.execute is not None

    @cached_property
    def definition(self) -> ToolDefinition:
        """What the model is told of it."""
        return ToolDefinition(
            name=self.name,
            description=self.description or None,
            parameters=self.parameters,
            strict=self.strict,
        )

    def bind(
        self,
        arguments: Mapping[str, Json],
        context: Mapping[str, Any],
        values: Mapping[str, Any] | None = None,
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """
        The positional and named arguments for `execute`, made from those of the model.

        `values` are what `read` made of them; else they are read here, and
        `InvalidToolCallError` is raised if they do not fit the types of the function.
        """
        if self.calling is None:
            raise ConfigurationError(f"the tool {self.name!r} is passive: it has no function")
        return self.calling.bind(arguments, context, values)

    def validator(self) -> Validator:
        """The parameters, compiled once: call it with arguments to get the list of problems."""
        return self._validator

    def problems(self, arguments: Json) -> list[str]:
        """What is wrong with the arguments of a call, each as `path: what`."""
        return self.read(arguments)[1]

    def read(self, arguments: Json) -> tuple[dict[str, Any] | None, list[str]]:
        """
        The arguments of a call as the types of its function, and what is wrong with them.

        Without types there are no values: the function takes the arguments as they are.
        """
        calling = self.calling
        values = None
        if calling is not None and calling.hints is not None:
            # a schema cannot say all that a type can: what is a date, what a constructor takes
            try:
                # of a copy: the call stays in the history, whatever the function does to them
                values = calling.hints.read(copied(arguments))
            except MismatchError as error:
                return None, [str(problem) for problem in error.problems] or [error.message]
            if self.parameters is calling.hints.schema:
                return values, []  # the types say all that the schema made of them does
        problems = self._validator(arguments)
        if not problems and calling is not None and isinstance(arguments, Mapping):
            problems = calling.problems(arguments)
        return (None if problems else values), problems

    @cached_property
    def _validator(self) -> Validator:
        return Validator(dict(self.parameters))


class FunctionTool(Tool, Generic[P, R], frozen=True, kw_only=True, dict=True):
    """A tool made of a typed function, and callable like it."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function itself, as if it were no tool."""
        return cast(R, super().__call__(*args, **kwargs))

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(
        self: FunctionTool[Concatenate[S, Q], R], instance: S, owner: type | None = None
    ) -> FunctionTool[Q, R]: ...
    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """In a class it is a method: taken from an object, it is a tool of that object."""
        calling, function = self.calling, self.execute
        hints = None if calling is None else calling.hints
        if instance is None or calling is None or hints is None or not hints.takes_self:
            return self
        bound = function.__get__(instance, owner)  # type: ignore[union-attr] # it takes self
        hints = msgspec.structs.replace(hints, takes_self=False)
        return msgspec.structs.replace(
            self,
            execute=bound,
            calling=msgspec.structs.replace(calling, handler=bound, hints=hints),
        )


@overload
def tool(function: Callable[P, R], /) -> FunctionTool[P, R]: ...
@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    annotations: ToolAnnotations | None = None,
    timeout: float | None = None,
    strict: bool | None = None,
    needs_approval: NeedsApproval = False,
    inline: bool = False,
) -> Callable[[Callable[P, R]], FunctionTool[P, R]]: ...
def tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    annotations: ToolAnnotations | None = None,
    timeout: float | None = None,
    strict: bool | None = None,
    needs_approval: NeedsApproval = False,
    inline: bool = False,
) -> Any:
    """
    Make a tool of a function.

    Its type hints become the schema, its docstring the descriptions; the arguments of a call are
    converted to the hinted types. `messages`, `abort_signal` and `tool_call_id` are not shown to
    the model: the call provides them. A plain function runs in a thread unless it is `inline`.
    """
    frame = inspect.currentframe()
    names = frame.f_back.f_locals if frame is not None and frame.f_back is not None else {}
    del frame  # it would hold itself

    def make(function: Callable[..., Any]) -> FunctionTool[..., Any]:
        hints = read_function(function, leave_out=CONTEXT, names=names)
        return FunctionTool(
            name=hints.name if name is None else name,
            description=hints.description if description is None else description,
            parameters=hints.schema,
            execute=function,
            annotations=annotations or ToolAnnotations(),
            timeout=timeout,
            strict=strict,
            needs_approval=needs_approval,
            inline=inline,
            calling=Calling(handler=function, context=hints.left_out, hints=hints),
        )

    return make if function is None else make(function)


def check_tools(tools: Iterable[Tool | ToolDefinition | BuiltinTool]) -> dict[str, Tool]:
    """
    The tools by name, no name twice; a bare definition is a passive tool.

    Tools that the provider runs itself have no name here, and are passed over.
    """
    found: dict[str, Tool] = {}
    for given in tools:
        if isinstance(given, BuiltinTool):
            continue
        checked = _passive(given) if isinstance(given, ToolDefinition) else given
        if not isinstance(checked, Tool):
            raise ConfigurationError(f"{given!r} is no tool; decorate a function with @tool")
        hints = None if checked.calling is None else checked.calling.hints
        if hints is not None and hints.takes_self:
            raise ConfigurationError(
                f"the tool {checked.name!r} is a method: take it from an object, not its class"
            )
        if checked.name in found:
            raise ConfigurationError(f"two tools are called {checked.name!r}")
        found[checked.name] = checked
    return found


def _passive(definition: ToolDefinition) -> Tool:
    return Tool(
        name=definition.name,
        description=definition.description,
        parameters=_no_input() if definition.parameters is None else definition.parameters,
        strict=definition.strict,
    )


def _check_parameters(parameters: Any, name: str) -> None:
    if not isinstance(parameters, Mapping) or parameters.get("type") != "object":
        raise ConfigurationError(
            f"the parameters of the tool {name!r} must be a JSON Schema with the type 'object'"
        )
    wrong = find_unreadable(dict(parameters), "parameters")
    if wrong is not None:
        raise ConfigurationError(f"the tool {name!r}: {wrong}")
