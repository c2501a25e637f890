"""Parses docstrings in Google, reST and numpy style into a description and parameter texts."""

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
    """A parsed docstring."""

    description: str = ""
    """The text outside the sections for parameters, results and errors."""
    parameters: dict[str, str] = {}


def parse_docstring(text: str | None) -> Docstring:
    """Split a docstring. Lines in none of the known styles belong to the description."""
    lines = inspect.cleandoc(text or "").splitlines()
    description: list[str] = []
    parameters: dict[str, str] = {}
    position = 0
    while position < len(lines):
        for read_section in (_google, _numpy, _rest):
            end = read_section(lines, position, parameters)
            if end > position:
                position = end
                break
        else:
            description.append(lines[position])
            position += 1
    return Docstring(description=_tidy(description), parameters=parameters)


def _google(lines: list[str], start: int, parameters: dict[str, str]) -> int:
    """
    Read `Args:` and its indented items into `parameters`.

    Returns the line after the section, or `start` if no section begins there.
    """
    heading = _HEADING.fullmatch(lines[start])
    if heading is None or not heading["colon"]:
        return start
    end = _end_of_block(lines, start + 1)
    if end == start + 1:
        return start
    if heading["names"]:
        block = inspect.cleandoc("\n" + "\n".join(lines[start + 1 : end])).splitlines()
        for item in _items(block):
            match = _ITEM.match(item[0])
            if match is not None:
                _add(parameters, match["name"], [item[0][match.end() :], *item[1:]])
    return end


def _numpy(lines: list[str], start: int, parameters: dict[str, str]) -> int:
    """Read `Parameters`, its underline, and the items up to the next underlined heading."""
    heading = _HEADING.fullmatch(lines[start])
    if heading is None or not _is_underlined(lines, start):
        return start
    end = start + 2
    while end < len(lines) and not _is_underlined(lines, end):
        end += 1
    if heading["names"]:
        for item in _items(lines[start + 2 : end]):
            match = _NUMPY_ITEM.fullmatch(item[0])
            for name in match["name"].split(",") if match else ():
                _add(parameters, name.strip(), item[1:])
    return end


def _rest(lines: list[str], start: int, parameters: dict[str, str]) -> int:
    """Read `:param name: text` and the lines indented under it."""
    field = _REST_FIELD.match(lines[start])
    if field is None or field["kind"] not in _REST_PARAMETERS | _REST_OTHERS:
        return start
    end = _end_of_block(lines, start + 1)
    if field["kind"] in _REST_PARAMETERS and field["about"]:
        name = field["about"].split()[-1]  # `:param int count:` has the type before the name
        _add(parameters, name, [lines[start][field.end() :], *lines[start + 1 : end]])
    return end


def _is_underlined(lines: list[str], start: int) -> bool:
    underline = lines[start + 1].strip() if start + 1 < len(lines) else ""
    return len(underline) >= 3 and not underline.strip("-=") and bool(lines[start].strip())


def _end_of_block(lines: list[str], start: int) -> int:
    """The line after the indented block. Blank lines count only if indented lines follow them."""
    end = position = start
    while position < len(lines) and (not lines[position].strip() or lines[position][0].isspace()):
        position += 1
        if lines[position - 1].strip():
            end = position
    return end


def _items(block: list[str]) -> Iterator[list[str]]:
    """Split the block before each line that is not indented."""
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
    """Join the lines, with at most one blank line between paragraphs."""
    return re.sub(r"\n{3,}", "\n\n", "\n".join(line.rstrip() for line in lines)).strip()
