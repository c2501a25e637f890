"""Proxies from the environment: `HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY`, `NO_PROXY`."""

from __future__ import annotations

from collections.abc import Collection
from ipaddress import ip_address
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from interlingua.spec.errors import ConfigurationError

HTTP = ("http", "https")
SOCKS = ("socks5", "socks5h")


class Proxies:
    """
    The proxies that the environment named when this object was created.

    Loopback addresses never use a proxy: they are local models. `kinds` are the supported schemes
    of proxies; any other scheme is an error, because a direct connection would be a surprise.
    """

    def __init__(self, kinds: Collection[str] = HTTP) -> None:
        self._kinds = kinds
        self._by_scheme = getproxies()
        self._by_origin: dict[str, str | None] = {}

    def __bool__(self) -> bool:
        return any(key in self._by_scheme for key in ("http", "https", "all"))

    def find(self, url: str) -> str | None:
        """The proxy for this URL; None for a direct connection."""
        parts = urlsplit(url)
        origin = f"{parts.scheme}://{parts.netloc}"
        if origin not in self._by_origin:
            self._by_origin[origin] = self._choose(
                parts.scheme.lower(), parts.hostname, parts.netloc
            )
        return self._by_origin[origin]

    def _choose(self, scheme: str, host: str | None, netloc: str) -> str | None:
        proxy = self._by_scheme.get(scheme) or self._by_scheme.get("all")
        if not proxy or not host or _is_loopback(host):
            return None
        if proxy_bypass(netloc.rpartition("@")[2]):
            return None
        if "://" not in proxy:
            proxy = f"http://{proxy}"
        kind = urlsplit(proxy).scheme
        if kind not in self._kinds:
            advice = "Use HttpxTransport, or unset" if kind in SOCKS else "Unset"
            raise ConfigurationError(
                f"This transport does not support a {kind} proxy. {advice} HTTP_PROXY, "
                "HTTPS_PROXY and ALL_PROXY, or pass trust_env=False."
            )
        return proxy


def _is_loopback(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
