"""
Reads the files and fetches the URLs that parts name, before a request is encoded.

A URL may come from a stranger, so only public addresses are allowed (protection against SSRF).
The host name is resolved here, all of its addresses must be public, and the connection goes to
one of the checked addresses. Each redirect is checked again. No proxy is used, because a proxy
would resolve the name itself.
"""

from __future__ import annotations

import asyncio
import stat
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias
from urllib.parse import unquote, urljoin

from msgspec.structs import replace

from interlingua.spec.content import (
    MEDIA_TYPES,
    NO_MEDIA,
    Audio,
    Document,
    FilePath,
    Image,
    Part,
    ToolResult,
)
from interlingua.spec.contracts import HttpRequest
from interlingua.spec.defaults import Limits, Timeouts
from interlingua.spec.errors import (
    ConfigurationError,
    DecodeError,
    NetworkError,
    RequestTimeoutError,
    SDKError,
)
from interlingua.spec.messages import Message
from interlingua.spec.request import Request
from interlingua.transport.timeouts import address_of, connection_error
from interlingua.wire.media import local_path, media_type_for

if TYPE_CHECKING:
    from interlingua.transport.http1.addresses import Address, Url
    from interlingua.transport.http1.exchange import Exchange

# From IANA's special-purpose address registries. The tables in `ipaddress` are not used because
# they changed between patch releases of Python. A block of which the registries call only parts
# globally reachable is refused completely: nobody serves documents from those parts.
# https://www.iana.org/assignments/iana-ipv4-special-registry
_REFUSED_V4 = tuple(
    IPv4Network(block)
    for block in (
        "0.0.0.0/8",  # this network
        "10.0.0.0/8",  # private
        "100.64.0.0/10",  # carrier-grade NAT; the metadata service of one cloud is there
        "127.0.0.0/8",  # loopback
        "168.63.129.16/32",  # internal services of Azure; not in the registry
        "169.254.0.0/16",  # link-local; the metadata services of most clouds are there
        "172.16.0.0/12",  # private
        "192.0.0.0/24",  # protocol assignments
        "192.0.2.0/24",  # documentation
        "192.88.99.0/24",  # 6to4 relays, deprecated
        "192.168.0.0/16",  # private
        "198.18.0.0/15",  # benchmarks
        "198.51.100.0/24",  # documentation
        "203.0.113.0/24",  # documentation
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, and broadcast
    )
)
# https://www.iana.org/assignments/iana-ipv6-special-registry
# All global unicast addresses that IANA has assigned are in this block. Loopback, unique local,
# link-local, site-local, multicast, discard-only, segment routing and IPv4-compatible addresses
# are outside of it.
_UNICAST_V6 = IPv6Network("2000::/3")
_REFUSED_V6 = tuple(
    IPv6Network(block)
    for block in (
        "2001::/23",  # protocol assignments: Teredo, benchmarks, ORCHID and others
        "2001:db8::/32",  # documentation
        "3fff::/20",  # documentation
    )
)
# An address in one of these blocks contains an IPv4 address, which starts at this bit (from the
# right) and decides whether the address is public.
_EMBEDDING_V6 = (
    (IPv6Network("::ffff:0:0/96"), 0),  # IPv4-mapped
    (IPv6Network("64:ff9b::/96"), 0),  # NAT64
    (IPv6Network("2002::/16"), 80),  # 6to4
)


def is_public(text: str) -> bool:
    """Whether this is a public IP address; an IPv4 address embedded in IPv6 is checked too."""
    try:
        address = ip_address(text.partition("%")[0])
    except ValueError:
        return False
    if isinstance(address, IPv4Address):
        return _is_public_v4(address)
    return _is_public_v6(address)


def _is_public_v4(address: IPv4Address) -> bool:
    return not any(address in block for block in _REFUSED_V4)


def _is_public_v6(address: IPv6Address) -> bool:
    for block, shift in _EMBEDDING_V6:
        if address in block:
            return _is_public_v4(IPv4Address(int(address) >> shift & 0xFFFF_FFFF))
    return address in _UNICAST_V6 and not any(address in block for block in _REFUSED_V6)


MAX_FILE = 64 * 1024 * 1024
"""The default limit of one file, in bytes."""
MAX_FILES = 128 * 1024 * 1024
"""The default limit of all files of a request together, and of all its fetched URLs."""
MAX_FETCHES = 8
"""How many URLs of a request are fetched at the same time."""

Media: TypeAlias = Image | Audio | Document


class _Budget:
    """The bytes that the files of a request may still have together."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._left = limit

    def spend(self, size: int) -> None:
        self._left -= size
        if self._left < 0:
            raise ConfigurationError(
                f"The files of the request are larger than {self._limit} bytes together. "
                'Send fewer, or pass upload="auto".'
            )


def load_media(
    request: Request,
    *,
    max_bytes: int = MAX_FILE,
    max_total: int = MAX_FILES,
    root: str | PathLike[str] | None = None,
) -> Request:
    """
    The request with the bytes of each part's `path`; the same object if there is none.

    With `root`, only files inside that folder are read. A `url` that looks like a path raises
    `ConfigurationError`: it may come from a stranger, so it is never read.
    """
    inside = None if root is None else Path(root).resolve()
    budget = _Budget(max_total)

    def load(part: Media, where: str) -> Media:
        loaded = _load(part, where, max_bytes, inside)
        budget.spend(len(loaded.data or b""))
        return loaded

    return replace_media(request, _names_file, load)


async def load_media_async(
    request: Request,
    *,
    max_bytes: int = MAX_FILE,
    max_total: int = MAX_FILES,
    root: str | PathLike[str] | None = None,
) -> Request:
    """`load_media`, with the files read in a thread; no thread is used if there are no files."""
    if not names_files(request.messages):
        return request
    load = partial(load_media, max_bytes=max_bytes, max_total=max_total, root=root)
    return await asyncio.to_thread(load, request)


def names_files(messages: Iterable[Message]) -> bool:
    """Whether a part of these messages names a file."""
    return any(_has_wanted(message.content, _names_file) for message in messages)


def find_media(request: Request, wanted: Callable[[Media], bool]) -> list[tuple[str, Media]]:
    """The wanted media parts of a request, also in tool results, with their paths."""
    parts: list[tuple[str, Media]] = []

    def collect(part: Media, where: str) -> Media:
        parts.append((where, part))
        return part

    replace_media(request, wanted, collect)
    return parts


def replace_media(
    request: Request, wanted: Callable[[Media], bool], change: Callable[[Media, str], Media]
) -> Request:
    """The request with each wanted media part changed; the same object if nothing changed."""
    messages, is_changed = list(request.messages), False
    for index, message in enumerate(messages):
        if not _has_wanted(message.content, wanted):
            continue
        content = _in_parts(message.content, wanted, change, f"messages[{index}].content")
        if content is not message.content:
            messages[index] = replace(message, content=content)
            is_changed = True
    return replace(request, messages=tuple(messages)) if is_changed else request


def _has_wanted(parts: tuple[Part, ...], wanted: Callable[[Media], bool]) -> bool:
    for part in parts:
        if type(part) in NO_MEDIA:
            continue
        if isinstance(part, MEDIA_TYPES):
            if wanted(part):
                return True
        elif isinstance(part, ToolResult) and part.parts and _has_wanted(part.parts, wanted):
            return True
    return False


def _in_parts(
    parts: tuple[Part, ...],
    wanted: Callable[[Media], bool],
    change: Callable[[Media, str], Media],
    where: str,
) -> tuple[Part, ...]:
    changed: list[Part] | None = None
    for index, part in enumerate(parts):
        new: Part = part
        if isinstance(part, MEDIA_TYPES):
            if wanted(part):
                new = change(part, f"{where}[{index}]")
        elif isinstance(part, ToolResult) and part.parts:
            inner = _in_parts(part.parts, wanted, change, f"{where}[{index}].content")
            if inner is not part.parts:
                new = replace(part, content=inner)
        if new is not part:
            changed = list(parts) if changed is None else changed
            changed[index] = new
    return parts if changed is None else tuple(changed)


def with_bytes(part: Media, data: bytes, media_type: str | None, name: str | None) -> Media:
    """The part with `data` in place of `url` or `path`."""
    fields: dict[str, Any] = {
        "url": None,
        "path": None,
        "data": data,
        "media_type": part.media_type or media_type,
    }
    if isinstance(part, Document) and part.file_name is None and name:
        fields["file_name"] = name
    return replace(part, **fields)


def refuse_files(request: Request) -> None:
    """Raise `ConfigurationError` if a part names a file."""
    for where, part in find_media(request, _names_file):
        if part.path is not None:
            raise ConfigurationError(
                f"{where}: this adapter has read_files=False, so {part.path!r} was not read. "
                "Pass the bytes as data=."
            )
        raise _not_a_url(part, where)


def paths_from_urls(request: Request) -> Request:
    """The request with `path` in place of each `url` that looks like a path."""

    def change(part: Media, _: str) -> Media:
        return replace(part, url=None, path=FilePath(local_path(part.url or "") or ""))

    return replace_media(request, _has_path_url, change)


def _names_file(part: Media) -> bool:
    return part.path is not None or _has_path_url(part)


def _has_path_url(part: Media) -> bool:
    return part.url is not None and local_path(part.url) is not None


def _not_a_url(part: Media, where: str) -> ConfigurationError:
    return ConfigurationError(
        f"{where}.url is a path, {part.url!r:.80}, and was not read, because a URL may come from "
        "a stranger. If your program chose the file, use path= instead of url=."
    )


def _load(part: Media, where: str, max_bytes: int, inside: Path | None) -> Media:
    if part.path is None:
        raise _not_a_url(part, where)
    name = part.path
    try:
        path = Path(name).expanduser()
        if inside is not None and not path.resolve().is_relative_to(inside):
            raise ConfigurationError(
                f"{where}: {name!r} is outside of the allowed folder {inside}."
            )
        data = _read(path, max_bytes)
    except (OSError, RuntimeError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ConfigurationError(f"{where}: cannot read {name!r}: {reason}") from None
    return with_bytes(part, data, media_type_for(data, path.name), path.name)


def _read(path: Path, max_bytes: int) -> bytes:
    # Opening a pipe may block for ever, and a device may be endless, so check before.
    if not stat.S_ISREG(path.stat().st_mode):
        raise ValueError("it is not a regular file")
    with path.open("rb") as file:
        data = file.read(max_bytes + 1)
    if len(data) > max_bytes:
        raise ValueError(f'it is larger than {max_bytes} bytes; pass upload="auto"')
    if not data:
        raise ValueError("it is empty")
    return data


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
    max_total: int = MAX_FILES,
    seconds: float = SECONDS,
    allowed: Callable[[str], bool] = is_public,
) -> Request:
    """
    The request with the bytes in place of each URL, in parts of the types in `kinds`.

    At most `MAX_FETCHES` URLs are fetched at once; `max_total` limits all of them together.
    """

    def wanted(part: Media) -> bool:
        return isinstance(part, kinds) and _is_web(part.url)

    urls = list(dict.fromkeys(part.url or "" for _, part in find_media(request, wanted)))
    if not urls:
        return request
    slots, budget = asyncio.Semaphore(MAX_FETCHES), _Budget(max_total)

    async def fetch_one(url: str) -> Fetched:
        async with slots:
            return await fetch(
                url, max_bytes=max_bytes, seconds=seconds, allowed=allowed, spend=budget.spend
            )

    try:
        async with asyncio.TaskGroup() as group:
            tasks = {url: group.create_task(fetch_one(url)) for url in urls}
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
    spend: Callable[[int], object] = lambda _: None,
) -> Fetched:
    """
    Fetch a file; raises `ConfigurationError` if the URL leads to an address that is not allowed.

    `allowed` takes an IP address and says whether a connection to it is allowed. `spend` is called
    with the size of each piece, and may raise.
    """
    error: SDKError
    try:
        async with asyncio.timeout(seconds):
            return await _follow(url, max_bytes, allowed, spend)
    except Exception as failure:  # noqa: BLE001 -- all are translated
        error = _fetch_error(failure, url, seconds)
    raise error


async def fetch_chunks(
    url: str, *, seconds: float = SECONDS, allowed: Callable[[str], bool] = is_public
) -> AsyncGenerator[bytes, None]:
    """
    As `fetch`, for a file of any size: b"" when the reply has begun, then its bytes in chunks.

    `seconds` bound the time until the reply begins, and between two chunks.
    """
    error: SDKError
    try:
        async with AsyncExitStack() as stack:
            async with asyncio.timeout(seconds):
                url_now, response = await stack.enter_async_context(_opened(url, allowed))
            _check_reply(url_now, response)
            yield b""
            chunks = response.chunks()
            while True:
                async with asyncio.timeout(seconds):
                    chunk = await anext(chunks, b"")
                if not chunk:
                    return
                yield chunk
    except Exception as failure:  # noqa: BLE001 -- all are translated
        error = _fetch_error(failure, url, seconds)
    raise error


def _fetch_error(failure: Exception, url: str, seconds: float) -> SDKError:
    if isinstance(failure, SDKError):  # first: some of them are a TimeoutError or an OSError too
        return failure
    if isinstance(failure, TimeoutError):
        return RequestTimeoutError(
            f"Timed out after {seconds:g} s while fetching a file from {address_of(url)}.",
            phase="request",
            retryable=False,
        )
    return NetworkError(
        f"Cannot fetch from {address_of(url)}: {type(failure).__name__}",
        cause=connection_error(failure),
    )


async def _follow(
    url: str, max_bytes: int, allowed: Callable[[str], bool], spend: Callable[[int], object]
) -> Fetched:
    async with _opened(url, allowed) as (last, response):
        return await _take(last, response, max_bytes, spend)


@asynccontextmanager
async def _opened(text: str, allowed: Callable[[str], bool]) -> AsyncIterator[tuple[Url, Exchange]]:
    """The URL after all redirects, and its reply."""
    from interlingua.transport.http1.exchange import Exchange
    from interlingua.transport.http1.pool import Pool

    # No proxy, because a proxy would resolve the name itself.
    pool = Pool(trust_env=False, resolve=partial(_resolve, allowed))
    loop = asyncio.get_running_loop()
    try:
        for _ in range(MAX_REDIRECTS + 1):
            url = _checked(text)
            request = HttpRequest(method="GET", url=text, headers=_HEADERS, keep_alive=False)
            async with Exchange(request, pool, loop, _TIMEOUTS, _LIMITS) as response:
                if response.status not in {301, 302, 303, 307, 308}:
                    yield url, response
                    return
                text = _next_url(text, url, response.headers.get("location"))
    finally:
        await pool.close()
    raise ConfigurationError(f"{url.host} redirects more than {MAX_REDIRECTS} times.")


_HEADERS = {"accept-encoding": "identity"}
# The callers have clocks and limits of their own.
_TIMEOUTS = Timeouts(connect=None, request=None, stream_read=None)
_LIMITS = Limits(body=sys.maxsize)


async def _take(
    url: Url, response: Exchange, max_bytes: int, spend: Callable[[int], object]
) -> Fetched:
    _check_reply(url, response)
    data = bytearray()
    async for chunk in response.chunks():
        data += chunk
        spend(len(chunk))
        if len(data) > max_bytes:
            raise ConfigurationError(f"The file at {url.host} is larger than {max_bytes} bytes.")
    name = unquote(url.target.partition("?")[0].rpartition("/")[2]) or None
    declared = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    return Fetched(bytes(data), media_type_for(bytes(data), name, declared or None), name)


def _check_reply(url: Url, response: Exchange) -> None:
    if response.status != 200:
        text = f"Cannot fetch a file from {url.host}: HTTP {response.status}"
        if response.status >= 500 or response.status == 429:
            raise NetworkError(text)
        raise ConfigurationError(text)
    if response.headers.get("content-encoding", "identity").lower() != "identity":
        raise DecodeError(f"{url.host} sent a compressed file, but only identity was accepted.")


def _checked(text: str) -> Url:
    from interlingua.transport.http1.addresses import parse_url

    scheme = text.partition(":")[0]
    if not _is_web(text):
        raise ConfigurationError(f"Only http and https URLs can be fetched, not {scheme!r}.")
    url = parse_url(text)  # as the request does: two parsers could see two different hosts
    if url.authorization is not None:
        raise ConfigurationError(
            f"The URL at {url.host} contains a user name or password and was not fetched. "
            "Remove them."
        )
    return url


def _next_url(text: str, url: Url, location: str | None) -> str:
    if not location:
        raise ConfigurationError(f"{url.host} sent a redirect without a location header.")
    target = urljoin(text, location)
    if url.scheme == "https" and target[:5].lower() == "http:":
        raise ConfigurationError(f"{url.host} redirects from https to http, which is not allowed.")
    return target


async def _resolve(allowed: Callable[[str], bool], host: str, port: int) -> Sequence[Address]:
    """The addresses of a host; refuses a host if one of them is not allowed."""
    from interlingua.transport.http1.addresses import resolve

    addresses = await resolve(host, port)
    if not all(allowed(address[1][0]) for address in addresses):
        raise ConfigurationError(
            f"{host} is not a public address, so the file was not fetched. Pass its bytes instead."
        )
    return addresses


def _is_web(url: str | None) -> bool:
    return url is not None and url[:8].lower().startswith(("http://", "https://"))
