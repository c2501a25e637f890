"""Where requests go to, and how a connection is opened: names, proxies, tunnels, TLS."""

from __future__ import annotations

import asyncio
import os
import re
import socket
import ssl
from base64 import b64encode
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import chain, zip_longest
from time import monotonic
from typing import Any, NamedTuple, TypeAlias, cast
from urllib.parse import quote, unquote, urlsplit

from interlingua.spec.errors import ConfigurationError, NetworkError
from interlingua.transport.bodies import accepted_codings
from interlingua.transport.http1.connection import Connection, InvalidReplyError, Reply
from interlingua.transport.proxies import Proxies
from interlingua.transport.timeouts import connection_error, system_error
from interlingua.version import USER_AGENT

_PORTS = {"http": 80, "https": 443}
_PATH_SAFE = "!$%&'+()*,-./:;=@_~"
_STRAY_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")
_BAD_HOST = re.compile(r"[\s\x00-\x20\x7f/?#@\\<>^|%]")

_DELAY = 0.25
"""Seconds until the next address of a host is tried in parallel (RFC 8305)."""

_NO_LIMIT = 1e6
"""Seconds for a handshake: the timeouts of an exchange end it, not those of asyncio."""


class Url(NamedTuple):
    """The parts of a URL with which connections are opened and requests are written."""

    scheme: str
    host: str
    """In ASCII; an IPv6 address has no brackets."""
    port: int
    target: str
    """The path and the query, as in a request line."""
    authorization: str | None
    """Basic authentication with the user name and the password of the URL, if it has them."""

    @property
    def address(self) -> str:
        """Host and port, for messages; nothing else of a URL is shown, because it may be secret."""
        return f"{self.bracketed}:{self.port}"

    @property
    def bracketed(self) -> str:
        """The host as in a URL."""
        return f"[{self.host}]" if ":" in self.host else self.host

    @property
    def origin(self) -> str:
        """The value of the `host` header."""
        return self.bracketed if self.port == _PORTS[self.scheme] else self.address


def parse_url(text: str) -> Url:
    """Take a URL apart; `ConfigurationError` if it is none of http or https."""
    host = ""
    with suppress(ValueError):  # also for half a character
        parts = urlsplit(text)
        host = parts.hostname or ""
        host = host if host.isascii() else host.encode("idna").decode()
        if parts.scheme in _PORTS and host and not _BAD_HOST.search(host):
            path = _STRAY_PERCENT.sub("%25", quote(parts.path or "/", _PATH_SAFE))
            query = _STRAY_PERCENT.sub("%25", quote(parts.query, _PATH_SAFE + "?[]"))
            return Url(
                parts.scheme,
                host,
                _PORTS[parts.scheme] if parts.port is None else parts.port,
                f"{path}?{query}" if query else path,
                _basic_auth(parts.username, parts.password),
            )
    raise ConfigurationError(
        f"The request URL is invalid (host: {host or 'no host'}). "
        "Use http:// or https:// and a host."
    )


def _basic_auth(user: str | None, password: str | None) -> str | None:
    if not (user or password):
        return None
    pair = f"{unquote(user or '')}:{unquote(password or '')}"
    return f"Basic {b64encode(pair.encode()).decode()}"


class Target(NamedTuple):
    """Where the requests for one URL go, and what is the same in all of them."""

    url: Url
    proxy: Url | None
    key: tuple[object, ...]
    """The same for all targets whose requests may use the same connection."""
    path: str
    """As in the request line."""
    headers: Mapping[str, str]

    @property
    def needs_tls(self) -> bool:
        """Whether certificates are needed, by the host or by its proxy."""
        return "https" in (self.url.scheme, self.proxy.scheme if self.proxy else "")


def find_target(text: str, proxies: Proxies | None) -> Target:
    """Where a request for this URL goes."""
    url = parse_url(text)
    found = None if proxies is None else proxies.find(text)
    proxy = None if found is None else parse_url(found)
    headers = {
        "host": url.origin,
        "accept": "*/*",
        "accept-encoding": accepted_codings(),
        "user-agent": USER_AGENT,
    }
    if url.authorization is not None:
        headers["authorization"] = url.authorization
    path = url.target
    if proxy is not None and url.scheme == "http":
        path = f"http://{url.origin}{url.target}"
        if proxy.authorization is not None:
            headers["proxy-authorization"] = proxy.authorization
    return Target(url, proxy, (url.scheme, url.host, url.port, found), path, headers)


# Names.

Address: TypeAlias = tuple[socket.AddressFamily, tuple[str, int] | tuple[str, int, int, int]]
Resolve: TypeAlias = Callable[[str, int], Awaitable[Sequence[Address]]]


class Resolver:
    """Finds the addresses of hosts, each once in ten seconds."""

    _SECONDS = 10.0
    _MAX_HOSTS = 256

    def __init__(self) -> None:
        self._found: dict[tuple[str, int], tuple[float, Sequence[Address]]] = {}
        self._failed: dict[tuple[str, int], tuple[float, socket.gaierror]] = {}
        self._locks: dict[tuple[str, int], asyncio.Lock] = {}

    async def resolve(self, host: str, port: int) -> Sequence[Address]:
        """The addresses, in the order in which they are tried."""
        key, asked = (host, port), monotonic()
        if len(self._locks) >= self._MAX_HOSTS and key not in self._locks:
            self._found.clear()
            self._failed.clear()
            self._locks.clear()
        # One look-up serves all that wait for it, also if it fails.
        async with self._locks.setdefault(key, asyncio.Lock()):
            until, found = self._found.get(key, (0.0, ()))
            if until >= monotonic():
                return found
            when, error = self._failed.get(key, (0.0, None))
            if error is not None and when >= asked:
                raise socket.gaierror(*error.args)
            try:
                found = await resolve(host, port)
            except socket.gaierror as failure:
                self._failed[key] = monotonic(), failure
                raise
            self._found[key] = monotonic() + self._SECONDS, found
            return found

    def forget(self, host: str, port: int) -> None:
        """Look the host up again next time: no connection could be opened."""
        self._found.pop((host, port), None)


async def resolve(host: str, port: int) -> Sequence[Address]:
    """The addresses of a host, families in turn."""
    for family in (socket.AF_INET, socket.AF_INET6):
        try:
            socket.inet_pton(family, host)
        except OSError:
            continue
        return [(family, (host, port))]
    loop = asyncio.get_running_loop()
    entries = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    found = [(entry[0], cast(tuple[str, int], entry[4])) for entry in entries]
    first = [each for each in found if each[0] == found[0][0]]
    others = [each for each in found if each[0] != found[0][0]]
    turns = chain.from_iterable(zip_longest(first, others))
    return [each for each in turns if each is not None]


# Sockets.


async def connect(addresses: Sequence[Address]) -> socket.socket:
    """
    Connect to the first address that answers ("happy eyeballs", RFC 8305).

    The next address is tried when one has failed, and at the latest after a quarter of a second.
    """
    loop = asyncio.get_running_loop()
    if len(addresses) == 1:
        return await _connect(loop, addresses[0])
    left = iter(addresses)
    running: set[asyncio.Task[socket.socket]] = set()
    first_error: BaseException | None = None
    try:
        while True:
            address = next(left, None)
            if address is not None:
                running.add(loop.create_task(_connect(loop, address)))
            elif not running:
                none = socket.gaierror(socket.EAI_NONAME, "The host has no address.")
                raise first_error or none
            done, running = await asyncio.wait(
                running,
                timeout=None if address is None else _DELAY,
                return_when=asyncio.FIRST_COMPLETED,
            )
            open_ones = [task.result() for task in done if task.exception() is None]
            for extra in open_ones[1:]:
                extra.close()
            if open_ones:
                return open_ones[0]
            for task in done:
                first_error = first_error or task.exception()
    finally:
        for task in running:
            task.add_done_callback(_close_result)
            task.cancel()


async def _connect(loop: asyncio.AbstractEventLoop, address: Address) -> socket.socket:
    family, where = address
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        await loop.sock_connect(sock, where)
    except BaseException:
        sock.close()
        raise
    return sock


def _close_result(task: asyncio.Task[socket.socket]) -> None:
    if not task.cancelled() and task.exception() is None:
        task.result().close()


# Connections.


async def open_connection(
    target: Target, resolve_host: Resolve, tls: Callable[[], ssl.SSLContext]
) -> Connection:
    """
    Open a connection to the target, through its proxy if it has one.

    Raises `NetworkError` that names the host, or the proxy if that is what failed.
    """
    url, proxy = target.url, target.proxy
    peer = proxy or url
    name = peer.address if proxy is None else f"the proxy {peer.address}"
    loop = asyncio.get_running_loop()
    settings = _tls_settings(tls(), peer.host) if peer.scheme == "https" else {}
    with _connect_errors(name):
        sock = await connect(await resolve_host(peer.host, peer.port))
        made = Connection(loop)
        await loop.create_connection(lambda: made, sock=sock, **settings)
        _check_open(made)
    if proxy is not None and url.scheme == "https":
        try:
            await _open_tunnel(made, url, proxy)
            with _connect_errors(f"{url.address} (through {name})"):
                await _encrypt(made, tls(), url.host)
                _check_open(made)
        except BaseException:
            made.cut()
            raise
    return made


def _check_open(connection: Connection) -> None:
    """Raise an error if the connection was closed again, together with the end of a handshake."""
    if not connection.is_open():
        raise ConnectionResetError


def _tls_settings(context: ssl.SSLContext, host: str) -> dict[str, Any]:
    return {"ssl": context, "server_hostname": host, "ssl_handshake_timeout": _NO_LIMIT}


async def _open_tunnel(connection: Connection, url: Url, proxy: Url) -> None:
    """Ask the proxy for a connection to the host (CONNECT)."""
    lines = [f"CONNECT {url.address} HTTP/1.1", f"host: {url.address}", f"user-agent: {USER_AGENT}"]
    if proxy.authorization is not None:
        lines.append(f"proxy-authorization: {proxy.authorization}")
    reply = Reply(asyncio.get_running_loop(), has_body=False)
    connection.send("\r\n".join([*lines, "", ""]).encode(), reply)
    try:
        await reply.wait_for_head()
    except InvalidReplyError:
        raise NetworkError(
            f"The response from the proxy {proxy.address} is not valid HTTP.", phase="connect"
        ) from None
    except (OSError, EOFError) as failure:
        raise NetworkError(
            f"The proxy {proxy.address} closed the connection before it connected to "
            f"{url.address}.",
            phase="connect",
            cause=connection_error(failure),
        ) from None
    if not 200 <= reply.status < 300:
        raise NetworkError(
            f"The proxy {proxy.address} refused a connection to {url.address}: {reply.status}.",
            retryable=reply.status >= 500,
            phase="connect",
        )


async def _encrypt(connection: Connection, context: ssl.SSLContext, host: str) -> None:
    """Start TLS on an open connection, which may be encrypted already."""
    loop = asyncio.get_running_loop()
    try:
        transport = await loop.start_tls(
            connection.transport,
            connection,
            context,
            server_hostname=host,
            ssl_handshake_timeout=_NO_LIMIT,
        )
    except TypeError as failure:
        # asyncio of Python 3.11 and 3.12 fails so when it closes TLS within TLS.
        cause = failure.__context__
        raise cause if isinstance(cause, ssl.SSLError) else ConnectionResetError from None
    if transport is None:  # it was closed meanwhile
        raise ConnectionResetError
    connection.start_tls(transport)


@contextmanager
def _connect_errors(name: str) -> Iterator[None]:
    """Raises the errors of the system as ours."""
    try:
        yield
    except (socket.gaierror, UnicodeError) as failure:  # the second: no name of a host
        why = getattr(failure, "strerror", None) or "It is not a valid name."
        retryable = isinstance(failure, OSError)
        text = f"Cannot find the address of {name}: {why}"
        cause = system_error(failure)
    except ssl.SSLError as failure:
        text, retryable = f"The TLS handshake with {name} failed: {why_tls_failed(failure)}", False
        cause = None
    except OSError as failure:
        number = failure.errno
        why = os.strerror(number) if number and number > 0 else type(failure).__name__
        text, retryable = f"Cannot connect to {name}: {why}", True
        cause = system_error(failure)
    else:
        return
    raise NetworkError(text, phase="connect", retryable=retryable, cause=cause)


def why_tls_failed(error: ssl.SSLError) -> str:
    """The reason, in the words of OpenSSL."""
    return getattr(error, "verify_message", None) or error.reason or type(error).__name__
