"""The headers of a reply and its first bytes leave in one write."""

import asyncio

import pytest

from interlingua.gateway.protocol import JoinedWrites

HEAD = b"HTTP/1.1 200 OK\r\n\r\n"


class Transport:
    """Notes what it is told to do."""

    def __init__(self):
        self.done = []

    def write(self, data):
        self.done.append(data)

    def writelines(self, parts):
        self.done.append(b"".join(parts))

    def close(self):
        self.done.append("closed")

    def is_closing(self):
        return False


def run(*steps):
    """What reaches the connection; None among the steps is a turn of the loop."""

    async def work():
        transport = Transport()
        joined = JoinedWrites(transport, asyncio.get_running_loop())
        for step in steps:
            if step is None:
                await asyncio.sleep(0)
                transport.done.append(None)
            elif step == "close":
                joined.close()
            else:
                joined.write(step)
        await asyncio.sleep(0)
        assert joined.is_closing() is False  # as everything else, asked of the transport
        return transport.done

    return asyncio.run(work())


@pytest.mark.parametrize(
    ("steps", "done"),
    [
        ((HEAD, b"body"), [HEAD + b"body"]),
        ((HEAD, b"one", b"two"), [HEAD + b"one", b"two"]),
        ((HEAD, b"one", HEAD, b"two"), [HEAD + b"one", HEAD + b"two"]),
        ((HEAD, HEAD), [HEAD + HEAD]),
        ((HEAD,), [HEAD]),
        ((HEAD, None, b"late"), [HEAD, None, b"late"]),
        ((HEAD, "close"), [HEAD, "closed"]),
        ((HEAD, b"body", "close"), [HEAD + b"body", "closed"]),
        ((HEAD, b""), [HEAD]),
        ((b"body", None), [b"body", None]),
    ],
)
def test_nothing_is_lost_or_late(steps, done):
    """Headers without a body leave in the same turn of the loop."""
    assert run(*steps) == done
