"""Where clients come from: the environment, or a registry file. The only reader of either."""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from interlingua.client.registry import ModelEntry, Registry
from interlingua.client.yaml_lines import Section, read_document
from interlingua.providers.adapter import HttpAdapter
from interlingua.providers.catalog.profiles import check_overrides
from interlingua.providers.provider import Provider
from interlingua.providers.rows import find_provider, providers
from interlingua.spec.errors import ConfigurationError

_GGUF = "INTERLINGUA_GGUF"


def adapters_from_env(environ: Mapping[str, str] | None = None) -> dict[str, HttpAdapter]:
    """
    An adapter for each provider the environment has a key (or, if local, an address) for.

    The rows of other packages come after ours. The model on this machine is the last, if it is
    installed. A row without an address of its own needs one here; without, it is left out.
    """
    environ = os.environ if environ is None else environ
    found: dict[str, HttpAdapter] = {}
    for row in providers().values():
        key = _first(environ, row.key_env)
        base_url = _first(environ, row.base_url_env)
        is_wanted = key or (base_url and not row.key_required)
        if is_wanted and (base_url or row.base_url):
            found[row.name] = _adapter(row, key, base_url, environ)
    if find_spec("xllamacpp") is not None:  # the extra `local`
        gguf = _first(environ, (_GGUF,))
        for row in providers().values():
            if row.is_embedded:
                found[row.name] = HttpAdapter(row, gguf=gguf)
    return found


def _adapter(
    row: Provider, key: str | None, base_url: str | None, environ: Mapping[str, str]
) -> HttpAdapter:
    headers = _headers(row, environ)
    try:
        return HttpAdapter(row, key, base_url=base_url, default_headers=headers)
    except ConfigurationError as error:
        names = " or ".join(row.base_url_env)
        raise ConfigurationError(f"{row.name}: {error.message} (look at {names})") from None


def _headers(row: Provider, environ: Mapping[str, str]) -> dict[str, str]:
    found = {header: _first(environ, (name,)) for header, name in row.headers_env.items()}
    return {header: value for header, value in found.items() if value is not None}


def _first(environ: Mapping[str, str], names: tuple[str, ...]) -> str | None:
    """The value of the first that is set; one that is blank is not."""
    return next((environ[name] for name in names if environ.get(name, "").strip()), None)


_ADAPTER = {
    "type": str,
    "api_key_env": str,
    "api_key": str,
    "base_url": str,
    "dialect": str,
    "timeout_seconds": float,
    "max_retries": int,
    "extra_headers": dict,
    "options": dict,
    "profile": dict,
    "strict": bool,
    "on_loss": str,
    "gguf": str,
}
_KEYS = {"timeout": "timeout_seconds", "default_headers": "extra_headers"}
"""What a setting of an adapter is called in a file, where that is not its name."""
_MODEL = {
    "adapter": str,
    "wire_name": str,
    "tier": str,
    "can_delegate": bool,
    "aliases": list,
    "profile": dict,
}
_FILE = {"adapters": dict, "models": dict, "default_provider": str}


def read_registry(
    path: str | Path, environ: Mapping[str, str] | None = None
) -> tuple[dict[str, HttpAdapter], Registry, str | None]:
    """
    The adapters, models and default provider of a YAML file.

    A key that is wrong, unknown or of the wrong type is an error with its line. A missing API
    key is none: the models of that adapter say so when they are used. Where the file is silent
    about a key, an address or a header, the environment counts as in `adapters_from_env`.
    """
    environ = os.environ if environ is None else environ
    file = read_document(Path(path)).check(_FILE)
    adapters = file.sections("adapters", _ADAPTER)
    models = file.sections("models", _MODEL)
    entries = [_entry(name, section, adapters) for name, section in models.items()]
    built = {name: _build(name, section, entries, environ) for name, section in adapters.items()}
    default = file.get("default_provider")
    if default is not None and default not in built:
        raise file.error("default_provider", f"no adapter {default!r}")
    try:
        return built, Registry(entries), default
    except ConfigurationError as error:
        if error.setting is None or error.model is None:
            raise
        raise models[error.model].error(error.setting, error.message) from None


def _entry(name: str, section: Section, adapters: Mapping[str, Section]) -> ModelEntry:
    prefix, colon, rest = name.partition(":")
    adapter = section.get("adapter", prefix if colon else None)
    if adapter is None:
        raise section.error(
            "adapter", f"model {name!r} names no adapter; there is `adapter` for it"
        )
    if adapter not in adapters:
        raise section.error("adapter", f"model {name!r}: no adapter {adapter!r} in this file")
    aliases = section.get("aliases", [])
    if not all(isinstance(alias, str) for alias in aliases):
        raise section.error("aliases", "aliases are texts")
    return ModelEntry(
        id=name,
        adapter=adapter,
        wire_name=section.get("wire_name", rest if colon else name),
        tier=section.get("tier"),
        can_delegate=section.get("can_delegate", False),
        aliases=tuple(aliases),
        profile=_profile(section, name),
    )


def _build(
    name: str, section: Section, entries: list[ModelEntry], environ: Mapping[str, str]
) -> HttpAdapter:
    row = _row(name, section)
    key = _given(section.get("api_key")) or _first(environ, row.key_env)
    base_url = section.get("base_url") or _first(environ, row.base_url_env)
    settings: dict[str, Any] = {
        "name": name,
        "base_url": base_url,
        "dialect": section.get("dialect"),
        "default_headers": {**_headers(row, environ), **section.get("extra_headers", {})},
        "timeout": section.get("timeout_seconds"),
        "max_retries": section.get("max_retries", 0),
        "options": section.get("options", {}),
        "profile": _profile(section, name),
        "strict": section.get("strict", False),
        "on_loss": section.get("on_loss"),
        "gguf": _gguf(row, section, environ),
        "model_profiles": {
            entry.wire_name: entry.profile
            for entry in entries
            if entry.adapter == name and entry.profile
        },
    }
    try:
        return HttpAdapter(row, key, **settings)
    except ConfigurationError as error:
        if error.setting is None:
            raise
        where = _KEYS.get(error.setting, error.setting)
        is_from_env = where == "base_url" and base_url and "base_url" not in section
        hint = f" (look at {' or '.join(row.base_url_env)})" if is_from_env else ""
        raise section.error(where, f"adapter {name!r}: {error.message}{hint}") from None


def _row(name: str, section: Section) -> Provider:
    try:
        row = find_provider(section.get("type", name))
    except ConfigurationError as error:
        hint = "" if "type" in section else "; name one with `type`"
        raise section.error("type", f"adapter {name!r}: {error.message}{hint}") from None
    variable = section.get("api_key_env")
    # so that an error names this one
    return row if variable is None else replace(row, key_env=(variable,))


def _gguf(row: Provider, section: Section, environ: Mapping[str, str]) -> str | None:
    named: str | None = section.get("gguf")
    return _first(environ, (_GGUF,)) if named is None and row.is_embedded else named


def _given(value: str | None) -> str | None:
    return value if value and value.strip() else None


def _profile(section: Section, name: str) -> Mapping[str, Any]:
    given = section.get("profile", {})
    try:
        check_overrides(given, name)
    except ConfigurationError as error:
        raise section.error("profile", error.message) from None
    return dict(given)
