"""
Profiles as data.

`profiles.json` has rows of `Profile` fields: for dialects, for providers, and for models by prefix
of their id (for all providers, or under a dialect or provider). Later rows override earlier ones,
and longer prefixes override shorter ones:

    dialect < provider < models < catalog < models of the dialect < models of the provider
    < overrides

A provider of several dialects may also have a row for each of them, which overrides its own. The
catalog knows single models at single providers: their windows, and what they support. What it does
not support is enforced; what it supports is used where the rows before say nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache, lru_cache
from typing import Any, TypeAlias, get_type_hints

import msgspec

from interlingua import dialects
from interlingua.providers.catalog import read_data
from interlingua.providers.catalog.models import ModelInfo, find_model, table
from interlingua.providers.provider import check_dialect, find_dialect
from interlingua.spec.contracts import NEUTRAL_PROFILE, Profile, ToolCallCapabilities
from interlingua.spec.errors import ConfigurationError

Row: TypeAlias = Mapping[str, Any]
"""Some fields of a `Profile`, as JSON."""

_QUIRKS = "quirks"
_MODELS = "models"
_CATALOG = "catalog"
_TOOL_CALLS = "tool_calls"
_MAKER = re.compile(r"(?:(?:[a-z][a-z-]*|ai21)\.)+(?=[a-z])")  # Bedrock: us.anthropic.claude-opus-5
_DOT_AS_P = re.compile(r"(?<=\d)p(?=\d)")  # Fireworks writes glm-5p3 for glm-5.3


class _Section(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    profile: Row = {}
    dialects: Mapping[str, Row] = {}
    models: Mapping[str, Row] = {}


class _Tables(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    dialects: Mapping[str, _Section] = {}
    providers: Mapping[str, _Section] = {}
    models: Mapping[str, Row] = {}


def profile_for(
    dialect: str,
    model: str = "",
    provider: str | None = None,
    overrides: Row | None = None,
) -> Profile:
    """Return the profile of a model at this provider, in this dialect."""
    check_dialect(dialect)
    if not overrides:
        return _profile(dialect, model, provider, table().version)
    row = check_row(overrides, "overrides")
    return make_profile({**_rows(dialect, model, provider), "overrides": row}, dialect)


def check_row(row: Row, name: str) -> Row:
    """The row with converted values; the `ConfigurationError` names the row and the key."""
    types = _types()
    row = _with_tool_calls(row, name)
    checked: dict[str, Any] = {}
    for key, value in row.items():
        if key not in types:
            raise ConfigurationError(f"Profile row {name!r}: unknown key {key!r}.")
        checked[key] = _convert(value, types[key], f"Profile row {name!r}: key {key!r}")
    if not isinstance(checked.get(_QUIRKS, {}), (Mapping, msgspec.Struct)):
        raise ConfigurationError(f"Profile row {name!r}: key 'quirks': expected an object.")
    return checked


def _with_tool_calls(row: Row, name: str) -> Row:
    """The row with `tool_calls`, a bool or a record, written as the fields that it stands for."""
    if _TOOL_CALLS not in row:
        return row
    value = row[_TOOL_CALLS]
    if isinstance(value, bool):
        mode = "deltas" if value else "none"
        value = {"non_streaming": value, "streaming_mode": mode, "parallel": value}
    where = f"Profile row {name!r}: key {_TOOL_CALLS!r}"
    calls = _convert(value, ToolCallCapabilities, where)
    is_streamed = None if calls.streaming_mode is None else calls.streaming_mode == "deltas"
    known = (calls.non_streaming, is_streamed)
    return {
        "tools": True if True in known else None if None in known else False,
        "whole_tool_calls": calls.non_streaming,
        "streaming_tool_calls": is_streamed,
        "parallel_tool_calls": calls.parallel,
        **{key: value for key, value in row.items() if key != _TOOL_CALLS},
    }


def check_overrides(row: Row, name: str) -> Row:
    """`check_row` for a row of the caller; its quirks must belong to some dialect."""
    checked = check_row(row, name)
    quirks = checked.get(_QUIRKS, {})
    if isinstance(quirks, Mapping) and quirks:
        for key, value in quirks.items():
            check_quirks({key: value}, name, _record_of(key, name))
    return checked


def _record_of(quirk: str, name: str) -> type[msgspec.Struct]:
    """The record that has a quirk; the names of quirks differ between dialects."""
    for known in dialects.names():
        kind = dialects.get(known).FACTS.quirks
        if kind is not None and quirk in kind.__struct_fields__:
            return kind
    raise ConfigurationError(f"Profile row {name!r}: unknown key 'quirks.{quirk}'.")


def make_profile(rows: Mapping[str, Row], dialect: str) -> Profile:
    """The profile from rows by name; later rows override earlier ones, and so do their quirks."""
    fields: dict[str, Any] = {"dialect": dialect}
    kind = find_dialect(dialect).FACTS.quirks
    quirks: dict[str, Any] = {}
    for name, row in rows.items():
        fields |= row
        more = row.get(_QUIRKS, {})
        if kind is None or not more:
            continue  # a provider of several dialects may have quirks in one of them only
        if isinstance(more, Mapping):
            quirks |= check_quirks(_quirks_of(kind, more, name), name, kind)
        else:  # a whole record, from code
            quirks = dict(check_quirks(msgspec.structs.asdict(more), name, kind))
    fields[_QUIRKS] = msgspec.convert(quirks, kind) if kind is not None and quirks else None
    return msgspec.structs.replace(NEUTRAL_PROFILE, **fields)


def _quirks_of(kind: type[msgspec.Struct], quirks: Row, name: str) -> Row:
    """The quirks of a row without those of other dialects; an error if no dialect has one."""
    own = {key: value for key, value in quirks.items() if key in kind.__struct_fields__}
    for key in quirks.keys() - own.keys():
        _record_of(key, name)
    return own


def check_quirks(quirks: Row, name: str, kind: type[msgspec.Struct]) -> Row:
    """The quirks of a row; `ConfigurationError` if they do not fit the dialect's record."""
    for key, value in quirks.items():
        if key not in kind.__struct_fields__:
            raise ConfigurationError(f"Profile row {name!r}: unknown key 'quirks.{key}'.")
        _convert({key: value}, kind, f"Profile row {name!r}: key 'quirks.{key}'")
    return quirks


def matching(prefixes: Mapping[str, Row], model: str) -> list[str]:
    """
    The prefixes of this model id, shortest first.

    The part before a slash (`openai/`, `accounts/…/models/`) is ignored, and so are makers and
    regions before a dot (`us.anthropic.`). A version may be written with a dot, a dash or
    a `p`. A prefix never ends inside a number.
    """
    name = model.lower().rpartition("/")[2]
    match = _MAKER.match(name)
    dotted = _DOT_AS_P.sub(".", name if match is None else name[match.end() :])
    dashed = dotted.replace(".", "-")
    matches = [prefix for prefix in prefixes if _starts(dotted, prefix) or _starts(dashed, prefix)]
    return sorted(matches, key=len)


@lru_cache(maxsize=512)
def _profile(dialect: str, model: str, provider: str | None, version: str) -> Profile:  # noqa: ARG001
    """The profile by the version of the catalog, which may change."""
    return make_profile(_rows(dialect, model, provider), dialect)


def _rows(dialect: str, model: str, provider: str | None) -> dict[str, Row]:
    data = _load()
    spoken, served = f"dialects.{dialect}", f"providers.{provider}"
    sections = {
        spoken: data.dialects.get(dialect, _Section()),
        served: data.providers.get(provider or "", _Section()),
    }
    rows = {name: check_row(section.profile, name) for name, section in sections.items()}
    both = f"{served}.dialects.{dialect}"
    rows[both] = check_row(sections[served].dialects.get(dialect, {}), both)
    models = {_MODELS: data.models}
    models |= {f"{name}.{_MODELS}": section.models for name, section in sections.items()}
    for name, prefixes in models.items():
        for prefix in matching(prefixes, model):
            rows[f"{name}.{prefix}"] = check_row(prefixes[prefix], f"{name}.{prefix}")
        if name == _MODELS and provider is not None:
            rows[_CATALOG] = _catalog_row(model, provider, rows)
    return rows


def _catalog_row(model: str, provider: str, rows: Mapping[str, Row]) -> Row:
    """What the catalog knows of a model, where the rows know less or claim more."""
    info = find_model(model, provider)
    if info is None:
        return {}
    known = {key: value for row in rows.values() for key, value in row.items()}
    fields: dict[str, Any] = {
        "kind": info.kind,
        "output_modalities": info.output_modalities or None,
        "context_window": info.context_window,
        "max_output_tokens": info.max_output,
        "tools": _flag(known.get("tools"), supported=info.supports_tools),
        "hosted_tools": _flag(known.get("hosted_tools"), supported=info.supports_web_search),
        "thinking": _flag(known.get("thinking"), supported=info.supports_reasoning),
        "thinks_by_default": False if info.supports_reasoning is False else None,
        "image_types": _types_of(
            "image/*", known.get("image_types"), supported=info.supports_vision
        ),
        "audio_types": _types_of(
            "audio/*", known.get("audio_types"), supported=info.supports_audio
        ),
        "document_types": _documents(known.get("document_types"), supported=info.supports_pdf),
        "structured_output": _ways(known.get("structured_output"), info),
    }
    return {key: value for key, value in fields.items() if value is not None}


def _flag(known: object, *, supported: bool | None) -> bool | None:
    """A capability: what is not supported, or what the rows do not know."""
    return supported if supported is False or known is None else None


def _types_of(every: str, known: object, *, supported: bool | None) -> tuple[str, ...] | None:
    if supported is False:
        return ()
    return (every,) if supported and known is None else None


def _documents(known: tuple[str, ...] | None, *, supported: bool | None) -> tuple[str, ...] | None:
    """The types without PDF. Where they are unknown they stay so: some hosts read PDF for it."""
    if known is None or supported is not False:
        return None
    return tuple(name for name in known if name != "application/pdf")


def _ways(known: tuple[str, ...] | None, info: ModelInfo) -> tuple[str, ...] | None:
    """The ways to get JSON that matches a schema."""
    if info.supports_structured_output is None:
        return None
    ways = ("native", "tool", "prompt") if known is None else known
    lacking = {
        "native": info.supports_structured_output is False,
        "tool": info.supports_tools is False,
    }
    return tuple(way for way in ways if not lacking.get(way))


def _starts(name: str, prefix: str) -> bool:
    if not name.startswith(prefix):
        return False
    return not (prefix[-1:].isdigit() and name[len(prefix) : len(prefix) + 1].isdigit())


@cache
def _load() -> _Tables:
    return _read(read_data("profiles.json"))


def _read(text: bytes) -> _Tables:
    """The rows as they are written; each is checked when it is used."""
    try:
        return msgspec.json.decode(text, type=_Tables)
    except msgspec.MsgspecError as error:
        raise ConfigurationError(f"The profile data cannot be read: {error}.") from error


@cache
def _types() -> dict[str, Any]:
    return get_type_hints(Profile)


def _convert(value: Any, kind: Any, where: str) -> Any:
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise ConfigurationError(f"{where}: {error}.") from error
