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
_MERGE = "<<"


class Section:
    """One mapping of a file."""

    def __init__(
        self, path: Path, node: MappingNode | None, name: str, line: int | None = None
    ) -> None:
        self._path = path
        self._name = name
        self._line = line
        self._nodes: dict[str, Node] = {}
        self._lines: dict[str, int] = {}
        for key, value in node.value if node is not None else ():
            self._lines[key.value] = key.start_mark.line + 1
            self._nodes[key.value] = value

    def __iter__(self) -> Iterator[str]:
        return iter(self._nodes)

    def __contains__(self, key: str) -> bool:
        return key in self._nodes

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
        """The error, with the line of the key, or of the section if it has no such key."""
        return _error(self._path, self._lines.get(key, self._line), message)

    def _section(self, key: str, name: str) -> Section:
        from yaml import MappingNode

        node = self._nodes.get(key)
        if not isinstance(node, MappingNode):
            if self.get(key) is not None:
                raise self.error(key, f"{name!r} must be a mapping")
            node = None
        return Section(self._path, node, name, self._lines.get(key))


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
            raise _error(path, 1, "a registry file is a mapping")
        _check_keys(node, path, set())
        _construct(node)  # so that what cannot be constructed is told now
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else None
        raise _error(path, line, str(error.problem)) from None
    except yaml.YAMLError as error:
        raise ConfigurationError(f"{path}: it is no YAML: {error}") from None
    except RecursionError:
        raise ConfigurationError(f"{path}: it is nested too deeply") from None
    return Section(path, node, "the file")


def _check_keys(node: Node | None, path: Path, seen: set[int]) -> None:
    """Each key of each mapping a text, and there once; what `<<` merges lies under them."""
    from yaml import MappingNode, SequenceNode

    if id(node) in seen or not isinstance(node, (MappingNode, SequenceNode)):
        return
    seen.add(id(node))  # anchors: a node may stand in several places
    if isinstance(node, SequenceNode):
        for item in node.value:
            _check_keys(item, path, seen)
        return
    names: set[str] = set()
    for key, value in node.value:
        line = key.start_mark.line + 1
        if not isinstance(key.value, str):
            raise _error(path, line, "a key must be a text")
        if key.value in names and key.value != _MERGE:
            raise _error(path, line, f"{key.value!r} is there twice")
        names.add(key.value)
        _check_keys(value, path, seen)
    if _MERGE in names:
        _merge(node)


def _merge(node: MappingNode) -> None:
    """Put the keys of `<<` in its place, those of the mapping itself over them."""
    from yaml import SafeLoader

    loader = SafeLoader("")
    try:
        loader.flatten_mapping(node)
    finally:
        loader.dispose()
    node.value = list({key.value: (key, value) for key, value in node.value}.values())


def _error(path: Path, line: int | None, message: str) -> ConfigurationError:
    return ConfigurationError(f"{path}{f':{line}' if line else ''}: {message}")


def _construct(node: Node | None) -> Any:
    from yaml import SafeLoader

    loader = SafeLoader("")
    try:
        return None if node is None else loader.construct_document(node)
    finally:
        loader.dispose()
