"""
Equality of bodies and responses.

Bodies are compared in the normal form of their dialect (documented defaults removed, shorthand
expanded). Everything else must be equal, including the order of lists. Differences name JSON paths.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeAlias

import msgspec

from interlingua import dialects
from interlingua.prepare.schema.narrow import encode_parameters, encode_schema
from interlingua.spec.content import Json, Part, Text, ToolCall
from interlingua.spec.contracts import Dialect
from interlingua.spec.facts import SchemaRules
from interlingua.spec.response import Response
from interlingua.spec.warnings import WarningList

Normal: TypeAlias = Callable[[Json], Json]
Kind: TypeAlias = Literal["request", "response"]

_MAX_DIFFERENCES = 20
_LISTS = (list, tuple)


def same(dialect: Dialect, kind: Kind, left: Json, right: Json) -> list[str]:
    """The differences between two bodies of a dialect, in normal form."""
    normal = normal_form(dialect, kind)
    return differences(normal(left), normal(right))


def normal_form(dialect: Dialect, kind: Kind) -> Normal:
    """The function that normalises a body of the dialect."""
    facts = dialect.FACTS
    return facts.normal_request if kind == "request" else facts.normal_response


def same_response(left: Response, right: Response, *, marks: bool = True) -> list[str]:
    """
    The differences between two responses, except `raw`.

    `marks=False` ignores the marks in `extra` (keys with `~`), which record the form of a body.

    Arguments are compared as parsed values, and adjacent plain texts are joined, because some wire
    formats have no part boundaries.
    """
    return differences(_plain(left, marks=marks), _plain(right, marks=marks))


def same_schema(left: Json, right: Json) -> bool:
    """Whether the second schema is the first, or its strict form for some target."""
    return left == right or any(
        encode_parameters(left, rules, WarningList(), "", strict=True)[0] == right
        or encode_schema(left, rules, WarningList(), "", strict=True)[0] == right
        for rules in _schema_rules()
    )


def _schema_rules() -> list[SchemaRules]:
    every = (dialects.get(name).FACTS.schema for name in dialects.names())
    return list({rules.name: rules for rules in every if rules is not None}.values())


def differences(left: object, right: object, path: str = "$") -> list[str]:
    """The first differences between two JSON values, by path."""
    lines: list[str] = []
    # A path is a chain of keys, because most values are equal and their paths are never written.
    stack: list[tuple[object, object, _Place]] = [(left, right, (None, path))]
    while stack and len(lines) < _MAX_DIFFERENCES:
        one, other, place = stack.pop()
        if isinstance(one, dict) and isinstance(other, dict):
            for key in {**one, **other}:
                if key not in one or key not in other:
                    side = "right" if key in one else "left"
                    value = one.get(key, other.get(key))
                    where = _written((place, key))
                    lines.append(f"{where}: {_short(value)} is missing on the {side}")
                elif one[key] is not other[key]:
                    stack.append((one[key], other[key], (place, key)))
        elif isinstance(one, _LISTS) and isinstance(other, _LISTS) and len(one) == len(other):
            pairs = enumerate(zip(one, other, strict=True))
            stack += [(a, b, (place, i)) for i, (a, b) in pairs if a is not b]
        elif one != other or isinstance(one, bool) is not isinstance(other, bool):
            lines.append(f"{_written(place)}: {_short(one)} is not {_short(other)}")
    return lines


_Place: TypeAlias = "tuple[_Place | None, str | int]"


def _written(place: _Place) -> str:
    steps: list[str] = []
    above: _Place | None = place
    while above is not None:
        above, key = above
        steps.append(f"[{key}]" if isinstance(key, int) else f".{key}")
    return "".join(reversed(steps)).removeprefix(".")


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def _plain(response: Response, *, marks: bool) -> Any:
    message = msgspec.structs.replace(
        response.message, content=tuple(_join(response.message.content))
    )
    bare = msgspec.structs.replace(response, message=message, raw=None, rate_limit=None)
    return _clean(msgspec.to_builtins(bare), marks=marks)


def _join(parts: tuple[Part, ...]) -> list[Part]:
    joined: list[Part] = []
    for part in parts:
        last = joined[-1] if joined else None
        if isinstance(part, Text) and isinstance(last, Text) and last.extra == part.extra == {}:
            tokens = last.logprobs + part.logprobs
            joined[-1] = Text(text=last.text + part.text, logprobs=tokens)
        elif isinstance(part, ToolCall) and part.type == "function" and part.is_valid:
            joined.append(msgspec.structs.replace(part, raw_arguments=None))
        else:
            joined.append(part)
    return joined


def _clean(value: Any, *, marks: bool) -> Any:
    """The value without empty `extra`, and perhaps without marks."""
    if isinstance(value, dict):
        clean = {
            key: _clean(item, marks=marks)
            for key, item in value.items()
            if marks or not str(key).startswith("~")
        }
        extra = clean.get("extra")
        if isinstance(extra, dict) and not any(extra.values()):
            del clean["extra"]
        return clean
    if isinstance(value, _LISTS):
        return [_clean(item, marks=marks) for item in value]
    return value
