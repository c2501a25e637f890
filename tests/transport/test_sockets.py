"""A look at the socket of an idle connection."""

import asyncio
import socket

from interlingua.transport.sockets import SocketProbe


class Connection(asyncio.Transport):
    """A transport that only has a socket."""


def test_what_waits_in_the_socket_is_seen():
    """Bytes that the event loop has not read yet, and the end of the connection."""
    near, far = socket.socketpair()
    with near, far:
        probe = SocketProbe(Connection({"socket": near}))
        assert not probe.has_input()
        far.send(b"HTTP/1.1 200 OK")
        assert probe.has_input()
        near.recv(100)
        assert not probe.has_input()
        far.close()
        assert probe.has_input()


def test_a_connection_without_a_socket_has_no_input():
    """Such as one in memory; there is nothing to look at."""
    assert not SocketProbe(Connection()).has_input()
