"""Adapters and models from a registry file (YAML), the only reader of such files."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

from msgspec.structs import replace

from interlingua.client.behaviour_section import OTHER_KEYS, read_behaviour
from interlingua.client.registry import ModelEntry, Registry
from interlingua.providers.adapter import HttpAdapter
from interlingua.providers.adapter_options import setting_row
from interlingua.providers.catalog.profiles import check_overrides
from interlingua.providers.environment import add_environment
from interlingua.providers.provider import Provider
from interlingua.providers.rows import find_provider, row_name
from interlingua.runtime.log import logger
from interlingua.spec.check import Row, Seconds, fits, rows_of_options
from interlingua.spec.errors import ConfigurationError
from interlingua.transport.downloads import others_can_read


class _File(TypedDict, total=False):
    """The outermost keys of a registry file."""

    adapters: Mapping[str, Any]
    models: Mapping[str, Any]
    default_provider: str
    default_model: str
    aliases: Mapping[str, Any]
    gateway: Mapping[str, Any]  # `gateway/config.py` reads it
    log: bool  # these four are for the command line: `cli/configuration.py` reads them
    default_embedding_model: str
    templates: Mapping[str, Any]
    mcp_servers: Mapping[str, Any]


class _Model(TypedDict, total=False):
    """The keys of a model."""

    adapter: str
    wire_name: str
    tier: str
    can_delegate: bool
    aliases: list[str]
    profile: Mapping[str, Any]


class _Adapter(TypedDict, total=False):
    """The keys of an adapter that only files have, or that have another type there."""

    type: str
    api_key_env: str
    api_key: str
    timeout_seconds: Seconds
    gguf: str
    behaviour: Mapping[str, Any]


_SETTINGS = (
    *("base_url", "places", "api_version", "dialect", "timeout", "max_retries", "default_headers"),
    *("organization", "project", "options", "strict", "on_loss", "gguf"),
)
"""The settings of `HttpAdapter` that a file may set."""
_SAME = {"type": "providerId", "api_key": "apiKey", "base_url": "apiBaseUrl"}
"""Keys that mean the same; a section has only one of them."""
_KEYS = {"timeout": "timeout_seconds", "default_headers": "extra_headers"}
"""The names of settings in a file, where they differ from those of `HttpAdapter`."""


@cache
def _adapter_rows() -> dict[str, Row | None]:
    """What each key of an adapter must be."""
    settings = {_KEYS.get(name, name): setting_row(name) for name in (*_SETTINGS, "profile")}
    return {**settings, **rows_of_options(_Adapter), **OTHER_KEYS}


def read_registry(
    path: str | Path, environ: Mapping[str, str] | None = None, *, text: str | None = None
) -> tuple[dict[str, HttpAdapter], Registry, str | None]:
    """
    The adapters, models and default provider of a YAML file; `text` is its content, if it is known.

    An unknown key or a value of the wrong type is an error with its line. A missing API key is
    not: it is reported when the adapter is used. Keys, addresses and headers that the file does
    not set come from the environment, as in `adapters_from_env`.
    """
    file = read_file(Path(path).expanduser(), text)
    built, registry, default = build_registry([file], environ)
    if default is not None and default not in built:
        raise file.error("default_provider", f"default_provider: there is no adapter {default!r}.")
    return built, registry, default


def read_file(path: Path, text: str | None = None) -> Section:
    """A registry file whose outermost keys are checked; `text` is its content, if it is known."""
    return read_document(path, text).check(rows_of_options(_File))


def build_registry(
    files: Sequence[Section],
    environ: Mapping[str, str] | None = None,
    *,
    takes_providers: bool = False,
) -> tuple[dict[str, HttpAdapter], Registry, str | None]:
    """
    The adapters, models and default provider of several files; what an earlier one has wins.

    With `takes_providers`, a model may name a provider that no file has an adapter for: its
    adapter is made from the environment.
    """
    environ = os.environ if environ is None else environ
    adapters = _merge_sections(files, "adapters", _adapter_rows())
    models = _merge_sections(files, "models", rows_of_options(_Model))
    if takes_providers:
        names = {_adapter_of(name, section) for name, section in models.items()} - {*adapters, None}
        known = filter(row_name, filter(None, names))
        adapters |= {name: Section(files[0].path, None, name) for name in known}
    for file in files:
        _warn_about_keys(file)
    entries = [_entry(name, section, adapters) for name, section in models.items()]
    _check_profiles(entries, models)
    built = {name: _build(name, section, entries, environ) for name, section in adapters.items()}
    aliases, owners = read_aliases(files)
    try:
        registry = Registry(entries, _first(files, "default_model") or "", aliases)
    except ConfigurationError as error:
        if error.setting is None or error.model is None:
            raise
        owner = models[error.model] if error.setting == "aliases" else owners[error.model]
        raise owner.error(error.setting, error.message) from None
    return built, registry, _first(files, "default_provider")


def read_aliases(files: Sequence[Section]) -> tuple[dict[str, str], dict[str, Section]]:
    """The model of each name in the sections `aliases`, and the section that has it."""
    aliases: dict[str, str] = {}
    owners: dict[str, Section] = {}
    for file in reversed(files):
        section = file.section("aliases", "aliases")
        for name in section:
            model = section.get(name)
            if not isinstance(model, str) or not model.strip():
                raise section.error(name, f"aliases.{name} must be the name of a model.")
            aliases[name], owners[name] = model, section
    return aliases, owners


def _merge_sections(
    files: Sequence[Section], key: str, known: Mapping[str, Row | None]
) -> dict[str, Section]:
    merged: dict[str, Section] = {}
    for file in reversed(files):
        merged |= file.sections(key, known)
    return merged


def _first(files: Sequence[Section], key: str) -> Any:
    """The value in the first file that has one."""
    return next((value for file in files if (value := file.get(key)) is not None), None)


def _warn_about_keys(file: Section) -> None:
    path, adapters = file.path, file.sections("adapters", _adapter_rows())
    holders = [name for name, section in adapters.items() if "api_key" in section]
    holders += [name for name, section in adapters.items() if "apiKey" in section]
    if holders and others_can_read(path):
        logger.warning(
            "%s has the API key of %s, and other users of this machine can read the file. "
            "Run chmod 600 on it, or name a variable with `api_key_env`.",
            path,
            ", ".join(holders),
        )


def _adapter_of(name: str, section: Section) -> str | None:
    prefix, colon, _ = name.partition(":")
    adapter: str | None = section.get("adapter", prefix if colon else None)
    return adapter


def _entry(name: str, section: Section, adapters: Mapping[str, Section]) -> ModelEntry:
    _, colon, rest = name.partition(":")
    adapter = _adapter_of(name, section)
    if adapter is None:
        raise section.error(
            "adapter", f"Model {name!r}: set `adapter`, or write the name as adapter:model."
        )
    if adapter not in adapters:
        raise section.error("adapter", f"Model {name!r}: this file has no adapter {adapter!r}.")
    wire_name = section.get("wire_name", rest if colon else name)
    if not wire_name:
        raise section.error("wire_name", f"Model {name!r}: the name of the model is empty.")
    return ModelEntry(
        id=name,
        adapter=adapter,
        wire_name=wire_name,
        tier=section.get("tier"),
        can_delegate=section.get("can_delegate", False),
        aliases=tuple(section.get("aliases", ())),
        profile=_profile(section, name),
    )


def _check_profiles(entries: Iterable[ModelEntry], sections: Mapping[str, Section]) -> None:
    """Raise an error if a model has two profiles under two names: requests have only one."""
    first: dict[tuple[str, str], ModelEntry] = {}
    for entry in entries:
        known = (
            first.setdefault((entry.adapter, entry.wire_name), entry) if entry.profile else entry
        )
        if known.profile != entry.profile:
            what = f"Model {entry.id!r}: {known.id!r} is the same model, with another profile."
            raise sections[entry.id].error("profile", what)


def _build(
    name: str, section: Section, entries: list[ModelEntry], environ: Mapping[str, str]
) -> HttpAdapter:
    for key, same in _SAME.items():
        if key in section and same in section:
            raise section.error(same, f"Adapter {name!r}: {same} and {key} are the same. Set one.")
    row = _row(name, section)
    settings: dict[str, Any] = {
        **{setting: section.get(_KEYS.get(setting, setting)) for setting in _SETTINGS},
        "api_key": section.get("api_key", section.get("apiKey", "")).strip() or None,
        "name": name,
        "base_url": section.get("base_url", section.get("apiBaseUrl")),
        "behaviour": read_behaviour(name, section),
        "profile": _profile(section, name),
        "model_profiles": {
            entry.wire_name: entry.profile
            for entry in entries
            if entry.adapter == name and entry.profile
        },
    }
    try:
        adapter = HttpAdapter(row, **add_environment(row, settings, environ))
    except ConfigurationError as error:
        if error.setting is None:
            raise
        key = _KEYS.get(error.setting, error.setting)
        raise section.error(key, f"Adapter {name!r}: {error.message}") from None
    adapter.source = section.error("api_key_env", "").message
    adapter.given_settings = settings
    return adapter


def _row(name: str, section: Section) -> Provider:
    try:
        row = find_provider(section.get("type", section.get("providerId", name)))
    except ConfigurationError as error:
        hint = "" if "type" in section else " Set `type` to the name of the provider."
        raise section.error("type", f"Adapter {name!r}: {error.message}{hint}") from None
    variable = section.get("api_key_env")
    # An error about a missing key then names this variable.
    return row if variable is None else replace(row, key_env=(variable,))


def _profile(section: Section, name: str) -> Mapping[str, Any]:
    overrides = section.get("profile", {})
    try:
        check_overrides(overrides, name)
    except ConfigurationError as error:
        raise section.error("profile", error.message) from None
    return dict(overrides)


if TYPE_CHECKING:
    from yaml import MappingNode, Node, SafeLoader

_MERGE = "<<"
MAX_VALUES = 100_000
"""How many values a registry file may have, those of anchors counted at each of their places."""


class Section:
    """A mapping in a YAML file that knows the line of each key, for error messages."""

    def __init__(
        self, path: Path, node: MappingNode | None, name: str, line: int | None = None
    ) -> None:
        self.path = path
        """The file."""
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
        """The value; the default if it is missing or null."""
        node = self._nodes.get(key)
        value = None if node is None else _construct(node)
        return default if value is None else value

    def check(self, known: Mapping[str, Row | None]) -> Section:
        """Raise an error for an unknown key or a value that does not fit; returns itself."""
        for key in self._nodes:
            if key not in known:
                names = ", ".join(known)
                raise self.error(key, f"Unknown key {key!r} in {self._name}. Known keys: {names}.")
            value, row = self.get(key), known[key]
            if value is not None and row is not None and not fits(row, value):
                expected = row.expected.replace("True or False", "true or false")
                hint = " If it is one, put it in quotes." if row.types == (str,) else ""
                # The message does not contain the value, which may be a key.
                raise self.error(key, f"{key!r} in {self._name} must be {expected}.{hint}")
        return self

    def sections(self, key: str, known: Mapping[str, Row | None]) -> dict[str, Section]:
        """The sections in the mapping at this key, by name, each checked."""
        outer = self.section(key, key)
        return {name: outer.section(name, f"{key}.{name}").check(known) for name in outer}

    def error(self, key: str, message: str) -> ConfigurationError:
        """An error with the line of the key, or of the section if the key is missing."""
        return _error(self.path, self._lines.get(key, self._line), message)

    def place(self, key: str) -> str:
        """The file and the line of a key."""
        return f"{self.path}:{self._lines.get(key, self._line)}"

    def section(self, key: str, name: str) -> Section:
        """The mapping at this key as a section; an empty one if it is missing."""
        from yaml import MappingNode

        node = self._nodes.get(key)
        if not isinstance(node, MappingNode):
            if self.get(key) is not None:
                raise self.error(key, f"{name!r} must be a mapping.")
            node = None
        return Section(self.path, node, name, self._lines.get(key))


def read_text(path: Path) -> str:
    """The content of a registry file."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"Cannot read {path}: {error}.") from None


def read_document(path: Path, text: str | None = None) -> Section:
    """The outermost mapping of a YAML file; `text` is its content, if it is known."""
    import yaml

    try:
        node = yaml.compose(read_text(path) if text is None else text, Loader=yaml.SafeLoader)
        if node is not None and not isinstance(node, yaml.MappingNode):
            raise _error(path, 1, "A registry file must be a mapping.")
        _check_nodes(node, path, {})
        _construct(node)  # reports values that cannot be constructed
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else None
        problem = str(error.problem)
        raise _error(path, line, f"{problem[:1].upper()}{problem[1:]}.") from None
    except yaml.YAMLError as error:
        raise ConfigurationError(f"{path}: This is not valid YAML: {error}.") from None
    except RecursionError:
        raise ConfigurationError(f"{path}: The values are nested too deeply.") from None
    return Section(path, node, "the file")


def _check_nodes(node: Node | None, path: Path, sizes: dict[int, int | None]) -> int:
    """
    Check that keys are strings and unique, and replace each `<<` by the keys it merges.

    Returns the number of values. Because of anchors a node may occur in several places: `sizes` has
    the number of each, None while it is being counted.
    """
    from yaml import MappingNode, Node, SequenceNode

    if not isinstance(node, (MappingNode, SequenceNode)):
        return 1
    size = sizes.get(id(node), 0)
    line = node.start_mark.line + 1
    if size is None:
        raise _error(path, line, "The value refers to itself.")
    if size:
        return size
    sizes[id(node)] = None
    names: set[str] = set()
    total = 1
    for item in node.value:
        key, value = (None, item) if isinstance(item, Node) else item
        if key is not None:
            _check_key(key, names, path)
        total += _check_nodes(value, path, sizes)
    if total > MAX_VALUES:
        raise _error(path, line, f"The file has more than {MAX_VALUES} values.")
    if isinstance(node, MappingNode) and _MERGE in names:
        _merge(node)
    sizes[id(node)] = total
    return total


def _check_key(key: Node, names: set[str], path: Path) -> None:
    name, line = key.value, key.start_mark.line + 1
    if not isinstance(name, str):
        raise _error(path, line, "A key must be a string.")
    if name in names and name != _MERGE:
        raise _error(path, line, f"Duplicate key {name!r}.")
    names.add(name)


def _merge(node: MappingNode) -> None:
    """Replace `<<` by the keys it merges; keys of the mapping itself take precedence."""
    from yaml import SafeLoader

    loader = SafeLoader("")
    try:
        loader.flatten_mapping(node)
    finally:
        loader.dispose()
    node.value = list({key.value: (key, value) for key, value in node.value}.values())


def _error(path: Path, line: int | None, message: str) -> ConfigurationError:
    return ConfigurationError(f"{path}{f':{line}' if line else ''}: {message}")


@cache
def _loader() -> type[SafeLoader]:
    import yaml

    class Loader(yaml.SafeLoader):
        """Reports every value that cannot be constructed, with its line."""

        def construct_object(self, node: Node, deep: bool = False) -> Any:
            try:
                value = super().construct_object(node, deep)
                if isinstance(value, str):
                    value.encode()
            except (ValueError, LookupError, AttributeError, OverflowError):
                kind = node.tag.rpartition(":")[2]
                problem = f"{str(node.value)[:60]!a} is not a valid {kind}; put a string in quotes"
                raise yaml.constructor.ConstructorError(
                    None, None, problem, node.start_mark
                ) from None
            return value

    return Loader


def _construct(node: Node | None) -> Any:
    loader = _loader()("")
    try:
        return None if node is None else loader.construct_document(node)
    finally:
        loader.dispose()
