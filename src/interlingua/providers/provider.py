"""
A provider is a row: its dialect, its base URL, and how the key is sent.

Dialects are found by name here, including those of other packages: `dialects` does no I/O.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache, lru_cache
from typing import Literal, TypeAlias
from urllib.parse import quote, urlencode, urlsplit

from msgspec.structs import replace

from interlingua import dialects
from interlingua.spec.behaviour import Behaviour
from interlingua.spec.content import Json, Record
from interlingua.spec.contracts import Dialect, WireCall
from interlingua.spec.errors import ConfigurationError, DecodeError
from interlingua.wire.model_path import quote_model

Identity: TypeAlias = Literal["aws", "google"]
"""Whose keys a provider uses if it has none of its own."""

is_version = re.compile(r"v[0-9]+(?:(?:alpha|beta)[0-9]*)?").fullmatch
_match_url = re.compile(r"(https?)://([^/?#\s]+)(/[^?#\s]*)?").fullmatch
_is_loopback = re.compile(r"(?:.+\.)?localhost\.?|127(?:\.[0-9]{1,3}){3}|::1").fullmatch
_match_host = re.compile(r"\[(.*)\](?::([0-9]*))?|([^:]*)(?::([0-9]*))?").fullmatch


Signing: TypeAlias = Literal[
    "bearer", "x-api-key", "x-goog-api-key", "api-key", "x-portkey-api-key", "sigv4"
]
"""
How the key is sent: as `Authorization: Bearer`, or in the header of this name.

`sigv4` is a signature of AWS; a text key is sent as `Authorization: Bearer` there.
"""

MODEL = "{model}"


class Endpoint(Record, frozen=True, kw_only=True):
    """
    How the calls of one dialect are sent, where that differs from the dialect.

    `{model}` in a path is the name of the model; the body then has none.
    """

    signing: Signing | None = None
    """How the key is sent there, if in another way."""
    base_path: str | None = None
    """The path of a base URL that has none, or that of the row; None for that of the row."""
    path: str = ""
    """The path of calls that generate; empty for that of the dialect."""
    stream_path: str = ""
    """The path of streams, if it is another."""
    stream_accept: str = ""
    """The media type of streams, if it is not that of server-sent events."""
    query: Mapping[str, str] = {}
    """Parameters of every URL; `{api_version}` in a value is the version."""
    without: tuple[str, ...] = ()
    """Fields that bodies do not have there."""
    header_fields: Mapping[str, str] = {}
    """Headers that are fields of the body instead: header -> field; flags are a list there."""
    header_values: Mapping[str, str] = {}
    """The values of these headers that are written in another way there."""
    flags: tuple[str, ...] | None = None
    """
    The flags of features in testing that it accepts; a request with another one is refused.

    None for all. A gateway leaves out the others, because its clients do not know the host.
    """
    operation_paths: Mapping[str, str] = {}
    """The paths of operations, if they differ from those of the dialect."""

    def address(self, call: WireCall, model: str, version: str = "") -> WireCall:
        """Return a call that generates, as it is sent to this endpoint."""
        path = (self.stream_path if call.stream else "") or self.path or call.path
        call = self._adapt(call, path, model, version)
        if call.stream and self.stream_accept:
            call = replace(call, headers={**call.headers, "accept": self.stream_accept})
        return call

    def address_operation(
        self, call: WireCall, name: str, model: str, version: str = ""
    ) -> WireCall:
        """Return the call of another operation, as it is sent to this endpoint."""
        return self._adapt(call, self.operation_paths.get(name, call.path), model, version)

    def _adapt(self, call: WireCall, path: str, model: str, version: str) -> WireCall:
        headers, body = dict(call.headers), call.body
        if isinstance(body, dict):
            moved = {
                field: self._field_value(header, headers.pop(header))
                for header, field in self.header_fields.items()
                if header in headers
            }
            body = {**moved, **body}
            removed = (*self.without, "model") if MODEL in path else self.without
            body = {name: value for name, value in body.items() if name not in removed}
        path = path.replace(MODEL, quote_model(model)) if MODEL in path else path
        query = {
            name: value.replace("{api_version}", version) for name, value in self.query.items()
        }
        if query:
            path += ("&" if "?" in path else "?") + urlencode(query, quote_via=quote)
        return replace(call, path=path, body=body, headers=headers)

    def _field_value(self, header: str, value: str) -> Json:
        if header.endswith("-beta"):
            return [flag.strip() for flag in value.split(",")]
        return self.header_values.get(value, value)


class DerivedPlace(Record, frozen=True, kw_only=True):
    """A place in a base URL whose value follows from that of another place."""

    of: str
    """The name of the other place."""
    form: str
    """The value of this place, with the value of the other place at `{}`."""
    exceptions: Mapping[str, str] = {}
    """Values of this place that do not follow `form`, by the value of the other place."""

    def value(self, values: Mapping[str, str]) -> str:
        """Return the value of this place for these values of the other places."""
        other = values[self.of]
        return self.exceptions.get(other) or self.form.format(other)


class Branch(Record, frozen=True, kw_only=True):
    """The models of a row that are called through another row, or in another dialect."""

    models: str
    """Their ids, as a regular expression for the whole id."""
    row: str = ""
    """The name of the row whose address, dialect and endpoints are used; empty for the same row."""
    dialect: str = ""
    """The dialect; empty for the first one of that row."""
    is_signed: bool | None = None
    """Whether it is for requests that are signed with keys of AWS; None for all requests."""


class SizeLimits(Record, frozen=True, kw_only=True):
    """What a provider accepts, in bytes; None if it is not known."""

    request: int | None = None
    """The body of a call, with its media in base64."""
    audio: int | None = None
    """A file to transcribe."""
    file: int | None = None
    """A file to store."""


class Provider(Record, frozen=True, kw_only=True):
    """One row. It has only the names of environment variables: `Client.from_env` reads them."""

    name: str
    """The name that comes before the colon of a model."""
    dialect: str
    """The dialect of its API."""
    other_dialects: tuple[str, ...] = ()
    """Further dialects at the same address; `dialect=` of an adapter chooses one."""
    aliases: tuple[str, ...] = ()
    """Other names that people write before a model, such as `google` for `gemini`."""
    families: tuple[str, ...] = ()
    """How the names of the models begin that this provider makes, in lower case."""
    own_ids: str = ""
    """
    The form of ids that only this provider has, as a regular expression for the whole id.

    A name of this form may have a colon, and needs no provider before it where this provider is the
    only one. If the provider itself writes a part of it, that is the group `id`. A group with the
    name of a place in `base_url` must have the value of that place.
    """
    branches: tuple[Branch, ...] = ()
    """
    How models are called where that differs between them; the first branch of a model is used.

    A model without a branch is called as the row says. `dialect=` of an adapter disables them.
    """
    makers: tuple[str, ...] = ()
    """The makers whose models it serves; empty if it may serve any model."""
    base_url: str = ""
    """The start of its URLs, with the version if the paths of the dialect have none."""
    url_env: Mapping[str, tuple[str, ...]] = {}
    """Places in `base_url`, such as `{account}`, and the variables that may hold their values."""
    derived_places: Mapping[str, DerivedPlace] = {}
    """Places in `base_url` whose values follow from others."""
    base_path: str = ""
    """The path that is added to a base URL without a path."""
    endpoints: Mapping[str, Endpoint] = {}
    """Where its calls differ from those of a dialect, by dialect."""
    versioned_endpoints: Mapping[str, Endpoint] = {}
    """The same for calls with an API version (`api_version=`), which have an older form."""
    version_env: tuple[str, ...] = ()
    """The variables that may hold the API version."""
    signing: Signing = "bearer"
    """How the key is sent."""
    token_signing: Signing | None = None
    """How a key that a callable makes is sent, if in another way."""
    aws_service: str = ""
    """The name of the service in a signature of AWS."""
    identity: Identity | None = None
    """Whose keys are used if none is given; they are looked for when the first call is made."""
    only_named: bool = False
    """
    `Client.from_env` uses it only when it is named.

    Its variables are those of a whole cloud: that they are set does not mean that it is used.
    """
    key_required: bool = True
    """Whether it needs a key."""
    key_env: tuple[str, ...] = ()
    """The variables that may hold the key; the first one that is set is used."""
    token_env: tuple[str, ...] = ()
    """The variables that may hold a token instead, which is sent as a callable's is."""
    base_url_env: tuple[str, ...] = ()
    """The variables that may hold another address."""
    headers_env: Mapping[str, str] = {}
    """Headers whose values are in variables: header -> variable."""
    headers: Mapping[str, str] = {}
    """Headers to send with every call."""
    header_options: Mapping[str, str] = {}
    """Settings and options that are sent as headers, not in the body: name -> header."""
    request_id_header: str | None = None
    """The header, in lower case, that carries the client's id of each attempt."""
    operation_paths: Mapping[str, str] = {}
    """The paths of operations, if they differ from those of the dialect."""
    operations: Mapping[str, str] | None = None
    """
    The operations that it has, each with the variant of the dialect's operation that it uses.

    `{"embed": "voyage"}` means the operation `embed.voyage` of the dialect, `{"embed": ""}` the
    plain `embed`. None means unknown: each operation of the dialect is tried.
    """
    sizes: SizeLimits = SizeLimits()
    """What it accepts at most."""
    behaviour: Behaviour | None = None
    """How the provider is used, unless an adapter or a client has another behaviour for it."""
    keep_alive: bool = True
    """Connections are reused; False for a server that breaks them between two calls."""
    is_local: bool = False
    """Whether it runs on the user's machine: it needs no key and has no price."""
    is_embedded: bool = False
    """The library starts its server (`interlingua.local`); it has no address before."""
    default_port: int | None = None
    """The port for an address that has none."""
    sources: tuple[str, ...] = ()
    """Where the facts of this row come from; the provider table in the docs lists them."""

    def __post_init__(self) -> None:
        try:
            for dialect in (self.dialect, *self.other_dialects, *self.endpoints):
                check_dialect(dialect)
        except ConfigurationError as error:
            raise ConfigurationError(f"Provider {self.name!r}: {error.message}") from None

    @property
    def address_env(self) -> tuple[tuple[str, ...], ...]:
        """The variables without which it has no address, each with its other names."""
        if self.url_env:
            return tuple(self.url_env.values())
        return () if self.base_url else (self.base_url_env,)


def find_dialect(name: str) -> Dialect:
    """The dialect of that name; `ConfigurationError` lists the known names."""
    check_dialect(name)
    return dialects.get(name)


@cache
def _register_dialects() -> None:
    """Register the dialects of other packages."""
    from interlingua.runtime.installed import DIALECTS, entry_points_of, use_entry_points

    use_entry_points(entry_points_of(DIALECTS), lambda point: dialects.register(point.load()))


def check_dialect(name: str) -> None:
    """Raise `ConfigurationError` if there is no such dialect; does not import a built-in one."""
    if name not in dialects.names():
        _register_dialects()
    if name not in dialects.names():
        known = ", ".join(dialects.names())
        raise ConfigurationError(f"There is no dialect {name!r}. Use one of {known}.")


def add_scheme(address: str, row: Provider) -> str:
    """
    The address with `http://`, if it has no scheme and is local.

    Local addresses are loopback, and those of providers that run on the user's machines, which
    are often written as host and port (`OLLAMA_HOST`). For any other address a scheme is required,
    because `http://` would send the key unencrypted.
    """
    address = address.strip().strip("\"'")
    place, slash, path = address.partition("/")
    if not address or "://" in address:
        return address
    match = _match_host(place)
    host, port = (place, "") if match is None else (match[1] or match[3], match[2] or match[4])
    if not row.is_local and not _is_loopback(host or ""):
        return address
    host = host or "127.0.0.1"
    port = port or (str(row.default_port) if row.default_port else "")
    place = f"[{host}]" if ":" in host else host
    return f"http://{place}{f':{port}' if port else ''}{slash}{path}"


def check_base_url(url: str, base_path: str = "") -> str:
    """The base URL without a trailing slash; `ConfigurationError` if it is invalid."""
    match = _match_url(url.strip())
    if match is None or "@" in match[2] or not _is_host(match[2]):
        raise ConfigurationError(
            "A base URL must look like https://host/path, without user or query."
        )
    return f"{match[1]}://{match[2]}{(match[3] or '').rstrip('/') or base_path}"


def _is_host(host: str) -> bool:
    """Whether this is a host with a possible port."""
    try:
        parts = urlsplit(f"//{host}")
        return bool(parts.hostname) and parts.port != 0 and host.isprintable()
    except ValueError:
        return False


@lru_cache(maxsize=256)
def join_url(base_url: str, path: str) -> str:
    """
    The URL of a call. A path that is a whole URL must be at the host of the base URL.

    Vendors differ in whether a base URL includes the API version. If both the base URL and the
    path have one, that of the base URL is used.
    """
    if path.startswith(("http://", "https://")):
        _check_own(base_url, path)
        return path
    while path.startswith("../"):  # an API beside that of the base URL, at the same host
        path = path[3:]
        base_url = _parent(base_url)
    first, slash, rest = path.lstrip("/").partition("/")
    if slash and is_version(first) and is_version(base_url.rpartition("/")[2]):
        return f"{base_url}/{rest}"
    return f"{base_url}/{path.lstrip('/')}"


def _parent(url: str) -> str:
    """The URL without the last name of its path; the same if it has no path."""
    parent = url.rpartition("/")[0]
    return url if parent.endswith(":/") else parent


def _check_own(base_url: str, url: str) -> None:
    """The key of a provider is sent to no other host, whatever a reply says."""
    if not is_own(base_url, url):
        raise DecodeError(
            f"The provider at {_origin(base_url)} named an address at {_origin(url)}. Nothing was "
            "sent, because the key is sent only to the provider's own host."
        )


def is_own(base_url: str, url: str) -> bool:
    """Whether a URL is at the host of the base URL, with the same scheme and port."""
    return _origin(base_url) == _origin(url)


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def is_at_loopback(base_url: str) -> bool:
    """Whether a base URL is at this machine."""
    return _is_loopback(urlsplit(base_url).hostname or "") is not None


def sign(signing: Signing, key: str | None) -> dict[str, str]:
    """The headers that carry the key."""
    if not key:
        return {}
    is_bearer = signing in ("bearer", "sigv4")
    return {"authorization": f"Bearer {key}"} if is_bearer else {signing: key}
