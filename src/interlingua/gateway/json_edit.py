"""Sets values in JSON text that may have comments; everything else stays as it was written."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

from interlingua.spec.errors import ConfigurationError


class Item(NamedTuple):
    """A step into a list: the object in which a field has this value; without one, a new item."""

    field: str
    value: str


Step: TypeAlias = str | Item
_UNIT = "  "  # the usual indent


class _Node:
    """A value with its place in the text."""

    __slots__ = ("end", "inner", "start", "value")

    def __init__(self, start: int) -> None:
        self.start = start
        self.end = start
        self.value: Any = None
        self.inner: list[tuple[int, str | None, _Node]] = []
        """Of an object or list: where each member begins, its name, and its value."""

    def find(self, step: Step) -> _Node | None:
        """The member that a step leads to; None if there is none."""
        found = None
        for _, name, node in self.inner:
            if isinstance(step, str):
                is_it = name == step
            else:
                is_it = isinstance(node.value, dict) and node.value.get(step.field) == step.value
            found = node if is_it else found  # of two members with one name the last counts
        return found


def read_json(text: str) -> Any:
    """The value of a JSON text with comments and trailing commas; an empty text is an object."""
    return _parse(text).value


def set_json(text: str, path: Sequence[Step], value: Any) -> str:
    """The text with this value at a path; objects and lists on the way are made."""
    if not text.strip():
        text = "{}\n"
    node = _parse(text)
    for number, step in enumerate(path):
        if not isinstance(node.value, dict if isinstance(step, str) else list):
            place = ".".join(each for each in path[:number] if isinstance(each, str))
            raise ConfigurationError(f"`{place}` is neither an object nor a list.")
        child = node.find(step)
        if child is None:
            return _insert(text, node, step, _nest(path[number + 1 :], value))
        node = child
    written = _render(value, _indent_before(text, node.start))
    return text[: node.start] + written + text[node.end :]


def _nest(path: Sequence[Step], value: Any) -> Any:
    for step in reversed(path):
        value = {step: value} if isinstance(step, str) else [value]
    return value


def _render(value: Any, indent: str | None) -> str:
    """The JSON of a value; on one line without an indent."""
    if indent is None:
        return json.dumps(value, ensure_ascii=False)
    unit = "\t" if "\t" in indent else _UNIT
    return json.dumps(value, ensure_ascii=False, indent=unit).replace("\n", f"\n{indent}")


def _indent_before(text: str, at: int) -> str:
    """The white space at the beginning of a line."""
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line[: len(line) - len(line.lstrip())]


def _insert(text: str, node: _Node, step: Step, value: Any) -> str:
    """The text with another member at the end of an object or list."""
    name = f"{json.dumps(step, ensure_ascii=False)}: " if isinstance(step, str) else ""
    outer = _indent_before(text, node.start)
    if not node.inner:
        indent = outer + ("\t" if "\t" in outer else _UNIT)
        head = text[: node.end - 1].rstrip()  # there may be a comment in it
        return f"{head}\n{indent}{name}{_render(value, indent)}\n{outer}{text[node.end - 1 :]}"
    first, (_, _, last) = node.inner[0][0], node.inner[-1]
    after = _skip(text, last.end)
    has_comma = text[after] == ","
    if "\n" not in text[node.start : first]:
        piece = f"{'' if has_comma else ','} {name}{_render(value, None)}"
        at = after + 1 if has_comma else last.end
        return f"{text[:at]}{piece}{text[at:]}"
    indent = _indent_before(text, first)
    piece = f"\n{indent}{name}{_render(value, indent)}{',' if has_comma else ''}"
    begin = after + 1 if has_comma else last.end
    line_end = text.find("\n", begin, node.end)  # a comment on the last line stays there
    at = line_end if line_end >= 0 else begin
    return f"{text[: last.end]}{'' if has_comma else ','}{text[last.end : at]}{piece}{text[at:]}"


# Reading.


def _parse(text: str) -> _Node:
    start = _skip(text, 0)
    node = _read(text, start)
    if _skip(text, node.end) < len(text):
        raise _error(text, node.end)
    return node


def _error(text: str, at: int) -> ConfigurationError:
    line = text.count("\n", 0, at) + 1
    return ConfigurationError(f"Line {line} is not valid JSON.")


def _skip(text: str, at: int) -> int:
    """The place of the next character that is neither white space nor in a comment."""
    while at < len(text):
        if text[at].isspace() or text[at] == "\ufeff":
            at += 1
        elif text.startswith("//", at):
            end = text.find("\n", at)
            at = end if end >= 0 else len(text)
        elif text.startswith("/*", at):
            end = text.find("*/", at + 2)
            if end < 0:
                raise _error(text, at)
            at = end + 2
        else:
            break
    return at


def _read(text: str, at: int) -> _Node:
    node = _Node(at)
    first = text[at : at + 1]
    if first in ("{", "["):
        _read_inner(text, node, is_object=first == "{")
        return node
    node.end = _scalar_end(text, at)
    try:
        node.value = json.loads(text[at : node.end])
    except ValueError:
        raise _error(text, at) from None
    return node


def _scalar_end(text: str, at: int) -> int:
    """Where a string, a number or a word ends."""
    if text[at : at + 1] == '"':
        end = at + 1
        while end < len(text) and text[end] not in '"\n':
            end += 2 if text[end] == "\\" else 1
        return end + 1
    end = at
    while end < len(text) and (text[end].isalnum() or text[end] in "+-."):
        end += 1
    return end


def _read_inner(text: str, node: _Node, *, is_object: bool) -> None:
    """The members of an object or list."""
    values: dict[str, Any] = {}
    items: list[Any] = []
    close = "}" if is_object else "]"
    at = _skip(text, node.start + 1)
    while text[at : at + 1] != close:
        begin, name = at, None
        if is_object:
            key = _read(text, at)
            name = key.value
            colon = _skip(text, key.end)
            if not isinstance(name, str) or text[colon : colon + 1] != ":":
                raise _error(text, at)
            at = _skip(text, colon + 1)
        child = _read(text, at)
        node.inner.append((begin, name, child))
        if name is None:
            items.append(child.value)
        else:
            values[name] = child.value
        at = _skip(text, child.end)
        if text[at : at + 1] == ",":
            at = _skip(text, at + 1)
        elif text[at : at + 1] != close:
            raise _error(text, at)
    node.value = values if is_object else items
    node.end = at + 1
