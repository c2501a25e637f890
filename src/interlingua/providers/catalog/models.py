"""
Known models as data.

The catalog is advice: an unknown id is sent to the provider unchanged. In `data` each provider has
a file with its models, best first; `index.json` has the ids of all models.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, date, datetime
from threading import Lock
from typing import Literal, Protocol, TypeAlias, TypeVar
from weakref import WeakValueDictionary

import msgspec

from interlingua.providers.catalog import read_data
from interlingua.providers.catalog.prices import MediaVariant, Price, price_at
from interlingua.providers.rows import ROWS
from interlingua.spec.content import Record
from interlingua.spec.contracts import Modality, ModelKind
from interlingua.spec.errors import ConfigurationError
from interlingua.spec.response import Warning

ModelTier: TypeAlias = Literal["small", "medium", "large"]

_T = TypeVar("_T")

_WITHOUT_ADDRESS = {row.name for row in ROWS if not row.base_url}

# The sources of the catalog write `claude-opus-5@default` for what Vertex serves without a version.
_DATED = re.compile(r"(.+?)(?:[-@](?:20[0-9]{2}-[0-9]{2}-[0-9]{2}|20[0-9]{6})|@default)")


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
    """The size of the vectors of an embedding model, if no other is asked for."""
    max_dimensions: int | None = None
    """The largest size of vectors that can be asked for."""
    variants: tuple[MediaVariant, ...] = ()
    """The sizes and qualities of an image or video model that have their own price."""
    sizes: tuple[str, ...] = ()
    """All sizes in which an image or video model works; empty if unknown."""
    seconds: tuple[int, ...] = ()
    """How long the videos of a video model can be; empty if unknown."""
    speeds: tuple[float, float] | None = None
    """The lowest and the highest speed of a speech model."""
    prices: tuple[Price, ...] = ()
    """Its prices, by tier and date."""
    price_disputed: bool = False
    """Whether two sources disagree about a price by more than one percent."""
    price_note: str = ""
    """Why there is no price."""
    aliases: tuple[str, ...] = ()
    """Other names: ids of the same model at this provider, and its short names."""
    short_names: tuple[str, ...] = ()
    """The aliases that are no ids, such as `sonnet`; lookups know them, requests need an id."""
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


def ids_of(model: ModelInfo) -> tuple[str, ...]:
    """The ids by which a provider knows a model: its id, and the aliases except short names."""
    return (model.id, *(name for name in model.aliases if name not in model.short_names))


class Models(Mapping[str, tuple[ModelInfo, ...]]):
    """The models by provider, best first. The file of a provider is read when it is needed."""

    def __init__(
        self, index: Mapping[str, msgspec.Raw], changed: Mapping[str, tuple[ModelInfo, ...]]
    ) -> None:
        self.index: Mapping[str, msgspec.Raw] = index
        """
        The ids of the models in the file of each provider, as JSON.

        The name of another provider in their place means that it serves the same models.
        """
        self.read: dict[str, tuple[ModelInfo, ...]] = dict(changed)
        """The models of the providers whose files were read, or that were changed."""

    def __getitem__(self, provider: str) -> tuple[ModelInfo, ...]:
        models = self.read.get(provider)
        if models is None:
            if provider not in self.index:
                raise KeyError(provider)
            listed = self._ids_in_file(provider)
            if isinstance(listed, str):
                same = self[listed]
                models = tuple([msgspec.structs.replace(one, provider=provider) for one in same])
            else:
                models = _decode(read_data(f"data/{provider}.json"), tuple[ModelInfo, ...])
            self.read[provider] = models
        return models

    def __iter__(self) -> Iterator[str]:
        return iter({**self.index, **self.read})

    def __len__(self) -> int:
        return len({**self.index, **self.read})

    def ids(self, provider: str) -> Iterable[str]:
        """The ids of a provider's models, for which its file need not be read."""
        models = self.read.get(provider)
        if models is None:
            listed = self._ids_in_file(provider)
            return self.ids(listed) if isinstance(listed, str) else listed
        return [name for model in models for name in ids_of(model)]

    def _ids_in_file(self, provider: str) -> list[str] | str:
        return _decode(self.index[provider], list[str] | str)  # type: ignore[arg-type]


class Table:
    """All known models. A change of the catalog replaces the table; it is never changed itself."""

    def __init__(
        self,
        version: str,
        index: Mapping[str, msgspec.Raw],
        routed: frozenset[str],
        changed: Mapping[str, tuple[ModelInfo, ...]] | None = None,
    ) -> None:
        self.version: str = version
        """The day of the prices, and what was merged over them; costs state it."""
        self.routed: frozenset[str] = routed
        """The providers to which an id alone may lead: see `providers_of`."""
        self.models: Models = Models(index, changed or {})
        self._found: dict[str, dict[str, ModelInfo]] = {}
        self._short: dict[str, dict[str, ModelInfo]] = {}
        self._providers: Mapping[str, tuple[str, ...]] | None = None

    @property
    def providers(self) -> Mapping[str, tuple[str, ...]]:
        """The providers of each id, in the order of the catalog."""
        if self._providers is None:  # `cached_property` has a lock in Python 3.11: see `table`
            self._providers = self._find_providers()
        return self._providers

    def _find_providers(self) -> Mapping[str, tuple[str, ...]]:
        found: dict[str, tuple[str, ...]] = {}
        for provider in self.models:
            for name in self.models.ids(provider):
                found[name] = (*found.get(name, ()), provider)
        return found

    def find(self, name: str, provider: str) -> ModelInfo | None:
        """The model of a provider with exactly this id."""
        by_name = self._found.get(provider)
        if by_name is None:
            models = self.models.get(provider, ())
            by_name = self._found[provider] = {
                name: model for model in models for name in ids_of(model)
            }
        return by_name.get(name)

    def find_short(self, name: str, provider: str) -> ModelInfo | None:
        """The model of a provider with exactly this short name."""
        by_name = self._short.get(provider)
        if by_name is None:
            models = self.models.get(provider, ())
            by_name = self._short[provider] = {
                name: model for model in models for name in model.short_names
            }
        return by_name.get(name)


class _Index(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    version: str
    sources: Mapping[str, str]
    routed: frozenset[str]
    ids: Mapping[str, msgspec.Raw]


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
    The current table; its index is read on first use.

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
    """Forget everything that was merged over the data files."""
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
    The providers that serve exactly this id, for routing.

    They are the makers, and the hosts whose lists we wrote or the user changed: the list of any
    other host is that of a price table, which does not say who serves a name. A provider without
    an address of its own is not among them: its customers name the models.
    """
    known = table()
    serving = known.providers.get(model_id, ())
    return tuple(name for name in serving if name in known.routed and name not in _WITHOUT_ADDRESS)


def _spellings(model_id: str) -> Iterator[str]:
    yield model_id
    yield model_id.lower()
    if model_id.startswith("arn:"):  # of Bedrock: arn:aws:bedrock:<region>::foundation-model/<id>
        yield model_id.rpartition("/")[2]
    if model_id.startswith("ft:"):  # ft:<base>:<organization>:<name>:<id>
        yield ":".join(model_id.split(":", 2)[:2])
    yield without_date(model_id)


def without_date(model_id: str) -> str:
    """The name of a model without the date of a version, if it has one."""
    dated = _DATED.fullmatch(model_id)
    return model_id if dated is None else dated[1]


def _load() -> Table:
    return _read(read_data("data/index.json"))


def _read(text: bytes) -> Table:
    index = _decode(text, _Index)
    return Table(index.version, index.ids, index.routed)


def _decode(text: bytes | msgspec.Raw, kind: type[_T]) -> _T:
    try:
        return msgspec.json.decode(text, type=kind)
    except msgspec.MsgspecError as error:
        raise ConfigurationError(f"The model catalog cannot be read: {error}.") from error
