"""Which IP addresses are public: a guard against server-side request forgery (SSRF)."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

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
