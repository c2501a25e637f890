"""A provider is a row: the dialect, the address, and how the key is sent. Dialects by name."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Mapping
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Literal, TypeAlias

from interlingua import dialects
from interlingua.spec.content import Record
from interlingua.spec.contracts import Dialect
from interlingua.spec.errors import ConfigurationError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

ENTRY_POINTS = "interlingua.dialects"
"""The group of entry points through which other packages add dialects: each names a module."""


def find_dialect(name: str) -> Dialect:
    """The dialect of that name; `ConfigurationError` lists those there are."""
    check_dialect(name)
    return dialects.get(name)


def check_dialect(name: str) -> None:
    """`ConfigurationError` if there is no such dialect; a shipped one is not loaded for that."""
    if name not in dialects.names():
        _register_installed()
    if name not in dialects.names():
        known = ", ".join(dialects.names())
        raise ConfigurationError(f"no dialect {name!r}; there are {known}")


@cache
def _register_installed() -> None:
    from importlib.metadata import entry_points

    register_points(entry_points(group=ENTRY_POINTS))


def register_points(points: Iterable[EntryPoint]) -> None:
    """Register what these entry points name."""
    for point in points:
        try:
            dialects.register(point.load())
        except Exception as error:  # noqa: BLE001 -- it is somebody else's code
            # one package that is broken must not stop the others
            message = f"entry point {point.name!r} of {ENTRY_POINTS} is left out: {error!r}"
            warnings.warn(message, RuntimeWarning, stacklevel=2)


Signing: TypeAlias = Literal["bearer", "x-api-key", "x-goog-api-key", "api-key"]
"""How the key is shown: as `Authorization: Bearer`, or in the header of this name."""

_is_version = re.compile(r"v[0-9]+(?:(?:alpha|beta)[0-9]*)?").fullmatch
_address = re.compile(r"(https?)://([^/?#\s]+)(/[^?#\s]*)?").fullmatch
_is_this_machine = re.compile(r"(?:.+\.)?localhost\.?|127(?:\.[0-9]{1,3}){3}|::1").fullmatch
_host_and_port = re.compile(r"\[(.*)\](?::([0-9]*))?|([^:]*)(?::([0-9]*))?").fullmatch


class Provider(Record, frozen=True, kw_only=True):
    """One row. The names of environment variables are only names: `Client.from_env` reads them."""

    name: str
    dialect: str
    base_url: str = ""
    """Where its API begins, the version included where the dialect's paths have none."""
    base_path: str = ""
    """What follows a base URL that is only a host."""
    signing: Signing = "bearer"
    key_required: bool = True
    key_env: tuple[str, ...] = ()
    """The variables that may hold the key, the first one set wins."""
    base_url_env: tuple[str, ...] = ()
    headers_env: Mapping[str, str] = {}
    """Headers whose value is in a variable: header -> variable."""
    headers: Mapping[str, str] = {}
    """Headers sent with every call."""
    operation_paths: Mapping[str, str] = {}
    """Paths by the names of operations, where they are not those of its dialect."""
    is_local: bool = False
    """It runs on this machine: there is no key, and no price."""
    is_embedded: bool = False
    """Its server is ours to start, and has no address before (`interlingua.local`)."""
    default_port: int | None = None
    """The port of an address that is a host and nothing else."""

    def __post_init__(self) -> None:
        try:
            check_dialect(self.dialect)
        except ConfigurationError as error:
            raise ConfigurationError(f"provider {self.name!r}: {error.message}") from None


def add_scheme(address: str, row: Provider) -> str:
    """
    `http://` before an address that names no scheme, where a key cannot be overheard.

    That is on this machine, and for the servers that run on machines of one's own: they are
    named by host and port, or either (`OLLAMA_HOST`). Any other address is left as it is.
    """
    address = address.strip().strip("\"'")
    place, slash, path = address.partition("/")
    if not address or "://" in address:
        return address
    found = _host_and_port(place)
    host, port = (place, "") if found is None else (found[1] or found[3], found[2] or found[4])
    if not row.is_local and not _is_this_machine(host or ""):
        return address
    host = host or "127.0.0.1"
    port = port or (str(row.default_port) if row.default_port else "")
    place = f"[{host}]" if ":" in host else host
    return f"http://{place}{f':{port}' if port else ''}{slash}{path}"


def check_base_url(url: str, base_path: str = "") -> str:
    """The address without a slash at its end; `ConfigurationError` if it is none."""
    found = _address(url.strip())
    if found is None or "@" in found.group(2):
        raise ConfigurationError(
            "a base URL must look like https://host/path, without user or query"
        )
    scheme, host, path = found.groups()
    path = (path or "").rstrip("/") or base_path
    return f"{scheme}://{host}{path}"


@lru_cache(maxsize=256)
def join_url(base_url: str, path: str) -> str:
    """
    The address of a call.

    Base URLs are given with and without the version, by habit of each vendor; where both the
    base and the path name one, the base's counts.
    """
    first, slash, rest = path.lstrip("/").partition("/")
    if slash and _is_version(first) and _is_version(base_url.rpartition("/")[2]):
        return f"{base_url}/{rest}"
    return f"{base_url}/{path.lstrip('/')}"


def sign(signing: Signing, key: str | None) -> dict[str, str]:
    """The headers that show the key."""
    if not key:
        return {}
    if signing == "bearer":
        return {"authorization": f"Bearer {key}"}
    return {signing: key}
