"""How the arguments that a model gives reach the function behind a tool."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from interlingua.api.types import FunctionHints
from interlingua.spec.content import Json
from interlingua.spec.errors import ConfigurationError, InvalidToolCallError, MismatchError

CONTEXT = frozenset(("messages", "abort_signal", "tool_call_id"))
"""What a handler is given if its signature names it and the tool's parameters do not."""

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_BY_NAME = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


class Calling(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a handler."""

    handler: Callable[..., Any]
    context: frozenset[str] = frozenset()
    """Which of `CONTEXT` it takes."""
    takes_mapping: bool = False
    """It wants all arguments as one dict, not each by name."""
    names: frozenset[str] | None = None
    """The arguments it takes by name; None if it takes any."""
    needed: frozenset[str] = frozenset()
    """Those it cannot do without."""
    hints: FunctionHints | None = None
    """Its types, where arguments are converted to them."""

    def problems(self, arguments: Mapping[str, Json]) -> list[str]:
        """What stands in the way of calling it with these, that its JSON Schema does not say."""
        if self.takes_mapping or self.hints is not None:
            return []
        found = [f"{name}: is missing" for name in sorted(self.needed - arguments.keys())]
        if self.names is not None:
            known = ", ".join(sorted(self.names)) or "none"
            found += [
                f"{name}: is not known; there are: {known}"
                for name in arguments
                if name not in self.names
            ]
        return found

    def bind(
        self,
        arguments: Mapping[str, Json],
        context: Mapping[str, Any],
        values: Mapping[str, Any] | None = None,
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """What to call the handler with; `values` are the arguments as its types, if known."""
        injected = {name: context[name] for name in self.context if name in context}
        if values is not None:
            return (), {**values, **injected}
        # a copy, as the call stays in the history whatever the handler does to its arguments
        given = {name: copied(value) for name, value in arguments.items()}
        if self.takes_mapping:
            return (given,), injected
        if self.hints is None:
            return (), {**given, **injected}
        if self.hints.takes_self:
            raise ConfigurationError(
                f"the tool {self.hints.name!r} is a method: take it from an object, not its class"
            )
        try:
            return (), {**self.hints.read(given), **injected}
        except MismatchError as error:
            raise InvalidToolCallError(
                f"the arguments are not what the tool takes: {error.message}"
            ) from error


def copied(value: Json) -> Json:
    """A JSON value of one's own."""
    if isinstance(value, dict):
        return {name: copied(item) for name, item in value.items()}
    return [copied(item) for item in value] if isinstance(value, list) else value


def read_handler(handler: Any, parameters: Mapping[str, Json], tool: str) -> Calling:
    """Find out how a handler is called, given the JSON Schema of the tool's parameters."""
    if not callable(handler):
        raise ConfigurationError(f"what the tool {tool!r} executes is not a function: {handler!r}")
    declared = parameters.get("properties", {}).keys()
    try:
        signature = inspect.signature(handler).parameters
    except (TypeError, ValueError):  # some functions written in C tell nothing
        return Calling(handler=handler)
    names = [
        parameter
        for parameter in signature.values()
        if parameter.name in declared or parameter.name not in CONTEXT
    ]
    context = CONTEXT & (signature.keys() - declared)
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


def _check_names(names: list[inspect.Parameter], parameters: Mapping[str, Json], tool: str) -> None:
    """Refuse a handler which cannot be given what the model will give."""
    declared = parameters.get("properties", {})
    by_name = {p.name for p in names if p.kind in _BY_NAME}
    if not _takes_any(names):
        for name in declared:
            if name not in by_name:
                raise ConfigurationError(
                    f"the tool {tool!r} declares {name!r}, which its handler does not take"
                )
    for parameter in names:
        is_needed = parameter.default is parameter.empty and parameter.name not in declared
        if is_needed and parameter.kind not in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
            raise ConfigurationError(
                f"the handler of the tool {tool!r} needs {parameter.name!r}, "
                "which its parameters do not declare"
            )
