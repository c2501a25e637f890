"""The settings of an adapter, checked once when it is created."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict, TypeVar

from msgspec.structs import replace

from interlingua import dialects
from interlingua.lazy import names_of
from interlingua.prepare.options import merge_options, suggest
from interlingua.providers.catalog.profiles import check_overrides
from interlingua.providers.http_requests import join_headers
from interlingua.providers.keys import KeySource, check_source
from interlingua.providers.provider import (
    MODEL,
    Endpoint,
    Provider,
    add_scheme,
    check_base_url,
    check_dialect,
    find_dialect,
    is_version,
)
from interlingua.providers.rows import find_provider, providers
from interlingua.spec.behaviour import Behaviour
from interlingua.spec.check import (
    Count,
    Row,
    Seconds,
    advice,
    check_fields,
    check_value,
    fits,
    plain_strings,
    row_of_option,
)
from interlingua.spec.contracts import Transport
from interlingua.spec.defaults import Limits, Timeouts
from interlingua.spec.errors import ConfigurationError, SDKError
from interlingua.spec.request import OnLoss, Request
from interlingua.spec.response import Warning
from interlingua.spec.warnings import make_warning
from interlingua.wire.aws_credentials import AwsCredentials
from interlingua.wire.json_text import dumps

if TYPE_CHECKING:
    from pathlib import Path

    from interlingua.local import LocalServer
    from interlingua.spec.operations import OperationInput
else:  # a name in the annotation of a setting, which is loaded when that setting is checked
    __getattr__ = names_of(__name__, {"pathlib": ("Path",)})


class AdapterSettings(TypedDict, total=False):
    """The settings of every adapter besides the key; None means the default."""

    base_url: str | None
    """The address. Defaults to that of the row, or of its variable."""
    places: Mapping[str, str] | None
    """The values of the places in its base URL, such as `{"region": "us-east-1"}`."""
    api_version: str | None
    """The version of the API, for providers that have several, such as Azure."""
    dialect: str | None
    """The name of the dialect. Defaults to the first one of the row."""
    default_headers: Mapping[str, str]
    """Headers of every call."""
    organization: str | None
    """The id of the organization that pays, at OpenAI."""
    project: str | None
    """The id of the project that pays, at OpenAI."""
    timeout: Seconds | Timeouts | None
    """Seconds for a whole call, also of a stream, or a `Timeouts`."""
    limits: Limits | None
    """The maximum sizes of a reply."""
    max_retries: Count
    """How often the client retries calls of this adapter. Defaults to 0."""
    options: Mapping[str, Any]
    """Fields of the body that a request does not set."""
    profile: Mapping[str, Any] | None
    """Fields of `Profile` to override."""
    model_profiles: Mapping[str, Mapping[str, Any]]
    """The same, by model."""
    read_files: bool
    """Whether files and URLs of parts are read. Defaults to True."""
    behaviour: Behaviour | None
    """What is changed in requests before they are sent."""
    strict: bool
    """Short for `on_loss="strict"`."""
    on_loss: OnLoss | None
    """Which losses raise. Defaults to `content`."""
    transport: Transport | None
    """How requests are sent. Defaults to the transport that adapters share."""
    name: str | None
    """Its name in responses and errors. Defaults to that of the row."""


class RowSettings(AdapterSettings, total=False):
    """The settings of an adapter for any provider; the last two are only for `local`."""

    gguf: str | Path | None
    """The model of `local`: a name, or the path of a GGUF file."""
    server: LocalServer | None
    """A server of `local` that is running already."""


@cache
def setting_row(name: str) -> Row | None:
    """What a setting must be, from its annotation; headers are checked one by one."""
    row = row_of_option(name, RowSettings)
    return row and row._replace(rule=None) if name == "default_headers" else row


def check_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that are not None; `ConfigurationError` for an unknown name or a bad value."""
    present = {name: plain_strings(value) for name, value in settings.items() if value is not None}
    for name, value in present.items():
        if name not in RowSettings.__annotations__:
            advised = advice(name, RowSettings.__annotations__)
            raise ConfigurationError(f"An adapter has no setting {name!r}. {advised}", setting=name)
        try:
            _check_setting(name, value)
        except ConfigurationError as error:
            raise ConfigurationError(error.message, setting=name) from None
    return present


def _check_setting(name: str, value: Any) -> None:
    row = setting_row(name)
    if name in _SECRET and row is not None and not fits(row, value):
        raise ConfigurationError(f"{name} must be {row.expected}, not a {type(value).__name__}.")
    if row is not None:
        check_value(row, value)
    if isinstance(value, Timeouts):
        check_fields(value, name)
    if name in _CHECKS:
        _CHECKS[name](value)


_SECRET = frozenset(("default_headers",))


def check_key(key: Any) -> str | KeySource | AwsCredentials | None:
    """The key, or what makes it; `ConfigurationError`, without the key in it, if it is neither."""
    if key is None:
        return None
    if not isinstance(key, str):
        return check_source(key)
    if not key.isprintable():
        raise ConfigurationError(
            "api_key has a line break, or another character that no header can carry. Copy the "
            "key again.",
            setting="api_key",
        )
    return str.__str__(key)  # it may be of a subclass


def starts_server(row: Provider, settings: Mapping[str, Any]) -> bool:
    """Whether the adapter starts a server, for `local`; not if `base_url` names a running one."""
    if row.is_embedded:
        return "server" in settings or "base_url" not in settings
    for name in ("gguf", "server"):
        if name in settings:
            raise ConfigurationError(f"{name} is for the row `local`.", setting=name)
    return False


def split_endpoint(row: Provider, url: str) -> tuple[str, str | None]:
    """
    The base URL of an address that ends in an endpoint, and the dialect of that endpoint.

    Vendors show whole addresses in their examples, such as `https://host/v1/chat/completions`.
    """
    url = add_scheme(url, row)
    if is_version(url.rstrip("/").rpartition("/")[2]):  # most base URLs, without a search
        return url, None
    for dialect in (row.dialect, *row.other_dialects):
        for path in _endpoint_paths(row, dialect):
            pattern = re.escape(path).replace(re.escape(MODEL), "[^/]+")
            match = re.fullmatch(f"(.+?){pattern}/*", url)
            if match is not None:
                return match[1], dialect
    return url, None


def _endpoint_paths(row: Provider, dialect: str) -> Iterable[str]:
    endpoint = row.endpoints.get(dialect)
    own = () if endpoint is None else (endpoint.path, endpoint.stream_path)
    return [path.partition("?")[0] for path in own if path] or find_dialect(dialect).FACTS.paths


def find_base_url(row: Provider, settings: Mapping[str, Any], *, has_server: bool) -> str:
    """The base URL; for a server that is not started yet, only its host."""
    url = settings.get("base_url") or ("http://127.0.0.1" if has_server else row.base_url)
    if row.url_env and url == row.base_url:
        url = _fill_in(row, settings.get("places", {}))
    try:
        return check_base_url(add_scheme(url, row), row.base_path)
    except ConfigurationError as error:
        what = error.message
        if not url:
            variables = " or ".join(row.base_url_env)
            how = f"Set {variables}, or pass base_url=." if variables else "Pass base_url=."
            what = f"{row.name!r} has no address of its own. {how} {what}"
        raise ConfigurationError(what, setting="base_url") from None


def _fill_in(row: Provider, places: Mapping[str, str]) -> str:
    """The base URL of a row with the values of its places."""
    if not places.keys() >= row.url_env.keys():
        variables = " and ".join(" or ".join(names) for names in row.url_env.values())
        names = ", ".join(row.url_env)
        raise ConfigurationError(
            f"{row.name!r} has an address for each account. Set {variables}, or pass places= with "
            f"{names}, or pass base_url={row.base_url!r} with the value in its place.",
            setting="base_url",
        )
    for place in row.url_env:
        if not isinstance(places[place], str) or not _is_label(places[place]):
            raise ConfigurationError(  # a slash or an @ in it would name another host
                f"The {place} of {row.name!r} must have only letters, digits, dots, dashes and "
                f"underscores. Check {' or '.join(row.url_env[place])}.",
                setting="base_url",
            )
    derived = {name: place.value(places) for name, place in row.derived_places.items()}
    return row.base_url.format_map({**places, **derived})


class Branching(NamedTuple):
    """That the models of an adapter are called by the branches of its row, and at which address."""

    places: Mapping[str, str] | None
    """The places in the address of each row; None if all are at the address of the adapter."""


def find_branching(
    row: Provider, base_url: str | None, places: Mapping[str, str]
) -> Branching | None:
    """
    Where the models of the branches of a row are called; None if the row calls all of them.

    A base URL that is the vendor's own says the places in those of the other rows: the others are
    at other hosts. If it has a path, it is that of one API, which is used for all models.
    """
    if base_url is None:
        return Branching(places)
    others = dict.fromkeys(branch.row for branch in row.branches if branch.row)
    for each in (row, *map(find_provider, others)):
        pattern = re.sub(r"\\\{(\w+)\\\}", rf"(?P<\1>{_LABEL})", re.escape(each.base_url))
        match = re.fullmatch(rf"{pattern}(?P<path>/.*)?", base_url.rstrip("/"))
        if match is not None:
            found = match.groupdict()
            return Branching({**places, **found}) if found.pop("path") is None else None
    return Branching(None)


def find_endpoint(row: Provider, settings: Mapping[str, Any], dialect: str) -> Endpoint | None:
    """How the calls of this dialect differ at the provider; None if they do not."""
    if "api_version" not in settings:
        return row.endpoints.get(dialect)
    endpoint = row.versioned_endpoints.get(dialect)
    if endpoint is None:
        where = f" in the dialect {dialect}" if row.versioned_endpoints else ""
        raise ConfigurationError(
            f"{row.name!r} has no API versions{where}. Leave api_version out.",
            setting="api_version",
        )
    return endpoint


def with_base_path(url: str, row: Provider, endpoint: Endpoint | None) -> str:
    """The base URL with the path of the endpoint, if it has the usual one of the row."""
    if endpoint is None or endpoint.base_path is None or not url.endswith(row.base_path):
        return url
    return url.removesuffix(row.base_path) + endpoint.base_path


def find_headers(row: Provider, settings: dict[str, Any]) -> dict[str, str]:
    """The headers of every call; takes options that are headers of this row out of `settings`."""
    options = dict(settings.get("options", {}))
    layers = [row.headers, settings.get("default_headers", {}), take_headers(row, options)]
    for name in HEADER_OPTIONS:
        if name not in row.header_options and (name in settings or name in options):
            raise ConfigurationError(
                f"{row.name!r} has no {name}. Leave the setting out.", setting=name
            )
    settings["options"] = options
    return join_headers(*layers, take_headers(row, settings))


def take_headers(row: Provider, options: dict[str, Any]) -> dict[str, str]:
    """The headers that these options stand for; they are removed from the options."""
    names = row.header_options.items()
    return {header: str(options.pop(name)) for name, header in names if name in options}


HEADER_OPTIONS = ("organization", "project")
"""Who pays is said in headers: where a provider has none for it, no body field replaces it."""
EXTRA_HEADERS = "extra_headers"
"""The option with headers of one request; that of the key is never replaced."""
Optioned = TypeVar("Optioned", Request, "OperationInput")


def join_options(
    request: Optioned,
    own: Mapping[str, Any],
    row: Provider,
    dialect: str,
    names: tuple[str | None, ...],
) -> tuple[Optioned, dict[str, str], list[Warning]]:
    """
    The request with the adapter's options under it, and the headers that its options are.

    Its own options are over it, under any of the adapter's names. The warnings are about options
    that are headers elsewhere.
    """
    given, joined = request.provider_options, dict(own)
    names = (dialect, *row.aliases, row.name, *names)
    for name in dict.fromkeys(names):
        options = given.get(name) if name else None
        if isinstance(options, Mapping):
            joined = merge_options(joined, options)
    headers = take_headers(row, joined) if joined else {}
    if EXTRA_HEADERS in joined:
        headers |= _read_headers(joined.pop(EXTRA_HEADERS))
    lost = [name for name in HEADER_OPTIONS if joined.pop(name, None) is not None]
    others = {name: options for name, options in given.items() if name not in names}
    path = f"provider_options.{dialect}"
    warnings = [
        make_warning("setting_dropped", f"{path}.{name}", target=row.name, setting=name, when="")
        for name in lost
    ]
    return replace(request, provider_options={**others, dialect: joined}), headers, warnings


def find_timeouts(settings: Mapping[str, Any]) -> Timeouts | None:
    """The timeouts; a number is the timeout of a whole exchange, also of a stream."""
    timeout = settings.get("timeout")
    if timeout is None or isinstance(timeout, Timeouts):
        return timeout
    return Timeouts(request=timeout, total=timeout)


def find_transport(settings: Mapping[str, Any]) -> Transport:
    """The transport in the settings, or a new one."""
    if "transport" in settings:
        transport: Transport = settings["transport"]
        return transport
    from interlingua.transport import default_transport

    return default_transport()


async def get_transport_ready(transport: Transport, url: str) -> None:
    """Do before the first request what takes time, if the transport has `get_ready`."""
    get_ready: Callable[[str], Awaitable[None]] | None = getattr(transport, "get_ready", None)
    if get_ready is not None:
        await get_ready(url)


def unknown_owners(request: Request, own: Iterable[str]) -> list[Warning]:
    """A warning for each key of `provider_options` that names no provider, dialect or adapter."""
    known = {*dialects.names(), *providers(), *own, request.provider}
    return [
        make_warning(
            "options_unknown",
            f"provider_options.{name}",
            name=name,
            hint=suggest(name, filter(None, known)),
        )
        for name in request.provider_options
        if name not in known
    ]


_LABEL = "[A-Za-z0-9][A-Za-z0-9._-]*"
_is_label = re.compile(_LABEL).fullmatch
_is_token = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+").fullmatch  # RFC 9110, field names
_FRAMING = frozenset(("content-length", "transfer-encoding"))  # a wrong one ends in another request


def _read_headers(given: Any) -> dict[str, str]:
    """The headers of one request, names in lower case."""
    if given is not None and not isinstance(given, Mapping):
        raise ConfigurationError(f"`{EXTRA_HEADERS}` must be a mapping of names to values.")
    headers = given or {}
    _check_headers(headers)
    return {name.lower(): value for name, value in headers.items()}


def _check_headers(headers: Mapping[Any, Any]) -> None:
    for name, value in headers.items():
        if not isinstance(name, str) or not isinstance(value, str) or not name:
            # The message does not contain the value, which may be a key.
            raise ConfigurationError(f"The value of the header {name!r} must be a string.")
        if not _is_token(name) or not value.isprintable():
            raise ConfigurationError(
                f"The header {name!r} has a line break, or another character that is not allowed."
            )
        if name.lower() in _FRAMING:
            raise ConfigurationError(f"The header {name!r} is set by the transport. Leave it out.")


def _check_options(options: Mapping[str, Any]) -> None:
    try:
        dumps(options)
    except (TypeError, ValueError, RecursionError, OverflowError, SDKError) as error:
        raise ConfigurationError(f"options must be JSON: {error}.") from None


def _check_transport(transport: object) -> None:
    if not callable(getattr(transport, "send", None)):
        raise ConfigurationError("transport must be a Transport: it has no method `send`.")


def _check_profile(profile: Mapping[str, Any]) -> None:
    check_overrides(profile, "profile")


def _check_model_profiles(profiles: Mapping[str, Any]) -> None:
    for model, row in profiles.items():
        check_overrides(row, model)


_CHECKS: dict[str, Callable[[Any], None]] = {
    "default_headers": _check_headers,
    "options": _check_options,
    "dialect": check_dialect,
    "transport": _check_transport,
    "profile": _check_profile,
    "model_profiles": _check_model_profiles,
}
