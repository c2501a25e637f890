"""Which addresses a URL that somebody gave us may lead to."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)

Address = IPv4Address | IPv6Address

# Python knows the registries of its release; these are refused whatever it knows.
_REFUSED: tuple[IPv4Network | IPv6Network, ...] = tuple(
    map(
        ip_network,
        (
            "0.0.0.0/8",
            "100.64.0.0/10",  # carriers' own, and one cloud's metadata
            "168.63.129.16/32",  # Azure's own services, on an address that looks public
            "192.0.0.0/24",
            "192.88.99.0/24",
            "198.18.0.0/15",
            "240.0.0.0/4",
            "100::/64",
            "2001:db8::/32",
            "3fff::/20",
            "5f00::/16",
            "fec0::/10",
        ),
    )
)
_NAT64 = ip_network("64:ff9b::/96")
_NAT64_LOCAL = ip_network("64:ff9b:1::/48")
_V4_COMPATIBLE = ip_network("::/96")


def is_public(text: str) -> bool:
    """Whether this is an address on the open internet; an IPv4 one inside an IPv6 one counts."""
    try:
        address = ip_address(text.partition("%")[0])
    except ValueError:
        return False
    return all(_is_open(one) for one in _with_embedded(address))


def _is_open(address: Address) -> bool:
    if not address.is_global or address.is_multicast or address.is_reserved:
        return False
    return not any(address in network for network in _REFUSED)


def _with_embedded(address: Address) -> Iterator[Address]:
    if isinstance(address, IPv4Address):
        yield address
        return
    low = IPv4Address(int(address) & 0xFFFF_FFFF)
    if address.ipv4_mapped is not None:
        yield address.ipv4_mapped
    elif address in _NAT64:
        yield low
    elif address in _V4_COMPATIBLE or address in _NAT64_LOCAL:
        yield IPv4Address(0)  # obsolete, or private by definition
    else:
        yield address
        if address.sixtofour is not None:
            yield address.sixtofour
        if address.teredo is not None:
            yield from address.teredo
