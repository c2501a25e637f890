"""
Known models as data.

The catalog is advice: an unknown id is sent to the provider unchanged. In `models.json` the models
of a provider are sorted, best first.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, date, datetime
from os import PathLike
from pathlib import Path
from threading import Lock
from typing import Any, Literal, Protocol, TypeAlias, TypeVar
from weakref import WeakValueDictionary

import msgspec

from interlingua.providers.catalog.prices import MediaVariant, Price, price_at
from interlingua.providers.rows import ROWS, row_name
from interlingua.spec.content import Record
from interlingua.spec.contracts import ModelKind
from interlingua.spec.errors import ConfigurationError
from interlingua.spec.response import Warning

Modality: TypeAlias = Literal["text", "image", "audio", "video"]
ModelTier: TypeAlias = Literal["small", "medium", "large"]

_T = TypeVar("_T")

_WITHOUT_ADDRESS = {row.name for row in ROWS if not row.base_url}

_DATED = re.compile(r"(.+?)[-@](?:20[0-9]{2}-[0-9]{2}-[0-9]{2}|20[0-9]{6})")


class ModelInfo(Record, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One model at one provider. None means unknown."""

    id: str
    """The id in requests."""
    provider: str
    """The name of the provider that serves it."""
    display_name: str
    """Its name for readers."""
    kind: ModelKind = "chat"
    """What it does: `chat`, `embedding`, `image`, …"""
    tier: ModelTier | None = None
    """Its size, comparable across providers: by the name of the model, else by its price."""
    context_window: int | None = None
    """The maximum number of input and output tokens together."""
    max_output: int | None = None
    """The maximum number of tokens of one response."""
    input_modalities: tuple[Modality, ...] = ()
    """What it accepts; empty if unknown."""
    output_modalities: tuple[Modality, ...] = ()
    """What it returns; empty if unknown."""
    supports_tools: bool | None = None
    """Whether it can call tools."""
    supports_vision: bool | None = None
    """Whether it accepts images."""
    supports_reasoning: bool | None = None
    """Whether it can think before it answers."""
    supports_structured_output: bool | None = None
    """Whether it can be held to a JSON Schema."""
    supports_caching: bool | None = None
    """Whether repeated input can be cached."""
    supports_audio: bool | None = None
    """Whether it accepts audio."""
    supports_pdf: bool | None = None
    """Whether it accepts PDF files."""
    supports_web_search: bool | None = None
    """Whether the provider can search the web for it."""
    dimensions: int | None = None
    """The size of the vectors of an embedding model."""
    variants: tuple[MediaVariant, ...] = ()
    """The sizes and qualities of an image or video model, where they are known."""
    seconds: tuple[int, ...] = ()
    """How long the videos of a video model can be."""
    prices: tuple[Price, ...] = ()
    """Its prices, by tier and date."""
    price_disputed: bool = False
    """Whether two sources disagree about a price by more than one percent."""
    price_note: str = ""
    """Why there is no price."""
    aliases: tuple[str, ...] = ()
    """Other ids of the same model at this provider."""
    released: date | None = None
    """The day of its release."""
    deprecated: bool = False
    """Whether the provider advises against it, or serves it no longer."""
    retires: date | None = None
    """The first day on which it is no longer served."""
    is_gated: bool = False
    """Whether only customers whom the provider has approved can use it."""

    @property
    def input_cost_per_million(self) -> float | None:
        """The standard price of input in US dollars, now, without long-context surcharges."""
        price = price_at(self.prices, datetime.now(UTC))
        return None if price is None else price.rates.input

    @property
    def output_cost_per_million(self) -> float | None:
        """The standard price of output in US dollars, now, without long-context surcharges."""
        price = price_at(self.prices, datetime.now(UTC))
        return None if price is None else price.rates.output


class Models(Mapping[str, tuple[ModelInfo, ...]]):
    """The models by provider, best first. Those of a provider are decoded when they are needed."""

    def __init__(self, sections: Mapping[str, Section]) -> None:
        self.sections: dict[str, Section] = dict(sections)

    def __getitem__(self, provider: str) -> tuple[ModelInfo, ...]:
        section = self.sections[provider]
        if isinstance(section, msgspec.Raw):
            section = self.sections[provider] = _decode(section, tuple[ModelInfo, ...])
        return section

    def __iter__(self) -> Iterator[str]:
        return iter(self.sections)

    def __len__(self) -> int:
        return len(self.sections)

    def names(self, provider: str) -> Iterable[_Named]:
        """The ids and aliases of a provider's models, which take less time than the models."""
        section = self.sections[provider]
        if isinstance(section, msgspec.Raw):
            return _decode(section, list[_Named])
        return [_Named(model.id, model.aliases) for model in section]


class Table:
    """All known models. A change of the catalog replaces the table; it is never changed itself."""

    def __init__(self, version: str, sections: Mapping[str, Section]) -> None:
        self.version: str = version
        """The day of the prices, and what was merged over them; costs state it."""
        self.models: Models = Models(sections)
        self._found: dict[str, dict[str, ModelInfo]] = {}
        self._providers: Mapping[str, tuple[str, ...]] | None = None

    @property
    def providers(self) -> Mapping[str, tuple[str, ...]]:
        """The providers of each id and alias, in the order of the catalog."""
        if self._providers is None:  # `cached_property` has a lock in Python 3.11: see `table`
            self._providers = self._find_providers()
        return self._providers

    def _find_providers(self) -> Mapping[str, tuple[str, ...]]:
        found: dict[str, tuple[str, ...]] = {}
        for provider in self.models:
            for model in self.models.names(provider):
                for name in (model.id, *model.aliases):
                    found[name] = (*found.get(name, ()), provider)
        return found

    def find(self, name: str, provider: str) -> ModelInfo | None:
        """The model of a provider with exactly this id or alias."""
        by_name = self._found.get(provider)
        if by_name is None:
            by_name = self._found[provider] = {
                name: model
                for model in self.models.get(provider, ())
                for name in (model.id, *model.aliases)
            }
        return by_name.get(name)


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    version: str
    sources: Mapping[str, str]
    models: Mapping[str, msgspec.Raw]


class _Named(msgspec.Struct, frozen=True):
    id: str
    aliases: tuple[str, ...] = ()


Section: TypeAlias = "msgspec.Raw | tuple[ModelInfo, ...]"
"""The models of a provider, as JSON or decoded."""

NOTICES: dict[tuple[str, str], tuple[Warning, ...]] = {}
"""Warnings about models, by provider and id: see `search.lifecycle_notices`."""

_lock = Lock()
_current: Table | None = None
_caches: WeakValueDictionary[int, Cache] = WeakValueDictionary()


class Cache(Protocol):
    """What was derived from the table."""

    def clear(self) -> None:
        """Forget it."""


def clear_on_change(cache: Cache) -> None:
    """Clear this cache, as long as it exists, whenever the table changes."""
    _caches[id(cache)] = cache


def _clear_caches() -> None:
    NOTICES.clear()
    for reference in _caches.valuerefs():  # another thread may add a cache meanwhile
        cache = reference()
        if cache is not None:
            cache.clear()


def table() -> Table:
    """
    The current table; the data file is read on first use.

    Two threads may read it at once. There is no lock here, because a process that is forked while
    another thread holds it would wait for ever.
    """
    global _current  # noqa: PLW0603
    known = _current
    if known is None:
        known = _load()
        if _current is None:  # else another thread has read or changed it meanwhile
            _current = known
    return _current or known


def change_table(change: Callable[[Table], Table]) -> Table:
    """Replace the table by a changed one. One thread at a time; readers keep what they have."""
    global _current  # noqa: PLW0603
    with _lock:
        _current = change(table())
        _clear_caches()
        return _current


def reset_table() -> None:
    """Forget everything that was merged over the data file."""
    global _current  # noqa: PLW0603
    with _lock:
        _current = None
        _clear_caches()


def find_model(model_id: str, provider: str | None = None) -> ModelInfo | None:
    """
    The entry of a model by its id, an alias, or the dated id of a version of it; None if unknown.

    If several providers serve the id: that of `provider`, the name of a row, by default the first
    in the catalog.
    """
    known = table()
    for spelling in _spellings(model_id):
        for place in known.providers.get(spelling, ()) if provider is None else (provider,):
            found = known.find(spelling, place)
            if found is not None:
                return found
    return None


def providers_of(model_id: str) -> tuple[str, ...]:
    """
    The providers that serve exactly this id or alias, for routing.

    A provider without an address of its own is not among them: its customers name the models.
    """
    serving = table().providers.get(model_id, ())
    return tuple(name for name in serving if name not in _WITHOUT_ADDRESS)


def _spellings(model_id: str) -> Iterator[str]:
    yield model_id
    yield model_id.lower()
    if model_id.startswith("ft:"):  # ft:<base>:<organization>:<name>:<id>
        yield ":".join(model_id.split(":", 2)[:2])
    yield without_date(model_id)


def without_date(model_id: str) -> str:
    """The name of a model without the date of a version, if it has one."""
    dated = _DATED.fullmatch(model_id)
    return model_id if dated is None else dated[1]


def _load() -> Table:
    from pkgutil import get_data  # a tenth of the time that importlib.resources takes

    return _read(get_data("interlingua.providers.catalog", "models.json") or b"")


def _read(text: bytes) -> Table:
    data = _decode(text, _File)
    return Table(data.version, data.models)


def _decode(text: bytes | msgspec.Raw, kind: type[_T]) -> _T:
    try:
        return msgspec.json.decode(text, type=kind)
    except msgspec.MsgspecError as error:
        raise ConfigurationError(f"The model catalog cannot be read: {error}.") from error


# Models and prices of the user's own, merged over the catalog.

_YAML = (".yaml", ".yml")


def update(path: str | PathLike[str]) -> None:
    """
    Merge a file of models and prices over the catalog, for all clients of this process.

    The file is JSON or YAML: `models` is a list of models with `id`, `provider` and the fields of
    `ModelInfo` that are new or different. Everything is checked before anything is changed, and
    `ConfigurationError` names the file and the key. A second `update` goes over the first one.
    """
    from hashlib import sha256  # loads OpenSSL

    text = _text(Path(path))
    rows = _rows(_parse(text, Path(path)), Path(path))
    tag = sha256(text).hexdigest()[:8]
    change_table(lambda table: merge_rows(table, rows, Path(path), tag))


def merge_rows(table: Table, rows: list[dict[str, Any]], path: Path, tag: str) -> Table:
    """The table with these rows merged over it."""
    models: dict[str, list[ModelInfo]] = {}
    for number, row in enumerate(rows):
        listed = models.setdefault(row["provider"], [*table.models.get(row["provider"], ())])
        ids = {row["id"], *(known.id for known in listed)}
        info = _without_aliases(_merged(row, listed, f"{path}: models[{number}]"), ids)
        places = [place for place, known in enumerate(listed) if known.id == info.id]
        place = places[0] if places else len(listed)
        listed[place : place + 1] = [info]
        taken = {info.id, *info.aliases}
        models[info.provider] = [
            known if known is info else _without_aliases(known, taken) for known in listed
        ]
    tags = [part for part in table.version.split("+") if part != tag]
    version = "+".join([*tags, tag])
    changed = {name: tuple(listed) for name, listed in models.items()}
    return Table(version, {**table.models.sections, **changed})


def _without_aliases(model: ModelInfo, taken: set[str]) -> ModelInfo:
    if taken.isdisjoint(model.aliases):
        return model
    aliases = tuple(alias for alias in model.aliases if alias not in taken)
    return msgspec.structs.replace(model, aliases=aliases)


def _merged(row: dict[str, Any], listed: list[ModelInfo], where: str) -> ModelInfo:
    known = next((model for model in listed if model.id == row["id"]), None)
    base = {"display_name": row["id"]} if known is None else msgspec.to_builtins(known)
    try:
        return msgspec.convert({**base, **row}, ModelInfo)
    except msgspec.ValidationError as error:
        raise ConfigurationError(f"{where} ({row['provider']}:{row['id']}): {error}.") from error


def _text(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be read: {error}.") from error


def _parse(text: bytes, path: Path) -> object:
    try:
        if path.suffix.lower() in _YAML:
            import yaml

            return yaml.safe_load(text)
        return msgspec.json.decode(text)
    except Exception as error:
        raise ConfigurationError(f"{path}: {' '.join(str(error).split()).rstrip('.')}.") from error


def _rows(data: object, path: Path) -> list[dict[str, Any]]:
    """The rows with the names of our providers; each has an id and a provider."""
    if not isinstance(data, Mapping) or not isinstance(data.get("models"), list):
        raise ConfigurationError(f"{path}: 'models' must be a list of models.")
    for key in data.keys() - {"models"}:
        raise ConfigurationError(f"{path}: There is no key {key!r}, only 'models'.")
    rows = []
    for number, row in enumerate(data["models"]):
        for key in ("id", "provider"):
            name = row.get(key) if isinstance(row, Mapping) else None
            if not isinstance(name, str) or not name:
                what = "a string (in YAML, a number in quotes is one)."
                raise ConfigurationError(f"{path}: models[{number}] must have {key!r}, {what}")
        provider = row["provider"]
        rows.append({**row, "provider": row_name(provider) or provider})
    return rows
