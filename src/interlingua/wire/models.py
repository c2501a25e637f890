"""Lists of models: what hosts say about a model, under the names that they have for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

import msgspec
from msgspec.structs import replace

from interlingua.spec.content import Json
from interlingua.spec.contracts import Profile, WireCall
from interlingua.spec.errors import DecodeError
from interlingua.spec.operations import Operation, OperationInput, ServedModel
from interlingua.wire.files import seconds_of
from interlingua.wire.json_text import loads
from interlingua.wire.model_path import quote_model
from interlingua.wire.resources import MakeHeaders, no_headers

_MILLION = 1_000_000
Describe: TypeAlias = Callable[[ServedModel], Mapping[str, Json]]
"""The description of a model, as the server side of a dialect writes it."""


class ModelFields(msgspec.Struct, frozen=True, kw_only=True):
    """The names with which a dialect describes a model; the first one with a value is used."""

    id: tuple[str, ...] = ("id", "name")
    name: tuple[str, ...]
    context_window: tuple[str, ...]
    max_output_tokens: tuple[str, ...]
    id_prefix: str = ""
    """The prefix that ids have in lists, but not in requests."""


# Other facts have the same names in all dialects. A dot leads into an object.
_CREATED = ("created", "created_at")
_INPUTS = ("input_modalities", "architecture.input_modalities")
_OUTPUTS = ("output_modalities", "architecture.output_modalities")
_FEATURES = ("supported_features", "supported_parameters")
_OWNERS = ("owned_by", "vendor")
# GitHub Copilot has its flags in `capabilities.supports`.
_TOOLS = ("capabilities.function_calling", "capabilities.supports.tool_calls")
_REASONING = (
    *("capabilities.thinking.supported", "capabilities.reasoning", "thinking"),
    "capabilities.supports.adaptive_thinking",
)
_EFFORTS = ("capabilities.supports.reasoning_effort",)
_BUDGETS = ("capabilities.supports.max_thinking_budget",)
_STRUCTURED = (
    *("capabilities.structured_outputs.supported", "capabilities.structured_outputs"),
    "capabilities.supports.structured_outputs",
)
_MEDIA = {
    "image": (
        *("capabilities.vision", "capabilities.image_input.supported"),
        "capabilities.supports.vision",
    ),
    "audio": ("capabilities.audio",),
    "pdf": ("capabilities.pdf_input.supported",),
}
"""Capabilities that say that a model takes something else than text."""


def read_models(
    body: bytes, fields: ModelFields, dialect: str, describe: Describe
) -> list[ServedModel]:
    """
    The models of one page, or the one model of the body; entries that are no models are ignored.

    `extra` gets the fields that `describe` would not write.
    """
    page = loads(body)
    if isinstance(page, dict):
        alone = [page] if page.keys() & {"id", "name"} else []
        page = page.get("data") or page.get("models") or alone
    entries = page if isinstance(page, list) else []
    models = [_read_model(entry, fields) for entry in entries if isinstance(entry, dict)]
    return [_with_extra(model, dialect, describe) for model in models if model.id]


def retrieve_model(
    path: str,
    fields: ModelFields,
    dialect: str,
    describe: Describe,
    headers: MakeHeaders = no_headers,
) -> Operation:
    """The operation that asks for the description of one model, which is below the list."""

    def encode(value: OperationInput, profile: Profile) -> WireCall:
        name = quote_model(value.model.removeprefix(fields.id_prefix))
        return WireCall(method="GET", path=f"{path}/{name}", headers=headers(profile))

    def decode(_status: int, _headers: Mapping[str, str], body: bytes) -> ServedModel:
        entry = loads(body)
        model = _read_model(entry, fields) if isinstance(entry, dict) else None
        if model is None or not model.id:
            raise DecodeError("The reply describes no model.")
        return _with_extra(model, dialect, describe)

    return Operation(name="retrieve_model", encode=encode, decode=decode)


def _with_extra(model: ServedModel, dialect: str, describe: Describe) -> ServedModel:
    own = describe(model)
    missing = {
        name: value for name, value in model.raw.items() if name not in own or own[name] != value
    }
    return replace(model, extra={dialect: missing}) if missing else model


def _read_model(entry: Mapping[str, object], fields: ModelFields) -> ServedModel:
    return ServedModel(
        id=(_text(entry, fields.id) or "").removeprefix(fields.id_prefix),
        name=_text(entry, fields.name),
        description=_text(entry, ("description",)),
        owner=_text(entry, _OWNERS),
        created_at=_date(entry),
        context_window=_count(entry, fields.context_window),
        max_output_tokens=_count(entry, fields.max_output_tokens),
        input_modalities=_words(entry, _INPUTS) or _media(entry),
        output_modalities=_words(entry, _OUTPUTS),
        supports_tools=_feature(entry, "tools", _TOOLS),
        supports_reasoning=_can_think(entry),
        supports_structured_output=_feature(entry, "structured_outputs", _STRUCTURED),
        input_cost_per_million=_price(entry, "pricing.prompt"),
        output_cost_per_million=_price(entry, "pricing.completion"),
        raw=entry,
    )


def _values(entry: Mapping[str, object], paths: tuple[str, ...]) -> Iterator[object]:
    for path in paths:
        value: object = entry
        for key in path.split("."):
            value = value.get(key) if isinstance(value, dict) else None
        if value is not None:
            yield value


def _text(entry: Mapping[str, object], paths: tuple[str, ...]) -> str | None:
    values = _values(entry, paths)
    return next((value for value in values if isinstance(value, str) and value), None)


def _count(entry: Mapping[str, object], paths: tuple[str, ...]) -> int | None:
    return next((value for value in _values(entry, paths) if type(value) is int), None)


def _words(entry: Mapping[str, object], paths: tuple[str, ...]) -> tuple[str, ...] | None:
    for value in _values(entry, paths):
        if isinstance(value, list):
            return tuple(word for word in value if isinstance(word, str))
    return None


def _date(entry: Mapping[str, object]) -> float | None:
    """Seconds since 1970; 0 means that the date is unknown."""
    for value in _values(entry, _CREATED):
        seconds = seconds_of(value)
        if isinstance(value, str) and seconds is not None:
            return max(0.0, seconds) or None
        if seconds is not None and seconds > 0:
            return float(seconds)
    return None


def _media(entry: Mapping[str, object]) -> tuple[str, ...] | None:
    """The media that a model takes, by its capabilities; None if it states no capability."""
    known = {name: next(_values(entry, paths), None) for name, paths in _MEDIA.items()}
    if not any(isinstance(value, bool) for value in known.values()):
        return None
    return ("text", *(name for name, value in known.items() if value is True))


def _feature(entry: Mapping[str, object], word: str, paths: tuple[str, ...]) -> bool | None:
    flags = (value for value in _values(entry, paths) if isinstance(value, bool))
    features = _words(entry, _FEATURES)
    return next(flags, None if features is None else word in features)


def _can_think(entry: Mapping[str, object]) -> bool | None:
    """Whether a model can think: a host has a flag for it, or lists how it is asked to."""
    ways = (_words(entry, _EFFORTS), _count(entry, _BUDGETS))
    if any(ways):
        return True
    flag = _feature(entry, "reasoning", _REASONING)
    return False if flag is None and ways != (None, None) else flag


def _price(entry: Mapping[str, object], path: str) -> float | None:
    """Dollars per million tokens; a negative price means that it varies."""
    for value in _values(entry, (path,)):
        if not isinstance(value, (str, int, float)):
            continue
        try:
            price = float(value) * _MILLION
        except (ValueError, OverflowError):
            continue
        return round(price, 9) if 0 <= price < _MILLION else None
    return None


def write_price(price: float) -> str:
    """The price of one token as hosts write it."""
    return f"{price / _MILLION:.15f}".rstrip("0").rstrip(".")
