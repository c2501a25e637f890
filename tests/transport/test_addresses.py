"""Which addresses are on the open internet."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlingua.transport.addresses import is_public

INSIDE = [
    "0.0.0.1", "10.0.0.1", "100.64.0.1", "100.100.100.200", "127.0.0.1", "127.255.255.254",
    "168.63.129.16", "169.254.169.254", "172.16.0.1", "172.31.255.255", "192.0.0.192",
    "192.0.2.1", "192.88.99.1", "192.168.1.1", "198.18.0.1", "198.51.100.1", "203.0.113.1",
    "224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255",
    "::", "::1", "::7f00:1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254",
    "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::1", "100::1", "2001:db8::1",
    "2001::1", "2002:7f00:1::", "2002:a9fe:a9fe::", "fc00::1", "fd00:ec2::254", "fe80::1",
    "fe80::1%eth0", "fec0::1", "ff02::1", "3fff::1",
    "", "localhost", "0x7f.1", "2130706433", "127.1", "1.1.1.1/32",
]  # fmt: skip
OUTSIDE = [
    "1.1.1.1", "8.8.8.8", "172.32.0.1", "100.128.0.1", "2606:4700:4700::1111",
    "2001:4860:4860::8888", "::ffff:8.8.8.8", "64:ff9b::808:808", "2002:808:808::",
]  # fmt: skip


@pytest.mark.parametrize("address", INSIDE)
def test_inside(address):
    """Private, loopback, link-local, metadata, multicast, reserved, or no address at all."""
    assert not is_public(address)


@pytest.mark.parametrize("address", OUTSIDE)
def test_outside(address):
    """What anybody can reach."""
    assert is_public(address)


@given(st.ip_addresses(v=4))
def test_an_address_inside_another_counts(address):
    """However an IPv4 address is written into an IPv6 one, it is judged by itself."""
    high, low = divmod(int(address), 65536)

    assert is_public(f"::ffff:{address}") is is_public(str(address))
    assert is_public(f"64:ff9b::{high:x}:{low:x}") is is_public(str(address))
    if not is_public(str(address)):
        assert not is_public(f"2002:{high:x}:{low:x}::1")
