"""One connection of the default transport, without a socket and without a loop that runs."""

import asyncio

from interlingua.transport.http1.connection import Connection, Reply


class Wire(asyncio.Transport):
    """Keeps what is written; closes as the transports of asyncio do, when `settle` is called."""

    def __init__(self, loop=None):
        super().__init__()
        self.loop = loop
        self.written = b""
        self.unsent = 0
        """Bytes that the peer has not read."""
        self.is_paused = False
        self.pauses = 0
        self.is_closed = False
        self.is_aborted = False

    def write(self, data):
        assert not self.is_closed
        self.written += data

    def get_write_buffer_size(self):
        return self.unsent

    def is_closing(self):
        return self.is_closed

    def pause_reading(self):
        self.is_paused = True
        self.pauses += 1

    def resume_reading(self):
        self.is_paused = False

    def close(self):
        assert not self.is_closed, "asyncio cannot do that twice for TLS"
        self.is_closed = True

    def abort(self):
        self.is_closed = self.is_aborted = True


class Owner:
    """Counts what a pool is told."""

    def __init__(self):
        self.released = []
        self.forgotten = 0

    def release(self, connection):
        """Keep whether the connection can be used again; as a pool does, close it if not."""
        self.released.append(connection.is_reusable)
        if not connection.is_reusable:
            connection.close()

    def forget(self, _connection):
        self.forgotten += 1


class Talk:
    """A connection, and what the test lets happen to it."""

    def __init__(self, loop=None):
        self.wire, self.owner = Wire(), Owner()
        self.connection = Connection(loop)
        self.connection.owner = self.owner
        self.connection.connection_made(self.wire)
        self._loop = loop
        self._is_lost = False

    def ask(self, method="POST", data=b"?", **options):
        """Send a request; its reply."""
        reply = Reply(self._loop, has_body=method != "HEAD")
        self.connection.send(data, reply, **options)
        return reply

    def hear(self, *pieces):
        """The pieces arrive, as long as the connection is open."""
        for piece in pieces:
            if self.wire.is_closed:
                break
            self.connection.data_received(piece)

    def end(self):
        """The server closes its side; asyncio then closes the connection, unless that is done."""
        if not self.wire.is_closed:
            self.connection.eof_received()
        self.lose()

    def lose(self, error=None):
        """The event loop says that the connection is closed, once."""
        self.wire.is_closed = True
        if not self._is_lost:
            self._is_lost = True
            self.connection.connection_lost(error)

    @property
    def can_serve(self):
        """Whether another request may be sent."""
        return self.owner.released[-1:] == [True] and self.connection.can_serve()


def drain(reply):
    """The bytes that have arrived; those before an error too."""
    taken = b""
    while not (reply.error is not None and not reply.size):
        data = reply.take()
        taken += data
        if not data:
            break
    return taken
