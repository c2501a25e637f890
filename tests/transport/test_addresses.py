"""Which IP addresses are public."""

from ipaddress import ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlingua.transport.media import is_public

INSIDE = [
    "0.0.0.1", "10.0.0.1", "100.64.0.1", "100.100.100.200", "127.0.0.1", "127.255.255.254",
    "168.63.129.16", "169.254.169.254", "172.16.0.1", "172.31.255.255", "192.0.0.192",
    "192.0.2.1", "192.88.99.1", "192.168.1.1", "198.18.0.1", "198.51.100.1", "203.0.113.1",
    "224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255",
    "::", "::1", "::7f00:1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254",
    "::ffff:0:8.8.8.8", "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::1", "100::1",
    "2001:db8::1",
    "2001::1", "2002:7f00:1::", "2002:a9fe:a9fe::", "fc00::1", "fd00:ec2::254", "fe80::1",
    "fe80::1%eth0", "fec0::1", "ff02::1", "ff0e::1", "3fff::1", "5f00::1", "100:0:0:1::1",
    "192.0.0.9", "2001:1::1", "2001:3::1", "2001:4:112::1", "2001:20::1",
    "", "localhost", "0x7f.1", "2130706433", "127.1", "1.1.1.1/32",
]  # fmt: skip
# The first and the last address of each block that is refused.
BLOCKS = [
    ("0.0.0.0", "0.255.255.255"),  # noqa: S104 - an address to refuse
    ("10.0.0.0", "10.255.255.255"),
    ("100.64.0.0", "100.127.255.255"),
    ("127.0.0.0", "127.255.255.255"),
    ("168.63.129.16", "168.63.129.16"),
    ("169.254.0.0", "169.254.255.255"),
    ("172.16.0.0", "172.31.255.255"),
    ("192.0.0.0", "192.0.0.255"),
    ("192.0.2.0", "192.0.2.255"),
    ("192.88.99.0", "192.88.99.255"),
    ("192.168.0.0", "192.168.255.255"),
    ("198.18.0.0", "198.19.255.255"),
    ("198.51.100.0", "198.51.100.255"),
    ("203.0.113.0", "203.0.113.255"),
    ("224.0.0.0", "255.255.255.255"),
    ("::", "::fffe:ffff:ffff"),
    ("::1:0:0:0", "64:ff9a:ffff:ffff:ffff:ffff:ffff:ffff"),
    ("64:ff9b:0:0:0:1::", "1fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
    ("2001::", "2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff"),
    ("2001:db8::", "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff"),
    ("2002:a00::", "2002:aff:ffff:ffff:ffff:ffff:ffff:ffff"),
    ("2002:c0a8::", "2002:c0a8:ffff:ffff:ffff:ffff:ffff:ffff"),
    ("3fff::", "3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff"),
    ("4000::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
]
# What lies beside a block and is not public either: each holds an IPv4 address of a block.
BESIDE = {*map(ip_address, ("::ffff:0:0", "::ffff:ffff:ffff", "64:ff9b::", "64:ff9b::ffff:ffff"))}
OUTSIDE = [
    "1.1.1.1", "8.8.8.8", "172.32.0.1", "100.128.0.1", "2606:4700:4700::1111",
    "2001:4860:4860::8888", "::ffff:8.8.8.8", "64:ff9b::808:808", "2002:808:808::",
    "192.31.196.1", "192.52.193.1", "192.175.48.1", "2620:4f:8000::1", "2001:4860:4860::8888%x",
]  # fmt: skip


@pytest.mark.parametrize("address", INSIDE)
def test_not_public(address):
    """Private, link-local, metadata, multicast, reserved and invalid addresses are refused."""
    assert not is_public(address)


@pytest.mark.parametrize("address", OUTSIDE)
def test_public(address):
    """Addresses on the internet are public."""
    assert is_public(address)


@given(st.ip_addresses(v=4))
def test_an_embedded_ipv4_address_decides_whether_it_is_public(address):
    """An IPv4 address embedded in an IPv6 address decides whether it is public."""
    high, low = divmod(int(address), 65536)

    assert is_public(f"::ffff:{address}") is is_public(str(address))
    assert is_public(f"64:ff9b::{high:x}:{low:x}") is is_public(str(address))
    if not is_public(str(address)):
        assert not is_public(f"2002:{high:x}:{low:x}::1")


@pytest.mark.parametrize(("first", "last"), BLOCKS)
def test_block_boundaries(first, last):
    """A block is refused from its first to its last address, and its neighbours are not."""
    assert not is_public(first)
    assert not is_public(last)
    below, above = int(ip_address(first)) - 1, int(ip_address(last)) + 1
    kind = type(ip_address(first))
    neighbours = [
        kind(number) for number in (below, above) if 0 <= number < 2 ** kind(0).max_prefixlen
    ]
    for neighbour in neighbours:
        assert is_public(str(neighbour)) is (neighbour not in BESIDE)


@given(st.ip_addresses(v=4) | st.ip_addresses(v=6, network="2000::/3"))
def test_python_tables(address):
    """Addresses that this Python calls private, multicast or reserved are refused, except 6to4."""
    if address.version == 6 and address.sixtofour is not None:
        return  # some Pythons refuse all of it; here the IPv4 address in it decides
    if address.is_private or address.is_multicast or address.is_reserved:
        assert not is_public(str(address))


@given(st.ip_addresses(v=6))
def test_other_ipv6_addresses_are_public_only_by_an_embedded_address(address):
    """Outside of global unicast only an embedded address can be public."""
    number = int(address)
    if number >> 125 != 1 and number >> 32 not in (0xFFFF, 0x64FF9B << 64):
        assert not is_public(str(address))
