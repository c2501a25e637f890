"""Reads a function's signature and docstring, and converts JSON arguments to its types."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Annotated, Any, get_args, get_origin

import msgspec

from interlingua.api.types.docstrings import parse_docstring
from interlingua.api.types.problems import Findings
from interlingua.api.types.pydantic_support import is_field
from interlingua.api.types.reading import shape_of
from interlingua.api.types.records import Field, resolve_hints
from interlingua.api.types.shapes import Definitions, Record
from interlingua.spec.content import Json
from interlingua.spec.errors import ConfigurationError, MismatchError

_UNSUPPORTED_KINDS = {
    inspect.Parameter.VAR_POSITIONAL: "is variadic (*)",
    inspect.Parameter.POSITIONAL_ONLY: "is positional-only",
}


class FunctionHints(msgspec.Struct, frozen=True, kw_only=True):
    """The name, description, schema and argument types of a function."""

    name: str
    description: str
    schema: dict[str, Json]
    record: Record
    left_out: frozenset[str]
    """The parameters that the function has but the schema leaves out."""
    takes_self: bool
    """Whether it is a method that is not bound to an object yet."""

    def read(self, arguments: Mapping[str, Json]) -> dict[str, Any]:
        """Convert JSON arguments to the hinted types; `MismatchError` lists every problem."""
        findings = Findings()
        try:
            converted = self.record.read(arguments, None, findings)
        except RecursionError as error:
            raise MismatchError("the arguments are nested too deeply") from error
        findings.raise_if_any()
        return converted


def read_function(
    function: Callable[..., Any],
    *,
    leave_out: frozenset[str] = frozenset(),
    names: Mapping[str, Any] | None = None,
) -> FunctionHints:
    """
    Read a function whose arguments will be passed by name.

    The schema has no properties for the parameters in `leave_out`. `names` are extra names that
    the hints may use, such as the local variables of the scope that defines the function.
    """
    inner = _unwrap_partial(function)
    name = getattr(inner, "__name__", type(inner).__name__)
    parameters = _parameters(function, inner)
    takes_self = bool(parameters) and _is_self(parameters[0])
    visible = [
        parameter
        for parameter in parameters[1 if takes_self else 0 :]
        if parameter.name not in leave_out
    ]
    _check_parameters(visible, name)
    names = names or {}
    docstring = parse_docstring(_docstring(inner))
    hints = _hints(inner, visible, names)
    record = _record(name, visible, hints, docstring.parameters, names)
    definitions = Definitions()
    return FunctionHints(
        name=name,
        description=docstring.description,
        schema=definitions.finish(record.write(definitions)),
        record=record,
        left_out=leave_out & {parameter.name for parameter in parameters},
        takes_self=takes_self,
    )


def _unwrap_partial(function: Any) -> Any:
    """The function inside of `functools.partial`, which has the name, docstring and hints."""
    while isinstance(function, functools.partial):
        function = function.func
    return function


def _docstring(inner: Any) -> str | None:
    """The docstring of a function. For a callable object, `__call__` comes before the class."""
    call = getattr(type(inner), "__call__", None)  # noqa: B004 -- its docstring is read
    return (inspect.getdoc(call) if inspect.isfunction(call) else None) or inspect.getdoc(inner)


def _parameters(function: Any, inner: Any) -> list[inspect.Parameter]:
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError) as error:
        raise ConfigurationError(f"{inner!r} has no readable signature: {error}") from error
    bound: set[str] = set()
    while isinstance(function, functools.partial):  # the model must not see bound arguments
        bound |= function.keywords.keys()
        function = function.func
    return [parameter for parameter in parameters if parameter.name not in bound]


def _is_self(parameter: inspect.Parameter) -> bool:
    return parameter.name in {"self", "cls"} and parameter.annotation is inspect.Parameter.empty


def _check_parameters(parameters: list[inspect.Parameter], name: str) -> None:
    for parameter in parameters:
        if parameter.kind in _UNSUPPORTED_KINDS:
            raise ConfigurationError(
                f"parameter {parameter.name!r} of {name} {_UNSUPPORTED_KINDS[parameter.kind]}; "
                "a model passes arguments by name"
            )
        if is_field(parameter.default):
            raise ConfigurationError(
                f"parameter {parameter.name!r} of {name} has a pydantic Field as its default; "
                "write Annotated[..., Field(...)] and a plain default"
            )


def _hints(
    inner: Any, parameters: list[inspect.Parameter], names: Mapping[str, Any]
) -> dict[str, Any]:
    function = inner if hasattr(inner, "__code__") or inspect.ismethod(inner) else inner.__call__
    function = inspect.unwrap(function)
    globals_ = getattr(function, "__globals__", {})
    # Other parameters are not resolved: they may use names imported under TYPE_CHECKING.
    annotations = {
        parameter.name: parameter.annotation
        for parameter in parameters
        if parameter.annotation is not inspect.Parameter.empty
    }
    return resolve_hints(annotations, globals_, names, getattr(inner, "__name__", repr(inner)))


def _nullable(hint: Any) -> Any:
    if hint is Any:
        return hint
    if get_origin(hint) is Annotated:  # the metadata must stay outermost to be found
        inner, *metadata = get_args(hint)
        return Annotated[(_nullable(inner), *metadata)]
    return hint | None


def _record(
    name: str,
    parameters: list[inspect.Parameter],
    hints: Mapping[str, Any],
    descriptions: Mapping[str, str],
    names: Mapping[str, Any],
) -> Record:
    record = Record(name)
    record.closed = True
    fields = []
    for parameter in parameters:
        hint = hints.get(parameter.name, Any)
        has_default = parameter.default is not inspect.Parameter.empty
        if parameter.default is None:
            hint = _nullable(hint)  # `x: int = None` accepts None, so the schema must too
        shape = shape_of(hint, f"parameter {parameter.name!r} of {name}", names)
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            record.rest = shape
            continue
        field = Field(
            name=parameter.name,
            key=parameter.name,
            type=hint,
            required=not has_default,
            default=parameter.default if has_default else msgspec.UNSET,
            description=descriptions.get(parameter.name),
        )
        fields.append((field, shape))
    record.fields = tuple(fields)
    return record
