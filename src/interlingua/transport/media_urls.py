"""
Fetches the URLs in parts, for dialects that accept only bytes.

A URL may come from a stranger, so only public addresses are allowed (protection against SSRF).
The host name is resolved here, all of its addresses must be public, and the connection goes to
one of the checked addresses. Each redirect is checked again. No proxy is used, because a proxy
would resolve the name itself.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from interlingua.spec.errors import (
    ConfigurationError,
    DecodeError,
    NetworkError,
    RequestTimeoutError,
    SDKError,
)
from interlingua.spec.request import Request
from interlingua.transport.addresses import is_public
from interlingua.transport.media_files import MAX_FILE, Media, find_media, replace_media, with_bytes
from interlingua.version import USER_AGENT
from interlingua.wire.media import media_type_for

if TYPE_CHECKING:
    import aiohttp
    from yarl import URL

MAX_REDIRECTS = 5
SECONDS = 30.0


class Fetched(NamedTuple):
    """A file that was fetched from a URL."""

    data: bytes
    media_type: str | None
    name: str | None


async def fetch_media(
    request: Request,
    kinds: tuple[type[Media], ...],
    *,
    max_bytes: int = MAX_FILE,
    seconds: float = SECONDS,
    allowed: Callable[[str], bool] = is_public,
) -> Request:
    """The request with the bytes in place of each URL, in parts of the types in `kinds`."""

    def wanted(part: Media) -> bool:
        return isinstance(part, kinds) and _is_web(part.url)

    urls = list(dict.fromkeys(part.url or "" for _, part in find_media(request, wanted)))
    if not urls:
        return request
    try:
        async with asyncio.TaskGroup() as group:
            tasks = {
                url: group.create_task(
                    fetch(url, max_bytes=max_bytes, seconds=seconds, allowed=allowed)
                )
                for url in urls
            }
    except BaseExceptionGroup as failures:
        first = failures.exceptions[0]
    else:
        return replace_media(
            request,
            wanted,
            lambda part, _: with_bytes(part, *tasks[part.url or ""].result()),
        )
    raise first


async def fetch(
    url: str,
    *,
    max_bytes: int = MAX_FILE,
    seconds: float = SECONDS,
    allowed: Callable[[str], bool] = is_public,
) -> Fetched:
    """
    Fetch a file; raises `ConfigurationError` if the URL leads to an address that is not allowed.

    `allowed` takes an IP address and says whether a connection to it is allowed.
    """
    error: SDKError
    try:
        async with asyncio.timeout(seconds):
            return await _follow(url, max_bytes, allowed)
    except SDKError:  # first: some of them are a TimeoutError or an OSError too
        raise
    except TimeoutError:
        error = RequestTimeoutError(
            f"timed out after {seconds:g} s while fetching a file from {_host(url)}",
            phase="request",
            retryable=False,
        )
    except ValueError:
        error = ConfigurationError("cannot parse the URL of a file to fetch")
    except Exception as failure:  # noqa: BLE001 -- all are translated
        error = _forbidden_cause(failure) or NetworkError(
            f"cannot fetch from {_host(url)}: {type(failure).__name__}"
        )
    raise error


async def _follow(text: str, max_bytes: int, allowed: Callable[[str], bool]) -> Fetched:
    import aiohttp
    from yarl import URL

    connector = aiohttp.TCPConnector(
        resolver=_resolver(allowed), use_dns_cache=False, force_close=True
    )
    async with aiohttp.ClientSession(
        connector=connector, cookie_jar=aiohttp.DummyCookieJar(), trust_env=False
    ) as session:
        url = _checked(URL(text), allowed)
        for _ in range(MAX_REDIRECTS + 1):
            async with session.get(
                url,
                allow_redirects=False,
                headers={"accept-encoding": "identity", "user-agent": USER_AGENT},
            ) as response:
                if response.status not in {301, 302, 303, 307, 308}:
                    return await _take(url, response, max_bytes)
                target = _next_url(url, response.headers.get("location"))
                url = _checked(target, allowed)
    raise ConfigurationError(f"{url.host} redirects more than {MAX_REDIRECTS} times")


async def _take(url: URL, response: aiohttp.ClientResponse, max_bytes: int) -> Fetched:
    if response.status != 200:
        text = f"cannot fetch a file from {url.host}: HTTP {response.status}"
        if response.status >= 500 or response.status == 429:
            raise NetworkError(text)
        raise ConfigurationError(text)
    if response.headers.get("content-encoding", "identity").lower() != "identity":
        raise DecodeError(f"{url.host} sent a compressed file, but only identity was accepted")
    data = bytearray()
    async for chunk in response.content.iter_any():
        data += chunk
        if len(data) > max_bytes:
            raise ConfigurationError(f"the file at {url.host} is larger than {max_bytes} bytes")
    name = url.name or None
    declared = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    return Fetched(bytes(data), media_type_for(bytes(data), name, declared or None), name)


def _checked(url: URL, allowed: Callable[[str], bool]) -> URL:
    # This object, not the text, goes to aiohttp: two parsers could see two different hosts.
    host = url.host
    if url.scheme not in {"http", "https"} or not host:
        raise ConfigurationError(f"only http and https URLs can be fetched, not {url.scheme!r}")
    if url.user is not None or url.password is not None:
        raise ConfigurationError(
            f"the URL at {host} contains a user name or password and was not fetched; remove them"
        )
    # An IP address in the URL is not resolved, so `_resolver` does not check it.
    if (":" in host or host.replace(".", "").isdigit()) and not allowed(host):
        raise _forbidden(host)
    return url


def _next_url(url: URL, location: str | None) -> URL:
    if not location:
        raise ConfigurationError(f"{url.host} sent a redirect without a location header")
    target = url.join(type(url)(location))
    if url.scheme == "https" and target.scheme == "http":
        raise ConfigurationError(f"{url.host} redirects from https to http, which is not allowed")
    return target


def _forbidden(host: str) -> ConfigurationError:
    return ConfigurationError(
        f"{host} is not a public address, so the file was not fetched; pass its bytes instead"
    )


def _resolver(allowed: Callable[[str], bool]) -> aiohttp.abc.AbstractResolver:
    from aiohttp.abc import AbstractResolver

    class Guarded(AbstractResolver):
        """Resolves host names, and refuses a name with an address that is not allowed."""

        async def resolve(
            self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
        ) -> list[Any]:
            loop = asyncio.get_running_loop()
            entries = await loop.getaddrinfo(
                host, port, type=socket.SOCK_STREAM, family=family, flags=socket.AI_ADDRCONFIG
            )
            if not all(allowed(str(entry[4][0])) for entry in entries):
                raise _ForbiddenError(host)
            return [
                {
                    "hostname": host,
                    "host": entry[4][0],
                    "port": port,
                    "family": entry[0],
                    "proto": entry[2],
                    "flags": socket.AI_NUMERICHOST,
                }
                for entry in entries
            ]

        async def close(self) -> None:
            """Does nothing: there is nothing to close."""

    return Guarded()


class _ForbiddenError(OSError):
    """A host whose address is not allowed; an OSError, because aiohttp handles only those."""


def _forbidden_cause(failure: BaseException) -> ConfigurationError | None:
    # aiohttp wraps the resolver's error, as `os_error` or as the cause.
    error: BaseException | None = failure
    while error is not None:
        for candidate in (error, getattr(error, "os_error", None)):
            if isinstance(candidate, _ForbiddenError):
                return _forbidden(str(candidate.args[0]))
        error = error.__cause__
    return None


def _is_web(url: str | None) -> bool:
    return url is not None and url[:8].lower().startswith(("http://", "https://"))


def _host(url: str) -> str:
    try:
        return urlsplit(url).hostname or "no host"
    except ValueError:
        return "no host"
