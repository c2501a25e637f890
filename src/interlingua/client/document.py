"""A YAML file whose every key knows its line, so that a mistake is shown where it is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from interlingua.spec.errors import ConfigurationError

if TYPE_CHECKING:
    from yaml import MappingNode, Node

_WORDS: dict[type, str] = {
    str: "a text",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    dict: "a mapping",
    list: "a list",
}


class Section:
    """One mapping of a file."""

    def __init__(self, path: Path, node: MappingNode | None, name: str) -> None:
        self._path = path
        self._name = name
        self._nodes: dict[str, Node] = {}
        self._lines: dict[str, int] = {}
        for key, value in node.value if node is not None else ():
            if key.value in self._lines:
                raise self.error(key.value, f"{key.value!r} is there twice")
            self._lines[key.value] = key.start_mark.line + 1
            self._nodes[key.value] = value

    def __iter__(self) -> Iterator[str]:
        return iter(self._nodes)

    def get(self, key: str, default: Any = None) -> Any:
        """The value; a null is none."""
        node = self._nodes.get(key)
        value = None if node is None else _construct(node)
        return default if value is None else value

    def check(self, known: Mapping[str, type]) -> Section:
        """Itself, without unknown keys or values of the wrong type."""
        for key in self._nodes:
            if key not in known:
                there = ", ".join(known)
                raise self.error(key, f"unknown key {key!r} in {self._name}; there are {there}")
            value, kind = self.get(key), known[key]
            fits = isinstance(value, (int, float) if kind is float else kind)
            if value is not None and (not fits or (isinstance(value, bool) and kind is not bool)):
                raise self.error(key, f"{key!r} in {self._name} must be {_WORDS[kind]}")
        return self

    def sections(self, key: str, known: Mapping[str, type]) -> dict[str, Section]:
        """The mappings that a mapping holds by name, each checked."""
        outer = self._section(key, key)
        return {name: outer._section(name, f"{key}.{name}").check(known) for name in outer}  # noqa: SLF001

    def error(self, key: str, message: str) -> ConfigurationError:
        """The error, with the line of the key."""
        line = self._lines.get(key)
        return ConfigurationError(f"{self._path}{f':{line}' if line else ''}: {message}")

    def _section(self, key: str, name: str) -> Section:
        from yaml import MappingNode

        node = self._nodes.get(key)
        if not isinstance(node, MappingNode):
            if self.get(key) is not None:
                raise self.error(key, f"{name!r} must be a mapping")
            node = None
        return Section(self._path, node, name)


def read_document(path: Path) -> Section:
    """The file's outermost mapping."""
    import yaml

    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{path} cannot be read: {error}") from None
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        if node is not None and not isinstance(node, yaml.MappingNode):
            raise ConfigurationError(f"{path}:1: a registry file is a mapping")
        section = Section(path, node, "the file")
        _construct(node)  # so that what cannot be constructed is told now
    except yaml.MarkedYAMLError as error:
        line = f":{error.problem_mark.line + 1}" if error.problem_mark else ""
        raise ConfigurationError(f"{path}{line}: {error.problem}") from None
    except yaml.YAMLError as error:
        raise ConfigurationError(f"{path}: it is no YAML: {error}") from None
    return section


def _construct(node: Node | None) -> Any:
    from yaml import SafeLoader

    loader = SafeLoader("")
    try:
        return None if node is None else loader.construct_document(node)
    finally:
        loader.dispose()
