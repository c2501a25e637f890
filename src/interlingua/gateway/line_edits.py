"""Sets values in TOML, YAML and `.env` files, line by line, so that comments stay."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from interlingua.spec.errors import ConfigurationError

if TYPE_CHECKING:
    from yaml import MappingNode, Node

_UNSAFE = "The file has a form that cannot be changed safely. Write this into it yourself:\n\n"


def set_toml(text: str, root: Mapping[str, str], table: str, values: Mapping[str, str]) -> str:
    """The text with these keys before the first table, and these in a table of two names."""
    lines = text.splitlines(keepends=True)
    begin = next((i for i, line in enumerate(lines) if line.lstrip().startswith("[")), len(lines))
    missing = [name for name, value in root.items() if not _put(lines, 0, begin, name, value)]
    head = [f"{name} = {_quoted(root[name])}\n" for name in missing]
    header = f"[{table}]"
    places = [i for i, line in enumerate(lines) if line.split("#")[0].strip() == header]
    if places:
        _fill_table(lines, places[0] + 1, values)
    else:
        _end_line(lines)
        lines += ["\n"] if lines else []
        lines += [
            f"{header}\n",
            *(f"{name} = {_quoted(value)}\n" for name, value in values.items()),
        ]
    if head and lines and not places:
        head += [] if begin else ["\n"]
    written = "".join([*head, *lines])
    outer, inner = table.split(".")
    wanted = _load_toml(text)
    group = dict(wanted.get(outer, {}))
    group[inner] = {**group.get(inner, {}), **values}
    _check(_load_toml(written), {**wanted, **root, outer: group}, f"{header}\n…")
    return written


def _fill_table(lines: list[str], begin: int, values: Mapping[str, str]) -> None:
    """Set the keys of a table whose lines begin here."""
    for name, value in values.items():
        headers = [i for i in range(begin, len(lines)) if lines[i].lstrip().startswith("[")]
        end = headers[0] if headers else len(lines)
        if not _put(lines, begin, end, name, value):
            lines.insert(begin, f"{name} = {_quoted(value)}\n")


def _put(lines: list[str], begin: int, end: int, name: str, value: str) -> bool:
    """Replace the value of a key between two lines; False if it is not there."""
    for number in range(begin, end):
        key, equals, rest = lines[number].partition("=")
        if equals and key.strip() == name:
            quote = max(rest.rfind('"'), rest.rfind("'"))
            tail = rest[quote + 1 :] if quote >= 0 else "\n"  # a comment stays
            lines[number] = f"{key.rstrip()} = {_quoted(value)}{tail}"
            return True
    return False


def _load_toml(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(f"The file is not valid TOML: {error}.") from None


def set_yaml(text: str, values: Mapping[str, str]) -> str:
    """The text of a mapping with these keys."""
    for name, value in values.items():
        text = edit_yaml(text, (name,), value)
    return text


def edit_yaml(text: str, path: Sequence[str], value: Any) -> str:
    """
    The text of a mapping with this value under a key, or under a key of one of its mappings.

    None removes the key. Everything else stays as it was written, also comments and order.
    """
    before = _load_yaml(text) or {}
    *outer, name = path
    wanted = _with_value(before, path, value)
    line = f"{_word(name)}: {_word(value)}"
    snippet = f"{outer[0]}:\n  {line}\n" if outer else f"{line}\n"
    if not isinstance(before, dict) or not isinstance(wanted, dict):
        raise ConfigurationError(_UNSAFE + snippet)
    written = _edit_node(text, _compose(text), outer, name, value)
    try:
        result = _drop_empty(_load_yaml(written))
    except ConfigurationError:
        result = None
    _check(result, _drop_empty(wanted), snippet)
    return written


def _with_value(mapping: Any, path: Sequence[str], value: Any) -> Any:
    """A copy of a mapping with another value; None if there is no mapping on the way."""
    if not isinstance(mapping, dict):
        return None
    name, *rest = path
    if rest:
        value = _with_value(mapping.get(name) or {}, rest, value)
        if value is None:
            return None
    others = {key: each for key, each in mapping.items() if key != name}
    return others if value is None else {**mapping, name: value}


def _drop_empty(mapping: Any) -> dict[Any, Any]:
    """A mapping without the keys that have nothing, which mean the same as none."""
    return {key: value for key, value in (mapping or {}).items() if value not in (None, {})}


def _compose(text: str) -> MappingNode | None:
    import yaml

    node = yaml.compose(text, Loader=yaml.SafeLoader)
    return node if isinstance(node, yaml.MappingNode) else None


def _edit_node(
    text: str, node: MappingNode | None, outer: Sequence[str], name: str, value: Any
) -> str:
    from yaml import MappingNode

    for step in outer:
        key, inner = _find_key(node, step)
        if isinstance(inner, MappingNode):
            node = inner
        elif value is None:
            return text
        elif key is None:
            return _append(text, f"{_word(step)}:\n  {_word(name)}: {_word(value)}\n")
        else:  # the key has no value yet
            return _insert_line(text, key.end_mark.index, f"  {_word(name)}: {_word(value)}\n")
    key, current = _find_key(node, name)
    if node is not None and node.flow_style:
        return _edit_flow(text, node, name, value)
    if key is None or current is None:
        return text if value is None else _add_key(text, node, name, value, is_inner=bool(outer))
    if value is not None:
        tail = text[current.end_mark.index :]
        if current.start_mark.index == current.end_mark.index:  # it has no value yet
            return f"{text[: key.end_mark.index]}: {_word(value)}{tail.removeprefix(':')}"
        return f"{text[: current.start_mark.index]}{_word(value)}{tail}"
    lines = text.splitlines(keepends=True)
    last = current.end_mark.line - (current.end_mark.column == 0)
    del lines[key.start_mark.line : max(last, key.start_mark.line) + 1]
    return "".join(lines)


def _find_key(node: MappingNode | None, name: str) -> tuple[Node | None, Node | None]:
    """The nodes of a key and of its value."""
    pairs = [] if node is None else node.value
    return next(((key, value) for key, value in pairs if key.value == name), (None, None))


def _edit_flow(text: str, node: MappingNode, name: str, value: Any) -> str:
    """The text with another value in a mapping in braces, which is written on one line."""
    values = _load_yaml(text[node.start_mark.index : node.end_mark.index])
    values = _with_value(values, (name,), value)
    inner = ", ".join(f"{_word(key)}: {_quoted(each)}" for key, each in values.items())
    return f"{text[: node.start_mark.index]}{{{inner}}}{text[node.end_mark.index :]}"


def _add_key(text: str, node: MappingNode | None, name: str, value: Any, *, is_inner: bool) -> str:
    line = f"{_word(name)}: {_word(value)}\n"
    if node is None or not is_inner:
        return _append(text, line)
    indent = " " * node.start_mark.column
    return _insert_line(text, node.value[-1][1].end_mark.index, indent + line)


def _append(text: str, lines: str) -> str:
    return f"{text}{'' if not text or text.endswith(chr(10)) else chr(10)}{lines}"


def _insert_line(text: str, at: int, line: str) -> str:
    """The text with a line after the one that has this place, or at it if it begins a line."""
    if at == 0 or text[at - 1] != "\n":
        end = text.find("\n", at)
        if end < 0:
            return f"{text}\n{line}"
        at = end + 1
    return f"{text[:at]}{line}{text[at:]}"


def _word(value: Any) -> str:
    """A value as YAML reads it, without quotes if it needs none."""
    is_plain = isinstance(value, str) and re.fullmatch(r"[\w][\w.:/@+-]*[\w]|\w", value)
    return value if is_plain and _load_yaml(value) == value else _quoted(value)


def add_yaml_item(text: str, field: str, item: Mapping[str, Any]) -> str:
    """The text of a list with this item, in place of the one that has the same value of a field."""
    items = _load_yaml(text) or []
    if not isinstance(items, list):
        raise ConfigurationError("The file is not a list.")
    lines = text.splitlines(keepends=True)
    rows = [f"{name}: {_quoted(value)}\n" for name, value in item.items()]
    block = [f"- {rows[0]}", *(f"  {row}" for row in rows[1:])]
    starts = [i for i, line in enumerate(lines) if line.startswith("- ")]
    numbers = [i for i, each in enumerate(items) if _field_of(each, field) == item[field]]
    if not numbers:
        _end_line(lines)
        lines += block
        wanted = [*items, dict(item)]
    elif len(starts) == len(items):
        number = numbers[0]
        end = starts[number + 1] if number + 1 < len(starts) else len(lines)
        lines[starts[number] : end] = block
        wanted = [*items[:number], dict(item), *items[number + 1 :]]
    else:
        raise ConfigurationError(_UNSAFE + "".join(block))
    written = "".join(lines)
    _check(_load_yaml(written), wanted, "".join(block))
    return written


def _field_of(item: Any, field: str) -> Any:
    return item.get(field) if isinstance(item, dict) else None


def _load_yaml(text: str) -> Any:
    import yaml

    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ConfigurationError(f"The file is not valid YAML: {error}.") from None


def set_env(text: str, values: Mapping[str, str]) -> str:
    """The text of a file of variables with these."""
    lines = text.splitlines(keepends=True)
    for name, value in values.items():
        written = f'{name}="{value}"\n'
        places = [
            i
            for i, line in enumerate(lines)
            if line.strip().removeprefix("export ").partition("=")[0].strip() == name
        ]
        if places:
            lines[places[-1]] = written
        else:
            _end_line(lines)
            lines.append(written)
    return "".join(lines)


def _end_line(lines: list[str]) -> None:
    """End the last line, so that another can follow."""
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += "\n"


def _quoted(value: Any) -> str:
    """A value as TOML and YAML both read it."""
    return json.dumps(value, ensure_ascii=False)


def _check(written: Any, wanted: Any, snippet: str) -> None:
    """Raise an error if an edit has changed more or less than it should."""
    if written != wanted:
        raise ConfigurationError(_UNSAFE + snippet)
