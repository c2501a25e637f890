"""
What a URL in a part shows, for dialects that take only bytes.

The URL may come from anybody, so it may lead only to the open internet: names are looked up
here, every address they have must be public, the connection goes to one that was looked at, and
all of it again for each redirect. No proxy is used, since it would look names up by itself.
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
    """What a URL led to."""

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
    """The request with the bytes of each URL in parts of these kinds."""

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
    What the URL shows; `ConfigurationError` if it leads where it must not.

    `allowed` says to which addresses it may lead.
    """
    error: SDKError
    try:
        async with asyncio.timeout(seconds):
            return await _follow(url, max_bytes, allowed)
    except SDKError:  # first: some of them are a TimeoutError or an OSError too
        raise
    except TimeoutError:
        error = RequestTimeoutError(
            f"{_host(url)} did not send the file within {seconds:g} s",
            phase="request",
            retryable=False,
        )
    except ValueError:
        error = ConfigurationError("a URL to fetch cannot be read")
    except Exception as failure:  # noqa: BLE001 -- each is translated
        error = _refused_inside(failure) or NetworkError(
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
        text = f"{url.host} has no file to fetch: HTTP {response.status}"
        if response.status >= 500 or response.status == 429:
            raise NetworkError(text)
        raise ConfigurationError(text)
    if response.headers.get("content-encoding", "identity").lower() != "identity":
        raise DecodeError(f"{url.host} sent a packed file, which was not asked for")
    data = bytearray()
    async for chunk in response.content.iter_any():
        data += chunk
        if len(data) > max_bytes:
            raise ConfigurationError(f"the file at {url.host} is larger than {max_bytes} bytes")
    name = url.name or None
    said = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    return Fetched(bytes(data), media_type_for(bytes(data), name, said or None), name)


def _checked(url: URL, allowed: Callable[[str], bool]) -> URL:
    # The same object goes to aiohttp, so nobody can read another host out of it.
    host = url.host
    if url.scheme not in {"http", "https"} or not host:
        raise ConfigurationError(f"only http and https URLs can be fetched, not {url.scheme!r}")
    if url.user is not None or url.password is not None:
        raise ConfigurationError(f"the URL at {host} holds a user or password; it is not fetched")
    # what is an address already is not looked up
    if (":" in host or host.replace(".", "").isdigit()) and not allowed(host):
        raise _forbidden(host)
    return url


def _next_url(url: URL, location: str | None) -> URL:
    if not location:
        raise ConfigurationError(f"{url.host} redirects to nowhere")
    target = url.join(type(url)(location))
    if url.scheme == "https" and target.scheme == "http":
        raise ConfigurationError(f"{url.host} redirects from https to http; it is not followed")
    return target


def _forbidden(host: str) -> ConfigurationError:
    return ConfigurationError(f"{host} is not on the open internet; it is not fetched from")


def _resolver(allowed: Callable[[str], bool]) -> aiohttp.abc.AbstractResolver:
    from aiohttp.abc import AbstractResolver

    class Guarded(AbstractResolver):
        """Looks names up, and refuses those with an address that is not public."""

        async def resolve(
            self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
        ) -> list[Any]:
            loop = asyncio.get_running_loop()
            found = await loop.getaddrinfo(
                host, port, type=socket.SOCK_STREAM, family=family, flags=socket.AI_ADDRCONFIG
            )
            if not all(allowed(str(entry[4][0])) for entry in found):
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
                for entry in found
            ]

        async def close(self) -> None:
            """There is nothing to close."""

    return Guarded()


class _ForbiddenError(OSError):
    """A name that leads inside; an OSError, since only those pass through aiohttp."""


def _refused_inside(failure: BaseException) -> ConfigurationError | None:
    seen: BaseException | None = failure
    while seen is not None:
        inner = getattr(seen, "os_error", None)
        for one in (seen, inner):
            if isinstance(one, _ForbiddenError):
                return _forbidden(str(one.args[0]))
        seen = seen.__cause__
    return None


def _is_web(url: str | None) -> bool:
    return url is not None and url[:8].lower().startswith(("http://", "https://"))


def _host(url: str) -> str:
    try:
        return urlsplit(url).hostname or "no host"
    except ValueError:
        return "no host"
