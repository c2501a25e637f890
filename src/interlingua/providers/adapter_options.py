"""What an adapter is set to: looked at once, when it is made."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

import msgspec

from interlingua.providers.catalog.profiles import check_overrides
from interlingua.providers.provider import Provider, add_scheme, check_base_url, check_dialect
from interlingua.spec.contracts import Timeouts, Transport
from interlingua.spec.errors import ConfigurationError

if TYPE_CHECKING:
    from interlingua.local import LocalServer


class AdapterSettings(TypedDict, total=False):
    """What every adapter takes besides its key; None is as good as nothing."""

    base_url: str | None
    dialect: str | None
    default_headers: Mapping[str, str]
    timeout: float | Timeouts | None
    max_retries: int
    options: Mapping[str, Any]
    profile: Mapping[str, Any] | None
    model_profiles: Mapping[str, Mapping[str, Any]]
    read_files: bool
    strict: bool
    transport: Transport | None
    name: str | None


class RowSettings(AdapterSettings, total=False):
    """What an adapter takes that is made from a row; the last two are for the row `local`."""

    gguf: str | Path | None
    server: LocalServer | None


_KINDS: dict[str, tuple[tuple[type, ...], str]] = {
    "base_url": ((str,), "a text"),
    "dialect": ((str,), "a text"),
    "default_headers": ((Mapping,), "a mapping of texts"),
    "timeout": ((int, float, Timeouts), "a number of seconds, or Timeouts"),
    "max_retries": ((int,), "a whole number"),
    "options": ((Mapping,), "a mapping"),
    "profile": ((Mapping,), "a mapping"),
    "model_profiles": ((Mapping,), "a mapping of mappings"),
    "read_files": ((bool,), "true or false"),
    "strict": ((bool,), "true or false"),
    "transport": ((object,), "a transport"),
    "name": ((str,), "a text"),
    "gguf": ((str, Path), "a path"),
    "server": ((object,), "a LocalServer"),
}


def check_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that are not None; `ConfigurationError` for an unknown name or a bad value."""
    found = {name: value for name, value in settings.items() if value is not None}
    for name, value in found.items():
        if name not in _KINDS:
            raise _unknown(name)
        kinds, words = _KINDS[name]
        is_flag = isinstance(value, bool)
        if not isinstance(value, kinds) or (is_flag and not {bool, object}.intersection(kinds)):
            raise ConfigurationError(f"{name} must be {words}", setting=name)
    for name, check in _CHECKS.items():
        if name in found:
            check(found[name])
    return found


def check_key(key: Any) -> str | None:
    """The key; `ConfigurationError`, which does not repeat it, if it is no text."""
    if key is None or isinstance(key, str):
        return key
    raise ConfigurationError("api_key must be a text", setting="api_key")


def find_server(row: Provider, given: Mapping[str, Any]) -> LocalServer | None:
    """The server to start, of a row that has one; none if it is told where one runs."""
    if not row.is_embedded:
        for name in ("gguf", "server"):
            if name in given:
                raise ConfigurationError(f"{name} is for the row `local`", setting=name)
        return None
    if "server" in given or "base_url" in given:
        server: LocalServer | None = given.get("server")
        return server
    from interlingua.local import local_server

    return local_server(given.get("gguf"))


def find_base_url(row: Provider, given: Mapping[str, Any], server: LocalServer | None) -> str:
    """Where calls go; for a server that is still to be started, its machine."""
    url = given.get("base_url") or ("http://127.0.0.1" if server else row.base_url)
    try:
        return check_base_url(add_scheme(url, row), row.base_path)
    except ConfigurationError as error:
        what = error.message
        if not url:
            what = f"{row.name} has no address of its own: give base_url; {what}"
        raise ConfigurationError(what, setting="base_url") from None


def find_timeouts(given: Mapping[str, Any]) -> Timeouts | None:
    """A number is the time for a whole exchange."""
    timeout = given.get("timeout")
    if timeout is None or isinstance(timeout, Timeouts):
        return timeout
    return Timeouts(request=timeout)


def find_transport(given: Mapping[str, Any]) -> Transport:
    """The one that is given, or one of its own."""
    if "transport" in given:
        found: Transport = given["transport"]
        return found
    from interlingua.transport import default_transport

    return default_transport()


def _unknown(name: str) -> ConfigurationError:
    from difflib import get_close_matches  # only who mistypes waits for it

    near = get_close_matches(name, _KINDS, n=1)
    hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(_KINDS)}"
    return ConfigurationError(f"an adapter has no setting {name!r}; {hint}", setting=name)


def _check_timeout(given: float | Timeouts) -> None:
    values: list[Any] = [given]
    if isinstance(given, Timeouts):
        values = [value for value in msgspec.structs.astuple(given) if value is not None]
    for value in values:
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not is_number or not math.isfinite(value) or value < 0:
            raise ConfigurationError("timeout counts seconds from 0 up", setting="timeout")


def _check_retries(given: int) -> None:
    if given < 0:
        raise ConfigurationError("max_retries counts from 0 up", setting="max_retries")


def _check_headers(given: Mapping[Any, Any]) -> None:
    for name, value in given.items():
        if not isinstance(name, str) or not isinstance(value, str) or not name:
            # the value is not repeated: it may be a key
            raise ConfigurationError(
                f"the value of the header {name!r} must be a text", setting="default_headers"
            )


def _check_dialect(given: str) -> None:
    try:
        check_dialect(given)
    except ConfigurationError as error:
        raise ConfigurationError(error.message, setting="dialect") from None


def _check_transport(given: Any) -> None:
    if not callable(getattr(given, "send", None)):
        raise ConfigurationError(
            "transport must be a transport: it has no `send`", setting="transport"
        )


def _check_profile(given: Mapping[str, Any]) -> None:
    try:
        check_overrides(given, "profile")
    except ConfigurationError as error:
        raise ConfigurationError(error.message, setting="profile") from None


def _check_model_profiles(given: Mapping[str, Any]) -> None:
    for model, row in given.items():
        if not isinstance(row, Mapping):
            raise ConfigurationError(
                "model_profiles must be a mapping of mappings", setting="model_profiles"
            )
        try:
            check_overrides(row, str(model))
        except ConfigurationError as error:
            raise ConfigurationError(error.message, setting="model_profiles") from None


_CHECKS: dict[str, Any] = {
    "timeout": _check_timeout,
    "max_retries": _check_retries,
    "default_headers": _check_headers,
    "dialect": _check_dialect,
    "transport": _check_transport,
    "profile": _check_profile,
    "model_profiles": _check_model_profiles,
}
