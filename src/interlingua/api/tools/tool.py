"""Tools: functions that a model may call."""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import cached_property, lru_cache
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Generic,
    ParamSpec,
    Self,
    TypeAlias,
    TypeVar,
    overload,
)

import msgspec

from interlingua.api.tools.binding import Calling, copied, read_handler
from interlingua.api.tools.context import ToolContext, check_names, find_context
from interlingua.api.types.reading import read_function
from interlingua.api.types.schema import Validator
from interlingua.prepare.schema.read import find_unreadable
from interlingua.runtime.callbacks import signature_of
from interlingua.spec.check import refuse
from interlingua.spec.content import UncheckedJson
from interlingua.spec.errors import ConfigurationError, MismatchError
from interlingua.spec.request import (
    AnyTool,
    BuiltinTool,
    ToolDefinition,
    ToolSpec,
    list_tools,
    to_tool,
)

F = TypeVar("F", bound=Callable[..., Any])
F_co = TypeVar("F_co", covariant=True)
Q = ParamSpec("Q")
R = TypeVar("R")
S = TypeVar("S")

NeedsApproval: TypeAlias = "bool | Callable[[Mapping[str, Any]], bool | Awaitable[bool]]"
"""
Whether a tool call must be approved before it runs: a constant, or a function of the arguments.

The function may be sync or async. It gets only valid arguments; if it raises, the call waits.
"""

TOOL_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
"""The names that every provider accepts."""


def _no_input() -> dict[str, UncheckedJson]:
    return {"type": "object", "properties": {}}


class ToolAnnotations(msgspec.Struct, frozen=True, kw_only=True, repr_omit_defaults=True):
    """The side effects of a tool, for code that approves calls; None is unknown."""

    read_only: bool | None = None
    """Whether it changes nothing."""
    destructive: bool | None = None
    """Whether it may delete or overwrite data."""
    idempotent: bool | None = None
    """A second call with the same arguments has no further effect."""
    open_world: bool | None = None
    """Whether it interacts with external systems, such as the web."""


class Tool(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """
    A tool that a model may call.

    With `execute`, a sync or async function, the tool is active: the library runs it. It passes the
    arguments by name, or all as one dict if the function's only required parameter is not in the
    schema. A parameter annotated with `ToolContext`, `AbortSignal`, `list[Message]` or
    `tuple[Message, ...]` gets that of the run. Without `execute` the tool is passive: the caller
    handles its calls.
    """

    name: str
    """The name by which the model calls it."""
    description: str | None = None
    """What it does and when to call it, for the model."""
    parameters: Mapping[str, UncheckedJson] = msgspec.field(default_factory=_no_input)
    """A JSON Schema of type object."""
    execute: Callable[..., Any] | None = None
    """The function that runs it; None for a tool whose calls the caller handles."""
    annotations: ToolAnnotations = ToolAnnotations()
    """Its side effects, for code that decides about calls."""
    strict: bool | None = None
    """Whether the provider enforces the schema; None uses the provider's default."""
    timeout: float | None = None
    """The timeout of one call in seconds."""
    needs_approval: NeedsApproval = False
    """True, or a function of the arguments: the run ends before such a tool call is run."""
    inline: bool = False
    """
    Whether a plain function runs on the event loop instead of in a thread of its own.

    Only for quick functions that do not block: the event loop is blocked meanwhile, and a timeout
    cannot interrupt the function. An async function always runs on the event loop.
    """
    calling: Calling | None = None
    """How to call `execute`; read from its signature by default."""

    def __post_init__(self) -> None:
        given: object = self.name  # callers without a type checker may pass anything
        if not isinstance(given, str) or not TOOL_NAME.fullmatch(given):
            raise ConfigurationError(
                f"The tool name {given!r} is invalid: it must be a letter, followed by at most 63 "
                "letters, digits, _ or -."
            )
        _check_parameters(self.parameters, self.name)
        for name, (is_valid, expected) in _CHECKS.items():
            value = getattr(self, name)
            if value is not None and not is_valid(value):
                refuse(f"The {name}= of the tool {self.name!r}", expected, value)
        calling = self.calling
        if self.execute is None:
            calling = None
        elif calling is None or calling.handler != self.execute:
            calling = read_handler(self.execute, self.parameters, self.name)
        msgspec.structs.force_setattr(self, "calling", calling)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function directly."""
        if self.execute is None:
            raise ConfigurationError(f"The tool {self.name!r} is passive: it has no function.")
        return self.execute(*args, **kwargs)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    @property
    def is_active(self) -> bool:
        """Whether the library runs its calls."""
        return self.execute is not None

    @property
    def definition(self) -> ToolDefinition:
        """The definition that is sent to the model."""
        return self._definition

    @cached_property
    def _definition(self) -> ToolDefinition:
        return ToolDefinition(
            name=self.name,
            description=self.description or None,
            parameters=self.parameters,
            strict=self.strict,
        )

    def bind(
        self,
        arguments: Mapping[str, UncheckedJson],
        context: ToolContext[Any],
        values: Mapping[str, object] | None = None,
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """
        Convert the model's arguments to the positional and keyword arguments for `execute`.

        `values` are the result of `read`. Without them the arguments are read here, and
        `InvalidToolCallError` is raised if they do not match the types of the function.
        """
        if self.calling is None:
            raise ConfigurationError(f"The tool {self.name!r} is passive: it has no function.")
        return self.calling.bind(arguments, context, values)

    @cached_property
    def validator(self) -> Validator:
        """The compiled schema; call it with arguments to get the list of problems."""
        return Validator(dict(self.parameters))

    def problems(self, arguments: UncheckedJson) -> list[str]:
        """List the problems of the arguments of a tool call, each as `path: message`."""
        return self.read(arguments)[1]

    def read(self, arguments: UncheckedJson) -> tuple[dict[str, Any] | None, list[str]]:
        """
        Convert the arguments of a tool call to the types of its function, and list their problems.

        The values are None if the function has no types: it gets the arguments as they are.
        """
        calling = self.calling
        values = None
        if calling is not None and calling.hints is not None:
            # A type may reject values that its schema allows, for example in its constructor.
            try:
                # of a copy: the call stays in the history, whatever the function does to them
                values = calling.hints.read(copied(arguments))
            except MismatchError as error:
                return None, [str(problem) for problem in error.problems] or [error.message]
            if self.parameters is calling.hints.schema:
                return values, []  # the types check all that the schema made from them checks
        problems = self.validator(arguments)
        if not problems and calling is not None and isinstance(arguments, Mapping):
            problems = calling.problems(arguments)
        return (None if problems else values), problems


class FunctionTool(Tool, Generic[F_co], frozen=True, kw_only=True, dict=True):
    """
    A tool made from a typed function; it can be called like the function.

    `FunctionTool[Callable[[int], str]]` is one of a function from int to str. The type of the
    function is one covariant variable, so that a list of different tools is a list of tools to
    every type checker.
    """

    if TYPE_CHECKING:  # at run time, that of `Tool` calls the function

        @property
        def __call__(self) -> F_co: ...  # type: ignore[override] # to a checker: the function

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(
        self: FunctionTool[Callable[Concatenate[S, Q], R]], instance: S, owner: type | None = None
    ) -> FunctionTool[Callable[Q, R]]: ...
    def __get__(self, instance: object, owner: type | None = None) -> Any:
        """Bind a method that is a tool to its object, like any other method."""
        calling, function = self.calling, self.execute
        hints = None if calling is None else calling.hints
        if instance is None or calling is None or hints is None or not hints.takes_self:
            return self
        bound = function.__get__(instance, owner)  # type: ignore[union-attr] # not None: it takes self
        hints = msgspec.structs.replace(hints, takes_self=False)
        return msgspec.structs.replace(
            self,
            execute=bound,
            calling=msgspec.structs.replace(calling, handler=bound, hints=hints),
        )


@overload
def tool(function: F, /) -> FunctionTool[F]: ...
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
) -> Callable[[F], FunctionTool[F]]: ...
def tool(
    function: Callable[..., object] | None = None,
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
    Make a tool from a function.

    The type hints become the schema, the docstring the descriptions, and the arguments of a call
    are converted to the hinted types. Parameters of the types `ToolContext`, `AbortSignal`,
    `list[Message]` and `tuple[Message, ...]` are not in the schema: the library passes them. A
    plain function runs in a thread unless it is `inline`.
    """
    frame = inspect.currentframe()
    names = frame.f_back.f_locals if frame is not None and frame.f_back is not None else {}
    del frame  # a reference to its own frame would be a reference cycle

    def make(function: F) -> FunctionTool[F]:
        context = find_context(function, names)
        hints = read_function(function, leave_out=frozenset(context), names=names)
        given = signature_of(function).parameters.values()
        check_names((each for each in given if each.annotation is each.empty), hints.name)
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
            calling=Calling(handler=function, context=context, hints=hints),
        )

    return make if function is None else make(function)


ToolOrFunction: TypeAlias = AnyTool | Callable[..., Any]
"""A tool, its definition, a dict, or a function that `@tool` can make one of."""


def read_tools(tools: object) -> tuple[AnyTool, ...]:
    """The tools as a tuple; a function becomes what `@tool` makes of it."""
    items = list_tools(tools)
    if _FUNCTIONS.isdisjoint(map(type, items)):
        return items
    return tuple(
        [
            _read_function(item, i) if type(item) in _FUNCTIONS else item
            for i, item in enumerate(items)
        ]
    )


_FUNCTIONS = frozenset((FunctionType, MethodType, BuiltinFunctionType))


def _read_function(function: Any, index: int) -> AnyTool:
    # A function without a closure belongs to its module, so that keeping it costs nothing.
    is_lasting = isinstance(function, FunctionType) and function.__closure__ is None
    try:
        return _known_tool(function) if is_lasting else _as_tool(function)
    except ConfigurationError as error:
        raise ConfigurationError(
            f"tools[{index}] is a function that cannot be a tool. {error.message}"
        ) from error


def _as_tool(function: Any) -> AnyTool:
    made: AnyTool = tool(function)
    return made


_known_tool = lru_cache(maxsize=256)(_as_tool)


def check_tools(tools: Iterable[AnyTool]) -> dict[str, Tool]:
    """
    The tools by name; a definition or a dict becomes a passive tool.

    Built-in tools, which the provider runs, are skipped. Two tools must not have the same name.
    """
    by_name: dict[str, Tool] = {}
    for index, item in enumerate(tools):
        if isinstance(item, BuiltinTool):
            continue
        checked = item if isinstance(item, Tool) else _passive(to_tool(item, f"tools[{index}]"))
        hints = None if checked.calling is None else checked.calling.hints
        if hints is not None and hints.takes_self:
            raise ConfigurationError(
                f"The tool {checked.name!r} is an unbound method. Take it from an object, "
                "not from its class."
            )
        if checked.name in by_name:
            raise ConfigurationError(f"Two tools have the name {checked.name!r}.")
        by_name[checked.name] = checked
    return by_name


def _passive(definition: ToolSpec) -> Tool:
    if isinstance(definition, BuiltinTool):
        raise ConfigurationError("A built-in tool has no function.")
    return Tool(
        name=definition.name,
        description=definition.description,
        parameters=_no_input() if definition.parameters is None else definition.parameters,
        strict=definition.strict,
    )


def _is_time(value: object) -> bool:
    return isinstance(value, (int, float)) and value is not True and value > 0


_CHECKS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "description": ((lambda value: isinstance(value, str)), "a string"),
    "strict": ((lambda value: isinstance(value, bool)), "True or False"),
    "inline": ((lambda value: isinstance(value, bool)), "True or False"),
    "timeout": (_is_time, "a number greater than 0"),
    "annotations": ((lambda value: isinstance(value, ToolAnnotations)), "ToolAnnotations"),
    "needs_approval": (
        (lambda value: isinstance(value, bool) or callable(value)),
        "True, False or a function",
    ),
}


def _check_parameters(parameters: object, name: str) -> None:
    if not isinstance(parameters, Mapping) or parameters.get("type") != "object":
        raise ConfigurationError(
            f"The parameters of the tool {name!r} must be a JSON Schema of type 'object'."
        )
    problem = find_unreadable(dict(parameters), "parameters")
    if problem is not None:
        raise ConfigurationError(f"The schema of the tool {name!r} is invalid: {problem}.")
