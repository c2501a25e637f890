"""What the environment says about a provider: its key, address, headers and local model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache, partial
from typing import Any

from interlingua.providers.keys import KeySource
from interlingua.providers.provider import Identity, Provider, add_scheme, check_base_url
from interlingua.runtime.log import logger
from interlingua.spec.errors import ConfigurationError

_GGUF = "INTERLINGUA_GGUF"
_QUOTES = ("'", '"')
GOOGLE_FILE = "GOOGLE_APPLICATION_CREDENTIALS"
_IDENTITIES = {"aws": ("AWS_ACCESS_KEY_ID", "AWS_PROFILE"), "google": (GOOGLE_FILE,)}
"""The variables that tell that there are keys of a cloud; they are looked for at the first call."""


def first_value(environ: Mapping[str, str], names: Iterable[str]) -> str | None:
    """The value of the first variable that is set, without blanks and quotes around it."""
    for name in names:
        value = environ.get(name, "").strip()
        if value[:1] in _QUOTES and value[-1:] == value[:1]:
            value = value[1:-1].strip()
            _warn_of_quotes(name)
        if value:
            return value
    return None


@cache
def _warn_of_quotes(name: str) -> None:
    """Log once that a variable has quotes; the value, which may be a key, is not logged."""
    logger.warning(
        "%s has quotes around its value, which were removed. Programs that read an env file, such "
        "as `docker run --env-file`, take quotes as part of the value: remove them there.",
        name,
    )


def add_environment(
    row: Provider, settings: Mapping[str, Any], environ: Mapping[str, str]
) -> dict[str, Any]:
    """The settings of an adapter; those that are None or missing come from its variables."""
    known = {name: value for name, value in settings.items() if value is not None}
    found: dict[str, Any] = {"api_key": first_value(environ, row.key_env)}
    if "base_url" not in known and "server" not in known:
        found["base_url"] = _address(row, environ)
        found["gguf"] = first_value(environ, (_GGUF,)) if row.is_embedded else None
    if row.version_env:
        found["api_version"] = first_value(environ, row.version_env)
    if row.url_env and isinstance(known.get("places", {}), Mapping):
        places = {place: first_value(environ, names) for place, names in row.url_env.items()}
        places = {place: value for place, value in places.items() if value is not None}
        known["places"] = {**places, **known.get("places", {})}
    token = first_value(environ, row.token_env)
    if token is not None and "api_key" not in known and not found["api_key"]:
        found["api_key"] = partial(str, token)
    elif row.identity is not None and "api_key" not in known and not found["api_key"]:
        found["api_key"] = _identity(row.identity, environ, row.key_env)
    values = {header: first_value(environ, (name,)) for header, name in row.headers_env.items()}
    headers = {header: value for header, value in values.items() if value is not None}
    given = known.get("default_headers", {})
    if headers and isinstance(given, Mapping):  # the adapter checks what is given
        known["default_headers"] = {**headers, **given}
    return {**found, **known}


def has_credentials(row: Provider, environ: Mapping[str, str]) -> bool:
    """Whether the variables have a key of a provider, or name the keys of its cloud."""
    names = (*row.key_env, *row.token_env, *_IDENTITIES.get(row.identity or "", ()))
    return first_value(environ, names) is not None


def has_address(row: Provider, environ: Mapping[str, str]) -> bool:
    """Whether the variables give an address, in one of them or for each place in the base URL."""
    if first_value(environ, row.base_url_env) is not None:
        return True
    places = row.url_env.values()
    return bool(places) and all(first_value(environ, names) is not None for names in places)


def _address(row: Provider, environ: Mapping[str, str]) -> str | None:
    url = first_value(environ, row.base_url_env)
    if url is None:
        return None
    try:
        return check_base_url(add_scheme(url, row), row.base_path)
    except ConfigurationError as error:  # its message does not contain the value
        text = f"{row.name}: {error.message} Check {' or '.join(row.base_url_env)}."
        raise ConfigurationError(text, setting="base_url") from None


def _identity(
    identity: Identity, environ: Mapping[str, str], key_env: tuple[str, ...]
) -> KeySource:
    """The keys of a cloud that this environment has; they are looked for at the first call."""
    from interlingua.providers.cloud_identities import AwsSource, google_source

    return AwsSource(environ, key_env) if identity == "aws" else google_source()
