"""Binds the arguments of a tool call to the parameters of the tool's function."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from interlingua.api.tools.context import ContextValue, ToolContext, check_names, find_context
from interlingua.api.types.reading import FunctionHints
from interlingua.runtime.callbacks import signature_of
from interlingua.spec.content import UncheckedJson
from interlingua.spec.errors import ConfigurationError, InvalidToolCallError, MismatchError

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_BY_NAME = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


class Calling(msgspec.Struct, frozen=True, kw_only=True):
    """How to call a handler."""

    handler: Callable[..., Any]
    context: Mapping[str, ContextValue] = {}
    """The parameters that get their value from the run."""
    takes_mapping: bool = False
    """Whether it takes all arguments as one dict instead of by name."""
    names: frozenset[str] | None = None
    """The arguments that it takes by name; None if it takes any (`**kwargs`)."""
    needed: frozenset[str] = frozenset()
    """The arguments without a default."""
    hints: FunctionHints | None = None
    """The types to convert the arguments to, if the function is typed."""

    def problems(self, arguments: Mapping[str, UncheckedJson]) -> list[str]:
        """Missing and unknown arguments that the JSON Schema of the tool allows."""
        if self.takes_mapping or self.hints is not None:
            return []
        problems = [f"{name}: is missing" for name in sorted(self.needed - arguments.keys())]
        if self.names is not None:
            known = ", ".join(sorted(self.names)) or "none"
            problems += [
                f"{name}: is not known; known arguments: {known}"
                for name in arguments
                if name not in self.names
            ]
        return problems

    def bind(
        self,
        arguments: Mapping[str, UncheckedJson],
        context: ToolContext[Any],
        values: Mapping[str, object] | None = None,
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The positional and keyword arguments for the handler; `values` are the typed ones."""
        injected = {name: take(context) for name, take in self.context.items()}
        if values is not None:
            return (), {**values, **injected}
        # Copies, because the call stays in the history and a handler may change its arguments.
        copies = {name: copied(value) for name, value in arguments.items()}
        if self.takes_mapping:
            return (copies,), injected
        if self.hints is None:
            return (), {**copies, **injected}
        if self.hints.takes_self:
            raise ConfigurationError(
                f"The tool {self.hints.name!r} is an unbound method. Take it from an object, "
                "not from its class."
            )
        try:
            return (), {**self.hints.read(copies), **injected}
        except MismatchError as error:
            raise InvalidToolCallError(
                f"The arguments do not match the types of the tool: {error.message}"
            ) from error


def copied(value: UncheckedJson) -> UncheckedJson:
    """A deep copy of a JSON value."""
    if isinstance(value, dict):
        return {name: copied(item) for name, item in value.items()}
    return [copied(item) for item in value] if isinstance(value, list) else value


def read_handler(handler: object, parameters: Mapping[str, UncheckedJson], tool: str) -> Calling:
    """Read how to call a handler; `parameters` is the JSON Schema of the tool."""
    if not callable(handler):
        raise ConfigurationError(
            f"The execute= of the tool {tool!r} is not a function: {handler!r}."
        )
    declared = parameters.get("properties", {}).keys()
    try:
        signature = signature_of(handler).parameters
    except (TypeError, ValueError):  # some functions written in C have no signature
        return Calling(handler=handler)
    found = find_context(handler)
    context = {name: take for name, take in found.items() if name not in declared}
    names = [parameter for parameter in signature.values() if parameter.name not in context]
    check_names((each for each in names if each.name not in declared), tool)
    if _takes_mapping(names, declared):
        return Calling(handler=handler, context=context, takes_mapping=True)
    _check_names(names, parameters, tool)
    by_name = [p for p in names if p.kind in _BY_NAME]
    return Calling(
        handler=handler,
        context=context,
        names=None if _takes_any(names) else frozenset(p.name for p in by_name),
        needed=frozenset(p.name for p in by_name if p.default is p.empty),
    )


def _takes_any(names: list[inspect.Parameter]) -> bool:
    return any(parameter.kind is parameter.VAR_KEYWORD for parameter in names)


def _takes_mapping(names: list[inspect.Parameter], declared: Any) -> bool:
    needed = [parameter for parameter in names if parameter.default is parameter.empty]
    if _takes_any(names):
        return False
    if len(needed) != 1 or needed[0].kind not in _POSITIONAL:
        return False
    return needed[0].kind is needed[0].POSITIONAL_ONLY or needed[0].name not in declared


def _check_names(
    names: list[inspect.Parameter], parameters: Mapping[str, UncheckedJson], tool: str
) -> None:
    """Raise if the handler and the schema do not have the same parameters."""
    declared = parameters.get("properties", {})
    by_name = {p.name for p in names if p.kind in _BY_NAME}
    if not _takes_any(names):
        for name in declared:
            if name not in by_name:
                raise ConfigurationError(
                    f"The schema of the tool {tool!r} declares {name!r}, but its handler has no "
                    "such parameter."
                )
    for parameter in names:
        is_needed = parameter.default is parameter.empty and parameter.name not in declared
        if is_needed and parameter.kind not in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
            raise ConfigurationError(
                f"The handler of the tool {tool!r} needs {parameter.name!r}, but the schema does "
                "not declare it. Annotate a parameter that the library fills in, for example "
                "`context: ToolContext`."
            )
