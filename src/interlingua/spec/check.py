"""
The checker of values: what a value must be is read from annotations.

It serves requests, the options of functions, the settings of adapters and the sections of registry
files. An annotation names one type or several, and None where a value may be missing. A rule that
a type cannot express stands beside it: `Annotated[int, Rule(is_even, "an even number")]`.
An unknown name gets advice: it is misspelled, or an option of another library.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from operator import is_
from types import MappingProxyType, ModuleType, NoneType, UnionType
from typing import (
    Annotated,
    Any,
    ForwardRef,
    Literal,
    NamedTuple,
    NoReturn,
    TypeAlias,
    TypeVar,
    Union,
    get_args,
    get_origin,
)

import msgspec
from msgspec.structs import astuple, replace

from interlingua.spec.content import FilePath, Record
from interlingua.spec.errors import ConfigurationError

Place: TypeAlias = object
"""Where a value is: a name, or a pair of another place and a key; a path is made for errors."""


class Rule(NamedTuple):
    """What a value of the right type must also be."""

    holds: Callable[[Any], bool]
    expected: str
    """What is expected, in words: the error says that a value "must be" it."""


class Row(NamedTuple):
    """What one field, option or setting must be."""

    name: str
    is_optional: bool
    types: tuple[type, ...]
    rule: Callable[[Any], bool] | None
    """What a value of the right type must also be."""
    expected: str


_LARGEST = 1.7e308  # more than any number that a program means
_ANY_NUMBER = -_LARGEST


def _is_number(least: float, value: Any) -> bool:
    return least <= value <= _LARGEST and value is not True and value is not False


def at_least(least: float, word: str) -> Rule:
    """Return the rule for numbers from a smallest one; `word` is "an integer" or "a number"."""
    return Rule(partial(_is_number, least), f"{word} of {least} or more")


def _is_above_zero(value: float) -> bool:
    return 0 < value <= _LARGEST and value is not True


Count: TypeAlias = Annotated[int, at_least(0, "an integer")]
Positive: TypeAlias = Annotated[int, at_least(1, "an integer")]
Amount: TypeAlias = Annotated[float, at_least(0, "a number")]
Seconds: TypeAlias = Annotated[float, Rule(partial(_is_number, 0), "a number of seconds from 0")]
Duration: TypeAlias = Annotated[float, Rule(_is_above_zero, "a number greater than 0")]
ThinkingBudget: TypeAlias = Annotated[int, at_least(-1, "an integer")]  # -1: the model decides


# From annotations to rows.


class _Kind(NamedTuple):
    """One of the types that an annotation allows."""

    types: tuple[type, ...]
    rule: Callable[[Any], bool] | None
    words: tuple[str, ...]
    """What is expected; several words for a choice between names."""


_UNIONS = (Union, UnionType)
_FUNCTION: Any = Callable  # a class, though not for type checkers
_KINDS: dict[object, _Kind] = {
    str: _Kind((str,), None, ("a string",)),
    bytes: _Kind((bytes,), None, ("bytes",)),
    bool: _Kind((bool,), None, ("True or False",)),
    int: _Kind((int,), partial(_is_number, _ANY_NUMBER), ("an integer",)),
    float: _Kind((float, int), partial(_is_number, _ANY_NUMBER), ("a number",)),
    # A dict is a Mapping, but is tried first, because asking an abstract class is slow.
    Mapping: _Kind((dict, Mapping), None, ("a mapping",)),
    dict: _Kind((dict,), None, ("a dict",)),
    tuple: _Kind((tuple,), None, ("a list",)),
    list: _Kind((list,), None, ("a list",)),
    FilePath: _Kind((FilePath,), None, ("a path",)),
    Callable: _Kind((_FUNCTION,), None, ("a function",)),
}
_PLURALS: dict[object, str] = {
    str: "strings",
    bool: "strings to True or False",
    Mapping: "mappings",
}


def row_for(name: str, annotation: object) -> Row | None:
    """Return the row of a field, option or setting; None if its annotation allows anything."""
    alternatives = tuple(_alternatives(annotation))
    kinds = [_kind(each) for each in alternatives if each is not NoneType]
    known = [kind for kind in kinds if kind is not None]
    if not known or len(known) < len(kinds):
        return None
    types = tuple(dict.fromkeys(each for kind in known for each in kind.types))
    rule = known[0].rule
    if len(known) > 1:
        rule = partial(_fits_one, tuple(known)) if any(kind.rule for kind in known) else None
    *words, last = (word for kind in known for word in kind.words)
    expected = f"{', '.join(words)} or {last}" if words else last
    return Row(name, NoneType in alternatives, types, rule, expected)


def _alternatives(annotation: object) -> Iterable[object]:
    if get_origin(annotation) in _UNIONS:
        for each in get_args(annotation):
            yield from _alternatives(each)
    else:
        yield annotation


def _kind(annotation: object) -> _Kind | None:
    """What one type allows; None if that is anything, or cannot be asked of a value."""
    origin, arguments = get_origin(annotation) or annotation, get_args(annotation)
    if origin is Annotated:
        return _annotated(*arguments)
    if origin is Literal:
        return _Kind((str,), arguments.__contains__, tuple(map(repr, arguments)))
    if origin is Iterable and arguments == (str,):
        return _Kind((Iterable,), _are_texts, ("a list of strings",))
    if origin in (tuple, list) and arguments in ((str, ...), (str,)):
        return _Kind((origin,), _are_strings, ("a list of strings",))
    if origin is Mapping and len(arguments) == 2:
        return _mapping(arguments[1])
    if origin in _KINDS:
        return _KINDS[origin]
    if origin in _UNIONS:  # of an `Annotated`, whose rule decides
        return None
    if origin in (Any, object) or not isinstance(origin, type) or not _can_be_asked(origin):
        return None
    article = "an" if origin.__name__[0] in "AEIOU" else "a"
    return _Kind((origin,), None, (f"{article} {origin.__name__}",))


def _can_be_asked(kind: type) -> bool:
    """Whether a value can be asked whether it is of this class; most protocols do not allow it."""
    try:
        isinstance(None, kind)
    except TypeError:
        return False
    return True


def _annotated(annotation: object, *rules: object) -> _Kind | None:
    inner = _kind(annotation)
    for rule in rules:
        if isinstance(rule, Rule):
            types = (object,) if inner is None else inner.types
            return _Kind(types, rule.holds, (rule.expected,))
    return inner


def _mapping(value: object) -> _Kind:
    origin = get_origin(value) or value
    if origin not in _PLURALS:
        return _KINDS[Mapping]
    types = _KINDS[origin].types
    return _Kind((dict, Mapping), partial(_maps_to, types), (f"a mapping of {_PLURALS[origin]}",))


def _fits_one(kinds: tuple[_Kind, ...], value: object) -> bool:
    return any(
        isinstance(value, kind.types) and (kind.rule is None or kind.rule(value)) for kind in kinds
    )


def _are_strings(values: Iterable[object]) -> bool:
    return _STRING.issuperset(map(type, values)) or all(isinstance(each, str) for each in values)


def _are_texts(values: Iterable[object]) -> bool:
    if isinstance(values, (str, bytes, Mapping)):
        return False  # a string is iterable too, but passing one is a mistake
    # checking the items would exhaust an iterator
    return not isinstance(values, Collection) or _are_strings(values)


def _maps_to(types: tuple[type, ...], values: Mapping[object, object]) -> bool:
    return all(isinstance(key, str) and isinstance(each, types) for key, each in values.items())


# The rows of classes.

_ROOM = __name__.rpartition(".")[0]
_ROWS: dict[type, tuple[Row, ...]] = {}
"""The rows of each class; made on first use, because reading annotations takes a millisecond."""
_RIGHT_TYPES: dict[tuple[type, ...], tuple[Row, ...]] = {}
"""
A class and types of its fields that were right, with the rows that ask for more than a type.

A program makes records of few combinations: most are looked up, and few values are looked at.
"""
MAX_CHECKED = 1024
"""How many classes or values are remembered as right."""


def rows_of(kind: type[msgspec.Struct]) -> tuple[Row, ...]:
    """Return the rows of a record's fields; of a class derived from ours, those of our class."""
    rows = _ROWS.get(kind)
    if rows is None:
        ours = (base for base in kind.__mro__ if base.__module__.startswith(_ROOM))
        fields = msgspec.structs.fields(next(ours, kind))
        made = (row_for(field.name, field.type) for field in fields)
        rows = _ROWS[kind] = tuple(row for row in made if row is not None)
    return rows


def rows_of_options(options: Any) -> dict[str, Row | None]:
    """Return the rows of the keys of a TypedDict, by name; None for a key that may be anything."""
    return {name: row_of_option(name, options) for name in options.__annotations__}


def row_of_option(name: str, options: Any) -> Row | None:
    """Return the row of one key of a TypedDict; None if it may be anything."""
    return row_for(name, _read(options.__annotations__[name], options))


def _read(annotation: Any, owner: Any) -> Any:
    """The type that an annotation names; `Any` if only type checkers import it."""
    if not isinstance(annotation, ForwardRef):
        return annotation
    # `get_type_hints` also reads what is inside of the types, where a name may be unknown.
    module = sys.modules[str(annotation.__forward_module__ or owner.__module__)]
    try:
        return eval(  # noqa: S307 -- of our own source
            annotation.__forward_arg__, vars(module), _Names(module)
        )
    except NameError:
        return Any


class _Names(dict[str, Any]):
    """The names of a module, also those that it loads at their first use."""

    def __init__(self, module: ModuleType) -> None:
        super().__init__()
        self._module = module

    def __missing__(self, name: str) -> Any:
        try:
            return getattr(self._module, name)
        except AttributeError:  # it may be a name of Python itself
            raise KeyError(name) from None


# Checks.


def fits(row: Row, value: object) -> bool:
    """Return whether a value is what its row asks for."""
    if value is None:
        return row.is_optional
    return isinstance(value, row.types) and (row.rule is None or row.rule(value))


def check_value(row: Row, value: object, place: Place = None) -> None:
    """Raise `ConfigurationError`, with the path, for a value that does not fit its row."""
    name, is_optional, types, rule, expected = row
    if value is None:
        if is_optional:
            return
    elif isinstance(value, types) and (rule is None or rule(value)):
        return
    refuse((place, name), expected, value)


def check_fields(value: msgspec.Struct, place: Place) -> bool:
    """
    Raise `ConfigurationError`, with the path, for a field of a record that is not right.

    Returns whether none of its strings is of a subclass of `str`.
    """
    types = (type(value), *map(type, astuple(value)))
    unsure = _RIGHT_TYPES.get(types)
    if unsure is not None:
        for row in unsure:
            field, holds = getattr(value, row.name), row.rule
            if field != () and holds is not None and not holds(field):  # () obeys every rule
                check_value(row, field, place)
        return True
    rows = rows_of(type(value))
    for row in rows:
        check_value(row, getattr(value, row.name), place)
    kinds = dict(zip(value.__struct_fields__, types[1:], strict=True))
    if any(is_subclass(kind) for name, kind in kinds.items() if name not in _NOT_CHANGED):
        return False
    if len(_RIGHT_TYPES) < MAX_CHECKED:
        _RIGHT_TYPES[types] = tuple(
            row for row in rows if row.rule is not None and kinds[row.name] is not NoneType
        )
    return True


# Strings of subclasses of `str`.

_STRING = frozenset((str,))
_ATOMS = frozenset((str, int, float, bool, NoneType, bytes))
_NOT_CHANGED = frozenset(("context", "requests"))
"""The caller's own value of a request, and the requests of a batch, which are checked apart."""
_RecordT = TypeVar("_RecordT", bound=Record)


def is_subclass(kind: type) -> bool:
    """Return whether it is a subclass of `str` that a caller made."""
    return issubclass(kind, str) and kind is not str and kind is not FilePath


def plain_fields(record: _RecordT) -> _RecordT:
    """Return the record with plain strings in its fields, and in what they hold."""
    changes: dict[str, object] = {}
    for name in record.__struct_fields__:
        value = getattr(record, name)
        if type(value) in _ATOMS or not value or name in _NOT_CHANGED:
            continue
        try:
            plain = plain_strings(value)
        except RecursionError:
            raise ConfigurationError(f"{name} is nested too deeply, or contains itself.") from None
        if plain is not value:
            changes[name] = plain
    return replace(record, **changes) if changes else record


def plain_strings(value: Any) -> Any:
    """Return the value with plain strings; the same object if it has no others."""
    kind = type(value)
    if issubclass(kind, str):
        # `str(value)` may be another text than that of the string.
        return str.__str__(value) if is_subclass(kind) else value
    if issubclass(kind, Record):
        return plain_fields(value)
    if kind is dict:
        items = {plain_strings(key): plain_strings(item) for key, item in value.items()}
        is_same = all(map(is_, items.values(), value.values()))
        return value if is_same and _STRING.issuperset(map(type, value)) else items
    if kind not in (list, tuple) or _STRING.issuperset(map(type, value)):
        return value
    plain = kind(map(plain_strings, value))
    return value if all(map(is_, plain, value)) else plain


def check_literal(name: str, value: object, kind: object) -> None:
    """Raise `ConfigurationError` if the value of an option is none of those of a `Literal`."""
    known = get_args(kind)
    if value not in known:
        raise ConfigurationError(f"{name}: {value!r} is not one of {', '.join(known)}.")


def refuse(place: Place, expected: str, value: object) -> NoReturn:
    """Raise the error for a wrong value."""
    raise ConfigurationError(f"{path_of(place)} must be {expected}, not {describe(value)}.")


def describe(value: object) -> str:
    """Return a short text for a value: itself, or its type if it is long or has no text."""
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001 -- any class may define it, and deep values have none
        text = ""
    return text if 0 < len(text) <= 60 else f"a {type(value).__name__}"


def path_of(place: Place) -> str:
    """Return a place as text, such as `messages[0].content`."""
    keys: list[str] = []
    while type(place) is tuple:
        place, key = place
        keys.append(f"[{key}]" if type(key) is int else f".{key}" if place else str(key))
    return "".join((str(place or ""), *reversed(keys)))


_NAMES_HERE = {
    "response_model": "schema= of generate_object",
    "output_type": "schema= of generate_object",
    "response_schema": "response_format=, or schema= of generate_object",
    "json_schema": "response_format=, or schema= of generate_object",
    "schema": "response_format=, or schema= of generate_object",
    "max_output_tokens": "max_tokens=",
    "max_completion_tokens": "max_tokens=",
    "max_new_tokens": "max_tokens=",
    "stop": "stop_sequences=",
    "functions": "tools=",
    "function_call": "tool_choice=",
    "instructions": "system=",
    "system_prompt": "system=",
    "system_instruction": "system=",
    "input": "prompt or messages=",
    "contents": "messages=",
    "history": "messages=",
    "thinking": "thinking_budget= or reasoning_effort=",
    "thinking_config": "thinking_budget= or reasoning_effort=",
    "reasoning": "reasoning_effort=",
    "extra_body": "provider_options=",
    "model_kwargs": "provider_options=",
    "num_retries": "max_retries=",
    "request_timeout": "timeout=",
    "stream": "the function stream(...)",
    "callbacks": "execute(...), which has callbacks",
    "max_turns": "max_tool_rounds=",
    "max_steps": "max_tool_rounds=",
    "max_iterations": "max_tool_rounds=",
    "api_base": "base_url=",
    "n": "generate_many([prompt] * n, ...), one run for each answer",
    "num_completions": "generate_many([prompt] * n, ...), one run for each answer",
    "candidate_count": "generate_many([prompt] * n, ...), one run for each answer",
}
"""Names that other libraries use, and what to use here."""


def advice(name: str, known: Collection[str], own: Mapping[str, str] = MappingProxyType({})) -> str:
    """A sentence about what to use instead of an unknown name; `own` comes before other advice."""
    from difflib import get_close_matches  # imported only for an error message

    instead = own.get(name) or _NAMES_HERE.get(name)
    if instead is not None:
        return f"Use {instead}."
    near = get_close_matches(str(name), known, n=1)  # a key of a mapping may be anything
    return f"Did you mean {near[0]!r}?" if near else f"There are {', '.join(sorted(known))}."
