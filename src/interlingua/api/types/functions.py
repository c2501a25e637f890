"""The parameters of a function as the fields of a record."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Annotated, Any, get_args, get_origin

import msgspec

from interlingua.api.types.docstrings import parse_docstring
from interlingua.api.types.foreign import is_field
from interlingua.api.types.problems import Findings, mismatch
from interlingua.api.types.reading import shape_of
from interlingua.api.types.records import Field, resolve_hints
from interlingua.api.types.shapes import Definitions, Record
from interlingua.spec.content import Json
from interlingua.spec.errors import ConfigurationError, MismatchError

_REFUSED = {
    inspect.Parameter.VAR_POSITIONAL: "takes any number of positions (*)",
    inspect.Parameter.POSITIONAL_ONLY: "can only be given by position",
}


class FunctionHints(msgspec.Struct, frozen=True, kw_only=True):
    """What the signature and the docstring of a function say."""

    name: str
    description: str
    schema: dict[str, Json]
    record: Record
    left_out: frozenset[str]
    """The parameters of the function that were to be left out."""
    takes_self: bool
    """It is a method, not yet bound to its object."""

    def read(self, arguments: Mapping[str, Json]) -> dict[str, Any]:
        """The arguments as the function wants them; `MismatchError` lists what does not fit."""
        findings = Findings()
        try:
            given = self.record.read(arguments, None, findings)
        except RecursionError as error:
            raise MismatchError("the arguments are nested too deeply") from error
        if findings.problems:
            raise mismatch(findings.problems)
        return given


def read_function(
    function: Callable[..., Any],
    *,
    leave_out: frozenset[str] = frozenset(),
    names: Mapping[str, Any] | None = None,
) -> FunctionHints:
    """
    Read a function that is to be called by name.

    `names` are those its hints may use besides its module's, such as the locals of where it is
    defined.
    """
    inner = _unwrapped(function)
    name = getattr(inner, "__name__", type(inner).__name__)
    given = _parameters(function, inner)
    takes_self = bool(given) and _is_self(given[0])
    wanted = [
        parameter
        for parameter in given[1 if takes_self else 0 :]
        if parameter.name not in leave_out
    ]
    _refuse(wanted, name)
    names = names or {}
    documented = parse_docstring(_words(inner))
    hints = _hints(inner, wanted, names)
    record = _record(name, wanted, hints, documented.parameters, names)
    definitions = Definitions()
    return FunctionHints(
        name=name,
        description=documented.description,
        schema=definitions.finish(record.write(definitions)),
        record=record,
        left_out=leave_out & {parameter.name for parameter in given},
        takes_self=takes_self,
    )


def _unwrapped(function: Any) -> Any:
    """The function that was written: its name, words and hints count."""
    while isinstance(function, functools.partial):
        function = function.func
    return function


def _words(inner: Any) -> str | None:
    """Its docstring; of an object that can be called, that of its `__call__`, or else its own."""
    call = getattr(type(inner), "__call__", None)  # noqa: B004 -- its words are wanted
    return (inspect.getdoc(call) if inspect.isfunction(call) else None) or inspect.getdoc(inner)


def _parameters(function: Any, inner: Any) -> list[inspect.Parameter]:
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError) as error:
        raise ConfigurationError(f"{inner!r} cannot be read: {error}") from error
    bound: set[str] = set()
    while isinstance(function, functools.partial):  # what it fixes is not for the model to see
        bound |= function.keywords.keys()
        function = function.func
    return [parameter for parameter in parameters if parameter.name not in bound]


def _is_self(parameter: inspect.Parameter) -> bool:
    return parameter.name in {"self", "cls"} and parameter.annotation is inspect.Parameter.empty


def _refuse(parameters: list[inspect.Parameter], name: str) -> None:
    for parameter in parameters:
        if parameter.kind in _REFUSED:
            raise ConfigurationError(
                f"parameter {parameter.name!r} of {name} {_REFUSED[parameter.kind]}; a model gives "
                "arguments by name"
            )
        if is_field(parameter.default):
            raise ConfigurationError(
                f"parameter {parameter.name!r} of {name} has a pydantic Field as its default; "
                "write Annotated[..., Field(...)] and a plain default"
            )


def _hints(
    inner: Any, parameters: list[inspect.Parameter], names: Mapping[str, Any]
) -> dict[str, Any]:
    written = inner if hasattr(inner, "__code__") or inspect.ismethod(inner) else inner.__call__
    written = inspect.unwrap(written)
    globals_ = getattr(written, "__globals__", {})
    # only of what is asked: the others may name what is there for the type checker alone
    annotations = {
        parameter.name: parameter.annotation
        for parameter in parameters
        if parameter.annotation is not inspect.Parameter.empty
    }
    return resolve_hints(annotations, globals_, names, getattr(inner, "__name__", repr(inner)))


def _nullable(hint: Any) -> Any:
    if hint is Any:
        return hint
    if get_origin(hint) is Annotated:  # the words stay outermost
        inner, *notes = get_args(hint)
        return Annotated[(_nullable(inner), *notes)]
    return hint | None


def _record(
    name: str,
    parameters: list[inspect.Parameter],
    hints: Mapping[str, Any],
    documented: Mapping[str, str],
    names: Mapping[str, Any],
) -> Record:
    record = Record(name)
    record.closed = True
    fields = []
    for parameter in parameters:
        hint = hints.get(parameter.name, Any)
        has_default = parameter.default is not inspect.Parameter.empty
        if parameter.default is None:
            hint = _nullable(hint)  # a default is a value like any other
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
            description=documented.get(parameter.name),
        )
        fields.append((field, shape))
    record.fields = tuple(fields)
    return record
