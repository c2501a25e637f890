"""Sets values in TOML, YAML and `.env` files, line by line, so that comments stay."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from typing import Any

from interlingua.spec.errors import ConfigurationError

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
    lines = text.splitlines(keepends=True)
    for name, value in values.items():
        written = f"{name}: {_quoted(value)}\n"
        places = [i for i, line in enumerate(lines) if line.startswith(f"{name}:")]
        if places:
            lines[places[-1]] = written
        else:
            _end_line(lines)
            lines.append(written)
    result = "".join(lines)
    _check(_load_yaml(result), {**(_load_yaml(text) or {}), **values}, json.dumps({**values}))
    return result


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
