"""What a docstring says of a thing and of each of its parameters: Google, reST and numpy forms."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator

import msgspec

_PARAMETERS = (
    "args|arguments|parameters|params|other parameters|keyword args|keyword arguments|attributes"
)
_OUTCOMES = "returns?|yields?|raises|warns|receives"
_HEADING = re.compile(rf"(?:(?P<names>{_PARAMETERS})|{_OUTCOMES})\s*(?P<colon>:?)", re.IGNORECASE)
_ITEM = re.compile(r"(?P<name>\*{0,2}\w+)\s*(?:\([^()]*(?:\([^()]*\)[^()]*)*\))?\s*:(?:\s+|$)")
_NUMPY_ITEM = re.compile(r"(?P<name>\*{0,2}\w+(?:\s*,\s*\*{0,2}\w+)*)\s*(?::.*)?")
_REST_FIELD = re.compile(r":(?P<kind>\w+)(?:\s+(?P<about>[^:]*))?:(?:\s+|$)")
_REST_PARAMETERS = frozenset(
    ("param", "parameter", "arg", "argument", "key", "keyword", "ivar", "var", "cvar")
)
_REST_OTHERS = frozenset(
    ("type", "vartype", "return", "returns", "rtype", "raise", "raises", "yield", "yields")
)


class Docstring(msgspec.Struct, frozen=True, kw_only=True):
    """A docstring, taken apart."""

    description: str = ""
    """The text outside of the lists of parameters, results and errors."""
    parameters: dict[str, str] = {}


def parse_docstring(text: str | None) -> Docstring:
    """The description and what is said of each parameter; what has no such form is description."""
    lines = inspect.cleandoc(text or "").splitlines()
    kept: list[str] = []
    parameters: dict[str, str] = {}
    position = 0
    while position < len(lines):
        for section in (_google, _numpy, _rest):
            end = section(lines, position, parameters)
            if end > position:
                position = end
                break
        else:
            kept.append(lines[position])
            position += 1
    return Docstring(description=_tidy(kept), parameters=parameters)


def _google(lines: list[str], start: int, parameters: dict[str, str]) -> int:
    """`Args:` and its indented items; the line after the section, or `start` if there is none."""
    heading = _HEADING.fullmatch(lines[start])
    if heading is None or not heading["colon"]:
        return start
    end = _end_of_block(lines, start + 1)
    if end == start + 1:
        return start
    if heading["names"]:
        block = inspect.cleandoc("\n" + "\n".join(lines[start + 1 : end])).splitlines()
        for item in _items(block):
            name = _ITEM.match(item[0])
            if name is not None:
                _add(parameters, name["name"], [item[0][name.end() :], *item[1:]])
    return end


def _numpy(lines: list[str], start: int, parameters: dict[str, str]) -> int:
    """`Parameters`, a rule, and items up to the next heading."""
    heading = _HEADING.fullmatch(lines[start])
    if heading is None or not _is_ruled(lines, start):
        return start
    end = start + 2
    while end < len(lines) and not _is_ruled(lines, end):
        end += 1
    if heading["names"]:
        for item in _items(lines[start + 2 : end]):
            names = _NUMPY_ITEM.fullmatch(item[0])
            for name in names["name"].split(",") if names else ():
                _add(parameters, name.strip(), item[1:])
    return end


def _rest(lines: list[str], start: int, parameters: dict[str, str]) -> int:
    """`:param name: text` and the lines indented under it."""
    field = _REST_FIELD.match(lines[start])
    if field is None or field["kind"] not in _REST_PARAMETERS | _REST_OTHERS:
        return start
    end = _end_of_block(lines, start + 1)
    if field["kind"] in _REST_PARAMETERS and field["about"]:
        name = field["about"].split()[-1]  # a type may stand before the name
        _add(parameters, name, [lines[start][field.end() :], *lines[start + 1 : end]])
    return end


def _is_ruled(lines: list[str], start: int) -> bool:
    rule = lines[start + 1].strip() if start + 1 < len(lines) else ""
    return len(rule) >= 3 and not rule.strip("-=") and bool(lines[start].strip())


def _end_of_block(lines: list[str], start: int) -> int:
    """The line after the indented ones; blank lines belong to it if indented ones follow."""
    end = position = start
    while position < len(lines) and (not lines[position].strip() or lines[position][0].isspace()):
        position += 1
        if lines[position - 1].strip():
            end = position
    return end


def _items(block: list[str]) -> Iterator[list[str]]:
    """The block cut before each line that is not indented."""
    item: list[str] = []
    for line in block:
        if line.strip() and not line[0].isspace() and item:
            yield item
            item = []
        if line.strip() or item:
            item.append(line)
    if item:
        yield item


def _add(parameters: dict[str, str], name: str, lines: list[str]) -> None:
    text = " ".join(line.strip() for line in lines if line.strip())
    if text:
        parameters[name.lstrip("*")] = text


def _tidy(lines: list[str]) -> str:
    """Paragraphs kept, the line breaks of the source inside them too."""
    return re.sub(r"\n{3,}", "\n\n", "\n".join(line.rstrip() for line in lines)).strip()
