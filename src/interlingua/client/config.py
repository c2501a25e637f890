"""Where clients come from: the environment, or a registry file. The only reader of either."""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from interlingua.client.document import Section, read_document
from interlingua.client.registry import ModelEntry, Registry
from interlingua.providers.adapter import HttpAdapter
from interlingua.providers.builtin import find_provider, providers
from interlingua.providers.profiles import check_row
from interlingua.providers.provider import Provider
from interlingua.spec.errors import ConfigurationError

_LOCAL = "local"


def adapters_from_env(environ: Mapping[str, str] | None = None) -> dict[str, HttpAdapter]:
    """
    An adapter for each provider the environment has a key (or, if local, an address) for.

    The model on this machine is the last, if it is installed.
    """
    environ = os.environ if environ is None else environ
    found: dict[str, HttpAdapter] = {}
    for row in providers().values():
        key = _first(environ, row.key_env)
        base_url = _first(environ, row.base_url_env)
        if key or (base_url and not row.key_required):
            found[row.name] = _adapter(row, key, base_url, environ)
    if find_spec("xllamacpp") is not None:  # the extra `local`
        from interlingua.providers.local import LocalAdapter

        found[_LOCAL] = LocalAdapter(environ.get("INTERLINGUA_GGUF"))
    return found


def _adapter(
    row: Provider, key: str | None, base_url: str | None, environ: Mapping[str, str]
) -> HttpAdapter:
    headers = {
        header: environ[name] for header, name in row.headers_env.items() if environ.get(name)
    }
    if base_url is not None and "://" not in base_url:
        base_url = f"http://{base_url}"  # OLLAMA_HOST is often a bare host and port
    try:
        return HttpAdapter(row, key, base_url=base_url, default_headers=headers)
    except ConfigurationError as error:
        names = " or ".join(row.base_url_env)
        raise ConfigurationError(f"{row.name}: {error.message} (look at {names})") from None


def _first(environ: Mapping[str, str], names: tuple[str, ...]) -> str | None:
    return next((environ[name] for name in names if environ.get(name)), None)


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
}
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
    key is none: the models of that adapter say so when they are used.
    """
    environ = os.environ if environ is None else environ
    file = read_document(Path(path)).check(_FILE)
    adapters = file.sections("adapters", _ADAPTER)
    entries = [
        _entry(name, section, adapters) for name, section in file.sections("models", _MODEL).items()
    ]
    built = {name: _build(name, section, entries, environ) for name, section in adapters.items()}
    default = file.get("default_provider")
    if default is not None and default not in built:
        raise file.error("default_provider", f"no adapter {default!r}")
    try:
        return built, Registry(entries), default
    except ConfigurationError as error:
        raise ConfigurationError(f"{path}: {error.message}") from None


def _entry(name: str, section: Section, adapters: Mapping[str, Section]) -> ModelEntry:
    prefix, colon, rest = name.partition(":")
    adapter = section.get("adapter", prefix if colon else None)
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
    kind = section.get("type", name)
    try:
        row = find_provider(kind)
    except ConfigurationError as error:
        raise section.error("type", error.message) from None
    variable = section.get("api_key_env")
    if variable is not None:
        row = replace(row, key_env=(variable,))  # so that an error names this one
    key = section.get("api_key") or _first(environ, row.key_env)
    settings: dict[str, Any] = {
        "name": name,
        "base_url": section.get("base_url"),
        "dialect": section.get("dialect"),
        "default_headers": section.get("extra_headers", {}),
        "timeout": section.get("timeout_seconds"),
        "max_retries": section.get("max_retries", 0),
        "options": section.get("options", {}),
        "profile": _profile(section, name),
        "strict": section.get("strict", False),
        "model_profiles": {
            entry.wire_name: entry.profile
            for entry in entries
            if entry.adapter == name and entry.profile
        },
    }
    try:
        return HttpAdapter(row, key, **settings)
    except ConfigurationError as error:
        raise section.error("base_url", error.message) from None


def _profile(section: Section, name: str) -> Mapping[str, Any]:
    given = section.get("profile", {})
    try:
        check_row(given, name)
    except ConfigurationError as error:
        raise section.error("profile", error.message) from None
    return dict(given)
